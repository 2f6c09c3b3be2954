"""Positions: what the search has seen, in two flat tables, and which of two positions makes the other needless.

A key is (pyramid, stock cards left and, where it counts, the pass of the clear). The positions of one key differ in
their time, (pass, cursor), and in the steps they took. Waiting is always possible, so a position dominates another of
its key if drawing alone leads from it there at no more cost. With one card a draw that is every later time; otherwise
the cards between must come out even.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.kernels import Table, count_bits
from pyramid_env.rules import LAST_COUNTED_PASS


class Position(NamedTuple):
    """A position without the pass of the clear; numbers as in the rules' kernels."""

    pyramid: int
    stock: int
    cursor: int
    pass_number: int


NODE: Final = np.dtype(
    [
        ("pyramid", np.int64),
        ("stock", np.int64),
        ("shape", np.int32),
        ("cost", np.int32),  # steps so far; 0 where steps are not asked for
        ("parent", np.int32),  # the position it came from, -1 for the root
        ("chain", np.int32),  # the next position of the same key, -1 = none
        ("queue", np.int32),  # the next position of the same bucket, -1 = none
        ("cursor", np.int8),
        ("pass_number", np.int8),
        ("cleared", np.int8),
        ("dead", np.int8),  # dominated since it was stored: not to be expanded
    ],
    align=True,
)
Nodes = NDArray[Any]  # (capacity,) of NODE

_SATURATED: Final = LAST_COUNTED_PASS
_SCATTER_1: Final = -7046029254386353131  # odd constants that spread masks over slots
_SCATTER_2: Final = -4417276706812531889


@kernel
def below(k: int) -> int:
    """Mask of the stock cards before card k."""
    return (1 << k) - 1


@kernel
def index_of(bit: int) -> int:
    """Index of the one bit that is set."""
    return count_bits(bit - 1)


@kernel
def highest_bit(bits: int) -> int:
    """Index of the highest bit set, -1 for none; ``bits`` must not be negative."""
    for shift in (1, 2, 4, 8, 16, 32):
        bits |= bits >> shift
    return count_bits(bits) - 1


@kernel
def next_left(stock: int, start: int, size: int) -> int:
    """Index of the first stock card left at or after ``start``, ``size`` if there is none."""
    ahead = stock & ~below(start)
    return index_of(ahead & -ahead) if ahead else size


@kernel
def slot_of(nodes: Nodes, index: NDArray[np.int32], pyramid: int, stock: int, cleared: int) -> int:
    """The slot of ``index`` where the key's chain begins, or the free slot (-1) where it would."""
    last = index.size - 1
    mixed = (pyramid * _SCATTER_1) ^ ((stock + cleared) * _SCATTER_2)
    mixed ^= mixed >> 29
    at = ((mixed * _SCATTER_1) >> 24) & last
    while index[at] >= 0:
        node = nodes[index[at]]
        if node.stock == stock and node.pyramid == pyramid and node.cleared == cleared:
            break
        at = (at + 1) & last
    return at


@kernel
def rehash(nodes: Nodes, index: NDArray[np.int32], out_index: NDArray[np.int32]) -> None:
    """Enter all chains of ``index`` into a larger, empty (-1) one."""
    for old in range(index.size):
        head = index[old]
        if head >= 0:
            node = nodes[head]
            out_index[slot_of(nodes, out_index, node.pyramid, node.stock, node.cleared)] = head


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
