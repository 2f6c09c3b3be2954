"""Legal run: questions to the legal search under limits; tables grow here, as far as they may."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from math import factorial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env.kernels import MAX_MOVES, Table
from pyramid_env.moves import Move, move_table
from pyramid_env.positions import Position
from pyramid_env.rules import Rules
from pyramid_env.solver import legal_search as search
from pyramid_env.solver import legal_states as tables
from pyramid_env.solver.legal_states import Memory, Room
from pyramid_env.solver.result import Limits, Objective

VISITS: Final = 20_000
"""States visited between two looks at the clock: some 20 ms."""

_FIRST_ROOM: Final = Room(states=1 << 13, known=1 << 12, waiting=1 << 10, links=1 << 12)
_MOST_ROOM: Final = 1 << 30  # states are numbered by int32
_FACTORIALS: Final = np.array([factorial(n) for n in range(search.MAX_UNSEEN + 1)], np.int64)


class LegalSearch:
    """Questions about one visible pyramid after another; the answer None means that a limit was met.

    Ranks (cards,) int8 are those of the pyramid and the stock; the stock's last ``unseen`` cards are the unseen ones,
    in ascending order of rank.
    """

    def __init__(self, rules: Rules, objective: Objective, limits: Limits) -> None:
        self.rules: Final = rules
        self.objective: Final = objective
        self.table: Final[Table] = kernels.table(rules)
        self._spec: Final = tables.build_spec(rules, objective is Objective.WIN)
        self._limits: Final = limits
        self._most_bytes: Final = 1 << 62 if limits.max_bytes is None else int(limits.max_bytes)
        fits = tables.bytes_of(self._spec, _FIRST_ROOM) <= self._most_bytes
        self._memory: Memory | None = tables.new_memory(self._spec, _FIRST_ROOM) if fits else None
        self._started: Final = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._started

    @property
    def states(self) -> int:
        """States stored for the present pyramid."""
        return 0 if self._memory is None else int(self._memory.counts[tables.STORED])

    def range_from(self, ranks: NDArray[np.int8], position: Position) -> tuple[int, int]:
        """The result were the game to end here, which no move lowers, and one that no play exceeds."""
        pyramid, stock, _, pass_number, cleared = position
        if self.objective is Objective.WIN:
            return int(kernels.is_won(self.table, pyramid, stock)), 1
        now = kernels.score(self.table, ranks, pyramid, stock, cleared)
        return int(now), int(kernels.score(self.table, ranks, 0, 0, cleared or pass_number))

    def begin(self, ranks: NDArray[np.int8]) -> None:
        """Forget all states and turn to the pyramid of these ranks."""
        if self._memory is not None:
            tables.forget(self._memory)
            self._memory.ranks[:] = ranks

    def gain(self, ranks: NDArray[np.int8], position: Position, unseen: int) -> int | None:
        """The best legal gain from a position on, summed over all orders of the unseen cards."""
        if kernels.is_finished(self.table, *position[:4]):
            return 0
        stock = ranks[self.rules.places :].copy()
        out = np.zeros(2, np.int64)

        def ask(memory: Memory) -> int:
            return search.ask(self.table, self._spec, memory, _FACTORIALS, stock, *position[:4], unseen, VISITS, out)

        return int(out[0]) if self._run(ask) else None

    def open_gain(self, ranks: NDArray[np.int8], position: Position, unseen: int) -> Fraction | None:
        """The expected best gain from a position on with the unseen cards open."""
        if unseen == 0 or kernels.is_finished(self.table, *position[:4]):
            gain = self.gain(ranks, position, unseen)
            return None if gain is None else Fraction(gain)
        stock = tables.merged_ranks(self._spec, ranks, position[0], unseen)
        out = np.zeros(2, np.int64)

        def ask(memory: Memory) -> int:
            return search.ask_open(
                self.table, self._spec, memory, _FACTORIALS, stock, *position[:3], unseen, VISITS, out
            )

        return Fraction(int(out[0]), int(out[1])) if self._run(ask) else None

    def move_values(self, ranks: NDArray[np.int8], position: Position, unseen: int) -> dict[Move, Fraction] | None:
        """The expected result of each legal move, the best play after it."""
        values = {}
        for action in self._legal_actions(ranks, position, unseen):
            after = kernels.apply(self.table, *position, action)
            gain = self.gain(ranks, after, unseen)
            if gain is None:
                return None
            values[move_table(self.rules)[action]] = self.range_from(ranks, after)[0] + Fraction(
                gain, factorial(unseen)
            )
        return values

    def _legal_actions(self, ranks: NDArray[np.int8], position: Position, unseen: int) -> list[int]:
        """The legal moves as far as the player knows: with cards unseen a draw may help."""
        if not unseen:
            return [int(action) for action in kernels.legal_actions(self.rules, ranks, np.array(position, np.int64))]
        if kernels.is_finished(self.table, *position[:4]):
            return []
        actions = np.empty(MAX_MOVES, np.int64)
        count = kernels.list_removals(self.table, ranks, *position[:3], actions)
        return [*actions[:count].tolist(), self.table.actions - 1]

    def _run(self, ask: Callable[[Memory], int]) -> bool:
        """Call a kernel until it is done; False if a limit was met."""
        while self._memory is not None:
            ended = ask(self._memory)
            if ended == search.DONE:
                return True
            if self._limits.max_seconds is not None and self.seconds >= self._limits.max_seconds:
                return False
            if ended == search.FULL and not self._grow(self._memory):
                return False
        return False

    def _grow(self, memory: Memory) -> bool:
        """Twice the room in the table that was too short, if it can be had."""
        room = list(tables.room_of(memory))
        short = int(memory.counts[tables.SHORT])
        # While a table is copied both copies exist.
        needed = tables.bytes_of(self._spec, Room(*room))
        room[short] *= 2
        needed += tables.bytes_of(self._spec, Room(*room))
        if needed > self._most_bytes or room[short] > _MOST_ROOM:
            return False
        memory.counts[tables.SHORT] = -1
        self._memory = tables.enlarged(memory, Room(*room))
        return True
