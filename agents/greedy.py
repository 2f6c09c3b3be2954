"""Greedy: a king, else a pair inside the pyramid, else a pair with the waste, else draw; ties by chance."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent, Observations, checked_masks, choose
from pyramid_env.moves import Kind, move_table
from pyramid_env.rules import Rules

PREFERENCE: Final[dict[Kind, int]] = {
    Kind.PLACE_KING: 0,
    Kind.WASTE_KING: 0,
    Kind.STOCK_KING: 0,
    Kind.PLACE_PAIR: 1,
    Kind.PLACE_WASTE: 2,
    Kind.PLACE_STOCK: 2,
    Kind.WASTE_TWO: 2,
    Kind.WASTE_TOPS: 2,
    Kind.DRAW: 3,
    Kind.STOCK_WASTE: 4,
}
"""Smaller is taken first. Stock with waste comes behind the draw: it helps no pyramid card and spends two partners.
Taken as a waste pair it lowers the share of `microsoft` deals cleared from 29.9 % to 23.8 % (10,000 deals); turning the
stock's top does not lose it where the two uppermost cards of the waste may pair."""


class GreedyAgent(Agent):
    """Takes what it can get in a fixed order of kinds; the habit of a quick player."""

    name = "greedy"

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self._preference: Final = np.array([PREFERENCE[move.kind] for move in move_table(rules)], np.int64)  # (A,)

    def act(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See :meth:`Agent.act`."""
        rows, actions = np.nonzero(checked_masks(action_masks, len(self._preference)))
        preference = self._preference[actions]
        best = np.minimum.reduceat(preference, np.flatnonzero(np.diff(rows, prepend=-1)))
        kept = preference == best[rows]
        return choose(rows[kept], actions[kept], rng)
