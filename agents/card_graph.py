"""CardNetwork: messages run between the cards that have to do with each other, several times over.

    positions (B, F) ─► cards (M, W) and wholes (B, W): sums of table rows
    layer: each card hears the sums of its partners', rivals' and neighbours' features, relation by relation, and its
           position's whole; each whole hears the mean of its cards
    a move: the cards that it removes, the whole and its kind ─► logit
    the whole ─► value

Whether a game can still be won is a question of who needs whom: a card its partner, that partner the cards upon it,
those their partners. The layers follow such chains, one link each. Graph networks of this kind, with weights for each
relation: Schlichtkrull et al. 2018, "Modeling relational data with graph convolutional networks".
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agents.action_head import MASKED_LOGIT
from agents.card_views import ENTRIES, RELATIONS, CardTables, Graph
from agents.tokens import TokenTable, compiled
from pyramid_env.moves import Kind
from pyramid_env.rules import Rules

HEARD: Final = RELATIONS + 2
"""What a card hears: itself, each relation, the whole."""


@compiled
def _round(bits: NDArray[np.uint32], out_bits: NDArray[np.uint16], row: int) -> None:
    """The bits of float32 numbers to those of the nearest bfloat16, of two as near the even one."""
    half, one, places = np.uint32(0x7FFF), np.uint32(1), np.uint32(16)
    for d in range(len(bits)):
        out_bits[row, d] = np.uint16((bits[d] + half + ((bits[d] >> places) & one)) >> places)


@compiled
def _hear(
    cards: NDArray[np.float32],
    wholes: NDArray[np.float32],
    starts: NDArray[np.int32],
    edge_starts: NDArray[np.int32],
    edges: NDArray[np.int32],
    heard: NDArray[np.float32],
    out: NDArray[np.float32],
    out_bits: NDArray[np.uint16],
    out_means: NDArray[np.float32],
) -> None:
    """What each card hears, into ``out`` or, if that has no rows, as bfloat16 into ``out_bits``; means of cards."""
    width = cards.shape[1]
    bits = heard.view(np.uint32)
    for b in range(len(starts) - 1):
        share = np.float32(1.0) / np.float32(max(1, starts[b + 1] - starts[b]))
        for d in range(width):
            out_means[b, d] = 0.0
            heard[(HEARD - 1) * width + d] = wholes[b, d]
        for m in range(starts[b], starts[b + 1]):
            for d in range(width):
                heard[d] = cards[m, d]
                out_means[b, d] += share * cards[m, d]
            for relation in range(RELATIONS):
                at = (relation + 1) * width
                for d in range(width):
                    heard[at + d] = 0.0
                for e in range(edge_starts[m * RELATIONS + relation], edge_starts[m * RELATIONS + relation + 1]):
                    other = edges[e]
                    for d in range(width):
                        heard[at + d] += cards[other, d]
            if len(out):
                for d in range(HEARD * width):
                    out[m, d] = heard[d]
            else:
                _round(bits, out_bits, m)


@compiled
def _hear_gradients(
    gradients: NDArray[np.float32],
    gradient_bits: NDArray[np.uint16],
    mean_gradients: NDArray[np.float32],
    starts: NDArray[np.int32],
    edge_starts: NDArray[np.int32],
    edges: NDArray[np.int32],
    given: NDArray[np.float32],
    out_cards: NDArray[np.float32],
    out_wholes: NDArray[np.float32],
) -> None:
    """The gradients of :func:`_hear`; the ``out`` arrays are zero at first."""
    width = out_cards.shape[1]
    bits = given.view(np.uint32)
    for b in range(len(starts) - 1):
        share = np.float32(1.0) / np.float32(max(1, starts[b + 1] - starts[b]))
        for m in range(starts[b], starts[b + 1]):
            if len(gradients):
                given[:] = gradients[m]
            else:
                for d in range(HEARD * width):
                    bits[d] = np.uint32(gradient_bits[m, d]) << np.uint32(16)
            for d in range(width):
                out_cards[m, d] += given[d] + share * mean_gradients[b, d]
                out_wholes[b, d] += given[(HEARD - 1) * width + d]
            for relation in range(RELATIONS):
                at = (relation + 1) * width
                for e in range(edge_starts[m * RELATIONS + relation], edge_starts[m * RELATIONS + relation + 1]):
                    other = edges[e]
                    for d in range(width):
                        out_cards[other, d] += given[at + d]


class _Hear(torch.autograd.Function):
    """The sums over edges, written at once in the number format that the layer behind them multiplies in."""

    @staticmethod
    def forward(ctx: Any, cards: Tensor, wholes: Tensor, graph: Graph, half: bool) -> tuple[Tensor, Tensor]:
        ctx.graph, ctx.shapes = graph, (cards.shape, wholes.shape)
        count, width = cards.shape
        out = torch.empty(count, HEARD * width, dtype=torch.bfloat16 if half else torch.float32)
        means = torch.empty_like(wholes)
        bits = out.view(torch.uint16).numpy() if half else np.empty((0, 0), np.uint16)
        plain = np.empty((0, 0), np.float32) if half else out.numpy()
        _hear(
            cards.detach().contiguous().numpy(), wholes.detach().contiguous().numpy(), graph.starts, graph.edge_starts,
            graph.edges, np.empty(HEARD * width, np.float32), plain, bits, means.numpy(),
        )  # fmt: skip
        return out, means

    @staticmethod
    def backward(ctx: Any, gradients: Tensor, mean_gradients: Tensor) -> tuple[Tensor | None, ...]:
        graph, (cards, wholes) = ctx.graph, ctx.shapes
        half = gradients.dtype == torch.bfloat16
        gradients = gradients.contiguous()
        bits = gradients.view(torch.uint16).numpy() if half else np.empty((0, 0), np.uint16)
        plain = np.empty((0, 0), np.float32) if half else gradients.numpy()
        out_cards, out_wholes = torch.zeros(cards), torch.zeros(wholes)
        _hear_gradients(
            plain, bits, mean_gradients.contiguous().numpy(), graph.starts, graph.edge_starts, graph.edges,
            np.empty(gradients.shape[1], np.float32), out_cards.numpy(), out_wholes.numpy(),
        )  # fmt: skip
        return out_cards, out_wholes, None, None


def hear(cards: Tensor, wholes: Tensor, graph: Graph, half: bool = False) -> tuple[Tensor, Tensor]:
    """What each card hears, and the mean of each position's cards.

    Args:
        cards: (M, W) float32.
        wholes: (B, W) float32.
        graph: how the cards hang together.
        half: the first result as bfloat16.

    Returns:
        (M, HEARD * W): a card itself, the sums of its neighbours relation by relation, its whole. (B, W).
    """
    if cards.device.type != "cpu":
        return plain_hear(cards, wholes, graph, half)
    heard: tuple[Tensor, Tensor] = _Hear.apply(cards, wholes, graph, half)  # type: ignore[no-untyped-call]  # untyped in torch
    return heard


def plain_hear(cards: Tensor, wholes: Tensor, graph: Graph, half: bool = False) -> tuple[Tensor, Tensor]:
    """What the kernels do, by torch alone, for other devices; arguments as in :func:`hear`."""
    count, device = len(cards), cards.device
    slots = np.repeat(np.arange(count * RELATIONS), np.diff(graph.edge_starts))
    sums = cards.new_zeros(count * RELATIONS, cards.shape[1])
    sums = sums.index_add(0, torch.from_numpy(slots).to(device), cards[torch.from_numpy(graph.edges).to(device).long()])
    sizes = np.diff(graph.starts)
    position = torch.from_numpy(np.repeat(np.arange(len(wholes)), sizes)).to(device)
    heard = torch.cat([cards, sums.view(count, -1), wholes[position]], dim=1)
    totals = torch.zeros_like(wholes).index_add(0, position, cards)
    means = totals / torch.from_numpy(np.maximum(sizes, 1)).to(device)[:, None]
    return heard.to(torch.bfloat16) if half else heard, means


class CardLayer(nn.Module):
    """One round of messages; starts as the identity.

    Args:
        width: W, of cards and wholes.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.whole_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.first, self.second = nn.Linear(HEARD * width, width), nn.Linear(width, width)
        self.whole_first, self.whole_second = nn.Linear(2 * width, width), nn.Linear(width, width)
        for last in (self.second, self.whole_second):
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def forward(self, cards: Tensor, wholes: Tensor, graph: Graph, half: bool) -> tuple[Tensor, Tensor]:
        """(M, W) and (B, W) float32 to the same."""
        normed = self.whole_norm(wholes)
        heard, means = hear(self.norm(cards), normed, graph, half)
        with torch.autocast(cards.device.type, torch.bfloat16, enabled=half):
            change = self.second(torch.relu(self.first(heard)))
            whole_change = self.whole_second(torch.relu(self.whole_first(torch.cat([normed, means], dim=1))))
        return cards + change, wholes + whole_change


class CardNetwork(nn.Module):
    """Policy and value of positions.

    Args:
        rules: what is played.
        level: of the observations; it must show what has been seen.
        width: W.
        layers: rounds of messages.

    Attributes:
        half_precision: multiply in bfloat16: four times as fast on processors that can, two or three digits exact.
            Training does; in play, rounding would differ from processor to processor.
        recurrent: 0, for it carries no memory.
    """

    def __init__(self, rules: Rules, level: str, width: int, layers: int) -> None:
        super().__init__()
        self.tables: Final = CardTables(rules, level)
        self.half_precision = False
        self.recurrent: Final = 0
        self.table = TokenTable(self.tables.rows, width, std=ENTRIES**-0.5)
        self.whole_table = TokenTable(self.tables.whole_rows, width, std=0.5)
        self.layers = nn.ModuleList(CardLayer(width) for _ in range(layers))
        self.norm, self.whole_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.kind = nn.Parameter(torch.zeros(len(Kind), 2 * width))
        self.policy = nn.ModuleList([nn.Linear(2 * width, 2 * width), nn.Linear(2 * width, width)])
        self.logit = nn.Linear(width, 1)
        self.value = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, tokens: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits (B, K), MASKED_LOGIT where ``legal`` is filled up, and values (B,), of (B, F) int8 observations.

        ``legal`` is (B, K) int16, filled up with -1; without it all A actions count.
        """
        if legal is None:
            every = torch.arange(len(self.tables.kinds), dtype=torch.int16, device=tokens.device)
            legal = every.expand(len(tokens), -1)
        rows = tokens.cpu().numpy()
        graph = self.tables.graph(rows)
        cards, wholes = self._features(graph, tokens.device)
        logits = self._logits(cards, wholes, self.tables.moved(rows, graph, legal.cpu().numpy()), legal)
        values: Tensor = self.value(wholes).squeeze(1)
        return logits, values

    def step(self, tokens: Tensor, memory: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, values, and the memory handed through: there is none."""
        logits, values = self(tokens, legal)
        return logits, values, memory

    def sequence(
        self, tokens: Tensor, memory: Tensor, starts: Tensor, legal: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits and values of (T, B, F) observations, the games of the first step first."""
        logits, values = self(tokens.flatten(0, 1), legal)
        return logits, values

    def last_values(self, tokens: Tensor, memory: Tensor) -> Tensor:
        """(B,) values of positions that no move follows."""
        graph = self.tables.graph(tokens.cpu().numpy())
        values: Tensor = self.value(self._features(graph, tokens.device)[1]).squeeze(1)
        return values

    def value_weights(self) -> list[nn.Parameter]:
        """What the values alone depend on."""
        return list(self.value.parameters())

    def _features(self, graph: Graph, device: torch.device) -> tuple[Tensor, Tensor]:
        cards = self.table(torch.from_numpy(graph.looks).to(device))
        wholes = self.whole_table(torch.from_numpy(graph.wholes).to(device))
        for layer in self.layers:
            cards, wholes = layer(cards, wholes, graph, self.half_precision)
        return self.norm(cards), self.whole_norm(wholes)

    def _logits(
        self,
        cards: Tensor,
        wholes: Tensor,
        moved: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        legal: Tensor,
    ) -> Tensor:
        rows, columns, nodes = (torch.from_numpy(part).to(cards.device) for part in moved)
        kinds = torch.from_numpy(self.tables.kinds).to(cards.device)[legal[rows, columns].long()]
        removed = torch.cat([cards, cards.new_zeros(1, cards.shape[1])])[nodes].sum(dim=1)
        with torch.autocast(cards.device.type, torch.bfloat16, enabled=self.half_precision):
            hidden = torch.relu(self.policy[0](torch.cat([removed, wholes[rows]], dim=1)) + self.kind[kinds])
            found = self.logit(torch.relu(self.policy[1](hidden))).float().squeeze(1)
        return cards.new_full(legal.shape, MASKED_LOGIT).index_put((rows, columns), found)
