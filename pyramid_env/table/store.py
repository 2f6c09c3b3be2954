"""Store: saved games, results and preferences of the interactive table, in a small local database.

Several notebooks and threads may use it at once. What a call kept is on the disk when it returns.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from pyramid_env.errors import PyramidError
from pyramid_env.game import Game
from pyramid_env.table.database import MEMORY, Database, StoreError
from pyramid_env.table.results import Match, Result, Statistics, match_of, statistics_of

__all__ = ["FILE_NAME", "TIMEOUT_S", "Match", "Result", "SavedGame", "Statistics", "Store", "StoreError", "data_folder"]

FILE_NAME: Final = "table.sqlite3"

TIMEOUT_S: Final = 10.0
"""How long a call waits for other programs; each holds the database for some milliseconds."""


@dataclass(frozen=True)
class SavedGame:
    """A game to be continued."""

    attempt: str
    rules: str
    game: str
    """JSON, of Game.to_json."""
    elapsed_s: float
    helped: bool
    """The solver or an agent helped."""
    updated: float
    """Unix time, s."""


_SAVE_COLUMNS: Final = ", ".join(field.name for field in fields(SavedGame))
_RESULT_COLUMNS: Final = ", ".join(field.name for field in fields(Result))


def data_folder() -> Path:
    """Where the table keeps its data: $PYRAMID_ENV_DATA, or a folder of its own where the system keeps users' data."""
    if chosen := os.environ.get("PYRAMID_ENV_DATA"):
        return Path(chosen)
    try:
        return _users_data() / "pyramid_env"
    except RuntimeError as error:  # of Path.home
        raise StoreError(f"data folder: expected a home folder or $PYRAMID_ENV_DATA, got neither: {error}") from error


def _users_data() -> Path:
    platform: str = sys.platform
    if platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


class Store:
    """What a table keeps. A context manager: leaving it closes.

    A save that can't be read is moved to the table ``set_aside`` of the database; a damaged database is renamed, and a
    fresh one begun. `messages` says both. Nothing is overwritten or deleted.

    Args:
        path: the database file, made with its folder where missing; ``":memory:"`` keeps nothing beyond this store;
            None is FILE_NAME in :func:`data_folder`.
        timeout_s: how long a call waits for other programs.

    Raises:
        StoreError: here and from every call: the file can't be opened or written, another program holds it for longer
            than the timeout, it is of a newer version, or the store is closed. What a call should have kept is then not
            kept; it may be tried again.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, timeout_s: float = TIMEOUT_S) -> None:
        chosen = data_folder() / FILE_NAME if path is None else path
        place = MEMORY if chosen == MEMORY else os.path.realpath(chosen)
        self._database: Final = Database(place, timeout_s)

    @property
    def path(self) -> str:
        """The database file, absolute, or ``":memory:"``."""
        return self._database.path

    @property
    def messages(self) -> list[str]:
        """What the user must be told and hasn't been: what was set aside, why, and where it is."""
        return self._database.messages

    def take_messages(self) -> list[str]:
        """The messages, to be shown; they leave `messages`."""
        taken = self.messages[:]
        del self.messages[: len(taken)]
        return taken

    def close(self) -> None:
        """Further calls of close do nothing; all others raise StoreError."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- saved games -------------------------------------------------------------------------------------------------

    def save(self, saved: SavedGame) -> None:
        """Keep a game, instead of what was saved of this attempt."""
        keep = f"INSERT INTO saves ({_SAVE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) " + (
            "ON CONFLICT (attempt) DO UPDATE SET rules = excluded.rules, game = excluded.game, "
            "elapsed_s = excluded.elapsed_s, helped = excluded.helped, updated = excluded.updated"
        )
        self._database.write(lambda connection: connection.execute(keep, astuple(saved)))

    def load(self, rules: str) -> SavedGame | None:
        """The save of these rules that was updated last and can be read; those that can't are set aside.

        A game that is over is loaded too: the program may have ended between its last save and its result.
        """
        newest = f"SELECT rowid, {_SAVE_COLUMNS} FROM saves WHERE rules = ? ORDER BY updated DESC, rowid DESC LIMIT 1"
        while True:
            row = self._database.read(lambda connection: connection.execute(newest, (rules,)).fetchone())
            if row is None:
                return None
            number, saved = row[0], _saved(row[1:])
            try:
                Game.from_json(saved.game)
            except PyramidError as error:
                self._set_save_aside(number, saved, str(error))
            else:
                return saved

    def _set_save_aside(self, number: int, saved: SavedGame, reason: str) -> None:
        """Unless another program has set this save aside, or saved the attempt anew."""
        this_one = "FROM saves WHERE rowid = ? AND updated = ?"

        def move(connection: sqlite3.Connection) -> int:
            copy = f"INSERT INTO set_aside SELECT {_SAVE_COLUMNS}, ?, ? {this_one}"
            connection.execute(copy, (reason, time.time(), number, saved.updated))
            return connection.execute(f"DELETE {this_one}", (number, saved.updated)).rowcount

        if self._database.write(move):
            self.messages.append(
                f"A saved game of {saved.rules} could not be read ({reason}). It was set aside unchanged in the table "
                f"set_aside of {self.path}, as attempt {saved.attempt}."
            )

    def forget(self, attempt: str) -> None:
        """Keep no save of an attempt any more: it was finished or left. Nothing happens where there is none."""
        delete = "DELETE FROM saves WHERE attempt = ?"
        self._database.write(lambda connection: connection.execute(delete, (attempt,)))

    # ---- results -----------------------------------------------------------------------------------------------------

    def record(self, result: Result) -> Result:
        """Keep the result of an attempt, if it is the first one or betters the one that is kept; returns the kept one.

        An attempt's place among the results stays that of its first one.

        Raises:
            StoreError: as everywhere, or the attempt has a result in other rules or on another deal.
        """
        return self._database.write(lambda connection: _record(connection, result))

    def results(self, rules: str) -> tuple[Result, ...]:
        """Of these rules, in the order of each attempt's first result."""
        return self._results("WHERE rules = ?", rules)

    def statistics(self, rules: str) -> Statistics:
        """Of these rules; nothing played is no error."""
        return statistics_of(rules, self.results(rules))

    def all_statistics(self) -> tuple[Statistics, ...]:
        """Of all rules that have results, in the order of their first one."""
        of_rules: dict[str, list[Result]] = {}
        for result in self._results(""):
            of_rules.setdefault(result.rules, []).append(result)
        return tuple(statistics_of(rules, results) for rules, results in of_rules.items())

    def match(self, rules: str, games: int) -> Match:
        """The running match of these rules; a complete one runs until the next result.

        Args:
            rules: as for results.
            games: length of a match, the same in every call.
        """
        return match_of([result.par for result in self.results(rules)], games)

    def _results(self, where: str, *values: str) -> tuple[Result, ...]:
        query = f"SELECT {_RESULT_COLUMNS} FROM results {where} ORDER BY number"
        rows = self._database.read(lambda connection: connection.execute(query, values).fetchall())
        return tuple(map(_result, rows))

    # ---- preferences -------------------------------------------------------------------------------------------------

    def preference(self, name: str, default: Any) -> Any:
        """What was set, as JSON gives it back (tuples become lists); the default where nothing was.

        One that can't be read counts as not set, and a message says so.
        """
        query = "SELECT value FROM preferences WHERE name = ?"
        row = self._database.read(lambda connection: connection.execute(query, (name,)).fetchone())
        try:
            return default if row is None else json.loads(row[0])
        except ValueError as error:
            self.messages.append(f"The preference {name} could not be read ({error}); {default!r} is used instead.")
            return default

    def set_preference(self, name: str, value: Any) -> None:
        """Keep a value that JSON can hold; StoreError for any other."""
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise StoreError(
                f"preference {name}: expected a value that JSON can hold, got {value!r}: {error}"
            ) from error
        keep = "INSERT OR REPLACE INTO preferences (name, value) VALUES (?, ?)"
        self._database.write(lambda connection: connection.execute(keep, (name, text)))


def _record(connection: sqlite3.Connection, result: Result) -> Result:
    query = f"SELECT {_RESULT_COLUMNS} FROM results WHERE attempt = ?"
    row = connection.execute(query, (result.attempt,)).fetchone()
    if row is None:
        marks = ", ".join("?" * len(fields(Result)))
        connection.execute(f"INSERT INTO results ({_RESULT_COLUMNS}) VALUES ({marks})", astuple(result))
        return result
    kept = _result(row)
    if (kept.rules, kept.deal) != (result.rules, result.deal):
        raise StoreError(
            f"attempt {result.attempt}: expected {kept.rules} on {kept.deal}, got {result.rules} on {result.deal}"
        )
    if not result.betters(kept):
        return kept
    changes = ", ".join(f"{field.name} = ?" for field in fields(Result))
    connection.execute(f"UPDATE results SET {changes} WHERE attempt = ?", (*astuple(result), result.attempt))
    return result


def _saved(row: tuple[Any, ...]) -> SavedGame:
    attempt, rules, game, elapsed_s, helped, updated = row
    return SavedGame(attempt, rules, game, elapsed_s, bool(helped), updated)


def _result(row: tuple[Any, ...]) -> Result:
    attempt, rules, deal, won, score, par, msc, seconds, moves, helped, finished = row
    return Result(attempt, rules, deal, bool(won), score, par, msc, seconds, moves, bool(helped), finished)
