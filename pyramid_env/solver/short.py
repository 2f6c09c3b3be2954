"""Short: the positions of the search for a shortest win, looked at in two steps.

Most positions that this search comes upon are never expanded. So a position is queued by a bound that is one look into
a table (fewest.py), and only when its turn comes is it looked up among those seen before and bounded with care; if that
puts it off, it waits once more.
"""

from __future__ import annotations

from typing import Final

from pyramid_env._numba import inlined_kernel
from pyramid_env.solver.bounds import NO_WAY, fewest_steps, stuck_waste
from pyramid_env.solver.fewest import careful_steps_ahead, has_tables, steps_ahead
from pyramid_env.solver.positions import (
    BUCKET,
    COUNT,
    DEAD,
    FULL,
    KEYED,
    NEW,
    ROOM,
    SEEN,
    SLOTS,
    Memory,
    slot_of,
    spread,
)
from pyramid_env.solver.problem import HASTE, MOST_STEPS, PASS_LIMIT, Instance, Problem
from pyramid_env.solver.relaxation import partners
from pyramid_env.solver.visit import is_closed_time, is_dominated, is_goal, survivors

FINE: Final = 4
MOST_HASTE: Final = 4
"""Priorities a step made; a step ahead weighs as many and HASTE, up to MOST_HASTE, more."""


@inlined_kernel
def push(
    problem: Problem,
    instance: Instance,
    memory: Memory,
    shape: int,
    stock: int,
    cursor: int,
    pass_number: int,
    cost: int,
    parent: int,
    first: int,
    second: int,
) -> None:
    """Store a position and queue it, unless no line of interest leads on from it.

    ``shape`` is the pyramid before its free kings leave, ``first`` and ``second`` are the stock cards (-1: none) whose
    leaving led here. If there is no room, FULL is noted and nothing is stored.
    """
    progress, cards = memory.progress, problem.shapes.cards
    if not is_closed_time(problem.table, cursor, pass_number):
        closed = 0 + instance.closed[shape]
        cost += cards[shape] - cards[closed]
        shape = closed
    ahead = steps_ahead(problem, instance, shape, cursor, pass_number)
    if cost + ahead > instance.facts[MOST_STEPS]:
        return
    if progress[COUNT] >= progress[ROOM]:
        progress[FULL] = 1
        return
    new = progress[COUNT]
    progress[COUNT] = new + 1
    node = memory.nodes[new]
    node.stock = stock
    node.parent = parent
    node.chain = -1
    node.shape = shape
    node.cost = cost
    node.cursor = cursor
    node.pass_number = pass_number
    node.cleared = 0
    node.dead = NEW
    node.first = first
    node.second = second
    wait(instance, memory, new, cost, ahead)


@inlined_kernel
def wait(instance: Instance, memory: Memory, at: int, cost: int, ahead: int) -> None:
    """Queue a position by the length of a line through it."""
    priority = FINE * cost + (FINE + instance.facts[HASTE]) * ahead
    memory.nodes[at].queue = memory.heads[priority]
    memory.heads[priority] = at
    memory.progress[BUCKET] = min(memory.progress[BUCKET], priority)


@inlined_kernel
def settle(problem: Problem, instance: Instance, memory: Memory, at: int) -> bool:
    """Is a position, whose turn has come, to be expanded now? Else it is needless, hopeless, or waits again."""
    nodes, progress = memory.nodes, memory.progress
    node = nodes[at]
    if node.dead == SEEN:
        return True
    shape, stock, cursor, pass_number = 0 + node.shape, 0 + node.stock, 0 + node.cursor, 0 + node.pass_number
    cost = 0 + node.cost
    nodes[at].dead = DEAD
    if pass_number == instance.facts[PASS_LIMIT] and problem.single:
        stuck = stuck_waste(problem, instance, shape, stock, cursor)
        if stuck and problem.goal_all:
            return False
        stock &= ~stuck
    if 2 * progress[KEYED] >= progress[SLOTS]:
        spread(memory)
    slot = slot_of(nodes, memory.slots, progress[SLOTS], shape, stock, 0)
    if is_dominated(problem, memory, slot, stock, cursor, pass_number, cost):
        return False
    supply = partners(instance, stock)
    most = instance.facts[MOST_STEPS] - cost
    if has_tables(instance):
        ahead = careful_steps_ahead(problem, instance, shape, stock, cursor, pass_number, supply, most)
    else:
        ahead = fewest_steps(problem, instance, shape, stock, cursor, pass_number, supply)
    if ahead == NO_WAY or ahead > most:
        return False
    nodes[at].stock = stock
    nodes[at].key = stock
    nodes[at].dead = SEEN
    nodes[at].chain = survivors(problem, memory, slot, stock, cursor, pass_number, cost)
    memory.slots[slot] = at
    progress[KEYED] += 1
    sooner = steps_ahead(problem, instance, shape, cursor, pass_number)
    if ahead <= sooner:
        return True
    wait(instance, memory, at, cost, ahead)
    return False


@inlined_kernel
def is_win(problem: Problem, memory: Memory, at: int) -> bool:
    """Is a stored position the end of a win?"""
    return is_goal(problem, 0 + memory.nodes[at].shape, 0 + memory.nodes[at].stock)
