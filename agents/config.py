"""Config: every setting of a training run as a typed value, from YAML and ``key=value``; unknown keys are refused."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar, Union

import yaml

from agents.base import LEVELS
from pyramid_env.benchmark import may_be_training_deals, parse_deals
from pyramid_env.errors import PyramidError
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules

REWARDS: Final = ("cards", "par", "msc", "win", "shaped")
DEALS: Final = ("random", "winnable")
BEST_BY: Final = ("wins", "score")
ACTIVATIONS: Final = ("relu", "tanh", "gelu")


class ConfigError(PyramidError):
    """A setting that is unknown, of the wrong type, out of range, or at odds with another."""


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """What is played and what is paid for.

    Attributes:
        observation: information level, ``"table"`` or ``"memory"``.
        reward: ``"cards"`` (``card_reward`` for each card that leaves, ``win_reward`` for the win) or a scheme of
            pyramid_env.
        card_reward: see ``reward``.
        win_reward: see ``reward``.
        reward_scale: factor on every reward; values near 1 a game suit PPO's defaults.
        num_envs: games side by side.
        max_episode_steps: a longer game is cut off (truncated, its value bootstrapped).
        deals: ``"random"``, or ``"winnable"``: random deals that the solver, working beside the training, proves
            winnable. Evaluation deals are not touched by it.
    """

    observation: str = "memory"
    reward: str = "cards"
    card_reward: float = 0.02
    win_reward: float = 1.0
    reward_scale: float = 1.0
    num_envs: int = 256
    max_episode_steps: int = 2000
    deals: str = "random"

    def __post_init__(self) -> None:
        _one_of("env.observation", self.observation, LEVELS[:2])
        _one_of("env.reward", self.reward, REWARDS)
        _one_of("env.deals", self.deals, DEALS)
        _at_least("env.num_envs", self.num_envs, 1)
        _at_least("env.max_episode_steps", self.max_episode_steps, 1)
        _positive("env.reward_scale", self.reward_scale)


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Sizes of the network: embedding sum, shared layers, then a policy and a value head.

    Attributes:
        embedding: width of the embedding sum.
        shared: widths of the layers that policy and value share.
        policy: widths of the policy's own layers.
        value: widths of the value's own layers.
        activation: between all of them.
    """

    embedding: int = 128
    shared: tuple[int, ...] = (256,)
    policy: tuple[int, ...] = ()
    value: tuple[int, ...] = ()
    activation: str = "relu"

    def __post_init__(self) -> None:
        _at_least("network.embedding", self.embedding, 1)
        for name in ("shared", "policy", "value"):
            for width in getattr(self, name):
                _at_least(f"network.{name}", width, 1)
        _one_of("network.activation", self.activation, ACTIVATIONS)


@dataclass(frozen=True, kw_only=True)
class PpoConfig:
    """Settings of MaskablePPO, named as there.

    Attributes:
        n_steps: steps of each game between two updates.
        batch_size: samples of one gradient step.
        n_epochs: passes over the samples of an update.
        learning_rate: at the start; it falls in a straight line to ``learning_rate * final_learning_rate``.
        final_learning_rate: what is left of the learning rate at the end, as a fraction.
        gamma: discount a step.
        gae_lambda: of the advantage estimate.
        clip_range: of the probability ratio.
        ent_coef: weight of the entropy over legal moves.
        vf_coef: weight of the value loss.
        max_grad_norm: longer gradients are cut to this length.
        target_kl: stop an update early beyond 1.5 times this, null: never.
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
        for name in ("n_steps", "n_epochs"):
            _at_least(f"ppo.{name}", getattr(self, name), 1)
        _at_least("ppo.batch_size", self.batch_size, 2)
        for name in ("learning_rate", "clip_range", "max_grad_norm"):
            _positive(f"ppo.{name}", getattr(self, name))
        for name in ("final_learning_rate", "gamma", "gae_lambda"):
            _between("ppo." + name, getattr(self, name), 0.0, 1.0)
        for name in ("ent_coef", "vf_coef"):
            _between("ppo." + name, getattr(self, name), 0.0, math.inf)
        if self.target_kl is not None:
            _positive("ppo.target_kl", self.target_kl)


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
        _at_least("evaluation.every_steps", self.every_steps, 0)
        _at_least("evaluation.batch_size", self.batch_size, 1)
        _at_least("evaluation.bound_states", self.bound_states, 1)
        _one_of("evaluation.best_by", self.best_by, BEST_BY)


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole training run; ``to_yaml`` writes it, :func:`load_config` reads it back.

    Attributes:
        rules: preset, with changes such as ``"microsoft:passes=1"``.
        seed: of everything random: network, deals, action sampling, batches.
        total_steps: environment steps to train for, rounded up to whole updates.
        threads: torch threads. One is the safe choice for small networks: on two cores that had other work as well, two
            threads took 12 times the CPU time of one for the same steps. More pay off with wide layers on idle cores.
        checkpoint_steps: environment steps between two writes of ``latest``.
        env: see :class:`EnvConfig`.
        network: see :class:`NetworkConfig`.
        ppo: see :class:`PpoConfig`.
        evaluation: see :class:`EvaluationConfig`.
    """

    rules: str = "pyramid"
    seed: int = 0
    total_steps: int = 1_000_000
    threads: int = 1
    checkpoint_steps: int = 250_000
    env: EnvConfig = field(default_factory=EnvConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    ppo: PpoConfig = field(default_factory=PpoConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        try:
            read_rules(self.rules)
        except PyramidError as error:
            raise ConfigError(f"rules: {error}") from None
        _at_least("seed", self.seed, 0)
        _at_least("total_steps", self.total_steps, 1)
        _at_least("threads", self.threads, 1)
        _at_least("checkpoint_steps", self.checkpoint_steps, 1)
        if self.steps_per_update % self.ppo.batch_size == 1:
            raise ConfigError(
                f"ppo.batch_size: {self.ppo.batch_size} leaves a batch of one of the {self.steps_per_update} samples "
                "of an update (env.num_envs * ppo.n_steps), and advantages are normalised within a batch"
            )
        if self.ppo.batch_size > self.steps_per_update:
            raise ConfigError(
                f"ppo.batch_size: expected at most the {self.steps_per_update} samples of an update "
                f"(env.num_envs * ppo.n_steps), got {self.ppo.batch_size}"
            )

    @property
    def game(self) -> Rules:
        """The rules, read."""
        return read_rules(self.rules)

    @property
    def steps_per_update(self) -> int:
        """Environment steps between two updates."""
        return self.env.num_envs * self.ppo.n_steps

    def to_dict(self) -> dict[str, Any]:
        """All settings as YAML values."""
        return {name: _plain(value) for name, value in dataclasses.asdict(self).items()}

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
    if not isinstance(data, Mapping):
        raise ConfigError(f"{source}: expected a mapping of settings, got {type(data).__name__}")
    merged = _deep_copy(data)
    for text in overrides:
        key, value = _read_override(text)
        _set(merged, key, value, text)
    return _build(Config, merged, "", source)


def _read_override(text: str) -> tuple[list[str], Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"override: expected key=value such as ppo.learning_rate=3e-4, got {text!r}")
    try:
        return key.strip().split("."), yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(f"override {text!r}: cannot read the value {value!r}") from None


def _set(settings: dict[str, Any], key: list[str], value: Any, text: str) -> None:
    for part in key[:-1]:
        inner = settings.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"override {text!r}: {part} has no settings of its own")
        settings = inner
    settings[key[-1]] = value


Built = TypeVar("Built")


def _build(made: type[Built], data: Mapping[Any, Any], prefix: str, source: str) -> Built:
    """A config class from a mapping; ``prefix`` is the dotted path to it."""
    hints = typing.get_type_hints(made)
    values = {}
    for key, value in data.items():
        if key not in hints:
            raise ConfigError(f"{source}: unknown key {prefix + str(key)!r}{_nearest(prefix + str(key))}")
        values[key] = _convert(hints[key], value, prefix + key, source)
    try:
        return made(**values)
    except ConfigError as error:
        if str(error).startswith(source):
            raise
        raise ConfigError(f"{source}: {error}") from None


def _convert(hint: Any, value: Any, where: str, source: str) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise _wrong(source, where, f"settings ({', '.join(typing.get_type_hints(hint))})", value)
        return _build(hint, value, where + ".", source)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        inner = next(kind for kind in arguments if kind is not type(None))
        return None if value is None else _convert(inner, value, where, source)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise _wrong(source, where, "a list such as [256, 256]", value)
        return tuple(_convert(arguments[0], item, f"{where}[{i}]", source) for i, item in enumerate(value))
    if hint is float:
        return _number(value, where, source)
    if hint is int:
        if isinstance(value, float) and value.is_integer():
            return int(value)  # 1e6 is a fine way to write a number of steps
        if isinstance(value, str) and _reads_as_number(value) and float(value).is_integer():
            return int(float(value))
        if isinstance(value, bool) or not isinstance(value, int):
            raise _wrong(source, where, "a whole number", value)
        return value
    if hint is bool:
        if not isinstance(value, bool):
            raise _wrong(source, where, "true or false", value)
        return value
    if not isinstance(value, str):
        raise _wrong(source, where, "text", value)
    return value


def _number(value: Any, where: str, source: str) -> float:
    """A float; YAML 1.1 reads 3e-4 as text, which people do not expect, so numbers written that way are read here."""
    if isinstance(value, str) and _reads_as_number(value):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _wrong(source, where, "a finite number", value)
    return float(value)


def _reads_as_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _wrong(source: str, where: str, expected: str, value: Any) -> ConfigError:
    return ConfigError(f"{source}: {where}: expected {expected}, got {value!r} ({type(value).__name__})")


def _all_keys(made: type, prefix: str = "") -> list[str]:
    keys = []
    for name, hint in typing.get_type_hints(made).items():
        keys.append(prefix + name)
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            keys += _all_keys(hint, prefix + name + ".")
    return keys


def _nearest(key: str) -> str:
    """The nearest known key, by its whole path or by its last part: ``learnig_rate`` finds ``ppo.learning_rate``."""
    known = _all_keys(Config)
    by_last = {name.rpartition(".")[2]: name for name in reversed(known)}
    last = key.rpartition(".")[2]
    close = [by_last[last]] if last in by_last else difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    if not close:
        close = [by_last[name] for name in difflib.get_close_matches(last, by_last, n=1)]
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"


def _similar_file(path: Path) -> str:
    there = sorted(p.name for p in path.parent.glob("*.yaml")) if path.parent.is_dir() else []
    return f"; {path.parent} has {', '.join(there)}" if there else ""


def _deep_copy(data: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: _deep_copy(value) if isinstance(value, Mapping) else value for key, value in data.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _one_of(where: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        close = difflib.get_close_matches(value, known, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ConfigError(f"{where}: expected one of {', '.join(known)}, got {value!r}{hint}")


def _at_least(where: str, value: int, low: int) -> None:
    if value < low:
        raise ConfigError(f"{where}: expected {low} or more, got {value}")


def _positive(where: str, value: float) -> None:
    if not value > 0:
        raise ConfigError(f"{where}: expected more than 0, got {value}")


def _between(where: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        bound = f"from {low} to {high}" if math.isfinite(high) else f"{low} or more"
        raise ConfigError(f"{where}: expected a number {bound}, got {value}")
