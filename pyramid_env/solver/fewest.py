"""Fewest: how many steps must follow at the least, where the passes are limited and one card is drawn at a time.

Three tables by the shape of the pyramid and the time, made by dynamic programming from the smallest shape up and from
the last moment back, over all ways to play on in which a stock card may be used more than once:

    ahead   the fewest steps if each removal, each recycle and each card turned in the first pass is a step, while the
            cards of later passes are turned for nothing (those used by then need no turning)
    extra   the same if in later passes the stock's top may be used for nothing, too: then the cards that a position is
            known to turn in later passes can be added
    ends    the soonest moment of the clear: it tells which cards those are

No line takes fewer steps than either sum. When a stock card can lie on top of the waste is told as in lateness.py: all
cards turned after it must have left, with cards that are gone from the pyramid, whose number the shape tells, or among
themselves. And a shape can't be reached before as many partners have been turned as the cards gone from it need.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import inlined_kernel, kernel
from pyramid_env.bits import count_bits, lowest_bit
from pyramid_env.kernels import Table
from pyramid_env.solver.bounds import FAR, NO_WAY, fewest_inner_pairs, stuck_waste
from pyramid_env.solver.lateness import find_burdens, surplus_of
from pyramid_env.solver.packed import (
    FIELD,
    NUMBER,
    count_of,
    covers_vector,
    excess,
    total,
)
from pyramid_env.solver.positions import below
from pyramid_env.solver.problem import EARLIEST, FIRST_PASS, PASS_LIMIT, ROOT_SHAPE, ROOT_STOCK, Instance, Problem
from pyramid_env.solver.relaxation import can_meet

NEVER: Final = 1 << 12
"""In the tables: there is no way. More steps than any line has."""


@inlined_kernel
def moment_of(table: Table, cursor: int, pass_number: int) -> int:
    """The column of a time in the tables."""
    return (pass_number - 1) * (table.stock_size + 1) + cursor


@inlined_kernel
def has_tables(instance: Instance) -> bool:
    """Are these rules for which the tables are made?"""
    return instance.ahead.shape[1] > 0


# ---- bounds ----------------------------------------------------------------------------------------------------------


@inlined_kernel
def steps_ahead(problem: Problem, instance: Instance, shape: int, cursor: int, pass_number: int) -> int:
    """No win takes fewer further steps; NEVER or more: there is no win. 0 where there are no tables."""
    return 0 + instance.ahead[shape, moment_of(problem.table, cursor, pass_number)] if has_tables(instance) else 0


@inlined_kernel
def careful_steps_ahead(
    problem: Problem,
    instance: Instance,
    shape: int,
    stock: int,
    cursor: int,
    pass_number: int,
    supply: int,
    most: int,
) -> int:
    """As ``steps_ahead``, with what the position's stock tells; NO_WAY: no win, or none within ``most`` steps.

    For each vector of relaxation.py the pyramid's demand tells how far the stock has to be turned, now or in the next
    pass. ``supply`` as of ``partners``.
    """
    table = problem.table
    moment = moment_of(table, cursor, pass_number)
    least = 0 + instance.ahead[shape, moment]
    end = 0 + instance.ends[shape, moment]
    if end >= NEVER or least > most:
        return NO_WAY
    end_pass, end_cursor = end // (table.stock_size + 1) + 1, end % (table.stock_size + 1)
    extra = 0 + instance.extra[shape, moment]
    later = pass_number > instance.facts[FIRST_PASS]  # so that ``extra`` leaves out what this pass turns
    ahead = stock & ~below(cursor)
    stuck = stuck_waste(problem, instance, shape, stock, cursor)
    loose = stock & below(cursor) & ~stuck
    if end_pass > pass_number or later:
        turns = _turns(ahead, stuck, end_pass - pass_number, end_cursor, later)
        least = max(least, extra + turns)
        if least > most:
            return NO_WAY
    counts = instance.counts[shape]
    others = total(counts)
    kings = problem.shapes.cards[shape] - others
    need = excess(counts, supply)
    inner_least = fewest_inner_pairs(problem, need)
    fewest = FAR
    for at in range(instance.first[shape], instance.first[shape] + instance.size[shape]):
        if fewest <= least:
            break  # it can't become more than ``least``
        vector = instance.vectors[at]
        if not covers_vector(vector, need):
            continue
        passes, until = _served(problem, instance, excess(counts, vector), loose, ahead, stuck)
        if passes < end_pass - pass_number:
            passes, until = end_pass - pass_number, end_cursor
        elif passes == end_pass - pass_number:
            until = max(until, end_cursor)
        # The stock's top can be used unturned, so each pair with a stock card may have saved a turn.
        turned = count_bits(ahead & below(until - table.stock_top)) if passes == 0 and until > 0 else 0
        if passes > 0:
            turned = count_bits(ahead) + _turns(ahead, stuck, passes, until, False)
        inner = total(vector) // 2
        if table.stock_top:
            inner = min(max((others - turned) // 2, inner_least), inner)
            value = max(others - inner, turned + inner)
        else:
            value = others - inner + turned
        value += kings + passes
        if passes > 0 or later:
            value = max(value, extra + _turns(ahead, stuck, passes, until, later))
        fewest = min(fewest, value)
    return NO_WAY if fewest == FAR else max(fewest, least)


@inlined_kernel
def _turns(ahead: int, stuck: int, passes: int, until: int, later: bool) -> int:
    """Cards that are turned, or leave from the stock's top, until the cursor comes to ``until`` some passes from now:
    those of this pass if it is ``later`` than the first, and those in the waste that can only be turned again."""
    turned = 0
    if passes == 0:
        turned = count_bits(ahead & below(until)) if later else 0
    else:
        turned = count_bits(ahead) if later else 0
        turned += count_bits(stuck & below(until)) if passes == 1 else count_bits(stuck)
    return turned


@inlined_kernel
def _served(problem: Problem, instance: Instance, demand: int, loose: int, ahead: int, stuck: int) -> tuple[int, int]:
    """When the stock has served a demand (packed, by the rank served) at the soonest: passes from now, and a cursor.

    The waste's cards ``loose`` may serve at once, then those ahead in their order, then in the next pass those stuck.
    """
    king = problem.table.ranks
    now = 0
    then = 0
    left = demand
    while left:
        rank = lowest_bit(left) // FIELD + 1
        cards = instance.of_rank[king - rank]
        missing = count_of(left, rank) - count_bits(cards & loose)
        left &= ~(NUMBER << (FIELD * (rank - 1)))
        if missing <= 0:
            continue
        coming = cards & ahead
        here = count_bits(coming) >= missing
        if not here:
            missing -= count_bits(coming)
            coming = cards & stuck
        while missing > 1:
            coming &= coming - 1
            missing -= 1
        if here:
            now = max(now, lowest_bit(coming) + 1)
        else:
            then = max(then, lowest_bit(coming) + 1)
    return (1, then) if then else (0, now)


# ---- the tables ------------------------------------------------------------------------------------------------------


@kernel
def find_fewest(problem: Problem, instance: Instance, first_pass: int) -> None:
    """Fill in the tables for the root's shape and those within it, and a root in pass ``first_pass``."""
    instance.facts[FIRST_PASS] = first_pass
    find_burdens(problem, instance)
    _fill(problem, instance, instance.ahead, 1, 1, 0)
    _fill(problem, instance, instance.extra, 1, 0, 0)
    _fill(problem, instance, instance.ends, 0, 0, 1)


@kernel
def _fill(
    problem: Problem, instance: Instance, fewest: NDArray[np.int16], step: int, later_top: int, by_moment: int
) -> None:
    """Fill in a table.

    Args:
        fewest: (N, times) the table.
        step: what a removal, a recycle, and a card turned in the first pass cost.
        later_top: what the removal of the stock's top costs in later passes.
        by_moment: 1: the clear costs the moment at which it comes; 0: nothing.
    """
    table, shapes, facts = problem.table, problem.shapes, instance.facts
    ranks, closed, counts, burdens = instance.ranks, instance.closed, instance.counts, instance.burdens
    king, size = table.ranks, table.stock_size
    root = facts[ROOT_SHAPE]
    root_mask, root_stock = shapes.masks[root], facts[ROOT_STOCK]
    first, last = moment_of(table, 0, facts[FIRST_PASS]), moment_of(table, size, facts[PASS_LIMIT])
    width = size + 1
    for s in range(shapes.masks.size - 1, root - 1, -1):
        if shapes.masks[s] & ~root_mask:
            continue
        if shapes.cards[s] == 0:
            early = moment_of(table, 0, facts[EARLIEST])
            for t in range(first, last + 1):
                fewest[s, t] = NEVER if t < early else by_moment * t
            continue
        if closed[s] != s:
            smaller, steps = 0 + closed[s], step * (shapes.cards[s] - shapes.cards[closed[s]])
            for t in range(first, last + 1):
                fewest[s, t] = min(fewest[smaller, t] + steps, NEVER)
            continue
        for t in range(first, last + 1):
            fewest[s, t] = NEVER
        gone = excess(counts[root], counts[s])
        surplus = surplus_of(gone, king)
        if not covers_vector(instance.turned[size], surplus) or not can_meet(problem, instance, s, root_stock):
            continue
        soonest = 0  # cursor of the first pass
        while not covers_vector(instance.turned[soonest], surplus):
            soonest += 1
        for way in range(shapes.first_pair[s], shapes.first_pair[s + 1]):
            if ranks[shapes.pair_low[way]] + ranks[shapes.pair_high[way]] == king:
                smaller = 0 + shapes.pair_next[way]
                for t in range(first, last + 1):
                    fewest[s, t] = min(fewest[s, t], fewest[smaller, t] + step)
        if table.overlap:
            for way in range(shapes.first_overlap[s], shapes.first_overlap[s + 1]):
                if ranks[shapes.overlap_place[way]] + ranks[shapes.overlap_cover[way]] == king:
                    smaller = 0 + shapes.overlap_next[way]
                    for t in range(first, last + 1):
                        fewest[s, t] = min(fewest[s, t], fewest[smaller, t] + step)
        for way in range(shapes.first_single[s], shapes.first_single[s + 1]):
            smaller = 0 + shapes.single_next[way]
            mates = root_stock & instance.of_rank[king - ranks[shapes.single_place[way]]]
            while mates:
                k = lowest_bit(mates)
                mates &= mates - 1
                if table.stock_top:
                    top = step
                    for t in range(first + k, last, width):
                        fewest[s, t] = min(fewest[s, t], fewest[smaller, t + 1] + top)
                        top = later_top
                for c in range(k + 1, width):
                    if covers_vector(gone, burdens[k, c]):
                        for t in range(first + c, last + 1, width):
                            fewest[s, t] = min(fewest[s, t], fewest[smaller, t] + step)
        # Waiting, from the last moment back.
        best = NEVER
        for begin in range(last - size, first, -width):
            for t in range(begin + size, begin - 1, -1):
                best = min(best, fewest[s, t])
                fewest[s, t] = best
            best += step
        for c in range(size, -1, -1):
            best = min(best + step * ((root_stock >> c) & 1), fewest[s, first + c], NEVER)
            fewest[s, first + c] = best if c >= soonest else NEVER
