"""Oracle: sees every card and plays the solver's best line; the bound that no player can pass."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent, Observations, checked_masks
from agents.plans import Plans
from pyramid_env.observation import position_from_observation
from pyramid_env.rules import Rules


class OracleAgent(Agent):
    """Clairvoyant, so never a competitor: its rows are the bound, reached.

    Args:
        rules: the game.
        objective: ``"win"``: win if the deal can be won, else the best score; ``"score"``: the best score.
        max_states: the solver's limit for each search.
    """

    level = "clairvoyant"

    def __init__(self, rules: Rules, objective: str = "win", max_states: int = 20_000_000) -> None:
        super().__init__(rules)
        self.name = "oracle" if objective == "win" else f"oracle:{objective}"
        self.plans: Final = Plans(rules, objective, max_states)

    def act(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See :meth:`Agent.act`."""
        checked_masks(action_masks)
        return self.plans.actions(position_from_observation(self.rules, observations))
