"""Engine: many games stepped, dealt and looked at in one kernel call each, by what a step changes (update.py).

Kernels take the rules' tables packed into plain arrays, then the games' arrays, all of them rows of one game each; so
slices of the arrays are batches of their own, and threads that step different slices never meet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env._numba import inlined_kernel, joined, joined_kernel, kernel
from pyramid_env.batch_arrays import DEAD, ENDED, ILLEGAL, SPENT
from pyramid_env.bits import as_index, count_bits, fetch_ahead, lowest_bit
from pyramid_env.deal import shuffle
from pyramid_env.kernels import (
    CLEARED,
    CURSOR,
    MAX_MOVES,
    OVER,
    PASS,
    PASS_NUMBER,
    PYRAMID,
    SCORE,
    STATE_COLUMNS,
    STOCK,
    Table,
    table,
    write_facts,
)
from pyramid_env.moves import Kind
from pyramid_env.observation import Offsets, encode
from pyramid_env.rules import Rules
from pyramid_env.seat import tell_done, work_comes
from pyramid_env.stepping import is_plain, plain_offsets, plain_table, unpack_offsets, unpack_table
from pyramid_env.update import (
    WORD_BITS,
    Change,
    begin_bits,
    begin_memory,
    remove_from_row,
    update_bits,
    update_facts,
    update_row,
)

_PLACE_WASTE: Final = int(Kind.PLACE_WASTE)

apply: Final = joined(kernels.apply)


@kernel
def _begin_game(
    full: Table,
    at: Offsets,
    ranks: NDArray[np.int8],
    state: NDArray[np.int64],
    memory: NDArray[np.int64],
    words: NDArray[np.int64],
    mask: NDArray[np.int8],
    facts: NDArray[np.int32],
    row: NDArray[np.int8],
    scratch: NDArray[np.int64],
    first_facts: NDArray[np.int32],
    first_row: NDArray[np.int8],
    clean: bool,
) -> bool:
    """Write all that follows from one game's deal and position; return whether it is over.

    ``first_facts`` and ``first_row``: those of the tables if the position is the first one, or (0,). ``clean``: the
    mask has the moves of ``words``, so that only these are taken out.
    """
    pyramid, stock, cursor, pass_number = state[PYRAMID], state[STOCK], state[CURSOR], state[PASS]
    begin_memory(full, ranks, pyramid, memory)
    if mask.size and clean:
        _write_marked(words, 0, mask)
    elif mask.size:
        mask[:] = 0
    legal = begin_bits(full, ranks, pyramid, stock, cursor, pass_number, memory, words, scratch)
    if mask.size:
        _write_marked(words, 1, mask)
    if first_row.size:
        for fact in range(first_facts.size):
            facts[fact] = first_facts[fact]
        facts[OVER] = not legal
        for field in range(first_row.size):
            row[field] = first_row[field]
        for i in range(full.places):
            row[at.pyramid + i] = ranks[i]
        if at.unseen >= 0:
            for rank in range(full.ranks):
                row[as_index(at.unseen + rank)] -= count_bits(memory[as_index(rank + 1)])
    else:
        write_facts(full, ranks, state, 1 if legal else 0, facts)
        encode(full, at, ranks, state, row)
    return not legal


@joined_kernel
def _write_marked(words: NDArray[np.int64], value: int, mask: NDArray[np.int8]) -> None:
    """Write a value for each action that is marked."""
    for w in range(words.size):
        word = words[w]
        while word:
            mask[as_index(w * WORD_BITS + lowest_bit(word))] = value
            word &= word - 1


@inlined_kernel
def _write_changed(now: int, changed: int, word: int, spare: int, at_once: int, mask: NDArray[np.int8]) -> None:
    """Write the actions that changed in a word of the mask.

    The first few without a jump that could not be foretold, which is dearer than the writes: where there are fewer,
    that of the ``spare`` action, the word's last one, is written, changed or not.
    """
    for _ in range(at_once):
        bit = lowest_bit(changed | spare)
        mask[as_index(word * WORD_BITS + bit)] = (now >> bit) & 1
        changed &= changed - 1
    while changed:
        bit = lowest_bit(changed)
        mask[as_index(word * WORD_BITS + bit)] = (now >> bit) & 1
        changed &= changed - 1


@kernel
def deal_games(
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
    ranks: NDArray[np.int8],
    states: NDArray[np.int64],
    memory: NDArray[np.int64],
    bits: NDArray[np.int64],
    masks: NDArray[np.int8],
    facts: NDArray[np.int32],
    rows: NDArray[np.int8],
    steps: NDArray[np.int64],
    scores: NDArray[np.int64],
    terminated: NDArray[np.bool_],
    scratch: NDArray[np.int64],
    games: NDArray[np.int64],
    deals: NDArray[np.int64],
) -> int:
    """Start the listed games anew and write all that follows from their positions.

    Args:
        games: (n,) indices of games.
        deals: (n,) numbers of the deals they get, or (0,): their ranks and states are there already.

    Returns:
        How many of them are over before the first move.
    """
    full = unpack_table(numbers, first_action, covers, rows_of, pair_action, tops_action, moves)
    at = unpack_offsets(numbers)
    over = 0
    if not deals.size:
        first_row = first_row[:0]
    for i in range(games.size):
        b = games[i]
        if deals.size:
            shuffle(deals[i : i + 1].view(np.uint64), sorted_ranks, ranks[b : b + 1], scratch)
            for column_of_state in range(STATE_COLUMNS):
                states[b, column_of_state] = start[column_of_state]
        terminated[b] = _begin_game(
            full, at, ranks[b], states[b], memory[b], bits[b], masks[b], facts[b], rows[b], scratch,
            first_facts, first_row, False,
        )  # fmt: skip
        steps[b] = 0
        scores[b] = facts[b, SCORE]
        over += terminated[b]
    return over


@inlined_kernel
def _advance(
    full: Table,
    at: Offsets,
    pairs_of: NDArray[np.int64],
    action: int,
    ranks: NDArray[np.int8],
    state: NDArray[np.int64],
    memory: NDArray[np.int64],
    bits: NDArray[np.int64],
    mask: NDArray[np.int8],
    facts: NDArray[np.int32],
    row: NDArray[np.int8],
    scratch: NDArray[np.int64],
) -> bool:
    """Play a legal action in one game; return whether a move is legal then."""
    after = apply(full, state[PYRAMID], state[STOCK], state[CURSOR], state[PASS], state[CLEARED], action)
    pyramid, stock, cursor, pass_number, cleared = after
    change = Change(
        state[PYRAMID], state[STOCK], state[CURSOR], state[PASS], pyramid, stock, cursor, pass_number, cleared
    )
    state[PYRAMID], state[STOCK], state[CURSOR], state[PASS], state[CLEARED] = after
    words = bits.size
    # Words of the mask that may change while moves are left: a draw leaves the pairs of places as they are.
    first = full.first_action[_PLACE_WASTE] >> 6 if action == full.actions - 1 and full.overlap == 0 else 0
    if mask.size:
        for w in range(first, words):
            scratch[MAX_MOVES + w] = bits[as_index(w)]
    legal = update_bits(full, pairs_of, ranks, change, memory, bits, scratch)
    if mask.size and not legal:
        mask[:] = 0
    elif mask.size:
        for w in range(first, words):
            now = bits[as_index(w)]
            changed = now ^ scratch[MAX_MOVES + w]
            if w == words - 1:  # kings, waste, draw: at nearly every step
                _write_changed(now, changed, w, 1 << ((full.actions - 1) & 63), 4, mask)
            elif changed:
                _write_changed(now, changed, w, -1 << (WORD_BITS - 1), 2, mask)
    facts[OVER] = not legal
    facts[PASS_NUMBER] = pass_number
    if action != full.actions - 1:  # a removal, not a draw
        update_facts(full, change, facts)
        remove_from_row(at, change, row)
    update_row(full, at, ranks, change, row)
    return legal


def _player(plain: bool, one_word: int = 0) -> Callable[..., None]:
    """The kernel of a step.

    Args:
        plain: for plain rules alone, whose machine code has nothing of what they leave out.
        one_word: for plain rules whose table has this ``one_word``.
    """

    @kernel
    def play_games(
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
        ranks: NDArray[np.int8],
        states: NDArray[np.int64],
        memory: NDArray[np.int64],
        bits: NDArray[np.int64],
        masks: NDArray[np.int8],
        facts: NDArray[np.int32],
        rows: NDArray[np.int8],
        steps: NDArray[np.int64],
        scores: NDArray[np.int64],
        terminated: NDArray[np.bool_],
        scratch: NDArray[np.int64],
        actions: NDArray[np.int64],
        restart: NDArray[np.bool_],
        numbers_of: NDArray[np.int64],
        coming: NDArray[np.int64],
        used: NDArray[np.int64],
        rewards: NDArray[np.float64],
        truncated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
        out_counts: NDArray[np.int64],
        reward_column: int,
        illegal_reward: float,
        limit: int,
    ) -> None:
        """One step of many games.

        A masked action changes nothing and is flagged.

        Args:
            actions: (B,) all from 0 to A - 1.
            restart: (B,) games that are dealt anew instead.
            numbers_of: (B,) the numbers of their deals; written if there are ``coming`` ones.
            coming: (B, n) numbers of each game's coming deals; (B, 0): ``numbers_of`` has been written already.
            used: (B,) how many of them have been dealt; less than n for games that are dealt anew.
            reward_column: column of the facts whose growth is the reward; -1: rewards of legal actions are left at 0.
            illegal_reward: reward of a masked action.
            limit: steps after which an episode is truncated.
            out_counts: (4,) gets how many games ended, how many actions were illegal, how many of the new deals are
                over before the first move, and how many games have dealt the last of their coming deals.
        """
        general = unpack_table(numbers, first_action, covers, rows_of, pair_action, tops_action, moves)
        full = plain_table(general, one_word) if plain else general
        shown = unpack_offsets(numbers)
        at = plain_offsets(shown) if plain else shown
        draw = full.actions - 1
        tried, dead, spent = 0, 0, 0
        column = as_index(max(reward_column, 0))
        for b in range(states.shape[0]):  # small loops over whole arrays: many games at once
            illegal[b] = False
            rewards[b] = 0.0
        for b in range(states.shape[0]):
            steps[b] += 1
            truncated[b] = steps[b] >= limit
        # New deals first, one after the other: within the loop below they would cost every game their loop counters.
        again, listed = 0, scratch[MAX_MOVES + bits.shape[1] :]
        for b in range(states.shape[0]):
            listed[as_index(again)] = b
            again += int(restart[b])
        if coming.shape[1]:
            for i in range(again):  # rarely read, so far away
                b = as_index(listed[i])
                fetch_ahead(coming, b, used[b])
        for i in range(again):
            b = listed[i]
            if coming.shape[1]:
                numbers_of[b] = coming[b, used[b]]
                used[b] += 1
                spent += used[b] == coming.shape[1]
            shuffle(numbers_of[b : b + 1].view(np.uint64), sorted_ranks, ranks[b : b + 1], scratch)
            for column_of_state in range(STATE_COLUMNS):
                states[b, column_of_state] = start[column_of_state]
            terminated[b] = _begin_game(
                general, shown, ranks[b], states[b], memory[b], bits[b], masks[b], facts[b], rows[b], scratch,
                first_facts, first_row, True,
            )  # fmt: skip
            steps[b] = 0
            truncated[b] = False
            scores[b] = facts[b, SCORE]
            dead += terminated[b]
        for b in range(states.shape[0]):
            if restart[b]:
                continue
            action = actions[b]
            if not (bits[b, as_index(action >> 6)] >> (action & 63)) & 1:
                illegal[b] = True
                rewards[b] = illegal_reward
                tried += 1
                continue
            if action == draw:  # machine code of its own, without all that a draw leaves as it is
                legal = _advance(
                    full, at, pairs_of, draw, ranks[b], states[b], memory[b], bits[b], masks[b], facts[b], rows[b],
                    scratch,
                )  # fmt: skip
            else:
                before = facts[b, column]
                legal = _advance(
                    full, at, pairs_of, action, ranks[b], states[b], memory[b], bits[b], masks[b], facts[b], rows[b],
                    scratch,
                )  # fmt: skip
                if reward_column >= 0:
                    rewards[b] = facts[b, column] - before
                scores[b] = facts[b, SCORE]
            terminated[b] = not legal
        ended = 0
        for b in range(states.shape[0]):
            ended += terminated[b] | truncated[b]
        out_counts[ENDED] = ended - dead
        out_counts[ILLEGAL] = tried
        out_counts[DEAD] = dead
        out_counts[SPENT] = spent

    return play_games


_play_games: Final = _player(False)
_play_plain_games: Final = _player(True)
_play_plain_games_in_one_word: Final = _player(True, 1)


@kernel
def _serve_games(seat: int, *arguments: Any) -> None:
    while work_comes(seat):
        _play_games(*arguments)
        tell_done(seat)


@kernel
def _serve_plain_games(seat: int, *arguments: Any) -> None:
    while work_comes(seat):
        _play_plain_games(*arguments)
        tell_done(seat)


@kernel
def _serve_plain_games_in_one_word(seat: int, *arguments: Any) -> None:
    while work_comes(seat):
        _play_plain_games_in_one_word(*arguments)
        tell_done(seat)


class StepKernels(NamedTuple):
    """Kernels for the step of many games of some rules.

    Attributes:
        play: one step; its arguments are those of ``play_games`` above.
        serve: the same arguments after a helper's seat (pyramid_env/seat.py): a step each time that work comes.
    """

    play: Callable[..., None]
    serve: Callable[..., None]


def step_kernels(rules: Rules) -> StepKernels:
    """The kernels of some rules."""
    full = table(rules)
    if not is_plain(full):
        return StepKernels(_play_games, _serve_games)
    if full.one_word:
        return StepKernels(_play_plain_games_in_one_word, _serve_plain_games_in_one_word)
    return StepKernels(_play_plain_games, _serve_plain_games)
