"""Streams: the random deals that each game of a batch gets, the same as a single environment with its seed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.deal import random_numbers


class DealStreams:
    """For each game the numbers of its coming random deals, as its own generator gives them, fetched several at a time.

    A draw of several numbers gives the same numbers as so many single draws, so a game gets the deals of a single
    environment with the same seed, and Python visits a game only once in ``AHEAD`` deals.

    Attributes:
        numbers: (B, AHEAD) int64, the coming deals of each game.
        used: (B,) int64, how many of them have been dealt; AHEAD: there are none left.
        spent: of how many games there are none left; whoever counts up ``used`` sees to it.
    """

    AHEAD: Final = 128

    def __init__(self, games: int) -> None:
        self.seeds: list[int | None] = [None] * games
        self._generators: list[np.random.Generator | None] = [None] * games
        self.numbers = np.zeros((games, self.AHEAD), np.int64)
        self.used = np.full(games, self.AHEAD, np.int64)
        self.spent = games

    def seed(self, seeds: Iterable[int | None], which: NDArray[np.bool_]) -> None:
        """Start the streams of the marked games anew from their (checked) seeds; None leaves a stream as it is."""
        for i, seed in enumerate(seeds):
            if seed is not None and which[i]:
                self.seeds[i], self._generators[i] = seed, None
                self.used[i] = self.AHEAD
        self.spent = int((self.used == self.AHEAD).sum())

    def generator(self, game: int) -> np.random.Generator:
        """The game's generator, made when first needed."""
        found = self._generators[game]
        if found is None:
            found, _ = seeding.np_random(self.seeds[game])
            self._generators[game] = found
        return found

    def take(self, index: NDArray[np.intp]) -> NDArray[np.int64]:
        """The next deal number of each game in ``index``."""
        numbers = np.empty(index.size, np.int64)
        spent = _take(self.numbers, self.used, index, numbers)
        if spent < 0:
            self.fill(index)
            spent = _take(self.numbers, self.used, index, numbers)
        self.spent += spent
        return numbers

    def fill(self, index: NDArray[np.intp]) -> None:
        """Fetch numbers for those games in ``index`` that have none left."""
        for i in index[self.used[index] == self.AHEAD].tolist():
            self.numbers[i] = random_numbers(self.generator(i), self.AHEAD)
            self.used[i] = 0
            self.spent -= 1


@kernel
def _take(
    numbers: NDArray[np.int64], used: NDArray[np.int64], index: NDArray[np.int64], out_numbers: NDArray[np.int64]
) -> int:
    """Take a number of each stream in ``index`` and return how many have none left; take none and return -1 if one has
    none left already."""
    spent = 0
    for i in index:
        if used[i] == numbers.shape[1]:
            return -1
    for at in range(index.size):
        i = index[at]
        out_numbers[at] = numbers[i, used[i]]
        used[i] += 1
        spent += used[i] == numbers.shape[1]
    return spent
