"""Worth: the relaxation for deals that can't be cleared. How far down can the pyramid go, and what is that worth?

As in relaxation.py the stock's order is forgotten, but the way may end at any shape. What lies there needs no partner,
so an end at shape f is like a vector of all its cards: a way from s to f with so many pairs inside the pyramid is
possible if those pairs, together with the cards of f, cover what of s the stock can't serve. Each vector comes with a
worth, from which a bound on the score follows; of two vectors one makes the other needless if it covers it and is worth
at least as much.
"""

from __future__ import annotations

from typing import Final

from pyramid_env._numba import inlined_kernel, kernel
from pyramid_env.rules import MSC_REMOVAL, SCORINGS
from pyramid_env.solver.packed import count_of, covers_vector, excess, one_of, total
from pyramid_env.solver.problem import NEED, ROOT_SHAPE, ROOT_STOCK, WIDEST, Instance, Problem
from pyramid_env.solver.relaxation import partners

LEAST: Final = -(1 << 14)
_PAR: Final = SCORINGS.index("par")
_REMOVAL_POINTS: Final = MSC_REMOVAL


@kernel
def weight_of(problem: Problem) -> int:
    """What two cards that stay cost, half as much as two: cards left count one each, points five a pair."""
    return 2 if problem.table.scoring == _PAR else _REMOVAL_POINTS


@kernel
def left_over(problem: Problem, counts: int) -> int:
    """Pairs that can't leave if cards ``counts`` (packed) stay in the pyramid.

    Where two cards from outside may pair all others can leave; but a card that stays leaves another one without a
    partner. Where they may not, each pair takes a card of the pyramid, and each that stays spares one.
    """
    if not problem.stock_pairs:
        return total(counts)
    king = problem.table.ranks
    pairs = 0
    for rank in range(1, (king + 1) // 2):
        pairs += max(count_of(counts, rank), count_of(counts, king - rank))
    return pairs


@kernel
def end_worth(problem: Problem, instance: Instance, shape: int) -> int:
    """The worth of an end at a shape: points for its rows less what stays."""
    counts = instance.counts[shape]
    kings = problem.shapes.cards[shape] - total(counts)
    worth = -weight_of(problem) * left_over(problem, counts)
    if problem.table.scoring == _PAR:
        return worth - kings
    points: int = problem.shapes.row_points[shape]
    return worth + points - _REMOVAL_POINTS * kings


@kernel
def _keep(instance: Instance, count: int, vector: int, worth: int) -> int:
    """Add a vector to a set; returns the new size. A full set is joined: its maximum forbids less, never too much."""
    found, worths = instance.found, instance.found_worth
    vector -= excess(vector, instance.facts[NEED])
    at = 0
    while at < count:
        if worths[at] >= worth and covers_vector(found[at], vector):
            return count
        if worth >= worths[at] and covers_vector(vector, found[at]):
            count -= 1
            found[at] = found[count]
            worths[at] = worths[count]
        else:
            at += 1
    found[count] = vector
    worths[count] = worth
    count += 1
    if count > WIDEST:
        for other in range(1, count):
            found[0] += excess(found[other], found[0])
            worths[0] = max(worths[0], worths[other])
        count = 1
    return count


@kernel
def _collect(instance: Instance, shape: int, more: int, cost: int, count: int) -> int:
    """Add all vectors of a smaller shape, each raised by ``more``, its worth lowered by ``cost``."""
    for at in range(instance.first[shape], instance.first[shape] + instance.size[shape]):
        count = _keep(instance, count, instance.vectors[at] + more, instance.worths[at] - cost)
    return count


@kernel
def find_worths(problem: Problem, instance: Instance) -> bool:
    """Write over the vectors those of all ends but the clear; False if there is too little room for them."""
    shapes, king = problem.shapes, problem.table.ranks
    ranks, closed = instance.ranks, instance.closed
    first, size = instance.first, instance.size
    root = instance.facts[ROOT_SHAPE]
    # Without pairs in the stock a need never grows: a stock card that leaves takes along the card that needed it.
    need = instance.counts[root]
    if not problem.stock_pairs:
        need = excess(need, partners(instance, instance.facts[ROOT_STOCK]))
    instance.facts[NEED] = need
    root_mask, last = shapes.masks[root], shapes.masks.size - 1
    inner_cost = 0 if problem.stock_pairs else weight_of(problem)
    used = 0
    for s in range(last, root - 1, -1):
        if shapes.masks[s] & ~root_mask:
            continue
        # Kings leave at once, unless the game has ended meanwhile: then even the last king of all may stay.
        if closed[s] != s and s != root and closed[s] != last:
            first[s], size[s] = first[closed[s]], size[closed[s]]
            continue
        count = 0
        if s != last:
            count = _keep(instance, count, instance.counts[s], end_worth(problem, instance, s))
        for way in range(shapes.first_single[s], shapes.first_single[s + 1]):
            count = _collect(instance, 0 + shapes.single_next[way], 0, 0, count)
        for way in range(shapes.first_pair[s], shapes.first_pair[s + 1]):
            rank = ranks[shapes.pair_low[way]]
            if rank + ranks[shapes.pair_high[way]] == king:
                more = one_of(rank) | one_of(king - rank)
                count = _collect(instance, 0 + shapes.pair_next[way], more, inner_cost, count)
        if problem.table.overlap:
            for way in range(shapes.first_overlap[s], shapes.first_overlap[s + 1]):
                rank = ranks[shapes.overlap_place[way]]
                if rank + ranks[shapes.overlap_cover[way]] == king:
                    more = one_of(rank) | one_of(king - rank)
                    count = _collect(instance, 0 + shapes.overlap_next[way], more, inner_cost, count)
        if used + count > instance.vectors.size:
            return False
        first[s], size[s] = used, count
        for at in range(count):
            instance.vectors[used + at] = instance.found[at]
            instance.worths[used + at] = instance.found_worth[at]
        used += count
    return True


@inlined_kernel
def best_worth(instance: Instance, shape: int, supply: int) -> int:
    """The most that an end is worth that the stock can still serve, LEAST if there is none (all is cleared)."""
    need = excess(instance.counts[shape], supply)
    need -= excess(need, instance.facts[NEED])
    best = LEAST
    for at in range(instance.first[shape], instance.first[shape] + instance.size[shape]):
        if instance.worths[at] > best and covers_vector(instance.vectors[at], need):
            best = instance.worths[at]
    return best
