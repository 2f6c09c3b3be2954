"""Statistics: estimates with their intervals, for wins, for scores, and for two agents on the same deals."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

CONFIDENCE: Final = 0.95
"""All intervals cover the true value in 95 of 100 repetitions, unless a caller asks for another share."""


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
    first, second = (np.asarray(side, dtype=np.float64).reshape(-1) for side in (ours, theirs))
    if first.size != second.size:
        raise ValueError(f"expected the same deals on both sides, got {first.size} and {second.size} values")
    return mean_t(first - second, confidence)
