"""Moves: what a player can do, as a Move, as an action index, and as text; the three read into each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import combinations
from typing import Final, NamedTuple, overload

from pyramid_env.errors import IllegalMoveError
from pyramid_env.geometry import geometry, place, row_column
from pyramid_env.rules import Rules


class Kind(IntEnum):
    """The kinds of move, in the order of their action indices; behind each: what ``first`` and ``second`` mean."""

    PLACE_PAIR = 0  # two places, the smaller first
    PLACE_WASTE = 1  # place, pile
    PLACE_KING = 2  # place, 0
    WASTE_KING = 3  # pile, 0
    PLACE_STOCK = 4  # place, 0
    STOCK_KING = 5  # 0, 0
    STOCK_WASTE = 6  # pile, 0
    WASTE_TWO = 7  # pile, 0
    WASTE_TOPS = 8  # two piles, the smaller first
    DRAW = 9  # 0, 0; recycles when the stock is empty


class Move(NamedTuple):
    """One move, without regard to a deal. ``first`` and ``second`` are places or piles, both from 0, as Kind says.

    Prints as text: ``r7c1+r7c3`` (two places), ``r7c1+waste``, ``r7c1`` (a king), ``waste`` (the waste top, a king),
    ``r7c1+stock``, ``stock``, ``stock+waste``, ``waste+waste`` (the two uppermost cards), ``draw``; with several piles
    ``r7c1+waste2``, ``waste2``, ``stock+waste2``, ``waste2+waste2`` (the two uppermost of pile 2), ``waste1+waste3``.
    Rows, columns and piles count from 1 in the text; ``waste`` alone is the first pile.
    """

    kind: Kind
    first: int = 0
    second: int = 0

    def text(self, waste_piles: int = 1) -> str:
        """The move as text; with one pile the pile's number is left out."""

        def pile(index: int) -> str:
            return "waste" if waste_piles == 1 else f"waste{index + 1}"

        first, second = self.first, self.second
        match self.kind:
            case Kind.PLACE_PAIR:
                return f"{place_text(first)}+{place_text(second)}"
            case Kind.PLACE_WASTE:
                return f"{place_text(first)}+{pile(second)}"
            case Kind.PLACE_KING:
                return place_text(first)
            case Kind.WASTE_KING:
                return pile(first)
            case Kind.PLACE_STOCK:
                return f"{place_text(first)}+stock"
            case Kind.STOCK_KING:
                return "stock"
            case Kind.STOCK_WASTE:
                return f"stock+{pile(first)}"
            case Kind.WASTE_TWO:
                return f"{pile(first)}+{pile(first)}"
            case Kind.WASTE_TOPS:
                return f"{pile(first)}+{pile(second)}"
            case _:
                return "draw"

    @property
    def is_draw(self) -> bool:
        """Draw or recycle; every other move removes cards."""
        return self.kind == Kind.DRAW

    def __str__(self) -> str:
        return self.text(2 if self._beyond_first_pile else 1)

    @property
    def _beyond_first_pile(self) -> bool:
        """Does the move name a pile that a single-pile game does not have?"""
        match self.kind:
            case Kind.PLACE_WASTE:
                return self.second > 0
            case Kind.WASTE_KING | Kind.STOCK_WASTE | Kind.WASTE_TWO:
                return self.first > 0
            case _:
                return self.kind == Kind.WASTE_TOPS


def place_text(index: int) -> str:
    """A place as text: ``r7c1``."""
    row, column = row_column(index)
    return f"r{row}c{column}"


class MoveTable(Sequence[Move]):
    """All moves of some rules, in the order of their action indices: ``table[a]`` is the Move of action a.

    The order, with P places and W piles: pairs of places that can be exposed together (first place, then second), with
    the overlap rule also place and direct cover, all sorted; P x W place with pile (pile by pile); P kings; W waste
    kings; then, where the switch is on: P place with stock, one stock king; W stock with waste; W waste two; pairs of
    pile tops; draw last.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules: Final = rules
        self.moves: Final[tuple[Move, ...]] = tuple(_all_moves(rules))
        self._index: Final = {move: action for action, move in enumerate(self.moves)}
        self._texts: Final = {move.text(rules.waste_piles): move for move in self.moves}

    def __len__(self) -> int:
        return len(self.moves)

    @overload
    def __getitem__(self, action: int) -> Move: ...

    @overload
    def __getitem__(self, action: slice) -> Sequence[Move]: ...

    def __getitem__(self, action: int | slice) -> Move | Sequence[Move]:
        return self.moves[action]

    def __iter__(self) -> Iterator[Move]:
        return iter(self.moves)

    def index_of(self, move: Move) -> int:
        """The action index of a move; IllegalMoveError if these rules have no such move."""
        try:
            return self._index[move]
        except (KeyError, TypeError):
            raise IllegalMoveError(f"expected a move of {self.rules}, got {move!r}") from None

    def text(self, move: Move) -> str:
        """The text of a move under these rules; :meth:`parse` reads it back."""
        return move.text(self.rules.waste_piles)

    def parse(self, text: str) -> Move:
        """Read a move's text; parts may stand in either order, ``recycle`` reads as draw. Else IllegalMoveError."""
        move = self._texts.get(_normal(text, self.rules.waste_piles))
        if move is None:
            raise IllegalMoveError(f"expected a move of {self.rules} such as r2c1+waste or draw, got {text!r}")
        return move


@lru_cache
def move_table(rules: Rules) -> MoveTable:
    """The (cached) table of all moves of some rules."""
    return MoveTable(rules)


def _all_moves(rules: Rules) -> Iterator[Move]:
    shape = geometry(rules.rows)
    places, piles = range(shape.places), range(rules.waste_piles)
    pairs = shape.pairs() + (shape.cover_pairs() if rules.overlap else [])
    yield from (Move(Kind.PLACE_PAIR, i, j) for i, j in sorted(pairs))
    yield from (Move(Kind.PLACE_WASTE, i, pile) for pile in piles for i in places)
    yield from (Move(Kind.PLACE_KING, i) for i in places)
    yield from (Move(Kind.WASTE_KING, pile) for pile in piles)
    if rules.stock_top:
        yield from (Move(Kind.PLACE_STOCK, i) for i in places)
        yield Move(Kind.STOCK_KING)
    if rules.pair_stock_waste:
        yield from (Move(Kind.STOCK_WASTE, pile) for pile in piles)
    if rules.pair_waste_two:
        yield from (Move(Kind.WASTE_TWO, pile) for pile in piles)
    if rules.pair_waste_tops:
        yield from (Move(Kind.WASTE_TOPS, *pair) for pair in combinations(piles, 2))
    yield Move(Kind.DRAW)


_PLACE: Final = re.compile(r"r([0-9]{1,2})c([0-9]{1,2})")


def _normal(text: str, waste_piles: int) -> str:
    """The spelling that Move.text gives: lower case, no spaces, places, then stock, then waste, smaller first."""
    if not isinstance(text, str):
        raise IllegalMoveError(f"expected a move as text, got {type(text).__name__}")
    parts = [part.strip().lower() for part in text.split("+")]
    if waste_piles == 1:
        parts = ["waste" if part == "waste1" else part for part in parts]
    else:
        parts = ["waste1" if part == "waste" else part for part in parts]
    if parts == ["recycle"]:
        return "draw"
    return "+".join(sorted(parts, key=_part_order))


def _part_order(part: str) -> tuple[int, int, str]:
    found = _PLACE.fullmatch(part)
    if found:
        return 0, place(int(found[1]), int(found[2])), ""
    zone = 1 if part == "stock" else 2
    digits = part.removeprefix("waste")
    return zone, int(digits) if re.fullmatch("[0-9]{1,2}", digits) else 0, part
