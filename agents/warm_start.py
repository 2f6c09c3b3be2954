"""Warm start: a run that begins with the weights of a checkpoint of another run of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from torch import Tensor, nn

from agents.checkpoint import (
    Checkpoint,
    CheckpointError,
    check_rules,
    check_shape,
    checkpoint_path,
    load_checkpoint,
    network_arguments,
    weights_of,
)
from agents.config import Config, NetworkConfig
from agents.sections import OWN


def first_weights(config: Config) -> Checkpoint | None:
    """The checkpoint that ``init`` names, without what only its own run needs; None if the config names none.

    Raises:
        CheckpointError: nothing there, damaged, or of another kind of network, rules, level or shape; the difference is
            named.
    """
    if config.init is None:
        return None
    path = checkpoint_path(Path(config.init))
    checkpoint = load_checkpoint(path)
    check_first_weights(checkpoint, config, path)
    return replace(checkpoint, optimizer={}, training={}, progress={**checkpoint.progress, "state": {}})


def grown(weights: Mapping[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """The weights, and a network's own for layers that the run they come from did not have.

    A fresh layer of cards is the identity, so a network with more of them begins where the other one stopped.
    """
    fresh = {name: weight for name, weight in weights_of(network).items() if name.startswith("layers.")}
    return {**fresh, **weights}


def check_first_weights(checkpoint: Checkpoint, config: Config, path: Path) -> None:
    """Raise CheckpointError, the difference named, unless a run of this config can begin with the checkpoint."""
    if checkpoint.kind not in OWN:
        raise CheckpointError(f"{path}: expected a checkpoint of {', '.join(OWN)} to start from, got {checkpoint.kind}")
    check_rules(checkpoint, config.game, path)
    check_shape(checkpoint, path)
    if checkpoint.level != config.env.observation:
        raise CheckpointError(
            f"{path}: level {checkpoint.level!r} does not belong to {config.env.observation!r} in env.observation"
        )
    # A setting that is younger than the checkpoint has its default there.
    made, wanted = {**asdict(NetworkConfig()), **network_arguments(checkpoint)}, asdict(config.network)
    made["half"] = wanted["half"]  # how it multiplies while it learns is no part of the network
    if wanted["cards"] and made["card_layers"] < wanted["card_layers"]:
        made["card_layers"] = wanted["card_layers"]
    different = [
        f"network.{name} {made[name]!r} (there) and {wanted[name]!r} (asked for)"
        for name in wanted
        if made[name] != wanted[name]
    ]
    if different:
        raise CheckpointError(f"{path}: another network; they differ in {', '.join(different)}")
