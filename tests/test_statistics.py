"""Intervals: against published reference values, and against the laws they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.statistics import (
    interquartile_mean,
    mcnemar,
    mean_t,
    paired_difference,
    permutation_test,
    stratified_bootstrap,
    wilson,
)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_equals_the_published_intervals(successes: int, trials: int, low: float, high: float) -> None:
    found = wilson(successes, trials)
    assert found.value == successes / trials
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_stays_within_zero_and_one_and_mirrors(case: tuple[int, int]) -> None:
    successes, trials = case
    found, mirrored = wilson(successes, trials), wilson(trials - successes, trials)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low == pytest.approx(1 - mirrored.high, abs=1e-9)


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (3, 2), (-1, 2)])
def test_wilson_refuses_what_is_no_share(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match=f"got {successes} of {trials}"):
        wilson(successes, trials)


def test_mean_t_equals_the_published_interval() -> None:
    # Student 1908 (Cushny and Peebles' hours of sleep gained, ten patients); R's manual prints t.test of the second
    # drug as 0.8976775 to 3.7623225.
    slept = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    assert mean_t(slept) == pytest.approx((2.33, 0.8976775, 3.7623225), abs=5e-7)


def test_paired_difference_equals_the_published_interval() -> None:
    # The same data, both drugs on the same patients; R prints t.test(..., paired = TRUE) as -2.4598858 to -0.7001142.
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    assert paired_difference(first, second) == pytest.approx((-1.58, -2.4598858, -0.7001142), abs=5e-7)


@given(st.lists(st.integers(-52, 50), min_size=2, max_size=200))
def test_an_agent_against_itself_shows_no_difference(scores: list[int]) -> None:
    assert paired_difference(scores, scores) == (0.0, 0.0, 0.0)


def test_mean_t_covers_the_true_mean_in_95_of_100_runs() -> None:
    # Scores as they are: most games end far below zero, some with a bonus far above.
    rng = np.random.default_rng(0)
    runs = np.where(rng.random((1000, 200)) < 0.3, 20.0, -30.0)
    covered = [found.low <= -15.0 <= found.high for found in map(mean_t, runs)]
    assert 0.93 <= np.mean(covered) <= 0.97


def test_one_value_has_no_interval_and_none_no_mean() -> None:
    assert mean_t([3]) == (3.0, -np.inf, np.inf)
    with pytest.raises(ValueError, match="got none"):
        mean_t([])
    with pytest.raises(ValueError, match="got 2 and 1"):
        paired_difference([1, 2], [1])


# ---- two agents ------------------------------------------------------------------------------------------------------


def test_mcnemar_equals_the_published_test() -> None:
    # Fagerland, Lydersen, Laake 2013, "The McNemar test for binary matched-pairs data", table 3: airway
    # hyper-responsiveness before and after a transplantation (Bentur et al. 2009); exact conditional test p = 0.0703.
    before = [True] * 1 + [True] * 1 + [False] * 7 + [False] * 12
    after = [True] * 1 + [False] * 1 + [True] * 7 + [False] * 12
    found = mcnemar(before, after)
    assert (found.only_ours, found.only_theirs) == (1, 7)
    assert found.p_value == pytest.approx(0.0703, abs=5e-5)


def test_the_permutation_test_equals_the_published_one() -> None:
    # Fisher 1935, "The design of experiments", section 21: Darwin's fifteen pairs of maize plants, crossed less
    # self-fertilised, in eighths of an inch; of 32,768 ways to sign them 1,726 are as extreme: p = 5.267 %.
    differences = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    exact = permutation_test(differences, np.zeros(15), resamples=2**15)
    assert exact == pytest.approx(1726 / 32768, abs=1e-12)
    assert permutation_test(differences, np.zeros(15), resamples=9_999, seed=3) == pytest.approx(exact, abs=0.01)


@given(st.lists(st.integers(-52, 50), min_size=1, max_size=50))
def test_an_agent_against_itself_is_not_better(scores: list[int]) -> None:
    assert permutation_test(scores, scores) == 1.0
    assert permutation_test([scores[0] + 5, *scores[1:]], scores) == 1.0  # one difference might have either sign
    assert mcnemar([score > 0 for score in scores], [score > 0 for score in scores]) == (0, 0, 1.0)


def test_the_permutation_test_is_as_rarely_wrong_as_it_says() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(-40, 50, size=(400, 2, 30))
    wrong = np.mean([permutation_test(*pair, resamples=199) <= 0.05 for pair in scores])
    assert 0.02 <= wrong <= 0.08


@pytest.mark.parametrize("test", [mcnemar, permutation_test, paired_difference])
def test_what_cannot_be_compared_is_refused(test) -> None:
    with pytest.raises(ValueError, match="the same deals on both sides, got 2 and 3 values"):
        test([1, 0], [1, 0, 1])
    with pytest.raises(ValueError, match="got none"):
        test([], [])


# ---- several seeds ---------------------------------------------------------------------------------------------------


def test_the_interquartile_mean_is_that_of_the_middle_half() -> None:
    assert interquartile_mean([[100.0, 1.0], [3.0, 2.0], [-50.0, 4.0], [5.0, 6.0]]) == (2 + 3 + 4 + 5) / 4
    with pytest.raises(ValueError, match="got none"):
        interquartile_mean([])


def test_the_bootstrap_keeps_to_its_task() -> None:
    """Seeds of one task never stand in for those of another: with one value a task nothing varies."""
    found = stratified_bootstrap(np.tile([0.1, 0.5, 0.9, 0.7], (3, 1)))
    assert found.low == found.value == found.high == pytest.approx(0.6)
    with pytest.raises(ValueError, match=r"two seeds at least, got an array of shape \(1, 3\)"):
        stratified_bootstrap([[1, 2, 3]])


def coverage(interval, draw, true: float, repetitions: int = 1_000) -> float:
    """Share of simulated experiments whose interval holds the true value."""
    rng = np.random.default_rng(1)
    found = (interval(draw(rng)) for _ in range(repetitions))
    return float(np.mean([each.low <= true <= each.high for each in found]))


def test_intervals_cover_the_true_value_as_often_as_they_say() -> None:
    shares = np.array([0.35, 0.55, 0.02, 0.4, 0.6, 0.9, 0.3])  # of wins, by task
    middle = interquartile_mean(shares + 0.02 * np.random.default_rng(0).standard_normal((100_000, 7)))
    found = {
        "wilson": coverage(lambda wins: wilson(int(wins.sum()), wins.size), lambda rng: rng.random(300) < 0.55, 0.55),
        "rare": coverage(lambda wins: wilson(int(wins.sum()), wins.size), lambda rng: rng.random(1000) < 0.02, 0.02),
        "mean": coverage(mean_t, lambda rng: np.where(rng.random(200) < 0.5, 20.0, -15.0), 2.5),
        "bootstrap": coverage(
            lambda scores: stratified_bootstrap(scores, resamples=500),
            lambda rng: shares + 0.02 * rng.standard_normal((10, 7)), middle,
        ),
    }  # fmt: skip
    assert all(0.93 <= share <= 0.97 for share in found.values()), found
