"""Brute force: every position of a game visited once, nothing clever, so that its answers can be believed.

The positions are packed into one or two 64-bit words and searched by a compiled loop, because whole decks have
millions of them. It is a reading of the rules of its own, apart from the package's kernels; ``tests/test_reference.py``
holds it against :mod:`reference`, position by position.

The search knows no dominance and no free kings. Two cuts need no trust: a branch can't beat a score that is already
found if even all that is left to earn would not do (``par``, ``msc``, ``earliest``), and a pyramid card that has no
partner left anywhere it could still meet one can't leave (``hopeless``, switched off by ``plain=True``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyramid_env.rules import Rules

NEVER: Final = 0
"""What ``earliest`` and ``steps`` answer when there is no clear or no win."""

OBJECTIVES: Final = ("win", "par", "msc", "earliest", "steps")
WIN, PAR, MSC, EARLIEST, STEPS = range(5)

UNDECIDED = -(10**9)


class Switches(NamedTuple):
    """The rules and one deal as plain integers, as the compiled functions want them."""

    places: int
    stock_size: int
    highest: int
    draw_count: int
    piles: int
    predealt: int
    passes: int  # 0 = without limit
    stock_top: bool
    pair_stock_waste: bool
    pair_waste_two: bool
    pair_waste_tops: bool
    overlap: bool
    goal_all: bool
    end_on_exhausted: bool
    ranks: NDArray[np.int64]  # (cards,) pyramid row by row, then the stock
    covers: NDArray[np.int64]  # (places,) the places that cover a place, as bits
    above: NDArray[np.int64]  # (places,) all places that a place helps to cover, itself included, as bits
    rows: NDArray[np.int64]  # (number of rows,) the places of a row, as bits, bottom row first


class Position(NamedTuple):
    """What is left and how far the stock has been turned; place i and stock card k are bits i and k."""

    pyramid: int
    stock: int
    turned: int  # the first card not turned in this pass, or the number of stock cards
    pass_number: int
    cleared_in: int


class Survey(NamedTuple):
    """All answers of one complete breadth-first search."""

    win: int
    par: int
    msc: int
    earliest: int
    steps: int
    positions: int


def switches_of(ranks: Sequence[int], rules: Rules) -> Switches:
    """Prepare a deal for the compiled functions."""
    places = [(row, column) for row in range(rules.rows) for column in range(row + 1)]
    number = {place: at for at, place in enumerate(places)}
    covers = np.zeros(len(places), np.int64)
    above = np.zeros(len(places), np.int64)
    for (row, column), at in number.items():
        above[at] |= 1 << at
        for cover in ((row + 1, column), (row + 1, column + 1)):
            if cover in number:
                covers[at] |= 1 << number[cover]
    for at in range(len(places)):  # from the apex down, so that the cards above are complete when they are needed
        for cover in range(len(places)):
            if covers[at] >> cover & 1:
                above[cover] |= above[at]
    rows = [sum(1 << at for (row, _), at in number.items() if row == wanted) for wanted in range(rules.rows)]
    return Switches(
        places=len(places),
        stock_size=rules.stock_size,
        highest=rules.ranks,
        draw_count=rules.draw_count,
        piles=rules.waste_piles,
        predealt=rules.predealt,
        passes=rules.passes or 0,
        stock_top=rules.stock_top,
        pair_stock_waste=rules.pair_stock_waste,
        pair_waste_two=rules.pair_waste_two,
        pair_waste_tops=rules.pair_waste_tops,
        overlap=rules.overlap,
        goal_all=rules.goal == "all",
        end_on_exhausted=rules.end_on_exhausted,
        ranks=np.array(ranks, np.int64),
        covers=covers,
        above=above,
        rows=np.array(rows[::-1], np.int64),
    )


def solve(
    ranks: Sequence[int], rules: Rules, objective: str, limit: int = 5_000_000, *, plain: bool = False
) -> int | None:
    """The exact answer, or None if more than ``limit`` positions would have to be visited.

    ``win`` 1 or 0; ``par`` and ``msc`` the best score; ``earliest`` the earliest pass of the clear and ``steps`` the
    fewest moves to the win (each removal, draw and recycle is one), both 0 if there is none.
    """
    switches = switches_of(ranks, rules)
    if objective == "steps":
        *_, steps, positions = _breadth_first(switches, limit, plain, True)
        return None if positions == UNDECIDED else int(steps)
    answer = _best(switches, OBJECTIVES.index(objective), limit, plain)
    return None if answer == UNDECIDED else int(answer)


def survey(ranks: Sequence[int], rules: Rules, limit: int = 5_000_000) -> Survey | None:
    """Every answer from one complete search without any cut, or None if there are more positions than ``limit``."""
    answers = _breadth_first(switches_of(ranks, rules), limit, True, False)
    return None if answers[-1] == UNDECIDED else Survey(*(int(answer) for answer in answers))


def positions_by_depth(ranks: Sequence[int], rules: Rules, depth: int) -> list[int]:
    """How many different positions can be reached by exactly 0, 1, .. ``depth`` moves.

    Each layer is a set of its own: a position that 5 moves can reach and also 7 counts in both.
    """
    switches = switches_of(ranks, rules)
    layer = {start(ranks, rules)}
    counts = [1]
    for _ in range(depth):
        layer = {follower for position in layer for follower in _follow(switches, position)}
        counts.append(len(layer))
    return counts


def start(ranks: Sequence[int], rules: Rules) -> Position:
    """The position before the first move."""
    return Position(*(int(part) for part in _start(switches_of(ranks, rules))))


def followers(ranks: Sequence[int], rules: Rules, position: Position) -> set[Position]:
    """The positions that one move can lead to; none when the game is over."""
    return _follow(switches_of(ranks, rules), position)


def _follow(switches: Switches, position: Position) -> set[Position]:
    out = np.zeros((_MOST_MOVES, 5), np.int64)
    count = _followers(switches, *position, out)
    return {Position(*row) for row in out[:count].tolist()}


# One position

_MOST_MOVES = 4096


@njit(cache=True)
def _start(s):
    turned = s.predealt
    return (1 << s.places) - 1, (1 << s.stock_size) - 1, turned, 1, 0


@njit(cache=True)
def _next_left(stock, turned, size):
    """The first stock card at or after ``turned`` that is left, or the number of stock cards."""
    while turned < size and not stock >> turned & 1:
        turned += 1
    return turned


@njit(cache=True)
def _top(stock, below, pile, piles):
    """The newest card of a waste pile older than the stock card ``below``, or -1."""
    card = below - 1
    while card >= 0 and not (stock >> card & 1 and card % piles == pile):
        card -= 1
    return card


@njit(cache=True)
def _put(s, out, count, pyramid, stock, turned, pass_number, cleared_in):
    """Write the position after a removal."""
    if pyramid == 0 and cleared_in == 0:
        cleared_in = pass_number
    out[count, 0] = pyramid
    out[count, 1] = stock
    out[count, 2] = _next_left(stock, turned, s.stock_size)
    out[count, 3] = pass_number
    out[count, 4] = cleared_in
    return count + 1


@njit(cache=True)
def _removals(s, pyramid, stock, turned, pass_number, cleared_in, out):
    """All positions after one removal, into ``out``; returns their number (equal ones are not sorted out)."""
    count = 0
    # The cards that can leave: exposed places, pile tops, the stock's top.
    pyramid_bits = np.zeros(s.places + s.piles + 1, np.int64)
    stock_bits = np.zeros(s.places + s.piles + 1, np.int64)
    ranks = np.zeros(s.places + s.piles + 1, np.int64)
    zones = np.zeros(s.places + s.piles + 1, np.int64)  # 0 pyramid, 1 waste, 2 stock
    n = 0
    for place in range(s.places):
        if pyramid >> place & 1 and pyramid & s.covers[place] == 0:
            pyramid_bits[n] = 1 << place
            ranks[n] = s.ranks[place]
            n += 1
    for pile in range(s.piles):
        card = _top(stock, turned, pile, s.piles)
        if card >= 0:
            stock_bits[n] = 1 << card
            ranks[n] = s.ranks[s.places + card]
            zones[n] = 1
            n += 1
            second = _top(stock, card, pile, s.piles)
            if s.pair_waste_two and second >= 0 and ranks[n - 1] + s.ranks[s.places + second] == s.highest:
                left = stock & ~(1 << card) & ~(1 << second)
                count = _put(s, out, count, pyramid, left, turned, pass_number, cleared_in)
    if s.stock_top and turned < s.stock_size:
        stock_bits[n] = 1 << turned
        ranks[n] = s.ranks[s.places + turned]
        zones[n] = 2
        n += 1
    for a in range(n):
        if ranks[a] == s.highest:
            count = _put(
                s, out, count, pyramid & ~pyramid_bits[a], stock & ~stock_bits[a], turned, pass_number, cleared_in
            )
        for b in range(a + 1, n):
            if ranks[a] + ranks[b] != s.highest:
                continue
            if zones[a] == 1 and zones[b] == 1 and not s.pair_waste_tops:
                continue
            if zones[a] == 1 and zones[b] == 2 and not s.pair_stock_waste:
                continue
            bits = pyramid_bits[a] | pyramid_bits[b]
            cards = stock_bits[a] | stock_bits[b]
            count = _put(s, out, count, pyramid & ~bits, stock & ~cards, turned, pass_number, cleared_in)
    if s.overlap:
        for place in range(s.places):
            for cover in range(place + 1, s.places):
                if (
                    pyramid >> place & 1
                    and pyramid & s.covers[place] == 1 << cover
                    and pyramid & s.covers[cover] == 0
                    and s.ranks[place] + s.ranks[cover] == s.highest
                ):
                    left = pyramid & ~(1 << place) & ~(1 << cover)
                    count = _put(s, out, count, left, stock, turned, pass_number, cleared_in)
    return count


@njit(cache=True)
def _drawn(s, stock, turned, pass_number):
    """Where a draw leads, as (turned, pass); (-1, 0) if it is not allowed."""
    if turned < s.stock_size:
        for _ in range(s.draw_count):
            turned = _next_left(stock, turned + 1, s.stock_size) if turned < s.stock_size else turned
        return turned, pass_number
    if stock == 0 or (s.passes > 0 and pass_number == s.passes):
        return -1, 0
    later = pass_number + 1
    if s.passes == 0 and later > 4:
        later = 4
    return _next_left(stock, 0, s.stock_size), later


@njit(cache=True)
def _followers(s, pyramid, stock, turned, pass_number, cleared_in, out):
    """All positions after one move, into ``out``; returns their number, 0 when the game is over."""
    if pyramid == 0 and not s.goal_all:
        return 0
    if s.end_on_exhausted and pass_number == s.passes and turned == s.stock_size:
        return 0
    count = _removals(s, pyramid, stock, turned, pass_number, cleared_in, out)
    after, later = _drawn(s, stock, turned, pass_number)
    if after < 0:
        return count
    if s.passes == 0 and count == 0 and not _removal_ahead(s, pyramid, stock, turned, cleared_in, out):
        return 0
    out[count, 0] = pyramid
    out[count, 1] = stock
    out[count, 2] = after
    out[count, 3] = later
    out[count, 4] = cleared_in
    return count + 1


@njit(cache=True)
def _removal_ahead(s, pyramid, stock, turned, cleared_in, out):
    """Without a limit of passes: a removal in the rest of this pass or anywhere in the next one."""
    turned_over = 0
    while not (turned_over == 1 and turned == s.stock_size):
        if turned == s.stock_size:
            turned_over = 1
        turned, _ = _drawn(s, stock, turned, 4)
        if _removals(s, pyramid, stock, turned, 4, cleared_in, out) > 0:
            return True
    return False


@njit(cache=True)
def _bits(word):
    count = 0
    while word:
        word &= word - 1
        count += 1
    return count


@njit(cache=True)
def _is_won(s, pyramid, stock):
    return pyramid == 0 and (stock == 0 or not s.goal_all)


@njit(cache=True)
def _bonus(pass_of_clear):
    if pass_of_clear == 1:
        return 50
    if pass_of_clear == 2:
        return 35
    return 20 if pass_of_clear == 3 else 0


@njit(cache=True)
def _par(pyramid, stock, cleared_in):
    return _bonus(cleared_in) - _bits(pyramid) - _bits(stock)


@njit(cache=True)
def _row_points(row_from_bottom):
    if row_from_bottom < 4:
        return 25 * (row_from_bottom + 1)
    if row_from_bottom == 4:
        return 150
    if row_from_bottom == 5:
        return 250
    return 500 if row_from_bottom == 6 else 0


@njit(cache=True)
def _msc(s, pyramid, stock):
    """Removals and rows, from what is gone: a king left alone, all others two by two."""
    kings = 0
    others = 0
    for place in range(s.places):
        if not pyramid >> place & 1:
            if s.ranks[place] == s.highest:
                kings += 1
            else:
                others += 1
    for card in range(s.stock_size):
        if not stock >> card & 1:
            if s.ranks[s.places + card] == s.highest:
                kings += 1
            else:
                others += 1
    points = 5 * (kings + others // 2)
    for row in range(len(s.rows)):
        if pyramid & s.rows[row] == 0:
            points += _row_points(row)
    return points


@njit(cache=True)
def _hopeless(s, pyramid, stock):
    """Whether some card that has to leave can't: no partner is left, but for those above and below it.

    A pyramid card can't leave with a card that covers it or that it covers, by whatever way (the overlap rule aside).
    """
    cards = s.stock_size if s.goal_all else 0
    for at in range(s.places + cards):
        in_pyramid = at < s.places
        left = pyramid >> at & 1 if in_pyramid else stock >> (at - s.places) & 1
        if not left or s.ranks[at] == s.highest:
            continue
        partner = False
        for other in range(s.places):
            if pyramid >> other & 1 and s.ranks[at] + s.ranks[other] == s.highest:
                apart = not in_pyramid or (not s.above[at] >> other & 1 and not s.above[other] >> at & 1)
                partner = partner or apart or s.overlap
        for other in range(s.stock_size):
            partner = partner or (stock >> other & 1 and s.ranks[at] + s.ranks[s.places + other] == s.highest)
        if not partner:
            return True
    return False


# Sets of positions: open addressing over packed positions; the first word is never 0, since the pass is in it


@njit(cache=True)
def _words(s):
    return 1 if s.places + s.stock_size <= 52 else 2


@njit(cache=True)
def _pack(s, row, words, key):
    small = row[2] | row[3] << 6 | row[4] << 9
    if words == 1:
        key[0] = small | row[0] << 12 | row[1] << (12 + s.places)
    else:
        key[0] = small | row[0] << 12
        key[1] = row[1]


@njit(cache=True)
def _unpack(s, key, words, row):
    row[2] = key[0] & 63
    row[3] = key[0] >> 6 & 7
    row[4] = key[0] >> 9 & 7
    if words == 1:
        row[0] = key[0] >> 12 & ((1 << s.places) - 1)
        row[1] = key[0] >> (12 + s.places) & ((1 << s.stock_size) - 1)
    else:
        row[0] = key[0] >> 12
        row[1] = key[1]


@njit(cache=True)
def _slot(table, key, words):
    """Where the key lies in the table, or the empty slot where it belongs."""
    mix = np.uint64(key[0]) * np.uint64(0x9E3779B97F4A7C15)
    if words == 2:
        mix = (mix ^ np.uint64(key[1])) * np.uint64(0xC2B2AE3D27D4EB4F)
    mix ^= mix >> np.uint64(29)
    mix *= np.uint64(0xBF58476D1CE4E5B9)
    mix ^= mix >> np.uint64(32)
    mask = len(table) - 1
    at = np.int64(mix & np.uint64(mask))
    while table[at, 0] != 0 and not (table[at, 0] == key[0] and (words == 1 or table[at, words - 1] == key[words - 1])):
        at = (at + 1) & mask
    return at


@njit(cache=True)
def _store(rows, at, key):
    """Write a key into a row; a loop, since slices of arrays take Numba seconds to compile."""
    for word in range(len(key)):
        rows[at, word] = key[word]


@njit(cache=True)
def _load(rows, at, key):
    """Read a row into ``key``."""
    for word in range(len(key)):
        key[word] = rows[at, word]


@njit(cache=True)
def _grown(table, words):
    """The same set in a table of twice the size."""
    larger = np.zeros((2 * len(table), words), np.int64)
    key = np.zeros(words, np.int64)
    for at in range(len(table)):
        if table[at, 0] != 0:
            _load(table, at, key)
            _store(larger, _slot(larger, key, words), key)
    return larger


@njit(cache=True)
def _longer(rows, words):
    """The same rows with as much room again behind them."""
    longer = np.zeros((2 * len(rows), words), np.int64)
    for at in range(len(rows)):
        for word in range(words):
            longer[at, word] = rows[at, word]
    return longer


@njit(cache=True)
def _best(s, objective, limit, plain):
    """Depth first over all positions: win, par, msc or earliest."""
    words = _words(s)
    table = np.zeros((1 << 12, words), np.int64)
    stack = np.zeros((1 << 12, words), np.int64)
    out = np.zeros((_MOST_MOVES, 5), np.int64)
    row = np.zeros(5, np.int64)
    key = np.zeros(words, np.int64)
    row[0], row[1], row[2], row[3], row[4] = _start(s)
    _pack(s, row, words, key)
    _store(table, _slot(table, key, words), key)
    _store(stack, 0, key)
    height = 1
    known = 1
    all_points = _msc(s, 0, 0)
    best = -1_000_000 if objective in (PAR, MSC) else 0
    while height > 0:
        height -= 1
        _load(stack, height, key)
        _unpack(s, key, words, row)
        pyramid, stock, turned, pass_number, cleared_in = row[0], row[1], row[2], row[3], row[4]
        if objective == WIN:
            if _is_won(s, pyramid, stock):
                return 1
            if not plain and _hopeless(s, pyramid, stock):
                continue
        elif objective == PAR:
            best = max(best, _par(pyramid, stock, cleared_in))
            if _bonus(cleared_in if cleared_in > 0 else pass_number) <= best:
                continue
        elif objective == MSC:
            best = max(best, _msc(s, pyramid, stock))
            if best == all_points:
                return best
        else:
            if cleared_in > 0 and (best == 0 or cleared_in < best):
                best = cleared_in
            if cleared_in > 0 or (best > 0 and pass_number >= best):
                continue
            if best == 1:
                return best
        count = _followers(s, pyramid, stock, turned, pass_number, cleared_in, out)
        for at in range(count - 1, -1, -1):
            _pack(s, out[at], words, key)
            slot = _slot(table, key, words)
            if table[slot, 0] != 0:
                continue
            if known == limit:
                return UNDECIDED
            _store(table, slot, key)
            known += 1
            if 2 * known > len(table):
                table = _grown(table, words)
            if height == len(stack):
                stack = _longer(stack, words)
            _store(stack, height, key)
            height += 1
    return best


@njit(cache=True)
def _breadth_first(s, limit, plain, only_steps):
    """Breadth first: all answers and the number of positions; or, ``only_steps``, no further than the first win."""
    words = _words(s)
    table = np.zeros((1 << 12, words), np.int64)
    queue = np.zeros((1 << 12, words), np.int64)
    out = np.zeros((_MOST_MOVES, 5), np.int64)
    row = np.zeros(5, np.int64)
    key = np.zeros(words, np.int64)
    row[0], row[1], row[2], row[3], row[4] = _start(s)
    _pack(s, row, words, key)
    _store(table, _slot(table, key, words), key)
    _store(queue, 0, key)
    known = 1
    win, par, msc, earliest, steps = 0, -1_000_000, 0, NEVER, NEVER
    at = 0
    depth = 0
    depth_ends = 1  # the positions before it in the queue are reached by ``depth`` moves or fewer
    while at < known:
        if at == depth_ends:
            depth += 1
            depth_ends = known
        _load(queue, at, key)
        at += 1
        _unpack(s, key, words, row)
        pyramid, stock, cleared_in = row[0], row[1], row[4]
        if _is_won(s, pyramid, stock) and win == 0:
            win = 1
            steps = depth
            if only_steps:
                break
        if only_steps and not plain and _hopeless(s, pyramid, stock):
            continue
        par = max(par, _par(pyramid, stock, cleared_in))
        msc = max(msc, _msc(s, pyramid, stock))
        if cleared_in > 0 and (earliest == NEVER or cleared_in < earliest):
            earliest = cleared_in
        count = _followers(s, pyramid, stock, row[2], row[3], cleared_in, out)
        for follower in range(count):
            _pack(s, out[follower], words, key)
            slot = _slot(table, key, words)
            if table[slot, 0] != 0:
                continue
            if known == limit:
                return win, par, msc, earliest, steps, UNDECIDED
            _store(table, slot, key)
            if known == len(queue):
                queue = _longer(queue, words)
            _store(queue, known, key)
            known += 1
            if 2 * known > len(table):
                table = _grown(table, words)
    return win, par, msc, earliest, steps, known
