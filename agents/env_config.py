"""EnvConfig: what a training run plays, what it pays for, and where its games begin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from agents.base import LEVELS
from agents.typed import ConfigError, at_least, between, one_of, positive

REWARDS: Final = ("cards", "par", "msc", "win", "shaped")
DEALS: Final = ("random", "winnable", "ordered")


@dataclass(frozen=True, kw_only=True)
class StartsConfig:
    """Games that begin near the end of a deal that can be won, and further from it as the training goes on.

    The solver, working beside the training, finds a winning line of a random deal; the game begins some moves before
    the line's end, drawn evenly from 1 up to a share of the line that grows in a straight line from nothing to all of
    it. Such positions are kinder than those that play leads to (they can all be won, by a line that knew the hidden
    cards), so in the end all games are whole.

    Attributes:
        share: of new games, 0 = none; the others are whole games. Of the steps it is less, since these games are short.
        until: share of the training after which all games are whole.
    """

    share: float = 0.0
    until: float = 0.5

    def __post_init__(self) -> None:
        between("env.starts.share", self.share, 0.0, 1.0)
        _share_of_training("env.starts.until", self.until)


@dataclass(frozen=True, kw_only=True)
class OrderedConfig:
    """The deals of ``deals: ordered``: those that can be won, easy ones first (agents/curriculum.py says which are).

    Attributes:
        first: share of the winnable deals, the easiest, that are dealt at the start; it grows in a straight line to 1.
        until: share of the training after which all winnable deals are dealt.
        unrestricted: from then on so often a random deal, winnable or not, instead.
    """

    first: float = 0.25
    until: float = 0.5
    unrestricted: float = 0.5

    def __post_init__(self) -> None:
        _share_of_training("env.ordered.first", self.first)
        _share_of_training("env.ordered.until", self.until)
        between("env.ordered.unrestricted", self.unrestricted, 0.0, 1.0)


def _share_of_training(where: str, value: float) -> None:
    positive(where, value)
    between(where, value, 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """What is played and what is paid for.

    Attributes:
        observation: information level, ``"table"`` or ``"memory"``.
        reward: ``"cards"`` (``card_reward`` for each card that leaves, ``win_reward`` for the win) or a scheme of
            pyramid_env.
        card_reward: see ``reward``.
        win_reward: see ``reward``.
        reward_scale: factor on every reward; values near 1 a game suit PPO's defaults.
        num_envs: games side by side.
        skip_forced: moves without a choice are made by the environment, so that steps, discounts and ``n_steps`` count
            choices alone, about half of all moves or fewer; ``ppo`` alone, and not with a recurrent network, which
            would not see what was passed over. Evaluation is of whole games.
        max_episode_steps: a longer game is cut off (truncated, its value bootstrapped).
        deals: ``"random"``, ``"winnable"``: random deals that the solver, working beside the training, proves winnable,
            or ``"ordered"``: of those the easy ones first; ``ppo`` alone. Evaluation deals are not touched by it, but
            the win rates of the training games are those on such deals.
        ordered: see OrderedConfig; counts with ``deals: ordered``.
        starts: see StartsConfig; ``ppo`` alone.
    """

    observation: str = "memory"
    reward: str = "cards"
    card_reward: float = 0.02
    win_reward: float = 1.0
    reward_scale: float = 1.0
    num_envs: int = 256
    skip_forced: bool = False
    max_episode_steps: int = 2000
    deals: str = "random"
    ordered: OrderedConfig = field(default_factory=OrderedConfig)
    starts: StartsConfig = field(default_factory=StartsConfig)

    def __post_init__(self) -> None:
        one_of("env.observation", self.observation, LEVELS[:2])
        one_of("env.reward", self.reward, REWARDS)
        one_of("env.deals", self.deals, DEALS)
        at_least("env.num_envs", self.num_envs, 1)
        at_least("env.max_episode_steps", self.max_episode_steps, 1)
        positive("env.reward_scale", self.reward_scale)

    def check_curriculum(self, algorithm: str, *, remembers: bool) -> None:
        """Raise ConfigError for what this algorithm, or a network with memory, lacks."""
        alone = f"with algorithm {algorithm}, it is for ppo alone"
        if self.deals == "ordered" and algorithm != "ppo":
            raise ConfigError(f"env.deals: expected random or winnable {alone}, got ordered")
        if self.skip_forced and (algorithm != "ppo" or remembers):
            told = "network.recurrent" if remembers else f"algorithm {algorithm}, it is for ppo alone"
            raise ConfigError(f"env.skip_forced: expected false with {told}, got true")
        if not self.starts.share:
            return
        if algorithm != "ppo":
            raise ConfigError(f"env.starts.share: expected 0 {alone}, got {self.starts.share}")
        if remembers:
            raise ConfigError(
                f"env.starts.share: expected 0 with network.recurrent, got {self.starts.share}: who is put into the "
                "middle of a game has not seen what a player would remember"
            )
