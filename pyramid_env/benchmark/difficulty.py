"""Difficulty: sorts the deals of a split into classes, from what is proven about them and how long the proof took."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

LONG_SEARCH: Final = 2.0
"""A win was hard to find if it took more than so many times the median of the split's winnable deals, in states. Most
wins are found almost straight away; a search that goes on beyond this had to give up its first ideas."""


class Difficulty(IntEnum):
    """The class of a deal. The greedy player wins 55 % of the easy, 28 % of the medium and 12 % of the hard deals of
    ``pyramid``, 50, 18 and 15 % under ``microsoft``, 22, 10 and 4 % under ``till_dawn``, 13 % of the medium and 2 % of
    the hard ones under ``solitaire13_three_piles`` (test deals, five games each).

    EASY: can be won, and the pyramid can be cleared before the last pass; a win was found straight away.
    MEDIUM: can be won, but cleared in the last pass alone (under rules with one pass: always); found straight away.
    HARD: can be won; the solver had to search for a win (see LONG_SEARCH).
    UNWINNABLE: proven.
    OPEN: it is not known whether it can be won.
    """

    EASY = 0
    MEDIUM = 1
    HARD = 2
    UNWINNABLE = 3
    OPEN = 4


def difficulties(
    win_low: NDArray[np.int8],
    win_high: NDArray[np.int8],
    earliest_high: NDArray[np.int8],
    states: NDArray[np.int64],
    last_pass: int,
) -> NDArray[np.int8]:
    """(n,) int8 Difficulty of each deal; the arguments are (n,) columns of Bounds, and the rules' last pass."""
    winnable = win_low == 1
    found = np.where(winnable, Difficulty.MEDIUM, np.where(win_high == 0, Difficulty.UNWINNABLE, Difficulty.OPEN))
    found[winnable & (earliest_high < last_pass)] = Difficulty.EASY
    if winnable.any():
        found[winnable & (states > LONG_SEARCH * np.median(states[winnable]))] = Difficulty.HARD
    return found.astype(np.int8)
