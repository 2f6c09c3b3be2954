"""PufferLib: many games as one PufferEnv, which reads and writes PufferLib's own buffers.

Needs the module ``pufferlib``, which is no extra of ours: its releases pin another torch, or download while they are
built. How to get it stands in docs/doors.md.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pufferlib
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from pyramid_env.deal import DealSource
from pyramid_env.observation import layout
from pyramid_env.reward import RewardScheme
from pyramid_env.rules import Rules
from pyramid_env.vector_env import PyramidVectorEnv

MAX_EPISODE_STEPS: Final = 2000


class PyramidPufferEnv(pufferlib.PufferEnv):  # type: ignore[misc]  # pufferlib has no type information
    """B games for PufferLib; a game that ends starts anew in the same step.

    An observation is a row of F + A int8: the fields of the level, then the action mask, since PufferLib has no place
    of its own for one (its ``masks`` say which agents live). A policy takes the two apart::

        fields, mask = observations[:, :-actions], observations[:, -actions:] != 0
        logits = logits.masked_fill(~mask, -1e9)

    ``step`` gives one info with the means over the games that ended in it (``episode_return``, ``episode_length``,
    ``won``, ``score``, ``games``), or none.

    Args:
        rules: preset, text or Rules.
        num_envs: games side by side, PufferLib's agents.
        observation: information level.
        reward: a scheme's name, or a callable on facts before and after.
        illegal_action: ``"penalty"`` (a policy that knows no masks can learn) or ``"raise"``.
        max_episode_steps: a longer game is truncated.
        deals: None, or where random deals come from.
        buf: PufferLib's buffers, which its vector environments hand over.
        seed: of the first reset that is given none.
    """

    def __init__(
        self,
        rules: Rules | str = "pyramid",
        num_envs: int = 1024,
        observation: str = "memory",
        reward: str | RewardScheme = "par",
        illegal_action: str = "penalty",
        max_episode_steps: int = MAX_EPISODE_STEPS,
        deals: DealSource | None = None,
        buf: Any = None,
        seed: int = 0,
    ) -> None:
        self.envs: Final = PyramidVectorEnv(
            num_envs=num_envs,
            rules=rules,
            observation=observation,
            reward=reward,
            illegal_action=illegal_action,
            autoreset_mode=AutoresetMode.SAME_STEP,
            max_episode_steps=max_episode_steps,
            copy=False,
            deals=deals,
        )
        fields = layout(self.envs.rules, observation).fields
        parts = [np.full(field.size, field.high, np.int8) for field in fields]
        high = np.concatenate([*parts, np.ones(len(self.envs.moves), np.int8)])
        self.single_observation_space = spaces.Box(np.zeros_like(high), high, dtype=np.int8)
        self.single_action_space = spaces.Discrete(len(self.envs.moves))
        self.num_agents = num_envs
        self._seed: int | None = seed
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, np.int64)
        super().__init__(buf)

    def reset(self, seed: int | None = None) -> tuple[NDArray[np.int8], list[dict[str, float]]]:
        """Deal every game anew."""
        self.envs.reset(seed=self._seed if seed is None else seed)
        self._seed = None
        self._returns[:] = 0.0
        self._lengths[:] = 0
        self._show()
        return self.observations, []

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], list[dict[str, float]]]:
        """Play one action in every game; what is returned are PufferLib's buffers, overwritten by the next step."""
        _, rewards, terminated, truncated, infos = self.envs.step(np.asarray(actions).reshape(-1))
        self.rewards[:], self.terminals[:], self.truncations[:] = rewards, terminated, truncated & ~terminated
        self._returns += rewards
        self._lengths += 1
        self._show()
        return self.observations, self.rewards, self.terminals, self.truncations, self._report(infos)

    def close(self) -> None:
        """Release the environment."""
        self.envs.close()

    def _show(self) -> None:
        rows = self.envs.buffer.shape[1]
        self.observations[:, :rows] = self.envs.buffer
        self.observations[:, rows:] = self.envs.masks

    def _report(self, infos: dict[str, Any]) -> list[dict[str, float]]:
        """Means over the games that ended in this step."""
        if "final_info" not in infos:
            return []
        last, ended = infos["final_info"], infos["_final_info"]
        won = last["won"][ended] if "won" in last else np.zeros(int(ended.sum()), np.bool_)
        means = {
            "episode_return": float(self._returns[ended].mean()),
            "episode_length": float(self._lengths[ended].mean()),
            "won": float(won.mean()),
            "score": float(last["score"][ended].mean()),
            "games": float(ended.sum()),
        }
        self._returns[ended] = 0.0
        self._lengths[ended] = 0
        return [means]
