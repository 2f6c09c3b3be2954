"""Batch: the arrays of many games and what can be done with them, in threads on request; no checks, no Gymnasium."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env.actions import random_actions, take_actions
from pyramid_env.batch_arrays import COUNTS, Games, Outcome, new_games, new_outcome, new_scratch, tables
from pyramid_env.crew import Crew, shares
from pyramid_env.engine import deal_games, step_kernels
from pyramid_env.moves import move_table
from pyramid_env.observation import layout
from pyramid_env.reward import ILLEGAL_REWARD
from pyramid_env.rules import Rules
from pyramid_env.streams import DealStreams

NO_DEALS: Final[NDArray[np.int64]] = np.empty(0, np.int64)
DEALS_A_THREAD: Final = 32
"""Fewer deals than that are not worth waking a thread for."""

NO_LIMIT: Final = 2**62

LARGEST: Final = np.uint64(2**63 - 1)
"""The largest number that an int64 holds: larger ones would be taken for negative ones."""


class Counts(NamedTuple):
    """What happened in a step: so many games ended, actions were illegal, new deals are over before the first move,
    and games dealt the last of their coming deals."""

    ended: int
    illegal: int
    dead: int
    spent: int


class Batch:
    """B games as arrays, and the kernels that play them. The same results for any number of threads.

    Attributes:
        games: the arrays of the games (:class:`~pyramid_env.batch_arrays.Games`).
        outcome: what the last step reported.
        actions: (B,) int64, to be filled in before :meth:`play`: all from 0 to A - 1.
        restart: (B,) bool, games that :meth:`play` deals anew instead.
        numbers: (B,) int64, the numbers of the deals; without streams to be filled in before games are dealt anew.
        actions_count: A.
    """

    def __init__(
        self,
        count: int,
        rules: Rules,
        level: str,
        mask_format: str = "int8",
        threads: int = 1,
        reward_column: int = -1,
        limit: int | None = None,
        streams: DealStreams | None = None,
    ) -> None:
        self.rules, self.level = rules, level
        self.actions_count = len(move_table(rules))
        self.games: Games = new_games(count, rules, layout(rules, level).size, self.actions_count, mask_format)
        self.outcome: Outcome = new_outcome(count)
        self.actions = np.zeros(count, np.int64)
        self.restart = np.zeros(count, np.bool_)
        self.numbers = np.zeros(count, np.int64)
        self._coming = np.zeros((count, 0), np.int64) if streams is None else streams.numbers
        self._used = np.zeros(count, np.int64) if streams is None else streams.used
        self._threads = min(threads, count)
        self._settings = (reward_column, ILLEGAL_REWARD, NO_LIMIT if limit is None else limit)
        self._link()

    def _link(self) -> None:
        """Take up what is shared, and the parts of the arrays that each thread plays."""
        self._tables = tables(self.rules, self.level)
        self._counts = np.zeros((self._threads, COUNTS), np.int64)
        count = self.actions.size
        self._scratch = [new_scratch(self.rules, count) for _ in range(self._threads)]
        self._crew = Crew(self._threads - 1)
        kernels = step_kernels(self.rules)
        given = [
            (
                *self._tables,
                *self.games.part(start, stop),
                self._scratch[i],
                self.actions[start:stop],
                self.restart[start:stop],
                self.numbers[start:stop],
                self._coming[start:stop],
                self._used[start:stop],
                *self.outcome.part(start, stop),
                self._counts[i],
                *self._settings,
            )
            for i, (start, stop) in enumerate(shares(count, self._threads))
        ]
        self._play = partial(kernels.play, *given[0])
        self._serve = [_on_seat(kernels.serve, arguments) for arguments in given[1:]]
        self._deals: list[Callable[..., int]] = [
            partial(deal_games, *self._tables, *self.games, scratch) for scratch in self._scratch
        ]

    def __getstate__(self) -> dict[str, Any]:
        linked = ("_tables", "_counts", "_scratch", "_crew", "_play", "_serve", "_deals")
        return {name: value for name, value in self.__dict__.items() if name not in linked}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._link()

    def play(self) -> Counts:
        """Play ``actions``, or deal anew where ``restart`` says so."""
        if self._threads == 1:
            self._play()
            return Counts(*self._counts[0].tolist())
        self._crew.repeat(self._play, self._serve)
        return Counts(*self._counts.sum(axis=0).tolist())

    def begin(self, index: NDArray[np.intp], deals: NDArray[np.int64] = NO_DEALS) -> None:
        """Start games anew.

        Args:
            index: (n,) the games.
            deals: (n,) numbers of their deals, from 0; (0,): their ranks and states have been written already.
        """
        parts = min(self._threads, 1 + index.size // DEALS_A_THREAD)
        if parts == 1:
            self._deals[0](index, deals)
            return
        work = [
            partial(self._deals[i], index[start:stop], deals[start:stop])
            for i, (start, stop) in enumerate(shares(index.size, parts))
        ]
        self._crew.run(work)

    def take(self, actions: NDArray[np.int64], strict: bool) -> int:
        """Fill in ``actions``, from a contiguous array, and return the first game whose action is outside 0..A-1 or, if
        strict, masked, those left out that are dealt anew; -1 = none, else nothing must be played."""
        return take_actions(self.games.bits, actions, self.restart, self.actions_count, strict, self.actions)

    def random_actions(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """(B,) a random legal action for each game, 0 where there is none."""
        actions = np.empty(self.actions.size, np.int64)
        numbers = rng.integers(0, 2**64, size=actions.size, dtype=np.uint64)
        random_actions(self.games.bits, numbers, actions)
        return actions

    def mask_row(self, game: int) -> NDArray[np.bool_]:
        """(A,) legal moves of one game, a new array."""
        return unpack_masks(self.games.bits[game].view(np.uint8), self.actions_count)

    def close(self) -> None:
        """End the threads."""
        self._crew.close()


def _on_seat(serve: Callable[..., None], arguments: tuple[Any, ...]) -> Callable[[int], None]:
    """The kernel with all its arguments but the seat."""
    return lambda seat: serve(seat, *arguments)


def unpack_masks(packed: NDArray[np.uint8], actions: int) -> NDArray[np.bool_]:
    """Packed masks (..., bytes) as a new bool array (..., A)."""
    return np.unpackbits(packed, axis=-1, count=actions, bitorder="little").view(np.bool_)
