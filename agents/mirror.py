"""Mirror: left and right make no difference to the game, so every position is also one seen in a mirror."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env.geometry import row_column
from pyramid_env.moves import Kind, Move, move_table
from pyramid_env.observation import layout
from pyramid_env.rules import Rules

_ON_PLACES: Final = (Kind.PLACE_WASTE, Kind.PLACE_KING, Kind.PLACE_STOCK)


class Mirror:
    """Turns observation rows and actions round; twice is no change.

    Attributes:
        columns: (F,) where each entry of a mirrored row is taken from.
        actions: (A,) the mirrored action of each.
    """

    def __init__(self, rules: Rules, level: str) -> None:
        shown, moves = layout(rules, level), move_table(rules)
        places = np.array([_mirrored(place) for place in range(rules.places)])
        self.columns: Final = np.arange(shown.size)
        start = shown.offsets.pyramid
        self.columns[start : start + rules.places] = start + places
        self.actions: Final = np.array([moves.index_of(_turned(move, places)) for move in moves], np.int16)

    def __call__(self, rows: NDArray[np.int8], legal: NDArray[np.int16]) -> tuple[NDArray[np.int8], NDArray[np.int16]]:
        """(N, F) rows, and (N, K) actions of them, -1 staying -1, in the mirror."""
        return rows[:, self.columns], np.where(legal >= 0, self.actions[legal], legal)


def _mirrored(place: int) -> int:
    row, column = row_column(place)
    return place - (column - 1) + (row - column)


def _turned(move: Move, places: NDArray[np.int64]) -> Move:
    if move.kind == Kind.PLACE_PAIR:
        first, second = sorted((int(places[move.first]), int(places[move.second])))
        return move._replace(first=first, second=second)
    return move._replace(first=int(places[move.first])) if move.kind in _ON_PLACES else move
