"""Labels: what many positions are worth, as arrays, and what each legal move of a game leads to at best.

All of it is clairvoyant: the solver knows the hidden cards. Labels are for a teacher, never for a player's eyes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyramid_env import kernels
from pyramid_env._numba import kernel
from pyramid_env.kernels import CURSOR, PASS, PYRAMID, STATE_COLUMNS, STOCK
from pyramid_env.moves import Move, move_table
from pyramid_env.rules import LAST_COUNTED_PASS, Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver.answers import warm_up
from pyramid_env.solver.api import InProgress
from pyramid_env.solver.blocks import STATUSES, Block, solve_positions_block
from pyramid_env.solver.many import usable_cores
from pyramid_env.solver.result import DEFAULT_MAX_BYTES, Limits, Objective, SolverError, Status, read_objective
from pyramid_env.solver.shapes import Shapes, shape_of, shapes

_PIECE: Final = 512  # positions that a thread takes at a time


class PositionValues(NamedTuple):
    """Answers about B positions.

    Attributes:
        value: (B,) int32 what is reached, as in :class:`Solution`.
        bound: (B,) int32 what is proven; equal to ``value`` where nothing is open.
        proven: (B,) bool whether the value is final.
    """

    value: NDArray[np.int32]
    bound: NDArray[np.int32]
    proven: NDArray[np.bool_]


class RatedMove(NamedTuple):
    """A legal move and the best that can follow it.

    Attributes:
        move: the move.
        value: what is reached after it, by the objective: the final score; 1 for a win; the earliest pass of the clear,
            or the fewest steps with this one counted, 0 = none.
        bound: what is proven; equal to ``value`` unless a limit was met.
        proven: is the value final?
    """

    move: Move
    value: int
    bound: int
    proven: bool


def solve_positions(
    rules: Rules | str,
    ranks: ArrayLike,
    states: ArrayLike,
    objective: str = "win",
    *,
    workers: int | None = 1,
    max_states: int | None = None,
    max_seconds: float | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> PositionValues:
    """What each of many positions allows with every card known: still to be won, best score from here, ...

    Args:
        rules: the rules of all of them.
        ranks: (B, cards) rank of every card of each position's deal, or (cards,) where all are of one deal.
        states: (B, 5) position rows of the kernels: pyramid and stock as masks, cursor, pass, pass of the clear.
        objective: ``"win"`` (1 or 0), ``"score"``, ``"earliest"`` or ``"steps"``.
        workers: threads; None takes one a core.
        max_states, max_seconds, max_bytes: limits of each position, see :class:`Limits`.

    Raises:
        SolverError: arrays that are no positions of these rules (which row, and why), unknown objective, bad limits.
    """
    chosen = read_rules(rules)
    asked = read_objective(objective)
    limits = Limits(max_states, max_seconds, max_bytes)
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise SolverError(f"workers: expected a whole number from 1 up or None, got {workers!r}")
    all_ranks, all_states = checked_positions(chosen, ranks, states)
    warm_up()
    stop = np.zeros(1, np.int64)

    def answered(start: int) -> Block:
        rows = slice(start, start + _PIECE)
        return solve_positions_block(chosen, all_ranks[rows], all_states[rows], asked, limits, stop, lines=False)

    starts = range(0, len(all_states), _PIECE)
    threads = min(workers or usable_cores(), max(1, len(starts)))
    if threads == 1:
        blocks = [answered(start) for start in starts]
    else:
        with ThreadPoolExecutor(threads) as pool:
            try:
                blocks = list(pool.map(answered, starts))
            except BaseException:
                stop[0] = 1
                pool.shutdown(cancel_futures=True)
                raise
    status = np.concatenate([np.zeros(0, np.int8), *(block.status for block in blocks)])
    return PositionValues(
        np.concatenate([np.zeros(0, np.int32), *(block.value for block in blocks)]),
        np.concatenate([np.zeros(0, np.int32), *(block.bound for block in blocks)]),
        status != STATUSES.index(Status.LIMIT),
    )


def checked_positions(rules: Rules, ranks: ArrayLike, states: ArrayLike) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Ranks (B, cards) and states (B, 5) as the kernels take them; SolverError names the first bad row."""
    rows = checked_states(rules, states)
    given = np.asarray(ranks)
    if given.shape not in ((rules.cards,), (len(rows), rules.cards)):
        expected = f"({rules.cards},) or ({len(rows)}, {rules.cards})"
        raise SolverError(f"ranks: expected shape {expected}, got {given.shape}")
    all_ranks = np.array(np.broadcast_to(given, (len(rows), rules.cards)), np.int8)
    deck = np.sort(np.tile(np.arange(1, rules.ranks + 1), rules.cards // rules.ranks))
    wrong = np.any(np.sort(all_ranks, axis=1) != deck, axis=1)
    if np.any(wrong):
        raise SolverError(f"ranks[{int(np.flatnonzero(wrong)[0])}]: expected the ranks of a whole deck, got others")
    return all_ranks, rows


def checked_states(rules: Rules, states: ArrayLike) -> NDArray[np.int64]:
    """Position rows (B, 5) as the kernels take them, a new array; SolverError names the first bad row."""
    rows = np.array(states, np.int64, ndmin=2)
    if rows.ndim != 2 or rows.shape[1] != STATE_COLUMNS:
        raise SolverError(f"states: expected shape (B, {STATE_COLUMNS}), got {np.shape(states)}")
    last = LAST_COUNTED_PASS if rules.passes is None else rules.passes
    row, fault = _first_fault(shapes(rules.rows), rules.stock_size, last, rows)
    if row < len(rows):
        what = (
            "pyramid: a card is gone whose cover is left",
            f"stock: expected a mask of {rules.stock_size} cards",
            f"cursor: expected the next card to turn, {rules.stock_size} = none",
            f"pass: expected 1 to {last}",
        )[fault]
        raise SolverError(f"states[{row}]: {what}, got {rows[row].tolist()}")
    return rows


@kernel
def _first_fault(known: Shapes, stock_size: int, last_pass: int, states: NDArray[np.int64]) -> tuple[int, int]:
    """The first row that is no position, B for none, and the column that shows it."""
    for b in range(states.shape[0]):
        stock, cursor = states[b, STOCK], states[b, CURSOR]
        if shape_of(known.masks, known.slots, states[b, PYRAMID]) < 0:
            return b, PYRAMID
        if stock >> stock_size != 0:
            return b, STOCK
        if not 0 <= cursor <= stock_size or kernels.next_card(stock, cursor, stock_size) != cursor:
            return b, CURSOR
        if not 1 <= states[b, PASS] <= last_pass:
            return b, PASS
    return states.shape[0], 0


def rate_moves(
    game: InProgress,
    objective: str = "score",
    *,
    max_states: int | None = None,
    max_seconds: float | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> list[RatedMove]:
    """For each legal move of a game, the best that can follow it with every card known; in the order of
    ``game.legal_moves``, none when the game is over.

    Args:
        game: a game in progress.
        objective: what counts: ``"score"``, ``"win"``, ``"earliest"`` or ``"steps"``.
        max_states, max_seconds, max_bytes: limits for each move, see :class:`Limits`.
    """
    asked = read_objective(objective)
    limits = Limits(max_states, max_seconds, max_bytes)
    if not isinstance(game, InProgress):
        raise SolverError(f"rate_moves: expected a Game, got {type(game).__name__} {game!r}")
    rules = game.rules
    warm_up()
    pyramid, stock, cursor, pass_number, cleared = position = [int(column) for column in game.state]
    actions = kernels.legal_actions(rules, np.array(game.ranks, np.int8), np.array(position, np.int64)).tolist()
    if not actions:
        return []
    table = kernels.table(rules)
    after = np.array(
        [kernels.apply(table, pyramid, stock, cursor, pass_number, cleared, action) for action in actions], np.int64
    )
    ranks = np.array(np.broadcast_to(game.ranks, (len(actions), rules.cards)), np.int8)
    block = solve_positions_block(rules, ranks, after, asked, limits, np.zeros(1, np.int64), lines=False)
    step = 1 if asked is Objective.STEPS else 0
    rated = []
    for action, status, value, bound in zip(
        actions, block.status.tolist(), block.value.tolist(), block.bound.tolist(), strict=True
    ):
        proven = STATUSES[status] is not Status.LIMIT
        won = STATUSES[status] is Status.OPTIMAL or value > 0
        counted = value + step if won else value
        rated.append(RatedMove(move_table(rules)[action], counted, counted if proven else bound + step, proven))
    return rated
