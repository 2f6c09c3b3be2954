"""The solver's front: ask about a deal, a game in progress or a position, and get a Solution."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env.deal import Deal
from pyramid_env.kernels import STATE_COLUMNS
from pyramid_env.moves import Move, move_table
from pyramid_env.positions import read_deal
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver.answers import answer, warm_up
from pyramid_env.solver.result import (
    DEFAULT_MAX_BYTES,
    Limits,
    Solution,
    SolverError,
    read_objective,
)


@runtime_checkable
class InProgress(Protocol):
    """A game in progress, as far as the solver looks at it."""

    @property
    def rules(self) -> Rules:
        """Its rules."""
        ...

    @property
    def ranks(self) -> NDArray[np.int8]:
        """(cards,) rank of every card of its deal."""
        ...

    @property
    def state(self) -> NDArray[np.int64]:
        """(5,) its position."""
        ...


def solve(
    what: Deal | int | str | InProgress,
    rules: Rules | str | None = None,
    objective: str = "win",
    *,
    max_states: int | None = None,
    max_seconds: float | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> Solution:
    """What is possible from a deal's start, or from where a game stands, with every card known.

    Args:
        what: a deal, its number or its text, or a game in progress.
        rules: the rules of a deal (``"pyramid"`` if None); a game brings its own.
        objective: ``"win"``, ``"score"``, ``"earliest"`` or ``"steps"``, see :class:`Objective`.
        max_states, max_seconds, max_bytes: limits, see :class:`Limits`.

    Raises:
        SolverError: unknown objective, a limit that is none, rules given along with a game of other rules, or nothing
            that can be solved.
        DeckError: the deal is not of the rules' deck, or bears a number that deals other cards.
    """
    limits = Limits(max_states, max_seconds, max_bytes)
    if isinstance(what, (Deal, int, np.integer, str)):
        chosen = read_rules("pyramid" if rules is None else rules)
        return solve_limited(chosen, read_deal(what, chosen).ranks, kernels.start_state(chosen), objective, limits)
    if not isinstance(what, InProgress):
        expected = "a Deal, a deal number, a deal as text or a Game"
        raise SolverError(f"solve: expected {expected}, got {type(what).__name__} {what!r}")
    if rules is not None and read_rules(rules) != what.rules:
        raise SolverError(f"rules: expected none or the game's ({what.rules}), got {rules}")
    return solve_limited(what.rules, what.ranks, what.state, objective, limits)


def solve_position(
    rules: Rules | str,
    ranks: NDArray[np.int8],
    state: NDArray[np.int64],
    objective: str = "win",
    *,
    max_states: int | None = None,
    max_seconds: float | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> Solution:
    """As :func:`solve`, for a bare position: ``ranks`` (cards,) and the position row ``state`` (5,) of the kernels."""
    return solve_limited(read_rules(rules), ranks, state, objective, Limits(max_states, max_seconds, max_bytes))


def solve_limited(
    rules: Rules, ranks: NDArray[np.int8], state: NDArray[np.int64], objective: str, limits: Limits
) -> Solution:
    """As :func:`solve_position`, with the limits in one."""
    asked = read_objective(objective)
    # Copies: a read-only array is another type to Numba, which would compile everything once more.
    ranks = np.array(ranks, np.int8)
    state = np.array(state, np.int64)
    if ranks.shape != (rules.cards,) or state.shape != (STATE_COLUMNS,):
        raise SolverError(
            f"position: expected {rules.cards} ranks and {STATE_COLUMNS} numbers, got {ranks.shape} and {state.shape}"
        )
    warm_up()
    found = answer(rules, ranks, state, asked, limits)
    moves: tuple[Move, ...] = tuple(move_table(rules)[action] for action in found.actions.tolist())
    return Solution(found.status, asked, found.value, found.bound, moves, found.states, found.seconds)
