"""Answers: from an objective to the searches that settle it, one position at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env.deal import Deal
from pyramid_env.kernels import CLEARED, PASS
from pyramid_env.rules import PRESETS, Rules
from pyramid_env.solver.problem import CLEAR, SCORE, STEPS, WIN
from pyramid_env.solver.result import Limits, Objective, Status
from pyramid_env.solver.run import Budget, Outcome, Workspace, workspace

EARLIEST_STATES: Final = 1_000
HASTY_STATES: Final = 1_500
"""Positions that two searches before the one for the shortest win may store: one for the earliest pass, which helps to
bound the steps, and one for a short line."""

HASTE: Final = 2
"""How the latter weighs the steps ahead, see ``short.FINE``."""


class Answer(NamedTuple):
    """A Solution whose line is a row of action indices."""

    status: Status
    value: int
    bound: int
    actions: NDArray[np.int64]
    states: int
    seconds: float


def answer(
    rules: Rules, ranks: NDArray[np.int8], state: NDArray[np.int64], objective: Objective, limits: Limits
) -> Answer:
    """What a position allows.

    Args:
        rules: the game's.
        ranks: (cards,) int8, writable and contiguous (another layout would be compiled anew).
        state: (5,) int64, likewise.
        objective: what is asked.
        limits: what the search may use.
    """
    budget = Budget(limits)
    tables = workspace(rules)
    match objective:
        case Objective.WIN:
            return _win(tables, ranks, state, budget)
        case Objective.SCORE:
            return _score(tables, ranks, state, budget)
        case Objective.EARLIEST:
            return _earliest(tables, ranks, state, budget)
        case _:
            return _steps(tables, ranks, state, budget)


def _answer(status: Status, value: int, bound: int, outcome: Outcome, budget: Budget) -> Answer:
    return Answer(status, value, bound, outcome.actions, budget.states, budget.seconds)


def _win(tables: Workspace, ranks: NDArray[np.int8], state: NDArray[np.int64], budget: Budget) -> Answer:
    outcome = tables.ask(WIN, ranks, state, budget)
    value = int(outcome.found)
    status = Status.OPTIMAL if outcome.found else Status.UNWINNABLE if outcome.decided else Status.LIMIT
    return _answer(status, value, value if outcome.decided else 1, outcome, budget)


def _earliest(tables: Workspace, ranks: NDArray[np.int8], state: NDArray[np.int64], budget: Budget) -> Answer:
    """First any clear, which gives an upper end; then pass by pass whether that many passes are enough."""
    best = tables.ask(CLEAR, ranks, state, budget)
    first = int(state[CLEARED] or state[PASS])
    if not best.found:
        bound = 0 if best.decided else first
        return _answer(Status.UNWINNABLE if best.decided else Status.LIMIT, 0, bound, best, budget)
    value = int(best.final[CLEARED])
    for passes in range(first, value):
        sooner = tables.ask(CLEAR, ranks, state, budget, passes)
        if not sooner.decided:
            return _answer(Status.LIMIT, value, passes, best, budget)
        if sooner.found:
            assert int(sooner.final[CLEARED]) == passes, "cleared in another pass than the one searched"
            return _answer(Status.OPTIMAL, passes, passes, sooner, budget)
    return _answer(Status.OPTIMAL, value, value, best, budget)


def _score(tables: Workspace, ranks: NDArray[np.int8], state: NDArray[np.int64], budget: Budget) -> Answer:
    """The earliest clear first: no line can earn more for it, and its own line is one to fall back on."""
    rules = tables.rules
    if rules.scoring == "none":
        won = _win(tables, ranks, state, budget)
        return won._replace(status=Status.OPTIMAL if won.status is not Status.LIMIT else Status.LIMIT)
    within = budget.within(budget.states_left // 2)
    clear = _earliest(tables, ranks, state, within)
    budget.states += within.states
    reached = _score_after(rules, ranks, state, clear.actions)
    outcome = tables.ask(SCORE, ranks, state, budget, earliest=clear.bound, reached=reached)
    actions = outcome.actions if outcome.found else clear.actions
    value = _score_after(rules, ranks, state, actions)
    assert value == outcome.best, f"the line scores {value}, not {outcome.best}"
    status = Status.OPTIMAL if outcome.decided else Status.LIMIT
    return Answer(status, value, max(value, outcome.bound), actions, budget.states, budget.seconds)


def _score_after(rules: Rules, ranks: NDArray[np.int8], state: NDArray[np.int64], actions: NDArray[np.int64]) -> int:
    """The score of a position after some actions."""
    table, after = kernels.table(rules), state.copy()
    for action in actions:
        kernels.step(table, after, action)
    return int(kernels.score(table, ranks, after[kernels.PYRAMID], after[kernels.STOCK], after[CLEARED]))


def _steps(tables: Workspace, ranks: NDArray[np.int8], state: NDArray[np.int64], budget: Budget) -> Answer:
    """First any win, then in haste a short one: lines to fall back on, and longer ones need not be looked at."""
    best = tables.ask(WIN, ranks, state, budget)
    if not best.found:
        return _answer(Status.UNWINNABLE if best.decided else Status.LIMIT, 0, 0, best, budget)
    earliest = 1
    if tables.rules.goal == "pyramid":
        within = budget.within(EARLIEST_STATES)
        soonest = _earliest(tables, ranks, state, within)
        budget.states += within.states
        earliest = max(1, soonest.bound)
        if 0 < len(soonest.actions) < len(best.actions):
            best = best._replace(actions=soonest.actions)
    within = budget.within(HASTY_STATES)
    most_steps = len(best.actions) - 1
    hasty = tables.ask(STEPS, ranks, state, within, earliest=earliest, most_steps=most_steps, haste=HASTE)
    budget.states += within.states
    best = hasty if hasty.found else best
    most_steps = len(best.actions) - 1
    outcome = tables.ask(STEPS, ranks, state, budget, earliest=earliest, most_steps=most_steps, again=True)
    best = outcome if outcome.found else best
    value = len(best.actions)
    if outcome.decided:
        return _answer(Status.OPTIMAL, value, value, best, budget)
    return _answer(Status.LIMIT, value, min(value, outcome.bound), best, budget)


@lru_cache
def warm_up() -> None:
    """Compile the kernels, or load them, before the first clock starts."""
    chosen = PRESETS["mini"]
    ranks, state = Deal.number(0, chosen).ranks, kernels.start_state(chosen)
    answer(chosen, ranks, state, Objective.STEPS, Limits())
