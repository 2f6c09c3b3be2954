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
from pyramid_env.bits import highest_bit
from pyramid_env.rules import LAST_COUNTED_PASS
from pyramid_env.solver.packed import covers_vector, excess, mirrored, one_of
from pyramid_env.solver.problem import LATE_FROM, PASS_LIMIT, ROOT_SHAPE, ROOT_STOCK, Instance, Problem
from pyramid_env.solver.relaxation import partners

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
    find_burdens(problem, instance)
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
    all_turned = instance.turned[problem.table.stock_size]
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
        gone = excess(counts[root], counts[s])
        if not covers_vector(all_turned, surplus_of(gone, king)):
            late[s] = latest  # it can't be reached
            continue
        for way in range(shapes.first_pair[s], shapes.first_pair[s + 1]):
            if ranks[shapes.pair_low[way]] + ranks[shapes.pair_high[way]] == king:
                latest = max(latest, late[shapes.pair_next[way]])
        if problem.table.overlap:
            for way in range(shapes.first_overlap[s], shapes.first_overlap[s + 1]):
                if ranks[shapes.overlap_place[way]] + ranks[shapes.overlap_cover[way]] == king:
                    latest = max(latest, late[shapes.overlap_next[way]])
        for way in range(shapes.first_single[s], shapes.first_single[s + 1]):
            after = late[shapes.single_next[way]]
            if after > latest:
                mates = instance.facts[ROOT_STOCK] & instance.of_rank[king - ranks[shapes.single_place[way]]]
                latest = _latest_use(problem, instance, mates, gone, after, latest)
        late[s] = latest


@kernel
def _latest_use(problem: Problem, instance: Instance, mates: int, gone: int, after: int, latest: int) -> int:
    """The latest time, if beyond ``latest``, at which one of the stock cards ``mates`` can be used so that the time
    is no later than ``after``, once the ranks ``gone`` have left the pyramid."""
    while mates:
        k = highest_bit(mates)
        mates ^= 1 << k
        pass_number = after >> PASS_SHIFT
        if time_of(k + 1, pass_number) > after:
            pass_number -= 1
        if pass_number < 1:
            continue
        most = min(after - time_of(0, pass_number), _CURSORS)  # the cursor must not be beyond
        if time_of(most, pass_number) <= latest:
            continue
        # A cursor is possible if every card between k and it can have left.
        for c in range(min(most, problem.table.stock_size), k, -1):
            time = time_of(c, pass_number)
            if time <= latest:
                break
            if covers_vector(gone, instance.burdens[k, c]):
                latest = time
                break
    return latest


@kernel
def find_burdens(problem: Problem, instance: Instance) -> None:
    """Fill in ``turned`` and ``burdens``.

    ``turned``: for each cursor of the first pass, packed, the partners that may have served by then.
    ``burdens``: for stock card k and cursor c > k the cards between them, packed by the ranks that must have gone from
    the pyramid before these can have left. Kings leave alone. Where the rules let cards leave in pairs outside the
    pyramid, two of the cards between may have.
    """
    table, burdens = problem.table, instance.burdens
    root_stock, king, size = instance.facts[ROOT_STOCK], table.ranks, table.stock_size
    for c in range(size + 1):
        instance.turned[c] = partners(instance, root_stock & ((1 << c) - 1))
    for k in range(size):
        between = mates = 0
        for c in range(k + 1, size + 1):
            burdens[k, c] = excess(mates, between) if problem.stock_pairs else mates
            if c < size and (root_stock >> c) & 1:
                rank = 0 + instance.ranks[table.places + c]
                if rank != king:
                    between += one_of(rank)
                    mates += one_of(king - rank)


@kernel
def surplus_of(gone: int, king: int) -> int:
    """Of the cards gone from the pyramid those that stock cards must have taken away, packed."""
    return excess(gone, mirrored(gone, king))
