"""Rollouts: random legal games played to their ends wholly inside a kernel, for baselines and Monte-Carlo estimates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.actions import nth_action
from pyramid_env.batch_arrays import tables
from pyramid_env.bits import count_bits, upper_half
from pyramid_env.crew import Crew, shares
from pyramid_env.deal import GAMMA, MAX_NUMBER, Deal, mix, shuffle
from pyramid_env.engine import apply
from pyramid_env.errors import PyramidError
from pyramid_env.kernels import (
    CARDS_LEFT,
    CLEARED,
    CLEARED_IN,
    CURSOR,
    FACT_COLUMNS,
    MAX_MOVES,
    MSC,
    OVER,
    PAR,
    PASS,
    PYRAMID,
    SCORE,
    STATE_COLUMNS,
    STOCK,
    WON,
    write_facts,
)
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.stepping import unpack_table
from pyramid_env.update import MEMORY_COLUMNS, Change, begin_bits, begin_memory, update_bits, words_for

STREAM: Final = np.uint64(0xD1B54A32D192ED03)


class Rollouts(NamedTuple):
    """What random games came to, one entry a game."""

    score: NDArray[np.int64]  # (n,) by the rules' scoring
    won: NDArray[np.bool_]  # (n,)
    cleared_in: NDArray[np.int64]  # (n,) pass of the clear, 0 = never
    steps: NDArray[np.int64]  # (n,) moves played, draws included
    par: NDArray[np.int64]  # (n,)
    msc: NDArray[np.int64]  # (n,)
    cards_left: NDArray[np.int64]  # (n,) wherever they lie
    over: NDArray[np.bool_]  # (n,) false: cut off by max_steps


def rollout(
    deals: NDArray[np.integer[Any]] | Sequence[int | Deal],
    rules: Rules | str = "pyramid",
    seeds: int | NDArray[np.integer[Any]] | Sequence[int] = 0,
    *,
    max_steps: int = 10_000,
    num_threads: int = 1,
) -> Rollouts:
    """Play one random game on each deal: every legal move alike, draws included.

    The same deal, rules and seed give the same game, however many are played and in how many threads. Choice j of a
    game (from 1) takes, of its m legal actions in rising order, number floor(x m / 2^64), where x = mix(state + j
    gamma), state = mix(seed + STREAM), with mix and gamma of :func:`~pyramid_env.deal.shuffle`.

    Args:
        deals: (n,) deal numbers, or Deals.
        rules: preset, text or Rules.
        seeds: (n,) whole numbers from 0 up, or one: game i then has ``seeds + i``.
        max_steps: a game is left there after so many moves.
        num_threads: threads that share the games.

    Raises:
        PyramidError: arguments of a wrong kind, length or range (DeckError for a deal).
    """
    chosen = read_rules(rules)
    numbers, ranks = _read_deals(deals, chosen)
    streams = _read_seeds(seeds, numbers.size)
    for name, value in (("max_steps", max_steps), ("num_threads", num_threads)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise PyramidError(f"{name}: expected a whole number of 1 or more, got {value!r}")
    facts = np.zeros((numbers.size, FACT_COLUMNS), np.int32)
    steps = np.zeros(numbers.size, np.int64)
    parts = max(1, min(int(num_threads), numbers.size))
    work = []
    for start, stop in shares(numbers.size, parts):
        room = np.zeros(MAX_MOVES + MEMORY_COLUMNS + words_for(chosen), np.int64)
        state, own_ranks = np.zeros(STATE_COLUMNS, np.int64), np.zeros((1, chosen.cards), np.int8)
        given = (numbers[start:stop], ranks[start:stop], streams[start:stop], int(max_steps))
        work.append(
            partial(
                _roll, *tables(chosen, "table"), *given, own_ranks, state, room, facts[start:stop], steps[start:stop]
            )
        )
    crew = Crew(parts - 1)
    crew.run(work)
    crew.close()
    wide = facts.astype(np.int64)
    return Rollouts(
        score=wide[:, SCORE],
        won=facts[:, WON] != 0,
        cleared_in=wide[:, CLEARED_IN],
        steps=steps,
        par=wide[:, PAR],
        msc=wide[:, MSC],
        cards_left=wide[:, CARDS_LEFT],
        over=facts[:, OVER] != 0,
    )


def _read_deals(deals: Any, rules: Rules) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """(n,) numbers and (n, 0) ranks; or, where a Deal is among them, numbers that mean nothing and (n, cards) ranks."""
    from pyramid_env.env import deal_start

    given = np.asarray(deals) if not isinstance(deals, (list, tuple)) or not _any_deal(deals) else None
    if given is None:
        ranks = np.stack([deal_start(deal, rules).ranks for deal in deals])
        return np.zeros(len(deals), np.int64), ranks
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise PyramidError(f"deals: expected deal numbers or Deals, got {given.dtype} of shape {given.shape}")
    if given.size and not 0 <= int(given.min()) <= int(given.max()) <= MAX_NUMBER:
        raise PyramidError(f"deals: expected numbers from 0 to {MAX_NUMBER}, got {given.min()} to {given.max()}")
    return given.astype(np.int64), np.zeros((given.size, 0), np.int8)


def _any_deal(deals: Sequence[Any]) -> bool:
    return any(isinstance(deal, Deal) for deal in deals)


def _read_seeds(seeds: Any, count: int) -> NDArray[np.uint64]:
    given = np.asarray(seeds)
    if given.dtype.kind not in "iu" or given.shape not in ((), (count,)) or (given.size and given.min() < 0):
        got = f"{given.dtype} of shape {given.shape}"
        raise PyramidError(f"seeds: expected a whole number from 0 up, or {count} of them, got {got}")
    streams: NDArray[np.uint64] = given.astype(np.uint64)
    return streams if given.ndim else np.add(streams, np.arange(count, dtype=np.uint64), dtype=np.uint64)


@kernel
def _roll(
    numbers: NDArray[np.int64],
    first_action: NDArray[np.int64],
    covers: NDArray[np.int64],
    rows_of: NDArray[np.int64],
    pair_action: NDArray[np.int64],
    tops_action: NDArray[np.int64],
    moves: NDArray[np.int64],
    pairs_of: NDArray[np.int64],
    sorted_ranks: NDArray[np.int8],
    start: NDArray[np.int64],
    first_facts: NDArray[np.int32],
    first_row: NDArray[np.int8],
    deals: NDArray[np.int64],
    given_ranks: NDArray[np.int8],
    seeds: NDArray[np.uint64],
    max_steps: int,
    own_ranks: NDArray[np.int8],
    state: NDArray[np.int64],
    room: NDArray[np.int64],
    out_facts: NDArray[np.int32],
    out_steps: NDArray[np.int64],
) -> None:
    """Play a game on each deal. ``given_ranks``: (n, cards), or (n, 0): ``deals`` are numbers. The rest is scratch."""
    full = unpack_table(numbers, first_action, covers, rows_of, pair_action, tops_action, moves)
    scratch, memory = room[:MAX_MOVES], room[MAX_MOVES : MAX_MOVES + MEMORY_COLUMNS]
    words = room[MAX_MOVES + MEMORY_COLUMNS :]
    ranks = own_ranks[0]
    for b in range(deals.size):
        if given_ranks.shape[1]:
            for c in range(ranks.size):
                ranks[c] = given_ranks[b, c]
        else:
            shuffle(deals[b : b + 1].view(np.uint64), sorted_ranks, own_ranks, scratch)
        pyramid, stock, cursor, pass_number, cleared = start[0], start[1], start[2], start[3], start[4]
        begin_memory(full, ranks, pyramid, memory)
        going = begin_bits(full, ranks, pyramid, stock, cursor, pass_number, memory, words, scratch)
        stream = mix(seeds[b] + STREAM)
        steps = 0
        while going and steps < max_steps:
            legal = 0
            for w in range(words.size):
                legal += count_bits(words[w])
            stream += GAMMA
            action = nth_action(words, np.int64(upper_half(mix(stream), np.uint64(legal))))
            after = apply(full, pyramid, stock, cursor, pass_number, cleared, action)
            change = Change(pyramid, stock, cursor, pass_number, after[0], after[1], after[2], after[3], after[4])
            pyramid, stock, cursor, pass_number, cleared = after
            going = update_bits(full, pairs_of, ranks, change, memory, words, scratch)
            steps += 1
        state[PYRAMID], state[STOCK], state[CURSOR], state[PASS], state[CLEARED] = (
            pyramid,
            stock,
            cursor,
            pass_number,
            cleared,
        )
        write_facts(full, ranks, state, 1 if going else 0, out_facts[b])
        out_steps[b] = steps
