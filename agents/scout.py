"""Scout: watches the first pass, then plays what it has seen with the solver; legal, from memory alone."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent, Observations, checked_masks
from agents.greedy import GreedyAgent
from agents.plans import Plans
from pyramid_env.observation import Position, position_from_observation
from pyramid_env.rules import Rules


class ScoutAgent(Agent):
    """Draws until every card has been seen, and from then on plays a best line (win, else best score).

    Where the rules have one pass, watching would leave nothing to play with: there it plays greedily until all is
    seen. Where nothing is hidden it solves at once. It looks at observations of the level ``memory`` only, so it
    never knows an unseen card.

    Args:
        rules: the game.
        objective: ``"win"``: win if that is possible, else the best score; ``"score"``: the best score.
        max_states: the solver's limit for each search.
    """

    name = "scout"
    level = "memory"

    def __init__(self, rules: Rules, objective: str = "win", max_states: int = 2_000_000) -> None:
        super().__init__(rules)
        self.plans: Final = Plans(rules, objective, max_states)
        self._greedy: Final = GreedyAgent(rules)

    def act(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See :meth:`Agent.act`."""
        masks = checked_masks(action_masks)
        ranks, state = position_from_observation(self.rules, observations)
        watching = (ranks == 0).any(axis=1)  # a card of rank 0 has not been seen
        chosen = np.full(len(masks), masks.shape[1] - 1, np.int64)  # the last action is draw
        if self.rules.passes == 1 and watching.any():
            chosen[watching] = self._greedy.act({}, masks[watching], rng)
        known = ~watching
        if known.any():
            chosen[known] = self.plans.actions(Position(ranks[known], state[known]))
        return chosen
