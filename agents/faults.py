"""Faults: NaN and infinity in a network, found by layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class NonFiniteError(ArithmeticError):
    """NaN or infinity in the network: training must stop, since every later result would be worthless.

    Attributes:
        layer: the first layer, in calling order, with a parameter or an output that is not finite.
        batch: what the network was fed: ``observations`` (one array, or one a field), ``action_masks`` and the like.
    """

    def __init__(self, layer: str, batch: dict[str, NDArray[Any]]) -> None:
        super().__init__(f"NaN or infinity in the network, first seen in {layer}")
        self.layer = layer
        self.batch = batch


def first_bad_layer(network: nn.Module, call: Callable[[], object]) -> str:
    """The first layer, in calling order, with a parameter or an output that is not finite; ``call`` feeds the network.

    A bad parameter that the call does not meet is found too, after those.
    """
    found: list[str] = []

    def bad_parameter(module: nn.Module) -> str | None:
        return next((n for n, p in module.named_parameters(recurse=False) if not torch.isfinite(p).all()), None)

    def look(name: str) -> Any:
        def hook(module: nn.Module, _: Any, output: Any) -> None:
            parameter = bad_parameter(module)
            if parameter:
                found.append(f"{name} (its {parameter})")
            elif isinstance(output, Tensor) and not torch.isfinite(output).all():
                found.append(f"{name} (its output)")

        return hook

    leaves = [(name, module) for name, module in network.named_modules() if not list(module.children())]
    hooks = [module.register_forward_hook(look(name)) for name, module in leaves]
    try:
        with torch.no_grad():
            call()
    finally:
        for hook in hooks:
            hook.remove()
    found += [f"{name} (its {bad_parameter(module)})" for name, module in leaves if bad_parameter(module)]
    return found[0] if found else "the sum of its outputs"
