"""Crew: threads that run parts of one piece of work side by side; the caller's thread does the first part."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise
from queue import SimpleQueue

Work = Callable[[], object]


def shares(count: int, parts: int) -> list[tuple[int, int]]:
    """(start, stop) of so many parts of 0 .. count - 1, as equal as can be."""
    return list(pairwise(count * i // parts for i in range(parts + 1)))


class Crew:
    """Helpers for work that gives the same result in any order and releases Python's lock, as kernels do.

    A hand-over takes some ten microseconds, a third of a pool of futures. Threads start with the first work and end
    when the crew is closed or garbage. A crew is not pickled; its owner makes another one.
    """

    def __init__(self, helpers: int) -> None:
        self._helpers = helpers
        self._jobs: SimpleQueue[Work | None] = SimpleQueue()
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._close = weakref.finalize(self, _dismiss, self._jobs, self._threads)

    def run(self, parts: Sequence[Work]) -> None:
        """Run all parts and wait for them; the first error of any is raised once all have ended."""
        if self._helpers and len(parts) > 1 and not self._threads:
            self._start()
        for part in parts[1:] if self._threads else ():
            self._jobs.put(part)
        error: BaseException | None = None
        try:
            for part in parts[:1] if self._threads else parts:
                part()
        except BaseException as raised:  # the helpers write into the caller's arrays: wait for them first
            error = raised
        for _ in parts[1:] if self._threads else ():
            error = self._done.get() or error
        if error is not None:
            raise error

    def close(self) -> None:
        """End the threads; a later run starts others."""
        self._close()
        self._jobs, self._threads = SimpleQueue(), []
        self._close = weakref.finalize(self, _dismiss, self._jobs, self._threads)

    def _start(self) -> None:
        for i in range(self._helpers):
            thread = threading.Thread(
                target=_help, args=(self._jobs, self._done), name=f"pyramid_env step {i}", daemon=True
            )
            thread.start()
            self._threads.append(thread)


def _help(jobs: SimpleQueue[Work | None], done: SimpleQueue[BaseException | None]) -> None:
    while (job := jobs.get()) is not None:
        try:
            job()
        except BaseException as error:
            done.put(error)
        else:
            done.put(None)


def _dismiss(jobs: SimpleQueue[Work | None], threads: list[threading.Thread]) -> None:
    for _ in threads:
        jobs.put(None)
