"""The arrays of a batch: what kernels need of the rules, the games, and what a step reports."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env.cards import RANKS_A_SUIT
from pyramid_env.deal import sorted_ids
from pyramid_env.kernels import (
    CURSOR,
    FACT_COLUMNS,
    MAX_MOVES,
    PASS,
    STATE_COLUMNS,
    start_state,
    table,
    write_facts,
)
from pyramid_env.observation import encode, layout, seen_below
from pyramid_env.rules import Rules
from pyramid_env.stepping import packed
from pyramid_env.update import MEMORY_COLUMNS, pair_bits, words_for

MASK_FORMATS: Final = ("int8", "packed")
"""A mask as one int8 an action, or as one bit: action a is bit a % 8 of byte a // 8, in whole words of 8 bytes."""

ENDED: Final = 0
ILLEGAL: Final = 1
DEAD: Final = 2
SPENT: Final = 3
COUNTS: Final = 4
"""Columns of what a step counts."""


class Tables(NamedTuple):
    """What the kernels need of some rules and a level, as read-only arrays."""

    numbers: NDArray[np.int64]  # the Table's numbers, then the Offsets
    first_action: NDArray[np.int64]
    covers: NDArray[np.int64]
    rows: NDArray[np.int64]
    pair_action: NDArray[np.int64]
    tops_action: NDArray[np.int64]
    moves: NDArray[np.int64]
    pairs_of: NDArray[np.int64]  # (P, V) update.pair_bits
    sorted_ranks: NDArray[np.int8]  # (cards,) the deck that every shuffle starts from
    start: NDArray[np.int64]  # (5,) the position before the first move
    first_facts: NDArray[np.int32]  # (9,) the facts of that position, a move being legal; (0,) where cards lie open
    first_row: NDArray[np.int8]  # (F,) its row as if no card lay in the pyramid; (0,) where cards lie open


@lru_cache
def tables(rules: Rules, level: str) -> Tables:
    """The (cached) tables of some rules and a level."""
    ranks: NDArray[np.int8] = sorted_ids(rules) % np.int8(RANKS_A_SUIT) + np.int8(1)
    start = start_state(rules)
    facts, row = _first(rules, level, ranks, start)
    for made in (ranks, start, facts, row):
        made.setflags(write=False)
    return Tables(*packed(rules, level), pair_bits(rules), ranks, start, facts, row)


def _first(
    rules: Rules, level: str, ranks: NDArray[np.int8], start: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """``first_facts`` and ``first_row``: what all deals have in common before the first move, so it is only copied."""
    full, shown = table(rules), layout(rules, level)
    if start[CURSOR] > 0 or shown.offsets.clairvoyant_stock >= 0 or seen_below(full, 0, int(start[PASS])) > 0:
        return np.zeros(0, np.int32), np.zeros(0, np.int8)
    facts, row = np.zeros(FACT_COLUMNS, np.int32), np.zeros(shown.size, np.int8)
    write_facts(full, ranks, start, 1, facts)
    encode(full, shown.offsets, ranks, start, row)
    fields = shown.views(row)
    fields["pyramid"][:] = 0
    if "unseen" in fields:
        fields["unseen"][:] = np.bincount(ranks)[1:]
    return facts, row


class Games(NamedTuple):
    """The arrays of B games, one row a game; kernels bring them up to date in place."""

    ranks: NDArray[np.int8]  # (B, cards)
    states: NDArray[np.int64]  # (B, 5)
    memory: NDArray[Any]  # (B, MEMORY_COLUMNS) int32 where the places' bits fit, else int64
    bits: NDArray[np.int64]  # (B, words) legal moves
    masks: NDArray[np.int8]  # (B, A) legal moves; (B, 0) where the bits are enough
    facts: NDArray[np.int32]  # (B, 9)
    rows: NDArray[np.int8]  # (B, F) observations
    steps: NDArray[np.int64]  # (B,) of the running episode
    scores: NDArray[np.int64]  # (B,) the facts' score
    terminated: NDArray[np.bool_]  # (B,) no move is legal

    def part(self, start: int, stop: int) -> Games:
        """Some of the games, as views."""
        parts: Any = [array[start:stop] for array in self]
        return Games(*parts)


class Outcome(NamedTuple):
    """What a step reports, besides what it brings up to date."""

    rewards: NDArray[np.float64]  # (B,)
    truncated: NDArray[np.bool_]  # (B,)
    illegal: NDArray[np.bool_]  # (B,) the action was masked and changed nothing

    def part(self, start: int, stop: int) -> Outcome:
        """That of some of the games, as views."""
        parts: Any = [array[start:stop] for array in self]
        return Outcome(*parts)


def new_games(count: int, rules: Rules, features: int, actions: int, mask_format: str) -> Games:
    """Arrays of zeros for so many games."""
    wide = actions if mask_format == "int8" else 0
    return Games(
        ranks=np.zeros((count, rules.cards), np.int8),
        states=np.zeros((count, STATE_COLUMNS), np.int64),
        memory=np.zeros((count, MEMORY_COLUMNS), np.int32 if rules.places < 32 else np.int64),
        bits=np.zeros((count, words_for(rules)), np.int64),
        masks=np.zeros((count, wide), np.int8),
        facts=np.zeros((count, FACT_COLUMNS), np.int32),
        rows=np.zeros((count, features), np.int8),
        steps=np.zeros(count, np.int64),
        scores=np.zeros(count, np.int64),
        terminated=np.zeros(count, np.bool_),
    )


def new_outcome(count: int) -> Outcome:
    """Arrays of zeros for so many games."""
    return Outcome(np.zeros(count), np.zeros(count, np.bool_), np.zeros(count, np.bool_))


def new_scratch(rules: Rules, count: int) -> NDArray[np.int64]:
    """Room for what one kernel call on so many games needs beside them: each thread needs its own."""
    return np.zeros(MAX_MOVES + words_for(rules) + count, np.int64)
