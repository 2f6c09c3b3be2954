"""The Gymnasium id ``pyramid_env/Pyramid-v0``; importing pyramid_env registers it.

A worker process that was started by spawn has imported nothing: there
``gymnasium.make("pyramid_env:pyramid_env/Pyramid-v0")`` imports the package first, by Gymnasium's ``module:id``
notation.
"""

from __future__ import annotations

from typing import Final

import gymnasium as gym

ENV_ID: Final = "pyramid_env/Pyramid-v0"
MAX_EPISODE_STEPS: Final = 2000
"""Truncates games of illegal or pointless actions; no sensible game comes near it."""


def register() -> None:
    """Register the id, once."""
    if ENV_ID not in gym.registry:
        gym.register(
            ENV_ID,
            entry_point="pyramid_env.env:PyramidEnv",
            vector_entry_point="pyramid_env.vector_env:PyramidVectorEnv",
            max_episode_steps=MAX_EPISODE_STEPS,
        )
