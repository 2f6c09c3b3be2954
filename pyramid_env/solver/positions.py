"""Positions: what the search has seen, in two flat tables, and which of two positions makes the other needless.

A key is (shape of the pyramid, stock cards left and, where it counts, the pass of the clear); with one card a draw
other cards that show the same ranks in the same order do as well. The positions of one key differ in their time, (pass,
cursor), and in the steps they took. Waiting is always possible, so a position dominates another of its key if drawing
alone leads from it there at no more cost. With one card a draw that is every later time; otherwise the cards between
must come out even.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.bits import count_bits, highest_bit, lowest_bit
from pyramid_env.kernels import Table
from pyramid_env.rules import LAST_COUNTED_PASS

NODE: Final = np.dtype(
    [
        ("stock", np.int64),
        ("key", np.int64),  # stock cards that show the same ranks in the same order; see key_of in visit.py
        ("parent", np.int32),  # the position it came from, -1 for the root
        ("chain", np.int32),  # the next position of the same key, -1 = none
        ("queue", np.int32),  # the next position of the same bucket, -1 = none
        ("shape", np.int16),
        ("cost", np.int16),  # steps so far; 0 where steps are not asked for
        ("cursor", np.int8),
        ("pass_number", np.int8),
        ("cleared", np.int8),  # pass of the clear, 0 where it does not count
        ("dead", np.int8),  # SEEN, DEAD, NEW, see below
        ("first", np.int8),  # stock cards that left last, -1 = none
        ("second", np.int8),
    ],
    align=True,
)
Nodes = NDArray[Any]  # (capacity,) of NODE

SEEN: Final = 0
DEAD: Final = 1
NEW: Final = 2
"""What a position is: stored under its key, which it needs to be expanded; needless; stored, but not under its key."""

COUNT: Final = 0  # positions stored
BUCKET: Final = 1  # no bucket below this one holds a position
BEST: Final = 2  # the position that reaches the value, -1 = none
VALUE: Final = 3  # the best score reached
TOP: Final = 4  # no line scores more
SLOTS: Final = 5  # slots in use, a power of two
ROOM: Final = 6  # positions that may be stored
FULL: Final = 7  # 1: a position found no room
EXPANDED: Final = 8  # positions expanded
BUCKETS: Final = 9  # buckets in use
FOUND: Final = 10  # 1: the root has not been visited
CLEARED_IN: Final = 11  # the pass in which the pyramid was cleared before the root, 0 = not
KEYED: Final = 12  # positions stored under their keys
PROGRESS_COLUMNS: Final = 13


class Memory(NamedTuple):
    """The tables that a search writes into, used again for the next one."""

    nodes: Nodes  # (capacity,) positions
    slots: NDArray[np.int32]  # (H,) where each key's chain begins, -1 = free; a power of two
    heads: NDArray[np.int32]  # (buckets,) the newest position of each bucket, -1 = none
    progress: NDArray[np.int64]  # (PROGRESS_COLUMNS,)
    children: NDArray[np.int64]  # (MOST_CHILDREN, CHILD_COLUMNS) scratch space
    actions: NDArray[np.int64]  # (MOST_REMOVALS,) scratch space


_SATURATED: Final = LAST_COUNTED_PASS
_SCATTER_1: Final = -7046029254386353131  # odd constants that spread keys over slots
_SCATTER_2: Final = -4417276706812531889
_FEWEST_SLOTS: Final = 1 << 12
_HEAD: Final = 4  # marks the first position of a key's chain while all are entered anew


@kernel
def below(k: int) -> int:
    """Mask of the stock cards before card k."""
    return (1 << k) - 1


@kernel
def top_below(stock: int, cursor: int) -> int:
    """Index of the last stock card left before the cursor, -1 for none: the top of a single waste pile."""
    return highest_bit(stock & below(cursor))


@kernel
def next_left(stock: int, start: int, size: int) -> int:
    """Index of the first stock card left at or after ``start``, ``size`` if there is none."""
    ahead = stock & ~below(start)
    return lowest_bit(ahead) if ahead else size


@kernel
def slot_of(nodes: Nodes, slots: NDArray[np.int32], used: int, shape: int, key: int, cleared: int) -> int:
    """The slot, of the first ``used``, where the key's chain begins, or the free slot (-1) where it would."""
    mixed = (key * _SCATTER_1) ^ ((shape + (cleared << 20)) * _SCATTER_2)
    mixed ^= mixed >> 32
    at = ((mixed * _SCATTER_1) >> 24) & (used - 1)
    while slots[at] >= 0:
        node = nodes[slots[at]]
        if node.key == key and node.shape == shape and node.cleared == cleared:
            break
        at = (at + 1) & (used - 1)
    return at


@kernel
def clear_memory(memory: Memory, buckets: int) -> None:
    """Forget all positions."""
    progress = memory.progress
    progress[COUNT] = 0
    progress[KEYED] = 0
    progress[BUCKET] = buckets
    progress[BUCKETS] = buckets
    progress[BEST] = -1
    progress[VALUE] = -1
    progress[FULL] = 0
    progress[EXPANDED] = 0
    progress[SLOTS] = min(_FEWEST_SLOTS, memory.slots.size)
    memory.slots[: progress[SLOTS]] = -1
    memory.heads[:buckets] = -1


@kernel
def spread(memory: Memory) -> None:
    """Put as many slots in use as the positions need, twice their number, and enter all keys anew."""
    nodes, slots, progress = memory.nodes, memory.slots, memory.progress
    used = progress[SLOTS]
    more = used
    while more < 2 * (progress[KEYED] + 1) and more < slots.size:
        more *= 2
    if more == used:
        return
    more = min(2 * more, slots.size)
    for at in range(used):
        if slots[at] >= 0:
            nodes[slots[at]].dead |= _HEAD
    progress[SLOTS] = more
    slots[:more] = -1
    for at in range(progress[COUNT]):
        node = nodes[at]
        if node.dead & _HEAD:
            nodes[at].dead ^= _HEAD
            slots[slot_of(nodes, slots, more, node.shape, node.key, node.cleared)] = at


@kernel
def waiting(table: Table, stock: int, cursor: int, pass_number: int, to_cursor: int, to_pass: int) -> int:
    """Draws and recycles that lead from one time to another of the same key, -1 if they can't.

    With unlimited passes every pass from the saturated one on is the same, so there one can wait for any time.
    """
    if stock == 0:
        return 0 if pass_number <= to_pass else -1
    size, draw_count = table.stock_size, table.draw_count
    ahead = count_bits(stock >> cursor)
    if pass_number == to_pass and cursor <= to_cursor:
        cards = ahead - count_bits(stock >> to_cursor)
        if draw_count == 1:
            return cards
        if cards % draw_count == 0 or to_cursor == size:
            return (cards + draw_count - 1) // draw_count
    if to_pass > pass_number or (table.passes == 0 and to_pass == pass_number == _SATURATED):
        total = count_bits(stock)
        cards = total - count_bits(stock >> to_cursor)
        whole_passes = max(to_pass - pass_number - 1, 0)
        if draw_count == 1:
            return ahead + 1 + cards + whole_passes * (total + 1)
        if cards % draw_count == 0 or to_cursor == size:
            draws = (ahead + draw_count - 1) // draw_count + (cards + draw_count - 1) // draw_count
            return draws + 1 + whole_passes * ((total + draw_count - 1) // draw_count + 1)
    return -1
