"""Results: what a solver run says, and the limits it ran under."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from pyramid_env.errors import PyramidError
from pyramid_env.moves import Move

DEFAULT_MAX_BYTES: Final = 2 << 30
"""Room for the search's own tables; the interpreter and its libraries come on top."""


class SolverError(PyramidError):
    """A question the solver can't take: an unknown objective, a limit that is none, a position of other rules.

    Or a file of answers that cannot be read, is in use, or answers another question.
    """


class Objective(StrEnum):
    """What is asked of a position.

    ``win``: can it be won (1 or 0). ``score``: the best final score by the rules' scoring. ``earliest``: the pass of
    the earliest clear of the pyramid (4 = any later pass). ``steps``: the fewest moves to the win, each removal, draw
    and recycle counting one.
    """

    WIN = "win"
    SCORE = "score"
    EARLIEST = "earliest"
    STEPS = "steps"


class Status(Enum):
    """How a run ended.

    OPTIMAL: the value is proven. UNWINNABLE: there is no win (for ``earliest``: no clear). LIMIT: undecided.
    """

    OPTIMAL = "optimal"
    UNWINNABLE = "unwinnable"
    LIMIT = "limit"


@dataclass(frozen=True)
class Limits:
    """What a run may use; None is no limit.

    Attributes:
        max_states: positions stored.
        max_seconds: wall-clock seconds, checked every few thousand positions.
        max_bytes: bytes of the search's tables, checked before they grow.
    """

    max_states: int | None = None
    max_seconds: float | None = None
    max_bytes: int | None = DEFAULT_MAX_BYTES

    def __post_init__(self) -> None:
        for name in ("max_states", "max_seconds", "max_bytes"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
                raise SolverError(f"{name}: expected a number from 0 up or None, got {value!r}")


@dataclass(frozen=True)
class Solution:
    """An answer with its evidence.

    Attributes:
        status: OPTIMAL, UNWINNABLE or LIMIT.
        objective: what was asked.
        value: what ``moves`` reach. ``win``: 1 or 0; ``steps`` and ``earliest``: 0 when no win (clear) was found.
        bound: proven, no line does better; equal to ``value`` unless the status is LIMIT. A lower bound for ``steps``
            and ``earliest``.
        moves: a legal line from the position to ``value``, draws and recycles included; empty when there is nothing to
            reach.
        states: positions stored by the search.
        seconds: wall-clock time.
    """

    status: Status
    objective: Objective
    value: int
    bound: int
    moves: tuple[Move, ...]
    states: int
    seconds: float

    @property
    def is_proven(self) -> bool:
        """Is the value final, whatever it is?"""
        return self.status is not Status.LIMIT

    def _repr_html_(self) -> str:
        from pyramid_env.render.notebook import solution_html

        return solution_html(self)


def read_objective(objective: str) -> Objective:
    """The objective of a name; SolverError lists the known ones."""
    try:
        return Objective(objective)
    except ValueError:
        known = ", ".join(Objective)
        raise SolverError(f"objective: expected one of {known}, got {objective!r}") from None
