"""TrainingGames: many games for a learner, in plain arrays: played, dealt anew, counted, saved and put back.

On request moves without a choice are made at once (``env.skip_forced``), so that a learner meets choices alone.

On the array interface of the environment's engine (:mod:`pyramid_env.functional`): what a game is lies in arrays, so a
checkpoint holds the games as they stand, and the last observation of a game that is cut off is there without an object
a game.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.curriculum import LineStarts, OrderedDeals
from agents.env_config import EnvConfig
from agents.legal import legal_lists
from pyramid_env import functional
from pyramid_env.deal import DealSource, random_numbers
from pyramid_env.errors import PyramidError
from pyramid_env.kernels import CARDS_LEFT, PAR, SCORE, WON
from pyramid_env.reward import RewardScheme, reward_scheme
from pyramid_env.rules import Rules
from pyramid_env.winnable import WinnableDeals

MAX_DEAD_DEALS: Final = 1000
"""So many times in a row new deals may offer no first move."""

_SKIP: Final = 65_536


@dataclass(frozen=True)
class CardsReward:
    """``card`` for each card that leaves, ``win`` for the win: the win is what counts, cards show the way there."""

    card: float
    win: float

    def __call__(self, before: NDArray[np.int32], after: NDArray[np.int32]) -> NDArray[np.float32]:
        cards = before[:, CARDS_LEFT] - after[:, CARDS_LEFT]
        wins = after[:, WON] - before[:, WON]
        return (self.card * cards + self.win * wins).astype(np.float32)


def make_reward(config: EnvConfig, rules: Rules) -> RewardScheme:
    """The reward scheme that a config names."""
    if config.reward == "cards":
        return CardsReward(config.card_reward, config.win_reward)
    return reward_scheme(config.reward, rules)


class RandomDeals:
    """Random deals of the training range from one generator, whose state can be kept."""

    def __init__(self, seed: int | list[int]) -> None:
        self.rng: Final = np.random.default_rng(seed)

    def take(self, count: int) -> NDArray[np.int64]:
        """(count,) deal numbers."""
        return random_numbers(self.rng, count)

    def state(self) -> dict[str, Any]:
        """JSON values."""
        return {"rng": self.rng.bit_generator.state}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.rng.bit_generator.state = state["rng"]

    def close(self) -> None:
        """Nothing is open."""


class KnownWinnable:
    """Deals that can be won, proven while the training goes on; how many were taken can be kept."""

    def __init__(self, rules: Rules, seed: int) -> None:
        self._source: Final = WinnableDeals(rules, seed)

    def take(self, count: int) -> NDArray[np.int64]:
        """(count,) deal numbers."""
        return self._source.take(count)

    def state(self) -> dict[str, Any]:
        """JSON values."""
        return {"taken": self._source.taken}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Pass over those taken before: quick where their proofs are still in the user's cache folder."""
        while left := int(state["taken"]) - self._source.taken:
            self._source.take(min(left, _SKIP))

    def close(self) -> None:
        """End the solver's thread."""
        self._source.close()


def make_deals(config: EnvConfig, rules: Rules, seed: int) -> RandomDeals | KnownWinnable | OrderedDeals:
    """Where a config's training deals come from."""
    if config.deals == "ordered":
        return OrderedDeals(rules, config.ordered, seed)
    return KnownWinnable(rules, seed) if config.deals == "winnable" else RandomDeals([seed, 1])


def make_starts(config: EnvConfig, rules: Rules, seed: int) -> LineStarts | None:
    """Where games begin that are not to begin with the deal; None: all do."""
    return LineStarts(rules, config.starts, seed) if config.starts.share else None


def deal_anew(rules: Rules, level: str, arrays: functional.Arrays, deals: DealSource, games: NDArray[np.intp]) -> None:
    """New deals for some games; deals without a first move are passed over.

    Raises:
        PyramidError: none of MAX_DEAD_DEALS in a row has a first move.
    """
    for _ in range(MAX_DEAD_DEALS):
        if not games.size:
            return
        functional.reset(rules, level, arrays, deals.take(games.size), games)
        games = games[arrays.terminated[games]]
    raise PyramidError(f"no deal with a first move among {MAX_DEAD_DEALS} of {rules}")


class Finished(NamedTuple):
    """The games that ended in a step, by index, and what the learner needs of those that were cut off.

    Attributes:
        games: (n,) ascending.
        cut_off: (m,) those among them that the step limit ended though they were not over.
        last_rows: (m, F) int8 their last observations.
        last_bits: (m, words) the legal moves there.
    """

    games: NDArray[np.intp]
    cut_off: NDArray[np.intp]
    last_rows: NDArray[np.int8]
    last_bits: NDArray[np.int64]


class TrainingGames:
    """B games that never stop: each that ends is dealt anew in the same step.

    Args:
        rules: what is played.
        config: level, reward, limit and number of games.
        deals: where deals come from, in the order in which games need them.
        starts: where games begin that are not whole; None: all are.
        level: of the observations; None: the config's.

    Attributes:
        rows: (B, F) int8 observations; bits: (B, words) legal moves; rewards: (B,) of the last step, scaled. They
            change in place.
        ended: sums over the whole games that ended since :meth:`report`: games, wins, par, score, steps, return.
        started: the same of the games that began on a line of the solver.
    """

    SUMS: Final = ("games", "wins", "par", "score", "length", "return")

    def __init__(
        self,
        rules: Rules,
        config: EnvConfig,
        deals: DealSource,
        starts: LineStarts | None = None,
        level: str | None = None,
    ) -> None:
        self.rules, self.level, self.count = rules, level or config.observation, config.num_envs
        self._deals: Final = deals
        self._starts: Final = starts
        self._on_line: Final = np.zeros(self.count, np.bool_)  # (B,) games that began on a line
        self._scheme: Final = make_reward(config, rules)
        self._scale: Final = config.reward_scale
        self._limit: Final = config.max_episode_steps
        self._skip: Final = config.skip_forced
        self._arrays: Final = functional.arrays(rules, self.level, self.count)
        self._before: Final = np.zeros_like(self._arrays.facts)
        self.rows, self.bits = self._arrays.rows, self._arrays.bits
        self.rewards: Final = np.zeros(self.count, np.float32)
        self._returns = np.zeros(self.count)
        self.ended, self.started = np.zeros(len(self.SUMS)), np.zeros(len(self.SUMS))
        self._deal(np.arange(self.count))

    def step(self, actions: NDArray[np.int64]) -> Finished:
        """Play a legal action in each game.

        Raises:
            PyramidError: an action was illegal.
        """
        arrays = self._arrays
        np.copyto(self._before, arrays.facts)
        if functional.step(self.rules, self.level, arrays, actions, max_steps=self._limit):
            game = int(arrays.illegal.argmax())
            raise PyramidError(f"actions: expected legal ones, got {int(actions[game])} in game {game}")
        rewards = self._scheme(self._before, arrays.facts)
        self._returns += rewards
        if self._skip:
            rewards += self._play_forced(np.arange(self.count))
        np.multiply(rewards, self._scale, out=self.rewards, casting="same_kind")
        games = np.flatnonzero(arrays.terminated | arrays.truncated)
        cut = games[~arrays.terminated[games]]
        finished = Finished(games, cut, arrays.rows[cut], arrays.bits[cut])
        if games.size:
            self._count(games)
            self._deal(games)
        return finished

    def _count(self, games: NDArray[np.intp]) -> None:
        on_line = self._on_line[games]
        for sums, counted in ((self.ended, games[~on_line]), (self.started, games[on_line])):
            facts = self._arrays.facts[counted]
            sums += (
                counted.size,
                facts[:, WON].sum(),
                facts[:, PAR].sum(),
                facts[:, SCORE].sum(),
                self._arrays.steps[counted].sum(),
                self._returns[counted].sum(),
            )
        self._returns[games] = 0.0

    def _play_forced(self, games: NDArray[np.intp]) -> NDArray[np.float32]:
        """Make the only move in those of these games that have but one, until all have a choice or have ended; what
        all (B,) games were paid for it."""
        arrays: tuple[Any, ...] = self._arrays
        paid = np.zeros(self.count, np.float32)
        while True:
            legal = legal_lists(self._arrays.bits[games])
            only = (legal[:, 0] >= 0) & (legal[:, 1:] < 0).all(axis=1) & ~self._arrays.truncated[games]
            if not only.any():
                self._returns += paid
                return paid
            games, actions = games[only], legal[only, 0].astype(np.int64)
            part = functional.Arrays(*(array[games] for array in arrays))
            before = part.facts.copy()
            functional.step(self.rules, self.level, part, actions, max_steps=self._limit)
            for array, now in zip(arrays, part, strict=True):
                array[games] = now
            paid[games] += self._scheme(before, part.facts)

    def _deal(self, games: NDArray[np.intp]) -> None:
        """New games for these. What moves without a choice bring before the first choice belongs to no action: it is
        counted, but not paid."""
        for _ in range(MAX_DEAD_DEALS):
            self._begin(games)
            if not self._skip:
                return
            self._play_forced(games)
            games = games[(self._arrays.terminated | self._arrays.truncated)[games]]
            if not games.size:
                return
            self._count(games)
        raise PyramidError(f"no deal with a choice among {MAX_DEAD_DEALS} of {self.rules}")

    def _begin(self, games: NDArray[np.intp]) -> None:
        whole = games
        if self._starts is not None:
            self._on_line[games] = on_line = self._starts.choose(games.size)
            whole = games[~on_line]
            self._starts.begin(self.level, self._arrays, games[on_line])
        deal_anew(self.rules, self.level, self._arrays, self._deals, whole)

    def report(self) -> dict[str, float]:
        """Means over the whole games that ended since the last report, and, named ``started_...``, over those that
        began on a line; of either nothing if there were none."""
        found = {}
        for prefix, sums in (("", self.ended), ("started_", self.started)):
            games, *totals = sums.tolist()
            sums[:] = 0.0
            if games:
                found[f"{prefix}games"] = games
                found |= {f"{prefix}{name}": total / games for name, total in zip(self.SUMS[1:], totals, strict=True)}
        return found

    def state(self) -> dict[str, NDArray[Any]]:
        """The games as they stand, and what was counted, as arrays of their own."""
        kept: dict[str, NDArray[Any]] = {name: getattr(self._arrays, name) for name in ("ranks", "states", "steps")}
        kept |= {"returns": self._returns, "ended": self.ended}
        if self._starts is not None:
            kept |= {"on_line": self._on_line, "started": self.started}
        return {name: array.copy() for name, array in kept.items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Put back what :meth:`state` gave; all else follows from it."""
        self._arrays.ranks[:], self._arrays.states[:] = state["ranks"], state["states"]
        functional.observe(self.rules, self.level, self._arrays)
        self._arrays.steps[:] = state["steps"]
        self._returns[:], self.ended[:] = state["returns"], state["ended"]
        if self._starts is not None:
            self._on_line[:], self.started[:] = state["on_line"], state["started"]
