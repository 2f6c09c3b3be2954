"""Shapes: suits, ranks and ornaments of the cards as SVG paths of our own, so that no font is needed for a card.

Paths know absolute M, L, C and Z alone: SVG draws them as they are, and :mod:`pyramid_env.render.glyphs` reads them.
"""

from __future__ import annotations

from typing import Final

_ARC: Final = 0.5523
"""Handle of the curve that stands for a quarter of a circle of radius 1."""


def ellipse(x: float, y: float, width: float, height: float) -> str:
    """A closed ellipse around (x, y), clockwise; half its width and height."""
    right, left, low, high = x + width, x - width, y + height, y - height
    dx, dy = width * _ARC, height * _ARC
    points = (
        f"M{x:.3f} {high:.3f}",
        f"C{x + dx:.3f} {high:.3f} {right:.3f} {y - dy:.3f} {right:.3f} {y:.3f}",
        f"C{right:.3f} {y + dy:.3f} {x + dx:.3f} {low:.3f} {x:.3f} {low:.3f}",
        f"C{x - dx:.3f} {low:.3f} {left:.3f} {y + dy:.3f} {left:.3f} {y:.3f}",
        f"C{left:.3f} {y - dy:.3f} {x - dx:.3f} {high:.3f} {x:.3f} {high:.3f}Z",
    )
    return "".join(points)


# Suits and ornaments in a square from -1 to 1, y downwards, filled.
_STEM: Final = "M0 0C0.04 0.55 0.15 0.85 0.4 1L-0.4 1C-0.15 0.85 -0.04 0.55 0 0Z"
SUITS: Final = (
    ellipse(0, -0.54, 0.44, 0.44)
    + ellipse(-0.52, 0.2, 0.44, 0.44)
    + ellipse(0.52, 0.2, 0.44, 0.44)
    + ellipse(0, -0.02, 0.24, 0.3)
    + _STEM,
    "M0 -1C0.24 -0.62 0.5 -0.28 0.78 0C0.5 0.28 0.24 0.62 0 1"
    "C-0.24 0.62 -0.5 0.28 -0.78 0C-0.5 -0.28 -0.24 -0.62 0 -1Z",
    "M0 1C-0.3 0.5 -1 0.1 -1 -0.42C-1 -0.8 -0.75 -1 -0.5 -1C-0.25 -1 -0.08 -0.82 0 -0.58"
    "C0.08 -0.82 0.25 -1 0.5 -1C0.75 -1 1 -0.8 1 -0.42C1 0.1 0.3 0.5 0 1Z",
    "M0 -1C0.3 -0.55 1 -0.2 1 0.28C1 0.6 0.76 0.76 0.52 0.76C0.28 0.76 0.08 0.62 0 0.4"
    "C-0.08 0.62 -0.28 0.76 -0.52 0.76C-0.76 0.76 -1 0.6 -1 0.28C-1 -0.2 -0.3 -0.55 0 -1Z" + _STEM,
)
"""Clubs, diamonds, hearts, spades."""

_BAND: Final = "M-0.8 0.62L0.8 0.62L0.8 0.88L-0.8 0.88Z"
CROWNS: Final = {
    11: "M-0.8 0.46C-0.7 0.1 -0.35 -0.2 0 -0.75C0.35 -0.2 0.7 0.1 0.8 0.46Z" + ellipse(0, -0.82, 0.17, 0.17) + _BAND,
    12: "M-0.8 0.46L-0.95 -0.35C-0.7 0.05 -0.45 0.05 -0.32 -0.35C-0.2 0.02 0.2 0.02 0.32 -0.35"
    "C0.45 0.05 0.7 0.05 0.95 -0.35L0.8 0.46Z"
    + ellipse(-0.95, -0.52, 0.13, 0.13)
    + ellipse(-0.32, -0.55, 0.13, 0.13)
    + ellipse(0.32, -0.55, 0.13, 0.13)
    + ellipse(0.95, -0.52, 0.13, 0.13)
    + _BAND,
    13: "M-0.8 0.46L-1 -0.45L-0.48 -0.02L0 -0.6L0.48 -0.02L1 -0.45L0.8 0.46Z"
    "M-0.08 -1L0.08 -1L0.08 -0.87L0.2 -0.87L0.2 -0.73L0.08 -0.73L0.08 -0.55L-0.08 -0.55L-0.08 -0.73L-0.2 -0.73"
    "L-0.2 -0.87L-0.08 -0.87Z" + _BAND,
}
"""What jack, queen and king wear: a cap, a coronet, a crown."""

STAR: Final = "M0 -1L0.26 -0.36L0.95 -0.31L0.42 0.14L0.59 0.81L0 0.44L-0.59 0.81L-0.42 0.14L-0.95 -0.31L-0.26 -0.36Z"

# Ranks are lines of a pen with a round tip, 9 high; jack, queen and king as letters, like the ace.
RANK_HEIGHT: Final = 9.0
RANK_PEN: Final = 1.55
RANKS: Final = (
    "M0 9L3 0L6 9M1.1 6L4.9 6",
    "M0.2 2.5C0.2 0.9 1.4 0 3 0C4.7 0 5.8 1 5.8 2.5C5.8 4.2 4.4 5.3 3 6.5L0.2 9L6 9",
    "M0.3 1.5C0.8 0.6 1.8 0 3 0C4.6 0 5.6 0.9 5.6 2.2C5.6 3.5 4.6 4.3 3.2 4.3L2.2 4.3L3.2 4.3"
    "C4.8 4.3 5.9 5.2 5.9 6.6C5.9 8.1 4.7 9 3 9C1.7 9 0.6 8.4 0 7.3",
    "M4.5 9L4.5 0L0 6.4L6.2 6.4",
    "M5.4 0L1.1 0L0.6 4.1C1.3 3.5 2.1 3.2 3 3.2C4.8 3.2 6 4.4 6 6.1C6 7.8 4.8 9 3 9C1.7 9 0.7 8.5 0 7.5",
    "M5.4 1.1C4.8 0.4 4 0 3.1 0C1.1 0 0 2 0 5C0 7.6 1.1 9 3 9C4.7 9 6 7.8 6 6.1C6 4.4 4.7 3.3 3.1 3.3"
    "C1.6 3.3 0.4 4.2 0.05 5.6",
    "M0 0L6 0L2.2 9",
    ellipse(3, 2.15, 2.4, 2.15) + ellipse(3, 6.65, 3, 2.35),
    "M0.6 7.9C1.2 8.6 2 9 2.9 9C4.9 9 6 7 6 4C6 1.4 4.9 0 3 0C1.3 0 0 1.2 0 2.9C0 4.6 1.3 5.7 2.9 5.7"
    "C4.4 5.7 5.6 4.8 5.95 3.4",
    "M0 1.7L1.7 0L1.7 9" + ellipse(6.1, 4.5, 2.1, 4.5),
    "M4.8 0L4.8 6.3C4.8 8.1 3.9 9 2.4 9C1.1 9 0.2 8.3 0 7",
    ellipse(3.2, 4.5, 3.2, 4.5) + "M3.9 6.7L6.4 9.4",
    "M0.2 0L0.2 9M5.8 0L0.2 5.6M2.3 3.6L6 9",
)
"""Ace to king."""

RANK_WIDTHS: Final = (6.0, 6.0, 5.9, 6.2, 6.0, 6.0, 6.0, 6.0, 6.0, 8.2, 4.8, 6.4, 6.0)

RECYCLE: Final = (
    "M0.72 -0.35C0.5 -0.75 0.05 -0.9 -0.35 -0.72C-0.78 -0.5 -0.92 0 -0.72 0.4C-0.5 0.8 0 0.92 0.4 0.72"
    "C0.62 0.6 0.76 0.42 0.8 0.2M0.82 -0.85L0.74 -0.3L0.22 -0.42"
)
"""A turning arrow, lines of a pen, in a square from -1 to 1."""
