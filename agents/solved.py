"""SolvedDeals: random deals that can be won, each with a winning line and how hard it was, solved beside the training.

The candidates are cut into blocks, each with a generator of its own, so that the stream of deals depends on nothing but
the seed and can be taken up anywhere at the price of one block. A thread solves some blocks ahead (kernels run without
Python's lock); who takes more than it solves has to wait.
"""

from __future__ import annotations

import itertools
import queue
import threading
import weakref
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env.benchmark.difficulty import LONG_SEARCH
from pyramid_env.deal import deal_numbers, random_numbers
from pyramid_env.errors import PyramidError
from pyramid_env.rules import Rules
from pyramid_env.solver import Limits, Objective
from pyramid_env.solver.blocks import solve_block
from pyramid_env.solver.question import RANK_OF_ID
from pyramid_env.winnable import MAX_REFUSED, MAX_STATES

BLOCK: Final = 256
"""Candidates of a block."""
AHEAD: Final = 16
"""Blocks that are solved ahead."""

_LOOK_S: Final = 0.2  # where waiting cannot be interrupted (Windows), Ctrl-C is seen after this time
_PATIENCE_S: Final = 5.0  # for a thread that is told to end; longer than a slice of a search


class SolvedBlock(NamedTuple):
    """The n deals of a block that can be won."""

    numbers: NDArray[np.int64]  # (n,) deal numbers, in the order in which they were drawn
    easier: NDArray[np.float64]  # (n,) share of these deals that are easier, 0 .. below 1
    lines: list[NDArray[np.int16]]  # (n,) winning lines: action indices from the deal's start


class SolvedDeals:
    """An endless stream of deals that can be won.

    Args:
        rules: the game.
        seed: of the candidates.
    """

    def __init__(self, rules: Rules, seed: list[int]) -> None:
        self.rules: Final = rules
        self._seed: Final = seed
        self._ahead: _Ahead | None = None
        self._end: weakref.finalize[Any, Any] | None = None
        self._block: SolvedBlock | None = None  # the present one
        self._index, self._within = 0, 0  # of that block, and of its next deal

    def take(self, count: int, easiest: float = 1.0) -> tuple[NDArray[np.int64], list[NDArray[np.int16]]]:
        """The next deals: numbers (count,) and a winning line of each; waits for the solver where it must.

        Args:
            count: how many.
            easiest: of each block only this share, the easiest; the others are passed over.

        Raises:
            PyramidError: rules of which MAX_REFUSED deals in a row cannot be won.
        """
        numbers = np.empty(count, np.int64)
        lines: list[NDArray[np.int16]] = []
        while len(lines) < count:
            block = self._present()
            fit = self._within + np.flatnonzero(block.easier[self._within :] < easiest)[: count - len(lines)]
            numbers[len(lines) : len(lines) + fit.size] = block.numbers[fit]
            lines += [block.lines[deal] for deal in fit.tolist()]
            self._within = int(fit[-1]) + 1 if len(lines) == count and fit.size else block.numbers.size
        return numbers, lines

    def _present(self) -> SolvedBlock:
        """The block in hand, which has deals left."""
        refused = 0
        if self._block is not None and self._within >= self._block.numbers.size:
            self._block, self._index, self._within = None, self._index + 1, 0
        while self._block is None:
            if self._ahead is None:
                self._ahead = _Ahead(self.rules, self._seed, self._index)
                # The thread knows what it solves alone: a source that is dropped ends it.
                self._end = weakref.finalize(self, self._ahead.stop)
            found = self._ahead.next()
            if found.numbers.size > self._within:
                self._block = found
                break
            self._index, self._within = self._index + 1, 0
            refused += BLOCK
            if refused >= MAX_REFUSED:
                raise PyramidError(f"solved deals: none of {refused:,} deals of {self.rules} in a row can be won")
        return self._block

    def state(self) -> dict[str, Any]:
        """JSON values."""
        return {"block": self._index, "within": self._within}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.close()
        self._index, self._within = int(state["block"]), int(state["within"])

    def close(self) -> None:
        """End the thread; a further :meth:`take` starts another."""
        if self._end is not None:
            self._end()
        self._ahead, self._end, self._block = None, None, None


class _Ahead:
    """The thread that solves block after block, and the blocks that wait."""

    def __init__(self, rules: Rules, seed: list[int], first: int) -> None:
        self._rules: Final = rules
        self._seed: Final = seed
        self._blocks: Final[queue.Queue[SolvedBlock | BaseException]] = queue.Queue(AHEAD)
        self._stop: Final = np.zeros(1, np.int64)
        # daemon: a program must end even if this thread is still solving or compiling.
        self._thread: Final = threading.Thread(target=self._work, args=(first,), name="solved-deals", daemon=True)
        self._thread.start()

    def next(self) -> SolvedBlock:
        """The next block; what ended the thread is raised as it came."""
        while True:
            try:
                block = self._blocks.get(timeout=_LOOK_S)
            except queue.Empty:
                if not self._thread.is_alive():  # a copy of this process, made by fork
                    raise PyramidError("solved deals: the thread that solves is not in this process") from None
                continue
            if isinstance(block, BaseException):
                raise block
            return block

    def stop(self) -> None:
        """Have the thread end, and wait, but not for ever."""
        self._stop[0] = 1
        while not self._blocks.empty():  # it may wait for room
            self._blocks.get_nowait()
        self._thread.join(_PATIENCE_S)

    def _work(self, first: int) -> None:
        try:
            for index in itertools.count(first):
                block = _solved(self._rules, [*self._seed, index], self._stop)
                if self._stop[0]:
                    return
                self._blocks.put(block)
        except BaseException as error:
            self._blocks.put(error)


def _solved(rules: Rules, seed: list[int], stop: NDArray[np.int64]) -> SolvedBlock:
    candidates = random_numbers(np.random.default_rng(seed), BLOCK)
    ranks = RANK_OF_ID[deal_numbers(candidates, rules)]
    found = solve_block(rules, ranks, Objective.WIN, Limits(max_states=MAX_STATES), stop)
    good = np.flatnonzero(found.value == 1)
    lines = [found.actions[found.offsets[deal] : found.offsets[deal + 1]] for deal in good.tolist()]
    return SolvedBlock(candidates[good], _easier(found.states[good], np.diff(found.offsets)[good]), lines)


def _easier(states: NDArray[np.int64], steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) the share of n deals that are easier, from the positions that the solver stored and its line's moves.

    Hard are the deals whose win took a long search (LONG_SEARCH times the median); among the others, and among them,
    those whose line is long: it goes further into the stock. Asking for the win alone, as one does anyway, tells both.
    Measured on winnable deals, by quarters from easy to hard: ``tips`` wins 98, 85, 86, 62 % of ``pyramid`` (1,995
    deals) and 48, 31, 8, 4 % of ``one_pass`` (105), ``greedy`` 63, 45, 44, 28 % and 35, 14, 8, 3 %.
    """
    searched = states > LONG_SEARCH * np.median(states) if states.size else states.astype(np.bool_)
    easier = np.empty(states.size)
    easier[np.lexsort((steps, searched))] = np.arange(states.size) / max(1, states.size)
    return easier
