"""Vectors: how many pairs a pyramid can give on the way to the clear, rank by rank, where a grid is too coarse.

The same dynamic programming as in relaxation.py, with a set of maximal vectors for each shape in place of the points of
a grid: slower, but nothing is cut off. A vector is packed and holds its number of pairs for either rank of a pair.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import inlined_kernel, kernel
from pyramid_env.solver.packed import covers_vector, excess, one_of
from pyramid_env.solver.problem import ROOT_SHAPE, WIDEST, Instance, Problem


@inlined_kernel
def has_vector(instance: Instance, shape: int, need: int) -> bool:
    """Can a shape give as many pairs as ``need`` (packed)?"""
    if need == 0:
        return True
    for at in range(instance.first[shape], instance.first[shape] + instance.size[shape]):
        if covers_vector(instance.vectors[at], need):
            return True
    return False


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
def find_vectors(problem: Problem, instance: Instance) -> bool:
    """Fill in the vectors of the root's shape and those within it; False if there is too little room for them.

    ``closed`` and ``counts`` must be there.
    """
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
