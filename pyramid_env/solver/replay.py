"""Replay: from the positions along the best line back to legal moves, through the rules' kernels, draw by draw."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.kernels import (
    CLEARED,
    CURSOR,
    PASS,
    PYRAMID,
    STOCK,
    apply,
    can_draw,
    is_finished,
    list_removals,
    step,
)
from pyramid_env.moves import Kind
from pyramid_env.solver.expand import MOST_REMOVALS
from pyramid_env.solver.positions import Nodes
from pyramid_env.solver.problem import Problem

_PLACE_KING: Final = int(Kind.PLACE_KING)
_WASTE_KING: Final = int(Kind.WASTE_KING)
_STOCK_KING: Final = int(Kind.STOCK_KING)


def line_to(nodes: Nodes, best: int) -> Nodes:
    """The positions from the root to ``best``, the root first."""
    at, line = best, []
    while at >= 0:
        line.append(at)
        at = int(nodes[at]["parent"])
    return nodes[line[::-1]]


@kernel
def replay(problem: Problem, line: Nodes, state: NDArray[np.int64], out_actions: NDArray[np.int64]) -> int:
    """Write the actions that lead from ``state`` along the line, and leave ``state`` at its end.

    Returns their number, -1 if the line is none.

    Each removal is made at the first moment at which its cards can leave; where several cards are drawn at once that
    moment must also leave cursor and pass as the line has them.
    """
    table = problem.table
    actions = np.empty(MOST_REMOVALS, np.int64)
    count = 0
    for at in range(line.size):
        target = line[at]
        to_pyramid, to_stock = target.pyramid, target.stock
        spared = problem.unplaced_kings
        if problem.goal_all and to_pyramid == 0 and to_stock == 0:
            spared = 0  # the win: now the kings that were left out of the positions have to leave too
        while state[PYRAMID] != to_pyramid or state[STOCK] & ~to_stock & ~spared:
            action = -1
            if not is_finished(table, state[PYRAMID], state[STOCK], state[CURSOR], state[PASS]):
                found = list_removals(table, problem.ranks, state[PYRAMID], state[STOCK], state[CURSOR], actions)
                action = _choose(problem, state, target, actions, found)
                if action < 0 and can_draw(table, state[STOCK], state[CURSOR], state[PASS]):
                    action = table.actions - 1
            if action < 0 or count == out_actions.size:
                return -1
            step(table, state, action)
            out_actions[count] = action
            count += 1
    return count


@kernel
def _choose(problem: Problem, state: NDArray[np.int64], target: Any, actions: NDArray[np.int64], found: int) -> int:
    """The removal to make now on the way to a position (one of NODE), -1 for none.

    Kings outside the pyramid first: a clear may end the game.
    """
    table = problem.table
    chosen = -1
    for a in range(found):
        after = apply(table, state[PYRAMID], state[STOCK], state[CURSOR], state[PASS], state[CLEARED], actions[a])
        if (after[0] & target.pyramid) != target.pyramid or (state[STOCK] & ~after[1]) & target.stock:
            continue  # takes a card that stays
        if after[0] == 0 and not table.goal_all and after[1] & ~target.stock & ~problem.unplaced_kings:
            continue  # a clear that ends the game while kings of the line are still to come
        kind = table.moves[actions[a], 0]
        king = kind in (_WASTE_KING, _STOCK_KING)
        closes = kind == _PLACE_KING or (kind == _WASTE_KING and problem.close_piles and state[PASS] == table.passes)
        # Without a limit of passes the line may count later passes as one; there an earlier pass does as well.
        on_time = after[2] == target.cursor and (table.passes == 0 or after[3] == target.pass_number)
        if problem.single or closes or on_time:
            if chosen < 0 or king:
                chosen = actions[a]
            if king:
                break
    return chosen
