"""ExpertGames: an expert's games as positions to learn from, and as the few numbers from which they can be rebuilt.

A game is its deal and its moves: all positions follow from those at millions a second, so a checkpoint holds many
thousand games in a few MB, and a run goes on without asking the expert again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.config import Config
from agents.experts import Choice, Expert
from agents.games import make_reward
from agents.legal import legal_lists
from pyramid_env import functional
from pyramid_env.errors import PyramidError
from pyramid_env.kernels import WON

REBUILT_AT_ONCE: Final = 2_048
"""Games."""


class Positions(NamedTuple):
    """M positions, those of a game one after the other."""

    rows: NDArray[np.int8]  # (M, F) observations
    bits: NDArray[np.int64]  # (M, words) legal moves
    best: NDArray[np.int64]  # (M,) bit k: the k-th legal move is one that the expert would play
    returns: NDArray[np.float32]  # (M,) what the game brought from there on; NaN if it was cut off


class Record(NamedTuple):
    """G games in short."""

    deals: NDArray[np.int64]  # (G,)
    lengths: NDArray[np.int64]  # (G,) moves
    actions: NDArray[np.int16]  # (M,) moves of the first game, then of the next, ...
    best: NDArray[np.int64]  # (M,) as in Positions; (0,) where the move made is the only one that counts

    @classmethod
    def none(cls) -> Record:
        """No games."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int16), np.zeros(0, np.int64))

    def then(self, other: Record) -> Record:
        """These games and then those."""
        pairs: Any = zip(self, other, strict=True)
        return Record(*map(np.concatenate, pairs))

    def cut(self, first: int, last: int) -> Record:
        """The games from ``first`` up to ``last``, as far as there are so many."""
        moves = slice(self.lengths[:first].sum(), self.lengths[:last].sum())
        return Record(self.deals[first:last], self.lengths[first:last], self.actions[moves], self.best[moves])


class Block(NamedTuple):
    """Games that were played side by side."""

    positions: Positions
    record: Record
    wins: int


class _Step(NamedTuple):
    """One move in n games."""

    games: NDArray[np.intp]  # (n,)
    rows: NDArray[np.int8]
    bits: NDArray[np.int64]
    best: NDArray[np.int64]
    actions: NDArray[np.int16]
    rewards: NDArray[np.float32]
    cut_off: NDArray[np.bool_]  # (n,) the step limit ended the game here though it was not over


def play(
    config: Config,
    deals: NDArray[np.int64],
    expert: Expert,
    rng: np.random.Generator,
    stopped: Callable[[], bool] = lambda: False,
) -> Block | None:
    """Play each deal to its end.

    Args:
        config: rules, and the section ``env`` with reward and step limit.
        deals: (G,) their numbers.
        expert: who plays.
        rng: for the expert.
        stopped: asked before each move; true: leave the games and return None.
    """
    rules, level, count = config.game, config.env.observation, len(deals)
    arrays = functional.arrays(rules, level, count)
    functional.reset(rules, level, arrays, deals)
    scheme, steps = make_reward(config.env, rules), []
    live = np.flatnonzero(~arrays.terminated)
    while live.size:
        if stopped():
            return None
        legal = legal_lists(arrays.bits[live])
        choice = expert.choose(arrays, live, legal, rng)
        chosen = legal[np.arange(live.size), choice.slots]
        shown = arrays.rows[live], arrays.bits[live]
        actions, before = np.zeros(count, np.int64), arrays.facts.copy()
        actions[live] = chosen
        functional.step(rules, level, arrays, actions, max_steps=config.env.max_episode_steps)
        rewards = config.env.reward_scale * scheme(before, arrays.facts)[live].astype(np.float32)
        cut_off = arrays.truncated[live] & ~arrays.terminated[live]
        steps.append(_Step(live, *shown, choice.best, chosen, rewards, cut_off))
        live = live[~(arrays.terminated | arrays.truncated)[live]]
    return _block(deals, steps, arrays, config.imitation.gamma)


def _block(deals: NDArray[np.int64], steps: list[_Step], arrays: functional.Arrays, gamma: float) -> Block:
    """The games from their steps, in each of which many of them made a move."""
    wins = int(arrays.facts[:, WON].sum())
    if not steps:
        none = Positions(arrays.rows[:0], arrays.bits[:0], np.zeros(0, np.int64), np.zeros(0, np.float32))
        return Block(none, Record.none()._replace(deals=deals, lengths=np.zeros(len(deals), np.int64)), wins)
    games = np.concatenate([step.games for step in steps])
    order = np.argsort(games, kind="stable")
    rows, bits, best, actions = (
        np.concatenate(parts)[order]
        for parts in zip(*((s.rows, s.bits, s.best, s.actions) for s in steps), strict=True)
    )
    returns = np.concatenate(_returns(steps, len(deals), gamma))[order]
    lengths = np.bincount(games, minlength=len(deals)).astype(np.int64)
    return Block(Positions(rows, bits, best, returns), Record(deals, lengths, actions, best), wins)


def _returns(steps: list[_Step], count: int, gamma: float) -> list[NDArray[np.float32]]:
    """What each move and those after it brought, discounted; not known where a game was cut off."""
    ahead, found = np.zeros(count, np.float32), []
    for step in reversed(steps):
        ahead[step.games[step.cut_off]] = np.nan
        ahead[step.games] = step.rewards + np.float32(gamma) * ahead[step.games]
        found.append(ahead[step.games])
    return found[::-1]


# ---- rebuilding ------------------------------------------------------------------------------------------------------


class _Again:
    """Plays what was played."""

    def __init__(self, record: Record) -> None:
        self._record: Final = record
        self._at: Final = np.cumsum(record.lengths) - record.lengths  # (G,) the next move of each game

    def choose(
        self, arrays: functional.Arrays, games: NDArray[np.intp], legal: NDArray[np.int16], rng: np.random.Generator
    ) -> Choice:
        """See :class:`Expert`."""
        at = self._at[games]
        self._at[games] += 1
        there = legal == self._record.actions.take(at, mode="clip")[:, None]
        if not there.any(axis=1).all():
            deal = self._record.deals[games[there.any(axis=1).argmin()]]
            raise PyramidError(f"expert games: the moves kept for deal {deal} are not those of a game by these rules")
        slots: NDArray[np.int64] = there.argmax(axis=1)
        best = self._record.best
        return Choice(slots, best.take(at, mode="clip") if best.size else np.int64(1) << slots)


def rebuild(config: Config, record: Record) -> Iterator[Block]:
    """The games of a record, in their order; PyramidError if they are not games of the config's rules."""
    for first in range(0, len(record.deals), REBUILT_AT_ONCE):
        part = record.cut(first, first + REBUILT_AT_ONCE)
        block = play(config, part.deals, _Again(part), np.random.default_rng(0))
        assert block is not None
        if not np.array_equal(block.record.lengths, part.lengths):
            raise PyramidError(f"expert games: expected {part.lengths.sum()} moves, got {block.record.lengths.sum()}")
        yield block


# ---- drawing ---------------------------------------------------------------------------------------------------------


class Samples(NamedTuple):
    """N positions as the network takes them."""

    rows: NDArray[np.int8]  # (N, F)
    legal: NDArray[np.int16]  # (N, K) filled up with -1
    best: NDArray[np.bool_]  # (N, K)
    returns: NDArray[np.float32]  # (N,)


class Lessons:
    """A growing collection of positions.

    Attributes:
        size: positions; games: so many they are of; wins: of those.
    """

    def __init__(self, features: int, words: int) -> None:
        self.size = self.games = self.wins = 0
        self._choices = np.zeros(0, np.int64)  # those in which it matters what one does
        self._parts = Positions(
            np.zeros((0, features), np.int8),
            np.zeros((0, words), np.int64),
            np.zeros(0, np.int64),
            np.zeros(0, np.float32),
        )

    def add(self, block: Block) -> None:
        """Put the positions of a block behind the others."""
        size = self.size + len(block.positions.rows)
        if size > len(self._parts.rows):
            self._parts = Positions(*(_longer(part, self.size, max(size, 2 * self.size)) for part in self._parts))
        pairs: Any = zip(self._parts, block.positions, strict=True)
        for part, new in pairs:
            part[self.size : size] = new
        legal = np.bitwise_count(block.positions.bits.view(np.uint64)).sum(axis=1).astype(np.int64)
        matters = np.flatnonzero(block.positions.best != (np.int64(1) << legal) - 1)
        self._choices = np.concatenate([self._choices, self.size + matters])
        self.size, self.games, self.wins = size, self.games + len(block.record.deals), self.wins + block.wins

    def draw(self, count: int, rng: np.random.Generator) -> Samples:
        """So many positions, at random: half of them from those in which it matters what one does (in the solver's
        games of ``pyramid`` they are few), half from all."""
        chosen = rng.integers(self.size, size=count)
        if self._choices.size:
            chosen[::2] = self._choices[rng.integers(self._choices.size, size=len(chosen[::2]))]
        return self._samples(chosen)

    def all(self, at_once: int) -> Iterator[Samples]:
        """All positions in order, so many at once."""
        for first in range(0, self.size, at_once):
            yield self._samples(np.arange(first, min(first + at_once, self.size)))

    def _samples(self, index: NDArray[np.int64]) -> Samples:
        parts = self._parts
        legal = legal_lists(parts.bits[index])
        best = (parts.best[index, None] >> np.arange(legal.shape[1])) & 1 == 1
        return Samples(parts.rows[index], legal, best, parts.returns[index])


def _longer(array: NDArray[Any], used: int, length: int) -> NDArray[Any]:
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[:used] = array[:used]
    return longer
