"""Appearance: the choices of how a game looks, and the colours that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from pyramid_env.errors import PyramidError

THEMES: Final = ("auto", "light", "dark")


@dataclass(frozen=True)
class Appearance:
    """How a game is drawn.

    Attributes:
        theme: ``"light"``, ``"dark"``, or ``"auto"``: what the reader's system prefers; pixels take it as light.
        four_colours: each suit has its own colour: clubs green, diamonds blue, hearts red, spades black.
        large_cards: larger cards with much larger ranks and suits; the piles stand beside the apex where they fit.

    Raises:
        PyramidError: another theme, or a switch that is neither True nor False.
    """

    theme: str = "auto"
    four_colours: bool = False
    large_cards: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.theme, str) or self.theme not in THEMES:
            raise PyramidError(f"theme: expected one of {', '.join(THEMES)}, got {self.theme!r}")
        for name in ("four_colours", "large_cards"):
            if not isinstance(getattr(self, name), bool):
                raise PyramidError(f"{name}: expected True or False, got {getattr(self, name)!r}")

    @property
    def palette(self) -> Palette:
        """The colours; those of the light theme where the reader's system decides."""
        return DARK if self.theme == "dark" else LIGHT

    def ink(self, suit: int) -> str:
        """The colour of a suit, 0..3 (clubs, diamonds, hearts, spades), as ``#rrggbb``."""
        return self.palette.inks(self.four_colours)[suit]


class Palette(NamedTuple):
    """Colours of a theme as ``#rrggbb``. Letters and inks have a contrast of 4.5 or more to what they stand on."""

    table: str
    letter: str  # labels on the table
    exposed: str  # face of a card that is exposed
    covered: str
    edge: str  # of a face
    shadow: str  # the table where a card's shadow falls
    back: str
    back_figure: str
    empty: str  # outline of an empty pile, and of a place whose cards have just left
    playable: str
    hinted: str
    selected: str
    last: str
    black: str
    red: str
    green: str  # clubs with four colours
    blue: str  # diamonds with four colours

    def inks(self, four_colours: bool) -> tuple[str, str, str, str]:
        """The colours of clubs, diamonds, hearts and spades."""
        if four_colours:
            return self.green, self.blue, self.red, self.black
        return self.black, self.red, self.red, self.black


LIGHT: Final = Palette(
    table="#2a7454",
    letter="#f7f4e8",
    exposed="#fffefa",
    covered="#d9ddd6",
    edge="#8d9a90",
    shadow="#1f5a41",
    back="#35548f",
    back_figure="#a9bde6",
    empty="#7fb59b",
    playable="#ffc93d",
    hinted="#ff8a1f",
    selected="#0a84ff",
    last="#7a3fb0",
    black="#16181c",
    red="#b5121b",
    green="#0a6128",
    blue="#1546a0",
)
DARK: Final = Palette(
    table="#16231e",
    letter="#c6d1ca",
    exposed="#dcd9ce",
    covered="#b3b6ae",
    edge="#5d665f",
    shadow="#0c1511",
    back="#26395f",
    back_figure="#6d84b3",
    empty="#4b6357",
    playable="#e0ad33",
    hinted="#ec7d1c",
    selected="#3d8fe6",
    last="#5f2f8f",
    black="#101214",
    red="#870d14",
    green="#054a1c",
    blue="#0f3685",
)
