"""Shapes: the ways in which a pyramid can be worn down, numbered, so that what depends on a shape is computed once.

A card leaves only after its covers, so what is left is always closed upwards. There are few such shapes (Catalan
numbers: 1,430 for seven rows, 16,796 for nine), far fewer than sets of places.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.geometry import geometry
from pyramid_env.kernels import lowest_bit
from pyramid_env.rules import MSC_ROWS

_SCATTER: Final = -7046029254386353131  # odd, 2^64 / golden ratio as a signed number: spreads masks over slots


class Shapes(NamedTuple):
    """All N shapes of R rows by falling number of cards, from the full pyramid (0) to the empty one; read-only."""

    masks: NDArray[np.int64]  # (N,) bits of the places left
    exposed: NDArray[np.int64]  # (N,) bits of the places left and not covered
    row_points: NDArray[np.int64]  # (N,) msc points for the rows that are empty
    slots: NDArray[np.int32]  # (H,) open addressing by mask: shape number, -1 = free


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


@lru_cache
def shapes(rows: int) -> Shapes:
    """The (cached) shapes of a pyramid of ``rows`` rows."""
    pyramid = geometry(rows)
    count = comb(2 * (rows + 1), rows + 1) // (rows + 2)
    masks = np.zeros(count, np.int64)
    exposed = np.zeros(count, np.int64)
    slots = np.full(1 << (4 * count).bit_length(), -1, np.int32)
    found = _enumerate(pyramid.covers, masks, exposed, slots)
    assert found == count, f"{rows} rows: expected {count} shapes, found {found}"
    row_points = np.zeros(count, np.int64)
    for row, points in zip(pyramid.rows[::-1], MSC_ROWS, strict=False):
        row_points += points * ((masks & row) == 0)
    for made in (masks, exposed, row_points, slots):
        made.setflags(write=False)
    return Shapes(masks, exposed, row_points, slots)
