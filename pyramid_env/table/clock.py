"""Clock: the seconds of a game; it stops in pauses, and by itself when nobody has touched the table for long."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

IDLE_S: Final = 300.0
"""Idle seconds after which a game pauses by itself."""


class Clock:
    """Counts the seconds of a game.

    Args:
        now: seconds of a clock that never goes back.
        idle_s: stop when :meth:`touch` was not called for so long; None: never.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, idle_s: float | None = IDLE_S) -> None:
        self._now = now
        self._idle_s = idle_s
        self._elapsed = 0.0
        self._since: float | None = None  # None: it stands
        self._touched = now()
        self._asleep = False

    @property
    def is_running(self) -> bool:
        """Is it counting?"""
        self._settle()
        return self._since is not None

    @property
    def elapsed_s(self) -> float:
        """Seconds counted so far."""
        self._settle()
        return self._elapsed

    @property
    def is_asleep(self) -> bool:
        """Did it stop by itself, for nobody was there for long? Until it is touched, or told to start or stop."""
        self._settle()
        return self._asleep

    @property
    def idle_s(self) -> float | None:
        """The limit of idle seconds."""
        return self._idle_s

    @idle_s.setter
    def idle_s(self, seconds: float | None) -> None:
        self._settle()
        self._idle_s = seconds
        self.touch()

    def reset(self, elapsed_s: float = 0.0) -> None:
        """Stand, at so many seconds."""
        self._elapsed, self._since, self._asleep = elapsed_s, None, False

    def start(self) -> None:
        """Go on counting; idle time in which it slept is not counted."""
        self._settle()
        self._asleep = False
        self._touched = self._now()
        if self._since is None:
            self._since = self._touched

    def stop(self) -> None:
        """Stand."""
        self._settle()
        self._since, self._asleep = None, False

    def touch(self) -> bool:
        """Somebody is there. False: it was asleep; it stands."""
        was_asleep = self.is_asleep
        self._asleep = False
        self._touched = self._now()
        return not was_asleep

    def _settle(self) -> None:
        """Count up to now, or up to where the clock fell asleep."""
        if self._since is None:
            return
        now = self._now()
        asleep = None if self._idle_s is None else self._touched + self._idle_s
        if asleep is not None and now > asleep:
            self._elapsed += max(0.0, asleep - self._since)
            self._since, self._asleep = None, True
        else:
            self._elapsed += now - self._since
            self._since = now
