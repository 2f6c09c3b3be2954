"""Faces: the inside of each card's SVG group, made once and kept as text; a card is 1 wide and 1.4 high."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from pyramid_env.cards import SUIT_LETTERS, Card
from pyramid_env.render.layout import CARD_HEIGHT, CARD_WIDTH
from pyramid_env.render.shapes import (
    CROWNS,
    RANK_HEIGHT,
    RANK_PEN,
    RANK_WIDTHS,
    RANKS,
    RECYCLE,
    STAR,
    SUITS,
    ellipse,
)

# Lengths in card widths.
RADIUS: Final = 0.11
"""Of a card's corners."""

EDGE: Final = 0.02
"""Thickness of the line around a face."""

SHADOW: Final = 0.035
"""How far the shadow lies below the card."""

FRAME: Final = 0.09
"""Distance of a back's border from its edge."""

BACK_COLUMNS: Final = 4
BACK_ROWS: Final = 6
"""Lozenges of a back."""

RING: Final = 0.0
INNER: Final = 0.085
"""Distance of the mark's two lines from the card's edge, inwards."""

DOT: Final = (0.85, 1.25, 0.085)
"""Of the mark for the last move: centre and radius."""

STAR_AT: Final = (0.87, 0.02, 0.17)
"""Of a hint's mark: centre and half its height."""

RECYCLE_SIZE: Final = 0.24
"""Half the height of the arrow on a stock that can be turned over."""


class Figure(NamedTuple):
    """A part of a face: a shape of :mod:`pyramid_env.render.shapes` with its middle at (x, y), ``size`` its half
    height."""

    shape: str
    x: float
    y: float
    size: float


class Face(NamedTuple):
    """The parts of a face: the rank (left upper corner, height, and how much narrower than high), then filled ones."""

    rank_x: float
    rank_y: float
    rank_height: float
    rank_stretch: float
    figures: tuple[Figure, ...]


@lru_cache(maxsize=512)
def face(card: Card, large: bool, strip: bool) -> Face:
    """What stands on a card: rank and suit in the strip that two covers leave free; below a large suit, under a cap or
    crown for jack, queen and king.

    Args:
        card: the card.
        large: rank and suit of the strip are half as large again.
        strip: the strip alone: of a card under two covers no more can be seen than a slit, which would show splinters.
    """
    height, left, top = (0.43, 0.11, 0.1) if large else (0.31, 0.12, 0.12)
    stretch = (0.47 if large else 0.4) / (RANK_WIDTHS[card.rank - 1] * height / RANK_HEIGHT)
    suit = SUITS[card.suit]
    figures = [Figure(suit, 0.745 if large else 0.765, top + height / 2, 0.19 if large else 0.145)]
    low = 0.03 if large else 0.0
    if strip:
        pass
    elif card.rank in CROWNS:
        figures += [Figure(suit, 0.5, 1.09 + low, 0.21), Figure(CROWNS[card.rank], 0.5, 0.74 + low, 0.15)]
    else:
        figures.append(Figure(suit, 0.5, 0.97 + low, 0.29))
    return Face(left, top, height, min(1.0, stretch), tuple(figures))


def _path(shape: str, x: float, y: float, size: float, kind: str) -> str:
    return f'<path class="{kind}" transform="translate({x:g} {y:g}) scale({size:g})" d="{shape}"/>'


@lru_cache(maxsize=512)
def face_svg(card: Card, large: bool, strip: bool) -> str:
    """A card face as SVG, without its ground."""
    parts = face(card, large, strip)
    scale = parts.rank_height / RANK_HEIGHT
    rank = (
        f'<path class="pyr-rank" transform="translate({parts.rank_x:g} {parts.rank_y:g}) '
        f'scale({scale * parts.rank_stretch:.4f} {scale:.4f})" stroke-width="{RANK_PEN}" d="{RANKS[card.rank - 1]}"/>'
    )
    figures = "".join(_path(*figure, "pyr-suit") for figure in parts.figures)
    return f'<g class="pyr-{SUIT_LETTERS[card.suit]}">{rank}{figures}</g>'


def _box(kind: str, inset: float, radius: float, more: str = "", down: float = 0.0) -> str:
    width, height = CARD_WIDTH - 2 * inset, CARD_HEIGHT - 2 * inset
    return (
        f'<rect class="{kind}" x="{inset:g}" y="{inset + down:g}" width="{width:g}" height="{height:g}" '
        f'rx="{radius:g}"{more}/>'
    )


GROUND: Final = _box("pyr-shadow", 0, RADIUS, down=SHADOW) + _box(
    "pyr-face", EDGE / 2, RADIUS, f' stroke-width="{EDGE}"'
)
OUTLINE: Final = _box("pyr-outline", 0.04, RADIUS)


def _lozenges() -> str:
    """The figure of a back, in a square from -1 to 1 around the middle of the card."""
    left, top = FRAME + 0.04, FRAME + 0.04
    width, height = (CARD_WIDTH - 2 * left) / BACK_COLUMNS, (CARD_HEIGHT - 2 * top) / BACK_ROWS
    parts = []
    for row in range(BACK_ROWS):
        for column in range(BACK_COLUMNS):
            x, y = left + (column + 0.5) * width - CARD_WIDTH / 2, top + (row + 0.5) * height - CARD_HEIGHT / 2
            across, down = width * 0.42, height * 0.42
            corners = ((x, y - down), (x + across, y), (x, y + down), (x - across, y))
            parts.append("M" + "L".join(f"{cx:.3f} {cy:.3f}" for cx, cy in corners) + "Z")
    return "".join(parts)


BACK_SHAPE: Final = _lozenges()
DISC: Final = ellipse(0, 0, 1, 1)
BACK: Final = (
    _box("pyr-border", FRAME, RADIUS * 0.6, ' stroke-width=".022"')
    + f'<path class="pyr-figure" transform="translate(.5 .7)" d="{BACK_SHAPE}"/>'
)
RING_SVG: Final = _box("pyr-ring", RING, RADIUS)
INNER_SVG: Final = _box("pyr-inner", INNER, RADIUS * 0.5)
FOCUS_SVG: Final = _box("pyr-focus", -0.07, RADIUS + 0.07)
DOT_SVG: Final = f'<circle class="pyr-dot" cx="{DOT[0]}" cy="{DOT[1]}" r="{DOT[2]}" stroke-width=".025"/>'
STAR_SVG: Final = (
    f'<path class="pyr-star" transform="translate({STAR_AT[0]} {STAR_AT[1]}) scale({STAR_AT[2]})" '
    f'stroke-width=".12" stroke-linejoin="round" d="{STAR}"/>'
)
RECYCLE_SVG: Final = (
    f'<path class="pyr-pen" transform="translate(.5 .7) scale({RECYCLE_SIZE})" stroke-width=".26" d="{RECYCLE}"/>'
)
