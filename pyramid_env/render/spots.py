"""Spots: the places of a table where cards lie, as short texts that pictures, marks and tables share.

``r7c3`` is row 7, column 3 of the pyramid; ``stock`` the stock; ``waste1`` the top of the first waste pile (always with
its number), ``waste1.1`` the card right under that top, ``waste1.2`` the one under that.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pyramid_env.moves import Kind, Move, move_table, place_text
from pyramid_env.rules import Rules

STOCK: Final = "stock"

_SPOT: Final = re.compile(r"r[1-9]c[1-9]|stock|waste[1-9][0-9]?(\.[1-9][0-9]?)?")


def is_spot(key: object) -> bool:
    """Is this the key of a spot? Whether a game has it is another question."""
    return isinstance(key, str) and _SPOT.fullmatch(key) is not None


def waste_spot(pile: int, depth: int = 0) -> str:
    """The spot of a card of a waste pile: ``pile`` from 0, ``depth`` cards lie on it."""
    return f"waste{pile + 1}.{depth}" if depth else f"waste{pile + 1}"


def spots_of(move: Move) -> tuple[str, ...]:
    """The spots whose cards a removal takes, one or two; ``("stock",)`` for a draw or recycle."""
    first, second = move.first, move.second
    match move.kind:
        case Kind.PLACE_PAIR:
            return place_text(first), place_text(second)
        case Kind.PLACE_WASTE:
            return place_text(first), waste_spot(second)
        case Kind.PLACE_KING:
            return (place_text(first),)
        case Kind.WASTE_KING:
            return (waste_spot(first),)
        case Kind.PLACE_STOCK:
            return place_text(first), STOCK
        case Kind.STOCK_WASTE:
            return STOCK, waste_spot(first)
        case Kind.WASTE_TWO:
            return waste_spot(first), waste_spot(first, 1)
        case Kind.WASTE_TOPS:
            return waste_spot(first), waste_spot(second)
        case _:
            return (STOCK,)


@lru_cache
def spots_of_actions(rules: Rules) -> tuple[tuple[str, ...], ...]:
    """For each action of some rules the spots whose cards it takes; nothing for the draw, which is the last."""
    return tuple(() if move.is_draw else spots_of(move) for move in move_table(rules))
