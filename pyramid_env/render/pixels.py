"""Pixels: a position as an array of colours, with numpy alone; cards are drawn once a size and copied from then on."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env.cards import Card
from pyramid_env.game import Game
from pyramid_env.render import glyphs
from pyramid_env.render.layout import CARD_HEIGHT, CARD_WIDTH, LETTERS, Label, Style, layout
from pyramid_env.render.svg import BACK, EDGE, FACE, INK, LETTER, TABLE
from pyramid_env.render.view import Cards, View, look
from pyramid_env.rules import Rules

WIDTH: Final = 800
HEIGHT: Final = 600
SMALLEST: Final = 32
LARGEST: Final = 8192

Picture = NDArray[np.uint8]
"""(H, W, 3) red, green, blue."""


def rgb_array(
    position: Game | Rules | View,
    cards: Cards | None = None,
    state: NDArray[np.int64] | None = None,
    *,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> Picture:
    """A position as a picture: covered cards grey, exposed ones white with a golden edge, no hidden card in it.

    Args:
        position: a Game, or the rules.
        cards: the deal's cards, with rules.
        state: (5,) position row, with rules.
        width: of the picture in pixels, 32 or more; the table is scaled to fit and centred.
        height: likewise.

    Returns:
        (height, width, 3) uint8, a new array; the same position gives the same picture.
    """
    for name, size in (("width", width), ("height", height)):
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or not SMALLEST <= size <= LARGEST:
            raise ValueError(f"{name}: expected a whole number from {SMALLEST} to {LARGEST} pixels, got {size!r}")
    drawn = layout(look(position, cards, state))
    scale = min(width / drawn.width, height / drawn.height)
    left, top = (width - scale * drawn.width) / 2, (height - scale * drawn.height) / 2
    picture = _blank(int(height), int(width)).copy()
    card_height, card_width = max(1, round(scale * CARD_HEIGHT)), max(1, round(scale * CARD_WIDTH))
    for spot in drawn.spots:
        sprite = _card(spot.card, spot.style, card_height, card_width)
        _paste(picture, sprite, round(left + scale * spot.x), round(top + scale * spot.y))
    for label in drawn.labels:
        _write(picture, label, left, top, scale)
    return picture


@lru_cache(maxsize=2)
def _blank(height: int, width: int) -> Picture:
    blank = np.tile(_colour(TABLE), (height, width, 1))
    blank.setflags(write=False)
    return blank


def _colour(hexadecimal: str) -> NDArray[np.uint8]:
    return np.frombuffer(bytes.fromhex(hexadecimal.removeprefix("#")), np.uint8)


class _Sprite(NamedTuple):
    """Something drawn once: its colours, and how much of the picture shines through."""

    face: NDArray[np.uint8]  # (h, w, 3)
    share: NDArray[np.uint16]  # (h, w, 3) face times its coverage, of 256
    keep: NDArray[np.uint16]  # (h, w, 1) what shines through, of 256
    solid: slice  # rows that cover all under them: nearly all of a card, and copied without mixing


def _sprite(colours: NDArray[np.float32], cover: glyphs.Coverage) -> _Sprite:
    of_256 = np.round(cover * 256)[..., None]
    rows = np.flatnonzero(cover.min(axis=1) == 1)
    solid = slice(int(rows[0]), int(rows[-1]) + 1) if rows.size else slice(0, 0)
    arrays = (
        np.round(colours).astype(np.uint8),
        np.round(colours * of_256).astype(np.uint16),
        (256 - of_256).astype(np.uint16),
    )
    for array in arrays:
        array.setflags(write=False)
    return _Sprite(*arrays, solid)


def _paste(picture: Picture, sprite: _Sprite, x: int, y: int) -> None:
    """Lay a sprite over a picture, its upper left corner at (x, y); what lies outside the picture is cut off."""
    height, width = sprite.face.shape[:2]
    before, columns = max(0, -x), slice(max(0, x), max(0, x + width))
    solid = sprite.solid
    for rows in (slice(0, solid.start), solid, slice(solid.stop, height)):
        start, stop = max(rows.start, -y), min(rows.stop, picture.shape[0] - y)
        if start >= stop:
            continue
        room = picture[y + start : y + stop, columns]
        cut = slice(start, stop), slice(before, before + room.shape[1])
        room[:] = sprite.face[cut] if rows is solid else (room * sprite.keep[cut] + sprite.share[cut]) >> 8


def _write(picture: Picture, label: Label, left: float, top: float, scale: float) -> None:
    """Letters smaller than a few pixels can't be read and are left out."""
    letters = round(scale * label.size * LETTERS)
    if letters < 5:
        return
    sprite = _words(label.text, letters)
    x = left + scale * label.x - (label.anchor + 1) / 2 * sprite.face.shape[1]
    _paste(picture, sprite, round(x), round(top + scale * label.y - letters / 2))


@lru_cache(maxsize=256)
def _words(text: str, letters: int) -> _Sprite:
    cover = glyphs.words(text, letters)
    return _sprite(np.broadcast_to(_colour(LETTER), (*cover.shape, 3)).astype(np.float32), cover)


@lru_cache(maxsize=256)
def _card(card: Card | None, style: Style, height: int, width: int) -> _Sprite:
    """One card of a size: an edge, the face within it, rank and suit along the upper edge, a large suit below."""
    edge = max(1.0, width * (0.05 if style is Style.EXPOSED else 0.025))
    radius = width * 0.11
    outer = glyphs.rounded(height, width, radius)
    inner = glyphs.rounded(height, width, max(radius - edge, 0.5), edge)
    face = np.empty((height, width, 3), np.float32)
    face[:] = _colour(EDGE[style])
    if style is Style.EMPTY:
        return _sprite(face, outer * (1 - inner))
    _tint(face, inner, BACK if style is Style.BACK else FACE[style], 0, 0)
    if card is None:
        _tint(face, glyphs.suit(1, max(1, round(width * 0.8))), EDGE[style], round(width * 0.1), round(height * 0.22))
        _tint(face, glyphs.suit(1, max(1, round(width * 0.7))), BACK, round(width * 0.15), round(height * 0.257))
        return _sprite(face, outer)
    _draw_face(face, card)
    return _sprite(face, outer)


def _draw_face(face: NDArray[np.float32], card: Card) -> None:
    height, width = face.shape[:2]
    ink, rank = INK[card.suit], card.symbol[:-1]
    letters = max(3, round(width * 0.36))
    stretch = 0.72 if len(rank) > 1 else 1.0
    _tint(face, glyphs.words(rank, letters, 0.16, stretch), ink, round(width * 0.1), round(width * 0.11))
    small, large = max(1, round(width * 0.32)), max(1, round(width * 0.56))
    _tint(face, glyphs.suit(card.suit, small), ink, round(width * 0.6), round(width * 0.13))
    _tint(face, glyphs.suit(card.suit, large), ink, round((width - large) / 2), round(height * 0.68 - large / 2))


def _tint(face: NDArray[np.float32], cover: glyphs.Coverage, colour: str, x: int, y: int) -> None:
    room = face[y : y + cover.shape[0], x : x + cover.shape[1]]
    share = cover[: room.shape[0], : room.shape[1], None]
    room[:] = room * (1 - share) + _colour(colour) * share
