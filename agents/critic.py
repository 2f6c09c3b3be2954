"""Critic: the value of a position to a judge who sees all cards, for training alone; the policy's network stays blind.

A value is what an action's outcome is compared with. How the hidden cards lie decides much of the outcome and is not
the action's doing, so a judge who sees them compares more finely (asymmetric actor-critic, Pinto et al. 2017). It sees
besides all that the player does, without which the comparison would be biased (Baisero and Amato 2022). The two share
no layer: what the critic learns must not reach the policy by way of common features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from torch import Tensor, nn

from agents.pair_groups import PairGroups
from agents.pair_views import PairTables
from agents.token_network import TokenTrunk, begin_layers, dense_layers
from agents.tokens import token_values
from pyramid_env.observation import layout
from pyramid_env.rules import Rules

CRITIC_LEVEL: Final = "clairvoyant"


class Critic(nn.Module):
    """Values (B,) of (B, F) observation rows of CRITIC_LEVEL.

    Args:
        rules: what is played.
        level: of the player's observations.
        sizes: a NetworkConfig's; those of the policy and of the memory do not count, since all that is to be remembered
            lies open.

    Attributes:
        seen: length of the row's beginning that is the player's observation.
    """

    def __init__(self, rules: Rules, level: str, sizes: Mapping[str, Any]) -> None:
        super().__init__()
        self.seen: Final = layout(rules, level).size
        fields = layout(rules, level).fields
        assert layout(rules, CRITIC_LEVEL).fields[: len(fields)] == fields, "a row begins with that of the level below"
        groups, activation = sizes["groups"], sizes["activation"]
        self.trunk = TokenTrunk(
            token_values(rules, CRITIC_LEVEL), sizes["embedding"], sizes["shared"], sizes["blocks"], activation, groups
        )
        self.groups: PairGroups | None = None
        if groups:
            self.groups = PairGroups(PairTables(rules, CRITIC_LEVEL), groups, sizes["group_blocks"])
        self.value, width = dense_layers(self.trunk.width, sizes["value"], activation)
        self.worth = nn.Linear(width, 1)
        begin_layers((*self.trunk.layers, *self.value), self.worth)

    def forward(self, tokens: Tensor) -> Tensor:
        """See the class."""
        beside = None if self.groups is None else self.groups(tokens).sum(dim=1)
        values: Tensor = self.worth(self.value(self.trunk(tokens, beside))).squeeze(1)
        return values
