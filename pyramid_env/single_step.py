"""The step of one game in a compiled call of few arguments: what PyramidEnv plays with.

Numba takes some 50 nanoseconds for each array that a call hands over, so the fifteen arrays of a batch cost a single
game as much as its step does. Here all that a game owns lies in three arrays, and the tables of its rules in one:

    longs   int64   state (5) | scratch (MAX_MOVES)
    bytes   int8    mask (A) | observation row (F) | ranks (cards)
    facts   int32   (1, 9)
    flat    int64   sizes: A, F, cards, places, piles, and how long each table is | the tables of stepping.Packed

The rules stay where they are, in the kernels that batches are stepped with too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.kernels import (
    FACT_COLUMNS,
    MAX_MOVES,
    MOVE_COLUMNS,
    OVER,
    SCORE,
    STATE_COLUMNS,
    step,
    table,
    write_facts,
    write_mask,
)
from pyramid_env.observation import Layout, encode, layout
from pyramid_env.rules import Rules
from pyramid_env.stepping import observe_games, packed, unpack_offsets, unpack_table

_ACTIONS: Final = 0
_FIELDS: Final = 1
_CARDS: Final = 2
_PLACES: Final = 3
_PILES: Final = 4
_LENGTHS: Final = 5
_HEAD: Final = 12
"""Where the tables begin: after five sizes and the lengths of seven tables."""


@lru_cache
def flat_tables(rules: Rules, level: str) -> NDArray[np.int64]:
    """The (cached) packed tables of some rules and a level as one read-only array, sizes in front."""
    parts = packed(rules, level)
    sizes = [table(rules).actions, layout(rules, level).size, rules.cards, rules.places, rules.waste_piles]
    flat = np.concatenate([np.array([*sizes, *(part.size for part in parts)]), *(part.reshape(-1) for part in parts)])
    flat = flat.astype(np.int64)
    flat.setflags(write=False)
    return flat


class GameArrays:
    """The arrays of one game, zeros at first, and views on them with a batch axis of one for the batched kernels.

    Attributes:
        longs, bytes, facts, flat: see the module.
        states (1, 5), ranks (1, cards), masks (1, A), rows (1, F): views, written to by the kernels.
        shown: (A + F,) view on mask and row: a copy of it is what an observation and its mask are made of.
    """

    def __init__(self, rules: Rules, level: str) -> None:
        self._made_for = rules, level
        self.flat = flat_tables(rules, level)
        actions, fields, cards = (int(size) for size in self.flat[: _CARDS + 1])
        self.longs = np.zeros(STATE_COLUMNS + MAX_MOVES, np.int64)
        self.bytes = np.zeros(actions + fields + cards, np.int8)
        self.facts = np.zeros((1, FACT_COLUMNS), np.int32)
        self.states = self.longs[None, :STATE_COLUMNS]
        self.shown = self.bytes[: actions + fields]
        self.masks, self.rows = self.shown[None, :actions], self.shown[None, actions:]
        self.ranks = self.bytes[None, actions + fields :]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles get arrays of their own, with views on those."""
        return GameArrays, self._made_for, (self.states, self.bytes, self.facts)

    def __setstate__(self, contents: tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.int32]]) -> None:
        self.states[:], self.bytes[:], self.facts[:] = contents


@kernel
def play_game(
    flat: NDArray[np.int64],
    longs: NDArray[np.int64],
    bytes_: NDArray[np.int8],
    facts: NDArray[np.int32],
    column: int,
    action: int,
) -> tuple[bool, bool, int, int]:
    """One step of one game: position, mask, facts and observation row are brought up to date in place.

    An action outside 0..A-1 or masked changes nothing. ``column`` is the fact that the reward counts, or -1.
    Returns: was the action illegal; is the game over; its score; how much the fact of ``column`` grew.
    """
    actions, places, piles = flat[_ACTIONS], flat[_PLACES], flat[_PILES]
    row_end = actions + flat[_FIELDS]
    mask, facts_row = bytes_[:actions], facts[0]
    if action < 0 or action >= actions or not mask[action]:
        return True, facts_row[OVER] != 0, facts_row[SCORE], 0
    a = _HEAD + flat[_LENGTHS]
    b = a + flat[_LENGTHS + 1]
    c = b + flat[_LENGTHS + 2]
    d = c + flat[_LENGTHS + 3]
    e = d + flat[_LENGTHS + 4]
    f = e + flat[_LENGTHS + 5]
    n = flat[_HEAD:a]
    full = unpack_table(
        n,
        flat[a:b],
        flat[b:c],
        flat[c:d],
        flat[d:e].reshape((places, places)),
        flat[e:f].reshape((piles, piles)),
        flat[f:].reshape((actions, MOVE_COLUMNS)),
    )
    at = unpack_offsets(n)
    ranks, state, scratch = bytes_[row_end:], longs[:STATE_COLUMNS], longs[STATE_COLUMNS:]
    before = facts_row[column] if column >= 0 else 0
    step(full, state, action)
    legal = write_mask(full, ranks, state, mask, scratch)
    write_facts(full, ranks, state, legal, facts_row)
    encode(full, at, ranks, state, bytes_[actions:row_end])
    gained = facts_row[column] - before if column >= 0 else 0
    return False, facts_row[OVER] != 0, facts_row[SCORE], gained


def observer(rules: Rules, level: str, game: GameArrays) -> Callable[[], None]:
    """A call that writes mask, facts and observation row of the position that lies in the game's arrays."""
    first = np.zeros(1, np.int64)
    return partial(
        observe_games, *packed(rules, level), game.ranks, game.states, first, game.masks, game.facts, game.rows
    )


def field_views(fields: Layout, start: int) -> Callable[[NDArray[np.int8]], dict[str, NDArray[np.int8]]]:
    """A function from an array (``start`` + F,) to the fields behind its ``start``, by name, as views.

    It is compiled from the text of a dict display, as namedtuple's methods are from theirs: a quarter of a microsecond
    faster than a loop over names and slices, and a step takes five.
    """
    slices = {f"s{i}": slice(start + f.start, start + f.start + f.size) for i, f in enumerate(fields.fields)}
    pairs = ", ".join(f"{f.name!r}: shown[s{i}]" for i, f in enumerate(fields.fields))
    made: Callable[[NDArray[np.int8]], dict[str, NDArray[np.int8]]] = eval(f"lambda shown: {{{pairs}}}", slices)
    return made
