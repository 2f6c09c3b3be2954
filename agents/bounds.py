"""Bounds: what the solver, seeing every card, proves about each deal; found in parallel and kept in a file."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.evaluation import GameRecord, check_folder, progress_bar, replace_file
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
    progress: bool = False,
) -> list[DealBound]:
    """Bounds of numbered deals, in their order; those stored in the folder or with the package are not searched for.

    Args:
        rules: the game.
        deals: (D,) deal numbers.
        limits: the solver's, for each question; None: MAX_STATES states.
        workers: processes; None takes one a core. With 1 all is done in this process.
        folder: where bounds are kept between runs, one file for each combination of switches, limits and solver
            version; None keeps nothing. What is known is saved every few seconds, and also when the search is
            interrupted.
        progress: show a bar on the terminal.

    Raises:
        PyramidError: fewer than one worker, a stored file that cannot be read, or a worker process that died.
        KeyboardInterrupt: as it came, after what is known was saved.
    """
    if workers is not None and workers < 1:
        raise PyramidError(f"workers: expected 1 or more, got {workers}")
    limits = limits or Limits(max_states=MAX_STATES)
    store = None if folder is None else BoundStore(folder, rules, limits)
    known = {} if store is None else store.read()
    wanted = deals.tolist()
    known |= shipped_bounds(rules, [deal for deal in wanted if deal not in known])
    missing = [deal for deal in wanted if deal not in known]
    saved_at = time.monotonic()
    with progress_bar(progress) as bar:
        task = bar.add_task("bound", total=len(wanted), completed=len(wanted) - len(missing))
        try:
            # closing: an interrupt must end the processes at once, not when the generator happens to be collected.
            with closing(_search(missing, rules, limits, workers or os.cpu_count() or 1)) as search:
                for bound in search:
                    known[bound.deal] = bound
                    bar.advance(task)
                    if store is not None and time.monotonic() - saved_at > SAVE_EVERY_S:
                        store.write(known)
                        saved_at = time.monotonic()
        finally:
            if store is not None and any(deal in known for deal in missing):
                store.write(known)
    return [known[deal] for deal in wanted]


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


def _search(deals: Sequence[int], rules: Rules, limits: Limits, workers: int) -> Generator[DealBound, None, None]:
    """Bounds in the order in which they are found."""
    one = partial(bound_of, rules=rules, limits=limits)
    if workers == 1 or len(deals) < 2:
        yield from map(one, deals)
        return
    # spawn: the same on every platform, and safe beside the threads of torch and Numba.
    pool = ProcessPoolExecutor(
        min(workers, len(deals)), mp_context=multiprocessing.get_context("spawn"), initializer=_end_on_interrupt
    )
    try:
        with _interrupts_held():
            answers = [pool.submit(one, deal) for deal in deals]  # this is what starts the workers
        for found in as_completed(answers):
            yield found.result()
    except BrokenProcessPool:
        raise PyramidError(
            f"bounds: one of {workers} processes ended before its answer, perhaps for lack of memory; "
            "take fewer workers or a lower limit of states"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


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


def _end_on_interrupt() -> None:
    """Ctrl-C ends a worker at once, even within a kernel; what it was searching for is lost, no more."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


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
