"""TokenNetwork: observations as tokens, a trunk, a policy over legal moves and a value; torch alone, however trained.

    tokens (B, F) ─► sum of table rows ─┬─► shared layers ─► residual blocks ─► [GRU] ─► features (B, D)
    tokens ─► [pair groups (B, G, W)] ──┘
    features, [the group of each action's cards] ─► policy layers ─► one logit a legal action
    features ─► value layers ─► value

A position has a handful of legal actions out of hundreds, so the last layer of the policy works on those alone
(:class:`ActionHead`): with 254 actions the whole layer would be two thirds of an update's arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agents.action_head import ActionHead
from agents.card_graph import CardNetwork
from agents.pair_groups import PairGroups
from agents.pair_views import PairTables
from agents.tokens import TokenTable, token_values
from pyramid_env.moves import move_table
from pyramid_env.rules import Rules

ACTIVATION_CLASSES: Final[dict[str, type[nn.Module]]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}


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
        beside: width of other features that come in beside the sum.

    Attributes:
        width: D, number of features.
    """

    offsets: Tensor  # (F,) int32 first row of each entry

    def __init__(
        self,
        counts: NDArray[np.int64],
        embedding: int,
        layers: tuple[int, ...],
        blocks: int,
        activation: str,
        beside: int = 0,
    ) -> None:
        super().__init__()
        widths = embedding + beside, *layers
        self.width: Final = widths[-1]
        offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self.register_buffer("offsets", torch.as_tensor(offsets, dtype=torch.int32), persistent=False)
        self.table = TokenTable(int(counts.sum()), embedding, std=len(counts) ** -0.5)  # a sum of F rows has variance 1
        self.activation = ACTIVATION_CLASSES[activation]()
        modules: list[nn.Module] = []
        for before, after in zip(widths, layers, strict=False):
            modules += [nn.Linear(before, after), ACTIVATION_CLASSES[activation]()]
        modules += [Residual(self.width, activation) for _ in range(blocks)]
        self.layers = nn.Sequential(*modules)

    def forward(self, tokens: Tensor, beside: Tensor | None = None) -> Tensor:
        """(B, D) features of (B, F) integers, and of (B, beside) other features."""
        summed = self.activation(self.table(tokens + self.offsets))
        features: Tensor = self.layers(summed if beside is None else torch.cat([summed, beside], dim=1))
        return features


# ---- the network -----------------------------------------------------------------------------------------------------


class TokenNetwork(nn.Module):
    """Policy and value of positions.

    Args:
        counts: (F,) values of each observation entry.
        actions: A.
        pairs: what the pair groups are; needed with ``groups``.
        embedding, shared, groups, group_blocks, blocks, policy, value, activation, recurrent: as in NetworkConfig.

    Attributes:
        recurrent: width of the memory carried from step to step, 0 = none.
        half_precision: as :class:`CardNetwork`'s; this one multiplies in float32 alone.
    """

    half_precision = False

    def __init__(
        self,
        counts: NDArray[np.int64],
        actions: int,
        pairs: PairTables | None = None,
        *,
        embedding: int = 128,
        shared: tuple[int, ...] = (256,),
        blocks: int = 0,
        policy: tuple[int, ...] = (),
        value: tuple[int, ...] = (),
        activation: str = "relu",
        recurrent: int = 0,
        groups: int = 0,
        group_blocks: int = 0,
    ) -> None:
        super().__init__()
        self.recurrent: Final = recurrent
        self.trunk = TokenTrunk(counts, embedding, shared, blocks, activation, groups)
        self.groups: PairGroups | None = None
        if groups:
            assert pairs is not None, "groups of what? tables of the rules are needed"
            self.groups = PairGroups(pairs, groups, group_blocks)
        width = self.trunk.width
        if recurrent:
            self.core = nn.GRUCell(width, recurrent)
            width = recurrent
        self.policy, before_policy = dense_layers(width, policy, activation)
        self.action = ActionHead(before_policy, actions, groups)
        self.value, before_value = dense_layers(width, value, activation)
        self.worth = nn.Linear(before_value, 1)
        begin_layers((*self.trunk.layers, *self.policy, *self.value), self.worth)

    def forward(self, tokens: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits (B, K) or (B, A), as :class:`ActionHead` gives them, and values (B,), of (B, F) int8 tokens; for
        networks without memory."""
        assert not self.recurrent, "a network with memory needs its state: step or sequence"
        features, groups = self._features(tokens)
        return self._logits(features, groups, tokens, legal), self.values(features)

    def step(self, tokens: Tensor, memory: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """One step of B games: logits, values and the new memory (B, H), from (B, F) tokens and the memory before.

        Without memory (H = 0) it is handed through.
        """
        features, groups = self._features(tokens)
        if self.recurrent:
            features = memory = self.core(features, memory)
        return self._logits(features, groups, tokens, legal), self.values(features), memory

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
        flat = tokens.flatten(0, 1)
        features, groups = self._features(flat)
        remembered = []
        for t in range(steps):
            memory = self.core(features.view(steps, games, -1)[t], memory * ~starts[t, :, None])
            remembered.append(memory)
        features = torch.cat(remembered)
        return self._logits(features, groups, flat, legal), self.values(features)

    def last_values(self, tokens: Tensor, memory: Tensor) -> Tensor:
        """(B,) values of positions that no move follows."""
        features, _ = self._features(tokens)
        return self.values(self.core(features, memory) if self.recurrent else features)

    def values(self, features: Tensor) -> Tensor:
        """(B,) values of (B, D) features."""
        values: Tensor = self.worth(self.value(features)).squeeze(1)
        return values

    def value_weights(self) -> list[nn.Parameter]:
        """What the values alone depend on."""
        return [*self.value.parameters(), *self.worth.parameters()]

    def _features(self, tokens: Tensor) -> tuple[Tensor, Tensor | None]:
        """(B, D) features, and (B, G, W) of the groups, if any."""
        if self.groups is None:
            return self.trunk(tokens), None
        groups = self.groups(tokens)
        return self.trunk(tokens, groups.sum(dim=1)), groups

    def _logits(self, features: Tensor, groups: Tensor | None, tokens: Tensor, legal: Tensor | None) -> Tensor:
        group_of = None if self.groups is None else self.groups.group_of(tokens, legal)
        logits: Tensor = self.action(self.policy(features), legal, groups, group_of)
        return logits


def dense_layers(before: int, widths: tuple[int, ...], activation: str) -> tuple[nn.Sequential, int]:
    """Layers of these widths, each with its activation; and the width that comes out."""
    modules: list[nn.Module] = []
    for width in widths:
        modules += [nn.Linear(before, width), ACTIVATION_CLASSES[activation]()]
        before = width
    return nn.Sequential(*modules), before


def begin_layers(hidden: Iterable[nn.Module], worth: nn.Linear) -> None:
    """First weights of the linear ones among hidden layers, and of a last one."""
    for module in hidden:
        if isinstance(module, nn.Linear):
            nn.init.orthogonal_(module.weight, gain=2**0.5)
            nn.init.zeros_(module.bias)
    nn.init.orthogonal_(worth.weight)
    nn.init.zeros_(worth.bias)


Network = TokenNetwork | CardNetwork
"""What our own algorithms train."""


def policy_weights(network: Network) -> list[nn.Parameter]:
    """All weights but those that values alone depend on."""
    values = {id(weight) for weight in network.value_weights()}
    return [weight for weight in network.parameters() if id(weight) not in values]


@contextmanager
def half_precision(network: Network, on: bool) -> Iterator[None]:
    """Have a network multiply in bfloat16 meanwhile, if ``on``; afterwards it is exact again."""
    network.half_precision = on
    try:
        yield
    finally:
        network.half_precision = False


def network_for(rules: Rules, level: str, sizes: Mapping[str, Any]) -> Network:
    """A fresh network for observations of a level under some rules; ``sizes`` are a NetworkConfig's."""
    if sizes.get("cards"):
        return CardNetwork(rules, level, sizes["cards"], sizes["card_layers"])
    sizes = {name: value for name, value in sizes.items() if name not in ("cards", "card_layers", "half")}
    pairs = PairTables(rules, level) if sizes.get("groups") else None
    return TokenNetwork(token_values(rules, level), len(move_table(rules)), pairs, **sizes)
