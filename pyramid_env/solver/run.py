"""Run: one search under limits, from empty tables to the replayed line. Tables grow here, as far as they may."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env.kernels import PASS
from pyramid_env.rules import Rules
from pyramid_env.solver import search
from pyramid_env.solver.expand import CHILD_COLUMNS, MOST_CHILDREN, MOST_REMOVALS
from pyramid_env.solver.fewest import find_fewest, has_tables
from pyramid_env.solver.lateness import find_latest
from pyramid_env.solver.positions import (
    BEST,
    BUCKET,
    COUNT,
    FULL,
    NODE,
    PROGRESS_COLUMNS,
    ROOM,
    SLOTS,
    TOP,
    VALUE,
    Memory,
)
from pyramid_env.solver.problem import (
    EARLIEST,
    HASTE,
    MOST_STEPS,
    REACHED,
    SCORE,
    STEPS,
    Instance,
    Problem,
    last_pass,
    new_instance,
    problem_of,
)
from pyramid_env.solver.relaxation import prepare
from pyramid_env.solver.replay import replay
from pyramid_env.solver.result import Limits
from pyramid_env.solver.short import FINE, MOST_HASTE
from pyramid_env.solver.visit import GREEDY
from pyramid_env.solver.worth import find_worths

SLICE: Final = 1 << 14
"""Positions expanded between two looks at the clock."""

_USUAL_ROOM: Final = 1 << 16
"""Positions of a workspace's tables: enough for nearly all quick questions."""
_LEAST_ROOM: Final = 1 << 14
"""Positions of a search that has few bytes."""
_SMALLEST_GROWTH: Final = 1.25
_MOST_ROOM: Final = 1 << 30  # positions are numbered by int32
_KEPT_BYTES: Final = 64 << 20
"""Tables above this size are given back after the search that needed them."""


class Outcome(NamedTuple):
    """What a search found; ``best`` is the value reached for SCORE."""

    decided: bool
    found: bool  # a line is there
    best: int
    bound: int
    actions: NDArray[np.int64]
    final: NDArray[np.int64]  # (5,) the position at the line's end


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
        return _MOST_ROOM if most is None else int(max(0, min(_MOST_ROOM, most - self.states)))

    def within(self, states: int) -> Budget:
        """A budget for a search that may store no more than some positions."""
        most = min(states, self.states_left)
        seconds = None if self.limits.max_seconds is None else max(0.0, self.limits.max_seconds - self.seconds)
        return Budget(Limits(most, seconds, self.limits.max_bytes))

    @property
    def bytes(self) -> int:
        """Bytes the tables of one search may take."""
        return 1 << 62 if self.limits.max_bytes is None else int(self.limits.max_bytes)


def used_bytes(arrays: Iterable[NDArray[Any]]) -> int:
    """Bytes of some arrays."""
    return sum(array.nbytes for array in arrays)


def new_memory(positions: int) -> Memory:
    """Tables for some positions."""
    slots = 1 << (2 * positions - 1).bit_length()
    return Memory(
        nodes=np.empty(positions, NODE),
        slots=np.empty(slots, np.int32),
        heads=np.empty(GREEDY, np.int32),
        progress=np.zeros(PROGRESS_COLUMNS, np.int64),
        children=np.empty((MOST_CHILDREN, CHILD_COLUMNS), np.int64),
        actions=np.empty(MOST_REMOVALS, np.int64),
    )


def grown(memory: Memory, most_bytes: int) -> Memory | None:
    """The same search with room for twice as many positions, or as many as ``most_bytes`` allow; None if too few."""
    old = len(memory.nodes)
    # While the positions are copied both copies exist, so the new ones must fit beside all the old tables.
    spare = most_bytes - used_bytes(memory)
    room = min(2 * old, _MOST_ROOM)
    while room >= _SMALLEST_GROWTH * old:
        size = max(len(memory.slots), 1 << (2 * room - 1).bit_length())
        added = size if size > len(memory.slots) else 0
        if room * NODE.itemsize + added * memory.slots.itemsize <= spare:
            break
        room = int(room * 0.8)
    else:
        return None
    nodes = np.empty(room, NODE)
    nodes[:old] = memory.nodes
    if not added:
        return memory._replace(nodes=nodes)
    slots = np.empty(size, np.int32)
    used = int(memory.progress[SLOTS])
    slots[:used] = memory.slots[:used]
    return memory._replace(nodes=nodes, slots=slots)


class Workspace:
    """The tables of one thread's searches under some rules."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.instance: Instance = new_instance(rules)
        self.memory: Memory = new_memory(_USUAL_ROOM)
        # No line is longer: between two removals lie at most the draws of two passes and a recycle.
        self.longest_line: Final = rules.cards * (2 * rules.stock_size + 2)
        self.line = np.empty(self.longest_line, np.int64)

    def take(self, problem: Problem, ranks: NDArray[np.int8], state: NDArray[np.int64], pass_limit: int) -> None:
        """Make the tables of a deal's position."""
        while not prepare(problem, self.instance, ranks, state, pass_limit):
            self.widen()

    def widen(self) -> None:
        """Twice as much room for vectors."""
        room = 2 * self.instance.vectors.size
        self.instance = self.instance._replace(vectors=np.empty(room, np.int64), worths=np.empty(room, np.int64))

    def ask(
        self,
        question: int,
        ranks: NDArray[np.int8],
        state: NDArray[np.int64],
        budget: Budget,
        pass_limit: int | None = None,
        *,
        earliest: int = 1,
        reached: int = 0,
        most_steps: int | None = None,
        haste: int = 0,
        again: bool = False,
    ) -> Outcome:
        """Search from a position until the question is answered or the budget is used up.

        Args:
            question: CLEAR, WIN, SCORE or STEPS.
            ranks: (cards,) the deal.
            state: (5,) the position.
            budget: shared by the searches that answer one objective.
            pass_limit: passes that may be used; None: all passes of the rules.
            earliest: no clear comes in an earlier pass; 0: none comes at all.
            reached: the score of a line that is known, or of the position itself; only a line with more is looked for.
            most_steps: longer lines are of no interest.
            haste: how much more than one made a step ahead weighs, see ``short.FINE``; above 0 a win comes sooner and
                need not be the shortest.
            again: the last search was for the same question, position, passes and ``earliest``: its tables hold.
        """
        problem = problem_of(self.rules, question)
        if not again:
            self.take(problem, ranks, state, last_pass(self.rules) if pass_limit is None else pass_limit)
        self.instance.facts[EARLIEST] = earliest
        if question == STEPS and not again:
            find = find_fewest if has_tables(self.instance) else find_latest
            find(problem, self.instance, int(state[PASS]))
        self.instance.facts[REACHED] = reached
        self.instance.facts[HASTE] = haste
        self.instance.facts[MOST_STEPS] = self.longest_line if most_steps is None else most_steps
        if question == SCORE and earliest == 0:
            while not find_worths(problem, self.instance):
                self.widen()
        fixed = used_bytes((*problem.shapes, *self.instance))
        buckets = self._buckets(problem, state)
        memory = self.memory
        if fixed + used_bytes(memory) > budget.bytes:
            memory = new_memory(_LEAST_ROOM)
        if len(memory.heads) < buckets:
            memory = memory._replace(heads=np.empty(buckets, np.int32))
        fits = fixed + used_bytes(memory) <= budget.bytes
        memory.progress[ROOM] = min(len(memory.nodes), budget.states_left) if fits else 0
        search.begin(problem, self.instance, memory, state, buckets)
        decided = False
        while fits and not decided:
            ended = search.advance(problem, self.instance, memory, SLICE)
            decided = ended == search.DONE
            if decided or budget.is_over_time:
                break
            if ended == search.NO_ROOM:
                may_grow = len(memory.nodes) < budget.states_left
                larger = grown(memory, budget.bytes - fixed) if may_grow else None
                if larger is None:
                    break
                memory = larger
                memory.progress[ROOM] = min(len(memory.nodes), budget.states_left)
                memory.progress[FULL] = 0
        outcome = self._outcome(problem, state, memory, decided, budget)
        if used_bytes(memory) <= _KEPT_BYTES and len(memory.nodes) >= len(self.memory.nodes):
            self.memory = memory
        return outcome

    def _buckets(self, problem: Problem, state: NDArray[np.int64]) -> int:
        """Buckets that the search from a position can need."""
        if problem.question == SCORE:
            here, top = search.score_bounds(problem, self.instance, state)
            return (top - here + 2) * GREEDY
        return (FINE + MOST_HASTE) * self.longest_line if problem.question == STEPS else GREEDY

    def _outcome(
        self, problem: Problem, state: NDArray[np.int64], memory: Memory, decided: bool, budget: Budget
    ) -> Outcome:
        """Replay the best line and put the outcome together."""
        progress = memory.progress
        budget.states += int(progress[COUNT])
        value = int(progress[VALUE])
        bound = int(progress[BUCKET]) if progress[COUNT] else 0
        if problem.question == STEPS:
            bound = -(-bound // FINE)
        if problem.question == SCORE:
            bound = value if decided else max(value, int(progress[TOP]) - bound // GREEDY)
        final = state.copy()
        found = bool(progress[BEST] >= 0)
        made = replay(problem, self.instance, memory, final, self.line)
        assert made >= 0, "the line found is no legal line"
        assert not found or problem.question != STEPS or made == memory.nodes[progress[BEST]]["cost"], (
            "the line is longer than was counted"
        )
        return Outcome(decided, found, value, bound, self.line[:made].copy(), final)


_local = threading.local()


def workspace(rules: Rules) -> Workspace:
    """This thread's workspace for some rules; the last few are kept."""
    kept: dict[Rules, Workspace] = _local.__dict__.setdefault("kept", {})
    found = kept.pop(rules, None) or Workspace(rules)
    kept[rules] = found  # the latest is the last
    while len(kept) > _MOST_WORKSPACES:
        del kept[next(iter(kept))]
    return found


_MOST_WORKSPACES: Final = 4
