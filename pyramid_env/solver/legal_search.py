"""Legal search: the best play on information states, exactly, over all orders of the unseen cards.

A gain is what the score rises by from a position on (or 1 for a win still to come). No move lowers a score, so gains
are never negative. A hidden state's gain is summed over all orders of its u unseen cards, u! of them, all equally
likely: whole numbers, so nothing is rounded. Seeing a card parts the orders by its rank. A known state holds its best
gain from each time on, (pass, cursor), all found at once.

The recursion runs over a stack. A state met for the first time writes down where its moves lead (its links), and those
followers that are not settled go on top of it; when it is on top again it is settled from its links. The kernels
allocate nothing: FULL asks the caller for larger tables.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.kernels import Table, apply, is_finished, is_won, list_removals, next_card, score, turn
from pyramid_env.solver.legal_states import (
    KNOWN,
    LINKS,
    SHORT,
    UNSETTLED,
    WAITING,
    Memory,
    Spec,
    pack,
    renumbered,
    row_of,
    unpack,
    unseen_of,
)

MAX_UNSEEN: Final = 18
"""18! orders times the highest msc score still fit an int64."""

RUNNING: Final = 0
DONE: Final = 1
FULL: Final = 2
"""Outcomes of a call: the slice is used up; the answer is there; a table has no room left."""

ORDERS_A_CALL: Final = 200

ROW: Final = 0  # the state it leads to, -1 = the end of the game
WEIGHT: Final = 1  # unseen cards of the rank that leads there
START: Final = 2  # a move's first link: what the move itself gains, over all orders; its other links: -1
TIME: Final = 3  # where in the gains of a known state
UNSEEN: Final = 4  # unseen cards left there; none: it is a known state
"""Columns of a hidden state's links, one for each rank that a move can show."""

CURSOR: Final = 1  # where the removal is offered
RISE: Final = 2  # what the removal itself gains, in pass 1
PASSES: Final = 4  # twice the passes in which it is offered, and 1 if it clears the pyramid
"""Columns of a known state's links, one for each removal at each cursor; ROW and TIME (in pass 1) as above."""


@kernel
def time_of(spec: Spec, stock: int, cursor: int, pass_number: int) -> int:
    """Index of a time into the gains of the known state with these stock cards."""
    return (pass_number - 1) * (spec.stock_size + 1) + renumbered(spec, stock, cursor)


@kernel
def _worth(table: Table, spec: Spec, ranks: NDArray[np.int8], pyramid: int, stock: int, cleared: int) -> int:
    """What a position counts, were the game to end here; only differences of it are used."""
    if spec.win:
        return 1 if is_won(table, pyramid, stock) else 0
    return score(table, ranks, pyramid, stock, cleared)


@kernel
def _link(memory: Memory, row: int, second: int, third: int, time: int, fifth: int) -> None:
    """Write a link, its columns in order, and push the state it leads to; a note in SHORT if there is no room."""
    stack, links, counts = memory.stack, memory.links, memory.counts
    new, height = counts[LINKS], counts[WAITING]
    if new == links.shape[0]:
        counts[SHORT] = LINKS
        return
    links[new, ROW] = row
    links[new, 1] = second
    links[new, 2] = third
    links[new, TIME] = time
    links[new, 4] = fifth
    counts[LINKS] = new + 1
    if row < 0 or memory.states[row, memory.key.shape[1]] != UNSETTLED:
        return
    if height == stack.shape[0]:
        counts[SHORT] = WAITING
        return
    stack[height, 0] = row
    stack[height, 1] = -1
    counts[WAITING] = height + 1


# ---- the recursion ---------------------------------------------------------------------------------------------------


@kernel
def settle(table: Table, spec: Spec, memory: Memory, factorials: NDArray[np.int64], visits: int) -> int:
    """Settle what is on the stack and all it leads to, in up to ``visits`` visits; returns RUNNING, DONE or FULL.

    ``factorials`` (MAX_UNSEEN + 1,): n! at index n.
    """
    counts, stack, states = memory.counts, memory.stack, memory.states
    value = memory.key.shape[1]
    for _ in range(visits):
        top = counts[WAITING] - 1
        if top < 0:
            return DONE
        row = stack[top, 0]
        if states[row, value] != UNSETTLED:
            counts[WAITING] = top
            continue
        hidden = unseen_of(states, row)
        if stack[top, 1] < 0:
            first = counts[LINKS]
            if hidden:
                _link_hidden(table, spec, memory, row, factorials[hidden])
            else:
                _link_known(table, spec, memory, row)
            if counts[SHORT] >= 0:
                counts[WAITING] = top + 1  # to be looked at again when there is room
                counts[LINKS] = first
                return FULL
            stack[top, 1] = first
            if counts[WAITING] > top + 1:
                continue
        if hidden:
            states[row, value] = _best_hidden(memory, stack[top, 1])
        elif counts[KNOWN] == memory.gains.shape[0]:
            counts[SHORT] = KNOWN
            return FULL
        else:
            _best_known(table, spec, memory, row, stack[top, 1])
            states[row, value] = counts[KNOWN]
            counts[KNOWN] += 1
        counts[LINKS] = stack[top, 1]
        counts[WAITING] = top
    return RUNNING


# ---- while cards are unseen ------------------------------------------------------------------------------------------


@kernel
def _link_hidden(table: Table, spec: Spec, memory: Memory, row: int, orders: int) -> None:
    """Write the links of a hidden state: its moves, or, if cards are turned but not yet seen, what they may be."""
    ranks, actions = memory.ranks, memory.actions
    pyramid, stock, cursor, unseen = unpack(spec, memory.states, row, ranks)
    if cursor + table.stock_top > spec.stock_size - unseen:
        _link_move(table, spec, memory, pyramid, stock, cursor, unseen, 0)
        return
    drawn = turn(stock, cursor, table.draw_count, spec.stock_size)
    _link_move(table, spec, memory, pyramid, stock, drawn, unseen, 0)
    found = list_removals(table, ranks, pyramid, stock, cursor, actions)
    cleared = 0 if pyramid else 1
    for a in range(found):
        after = apply(table, pyramid, stock, cursor, 1, cleared, actions[a])
        rise = _worth(table, spec, ranks, after[0], after[1], after[4])
        rise -= _worth(table, spec, ranks, pyramid, stock, cleared)
        if after[0] == 0 and not table.goal_all:
            _link(memory, -1, 0, rise * orders, 0, 0)
        else:
            _link_move(table, spec, memory, after[0], after[1], after[2], unseen, rise * orders)


@kernel
def _link_move(
    table: Table, spec: Spec, memory: Memory, pyramid: int, stock: int, cursor: int, unseen: int, gain: int
) -> None:
    """Write the links of a move that itself gains ``gain`` over all orders: one, or one for each rank that it may show.

    The ranks are ``memory.ranks``, those of the unseen cards last and sorted. Where a move turns several cards, all but
    the first are left to the states that follow.
    """
    ranks, key = memory.ranks, memory.key
    end_of_ranks = ranks.size
    first = end_of_ranks - unseen
    shows = cursor + table.stock_top > spec.stock_size - unseen
    left = unseen - 1 if shows else unseen
    time = 0 if left else time_of(spec, stock, cursor, 1)
    start = first
    while start < end_of_ranks:
        end = start + 1
        if shows:
            # A card of the next rank is seen: it comes first, the others stay sorted.
            rank = ranks[start]
            while end < end_of_ranks and ranks[end] == rank:
                end += 1
            for k in range(start, first, -1):
                ranks[k] = ranks[k - 1]
            ranks[first] = rank
        pack(spec, ranks, pyramid, stock, cursor, left, key)
        if shows:
            for k in range(first, start):
                ranks[k] = ranks[k + 1]
            ranks[start] = rank
        follower = row_of(memory.states, memory.slots, memory.counts, key)
        if follower < 0:
            return
        _link(memory, follower, end - start, gain, time, left)
        if not shows:
            return
        gain = -1
        start = end


@kernel
def _best_hidden(memory: Memory, first: int) -> int:
    """The gain of a hidden state's best move, from the links from ``first`` on."""
    states, links = memory.states, memory.links
    value = memory.key.shape[1]
    best = 0
    total = 0
    for at in range(first, memory.counts[LINKS]):
        if links[at, START] >= 0:
            best = max(best, total)
            total = links[at, START]
        row = links[at, ROW]
        if row >= 0:
            gain = states[row, value]
            if links[at, UNSEEN] == 0:
                gain = 0 + memory.gains[gain, links[at, TIME]]
            total += links[at, WEIGHT] * gain
    return max(best, total)


# ---- with every card known -------------------------------------------------------------------------------------------


@kernel
def _link_known(table: Table, spec: Spec, memory: Memory, row: int) -> None:
    """Write the links of a known state: the removals at each cursor."""
    ranks, key, actions = memory.ranks, memory.key, memory.actions
    pyramid, stock, _, _ = unpack(spec, memory.states, row, ranks)
    size = spec.stock_size
    cleared = 0 if pyramid else 1
    before = _worth(table, spec, ranks, pyramid, stock, cleared)
    for cursor in range(size + 1):
        if cursor < size and not (stock >> cursor) & 1:
            continue
        found = list_removals(table, ranks, pyramid, stock, cursor, actions)
        if found == 0:
            continue
        passes = spec.passes
        if is_finished(table, pyramid, stock, cursor, passes):
            passes -= 1  # there the game has ended
        for a in range(found):
            after = apply(table, pyramid, stock, cursor, 1, cleared, actions[a])
            follower = -1
            if after[0] or table.goal_all:
                pack(spec, ranks, after[0], after[1], 0, 0, key)
                follower = row_of(memory.states, memory.slots, memory.counts, key)
                if follower < 0:
                    return
            rise = _worth(table, spec, ranks, after[0], after[1], after[4]) - before
            clears = 1 if pyramid and after[0] == 0 else 0
            _link(memory, follower, cursor, rise, time_of(spec, after[1], after[2], 1), 2 * passes + clears)


@kernel
def _best_known(table: Table, spec: Spec, memory: Memory, row: int, first: int) -> None:
    """Write a known state's best gain from each time on into the next row of ``memory.gains``."""
    times, gains, links, ranks = memory.times, memory.gains, memory.links, memory.ranks
    _, stock, _, _ = unpack(spec, memory.states, row, ranks)
    times[:] = 0
    for at in range(first, memory.counts[LINKS]):
        follower = links[at, ROW]
        rest = memory.states[follower, memory.key.shape[1]] if follower >= 0 else 0
        for earlier in range(links[at, PASSES] >> 1):
            gain = links[at, RISE]
            if links[at, PASSES] & 1:  # a later clear may earn less
                gain += _worth(table, spec, ranks, 0, 0, 1 + earlier) - _worth(table, spec, ranks, 0, 0, 1)
            if follower >= 0:
                gain += gains[rest, links[at, TIME] + earlier * (spec.stock_size + 1)]
            time = links[at, CURSOR] + earlier * (spec.stock_size + 1)
            times[time] = max(times[time], gain)
    _wait(table, spec, stock, times)
    new = memory.counts[KNOWN]
    for time in range(times.size):
        gains[new, time] = times[time]


@kernel
def _wait(table: Table, spec: Spec, stock: int, times: NDArray[np.int64]) -> None:
    """Backwards in time: what can be had after a draw can be had before it.

    With unlimited passes the last pass told apart stands for all later ones. It is gone through twice, as one whole
    pass after the rest of the running one offers all that drawing alone can ever reach.
    """
    size = spec.stock_size
    first = next_card(stock, 0, size)
    last = spec.passes + (1 if table.passes == 0 else 0)
    for pass_number in range(last, 0, -1):
        start = (min(pass_number, spec.passes) - 1) * (size + 1)
        for cursor in range(size, -1, -1):
            if cursor < size and not (stock >> cursor) & 1:
                continue
            if cursor < size:
                later = start + turn(stock, cursor, table.draw_count, size)
            elif pass_number < last:
                later = min(pass_number, spec.passes - 1) * (size + 1) + first
            else:
                continue
            times[start + cursor] = max(times[start + cursor], times[later])


# ---- questions -------------------------------------------------------------------------------------------------------


@kernel
def ask(
    table: Table,
    spec: Spec,
    memory: Memory,
    factorials: NDArray[np.int64],
    stock_ranks: NDArray[np.int8],
    pyramid: int,
    stock: int,
    cursor: int,
    pass_number: int,
    unseen: int,
    visits: int,
    out_sums: NDArray[np.int64],
) -> int:
    """Add the best gain from a position on, over all orders, to ``out_sums[0]``; returns RUNNING, DONE or FULL.

    ``stock_ranks`` (stock,): those of the unseen cards last and sorted. After RUNNING, or FULL and more room, the same
    call goes on. The game must not have ended.
    """
    states, counts, key = memory.states, memory.counts, memory.key
    while True:
        ended = settle(table, spec, memory, factorials, visits)
        if ended != DONE:
            return ended
        for k in range(spec.stock_size):
            memory.ranks[spec.places + k] = stock_ranks[k]
        pack(spec, memory.ranks, pyramid, stock, cursor, unseen, key)
        row = row_of(states, memory.slots, counts, key)
        if row < 0:
            return FULL
        gain = states[row, key.shape[1]]
        if gain != UNSETTLED:
            if unseen == 0:
                gain = 0 + memory.gains[gain, time_of(spec, stock, cursor, pass_number)]
            out_sums[0] += gain
            return DONE
        memory.stack[0, 0] = row
        memory.stack[0, 1] = -1
        counts[WAITING] = 1


@kernel
def ask_open(
    table: Table,
    spec: Spec,
    memory: Memory,
    factorials: NDArray[np.int64],
    stock_ranks: NDArray[np.int8],
    pyramid: int,
    stock: int,
    cursor: int,
    unseen: int,
    visits: int,
    out_sums: NDArray[np.int64],
) -> int:
    """As ask(), in pass 1 with the unseen cards open: adds up the best gains in all distinct orders of their ranks.

    ``stock_ranks`` moves on through the orders. ``out_sums`` (2,) holds the gains and the number of the orders done.
    """
    for _ in range(ORDERS_A_CALL):
        ended = ask(table, spec, memory, factorials, stock_ranks, pyramid, stock, cursor, 1, 0, visits, out_sums)
        if ended != DONE:
            return ended
        out_sums[1] += 1
        if not _next_order(stock_ranks, spec.stock_size - unseen):
            return DONE
    return RUNNING


@kernel
def _next_order(ranks: NDArray[np.int8], first: int) -> bool:
    """The next order of the cards from ``first`` on, in dictionary order and in place; False after the last one."""
    pivot = ranks.size - 2
    while pivot >= first and ranks[pivot] >= ranks[pivot + 1]:
        pivot -= 1
    if pivot < first:
        return False
    other = ranks.size - 1
    while ranks[other] <= ranks[pivot]:
        other -= 1
    ranks[pivot], ranks[other] = ranks[other], ranks[pivot]
    low = pivot + 1
    high = ranks.size - 1
    while low < high:
        ranks[low], ranks[high] = ranks[high], ranks[low]
        low += 1
        high -= 1
    return True
