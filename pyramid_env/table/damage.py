"""Damage to a database file: how it is recognised, and how the file is set aside without losing a byte."""

from __future__ import annotations

import itertools
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

_DAMAGE_CODES: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database; part of it until the last connection closes."""

_SECTOR: Final = 512
"""Bytes: the least that a page of SQLite has, and a divisor of all others."""


class DamagedError(Exception):
    """A check found the database damaged."""


def damage(error: BaseException) -> str | None:
    """What is damaged, in SQLite's words, or None if the error tells of something else."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte; the others say more about the same fault
    return str(error) if isinstance(error, DamagedError) or code in _DAMAGE_CODES else None


def check(connection: sqlite3.Connection) -> None:
    """Read every page. Raises DamagedError or sqlite3.DatabaseError.

    The full check, as the quick one passes over the indexes, and 10,000 results take 15 ms.
    """
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise DamagedError(" ".join(found.removeprefix("*** in database main ***").split()))


def file_identity(path: str) -> tuple[int, int] | None:
    """What stays the same while a file is written to, and differs after another took its name; None without a file."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def overlooked_damage(path: str) -> str | None:
    """What SQLite would pass over and write or delete, seen from the sizes alone; None if there is nothing of the kind.

    The file is not opened: closing it again would end the locks of this program's other connections.
    """
    log = max(_size(path + end) for end in ("-wal", "-journal"))  # a torn page is mended from it
    size = _size(path)
    if size % _SECTOR and not log:
        return f"its {size} bytes are not a whole number of pages"
    if not size and _size(path + "-wal"):
        return "there is only a log of changes to it"
    return None


def _size(path: str) -> int:
    """0 also where there is no file, or a folder."""
    return os.path.getsize(path) if os.path.isfile(path) else 0


def set_aside(path: str) -> str:
    """Rename a database and what lies beside it; returns its new name. Nothing is overwritten.

    The database goes last: whatever ends the program in between, the damage is still found in its place.
    The caller is :func:`alone`.
    """
    new = _free_name(f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    for end in (*_BESIDE, ""):
        if os.path.lexists(path + end):
            os.rename(path + end, new + end)
    return new


def _free_name(name: str) -> str:
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(name for name in names if not any(os.path.lexists(name + end) for end in (*_BESIDE, "")))


@contextmanager
def alone(path: str, timeout_s: float) -> Iterator[None]:
    """Opening and setting aside are done by one program at a time. Raises sqlite3.OperationalError after the timeout.

    The lock is SQLite's own, on an empty database beside: it works wherever the database does and ends with its holder.
    """
    with closing(sqlite3.connect(f"{path}.lock", timeout=timeout_s, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        yield
