"""Columns: what is proven about each deal of a split, as arrays that are checked against each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pyramid_env.benchmark.difficulty import Difficulty, difficulties
from pyramid_env.deal import check_number
from pyramid_env.errors import PyramidError
from pyramid_env.rules import MSC_REMOVAL, MSC_ROWS, PAR_BONUS, Rules
from pyramid_env.solver.result import Limits, read_objective

DTYPES: Final[Mapping[str, DTypeLike]] = {
    "deals": np.int64,
    "win_low": np.int8,
    "win_high": np.int8,
    "earliest_low": np.int8,
    "earliest_high": np.int8,
    "score_low": np.int16,
    "score_high": np.int16,
    "steps_low": np.int16,
    "steps_high": np.int16,
    "states": np.int64,
}


class DealBounds(NamedTuple):
    """What is proven about one deal; the fields are the columns of :class:`Bounds`, None where not computed."""

    deal: int
    win_low: int
    win_high: int
    earliest_low: int
    earliest_high: int
    score_low: int
    score_high: int
    steps_low: int | None
    steps_high: int | None
    states: int
    difficulty: Difficulty


@dataclass(frozen=True, eq=False, kw_only=True)
class Bounds:
    """What is proven about the n deals of a split, every card known. Values only: no line of play is kept.

    Two columns a question, equal where it is settled. Of an open question they give what is proven: the low end of wins
    and scores and the high end of passes and steps were reached by a line of play, beyond the other end nothing is
    possible. For passes and steps 0 means never, so their ends read::

        low  high
         0    0    never: there is no clear (no win), proven
         a    a    a, proven
         a    b    from a to b: a line does it in b, nothing does it in fewer than a
         a    0    open: no line is known; if there is one, it takes a or more

    Attributes (all arrays read-only):
        rules: the game.
        split: ``"test"`` or ``"validation"``.
        deals: (n,) int64 deal numbers, rising by one.
        win_low, win_high: (n,) int8, 0 or 1: can the deal be won?
        earliest_low, earliest_high: (n,) int8, 0..3 (4 = any later pass): the first pass in which the pyramid can be
            cleared.
        score_low, score_high: (n,) int16: the best final score by the rules' scoring, par (points, -104..50) or msc
            (0..1290).
        steps_low, steps_high: (n,) int16, or None where not computed: the fewest moves to a win, each removal, draw and
            recycle counting one.
        states: (n,) int64, 0 up: positions that the solver stored to answer whether the deal can be won.
        solver_version: of the solver that proved all this.
        limits: by objective, the limits under which each deal was searched.

    Raises:
        ValueError: columns of another shape or range, or that contradict each other.
    """

    rules: Rules
    split: str
    deals: NDArray[np.int64]
    win_low: NDArray[np.int8]
    win_high: NDArray[np.int8]
    earliest_low: NDArray[np.int8]
    earliest_high: NDArray[np.int8]
    score_low: NDArray[np.int16]
    score_high: NDArray[np.int16]
    steps_low: NDArray[np.int16] | None = None
    steps_high: NDArray[np.int16] | None = None
    states: NDArray[np.int64]
    solver_version: int
    limits: Mapping[str, Limits]

    def __post_init__(self) -> None:
        for name in self._columns():
            object.__setattr__(self, name, _frozen(name, getattr(self, name)))
        _check(self)

    def _columns(self) -> list[str]:
        return [field.name for field in fields(self) if field.name in DTYPES and getattr(self, field.name) is not None]

    def __len__(self) -> int:
        return self.deals.size

    @cached_property
    def difficulty(self) -> NDArray[np.int8]:
        """(n,) int8 :class:`Difficulty` of each deal."""
        found = difficulties(self.win_low, self.win_high, self.earliest_high, self.states, self.rules.last_pass)
        return _frozen("difficulty", found)

    def proven(self, objective: str) -> NDArray[np.bool_]:
        """(n,) bool: is the answer to ``"win"``, ``"earliest"``, ``"score"`` or ``"steps"`` settled?

        Raises:
            SolverError: an unknown objective.
            PyramidError: steps that were not computed.
        """
        low, high = self.ends(objective)
        settled: NDArray[np.bool_] = low == high
        return settled

    def ends(self, objective: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """The (n,) columns low and high of an objective; raises as :meth:`proven` does."""
        name = str(read_objective(objective))
        low, high = getattr(self, f"{name}_low"), getattr(self, f"{name}_high")
        if low is None:
            raise PyramidError(f"bounds of {self.rules}, {self.split}: {name} were not computed")
        return low, high

    def for_deal(self, number: int) -> DealBounds:
        """What is proven about the deal of a number.

        Raises:
            DeckError: no deal number.
            PyramidError: a deal that is not of the split.
        """
        first, last = int(self.deals[0]), int(self.deals[-1])
        if not first <= check_number(number) <= last:
            raise PyramidError(f"deal: expected one of the {self.split} deals, {first} to {last}, got {number}")
        at = int(number) - first
        return DealBounds(
            deal=int(number),
            win_low=int(self.win_low[at]),
            win_high=int(self.win_high[at]),
            earliest_low=int(self.earliest_low[at]),
            earliest_high=int(self.earliest_high[at]),
            score_low=int(self.score_low[at]),
            score_high=int(self.score_high[at]),
            steps_low=None if self.steps_low is None else int(self.steps_low[at]),
            steps_high=None if self.steps_high is None else int(self.steps_high[at]),
            states=int(self.states[at]),
            difficulty=Difficulty(self.difficulty[at]),
        )

    def deals_of(self, difficulty: Difficulty) -> NDArray[np.int64]:
        """(m,) the deal numbers of a class, rising."""
        found: NDArray[np.int64] = self.deals[self.difficulty == difficulty]
        return found

    def __repr__(self) -> str:
        won = f"{int(self.win_low.sum())} can be won"
        still_open = int((self.win_low != self.win_high).sum())
        return f"Bounds({self.rules}, {self.split}: {len(self)} deals, {won}, {still_open} open)"


def _frozen(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy in the column's dtype; ValueError if a value does not fit into it."""
    given = np.asarray(values)
    column = np.array(given, DTYPES.get(name, np.int8))
    if given.dtype.kind not in "iu" or not np.array_equal(column, given):
        raise ValueError(f"{name}: expected whole numbers that fit {column.dtype}, got {given.dtype}")
    column.flags.writeable = False
    return column


# ---- what columns have to satisfy ------------------------------------------------------------------------------------


def score_cap(rules: Rules, earliest_low: NDArray[Any]) -> NDArray[np.int64]:
    """(n,) no score is higher, seeing that no clear comes before ``earliest_low`` (0 = none comes at all)."""
    never = earliest_low == 0
    if rules.scoring == "par":
        return np.where(never, -1, np.array(PAR_BONUS)[earliest_low])  # without a clear the apex at least is left
    if rules.scoring == "msc":
        kings = rules.decks * rules.suits
        removals = kings + (rules.cards - kings) // 2
        return np.where(never, sum(MSC_ROWS[: rules.rows - 1]), sum(MSC_ROWS[: rules.rows])) + MSC_REMOVAL * removals
    return np.ones(earliest_low.shape, np.int64)


def score_floor(rules: Rules, earliest_high: NDArray[Any]) -> NDArray[np.int64]:
    """(n,) the best score is no lower, seeing that a line clears in the pass ``earliest_high`` (0 = none is known)."""
    none = earliest_high == 0
    if rules.scoring == "par":
        return np.where(none, -rules.cards, np.array(PAR_BONUS)[earliest_high] - rules.stock_size)
    if rules.scoring == "msc":
        return np.where(none, 0, sum(MSC_ROWS[: rules.rows]) + MSC_REMOVAL * -(-rules.places // 2))
    return np.zeros(earliest_high.shape, np.int64)


def _check(bounds: Bounds) -> None:
    """ValueError, with the reason, if columns are of another shape or range, or contradict each other."""
    rules, deals = bounds.rules, bounds.deals
    if not deals.size or not np.array_equal(deals, deals[0] + np.arange(deals.size)):
        raise ValueError("deals: expected one or more numbers that rise by one")
    for name in bounds._columns():
        if getattr(bounds, name).shape != deals.shape:
            raise ValueError(f"{name}: expected {deals.size} numbers, got {getattr(bounds, name).shape}")
    if (bounds.steps_low is None) != (bounds.steps_high is None):
        raise ValueError("steps: expected both ends or none")
    _check_ranges(bounds)
    win_low, win_high = bounds.win_low, bounds.win_high
    first, known = bounds.earliest_low, bounds.earliest_high
    low, high = bounds.score_low, bounds.score_high
    _require(bounds, "earliest: low <= high, unless no clear is known", _in_order(first, known))
    _require(bounds, "a win has a clear", (win_low == 0) | (known > 0))
    _require(bounds, "without a clear there is no win", (first > 0) | (win_high == 0))
    if rules.goal == "pyramid":
        _require(bounds, "a clear is a win", ((known > 0) == (win_low == 1)) & ((first > 0) == (win_high == 1)))
    _require(bounds, "score: low <= high", low <= high)
    _require(bounds, "score: as high as a clear in its pass makes it", low >= score_floor(rules, known))
    _require(bounds, "score: no higher than a clear in the earliest pass makes it", high <= score_cap(rules, first))
    if bounds.steps_low is not None and bounds.steps_high is not None:
        least, most = bounds.steps_low, bounds.steps_high
        _require(bounds, "steps: low <= high, unless no win is known", _in_order(least, most))
        _require(bounds, "steps of a win", ((most > 0) == (win_low == 1)) & ((least > 0) == (win_high == 1)))
    for objective in ("win", "earliest", "score", *(["steps"] if bounds.steps_low is not None else [])):
        if not isinstance(bounds.limits.get(objective), Limits):
            raise ValueError(f"limits: expected those of {objective}")


def _check_ranges(bounds: Bounds) -> None:
    last = bounds.rules.last_pass
    win_low, win_high = bounds.win_low, bounds.win_high
    _require(bounds, "deals: from 0", bounds.deals >= 0)
    _require(bounds, "states: from 0", bounds.states >= 0)
    _require(bounds, "win: 0 <= low <= high <= 1", (win_low >= 0) & (win_low <= win_high) & (win_high <= 1))
    for passes in (bounds.earliest_low, bounds.earliest_high):
        _require(bounds, f"earliest: passes 0 to {last}", (passes >= 0) & (passes <= last))
    for steps in (bounds.steps_low, bounds.steps_high):
        if steps is not None:
            _require(bounds, "steps: from 0", steps >= 0)


def _in_order(low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.bool_]:
    """(n,) does the high end of passes or steps, where one is known, lie at or above a low end that is not 0?"""
    fine: NDArray[np.bool_] = (high == 0) | ((low > 0) & (low <= high))
    return fine


def _require(bounds: Bounds, law: str, holds: NDArray[np.bool_]) -> None:
    if not holds.all():
        raise ValueError(f"deal {bounds.deals[np.flatnonzero(~holds)[0]]}: expected {law}")
