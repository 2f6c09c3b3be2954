"""Visit: what happens to a position that the search comes upon: it is needless, hopeless, or stored and queued."""

from __future__ import annotations

from typing import Final

from pyramid_env._numba import inlined_kernel
from pyramid_env.bits import count_bits, lowest_bit
from pyramid_env.kernels import Table
from pyramid_env.rules import LAST_COUNTED_PASS
from pyramid_env.solver.bounds import (
    best_score,
    idle_cards,
    is_late,
    score_here,
    stuck_waste,
)
from pyramid_env.solver.lateness import time_of
from pyramid_env.solver.positions import (
    BEST,
    BUCKET,
    COUNT,
    DEAD,
    EXPANDED,
    FULL,
    KEYED,
    ROOM,
    SEEN,
    SLOTS,
    TOP,
    VALUE,
    Memory,
    below,
    next_left,
    slot_of,
    spread,
    waiting,
)
from pyramid_env.solver.problem import PASS_LIMIT, SCORE, STEPS, Instance, Problem
from pyramid_env.solver.relaxation import can_meet

GREEDY: Final = 1024
"""Greedy priorities are below this."""

PYRAMID_WEIGHT: Final = 6
STOCK_WEIGHT: Final = 3
TWINS_AFTER: Final = 200
"""Positions expanded before it pays to find equal positions of other cards."""
_SATURATED: Final = LAST_COUNTED_PASS


@inlined_kernel
def is_goal(problem: Problem, shape: int, stock: int) -> bool:
    """Is what is asked for reached (but for the score)?"""
    return problem.shapes.cards[shape] == 0 and (stock == 0 or not problem.goal_all)


@inlined_kernel
def is_closed_time(table: Table, cursor: int, pass_number: int) -> bool:
    """Has the game ended by ``end_on_exhausted``?"""
    return table.end_on_exhausted != 0 and pass_number == table.passes and cursor >= table.stock_size


@inlined_kernel
def greedy(problem: Problem, shape: int, stock: int, cursor: int, pass_number: int) -> int:
    """Small for few cards left and an early time."""
    priority = PYRAMID_WEIGHT * problem.shapes.cards[shape]
    if problem.goal_all:
        priority += STOCK_WEIGHT * count_bits(stock)
    priority += (pass_number - 1) * (problem.table.stock_size + 1) + cursor
    return min(priority, GREEDY - 1)


@inlined_kernel
def key_of(problem: Problem, instance: Instance, stock: int) -> int:
    """The lowest of all sets of stock cards that show the same ranks in the same order, and so allow the same."""
    key = 0
    ahead = -1  # mask of the cards that may come next
    left = stock
    while left:
        rank = 0 + instance.ranks[problem.table.places + lowest_bit(left)]
        left &= left - 1
        twins = instance.of_rank[rank] & ahead
        key |= twins & -twins
        ahead &= ~(twins ^ (twins - 1))
    return key


@inlined_kernel
def visit(
    problem: Problem,
    instance: Instance,
    memory: Memory,
    shape: int,
    stock: int,
    cursor: int,
    pass_number: int,
    cleared: int,
    parent: int,
    first: int,
    second: int,
) -> None:
    """Store a position and queue it, unless it is needless; note it if it is the best so far. (For all questions but
    the steps, see short.py.)

    ``shape`` is the pyramid before its free kings leave, ``first`` and ``second`` are the stock cards (-1: none) whose
    leaving led here. If there is no room, FULL is noted and nothing is stored.
    """
    progress, shapes, question = memory.progress, problem.shapes, problem.question
    empty = shapes.masks.size - 1
    before = shape
    if not is_closed_time(problem.table, cursor, pass_number):
        shape = 0 + instance.closed[shape]
    if shape == empty and before != empty and problem.keep_apex:
        shape -= 1  # the apex alone is the last shape but one
    if shape == empty and cleared == 0:
        cleared = pass_number
    kept = cleared if problem.keep_cleared else 0
    value = progress[VALUE]
    ended = shape == empty and not problem.goal_all
    reached = ended
    if question != SCORE and not (ended or is_goal(problem, shape, stock)):
        if pass_number == instance.facts[PASS_LIMIT] and problem.single:
            stuck = stuck_waste(problem, instance, shape, stock, cursor)
            if stuck and problem.goal_all:
                return
            stock &= ~stuck
        if problem.drop_cards:
            stock &= ~idle_cards(problem, instance, shape, stock)
            cursor = next_left(stock, cursor, problem.table.stock_size)
        if is_late(problem, instance, shape, cursor, pass_number):
            return
    if progress[COUNT] >= progress[ROOM]:
        progress[FULL] = 1
        return
    # Positions at the end need no place in the table of keys: nothing follows them.
    keyed = not ended
    slot = -1
    key = stock
    if keyed:
        if 2 * progress[KEYED] >= progress[SLOTS]:
            spread(memory)
        if problem.one_label and progress[EXPANDED] >= TWINS_AFTER:
            key = key_of(problem, instance, stock)  # keys of before stay right: such a set has no other key
        slot = slot_of(memory.nodes, memory.slots, progress[SLOTS], shape, key, kept)
        if is_dominated(problem, memory, slot, stock, cursor, pass_number, 0):
            return
    priority = -1
    if question == SCORE:
        value = score_here(problem, instance, shape, stock, cleared)
        reached = value > progress[VALUE]
        if not ended:
            bound = best_score(problem, instance, shape, stock, cursor, pass_number, cleared)
            if bound > max(value, progress[VALUE]):
                priority = (progress[TOP] - bound) * GREEDY + greedy(problem, shape, stock, cursor, pass_number)
        if priority < 0 and not reached:
            return
    elif ended or is_goal(problem, shape, stock):
        reached = True
    elif can_meet(problem, instance, shape, stock):
        priority = greedy(problem, shape, stock, cursor, pass_number)
    else:
        return
    new = progress[COUNT]
    progress[COUNT] = new + 1
    nodes = memory.nodes
    nodes[new].chain = -1
    if keyed:
        nodes[new].chain = survivors(problem, memory, slot, stock, cursor, pass_number, 0)
        memory.slots[slot] = new
        progress[KEYED] += 1
    nodes[new].stock = stock
    nodes[new].key = key
    nodes[new].parent = parent
    nodes[new].queue = -1
    nodes[new].shape = shape
    nodes[new].cost = 0
    nodes[new].cursor = cursor
    nodes[new].pass_number = pass_number
    nodes[new].cleared = kept
    nodes[new].dead = SEEN
    nodes[new].first = first
    nodes[new].second = second
    if priority >= 0:
        nodes[new].queue = memory.heads[priority]
        memory.heads[priority] = new
        progress[BUCKET] = min(progress[BUCKET], priority)
    if reached:
        progress[BEST] = new
        progress[VALUE] = value


@inlined_kernel
def is_dominated(
    problem: Problem, memory: Memory, slot: int, stock: int, cursor: int, pass_number: int, cost: int
) -> bool:
    """Does a stored position of the key make the new one needless?"""
    stored = 0 + memory.slots[slot]
    if problem.one_label:
        if stored < 0:
            return False
        node = memory.nodes[stored]
        behind = count_bits(node.stock & below(0 + node.cursor))
        return time_of(behind, 0 + node.pass_number) <= time_of(count_bits(stock & below(cursor)), pass_number) or (
            problem.table.passes == 0 and node.pass_number == pass_number == _SATURATED
        )
    while stored >= 0:
        node = memory.nodes[stored]
        wait = waiting(problem.table, stock, 0 + node.cursor, 0 + node.pass_number, cursor, pass_number)
        if wait >= 0 and (problem.question != STEPS or node.cost + wait <= cost):
            return True
        stored = 0 + node.chain
    return False


@inlined_kernel
def survivors(problem: Problem, memory: Memory, slot: int, stock: int, cursor: int, pass_number: int, cost: int) -> int:
    """The first position of the key's chain that a new one leaves standing, -1 for none.

    Positions that the new one makes needless are marked dead and leave the chain.
    """
    nodes = memory.nodes
    head = -1
    tail = -1
    stored = 0 + memory.slots[slot]
    if problem.one_label:
        if stored >= 0:
            nodes[stored].dead = DEAD
        return head
    while stored >= 0:
        node = nodes[stored]
        following = 0 + node.chain
        wait = waiting(problem.table, stock, cursor, pass_number, 0 + node.cursor, 0 + node.pass_number)
        if wait >= 0 and (problem.question != STEPS or cost + wait <= node.cost):
            nodes[stored].dead = DEAD
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
