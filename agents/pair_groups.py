"""PairGroups: one small network looks at each pair of ranks that leave together, as the game treats them all alike.

A game of 13 ranks has six groups (ace with queen, two with jack, ...) and the kings. Which group is which makes no
difference to the rules: what matters is where the cards of a group lie, what covers them, and which are still to come.
So every position is seen once a group, with each card told as gone, of the group's lower rank, of its higher rank,
another, or not seen yet; the views go through one encoder, whose weights learn from all groups at once. That a card
lies upon its last partner is a pattern of a few places here, and one of thousands of (place, rank) combinations in a
plain sum of tokens.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agents.tokens import TokenTable, compiled
from pyramid_env.moves import Kind, move_table
from pyramid_env.observation import layout
from pyramid_env.rules import Rules

RANK_FIELDS: Final = ("pyramid", "waste", "waste_under", "stock_top", "known", "clairvoyant_stock")
GONE, LOWER, HIGHER, OTHER, UNSEEN, VIEWS = range(6)
"""How a card looks from a group."""


class PairTables:
    """What the encoder needs of some rules and a level.

    Attributes:
        groups: G, pairs of ranks.
        rows: (values of all entries, G) int32: which row of the encoder's table a token is from each group.
        count: rows of that table.
        entry_of: (A,) int32 the observation entry that names the rank of the card an action removes, -1 = none.
        group_of: (ranks + 2,) int8 the group of each rank, -1 for none.
    """

    def __init__(self, rules: Rules, level: str) -> None:
        self.groups: Final = rules.ranks // 2
        self.group_of: Final = np.full(rules.ranks + 2, -1, np.int8)
        for group in range(self.groups):
            self.group_of[[group + 1, rules.ranks - 1 - group]] = group
        parts, count = [], 0
        for field in layout(rules, level).fields:
            shared = field.name == "unseen"  # an entry a rank: another one from each group
            for i in range(field.size):
                seen = self._view(rules, field.name, i, field.high + 1)  # (values, G)
                parts.append(count + seen)
                if not shared or i == field.size - 1:
                    count += 1 + (2 * (field.high + 1) if shared else int(seen.max()))
        self.rows: Final = np.concatenate(parts).astype(np.int32)
        self.count: Final = count
        self.entry_of: Final = _entries(rules, level)

    def _view(self, rules: Rules, name: str, i: int, values: int) -> NDArray[np.int64]:
        each, groups = np.arange(values)[:, None], np.arange(self.groups)
        if name in RANK_FIELDS:
            lower, higher = groups + 1, rules.ranks - 1 - groups
            seen = np.select(
                [each == 0, each == lower, each == higher, each > rules.ranks], [GONE, LOWER, HIGHER, UNSEEN], OTHER
            )
        elif name == "unseen":  # entry i: how many of rank i + 1; nothing to other groups
            seen = np.select([i == groups, i == rules.ranks - 2 - groups], [1 + each, 1 + values + each], 0)
        else:
            seen = np.broadcast_to(each, (values, self.groups))
        return seen.astype(np.int64)


def _entries(rules: Rules, level: str) -> NDArray[np.int32]:
    starts = {field.name: field.start for field in layout(rules, level).fields}
    pyramid, waste, stock_top = (starts.get(name, -1) for name in ("pyramid", "waste", "stock_top"))
    first = {
        Kind.PLACE_PAIR: pyramid,
        Kind.PLACE_WASTE: pyramid,
        Kind.PLACE_STOCK: pyramid,
        Kind.WASTE_TWO: waste,
        Kind.WASTE_TOPS: waste,
    }
    entries = np.full(len(move_table(rules)), -1, np.int32)
    for action, (kind, place, _) in enumerate(move_table(rules)):
        if kind == Kind.STOCK_WASTE:
            entries[action] = stock_top
        elif kind in first:
            entries[action] = first[Kind(kind)] + place
    return entries


@compiled
def _views(tokens: NDArray[np.int8], first: NDArray[np.int32], rows: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    """out[b, g, f] = row of entry f from group g."""
    for b in range(tokens.shape[0]):
        for f in range(tokens.shape[1]):
            row = first[f] + tokens[b, f]
            for g in range(rows.shape[1]):
                out[b, g, f] = rows[row, g]


@compiled
def _groups(
    tokens: NDArray[np.int8],
    legal: NDArray[np.int16],
    entry_of: NDArray[np.int32],
    group_of: NDArray[np.int8],
    out: NDArray[np.int8],
) -> None:
    """out[b, k] = group of the card that action legal[b, k] removes."""
    for b in range(legal.shape[0]):
        for k in range(legal.shape[1]):
            entry = entry_of[legal[b, k]] if legal[b, k] >= 0 else -1
            out[b, k] = group_of[tokens[b, entry]] if entry >= 0 else -1


class PairGroups(nn.Module):
    """(B, G, width) features of the groups, from (B, F) tokens."""

    offsets: Tensor  # (F,) int32 first value of each entry

    def __init__(self, tables: PairTables, offsets: Tensor, entries: int, width: int) -> None:
        super().__init__()
        self.tables: Final = tables
        self.width: Final = width
        self.register_buffer("offsets", offsets.clone(), persistent=False)
        self.table = TokenTable(tables.count, width, std=entries**-0.5)
        self.layers = nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU())

    def forward(self, tokens: Tensor) -> Tensor:
        """See the class."""
        if tokens.device.type == "cpu":
            shape = len(tokens), self.tables.groups, tokens.shape[1]
            rows = torch.empty(shape, dtype=torch.int32)
            _views(tokens.numpy(), self.offsets.numpy(), self.tables.rows, rows.numpy())
        else:
            every = torch.as_tensor(self.tables.rows, device=tokens.device)
            rows = every[(tokens + self.offsets).long()].transpose(1, 2).contiguous()
        features: Tensor = self.layers(self.table(rows.flatten(0, 1)))
        return features.view(len(tokens), self.tables.groups, self.width)

    def group_of(self, tokens: Tensor, legal: Tensor | None) -> Tensor:
        """(B, K) int8 the group whose cards each action of ``legal`` removes, -1 = none; (B, A) for None: all."""
        tables = self.tables
        if legal is None:
            legal = torch.arange(len(tables.entry_of), dtype=torch.int16).expand(len(tokens), -1).contiguous()
        groups = np.empty(tuple(legal.shape), np.int8)
        _groups(tokens.cpu().numpy(), legal.cpu().numpy(), tables.entry_of, tables.group_of, groups)
        return torch.from_numpy(groups).to(tokens.device)
