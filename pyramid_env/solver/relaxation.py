"""Relaxation: what the pyramid's order alone already forbids, with the stock's order forgotten.

For each shape of the pyramid, dynamic programming from the smallest shape up finds how many pairs *inside the pyramid*
each pair of ranks (ace and queen, two and jack, ...) can give on the way to the clear: a set of maximal vectors. Every
card that finds no partner in the pyramid must find one in the stock. A position none of whose vectors leaves a demand
that its stock can meet is dead: no clear from there, whatever the order.

Vectors are packed, five bits a rank pair: four for the number (two decks have eight cards of a rank) and one as guard
for the comparison; the sum of the numbers stands above them, from bit 32.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.kernels import Table, lowest_bit
from pyramid_env.solver.shapes import Shapes, shape_of

FIELD: Final = 5
RANK_PAIRS: Final = 6
GUARDS: Final = sum(16 << (FIELD * pair) for pair in range(RANK_PAIRS))
SUM_SHIFT: Final = 32
_ONE_MORE: Final = 1 << SUM_SHIFT
_WIDEST: Final = 256
"""Vectors kept for one shape (a dozen is usual); where there are more, their elementwise maximum stands for all of
them, which forbids less and is never wrong."""


class Relaxation(NamedTuple):
    """The tables of one deal, by shape."""

    first: NDArray[np.int64]  # (N,) where a shape's vectors begin
    size: NDArray[np.int64]  # (N,) how many they are
    vectors: NDArray[np.int64]  # (V,) packed maximal vectors
    low: NDArray[np.int64]  # (N,) packed number of pyramid cards of the lower rank of each pair
    high: NDArray[np.int64]  # (N,) the same for the higher rank
    closed: NDArray[np.int64]  # (N,) the shape after all kings that can leave have left


@kernel
def rank_pair(rank: int, king: int) -> int:
    """The number of the rank's pair, from 0; meaningless for kings."""
    return min(rank, king - rank) - 1


@kernel
def covers_vector(vector: int, other: int) -> bool:
    """Is every number of ``vector`` at least that of ``other``?"""
    return ((vector | GUARDS) - (other & 0xFFFFFFFF)) & GUARDS == GUARDS


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
    joined = 0
    total = 0
    for pair in range(RANK_PAIRS):
        number = max((vector >> (FIELD * pair)) & 15, (other >> (FIELD * pair)) & 15)
        joined |= number << (FIELD * pair)
        total += number
    return joined | (total << SUM_SHIFT)


@kernel
def _collect(tables: Relaxation, shape: int, more: int, found: NDArray[np.int64], count: int) -> int:
    """Add all vectors of a smaller shape, each raised by ``more``."""
    for at in range(tables.first[shape], tables.first[shape] + tables.size[shape]):
        count = _keep(found, count, tables.vectors[at] + more)
        if count > _WIDEST:
            for other in range(1, count):
                found[0] = _join(found[0], found[other])
            count = 1
    return count


@kernel
def relax(table: Table, shapes: Shapes, ranks: NDArray[np.int8], out: Relaxation) -> int:
    """Fill the tables of one deal; returns the number of vectors, or -1 if ``out.vectors`` is too small."""
    king = table.ranks
    found = np.empty(_WIDEST + 2, np.int64)
    used = 0
    for shape in range(shapes.masks.size - 1, -1, -1):
        mask, exposed = shapes.masks[shape], shapes.exposed[shape]
        out.first[shape] = used
        out.closed[shape] = shape
        count = 0
        if mask == 0:
            found[0] = 0
            count = 1
            out.low[shape] = 0
            out.high[shape] = 0
        left = exposed
        while left:
            bit = left & -left
            left ^= bit
            i = lowest_bit(bit)
            rank = int(ranks[i])
            without = shape_of(shapes.masks, shapes.slots, mask ^ bit)
            if rank == king:  # leaves at once: nothing else needs looking at
                out.closed[shape] = out.closed[without]
                out.low[shape] = out.low[without]
                out.high[shape] = out.high[without]
                count = _collect(out, without, 0, found, 0)
                break
            pair = rank_pair(rank, king)
            one = 1 << (FIELD * pair)
            out.low[shape] = out.low[without] + (one if rank == pair + 1 else 0)
            out.high[shape] = out.high[without] + (0 if rank == pair + 1 else one)
            count = _collect(out, without, 0, found, count)
            others = left
            if table.overlap:
                others |= _alone_under(table, mask, bit)
            while others:
                other = others & -others
                others ^= other
                if rank + ranks[lowest_bit(other)] == king:
                    smaller = shape_of(shapes.masks, shapes.slots, mask ^ bit ^ other)
                    count = _collect(out, smaller, one + _ONE_MORE, found, count)
        if used + count > out.vectors.size:
            return -1
        for at in range(count):
            out.vectors[used + at] = found[at]
        out.size[shape] = count
        used += count
    return used


@kernel
def _alone_under(table: Table, pyramid: int, cover: int) -> int:
    """Bits of the places whose only cover left is the exposed card ``cover`` (one bit): the overlap rule's partners."""
    places = 0
    for i in range(table.places):
        if (pyramid >> i) & 1 and table.covers[i] & pyramid == cover:
            places |= 1 << i
    return places


def build_relaxation(table: Table, shapes: Shapes, ranks: NDArray[np.int8]) -> Relaxation:
    """The tables of a deal."""
    count = shapes.masks.size
    room = 8 * count
    while True:
        out = Relaxation(*(np.empty(n, np.int64) for n in (count, count, room, count, count, count)))
        if relax(table, shapes, ranks, out) >= 0:
            return out
        room *= 2
