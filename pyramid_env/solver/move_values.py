"""Move values: what each legal move is worth to a player who does not see the hidden cards, averaged over worlds.

For every position worlds are sampled (see worlds.py), the same ones for all of its moves, and the solver says what can
follow each move in each world. Legal knowledge goes in, so the averages may guide a player; but in each world the
solver plays on with open cards, so they are a little too high, most where later play depends on cards not yet seen.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env._numba import kernel
from pyramid_env.kernels import CLEARED, MAX_MOVES, PASS, STATE_COLUMNS, Table
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver.answers import warm_up
from pyramid_env.solver.blocks import solve_positions_block
from pyramid_env.solver.labels import checked_states
from pyramid_env.solver.many import usable_cores
from pyramid_env.solver.positions import BEST, ROOM, Memory
from pyramid_env.solver.problem import CLEAR, LATE_FROM, PASS_LIMIT, WIN, Instance, Problem, last_pass, problem_of
from pyramid_env.solver.relaxation import NEVER_LATE, prepare, take_up
from pyramid_env.solver.result import Limits, Objective, SolverError, read_objective
from pyramid_env.solver.run import workspace
from pyramid_env.solver.search import DONE, advance, begin
from pyramid_env.solver.visit import GREEDY
from pyramid_env.solver.worlds import UNSEEN, checked_knowledge, fill_worlds, world_seeds

_WORLDS_A_PIECE: Final = 2_048  # what a thread takes at a time
_OPEN: Final = -1
"""Stands for a value that the quick search has left open."""
_QUICK: Final = 20_000
"""Positions that a quick search may expand."""


class MoveValues(NamedTuple):
    """What the moves of N positions are worth in K worlds each. M moves in all.

    The moves of position n are the entries from ``offsets[n]`` up to ``offsets[n + 1]``, removals first, draw last;
    none: the game is over.

    Attributes:
        offsets: (N + 1,) int64.
        actions: (M,) int64.
        values: (M, K) float32 what the solver proves after the move in each world, by the objective. Where a limit was
            met the middle between what is reached and what is proven, so half a win; for ``earliest`` 0, no clear. NaN
            for the only move of a position.
        proven: (M,) bool no limit was met.
        known: (N,) bool no card of the position is hidden: its values are exact, the same K times.
    """

    offsets: NDArray[np.int64]
    actions: NDArray[np.int64]
    values: NDArray[np.float32]
    proven: NDArray[np.bool_]
    known: NDArray[np.bool_]

    @property
    def means(self) -> NDArray[np.float32]:
        """(M,) the average over the worlds."""
        means: NDArray[np.float32] = self.values.mean(axis=1)
        return means

    @property
    def rows(self) -> NDArray[np.intp]:
        """(M,) the position of each move."""
        return np.repeat(np.arange(len(self.known)), np.diff(self.offsets))

    def dense(self, actions: int) -> NDArray[np.float32]:
        """(N, A) the averages by action index; NaN for moves that are not legal, and for only moves."""
        table = np.full((len(self.known), actions), np.nan, np.float32)
        table[self.rows, self.actions] = self.means
        return table


def move_values(
    rules: Rules | str,
    ranks: NDArray[np.int8],
    states: NDArray[np.int64],
    objective: str = "win",
    worlds: int = 32,
    rng: np.random.Generator | None = None,
    *,
    workers: int | None = 1,
    max_states: int | None = None,
) -> MoveValues:
    """Rate each legal move of many positions as a player knows them, as of ``position_from_observation``.

    Args:
        rules: the rules of all positions.
        ranks: (N, cards) int8, 0 for a card not seen.
        states: (N, 5) int64 position rows of the kernels.
        objective: ``"win"``, ``"score"``, ``"earliest"`` or ``"steps"``, see :class:`Objective`.
        worlds: K, orders of the unseen cards for each position; 1 is enough where nothing is hidden.
        rng: the orders are drawn from it; None will do where no card is hidden.
        workers: threads; None takes one a core. The result is the same for any number.
        max_states: positions that the solver may look at for each world and move; None: every value is proven.

    Raises:
        SolverError: arrays that are no positions of these rules (which row, and why), a card hidden but no generator,
            unknown objective, worlds or workers below 1.
    """
    chosen = read_rules(rules)
    asked = read_objective(objective)
    known = checked_knowledge(chosen, ranks)
    rows = checked_states(chosen, states)
    if len(rows) != len(known):
        raise SolverError(f"states: expected {len(known)} rows, as many as ranks, got {len(rows)}")
    for name, number in (("worlds", worlds), ("workers", usable_cores() if workers is None else workers)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
            raise SolverError(f"{name}: expected a whole number from 1 up, got {number!r}")
    hidden = (known == UNSEEN).any(axis=1)
    if rng is None and hidden.any():
        raise SolverError(f"rng: expected a numpy.random.Generator where cards are hidden (row {hidden.argmax()})")
    seeds = np.zeros(len(known), np.uint64) if rng is None else world_seeds(rng, len(known))
    offsets, actions = list_all_moves(chosen, known, rows)
    rate = _Rating(chosen, asked, worlds, Limits(max_states), known, rows, seeds, offsets, actions, ~hidden)
    rate.run(workers)
    return MoveValues(offsets, actions, rate.values, rate.proven, ~hidden)


def list_all_moves(
    rules: Rules, ranks: NDArray[np.int8], states: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets (N + 1,) and actions (M,) of the legal moves of positions, none of which is over but by its goal."""
    offsets = np.zeros(len(states) + 1, np.int64)
    table = kernels.table(rules)
    scratch = np.empty(MAX_MOVES, np.int64)
    _list_all(table, ranks, states, scratch, offsets, scratch[:0])
    actions = np.empty(offsets[-1], np.int64)
    _list_all(table, ranks, states, scratch, offsets, actions)
    return offsets, actions


@kernel
def _list_all(
    table: Table,
    ranks: NDArray[np.int8],
    states: NDArray[np.int64],
    scratch: NDArray[np.int64],
    out_offsets: NDArray[np.int64],
    out_actions: NDArray[np.int64],
) -> None:
    """Write offsets and, where there is room for them, actions. What depends on hidden cards is not asked: whether a
    game without a limit of passes is stuck."""
    written = 0
    for n in range(states.shape[0]):
        out_offsets[n] = written
        pyramid, stock, cursor, pass_number = states[n, 0], states[n, 1], states[n, 2], states[n, 3]
        if kernels.is_finished(table, pyramid, stock, cursor, pass_number):
            continue
        count = kernels.list_removals(table, ranks[n], pyramid, stock, cursor, scratch)
        if kernels.can_draw(table, stock, cursor, pass_number):
            scratch[count] = table.actions - 1
            count += 1
        if out_actions.size:
            for m in range(count):
                out_actions[written + m] = scratch[m]
        written += count
    out_offsets[states.shape[0]] = written


class _Rating:
    """One call's arrays, and the threads that fill them."""

    def __init__(
        self,
        rules: Rules,
        objective: Objective,
        worlds: int,
        limits: Limits,
        ranks: NDArray[np.int8],
        states: NDArray[np.int64],
        seeds: NDArray[np.uint64],
        offsets: NDArray[np.int64],
        actions: NDArray[np.int64],
        known: NDArray[np.bool_],
    ) -> None:
        self.rules, self.objective, self.limits, self.worlds = rules, objective, limits, worlds
        self.ranks, self.states, self.seeds = ranks, states, seeds
        self.offsets, self.actions, self.known = offsets, actions, known
        self.values = np.full((len(actions), worlds), np.nan, np.float32)
        self.proven = np.ones(len(actions), np.bool_)

    def run(self, workers: int | None) -> None:
        """Fill in ``values`` and ``proven``."""
        warm_up()
        chosen = np.flatnonzero(np.diff(self.offsets) > 1)
        hidden, known = chosen[~self.known[chosen]], chosen[self.known[chosen]]
        size = max(1, _WORLDS_A_PIECE // self.worlds)
        pieces = [(hidden[at : at + size], self.worlds) for at in range(0, hidden.size, size)]
        pieces += [(known[at : at + _WORLDS_A_PIECE], 1) for at in range(0, known.size, _WORLDS_A_PIECE)]
        threads = min(usable_cores() if workers is None else workers, len(pieces))
        if threads <= 1:
            for piece in pieces:
                self._rate(*piece)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda piece: self._rate(*piece), pieces))

    def _rate(self, rows: NDArray[np.intp], worlds: int) -> None:
        """Rate the moves of some positions."""
        ranks, states = self.ranks[rows], self.states[rows]
        decks = np.empty((len(rows), worlds, self.rules.cards), np.int8)
        fill_worlds(ranks, self.rules.ranks, self.rules.decks * self.rules.suits, self.seeds[rows], decks)
        counts = np.diff(self.offsets)[rows]
        entries = np.repeat(self.offsets[:-1][rows] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        offsets = np.concatenate([[0], np.cumsum(counts)])
        values, proven = self._answers(decks, states, offsets, self.actions[entries])
        self.values[entries] = values  # a single world's column fills all
        self.proven[entries] = proven.all(axis=1)

    def _answers(
        self,
        decks: NDArray[np.int8],
        states: NDArray[np.int64],
        offsets: NDArray[np.int64],
        actions: NDArray[np.int64],
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """(m, K) values of the moves, and whether they are proven."""
        m, worlds = len(actions), decks.shape[1]
        values = np.full((m, worlds), _OPEN, np.float32)
        proven = np.ones((m, worlds), np.bool_)
        if self.objective in (Objective.WIN, Objective.EARLIEST):
            found = np.full((m, worlds), _OPEN, np.int16)
            most = _QUICK if self.limits.max_states is None else min(_QUICK, int(self.limits.max_states))
            self._quick(decks, states, offsets, actions, most, found)
            values[:] = found
            if most < _QUICK:  # what such a search has reached is 0; the middle of what is possible
                proven = found != _OPEN
                values[~proven] = 0.5 if self.objective is Objective.WIN else 0
                return values, proven
        left, where = np.nonzero(values == _OPEN)
        if left.size:
            of = np.repeat(np.arange(len(states)), np.diff(offsets))[left]
            after = _after(self.rules, states[of], actions[left])
            block = solve_positions_block(
                self.rules,
                np.ascontiguousarray(decks[of, where]),
                after,
                self.objective,
                self.limits,
                np.zeros(1, np.int64),
                lines=False,
            )
            values[left, where] = (block.value + block.bound) / 2
            proven[left, where] = block.value == block.bound
        return values, proven

    def _quick(
        self,
        decks: NDArray[np.int8],
        states: NDArray[np.int64],
        offsets: NDArray[np.int64],
        actions: NDArray[np.int64],
        most: int,
        out_found: NDArray[np.int16],
    ) -> None:
        tables = workspace(self.rules)
        earliest = self.objective is Objective.EARLIEST
        problem = problem_of(self.rules, CLEAR if earliest else WIN)
        n = 0
        while n < len(states):
            n = _rate_all(
                problem, tables.instance, tables.memory, decks, states, offsets, actions, n, last_pass(self.rules),
                earliest, most, out_found,
            )  # fmt: skip
            if n < len(states):
                tables.widen()


def _after(rules: Rules, states: NDArray[np.int64], actions: NDArray[np.int64]) -> NDArray[np.int64]:
    """The positions after an action each, new rows."""
    after = states.copy()
    _apply_all(kernels.table(rules), after, actions)
    return after


@kernel
def _apply_all(table: Table, states: NDArray[np.int64], actions: NDArray[np.int64]) -> None:
    for n in range(states.shape[0]):
        kernels.step(table, states[n], actions[n])


@kernel
def _rate_all(
    problem: Problem,
    instance: Instance,
    memory: Memory,
    decks: NDArray[np.int8],
    states: NDArray[np.int64],
    offsets: NDArray[np.int64],
    actions: NDArray[np.int64],
    start: int,
    pass_limit: int,
    earliest: bool,
    most_expanded: int,
    out_found: NDArray[np.int16],
) -> int:
    """Rate the moves of the positions from ``start`` on; returns the first one for which the tables are too small.

    The tables of the relaxation know no order of the stock, so those of a position serve all its moves and worlds.

    Args:
        decks: (n, K, cards) worlds.
        states: (n, 5).
        offsets, actions: moves as of MoveValues.
        earliest: for the pass of the earliest clear; else for the goal of the question.
        most_expanded: positions of one search, beyond which a value is left open.
        out_found: (m, K) filled in: the pass, or 1 for a win; 0 for none.
    """
    state = memory.children[memory.children.shape[0] - 1, :STATE_COLUMNS]  # scratch that no search comes to
    for n in range(start, states.shape[0]):
        if not prepare(problem, instance, decks[n, 0], states[n], pass_limit):
            return n
        for w in range(decks.shape[1]):
            for m in range(offsets[n], offsets[n + 1]):
                for column in range(STATE_COLUMNS):
                    state[column] = states[n, column]
                kernels.step(problem.table, state, actions[m])
                take_up(problem, instance, decks[n, w], state, pass_limit)
                out_found[m, w] = _ask(problem, instance, memory, state, pass_limit, earliest, most_expanded)
    return states.shape[0]


@kernel
def _ask(
    problem: Problem,
    instance: Instance,
    memory: Memory,
    state: NDArray[np.int64],
    pass_limit: int,
    earliest: bool,
    most_expanded: int,
) -> int:
    """1 for a win, or the pass of the earliest clear; 0: none; _OPEN: more work than it may take."""
    facts, progress = instance.facts, memory.progress
    found = 0
    limit = pass_limit
    first = state[CLEARED] or state[PASS]
    while True:
        facts[PASS_LIMIT] = limit
        facts[LATE_FROM] = NEVER_LATE
        progress[ROOM] = memory.nodes.size
        begin(problem, instance, memory, state, GREEDY)
        if advance(problem, instance, memory, most_expanded) != DONE:
            return _OPEN
        if progress[BEST] >= 0:
            found = 0 + memory.nodes[progress[BEST]].pass_number if earliest else 1
        if not earliest or found == 0:
            return found
        # Is one pass enough, or two? What was found last stands if none is.
        if limit == pass_limit:
            limit = first
        elif progress[BEST] >= 0:
            return found
        else:
            limit += 1
        if limit >= found:
            return found
