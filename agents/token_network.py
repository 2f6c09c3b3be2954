"""TokenNetwork: observations as tokens, a trunk, a policy over legal moves and a value; torch alone, however trained.

    tokens (B, F) ─► sum of table rows ─► shared layers ─► residual blocks ─► [GRU] ─► features (B, D)
                                                         features ─► policy layers ─► one logit a legal action
                                                         features ─► value layers  ─► value

A position has a handful of legal actions out of hundreds, so the last layer of the policy works on those alone
(:class:`ActionHead`): with 254 actions the whole layer would be two thirds of an update's arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor, nn

from pyramid_env.observation import layout
from pyramid_env.rules import Rules

ACTIVATION_CLASSES: Final[dict[str, type[nn.Module]]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}

MASKED_LOGIT: Final = -1e8
"""The logit of what is not legal: sb3-contrib's value; its exponential is exactly 0 in float32."""

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile a kernel. Sums may be reordered, to run in vector registers; NaN and infinity stay what they are."""
    options: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "nsz", "reassoc"}}
    return cast(Function, numba.njit(cache=True, nogil=True, **options)(function))


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


# ---- tokens ----------------------------------------------------------------------------------------------------------


def token_counts(space: spaces.Space[Any]) -> NDArray[np.int64]:
    """(F,) number of values of each entry of an observation, in the order in which :class:`TokenSum` reads them."""
    return np.concatenate(
        [_counts(box) for box in (space.spaces.values() if isinstance(space, spaces.Dict) else [space])]
    )


def _counts(box: spaces.Space[Any]) -> NDArray[np.int64]:
    if not isinstance(box, spaces.Box) or not np.issubdtype(box.dtype, np.integer) or np.any(box.low != 0):
        raise ValueError(f"observation space: expected integer boxes from 0 up, got {box}")
    return np.asarray(box.high, np.int64).reshape(-1) + 1


def token_values(rules: Rules, level: str) -> NDArray[np.int64]:
    """(F,) number of values of each entry of an environment's observation row."""
    return np.concatenate([np.full(field.size, field.high + 1) for field in layout(rules, level).fields])


@compiled
def _add_rows(rows: NDArray[np.int32], gradients: NDArray[np.float32], out_table: NDArray[np.float32]) -> None:
    """Add gradients[b] to the table row of each of rows[b, :]."""
    for b in range(rows.shape[0]):
        for f in range(rows.shape[1]):
            row = rows[b, f]
            for e in range(gradients.shape[1]):
                out_table[row, e] += gradients[b, e]


class _RowSum(torch.autograd.Function):
    """``embedding_bag(rows, table, mode="sum")`` with its gradient scattered by a kernel of ours.

    torch's own gradient sorts all rows first: 16 ms against 5.5 ms for 2048 observations of 70 entries, 256 wide,
    on one core. That is a quarter of an update. The order of additions is fixed, so results repeat.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.rows = table.shape[0]
        return torch.nn.functional.embedding_bag(rows, table, mode="sum")

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[None, Tensor]:
        (rows,) = ctx.saved_tensors
        if gradients.device.type == "cpu" and gradients.dtype == torch.float32:
            out = torch.zeros(ctx.rows, gradients.shape[1])
            _add_rows(rows.numpy(), gradients.contiguous().numpy(), out.numpy())
            return None, out
        each = gradients.repeat_interleave(rows.shape[1], dim=0)
        return None, gradients.new_zeros(ctx.rows, gradients.shape[1]).index_add(0, rows.flatten(), each)


class TokenTable(nn.Module):
    """One learned row a token; row numbers (B, F) in, the sums of their rows (B, width) out."""

    def __init__(self, rows: int, width: int, std: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, width))
        nn.init.normal_(self.weight, std=std)

    def forward(self, rows: Tensor) -> Tensor:
        """(B, width) sums of the rows of (B, F) int32 row numbers."""
        sums: Tensor = _RowSum.apply(rows, self.weight)  # type: ignore[no-untyped-call]  # untyped in torch
        return sums


class Residual(nn.Module):
    """features + two layers of them, normalised first; starts as the identity."""

    def __init__(self, width: int, activation: str) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), ACTIVATION_CLASSES[activation](), nn.Linear(width, width)
        )
        last = self.layers[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, features: Tensor) -> Tensor:
        """(B, width) to (B, width)."""
        changed: Tensor = features + self.layers(features)
        return changed


class TokenTrunk(nn.Module):
    """Features of an observation whose every entry is a small integer: one learned row an (entry, value), summed, then
    layers.

    The sum equals a linear layer on the one-hot encoding (pyramid at level memory: about 800 wide) and costs a
    fraction of it.

    Args:
        counts: (F,) values of each entry.
        embedding: width of the sum.
        layers: widths of the layers after it.
        blocks: residual blocks after those, as wide as the last.
        activation: name in ACTIVATION_CLASSES, after the sum and after each layer.

    Attributes:
        width: D, number of features.
    """

    offsets: Tensor  # (F,) int32 first row of each entry

    def __init__(
        self, counts: NDArray[np.int64], embedding: int, layers: tuple[int, ...], blocks: int, activation: str
    ) -> None:
        super().__init__()
        self.width: Final = (embedding, *layers)[-1]
        offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self.register_buffer("offsets", torch.as_tensor(offsets, dtype=torch.int32), persistent=False)
        self.table = TokenTable(int(counts.sum()), embedding, std=len(counts) ** -0.5)  # a sum of F rows has variance 1
        modules: list[nn.Module] = [ACTIVATION_CLASSES[activation]()]
        for before, after in zip((embedding, *layers), layers, strict=False):
            modules += [nn.Linear(before, after), ACTIVATION_CLASSES[activation]()]
        modules += [Residual(self.width, activation) for _ in range(blocks)]
        self.layers = nn.Sequential(*modules)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, D) features of (B, F) integers."""
        features: Tensor = self.layers(self.table(tokens + self.offsets))
        return features


# ---- the policy's last layer -----------------------------------------------------------------------------------------


@compiled
def _legal_logits(
    features: NDArray[np.float32],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    legal: NDArray[np.int16],
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
            out[b, k] = total


@compiled
def _legal_gradients(
    features: NDArray[np.float32],
    weight: NDArray[np.float32],
    legal: NDArray[np.int16],
    gradients: NDArray[np.float32],
    out_features: NDArray[np.float32],
    out_weight: NDArray[np.float32],
    out_bias: NDArray[np.float32],
) -> None:
    """Add the gradients of what :func:`_legal_logits` made to the three arrays."""
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


class _LegalLogits(torch.autograd.Function):
    """The logits of legal actions alone. 4,096 positions, 254 actions, 256 features, on one core: 0.2 ms and 0.7 ms
    for the gradient; all logits take 7.5 and 11.3 ms."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, legal: Tensor) -> Tensor:
        features = features.contiguous()
        ctx.save_for_backward(features, weight, legal)
        out = torch.empty(legal.shape)
        arrays = (features.detach().numpy(), weight.detach().numpy(), bias.detach().numpy(), legal.numpy())
        _legal_logits(*arrays, np.float32(MASKED_LOGIT), out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        features, weight, legal = ctx.saved_tensors
        outs = torch.zeros_like(features), torch.zeros_like(weight), torch.zeros(weight.shape[0])
        arrays = (features.numpy(), weight.detach().numpy(), legal.numpy(), gradients.contiguous().numpy())
        _legal_gradients(*arrays, *(out.numpy() for out in outs))
        return (*outs, None)


class ActionHead(nn.Module):
    """The policy's last layer: a logit for every action, or for the legal ones alone."""

    def __init__(self, width: int, actions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(actions, width))
        self.bias = nn.Parameter(torch.zeros(actions))
        nn.init.orthogonal_(self.weight, gain=0.01)  # so small that a fresh policy is nearly uniform

    def forward(self, features: Tensor, legal: Tensor | None = None) -> Tensor:
        """Logits of (B, D) features.

        Args:
            features: (B, D).
            legal: (B, K) int16 legal actions of each row, filled up with -1 at its end; None: all.

        Returns:
            (B, K) logits of ``legal``, MASKED_LOGIT where it is filled up; or (B, A).
        """
        if legal is None:
            return torch.nn.functional.linear(features, self.weight, self.bias)
        if features.device.type == "cpu" and features.dtype == torch.float32:
            logits: Tensor = _LegalLogits.apply(features, self.weight, self.bias, legal)  # type: ignore[no-untyped-call]  # untyped in torch
            return logits
        every = torch.nn.functional.linear(features, self.weight, self.bias)
        return every.gather(1, legal.long().clamp(min=0)).masked_fill(legal < 0, MASKED_LOGIT)


# ---- the network -----------------------------------------------------------------------------------------------------


class TokenNetwork(nn.Module):
    """Policy and value of positions.

    Args:
        counts: (F,) values of each observation entry.
        actions: A.
        embedding, shared, blocks, policy, value, activation, recurrent: as in NetworkConfig.

    Attributes:
        recurrent: width of the memory carried from step to step, 0 = none.
    """

    def __init__(
        self,
        counts: NDArray[np.int64],
        actions: int,
        *,
        embedding: int = 128,
        shared: tuple[int, ...] = (256,),
        blocks: int = 0,
        policy: tuple[int, ...] = (),
        value: tuple[int, ...] = (),
        activation: str = "relu",
        recurrent: int = 0,
    ) -> None:
        super().__init__()
        self.recurrent: Final = recurrent
        self.trunk = TokenTrunk(counts, embedding, shared, blocks, activation)
        width = self.trunk.width
        if recurrent:
            self.core = nn.GRUCell(width, recurrent)
            width = recurrent
        self.policy, before_policy = _layers(width, policy, activation)
        self.action = ActionHead(before_policy, actions)
        self.value, before_value = _layers(width, value, activation)
        self.worth = nn.Linear(before_value, 1)
        for module in (*self.trunk.layers, *self.policy, *self.value):
            if isinstance(module, nn.Linear):
                nn.init.orthogonal_(module.weight, gain=2**0.5)
                nn.init.zeros_(module.bias)
        nn.init.orthogonal_(self.worth.weight)
        nn.init.zeros_(self.worth.bias)

    def heads(self, features: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits, as :class:`ActionHead` gives them, and (B,) values of (B, D) features."""
        return self.action(self.policy(features), legal), self.values(features)

    def values(self, features: Tensor) -> Tensor:
        """(B,) values of (B, D) features."""
        values: Tensor = self.worth(self.value(features)).squeeze(1)
        return values

    def forward(self, tokens: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits (B, K) or (B, A), and values (B,), of (B, F) tokens; for networks without memory."""
        assert not self.recurrent, "a network with memory needs its state: step or sequence"
        return self.heads(self.trunk(tokens), legal)

    def step(self, tokens: Tensor, memory: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """One step of B games: logits, values and the new memory (B, H), from (B, F) tokens and the memory before.

        Without memory (H = 0) it is handed through.
        """
        features = self.trunk(tokens)
        if self.recurrent:
            features = memory = self.core(features, memory)
        return *self.heads(features, legal), memory

    def sequence(
        self, tokens: Tensor, memory: Tensor, starts: Tensor, legal: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """T steps of B games in a row.

        Args:
            tokens: (T, B, F).
            memory: (B, H) before the first step.
            starts: (T, B) bool: the game is a new one at this step, its memory empty.
            legal: (T * B, K), or None.

        Returns:
            Logits and values of T * B steps, the games of the first step first.
        """
        steps, games = starts.shape
        features = self.trunk(tokens.flatten(0, 1)).view(steps, games, -1)
        remembered = []
        for t in range(steps):
            memory = self.core(features[t], memory * ~starts[t, :, None])
            remembered.append(memory)
        return self.heads(torch.cat(remembered), legal)


def _layers(before: int, widths: tuple[int, ...], activation: str) -> tuple[nn.Sequential, int]:
    modules: list[nn.Module] = []
    for width in widths:
        modules += [nn.Linear(before, width), ACTIVATION_CLASSES[activation]()]
        before = width
    return nn.Sequential(*modules), before
