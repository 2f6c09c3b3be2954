"""ActionHead: the policy's last layer, on the legal actions alone, which are a handful out of hundreds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agents.tokens import compiled

MASKED_LOGIT: Final = -1e8
"""The logit of what is not legal: sb3-contrib's value; its exponential is exactly 0 in float32."""


@compiled
def _legal_logits(
    features: NDArray[np.float32],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    groups: NDArray[np.float32],
    group_weight: NDArray[np.float32],
    legal: NDArray[np.int16],
    group_of: NDArray[np.int8],
    masked: np.float32,
    out: NDArray[np.float32],
) -> None:
    """out[b, k] = logit of action legal[b, k]; ``masked`` where that is -1."""
    for b in range(legal.shape[0]):
        for k in range(legal.shape[1]):
            a = legal[b, k]
            if a < 0:
                out[b, k] = masked
                continue
            total = bias[a]
            for d in range(features.shape[1]):
                total += features[b, d] * weight[a, d]
            g = group_of[b, k]
            if g >= 0:
                for d in range(groups.shape[2]):
                    total += groups[b, g, d] * group_weight[a, d]
            out[b, k] = total


@compiled
def _legal_gradients(
    features: NDArray[np.float32],
    weight: NDArray[np.float32],
    groups: NDArray[np.float32],
    group_weight: NDArray[np.float32],
    legal: NDArray[np.int16],
    group_of: NDArray[np.int8],
    gradients: NDArray[np.float32],
    out_features: NDArray[np.float32],
    out_weight: NDArray[np.float32],
    out_bias: NDArray[np.float32],
    out_groups: NDArray[np.float32],
    out_group_weight: NDArray[np.float32],
) -> None:
    """Add the gradients of what :func:`_legal_logits` made to the ``out`` arrays."""
    for b in range(legal.shape[0]):
        for k in range(legal.shape[1]):
            a = legal[b, k]
            if a < 0:
                break
            gradient = gradients[b, k]
            out_bias[a] += gradient
            for d in range(features.shape[1]):
                out_features[b, d] += gradient * weight[a, d]
                out_weight[a, d] += gradient * features[b, d]
            g = group_of[b, k]
            if g >= 0:
                for d in range(groups.shape[2]):
                    out_groups[b, g, d] += gradient * group_weight[a, d]
                    out_group_weight[a, d] += gradient * groups[b, g, d]


class _LegalLogits(torch.autograd.Function):
    """The logits of legal actions alone. 4,096 positions, 254 actions, 256 features, on one core: 0.2 ms and 0.7 ms
    for the gradient; all logits take 7.5 and 11.3 ms."""

    @staticmethod
    def forward(ctx: Any, legal: Tensor, group_of: Tensor, *inputs: Tensor) -> Tensor:
        features, weight, bias, groups, group_weight = (given.detach().contiguous() for given in inputs)
        ctx.save_for_backward(features, weight, groups, group_weight, legal, group_of)
        out = torch.empty(legal.shape)
        kernel: Any = _legal_logits
        arrays = (part.numpy() for part in (features, weight, bias, groups, group_weight, legal, group_of))
        kernel(*arrays, np.float32(MASKED_LOGIT), out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
        features, weight, groups, group_weight, *_ = ctx.saved_tensors
        outs = [torch.zeros_like(part) for part in (features, weight, weight[:, 0], groups, group_weight)]
        arrays: list[Any] = [part.numpy() for part in (*ctx.saved_tensors, gradients.contiguous(), *outs)]
        _legal_gradients(*arrays)
        return None, None, *outs


class ActionHead(nn.Module):
    """The policy's last layer: a logit for every action, or for the legal ones alone.

    Args:
        width: D.
        actions: A.
        group_width: W, of the features of the pair group that an action removes cards of; 0 = there are none.
    """

    def __init__(self, width: int, actions: int, group_width: int = 0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(actions, width))
        self.bias = nn.Parameter(torch.zeros(actions))
        self.group_weight = nn.Parameter(torch.zeros(actions, group_width)) if group_width else None
        nn.init.orthogonal_(self.weight, gain=0.01)  # so small that a fresh policy is nearly uniform

    def forward(
        self,
        features: Tensor,
        legal: Tensor | None = None,
        groups: Tensor | None = None,
        group_of: Tensor | None = None,
    ) -> Tensor:
        """Logits of (B, D) features.

        Args:
            features: (B, D).
            legal: (B, K) int16 legal actions of each row, filled up with -1 at its end; None: all.
            groups: (B, G, W) features of the pair groups, if there are any.
            group_of: (B, K) or (B, A) int8 the group of each action, -1 = none.

        Returns:
            (B, K) logits of ``legal``, MASKED_LOGIT where it is filled up; or (B, A).
        """
        if legal is None:
            every = torch.arange(len(self.bias), dtype=torch.int16, device=features.device)
            legal = every.expand(len(features), -1).contiguous()
        group_weight: Tensor | None = self.group_weight
        if groups is None or group_of is None or group_weight is None:
            groups, group_weight = features.new_zeros(len(features), 0, 0), features.new_zeros(len(self.bias), 0)
            group_of = torch.full_like(legal, -1, dtype=torch.int8)
        given = features, self.weight, self.bias, groups, group_weight
        if features.device.type != "cpu" or features.dtype != torch.float32:
            return plain_logits(legal, group_of, *given)
        logits: Tensor = _LegalLogits.apply(legal, group_of, *given)  # type: ignore[no-untyped-call]  # untyped in torch
        return logits


def plain_logits(
    legal: Tensor,
    group_of: Tensor,
    features: Tensor,
    weight: Tensor,
    bias: Tensor,
    groups: Tensor,
    group_weight: Tensor,
) -> Tensor:
    """What the kernels do, by torch alone, for other devices; arguments as in :class:`ActionHead`."""
    actions = legal.long().clamp(min=0)
    logits = nn.functional.linear(features, weight, bias).gather(1, actions)
    if group_weight.shape[1]:
        group = group_of.long().clamp(min=0)[..., None].expand(-1, -1, groups.shape[2])
        part = (groups.gather(1, group) * group_weight[actions]).sum(dim=2)
        logits = logits + part.masked_fill(group_of < 0, 0.0)
    return logits.masked_fill(legal < 0, MASKED_LOGIT)
