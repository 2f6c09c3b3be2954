"""The mask inside the observation, for libraries that look for it there (RLlib, TorchRL)."""

from __future__ import annotations

from typing import Any, Final

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from pyramid_env.env import PyramidEnv, check_choice
from pyramid_env.errors import PyramidError
from pyramid_env.observation import layout

MASK_KINDS: Final = ("float", "bool")
"""Masks as float32 zeros and ones (what RLlib's examples take the logarithm of), or as bool (what TorchRL takes)."""


class MaskInObservation(gym.Wrapper[dict[str, NDArray[Any]], np.int64, dict[str, NDArray[np.int8]], np.int64]):
    """Observations ``{"observations": (F,) float32, "action_mask": (A,)}`` of a PyramidEnv.

    ``observations`` are the fields of the level side by side, as floats: what a plain network takes. ``action_mask`` is
    the mask that ``info["action_mask"]`` has: 1 or true = legal, all zeros once the game is over, when there is nothing
    to choose. Everything else is the environment's own.

    Args:
        env: a PyramidEnv, bare or from ``gym.make``.
        mask: ``"float"``: float32, the space a Box from 0 to 1; ``"bool"``: bool, the space a Box of bool.

    Raises:
        PyramidError: another environment, or another ``mask``.
    """

    def __init__(self, env: gym.Env[Any, Any], mask: str = "float") -> None:
        super().__init__(env)
        inner = env.unwrapped
        if not isinstance(inner, PyramidEnv):
            raise PyramidError(f"MaskInObservation: expected a PyramidEnv, got {type(inner).__name__}")
        self._kind: Final = np.dtype(np.float32 if check_choice("mask", mask, MASK_KINDS) == "float" else np.bool_)
        fields, actions = layout(inner.rules, inner.level).fields, len(inner.moves)
        high = np.concatenate([np.full(field.size, field.high, np.float32) for field in fields])
        space: spaces.Space[Any] = spaces.Dict(
            {
                "observations": spaces.Box(np.zeros_like(high), high, dtype=np.float32),
                "action_mask": spaces.Box(0, 1, (actions,), self._kind.type),
            }
        )
        self.observation_space = space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """See PyramidEnv."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with_mask(observation, info), info

    def step(self, action: Any) -> tuple[dict[str, NDArray[Any]], Any, bool, bool, dict[str, Any]]:
        """See PyramidEnv."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_mask(observation, info), reward, terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """(A,) bool, as sb3-contrib asks for it."""
        inner = self.env.unwrapped
        assert isinstance(inner, PyramidEnv)
        return inner.action_masks()

    def _with_mask(self, observation: dict[str, NDArray[np.int8]], info: dict[str, Any]) -> dict[str, NDArray[Any]]:
        rows = np.concatenate(list(observation.values()), dtype=np.float32)
        return {"observations": rows, "action_mask": info["action_mask"].astype(self._kind)}
