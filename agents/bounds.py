"""Bounds: what the solver, seeing every card, proves about each deal; found in parallel and kept in a file."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from agents.evaluation import GameRecord, check_folder, progress_in, replace_file
from pyramid_env.benchmark import SHIPPED, SPLITS, bounds
from pyramid_env.benchmark.bounds import switches
from pyramid_env.deal import Deal
from pyramid_env.errors import PyramidError
from pyramid_env.rules import PRESETS, Rules
from pyramid_env.solver import Limits, solve
from pyramid_env.solver.columns import SOLVER_VERSION

MAX_STATES: Final = 5_000_000
"""States searched for one answer, unless told otherwise. A limit in states, not seconds: the same deals are left open
on every machine."""
SAVE_EVERY_S: Final = 15.0


class DealBound(NamedTuple):
    """What is proven about one deal. The ends are equal unless a limit was met.

    Attributes:
        deal: the deal's number.
        win_low: 1 if it is proven that the deal can be won, else 0.
        win_high: 0 if it is proven that it cannot, else 1.
        score_low: a score that is reached.
        score_high: a score that is proven not to be exceeded.
        seconds: time the solver took.
    """

    deal: int
    win_low: int
    win_high: int
    score_low: int
    score_high: int
    seconds: float

    @property
    def proven(self) -> bool:
        """Are win and score both known exactly?"""
        return self.win_low == self.win_high and self.score_low == self.score_high


def bound_of(deal: int, rules: Rules, limits: Limits) -> DealBound:
    """Ask the solver about one numbered deal: can it be won, and what is the best score?"""
    began = time.perf_counter()
    dealt = Deal.number(deal, rules)
    win = solve(dealt, rules, objective="win", **asdict(limits))
    score = win if rules.scoring == "none" else solve(dealt, rules, objective="score", **asdict(limits))
    seconds = round(time.perf_counter() - began, 6)
    return DealBound(deal, win.value, win.bound, score.value, score.bound, seconds)


def find_bounds(
    rules: Rules,
    deals: NDArray[np.int64],
    *,
    limits: Limits | None = None,
    workers: int | None = None,
    folder: Path | None = None,
    progress: bool | Progress = False,
) -> list[DealBound]:
    """Bounds of numbered deals, in their order; those stored in the folder or with the package are not searched for.

    Args:
        rules, deals, limits, workers, folder, progress: see :class:`BoundSearch`.

    Raises:
        PyramidError: fewer than one worker, a stored file that cannot be read, or a worker process that died.
        KeyboardInterrupt: as it came, after what is known was saved.
    """
    with BoundSearch(rules, deals, limits=limits, workers=workers, folder=folder, progress=progress) as search:
        return search.result()


class BoundSearch:
    """A search for the bounds of numbered deals, which can go on in worker processes while its caller plays games::

        with BoundSearch(rules, deals, folder=folder) as search:
            search.start()
            ...
            bounds = search.result()

    However it ends, what was found is saved, and the processes end with it.

    Args:
        rules: the game.
        deals: (D,) deal numbers.
        limits: the solver's, for each question; None: MAX_STATES states.
        workers: processes; None takes one a core. With 1 there are none: all is done in :meth:`result`.
        folder: where bounds are kept between runs, one file for each combination of switches, limits and solver
            version; None keeps nothing.
        progress: show a bar on the terminal, or a line in a bar that is shown already.

    Raises:
        PyramidError: fewer than one worker, or a stored file that cannot be read.
    """

    def __init__(
        self,
        rules: Rules,
        deals: NDArray[np.int64],
        *,
        limits: Limits | None = None,
        workers: int | None = None,
        folder: Path | None = None,
        progress: bool | Progress = False,
    ) -> None:
        if workers is not None and workers < 1:
            raise PyramidError(f"workers: expected 1 or more, got {workers}")
        self._rules: Final = rules
        self._limits: Final = limits or Limits(max_states=MAX_STATES)
        self._workers: Final = workers or os.cpu_count() or 1
        self._store: Final = None if folder is None else BoundStore(folder, rules, self._limits)
        self._wanted: Final[list[int]] = deals.tolist()
        self._known = {} if self._store is None else self._store.read()
        self._known |= shipped_bounds(rules, [deal for deal in self._wanted if deal not in self._known])
        self._missing: Final = [deal for deal in self._wanted if deal not in self._known]
        self._left: Final = set(self._missing)
        self._unsaved = 0
        self._saved_at = time.monotonic()
        self._pool: ProcessPoolExecutor | None = None
        self._answers: list[Future[DealBound]] = []
        self._progress: Final = progress
        self._ending: Final = ExitStack()

    def __enter__(self) -> Self:
        self._ending.callback(self.save)
        bar = self._ending.enter_context(progress_in(self._progress))
        task = bar.add_task("bound", total=len(self._wanted), completed=len(self._wanted) - len(self._missing))
        self._advance: Callable[[], object] = partial(bar.advance, task)
        return self

    def __exit__(self, *error: object) -> None:
        self._ending.close()

    def start(self) -> None:
        """Let worker processes begin; with one worker, or one missing deal, there are none."""
        if self._workers == 1 or len(self._missing) < 2:
            return
        # spawn: the same on every platform, and safe beside the threads of torch and Numba.
        self._pool = ProcessPoolExecutor(
            min(self._workers, len(self._missing)),
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_end_with_the_caller,
        )
        # The processes end before what they found is saved.
        self._ending.callback(self._pool.shutdown, cancel_futures=True)
        one = partial(bound_of, rules=self._rules, limits=self._limits)
        with _interrupts_held(), self._death_told():
            self._answers = [self._pool.submit(one, deal) for deal in self._missing]  # this starts the processes
        for answer in self._answers:
            answer.add_done_callback(self._count)

    def _count(self, answer: Future[DealBound]) -> None:
        if not answer.cancelled() and answer.exception() is None:
            self._advance()

    def keep(self) -> None:
        """Save what was found, if it is time; to be called now and then while the search goes on."""
        if time.monotonic() - self._saved_at > SAVE_EVERY_S:
            self.save()

    def save(self) -> None:
        """Save what was found."""
        for answer in self._answers:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                self._note(answer.result())
        self._saved_at = time.monotonic()
        if self._store is not None and self._unsaved:
            self._store.write(self._known)
            self._unsaved = 0

    def result(self) -> list[DealBound]:
        """Wait for all bounds; they come in the order of the deals.

        Raises:
            PyramidError: a worker process died.
        """
        if self._pool is None:
            self.start()
        if self._pool is None:
            for deal in self._missing:
                self._note(bound_of(deal, self._rules, self._limits))
                self._advance()
                self.keep()
        with self._death_told():
            for answer in as_completed(self._answers):
                self._note(answer.result())
                self.keep()
        return [self._known[deal] for deal in self._wanted]

    @contextmanager
    def _death_told(self) -> Iterator[None]:
        try:
            yield
        except BrokenProcessPool:
            raise PyramidError(
                f"bounds: one of {self._workers} processes ended before its answer, perhaps for lack of memory; "
                "take fewer workers or a lower limit of states"
            ) from None

    def _note(self, found: DealBound) -> None:
        if found.deal in self._left:
            self._left.remove(found.deal)
            self._known[found.deal] = found
            self._unsaved += 1


def shipped_bounds(rules: Rules, deals: Sequence[int]) -> dict[int, DealBound]:
    """Of some numbered deals those whose win and score are settled in the package's own files."""
    found: dict[int, DealBound] = {}
    if not any(switches(PRESETS[preset]) == switches(rules) for preset in SHIPPED):
        return found
    for split, numbers in SPLITS.items():
        for deal in (deal for deal in deals if deal in numbers):
            each = bounds(rules, split).for_deal(deal)
            bound = DealBound(deal, each.win_low, each.win_high, each.score_low, each.score_high, 0.0)
            if bound.proven:
                found[deal] = bound
    return found


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits: here until the block ends, and in processes started meanwhile until they are ready for it.

    A worker gets the signal mask of its parent. Without this, one that is still importing would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_the_caller() -> None:
    """Ctrl-C ends a worker at once, even within a kernel; what it was searching for is lost, no more. So does the end
    of the process that it works for: killed, that one could not tell it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_after_the_caller, daemon=True).start()


def _end_after_the_caller() -> None:
    caller = multiprocessing.parent_process()
    if caller is not None:
        caller.join()
        os._exit(1)


# ---- what games prove ------------------------------------------------------------------------------------------------


def tightened(bounds: Sequence[DealBound], records: Iterable[GameRecord]) -> list[DealBound]:
    """The bounds with their lower ends raised to what games on the same deals reached: a game played is a proof as
    well.

    Raises:
        AssertionError: a game above a proven bound: a fault of the program, after which no figure can be trusted.
    """
    best = {bound.deal: bound for bound in bounds}
    for record in records:
        bound = best.get(record.deal)
        if bound is None:
            continue
        if record.won > bound.win_high or record.score > bound.score_high:
            raise AssertionError(
                f"deal {record.deal}, {record.rules}: {record.agent} reached {record.score}, won: {record.won}; "
                f"proven was at most {bound.score_high}, won: {bool(bound.win_high)}"
            )
        best[record.deal] = bound._replace(
            win_low=max(bound.win_low, int(record.won)), score_low=max(bound.score_low, record.score)
        )
    return [best[bound.deal] for bound in bounds]


# ---- the store -------------------------------------------------------------------------------------------------------


def default_folder() -> Path:
    """Where bounds are kept unless told otherwise: the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyramid_env" / "bounds"


class BoundStore:
    """A JSON file of bounds, one line a deal, for one combination of switches, limits and solver version."""

    def __init__(self, folder: Path, rules: Rules, limits: Limits) -> None:
        switches = {k: v for k, v in rules.to_dict().items() if k not in ("preset", "match_games")}  # no bound on them
        self.key: Final[dict[str, Any]] = {"solver": SOLVER_VERSION, "limits": asdict(limits), "switches": switches}
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:12]
        self.path: Final = folder / f"{digest}.json"

    def read(self) -> dict[int, DealBound]:
        """What is stored, by deal; nothing if there is no file."""
        if not self.path.exists():
            return {}
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
            if stored["key"] != self.key:
                raise ValueError("it is about other rules, limits or another solver")
            return {bound.deal: bound for bound in map(_read_bound, stored["bounds"])}
        except (ValueError, TypeError, KeyError) as error:
            raise PyramidError(
                f"{self.path}: cannot read the stored bounds: {error}; delete the file to search anew"
            ) from None

    def check(self, deals: NDArray[np.int64]) -> None:
        """Raise now what would stop a search for these deals: a file that cannot be read, a folder that cannot be
        written to though bounds are missing."""
        known = self.read()
        if any(deal not in known for deal in deals.tolist()):
            check_folder(self.path.parent, "bounds")

    def write(self, bounds: dict[int, DealBound]) -> None:
        """Store bounds, together with those that another run has stored meanwhile."""
        merged = {**self.read(), **bounds}
        lines = ",\n".join(json.dumps(list(merged[deal])) for deal in sorted(merged))
        head = f'"key": {json.dumps(self.key)},\n"columns": {json.dumps(DealBound._fields)}'
        replace_file(self.path, f'{{{head},\n"bounds": [\n{lines}\n]}}\n')


def _read_bound(row: list[Any]) -> DealBound:
    bound = DealBound(*row)
    whole = all(type(number) is int for number in row[:-1])
    if not (whole and 0 <= bound.win_low <= bound.win_high <= 1 and bound.score_low <= bound.score_high):
        raise ValueError(f"no bound of a deal: {row}")
    return bound
