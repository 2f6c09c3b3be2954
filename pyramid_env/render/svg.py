"""SVG: a position as a picture for notebooks and web pages, with the same words for readers who hear it."""

from __future__ import annotations

from typing import Final
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from pyramid_env.cards import Card
from pyramid_env.game import Game
from pyramid_env.render.layout import CARD_HEIGHT, CARD_WIDTH, LETTERS, Label, Layout, Spot, Style, layout
from pyramid_env.render.view import Cards, View, look
from pyramid_env.rules import Rules

UNIT: Final = 64
"""Pixels of a card's width at the natural size."""

RANK_WORDS: Final = ("ace", "2", "3", "4", "5", "6", "7", "8", "9", "10", "jack", "queen", "king")
SUIT_WORDS: Final = ("clubs", "diamonds", "hearts", "spades")

# Colours: table, letters, then of cards.
TABLE: Final = "#1f6b4a"
LETTER: Final = "#f4f1e6"
INK: Final = ("#1c1c1c", "#c02026", "#c02026", "#1c1c1c")
FACE: Final = {Style.EXPOSED: "#ffffff", Style.COVERED: "#cfd3cf"}
EDGE: Final = {Style.EXPOSED: "#e0a100", Style.COVERED: "#7d857f", Style.BACK: "#e8e8f0", Style.EMPTY: "#6fae92"}
BACK: Final = "#33508c"

# Suits in a square from -1 to 1, y downwards; paths, since not every font has the symbols.
_STEM: Final = "M0 .1C-.02 .6-.15 .85-.4 1H.4C.15 .85 .02 .6 0 .1Z"
SUITS: Final = (
    f"M-.42-.5A.42 .42 0 1 1 .42-.5A.42 .42 0 0 1 .24-.15A.45 .45 0 1 1 .1 .4L-.1 .4A.45 .45 0 1 1-.24-.15"
    f"A.42 .42 0 0 1-.42-.5Z{_STEM}",
    "M0-1L.76 0L0 1L-.76 0Z",
    "M0 1C-.3 .5-1 .1-1-.42C-1-.8-.75-1-.5-1C-.25-1-.08-.82 0-.58C.08-.82 .25-1 .5-1C.75-1 1-.8 1-.42C1 .1 .3 .5 0 1Z",
    f"M0-1C.3-.55 1-.2 1 .28C1 .6 .76 .76 .52 .76C.28 .76 .08 .62 0 .4C-.08 .62-.28 .76-.52 .76"
    f"C-.76 .76-1 .6-1 .28C-1-.2-.3-.55 0-1Z{_STEM}",
)
CAPITALS: Final = 0.73
"""Height of capital letters as a share of a font's size."""

_FONT: Final = "font-family=\"'DejaVu Sans',Verdana,Arial,sans-serif\""


def svg(position: Game | Rules | View, cards: Cards | None = None, state: NDArray[np.int64] | None = None) -> str:
    """A position as an SVG picture: covered cards grey, exposed ones white with a golden edge, no hidden card in it.

    Args:
        position: a Game, or the rules.
        cards: the deal's cards, with rules.
        state: (5,) position row, with rules.
    """
    view = look(position, cards, state)
    drawn = layout(view)
    width, height = drawn.width, drawn.height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width * UNIT:.0f}" height="{height * UNIT:.0f}" '
        f'viewBox="0 0 {width:.2f} {height:.2f}">',
        f"<title>Pyramid solitaire: {escape(view.title)}</title>",
        f"<desc>{escape(_describe(view, drawn))}</desc>",
        f'<rect width="{width:.2f}" height="{height:.2f}" rx=".15" fill="{TABLE}"/>',
        *(_card(spot) for spot in drawn.spots),
        *(_label(label) for label in drawn.labels),
        "</svg>",
    ]
    return "\n".join(parts)


def card_words(card: Card) -> str:
    """``"10 of spades"``."""
    return f"{RANK_WORDS[card.rank - 1]} of {SUIT_WORDS[card.suit]}"


def _describe(view: View, drawn: Layout) -> str:
    """The position in words: what can be taken, what lies below, the piles, how it stands."""
    taken = [f"{card_words(s.card)} ({s.note})" for s in drawn.spots if s.card and s.style is Style.EXPOSED]
    under = [card_words(s.card) for s in drawn.spots if s.card and s.style is Style.COVERED]
    wastes = ", ".join(str(pile.size) for pile in view.piles)
    standing = f"{view.pass_text}, score {view.score}, {view.cards_left} cards left"
    return (
        f"Exposed: {', '.join(taken) or 'none'}. Covered: {', '.join(under) or 'none'}. "
        f"Stock: {view.stock_count} cards. Waste: {wastes}. {standing}{', ' + view.end_text if view.end_text else ''}."
    )


def _card(spot: Spot) -> str:
    edge = EDGE[spot.style]
    inset = 0.02
    words = (
        f"{card_words(spot.card)}, {spot.style.value}, {spot.note}" if spot.card else f"{spot.note}, {spot.style.value}"
    )
    fill = BACK if spot.style is Style.BACK else "none" if spot.style is Style.EMPTY else FACE[spot.style]
    dashes = ' stroke-dasharray=".1 .08"' if spot.style is Style.EMPTY else ""
    thick = 0.045 if spot.style is Style.EXPOSED else 0.025
    parts = [
        f'<g class="{spot.style.name.lower()}" transform="translate({spot.x:.3f} {spot.y:.3f})"><title>{words}</title>',
        f'<rect x="{inset}" y="{inset}" width="{CARD_WIDTH - 2 * inset:.2f}" height="{CARD_HEIGHT - 2 * inset:.2f}" '
        f'rx=".1" fill="{fill}" stroke="{edge}" stroke-width="{thick}"{dashes}/>',
    ]
    if spot.style is Style.BACK:
        parts.append(f'<path d="M.5 .25L.85 .7L.5 1.15L.15 .7Z" fill="none" stroke="{edge}" stroke-width=".04"/>')
    if spot.card:
        parts.append(_face(spot.card))
    return "".join([*parts, "</g>"])


def _face(card: Card) -> str:
    """Rank and suit along the upper edge, which no cover hides, and a large suit below."""
    rank = card.symbol[:-1]
    ink = INK[card.suit]
    size = 0.36 if len(rank) > 1 else 0.46
    return (
        f'<text x=".09" y=".46" {_FONT} font-size="{size}" font-weight="bold" fill="{ink}">{rank}</text>'
        f'<path transform="translate(.75 .3) scale(.15)" fill="{ink}" d="{SUITS[card.suit]}"/>'
        f'<path transform="translate(.5 .95) scale(.27)" fill="{ink}" d="{SUITS[card.suit]}"/>'
    )


def _label(label: Label) -> str:
    anchor = ("middle", "end", "start")[label.anchor]
    letters = LETTERS * label.size
    return (
        f'<text x="{label.x:.3f}" y="{label.y + letters / 2:.3f}" {_FONT} font-size="{letters / CAPITALS:.3f}" '
        f'fill="{LETTER}" text-anchor="{anchor}" xml:space="preserve">{escape(label.text)}</text>'
    )
