"""Pixels: the drawing of the SVG as an array of colours, with numpy alone; cards are drawn once a size and copied then.

Why not the SVG through a rasteriser: at 600 x 800 one core makes 400 to 850 of these pictures a second, by preset, and
14 to 20 through resvg, one of the fastest (benchmarks/bench_render.py prints both in one run); watching a training run
takes 60. And this needs no further package.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env.cards import Card
from pyramid_env.game import Game
from pyramid_env.render import faces, glyphs
from pyramid_env.render.appearance import Appearance
from pyramid_env.render.canvas import Canvas, Picture, Sprite, colour_of, paste
from pyramid_env.render.layout import LETTERS, Label, Spot, Style, layout
from pyramid_env.render.marks import Marks, marks_for
from pyramid_env.render.shapes import RANK_HEIGHT, RANK_PEN, RANKS, RECYCLE, STAR
from pyramid_env.render.view import Cards, View, look
from pyramid_env.rules import Rules

WIDTH: Final = 800
HEIGHT: Final = 600
SMALLEST: Final = 32
LARGEST: Final = 8192

_DEFAULT: Final = Appearance()


def rgb_array(
    position: Game | Rules | View,
    cards: Cards | None = None,
    state: NDArray[np.int64] | None = None,
    *,
    width: int = WIDTH,
    height: int = HEIGHT,
    appearance: Appearance = _DEFAULT,
    marks: Marks | None = None,
) -> Picture:
    """A position as a picture: what :func:`pyramid_env.render.svg` draws, no hidden card in it.

    Args:
        position: a Game, or the rules.
        cards: the deal's cards, with rules.
        state: (5,) position row, with rules.
        width: of the picture in pixels, 32 to 8192; the table is scaled to fit and centred.
        height: likewise.
        appearance: theme (``"auto"`` is light here), number of colours, size of the cards.
        marks: what to point out; None marks what can be removed, and for a Game what the last move touched.

    Returns:
        (height, width, 3) uint8, a new array; the same position gives the same picture.

    Raises:
        ValueError: a size that is none.
        TypeError: not a position.
    """
    for name, size in (("width", width), ("height", height)):
        check_pixels(name, size)
    view = look(position, cards, state)
    chosen = marks_for(position, view, marks)
    drawn = layout(view, large=appearance.large_cards, traces=chosen.last)
    scale = min(width / drawn.width, height / drawn.height)
    left, top = (width - scale * drawn.width) / 2, (height - scale * drawn.height) / 2
    picture = _blank(int(height), int(width), appearance.palette.table).copy()
    brush = _Brush(appearance, scale)
    recycles = view.can_recycle and not view.over
    for spot in drawn.spots:
        for sprite in _sprites(spot, chosen, brush, recycles):
            paste(picture, sprite, round(left + scale * spot.x), round(top + scale * spot.y))
    for label in drawn.labels:
        _write(picture, label, left, top, scale, appearance.palette.letter)
    return picture


def check_pixels(name: str, size: object) -> None:
    """ValueError unless this is a number of pixels that a picture can be wide or high."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not SMALLEST <= size <= LARGEST:
        raise ValueError(f"{name}: expected a whole number from {SMALLEST} to {LARGEST} pixels, got {size!r}")


class _Brush(NamedTuple):
    """What all cards of a picture have in common: the look, and pixels a card width."""

    appearance: Appearance
    scale: float


@lru_cache(maxsize=2)
def _blank(height: int, width: int, table: str) -> Picture:
    blank = np.tile(colour_of(table), (height, width, 1))
    blank.setflags(write=False)
    return blank


# ---- sprites ---------------------------------------------------------------------------------------------------------


def _sprites(spot: Spot, marks: Marks, brush: _Brush, recycles: bool) -> list[Sprite]:
    """A card and its marks, in the order of drawing."""
    marked = tuple(spot.key in kind for kind in (marks.playable, marks.hinted, marks.selected, marks.last))
    if spot.style is Style.EMPTY:
        return [_empty(brush, spot.key[0] == "r", marked, recycles and spot.key == "stock")]
    card = _card(spot.card, spot.style, spot.strip, brush)
    return [card, _signs(brush, marked)] if any(marked) else [card]


@lru_cache(maxsize=256)
def _card(card: Card | None, style: Style, strip: bool, brush: _Brush) -> Sprite:
    """One card of a size: shadow, ground, then what stands on it."""
    appearance, scale = brush
    palette = appearance.palette
    canvas = Canvas(scale, below=max(1, round(faces.SHADOW * scale)))
    canvas.box(0, faces.RADIUS, palette.shadow, down=faces.SHADOW)
    canvas.box(0, faces.RADIUS, palette.edge)
    ground = {Style.EXPOSED: palette.exposed, Style.COVERED: palette.covered}.get(style, palette.back)
    canvas.box(max(faces.EDGE, 1 / scale), faces.RADIUS - faces.EDGE, ground)
    if card is None:
        canvas.ring(faces.FRAME, faces.RADIUS * 0.6, 0.022, palette.back_figure, None)
        canvas.shape(faces.BACK_SHAPE, 0.5, 0.7, 1, palette.back_figure)
        return canvas.sprite()
    ink, face = appearance.ink(card.suit), faces.face(card, appearance.large_cards, strip)
    unit = face.rank_height / RANK_HEIGHT
    steps = (unit * face.rank_stretch, unit)
    canvas.pen(RANKS[card.rank - 1], face.rank_x, face.rank_y, steps, RANK_PEN * unit, ink)
    for figure in face.figures:
        canvas.shape(*figure, ink)
    return canvas.sprite()


@lru_cache(maxsize=32)
def _signs(brush: _Brush, marked: tuple[bool, ...]) -> Sprite:
    """The marks of a card: rings, and the signs in its corners."""
    palette, scale = brush.appearance.palette, brush.scale
    playable, hinted, selected, last = marked
    canvas = Canvas(scale, pad=max(2, round(0.2 * scale)))
    if selected:
        canvas.ring(faces.RING, faces.RADIUS, 0.1, palette.selected, None)
        canvas.ring(faces.INNER, faces.RADIUS * 0.5, 0.03, palette.selected, None)
    elif hinted:
        canvas.ring(faces.RING, faces.RADIUS, 0.085, palette.hinted, (0.17, 0.09))
    elif playable:
        canvas.ring(faces.RING, faces.RADIUS, 0.05, palette.playable, None)
    if last:
        x, y, size = faces.DOT
        canvas.shape(faces.DISC, x, y, size + 0.0125, palette.exposed)
        canvas.shape(faces.DISC, x, y, size - 0.0125, palette.last)
    if hinted:
        x, y, size = faces.STAR_AT
        canvas.shape(STAR, x, y, size * 1.15, palette.black)
        canvas.shape(STAR, x, y, size * 0.9, palette.hinted)
    return canvas.sprite()


@lru_cache(maxsize=32)
def _empty(brush: _Brush, trace: bool, marked: tuple[bool, ...], recycles: bool) -> Sprite:
    """The outline of an empty pile, or of a place whose card has just left."""
    palette = brush.appearance.palette
    playable, hinted, selected, last = marked
    canvas = Canvas(brush.scale, pad=max(1, round(0.06 * brush.scale)))
    colour, thick = (palette.letter, 0.035) if last else (palette.empty, 0.025)
    canvas.ring(0.04, faces.RADIUS, thick, colour, (0.06, 0.08) if trace else (0.09, 0.07))
    if recycles:
        canvas.pen(RECYCLE, 0.5, 0.7, (faces.RECYCLE_SIZE,) * 2, 0.26 * faces.RECYCLE_SIZE, palette.empty)
    if selected:
        canvas.ring(faces.RING, faces.RADIUS, 0.1, palette.selected, None)
    elif hinted:
        canvas.ring(faces.RING, faces.RADIUS, 0.085, palette.hinted, (0.17, 0.09))
    elif playable:
        canvas.ring(faces.RING, faces.RADIUS, 0.05, palette.playable, None)
    return canvas.sprite()


# ---- labels ----------------------------------------------------------------------------------------------------------


def _write(picture: Picture, label: Label, left: float, top: float, scale: float, colour: str) -> None:
    """Letters smaller than a few pixels can't be read and are left out."""
    letters = round(scale * label.size * LETTERS)
    if letters < 5:
        return
    sprite = _words(label.text, letters, colour)
    x = left + scale * label.x - (label.anchor + 1) / 2 * sprite.face.shape[1]
    paste(picture, sprite, round(x), round(top + scale * label.y - letters / 2))


@lru_cache(maxsize=256)
def _words(text: str, letters: int, colour: str) -> Sprite:
    cover = glyphs.words(text, letters)
    of_256 = np.round(cover * 256)[..., None]
    face = np.broadcast_to(colour_of(colour), (*cover.shape, 3))
    return Sprite(face, (face * of_256).astype(np.uint16), (256 - of_256).astype(np.uint16), slice(0, 0), 0, 0)
