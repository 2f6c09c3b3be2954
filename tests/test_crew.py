"""The crew of threads: every part is run and waited for, errors arrive, nobody is lost while asleep."""

import threading
import time
from collections.abc import Callable

import pytest

from pyramid_env.crew import Crew, shares


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
