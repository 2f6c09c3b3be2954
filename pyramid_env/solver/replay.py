"""Replay: from the positions along the best line back to legal moves, through the rules' kernels, draw by draw."""

from __future__ import annotations

from typing import Final

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
from pyramid_env.solver.positions import BEST, Memory, below, top_below
from pyramid_env.solver.problem import FREE_KINGS, SCORE, UNPLACED_KINGS, WIN, Instance, Problem

_PLACE_KING: Final = int(Kind.PLACE_KING)
_WASTE_KING: Final = int(Kind.WASTE_KING)
_STOCK_KING: Final = int(Kind.STOCK_KING)


@kernel
def replay(
    problem: Problem, instance: Instance, memory: Memory, state: NDArray[np.int64], out_actions: NDArray[np.int64]
) -> int:
    """Write the actions that lead from ``state`` to the best position, and leave ``state`` there.

    Returns their number: 0 if nothing was found, -1 if the line is none or does not fit.

    Each removal is made at the first moment at which its cards can leave; where several cards are drawn at once that
    moment must also leave cursor and pass as the line has them.
    """
    nodes = memory.nodes
    best = memory.progress[BEST]
    count = 0
    if best < 0:
        return 0
    # Turn the parents round: from the root to the best position.
    at, following = best, -1
    while at >= 0:
        parent = 0 + nodes[at].parent
        nodes[at].parent = following
        following = at
        at = parent
    at, parent = following, -1
    while at >= 0:
        if count >= 0:
            count = _reach(problem, instance, memory, at, state, out_actions, count)
        following = 0 + nodes[at].parent
        nodes[at].parent = parent
        parent = at
        at = following
    return count


@kernel
def _reach(
    problem: Problem,
    instance: Instance,
    memory: Memory,
    at: int,
    state: NDArray[np.int64],
    out_actions: NDArray[np.int64],
    count: int,
) -> int:
    """Play on to a position of the line; returns the number of actions so far, -1 if there is no way."""
    table, actions = problem.table, memory.actions
    node = memory.nodes[at]
    to_pyramid, to_stock = problem.shapes.masks[node.shape], node.stock
    kings = instance.facts[FREE_KINGS] & ~to_stock  # free to go
    leaving = 0
    if problem.single:
        if node.first >= 0:
            leaving |= 1 << node.first
        if node.second >= 0:
            leaving |= 1 << node.second
        if problem.question == SCORE:
            leaving |= state[STOCK] & kings & ~instance.facts[UNPLACED_KINGS]
    else:
        leaving = state[STOCK] & ~to_stock
    if problem.goal_all and to_pyramid == 0 and to_stock == 0:
        leaving = state[STOCK]  # the win: now the kings that were left out of the positions have to leave too
    while state[PYRAMID] != to_pyramid or state[STOCK] & leaving:
        action = -1
        if is_finished(table, state[PYRAMID], state[STOCK], state[CURSOR], state[PASS]):
            return -1
        # The pyramid waits for a stock card of the line: as long as none is at hand there is nothing to choose.
        waits = problem.single and problem.question <= WIN and state[STOCK] & leaving
        if not waits or _is_at_hand(problem, state, leaving | kings):
            found = list_removals(table, instance.ranks, state[PYRAMID], state[STOCK], state[CURSOR], actions)
            action = _choose(problem, memory, at, state, to_pyramid, leaving, kings, found)
        if action < 0 and can_draw(table, state[STOCK], state[CURSOR], state[PASS]):
            action = table.actions - 1
        if action < 0 or count == out_actions.size:
            return -1
        step(table, state, action)
        out_actions[count] = action
        count += 1
    return count


@kernel
def _is_at_hand(problem: Problem, state: NDArray[np.int64], cards: int) -> bool:
    """Can one of some stock cards be played without a draw? (One card a draw, one pile.)"""
    stock, cursor = state[STOCK], state[CURSOR]
    top = top_below(stock, cursor)
    at_hand = 1 << top if top >= 0 else 0
    if problem.table.stock_top:
        ahead = stock & ~below(cursor)
        at_hand |= ahead & -ahead
    return cards & at_hand != 0


@kernel
def _choose(
    problem: Problem,
    memory: Memory,
    at: int,
    state: NDArray[np.int64],
    to_pyramid: int,
    leaving: int,
    kings: int,
    found: int,
) -> int:
    """The removal to make now on the way to a position, -1 for none.

    Kings outside the pyramid first: a clear may end the game.
    """
    table, node = problem.table, memory.nodes[at]
    chosen = -1
    for a in range(found):
        action = memory.actions[a]
        after = apply(table, state[PYRAMID], state[STOCK], state[CURSOR], state[PASS], state[CLEARED], action)
        taken = state[STOCK] & ~after[1]
        if (after[0] & to_pyramid) != to_pyramid or taken & ~(leaving | kings):
            continue  # takes a card that stays
        if after[0] == 0 and not table.goal_all and after[1] & leaving:
            continue  # a clear that ends the game while cards of the line are still to come
        kind = table.moves[action, 0]
        king = kind in (_WASTE_KING, _STOCK_KING)
        closes = kind == _PLACE_KING or (kind == _WASTE_KING and problem.close_piles and state[PASS] == table.passes)
        # Without a limit of passes the line may count later passes as one; there an earlier pass does as well.
        on_time = after[2] == node.cursor and (table.passes == 0 or after[3] == node.pass_number)
        if problem.single or closes or on_time:
            if chosen < 0 or king:
                chosen = action
            if king:
                break
    return chosen
