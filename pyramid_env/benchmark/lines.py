"""Lines: plays the lines of many solutions through the rules' kernels; what they reach, and positions on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.errors import PyramidError
from pyramid_env.kernels import (
    CLEARED,
    CURSOR,
    MAX_MOVES,
    PASS,
    PYRAMID,
    STATE_COLUMNS,
    STOCK,
    Table,
    is_won,
    list_moves,
    score,
    start_state,
    step,
    table,
)
from pyramid_env.rules import Rules
from pyramid_env.solver.columns import Solutions
from pyramid_env.solver.result import Objective

_ILLEGAL: Final = 0
_WON: Final = 1
_CLEARED: Final = 2
_SCORE: Final = 3
_COLUMNS: Final = 4


class Reached(NamedTuple):
    """What the lines of n deals reach."""

    won: NDArray[np.bool_]  # (n,) the win
    cleared: NDArray[np.int64]  # (n,) pass of the clear, 0 = none
    score: NDArray[np.int64]  # (n,) by the rules' scoring; of the deal's start where there is no line
    steps: NDArray[np.int64]  # (n,) moves


def play_lines(solutions: Solutions) -> Reached:
    """Play every line from its deal's start.

    Raises:
        PyramidError: a line that is not legal, or does not reach the value of its solution: a fault of the solver.
    """
    rules, count = solutions.rules, len(solutions)
    ranks = solutions.question.dealt.ranks(rules, 0, count)
    out = np.zeros((count, _COLUMNS), np.int64)
    # Copies: a read-only array is another type to Numba, which would compile everything once more.
    columns = solutions.actions.copy(), solutions.offsets.copy()
    scratch = np.zeros(STATE_COLUMNS, np.int64), np.empty(MAX_MOVES, np.int64)
    _play(table(rules), ranks, start_state(rules), *columns, *scratch, out)
    reached = Reached(out[:, _WON] != 0, out[:, _CLEARED], out[:, _SCORE], np.diff(solutions.offsets))
    wrong = np.flatnonzero((out[:, _ILLEGAL] != 0) | (_value_of(reached, solutions.objective) != solutions.value))
    if wrong.size:
        first = int(wrong[0])
        why = "is not legal" if out[first, _ILLEGAL] else f"does not reach {int(solutions.value[first])}"
        raise PyramidError(f"{solutions}: {wrong.size} lines are wrong; that of deal {solutions.deals[first]} {why}")
    return reached


def positions_along(rules: Rules, lines: Sequence[NDArray[np.int16]], moves: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, 5) the positions of n deals after the first ``moves`` (n,) moves of their lines, which must be legal ones."""
    prefixes = [line[:count] for line, count in zip(lines, moves.tolist(), strict=True)]
    states = np.repeat(start_state(rules)[None], len(prefixes), axis=0)
    if prefixes:
        offsets = np.concatenate([[0], np.cumsum([prefix.size for prefix in prefixes])])
        _play_on(table(rules), np.concatenate(prefixes).astype(np.int64), offsets, states)
    return states


def _value_of(reached: Reached, objective: Objective) -> NDArray[np.int64]:
    """(n,) what the lines are worth to an objective; for ``steps`` 0 unless they win."""
    match objective:
        case Objective.WIN:
            return reached.won.astype(np.int64)
        case Objective.EARLIEST:
            return reached.cleared
        case Objective.SCORE:
            return reached.score
        case _:
            return np.where(reached.won, reached.steps, 0)


@kernel
def _play(
    full: Table,
    ranks: NDArray[np.int8],
    start: NDArray[np.int64],
    actions: NDArray[np.int16],
    offsets: NDArray[np.int64],
    state: NDArray[np.int64],
    legal: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Write what each deal's line reaches, up to an illegal move; ``state`` and ``legal`` are scratch space."""
    for deal in range(ranks.shape[0]):
        for column in range(start.size):
            state[column] = start[column]
        for at in range(offsets[deal], offsets[deal + 1]):
            action = int(actions[at])
            count = list_moves(full, ranks[deal], state[PYRAMID], state[STOCK], state[CURSOR], state[PASS], legal)
            found = False
            for m in range(count):
                found |= legal[m] == action
            if not found:
                out[deal, _ILLEGAL] = 1
                break
            step(full, state, action)
        pyramid, stock, cleared = state[PYRAMID], state[STOCK], state[CLEARED]
        out[deal, _WON] = is_won(full, pyramid, stock)
        out[deal, _CLEARED] = cleared
        out[deal, _SCORE] = score(full, ranks[deal], pyramid, stock, cleared)


@kernel
def _play_on(full: Table, actions: NDArray[np.int64], offsets: NDArray[np.int64], states: NDArray[np.int64]) -> None:
    """Play actions[offsets[i]:offsets[i + 1]] in position i, in place."""
    for i in range(states.shape[0]):
        for at in range(offsets[i], offsets[i + 1]):
            step(full, states[i], actions[at])
