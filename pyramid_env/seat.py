"""Seats: how a helper stays in compiled code from one piece of work to the next, and so begins within a microsecond.

A helper that comes out of a kernel waits for Python's lock, takes its next job from a queue and hands its arrays to
Numba again: some 13 microseconds, and as much until its end is noticed, of a step that takes 250. A helper that sits on
a seat, an int64 in memory that it shares with the caller, plays the same arrays again as often as it is told to, and
gets up when nothing comes for a while, or when it is wanted for something else.

    seat        it is                             who may change it
    AWAY        not there                         the caller, to CALLED, and has it sit down
    READY       waiting for work                  the caller to CALLED or UP, the helper to AWAY; whoever is first
    CALLED      at work, or about to              the helper, to DONE
    DONE        done                              the caller to READY or UP, the helper to GONE; whoever is first
    GONE        done, and not there               the caller, to AWAY
    UP          to get up                         the helper, to AWAY

The number after it is not 0 once no work will come any more; then a helper that is not at work gets up.
"""

from __future__ import annotations

from typing import Final

from pyramid_env._numba import kernel
from pyramid_env.bits import load_shared, store_shared, swap_shared

AWAY: Final = 0
READY: Final = 1
CALLED: Final = 2
DONE: Final = 3
UP: Final = 4
GONE: Final = 5

_NEXT: Final = 8
"""Bytes from a seat to the number after it."""

LOOKS: Final = 1_000_000
"""So many looks a thread takes for what it waits for, a quarter to half a millisecond, before it lies down. To be woken
takes 25 to 50 microseconds: whoever steps again at once is spared that, and a training loop, which computes for
milliseconds between steps, hardly notices."""


@kernel
def work_comes(seat: int) -> bool:
    """The helper waits: true, there is work; false, it has got up."""
    state = READY
    while state != UP and load_shared(seat + _NEXT) == 0:
        for _ in range(LOOKS):
            state = load_shared(seat)
            if state == CALLED:
                return True
            if state == UP:
                break
        if swap_shared(seat, READY, AWAY) or swap_shared(seat, DONE, GONE):
            return False
    store_shared(seat, AWAY)
    return False


@kernel
def tell_done(seat: int) -> None:
    """The helper has done its work."""
    store_shared(seat, DONE)


@kernel
def call(seat: int) -> int:
    """The caller has work: READY, the helper sat there and has been told; AWAY, it must be sent to its seat, where it
    will find it; UP, it has not quite left yet: ask again."""
    for _ in range(LOOKS):
        if swap_shared(seat, READY, CALLED):
            return READY
        if swap_shared(seat, AWAY, CALLED):
            return AWAY
    return UP


@kernel
def is_done(seat: int) -> bool:
    """The caller waits for the work's end, but no longer than for so many looks."""
    for _ in range(LOOKS):
        state = load_shared(seat)
        if state == DONE and swap_shared(seat, DONE, READY):
            return True
        if state == GONE:
            store_shared(seat, AWAY)
            return True
    return False


@kernel
def send_away(seat: int) -> None:
    """Have the helper get up, if it sits there and waits."""
    swap_shared(seat, READY, UP)


@kernel
def close(seat: int) -> None:
    """No work will come any more."""
    store_shared(seat + _NEXT, 1)
    swap_shared(seat, READY, UP)
    swap_shared(seat, DONE, UP)
