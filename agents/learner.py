"""Learner: what train.py needs of an algorithm, whichever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from torch import Tensor, nn

from agents.base import Agent
from agents.checkpoint import Checkpoint
from agents.config import Config
from agents.tokens import token_values
from pyramid_env.moves import move_table


class Watch(Protocol):
    """What happens beside learning: evaluation, checkpoints, the bar, stopping."""

    def between_updates(self) -> bool:
        """All steps so far have been learned from; true: stop now."""
        ...

    def played(self, steps: int) -> bool:
        """So many environment steps more have been played; true: a stop is wanted, which may wait for the update."""
        ...


class Learner(ABC):
    """An algorithm at work on one config.

    Attributes:
        kind: name of the algorithm, and of its checkpoints.
        steps: environment steps learned from.
        updates: so many updates.
    """

    kind: ClassVar[str]

    def __init__(self, config: Config) -> None:
        self.config: Final = config
        self.steps = 0
        self.updates = 0

    @abstractmethod
    def learn(self, total: int, watch: Watch, logs: Path) -> None:
        """Learn until ``steps`` reaches the total, or the watch stops it; TensorBoard files go to ``logs``.

        Raises:
            NonFiniteError: NaN or infinity in the network.
        """

    @abstractmethod
    def agent(self, name: str, deterministic: bool) -> Agent:
        """The policy as it is now, as an agent."""

    @abstractmethod
    def weights(self) -> dict[str, Tensor]:
        """The network's weights by name."""

    @abstractmethod
    def log(self, values: Mapping[str, float]) -> None:
        """Add numbers to the log at the present step, while :meth:`learn` runs."""

    @abstractmethod
    def check(self) -> None:
        """Raise NonFiniteError for weights that an update has spoilt."""

    @abstractmethod
    def training_state(self) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Any]]:
        """What going on needs beside the weights: the optimiser's state, arrays, JSON values."""

    @abstractmethod
    def restore(self, checkpoint: Checkpoint, path: Path) -> None:
        """Go on from a checkpoint of the same config; ``path`` is for errors."""

    @abstractmethod
    def close(self) -> None:
        """Release what is open."""

    def checkpoint(self, progress: Mapping[str, Any], versions: Mapping[str, str], *, whole: bool) -> Checkpoint:
        """The present state; ``whole``: with all that going on needs, else what playing needs."""
        optimizer, training, state = self.training_state() if whole else ({}, {}, {})
        rules, level = self.config.game, self.config.env.observation
        return Checkpoint(
            kind=self.kind,
            rules=rules,
            level=level,
            actions=len(move_table(rules)),
            tokens=tuple(token_values(rules, level).tolist()),
            network={**asdict(self.config.network), **self.network_options()},
            policy=self.weights(),
            optimizer=optimizer,
            training=training,
            progress={"steps": self.steps, "updates": self.updates, **progress, "state": state},
            versions=versions,
        )

    def networks(self) -> tuple[nn.Module, ...]:
        """Those that start with the weights of another run's checkpoint where the config has an ``init``."""
        return ()

    def network_options(self) -> dict[str, Any]:
        """What the network depends on beside the config's section ``network``."""
        return {}


def make_learner(config: Config, done: int = 0) -> Learner:
    """The learner of a config's algorithm; ``done`` steps were made before, by a run that it will go on with."""
    if config.algorithm == "ppo":
        from agents.ppo import Ppo

        return Ppo(config)
    if config.algorithm == "teacher":
        from agents.teacher import Teacher

        return Teacher(config)
    if config.algorithm == "imitation":
        from agents.imitation import Imitation

        return Imitation(config)
    from agents.sb3_learner import DqnLearner, MaskablePpoLearner

    return (MaskablePpoLearner if config.algorithm == "maskable_ppo" else DqnLearner)(config, done)
