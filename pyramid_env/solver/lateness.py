"""Lateness: until when a shape of the pyramid may still stand, if the pyramid is to be cleared in time.

The stock is a stack that turns over: a stock card lies on top of the waste when it has just been turned, or when all
cards turned after it have left. Those have left two by two: with cards that are gone from the pyramid, whose number
the shape tells, or among themselves. So for each shape and each stock card it is known at which times, at best, the
card can lie on top; and from the smallest shape up, at which time a shape must be left at the latest. The tables forget
which stock cards are used up (that is what relaxation.py counts), and so forbid too little, never too much.

A time is ``pass << 6 | cursor``; the cursor is the next card to turn, as in the rules' kernels.
"""

from __future__ import annotations

from typing import Final

from pyramid_env._numba import kernel
from pyramid_env.bits import highest_bit, lowest_bit
from pyramid_env.rules import LAST_COUNTED_PASS
from pyramid_env.solver.packed import count_of, excess, one_of
from pyramid_env.solver.problem import LATE_FROM, PASS_LIMIT, ROOT_SHAPE, ROOT_STOCK, Instance, Problem

PASS_SHIFT: Final = 6
_CURSORS: Final = (1 << PASS_SHIFT) - 1


@kernel
def time_of(cursor: int, pass_number: int) -> int:
    """The time of a cursor and a pass."""
    return pass_number << PASS_SHIFT | cursor


@kernel
def find_latest(problem: Problem, instance: Instance, first_pass: int) -> None:
    """Fill in ``late`` for clears in pass ``first_pass`` or before, and so on up to the pass limit.

    Without a limit of passes there is no such time, and with several waste piles no such stack: nothing to do.
    """
    facts = instance.facts
    if facts[PASS_LIMIT] > LAST_COUNTED_PASS or problem.table.piles > 1:
        return
    for last_pass in range(first_pass, facts[PASS_LIMIT] + 1):
        _find_latest(problem, instance, last_pass)
    facts[LATE_FROM] = first_pass


@kernel
def _find_latest(problem: Problem, instance: Instance, last_pass: int) -> None:
    shapes, king = problem.shapes, problem.table.ranks
    ranks, closed, counts = instance.ranks, instance.closed, instance.counts
    late = instance.late[last_pass - 1]
    root = instance.facts[ROOT_SHAPE]
    root_mask = shapes.masks[root]
    for s in range(shapes.masks.size - 1, root - 1, -1):
        if shapes.masks[s] & ~root_mask:
            continue
        if shapes.cards[s] == 0:
            late[s] = time_of(_CURSORS, last_pass)
            continue
        if closed[s] != s:
            late[s] = late[closed[s]]
            continue
        latest = 0
        for way in range(shapes.first_pair[s], shapes.first_pair[s + 1]):
            if ranks[shapes.pair_low[way]] + ranks[shapes.pair_high[way]] == king:
                latest = max(latest, late[shapes.pair_next[way]])
        if problem.table.overlap:
            for way in range(shapes.first_overlap[s], shapes.first_overlap[s + 1]):
                if ranks[shapes.overlap_place[way]] + ranks[shapes.overlap_cover[way]] == king:
                    latest = max(latest, late[shapes.overlap_next[way]])
        gone = excess(counts[root], counts[s])
        for way in range(shapes.first_single[s], shapes.first_single[s + 1]):
            after = late[shapes.single_next[way]]
            if after > latest:
                partners = instance.facts[ROOT_STOCK] & instance.of_rank[king - ranks[shapes.single_place[way]]]
                latest = _latest_use(problem, instance, partners, gone, after, latest)
        late[s] = latest


@kernel
def _latest_use(problem: Problem, instance: Instance, partners: int, gone: int, after: int, latest: int) -> int:
    """The latest time, if beyond ``latest``, at which one of the stock cards ``partners`` can be used so that the time
    is no later than ``after``, once the ranks ``gone`` have left the pyramid."""
    while partners:
        k = highest_bit(partners)
        partners ^= 1 << k
        pass_number = after >> PASS_SHIFT
        if time_of(k + 1, pass_number) > after:
            pass_number -= 1
        if pass_number < 1:
            continue
        most = min(after - time_of(0, pass_number), _CURSORS)  # the cursor must not be beyond
        if time_of(most, pass_number) <= latest:
            continue
        # A cursor is possible if every card between k and it can have left; it stands at the first that is left.
        table, places = problem.table, problem.table.places
        king = table.ranks
        ahead = (instance.facts[ROOT_STOCK] >> (k + 1)) << (k + 1)
        left = 0  # packed number of cards passed, by rank
        possible = k + 1
        over = 0  # ranks of which too many have been passed
        while True:
            cursor = lowest_bit(ahead) if ahead else table.stock_size
            if over == 0:
                possible = min(cursor, most)
            if ahead == 0 or cursor >= most:
                break
            ahead &= ahead - 1
            rank = ranks_at(instance, places + cursor)
            if rank != king:
                left += one_of(rank)
                supply = count_of(gone, king - rank)
                if problem.stock_pairs:
                    supply += count_of(left, king - rank)
                    over &= ~(1 << (king - rank))
                    if count_of(left, king - rank) > count_of(gone, rank) + count_of(left, rank):
                        over |= 1 << (king - rank)
                if count_of(left, rank) > supply:
                    over |= 1 << rank
                    if not problem.stock_pairs:
                        break
                else:
                    over &= ~(1 << rank)
        latest = max(latest, time_of(possible, pass_number))
    return latest


@kernel
def ranks_at(instance: Instance, card: int) -> int:
    """The rank of a card as a wide integer."""
    rank: int = 0 + instance.ranks[card]
    return rank
