"""How steps are timed: only the step, by CPU time and by the clock, the least disturbed of several rounds."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

ROUNDS = 8
WARM_UP = 150  # steps before the first round: games that began together do not end together


class Rate(NamedTuple):
    """Steps a second, all games together."""

    cpu: float  # by CPU time of the whole process, so the threads of a library count too
    wall: float


class Playable(NamedTuple):
    """Games made ready to be timed.

    Attributes:
        games: how many are played by a step.
        step: takes the actions, returns the outcome once all of it is in memory. Timed.
        choose: takes the last outcome, None before the first step, returns the next actions. Not timed; games
            that a step does not deal anew are dealt anew here.
    """

    games: int
    step: Callable[[Any], Any]
    choose: Callable[[Any], Any]


class Timer:
    """Games that are played on from round to round; ``best`` is the rate of the fastest one."""

    def __init__(self, play: Playable) -> None:
        """Play the steps of the warm-up."""
        self.play = play
        self.best = Rate(0.0, 0.0)
        self._outcome: Any = None
        for _ in range(WARM_UP):
            self._outcome = play.step(play.choose(self._outcome))

    def round(self, seconds: float) -> None:
        """Time steps for so long, the choosing of actions included; at least three."""
        play, outcome = self.play, self._outcome
        steps, cpu, wall, end = 0, 0.0, 0.0, time.perf_counter() + seconds
        while steps < 3 or time.perf_counter() < end:
            actions = play.choose(outcome)
            cpu_start, start = time.process_time(), time.perf_counter()
            outcome = play.step(actions)
            wall += time.perf_counter() - start
            cpu += time.process_time() - cpu_start
            steps += 1
        self._outcome = outcome
        played = steps * play.games
        self.best = Rate(max(self.best.cpu, played / cpu), max(self.best.wall, played / wall))


def take_turns(timers: Iterable[Timer], seconds: float) -> None:
    """Run all rounds, each timer's between the others', so that what disturbs the machine disturbs all alike."""
    timers = list(timers)
    for _ in range(ROUNDS):
        for timer in timers:
            timer.round(seconds)


def measure(play: Playable, seconds: float) -> Rate:
    """The rate of games that are timed alone."""
    timer = Timer(play)
    take_turns([timer], seconds)
    return timer.best


@contextlib.contextmanager
def one_core() -> Iterator[bool]:
    """Keep this thread, and those that it starts meanwhile, on one core; False where the system can't."""
    if not hasattr(os, "sched_setaffinity"):
        yield False
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield True
    finally:
        os.sched_setaffinity(0, allowed)
