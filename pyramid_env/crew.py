"""Crew: threads that run parts of one piece of work side by side; the caller's thread does the first part."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

import numpy as np

from pyramid_env._numba import kernel
from pyramid_env.bits import load_shared

Work = Callable[[], object]
Item = TypeVar("Item")

LOOKS: Final = 1_000_000
"""So often a thread looks for what it waits for, a quarter of a millisecond in all, before it lies down. To be woken
takes 25 to 50 microseconds, at both ends of a step that takes 300: whoever steps again at once is spared that, and a
training loop, which computes for milliseconds between steps, hardly notices."""

GRACE: Final = 16_000
"""Looks after the one that found something, some 4 microseconds: whoever put it there holds Python's lock a moment
longer, and a thread that has to wait for the lock lies down too."""


_PATIENCE_S: Final = 5.0


def shares(count: int, parts: int) -> list[tuple[int, int]]:
    """(start, stop) of so many parts of 0 .. count - 1, as equal as can be."""
    return list(pairwise(count * i // parts for i in range(parts + 1)))


class Crew:
    """Helpers for work that gives the same result in any order and releases Python's lock, as kernels do.

    Threads start with the first work and end when the crew is closed or garbage. A crew is not pickled; its owner makes
    another one.
    """

    def __init__(self, helpers: int) -> None:
        self._helpers = helpers
        self._open()

    def _open(self) -> None:
        self._jobs: list[_Channel[Work | None]] = []  # one for each helper that has started
        self._done: list[_Channel[BaseException | None]] = []
        self._threads: list[threading.Thread] = []
        self._close = weakref.finalize(self, _dismiss, self._jobs)

    def run(self, parts: Sequence[Work]) -> None:
        """Run all parts and wait for them; the first error of any is raised once all have ended.

        Args:
            parts: one for the caller and one for each helper at most, or, without helpers, any number.
        """
        assert not self._helpers or len(parts) <= 1 + self._helpers, "more parts than threads"
        if self._helpers and len(parts) > 1 and not self._jobs:
            self._start()
        helped = parts[1:] if self._jobs else ()
        for jobs, part in zip(self._jobs, helped, strict=False):
            jobs.put(part)
        error: BaseException | None = None
        try:
            for part in parts[:1] if self._jobs else parts:
                part()
        except BaseException as raised:  # the helpers write into the caller's arrays: wait for them first
            error = raised
        for done, _ in zip(self._done, helped, strict=False):
            error = done.get() or error
        if error is not None:
            raise error

    def close(self) -> None:
        """End the threads and wait for them; a later run starts others."""
        self._close()
        for thread in self._threads:
            thread.join(_PATIENCE_S)
        self._open()

    def _start(self) -> None:
        for i in range(self._helpers):
            jobs: _Channel[Work | None] = _Channel()
            done: _Channel[BaseException | None] = _Channel()
            self._jobs.append(jobs)
            self._done.append(done)
            thread = threading.Thread(target=_help, args=(jobs, done), name=f"pyramid_env step {i}", daemon=True)
            self._threads.append(thread)
            thread.start()


class _Channel(Generic[Item]):
    """Hands things from one thread to one other, which looks for them before it goes to sleep."""

    def __init__(self) -> None:
        self._items: SimpleQueue[Item] = SimpleQueue()
        self._put = np.zeros(1, np.int64)  # so many have been put in
        self._address = self._put.ctypes.data
        self._taken = 0

    def put(self, item: Item) -> None:
        self._items.put(item)
        self._put[0] += 1

    def get(self) -> Item:
        _look(self._address, self._taken, LOOKS)
        self._taken += 1
        return self._items.get()


@kernel
def _look(address: int, taken: int, looks: int) -> bool:
    """Wait until the number at an address is larger than ``taken``, but no longer than for so many looks."""
    for _ in range(looks):
        if load_shared(address) > taken:
            for _ in range(GRACE):
                if load_shared(address) <= taken:
                    break
            return True
    return False


def _help(jobs: _Channel[Work | None], done: _Channel[BaseException | None]) -> None:
    while (job := jobs.get()) is not None:
        try:
            job()
        except BaseException as error:
            done.put(error)
        else:
            done.put(None)


def _dismiss(jobs: list[_Channel[Work | None]]) -> None:
    for channel in jobs:
        channel.put(None)
