"""stable-baselines3's algorithms as learners of train.py: MaskablePPO and the masked DQN."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure as configure_logger
from torch import Tensor, nn

from agents.checkpoint import Checkpoint, pack_optimizer, put_weights, unpack_optimizer, weights_of
from agents.config import Config
from agents.dqn import MaskedDQN, TokenQPolicy
from agents.env_config import EnvConfig
from agents.faults import NonFiniteError
from agents.games import make_deals, make_reward
from agents.learner import Learner, Watch
from agents.networks import MaskedTokenPolicy
from agents.sb3 import CompactRolloutBuffer, PyramidVecEnv, Sb3Agent
from pyramid_env.deal import DealSource
from pyramid_env.rules import Rules


def make_env(config: EnvConfig, rules: Rules, deals: DealSource | None = None) -> PyramidVecEnv:
    """The training environment of a config; ``deals`` as in :class:`PyramidVecEnv`."""
    return PyramidVecEnv(
        rules,
        config.num_envs,
        observation=config.observation,
        reward=make_reward(config, rules),
        reward_scale=config.reward_scale,
        max_episode_steps=config.max_episode_steps,
        flat=True,
        deals=deals,
    )


class Sb3Learner(Learner):
    """What the two have in common. Games and random numbers start anew with each call.

    Attributes:
        model: SB3's algorithm.
        env: what is played.
    """

    def __init__(self, config: Config, done: int = 0) -> None:
        super().__init__(config)
        self.seed: Final = _seed(config.seed, done)
        winnable = config.env.deals == "winnable"
        self._source: Final = make_deals(config.env, config.game, self.seed) if winnable else None
        self.env: Final = make_env(config.env, config.game, self._source)
        self.model: Final[BaseAlgorithm] = self.make_model()

    @abstractmethod
    def make_model(self) -> BaseAlgorithm:
        """SB3's algorithm with the config's settings; it seeds network, actions, batches and deals."""

    @property
    @abstractmethod
    def network(self) -> nn.Module:
        """What is trained, and saved."""

    def learn(self, total: int, watch: Watch, logs: Path) -> None:
        """See :meth:`Learner.learn`."""
        self.model.set_logger(configure_logger(str(logs), ["tensorboard"]))
        self.model.num_timesteps = self.steps
        try:
            self.model.learn(total - self.steps, _Callback(self, watch), reset_num_timesteps=False)
        except _StopNow:
            return
        finally:
            self.model.logger.close()
        self._note()

    def _note(self) -> None:
        """All that was played has been learned from."""
        self.steps, self.updates = self.model.num_timesteps, int(getattr(self.model, "_n_updates"))  # noqa: B009

    def agent(self, name: str, deterministic: bool) -> Sb3Agent:
        """See :meth:`Learner.agent`."""
        policy = self.model.policy
        assert isinstance(policy, (MaskedTokenPolicy, TokenQPolicy))
        return Sb3Agent(policy, self.config.game, self.config.env.observation, name, deterministic)

    def weights(self) -> dict[str, Tensor]:
        """See :meth:`Learner.weights`."""
        return weights_of(self.network)

    def log(self, values: Mapping[str, float]) -> None:
        """See :meth:`Learner.log`."""
        for name, value in values.items():
            self.model.logger.record(name, value)

    def check(self) -> None:
        """See :meth:`Learner.check`; the batch is what the next move is chosen for."""
        bad = [name for name, weight in self.weights().items() if not torch.isfinite(weight).all()]
        if bad:
            batch = {"observations": self.env.buffer.copy(), "action_masks": self.env.action_masks().copy()}
            layer, _, parameter = bad[0].rpartition(".")
            raise NonFiniteError(f"{layer} (its {parameter})", batch)

    def training_state(self) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Any]]:
        """See :meth:`Learner.training_state`."""
        return pack_optimizer(self._optimizer), {}, {}

    def restore(self, checkpoint: Checkpoint, path: Path) -> None:
        """See :meth:`Learner.restore`."""
        put_weights(self.network, checkpoint.policy, path)
        unpack_optimizer(self._optimizer, checkpoint.optimizer)
        self.steps, self.updates = int(checkpoint.progress["steps"]), int(checkpoint.progress["updates"])
        self.model.num_timesteps, self.model._n_updates = self.steps, self.updates

    @property
    def _optimizer(self) -> torch.optim.Optimizer:
        optimizer = self.model.policy.optimizer
        assert isinstance(optimizer, torch.optim.Optimizer)
        return optimizer

    def close(self) -> None:
        """See :meth:`Learner.close`."""
        self.env.close()
        if self._source is not None:
            self._source.close()


class MaskablePpoLearner(Sb3Learner):
    """sb3-contrib's MaskablePPO with our policy."""

    kind = "maskable_ppo"

    def make_model(self) -> MaskablePPO:
        """See :meth:`Sb3Learner.make_model`."""
        settings = asdict(self.config.maskable_ppo)
        rate, last = settings.pop("learning_rate"), settings.pop("final_learning_rate")
        return MaskablePPO(
            MaskedTokenPolicy,
            self.env,
            learning_rate=lambda remaining: rate * (last + (1.0 - last) * remaining),
            policy_kwargs=asdict(self.config.network),
            rollout_buffer_class=CompactRolloutBuffer,
            stats_window_size=1000,
            seed=self.seed,
            device="cpu",
            **settings,
        )

    @property
    def network(self) -> nn.Module:
        """The policy."""
        return self.model.policy


class DqnLearner(Sb3Learner):
    """Our masked DQN."""

    kind = "dqn"

    def make_model(self) -> MaskedDQN:
        """See :meth:`Sb3Learner.make_model`."""
        settings = asdict(self.config.dqn)
        rate, last = settings.pop("learning_rate"), settings.pop("final_learning_rate")
        return MaskedDQN(
            TokenQPolicy,
            self.env,
            learning_rate=lambda remaining: rate * (last + (1.0 - last) * remaining),
            policy_kwargs={**asdict(self.config.network), "duelling": settings.pop("duelling")},
            stats_window_size=1000,
            seed=self.seed,
            device="cpu",
            **settings,
        )

    @property
    def network(self) -> nn.Module:
        """The network that plays; the target network follows it."""
        policy = self.model.policy
        assert isinstance(policy, TokenQPolicy)
        return policy.q_net

    def network_options(self) -> dict[str, Any]:
        """See :meth:`Learner.network_options`."""
        return {"duelling": self.config.dqn.duelling}

    def restore(self, checkpoint: Checkpoint, path: Path) -> None:
        """See :meth:`Learner.restore`; the target network starts as the network."""
        super().restore(checkpoint, path)
        policy = self.model.policy
        assert isinstance(policy, TokenQPolicy)
        policy.q_net_target.load_state_dict(policy.q_net.state_dict())


class _StopNow(Exception):
    """Leave learn() between two updates."""


class _Callback(BaseCallback):
    """Hands SB3's loop over to the watch."""

    def __init__(self, learner: Sb3Learner, watch: Watch) -> None:
        super().__init__()
        self.learner: Final = learner
        self.watch: Final = watch
        self.scores: list[float] = []

    def _on_rollout_start(self) -> None:
        self.learner._note()
        if self.watch.between_updates():
            raise _StopNow

    def _on_step(self) -> bool:
        self.scores += [info["score"] for info in self.locals["infos"] if info]
        if self.watch.played(self.learner.env.num_envs):
            raise _StopNow  # steps that were played but not learned from do not count
        return True

    def _on_rollout_end(self) -> None:
        if self.scores:
            self.logger.record("rollout/score", float(np.mean(self.scores)))
            self.logger.record("rollout/games", len(self.scores))
            self.scores = []


def _seed(seed: int, done: int) -> int:
    """The config's seed at the start, another one for a run that goes on after so many steps."""
    return seed if not done else int(np.random.SeedSequence([seed, done]).generate_state(1)[0])
