"""Many deals at once: the same question about each, over all cores, kept in a file as the answers come."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env.deal import Deal
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver.blocks import Block, solve_block
from pyramid_env.solver.columns import SOLVER_VERSION, Builder, Solutions, write_file
from pyramid_env.solver.journal import SUFFIX, Journal
from pyramid_env.solver.progress import Progress, shown
from pyramid_env.solver.question import Question, read_deals
from pyramid_env.solver.result import DEFAULT_MAX_BYTES, Limits, SolverError, read_objective

BLOCK_SECONDS: Final = 0.05
"""Time a block should take: what a kill costs each worker. Long against the work between blocks (some 0.1 ms)."""
MOST_DEALS: Final = 256
"""Deals of one block."""
NEW_SUFFIX: Final = ".new"
"""Added to the file's name while it is written; if a kill leaves it behind, the next run overwrites it."""
_GROWTH: Final = 4  # a block has at most so many times the deals of the one before, whose pace it is sized by
_PATIENCE_S: Final = 3.0  # for workers that are told to end; longer than a slice of a search, not than compiling
_LOOK_S: Final = 0.2  # where waiting cannot be interrupted (Windows), Ctrl-C is seen after this time


def solve_many(
    deals: Iterable[Deal | int | str],
    rules: Rules | str = "pyramid",
    objective: str = "win",
    *,
    workers: int | None = None,
    progress: bool | Progress = False,
    file: str | os.PathLike[str] | None = None,
    max_states: int | None = None,
    max_seconds: float | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> Solutions:
    """The answers about all deals, in their order, by all cores.

    Args:
        deals: deals, their numbers or their texts. A range or an array of whole numbers costs least.
        rules: the rules of all of them.
        objective: see :class:`Objective`.
        workers: threads, 1 or more; None: as many as cores that this process may use.
        progress: True: a bar on the terminal (nothing where stderr is none). Or a function of (deals done, deals in
            all): called in this thread, after each block of deals, and first for what a file already holds.
        file: keep the answers in this file, see :meth:`Solutions.save`. While the run lasts they go to a journal
            beside it (the file's name and ``.partial``) as they come. The same call takes up a run that ended early,
            however it did: only the deals that were being solved are solved again. With a finished file it returns at
            once.
        max_states, max_seconds, max_bytes: limits of each deal, see :class:`Limits`. Each worker may take up to
            ``max_bytes`` at a time.

    Ctrl-C ends the run within moments: what is finished is in the journal, then KeyboardInterrupt is raised as it came.

    Raises:
        SolverError: unknown objective, a limit that is none, workers below 1, one deal where several are expected; or
            a file that is damaged, in use by another run, or about another question, deals, limits or solver version.
            Nothing has been solved or overwritten then.
        DeckError: one of the deals is not of the rules' deck, or bears a number that deals other cards; found before
            anything is solved.
        OSError: the file cannot be written.
    """
    chosen = read_rules(rules)
    asked = read_objective(objective)
    limits = Limits(max_states, max_seconds, max_bytes)
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise SolverError(f"workers: expected a whole number from 1 up or None, got {workers!r}")
    if not isinstance(progress, bool) and not callable(progress):
        raise SolverError(f"progress: expected True, False or a function of (done, total), got {progress!r}")
    question = Question(chosen, asked, limits, read_deals(deals, chosen), SOLVER_VERSION)
    with shown(progress, len(question.dealt.numbers)) as tell:
        if file is None:
            return _solved(question, workers or usable_cores(), tell, None)
        return _solved_in_file(question, workers or usable_cores(), tell, Path(file))


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _solved_in_file(question: Question, workers: int, tell: Progress, path: Path) -> Solutions:
    if path.is_dir():
        raise SolverError(f"file: expected a file's path, got the folder {path}")
    journal_path = path.with_name(path.name + SUFFIX)
    if path.exists() and not journal_path.exists():
        return _finished_file(question, tell, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with Journal(journal_path, question) as journal:
        if path.exists():  # a run was killed between its last two steps, or has just ended
            solutions = _finished_file(question, tell, path)
        else:
            solutions = _solved(question, workers, tell, journal)
            write_file(solutions, path, path.with_name(path.name + NEW_SUFFIX))
        journal.remove()
    return solutions


def _finished_file(question: Question, tell: Progress, path: Path) -> Solutions:
    solutions = Solutions.load(path)
    question.check_same(solutions.question, path)
    tell(len(solutions), len(solutions))
    return solutions


def _solved(question: Question, workers: int, tell: Progress, journal: Journal | None) -> Solutions:
    builder = Builder(question)
    total = len(question.dealt.numbers)
    for start, block in journal.blocks if journal else ():
        builder.put(start, block)
    if builder.done:
        tell(builder.done, total)
    team = _Team(question, builder.gaps(), min(workers, total - builder.done), journal)
    try:
        team.start()
        for start, block in team:
            builder.put(start, block)
            tell(builder.done, total)
    except BaseException:
        team.stop()
        raise
    return builder.finished()


class _Team:
    """Threads that take block after block of the open deals; iterating gives their answers as they come.

    Only the workers write to the journal: Ctrl-C is raised in the main thread, so it cannot come between an answer
    and its record.
    """

    def __init__(self, question: Question, gaps: list[range], workers: int, journal: Journal | None) -> None:
        self._question: Final = question
        self._journal: Final = journal
        self._stop: Final[NDArray[np.int64]] = np.zeros(1, np.int64)
        self._answers: Final[queue.SimpleQueue[tuple[int, Block] | BaseException | None]] = queue.SimpleQueue()
        self._lock: Final = threading.Lock()
        self._gaps: Final = gaps[::-1]  # the next one last
        self._left = sum(map(len, gaps))
        # daemon: after Ctrl-C a program must end even if a worker is still compiling.
        self._threads: Final = [
            threading.Thread(target=self._work, name=f"solver-{number}", daemon=True) for number in range(workers)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Have all workers end, and wait, but not for ever; what they finish in that time goes to the journal."""
        self._stop[0] = 1
        latest = time.monotonic() + _PATIENCE_S
        for thread in self._threads:
            while thread.is_alive() and time.monotonic() < latest:
                thread.join(_LOOK_S)

    def __iter__(self) -> Iterator[tuple[int, Block]]:
        """Answers until no worker has more; a worker's error is raised here."""
        running = len(self._threads)
        while running:
            try:
                answer = self._answers.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if answer is None:
                running -= 1
            elif isinstance(answer, BaseException):
                raise answer
            else:
                yield answer

    def _work(self) -> None:
        question, size = self._question, 1
        try:
            while deals := self._next(size):
                began = time.perf_counter()
                ranks = question.dealt.ranks(question.rules, deals.start, deals.stop)
                block = solve_block(question.rules, ranks, question.objective, question.limits, self._stop)
                pace = max(time.perf_counter() - began, 1e-9) / len(deals)
                if self._journal is not None and block.status.size:
                    self._journal.append(deals.start, block)
                self._answers.put((deals.start, block))
                size = max(1, min(_GROWTH * size, MOST_DEALS, int(BLOCK_SECONDS / pace)))
        except BaseException as error:
            self._answers.put(error)
        finally:
            self._answers.put(None)

    def _next(self, size: int) -> range:
        """The next deals for a worker, up to ``size``; towards the end fewer, so that all workers end together."""
        with self._lock:
            if self._stop[0] or not self._gaps:
                return range(0)
            gap = self._gaps.pop()
            share = -(-self._left // (2 * len(self._threads)))
            taken = gap[: min(size, share)]
            if len(taken) < len(gap):
                self._gaps.append(gap[len(taken) :])
            self._left -= len(taken)
            return taken
