"""Shapes: the ways in which a pyramid can be worn down, numbered, so that what depends on a shape is computed once.

A card leaves only after its covers, so what is left is always closed upwards. There are few such shapes (Catalan
numbers: 1,430 for seven rows, 16,796 for nine), far fewer than sets of places. From shape to shape lead the ways in
which cards can leave: one alone, two exposed ones, or a card with the only card that still covers it.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.bits import count_bits, lowest_bit
from pyramid_env.geometry import geometry
from pyramid_env.rules import MSC_ROWS

_SCATTER: Final = -7046029254386353131  # odd, 2^64 / golden ratio as a signed number: spreads masks over slots


class Shapes(NamedTuple):
    """All N shapes of R rows by falling number of cards, from the full pyramid (0) to the empty one; read-only.

    The ways out of shape s are the entries ``first_x[s]`` up to ``first_x[s + 1]`` of the columns ``x``.
    """

    masks: NDArray[np.int64]  # (N,) bits of the places left
    exposed: NDArray[np.int64]  # (N,) bits of the places left and not covered
    cards: NDArray[np.int64]  # (N,) number of places left
    row_points: NDArray[np.int64]  # (N,) msc points for the rows that are empty
    slots: NDArray[np.int32]  # (H,) open addressing by mask: shape number, -1 = free
    first_single: NDArray[np.int32]  # (N + 1,)
    single_place: NDArray[np.int8]  # (S,) an exposed place
    single_next: NDArray[np.int16]  # (S,) the shape without it
    first_pair: NDArray[np.int32]  # (N + 1,)
    pair_low: NDArray[np.int8]  # (T,) two exposed places
    pair_high: NDArray[np.int8]
    pair_next: NDArray[np.int16]  # (T,) the shape without both
    first_overlap: NDArray[np.int32]  # (N + 1,)
    overlap_place: NDArray[np.int8]  # (V,) a place with one cover left, which is exposed
    overlap_cover: NDArray[np.int8]  # (V,) that cover
    overlap_next: NDArray[np.int16]  # (V,) the shape without both


@kernel
def shape_of(masks: NDArray[np.int64], slots: NDArray[np.int32], pyramid: int) -> int:
    """The number of a shape, -1 for places that are none."""
    last = slots.size - 1
    at = ((pyramid * _SCATTER) >> 40) & last
    while slots[at] >= 0:
        if masks[slots[at]] == pyramid:
            shape: int = 0 + slots[at]
            return shape
        at = (at + 1) & last
    return -1


@kernel
def _enumerate(
    covers: NDArray[np.int64],
    out_masks: NDArray[np.int64],
    out_exposed: NDArray[np.int64],
    out_cards: NDArray[np.int64],
    out_slots: NDArray[np.int32],
) -> int:
    """Breadth first from the full pyramid, one card less a level; returns the number of shapes."""
    last = out_slots.size - 1
    out_masks[0] = (1 << covers.size) - 1
    out_slots[((out_masks[0] * _SCATTER) >> 40) & last] = 0
    known = 1
    at = 0
    while at < known:
        mask = out_masks[at]
        out_cards[at] = count_bits(mask)
        left = mask
        while left:
            bit = left & -left
            left ^= bit
            if covers[lowest_bit(bit)] & mask:
                continue
            out_exposed[at] |= bit
            smaller = mask ^ bit
            slot = ((smaller * _SCATTER) >> 40) & last
            while out_slots[slot] >= 0 and out_masks[out_slots[slot]] != smaller:
                slot = (slot + 1) & last
            if out_slots[slot] < 0:
                out_masks[known] = smaller
                out_slots[slot] = known
                known += 1
        at += 1
    return known


@kernel
def _connect(covers: NDArray[np.int64], shapes: Shapes) -> tuple[int, int, int]:
    """Fill in the ways out of every shape, as far as the columns have room; returns how many there are of each kind."""
    masks, slots = shapes.masks, shapes.slots
    singles = pairs = overlaps = 0
    for s in range(masks.size):
        shapes.first_single[s] = singles
        shapes.first_pair[s] = pairs
        shapes.first_overlap[s] = overlaps
        mask, exposed = masks[s], shapes.exposed[s]
        left = exposed
        while left:
            bit = left & -left
            left ^= bit
            if singles < shapes.single_place.size:
                shapes.single_place[singles] = lowest_bit(bit)
                shapes.single_next[singles] = shape_of(masks, slots, mask ^ bit)
            singles += 1
            others = left
            while others:
                other = others & -others
                others ^= other
                if pairs < shapes.pair_low.size:
                    shapes.pair_low[pairs] = lowest_bit(bit)
                    shapes.pair_high[pairs] = lowest_bit(other)
                    shapes.pair_next[pairs] = shape_of(masks, slots, mask ^ bit ^ other)
                pairs += 1
        left = mask & ~exposed
        while left:
            i = lowest_bit(left)
            left &= left - 1
            cover = covers[i] & mask
            if cover & (cover - 1) == 0 and cover & exposed:
                if overlaps < shapes.overlap_place.size:
                    shapes.overlap_place[overlaps] = i
                    shapes.overlap_cover[overlaps] = lowest_bit(cover)
                    shapes.overlap_next[overlaps] = shape_of(masks, slots, mask ^ cover ^ (1 << i))
                overlaps += 1
    shapes.first_single[masks.size] = singles
    shapes.first_pair[masks.size] = pairs
    shapes.first_overlap[masks.size] = overlaps
    return singles, pairs, overlaps


@lru_cache
def shapes(rows: int) -> Shapes:
    """The (cached) shapes of a pyramid of ``rows`` rows."""
    pyramid = geometry(rows)
    count = comb(2 * (rows + 1), rows + 1) // (rows + 2)
    masks, exposed, cards, row_points = (np.zeros(count, np.int64) for _ in range(4))
    slots = np.full(1 << (4 * count).bit_length(), -1, np.int32)
    found = _enumerate(pyramid.covers, masks, exposed, cards, slots)
    assert found == count, f"{rows} rows: expected {count} shapes, found {found}"
    for row, points in zip(pyramid.rows[::-1], MSC_ROWS, strict=False):
        row_points += points * ((masks & row) == 0)
    room = (0, 0, 0)
    while True:  # once to count, once to fill
        columns: list[Any] = []
        for ways, places in zip(room, (1, 2, 2), strict=True):
            columns += [np.zeros(count + 1, np.int32), *(np.zeros(ways, np.int8) for _ in range(places))]
            columns.append(np.zeros(ways, np.int16))
        made = Shapes(masks, exposed, cards, row_points, slots, *columns)
        needed = _connect(pyramid.covers, made)
        if needed == room:
            break
        room = needed
    for array in made:
        array.setflags(write=False)
    return made
