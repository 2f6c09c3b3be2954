"""Geometry: places of a pyramid, what covers what, and which two places can ever be exposed together."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

PLACES_PICTURE: Final = """
Places are numbered row by row, left to right (four rows):

          0            row 1
        1   2          row 2
      3   4   5        row 3
    6   7   8   9      row 4

Row r, column c (both from 1) is place r * (r - 1) / 2 + c - 1; it is covered by (r + 1, c) and (r + 1, c + 1).
"""


class Geometry(NamedTuple):
    """Tables of a pyramid of R rows with P = R(R+1)/2 places; read-only arrays.

    ``covers[i]``: bits of the (none or two) places that lie on place i. ``ancestors[i]``: bits of all places that must
    leave before i is exposed. ``rows[r]``: bits of row r + 1.
    """

    covers: NDArray[np.int64]  # (P,)
    ancestors: NDArray[np.int64]  # (P,)
    rows: NDArray[np.int64]  # (R,)

    @property
    def places(self) -> int:
        """P, the number of places."""
        return len(self.covers)

    def together(self, first: int, second: int) -> bool:
        """Can the two places ever be exposed at the same time? Yes unless one lies below the other."""
        return not (self.ancestors[first] >> second) & 1 and not (self.ancestors[second] >> first) & 1

    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of places that can be exposed together, the smaller first: 196 for seven rows."""
        return [pair for pair in combinations(range(self.places), 2) if self.together(*pair)]

    def cover_pairs(self) -> list[tuple[int, int]]:
        """All (place, one of its two covers): what the overlap rule adds."""
        return [(i, j) for i in range(self.places) for j in range(self.places) if (self.covers[i] >> j) & 1]


def place(row: int, column: int) -> int:
    """The place at a row and column, both from 1."""
    return row * (row - 1) // 2 + column - 1


def row_column(index: int) -> tuple[int, int]:
    """Row and column, both from 1, of a place."""
    row = 1
    while place(row + 1, 1) <= index:
        row += 1
    return row, index - place(row, 1) + 1


@lru_cache
def geometry(rows: int) -> Geometry:
    """The tables of a pyramid of ``rows`` rows."""
    places = rows * (rows + 1) // 2
    covers = np.zeros(places, np.int64)
    ancestors = np.zeros(places, np.int64)
    row_bits = np.zeros(rows, np.int64)
    for i in reversed(range(places)):  # from the bottom row up, so that the ancestors of the covers are known
        row, column = row_column(i)
        row_bits[row - 1] |= 1 << i
        if row < rows:
            for j in (place(row + 1, column), place(row + 1, column + 1)):
                covers[i] |= 1 << j
                ancestors[i] |= (1 << j) | int(ancestors[j])
    for table in (covers, ancestors, row_bits):
        table.setflags(write=False)
    return Geometry(covers, ancestors, row_bits)
