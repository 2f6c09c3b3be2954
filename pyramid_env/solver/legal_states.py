"""Information states: how they are spelled as keys, and the tables that hold them.

While cards are unseen, an information state is what the player remembers that can still matter: the pyramid cards left,
the stock cards seen and left in their order, and how many of each rank are unseen. Once every card is known, nothing
but pyramid and stock matters, and a known state stands for all its times at once.

Two spellings of one state are one. With one waste pile the cards left are numbered anew, the last one being the stock's
last, since the gaps that cards left behind change nothing. Where no two stock cards can pair with each other, those
whose partners have all left the pyramid can't leave any more: they are one rank (``DEAD``).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.bits import count_bits
from pyramid_env.kernels import MAX_MOVES
from pyramid_env.rules import LAST_COUNTED_PASS, Rules

DEAD: Final = 14
"""Rank of a stock card that can't leave any more: with no other rank it makes the highest one."""

UNSETTLED: Final = -1

STORED: Final = 0
KNOWN: Final = 1
WAITING: Final = 2
LINKS: Final = 3
SHORT: Final = 4
COUNT_COLUMNS: Final = 5
"""Indices into ``Memory.counts``: states stored, known states settled, height of the stack, links on it; and which of
these four had no room when a call returned FULL, -1 = none."""

LINK_COLUMNS: Final = 5

_RANK_BITS: Final = 4
_RANKS_A_WORD: Final = 16
_WORD_SHIFT: Final = 4  # 2 ** 4 ranks a word
_IN_WORD: Final = 15
_COUNT: Final = 63  # six bits each for the numbers behind the pyramid's 45
_UNSEEN_SHIFT: Final = 45
_CARDS_SHIFT: Final = 51
_CURSOR_SHIFT: Final = 57
_SCATTER_1: Final = -7046029254386353131  # odd constants that spread keys over slots
_SCATTER_2: Final = -4417276706812531889


class Spec(NamedTuple):
    """What stays fixed during one search, rules and question in numbers."""

    places: int
    stock_size: int
    king: int  # the highest rank
    merge: int  # stock cards that can't leave any more are one rank
    compact: int  # one waste pile: the cards left are numbered anew
    passes: int  # passes told apart: those of the rules, or LAST_COUNTED_PASS
    win: int  # the win is what is gained; else the score


class Memory(NamedTuple):
    """The tables that a search writes into. A key has K words: counts and pyramid, then four bits a stock card."""

    states: NDArray[np.int64]  # (N, K + 1) key; UNSETTLED, the best gain over all orders, or a known state's gains row
    slots: NDArray[np.int32]  # (a power of two >= 2 N,) open addressing, -1 = free
    gains: NDArray[np.int16]  # (M, passes * (stock + 1)) best gain of a known state from each pass and cursor on
    stack: NDArray[np.int64]  # (S, 2) state, and its first link, -1 = its moves have not been looked at
    links: NDArray[np.int64]  # (L, LINK_COLUMNS) where the moves of the states on the stack lead
    counts: NDArray[np.int64]  # (COUNT_COLUMNS,)
    key: NDArray[np.int64]  # (1, K) scratch: the key packed last
    ranks: NDArray[np.int8]  # (cards,) the pyramid's ranks; the stock's part is scratch
    times: NDArray[np.int64]  # (passes * (stock + 1),) scratch
    actions: NDArray[np.int64]  # (MAX_MOVES,) scratch


class Room(NamedTuple):
    """Rows of the tables that grow, in the order of ``Memory.counts``."""

    states: int
    known: int
    waiting: int
    links: int


def build_spec(rules: Rules, win: bool) -> Spec:
    """The numbers of some rules; ``win``: the chance to win is asked for, else the expected score."""
    stock_pairs = rules.pair_stock_waste or rules.pair_waste_two or rules.pair_waste_tops
    return Spec(
        places=rules.places,
        stock_size=rules.stock_size,
        king=rules.ranks,
        merge=int(not stock_pairs),
        compact=int(rules.waste_piles == 1),
        passes=LAST_COUNTED_PASS if rules.passes is None else rules.passes,
        win=int(win),
    )


# ---- tables ----------------------------------------------------------------------------------------------------------


def _words(spec: Spec) -> int:
    return 1 + -(-spec.stock_size // _RANKS_A_WORD)


def _times(spec: Spec) -> int:
    return spec.passes * (spec.stock_size + 1)


def _slots_for(states: int) -> int:
    """A power of two, at least twice as many slots as states."""
    return 1 << (2 * states - 1).bit_length()


def bytes_of(spec: Spec, room: Room) -> int:
    """Bytes of the tables that grow."""
    return (
        8 * (_words(spec) + 1) * room.states
        + 4 * _slots_for(room.states)
        + 2 * _times(spec) * room.known
        + 16 * room.waiting
        + 8 * LINK_COLUMNS * room.links
    )


def new_memory(spec: Spec, room: Room) -> Memory:
    """Tables with no states in them."""
    counts = np.zeros(COUNT_COLUMNS, np.int64)
    counts[SHORT] = -1
    return Memory(
        states=np.empty((room.states, _words(spec) + 1), np.int64),
        slots=np.full(_slots_for(room.states), -1, np.int32),
        gains=np.empty((room.known, _times(spec)), np.int16),
        stack=np.empty((room.waiting, 2), np.int64),
        links=np.empty((room.links, LINK_COLUMNS), np.int64),
        counts=counts,
        key=np.zeros((1, _words(spec)), np.int64),
        ranks=np.zeros(spec.places + spec.stock_size, np.int8),
        times=np.zeros(_times(spec), np.int64),
        actions=np.empty(MAX_MOVES, np.int64),
    )


def forget(memory: Memory) -> None:
    """Take all states out."""
    memory.counts[:] = 0
    memory.counts[SHORT] = -1
    memory.slots.fill(-1)


def room_of(memory: Memory) -> Room:
    """The room that the tables have."""
    return Room(len(memory.states), len(memory.gains), len(memory.stack), len(memory.links))


def enlarged(memory: Memory, room: Room) -> Memory:
    """The same search with as much room or more."""
    slots = memory.slots
    if room.states > len(memory.states):
        slots = np.full(_slots_for(room.states), -1, np.int32)
        _rehash(memory.states, int(memory.counts[STORED]), slots, memory.key)
    return memory._replace(
        states=_longer(memory.states, room.states),
        slots=slots,
        gains=_longer(memory.gains, room.known),
        stack=_longer(memory.stack, room.waiting),
        links=_longer(memory.links, room.links),
    )


def _longer(rows: NDArray[Any], count: int) -> NDArray[Any]:
    if count <= len(rows):
        return rows
    longer = np.empty((count, rows.shape[1]), rows.dtype)
    longer[: len(rows)] = rows
    return longer


@kernel
def _rehash(states: NDArray[np.int64], count: int, out_slots: NDArray[np.int32], out_key: NDArray[np.int64]) -> None:
    """Enter the first ``count`` states into empty (-1) slots; ``out_key`` (1, K) is scratch space."""
    for row in range(count):
        for word in range(out_key.shape[1]):
            out_key[0, word] = states[row, word]
        out_slots[_slot(states, out_slots, out_key)] = row


# ---- keys ------------------------------------------------------------------------------------------------------------


@kernel
def pack(
    spec: Spec,
    ranks: NDArray[np.int8],
    pyramid: int,
    stock: int,
    cursor: int,
    unseen: int,
    out_key: NDArray[np.int64],
) -> None:
    """Write the key (1, K) of a state.

    The last ``unseen`` stock cards are the unseen ones, in ascending order of rank. Without unseen cards the cursor is
    no part of the key.
    """
    places, size = spec.places, spec.stock_size
    live = -1  # bits of the ranks that can still leave
    if spec.merge:
        live = 1 << spec.king
        for place in range(places):
            if (pyramid >> place) & 1:
                live |= 1 << (spec.king - int(ranks[place]))
    cards = count_bits(stock)
    at = size - cards if spec.compact else 0
    dead = 0
    for word in range(1, out_key.shape[1]):
        out_key[0, word] = 0
    for k in range(size):
        if not (stock >> k) & 1:
            at += 1 - spec.compact
            continue
        rank = np.int64(ranks[places + k])
        if not (live >> rank) & 1:
            if k >= size - unseen:  # the unseen stay sorted: these come last
                dead += 1
                continue
            rank = np.int64(DEAD)
        out_key[0, 1 + (at >> _WORD_SHIFT)] |= rank << (_RANK_BITS * (at & _IN_WORD))
        at += 1
    for _ in range(dead):
        out_key[0, 1 + (at >> _WORD_SHIFT)] |= DEAD << (_RANK_BITS * (at & _IN_WORD))
        at += 1
    head = pyramid | (unseen << _UNSEEN_SHIFT) | (cards << _CARDS_SHIFT)
    if unseen:
        head |= renumbered(spec, stock, cursor) << _CURSOR_SHIFT
    out_key[0, 0] = head


@kernel
def renumbered(spec: Spec, stock: int, cursor: int) -> int:
    """The cursor as keys count it."""
    return spec.stock_size - count_bits(stock >> cursor) if spec.compact else cursor


@kernel
def unpack(spec: Spec, states: NDArray[np.int64], row: int, out_ranks: NDArray[np.int8]) -> tuple[int, int, int, int]:
    """Pyramid, stock, cursor and number of unseen cards of a state; writes the ranks of its stock cards."""
    stock = 0
    for k in range(spec.stock_size):
        rank = (states[row, 1 + (k >> _WORD_SHIFT)] >> (_RANK_BITS * (k & _IN_WORD))) & 15
        out_ranks[spec.places + k] = rank
        if rank:
            stock |= 1 << k
    head = states[row, 0]
    return head & ((1 << _UNSEEN_SHIFT) - 1), stock, (head >> _CURSOR_SHIFT) & _COUNT, unseen_of(states, row)


@kernel
def unseen_of(states: NDArray[np.int64], row: int) -> int:
    """Number of unseen cards of a state; 0: it is a known state."""
    unseen: int = (states[row, 0] >> _UNSEEN_SHIFT) & _COUNT
    return unseen


@kernel
def _slot(states: NDArray[np.int64], slots: NDArray[np.int32], key: NDArray[np.int64]) -> int:
    """The slot of a key, or the free slot where it belongs."""
    words = key.shape[1]
    mixed = key[0, 0] * _SCATTER_1
    for word in range(1, words):
        mixed ^= mixed >> 32
        mixed = (mixed ^ key[0, word]) * _SCATTER_1
    mixed ^= mixed >> 32
    last = slots.size - 1
    at: int = ((mixed * _SCATTER_2) >> 24) & last
    while slots[at] >= 0:
        same = True
        for word in range(words):
            if states[slots[at], word] != key[0, word]:
                same = False
        if same:
            break
        at = (at + 1) & last
    return at


@kernel
def row_of(
    states: NDArray[np.int64], slots: NDArray[np.int32], counts: NDArray[np.int64], key: NDArray[np.int64]
) -> int:
    """The row of the state of a key, stored as UNSETTLED if it is new; -1, and a note in SHORT, if there is no room."""
    slot = _slot(states, slots, key)
    row: int = 0 + slots[slot]
    if row < 0:
        row = counts[STORED]
        if row == states.shape[0]:
            counts[SHORT] = STORED
            return -1
        for word in range(key.shape[1]):
            states[row, word] = key[0, word]
        states[row, key.shape[1]] = UNSETTLED
        slots[slot] = row
        counts[STORED] = row + 1
    return row


def merged_ranks(spec: Spec, ranks: NDArray[np.int8], pyramid: int, unseen: int) -> NDArray[np.int8]:
    """(stock,) int8 ranks of the stock, those of the unseen cards, at its end, merged as in keys and sorted."""
    stock = np.array(ranks[spec.places :], np.int8)
    if spec.merge and unseen:
        live = [spec.king, *(spec.king - int(ranks[i]) for i in range(spec.places) if (pyramid >> i) & 1)]
        tail = stock[-unseen:]
        tail[~np.isin(tail, live)] = DEAD
        tail.sort()
    return stock
