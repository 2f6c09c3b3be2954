"""Text: a position as a pyramid of card names, plain or in a terminal's colours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Final, TextIO

import numpy as np
from numpy.typing import NDArray

from pyramid_env.cards import SUIT_LETTERS, Card
from pyramid_env.game import Game
from pyramid_env.render.view import Cards, Pile, Place, View, look
from pyramid_env.rules import Rules

CELL: Final = 4
"""Characters of a card's cell: ``[8d]`` exposed, `` 8d `` covered, ``  . `` gone."""

PILES_A_LINE: Final = 4

_RED_SUITS: Final = (SUIT_LETTERS.index("d"), SUIT_LETTERS.index("h"))
_BOLD, _DIM, _RED, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[0m"


def text(
    position: Game | Rules | View,
    cards: Cards | None = None,
    state: NDArray[np.int64] | None = None,
    *,
    colour: bool | None = False,
) -> str:
    """A position as text, some lines without a final line break.

    Exposed cards, the open tops included, stand in brackets; a dot is a card that left. Hidden cards do not show.

    Args:
        position: a Game, or the rules.
        cards: the deal's cards, with rules.
        state: (5,) position row, with rules.
        colour: red suits, bold exposed cards, faint covered ones, as ANSI sequences. ``None`` asks :func:`has_colour`.
    """
    view = look(position, cards, state)
    paint = has_colour() if colour is None else colour
    lines = [view.title, "", *_pyramid(view, paint), "", *_piles(view, paint), _standing(view)]
    return "\n".join(lines)


def one_line(position: Game | Rules | View, cards: Cards | None = None, state: NDArray[np.int64] | None = None) -> str:
    """What lies open in one line: rows from the apex (``.`` = gone), stock, waste tops, pass."""
    view = look(position, cards, state)
    rows = "/".join(" ".join(str(place.card or ".") for place in row) for row in view.rows)
    top = f" {view.stock_top}" if view.stock_top else ""
    wastes = " ".join(f"{' '.join(map(str, pile.cards)) or '-'}({pile.size})" for pile in view.piles)
    return f"{rows} | stock{top}({view.stock_count}) | waste {wastes} | {view.pass_text}"


def has_colour(stream: TextIO | None = None) -> bool:
    """Should colours be written to a stream (standard output if none is given)? Only to a terminal that shows them, and
    not where the environment variable NO_COLOR is set."""
    out = sys.stdout if stream is None else stream
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return out.isatty()


def _pyramid(view: View, paint: bool) -> Iterator[str]:
    for above, row in zip(range(len(view.rows), 0, -1), view.rows, strict=True):
        cells = [_cell(place, paint) for place in row]
        yield (" " * (CELL // 2 * (above - 1)) + "".join(cells)).rstrip()


def _cell(place: Place, paint: bool) -> str:
    if place.card is None:
        return f"  {_DIM}.{_RESET} " if paint else "  . "
    return _card(place.card, place.exposed, paint)


def _card(card: Card, exposed: bool, paint: bool) -> str:
    name = f"[{card}]" if exposed else str(card)
    if paint:
        name = f"{_BOLD if exposed else _DIM}{_RED if card.suit in _RED_SUITS else ''}{name}{_RESET}"
    return name if exposed else f" {name} "


def _piles(view: View, paint: bool) -> Iterator[str]:
    """The stock, then the waste piles: on the same line if there is one, else a few a line; fanned piles one a line."""
    stock = _stock(view, paint)
    piles = [_pile(pile, paint) for pile in view.piles]
    if view.rules.stock_size == 0:
        return
    if len(piles) == 1 and not view.rules.nothing_hidden:
        yield f"{stock}   waste {piles[0]}"
        return
    if view.has_stock:
        yield stock
    a_line = 1 if view.rules.nothing_hidden else PILES_A_LINE
    named = [f"waste{'' if len(piles) == 1 else number} {pile}" for number, pile in enumerate(piles, 1)]
    for start in range(0, len(named), a_line):
        yield "   ".join(named[start : start + a_line])


def _stock(view: View, paint: bool) -> str:
    if view.stock_top:
        return f"stock {_card(view.stock_top, True, paint)} of {view.stock_count}"
    return f"stock {view.stock_count}{' (recycle)' if view.can_recycle and not view.over else ''}"


def _pile(pile: Pile, paint: bool) -> str:
    if not pile.cards:
        return "-"
    *under, top = pile.cards
    shown = "".join([_card(card, False, paint) for card in under] + [_card(top, True, paint)])
    shown = shown.lstrip()
    return shown if pile.size == len(pile.cards) else f"{shown} of {pile.size}"


def _standing(view: View) -> str:
    scoring = {"par": "par", "msc": "points", "none": "score"}[view.rules.scoring]
    parts = [view.pass_text, f"{scoring} {view.score}", f"{_count(view.cards_left, 'card')} left"]
    if view.moves is not None:
        parts.append(_count(view.moves, "move"))
    if view.end_text:
        parts.append(view.end_text)
    return "   ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
