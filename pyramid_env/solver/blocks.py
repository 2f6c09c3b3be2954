"""Blocks: one question about the deals of a block, answered in columns. What a thread of ``solve_many`` calls."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env.kernels import STATE_COLUMNS
from pyramid_env.rules import Rules
from pyramid_env.solver.answers import Answer, answer, warm_up
from pyramid_env.solver.batch import ANSWER_COLUMNS, FOUND, LENGTH, STATES, WORK, answer_many
from pyramid_env.solver.problem import CLEAR, WIN, last_pass, problem_of
from pyramid_env.solver.result import Limits, Objective, Status
from pyramid_env.solver.run import used_bytes, workspace

STATUSES: Final = (Status.OPTIMAL, Status.UNWINNABLE, Status.LIMIT)
"""What a number in a ``status`` column stands for: its index here. Files hold the numbers, so the order stays."""


class Block(NamedTuple):
    """Answers about m deals; deal i's line is ``actions[offsets[i]:offsets[i + 1]]``. See :class:`Solution`."""

    status: NDArray[np.int8]  # (m,) index into STATUSES
    value: NDArray[np.int32]  # (m,)
    bound: NDArray[np.int32]  # (m,)
    states: NDArray[np.int64]  # (m,)
    seconds: NDArray[np.float64]  # (m,)
    actions: NDArray[np.int16]  # (k,) all lines, one after the other, as action indices of the rules' move table
    offsets: NDArray[np.int64]  # (m + 1,) from 0 to k


def solve_block(
    rules: Rules, ranks: NDArray[np.int8], objective: Objective, limits: Limits, stop: NDArray[np.int64]
) -> Block:
    """Solve deals from their starts, one after the other.

    Args:
        rules: the rules of all of them.
        ranks: (n, cards) int8, C-contiguous: the rank of every card, pyramid first, then the stock.
        objective: see :class:`Objective`.
        limits: of each deal.
        stop: (1,) int64; another thread makes it non-zero to end the work early. A deal not yet answered is then left
            out.

    Returns:
        The answers about the first m deals, in their order; m is less than n only if ``stop`` became non-zero.
    """
    warm_up()
    rows = np.array(ranks, np.int8)
    states = np.repeat(kernels.start_state(rules)[None], len(rows), axis=0)
    return solve_positions_block(rules, rows, states, objective, limits, stop)


def solve_positions_block(
    rules: Rules,
    ranks: NDArray[np.int8],
    states: NDArray[np.int64],
    objective: Objective,
    limits: Limits,
    stop: NDArray[np.int64],
    *,
    lines: bool = True,
) -> Block:
    """As :func:`solve_block`, from positions (n, 5) int64 of the deals; both arrays C-contiguous and writable.

    Without ``lines`` those that would cost time are left out, and are empty.
    """
    parts = [_EMPTY]
    done = 0
    quick = _Quick(rules, objective, limits, len(ranks), lines)
    while done < len(ranks) and not stop[0]:
        part = quick.answers(ranks, states, done)
        done += part.status.size
        parts.append(part)
        if done < len(ranks):  # more than the quick way may spend, or another objective
            parts.append(_block_of(answer(rules, ranks[done], states[done], objective, limits)))
            done += 1
    return Block(
        status=np.concatenate([part.status for part in parts]),
        value=np.concatenate([part.value for part in parts]),
        bound=np.concatenate([part.bound for part in parts]),
        states=np.concatenate([part.states for part in parts]),
        seconds=np.concatenate([part.seconds for part in parts]),
        actions=np.concatenate([part.actions for part in parts]),
        offsets=_offsets(np.concatenate([np.diff(part.offsets) for part in parts])),
    )


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """(m + 1,) where lines of these lengths begin, and the last one's end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _block_of(found: Answer) -> Block:
    return Block(
        status=np.array([STATUSES.index(found.status)], np.int8),
        value=np.array([found.value], np.int32),
        bound=np.array([found.bound], np.int32),
        states=np.array([found.states], np.int64),
        seconds=np.array([found.seconds], np.float64),
        actions=found.actions.astype(np.int16),
        offsets=np.array([0, len(found.actions)], np.int64),
    )


_EMPTY: Final = Block(
    status=np.zeros(0, np.int8),
    value=np.zeros(0, np.int32),
    bound=np.zeros(0, np.int32),
    states=np.zeros(0, np.int64),
    seconds=np.zeros(0, np.float64),
    actions=np.zeros(0, np.int16),
    offsets=np.zeros(1, np.int64),
)


class _Quick:
    """The compiled way to answer many deals, for the objectives it knows."""

    def __init__(self, rules: Rules, objective: Objective, limits: Limits, most: int, lines: bool) -> None:
        self.tables = workspace(rules)
        self.known = objective in (Objective.WIN, Objective.EARLIEST)
        self.earliest = objective is Objective.EARLIEST
        self.problem = problem_of(rules, CLEAR if self.earliest else WIN)
        memory = self.tables.memory
        stored = len(memory.nodes) if limits.max_states is None else min(len(memory.nodes), int(limits.max_states))
        self.most_stored = stored
        fixed = used_bytes((*self.problem.shapes, *self.tables.instance, *memory))
        if limits.max_bytes is not None and fixed > limits.max_bytes:
            self.known = False  # the careful way takes smaller tables, or says that there is no room
        if limits.max_seconds is not None and limits.max_seconds < _QUICK_SECONDS:
            self.known = False
        self.found = np.empty((most, ANSWER_COLUMNS), np.int64)
        # Room for the longest lines; what is not written to costs nothing.
        self.actions = np.empty(most * self.tables.longest_line if self.known and lines else 0, np.int16)
        self.scratch = np.empty(STATE_COLUMNS, np.int64)

    def answers(self, ranks: NDArray[np.int8], states: NDArray[np.int64], start: int) -> Block:
        """Answers about deals from number ``start`` on, up to the first that needs more care."""
        if not self.known:
            return _EMPTY
        began = time.perf_counter()
        end = answer_many(
            self.problem, self.tables.instance, self.tables.memory, ranks, states, start, last_pass(self.tables.rules),
            self.earliest, _QUICK_WORK, self.most_stored, self.scratch, self.tables.line, self.found, self.actions,
        )  # fmt: skip
        found = self.found[start:end]
        # The time of the call is shared out by the work done: a clock cannot be read between two deals.
        each = (time.perf_counter() - began) / max(1, int(found[:, WORK].sum()))
        value = found[:, FOUND].astype(np.int32)
        offsets = _offsets(found[:, LENGTH])
        return Block(
            status=np.where(value, STATUSES.index(Status.OPTIMAL), STATUSES.index(Status.UNWINNABLE)).astype(np.int8),
            value=value,
            bound=value,
            states=found[:, STATES].copy(),
            seconds=(found[:, WORK] * each).astype(np.float64),
            actions=self.actions[: offsets[-1]].copy(),
            offsets=offsets,
        )


_QUICK_WORK: Final = 20_000
"""Positions that one quick search may expand."""

_QUICK_SECONDS: Final = 1.0
"""A shorter limit than this is watched deal by deal."""
