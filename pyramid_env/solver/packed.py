"""Packed counts: a number of cards for each rank, in one integer.

Five bits a rank from the ace up to the last below the king: four for the number (two decks have eight cards of a rank)
and one as guard for comparisons.
"""

from __future__ import annotations

from typing import Final

from pyramid_env._numba import kernel

FIELD: Final = 5
NUMBER: Final = 15
_ONES: Final = sum(1 << (FIELD * f) for f in range(12))
_GUARDS: Final = 16 * _ONES
_EVERY_SECOND: Final = sum(NUMBER << (2 * FIELD * f) for f in range(6))
_SUM_UP: Final = sum(1 << (2 * FIELD * f) for f in range(6))


@kernel
def one_of(rank: int) -> int:
    """The packed count of one card of a rank below the king's."""
    return 1 << (FIELD * (rank - 1))


@kernel
def count_of(packed: int, rank: int) -> int:
    """The number for a rank."""
    return (packed >> (FIELD * (rank - 1))) & NUMBER


@kernel
def absent(packed: int, king: int) -> int:
    """A bit in the field of each rank below the king's of which there is no card."""
    return (_GUARDS - packed) & _GUARDS & ((1 << (FIELD * (king - 1))) - 1)


@kernel
def excess(packed: int, other: int) -> int:
    """By how much each number exceeds the other's, 0 where it does not."""
    difference = (packed | _GUARDS) - other
    over = difference & _GUARDS
    return difference & (over - (over >> (FIELD - 1)))


@kernel
def covers_vector(vector: int, other: int) -> bool:
    """Is every number of ``vector`` at least that of ``other``?"""
    return ((vector | _GUARDS) - other) & _GUARDS == _GUARDS


@kernel
def total(packed: int) -> int:
    """The sum of all numbers: two by two, then all six sums at once by a multiplication."""
    pairs = (packed & _EVERY_SECOND) + ((packed >> FIELD) & _EVERY_SECOND)
    return ((pairs * _SUM_UP) >> (10 * FIELD)) & (2 ** (2 * FIELD) - 1)


@kernel
def mirrored(packed: int, king: int) -> int:
    """The counts with each rank's number in the place of the rank that it makes a pair with."""
    result = 0
    for rank in range(1, king):
        result |= count_of(packed, rank) << (FIELD * (king - rank - 1))
    return result
