"""Intervals: against published reference values, and against the laws they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.statistics import mean_t, paired_difference, wilson


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
