"""Run: one search under limits, from empty tables to the replayed line. Tables grow here, as far as they may."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env.solver import search
from pyramid_env.solver.expand import CHILD_COLUMNS, MOST_CHILDREN, MOST_REMOVALS
from pyramid_env.solver.positions import NODE, rehash
from pyramid_env.solver.problem import SCORE, STEPS, Problem
from pyramid_env.solver.replay import line_to, replay
from pyramid_env.solver.result import Limits
from pyramid_env.solver.search import Memory

SLICE: Final = 4096
"""Positions expanded between two looks at the clock."""

_FIRST_ROOM: Final = 1 << 12
_SMALLEST_GROWTH: Final = 1.25
_MOST_ROOM: Final = 1 << 30  # positions are numbered by int32


class Outcome(NamedTuple):
    """What a search found. ``bucket`` is where it stood; ``best`` the value reached for SCORE."""

    decided: bool
    found: bool  # a line is there
    best: int
    bound: int
    actions: NDArray[np.int64]
    final: NDArray[np.int64]  # (5,) the position at the line's end
    states: int


class Budget:
    """Limits over one or several searches that share them."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.started = time.perf_counter()
        self.states = 0

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def is_over_time(self) -> bool:
        """Has the time run out?"""
        return self.limits.max_seconds is not None and self.seconds >= self.limits.max_seconds

    @property
    def states_left(self) -> int:
        """Positions that may still be stored."""
        most = self.limits.max_states
        return _MOST_ROOM if most is None else max(0, min(_MOST_ROOM, most - self.states))

    @property
    def bytes(self) -> int:
        """Bytes the tables of one search may take."""
        return 1 << 62 if self.limits.max_bytes is None else int(self.limits.max_bytes)


def new_memory(problem: Problem, state: NDArray[np.int64]) -> Memory:
    """Small tables for a search from a position, nothing in them yet."""
    progress = np.zeros(search.PROGRESS_COLUMNS, np.int64)
    progress[search.BEST] = -1
    longest = longest_line(problem)
    if problem.question == SCORE:
        here, top = search.score_bounds(problem, state)
        progress[search.TOP] = max(here, top)
        progress[search.VALUE] = here - 1  # so that the root itself counts as reached
        buckets = (max(here, top) - here + 2) * search.GREEDY
    else:
        buckets = longest + len(problem.ranks) if problem.question == STEPS else search.GREEDY
    progress[search.BUCKET] = buckets
    return Memory(
        nodes=np.empty(_FIRST_ROOM, NODE),
        slots=np.full(2 * _FIRST_ROOM, -1, np.int32),
        heads=np.full(buckets, -1, np.int32),
        progress=progress,
        children=np.empty((MOST_CHILDREN, CHILD_COLUMNS), np.int64),
        actions=np.empty(MOST_REMOVALS, np.int64),
    )


def longest_line(problem: Problem) -> int:
    """No line is longer: between two removals lie at most the draws of two passes and a recycle."""
    return len(problem.ranks) * (2 * problem.table.stock_size + 2)


def used_bytes(arrays: Iterable[NDArray[Any]]) -> int:
    """Bytes of some arrays."""
    return sum(array.nbytes for array in arrays)


def grown(memory: Memory, most_bytes: int) -> Memory | None:
    """The same search with room for twice as many positions, or as many as ``most_bytes`` allow; None if too few."""
    old = len(memory.nodes)
    # While a table is copied both copies exist, so the new ones must fit beside all the old ones.
    spare = most_bytes - used_bytes(memory)
    room = min(2 * old, _MOST_ROOM)
    while room >= _SMALLEST_GROWTH * old:
        size = len(memory.slots)
        while size < 2 * room:
            size *= 2
        added = size if size > len(memory.slots) else 0
        if room * NODE.itemsize + added * memory.slots.itemsize <= spare:
            break
        room = int(room * 0.8)
    else:
        return None
    nodes = np.empty(room, NODE)
    nodes[:old] = memory.nodes
    slots = memory.slots
    if added:
        slots = np.full(size, -1, np.int32)
        rehash(nodes, memory.slots, slots)
    return memory._replace(nodes=nodes, slots=slots)


def run_search(problem: Problem, state: NDArray[np.int64], budget: Budget) -> Outcome:
    """Search from a position until the question is answered or the budget is used up."""
    fixed = used_bytes((*problem.relaxation, *problem.shapes))
    memory = new_memory(problem, state)
    decided = False
    if fixed + used_bytes(memory) <= budget.bytes and budget.states_left > 0:
        search.begin(problem, memory, state)
        while not decided:
            room = min(len(memory.nodes), budget.states_left)
            ended = search.advance(problem, memory, room, SLICE)
            decided = ended == search.DONE
            if decided or budget.is_over_time:
                break
            if ended == search.FULL:
                larger = grown(memory, budget.bytes - fixed) if room == len(memory.nodes) else None
                if larger is None:
                    break
                memory = larger
    return _outcome(problem, state, memory, decided, budget)


def _outcome(problem: Problem, state: NDArray[np.int64], memory: Memory, decided: bool, budget: Budget) -> Outcome:
    """Replay the best line and put the outcome together."""
    count, bucket, best, value, top = (int(number) for number in memory.progress)
    budget.states += count
    bucket = bucket if count else 0
    bound = bucket
    if problem.question == SCORE:
        bound = value if decided else max(value, top - bucket // search.GREEDY)
    final = state.copy()
    actions = np.zeros(0, np.int64)
    if best >= 0:
        room = np.empty(longest_line(problem), np.int64)
        made = replay(problem, line_to(memory.nodes, best), final, room)
        assert made >= 0, "the line found is no legal line"
        assert problem.question != STEPS or made == memory.nodes[best]["cost"], "the line is longer than was counted"
        actions = room[:made].copy()
    return Outcome(decided, best >= 0, value, bound, actions, final, count)
