"""Glyphs: letters and the paths of :mod:`pyramid_env.render.shapes` as coverage maps, by numpy; no font is needed."""

from __future__ import annotations

import re
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
    "·": "35 35",
    ",": "37 38 29",
    "_": "09 69",
    "/": "60 09",
    " ": "",
}
"""Characters as poly-lines, ``|`` between two of them; other characters are drawn as blanks."""

WEIGHT: Final = 0.15
"""Thickness of the strokes as a share of the height."""

SPACING: Final = 3
"""Grid columns between the strokes of two letters."""

_SAMPLES: Final = 4
"""Sub-pixels a pixel and direction for shapes."""

_CURVE: Final = 10
"""Straight pieces that stand for one curve."""


@lru_cache(maxsize=256)
def words(text: str, height: int, weight: float = WEIGHT, stretch: float = 1.0) -> Coverage:
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


@lru_cache(maxsize=64)
def _lines(shape: str) -> tuple[NDArray[np.float32], ...]:
    """The lines of a path, (n, 2) points x, y each; curves as short straight pieces."""
    lines: list[list[tuple[float, float]]] = []
    for command, numbers in re.findall(r"([MLCZ])([^MLCZ]*)", shape):
        values = [float(value) for value in numbers.replace("-", " -").split()]
        points = list(zip(values[::2], values[1::2], strict=True))
        if command == "M":
            lines.append(points)
        elif command == "L":
            lines[-1] += points
        elif command == "Z":
            lines[-1].append(lines[-1][0])
        else:
            for at in range(0, len(points), 3):
                lines[-1] += _curve(lines[-1][-1], *points[at : at + 3])
    return tuple(np.array(line, np.float32) for line in lines)


def _curve(
    start: tuple[float, float], first: tuple[float, float], second: tuple[float, float], end: tuple[float, float]
) -> list[tuple[float, float]]:
    """Points of a cubic curve, without its start."""
    shares = [step / _CURVE for step in range(1, _CURVE + 1)]
    weights = [((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3) for t in shares]
    corners = (start, first, second, end)
    return [
        (
            sum(w * p[0] for w, p in zip(row, corners, strict=True)),
            sum(w * p[1] for w, p in zip(row, corners, strict=True)),
        )
        for row in weights
    ]


def fill(shape: str, x: float, y: float, size: float, height: int, width: int) -> Coverage:
    """A filled shape on a canvas.

    Args:
        shape: a path in a square from -1 to 1; of overlapping parts all is filled.
        x: of its middle on the canvas, in pixels.
        y: likewise.
        size: half the side of the square, in pixels.
        height: of the canvas, in pixels.
        width: likewise.
    """
    out = np.zeros((height, width), np.float32)
    left, top = max(0, int(x - size * 1.1)), max(0, int(y - size * 1.1))
    right, low = min(width, int(np.ceil(x + size * 1.1))), min(height, int(np.ceil(y + size * 1.1)))
    if right <= left or low <= top:
        return out
    xs = (left + (np.arange((right - left) * _SAMPLES) + 0.5) / _SAMPLES - x) / size
    ys = (top + (np.arange((low - top) * _SAMPLES) + 0.5) / _SAMPLES - y) / size
    inside = np.zeros((ys.size, xs.size), np.bool_)
    for line in _lines(shape):
        inside |= _within(line, xs, ys)
    out[top:low, left:right] = inside.reshape(low - top, _SAMPLES, right - left, _SAMPLES).mean(axis=(1, 3))
    return out


def _within(line: NDArray[np.float32], xs: NDArray[np.float64], ys: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which points of a grid lie within a closed line: a ray to the left crosses it an odd number of times."""
    inside = np.zeros((ys.size, xs.size), np.bool_)
    for (x0, y0), (x1, y1) in pairwise([*line.tolist(), line[0].tolist()]):
        rows = np.flatnonzero((ys >= min(y0, y1)) & (ys < max(y0, y1)))
        if rows.size:
            crossing = x0 + (ys[rows] - y0) * ((x1 - x0) / (y1 - y0))
            inside[rows] ^= xs[None, :] > crossing[:, None]
    return inside


def pen(
    shape: str, x: float, y: float, scale: tuple[float, float], thickness: float, height: int, width: int
) -> Coverage:
    """Lines of a pen with a round tip on a canvas.

    Args:
        shape: a path.
        x: where its point (0, 0) lies on the canvas, in pixels.
        y: likewise.
        scale: pixels a unit of the path, to the right and down.
        thickness: of the pen, in pixels.
        height: of the canvas, in pixels.
        width: likewise.
    """
    out = np.zeros((height, width), np.float32)
    grid_y, grid_x = np.mgrid[0:height, 0:width].astype(np.float32) + 0.5
    for line in _lines(shape):
        points = [(x + px * scale[0], y + py * scale[1]) for px, py in line.tolist()]
        for start, end in pairwise(points):
            near = thickness / 2 + 1
            rows = slice(max(0, int(min(start[1], end[1]) - near)), max(0, int(max(start[1], end[1]) + near) + 1))
            columns = slice(max(0, int(min(start[0], end[0]) - near)), max(0, int(max(start[0], end[0]) + near) + 1))
            far = _distance(grid_x[rows, columns], grid_y[rows, columns], start, end)
            room = out[rows, columns]
            np.maximum(room, np.clip(0.5 + thickness / 2 - far, 0, 1), out=room)
    return out


def box_distance(height: int, width: int, box: tuple[float, float, float, float], radius: float) -> Coverage:
    """(height, width) distance of each pixel from the edge of a rectangle with round corners, negative inside.

    Args:
        height: of the canvas, in pixels.
        width: likewise.
        box: left, top, right and lower edge of the rectangle, in pixels.
        radius: of the corners, in pixels.
    """
    left, top, right, low = box
    ys, xs = np.mgrid[0:height, 0:width].astype(np.float32) + 0.5
    across = np.abs(xs - (left + right) / 2) - (right - left) / 2 + radius
    down = np.abs(ys - (top + low) / 2) - (low - top) / 2 + radius
    outside = np.hypot(np.maximum(across, 0), np.maximum(down, 0)) + np.minimum(np.maximum(across, down), 0)
    far: Coverage = (outside - radius).astype(np.float32)
    return far
