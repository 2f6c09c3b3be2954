"""Expand: from one position straight to every position after the next removal, the draws before it done on the way.

``expand_walk`` does it for all rules by walking: draw by draw through the rest of this pass and one whole next pass
(later passes offer the same again), asking the rules' kernels for the removals at each stop.

``expand_single`` gives the same for one card a draw onto one pile without the walk: there a stock card's turn comes
when the cursor reaches it, the top of the waste is at hand now, and a deeper waste card comes back in the next pass.
Free kings (see Instance) leave on the way whenever the cursor passes them.

Both write the positions that follow as rows of ``out``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import inlined_kernel, kernel
from pyramid_env.bits import count_bits, highest_bit, lowest_bit
from pyramid_env.kernels import apply, is_finished, list_removals, next_card, top_card, turn
from pyramid_env.moves import Kind
from pyramid_env.rules import LAST_COUNTED_PASS
from pyramid_env.solver.positions import below, next_left, top_below
from pyramid_env.solver.problem import FREE_KINGS, PASS_LIMIT, SCORE, STEPS, Instance, Problem
from pyramid_env.solver.shapes import shape_of

SHAPE: Final = 0
STOCK: Final = 1
CURSOR: Final = 2
PASS: Final = 3
COST: Final = 4
FIRST: Final = 5
SECOND: Final = 6
CHILD_COLUMNS: Final = 7
"""Columns of a child: a position, the steps that lead to it, and the stock cards that left (-1: none)."""

MOST_CHILDREN: Final = 8192
MOST_REMOVALS: Final = 1024
"""Room for the removals of one position: even with a pile for each stock card of two decks they are fewer than 400."""

_NOW: Final = 0
_STOCK_TOP: Final = 1
_WASTE_TOP: Final = 2
"""When stock cards leave: without a draw, or when next the last of them is the stock's top, or the waste's."""

_PLACE_PAIR: Final = int(Kind.PLACE_PAIR)
_PLACE_KING: Final = int(Kind.PLACE_KING)
_SATURATED: Final = LAST_COUNTED_PASS

Children = NDArray[np.int64]  # (MOST_CHILDREN, CHILD_COLUMNS)


@inlined_kernel
def later_pass(problem: Problem, instance: Instance, pass_number: int) -> int:
    """The pass after a recycle, 0 if no recycle is allowed."""
    if pass_number >= instance.facts[PASS_LIMIT]:
        return 0
    return min(pass_number + 1, _SATURATED) if problem.table.passes == 0 else pass_number + 1


@inlined_kernel
def _put(
    out: Children, count: int, shape: int, stock: int, cursor: int, pass_number: int, cost: int, first: int, second: int
) -> int:
    out[count, SHAPE] = shape
    out[count, STOCK] = stock
    out[count, CURSOR] = cursor
    out[count, PASS] = pass_number
    out[count, COST] = cost
    out[count, FIRST] = first
    out[count, SECOND] = second
    return count + 1


# ---- kings -----------------------------------------------------------------------------------------------------------


@kernel
def close_waste(free_kings: int, stock: int, cursor: int) -> int:
    """The stock mask after the free kings on top of the single waste pile have left."""
    while True:
        top = top_below(stock, cursor)
        if top < 0 or not (free_kings >> top) & 1:
            return stock
        stock ^= 1 << top


@kernel
def close_piles(problem: Problem, instance: Instance, stock: int, cursor: int) -> int:
    """The stock mask after the kings on top of any pile have left: in the last pass no later draw depends on them."""
    kings = instance.of_rank[problem.table.ranks]
    piles = problem.table.piles
    for pile in range(piles):
        while True:
            top = top_card(stock, cursor, pile, piles)
            if top < 0 or not (kings >> top) & 1:
                break
            stock ^= 1 << top
    return stock


# ---- all rules -------------------------------------------------------------------------------------------------------


@kernel
def expand_walk(
    problem: Problem,
    instance: Instance,
    shape: int,
    stock: int,
    cursor: int,
    pass_number: int,
    actions: NDArray[np.int64],
    out: Children,
) -> int:
    """Write the positions after each next removal into ``out``; return how many. ``actions`` is scratch space."""
    table, shapes = problem.table, problem.shapes
    size = table.stock_size
    pyramid = shapes.masks[shape]
    count = 0
    draws = 0
    recycled = False
    while not is_finished(table, pyramid, stock, cursor, pass_number):
        closes = problem.close_piles and pass_number == table.passes
        if closes:
            before = stock
            stock = close_piles(problem, instance, stock, cursor)
            if stock != before and (problem.goal_all or problem.question == SCORE):
                count = _put(out, count, shape, stock, cursor, pass_number, draws + 1, -1, -1)
        found = list_removals(table, instance.ranks, pyramid, stock, cursor, actions)
        for a in range(found):
            if draws > 0 and table.moves[actions[a], 0] in (_PLACE_PAIR, _PLACE_KING):
                continue  # needs no waiting
            after = apply(table, pyramid, stock, cursor, pass_number, 0, actions[a])
            taken = stock & ~after[1]
            first = lowest_bit(taken) if taken else -1
            taken &= taken - 1
            second = lowest_bit(taken) if taken else -1
            kept = after[1]
            if closes and not is_finished(table, after[0], after[1], after[2], after[3]):
                kept = close_piles(problem, instance, kept, after[2])
            smaller = shape_of(shapes.masks, shapes.slots, after[0])
            count = _put(out, count, smaller, kept, after[2], after[3], draws + 1, first, second)
        if cursor < size:
            cursor = turn(stock, cursor, table.draw_count, size)
        else:
            later = later_pass(problem, instance, pass_number)
            if later == 0 or stock == 0 or recycled:
                break
            recycled = True
            pass_number = later
            cursor = next_card(stock, 0, size)
        draws += 1
    return count


# ---- one card a draw, one pile ---------------------------------------------------------------------------------------


@inlined_kernel
def has_twin(problem: Problem, instance: Instance, stock: int, top: int, cursor: int, k: int, before: int) -> bool:
    """Does the stock card ``before`` (-1: none) make the use of card k, which is not the waste top, needless?

    It does if it has the same rank and can be played sooner, and if nothing lies between them (or only what leaves with
    either): once k has been drawn too, the cards left show the same ranks in the same order.
    """
    if before < 0 or not problem.one_label or problem.table.end_on_exhausted:
        return False
    places, ranks = problem.table.places, instance.ranks
    return ranks[places + before] == ranks[places + k] and (before >= cursor or before == top or k < cursor)


@inlined_kernel
def expand_single(
    problem: Problem, instance: Instance, shape: int, stock: int, cursor: int, pass_number: int, out: Children
) -> int:
    """As expand_walk, for one card a draw onto one pile."""
    table = problem.table
    if table.end_on_exhausted and pass_number == table.passes and cursor >= table.stock_size:
        return 0
    # First which cards may leave, then, in the same rows, the position after each.
    listed = _list_leaving(problem, instance, shape, stock, cursor, pass_number, out)
    count = 0
    for c in range(listed):
        smaller, how = out[c, SHAPE], out[c, COST]
        first, second = out[c, FIRST], out[c, SECOND]
        if how == _NOW:
            count = _leave_now(problem, instance, smaller, stock, cursor, pass_number, first, second, out, count)
        else:
            top = how == _STOCK_TOP
            count = _leave(problem, instance, smaller, stock, cursor, pass_number, first, second, top, out, count)
    return count


@inlined_kernel
def _list_leaving(
    problem: Problem, instance: Instance, shape: int, stock: int, cursor: int, pass_number: int, out: Children
) -> int:
    """List the cards that may leave next: the shape without those of the pyramid, those of the stock, and when."""
    table, shapes, ranks = problem.table, problem.shapes, instance.ranks
    king = table.ranks
    count = 0
    for way in range(shapes.first_pair[shape], shapes.first_pair[shape + 1]):
        if ranks[shapes.pair_low[way]] + ranks[shapes.pair_high[way]] == king:
            count = _list(out, count, 0 + shapes.pair_next[way], -1, -1, _NOW)
    if table.overlap:
        for way in range(shapes.first_overlap[shape], shapes.first_overlap[shape + 1]):
            if ranks[shapes.overlap_place[way]] + ranks[shapes.overlap_cover[way]] == king:
                count = _list(out, count, 0 + shapes.overlap_next[way], -1, -1, _NOW)
    top = top_below(stock, cursor)
    later = later_pass(problem, instance, pass_number)
    turned = _STOCK_TOP if table.stock_top else _WASTE_TOP
    for way in range(shapes.first_single[shape], shapes.first_single[shape + 1]):
        rank = ranks[shapes.single_place[way]]
        smaller = 0 + shapes.single_next[way]
        if rank == king:  # only an apex that need not leave at once
            count = _list(out, count, smaller, -1, -1, _NOW)
            continue
        partners = stock & instance.of_rank[king - rank]
        while partners:
            k = lowest_bit(partners)
            partners &= partners - 1
            if k == top:
                count = _list(out, count, smaller, k, -1, _NOW)
            elif (k >= cursor or later) and not has_twin(
                problem, instance, stock, top, cursor, k, highest_bit(stock & below(k))
            ):
                count = _list(out, count, smaller, k, -1, turned)
    # Free kings outside the pyramid leave in passing: the only choice is to walk on to the next one.
    kings = stock & instance.of_rank[king]
    if problem.question == STEPS:
        kings &= ~instance.facts[FREE_KINGS]
    elif kings and instance.facts[FREE_KINGS]:
        ahead = kings & ~below(cursor)
        kings = ahead & -ahead if ahead else kings & -kings
    while kings:
        k = lowest_bit(kings)
        kings &= kings - 1
        count = _list(out, count, shape, k, -1, _NOW if k == top else turned)
    if problem.stock_pairs:
        behind = stock & below(cursor)
        count = _list_pairs(problem, instance, shape, stock, cursor, stock & ~behind, top, out, count)
        under = top_below(stock, top) if top >= 0 else -1
        if table.waste_two and under >= 0 and ranks[table.places + under] + ranks[table.places + top] == king:
            count = _list(out, count, shape, top, under, _NOW)
        count = _list_pairs(problem, instance, shape, stock, cursor, behind, -1, out, count)
    return count


@inlined_kernel
def _list(out: Children, count: int, shape: int, first: int, second: int, how: int) -> int:
    out[count, SHAPE] = shape
    out[count, COST] = how
    out[count, FIRST] = first
    out[count, SECOND] = second
    return count + 1


@inlined_kernel
def _list_pairs(
    problem: Problem,
    instance: Instance,
    shape: int,
    stock: int,
    cursor: int,
    coming: int,
    under: int,
    out: Children,
    count: int,
) -> int:
    """List two cards from outside the pyramid, one of ``coming`` and the one under it, the first of all on ``under``:
    neighbours among the cards left, the kings between them gone by then."""
    table, ranks = problem.table, instance.ranks
    top = top_below(stock, cursor)
    turned = _STOCK_TOP if table.stock_waste else _WASTE_TOP
    before = -1
    left = coming & ~instance.facts[FREE_KINGS]
    while left:
        k = lowest_bit(left)
        left &= left - 1
        pairs = under >= 0 and ranks[table.places + under] + ranks[table.places + k] == table.ranks
        if pairs and not has_twin(problem, instance, stock, top, cursor, k, before):
            count = _list(out, count, shape, k, under, turned)
        before = under
        under = k
    return count


@inlined_kernel
def _leave_now(
    problem: Problem,
    instance: Instance,
    shape: int,
    stock: int,
    cursor: int,
    pass_number: int,
    first: int,
    second: int,
    out: Children,
    count: int,
) -> int:
    """Cards of the pyramid alone leave, or with the uppermost waste card or cards, which may also leave alone."""
    cards = (1 << first if first >= 0 else 0) | (1 << second if second >= 0 else 0)
    free = instance.facts[FREE_KINGS]
    kept = stock & ~cards
    if (
        cards and free and (problem.shapes.cards[shape] > 0 or problem.table.goal_all)
    ):  # a clear may have ended the game
        kept = close_waste(free, kept, cursor)
    return _put(out, count, shape, kept, cursor, pass_number, 1, first, second)


@inlined_kernel
def _leave(
    problem: Problem,
    instance: Instance,
    shape: int,
    stock: int,
    cursor: int,
    pass_number: int,
    k: int,
    second: int,
    from_stock: bool,
    out: Children,
    count: int,
) -> int:
    """Stock card k leaves, and with it another if ``second`` is not -1, when next the stock's top is k
    (``from_stock``), or was k a draw ago."""
    table = problem.table
    ahead = stock & ~below(cursor)
    free = instance.facts[FREE_KINGS]
    cards = 1 << k
    if second >= 0:
        cards |= 1 << second
    if k >= cursor:
        draws = count_bits(ahead & below(k))
        passing = free & ahead
        passed = 0
    else:
        later = later_pass(problem, instance, pass_number)
        if later == 0:
            return count
        pass_number = later
        draws = count_bits(ahead) + 1 + count_bits(stock & below(k))
        passing = free & stock
        passed = passing & ahead
    counted = problem.question == STEPS  # then a king leaves only when the cursor goes beyond it
    after = next_left(stock if counted else stock & ~passing, k + 1, table.stock_size)
    if not from_stock:
        draws += 1
        if table.end_on_exhausted and pass_number == table.passes and after >= table.stock_size:
            return count
    goes_on = problem.shapes.cards[shape] > 0 or table.goal_all
    until = after if goes_on and not counted else k  # no king leaves after a clear that ends the game
    kept = stock & ~cards & ~passed & ~(passing & below(until))
    if goes_on and free and k >= cursor and cards & below(cursor):
        kept = close_waste(free, kept, cursor)  # kings that lay under the waste top of the pair
    return _put(out, count, shape, kept, after, pass_number, draws + 1, k, second)
