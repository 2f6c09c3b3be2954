"""Keeper: what a table keeps in its store; where the store fails, the game goes on and the player is told."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

from pyramid_env.deal import Deal
from pyramid_env.errors import PyramidError
from pyramid_env.game import Game
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.table.preferences import Preferences
from pyramid_env.table.store import Match, Result, SavedGame, Statistics, Store, StoreError

T = TypeVar("T")

DEFAULT_RULES: Final = "pyramid"

LAST_RULES: Final = "rules"
"""Name of the preference that holds the rules which were chosen last."""


def last_rules(store: Store | None) -> str:
    """The rules that were chosen last at a table; ``pyramid`` where none were, or none that are rules."""
    try:
        kept = None if store is None else store.preference(LAST_RULES, None)
        return str(read_rules(kept)) if isinstance(kept, str) else DEFAULT_RULES
    except PyramidError:
        return DEFAULT_RULES


def open_store(path: str | os.PathLike[str] | None = None) -> tuple[Store | None, str]:
    """The store of this user, or None and why there is none."""
    try:
        return Store(path), ""
    except StoreError as error:
        return None, f"Nothing is kept: {error}"


class Keeper:
    """Saves, results and preferences of a table.

    Args:
        store: where they are kept; None: nowhere.
        tell: hears of what went wrong, in words for the player.
    """

    def __init__(self, store: Store | None, tell: Callable[[str], None]) -> None:
        self.store: Final = store
        self.preferences = Preferences()
        self._tell: Final = tell
        self._waiting: list[Result] = []  # results that the store has not taken yet
        self._statistics: tuple[Statistics, ...] | None = None  # as they were last read
        self._matches: dict[str, Match | None] = {}  # by rules, likewise
        self.preferences = self._read(Preferences.read, self.preferences)

    def say_messages(self) -> None:
        """Tell what the store has to tell: what was set aside, and where."""
        if told := self.store.take_messages() if self.store is not None else []:
            self._tell(" ".join(told))

    # ---- the running game and results --------------------------------------------------------------------------------

    def load(self, rules: Rules, deal: Deal | None = None) -> tuple[SavedGame, Game] | None:
        """The unfinished game of these rules, if there is one (of this deal, if one is asked for)."""
        saved = self._read(lambda store: store.load(str(rules)), None)
        if saved is None:
            return None
        game = Game.from_json(saved.game)
        if game.rules != rules or (deal is not None and game.deal != deal):
            return None
        return saved, game

    def save(self, saved: SavedGame) -> None:
        """Keep the running game."""
        self._write(lambda store: store.save(saved))

    def record(self, result: Result) -> None:
        """Keep a result. One that the store does not take now waits for the next call."""
        if self.store is not None:
            self._waiting.append(result)
            self.flush()

    def flush(self) -> None:
        """Keep what waits."""
        self._write(lambda store: None)

    def match(self, rules: Rules) -> Match | None:
        """The running match, where the rules have matches and results are kept."""
        if rules.match_games < 2 or self.store is None:
            return None
        name = str(rules)
        if name not in self._matches:
            self._matches[name] = self._read(lambda store: store.match(name, rules.match_games), None)
        return self._matches[name]

    def statistics(self) -> tuple[Statistics, ...]:
        """Of all rules that have results, as they were when :meth:`reread` was last called, or a result recorded."""
        if self._statistics is None:
            none: tuple[Statistics, ...] = ()
            self._statistics = self._read(lambda store: store.all_statistics(), none)
        return self._statistics

    def reread(self) -> None:
        """Forget what was read, so that it is read anew: another table may have finished games."""
        self._statistics = None
        self._matches.clear()

    def remember(self, rules: str) -> None:
        """These rules were chosen: the next page begins with them."""
        self._write(lambda store: store.set_preference(LAST_RULES, rules))

    # ---- preferences -------------------------------------------------------------------------------------------------

    def prefer(self, **changes: Any) -> None:
        """Change preferences; PyramidError for values that are none."""
        self.preferences = self.preferences.replace(**changes)
        self._write(lambda store: self.preferences.write(store, changes))

    def favour(self, rules: str, on: bool) -> None:
        """Put rules among the favourites, or take them out; those that another table has added meanwhile stay."""
        try:
            liked = (self.preferences if self.store is None else Preferences.read(self.store)).favourites
        except StoreError:  # writing fails too, and is told
            liked = self.preferences.favourites
        if on != (rules in liked):
            self.prefer(favourites=(*liked, rules) if on else tuple(each for each in liked if each != rules))

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _read(self, read: Callable[[Store], T], otherwise: T) -> T:
        if self.store is None:
            return otherwise
        try:
            return read(self.store)
        except StoreError as error:
            self._tell(f"Not read: {error}")
            return otherwise

    def _write(self, write: Callable[[Store], Any]) -> None:
        """Write, also the results that wait."""
        if self.store is None:
            return
        for work in (self._record_waiting, write):
            try:
                work(self.store)
            except StoreError as error:
                self._tell(f"Not saved: {error}")
        self.say_messages()

    def _record_waiting(self, store: Store) -> None:
        """An attempt that has a result needs its save no more."""
        while self._waiting:
            store.record(self._waiting[0])
            store.forget(self._waiting[0].attempt)
            del self._waiting[0]
            self.reread()
