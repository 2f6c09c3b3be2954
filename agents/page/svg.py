"""SVG: what plots are drawn with: a picture with its title in words, axes with round ticks, bars, lines, markers.

We draw them ourselves: a page without a network needs its plots inside it, where a plotting library would be 3 MB of
script, and shapes of ours take their colours from the page's style sheet, so dark mode costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

COLOURS: Final = 8
"""Agents' colours in the style sheet, ``c0`` to ``c7``; from then on they come again, with other markers and dashes."""

LETTER: Final = 6.6
"""Mean width of a letter of the plots' text, in pixels."""

_DASHES: Final = ("", "7 3", "2 3", "9 3 2 3")
_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers from ``low`` to ``high``, ``most`` at most, evenly apart."""
    rough = max(high - low, 1e-9) / max(most - 1, 1)
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(scale * each for each in _STEPS if scale * each >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 10) for k in range(first, last + 1)]


def spelt(value: float) -> str:
    """A tick's number: no more digits than it has, a real minus sign."""
    return f"{value:,.10g}".replace("-", "−")


class Picture:
    """An SVG in the making.

    Args:
        width, height: in pixels; it is shown at this size, or smaller.
        title: what it shows, for readers who hear it.
    """

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width: Final = width
        self.height: Final = height
        self._parts = [
            f'<svg class="plot" role="img" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
            f'aria-label="{escape(title)}">'
        ]

    def __str__(self) -> str:
        return "".join([*self._parts, "</svg>"])

    def text(self, x: float, y: float, text: str, *, anchor: str = "start", kind: str = "") -> None:
        """A line of text, its base line on y; ``anchor``: start, middle or end of it is at x."""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{_class(kind)}>{escape(text, quote=False)}</text>'
        )

    def line(self, x0: float, y0: float, x1: float, y1: float, kind: str) -> None:
        """A straight line."""
        self._parts.append(f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"{_class(kind)}/>')

    def bar(self, x: float, y: float, width: float, height: float, kind: str, said: str) -> None:
        """A rectangle; ``said`` is told when it is pointed at."""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}"{_class(kind)}>'
            f"<title>{escape(said, quote=False)}</title></rect>"
        )

    def path(self, points: Sequence[tuple[float, float]], kind: str, said: str, *, dash: str = "") -> None:
        """A line through points."""
        way = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        title = f"<title>{escape(said, quote=False)}</title>"
        self._parts.append(f'<path d="M{way}"{_class(kind)}{dashed}>{title}</path>')

    def marker(self, x: float, y: float, number: int, said: str, size: float = 4.5) -> None:
        """The marker of agent ``number``: colours alone do not tell them apart."""
        self._parts.append(f"<g{_class(colour(number))}><title>{escape(said, quote=False)}</title>")
        self._parts.append(f'<path transform="translate({x:.1f} {y:.1f}) scale({size:g})" d="{shape(number)}"/></g>')

    # ---- axes --------------------------------------------------------------------------------------------------------

    def across(self, marks: Sequence[tuple[float, str]], top: float, bottom: float, name: str) -> None:
        """A horizontal axis at ``bottom`` with (x, text) marks, grid lines up to ``top``, and its name below."""
        for x, text in marks:
            self.line(x, top, x, bottom, "grid")
            self.text(x, bottom + 16, text, anchor="middle")
        self.text(sum(x for x, _ in (marks[0], marks[-1])) / 2, bottom + 34, name, anchor="middle", kind="name")

    def upward(self, marks: Sequence[tuple[float, str]], left: float, right: float, name: str) -> None:
        """A vertical axis at ``left`` with (y, text) marks, grid lines to ``right``, and its name above."""
        for y, text in marks:
            self.line(left, y, right, y, "grid")
            self.text(left - 6, y + 4, text, anchor="end")
        self.text(0, min(y for y, _ in marks) - 12, name, kind="name")


def colour(number: int) -> str:
    """The style sheet's class for agent ``number``."""
    return f"c{number % COLOURS}"


def dash(number: int) -> str:
    """The dashes of its lines: another for every agent of the same colour, and for neighbours."""
    return _DASHES[(number + number // COLOURS) % len(_DASHES)]


def shape(number: int) -> str:
    """The path of its marker, from -1 to 1."""
    shapes = (
        "M-1 0A1 1 0 1 1 1 0A1 1 0 1 1-1 0Z",
        "M-.9-.9H.9V.9H-.9Z",
        "M0-1.15L1.1.85H-1.1Z",
        "M0-1.25L1.1 0L0 1.25L-1.1 0Z",
        "M0 1.15L1.1-.85H-1.1Z",
        "M-.35-1.1H.35V-.35H1.1V.35H.35V1.1H-.35V.35H-1.1V-.35H-.35Z",
    )
    return shapes[(number + number // COLOURS) % len(shapes)]


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
