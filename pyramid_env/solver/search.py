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

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env._numba import kernel
from pyramid_env.kernels import is_finished
from pyramid_env.rules import LAST_COUNTED_PASS
from pyramid_env.solver import expand
from pyramid_env.solver.bounds import best_score, is_late
from pyramid_env.solver.expand import close_piles, close_waste, expand_single, expand_walk
from pyramid_env.solver.lateness import find_latest
from pyramid_env.solver.positions import (
    BEST,
    BUCKET,
    BUCKETS,
    CLEARED_IN,
    DEAD,
    EXPANDED,
    FOUND,
    FULL,
    TOP,
    VALUE,
    Memory,
    below,
    clear_memory,
    next_left,
)
from pyramid_env.solver.problem import (
    FREE_KINGS,
    PASS_LIMIT,
    REACHED,
    ROOT_SHAPE,
    SCORE,
    STEPS,
    UNPLACED_KINGS,
    WIN,
    Instance,
    Problem,
)
from pyramid_env.solver.short import is_win, push, settle
from pyramid_env.solver.visit import GREEDY, visit

RUNNING: Final = 0
DONE: Final = 1
NO_ROOM: Final = 2
"""Outcomes of a call: the slice is used up; the question is answered; the positions found no room."""

LATENESS_AFTER: Final = 100
"""Positions expanded before ``find_latest`` is worth its time (about twice as long as these took)."""

_SATURATED: Final = LAST_COUNTED_PASS
_SHAPE: Final = expand.SHAPE
_STOCK: Final = expand.STOCK
_CURSOR: Final = expand.CURSOR
_PASS: Final = expand.PASS
_COST: Final = expand.COST
_FIRST: Final = expand.FIRST
_SECOND: Final = expand.SECOND


@kernel
def root_of(problem: Problem, instance: Instance, state: NDArray[np.int64]) -> tuple[int, int, int]:
    """Stock, cursor and pass where the search begins: kings that leave at once have left, and passes that are all alike
    are one."""
    table, facts = problem.table, instance.facts
    stock, cursor, pass_number = state[kernels.STOCK], state[kernels.CURSOR], state[kernels.PASS]
    if is_finished(table, state[kernels.PYRAMID], stock, cursor, pass_number):
        return stock, cursor, pass_number
    if facts[PASS_LIMIT] > _SATURATED and not problem.keep_pass:
        pass_number = _SATURATED
    free = facts[FREE_KINGS]
    if free and problem.question != STEPS:
        ahead = free & stock & ~below(cursor)
        stock = close_waste(free, stock, cursor)
        cursor = next_left(stock & ~ahead, cursor, table.stock_size)
        stock &= ~(facts[UNPLACED_KINGS] | (ahead & below(cursor)))
    elif not problem.single and problem.close_piles and pass_number == table.passes:
        stock = close_piles(problem, instance, stock, cursor)
    return stock, cursor, pass_number


@kernel
def score_bounds(problem: Problem, instance: Instance, state: NDArray[np.int64]) -> tuple[int, int]:
    """The score if nothing more leaves, and one that no line exceeds."""
    stock, cursor, pass_number = root_of(problem, instance, state)
    pyramid, cleared = state[kernels.PYRAMID], state[kernels.CLEARED]
    here = kernels.score(problem.table, instance.ranks, pyramid, state[kernels.STOCK], cleared)
    shape = instance.facts[ROOT_SHAPE]
    return here, max(here, best_score(problem, instance, shape, stock, cursor, pass_number, cleared))


@kernel
def begin(problem: Problem, instance: Instance, memory: Memory, state: NDArray[np.int64], buckets: int) -> None:
    """Forget the last search and store the root. For the score first say how far it can go, and so how many buckets it
    takes; for the steps ``buckets`` bounds them."""
    progress = memory.progress
    clear_memory(memory, buckets)
    if problem.question == SCORE:
        if problem.keep_pass:
            find_latest(problem, instance, state[kernels.PASS])
        _, progress[TOP] = score_bounds(problem, instance, state)
        progress[VALUE] = instance.facts[REACHED]
    stock, cursor, pass_number = root_of(problem, instance, state)
    root = memory.children[0]
    root[_SHAPE], root[_STOCK], root[_CURSOR], root[_PASS] = instance.facts[ROOT_SHAPE], stock, cursor, pass_number
    root[_COST], root[_FIRST], root[_SECOND] = 0, -1, -1
    progress[FOUND] = 1
    progress[CLEARED_IN] = state[kernels.CLEARED]


@kernel
def advance(problem: Problem, instance: Instance, memory: Memory, slice_size: int) -> int:
    """Expand up to ``slice_size`` positions; returns RUNNING, DONE or NO_ROOM."""
    question, facts = problem.question, instance.facts
    nodes, heads, progress, children = memory.nodes, memory.heads, memory.progress, memory.children
    buckets = progress[BUCKETS]
    stored, bucket, cost = -1, 0, 0
    count, cleared = progress[FOUND], progress[CLEARED_IN]  # the root waits among the children
    for expanded in range(slice_size + 1):
        for c in range(count):
            shape, stock, cursor = children[c, _SHAPE], children[c, _STOCK], children[c, _CURSOR]
            pass_number, first, second = children[c, _PASS], children[c, _FIRST], children[c, _SECOND]
            if question == STEPS:
                spent = cost + children[c, _COST]
                push(problem, instance, memory, shape, stock, cursor, pass_number, spent, stored, first, second)
            else:
                visit(problem, instance, memory, shape, stock, cursor, pass_number, cleared, stored, first, second)
        if progress[FULL]:
            if stored >= 0:  # has to be expanded once more; children that are stored stay
                nodes[stored].queue = heads[bucket]
                heads[bucket] = stored
                progress[BUCKET] = min(progress[BUCKET], bucket)
            return NO_ROOM
        progress[FOUND] = 0
        count = 0
        if question != SCORE and progress[BEST] >= 0:
            return DONE
        if expanded == slice_size:
            break
        bucket = progress[BUCKET]
        while bucket < buckets and heads[bucket] < 0:
            bucket += 1
        progress[BUCKET] = bucket
        if bucket == buckets:
            return DONE
        stored = 0 + heads[bucket]
        node = nodes[stored]
        if question == SCORE and progress[TOP] - bucket // GREEDY <= progress[VALUE]:
            return DONE
        heads[bucket] = node.queue
        if node.dead == DEAD:
            continue
        if question == STEPS:
            if is_win(problem, memory, stored):
                progress[BEST] = stored
                return DONE
            if not settle(problem, instance, memory, stored):
                continue
        shape, stock, cursor, pass_number = 0 + node.shape, 0 + node.stock, 0 + node.cursor, 0 + node.pass_number
        if progress[EXPANDED] == LATENESS_AFTER and question <= WIN:
            find_latest(problem, instance, facts[PASS_LIMIT])
        progress[EXPANDED] += 1
        if question != SCORE and is_late(problem, instance, shape, cursor, pass_number):
            continue
        cleared, cost = 0 + node.cleared, 0 + node.cost
        if problem.single:
            count = expand_single(problem, instance, shape, stock, cursor, pass_number, children)
        else:
            count = expand_walk(problem, instance, shape, stock, cursor, pass_number, memory.actions, children)
    return RUNNING
