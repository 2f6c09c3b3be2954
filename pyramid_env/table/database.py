"""The database file of a table: opened and checked, shared by threads and programs, replaced when damaged."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Final, TypeVar

from pyramid_env.errors import PyramidError
from pyramid_env.table.damage import alone, check, damage, file_identity, overlooked_damage, set_aside

MEMORY: Final = ":memory:"

SCHEMA_VERSION: Final = 1
"""Kept in the database as PRAGMA user_version; 0 is an empty file."""

_SCHEMA: Final = (
    """CREATE TABLE saves (
        attempt TEXT PRIMARY KEY NOT NULL,
        rules TEXT NOT NULL,
        game TEXT NOT NULL,
        elapsed_s REAL NOT NULL,
        helped INTEGER NOT NULL CHECK (helped IN (0, 1)),
        updated REAL NOT NULL)""",
    "CREATE INDEX saves_of_rules ON saves (rules, updated)",
    # Saves that could not be read, as they were, with reason and time.
    "CREATE TABLE set_aside (attempt, rules, game, elapsed_s, helped, updated, reason TEXT, time REAL)",
    """CREATE TABLE results (
        number INTEGER PRIMARY KEY,
        attempt TEXT UNIQUE NOT NULL,
        rules TEXT NOT NULL,
        deal TEXT NOT NULL,
        won INTEGER NOT NULL CHECK (won IN (0, 1)),
        score INTEGER NOT NULL CHECK (typeof(score) = 'integer'),
        par INTEGER NOT NULL CHECK (typeof(par) = 'integer'),
        msc INTEGER NOT NULL CHECK (typeof(msc) = 'integer'),
        seconds REAL NOT NULL CHECK (typeof(seconds) = 'real'),
        moves INTEGER NOT NULL CHECK (typeof(moves) = 'integer'),
        helped INTEGER NOT NULL CHECK (helped IN (0, 1)),
        finished REAL NOT NULL CHECK (typeof(finished) = 'real'))""",
    "CREATE INDEX results_of_rules ON results (rules, number)",
    "CREATE TABLE preferences (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL)",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)

_TRIES: Final = 3
"""How often a database may turn out damaged or replaced in one call."""

_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_REFUSED: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR)

_Done = TypeVar("_Done")


class StoreError(PyramidError):
    """The database can't be used: not opened, not written, busy for too long, or of a newer version.

    What was kept before is safe, and what the call should have kept is not kept; the caller may try again, or go on
    without.
    """


class Database:
    """One connection, used by one thread at a time, to the file that bears the name.

    A damaged file is set aside, by whichever program finds the damage first, and a message says so; all go on with the
    fresh one.

    Args:
        path: absolute, without links; or MEMORY.
        timeout_s: how long to wait for other programs.

    Raises:
        StoreError: here and from every call.
    """

    def __init__(self, path: str, timeout_s: float) -> None:
        self.path: Final = path
        self.messages: Final[list[str]] = []
        self._timeout_s: Final = timeout_s
        self._lock: Final = threading.Lock()
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None  # of the file that the connection writes to
        with self._in_words():
            self._open()

    def read(self, work: Callable[[sqlite3.Connection], _Done]) -> _Done:
        """What `work` reads, all of it at one moment."""
        return self._run("BEGIN", work)

    def write(self, work: Callable[[sqlite3.Connection], _Done]) -> _Done:
        """Do `work`, the only one to write meanwhile; kept when this returns, undone when it raises.

        `work` is repeated when the file was replaced meanwhile, so it must not matter how often it is done.
        """
        return self._run("BEGIN IMMEDIATE", work)

    def close(self) -> None:
        """Further calls of close do nothing; all others raise StoreError."""
        with self._lock:
            self._closed = True
            self._drop()

    # ---- transactions ------------------------------------------------------------------------------------------------

    def _run(self, begin: str, work: Callable[[sqlite3.Connection], _Done]) -> _Done:
        with self._lock, self._in_words():
            for _ in range(_TRIES):
                connection = self._standing_connection()
                try:
                    done = _transaction(connection, begin, work)
                except sqlite3.DatabaseError as error:
                    reason = damage(error)
                    if reason is None:
                        raise
                    self._replace(connection, reason)
                else:
                    if self._stands():
                        return done
        raise StoreError(f"{self.path}: expected a file that stays, got one that was replaced {_TRIES} times in a row")

    def _standing_connection(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"{self.path}: expected an open store, got a closed one")
        if self._connection is None or not self._stands():
            self._drop()
            return self._open()
        return self._connection

    def _stands(self) -> bool:
        """Does the file that the connection writes to still bear the name? Another program may have set it aside."""
        return self.path == MEMORY or (self._identity is not None and self._identity == file_identity(self.path))

    # ---- opening, and setting aside ----------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        if self.path != MEMORY:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with self._alone():
            if self.path != MEMORY and (reason := overlooked_damage(self.path)):
                self._tell(reason, set_aside(self.path))
            for _ in range(_TRIES):
                connection = self._connect()
                try:
                    self._prepare(connection)
                except BaseException as error:
                    reason = damage(error)
                    if reason is None:
                        connection.close()
                        raise
                    self._set_aside(connection, reason)
                else:
                    self._connection, self._identity = connection, file_identity(self.path)
                    return connection
        raise StoreError(f"{self.path}: expected a fresh database to be sound, got {_TRIES} damaged ones in a row")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, self._timeout_s, isolation_level=None, check_same_thread=False)
        connection.text_factory = _text
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check, and create what is missing; also finds out whether the file can be written."""
        version = self._checked_version(connection)
        check(connection)
        # Some file systems can't, or another program is at work: without it writing is slower, and as safe.
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
        if version == 0:
            _transaction(connection, "BEGIN IMMEDIATE", _create)
        else:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")  # without a log, the end of a reader would have to be waited for to commit

    def _checked_version(self, connection: sqlite3.Connection) -> int:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.path}: expected a database of version {SCHEMA_VERSION} at most, got version {version} of a "
                "newer pyramid_env; it is left as it is"
            )
        (entries,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version < 0 or (version == 0 and entries):
            raise StoreError(f"{self.path}: expected a table's database, got another program's; it is left as it is")
        return int(version)

    def _replace(self, connection: sqlite3.Connection, reason: str) -> None:
        with self._alone():
            if self._stands():
                self._set_aside(connection, reason)
        self._drop()

    def _set_aside(self, connection: sqlite3.Connection, reason: str) -> None:
        if os.name == "nt":
            connection.close()  # Windows renames no open file
        try:
            self._tell(reason, set_aside(self.path))
        finally:
            connection.close()  # elsewhere after renaming: SQLite would write the log into the damaged file

    def _tell(self, reason: str, new: str) -> None:
        self.messages.append(
            f"The saved games, results and preferences in {self.path} are damaged ({reason}). The file was set aside "
            f"unchanged as {new}, and an empty one was begun."
        )

    def _alone(self) -> AbstractContextManager[None]:
        return nullcontext() if self.path == MEMORY else alone(self.path, self._timeout_s)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._identity = None

    # ---- errors ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path}: {self._words(error)}") from error

    def _words(self, error: Exception) -> str:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _BUSY:
            return f"another program has held the database for {self._timeout_s:g} s. Nothing is lost; try again"
        if code == sqlite3.SQLITE_FULL:
            return "the disk is full. What was kept before is safe"
        if code in _REFUSED or isinstance(error, OSError):
            return f"expected a file that can be opened and written, got {error}"
        return str(error)


def _transaction(connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], _Done]) -> _Done:
    try:
        connection.execute(begin)
        done = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with suppress(sqlite3.Error):  # the first error says what is wrong
                connection.execute("ROLLBACK")
        raise
    return done


def _create(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)


def _text(raw: bytes) -> str:
    """Damaged text is still read, so that what is wrong with it can be said."""
    return raw.decode("utf-8", "replace")
