"""Columns: the answers to one question about many deals, as arrays, with what made them; in memory and in a file."""

from __future__ import annotations

import io
import json
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, Final, overload
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pyramid_env.deal import Deal
from pyramid_env.moves import move_table
from pyramid_env.solver.blocks import STATUSES, Block
from pyramid_env.solver.question import UNNUMBERED, Dealt, Question
from pyramid_env.solver.result import Solution, SolverError

SOLVER_VERSION: Final = 3
"""Goes up when the solver's answers can change (other proofs within the same limits, a mended fault). A file made by
another version is read, but not resumed."""

_COLUMNS: Final[dict[str, DTypeLike]] = {
    "status": np.int8,
    "value": np.int32,
    "bound": np.int32,
    "states": np.int64,
    "seconds": np.float64,
    "actions": np.int16,
    "offsets": np.int64,
}


class Solutions(Sequence[Solution]):
    """The answers to one question about many deals, in the order of the deals.

    ``solutions[i]`` is a :class:`Solution`, made when asked for; a slice is a Solutions again. Two are equal if the
    deals, the rules' switches, the objective and the answers (status, value, bound, lines) are; states and seconds,
    limits and version may differ.

    Attributes (n deals, all arrays read-only):
        rules, objective, limits: what was asked, and the limits of each deal.
        version: the solver's that answered; SOLVER_VERSION is this one's.
        deals: (n,) int64 deal numbers, -1 for a deal without a number; :meth:`deal` gives either.
        status: (n,) int8, an index into ``STATUSES``: 0 optimal, 1 unwinnable, 2 limit.
        value, bound: (n,) int32.
        states: (n,) int64 positions stored by the search.
        seconds: (n,) float64 wall-clock time.
        actions: (k,) int16 action indices of all lines, one after the other.
        offsets: (n + 1,) int64; deal i's line is ``actions[offsets[i]:offsets[i + 1]]``.
    """

    def __init__(self, question: Question, block: Block) -> None:
        """From the columns; ValueError, with the reason, if they do not fit together."""
        self.question: Final = question
        self.rules: Final = question.rules
        self.objective: Final = question.objective
        self.limits: Final = question.limits
        self.version: Final = question.version
        self.deals: Final = _column(question.dealt.numbers, np.int64)
        self.status: Final[NDArray[np.int8]] = _column(block.status, np.int8)
        self.value: Final[NDArray[np.int32]] = _column(block.value, np.int32)
        self.bound: Final[NDArray[np.int32]] = _column(block.bound, np.int32)
        self.states: Final[NDArray[np.int64]] = _column(block.states, np.int64)
        self.seconds: Final[NDArray[np.float64]] = _column(block.seconds, np.float64)
        self.actions: Final[NDArray[np.int16]] = _column(block.actions, np.int16)
        self.offsets: Final[NDArray[np.int64]] = _column(block.offsets, np.int64)
        self._moves: Final = move_table(question.rules).moves
        self._check()

    def _check(self) -> None:
        count = len(self.deals)
        for name in ("status", "value", "bound", "states", "seconds"):
            if getattr(self, name).shape != (count,):
                raise ValueError(f"{name}: expected {count} numbers, got {getattr(self, name).shape}")
        offsets, actions = self.offsets, self.actions
        if (
            offsets.shape != (count + 1,)
            or offsets[0] != 0
            or offsets[-1] != actions.size
            or (np.diff(offsets) < 0).any()
        ):
            raise ValueError(f"offsets: expected {count + 1} numbers that rise from 0 to {actions.size}")
        for name, most in (("status", len(STATUSES)), ("actions", len(self._moves))):
            column = getattr(self, name)
            if column.size and not 0 <= column.min() <= column.max() < most:
                raise ValueError(f"{name}: expected indices from 0 to {most - 1}")

    def __len__(self) -> int:
        return len(self.deals)

    @overload
    def __getitem__(self, index: int) -> Solution: ...

    @overload
    def __getitem__(self, index: slice) -> Solutions: ...

    def __getitem__(self, index: int | slice) -> Solution | Solutions:
        if isinstance(index, slice):
            return self._taken(np.arange(len(self))[index])
        at = range(len(self))[index]  # negative indices, IndexError
        return Solution(
            STATUSES[self.status[at]],
            self.objective,
            int(self.value[at]),
            int(self.bound[at]),
            tuple(map(self._moves.__getitem__, self.line(at).tolist())),
            int(self.states[at]),
            float(self.seconds[at]),
        )

    def line(self, index: int) -> NDArray[np.int16]:
        """The action indices of one deal's line: its Solution's ``moves``."""
        at = range(len(self))[index]
        return self.actions[self.offsets[at] : self.offsets[at + 1]]

    def deal(self, index: int) -> Deal:
        """The deal that an answer is about."""
        return self.question.deal(range(len(self))[index])

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """One array of n values a name, for a table: deal, status, value, bound, states, seconds, steps of the line."""
        lengths = np.diff(self.offsets)
        return {
            "deal": self.deals,
            "status": np.array([status.value for status in STATUSES])[self.status],
            "value": self.value,
            "bound": self.bound,
            "states": self.states,
            "seconds": self.seconds,
            "steps": lengths,
        }

    def _taken(self, indices: NDArray[np.intp]) -> Solutions:
        lengths = np.diff(self.offsets)[indices]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        actions = self.actions[np.repeat(self.offsets[:-1][indices], lengths) + within]
        numbers, cards = self.question.dealt
        bare = numbers == UNNUMBERED
        chosen = (np.cumsum(bare) - 1)[indices][bare[indices]]
        question = Question(
            self.rules, self.objective, self.limits, Dealt(numbers[indices], cards[chosen]), self.version
        )
        return Solutions(
            question,
            Block(
                status=self.status[indices],
                value=self.value[indices],
                bound=self.bound[indices],
                states=self.states[indices],
                seconds=self.seconds[indices],
                actions=actions,
                offsets=offsets,
            ),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Solutions):
            return NotImplemented
        mine, theirs = self.question, other.question
        return (
            mine.switches() == theirs.switches()
            and mine.same_deals(theirs)
            and all(
                np.array_equal(getattr(self, name), getattr(other, name))
                for name in ("status", "value", "bound", "offsets", "actions")
            )
        )

    def __repr__(self) -> str:
        counts = np.bincount(self.status, minlength=len(STATUSES)).tolist()
        told = ", ".join(f"{count} {status.value}" for status, count in zip(STATUSES, counts, strict=True) if count)
        return f"Solutions({len(self)} deals of {self.rules}, {self.objective}{': ' if told else ''}{told})"

    # ---- the file ----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, whole or not at all; one that is there is replaced.

        The file is a compressed ``.npz`` (whatever the path ends in) that ``numpy.load(path)`` opens without pickle:
        the columns by their names, ``cards`` (u, cards) int8 with the card ids of the deals without a number, and
        ``header``, JSON text as bytes (uint8) with the format, the versions, the rules' switches, the objective and
        the limits.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(self, path, path.with_name(f".{path.name}.{os.getpid()}"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Solutions:
        """Read what :meth:`save` or :func:`solve_many` wrote.

        Raises:
            SolverError: the file is damaged, no such file, or of a later format.
            OSError: it cannot be opened.
        """
        with Path(path).open("rb") as file:
            try:
                columns = _read(file)
                header = json.loads(columns.pop("header").tobytes().decode())
                question = Question.from_header(header, columns.pop("deals"), columns.pop("cards"))
                return cls(question, Block(**columns))
            except DAMAGE as error:
                raise SolverError(f"{path}: expected a file of solutions, cannot read it: {error}") from error


def _column(values: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """A read-only view or copy."""
    column = np.ascontiguousarray(values, dtype).view()
    column.flags.writeable = False
    return column


DAMAGE: Final = (
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    OSError,
    RuntimeError,
    struct.error,
    zlib.error,
    BadZipFile,
)
"""What zip files, numpy and JSON raise for a damaged file; SolverError and RulesError are ValueErrors."""


def write_file(solutions: Solutions, path: Path, temporary: Path) -> None:
    """Write to a temporary file beside the path, then rename."""
    from pyramid_env import __version__

    header = json.dumps({**solutions.question.header(), "package": __version__}, indent=1).encode()
    columns: dict[str, NDArray[Any]] = {"header": np.frombuffer(header, np.uint8), "deals": solutions.deals}
    columns["cards"] = solutions.question.dealt.cards
    columns.update((name, getattr(solutions, name)) for name in _COLUMNS)
    try:
        with temporary.open("wb") as file:
            # As numpy.savez_compressed writes them, but never with pickle.
            with ZipFile(file, "w", ZIP_DEFLATED) as members:
                for name, column in columns.items():
                    with members.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, column, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _read(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    """The columns of a file, each with its dtype; ValueError if one is missing or of another."""
    columns = {}
    with ZipFile(file) as members:
        for name, dtype in {"header": np.uint8, "deals": np.int64, "cards": np.int8, **_COLUMNS}.items():
            stored = io.BytesIO(members.read(f"{name}.npy"))  # checks the CRC32
            column = columns[name] = np.lib.format.read_array(stored, allow_pickle=False)
            if column.dtype != np.dtype(dtype):
                raise ValueError(f"{name}: expected {np.dtype(dtype)}, got {column.dtype}")
    return columns


# ---- putting answers together ----------------------------------------------------------------------------------------


class Builder:
    """Answers as they come, in any order, a block at a time."""

    def __init__(self, question: Question) -> None:
        self.question: Final = question
        self.done: int = 0
        """Deals answered."""
        self._blocks: Final[list[tuple[int, Block]]] = []

    def put(self, start: int, block: Block) -> None:
        """Take the answers about the deals from index ``start`` on."""
        self._blocks.append((start, block))
        self.done += block.status.size

    def gaps(self) -> list[range]:
        """Indices of the deals without an answer yet, in rising order."""
        spans = sorted((start, start + block.status.size) for start, block in self._blocks)
        edges = [0, *(edge for span in spans for edge in span), len(self.question.dealt.numbers)]
        return [range(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]

    def finished(self) -> Solutions:
        """All answers; each deal must have been answered once."""
        blocks = [block for _, block in sorted(self._blocks, key=lambda placed: placed[0])]
        lengths = _joined((np.diff(block.offsets) for block in blocks), np.int64)
        columns = {
            field: _joined((getattr(block, field) for block in blocks), dtype)
            for field, dtype in _COLUMNS.items()
            if field != "offsets"
        }
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return Solutions(self.question, Block(**columns, offsets=offsets))


def _joined(columns: Iterable[NDArray[Any]], dtype: DTypeLike) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *columns]).astype(dtype, copy=False)
