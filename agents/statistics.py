"""Statistics: estimates with their intervals, for wins, for scores, for two agents on the same deals, and for several
training seeds.

Interquartile mean and stratified bootstrap are those of Agarwal et al. 2021, "Deep reinforcement learning at the edge
of the statistical precipice", whose package rliable does not load beside the newest pandas.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

CONFIDENCE: Final = 0.95
"""All intervals cover the true value in 95 of 100 repetitions, unless a caller asks for another share."""

_NUMBERS_AT_ONCE: Final = 4_000_000


class Estimate(NamedTuple):
    """A value measured on a sample, with the two ends of its confidence interval."""

    value: float
    low: float
    high: float


def wilson(successes: int, trials: int, confidence: float = CONFIDENCE) -> Estimate:
    """A share with Wilson's score interval, which stays within 0..1 and is right for rare wins and for none at all.

    Raises:
        ValueError: no trials, or more successes than trials.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"expected 0 <= successes <= trials and a trial at least, got {successes} of {trials}")
    interval = stats.binomtest(successes, trials).proportion_ci(confidence_level=confidence, method="wilson")
    return Estimate(successes / trials, float(interval.low), float(interval.high))


def mean_t(values: ArrayLike, confidence: float = CONFIDENCE) -> Estimate:
    """A mean with Student's t interval.

    Scores lie within fixed bounds and come by the hundred, so their mean is close to normal although they
    themselves have two humps (cleared or not); on some ten games the interval is rough. One value alone says
    nothing about the spread: its interval is infinite.

    Raises:
        ValueError: no values.
    """
    sample = np.asarray(values, dtype=np.float64).reshape(-1)
    if not sample.size:
        raise ValueError("expected one value at least, got none")
    mean = float(sample.mean())
    if sample.size == 1:
        return Estimate(mean, -np.inf, np.inf)
    error = float(stats.sem(sample))
    half = error * float(stats.t.ppf((1 + confidence) / 2, sample.size - 1))
    return Estimate(mean, mean - half, mean + half)


def paired_difference(ours: ArrayLike, theirs: ArrayLike, confidence: float = CONFIDENCE) -> Estimate:
    """The mean of ours - theirs over the same deals, with Student's t interval of the differences.

    Deals differ far more than agents do; the same deal on both sides takes that spread out. Wins (0 or 1) make it a
    difference of win rates.

    Raises:
        ValueError: samples of different lengths, or empty.
    """
    first, second = _pairs(ours, theirs)
    return mean_t(first - second, confidence)


class McNemar(NamedTuple):
    """Two agents' wins on the same deals.

    Attributes:
        only_ours: deals that we alone won.
        only_theirs: deals that the other one alone won.
        p_value: so likely are counts as unequal as these, or more, if neither is better (McNemar's exact test).
    """

    only_ours: int
    only_theirs: int
    p_value: float


def mcnemar(ours: ArrayLike, theirs: ArrayLike) -> McNemar:
    """Compare wins (N,) bool on the same deals; only deals that one of the two won alone tell them apart.

    Raises:
        ValueError: samples of different lengths, or empty.
    """
    first, second = (np.asarray(side, dtype=np.bool_) for side in _pairs(ours, theirs))
    only_ours, only_theirs = int((first & ~second).sum()), int((~first & second).sum())
    apart = only_ours + only_theirs
    p_value = float(stats.binomtest(only_ours, apart).pvalue) if apart else 1.0
    return McNemar(only_ours, only_theirs, p_value)


def permutation_test(ours: ArrayLike, theirs: ArrayLike, *, resamples: int = 9_999, seed: int = 0) -> float:
    """How likely a mean difference at least as large, either way, is if the two agents are alike.

    If they are, each deal's difference might as well have had the other sign: signs are drawn ``resamples`` times, or
    all tried where there are not more ways than that.

    Raises:
        ValueError: samples of different lengths, or empty.
    """
    first, second = _pairs(ours, theirs)
    differences = first - second
    differences = differences[differences != 0.0]  # the others have no sign
    if differences.size < 2:
        return 1.0
    found = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", vectorized=True, n_resamples=resamples,
        batch=max(1, _NUMBERS_AT_ONCE // differences.size), rng=np.random.default_rng(seed),
    )  # fmt: skip
    return float(found.pvalue)


def _pairs(ours: ArrayLike, theirs: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = (np.asarray(side, dtype=np.float64).reshape(-1) for side in (ours, theirs))
    if first.size != second.size:
        raise ValueError(f"expected the same deals on both sides, got {first.size} and {second.size} values")
    if not first.size:
        raise ValueError("expected one value at least, got none")
    return first, second


def interquartile_mean(scores: ArrayLike) -> float:
    """The mean of the middle half of all values: a lucky seed moves it less than the mean, and it wastes less than the
    median.

    Raises:
        ValueError: no values.
    """
    values = np.asarray(scores, dtype=np.float64)
    if not values.size:
        raise ValueError("expected one value at least, got none")
    return float(stats.trim_mean(values, 0.25, axis=None))


def stratified_bootstrap(
    scores: ArrayLike, *, confidence: float = CONFIDENCE, resamples: int = 5_000, seed: int = 0
) -> Estimate:
    """The interquartile mean of several training seeds on several tasks, with its interval.

    The seeds of each task are drawn anew with replacement, task by task; the interval holds the middle ``confidence``
    of the means that come out.

    Args:
        scores: (R, T) of R training seeds on T tasks, (R,) for one.
        confidence: share of repetitions in which the interval covers the true value.
        resamples: how often seeds are drawn.
        seed: of those draws.

    Raises:
        ValueError: fewer than two seeds, of which no spread can be seen, or no task.
    """
    values = np.asarray(scores, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) < 2 or not values.shape[1]:
        raise ValueError(f"expected (R, T) scores of two seeds at least, got an array of shape {np.shape(scores)}")
    rng = np.random.default_rng(seed)
    chosen = rng.integers(len(values), size=(resamples, *values.shape))
    drawn = np.take_along_axis(values[None], chosen, axis=1).reshape(resamples, -1)
    means = stats.trim_mean(drawn, 0.25, axis=1)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, (tail, 1.0 - tail)).tolist()
    return Estimate(interquartile_mean(values), low, high)
