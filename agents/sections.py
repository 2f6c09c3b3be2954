"""Sections: settings of single algorithms, parts of a :class:`agents.config.Config`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agents.base import AgentError
from agents.planner import read_settings
from agents.typed import ConfigError, at_least, between, one_of, positive

OWN: Final = ("ppo", "teacher", "imitation")
"""Our own algorithms, which train a network of our own."""

OBJECTIVES: Final = ("win", "earliest", "score")
JUDGES: Final = (*OBJECTIVES, "par")
EXPERTS: Final = ("tips", "planner", "solver")


@dataclass(frozen=True, kw_only=True)
class ImitationConfig:
    """Settings of learning from an expert's games (agents/imitation.py). Of the section ``env`` the reward counts: the
    value head learns what the expert's games returned.

    Attributes:
        expert: who plays: ``"tips"``; ``"planner"``, with what may follow its name, such as ``"planner:16"``; or
            ``"solver"``, which sees all cards, hidden ones too.
        judge: what the expert ``solver`` is asked of each move: ``"win"``; ``"earliest"``, the bonus of the pass of the
            clear; ``"score"``, the best score, dear.
        max_states: the solver's limit for each move.
        games: of the expert to learn from. They are played in blocks of ``env.num_envs``, the next one when each move
            so far has been learned from once; when all are there, they are gone over again and again.
        held_out: further games, on which the agreement with the expert is measured.
        batch_size: moves of one gradient step.
        gradient_steps: of an update; after each there is a line in the log and, if it is time, an evaluation.
        learning_rate: at the start; it falls as a cosine to ``learning_rate * final_learning_rate``.
        final_learning_rate: what is left of the learning rate at the end, as a fraction.
        weight_decay: of AdamW.
        gamma: discount a step of what the value head learns; that of the PPO which is to go on from here.
        vf_coef: weight of the value loss.
        max_grad_norm: longer gradients are cut to this length.
    """

    expert: str = "tips"
    judge: str = "win"
    max_states: int = 200_000
    games: int = 20_000
    held_out: int = 256
    batch_size: int = 512
    gradient_steps: int = 64
    learning_rate: float = 1e-3
    final_learning_rate: float = 0.02
    weight_decay: float = 1e-3
    gamma: float = 1.0
    vf_coef: float = 0.5
    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        self._check_expert()
        one_of("imitation.judge", self.judge, OBJECTIVES)
        for name in ("max_states", "games", "held_out", "batch_size", "gradient_steps"):
            at_least(f"imitation.{name}", getattr(self, name), 1)
        for name in ("learning_rate", "max_grad_norm"):
            positive(f"imitation.{name}", getattr(self, name))
        for name in ("final_learning_rate", "weight_decay", "gamma"):
            between(f"imitation.{name}", getattr(self, name), 0.0, 1.0)
        between("imitation.vf_coef", self.vf_coef, 0.0, float("inf"))

    def _check_expert(self) -> None:
        name, _, option = self.expert.partition(":")
        one_of("imitation.expert", name, EXPERTS)
        if option and name != "planner":
            raise ConfigError(f"imitation.expert: expected no option after {name}, got {self.expert!r}")
        try:
            asked = read_settings(option)
        except AgentError as error:
            raise ConfigError(f"imitation.expert: {error}") from None
        if asked.seconds or asked.workers:
            raise ConfigError(
                "imitation.expert: expected no seconds, as games must repeat, and no workers, which are the config's "
                f"threads; got {self.expert!r}"
            )


@dataclass(frozen=True, kw_only=True)
class DqnConfig:
    """Settings of the masked, double, duelling DQN, most of them named as in stable-baselines3.

    Attributes:
        buffer_size: transitions that are remembered.
        learning_starts: environment steps, played at random, before learning begins.
        train_freq: steps of each game between two updates.
        gradient_steps: gradient steps of an update.
        batch_size: transitions of one gradient step.
        learning_rate: at the start; it falls in a straight line to ``learning_rate * final_learning_rate``.
        final_learning_rate: what is left of the learning rate at the end, as a fraction.
        gamma: discount a step.
        target_update_interval: environment steps between two copies to the target network.
        exploration_fraction: share of the training over which random moves get rarer.
        exploration_final_eps: share of random (legal) moves after that.
        max_grad_norm: longer gradients are cut to this length.
        double: the network chooses the next move and the target network values it; false: the target does both.
        duelling: a value and advantages instead of action values alone.
    """

    buffer_size: int = 200_000
    learning_starts: int = 10_000
    train_freq: int = 1
    gradient_steps: int = 4
    batch_size: int = 256
    learning_rate: float = 1e-3
    final_learning_rate: float = 0.1
    gamma: float = 0.99
    target_update_interval: int = 8192
    exploration_fraction: float = 0.3
    exploration_final_eps: float = 0.02
    max_grad_norm: float = 10.0
    double: bool = True
    duelling: bool = True

    def __post_init__(self) -> None:
        for name in ("buffer_size", "train_freq", "gradient_steps", "batch_size", "target_update_interval"):
            at_least(f"dqn.{name}", getattr(self, name), 1)
        at_least("dqn.learning_starts", self.learning_starts, 0)
        for name in ("learning_rate", "max_grad_norm", "exploration_fraction"):
            positive(f"dqn.{name}", getattr(self, name))
        for name in ("final_learning_rate", "gamma", "exploration_fraction", "exploration_final_eps"):
            between(f"dqn.{name}", getattr(self, name), 0.0, 1.0)
