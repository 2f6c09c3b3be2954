"""Stepping: positions, masks, facts and observation rows of many games brought up to date together, in one call.

The kernels here write everything anew from the positions: the single environment shows positions with them, and the
engine, which writes what changes, is compared with them. They take their tables packed into seven plain arrays, first,
since Numba unpacks a Table from Python in 10 microseconds a call, more than the step of a game takes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import allocating_kernel, inlined_kernel
from pyramid_env.kernels import MAX_MOVES, Table, step, table, write_facts, write_mask
from pyramid_env.observation import Offsets, encode, layout
from pyramid_env.rules import Rules


class Packed(NamedTuple):
    """A Table and the Offsets of a level as seven read-only arrays."""

    numbers: NDArray[np.int64]  # the Table's numbers, then the Offsets
    first_action: NDArray[np.int64]
    covers: NDArray[np.int64]
    rows: NDArray[np.int64]
    pair_action: NDArray[np.int64]
    tops_action: NDArray[np.int64]
    moves: NDArray[np.int64]


@lru_cache
def packed(rules: Rules, level: str) -> Packed:
    """The (cached) packed tables of some rules and a level."""
    full = table(rules)
    scalars = [number for number in full if not isinstance(number, np.ndarray)]
    numbers = np.array([*scalars, *layout(rules, level).offsets], np.int64)
    numbers.setflags(write=False)
    return Packed(numbers, *(array for array in full if isinstance(array, np.ndarray)))


@inlined_kernel
def unpack_table(
    n: NDArray[np.int64],
    first: NDArray[np.int64],
    covers: NDArray[np.int64],
    rows: NDArray[np.int64],
    pair_action: NDArray[np.int64],
    tops_action: NDArray[np.int64],
    moves: NDArray[np.int64],
) -> Any:
    """The Table of its packed form. It becomes part of the caller, so no array is handed back.

    Its first actions are numbers: those of an array would be read again after each write to another one.
    """
    return Table(
        n[0],
        n[1],
        n[2],
        n[3],
        n[4],
        n[5],
        n[6],
        n[7],
        n[8],
        n[9],
        n[10],
        n[11],
        n[12],
        n[13],
        n[14],
        n[15],
        n[16],
        (first[0], first[1], first[2], first[3], first[4], first[5], first[6], first[7], first[8], first[9]),
        covers,
        rows,
        pair_action,
        tops_action,
        moves,
    )


@inlined_kernel
def unpack_offsets(n: NDArray[np.int64]) -> Offsets:
    """The Offsets that follow the Table's numbers."""
    return Offsets(n[17], n[18], n[19], n[20], n[21], n[22], n[23], n[24], n[25], n[26], n[27], n[28])


def is_plain(full: Table) -> bool:
    """Are the rules plain ones: cards turned one by one onto one waste pile, whose top card pairs with the pyramid's
    alone, and the pyramid's clear the goal? ``pyramid``, ``one_pass`` and ``double_pyramid`` are."""
    return (
        full.draw_count == 1
        and full.piles == 1
        and full.predealt == 0
        and full.stock_top == 0
        and full.stock_waste == 0
        and full.waste_two == 0
        and full.waste_tops == 0
        and full.overlap == 0
        and full.goal_all == 0
        and full.end_on_exhausted == 0
    )


@inlined_kernel
def plain_table(full: Any, one_word: int) -> Any:
    """The Table of plain rules with what makes them so as constants, so that machine code has nothing else.

    ``one_word``: that of the table, a constant of the caller.
    """
    return Table(
        full.places,
        full.stock_size,
        full.ranks,
        1,  # draw_count
        1,  # piles
        0,  # predealt
        full.passes,
        0,  # stock_top
        0,  # stock_waste
        0,  # waste_two
        0,  # waste_tops
        0,  # overlap
        0,  # goal_all
        0,  # end_on_exhausted
        full.scoring,
        full.actions,
        one_word,
        full.first_action,
        full.covers,
        full.rows,
        full.pair_action,
        full.tops_action,
        full.moves,
    )


@inlined_kernel
def plain_offsets(at: Offsets) -> Offsets:
    """The Offsets of plain rules, likewise: fields that they leave out are -1."""
    return Offsets(
        at.pyramid,
        at.waste,
        at.waste_count,
        -1,  # waste_under
        at.stock,
        -1,  # stock_top
        at.pass_number,
        -1,  # cleared
        at.known,
        at.cursor,
        at.unseen,
        at.clairvoyant_stock,
    )


@allocating_kernel
def observe_games(
    numbers: NDArray[np.int64],
    first_action: NDArray[np.int64],
    covers: NDArray[np.int64],
    rows: NDArray[np.int64],
    pair_action: NDArray[np.int64],
    tops_action: NDArray[np.int64],
    moves: NDArray[np.int64],
    ranks: NDArray[np.int8],
    states: NDArray[np.int64],
    games: NDArray[np.int64],
    out_masks: NDArray[np.int8],
    out_facts: NDArray[np.int32],
    out_rows: NDArray[np.int8],
) -> None:
    """Write masks (B, A), facts (B, 9) and observation rows (B, F) of the games whose indices are listed."""
    full = unpack_table(numbers, first_action, covers, rows, pair_action, tops_action, moves)
    at = unpack_offsets(numbers)
    scratch = np.empty(MAX_MOVES, np.int64)
    for b in games:
        legal = write_mask(full, ranks[b], states[b], out_masks[b], scratch)
        write_facts(full, ranks[b], states[b], legal, out_facts[b])
        encode(full, at, ranks[b], states[b], out_rows[b])


@allocating_kernel
def play_games(
    numbers: NDArray[np.int64],
    first_action: NDArray[np.int64],
    covers: NDArray[np.int64],
    rows: NDArray[np.int64],
    pair_action: NDArray[np.int64],
    tops_action: NDArray[np.int64],
    moves: NDArray[np.int64],
    ranks: NDArray[np.int8],
    states: NDArray[np.int64],
    actions: NDArray[np.int64],
    skip: NDArray[np.bool_],
    masks: NDArray[np.int8],
    out_facts: NDArray[np.int32],
    out_rows: NDArray[np.int8],
    out_illegal: NDArray[np.bool_],
) -> int:
    """One step of many games: positions, masks, facts and observation rows are brought up to date in place.

    ``masks`` must be those of ``states``. Games marked in ``skip`` are left alone. An action outside 0..A-1 or masked
    changes nothing and is flagged in ``out_illegal``. Returns the number of illegal actions.
    """
    full = unpack_table(numbers, first_action, covers, rows, pair_action, tops_action, moves)
    at = unpack_offsets(numbers)
    scratch = np.empty(MAX_MOVES, np.int64)
    illegal = 0
    for b in range(states.shape[0]):
        out_illegal[b] = False
        if skip[b]:
            continue
        action = actions[b]
        if action < 0 or action >= full.actions or not masks[b, action]:
            out_illegal[b] = True
            illegal += 1
            continue
        step(full, states[b], action)
        legal = write_mask(full, ranks[b], states[b], masks[b], scratch)
        write_facts(full, ranks[b], states[b], legal, out_facts[b])
        encode(full, at, ranks[b], states[b], out_rows[b])
    return illegal
