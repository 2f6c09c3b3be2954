"""Search: best first over positions after removals, one loop for all questions.

Positions wait in buckets by priority, small first, the newest first within a bucket. The order is what a question is
about:

    CLEAR, WIN   few cards and an early time: greedy, as any line will do
    SCORE        the proven best score from there, high first, then greedy. Done when no position left can beat what
                 has been reached
    STEPS        steps so far plus the fewest that must follow: the first win taken out is a shortest one

The kernel allocates nothing: when a table is full it says so, and the caller makes it larger or gives up.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env._numba import kernel
from pyramid_env.kernels import count_bits, is_finished
from pyramid_env.rules import LAST_COUNTED_PASS
from pyramid_env.solver import expand
from pyramid_env.solver.expand import close_piles, close_waste, expand_single, expand_walk
from pyramid_env.solver.positions import Nodes, Position, below, next_left, slot_of, waiting
from pyramid_env.solver.problem import (
    SCORE,
    STEPS,
    Problem,
    best_score,
    can_clear,
    fewest_removals,
    score_here,
)
from pyramid_env.solver.shapes import shape_of

RUNNING: Final = 0
DONE: Final = 1
FULL: Final = 2
"""Outcomes of a call: the slice is used up; the question is answered; no room for the next position's children."""

COUNT: Final = 0  # positions stored
BUCKET: Final = 1  # no bucket below this one holds a position
BEST: Final = 2  # the position that reaches the value, -1 = none
VALUE: Final = 3  # the best score reached
TOP: Final = 4  # no line scores more
PROGRESS_COLUMNS: Final = 5

GREEDY: Final = 1024
"""Greedy priorities are below this."""

PYRAMID_WEIGHT: Final = 6
STOCK_WEIGHT: Final = 3
_SATURATED: Final = LAST_COUNTED_PASS
_PYRAMID: Final = expand.PYRAMID
_STOCK: Final = expand.STOCK
_CURSOR: Final = expand.CURSOR
_PASS: Final = expand.PASS
_COST: Final = expand.COST


class Memory(NamedTuple):
    """The tables that a search writes into."""

    nodes: Nodes  # (capacity,) positions
    slots: NDArray[np.int32]  # (a power of two, at least twice the capacity) where each key's chain begins
    heads: NDArray[np.int32]  # (buckets,) the newest position of each bucket, -1 = none
    progress: NDArray[np.int64]  # (PROGRESS_COLUMNS,)
    children: NDArray[np.int64]  # (MOST_CHILDREN, CHILD_COLUMNS) scratch space
    actions: NDArray[np.int64]  # (MOST_REMOVALS,) scratch space


@kernel
def greedy(problem: Problem, at: Position) -> int:
    """Small for few cards left and an early time."""
    priority = PYRAMID_WEIGHT * count_bits(at.pyramid)
    if problem.goal_all:
        priority += STOCK_WEIGHT * count_bits(at.stock)
    priority += (at.pass_number - 1) * (problem.table.stock_size + 1) + at.cursor
    return min(priority, GREEDY - 1)


@kernel
def priority_of(
    problem: Problem, memory: Memory, shape: int, at: Position, cleared: int, cost: int, beaten: int
) -> int:
    """The bucket of a position, -1 if it can't lead to what is asked for. ``beaten``: a score that is had already."""
    if problem.question == STEPS:
        ahead = fewest_removals(problem, shape, at.pyramid, at.stock)
        return -1 if ahead < 0 else cost + ahead
    if problem.question == SCORE:
        bound = best_score(problem, shape, at.stock, at.pass_number, cleared)
        return -1 if bound <= beaten else (memory.progress[TOP] - bound) * GREEDY + greedy(problem, at)
    return greedy(problem, at) if can_clear(problem, shape, at.stock) else -1


@kernel
def _is_dominated(problem: Problem, memory: Memory, slot: int, at: Position, cost: int) -> bool:
    """Does a stored position of the key make the new one needless?"""
    stored = memory.slots[slot]
    while stored >= 0:
        node = memory.nodes[stored]
        wait = waiting(problem.table, at.stock, node.cursor, node.pass_number, at.cursor, at.pass_number)
        if wait >= 0 and (problem.question != STEPS or node.cost + wait <= cost):
            return True
        stored = node.chain
    return False


@kernel
def _survivors(problem: Problem, memory: Memory, slot: int, at: Position, cost: int) -> int:
    """The first position of the key's chain that a new one leaves standing, -1 for none.

    Positions that the new one makes needless are marked dead and leave the chain.
    """
    nodes = memory.nodes
    head = -1
    tail = -1
    stored = memory.slots[slot]
    while stored >= 0:
        node = nodes[stored]
        following = node.chain
        wait = waiting(problem.table, at.stock, at.cursor, at.pass_number, node.cursor, node.pass_number)
        if wait >= 0 and (problem.question != STEPS or cost + wait <= node.cost):
            nodes[stored].dead = 1
        else:
            if tail < 0:
                head = stored
            else:
                nodes[tail].chain = stored
            tail = stored
        stored = following
    if tail >= 0:
        nodes[tail].chain = -1
    return head


@kernel
def is_goal(problem: Problem, pyramid: int, stock: int) -> bool:
    """Is what is asked for reached (but for the score)?"""
    return pyramid == 0 and (stock == 0 or not problem.goal_all)


@kernel
def visit(problem: Problem, memory: Memory, at: Position, cleared: int, cost: int, parent: int) -> None:
    """Store a position and queue it, unless it is needless; note it if it is the best so far. There must be room."""
    nodes, progress, shapes = memory.nodes, memory.progress, problem.shapes
    shape = shape_of(shapes.masks, shapes.slots, at.pyramid)
    if not is_finished(problem.table, at.pyramid, at.stock, at.cursor, at.pass_number):
        shape = problem.relaxation.closed[shape]
    if problem.keep_apex and at.pyramid != 0 and shape == shapes.masks.size - 1:
        shape -= 1  # the apex alone is the last shape but one
    pyramid = shapes.masks[shape]
    if problem.question == STEPS:
        cost += count_bits(at.pyramid ^ pyramid)  # the kings that have just left
    at = Position(pyramid, at.stock, at.cursor, at.pass_number)
    if pyramid == 0 and cleared == 0:
        cleared = at.pass_number
    kept = cleared if problem.keep_cleared else 0
    value = progress[VALUE]
    if problem.question == SCORE:
        value = score_here(problem, shape, at.stock, cleared)
        reached = value > progress[VALUE]
        ended = pyramid == 0 and not problem.table.goal_all
    else:
        ended = is_goal(problem, pyramid, at.stock) and problem.question != STEPS
        reached = ended
    priority = -1
    slot = -1
    if not ended:
        slot = slot_of(nodes, memory.slots, pyramid, at.stock, kept)
        if _is_dominated(problem, memory, slot, at, cost):
            return
        priority = priority_of(problem, memory, shape, at, cleared, cost, max(value, progress[VALUE]))
    if not reached and priority < 0:
        return
    new = progress[COUNT]
    progress[COUNT] = new + 1
    nodes[new].pyramid = pyramid
    nodes[new].stock = at.stock
    nodes[new].shape = shape
    nodes[new].cost = cost
    nodes[new].parent = parent
    nodes[new].chain = -1 if slot < 0 else _survivors(problem, memory, slot, at, cost)
    nodes[new].queue = -1
    nodes[new].cursor = at.cursor
    nodes[new].pass_number = at.pass_number
    nodes[new].cleared = kept
    nodes[new].dead = 0
    if slot >= 0:
        memory.slots[slot] = new
    if priority >= 0:
        nodes[new].queue = memory.heads[priority]
        memory.heads[priority] = new
        progress[BUCKET] = min(progress[BUCKET], priority)
    if reached:
        progress[BEST] = new
        progress[VALUE] = value


@kernel
def root_of(problem: Problem, state: NDArray[np.int64]) -> Position:
    """Where the search begins: kings that leave at once have left, and passes that are all alike are one."""
    table = problem.table
    pyramid, stock, cursor, pass_number = (
        state[kernels.PYRAMID],
        state[kernels.STOCK],
        state[kernels.CURSOR],
        state[kernels.PASS],
    )
    if is_finished(table, pyramid, stock, cursor, pass_number):
        return Position(pyramid, stock, cursor, pass_number)
    if problem.pass_limit > _SATURATED and not problem.keep_pass:
        pass_number = _SATURATED
    if problem.free_kings:
        ahead = problem.free_kings & stock & ~below(cursor)
        stock = close_waste(problem, stock, cursor)
        cursor = next_left(stock & ~ahead, cursor, table.stock_size)
        stock &= ~(problem.unplaced_kings | (ahead & below(cursor)))
    elif not problem.single and problem.close_piles and pass_number == table.passes:
        stock = close_piles(problem, stock, cursor)
    return Position(pyramid, stock, cursor, pass_number)


@kernel
def score_bounds(problem: Problem, state: NDArray[np.int64]) -> tuple[int, int]:
    """The score if nothing more leaves, and one that no line exceeds."""
    at = root_of(problem, state)
    shape = shape_of(problem.shapes.masks, problem.shapes.slots, at.pyramid)
    here = kernels.score(
        problem.table, problem.ranks, state[kernels.PYRAMID], state[kernels.STOCK], state[kernels.CLEARED]
    )
    return here, best_score(problem, shape, at.stock, at.pass_number, state[kernels.CLEARED])


@kernel
def begin(problem: Problem, memory: Memory, state: NDArray[np.int64]) -> None:
    """Store the root."""
    at = root_of(problem, state)
    visit(problem, memory, at, state[kernels.CLEARED], 0, -1)


@kernel
def advance(problem: Problem, memory: Memory, room: int, slice_size: int) -> int:
    """Expand up to ``slice_size`` positions, storing no more than ``room`` in all; returns RUNNING, DONE or FULL."""
    question = problem.question
    nodes, heads, progress, children = memory.nodes, memory.heads, memory.progress, memory.children
    for _ in range(slice_size):
        if question != SCORE and progress[BEST] >= 0:
            return DONE
        bucket = progress[BUCKET]
        while bucket < heads.size and heads[bucket] < 0:
            bucket += 1
        progress[BUCKET] = bucket
        if bucket == heads.size:
            return DONE
        stored = heads[bucket]
        node = nodes[stored]
        if node.dead:
            heads[bucket] = node.queue
            continue
        if question == SCORE and progress[TOP] - bucket // GREEDY <= progress[VALUE]:
            return DONE
        # 0 + widens the small integers of a node
        at = Position(node.pyramid, node.stock, 0 + node.cursor, 0 + node.pass_number)
        if question == STEPS and is_goal(problem, at.pyramid, at.stock):
            progress[BEST] = stored
            return DONE
        if problem.single:
            count = expand_single(problem, problem.shapes.exposed[node.shape], at, children)
        else:
            count = expand_walk(problem, at, memory.actions, children)
        if progress[COUNT] + count > room:
            return FULL
        heads[bucket] = node.queue
        cleared, cost = 0 + node.cleared, 0 + node.cost
        for c in range(count):
            child = Position(children[c, _PYRAMID], children[c, _STOCK], children[c, _CURSOR], children[c, _PASS])
            child_cost: int = cost + children[c, _COST] if question == STEPS else 0
            visit(problem, memory, child, cleared, child_cost, stored)
    return DONE if question != SCORE and progress[BEST] >= 0 else RUNNING
