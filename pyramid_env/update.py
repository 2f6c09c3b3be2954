"""Update: what one step changes in a game's mask, facts and observation row, instead of writing all of it anew.

The rules stand in :mod:`pyramid_env.kernels`; nothing here decides what a move does or when a game is over. The mask is
kept as bits, 64 actions a word. A draw changes no pair of places, and a removal only those of the cards that left and
of the cards they laid open; all other kinds of moves lie behind the pairs in the order of the actions, and those with
places are runs of one bit a place: a set of places, shifted.

With each game goes a row of ``memory``: for each rank the places that the deal put it on, and the exposed places.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels, observation
from pyramid_env._numba import inlined_kernel, joined, joined_kernel
from pyramid_env.bits import as_index, count_bits, highest_bit, lowest_bit
from pyramid_env.kernels import (
    CARDS_LEFT,
    CLEARED_IN,
    MSC,
    PAR,
    PYRAMID_LEFT,
    SCORE,
    WON,
    Table,
    is_stuck,
    list_moves,
    table,
    top_card,
)
from pyramid_env.moves import Kind
from pyramid_env.observation import Offsets
from pyramid_env.rules import MSC_REMOVAL, SCORINGS, Rules

EXPOSED: Final = 14
"""Column of ``memory``: bits of the exposed places. Columns 1 .. ranks: bits of the places of each rank; 0: none."""

MEMORY_COLUMNS: Final = 16
"""As many as fill a line of the processor's cache with int32; the last one is empty."""

WORD_BITS: Final = 64

_PLACE_WASTE: Final = int(Kind.PLACE_WASTE)
_KING: Final = int(Kind.PLACE_KING)
_WASTE_KING: Final = int(Kind.WASTE_KING)
_PLACE_STOCK: Final = int(Kind.PLACE_STOCK)
_STOCK_KING: Final = int(Kind.STOCK_KING)
_STOCK_WASTE: Final = int(Kind.STOCK_WASTE)
_WASTE_TWO: Final = int(Kind.WASTE_TWO)
_REMOVAL_POINTS: Final = MSC_REMOVAL
_SCORE_MSC: Final = SCORINGS.index("msc")
_SCORE_PAR: Final = SCORINGS.index("par")

# Parts of the rules that are called at every step: as part of the caller they take half the time (measured).
can_draw: Final = joined(kernels.can_draw)
exposed_places: Final = joined(kernels.exposed_places)
is_finished: Final = joined(kernels.is_finished)
is_won: Final = joined(kernels.is_won)
par_score: Final = joined(kernels.par_score)
row_points: Final = joined(kernels.row_points)
encode_tops: Final = joined(observation.encode_tops)
seen_below: Final = joined(observation.seen_below)


def words_for(rules: Rules) -> int:
    """Words of a mask of bits."""
    return -(-table(rules).actions // WORD_BITS)


@lru_cache
def pair_bits(rules: Rules) -> NDArray[np.int64]:
    """(P, V) bits of the pairs of places that a place is part of, in the first V words of a mask; read-only."""
    full = table(rules)
    pairs = int(full.first_action[_PLACE_WASTE])
    bits = np.zeros((full.places, -(-pairs // WORD_BITS)), np.uint64)
    for place in range(full.places):
        for action in full.pair_action[place][full.pair_action[place] >= 0].tolist():
            bits[place, action // WORD_BITS] |= np.uint64(1 << (action % WORD_BITS))
    found: NDArray[np.int64] = bits.view(np.int64)
    found.setflags(write=False)
    return found


class Change(NamedTuple):
    """A position, and what it was one step before."""

    pyramid_before: int
    stock_before: int
    cursor_before: int
    pass_before: int
    pyramid: int
    stock: int
    cursor: int
    pass_number: int
    cleared: int


# ---- legal moves as bits ---------------------------------------------------------------------------------------------


@joined_kernel
def set_bit(words: NDArray[np.int64], action: int) -> None:
    """Mark one action."""
    words[as_index(action >> 6)] |= 1 << (action & 63)


@joined_kernel
def _with_places(full: Table, words: NDArray[np.int64], at: int, word: int, first: int, places: Any) -> int:
    """Mark the actions of a set of places, ``first`` being that of place 0.

    Word ``at`` is not written yet but held by the caller: ``word`` is what it is, and what is returned what it becomes.
    """
    into, shift = first >> 6, first & 63
    if full.one_word or into == at:
        word |= places << shift
    else:
        words[as_index(into)] |= places << shift
    if full.one_word:
        return word
    rest = places >> (63 - shift) >> 1
    if rest:
        words[as_index(into + 1)] |= rest
    return word


@joined_kernel
def begin_memory(full: Table, ranks: NDArray[np.int8], pyramid: int, out_memory: NDArray[np.int64]) -> None:
    """Write the memory of one game."""
    for rank in range(full.ranks + 1):
        out_memory[rank] = 0
    for i in range(full.places):
        out_memory[np.int64(ranks[i])] |= 1 << i
    out_memory[EXPOSED] = exposed_places(full, pyramid)


@joined_kernel
def begin_bits(
    full: Table,
    ranks: NDArray[np.int8],
    pyramid: int,
    stock: int,
    cursor: int,
    pass_number: int,
    memory: NDArray[np.int64],
    out_words: NDArray[np.int64],
    out_actions: NDArray[np.int64],
) -> bool:
    """Write all legal moves of a position as bits; return whether there is one. ``out_actions`` is scratch."""
    for w in range(out_words.size):
        out_words[w] = 0
    if full.overlap:
        return _list_bits(full, ranks, pyramid, stock, cursor, pass_number, out_words, out_actions)
    if is_finished(full, pyramid, stock, cursor, pass_number):
        return False
    _open_pairs(full, ranks, memory[EXPOSED], memory, out_words)
    at = full.first_action[_PLACE_WASTE] >> 6  # the word in which the pairs end
    _write_others(full, ranks, stock, cursor, memory, out_words, at)
    return _write_draw(full, ranks, pyramid, stock, cursor, pass_number, out_words, at, out_actions)


@joined_kernel
def _list_bits(
    full: Table,
    ranks: NDArray[np.int8],
    pyramid: int,
    stock: int,
    cursor: int,
    pass_number: int,
    words: NDArray[np.int64],
    out_actions: NDArray[np.int64],
) -> bool:
    """Mark all legal moves, listed one by one, in words of zeros; return whether there is one."""
    count = list_moves(full, ranks, pyramid, stock, cursor, pass_number, out_actions)
    for m in range(count):
        set_bit(words, out_actions[m])
    return count > 0


@inlined_kernel
def update_bits(
    full: Table,
    pairs_of: NDArray[np.int64],
    ranks: NDArray[np.int8],
    change: Change,
    memory: NDArray[np.int64],
    words: NDArray[np.int64],
    out_actions: NDArray[np.int64],
) -> bool:
    """Bring the legal moves up to date; return whether there is one. ``out_actions`` is scratch."""
    pyramid, stock, cursor, pass_number = change.pyramid, change.stock, change.cursor, change.pass_number
    if full.overlap:  # a card that left may open pairs of cards that are still covered
        memory[EXPOSED] = exposed_places(full, pyramid)
        return begin_bits(full, ranks, pyramid, stock, cursor, pass_number, memory, words, out_actions)
    if is_finished(full, pyramid, stock, cursor, pass_number):
        for w in range(words.size):
            words[w] = 0
        return False
    if pyramid != change.pyramid_before:
        _update_pairs(full, pairs_of, ranks, change.pyramid_before & ~pyramid, pyramid, memory, words)
    at = full.first_action[_PLACE_WASTE] >> 6  # the word in which the pairs end
    _write_others(full, ranks, stock, cursor, memory, words, at)
    return _write_draw(full, ranks, pyramid, stock, cursor, pass_number, words, at, out_actions)


@joined_kernel
def _write_draw(
    full: Table,
    ranks: NDArray[np.int8],
    pyramid: int,
    stock: int,
    cursor: int,
    pass_number: int,
    words: NDArray[np.int64],
    at: int,
    out_actions: NDArray[np.int64],
) -> bool:
    """Mark the draw if it is legal, the removals being marked; return whether any move is legal."""
    last = as_index(at if full.one_word else (full.actions - 1) >> 6)
    bit = 1 << ((full.actions - 1) & 63)
    draw = can_draw(full, stock, cursor, pass_number)
    if draw and full.passes != 0:
        words[last] |= bit
        return True
    for w in range(words.size):
        if words[w] != 0:
            if draw:
                words[last] |= bit
            return True
    if draw and not is_stuck(full, ranks, pyramid, stock, cursor, pass_number, out_actions):
        words[last] |= bit
        return True
    return False


@joined_kernel
def _update_pairs(
    full: Table,
    pairs_of: NDArray[np.int64],
    ranks: NDArray[np.int8],
    gone: int,
    pyramid: int,
    memory: NDArray[np.int64],
    words: NDArray[np.int64],
) -> None:
    """Take out the pairs of places whose cards are gone, add those of the places that they laid open."""
    exposed = exposed_places(full, pyramid)
    opened = exposed & ~memory[EXPOSED]
    memory[EXPOSED] = exposed
    one, other = lowest_bit(gone), as_index(highest_bit(gone))  # a move takes one place or two
    for w in range(pairs_of.shape[1]):
        words[w] &= ~(pairs_of[one, w] | pairs_of[other, w])
    _open_pairs(full, ranks, opened, memory, words)


@joined_kernel
def _open_pairs(
    full: Table, ranks: NDArray[np.int8], opened: int, memory: NDArray[np.int64], words: NDArray[np.int64]
) -> None:
    """Mark the pairs that the cards of a set of places make with exposed ones."""
    exposed, last = memory[EXPOSED], full.places - 1
    # One place and one partner is the most frequent case, none the next: both without a jump.
    i = min(lowest_bit(opened), last)
    partners = exposed & memory[as_index(full.ranks - ranks[as_index(i)])] if opened else 0
    action = max(full.pair_action[as_index(i), as_index(min(lowest_bit(partners), last))], 0)
    words[as_index(action >> 6)] |= np.int64(partners != 0) << (action & 63)
    partners &= partners - 1
    _mark_pairs(full, i, partners, words)
    opened &= opened - 1
    while opened:
        i = lowest_bit(opened)
        opened &= opened - 1
        _mark_pairs(full, i, exposed & memory[as_index(full.ranks - ranks[as_index(i)])], words)


@joined_kernel
def _mark_pairs(full: Table, i: int, partners: int, words: NDArray[np.int64]) -> None:
    """Mark the pairs of a place with a set of others."""
    while partners:
        set_bit(words, full.pair_action[as_index(i), as_index(lowest_bit(partners))])
        partners &= partners - 1


@inlined_kernel
def _write_others(
    full: Table,
    ranks: NDArray[np.int8],
    stock: int,
    cursor: int,
    memory: NDArray[np.int64],
    words: NDArray[np.int64],
    at: int,
) -> None:
    """Write all removals other than pairs of places anew. ``at``: the word in which the pairs end."""
    places, king = full.places, full.ranks
    first = full.first_action
    exposed = memory[EXPOSED]
    word = words[as_index(at)] & ((1 << (first[_PLACE_WASTE] & 63)) - 1)
    if not full.one_word:
        for w in range(at + 1, words.size):
            words[as_index(w)] = 0
    word = _with_places(full, words, at, word, first[_KING], exposed & memory[as_index(king)])
    turned = full.stock_top != 0 and cursor < full.stock_size
    turned_rank = np.int64(ranks[as_index(places + cursor)]) if turned else 0
    if full.piles == 1:  # on its own, so that all that depends on the number of piles falls away
        word = _with_pile(full, ranks, stock, cursor, 0, 1, memory, words, at, word, turned_rank)
    else:
        for pile in range(full.piles):
            word = _with_pile(full, ranks, stock, cursor, pile, full.piles, memory, words, at, word, turned_rank)
    if turned:
        partners = exposed & memory[as_index(king - turned_rank)]
        word = _with_places(full, words, at, word, first[_PLACE_STOCK], partners)
        word = _with_places(full, words, at, word, first[_STOCK_KING], np.int64(turned_rank == king))
    words[as_index(at)] = word


@joined_kernel
def _with_pile(
    full: Table,
    ranks: NDArray[np.int8],
    stock: int,
    cursor: int,
    pile: int,
    piles: int,
    memory: NDArray[np.int64],
    words: NDArray[np.int64],
    at: int,
    word: int,
    turned_rank: Any,
) -> int:
    """Mark the removals with a pile's top card. ``turned_rank``: of the stock's top card if it is face up, else 0."""
    places, king, first = full.places, full.ranks, full.first_action
    top = top_card(stock, cursor, pile, piles)
    if top < 0:
        return word
    rank = np.int64(ranks[as_index(places + top)])
    partners = memory[EXPOSED] & memory[as_index(king - rank)]  # none for a king
    word = _with_places(full, words, at, word, first[_PLACE_WASTE] + pile * places, partners)
    word = _with_places(full, words, at, word, first[_WASTE_KING] + pile, np.int64(rank == king))
    if full.waste_two:
        under = top_card(stock, top, pile, piles)
        pairs = under >= 0 and rank + ranks[as_index(places + max(under, 0))] == king
        word = _with_places(full, words, at, word, first[_WASTE_TWO] + pile, np.int64(pairs))
    if full.stock_waste:
        pairs = turned_rank > 0 and rank + turned_rank == king
        word = _with_places(full, words, at, word, first[_STOCK_WASTE] + pile, np.int64(pairs))
    if full.waste_tops:
        for other in range(pile + 1, piles):
            other_top = top_card(stock, cursor, other, piles)
            if other_top >= 0 and rank + ranks[as_index(places + other_top)] == king:
                word = _with_places(full, words, at, word, full.tops_action[pile, other], 1)
    return word


# ---- facts and observation row ---------------------------------------------------------------------------------------


@joined_kernel
def update_facts(full: Table, change: Change, facts: NDArray[np.int32]) -> None:
    """Bring the facts up to date after a removal; OVER and PASS_NUMBER, which change otherwise too, are left out."""
    pyramid, stock = change.pyramid, change.stock
    left = count_bits(pyramid)
    won = is_won(full, pyramid, stock)
    par = par_score(pyramid, stock, change.cleared)
    msc = facts[MSC] + _REMOVAL_POINTS
    if highest_bit(pyramid) != highest_bit(change.pyramid_before):  # a row may be empty now
        msc += row_points(full, pyramid) - row_points(full, change.pyramid_before)
    facts[PYRAMID_LEFT] = left
    facts[CARDS_LEFT] = left + count_bits(stock)
    facts[PAR] = par
    facts[MSC] = msc
    facts[WON] = won
    facts[SCORE] = par if full.scoring == _SCORE_PAR else msc if full.scoring == _SCORE_MSC else won
    facts[CLEARED_IN] = change.cleared


@joined_kernel
def remove_from_row(at: Offsets, change: Change, row: NDArray[np.int8]) -> None:
    """Take the cards that left out of the observation row."""
    # A move takes one card or two of the pyramid, or none, and of the stock likewise: no loops, and for none no jump,
    # which could not be foretold, but a write to the waste's field, which is written anew afterwards.
    gone = change.pyramid_before & ~change.pyramid
    row[as_index(at.pyramid + lowest_bit(gone) if gone else at.waste)] = 0
    row[as_index(at.pyramid + highest_bit(gone) if gone else at.waste)] = 0
    if at.known < 0:
        return
    gone = change.stock_before & ~change.stock
    one, other = lowest_bit(gone), highest_bit(gone)
    row[as_index(at.known + one if gone else at.waste)] = 0
    row[as_index(at.known + other if gone else at.waste)] = 0
    if at.clairvoyant_stock >= 0:
        row[as_index(at.clairvoyant_stock + one if gone else at.waste)] = 0
        row[as_index(at.clairvoyant_stock + other if gone else at.waste)] = 0


@inlined_kernel
def update_row(full: Table, at: Offsets, ranks: NDArray[np.int8], change: Change, row: NDArray[np.int8]) -> None:
    """Bring the rest of the observation row up to date: the tops, and the stock cards that were turned just now."""
    stock, places = change.stock, full.places
    encode_tops(full, at, ranks, stock, change.cursor, change.pass_number, change.cleared, row)
    if at.known < 0:
        return
    before = seen_below(full, change.cursor_before, change.pass_before)
    seen = seen_below(full, change.cursor, change.pass_number)
    if full.draw_count == 1 or np.uint64(seen - before) <= np.uint64(1):
        # One or none, as it comes, without a jump that could not be foretold; none: a card that is known already.
        turned = seen - before
        k = max(seen - 1, 0)
        rank = np.int64(ranks[as_index(places + k)])
        known = as_index(at.known + k)
        shown = np.int64(row[known])
        row[known] = shown + turned * (((stock >> k) & 1) * rank - shown)
        row[as_index(at.unseen + rank - 1)] -= turned
        return
    for k in range(before, seen):
        rank = np.int64(ranks[as_index(places + k)])
        row[as_index(at.known + k)] = rank if (stock >> k) & 1 else 0
        row[as_index(at.unseen + rank - 1)] -= 1
