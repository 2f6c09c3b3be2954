"""Crew: threads that run parts of one piece of work side by side; the caller's thread does the first part.

Work of any kind goes through queues (:meth:`Crew.run`). What is done again and again to the same arrays need not: a
helper stays in compiled code for it (:meth:`Crew.repeat`).
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.bits import load_shared
from pyramid_env.seat import AWAY, LOOKS, UP, call, close, is_done, send_away

Work = Callable[[], object]
Seated = Callable[[int], object]
"""Work that a helper does on the seat at this address, until it gets up (pyramid_env/seat.py)."""

Item = TypeVar("Item")

GRACE: Final = 16_000
"""Looks after the one that found something, some 4 microseconds: whoever put it there holds Python's lock a moment
longer, and a thread that has to wait for the lock lies down too."""

_PATIENCE_S: Final = 5.0
_NAP_S: Final = 5e-5
_LINE: Final = 16
"""Numbers in two lines of the processor's cache, which it may fetch together."""


class _Job(NamedTuple):
    """What a helper does next."""

    work: Work
    told: bool  # the caller waits to be told of its end; who sits tells by the seat


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
        self._process = os.getpid()
        self._jobs: list[_Channel[_Job | None]] = []  # one for each helper that has started
        self._done: list[_Channel[BaseException | None]] = []
        self._threads: list[threading.Thread] = []
        self._seats = np.zeros((self._helpers, _LINE), np.int64)  # the first of each row: no two in a line of the cache
        self._addresses = [self._seats[i].ctypes.data for i in range(self._helpers)]
        self._close = weakref.finalize(self, _dismiss, self._jobs, self._seats)

    def run(self, parts: Sequence[Work]) -> None:
        """Run all parts and wait for them; the first error of any is raised once all have ended.

        Args:
            parts: one for the caller and one for each helper at most, or, without helpers, any number.
        """
        assert not self._helpers or len(parts) <= 1 + self._helpers, "more parts than threads"
        if self._helpers and len(parts) > 1:
            self._gather()
        helped = parts[1:] if self._jobs else ()
        for jobs, part, seat in zip(self._jobs, helped, self._addresses, strict=False):
            send_away(seat)
            jobs.put(_Job(part, told=True))
        error: BaseException | None = None
        try:
            for part in parts[:1] if self._jobs else parts:
                part()
        except BaseException as raised:  # the helpers write into the caller's arrays: wait for them first
            error = raised
        try:
            for done, _ in zip(self._done, helped, strict=False):
                error = done.get() or error
        except BaseException:  # Ctrl-C while it waits: what comes later must not be taken for the end of other work
            self.close()
            raise
        if error is not None:
            raise error

    def repeat(self, first: Work, others: Sequence[Seated]) -> None:
        """Have each helper do its part, and the caller the first one, and wait for all; for parts that are the same at
        each call, and so quick that the way through Python would count.

        Args:
            first: the caller's.
            others: one for each helper, always the same: compiled code that neither raises nor needs Python's lock,
                and goes on while :func:`~pyramid_env.seat.work_comes`, telling the seat each time that it is done.
        """
        self._gather()
        try:
            for jobs, other, seat in zip(self._jobs, others, self._addresses, strict=True):
                while (found := call(seat)) == UP:
                    time.sleep(_NAP_S)
                if found == AWAY:
                    jobs.put(_Job(partial(other, seat), told=False))
            first()
            for done, seat in zip(self._done, self._addresses, strict=True):
                while not is_done(seat):
                    self._look_after(done)
        except BaseException:  # who knows what the helpers are at: end them all, the next call starts others
            self.close()
            raise

    def _look_after(self, done: _Channel[BaseException | None]) -> None:
        """Raise the error of a helper that could not go to its seat; sleep a little."""
        if done.waiting and (error := done.get()) is not None:
            raise error
        time.sleep(_NAP_S)

    def close(self) -> None:
        """End the threads and wait for them; a later run starts others."""
        try:
            self._close()
            for thread in self._threads:
                if thread.is_alive():
                    thread.join(_PATIENCE_S)
        finally:  # Ctrl-C while it waits
            self._open()

    def _gather(self) -> None:
        """See to it that the helpers are there: they are not before the first work, nor in a forked process."""
        if self._process != os.getpid():
            self._close.detach()  # the others' threads
            self._open()
        if not self._jobs:
            try:
                self._start()
            except BaseException:
                self.close()
                raise

    def _start(self) -> None:
        for i in range(self._helpers):
            jobs: _Channel[_Job | None] = _Channel()
            done: _Channel[BaseException | None] = _Channel()
            self._jobs.append(jobs)
            self._done.append(done)
            given = jobs, done, self._seats
            thread = threading.Thread(target=_help, args=given, name=f"pyramid_env step {i}", daemon=True)
            self._threads.append(thread)
            thread.start()


class _Channel(Generic[Item]):
    """Hands things from one thread to one other, which looks for them before it goes to sleep."""

    def __init__(self) -> None:
        self._items: SimpleQueue[Item] = SimpleQueue()
        self._put = np.zeros(1, np.int64)  # so many have been put in
        self._address = self._put.ctypes.data
        self._taken = 0

    @property
    def waiting(self) -> bool:
        """Is there something?"""
        return not self._items.empty()

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


def _help(jobs: _Channel[_Job | None], done: _Channel[BaseException | None], seats: NDArray[np.int64]) -> None:
    """A helper's life. ``seats``: they must be there as long as it may sit on one."""
    while (job := jobs.get()) is not None:
        try:
            job.work()
        except BaseException as error:
            done.put(error)
        else:
            if job.told:
                done.put(None)


def _dismiss(jobs: list[_Channel[_Job | None]], seats: NDArray[np.int64]) -> None:
    """Have the helpers that have started end."""
    for seat in seats:
        close(seat.ctypes.data)
    for channel in jobs:
        channel.put(None)
