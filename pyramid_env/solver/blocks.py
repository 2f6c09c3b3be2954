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
from pyramid_env.solver.batch import ANSWER_COLUMNS, WORK, answer_many
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
    answers: list[Answer] = []
    quick = _Quick(rules, objective, limits, len(ranks), lines)
    while len(answers) < len(ranks) and not stop[0]:
        answers += quick.answers(ranks, states, len(answers))
        if len(answers) < len(ranks):  # more than the quick way may spend, or another objective
            at = len(answers)
            answers.append(answer(rules, ranks[at], states[at], objective, limits))
    return Block(
        status=np.array([STATUSES.index(each.status) for each in answers], np.int8),
        value=np.array([each.value for each in answers], np.int32),
        bound=np.array([each.bound for each in answers], np.int32),
        states=np.array([each.states for each in answers], np.int64),
        seconds=np.array([each.seconds for each in answers], np.float64),
        actions=np.concatenate([np.zeros(0, np.int64), *(each.actions for each in answers)]).astype(np.int16),
        offsets=np.cumsum([0, *(len(each.actions) for each in answers)], dtype=np.int64),
    )


class _Quick:
    """The compiled way to answer many deals, for the objectives it knows."""

    def __init__(self, rules: Rules, objective: Objective, limits: Limits, most: int, lines: bool) -> None:
        self.tables = workspace(rules)
        self.known = objective in (Objective.WIN, Objective.EARLIEST)
        self.with_lines = lines or objective is Objective.EARLIEST
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
        self.lines = np.empty((most, self.tables.longest_line if self.known and self.with_lines else 0), np.int64)
        self.scratch = np.empty(STATE_COLUMNS, np.int64)

    def answers(self, ranks: NDArray[np.int8], states: NDArray[np.int64], start: int) -> list[Answer]:
        """Answers about deals from number ``start`` on, up to the first that needs more care."""
        if not self.known:
            return []
        began = time.perf_counter()
        end = answer_many(
            self.problem, self.tables.instance, self.tables.memory, ranks, states, start, last_pass(self.tables.rules),
            self.earliest, _QUICK_WORK, self.most_stored, self.scratch, self.found, self.lines,
        )  # fmt: skip
        # The time of the call is shared out by the work done: a clock cannot be read between two deals.
        each = (time.perf_counter() - began) / max(1, int(self.found[start:end, WORK].sum()))
        made = []
        for at in range(start, end):
            value, stored, work, length = self.found[at].tolist()
            status = Status.OPTIMAL if value else Status.UNWINNABLE
            made.append(Answer(status, value, value, self.lines[at, :length], stored, work * each))
        return made


_QUICK_WORK: Final = 5_000
"""Positions that one quick search may expand."""

_QUICK_SECONDS: Final = 1.0
"""A shorter limit than this is watched deal by deal."""
