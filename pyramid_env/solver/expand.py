"""Expand: from one position straight to every position after the next removal, the draws before it done on the way.

``expand_walk`` does it for all rules by walking: draw by draw through the rest of this pass and one whole next pass
(later passes offer the same again), asking the rules' kernels for the removals at each stop.

``expand_single`` gives the same for one card a draw onto one pile without the walk: there a stock card's turn comes
when the cursor reaches it, the top of the waste is at hand now, and a deeper waste card comes back in the next pass.
Free kings (see Problem) leave on the way whenever the cursor passes them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.kernels import apply, count_bits, is_finished, list_removals, next_card, top_card, turn
from pyramid_env.moves import Kind
from pyramid_env.rules import LAST_COUNTED_PASS
from pyramid_env.solver.positions import Position, below, highest_bit, index_of, next_left
from pyramid_env.solver.problem import SCORE, Problem

PYRAMID: Final = 0
STOCK: Final = 1
CURSOR: Final = 2
PASS: Final = 3
COST: Final = 4
CHILD_COLUMNS: Final = 5
"""Columns of a child: a position, and the steps that lead to it."""

MOST_CHILDREN: Final = 8192
MOST_REMOVALS: Final = 1024
"""Room for the removals of one position: even with a pile for each stock card of two decks they are fewer than 400."""

_PLACE_PAIR: Final = int(Kind.PLACE_PAIR)
_PLACE_KING: Final = int(Kind.PLACE_KING)
_SATURATED: Final = LAST_COUNTED_PASS

Children = NDArray[np.int64]  # (MOST_CHILDREN, CHILD_COLUMNS)


@kernel
def later_pass(problem: Problem, pass_number: int) -> int:
    """The pass after a recycle, 0 if no recycle is allowed."""
    if pass_number >= problem.pass_limit:
        return 0
    return min(pass_number + 1, _SATURATED) if problem.table.passes == 0 else pass_number + 1


@kernel
def _put(out: Children, count: int, pyramid: int, stock: int, cursor: int, pass_number: int, cost: int) -> int:
    out[count, PYRAMID] = pyramid
    out[count, STOCK] = stock
    out[count, CURSOR] = cursor
    out[count, PASS] = pass_number
    out[count, COST] = cost
    return count + 1


# ---- kings -----------------------------------------------------------------------------------------------------------


@kernel
def close_waste(problem: Problem, stock: int, cursor: int) -> int:
    """The stock mask after the free kings on top of the single waste pile have left."""
    while True:
        top = highest_bit(stock & below(cursor))
        if top < 0 or not (problem.free_kings >> top) & 1:
            return stock
        stock ^= 1 << top


@kernel
def close_piles(problem: Problem, stock: int, cursor: int) -> int:
    """The stock mask after the kings on top of any pile have left: in the last pass no later draw depends on them."""
    kings = problem.of_rank[problem.table.ranks]
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
def expand_walk(problem: Problem, at: Position, actions: NDArray[np.int64], out: Children) -> int:
    """Write the positions after each next removal into ``out``; return how many. ``actions`` is scratch space."""
    table = problem.table
    size = table.stock_size
    pyramid, stock, cursor, pass_number = at
    count = 0
    draws = 0
    recycled = False
    while not is_finished(table, pyramid, stock, cursor, pass_number):
        closes = problem.close_piles and pass_number == table.passes
        if closes:
            before = stock
            stock = close_piles(problem, stock, cursor)
            if stock != before and (problem.goal_all or problem.question == SCORE):
                count = _put(out, count, pyramid, stock, cursor, pass_number, draws + 1)
        found = list_removals(table, problem.ranks, pyramid, stock, cursor, actions)
        for a in range(found):
            if draws > 0 and table.moves[actions[a], 0] in (_PLACE_PAIR, _PLACE_KING):
                continue  # needs no waiting
            after = apply(table, pyramid, stock, cursor, pass_number, 0, actions[a])
            kept = after[1]
            if closes and not is_finished(table, after[0], after[1], after[2], after[3]):
                kept = close_piles(problem, kept, after[2])
            count = _put(out, count, after[0], kept, after[2], after[3], draws + 1)
        if cursor < size:
            cursor = turn(stock, cursor, table.draw_count, size)
        else:
            later = later_pass(problem, pass_number)
            if later == 0 or stock == 0 or recycled:
                break
            recycled = True
            pass_number = later
            cursor = next_card(stock, 0, size)
        draws += 1
    return count


# ---- one card a draw, one pile ---------------------------------------------------------------------------------------


@kernel
def expand_single(problem: Problem, exposed: int, at: Position, out: Children) -> int:
    """As expand_walk, for one card a draw onto one pile; ``exposed`` are the pyramid's exposed places."""
    table, ranks = problem.table, problem.ranks
    king = table.ranks
    pyramid, stock, cursor, pass_number = at
    if table.end_on_exhausted and pass_number == table.passes and cursor >= table.stock_size:
        return 0
    count = 0
    left = exposed
    while left:
        bit = left & -left
        left ^= bit
        rank = ranks[index_of(bit)]
        if rank == king:
            count = _put(out, count, pyramid ^ bit, stock, cursor, pass_number, 1)
            continue
        others = left
        while others:
            other = others & -others
            others ^= other
            if rank + ranks[index_of(other)] == king:
                count = _put(out, count, pyramid ^ bit ^ other, stock, cursor, pass_number, 1)
        partners = stock & problem.of_rank[king - rank]
        while partners:
            card = partners & -partners
            partners ^= card
            count = _take(problem, Position(pyramid ^ bit, stock, cursor, pass_number), card, out, count)
    if table.overlap:
        count = _overlaps(problem, exposed, at, out, count)
    count = _kings(problem, at, out, count)
    if problem.stock_pairs:
        count = _stock_pairs(problem, at, out, count)
    return count


@kernel
def _overlaps(problem: Problem, exposed: int, at: Position, out: Children, count: int) -> int:
    """A card with the only card that still covers it, that one being exposed."""
    table, ranks = problem.table, problem.ranks
    pyramid, stock, cursor, pass_number = at
    left = pyramid & ~exposed
    while left:
        bit = left & -left
        left ^= bit
        i = index_of(bit)
        cover = table.covers[i] & pyramid
        if cover & (cover - 1) == 0 and cover & exposed and ranks[i] + ranks[index_of(cover)] == table.ranks:
            count = _put(out, count, pyramid ^ bit ^ cover, stock, cursor, pass_number, 1)
    return count


@kernel
def _kings(problem: Problem, at: Position, out: Children, count: int) -> int:
    """Kings outside the pyramid. Free ones leave in passing, so the only choice is to walk on to the next one."""
    kings = at.stock & problem.of_rank[problem.table.ranks]
    if problem.free_kings:
        ahead = kings & ~below(at.cursor)
        kings = ahead & -ahead if ahead else kings & -kings
    while kings:
        card = kings & -kings
        kings ^= card
        count = _take(problem, at, card, out, count)
    return count


@kernel
def _stock_pairs(problem: Problem, at: Position, out: Children, count: int) -> int:
    """Two cards from outside the pyramid: neighbours among the cards left, the kings between them gone by then."""
    table, free = problem.table, problem.free_kings
    stock_ranks = problem.ranks[table.places :]
    behind = at.stock & below(at.cursor)
    top = highest_bit(behind)
    under = top
    left = (at.stock & ~free) ^ (behind & ~free)
    while left:  # still to come in this pass
        card = left & -left
        left ^= card
        k = index_of(card)
        if under >= 0 and stock_ranks[under] + stock_ranks[k] == table.ranks:
            count = _leave(problem, at, k, card | (1 << under), table.stock_waste, out, count)
        under = k
    if table.waste_two and top >= 0:  # now
        under = highest_bit(behind & below(top))
        if under >= 0 and stock_ranks[under] + stock_ranks[top] == table.ranks:
            count = _leave_now(problem, at, (1 << top) | (1 << under), out, count)
    under = -1
    left = behind & ~free
    while left:  # in the next pass
        card = left & -left
        left ^= card
        k = index_of(card)
        if under >= 0 and stock_ranks[under] + stock_ranks[k] == table.ranks:
            count = _leave(problem, at, k, card | (1 << under), table.stock_waste, out, count)
        under = k
    return count


@kernel
def _take(problem: Problem, at: Position, card: int, out: Children, count: int) -> int:
    """A stock card (one bit) leaves, alone or with a pyramid card that is already taken out of ``at``."""
    k = index_of(card)
    if k < at.cursor and at.stock & below(at.cursor) < card << 1:  # the top of the waste
        return _leave_now(problem, at, card, out, count)
    return _leave(problem, at, k, card, problem.table.stock_top, out, count)


@kernel
def _leave_now(problem: Problem, at: Position, cards: int, out: Children, count: int) -> int:
    """The uppermost waste card or cards leave."""
    stock = at.stock & ~cards
    if problem.free_kings and (at.pyramid or problem.table.goal_all):  # a clear may have ended the game
        stock = close_waste(problem, stock, at.cursor)
    return _put(out, count, at.pyramid, stock, at.cursor, at.pass_number, 1)


@kernel
def _leave(problem: Problem, at: Position, k: int, cards: int, from_stock: int, out: Children, count: int) -> int:
    """The stock cards ``cards`` leave when next the stock's top is k (``from_stock``), or was k a draw ago."""
    table = problem.table
    stock, pass_number = at.stock, at.pass_number
    ahead = stock & ~below(at.cursor)
    if k >= at.cursor:
        draws = count_bits(ahead & below(k))
        passing = problem.free_kings & ahead
        passed = 0
    else:
        pass_number = later_pass(problem, pass_number)
        if pass_number == 0:
            return count
        draws = count_bits(ahead) + 1 + count_bits(stock & below(k))
        passing = problem.free_kings & stock
        passed = passing & ahead
    after = next_left(stock & ~passing, k + 1, table.stock_size)
    if not from_stock:
        draws += 1
        if table.end_on_exhausted and pass_number == table.passes and after >= table.stock_size:
            return count
    until = after if at.pyramid or table.goal_all else k  # no king leaves after a clear that ends the game
    kept = stock & ~cards & ~passed & ~(passing & below(until))
    if k >= at.cursor and cards & below(at.cursor) and (at.pyramid or table.goal_all):
        kept = close_waste(problem, kept, at.cursor)  # kings that lay under the waste top of the pair
    return _put(out, count, at.pyramid, kept, after, pass_number, draws + 1)
