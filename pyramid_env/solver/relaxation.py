"""Relaxation: what the pyramid's order alone already forbids, with the stock's order forgotten.

Every card that finds no partner inside the pyramid must find one in the stock. So a position asks for a number of pairs
*inside the pyramid* of each two ranks (ace and queen, two and jack, ...): as many as the stock lacks partners. For each
shape of the pyramid, dynamic programming from the smallest shape up finds which such numbers the pyramid can give on
the way to the clear. A position that asks for more is dead: no clear from there, whatever the order.

The numbers of all two ranks together are a point of a grid, a point is one bit of an integer, and so the points that a
shape can give are one integer; with a point all smaller ones are among them. One more pair of two ranks is a shift.
The grid has room for few points: above what it tells apart, more pairs count as no more than the most it knows, which
forbids less and is never wrong. Where that is too little, ``can_meet`` asks vectors.py.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import inlined_kernel, kernel
from pyramid_env.bits import count_bits, lowest_bit
from pyramid_env.kernels import STOCK
from pyramid_env.solver.packed import FIELD, count_of, excess, one_of
from pyramid_env.solver.problem import (
    FREE_KINGS,
    KINGS,
    LATE_FROM,
    OTHERS,
    PASS_LIMIT,
    ROOT_SHAPE,
    ROOT_STOCK,
    SCORE,
    STEPS,
    UNPLACED_KINGS,
    Instance,
    Problem,
)
from pyramid_env.solver.shapes import shape_of
from pyramid_env.solver.vectors import find_vectors, has_vector

NEVER_LATE: Final = 1 << 20
_MOST_POINTS: Final = 63  # so that integers are not negative


@inlined_kernel
def partners(instance: Instance, stock: int) -> int:
    """Packed: for each rank, the number of stock cards that make a pair with it."""
    king = instance.of_rank.size - 1
    packed = 0
    for rank in range(1, king):
        packed |= count_bits(stock & instance.of_rank[king - rank]) << (FIELD * (rank - 1))
    return packed


@inlined_kernel
def _lacking(instance: Instance, counts: int, stock: int, rank: int) -> int:
    """Pairs of a rank and its partner that must be made inside a pyramid of ``counts`` (packed); below 0: the stock has
    more partners than needed."""
    of_rank, partner = instance.of_rank, instance.of_rank.size - 1 - rank
    return max(
        count_of(counts, rank) - count_bits(stock & of_rank[partner]),
        count_of(counts, partner) - count_bits(stock & of_rank[rank]),
    )


@inlined_kernel
def can_meet(problem: Problem, instance: Instance, shape: int, stock: int) -> bool:
    """False: the pyramid can't be cleared from here, whatever the order of the stock."""
    counts = instance.counts[shape]
    if problem.vectors:
        return has_vector(instance, shape, excess(counts, partners(instance, stock)))
    point = 0
    for rank in range(1, instance.of_rank.size // 2):
        most = instance.most[rank]
        if most:
            lacking = _lacking(instance, counts, stock, rank)
            if lacking > 0:
                point += instance.stride[rank] * min(lacking, most)
    return (instance.pairings[shape] >> point) & 1 != 0


# ---- the tables ------------------------------------------------------------------------------------------------------


@kernel
def _lay_grid(instance: Instance, counts: int, stock: int) -> None:
    """Share out the points: first to what the root asks for, then, where pairs in the stock and cards that are stuck
    there can make a position ask for more, as far as they go."""
    most, king = instance.most, instance.of_rank.size - 1
    points = 1
    for rank in range(1, (king + 1) // 2):
        most[rank] = max(_lacking(instance, counts, stock, rank), 0)
        while points * (most[rank] + 1) > _MOST_POINTS:
            most[rank] -= 1
        points *= most[rank] + 1
    raised = True
    while raised:
        raised = False
        for rank in range(1, (king + 1) // 2):
            more = points // (most[rank] + 1) * (most[rank] + 2)
            if more <= _MOST_POINTS and most[rank] < min(count_of(counts, rank), count_of(counts, king - rank)):
                most[rank] += 1
                points = more
                raised = True
    stride = 1
    for rank in range(1, (king + 1) // 2):
        instance.stride[rank] = stride
        raisable = (1 << (stride * most[rank])) - 1
        stride *= most[rank] + 1
        repeated = stride
        while repeated < points:
            raisable |= raisable << repeated
            repeated *= 2
        instance.raisable[rank] = raisable & ((1 << points) - 1)


@inlined_kernel
def _with_pair(instance: Instance, points: int, rank: int) -> int:
    """What points become by one more pair of a rank and its partner. Those that can't be told from the points
    themselves are left out."""
    lower = min(rank, instance.of_rank.size - 1 - rank)
    return (points & instance.raisable[lower]) << instance.stride[lower]


@kernel
def _find_mates(problem: Problem, instance: Instance, root_mask: int) -> tuple[int, int]:
    """Fill in ``mates`` and lay the grid; returns the places of kings and those that have mates."""
    king, places, ranks, mates = problem.table.ranks, problem.table.places, instance.ranks, instance.mates
    kings = paired = counts = 0
    for place in range(places):
        mates[place] = 0
        rank = 0 + ranks[place]
        if rank == king:
            kings |= 1 << place
        elif (root_mask >> place) & 1:
            counts += one_of(rank)
        for other in range(place + 1, places):
            if rank + ranks[other] == king:
                mates[place] |= 1 << other
                paired |= 1 << place
    _lay_grid(instance, counts, instance.facts[ROOT_STOCK])
    return kings, paired


@kernel
def relax(problem: Problem, instance: Instance) -> None:
    """Fill in ``closed``, ``counts`` and ``pairings`` for the root's shape and those within it."""
    shapes, ranks, king = problem.shapes, instance.ranks, problem.table.ranks
    closed, counts, pairings = instance.closed, instance.counts, instance.pairings
    first_single, single_next, all_exposed = shapes.first_single, shapes.single_next, shapes.exposed
    root, empty = instance.facts[ROOT_SHAPE], shapes.masks.size - 1
    root_mask = shapes.masks[root]
    kings, paired = _find_mates(problem, instance, root_mask)
    closed[empty] = empty
    counts[empty] = 0
    pairings[empty] = 1  # no pairs at all
    for s in range(empty - 1, root - 1, -1):
        if root > 0 and shapes.masks[s] & ~root_mask:
            continue
        exposed, begin = all_exposed[s], first_single[s]
        free = exposed & kings
        if free:  # a king leaves at once; ways out are in the order of their places
            smaller = single_next[begin + count_bits(exposed & ((free & -free) - 1))]
            closed[s], counts[s], pairings[s] = closed[smaller], counts[smaller], pairings[smaller]
            continue
        closed[s] = s
        counts[s] = counts[single_next[begin]] + one_of(0 + ranks[shapes.single_place[begin]])
        points = 0
        for way in range(begin, first_single[s + 1]):
            points |= pairings[single_next[way]]
        left = exposed & paired
        while left:
            place = lowest_bit(left)
            left &= left - 1
            mates = exposed & instance.mates[place]
            while mates:
                mate = mates & -mates
                mates ^= mate
                smaller = single_next[begin + count_bits(exposed & ((1 << place) - 1))]
                smaller = single_next[first_single[smaller] + count_bits(all_exposed[smaller] & (mate - 1))]
                points |= _with_pair(instance, pairings[smaller], 0 + ranks[place])
        if problem.table.overlap:
            for way in range(shapes.first_overlap[s], shapes.first_overlap[s + 1]):
                rank = 0 + ranks[shapes.overlap_place[way]]
                if rank + ranks[shapes.overlap_cover[way]] == king:
                    points |= _with_pair(instance, pairings[shapes.overlap_next[way]], rank)
        pairings[s] = points


@kernel
def prepare(
    problem: Problem, instance: Instance, ranks: NDArray[np.int8], state: NDArray[np.int64], pass_limit: int
) -> bool:
    """Take up a position of a deal: all tables but ``late``; False if there is too little room for the vectors."""
    take_up(problem, instance, ranks, state, pass_limit)
    relax(problem, instance)
    return find_vectors(problem, instance) if problem.vectors else True


@kernel
def take_up(
    problem: Problem, instance: Instance, ranks: NDArray[np.int8], state: NDArray[np.int64], pass_limit: int
) -> None:
    """Take up a position without its tables. Those of an earlier one hold if this one can follow it, and if the deals
    differ in the order of the stock alone: the tables know no order."""
    table, facts, of_rank = problem.table, instance.facts, instance.of_rank
    king, places = table.ranks, table.places
    of_rank[:] = 0
    kings = 0
    for c in range(ranks.size):
        instance.ranks[c] = ranks[c]
        kings += ranks[c] == king
        if c >= places:
            of_rank[ranks[c]] |= 1 << (c - places)
    facts[KINGS] = kings
    facts[OTHERS] = ranks.size - kings
    facts[PASS_LIMIT] = pass_limit
    facts[LATE_FROM] = NEVER_LATE
    # A free king costs nothing: drawing the last card must not end the game, and where steps are counted the king must
    # leave from the stock's top, instead of being turned.
    ahead = (state[STOCK] >> state[2]) << state[2]
    facts[FREE_KINGS] = 0
    if problem.single and not table.end_on_exhausted:
        if problem.question != STEPS:
            facts[FREE_KINGS] = of_rank[king]
        elif table.stock_top and not problem.goal_all:
            facts[FREE_KINGS] = of_rank[king] & ahead
    # Those ahead leave in passing, whatever happens, and so need no place in a position, unless each card counts.
    facts[UNPLACED_KINGS] = facts[FREE_KINGS] & ahead if problem.question < SCORE else 0
    facts[ROOT_STOCK] = state[STOCK] & ~facts[UNPLACED_KINGS]
    facts[ROOT_SHAPE] = shape_of(problem.shapes.masks, problem.shapes.slots, state[0])
