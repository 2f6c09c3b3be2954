"""The crew of threads: every part is run and waited for, errors arrive, nobody is lost while asleep."""

import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.crew import Crew, shares
from pyramid_env.seat import GONE, tell_done, work_comes


def noting(parts: int, pause_s: float = 0.0) -> tuple[list[Callable[[], None]], list[tuple[int, str]]]:
    """Parts that note their number and the thread that ran them."""
    noted: list[tuple[int, str]] = []

    def part(number: int) -> Callable[[], None]:
        def work() -> None:
            time.sleep(pause_s * number)
            noted.append((number, threading.current_thread().name))

        return work

    return [part(number) for number in range(parts)], noted


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_every_part_is_run_once_the_first_by_the_caller(parts) -> None:
    crew, (work, noted) = Crew(2), noting(parts)
    for _ in range(200):
        noted.clear()
        crew.run(work)
        assert sorted(number for number, _ in noted) == list(range(parts))
        assert dict(noted)[0] == threading.current_thread().name
        assert len({name for _, name in noted}) == parts
    crew.close()


def test_threads_that_fell_asleep_are_woken_and_slow_ones_are_waited_for() -> None:
    crew, (work, noted) = Crew(2), noting(3, pause_s=0.02)  # far longer than anyone looks
    for _ in range(3):
        noted.clear()
        crew.run(work)
        assert [number for number, _ in noted] == [0, 1, 2]
        time.sleep(0.02)
    crew.close()


def test_an_error_is_raised_once_all_parts_have_ended_and_the_crew_goes_on() -> None:
    crew, (work, noted) = Crew(2), noting(3, pause_s=0.01)

    def wrong() -> None:
        raise ArithmeticError("wrong")

    for at in range(3):
        noted.clear()
        with pytest.raises(ArithmeticError, match="wrong"):
            crew.run([*work[:at], wrong, *work[at + 1 :]])
        assert len(noted) == 2
    noted.clear()
    crew.run(work)
    assert len(noted) == 3
    crew.close()


def test_a_closed_crew_starts_anew_and_one_without_helpers_runs_all_itself() -> None:
    work, noted = noting(3)
    crew = Crew(2)
    for _ in range(2):
        crew.run(work)
        crew.close()
    Crew(0).run(work)
    assert len(noted) == 9
    assert {name for _, name in noted[6:]} == {threading.current_thread().name}


def test_shares_cover_all_and_differ_by_one_at_most() -> None:
    assert shares(10, 3) == [(0, 3), (3, 6), (6, 10)]
    assert shares(2, 4) == [(0, 0), (0, 1), (1, 1), (1, 2)]


# ---- on seats --------------------------------------------------------------------------------------------------------


@kernel
def count_on_seat(seat: int, counts: NDArray[np.int64], at: int) -> None:
    while work_comes(seat):
        counts[at] += 1
        tell_done(seat)


def counting(helpers: int) -> tuple[Callable[[], None], list[Callable[[int], None]], NDArray[np.int64]]:
    """The caller's part, one for each helper, and how often each was done."""
    counts = np.zeros(1 + helpers, np.int64)

    def first() -> None:
        counts[0] += 1

    return first, [partial(count_on_seat, counts=counts, at=1 + i) for i in range(helpers)], counts


@pytest.mark.parametrize("helpers", [1, 3])
def test_helpers_on_their_seats_do_their_part_each_time_whatever_comes_between(helpers) -> None:
    crew, (first, others, counts) = Crew(helpers), counting(helpers)
    work, noted = noting(1 + helpers)
    for n in range(1, 500):
        crew.repeat(first, others)
        assert counts.tolist() == [n] * (1 + helpers)
        if n % 100 == 0:
            time.sleep(0.005)  # longer than anyone looks
        if n % 7 == 0:
            crew.run(work)
    assert len(noted) == (1 + helpers) * (499 // 7)
    assert len(crew._threads) == helpers
    crew.close()


def test_a_helper_that_was_done_long_before_the_caller_has_lain_down_and_comes_again() -> None:
    crew, (first, others, counts) = Crew(1), counting(1)

    def slow() -> None:
        first()
        time.sleep(0.02)  # longer than anyone looks
        assert crew._seats[0, 0] == GONE

    crew.repeat(first, others)
    for n in range(1, 20):
        crew.repeat(slow if n % 2 else first, others)
        assert counts.tolist() == [1 + n] * 2
    crew.close()


def test_an_error_beside_helpers_on_their_seats_ends_them_and_the_crew_goes_on() -> None:
    crew, (first, others, counts) = Crew(2), counting(2)
    crew.repeat(first, others)
    before = crew._threads

    def wrong() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        crew.repeat(wrong, others)
    assert not any(thread.is_alive() for thread in before)
    assert counts.tolist()[0] == 1
    crew.repeat(first, others)
    assert counts.tolist()[0] == 2
    crew.close()


def test_a_helper_that_cannot_go_to_its_seat_is_no_endless_wait() -> None:
    crew, (first, others, _) = Crew(2), counting(2)

    def wrong(seat: int) -> None:
        raise ArithmeticError("no seat")

    with pytest.raises(ArithmeticError, match="no seat"):
        crew.repeat(first, [others[0], wrong])
    crew.repeat(first, others)
    crew.close()


def test_closing_sends_helpers_away_from_their_seats() -> None:
    crew, (first, others, _) = Crew(2), counting(2)
    for _ in range(2):
        crew.repeat(first, others)
        threads = crew._threads
        crew.close()
        assert not any(thread.is_alive() for thread in threads)
    crew.repeat(first, others)
    threads = crew._threads
    del crew  # or garbage
    gc.collect()
    for thread in threads:
        thread.join(5.0)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_helpers_of_its_own() -> None:
    crew, (first, others, counts) = Crew(1), counting(1)
    crew.repeat(first, others)
    child = os.fork()
    if not child:
        crew.repeat(first, others)
        os._exit(int(counts.tolist() != [2, 2]))
    deadline = time.monotonic() + 20.0
    ended = (0, 0)
    while ended[0] == 0 and time.monotonic() < deadline:
        ended = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if ended[0] == 0:
        os.kill(child, signal.SIGKILL)
    assert ended == (child, 0)
    crew.repeat(first, others)
    assert counts.tolist() == [2, 2]
    crew.close()


def test_ctrl_c_while_a_slow_helper_is_waited_for_ends_the_helpers(monkeypatch) -> None:
    crew, (work, noted) = Crew(1), noting(2, pause_s=0.05)
    crew.run(work)

    def interrupted() -> None:
        raise KeyboardInterrupt

    before = crew._threads
    with monkeypatch.context() as patch:
        patch.setattr(crew._done[0], "get", interrupted)
        with pytest.raises(KeyboardInterrupt):
            crew.run(work)
    assert not any(thread.is_alive() for thread in before)
    noted.clear()
    for n in range(1, 4):
        crew.run(work)
        assert len(noted) == 2 * n
    crew.close()


@pytest.mark.parametrize("at", ["start", "join"])
def test_ctrl_c_while_threads_start_or_end_leaves_a_crew_that_goes_on(at, monkeypatch) -> None:
    crew, (first, others, counts) = Crew(2), counting(2)

    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, at, interrupted)
            with pytest.raises(KeyboardInterrupt):
                crew.repeat(interrupted, others)
        crew.repeat(first, others)
    assert counts[0] == 2
    crew.close()
