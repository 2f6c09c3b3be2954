"""Winnable deals: numbers of deals that can be won, proven by the solver; one at a time, or a stream for training."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from pyramid_env.deal import random_numbers
from pyramid_env.errors import DeckError, PyramidError
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver.api import solve
from pyramid_env.solver.columns import SOLVER_VERSION
from pyramid_env.solver.many import solve_many

MAX_STATES: Final = 1_000_000
"""Positions stored for one deal; a deal that is open then is passed over. A limit in states, not seconds: the same
deals are taken on every machine."""
MAX_REFUSED: Final = 10_000
"""So many deals in a row that cannot be won are a matter of the rules, not chance."""
BLOCK: Final = 64
"""Deals that are solved together; what closing a source loses at most."""
SAVE_EVERY_S: Final = 15.0

_LOOK_S: Final = 0.2  # where waiting cannot be interrupted (Windows), Ctrl-C is seen after this time
_PATIENCE_S: Final = 5.0  # for a thread that is told to end; longer than a slice of a search
_FORMAT: Final = "pyramid_env.winnable"
_DAMAGE: Final = (ValueError, TypeError, KeyError, EOFError, OSError, BadZipFile)


def random_winnable(rng: np.random.Generator, rules: Rules) -> int:
    """The first number of the training range, drawn one after the other from the generator, whose deal can be won.

    Raises:
        DeckError: ``rng`` is no generator, or MAX_REFUSED deals in a row cannot be won.
    """
    for _ in range(MAX_REFUSED):
        number = int(random_numbers(rng, 1)[0])
        if solve(number, rules, max_states=MAX_STATES).value:
            return number
    raise DeckError(f"random deal: none of {MAX_REFUSED:,} deals of {rules} in a row can be won")


class WinnableDeals:
    """Numbers of deals that can be won, for training: a deal source for the environments, and an endless iterator::

        with WinnableDeals("pyramid", seed=7) as deals:
            envs = gym.make_vec("pyramid_env/Pyramid-v0", num_envs=1024, rules="pyramid", deals=deals)

    The candidates are random numbers of the training range (from 1,000,000 up) drawn from the seed; those that the
    solver proves winnable come out, in that order, whatever the timing, the workers or the cache. From the first
    :meth:`take` on a thread solves ahead, beside the caller's work (kernels run without Python's lock), and stops when
    enough are waiting. What is found is kept in a file (a bit a candidate), so a second run begins at once.

    A copy (``copy.deepcopy``, pickle) goes on from the same place, on its own.

    Args:
        rules: the game.
        seed: a whole number from 0 up.
        ahead: deals that wait at most, 1 or more.
        workers: threads of the solver, 1 or more.
        max_states: limit of the solver for one candidate, see MAX_STATES.
        cache: True: keep what is found in the user's cache folder; False: keep nothing; or a folder.

    Attributes:
        rules, seed: as given.

    Raises:
        PyramidError: arguments out of range, or a file in the cache that cannot be read.
    """

    def __init__(
        self,
        rules: Rules | str = "pyramid",
        seed: int = 0,
        *,
        ahead: int = 2048,
        workers: int = 1,
        max_states: int = MAX_STATES,
        cache: bool | str | os.PathLike[str] = True,
    ) -> None:
        self.rules: Final = read_rules(rules)
        self.seed: Final = _whole("seed", seed, 0)
        self._options: Final[dict[str, Any]] = {
            "ahead": _whole("ahead", ahead, 1),
            "workers": _whole("workers", workers, 1),
            "max_states": _whole("max_states", max_states, 1),
            "cache": cache,
        }
        folder = cache_folder() if cache is True else None if cache is False else Path(cache)
        verdicts = _Verdicts(self.rules, self.seed, max_states, folder)
        self._search = _Search(self.rules, self.seed, ahead, workers, max_states, verdicts)
        # The thread knows the search alone: a source that is dropped, and the end of the program, end it.
        self._end = weakref.finalize(self, self._search.stop)

    @property
    def taken(self) -> int:
        """Deals handed out so far."""
        return self._search.taken

    def take(self, count: int) -> NDArray[np.int64]:
        """(count,) int64: the next deal numbers; waits for the solver where it must. Any thread may ask.

        Raises:
            PyramidError: a count below 0, a source that is closed, or rules of which MAX_REFUSED deals in a row cannot
                be won.
            Exception: what ended the thread that solves, as it came.
        """
        return self._search.take(_whole("count", count, 0))

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return int(self.take(1)[0])

    def close(self) -> None:
        """End the thread and keep what it found. Further calls do nothing."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.rules, self.seed, self._options, self.taken)

    def __repr__(self) -> str:
        return f"WinnableDeals({str(self.rules)!r}, seed={self.seed}, {self.taken} taken)"


def _restored(rules: Rules, seed: int, options: dict[str, Any], taken: int) -> WinnableDeals:
    made = WinnableDeals(rules, seed, **options)
    made._search.skip = made._search.taken = taken
    return made


def cache_folder() -> Path:
    """Where verdicts are kept unless told otherwise: the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyramid_env" / "winnable"


# ---- the search ------------------------------------------------------------------------------------------------------


class _Stopped(Exception):
    """Leaves solve_many when the source is closed."""


class _Search:
    """The thread that solves ahead, and the deals that wait."""

    def __init__(self, rules: Rules, seed: int, ahead: int, workers: int, max_states: int, verdicts: _Verdicts) -> None:
        self._rules: Final = rules
        self._seed: Final = seed
        self._ahead: Final = ahead
        self._workers: Final = workers
        self._max_states: Final = max_states
        self._verdicts: Final = verdicts
        self._turn: Final = threading.Lock()  # one caller of take at a time
        self._changed: Final = threading.Condition()
        self._waiting: Final[deque[int]] = deque()
        self._wanted = 0  # by the caller of take
        self._stopped = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self.skip = 0
        self.taken = 0

    def take(self, count: int) -> NDArray[np.int64]:
        with self._turn, self._changed:
            self._wanted = count
            if self._thread is None and not self._stopped:
                # daemon: a program must end even if this thread is still compiling.
                self._thread = threading.Thread(target=self._work, name="winnable-deals", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            while len(self._waiting) < count:
                if self._error is not None:
                    raise self._error
                if self._stopped:
                    raise PyramidError("winnable deals: expected an open source, got a closed one")
                if self._thread is None or not self._thread.is_alive():  # a copy of this process, made by fork
                    raise PyramidError("winnable deals: the thread that solves is not in this process")
                self._changed.wait(_LOOK_S)
            self._wanted = 0
            numbers = np.array([self._waiting.popleft() for _ in range(count)], np.int64)
            self.taken += count
            self._changed.notify_all()
            return numbers

    def stop(self) -> None:
        """Have the thread end, and wait, but not for ever."""
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_PATIENCE_S)

    def _work(self) -> None:
        try:
            for numbers in self._found():
                with self._changed:
                    self._waiting.extend(numbers.tolist())
                    self._changed.notify_all()
                    while not self._stopped and len(self._waiting) >= max(self._ahead, self._wanted):
                        self._changed.wait()
                    if self._stopped:
                        break
        except _Stopped:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._verdicts.save()
            with self._changed:
                self._changed.notify_all()

    def _found(self) -> Iterator[NDArray[np.int64]]:
        """Winnable numbers, a block of candidates at a time."""
        rng = np.random.default_rng(self._seed)
        saved_at = time.monotonic()
        refused, at, skip = 0, 0, self.skip
        while True:
            candidates = random_numbers(rng, BLOCK)
            good = self._verdicts.known(at)
            if good is None:
                good = self._solved(candidates)
                self._verdicts.add(good)
                if time.monotonic() - saved_at > SAVE_EVERY_S:
                    self._verdicts.save()
                    saved_at = time.monotonic()
            at += 1
            refused = 0 if good.any() else refused + BLOCK
            if refused >= MAX_REFUSED:
                raise PyramidError(f"winnable deals: none of {refused:,} deals of {self._rules} in a row can be won")
            found = candidates[good]
            yield found[skip:]
            skip = max(0, skip - found.size)

    def _solved(self, candidates: NDArray[np.int64]) -> NDArray[np.bool_]:
        solutions = solve_many(
            candidates, self._rules, workers=self._workers, max_states=self._max_states, progress=self._look
        )
        good: NDArray[np.bool_] = solutions.value == 1
        return good

    def _look(self, done: int, total: int) -> None:
        if self._stopped:
            raise _Stopped


# ---- the cache -------------------------------------------------------------------------------------------------------


class _Verdicts:
    """Which candidates can be won, a block at a time; in memory, and in a file for one game, seed and limit."""

    def __init__(self, rules: Rules, seed: int, max_states: int, folder: Path | None) -> None:
        switches = {name: value for name, value in rules.to_dict().items() if name not in ("preset", "match_games")}
        self._key: Final = {
            "format": _FORMAT,
            "solver": SOLVER_VERSION,
            "max_states": max_states,
            "switches": switches,
            "seed": seed,
            "candidates": random_numbers(np.random.default_rng(seed), 4).tolist(),  # the generator is the same one
        }
        digest = hashlib.sha256(json.dumps(self._key, sort_keys=True).encode()).hexdigest()[:16]
        self._path: Final = None if folder is None else folder / f"{digest}.npz"
        self._blocks: Final[list[NDArray[np.bool_]]] = self._read()
        self._saved = len(self._blocks)

    def known(self, block: int) -> NDArray[np.bool_] | None:
        """(BLOCK,) the verdicts on a block of candidates, None if it has not been solved."""
        return self._blocks[block] if block < len(self._blocks) else None

    def add(self, good: NDArray[np.bool_]) -> None:
        """Take the verdicts on the next block."""
        self._blocks.append(good)

    def save(self) -> None:
        """Write the file, whole or not at all, unless it holds as much already. What cannot be written is a warning:
        it costs the next run time, no more."""
        if self._path is None or len(self._blocks) <= self._saved:
            return
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if len(self._read()) < len(self._blocks):  # another run may have come further meanwhile
                key = np.frombuffer(json.dumps(self._key).encode(), np.uint8)
                with temporary.open("wb") as file:
                    np.savez(file, key=key, verdicts=np.packbits(np.concatenate(self._blocks)))
                temporary.replace(self._path)
            self._saved = len(self._blocks)
        except (OSError, PyramidError) as error:
            warnings.warn(f"winnable deals: not kept for the next run: {error}", stacklevel=2)
        finally:
            temporary.unlink(missing_ok=True)

    def _read(self) -> list[NDArray[np.bool_]]:
        if self._path is None or not self._path.exists():
            return []
        try:
            with self._path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                if json.loads(stored["key"].tobytes()) != self._key:
                    raise ValueError("it is about other deals, or by another solver")
                verdicts = stored["verdicts"]
            if verdicts.dtype != np.uint8 or verdicts.ndim != 1 or verdicts.size % (BLOCK // 8):
                raise ValueError("it does not hold whole blocks")
            return list(np.unpackbits(verdicts).astype(np.bool_).reshape(-1, BLOCK))
        except _DAMAGE as error:
            raise PyramidError(
                f"{self._path}: cannot read the kept verdicts: {error}; delete the file to solve anew"
            ) from None


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise PyramidError(f"winnable deals: {name}: expected a whole number from {least} up, got {value!r}")
    return int(value)
