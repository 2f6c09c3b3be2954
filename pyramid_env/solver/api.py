"""The solver's front: ask about a deal, a game in progress or a position, and get a Solution."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env.deal import Deal
from pyramid_env.kernels import CLEARED, PASS, STATE_COLUMNS
from pyramid_env.moves import Move, move_table
from pyramid_env.positions import read_deal
from pyramid_env.rules import PRESETS, Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver.problem import CLEAR, SCORE, STEPS, WIN
from pyramid_env.solver.result import (
    DEFAULT_MAX_BYTES,
    Limits,
    Objective,
    Solution,
    SolverError,
    Status,
    read_objective,
)
from pyramid_env.solver.run import Budget, Outcome, workspace


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
    _warm_up()
    budget = Budget(limits)
    match asked:
        case Objective.WIN:
            return _win(rules, ranks, state, budget)
        case Objective.SCORE:
            return _score(rules, ranks, state, budget)
        case Objective.EARLIEST:
            return _earliest(rules, ranks, state, budget)
        case _:
            return _steps(rules, ranks, state, budget)


@lru_cache
def _warm_up() -> None:
    """Compile the kernels, or load them, before the first clock starts."""
    chosen = PRESETS["mini"]
    ranks, state = Deal.number(0, chosen).ranks, kernels.start_state(chosen)
    workspace(chosen).ask(SCORE, ranks, state, Budget(Limits()))


def _search(
    rules: Rules,
    ranks: NDArray[np.int8],
    state: NDArray[np.int64],
    question: int,
    budget: Budget,
    pass_limit: int | None = None,
) -> Outcome:
    """One search; ``pass_limit`` None: all passes of the rules."""
    return workspace(rules).ask(question, ranks, state, budget, pass_limit)


def _win(rules: Rules, ranks: NDArray[np.int8], state: NDArray[np.int64], budget: Budget) -> Solution:
    outcome = _search(rules, ranks, state, WIN, budget)
    value = int(outcome.found)
    status = Status.OPTIMAL if outcome.found else Status.UNWINNABLE if outcome.decided else Status.LIMIT
    return _solution(rules, Objective.WIN, status, value, value if outcome.decided else 1, outcome, budget)


def _score(rules: Rules, ranks: NDArray[np.int8], state: NDArray[np.int64], budget: Budget) -> Solution:
    if rules.scoring == "none":
        won = _win(rules, ranks, state, budget)
        status = Status.OPTIMAL if won.is_proven else Status.LIMIT
        return Solution(status, Objective.SCORE, won.value, won.bound, won.moves, won.states, won.seconds)
    outcome = _search(rules, ranks, state, SCORE, budget)
    pyramid, stock, _, _, cleared = (int(column) for column in outcome.final)
    value = int(kernels.score(kernels.table(rules), ranks, pyramid, stock, cleared))
    assert not outcome.found or value == outcome.best, f"the line scores {value}, not {outcome.best}"
    status = Status.OPTIMAL if outcome.decided else Status.LIMIT
    return _solution(rules, Objective.SCORE, status, value, max(value, outcome.bound), outcome, budget)


def _earliest(rules: Rules, ranks: NDArray[np.int8], state: NDArray[np.int64], budget: Budget) -> Solution:
    """First any clear, which gives an upper end; then pass by pass whether that many passes are enough."""
    asked = Objective.EARLIEST
    best = _search(rules, ranks, state, CLEAR, budget)
    first = int(state[CLEARED] or state[PASS])
    if not best.found:
        bound = 0 if best.decided else first
        return _solution(rules, asked, Status.UNWINNABLE if best.decided else Status.LIMIT, 0, bound, best, budget)
    value = int(best.final[CLEARED])
    for passes in range(first, value):
        sooner = _search(rules, ranks, state, CLEAR, budget, passes)
        if not sooner.decided:
            return _solution(rules, asked, Status.LIMIT, value, passes, best, budget)
        if sooner.found:
            assert int(sooner.final[CLEARED]) == passes, "cleared in another pass than the one searched"
            return _solution(rules, asked, Status.OPTIMAL, passes, passes, sooner, budget)
    return _solution(rules, asked, Status.OPTIMAL, value, value, best, budget)


def _steps(rules: Rules, ranks: NDArray[np.int8], state: NDArray[np.int64], budget: Budget) -> Solution:
    """The fewest steps; where the search hits a limit, any win gives the other end."""
    asked = Objective.STEPS
    outcome = _search(rules, ranks, state, STEPS, budget)
    if outcome.decided:
        value = len(outcome.actions)
        status = Status.OPTIMAL if outcome.found else Status.UNWINNABLE
        return _solution(rules, asked, status, value, value, outcome, budget)
    return _solution(rules, asked, Status.LIMIT, 0, outcome.bound, outcome, budget)


def _solution(
    rules: Rules, asked: Objective, status: Status, value: int, bound: int, outcome: Outcome, budget: Budget
) -> Solution:
    moves: tuple[Move, ...] = tuple(move_table(rules)[action] for action in outcome.actions.tolist())
    return Solution(status, asked, value, bound, moves, budget.states, budget.seconds)
