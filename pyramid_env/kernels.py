"""The rules: a packed position and everything that changes it; Game, environments and solver all call it.

A position is five integers, as columns of an int64 row (all int64: mixing in uint64 would turn sums into floats):

    PYRAMID   bit i = the card at place i is left
    STOCK     bit k = stock card k (in drawing order, from 0) has not been removed; it lies in the stock or on the waste
    CURSOR    index of the next stock card to turn: the lowest bit of STOCK at or above it (one position, one spelling),
              or the stock's size when the stock is empty. Stock cards below it lie on the waste
    PASS      pass through the stock, from 1; with unlimited passes it stays at 4
    CLEARED   pass in which the last pyramid card left, 0 = not yet

The deal lies outside: ``ranks``, one int8 a card, pyramid places first, then the stock. Functions take integers and
contiguous arrays, write only into arrays named ``out_*`` and the position rows handed to them, draw no random numbers,
and check nothing: checked play is Game's and the environments' part.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import inlined_kernel, kernel
from pyramid_env.bits import as_index, count_bits, highest_bit, lowest_bit
from pyramid_env.geometry import geometry
from pyramid_env.moves import Kind, Move, move_table
from pyramid_env.rules import LAST_COUNTED_PASS, MSC_REMOVAL, MSC_ROWS, PAR_BONUS, SCORINGS, Rules

PYRAMID: Final = 0
STOCK: Final = 1
CURSOR: Final = 2
PASS: Final = 3
CLEARED: Final = 4
STATE_COLUMNS: Final = 5

CARDS_LEFT: Final = 0
PYRAMID_LEFT: Final = 1
PAR: Final = 2
MSC: Final = 3
SCORE: Final = 4
WON: Final = 5
OVER: Final = 6
PASS_NUMBER: Final = 7
CLEARED_IN: Final = 8
FACT_COLUMNS: Final = 9
"""Columns of the facts of a position, int32: what rewards and logs are made of."""

MOVE_KIND: Final = 0
MOVE_FIRST: Final = 1
MOVE_SECOND: Final = 2
MOVE_PLACES: Final = 3
MOVE_TOPS: Final = 4
MOVE_COLUMNS: Final = 5
"""Columns of a Table's moves: kind, first and second of a :class:`~pyramid_env.moves.Move`; bits of the places that it
takes a card of; 1 if of the waste it takes the top card of one pile and no other, else 0."""

MAX_MOVES: Final = 512
"""No position has more legal moves: at most 8 cards of a rank, so 64 pairs for each of 6 pairs of ranks; 8 kings; a
pair within each of 63 waste piles; 45 overlaps; one draw."""

_KING: Final = int(Kind.PLACE_KING)
_PLACE_PAIR: Final = int(Kind.PLACE_PAIR)
_PLACE_WASTE: Final = int(Kind.PLACE_WASTE)
_WASTE_KING: Final = int(Kind.WASTE_KING)
_PLACE_STOCK: Final = int(Kind.PLACE_STOCK)
_STOCK_KING: Final = int(Kind.STOCK_KING)
_STOCK_WASTE: Final = int(Kind.STOCK_WASTE)
_WASTE_TWO: Final = int(Kind.WASTE_TWO)
_WASTE_TOPS: Final = int(Kind.WASTE_TOPS)
_SCORE_MSC: Final = SCORINGS.index("msc")
_SCORE_PAR: Final = SCORINGS.index("par")
_BONUS: Final = PAR_BONUS
_ROW_POINTS: Final = MSC_ROWS
_REMOVAL_POINTS: Final = MSC_REMOVAL
_SATURATED: Final = LAST_COUNTED_PASS


class Table(NamedTuple):
    """What kernels need to know of some rules: run-time values, so one compilation serves all. Arrays are read-only."""

    places: int
    stock_size: int
    ranks: int
    draw_count: int
    piles: int
    predealt: int
    passes: int  # 0 = unlimited
    stock_top: int
    stock_waste: int
    waste_two: int
    waste_tops: int
    overlap: int
    goal_all: int
    end_on_exhausted: int
    scoring: int  # index into SCORINGS
    actions: int
    one_word: int  # all moves but pairs of places lie in the same 64 bits of a mask
    first_action: Any  # (kinds,) first action index of each kind: an array, or a tuple of numbers in compiled code
    covers: NDArray[np.int64]  # (P,) bits of the places that lie on each place
    rows: NDArray[np.int64]  # (R,) bits of each row, the apex first
    pair_action: NDArray[np.int64]  # (P, P) action of a pair of places, -1 = none; symmetric
    tops_action: NDArray[np.int64]  # (W, W) action of a pair of pile tops; symmetric
    moves: NDArray[np.int64]  # (A, 5) what each action is and takes, see MOVE_COLUMNS


@lru_cache
def table(rules: Rules) -> Table:
    """The (cached) table of some rules."""
    shape = geometry(rules.rows)
    moves = move_table(rules)
    pair_action = np.full((shape.places, shape.places), -1, np.int64)
    tops_action = np.full((rules.waste_piles, rules.waste_piles), -1, np.int64)
    first_action = np.full(len(Kind), -1, np.int64)
    for action, (kind, first, second) in enumerate(moves):
        if first_action[kind] < 0:
            first_action[kind] = action
        if kind == Kind.PLACE_PAIR:
            pair_action[first, second] = pair_action[second, first] = action
        elif kind == Kind.WASTE_TOPS:
            tops_action[first, second] = tops_action[second, first] = action
    rows_of_moves = np.array([(*move, *_taken(move)) for move in moves], np.int64)
    for made in (first_action, pair_action, tops_action, rows_of_moves):
        made.setflags(write=False)
    return Table(
        places=shape.places,
        stock_size=rules.stock_size,
        ranks=rules.ranks,
        draw_count=rules.draw_count,
        piles=rules.waste_piles,
        predealt=rules.predealt,
        passes=0 if rules.passes is None else rules.passes,
        stock_top=int(rules.stock_top),
        stock_waste=int(rules.pair_stock_waste),
        waste_two=int(rules.pair_waste_two),
        waste_tops=int(rules.pair_waste_tops),
        overlap=int(rules.overlap),
        goal_all=int(rules.goal == "all"),
        end_on_exhausted=int(rules.end_on_exhausted),
        scoring=SCORINGS.index(rules.scoring),
        actions=len(moves),
        one_word=int(first_action[_PLACE_WASTE] >> 6 == (len(moves) - 1) >> 6),
        first_action=first_action,
        covers=shape.covers,
        rows=shape.rows,
        pair_action=pair_action,
        tops_action=tops_action,
        moves=rows_of_moves,
    )


def _taken(move: Move) -> tuple[int, int]:
    """The last two columns of a move."""
    match move.kind:
        case Kind.PLACE_PAIR:
            return 1 << move.first | 1 << move.second, 0
        case Kind.PLACE_WASTE:
            return 1 << move.first, 1
        case Kind.PLACE_KING | Kind.PLACE_STOCK:
            return 1 << move.first, 0
        case Kind.WASTE_KING | Kind.STOCK_WASTE:
            return 0, 1
        case _:
            return 0, 0


# ---- zones -----------------------------------------------------------------------------------------------------------


@kernel
def exposed_places(table: Table, pyramid: int) -> int:
    """Bits of the places whose card is left and not covered."""
    # Row by row, shifted onto the places it covers. Written out: as a loop it takes twice the time.
    rows = table.rows
    covered = _covered(rows, pyramid, 1) | _covered(rows, pyramid, 2) | _covered(rows, pyramid, 3)
    covered |= _covered(rows, pyramid, 4) | _covered(rows, pyramid, 5) | _covered(rows, pyramid, 6)
    return pyramid & ~(covered | _covered(rows, pyramid, 7) | _covered(rows, pyramid, 8))


@inlined_kernel
def _covered(rows: NDArray[np.int64], pyramid: int, row: int) -> int:
    """Bits of the places in a row, the apex's being 1, that the cards of the row below lie on."""
    if row >= rows.size:
        return 0
    below: int = pyramid & rows[row]
    covered: int = ((below >> row) | (below >> (row + 1))) & rows[row - 1]
    return covered


@inlined_kernel
def next_card(stock: int, start: int, size: int) -> int:
    """Index of the first stock card left at or after ``start``; ``size`` if there is none."""
    ahead = stock >> start
    return start + lowest_bit(ahead) if ahead else size


@inlined_kernel
def top_card(stock: int, cursor: int, pile: int, piles: int) -> int:
    """Stock index of the top card (the last one turned) of a waste pile, or -1 if the pile is empty."""
    turned = stock & ((1 << cursor) - 1)
    if piles == 1:
        return highest_bit(turned)
    while turned:
        k = highest_bit(turned)
        if k % piles == pile:
            return k
        turned ^= 1 << k
    return -1


@inlined_kernel
def turn(stock: int, cursor: int, count: int, size: int) -> int:
    """The cursor after turning ``count`` cards, or as many as are left."""
    ahead = stock >> cursor
    for _ in range(count):
        ahead &= ahead - 1  # the cards from the cursor on, less the first
    return cursor + lowest_bit(ahead) if ahead else size


# ---- moves -----------------------------------------------------------------------------------------------------------


@kernel
def list_removals(
    table: Table, ranks: NDArray[np.int8], pyramid: int, stock: int, cursor: int, out_actions: NDArray[np.int64]
) -> int:
    """Write the actions of every removal that the cards allow now, be the game over or not; return how many."""
    places, piles, king = table.places, table.piles, table.ranks
    first = table.first_action
    count = 0
    exposed = exposed_places(table, pyramid)
    left = exposed
    while left:
        bit = left & -left
        left ^= bit
        i = lowest_bit(bit)
        rank = np.int64(ranks[i])
        if rank == king:
            out_actions[count] = first[_KING] + i
            count += 1
            continue
        others = left
        while others:
            other = others & -others
            others ^= other
            j = lowest_bit(other)
            if rank + ranks[j] == king:
                out_actions[count] = table.pair_action[i, j]
                count += 1
    if table.overlap:
        count = _list_overlaps(table, ranks, pyramid, exposed, out_actions, count)
    for pile in range(piles):
        k = top_card(stock, cursor, pile, piles)
        if k < 0:
            continue
        rank = np.int64(ranks[places + k])
        if rank == king:
            out_actions[count] = first[_WASTE_KING] + pile
            count += 1
            continue
        left = exposed
        while left:
            bit = left & -left
            left ^= bit
            i = lowest_bit(bit)
            if rank + ranks[i] == king:
                out_actions[count] = first[_PLACE_WASTE] + pile * places + i
                count += 1
        if table.waste_two:
            below = top_card(stock, k, pile, piles)
            if below >= 0 and rank + ranks[places + below] == king:
                out_actions[count] = first[_WASTE_TWO] + pile
                count += 1
        if table.waste_tops:
            for other_pile in range(pile + 1, piles):
                m = top_card(stock, cursor, other_pile, piles)
                if m >= 0 and rank + ranks[places + m] == king:
                    out_actions[count] = table.tops_action[pile, other_pile]
                    count += 1
    if table.stock_top and cursor < table.stock_size:
        count = _list_stock_top(table, ranks, stock, cursor, exposed, out_actions, count)
    return count


@kernel
def _list_overlaps(
    table: Table, ranks: NDArray[np.int8], pyramid: int, exposed: int, out_actions: NDArray[np.int64], count: int
) -> int:
    """Pairs of a card with the only card that still covers it, that one being exposed."""
    left = pyramid & ~exposed
    while left:
        bit = left & -left
        left ^= bit
        i = lowest_bit(bit)
        cover = table.covers[i] & pyramid
        if cover & (cover - 1) == 0 and cover & exposed:
            j = lowest_bit(cover)
            if np.int64(ranks[i]) + ranks[j] == table.ranks:
                out_actions[count] = table.pair_action[i, j]
                count += 1
    return count


@kernel
def _list_stock_top(
    table: Table,
    ranks: NDArray[np.int8],
    stock: int,
    cursor: int,
    exposed: int,
    out_actions: NDArray[np.int64],
    count: int,
) -> int:
    """Removals with the stock's top card, which lies face up."""
    places, piles = table.places, table.piles
    rank = np.int64(ranks[places + cursor])
    if rank == table.ranks:
        out_actions[count] = table.first_action[_STOCK_KING]
        return count + 1
    left = exposed
    while left:
        bit = left & -left
        left ^= bit
        i = lowest_bit(bit)
        if rank + ranks[i] == table.ranks:
            out_actions[count] = table.first_action[_PLACE_STOCK] + i
            count += 1
    if table.stock_waste:
        for pile in range(piles):
            k = top_card(stock, cursor, pile, piles)
            if k >= 0 and rank + ranks[places + k] == table.ranks:
                out_actions[count] = table.first_action[_STOCK_WASTE] + pile
                count += 1
    return count


@kernel
def can_draw(table: Table, stock: int, cursor: int, pass_number: int) -> bool:
    """Is there a card to turn, or a waste to recycle for which a pass is left?"""
    return cursor < table.stock_size or (stock != 0 and (table.passes == 0 or pass_number < table.passes))


@kernel
def is_finished(table: Table, pyramid: int, stock: int, cursor: int, pass_number: int) -> bool:
    """Has the game ended by its goal or by ``end_on_exhausted``, whatever the cards would still allow?"""
    if pyramid == 0 and not table.goal_all:
        return True
    return table.end_on_exhausted != 0 and pass_number == table.passes and cursor >= table.stock_size


@kernel
def is_stuck(
    table: Table,
    ranks: NDArray[np.int8],
    pyramid: int,
    stock: int,
    cursor: int,
    pass_number: int,
    out_actions: NDArray[np.int64],
) -> bool:
    """No removal now, nor at any later position that turning cards alone can reach.

    With unlimited passes one full run through what is left is looked at: the rest of this pass, then one whole pass.
    ``out_actions`` is scratch space.
    """
    size = table.stock_size
    recycles = 1 if table.passes == 0 else table.passes - pass_number
    while True:
        if list_removals(table, ranks, pyramid, stock, cursor, out_actions) > 0:
            return False
        if cursor < size:
            cursor = turn(stock, cursor, table.draw_count, size)
        elif recycles > 0 and stock != 0:
            recycles = 0  # all later passes are the same as the next one
            cursor = next_card(stock, 0, size)
        else:
            return True


@kernel
def list_moves(
    table: Table,
    ranks: NDArray[np.int8],
    pyramid: int,
    stock: int,
    cursor: int,
    pass_number: int,
    out_actions: NDArray[np.int64],
) -> int:
    """Write the action indices of all legal moves, removals first, draw last; return how many. None: the game is over.

    ``out_actions`` needs room for MAX_MOVES.
    """
    if is_finished(table, pyramid, stock, cursor, pass_number):
        return 0
    count = list_removals(table, ranks, pyramid, stock, cursor, out_actions)
    if not can_draw(table, stock, cursor, pass_number):
        return count
    if count == 0 and table.passes == 0 and is_stuck(table, ranks, pyramid, stock, cursor, pass_number, out_actions):
        return 0
    out_actions[count] = table.actions - 1
    return count + 1


@kernel
def apply(
    table: Table, pyramid: int, stock: int, cursor: int, pass_number: int, cleared: int, action: int
) -> tuple[int, int, int, int, int]:
    """The position after a legal action."""
    size, piles = table.stock_size, table.piles
    if action == table.actions - 1:  # draw
        if cursor < size:
            return pyramid, stock, turn(stock, cursor, table.draw_count, size), pass_number, cleared
        later = pass_number + 1
        if table.passes == 0 and later > _SATURATED:
            later = _SATURATED
        return pyramid, stock, next_card(stock, 0, size), later, cleared
    move = as_index(action)
    kind: int = table.moves[move, MOVE_KIND]
    first: int = table.moves[move, MOVE_FIRST]
    second: int = table.moves[move, MOVE_SECOND]
    pyramid &= ~table.moves[move, MOVE_PLACES]
    # What leaves most often, places and the top of a single pile, has no jump: that could not be foretold.
    if piles == 1:
        gone = table.moves[move, MOVE_TOPS] << max(top_card(stock, cursor, 0, 1), 0)
    else:
        pile = second if kind == _PLACE_WASTE else first
        gone = 1 << top_card(stock, cursor, pile, piles) if table.moves[move, MOVE_TOPS] else 0
    if table.stock_top and kind in (_PLACE_STOCK, _STOCK_KING, _STOCK_WASTE):
        gone |= 1 << cursor
    if table.waste_two and kind == _WASTE_TWO:
        top = top_card(stock, cursor, first, piles)
        gone |= (1 << top) | (1 << top_card(stock, top, first, piles))
    if table.waste_tops and kind == _WASTE_TOPS:
        gone |= (1 << top_card(stock, cursor, first, piles)) | (1 << top_card(stock, cursor, second, piles))
    stock &= ~gone
    if pyramid == 0 and cleared == 0:
        cleared = pass_number
    return pyramid, stock, next_card(stock, cursor, size), pass_number, cleared


# ---- scores ----------------------------------------------------------------------------------------------------------


@kernel
def par_score(pyramid: int, stock: int, cleared: int) -> int:
    """B - L: the bonus of the pass of the clear less the cards not removed."""
    return _BONUS[cleared] - count_bits(pyramid) - count_bits(stock)


@kernel
def msc_score(table: Table, ranks: NDArray[np.int8], pyramid: int, stock: int) -> int:
    """Points for the removals that led here, and for the rows that are empty."""
    kings = 0
    others = 0
    gone = ((1 << table.places) - 1) & ~pyramid
    while gone:
        king = ranks[lowest_bit(gone)] == table.ranks
        gone &= gone - 1
        kings += king
        others += not king
    gone = ((1 << table.stock_size) - 1) & ~stock
    while gone:
        king = ranks[table.places + lowest_bit(gone)] == table.ranks
        gone &= gone - 1
        kings += king
        others += not king
    return _REMOVAL_POINTS * (kings + others // 2) + row_points(table, pyramid)


@kernel
def row_points(table: Table, pyramid: int) -> int:
    """msc points for the rows that are empty; they empty from the bottom up."""
    points = 0
    rows = table.rows.size
    for up in range(min(rows, len(_ROW_POINTS))):
        if table.rows[rows - 1 - up] & pyramid:
            break
        points += _ROW_POINTS[up]
    return points


@kernel
def is_won(table: Table, pyramid: int, stock: int) -> bool:
    """Is the goal reached?"""
    return pyramid == 0 and (stock == 0 or not table.goal_all)


@kernel
def score(table: Table, ranks: NDArray[np.int8], pyramid: int, stock: int, cleared: int) -> int:
    """The score by the rules' scoring, were the game to end here; without scoring 1 for a win, else 0."""
    if table.scoring == _SCORE_PAR:
        return par_score(pyramid, stock, cleared)
    if table.scoring == _SCORE_MSC:
        return msc_score(table, ranks, pyramid, stock)
    return 1 if is_won(table, pyramid, stock) else 0


# ---- one game of a batch: position row (5,), ranks (cards,), mask (A,), facts (9,); the loops are in stepping.py -----


@kernel
def start(table: Table, out_states: NDArray[np.int64]) -> None:
    """Write the position before the first move into every row."""
    stock = (1 << table.stock_size) - 1
    for b in range(out_states.shape[0]):
        out_states[b, PYRAMID] = (1 << table.places) - 1
        out_states[b, STOCK] = stock
        out_states[b, CURSOR] = turn(stock, next_card(stock, 0, table.stock_size), table.predealt, table.stock_size)
        out_states[b, PASS] = 1
        out_states[b, CLEARED] = 0


@kernel
def write_mask(
    table: Table,
    ranks: NDArray[np.int8],
    state: NDArray[np.int64],
    out_mask: NDArray[np.int8],
    out_actions: NDArray[np.int64],
) -> int:
    """Write one game's mask (1 = legal) and, as scratch, its legal actions; return how many there are."""
    out_mask[:] = 0
    count = list_moves(table, ranks, state[PYRAMID], state[STOCK], state[CURSOR], state[PASS], out_actions)
    for m in range(count):
        out_mask[out_actions[m]] = 1
    return count


@kernel
def step(table: Table, state: NDArray[np.int64], action: int) -> None:
    """Apply a legal action to one position row, in place."""
    after = apply(table, state[PYRAMID], state[STOCK], state[CURSOR], state[PASS], state[CLEARED], action)
    state[PYRAMID], state[STOCK], state[CURSOR], state[PASS], state[CLEARED] = after


@kernel
def write_facts(
    table: Table, ranks: NDArray[np.int8], state: NDArray[np.int64], legal: int, out_facts: NDArray[np.int32]
) -> None:
    """Write what rewards and logs are made of; ``legal`` is the number of legal moves (none: over)."""
    pyramid, stock, cleared = state[PYRAMID], state[STOCK], state[CLEARED]
    out_facts[PYRAMID_LEFT] = count_bits(pyramid)
    out_facts[CARDS_LEFT] = out_facts[PYRAMID_LEFT] + count_bits(stock)
    out_facts[PAR] = par_score(pyramid, stock, cleared)
    out_facts[MSC] = msc_score(table, ranks, pyramid, stock)
    out_facts[SCORE] = score(table, ranks, pyramid, stock, cleared)
    out_facts[WON] = is_won(table, pyramid, stock)
    out_facts[OVER] = legal == 0
    out_facts[PASS_NUMBER] = state[PASS]
    out_facts[CLEARED_IN] = cleared


def start_state(rules: Rules) -> NDArray[np.int64]:
    """(5,) position row before the first move."""
    states = np.empty((1, STATE_COLUMNS), np.int64)
    start(table(rules), states)
    row: NDArray[np.int64] = states[0]
    return row


def legal_actions(rules: Rules, ranks: NDArray[np.int8], state: NDArray[np.int64]) -> NDArray[np.int64]:
    """Action indices of the legal moves of one position, removals first, draw last."""
    out = np.empty(MAX_MOVES, np.int64)
    pyramid, stock, cursor, pass_number, _ = state.tolist()
    count = list_moves(table(rules), ranks, pyramid, stock, cursor, pass_number, out)
    legal: NDArray[np.int64] = out[:count].copy()
    return legal
