"""SVG: a position as a picture for notebooks and web pages, with the same words for readers who hear it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from pyramid_env.cards import Card
from pyramid_env.game import Game
from pyramid_env.render import faces, glyphs
from pyramid_env.render.appearance import Appearance
from pyramid_env.render.layout import LETTERS, Label, Layout, Spot, Style, layout
from pyramid_env.render.marks import Marks, marks_for
from pyramid_env.render.shapes import SUITS
from pyramid_env.render.spots import STOCK
from pyramid_env.render.style import root_class, style
from pyramid_env.render.view import Cards, View, look
from pyramid_env.rules import Rules

__all__ = ["SUITS", "card_words", "svg"]

UNIT: Final = 64
"""Pixels of a card's width at the natural size."""

RANK_WORDS: Final = ("ace", "2", "3", "4", "5", "6", "7", "8", "9", "10", "jack", "queen", "king")
SUIT_WORDS: Final = ("clubs", "diamonds", "hearts", "spades")

CAPITALS: Final = 0.73
"""Height of capital letters as a share of a font's size."""

_DEFAULT: Final = Appearance()
_MARKS: Final = ("playable", "hinted", "selected", "last")


def svg(
    position: Game | Rules | View,
    cards: Cards | None = None,
    state: NDArray[np.int64] | None = None,
    *,
    appearance: Appearance = _DEFAULT,
    marks: Marks | None = None,
    interactive: bool = False,
) -> str:
    """A position as an SVG picture; no hidden card is in it.

    Each card is a group ``<g class="pyr-card pyr-exposed pyr-playable" data-spot="r7c3" data-card="Kd" ...>``. Its
    classes tell how it lies (``pyr-exposed``, ``pyr-covered``, ``pyr-back``, ``pyr-empty``) and its marks
    (``pyr-playable``, ``pyr-hinted``, ``pyr-selected``, ``pyr-last``); ``data-card`` is empty for backs and empty
    piles. Groups stand in the order of drawing; spots are named as in :mod:`pyramid_env.render.spots`.

    Args:
        position: a Game, or the rules.
        cards: the deal's cards, with rules.
        state: (5,) position row, with rules.
        appearance: theme, number of colours, size of the cards.
        marks: what to point out; None marks what can be removed, and for a Game what the last move touched.
        interactive: for a page where cards are chosen: cards that can be chosen are buttons with a spoken name, the
            others pictures with one; without tooltips, title line, last line, width and height. Giving a group the
            class ``pyr-selected`` or ``pyr-hinted`` changes its look.

    Raises:
        TypeError: not a position.
    """
    view = look(position, cards, state)
    return draw(view, marks_for(position, view, marks), appearance, interactive=interactive)


def draw(
    view: View, chosen: Marks, appearance: Appearance, *, interactive: bool = False, outlined: bool = False
) -> str:
    """As :func:`svg`; ``outlined`` draws the labels from lines of our own, for a rasteriser without fonts."""
    drawn = layout(view, large=appearance.large_cards, bare=interactive, traces=chosen.last)
    width, height = f"{drawn.width:.2f}", f"{drawn.height:.2f}"
    box = f'viewBox="0 0 {width} {height}"'
    words = escape(_describe(view, drawn))
    if interactive:
        name = escape(f"{view.title}: the table", {'"': "&quot;"})
        head = f'class="{root_class(appearance)}" role="group" aria-label="{name}" {box}>'
    else:
        size = f'width="{drawn.width * UNIT:.0f}" height="{drawn.height * UNIT:.0f}"'
        head = (
            f'class="{root_class(appearance)}" role="img" {size} {box}>\n'
            f"<title>Pyramid solitaire: {escape(view.title)}</title>\n<desc>{words}</desc>"
        )
    recycles = view.can_recycle and not view.over
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {head}',
        f"<style>{style(appearance, interactive)}</style>",
        f'<rect class="pyr-table" width="{width}" height="{height}" rx=".15"/>',
        *(
            _card(s, _marked(s.key, chosen), appearance.large_cards, interactive, recycles and s.key == STOCK)
            for s in drawn.spots
        ),
        *(_outlined(label) if outlined else _label(label, interactive) for label in drawn.labels),
        "</svg>",
    ]
    return "\n".join(parts)


@lru_cache(maxsize=64)
def card_words(card: Card) -> str:
    """``"10 of spades"``."""
    return f"{RANK_WORDS[card.rank - 1]} of {SUIT_WORDS[card.suit]}"


def _describe(view: View, drawn: Layout) -> str:
    """The position in words: what can be taken, what lies below and what covers it, the piles, how it stands."""
    taken = [f"{card_words(s.card)} ({s.note})" for s in drawn.spots if s.card and s.style is Style.EXPOSED]
    under = [
        f"{card_words(s.card)} ({s.note}) under {' and '.join(map(card_words, s.covers))}"
        for s in drawn.spots
        if s.card and s.style is Style.COVERED
    ]
    wastes = ", ".join(str(pile.size) for pile in view.piles)
    standing = f"{view.pass_text}, score {view.score}, {view.cards_left} cards left"
    return (
        f"Exposed: {', '.join(taken) or 'none'}. Covered: {', '.join(under) or 'none'}. "
        f"Stock: {view.stock_count} cards. Waste: {wastes}. {standing}{', ' + view.end_text if view.end_text else ''}."
    )


def spot_words(spot: Spot, marked: tuple[str, ...], recycles: bool = False) -> str:
    """A card in words: its name, how it lies and where, what covers it, its marks."""
    if spot.card is None:
        empty = "empty, turn the waste over" if recycles else spot.style.value
        return ", ".join([spot.note, empty, *(_MARK_WORDS[mark] for mark in marked)])
    lies = f"covered by {' and '.join(map(card_words, spot.covers))}" if spot.covers else spot.style.value
    return ", ".join([card_words(spot.card), lies, spot.note, *(_MARK_WORDS[mark] for mark in marked)])


_MARK_WORDS: Final = {"playable": "playable", "hinted": "hinted", "selected": "selected", "last": "last move"}


def _marked(key: str, marks: Marks) -> tuple[str, ...]:
    return tuple(name for name in _MARKS if key in getattr(marks, name))


@lru_cache(maxsize=4096)  # most cards lay there in the position before: 1.1 to 1.5 times the pictures a second
def _card(spot: Spot, marked: tuple[str, ...], large: bool, interactive: bool, recycles: bool) -> str:
    trace = spot.style is Style.EMPTY and spot.key[0] == "r"
    kinds = " ".join(
        [f"pyr-{spot.style.name.lower()}", *(["pyr-trace"] if trace else []), *map("pyr-{}".format, marked)]
    )
    words = spot_words(spot, marked, recycles)
    if not interactive:
        told = f"><title>{words}</title>"
    elif trace:
        told = ' aria-hidden="true">'
    elif spot.style is Style.COVERED and "playable" not in marked:
        told = f' role="img" aria-label="{words}">'
    else:
        told = f' role="button" tabindex="-1" aria-label="{words}">'
    name = "" if spot.card is None else str(spot.card)
    inside = _inside(spot, large, recycles)
    signs = _ALL_SIGNS if interactive else "".join(_SIGNS[mark] for mark in marked)
    return (
        f'<g class="pyr-card {kinds}" data-spot="{spot.key}" data-card="{name}" '
        f'transform="translate({spot.x:.3f} {spot.y:.3f})"{told}{inside}{signs}</g>'
    )


def _inside(spot: Spot, large: bool, recycles: bool) -> str:
    if spot.card is not None:
        return faces.GROUND + faces.face_svg(spot.card, large, spot.strip)
    if spot.style is Style.BACK:
        return faces.GROUND + faces.BACK
    return faces.OUTLINE + (faces.RECYCLE_SVG if recycles else "")


_SIGNS: Final = {
    "playable": faces.RING_SVG,
    "hinted": faces.RING_SVG + faces.STAR_SVG,
    "selected": faces.RING_SVG + faces.INNER_SVG,
    "last": faces.DOT_SVG,
}
_ALL_SIGNS: Final = faces.RING_SVG + faces.INNER_SVG + faces.FOCUS_SVG + faces.DOT_SVG + faces.STAR_SVG


def _label(label: Label, interactive: bool) -> str:
    anchor = ("middle", "end", "start")[label.anchor]
    letters = LETTERS * label.size
    hidden = ' aria-hidden="true"' if interactive else ""
    return (
        f'<text class="pyr-label" x="{label.x:.3f}" y="{label.y + letters / 2:.3f}" '
        f'font-size="{letters / CAPITALS:.3f}" text-anchor="{anchor}"{hidden}>{escape(label.text)}</text>'
    )


def _outlined(label: Label) -> str:
    """A label as lines of a pen, the capitals that :mod:`pyramid_env.render.pixels` writes."""
    height = LETTERS * label.size
    thick = glyphs.WEIGHT * height
    unit = (height - thick) / glyphs.GRID_HEIGHT
    step = (glyphs.GRID_WIDTH + glyphs.SPACING) * unit
    left = label.x - (label.anchor + 1) / 2 * (step * len(label.text) - glyphs.SPACING * unit)
    top = label.y - (height - thick) / 2
    lines = []
    for at, letter in enumerate(label.text.upper()):
        for line in glyphs.STROKES.get(letter, "").split("|"):
            points = [f"{left + at * step + int(p[0]) * unit:.3f} {top + int(p[1]) * unit:.3f}" for p in line.split()]
            lines.append("M" + "L".join(points) if points else "")
    return f'<path class="pyr-strokes" stroke-width="{thick:.3f}" d="{"".join(lines)}"/>'
