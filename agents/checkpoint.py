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
from torch import Tensor

from agents.base import AgentError
from pyramid_env.errors import PyramidError
from pyramid_env.rules import Rules

FORMAT: Final = 1
KIND: Final = "maskable_ppo"
SUFFIX: Final = ".safetensors"
_HEADER: Final = "checkpoint"
"""Key of the JSON text in the file's metadata."""


class CheckpointError(AgentError):
    """A checkpoint that is damaged, of another format, or of other rules than asked for."""


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds.

    Attributes:
        rules: the game it was trained on.
        level: information level of its observations.
        actions: A, the size of the action space.
        tokens: (F) values of each observation entry.
        network: keyword arguments of the policy.
        policy: weights by name.
        optimizer: state of the optimiser: tensors by ``"<parameter>.<key>"``; empty in a file that is only to be
            played.
        progress: counters and results: ``steps``, ``updates``, ``evaluation`` and the like, JSON values.
        versions: of what wrote it.
    """

    rules: Rules
    level: str
    actions: int
    tokens: tuple[int, ...]
    network: Mapping[str, Any]
    policy: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


_GROUPS: Final = ("policy", "optimizer")


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
        "kind": KIND,
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
    if not isinstance(header, dict) or header.get("kind") != KIND:
        found = header.get("kind") if isinstance(header, dict) else "no checkpoint header"
        raise CheckpointError(f"{path}: expected a checkpoint of kind {KIND!r}, got {found!r}")
    if header.get("format") != FORMAT:
        raise CheckpointError(f"{path}: expected checkpoint format {FORMAT}, got {header.get('format')!r}")
    try:
        return Checkpoint(
            rules=Rules(**header["rules"]),
            level=header["level"],
            actions=header["actions"],
            tokens=tuple(header["tokens"]),
            network=header["network"],
            progress=header["progress"],
            versions=header["versions"],
            **{group: _group(tensors, group) for group in _GROUPS},
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
