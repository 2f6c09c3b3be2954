"""Config: every setting of a training run as a typed value, from YAML and ``key=value``; unknown keys are refused."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from agents.env_config import EnvConfig
from agents.sections import JUDGES, OWN, DqnConfig, ImitationConfig
from agents.typed import ConfigError, at_least, between, build, one_of, plain, positive
from pyramid_env.benchmark import may_be_training_deals, parse_deals
from pyramid_env.errors import PyramidError
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules

ALGORITHMS: Final = (*OWN, "maskable_ppo", "dqn")
BEST_BY: Final = ("wins", "score")
ACTIVATIONS: Final = ("relu", "tanh", "gelu")
SCHEDULES: Final = ("linear", "cosine")


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Sizes of the network: embedding sum, shared layers, then a policy and a value head.

    Attributes:
        embedding: width of the embedding sum.
        groups: width of the encoder that looks at each pair of ranks that leave together (agents/pair_groups.py), 0 =
            none; for our own algorithms alone, not for those of stable-baselines3.
        group_blocks: blocks of that encoder in which the groups hear of each other.
        cards: width of a network that sees the cards as a graph (agents/card_graph.py), in place of all the others: 0 =
            none; for our own algorithms alone.
        card_layers: rounds of messages between the cards of that network.
        half: that network learns in bfloat16: about four times as fast on processors made for it; ``ppo`` and
            ``teacher`` alone.
        shared: widths of the layers that policy and value share.
        blocks: residual blocks after those, as wide as the last of them.
        policy: widths of the policy's own layers.
        value: widths of the value's own layers.
        activation: between all of them.
        recurrent: width of a memory (a GRU) that is carried from move to move, 0 = none; ``ppo`` alone. For the level
            ``table``, which does not show what has been seen.
    """

    embedding: int = 128
    groups: int = 0
    group_blocks: int = 0
    cards: int = 0
    card_layers: int = 4
    half: bool = False
    shared: tuple[int, ...] = (256,)
    blocks: int = 0
    policy: tuple[int, ...] = ()
    value: tuple[int, ...] = ()
    activation: str = "relu"
    recurrent: int = 0

    def __post_init__(self) -> None:
        at_least("network.embedding", self.embedding, 1)
        for name in ("groups", "group_blocks", "cards", "blocks", "recurrent"):
            at_least(f"network.{name}", getattr(self, name), 0)
        for name in ("shared", "policy", "value"):
            for width in getattr(self, name):
                at_least(f"network.{name}", width, 1)
        one_of("network.activation", self.activation, ACTIVATIONS)
        if self.group_blocks and not self.groups:
            raise ConfigError(f"network.group_blocks: expected 0 without network.groups, got {self.group_blocks}")
        at_least("network.card_layers", self.card_layers, 1)
        for name in ("groups", "recurrent"):
            if self.cards and getattr(self, name):
                raise ConfigError(f"network.{name}: expected 0 with network.cards, got {getattr(self, name)}")
        if self.half and not self.cards:
            raise ConfigError("network.half: expected false without network.cards, got true")


@dataclass(frozen=True, kw_only=True)
class PpoConfig:
    """Settings of our masked PPO.

    Attributes:
        n_steps: steps of each game between two updates.
        batch_size: samples of one gradient step.
        n_epochs: passes over the samples of an update.
        schedule: how the three below go from start to end: ``"linear"`` or ``"cosine"``.
        learning_rate: at the start.
        final_learning_rate: what is left of it at the end, as a fraction.
        clip_range: of the probability ratio, at the start.
        final_clip_range: what is left of it at the end, as a fraction.
        ent_coef: weight of the entropy over legal moves, at the start.
        final_ent_coef: what is left of it at the end, as a fraction.
        gamma: discount a step.
        gae_lambda: of the advantage estimate.
        vf_coef: weight of the value loss.
        max_grad_norm: longer gradients are cut to this length.
        target_kl: stop an update early beyond 1.5 times this, null: never.
        asymmetric_critic: the values that training compares with come from a network of its own which sees all cards
            (agents/critic.py); the policy sees what it always does, and is all that a ``best`` checkpoint holds.
        value_warm_up: environment steps at first in which the value head alone learns, so that a policy that ``init``
            brought along is not spoilt by a value that knows nothing of its play yet.
    """

    n_steps: int = 32
    batch_size: int = 1024
    n_epochs: int = 4
    schedule: str = "linear"
    learning_rate: float = 1e-3
    final_learning_rate: float = 0.1
    clip_range: float = 0.2
    final_clip_range: float = 1.0
    ent_coef: float = 0.003
    final_ent_coef: float = 1.0
    gamma: float = 0.99
    gae_lambda: float = 0.95
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    target_kl: float | None = None
    asymmetric_critic: bool = False
    value_warm_up: int = 0

    def __post_init__(self) -> None:
        one_of("ppo.schedule", self.schedule, SCHEDULES)
        _check_policy_gradient("ppo", self)
        for name in ("final_clip_range", "final_ent_coef"):
            between("ppo." + name, getattr(self, name), 0.0, math.inf)
        positive("ppo.final_clip_range", self.final_clip_range)
        at_least("ppo.value_warm_up", self.value_warm_up, 0)


@dataclass(frozen=True, kw_only=True)
class TeacherConfig:
    """Settings of learning from the solver (agents/teacher.py), which looks at no reward of the section ``env``.

    Attributes:
        judge: what the solver is asked of each move: ``"win"``; ``"earliest"``, the bonus of the pass of the clear;
            ``"score"``, the best score, dear; ``"par"``, nearly that where play goes on after the clear: the bonus of
            the pass of the clear and something for a win; the score once the pyramid is empty or cannot be cleared.
        scale: so much less than the best, in points, makes a move worth nothing; for wins 1.
        max_states: the solver's limit for each move; with the judge ``win`` a move left open is not learned from.
        worlds: positions with hidden cards are marked by the average over so many orders of these; 1: by the true one.
        n_steps: steps of each game between two updates.
        guided: environment steps in which the agent ``tips`` plays, before the network does.
        corrected: so often a move that gives something away is taken back for one of the best.
        stray: so often any legal move is played.
        memory: marked positions that are remembered; a batch at least.
        reuse: how often each is learned from, on average.
        batch_size: samples of one gradient step.
        learning_rate: at the start; it falls as a cosine to ``learning_rate * final_learning_rate``.
        final_learning_rate: what is left of the learning rate at the end, as a fraction.
        warm_up: samples over which the learning rate rises at first.
        weight_decay: of AdamW.
        average: what a gradient step leaves of the running average of the weights, with which games are played.
        max_grad_norm: longer gradients are cut to this length.
    """

    judge: str = "win"
    scale: float = 1.0
    max_states: int = 200_000
    worlds: int = 1
    n_steps: int = 4
    guided: int = 100_000
    corrected: float = 0.6
    stray: float = 0.03
    memory: int = 1_000_000
    reuse: float = 4.0
    batch_size: int = 512
    learning_rate: float = 1.5e-3
    final_learning_rate: float = 0.02
    warm_up: int = 100_000
    weight_decay: float = 1e-3
    average: float = 0.999
    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        one_of("teacher.judge", self.judge, JUDGES)
        for name in ("max_states", "worlds", "n_steps", "memory", "batch_size"):
            at_least(f"teacher.{name}", getattr(self, name), 1)
        for name in ("guided", "warm_up"):
            at_least(f"teacher.{name}", getattr(self, name), 0)
        at_least("teacher.memory", self.memory, self.batch_size)
        if self.judge == "par" and self.worlds > 1:
            raise ConfigError(f"teacher.worlds: expected 1 with teacher.judge par, got {self.worlds}")
        for name in ("scale", "reuse", "learning_rate", "max_grad_norm"):
            positive(f"teacher.{name}", getattr(self, name))
        for name in ("corrected", "stray", "final_learning_rate", "weight_decay", "average"):
            between(f"teacher.{name}", getattr(self, name), 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class MaskablePpoConfig:
    """Settings of sb3-contrib's MaskablePPO, named as there.

    Attributes:
        n_steps, batch_size, n_epochs, gamma, gae_lambda, clip_range, ent_coef, vf_coef, max_grad_norm, target_kl: as in
            PpoConfig, without schedules.
        learning_rate: at the start; it falls in a straight line to ``learning_rate * final_learning_rate``.
        final_learning_rate: what is left of the learning rate at the end, as a fraction.
    """

    n_steps: int = 32
    batch_size: int = 1024
    n_epochs: int = 4
    learning_rate: float = 1e-3
    final_learning_rate: float = 0.1
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    ent_coef: float = 0.003
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    target_kl: float | None = None

    def __post_init__(self) -> None:
        _check_policy_gradient("maskable_ppo", self)


def _check_policy_gradient(section: str, made: PpoConfig | MaskablePpoConfig) -> None:
    for name in ("n_steps", "n_epochs"):
        at_least(f"{section}.{name}", getattr(made, name), 1)
    at_least(f"{section}.batch_size", made.batch_size, 2)
    for name in ("learning_rate", "clip_range", "max_grad_norm"):
        positive(f"{section}.{name}", getattr(made, name))
    for name in ("final_learning_rate", "gamma", "gae_lambda"):
        between(f"{section}.{name}", getattr(made, name), 0.0, 1.0)
    for name in ("ent_coef", "vf_coef"):
        between(f"{section}.{name}", getattr(made, name), 0.0, math.inf)
    if made.target_kl is not None:
        positive(f"{section}.target_kl", made.target_kl)


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """How the run is measured while it goes.

    Attributes:
        deals: deals to play, as evaluate.py's ``--deals``; none of the training range.
        every_steps: environment steps between two evaluations, 0: only at the end.
        batch_size: games side by side.
        deterministic: play the likeliest action; false: draw from the policy.
        bound: solve the deals once (kept in the run folder) and log the share of the bound.
        bound_states: limit of the solver for each question about a deal, in states.
        best_by: what makes a checkpoint the best: ``"wins"`` or ``"score"`` (the other decides between equals).
    """

    deals: str = "validation:0-299"
    every_steps: int = 250_000
    batch_size: int = 500
    deterministic: bool = True
    bound: bool = True
    bound_states: int = 1_000_000
    best_by: str = "wins"

    def __post_init__(self) -> None:
        try:
            numbers = parse_deals(self.deals)
        except PyramidError as error:
            raise ConfigError(f"evaluation.deals: {error}") from None
        if may_be_training_deals(numbers):
            raise ConfigError(f"evaluation.deals: expected deals below the training range, got {self.deals!r}")
        at_least("evaluation.every_steps", self.every_steps, 0)
        at_least("evaluation.batch_size", self.batch_size, 1)
        at_least("evaluation.bound_states", self.bound_states, 1)
        one_of("evaluation.best_by", self.best_by, BEST_BY)


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole training run; ``to_yaml`` writes it, :func:`load_config` reads it back.

    Attributes:
        rules: preset, with changes such as ``"microsoft:passes=1"``.
        algorithm: ``"ppo"`` (ours), ``"teacher"`` (learns from the solver), ``"imitation"`` (of an expert's games),
            ``"maskable_ppo"`` (sb3-contrib's) or ``"dqn"`` (on stable-baselines3's); the section of that name counts,
            those of the others are not looked at.
        seed: of everything random: network, deals, action sampling, batches.
        init: run folder (its best checkpoint) or checkpoint file of one of our own algorithms, whose weights the
            network starts with; null: fresh ones. It must be of the same rules, level and network. The run folder keeps
            a copy of it, from which an interrupted run starts again.
        total_steps: environment steps to train for, rounded up to whole updates; with imitation, which plays no moves
            of its own, moves of the expert to learn from, each as often as it comes up.
        threads: of the learning: with ppo each takes a part of every batch; with the others, and with a memory, they
            are torch's own. One is the safe choice: on two cores that had other work as well, two threads of torch took
            12 times the CPU time of one for the same steps.
        checkpoint_steps: environment steps between two writes of ``latest``.
        env, network, ppo, teacher, imitation, maskable_ppo, dqn, evaluation: see EnvConfig and so on.
    """

    rules: str = "pyramid"
    algorithm: str = "ppo"
    seed: int = 0
    init: str | None = None
    total_steps: int = 1_000_000
    threads: int = 1
    checkpoint_steps: int = 250_000
    env: EnvConfig = field(default_factory=EnvConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    ppo: PpoConfig = field(default_factory=PpoConfig)
    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    imitation: ImitationConfig = field(default_factory=ImitationConfig)
    maskable_ppo: MaskablePpoConfig = field(default_factory=MaskablePpoConfig)
    dqn: DqnConfig = field(default_factory=DqnConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        try:
            read_rules(self.rules)
        except PyramidError as error:
            raise ConfigError(f"rules: {error}") from None
        one_of("algorithm", self.algorithm, ALGORITHMS)
        at_least("seed", self.seed, 0)
        at_least("total_steps", self.total_steps, 1)
        at_least("threads", self.threads, 1)
        at_least("checkpoint_steps", self.checkpoint_steps, 1)
        for name, able in (("groups", OWN), ("cards", OWN), ("half", ("ppo", "teacher")), ("recurrent", ("ppo",))):
            value = getattr(self.network, name)
            if value and self.algorithm not in able:
                nothing = "false" if value is True else "0"
                expected = f"expected {nothing} with algorithm {self.algorithm}, it is for {', '.join(able)} alone"
                raise ConfigError(f"network.{name}: {expected}")
        if self.network.cards and self.env.observation != "memory":
            raise ConfigError(f"env.observation: expected memory with network.cards, got {self.env.observation}")
        self.env.check_curriculum(self.algorithm, remembers=self.network.recurrent > 0)
        if self.algorithm in ("teacher", "imitation") and self.env.observation != "memory":
            expected = f"expected memory with algorithm {self.algorithm}"
            raise ConfigError(f"env.observation: {expected}, got {self.env.observation}")
        if self.init is not None and self.algorithm not in OWN:
            raise ConfigError(f"init: expected null with algorithm {self.algorithm}, it is for {', '.join(OWN)} alone")
        if self.algorithm in ("ppo", "maskable_ppo"):
            self._check_batches()

    def _check_batches(self) -> None:
        samples, batch = self.steps_per_update, self.policy_gradient.batch_size
        where = f"{self.algorithm}.batch_size"
        of_update = f"samples of an update (env.num_envs * {self.algorithm}.n_steps)"
        if samples % batch == 1:
            raise ConfigError(f"{where}: {batch} leaves a batch of one of the {samples} {of_update}")
        if batch > samples:
            raise ConfigError(f"{where}: expected at most the {samples} {of_update}, got {batch}")
        if self.network.recurrent and batch % self.ppo.n_steps:
            raise ConfigError(
                f"{where}: expected a multiple of ppo.n_steps with network.recurrent, which learns from whole "
                f"sequences; got {batch} and {self.ppo.n_steps}"
            )

    @property
    def policy_gradient(self) -> PpoConfig | MaskablePpoConfig:
        """The section of the algorithm, if that is ppo or maskable_ppo."""
        return self.maskable_ppo if self.algorithm == "maskable_ppo" else self.ppo

    @property
    def game(self) -> Rules:
        """The rules, read."""
        return read_rules(self.rules)

    @property
    def steps_per_update(self) -> int:
        """Environment steps between two updates."""
        if self.algorithm == "dqn":
            return self.env.num_envs * self.dqn.train_freq
        if self.algorithm == "imitation":
            return self.imitation.batch_size * self.imitation.gradient_steps
        steps = self.teacher.n_steps if self.algorithm == "teacher" else self.policy_gradient.n_steps
        return self.env.num_envs * steps

    def to_dict(self) -> dict[str, Any]:
        """All settings as YAML values."""
        return {name: plain(value) for name, value in dataclasses.asdict(self).items()}

    def to_yaml(self) -> str:
        """All settings as YAML, in the order of the classes."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False)


def load_config(path: str | Path, overrides: Iterable[str] = ()) -> Config:
    """Read a config file, then apply ``key=value`` texts such as ``ppo.learning_rate=3e-4``.

    Settings that the file leaves out keep their defaults.

    Raises:
        ConfigError: missing or unreadable file, unknown key (the nearest known one is named), wrong type or range.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"config: no file {str(path)!r}{_similar_file(Path(path))}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"config: cannot read {str(path)!r}: {error}") from None
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    return make_config({} if data is None else data, overrides, source=str(path))


def make_config(data: Mapping[str, Any], overrides: Iterable[str] = (), source: str = "config") -> Config:
    """A Config from nested mappings, then ``key=value`` texts; ``source`` names the mappings in errors."""
    return build(Config, data, overrides, source)


def _similar_file(path: Path) -> str:
    there = sorted(p.name for p in path.parent.glob("*.yaml")) if path.parent.is_dir() else []
    return f"; {path.parent} has {', '.join(there)}" if there else ""
