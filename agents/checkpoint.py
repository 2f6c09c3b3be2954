"""Checkpoint: a training's whole state in one safetensors file: weights and JSON, no pickle, all or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from agents.base import AgentError
from agents.sections import OWN
from pyramid_env.errors import PyramidError
from pyramid_env.moves import move_table
from pyramid_env.observation import layout
from pyramid_env.registration import ENV_ID
from pyramid_env.rules import Rules

FORMAT: Final = 1
KINDS: Final = (*OWN, "maskable_ppo", "dqn")
"""Algorithms whose checkpoints can be read."""

SUFFIX: Final = ".safetensors"
_HEADER: Final = "checkpoint"
"""Key of the JSON text in the file's metadata."""


class CheckpointError(AgentError):
    """A checkpoint that is damaged, of another format, or of other rules than asked for."""


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds.

    Attributes:
        kind: the algorithm that made it, one of KINDS.
        rules: the game it was trained on.
        level: information level of its observations.
        actions: A, the size of the action space.
        tokens: (F) values of each observation entry.
        network: keyword arguments of the network.
        policy: weights by name.
        optimizer: state of the optimiser: tensors by ``"<parameter>.<key>"``; empty in a file that is only to be
            played, as is ``training``.
        training: what else a learner needs to go on, such as its games: arrays by name.
        progress: counters and results: ``steps``, ``updates``, ``best``, ``state`` (of random numbers and the like);
            JSON values.
        versions: of what wrote it.
        environment: id and version of the environment that it was trained in.
    """

    kind: str
    rules: Rules
    level: str
    actions: int
    tokens: tuple[int, ...]
    network: Mapping[str, Any]
    policy: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    training: Mapping[str, Tensor] = field(default_factory=dict)
    environment: str = ENV_ID


_GROUPS: Final = ("policy", "optimizer", "training")


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint under a temporary name, then rename: a reader sees the old file or the new one, never half
    of one.

    Raises:
        CheckpointError: weights that are not finite are not written over good ones.
    """
    tensors = {
        f"{group}.{name}": tensor.detach().cpu().contiguous()
        for group in _GROUPS
        for name, tensor in getattr(checkpoint, group).items()
    }
    bad = [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]
    if bad:
        raise CheckpointError(f"{path}: not written: {bad[0]} holds NaN or infinity")
    header = {
        "format": FORMAT,
        "kind": checkpoint.kind,
        "environment": checkpoint.environment,
        "rules": checkpoint.rules.to_dict(),
        "level": checkpoint.level,
        "actions": checkpoint.actions,
        "tokens": list(checkpoint.tokens),
        "network": dict(checkpoint.network),
        "progress": dict(checkpoint.progress),
        "versions": dict(checkpoint.versions),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        # Not save_file: it makes files that only their owner can read, whatever the umask.
        temporary.write_bytes(save(tensors, metadata={_HEADER: json.dumps(header)}))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint file.

    Raises:
        CheckpointError: no such file, damaged, or of a format this version cannot read.
    """
    if not path.is_file():
        raise CheckpointError(f"{path}: no such checkpoint")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get(_HEADER, "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not a checkpoint, or damaged: {error}") from None
    if not isinstance(header, dict) or header.get("kind") not in KINDS:
        found = header.get("kind") if isinstance(header, dict) else "no checkpoint header"
        raise CheckpointError(f"{path}: expected a checkpoint of kind {', '.join(KINDS)}, got {found!r}")
    if header.get("format") != FORMAT:
        raise CheckpointError(f"{path}: expected checkpoint format {FORMAT}, got {header.get('format')!r}")
    if header.get("environment", ENV_ID) != ENV_ID:
        raise CheckpointError(f"{path}: trained in {header['environment']}, this version has {ENV_ID}")
    try:
        return Checkpoint(
            kind=header["kind"],
            rules=Rules(**header["rules"]),
            level=header["level"],
            actions=header["actions"],
            tokens=tuple(header["tokens"]),
            network=header["network"],
            progress=header["progress"],
            versions=header["versions"],
            policy=_group(tensors, "policy"),
            optimizer=_group(tensors, "optimizer"),
            training=_group(tensors, "training"),
        )
    except (KeyError, TypeError, PyramidError) as error:
        raise CheckpointError(f"{path}: damaged header: {error}") from None


def _group(tensors: Mapping[str, Tensor], group: str) -> dict[str, Tensor]:
    return {name.removeprefix(group + "."): t for name, t in tensors.items() if name.startswith(group + ".")}


def check_rules(checkpoint: Checkpoint, rules: Rules, path: Path) -> None:
    """Raise CheckpointError naming the switches unless the checkpoint was trained on these rules."""
    trained, wanted = checkpoint.rules.to_dict(), rules.to_dict()
    different = [
        f"{name} {trained[name]!r} (trained) and {wanted[name]!r} (asked for)"
        for name in wanted
        if name != "preset" and trained[name] != wanted[name]
    ]
    if different:
        raise CheckpointError(
            f"{path}: trained on {checkpoint.rules}, asked to play {rules}; they differ in {', '.join(different)}"
        )


def check_shape(checkpoint: Checkpoint, path: Path) -> None:
    """Raise CheckpointError if the observation or the actions of its rules are other ones in this version."""
    fields = layout(checkpoint.rules, checkpoint.level).fields
    tokens = tuple(field.high + 1 for field in fields for _ in range(field.size))
    actions = len(move_table(checkpoint.rules))
    if tokens != checkpoint.tokens or actions != checkpoint.actions:
        raise CheckpointError(
            f"{path}: made for observations of {len(checkpoint.tokens)} entries with {sum(checkpoint.tokens)} values "
            f"and {checkpoint.actions} actions; in this version {checkpoint.rules} has {len(tokens)} entries with "
            f"{sum(tokens)} values and {actions} actions"
        )


def network_arguments(checkpoint: Checkpoint) -> dict[str, Any]:
    """The keyword arguments of its network, lists turned back into tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in checkpoint.network.items()}


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """The weights, each once: a ``state_dict`` of SB3's policies has the shared extractor three times over."""
    return {name: parameter.detach() for name, parameter in network.named_parameters()}


def put_weights(network: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Copy weights into a network of the same kind; CheckpointError if they are not of the same names and shapes."""
    ours, given = ({name: tuple(t.shape) for name, t in side.items()} for side in (weights_of(network), weights))
    if ours != given:
        name = sorted(set(ours.items()) ^ set(given.items()))[0][0]
        raise CheckpointError(
            f"{path}: weights do not fit the network: {name}: expected shape {ours.get(name, 'none')}, "
            f"got {given.get(name, 'none')}"
        )
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(weights[name])


def pack_optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """An optimiser's per-parameter state as flat tensors; its settings come from the config."""
    return {
        f"{index}.{key}": value.clone() if isinstance(value, Tensor) else torch.tensor(value)
        for index, entry in optimizer.state_dict()["state"].items()
        for key, value in entry.items()
    }


def unpack_optimizer(optimizer: torch.optim.Optimizer, packed: Mapping[str, Tensor]) -> None:
    """Put packed state back into a fresh optimiser of the same parameters."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in packed.items():
        index, _, key = name.partition(".")
        state.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def checkpoint_path(path: Path) -> Path:
    """The file to load for a run folder (its best checkpoint, else its latest) or for a checkpoint file."""
    if path.is_file():
        return path
    folder = path / "checkpoints" if (path / "checkpoints").is_dir() else path
    for name in ("best", "latest"):
        if (folder / f"{name}{SUFFIX}").is_file():
            return folder / f"{name}{SUFFIX}"
    raise CheckpointError(f"{path}: expected a checkpoint file or a run folder with checkpoints, found none there")
