"""PairViews: a position as each pair of ranks sees it, as small integers, for the encoder in agents/pair_groups.py.

A game of 13 ranks has six groups of ranks that leave together (ace with queen, two with jack, ...) and the kings. From
a group a card is gone, of the group's lower rank, of its higher rank, a king, another, or not seen yet. What a view
says, entry after entry:

    each place            the card there, and how many of the two cards upon it are left
    each pile from its top, turned stock cards that are left
    the cards to come     stock cards that are left, in order: the next one first
    counts                of the lower and the higher rank: left in the pyramid, known in the stock, not seen
    pass, cleared         the pass and, where the rules go on after it, that of the clear

All of it follows from the observation. Piles and cards to come are told by their order, not by their index in the
stock: what matters is what comes when.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.tokens import compiled
from pyramid_env.moves import Kind, move_table
from pyramid_env.observation import layout
from pyramid_env.rules import LAST_COUNTED_PASS, Rules

GONE: Final = 0
LOWER: Final = 1
HIGHER: Final = 2
KING: Final = 3
OTHER: Final = 4
UNSEEN: Final = 5
"""How a card looks from a group."""

CARD_LOOKS: Final = 6
PLACE_LOOKS: Final = 3 * (CARD_LOOKS - 2) + 1
"""Gone, or one of four looks under none, one or two cards; all cards of the pyramid are seen."""


class Numbers(NamedTuple):
    """What the kernel needs to know of some rules and a level; starts of fields are -1 where there is no such field."""

    places: int
    rows: int
    stock: int
    ranks: int
    piles: int
    depth: int  # cards a pile holds at most
    copies: int  # cards of a rank
    passes: int  # highest number of a pass that is told apart
    pyramid: int
    waste: int
    waste_under: int
    stock_top: int
    pass_number: int
    cleared: int
    known: int
    cursor: int
    unseen: int
    clairvoyant_stock: int


def numbers_of(rules: Rules, level: str) -> Numbers:
    """What a kernel that reads observation rows needs to know."""
    at = layout(rules, level).offsets
    piles = rules.waste_piles
    return Numbers(
        places=rules.places,
        rows=rules.rows,
        stock=rules.stock_size,
        ranks=rules.ranks,
        piles=piles,
        depth=-(-rules.stock_size // piles),
        copies=rules.decks * rules.suits,
        passes=LAST_COUNTED_PASS if rules.passes is None else rules.passes,
        pyramid=at.pyramid,
        waste=at.waste,
        waste_under=at.waste_under,
        stock_top=at.stock_top,
        pass_number=at.pass_number,
        cleared=at.cleared,
        known=at.known,
        cursor=at.cursor,
        unseen=at.unseen,
        clairvoyant_stock=at.clairvoyant_stock,
    )


class PairTables:
    """What the encoder needs of some rules and a level.

    Attributes:
        groups: G, pairs of ranks.
        numbers: see :class:`Numbers`.
        entries: E, entries of a view.
        count: rows of the encoder's table.
        entry_of: (A,) int32 the observation entry that names the rank of the card an action removes, -1 = none.
        group_of: (ranks + 2,) int8 the group of each rank, -1 for none.
    """

    def __init__(self, rules: Rules, level: str) -> None:
        self.numbers: Final = numbers_of(rules, level)
        n = self.numbers
        self.groups: Final = rules.ranks // 2
        sizes = [
            *[PLACE_LOOKS] * n.places,
            *[CARD_LOOKS] * (n.piles * n.depth + n.stock),
            *[(n.copies + 1) ** 2] * 3,
            *[n.passes + 1] * 2,
        ]
        self.entries: Final = len(sizes)
        self.count: Final = sum(sizes)
        self.entry_of: Final = _entries(rules, level)
        self.group_of: Final = np.full(rules.ranks + 2, -1, np.int8)
        for group in range(self.groups):
            self.group_of[[group + 1, rules.ranks - 1 - group]] = group

    def views(self, tokens: NDArray[np.int8]) -> NDArray[np.int32]:
        """(B, G, E) rows of the encoder's table, from (B, F) observation rows."""
        rows = np.empty((len(tokens), self.groups, self.entries), np.int32)
        _write_views(tokens, self.numbers, rows)
        return rows

    def groups_of(self, tokens: NDArray[np.int8], legal: NDArray[np.int16]) -> NDArray[np.int8]:
        """(B, K) the group whose cards each action of (B, K) ``legal`` removes, -1 = none."""
        groups = np.empty(legal.shape, np.int8)
        _write_groups(tokens, legal, self.entry_of, self.group_of, groups)
        return groups


def _entries(rules: Rules, level: str) -> NDArray[np.int32]:
    starts = {field.name: field.start for field in layout(rules, level).fields}
    pyramid, waste, stock_top = (starts.get(name, -1) for name in ("pyramid", "waste", "stock_top"))
    first = {
        Kind.PLACE_PAIR: pyramid,
        Kind.PLACE_WASTE: pyramid,
        Kind.PLACE_STOCK: pyramid,
        Kind.WASTE_TWO: waste,
        Kind.WASTE_TOPS: waste,
    }
    entries = np.full(len(move_table(rules)), -1, np.int32)
    for action, (kind, place, _) in enumerate(move_table(rules)):
        if kind == Kind.STOCK_WASTE:
            entries[action] = stock_top
        elif kind in first:
            entries[action] = first[Kind(kind)] + place
    return entries


@compiled
def _write_views(tokens: NDArray[np.int8], n: Numbers, out: NDArray[np.int32]) -> None:
    """out[b, g, e] = row of the encoder's table for entry e of the view of group g."""
    look = np.zeros(n.ranks + 2, np.int32)
    piled = np.zeros(n.piles, np.int64)
    counts = np.zeros((3, 2), np.int64)  # in the pyramid, known in the stock, not seen; of the lower and higher rank
    for b in range(tokens.shape[0]):
        for g in range(out.shape[1]):
            lower, higher = g + 1, n.ranks - 1 - g
            for rank in range(1, n.ranks):
                look[rank] = LOWER if rank == lower else HIGHER if rank == higher else OTHER
            look[n.ranks], look[n.ranks + 1] = KING, UNSEEN
            counts[:] = 0
            row, view = tokens[b], out[b, g]
            _view_places(row, n, look, counts, view)
            e: Any = n.places
            first: Any = n.places * PLACE_LOOKS
            slots = n.piles * n.depth + n.stock
            for slot in range(slots):
                view[e + slot] = first + slot * CARD_LOOKS
            if n.known >= 0:
                _view_stock(row, n, look, piled, counts, view)
            else:
                _view_tops(row, n, look, view)
            e += slots
            first += slots * CARD_LOOKS
            if n.unseen >= 0 and n.clairvoyant_stock < 0:
                counts[2, 0], counts[2, 1] = row[n.unseen + lower - 1], row[n.unseen + higher - 1]
            for where in range(3):
                view[e + where] = first + counts[where, 0] * (n.copies + 1) + counts[where, 1]
                first += (n.copies + 1) ** 2
            view[e + 3] = first + min(np.int64(row[n.pass_number]), n.passes)
            first += n.passes + 1
            view[e + 4] = first
            if n.cleared >= 0:
                view[e + 4] += min(np.int64(row[n.cleared]), n.passes)


@compiled
def _view_places(
    row: NDArray[np.int8], n: Numbers, look: NDArray[np.int32], counts: NDArray[np.int64], view: NDArray[np.int32]
) -> None:
    i = 0
    upon: Any = 0
    for r in range(n.rows):
        for _ in range(r + 1):
            seen = look[row[n.pyramid + i]]
            upon = 0
            if r + 1 < n.rows:
                below = n.pyramid + i + r + 1
                upon = np.int64(row[below] != 0) + np.int64(row[below + 1] != 0)
            view[i] = i * PLACE_LOOKS + (seen + (CARD_LOOKS - 2) * upon if seen != GONE else 0)
            counts[0, 0] += seen == LOWER
            counts[0, 1] += seen == HIGHER
            i += 1


@compiled
def _view_stock(
    row: NDArray[np.int8],
    n: Numbers,
    look: NDArray[np.int32],
    piled: NDArray[np.int64],
    counts: NDArray[np.int64],
    view: NDArray[np.int32],
) -> None:
    stock = n.clairvoyant_stock if n.clairvoyant_stock >= 0 else n.known
    cursor = np.int64(row[n.cursor])
    coming = n.places + n.piles * n.depth
    piled[:] = 0
    for turned in range(cursor):
        k: Any = cursor - 1 - turned
        seen = look[row[stock + k]]
        if seen != GONE:
            pile = k % n.piles
            view[n.places + pile * n.depth + piled[pile]] += seen
            piled[pile] += 1
            counts[1, 0] += seen == LOWER
            counts[1, 1] += seen == HIGHER
    for k in range(cursor, n.stock):
        seen = look[row[stock + k]]
        if seen != GONE:
            view[coming] += seen
            coming += 1
            counts[1, 0] += seen == LOWER
            counts[1, 1] += seen == HIGHER


@compiled
def _view_tops(row: NDArray[np.int8], n: Numbers, look: NDArray[np.int32], view: NDArray[np.int32]) -> None:
    """As :func:`_view_stock` where the observation tells only what lies open now."""
    for pile in range(n.piles):
        top = n.places + pile * n.depth
        view[top] += look[row[n.waste + pile]]
        if n.waste_under >= 0 and n.depth > 1:
            view[top + 1] += look[row[n.waste_under + pile]]
    if n.stock_top >= 0 and n.stock > 0:
        view[n.places + n.piles * n.depth] += look[row[n.stock_top]]


@compiled
def _write_groups(
    tokens: NDArray[np.int8],
    legal: NDArray[np.int16],
    entry_of: NDArray[np.int32],
    group_of: NDArray[np.int8],
    out: NDArray[np.int8],
) -> None:
    """out[b, k] = group of the card that action legal[b, k] removes."""
    for b in range(legal.shape[0]):
        for k in range(legal.shape[1]):
            entry = entry_of[legal[b, k]] if legal[b, k] >= 0 else -1
            out[b, k] = group_of[tokens[b, entry]] if entry >= 0 else -1
