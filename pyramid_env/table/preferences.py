"""Preferences: how a person likes the table; kept from game to game."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pyramid_env.errors import PyramidError
from pyramid_env.render import Appearance
from pyramid_env.table.events import shown

if TYPE_CHECKING:
    from pyramid_env.table.store import Store

THEMES: Final = ("auto", "light", "dark")


@dataclasses.dataclass(frozen=True)
class Preferences:
    """How a person likes the table.

    Attributes:
        theme: ``"auto"`` (as the page or system has it), ``"light"`` or ``"dark"``.
        four_colours: a colour for each suit.
        large_cards: large ranks and suits.
        auto_pause: pause after five idle minutes.
        favourites: presets that stand first in the list.
    """

    theme: str = "auto"
    four_colours: bool = False
    large_cards: bool = False
    auto_pause: bool = True
    favourites: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.theme not in THEMES:
            raise PyramidError(f"theme: expected one of {', '.join(THEMES)}, got {shown(self.theme)}")
        for name in ("four_colours", "large_cards", "auto_pause"):
            if not isinstance(getattr(self, name), bool):
                raise PyramidError(f"{name}: expected true or false, got {shown(getattr(self, name))}")
        if not isinstance(self.favourites, tuple) or not all(isinstance(each, str) for each in self.favourites):
            raise PyramidError("favourites: expected names of rules")

    @classmethod
    def read(cls, store: Store | None) -> Preferences:
        """Those that are kept, and where one is missing or no longer understood, the usual one."""
        usual = cls()
        if store is None:
            return usual
        kept = usual
        for name in _NAMES:
            value = store.preference(name, None)
            if value is None:
                continue
            try:
                kept = kept.replace(**{name: tuple(value) if isinstance(value, list) else value})
            except (PyramidError, TypeError):
                continue
        return kept

    def replace(self, **changes: Any) -> Preferences:
        """The same with some changed."""
        return dataclasses.replace(self, **changes)

    def write(self, store: Store, names: Iterable[str]) -> None:
        """Keep some of them; another table may have changed the others meanwhile."""
        for name in names:
            value = getattr(self, name)
            store.set_preference(name, list(value) if isinstance(value, tuple) else value)

    @property
    def appearance(self) -> Appearance:
        """For :func:`pyramid_env.render.svg`."""
        return Appearance(theme=self.theme, four_colours=self.four_colours, large_cards=self.large_cards)


_NAMES: Final = tuple(field.name for field in dataclasses.fields(Preferences))
PREFERENCES: Final = tuple(name for name in _NAMES if name != "favourites")
"""Names that :meth:`pyramid_env.table.session.Session.set_preference` takes."""
