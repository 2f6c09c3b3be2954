"""PairGroups: one encoder looks at each pair of ranks that leave together, as the game treats them all alike.

Which group is which makes no difference to the rules: what matters is where the cards of a group lie, what lies upon
them, and which are still to come. So the encoder sees every position once a group (agents/pair_views.py), and its
weights learn from all groups at once; that a card lies upon its last partner is a pattern of a few places here, and one
of thousands of (place, rank) combinations in a plain sum of tokens. In the blocks each group also hears the mean of
all, which tells what the others need.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from agents.pair_views import PairTables
from agents.tokens import TokenTable


class GroupBlock(nn.Module):
    """features + two layers of them and of the groups' mean, normalised first; starts as the identity."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.own = nn.Linear(width, 2 * width)
        self.all = nn.Linear(width, 2 * width, bias=False)
        self.back = nn.Linear(2 * width, width)
        nn.init.zeros_(self.back.weight)
        nn.init.zeros_(self.back.bias)

    def forward(self, features: Tensor) -> Tensor:
        """(B, G, W) to (B, G, W)."""
        normed = self.norm(features)
        heard = torch.relu(self.own(normed) + self.all(normed.mean(dim=1, keepdim=True)))
        changed: Tensor = features + self.back(heard)
        return changed


class PairGroups(nn.Module):
    """(B, G, width) features of the groups, from (B, F) tokens.

    Args:
        tables: of the rules and the level.
        width: W.
        blocks: so many :class:`GroupBlock` after the sum of the view's table rows.
    """

    def __init__(self, tables: PairTables, width: int, blocks: int) -> None:
        super().__init__()
        self.tables: Final = tables
        self.width: Final = width
        self.table = TokenTable(tables.count, width, std=tables.entries**-0.5)
        self.blocks = nn.Sequential(*(GroupBlock(width) for _ in range(blocks)))
        self.last = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU())

    def forward(self, tokens: Tensor) -> Tensor:
        """See the class."""
        views = torch.from_numpy(self.tables.views(tokens.cpu().numpy())).to(tokens.device)
        summed = torch.relu(self.table(views.flatten(0, 1))).view(len(tokens), self.tables.groups, self.width)
        features: Tensor = self.last(self.blocks(summed))
        return features

    def group_of(self, tokens: Tensor, legal: Tensor | None) -> Tensor:
        """(B, K) int8 the group whose cards each action of ``legal`` removes, -1 = none; (B, A) for None: all."""
        if legal is None:
            legal = torch.arange(len(self.tables.entry_of), dtype=torch.int16).expand(len(tokens), -1).contiguous()
        return torch.from_numpy(self.tables.groups_of(tokens.cpu().numpy(), legal.cpu().numpy())).to(tokens.device)
