"""Blocks: one question about the deals of a block, answered in columns. What a thread of ``solve_many`` calls."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env.moves import move_table
from pyramid_env.rules import Rules
from pyramid_env.solver.api import solve_limited
from pyramid_env.solver.result import Limits, Objective, Status

STATUSES: Final = (Status.OPTIMAL, Status.UNWINNABLE, Status.LIMIT)
"""What a number in a ``status`` column stands for: its index here. Files hold the numbers, so the order stays."""


class Block(NamedTuple):
    """Answers about m deals; deal i's line is ``actions[offsets[i]:offsets[i + 1]]``. See :class:`Solution`."""

    status: NDArray[np.int8]  # (m,) index into STATUSES
    value: NDArray[np.int32]  # (m,)
    bound: NDArray[np.int32]  # (m,)
    states: NDArray[np.int64]  # (m,)
    seconds: NDArray[np.float64]  # (m,)
    actions: NDArray[np.int16]  # (k,) all lines, one after the other, as action indices of the rules' move table
    offsets: NDArray[np.int64]  # (m + 1,) from 0 to k


def solve_block(
    rules: Rules, ranks: NDArray[np.int8], objective: Objective, limits: Limits, stop: NDArray[np.int64]
) -> Block:
    """Solve deals from their starts, one after the other.

    Args:
        rules: the rules of all of them.
        ranks: (n, cards) int8, C-contiguous: the rank of every card, pyramid first, then the stock.
        objective: see :class:`Objective`.
        limits: of each deal.
        stop: (1,) int64; another thread makes it non-zero to end the work early. A deal not yet answered is then left
            out.

    Returns:
        The answers about the first m deals, in their order; m is less than n only if ``stop`` became non-zero.
    """
    start = kernels.start_state(rules)
    index_of = move_table(rules).index_of
    solutions = []
    for row in ranks:
        if stop[0]:
            break
        solutions.append(solve_limited(rules, row, start, objective, limits))
    lengths = [len(solution.moves) for solution in solutions]
    return Block(
        status=np.array([STATUSES.index(solution.status) for solution in solutions], np.int8),
        value=np.array([solution.value for solution in solutions], np.int32),
        bound=np.array([solution.bound for solution in solutions], np.int32),
        states=np.array([solution.states for solution in solutions], np.int64),
        seconds=np.array([solution.seconds for solution in solutions], np.float64),
        actions=np.array([index_of(move) for solution in solutions for move in solution.moves], np.int16),
        offsets=np.cumsum([0, *lengths], dtype=np.int64),
    )
