"""Rollout: T steps of B games in preallocated arrays, and the advantages of what was done in them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from agents.tokens import compiled


class Rollout:
    """What a policy saw and did: T steps of B games, the games of one step side by side.

    Attributes:
        rows: (T, B, F) int8 observations.
        bits: (T, B, words) int64 legal moves.
        actions: (T, B) int64.
        log_probs: (T, B) of those actions then; values: (T, B) of the positions then; rewards: (T, B).
        terminated: (T, B) the game was over after this step; nothing is to be expected after it.
        truncated: (T, B) the game was cut off after this step; ``last_values`` says what was to be expected.
        last_values: (T, B) values of the last positions of games that were cut off.
        starts: (T, B) the game was a new one at this step.
        advantages, returns: (T, B).
    """

    def __init__(self, steps: int, games: int, features: int, words: int) -> None:
        shape = steps, games
        self.steps: Final = steps
        self.rows: Final = np.zeros((*shape, features), np.int8)
        self.bits: Final = np.zeros((*shape, words), np.int64)
        self.actions: Final = np.zeros(shape, np.int64)
        self.terminated, self.truncated, self.starts = (np.zeros(shape, np.bool_) for _ in range(3))
        self.log_probs, self.values, self.rewards, self.last_values, self.advantages, self.returns = (
            np.zeros(shape, np.float32) for _ in range(6)
        )

    def estimate(self, next_values: NDArray[np.float32], gamma: float, gae_lambda: float) -> None:
        """Work out advantages and returns; ``next_values`` (B,) are those of the positions after the last step."""
        _advantages(
            self.rewards,
            self.values,
            self.terminated,
            self.truncated,
            self.last_values,
            next_values,
            np.float32(gamma),
            np.float32(gae_lambda),
            self.advantages,
        )
        np.add(self.advantages, self.values, out=self.returns)

    def explained_variance(self) -> float:
        """Share of the returns' variance that the values explained; 0 if the returns had none."""
        variance = float(self.returns.var())
        return 1.0 - float(self.advantages.var()) / variance if variance > 0.0 else 0.0


@compiled
def _advantages(
    rewards: NDArray[np.float32],
    values: NDArray[np.float32],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    last_values: NDArray[np.float32],
    next_values: NDArray[np.float32],
    gamma: np.float32,
    gae_lambda: np.float32,
    out: NDArray[np.float32],
) -> None:
    """Generalised advantage estimates (Schulman et al. 2016).

    advantage[t] = delta[t] + gamma * lambda * advantage[t + 1], delta[t] = reward[t] + gamma * value[t + 1] - value[t];
    a game that is over is worth 0 from there on; one that was cut off is worth the value of its last position, and in
    neither do the advantages of the next game count.
    """
    steps, games = rewards.shape
    for b in range(games):
        ahead, carried = next_values[b], np.float32(0.0)
        for t in range(steps - 1, -1, -1):
            if terminated[t, b]:
                ahead, carried = np.float32(0.0), np.float32(0.0)
            elif truncated[t, b]:
                ahead, carried = last_values[t, b], np.float32(0.0)
            carried = rewards[t, b] + gamma * ahead - values[t, b] + gamma * gae_lambda * carried
            out[t, b] = carried
            ahead = values[t, b]
