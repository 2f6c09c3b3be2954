"""Infos of the vector environment: arrays of length B, each with a bool array that says which games have the value."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.batch import Batch
from pyramid_env.deal import Deal
from pyramid_env.env import END_FACTS, NO_NUMBER
from pyramid_env.kernels import CLEARED_IN, MSC, PAR, WON

_CLEARED: Final = 0
_PAR: Final = 1
_MSC: Final = 2
_NUMBERS: Final = 3
_WON: Final = 0
_OVER: Final = 1
_FLAGS: Final = 2


class Infos:
    """Makes the infos of a batch.

    Attributes:
        masks: (B, ...) the masks to hand out, in their format.
        unnumbered: deals without a number, by game.
    """

    def __init__(self, batch: Batch, masks: NDArray[Any], unnumbered: dict[int, Deal], copy: bool) -> None:
        self._batch, self._copy = batch, copy
        self.masks, self.unnumbered = masks, unnumbered
        self._final_masks: NDArray[Any] | None = None  # without copies: the environment's own
        self._final_index = np.zeros(0, np.intp)  # its rows that are not zeros
        count = batch.actions.size
        self._all = np.ones((_NUMBERS, count), np.bool_)
        self._numbers, self._flags = _end_arrays(count)
        self._ends_named = _named(self._numbers, self._flags)  # games that have won, say, lie in one array for all keys
        self._over = np.zeros(0, np.intp)  # their rows that are not zeros

    def of_all(self, illegal: NDArray[np.bool_] | None, over: NDArray[np.intp]) -> dict[str, Any]:
        """The infos of all games.

        Args:
            illegal: (B,) games whose action was illegal; None if there are none.
            over: the games that are over.
        """
        count, copies = self._batch.actions.size, self._copy
        masks, numbers, scores = self.masks, self._batch.numbers, self._batch.games.scores
        has = self._all.copy() if copies else self._all
        infos = {
            "action_mask": masks.copy() if copies else masks,
            "_action_mask": has[0],
            "deal": numbers.copy() if copies else numbers,
            "_deal": has[1],
            "score": scores.copy() if copies else scores,
            "_score": has[2],
        }
        self._add_rare(infos, np.arange(count) if self.unnumbered else over, over, illegal)
        return infos

    def of_some(self, index: NDArray[np.intp], illegal: NDArray[np.bool_] | None) -> dict[str, Any]:
        """The infos of some games, zeros for the others."""
        games = self._batch.games
        there = np.zeros(self._batch.actions.size, np.bool_)
        there[index] = True
        infos = {
            "action_mask": self._masks_of(index),
            "_action_mask": there,
            "deal": self._spread(index, self._batch.numbers[index]),
            "_deal": there.copy(),
            "score": self._spread(index, games.scores[index]),
            "_score": there.copy(),
        }
        over = index[games.terminated[index]]
        self._add_rare(infos, index, over, None if illegal is None else illegal & there)
        return infos

    def _masks_of(self, index: NDArray[np.intp]) -> NDArray[Any]:
        if self._copy:
            masks = np.zeros_like(self.masks)
        else:
            if self._final_masks is None:
                self._final_masks = np.zeros_like(self.masks)
            masks = self._final_masks
            masks[self._final_index] = 0
            self._final_index = index
        masks[index] = self.masks[index]
        return masks

    def _add_rare(
        self,
        infos: dict[str, Any],
        index: NDArray[np.intp],
        over: NDArray[np.intp],
        illegal: NDArray[np.bool_] | None,
    ) -> None:
        """Add the infos that only some games have: of those in ``index``, and in ``over`` those that are over."""
        if self.unnumbered:
            named = self._spread(index, self._batch.numbers[index] == NO_NUMBER)
            if named.any():
                infos["cards"], infos["_cards"] = self._texts(named), named
        if illegal is not None and illegal.any():
            infos["illegal_action"], infos["_illegal_action"] = illegal.copy(), illegal.copy()
        if over.size:
            infos |= self._ends(over)

    def _ends(self, over: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        """The end facts of some games, zeros for the others."""
        facts = self._batch.games.facts
        if self._copy:
            numbers, flags = _end_arrays(self._batch.actions.size)
            _spread_ends(facts, over[:0], over, numbers, flags)
            return {key: values.copy() for key, values in _named(numbers, flags).items()}
        before, self._over = self._over, over
        _spread_ends(facts, before, over, self._numbers, self._flags)
        return self._ends_named

    def _spread(self, index: NDArray[np.intp], values: NDArray[Any]) -> NDArray[Any]:
        """(B,) the values of some games, zeros elsewhere."""
        spread = np.zeros(self._batch.actions.size, values.dtype)
        spread[index] = values
        return spread

    def _texts(self, named: NDArray[np.bool_]) -> NDArray[Any]:
        texts = np.full(named.size, None, dtype=object)
        for i in np.flatnonzero(named).tolist():
            texts[i] = str(self.unnumbered[i])
        return texts


def _end_arrays(count: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """What the end facts are written to, a game's side by side: few games end in a step, far from each other."""
    return np.zeros((count, _NUMBERS), np.int64), np.zeros((count, _FLAGS), np.bool_)


def _named(numbers: NDArray[np.int64], flags: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """Columns of end arrays, by the names that the infos have for them."""
    won, over = flags.T
    values = {
        "won": won,
        "is_success": won,
        "cleared_in": numbers[:, _CLEARED],
        "par": numbers[:, _PAR],
        "msc": numbers[:, _MSC],
    }
    assert values.keys() == END_FACTS.keys()
    return {**values, **{f"_{key}": over for key in values}}


@kernel
def _spread_ends(
    facts: NDArray[np.int32],
    before: NDArray[np.int64],
    over: NDArray[np.int64],
    out_numbers: NDArray[np.int64],
    out_flags: NDArray[np.bool_],
) -> None:
    """Write the end facts of some games into arrays that are zeros but for those of the games ``before``."""
    for b in before:
        for column in range(_NUMBERS):
            out_numbers[b, column] = 0
        for column in range(_FLAGS):
            out_flags[b, column] = False
    for b in over:
        out_numbers[b, _CLEARED] = facts[b, CLEARED_IN]
        out_numbers[b, _PAR] = facts[b, PAR]
        out_numbers[b, _MSC] = facts[b, MSC]
        out_flags[b, _WON] = facts[b, WON] != 0
        out_flags[b, _OVER] = True
