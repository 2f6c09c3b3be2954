"""Canvas: sprites made of layers of one colour each, and how they are laid over a picture; numpy alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env.render import glyphs
from pyramid_env.render.layout import CARD_HEIGHT, CARD_WIDTH

Picture = NDArray[np.uint8]
"""(H, W, 3) red, green, blue."""


class Sprite(NamedTuple):
    """Something drawn once: its colours, how much of the picture shines through, and where it lies from the card."""

    face: NDArray[np.uint8]  # (h, w, 3)
    share: NDArray[np.uint16]  # (h, w, 3) face times its coverage, of 256
    keep: NDArray[np.uint16]  # (h, w, 1) what shines through, of 256
    solid: slice  # rows that cover all under them: nearly all of a card, and copied without mixing
    x: int
    y: int


class Canvas:
    """A sprite in the making: layers of one colour each, over a card whose upper left corner is ``pad`` pixels in."""

    def __init__(self, scale: float, pad: int = 0, below: int = 0) -> None:
        self.scale, self.pad = scale, pad
        self.card_width, self.card_height = max(1, round(scale * CARD_WIDTH)), max(1, round(scale * CARD_HEIGHT))
        self.height, self.width = self.card_height + 2 * pad + below, self.card_width + 2 * pad
        self.colours = np.zeros((self.height, self.width, 3), np.float32)  # times their coverage
        self.cover = np.zeros((self.height, self.width, 1), np.float32)

    def lay(self, cover: glyphs.Coverage, colour: str) -> None:
        """One more layer."""
        part = cover[..., None]
        self.colours *= 1 - part
        self.colours += part * colour_of(colour)
        self.cover *= 1 - part
        self.cover += part

    def distance(self, inset: float, radius: float, down: float = 0.0) -> glyphs.Coverage:
        """Of each pixel from a rectangle within the card; all in card widths."""
        s, pad = self.scale, self.pad
        box = (
            pad + inset * s,
            pad + (inset + down) * s,
            pad + self.card_width - inset * s,
            pad + self.card_height - (inset - down) * s,
        )
        return glyphs.box_distance(self.height, self.width, box, radius * s)

    def box(self, inset: float, radius: float, colour: str, down: float = 0.0) -> None:
        """A filled rectangle."""
        self.lay(np.clip(0.5 - self.distance(inset, radius, down), 0, 1), colour)

    def ring(self, inset: float, radius: float, thick: float, colour: str, dashes: tuple[float, float] | None) -> None:
        """The outline of a rectangle; ``dashes`` are the lengths of dash and gap."""
        half = max(0.5, thick * self.scale / 2)
        cover: glyphs.Coverage = np.clip(0.5 + half - np.abs(self.distance(inset, radius)), 0, 1).astype(np.float32)
        self.lay(cover * self._dashed(*dashes) if dashes else cover, colour)

    def _dashed(self, dash: float, gap: float) -> glyphs.Coverage:
        """Where a dashed outline is drawn: along x near upper and lower edge, along y near the others."""
        ys, xs = np.mgrid[0 : self.height, 0 : self.width].astype(np.float32) + 0.5 - self.pad
        near_x = np.minimum(np.abs(xs), np.abs(self.card_width - xs))
        near_y = np.minimum(np.abs(ys), np.abs(self.card_height - ys))
        along = np.where(near_y < near_x, xs - self.card_width / 2, ys - self.card_height / 2) / self.scale
        drawn: glyphs.Coverage = (np.mod(along + dash / 2, dash + gap) < dash).astype(np.float32)
        return drawn

    def shape(self, shape: str, x: float, y: float, size: float, colour: str) -> None:
        """A filled shape, its middle at (x, y) of the card, in card widths."""
        s, pad = self.scale, self.pad
        self.lay(glyphs.fill(shape, pad + x * s, pad + y * s, size * s, self.height, self.width), colour)

    def pen(self, shape: str, x: float, y: float, scale: tuple[float, float], thick: float, colour: str) -> None:
        """Lines, their point (0, 0) at (x, y) of the card; scale and thickness in card widths."""
        s, pad = self.scale, self.pad
        steps = (scale[0] * s, scale[1] * s)
        tip = max(1.0, thick * s)
        self.lay(glyphs.pen(shape, pad + x * s, pad + y * s, steps, tip, self.height, self.width), colour)

    def sprite(self) -> Sprite:
        """What was drawn."""
        of_256 = np.round(self.cover * 256)
        rows = np.flatnonzero(self.cover.min(axis=(1, 2)) > 1 - 1e-4)
        solid = slice(int(rows[0]), int(rows[-1]) + 1) if rows.size else slice(0, 0)
        arrays = (
            np.round(self.colours / np.maximum(self.cover, 1e-6)).astype(np.uint8),
            np.round(self.colours * 256).astype(np.uint16),
            (256 - of_256).astype(np.uint16),
        )
        for array in arrays:
            array.setflags(write=False)
        return Sprite(*arrays, solid, -self.pad, -self.pad)


def paste(picture: Picture, sprite: Sprite, x: int, y: int) -> None:
    """Lay a sprite over a picture, its card's upper left corner at (x, y); what lies outside is cut off."""
    height, width = sprite.face.shape[:2]
    x, y = x + sprite.x, y + sprite.y
    before, columns = max(0, -x), slice(max(0, x), max(0, x + width))
    solid = sprite.solid
    for rows in (slice(0, solid.start), solid, slice(solid.stop, height)):
        start, stop = max(rows.start, -y), min(rows.stop, picture.shape[0] - y)
        if start >= stop:
            continue
        room = picture[y + start : y + stop, columns]
        cut = slice(start, stop), slice(before, before + room.shape[1])
        room[:] = sprite.face[cut] if rows is solid else (room * sprite.keep[cut] + sprite.share[cut]) >> 8


def colour_of(hexadecimal: str) -> NDArray[np.uint8]:
    """(3,) red, green, blue of ``#rrggbb``."""
    return np.frombuffer(bytes.fromhex(hexadecimal.removeprefix("#")), np.uint8)
