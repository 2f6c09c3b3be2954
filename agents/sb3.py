"""stable-baselines3: the native vector environment as a VecEnv, and a trained MaskablePPO policy as an Agent.

How to train with it, outside of train.py::

    from sb3_contrib import MaskablePPO
    from agents.networks import MaskedTokenPolicy
    from agents.sb3 import PyramidVecEnv

    env = PyramidVecEnv("mini", num_envs=64, flat=True)
    model = MaskablePPO(MaskedTokenPolicy, env, n_steps=32, batch_size=512)
    model.learn(10_000)
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.vec_env import VecEnv

from agents.base import Agent, Observations, checked_masks
from agents.checkpoint import Checkpoint, check_shape, network_arguments, put_weights
from agents.judgement import Judgement
from agents.networks import MaskedTokenPolicy
from pyramid_env.deal import Deal, DealSource
from pyramid_env.env import END_FACTS, START_OPTIONS
from pyramid_env.errors import PyramidError
from pyramid_env.moves import move_table
from pyramid_env.observation import layout
from pyramid_env.reward import RewardScheme
from pyramid_env.rules import Rules
from pyramid_env.vector_env import PyramidVectorEnv


def flat_space(rules: Rules, level: str) -> spaces.Box:
    """The space of observation rows (F,) int8: every field of the level, one after the other."""
    high = np.concatenate([np.full(field.size, field.high, np.int8) for field in layout(rules, level).fields])
    return spaces.Box(np.zeros_like(high), high, dtype=np.int8)


class PyramidVecEnv(VecEnv):
    """Many games for stable-baselines3, in one process and one array, with masks::

        model = MaskablePPO(MaskedTokenPolicy, PyramidVecEnv("mini", num_envs=64, flat=True), n_steps=32)

    SB3 refuses what ``gymnasium.make_vec`` returns; this hands the same native environment over. Actions,
    observations, rewards and masks are whole arrays, never gathered game by game. Finished games start anew at once
    (SB3's way). A finished game's info holds ``terminal_observation``, ``TimeLimit.truncated``, ``episode`` (``r``,
    ``l``, ``t``, so VecMonitor is not needed), ``is_success``, ``deal``, ``score`` and what the environment tells at
    the end besides, and where it was cut off ``terminal_action_mask``; a running game's info is empty.
    ``env_method("action_masks")``, which sb3-contrib calls, gives the rows of one mask array.

    Args:
        rules: preset, text or Rules.
        num_envs: games side by side.
        observation: information level: ``"table"``, ``"memory"`` (``"clairvoyant"`` sees hidden cards).
        reward: a scheme's name, or a callable on facts before and after.
        reward_scale: factor on the rewards handed to the learner; ``episode["r"]`` is the return without it.
        max_episode_steps: a longer game is truncated.
        flat: observations as one (B, F) int8 array (``"MlpPolicy"``, MaskedTokenPolicy) instead of one array a field
            (``"MultiInputPolicy"``).
        seed: of the first reset; deals, and nothing else, are drawn from it.
        deals: None, or where random deals come from instead, such as WinnableDeals; not closed with the environment.

    Attributes:
        level: information level of the observations.
    """

    def __init__(
        self,
        rules: Rules | str = "pyramid",
        num_envs: int = 256,
        *,
        observation: str = "memory",
        reward: str | RewardScheme = "par",
        reward_scale: float = 1.0,
        max_episode_steps: int = 2000,
        flat: bool = False,
        seed: int | None = None,
        deals: DealSource | None = None,
    ) -> None:
        self.envs: Final = PyramidVectorEnv(
            num_envs=num_envs,
            rules=rules,
            observation=observation,
            reward=reward,
            illegal_action="raise",
            autoreset_mode=AutoresetMode.SAME_STEP,
            max_episode_steps=max_episode_steps,
            copy=False,
            deals=deals,
        )
        self._layout: Final = layout(self.envs.rules, observation)
        self.level: Final = observation
        self._flat: Final = flat
        self._scale: Final = reward_scale
        space = flat_space(self.envs.rules, observation) if flat else self._layout.space()
        super().__init__(num_envs, space, spaces.Discrete(len(move_table(self.envs.rules))))
        self._seed = seed
        self._actions = np.zeros(num_envs, np.int64)
        self._returns = np.zeros(num_envs, np.float64)
        self._lengths = np.zeros(num_envs, np.int64)
        self._start = time.perf_counter()

    @property
    def rules(self) -> Rules:
        """The rules that are played."""
        return self.envs.rules

    @property
    def buffer(self) -> NDArray[np.int8]:
        """(B, F) current observation rows, the environment's own memory."""
        return self.envs.buffer

    def action_masks(self) -> NDArray[np.bool_]:
        """(B, A) masks of the current positions, true = legal; valid until the next step."""
        return self.envs.action_masks()

    def reset(self) -> Any:
        """Start every game anew; a seed given before is used once."""
        seeds = self._seeds if self._seed is None else [self._seed + i for i in range(self.num_envs)]
        self.envs.reset(seed=seeds, options=self._options[0] or None)
        self._seed = None
        self._reset_seeds()
        self._reset_options()
        self._returns[:] = 0.0
        self._lengths[:] = 0
        return self._observations()

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Options of the next reset, and of that alone.

        Args:
            options: those of ``PyramidVectorEnv.reset``, or a list of what each game is to start from:
                ``{"deal": ...}`` or ``{"cards": ...}`` for every game, or ``{"game": ...}`` for every game.

        Raises:
            PyramidError: a list that does not name a start for each game.
        """
        super().set_options(self._merged(options) if isinstance(options, (list, tuple)) else options)

    def _merged(self, options: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """One dict for all games from one dict a game."""
        if len(options) != self.num_envs:
            raise PyramidError(f"set_options: expected {self.num_envs} dicts, one a game, got {len(options)}")
        if not any(options):
            return {}
        for b, given in enumerate(options):
            if len(given) != 1 or not set(given) <= set(START_OPTIONS):
                got = ", ".join(given) or "nothing"
                raise PyramidError(f"set_options: expected one of {', '.join(START_OPTIONS)} for game {b}, got {got}")
        games = [given["game"] for given in options if "game" in given]
        if not games:
            deals = [given["deal"] if "deal" in given else Deal.parse(given["cards"], self.rules) for given in options]
            return {"deals": deals}
        if len(games) < len(options):
            raise PyramidError(f"set_options: expected a game for all or for none, got {len(games)} of {len(options)}")
        return {"games": games}

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take note of the actions (B,)."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play the noted actions."""
        _, rewards, terminated, truncated, native = self.envs.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        done = np.logical_or(terminated, truncated)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]  # each its own: wrappers write into them
        if done.any():
            for b, info in self._final_infos(np.flatnonzero(done), truncated & ~terminated, native):
                infos[b] = info
        self._returns[done] = 0.0
        self._lengths[done] = 0
        return self._observations(), (rewards * self._scale).astype(np.float32), done, infos

    def _observations(self) -> Any:
        """A copy, since the learner keeps it beyond the next step."""
        rows = self.envs.buffer.copy()
        return rows if self._flat else self._layout.views(rows)

    def _final_infos(
        self, index: NDArray[np.intp], cut_off: NDArray[np.bool_], native: dict[str, Any]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """The infos of the games that have just ended, each with its game's index.

        Args:
            index: the games that ended, in order.
            cut_off: (B,) which games were truncated and not over.
            native: what the environment said of the step.
        """
        last: dict[str, Any] = native["final_info"]
        seconds = round(time.perf_counter() - self._start, 6)
        names = ("deal", "score", *(name for name in END_FACTS if name in last))
        columns = [last[name][index].tolist() for name in names]
        over = last["_won"][index].tolist() if "won" in last else [False] * index.size
        cut, returns, lengths = (part[index].tolist() for part in (cut_off, self._returns, self._lengths))
        for k, b in enumerate(index.tolist()):
            told = names if over[k] else names[:2]
            facts = {name: column[k] for name, column in zip(told, columns, strict=False)}
            fields: dict[str, NDArray[np.int8]] = native["final_obs"][b]
            facts["terminal_observation"] = self._layout.flat(fields) if self._flat else fields
            facts["TimeLimit.truncated"] = cut[k]
            if cut[k]:
                facts["terminal_action_mask"] = last["action_mask"][b].astype(np.bool_)
            facts["is_success"] = facts.get("won", False)
            facts["episode"] = {"r": round(returns[k], 6), "l": lengths[k], "t": seconds}
            yield b, facts

    def close(self) -> None:
        """Release the environment."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute, once a game: the games share one environment."""
        value = None if attr_name == "render_mode" else getattr(self, attr_name, None)
        if value is None and attr_name != "render_mode":
            value = getattr(self.envs, attr_name)
        return [value] * len(tuple(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the environment, for all games only."""
        if indices is not None:
            raise ValueError(f"set_attr({attr_name!r}): the games share one environment; indices can't be given")
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """``action_masks``: a row a game. No other method belongs to a single game here."""
        if method_name != "action_masks":
            raise AttributeError(
                f"env_method({method_name!r}): expected 'action_masks'; call env.envs for anything else"
            )
        masks = self.action_masks()
        return list(masks if indices is None else masks[np.asarray(list(self._get_indices(indices)))])

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Never: there are no single environments to wrap. Episodes are counted here, so Monitor isn't missed."""
        return [False for _ in self._get_indices(indices)]


class CompactRolloutBuffer(MaskableRolloutBuffer):
    """sb3-contrib's buffer with masks of one byte instead of four."""

    def reset(self) -> None:
        """See the parent."""
        super().reset()
        self.action_masks = np.ones((self.buffer_size, self.n_envs, self.mask_dims), np.bool_)


class ScoringPolicy(Protocol):
    """MaskedTokenPolicy and TokenQPolicy.

    Attributes:
        says: what :meth:`judge` tells of a move: see :class:`agents.judgement.Judge`.
    """

    says: ClassVar[str]

    @property
    def device(self) -> torch.device:
        """Where it lies."""
        ...

    def scores(self, rows: torch.Tensor, action_masks: NDArray[np.bool_]) -> torch.Tensor:
        """(B, A) how good each legal action is: log-probabilities or values; very low for the others."""
        ...

    def judge(self, rows: torch.Tensor, action_masks: NDArray[np.bool_]) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, A) what it says of the legal actions, 0 for the others, and (B,) what the rest of the game is worth."""
        ...


class Sb3Agent(Agent):
    """A trained policy as an agent.

    Args:
        policy: takes flat observation rows of ``level``.
        rules: what it was trained on.
        level: its information level.
        name: what tables call it.
        deterministic: the likeliest action; false: draw from the policy, with the generator that ``act`` is given.
    """

    def __init__(
        self, policy: ScoringPolicy, rules: Rules, level: str, name: str = "ppo", deterministic: bool = True
    ) -> None:
        super().__init__(rules)
        self.name = name
        self.level = level
        self.policy: Final = policy
        self._layout: Final = layout(rules, level)
        self._deterministic: Final = deterministic

    def act(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See :meth:`Agent.act`."""
        masks = checked_masks(action_masks, len(move_table(self.rules)))
        rows = torch.from_numpy(self._layout.flat(observations))
        with torch.no_grad():
            scores = self.policy.scores(rows.to(self.policy.device), masks).cpu().numpy()
        if not self._deterministic:
            scores = scores + rng.gumbel(size=scores.shape)
        best: NDArray[np.int64] = np.where(masks, scores, -np.inf).argmax(axis=1)
        return best

    @property
    def says(self) -> str:
        """See :class:`agents.judgement.Judge`."""
        return self.policy.says

    def judge_in(
        self, games: NDArray[np.intp], observations: Observations, action_masks: NDArray[np.bool_]
    ) -> Judgement:
        """See :meth:`agents.judgement.Judge.judge_in`; it has no memory."""
        masks = checked_masks(action_masks, len(move_table(self.rules)))
        rows = torch.from_numpy(self._layout.flat(observations))
        with torch.no_grad():
            moves, values = self.policy.judge(rows.to(self.policy.device), masks)
        return Judgement(moves.cpu().numpy(), values.cpu().numpy())


def policy_of(checkpoint: Checkpoint, path: Path) -> MaskedTokenPolicy:
    """The policy of a MaskablePPO checkpoint, ready to play.

    Raises:
        CheckpointError: the observation or the actions of its rules have changed since, or weights do not fit.
    """
    check_shape(checkpoint, path)
    space = flat_space(checkpoint.rules, checkpoint.level)
    sizes = network_arguments(checkpoint)
    policy = MaskedTokenPolicy(space, spaces.Discrete(checkpoint.actions), lambda _: 0.0, **sizes)
    put_weights(policy, checkpoint.policy, path)
    policy.set_training_mode(False)
    return policy
