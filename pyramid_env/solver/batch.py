"""Batch: the quick questions about many deals in one compiled call.

Most deals take well under a millisecond, less than it costs to come from Python and go back. A deal that takes more
than its share of work is left to the caller, who has limits to watch.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.kernels import CLEARED, PASS, STATE_COLUMNS
from pyramid_env.solver.positions import BEST, COUNT, EXPANDED, ROOM, Memory
from pyramid_env.solver.problem import LATE_FROM, PASS_LIMIT, Instance, Problem
from pyramid_env.solver.relaxation import NEVER_LATE, prepare
from pyramid_env.solver.replay import replay
from pyramid_env.solver.search import DONE, advance, begin
from pyramid_env.solver.visit import GREEDY

FOUND: Final = 0  # pass of the clear for ``earliest``, 1 for a win, 0 for none
STATES: Final = 1
WORK: Final = 2
LENGTH: Final = 3
ANSWER_COLUMNS: Final = 4

_SETTING_UP: Final = 70
"""Work of taking up a deal, in expanded positions."""


@kernel
def answer_many(
    problem: Problem,
    instance: Instance,
    memory: Memory,
    ranks: NDArray[np.int8],
    states: NDArray[np.int64],
    start: int,
    pass_limit: int,
    earliest: bool,
    most_expanded: int,
    most_stored: int,
    scratch: NDArray[np.int64],
    line: NDArray[np.int64],
    out_answers: NDArray[np.int64],
    out_actions: NDArray[np.int16],
) -> int:
    """Answer deals from number ``start`` on; returns the number of the first deal that is left open.

    Args:
        ranks: (n, cards) deals.
        states: (n, 5) their positions.
        earliest: find the earliest pass of the clear; else any line to the goal of the question, which is CLEAR or WIN.
        most_expanded, most_stored: positions of one search, beyond which a deal is left open.
        scratch: (5,) a position.
        line: (longest line,) scratch space.
        out_answers: (n, 4) columns above.
        out_actions: the lines, one after the other; (0,) if they are not wanted, which takes less time. Otherwise room
            for n longest ones.
    """
    progress, facts = memory.progress, instance.facts
    with_lines = out_actions.size > 0
    written = 0
    for d in range(start, ranks.shape[0]):
        if not prepare(problem, instance, ranks[d], states[d], pass_limit):
            return d
        spent = stored = found = length = 0
        limit = pass_limit
        first = states[d, CLEARED] or states[d, PASS]
        while True:
            facts[PASS_LIMIT] = limit
            facts[LATE_FROM] = NEVER_LATE
            progress[ROOM] = min(memory.nodes.size, most_stored)
            begin(problem, instance, memory, states[d], GREEDY)
            if advance(problem, instance, memory, most_expanded) != DONE:
                return d
            spent += progress[EXPANDED]
            stored += progress[COUNT]
            if progress[BEST] >= 0 and not with_lines and not earliest:
                found = 1
            elif progress[BEST] >= 0:
                for column in range(STATE_COLUMNS):
                    scratch[column] = states[d, column]
                length = replay(problem, instance, memory, scratch, line)
                if length < 0:
                    return d  # a fault, which the caller's way brings to light
                found = scratch[CLEARED] if earliest else 1
            if not earliest or found == 0:
                break
            # Is one pass enough, or two? The last line found stands if none is.
            if limit == pass_limit:
                limit = first
            elif progress[BEST] >= 0:
                break
            else:
                limit += 1
            if limit >= found:
                break
        if with_lines:
            for at in range(length):
                out_actions[written + at] = line[at]
            written += length
        out_answers[d, FOUND] = found
        out_answers[d, STATES] = stored
        out_answers[d, WORK] = spent + _SETTING_UP
        out_answers[d, LENGTH] = length if with_lines else 0
    return ranks.shape[0]
