"""Relaxation: what the pyramid's order alone already forbids, with the stock's order forgotten.

For each shape of the pyramid, dynamic programming from the smallest shape up finds how many pairs *inside the pyramid*
each pair of ranks (ace and queen, two and jack, ...) can give on the way to the clear: a set of maximal vectors. Every
card that finds no partner in the pyramid must find one in the stock. A position none of whose vectors leaves a demand
that its stock can meet is dead: no clear from there, whatever the order.

Counts are packed, five bits a rank from the ace up to the last below the king: four for the number (two decks have
eight cards of a rank) and one as guard for comparisons. A vector holds its number of pairs for either rank of a pair.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import inlined_kernel, kernel
from pyramid_env.bits import count_bits
from pyramid_env.kernels import STOCK
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
    WIDEST,
    Instance,
    Problem,
)
from pyramid_env.solver.shapes import Shapes, shape_of

FIELD: Final = 5
NUMBER: Final = 15
ONES: Final = sum(1 << (FIELD * f) for f in range(12))
GUARDS: Final = 16 * ONES
_EVERY_SECOND: Final = sum(NUMBER << (2 * FIELD * f) for f in range(6))
_SUM_UP: Final = sum(1 << (2 * FIELD * f) for f in range(6))
NEVER_LATE: Final = 1 << 20


@kernel
def one_of(rank: int) -> int:
    """The packed count of one card of a rank below the king's."""
    return 1 << (FIELD * (rank - 1))


@kernel
def count_of(packed: int, rank: int) -> int:
    """The number for a rank."""
    return (packed >> (FIELD * (rank - 1))) & NUMBER


@kernel
def excess(packed: int, other: int) -> int:
    """By how much each number exceeds the other's, 0 where it does not."""
    difference = (packed | GUARDS) - other
    over = difference & GUARDS
    return difference & (over - (over >> (FIELD - 1)))


@kernel
def covers_vector(vector: int, other: int) -> bool:
    """Is every number of ``vector`` at least that of ``other``?"""
    return ((vector | GUARDS) - other) & GUARDS == GUARDS


@kernel
def total(packed: int) -> int:
    """The sum of all numbers: two by two, then all six sums at once by a multiplication."""
    pairs = (packed & _EVERY_SECOND) + ((packed >> FIELD) & _EVERY_SECOND)
    return ((pairs * _SUM_UP) >> (10 * FIELD)) & (2 ** (2 * FIELD) - 1)


@kernel
def mirrored(instance: Instance, packed: int) -> int:
    """The counts with each rank's number in the place of the rank that it makes a pair with."""
    king = instance.of_rank.size - 1
    result = 0
    for rank in range(1, king):
        result |= count_of(packed, rank) << (FIELD * (king - rank - 1))
    return result


@inlined_kernel
def partners(instance: Instance, stock: int) -> int:
    """Packed: for each rank, the number of stock cards that make a pair with it."""
    king = instance.of_rank.size - 1
    packed = 0
    for rank in range(1, king):
        packed |= count_bits(stock & instance.of_rank[king - rank]) << (FIELD * (rank - 1))
    return packed


@inlined_kernel
def can_meet(instance: Instance, shape: int, supply: int) -> bool:
    """False: the pyramid can't be cleared from here, whatever the order of the stock. ``supply`` as of ``partners``."""
    need = excess(instance.counts[shape], supply)
    if need == 0:
        return True
    for at in range(instance.first[shape], instance.first[shape] + instance.size[shape]):
        if covers_vector(instance.vectors[at], need):
            return True
    return False


# ---- the tables ------------------------------------------------------------------------------------------------------


@kernel
def _keep(found: NDArray[np.int64], count: int, vector: int) -> int:
    """Add a vector to a set of maximal ones; returns the new size."""
    at = 0
    while at < count:
        if covers_vector(found[at], vector):
            return count
        if covers_vector(vector, found[at]):
            count -= 1
            found[at] = found[count]
        else:
            at += 1
    found[count] = vector
    return count + 1


@kernel
def _join(vector: int, other: int) -> int:
    """The elementwise maximum of two vectors."""
    return other + excess(vector, other)


@kernel
def _collect(instance: Instance, shape: int, more: int, count: int) -> int:
    """Add all vectors of a smaller shape, each raised by ``more``, to the set found so far."""
    found = instance.found
    for at in range(instance.first[shape], instance.first[shape] + instance.size[shape]):
        count = _keep(found, count, instance.vectors[at] + more)
        if count > WIDEST:
            for other in range(1, count):
                found[0] = _join(found[0], found[other])
            count = 1
    return count


@kernel
def _count_ranks(shapes: Shapes, instance: Instance, root: int) -> None:
    """Fill in ``closed`` and ``counts`` for the root's shape and those within it."""
    king = instance.of_rank.size - 1
    ranks, closed, counts = instance.ranks, instance.closed, instance.counts
    root_mask = shapes.masks[root]
    for s in range(shapes.masks.size - 1, root - 1, -1):
        if shapes.masks[s] & ~root_mask:
            continue
        closed[s] = s
        counts[s] = 0
        for way in range(shapes.first_single[s], shapes.first_single[s + 1]):
            rank, smaller = ranks[shapes.single_place[way]], shapes.single_next[way]
            if rank == king:
                closed[s] = closed[smaller]
                counts[s] = counts[smaller]
                break
            counts[s] = counts[smaller] + one_of(rank)


@kernel
def relax(problem: Problem, instance: Instance) -> bool:
    """Fill in the vectors of the root's shape and those within it; False if there is too little room for them."""
    shapes, king = problem.shapes, problem.table.ranks
    ranks, closed = instance.ranks, instance.closed
    first, size, vectors, found = instance.first, instance.size, instance.vectors, instance.found
    root = instance.facts[ROOT_SHAPE]
    root_mask, last = shapes.masks[root], shapes.masks.size - 1
    used = 0
    for s in range(last, root - 1, -1):
        if shapes.masks[s] & ~root_mask:
            continue
        if closed[s] != s:
            first[s], size[s] = first[closed[s]], size[closed[s]]
            continue
        count = 0
        if s == last:
            found[0] = 0
            count = 1
        begun = -1  # sets that begin at the same place are the same
        inherited = s != last
        for way in range(shapes.first_single[s], shapes.first_single[s + 1]):
            smaller = shapes.single_next[way]
            if first[smaller] != begun:
                inherited = inherited and begun < 0
                begun = first[smaller]
                count = _collect(instance, smaller, 0, count)
        for way in range(shapes.first_pair[s], shapes.first_pair[s + 1]):
            rank = ranks[shapes.pair_low[way]]
            if rank + ranks[shapes.pair_high[way]] == king:
                count = _collect(instance, shapes.pair_next[way], one_of(rank) | one_of(king - rank), count)
                inherited = False
        if problem.table.overlap:
            inherited = False
            for way in range(shapes.first_overlap[s], shapes.first_overlap[s + 1]):
                rank = ranks[shapes.overlap_place[way]]
                if rank + ranks[shapes.overlap_cover[way]] == king:
                    count = _collect(instance, shapes.overlap_next[way], one_of(rank) | one_of(king - rank), count)
        if inherited:
            first[s], size[s] = begun, count
            continue
        if used + count > vectors.size:
            return False
        first[s], size[s] = used, count
        for at in range(count):
            vectors[used + at] = found[at]
        used += count
    return True


@kernel
def prepare(
    problem: Problem, instance: Instance, ranks: NDArray[np.int8], state: NDArray[np.int64], pass_limit: int
) -> bool:
    """Take up a position of a deal: all tables but ``late``; False if there is too little room for the vectors."""
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
    root = shape_of(problem.shapes.masks, problem.shapes.slots, state[0])
    facts[ROOT_SHAPE] = root
    _count_ranks(problem.shapes, instance, root)
    return relax(problem, instance)
