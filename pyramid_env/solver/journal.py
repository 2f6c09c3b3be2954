"""Journal: answers on disk as they come, a block at a time, so that a run killed at any moment can be taken up again.

The file is a row of records: a tag, the payload's length and CRC32, the payload. The first holds the question, each
of the others a block. Records are only ever added, so a kill can spoil the last one alone; it is then dropped.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import threading
import zlib
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from pyramid_env.solver.blocks import Block
from pyramid_env.solver.question import Question
from pyramid_env.solver.result import SolverError

SUFFIX: Final = ".partial"
"""Added to the name of the file that a run is to make."""

_HEAD: Final = struct.Struct("<8sQI")  # tag, bytes of the payload, its CRC32
_QUESTION: Final = b"PyraSolQ"
_BLOCK: Final = b"PyraSolB"
_PLACE: Final = struct.Struct("<QQQ")  # first deal, deals, actions; then the columns of Block in their order
_DTYPES: Final = ("i1", "<i4", "<i4", "<i8", "<f8", "<i2", "<i8")


class Journal:
    """The journal of one question, locked against other runs while it is open.

    Attributes:
        blocks: what was there when it was opened: (index of the first deal, answers).
    """

    def __init__(self, path: Path, question: Question) -> None:
        """Open the journal of a question, or begin it.

        Raises:
            SolverError: another run has it open, or the file is none or about another question; it is left as it is.
            OSError: it cannot be opened or written.
        """
        self.path: Final = path
        self.blocks: Final[list[tuple[int, Block]]] = []
        self._lock: Final = threading.Lock()
        self._file: Final = _open_locked(path)
        try:
            self._read(question)
        except BaseException:
            self.close()
            raise

    def _read(self, question: Question) -> None:
        file, first = self._file, _record(_QUESTION, _question_bytes(question))
        size = os.fstat(file.fileno()).st_size
        file.seek(0)
        if size < len(first) and first.startswith(_read(file, size)):  # new, or killed while it was begun
            file.truncate(0)
            file.seek(0)
            _write(file, first)
            return
        file.seek(0)
        found = _next_payload(file, _QUESTION, size)
        try:
            if found is None:
                raise ValueError("it does not begin with a question")
            there = _read_question(found)
        except (ValueError, TypeError, KeyError) as error:
            raise SolverError(f"{self.path}: expected a journal of solve_many, cannot read it: {error}") from None
        question.check_same(there, self.path)
        self._read_blocks(size, len(question.dealt.numbers))

    def _read_blocks(self, size: int, deals: int) -> None:
        """Take all whole records; cut off what follows them."""
        file = self._file
        done = np.zeros(deals, np.bool_)
        end = file.tell()
        while (payload := _next_payload(file, _BLOCK, size)) is not None:
            start, block = _read_block(payload)
            span = slice(start, start + block.status.size)
            if span.stop > deals or done[span].any():
                break
            done[span] = True
            self.blocks.append((start, block))
            end = file.tell()
        if end < size:
            file.truncate(end)
        file.seek(end)

    def append(self, start: int, block: Block) -> None:
        """Add the answers about the deals from index ``start`` on. Any thread may; after :meth:`close` it does nothing.

        Raises:
            OSError: they cannot be written; what was there before stays whole.
        """
        record = _record(_BLOCK, _block_bytes(start, block))
        with self._lock:
            if self._file.closed:
                return
            end = self._file.tell()
            try:
                _write(self._file, record)
            except BaseException:
                self._file.truncate(end)
                self._file.seek(end)
                raise

    def remove(self) -> None:
        """Delete the file: all that it holds is kept elsewhere. The journal is closed."""
        if sys.platform == "win32":  # where an open file cannot be deleted
            self.close()
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the file and give up the lock."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


# ---- the lock --------------------------------------------------------------------------------------------------------


def _open_locked(path: Path) -> FileIO:
    """Open a file for reading and writing, made if it is not there, with a lock that ends with this process."""
    while True:
        file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+")
        try:
            if not _try_lock(file):
                raise SolverError(f"{path}: another run has this file open; wait until it has ended")
            if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # deleted, by the run that had it, before we had the lock


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: FileIO) -> bool:
        """Lock without waiting; False if another has the lock."""
        file.seek(1 << 62)  # a byte far behind the data: a locked byte cannot be read by others
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(file: FileIO) -> bool:
        """Lock without waiting; False if another has the lock."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


# ---- records ---------------------------------------------------------------------------------------------------------


def _record(tag: bytes, payload: bytes) -> bytes:
    return _HEAD.pack(tag, len(payload), zlib.crc32(payload)) + payload


def _write(file: FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _read(file: FileIO, count: int) -> bytes:
    """So many bytes, fewer only at the end of the file."""
    data = bytearray()
    while len(data) < count and (more := file.read(count - len(data))):
        data += more
    return bytes(data)


def _next_payload(file: FileIO, tag: bytes, size: int) -> bytes | None:
    """The payload of the record that begins here, None if there is no whole one with this tag."""
    head = _read(file, _HEAD.size)
    if len(head) < _HEAD.size:
        return None
    found, length, checksum = _HEAD.unpack(head)
    if found != tag or length > size - file.tell():
        return None
    payload = _read(file, length)
    return payload if zlib.crc32(payload) == checksum else None


def _question_bytes(question: Question) -> bytes:
    numbers, cards = question.dealt
    header = json.dumps({**question.header(), "deals": len(numbers)}).encode()
    return header + b"\n" + numbers.astype("<i8").tobytes() + cards.tobytes()


def _read_question(payload: bytes) -> Question:
    text, _, arrays = payload.partition(b"\n")
    header = json.loads(text)
    numbers = np.frombuffer(arrays, "<i8", header["deals"])
    return Question.from_header(header, numbers.astype(np.int64), np.frombuffer(arrays, np.int8, -1, numbers.nbytes))


def _block_bytes(start: int, block: Block) -> bytes:
    columns = (np.asarray(column, dtype).tobytes() for column, dtype in zip(block, _DTYPES, strict=True))
    return _PLACE.pack(start, block.status.size, block.actions.size) + b"".join(columns)


def _read_block(payload: bytes) -> tuple[int, Block]:
    start, deals, actions = _PLACE.unpack_from(payload)
    columns: list[NDArray[Any]] = []
    at = _PLACE.size
    for field, dtype in zip(Block._fields, _DTYPES, strict=True):
        count = actions if field == "actions" else deals + 1 if field == "offsets" else deals
        columns.append(np.frombuffer(payload, dtype, count, at))
        at += columns[-1].nbytes
    return start, Block(*columns)
