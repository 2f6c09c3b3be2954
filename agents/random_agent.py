"""Random: every legal action is as likely as any other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent, Observations, checked_masks, choose


class RandomAgent(Agent):
    """Plays uniformly over the legal actions; the floor under every table."""

    name = "random"

    def act(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See :meth:`Agent.act`."""
        rows, actions = np.nonzero(checked_masks(action_masks))
        return choose(rows, actions, rng)
