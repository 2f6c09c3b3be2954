"""Curriculum: what a training deals at which time: easy deals first, and games that begin near their end.

Both need the solver, which works beside the training (agents/solved.py); evaluation is always on whole games of deals
that nobody chose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.env_config import OrderedConfig, StartsConfig
from agents.solved import SolvedDeals
from pyramid_env import functional
from pyramid_env.benchmark.lines import positions_along
from pyramid_env.deal import random_numbers
from pyramid_env.rules import Rules


class _Curriculum:
    """Solved deals, a generator, and how far the training is."""

    def __init__(self, rules: Rules, deals_seed: list[int], seed: list[int]) -> None:
        self._deals: Final = SolvedDeals(rules, deals_seed)
        self._rng: Final = np.random.default_rng(seed)
        self._done = 0.0

    def set_progress(self, done: float) -> None:
        """So much of the training is done, 0 .. 1."""
        self._done = done

    def state(self) -> dict[str, Any]:
        """JSON values."""
        return {**self._deals.state(), "rng": self._rng.bit_generator.state}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there; the progress is told anew."""
        self._deals.restore(state)
        self._rng.bit_generator.state = state["rng"]

    def close(self) -> None:
        """End the solver's thread."""
        self._deals.close()


class OrderedDeals(_Curriculum):
    """Deals that can be won, the easy ones first; at last random ones among them. See OrderedConfig.

    Args:
        rules: the game.
        config: how fast.
        seed: of the deals.
    """

    def __init__(self, rules: Rules, config: OrderedConfig, seed: int) -> None:
        super().__init__(rules, [seed, 4], [seed, 5])
        self._config: Final = config

    @property
    def allowed(self) -> float:
        """Share of the winnable deals that are dealt now, the easiest."""
        first = self._config.first
        return min(1.0, first + (1.0 - first) * self._done / self._config.until)

    def take(self, count: int) -> NDArray[np.int64]:
        """(count,) deal numbers."""
        free = np.zeros(count, np.bool_)
        if self._done >= self._config.until:
            free = self._rng.random(count) < self._config.unrestricted
        numbers = np.empty(count, np.int64)
        numbers[free] = random_numbers(self._rng, int(free.sum()))
        numbers[~free] = self._deals.take(count - int(free.sum()), self.allowed)[0]
        return numbers

    def told(self) -> dict[str, float]:
        """What the log is told."""
        return {"curriculum/deals_allowed": self.allowed}


class LineStarts(_Curriculum):
    """Positions on winning lines, near the end at first. See StartsConfig.

    Args:
        rules: the game.
        config: how many, and until when.
        seed: of deals and positions.
    """

    def __init__(self, rules: Rules, config: StartsConfig, seed: int) -> None:
        super().__init__(rules, [seed, 6], [seed, 7])
        self._rules: Final = rules
        self._config: Final = config

    @property
    def reach(self) -> float:
        """Share of a line, from its end, on which games begin now."""
        return min(1.0, self._done / self._config.until)

    def choose(self, count: int) -> NDArray[np.bool_]:
        """(count,) which of so many new games begin on a line."""
        if self._done >= self._config.until:
            return np.zeros(count, np.bool_)
        chosen: NDArray[np.bool_] = self._rng.random(count) < self._config.share
        return chosen

    def begin(self, level: str, arrays: functional.Arrays, games: NDArray[np.intp]) -> None:
        """Put these games on positions of the next lines."""
        numbers, lines = self._deals.take(games.size)
        lengths = np.array([line.size for line in lines], np.int64)
        furthest = np.maximum(1, np.ceil(self.reach * lengths)).astype(np.int64)
        left = self._rng.integers(1, furthest, endpoint=True)  # moves to the line's end
        functional.reset(self._rules, level, arrays, numbers, games)
        arrays.states[games] = positions_along(self._rules, lines, lengths - left)
        functional.observe(self._rules, level, arrays, games)

    def told(self) -> dict[str, float]:
        """What the log is told."""
        return {"curriculum/reach": self.reach}
