"""Glyphs: letters and suits as coverage maps, drawn by numpy from strokes and shapes of our own; no font is needed."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

Coverage = NDArray[np.float32]
"""(h, w) share of each pixel that the glyph covers, 0..1."""

GRID_WIDTH: Final = 6
GRID_HEIGHT: Final = 9
"""Strokes run between points of a grid; ``"09 30 69"`` is a line from (0, 9) over (3, 0) to (6, 9), y downwards."""

STROKES: Final = {
    "0": "20 40 62 67 49 29 07 02 20",
    "1": "12 30 39|19 59",
    "2": "02 20 40 62 63 09 69",
    "3": "02 20 40 62 63 44 24|44 65 67 49 29 07",
    "4": "49 40 06 66",
    "5": "60 10 04 44 65 67 49 29 07",
    "6": "61 40 20 02 07 29 49 67 66 44 24 06",
    "7": "00 60 29",
    "8": "24 03 02 20 40 62 63 44 24 06 07 29 49 67 66 44",
    "9": "08 29 49 67 62 40 20 02 03 25 45 63",
    "A": "09 30 69|16 56",
    "B": "04 44 62 40 00 09 49 67 66 44",
    "C": "62 40 20 02 07 29 49 67",
    "D": "00 40 62 67 49 09 00",
    "E": "60 00 09 69|04 44",
    "F": "60 00 09|04 44",
    "G": "62 40 20 02 07 29 49 67 65 35",
    "H": "00 09|60 69|04 64",
    "I": "10 50|30 39|19 59",
    "J": "30 60|50 57 39 19 07",
    "K": "00 09|60 05|23 69",
    "L": "00 09 69",
    "M": "09 00 35 60 69",
    "N": "09 00 69 60",
    "O": "20 40 62 67 49 29 07 02 20",
    "P": "09 00 40 62 63 45 05",
    "Q": "20 40 62 67 49 29 07 02 20|46 69",
    "R": "09 00 40 62 63 45 05|35 69",
    "S": "62 40 20 02 03 24 44 66 67 49 29 07",
    "T": "00 60|30 39",
    "U": "00 07 29 49 67 60",
    "V": "00 39 60",
    "W": "00 19 34 59 60",
    "X": "00 69|60 09",
    "Y": "00 34 60|34 39",
    "Z": "00 60 09 69",
    "-": "15 55",
    "+": "15 55|33 37",
    "=": "13 53|16 56",
    ":": "33 33|37 37",
    ".": "39 39",
    ",": "37 38 29",
    "_": "09 69",
    "/": "60 09",
    " ": "",
}
"""Characters as poly-lines, ``|`` between two of them; other characters are drawn as blanks."""

SPACING: Final = 3
"""Grid columns between the strokes of two letters."""

_SAMPLES: Final = 4
"""Sub-pixels a pixel and direction for shapes."""


@lru_cache(maxsize=256)
def words(text: str, height: int, weight: float = 0.15, stretch: float = 1.0) -> Coverage:
    """A line of text in capitals.

    Args:
        text: the text; small letters are drawn as capitals.
        height: of the letters, in pixels.
        weight: thickness of the strokes as a share of the height.
        stretch: width of the letters, 1 = natural.
    """
    letters = [_letter(letter, height, weight, stretch) for letter in text.upper()]
    gap = round(SPACING * height * (1 - weight) / GRID_HEIGHT * stretch - weight * height)
    step = (letters[0].shape[1] if letters else 1) + max(1, gap)
    out = np.zeros((height, max(1, step * len(letters) - max(1, gap))), np.float32)
    for at, letter in enumerate(letters):
        out[:, at * step : at * step + letter.shape[1]] = letter
    out.setflags(write=False)
    return out


@lru_cache(maxsize=1024)
def _letter(letter: str, height: int, weight: float, stretch: float) -> Coverage:
    """One character; all have the same width."""
    unit = height * (1 - weight) / GRID_HEIGHT
    thick = max(1.0, weight * height)
    out = np.zeros((height, int(np.ceil(GRID_WIDTH * unit * stretch + thick))), np.float32)
    ys, xs = np.mgrid[0 : out.shape[0], 0 : out.shape[1]].astype(np.float32) + 0.5
    for line in STROKES.get(letter, "").split("|"):
        points = [(int(point[0]), int(point[1])) for point in line.split()]
        scaled = [(x * unit * stretch + thick / 2, y * unit + weight * height / 2) for x, y in points]
        for start, end in pairwise(scaled):
            np.maximum(out, np.clip(0.5 + thick / 2 - _distance(xs, ys, start, end), 0, 1), out=out)
    out.setflags(write=False)
    return out


def _distance(xs: Coverage, ys: Coverage, start: tuple[float, float], end: tuple[float, float]) -> Coverage:
    """Distance of every pixel from a stroke."""
    (x0, y0), (x1, y1) = start, end
    dx, dy = x1 - x0, y1 - y0
    length = dx * dx + dy * dy
    along = np.clip(((xs - x0) * dx + (ys - y0) * dy) / length, 0, 1) if length else np.zeros_like(xs)
    far: Coverage = np.hypot(xs - x0 - along * dx, ys - y0 - along * dy).astype(np.float32)
    return far


@lru_cache(maxsize=256)
def suit(number: int, size: int) -> Coverage:
    """A suit's symbol (0..3: club, diamond, heart, spade) in a square of pixels."""
    edge = ((np.arange(size * _SAMPLES) + 0.5) / (size * _SAMPLES) * 2 - 1).astype(np.float32)
    x, y = edge[None, :], edge[:, None]  # -1..1, y downwards
    inside = (_club, _diamond, _heart, _spade)[number](x, y)
    shares = inside.reshape(size, _SAMPLES, size, _SAMPLES).mean(axis=(1, 3))
    out: Coverage = shares.astype(np.float32)
    out.setflags(write=False)
    return out


@lru_cache(maxsize=64)
def rounded(height: int, width: int, radius: float, inset: float = 0.0) -> Coverage:
    """A rectangle with round corners, ``inset`` pixels smaller on each side."""
    ys, xs = np.mgrid[0:height, 0:width].astype(np.float32) + 0.5
    inner_x, inner_y = width / 2 - inset - radius, height / 2 - inset - radius
    out_x = np.maximum(np.abs(xs - width / 2) - inner_x, 0)
    out_y = np.maximum(np.abs(ys - height / 2) - inner_y, 0)
    out: Coverage = np.clip(radius + 0.5 - np.hypot(out_x, out_y), 0, 1).astype(np.float32)
    out.setflags(write=False)
    return out


def _diamond(x: Coverage, y: Coverage) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.abs(x) / 0.76 + np.abs(y) <= 1
    return inside


def _heart(x: Coverage, y: Coverage) -> NDArray[np.bool_]:
    """The curve (x^2 + y^2 - 1)^3 = x^2 y^3, scaled to the square."""
    u, v = x * 1.15, -y * 1.1 + 0.12
    inside: NDArray[np.bool_] = (u * u + v * v - 1) ** 3 - u * u * v**3 <= 0
    return inside


def _stem(x: Coverage, y: Coverage) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = (
        (y >= 0.1) & (y <= 0.98) & (np.abs(x) <= 0.07 + 0.32 * np.maximum(y - 0.3, 0) ** 2 / 0.46)
    )
    return inside


def _spade(x: Coverage, y: Coverage) -> NDArray[np.bool_]:
    return _heart(x, np.asarray(-(y * 1.12 + 0.13), np.float32)) | _stem(x, y)


def _club(x: Coverage, y: Coverage) -> NDArray[np.bool_]:
    leaves = ((0.0, -0.52), (-0.5, 0.2), (0.5, 0.2))
    inside: NDArray[np.bool_] = _stem(x, y) | (np.hypot(x, y + 0.05) <= 0.25)
    for leaf_x, leaf_y in leaves:
        inside |= np.hypot(x - leaf_x, y - leaf_y) <= 0.44
    return inside
