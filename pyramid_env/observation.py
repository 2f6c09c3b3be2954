"""Observations: the named fields, what is known at each information level, the spaces, and the way back to a position.

One game's observation is a row of int8; each field is a slice of it, and a level's row begins with the row of the level
below:

    table         pyramid | waste | waste_count | waste_under? | stock | stock_top? | pass | cleared?
    memory        ... | known | cursor | unseen
    clairvoyant   ... | clairvoyant_stock

An observation at the levels ``table`` and ``memory`` holds only what a player has seen: a stock card counts as seen
once it has been turned (in later passes all have been), and with a face-up stock top also while it lies there. What has
been seen follows from the position alone. When every card lies open from the start (giza), ``table`` has the fields of
``memory`` too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from pyramid_env._numba import joined_kernel, kernel
from pyramid_env.bits import as_index, count_bits, lowest_bit
from pyramid_env.errors import PyramidError
from pyramid_env.kernels import (
    CLEARED,
    CURSOR,
    PASS,
    PYRAMID,
    STATE_COLUMNS,
    STOCK,
    Table,
    top_card,
)
from pyramid_env.rules import Rules

LEVELS: Final = ("table", "memory", "clairvoyant")
"""The information levels, each with all fields of the one before."""


class Field(NamedTuple):
    """One named slice of the observation row."""

    name: str
    start: int
    size: int
    high: int  # highest value; the lowest is always 0


class Offsets(NamedTuple):
    """Where each field starts in the row, for the kernels; -1 = the field is absent."""

    pyramid: int
    waste: int
    waste_count: int
    waste_under: int
    stock: int
    stock_top: int
    pass_number: int
    cleared: int
    known: int
    cursor: int
    unseen: int
    clairvoyant_stock: int


@dataclass(frozen=True)
class Layout:
    """The fields of one level under some rules, in the order of the row."""

    rules: Rules
    level: str
    fields: tuple[Field, ...]
    offsets: Offsets

    @property
    def size(self) -> int:
        """F, the length of the row."""
        return self.fields[-1].start + self.fields[-1].size

    def space(self) -> spaces.Space[Any]:
        """A new ``Dict`` space: one int8 Box a field."""
        return spaces.Dict({f.name: spaces.Box(0, f.high, (f.size,), np.int8) for f in self.fields})

    def views(self, rows: NDArray[np.int8]) -> dict[str, NDArray[np.int8]]:
        """The fields of rows (..., F) by name, as views (..., size): writing to the rows changes them."""
        return {f.name: rows[..., f.start : f.start + f.size] for f in self.fields}

    def flat(self, observations: Mapping[str, NDArray[np.int8]]) -> NDArray[np.int8]:
        """The rows (..., F) behind a dict of fields, as a new array."""
        return np.concatenate([observations[f.name] for f in self.fields], axis=-1)


def layout(rules: Rules, level: str) -> Layout:
    """The (cached) layout of a level; PyramidError for an unknown level."""
    if not isinstance(level, str) or level not in LEVELS:
        raise PyramidError(f"observation: expected one of {', '.join(LEVELS)}, got {level!r}")
    return _layout(rules, level)


@lru_cache
def _layout(rules: Rules, level: str) -> Layout:
    fields: list[Field] = []
    for name, size, high in _field_sizes(rules, level):
        start = fields[-1].start + fields[-1].size if fields else 0
        fields.append(Field(name, start, size, high))
    starts = {f.name: f.start for f in fields}
    names = ["pass" if name == "pass_number" else name for name in Offsets._fields]
    return Layout(rules, level, tuple(fields), Offsets(*(starts.get(name, -1) for name in names)))


def _field_sizes(rules: Rules, level: str) -> list[tuple[str, int, int]]:
    """(name, size, highest value) of the fields of a level, in order."""
    stock, piles = rules.stock_size, rules.waste_piles
    copies = rules.decks * rules.suits
    fields = [
        ("pyramid", rules.places, rules.ranks),
        ("waste", piles, rules.ranks),
        ("waste_count", piles, -(-stock // piles)),
    ]
    if rules.pair_waste_two:
        fields.append(("waste_under", piles, rules.ranks))
    fields.append(("stock", 1, stock))
    if rules.stock_top:
        fields.append(("stock_top", 1, rules.ranks))
    fields.append(("pass", 1, rules.last_pass))
    if rules.goal == "all":
        fields.append(("cleared", 1, rules.last_pass))
    if level != "table" or rules.nothing_hidden:
        fields += [("known", stock, rules.ranks + 1), ("cursor", 1, stock), ("unseen", rules.ranks, copies)]
    if level == "clairvoyant":
        fields.append(("clairvoyant_stock", stock, rules.ranks))
    return [field for field in fields if field[1]]


# ---- encoding --------------------------------------------------------------------------------------------------------


@kernel
def encode(
    table: Table, at: Offsets, ranks: NDArray[np.int8], state: NDArray[np.int64], out_row: NDArray[np.int8]
) -> None:
    """Write the whole observation row of one position."""
    pyramid, stock, cursor = state[PYRAMID], state[STOCK], state[CURSOR]
    places = table.places
    for i in range(places):
        out_row[at.pyramid + i] = ranks[i] if (pyramid >> i) & 1 else 0
    encode_tops(table, at, ranks, stock, cursor, state[PASS], state[CLEARED], out_row)
    if at.unseen >= 0:  # also without a stock, where there is no field ``known``
        _encode_memory(table, at, ranks, stock, seen_below(table, cursor, state[PASS]), out_row)
    if at.clairvoyant_stock >= 0:
        for k in range(table.stock_size):
            out_row[at.clairvoyant_stock + k] = ranks[places + k] if (stock >> k) & 1 else 0


@kernel
def encode_tops(
    table: Table,
    at: Offsets,
    ranks: NDArray[np.int8],
    stock: int,
    cursor: int,
    pass_number: int,
    cleared: int,
    out_row: NDArray[np.int8],
) -> None:
    """Write all fields that are a few numbers: the waste, the stock's count and top, pass, clear and cursor."""
    if table.piles == 1:  # on its own, so that all that depends on the number of piles falls away
        _encode_pile(table, at, ranks, stock, cursor, 0, 1, out_row)
    else:
        for pile in range(table.piles):
            _encode_pile(table, at, ranks, stock, cursor, pile, table.piles, out_row)
    out_row[as_index(at.stock)] = count_bits(stock >> cursor)
    if at.stock_top >= 0:
        out_row[as_index(at.stock_top)] = ranks[as_index(table.places + cursor)] if cursor < table.stock_size else 0
    out_row[as_index(at.pass_number)] = pass_number
    if at.cleared >= 0:
        out_row[as_index(at.cleared)] = cleared
    if at.cursor >= 0:
        out_row[as_index(at.cursor)] = cursor


@joined_kernel
def _encode_pile(
    table: Table,
    at: Offsets,
    ranks: NDArray[np.int8],
    stock: int,
    cursor: int,
    pile: int,
    piles: int,
    out_row: NDArray[np.int8],
) -> None:
    """Write the fields of one waste pile."""
    places = table.places
    top = top_card(stock, cursor, pile, piles)
    out_row[as_index(at.waste + pile)] = ranks[as_index(places + top)] if top >= 0 else 0
    turned = stock & ((1 << cursor) - 1)
    count = count_bits(turned)
    if piles > 1:
        count = 0
        while turned:
            count += lowest_bit(turned) % piles == pile
            turned &= turned - 1
    out_row[as_index(at.waste_count + pile)] = count
    if at.waste_under >= 0:
        under = top_card(stock, top, pile, piles) if top >= 0 else -1
        out_row[as_index(at.waste_under + pile)] = ranks[as_index(places + under)] if under >= 0 else 0


@kernel
def seen_below(table: Table, cursor: int, pass_number: int) -> int:
    """Index of the first stock card that no player has seen; the stock's size if all have been."""
    if pass_number > 1:
        return table.stock_size
    return min(cursor + table.stock_top, table.stock_size)


@kernel
def _encode_memory(
    table: Table,
    at: Offsets,
    ranks: NDArray[np.int8],
    stock: int,
    seen: int,
    out_row: NDArray[np.int8],
) -> None:
    """Write the fields ``known`` and ``unseen``; stock cards from index ``seen`` on have not been seen."""
    places = table.places
    for rank in range(table.ranks):
        out_row[at.unseen + rank] = 0
    for k in range(table.stock_size):
        if k >= seen:
            out_row[at.known + k] = table.ranks + 1
            out_row[at.unseen + ranks[places + k] - 1] += 1
        else:
            out_row[at.known + k] = ranks[places + k] if (stock >> k) & 1 else 0


# ---- the way back ----------------------------------------------------------------------------------------------------


class Position(NamedTuple):
    """A position as a player knows it: ``ranks, state = position``, with a batch axis if the observation had one.

    ``ranks`` (cards,) int8: 0 for a stock card that has not been seen. Cards that left have ranks that left, though not
    each its own: no move and no score depends on which. ``state`` (5,) int64: the position row of the kernels.
    """

    ranks: NDArray[np.int8]
    state: NDArray[np.int64]

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """(cards,) true for the cards that have not been seen."""
        return np.equal(self.ranks, 0)


def position_from_observation(rules: Rules, observation: Mapping[str, NDArray[np.int8]] | NDArray[np.int8]) -> Position:
    """Rebuild the position from an observation at the level ``memory`` or ``clairvoyant``, for planners.

    Args:
        rules: the rules that the observation was made under.
        observation: fields by name, or the row itself; with or without a batch axis in front.

    Raises:
        PyramidError: for an observation that does not tell the stock's order.
    """
    fields = _named(rules, observation)
    pyramid, known = fields["pyramid"], fields.get("known", fields["pyramid"][..., :0])
    unseen_code = rules.ranks + 1
    unseen = fields.get("unseen", np.zeros((*pyramid.shape[:-1], rules.ranks), np.int8)).astype(np.int64)
    stock = np.where(known == unseen_code, 0, known)
    if "clairvoyant_stock" in fields:
        stock, unseen = fields["clairvoyant_stock"], np.zeros_like(unseen)
    left = np.concatenate([pyramid, known], axis=-1) != 0
    ranks = np.concatenate([pyramid, stock], axis=-1)
    state = np.zeros((*pyramid.shape[:-1], STATE_COLUMNS), np.int64)
    state[..., PYRAMID] = _bits(left[..., : rules.places])
    state[..., STOCK] = _bits(left[..., rules.places :])
    state[..., CURSOR] = fields["cursor"][..., 0]
    state[..., PASS] = fields["pass"][..., 0]
    cleared = (
        fields["cleared"] if "cleared" in fields else np.where(pyramid.any(axis=-1, keepdims=True), 0, fields["pass"])
    )
    state[..., CLEARED] = cleared[..., 0]
    return Position(_with_gone_ranks(rules, ranks, left, unseen), state)


def _named(rules: Rules, observation: Any) -> Mapping[str, NDArray[np.int8]]:
    """The fields by name of a dict or a row; PyramidError if they do not tell the stock's order."""
    expected = "expected an observation at level memory or clairvoyant"
    if isinstance(observation, np.ndarray):
        for level in LEVELS[1:]:
            if observation.ndim and layout(rules, level).size == observation.shape[-1]:
                return layout(rules, level).views(observation)
        raise PyramidError(f"{expected} of {rules}, got a row of shape {observation.shape}")
    if not isinstance(observation, Mapping):
        raise PyramidError(f"{expected}, got {type(observation).__name__} {observation!r}")
    if "cursor" not in observation:
        raise PyramidError(f"{expected}, got the fields {', '.join(observation)}")
    fields: Mapping[str, NDArray[np.int8]] = observation
    return fields


def _bits(left: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(..., n) truth values to integers with bit i set where the i-th is true."""
    bits: NDArray[np.int64] = left @ (np.int64(1) << np.arange(left.shape[-1], dtype=np.int64))
    return bits


def _with_gone_ranks(
    rules: Rules, ranks: NDArray[np.int8], left: NDArray[np.bool_], unseen: NDArray[np.int64]
) -> NDArray[np.int8]:
    """Give the cards that left the ranks that are missing from the deck, in ascending order."""
    each = np.arange(1, rules.ranks + 1)
    present = (ranks[..., None] == each).sum(axis=-2)
    gone = rules.decks * rules.suits - present - unseen  # (..., ranks)
    nth = np.cumsum(~left, axis=-1) - 1  # (..., cards) the how manieth card that left
    missing = 1 + (nth[..., None] >= np.cumsum(gone, axis=-1)[..., None, :]).sum(axis=-1)
    return np.where(left, ranks, missing).astype(np.int8)
