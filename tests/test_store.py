"""The table's store: nothing that was kept gets lost, whoever writes at once, is killed, or damages the file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyramid_env import Game
from pyramid_env.errors import PyramidError
from pyramid_env.table.damage import set_aside
from pyramid_env.table.database import Database
from pyramid_env.table.store import Match, Result, SavedGame, Store, StoreError, data_folder

ROOT = Path(__file__).parent.parent
GAME = Game(1).to_json()


def saved(attempt: str = "a", game: str = GAME, updated: float = 1.0, rules: str = "pyramid") -> SavedGame:
    return SavedGame(attempt, rules, game, 12.5, False, updated)


def result(
    attempt: str,
    won: bool = False,
    score: int = 0,
    *,
    seconds: float = 60.0,
    helped: bool = False,
    rules: str = "pyramid",
) -> Result:
    return Result(attempt, rules, "7", won, score, score, 10 * score, seconds, 30, helped, 1e9)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "table.sqlite3"


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(":memory:") as opened:
        yield opened


def raw(path: Path, statement: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()


# ---- the data folder -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"PYRAMID_ENV_DATA": "/mine", "XDG_DATA_HOME": "/xdg"}, "/mine"),
        ("linux", {"XDG_DATA_HOME": "/xdg"}, "/xdg/pyramid_env"),
        ("linux", {}, "/home/ann/.local/share/pyramid_env"),
        ("darwin", {}, "/home/ann/Library/Application Support/pyramid_env"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/pyramid_env"),
        ("win32", {}, "/home/ann/AppData/Local/pyramid_env"),
    ],
)
def test_the_data_folder_is_where_the_system_keeps_users_data(
    monkeypatch: pytest.MonkeyPatch, platform: str, environment: dict[str, str], expected: str
) -> None:
    for name in ("PYRAMID_ENV_DATA", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ann"))
    monkeypatch.setattr(sys, "platform", platform)
    assert data_folder() == Path(expected)


def test_without_a_path_the_database_lies_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYRAMID_ENV_DATA", str(tmp_path / "new" / "folder"))
    with Store() as store:
        store.save(saved())
    assert (tmp_path / "new" / "folder" / "table.sqlite3").is_file()


def test_a_relative_path_stays_the_same_file_when_the_program_changes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Store("table.sqlite3") as store:
        monkeypatch.chdir(tmp_path / "elsewhere")
        store.save(saved())
        assert store.load("pyramid") == saved()
    assert not list((tmp_path / "elsewhere").iterdir())


# ---- saved games -----------------------------------------------------------------------------------------------------


def test_the_game_that_was_saved_last_is_loaded(path: Path) -> None:
    with Store(path) as store:
        assert store.load("pyramid") is None
        store.save(saved("a", updated=5.0))
        store.save(saved("b", updated=7.0))
        store.save(saved("c", updated=9.0, rules="one_pass"))
        assert store.load("pyramid") == saved("b", updated=7.0)
        store.save(replace(saved("a", updated=8.0), helped=True))
    with Store(path) as store:
        assert store.load("pyramid") == replace(saved("a", updated=8.0), helped=True)
        assert store.load("one_pass") == saved("c", updated=9.0, rules="one_pass")
        assert len(raw(path, "SELECT * FROM saves")) == 3  # one an attempt


def test_a_forgotten_attempt_is_not_loaded(store: Store) -> None:
    store.save(saved("a", updated=1.0))
    store.save(saved("b", updated=2.0))
    store.forget("b")
    store.forget("never saved")
    assert store.load("pyramid") == saved("a")


@pytest.mark.parametrize(
    "damaged", [b"", b"{", GAME[: len(GAME) // 2].encode(), GAME.replace("pyramid_env", "x").encode(), b"\xff\xfe"]
)
def test_a_damaged_save_is_set_aside_and_the_next_older_one_loaded(path: Path, damaged: bytes) -> None:
    with Store(path) as store:
        store.save(saved("old", updated=1.0))
        store.save(saved("bad", updated=2.0))
        raw(path, "UPDATE saves SET game = CAST(? AS TEXT) WHERE attempt = 'bad'", damaged)
        assert store.load("pyramid") == saved("old", updated=1.0)
        (message,) = store.messages
        assert "set_aside" in message
        assert str(path) in message
        assert store.take_messages() == [message]
        assert store.load("pyramid") == saved("old", updated=1.0)
        assert store.messages == []
    assert raw(path, "SELECT attempt, CAST(game AS BLOB), updated FROM set_aside") == [("bad", damaged, 2.0)]
    assert raw(path, "SELECT attempt FROM saves") == [("old",)]
    (reason, time) = raw(path, "SELECT reason, time FROM set_aside")[0]
    assert reason
    assert time > 1e9


def test_a_save_that_was_mended_meanwhile_is_not_set_aside(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Game.from_json

    def read_while_another_saves(text: str) -> Game:
        with Store(path) as other:
            other.save(saved(updated=2.0))
        return read(text)

    with Store(path) as store:
        store.save(saved(game="{", updated=1.0))
        monkeypatch.setattr(Game, "from_json", read_while_another_saves)
        assert store.load("pyramid") == saved(updated=2.0)
        assert store.messages == []


# ---- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "is_better"),
    [
        ((False, 3), (True, 3), True),
        ((False, 48), (True, 20), True),
        ((True, 20), (False, 48), False),
        ((False, -20), (False, -10), True),
        ((False, -10), (False, -20), False),
        ((True, 20), (True, 35), True),
        ((True, 35), (True, 20), False),
    ],
)
def test_a_result_is_bettered_and_never_worsened(
    store: Store, first: tuple[bool, int], second: tuple[bool, int], is_better: bool
) -> None:
    earlier, later = result("a", *first), result("a", *second, seconds=90.0)
    assert store.record(earlier) == earlier
    assert store.record(result("b")) == result("b")
    kept = later if is_better else earlier
    assert store.record(later) == kept
    assert store.results("pyramid") == (kept, result("b"))  # in its old place


def test_an_equal_result_does_not_replace_the_first(store: Store) -> None:
    first = store.record(result("a", True, 20, seconds=50.0))
    assert store.record(result("a", True, 20, seconds=40.0)) == first


def test_an_attempt_is_at_one_deal(store: Store) -> None:
    store.record(result("a"))
    with pytest.raises(StoreError, match=r"attempt a: expected pyramid on 7, got pyramid on 8"):
        store.record(replace(result("a", True), deal="8"))
    assert store.results("pyramid") == (result("a"),)


def test_statistics_of_a_few_games(store: Store) -> None:
    store.record(result("1", True, 50, seconds=100.0))
    store.record(result("2", True, 20, seconds=50.0, helped=True))
    store.record(result("3", True, 35, seconds=80.5))
    store.record(result("4", False, -25, seconds=10.0))
    store.record(result("other", False, -52, rules="one_pass"))
    store.record(result("5", True, 20, seconds=200.0))
    seen = store.statistics("pyramid")
    assert (seen.rules, seen.played, seen.won, seen.helped, seen.share) == ("pyramid", 5, 4, 1, 0.8)
    assert seen.best_time_s == 80.5  # 50 s were with help, 10 s no win
    assert (seen.current_streak, seen.longest_streak) == (1, 3)
    assert (seen.average_par, seen.average_msc) == (20.0, 200.0)
    assert store.all_statistics() == (seen, store.statistics("one_pass"))


def test_statistics_of_nothing(store: Store) -> None:
    seen = store.statistics("pyramid")
    assert (seen.played, seen.won, seen.helped, seen.current_streak, seen.longest_streak) == (0,) * 5
    assert (seen.share, seen.best_time_s, seen.average_par, seen.average_msc) == (None,) * 4
    assert store.all_statistics() == ()


def test_a_win_on_the_second_try_closes_the_gap_in_the_streak(store: Store) -> None:
    for attempt, won in zip("abc", (True, False, True), strict=True):
        store.record(result(attempt, won))
    assert store.statistics("pyramid").longest_streak == 1
    store.record(result("b", True))
    assert store.statistics("pyramid").current_streak == 3


RESULTS = st.lists(
    st.builds(
        result,
        st.sampled_from("abcdefgh"),
        st.booleans(),
        st.integers(-52, 50),
        seconds=st.floats(1.0, 1000.0),
        helped=st.booleans(),
    ),
    max_size=25,
)


@given(RESULTS)
def test_statistics_equal_the_plain_recomputation(recorded: list[Result]) -> None:
    kept: dict[str, Result] = {}
    for one in recorded:
        old = kept.get(one.attempt)
        worth, known = [(each.won, each.won and not each.helped, each.score) if each else () for each in (one, old)]
        if worth > known:
            kept[one.attempt] = one
    with Store(":memory:") as store:
        for one in recorded:
            store.record(one)
        assert store.results("pyramid") == tuple(kept.values())
        seen = store.statistics("pyramid")
    games = list(kept.values())
    runs = [
        end - start
        for start in range(len(games))
        for end in range(start, len(games) + 1)
        if all(game.won for game in games[start:end])
    ]
    assert seen.longest_streak == max(runs, default=0)
    assert all(game.won for game in games[len(games) - seen.current_streak :])
    assert seen.current_streak == len(games) or not games[-1 - seen.current_streak].won
    assert (seen.played, seen.won) == (len(games), len([game for game in games if game.won]))
    times = sorted(game.seconds for game in games if game.won and not game.helped)
    assert seen.best_time_s == (times[0] if times else None)
    assert seen.helped == seen.won - len(times)
    if games:
        assert seen.average_par == pytest.approx(sum(game.par for game in games) / len(games))
        assert seen.average_msc == pytest.approx(sum(game.msc for game in games) / len(games))


def test_a_match_is_cut_from_the_results_and_stays_until_the_next_game(store: Store) -> None:
    seen = [store.match("till_dawn", 2)]
    for number, score in enumerate([-8, 10, -1]):
        store.record(result(str(number), score=score, rules="till_dawn"))
        store.record(result(f"x{number}", score=50))  # other rules
        seen.append(store.match("till_dawn", 2))
    assert seen == [Match(1, (), 2), Match(1, (-8,), 2), Match(1, (-8, 10), 2), Match(2, (-1,), 2)]
    assert [match.total for match in seen] == [0, -8, 2, -1]
    assert [match.is_complete for match in seen] == [False, False, True, False]
    assert [match.is_par for match in seen] == [False, False, True, False]
    assert not Match(1, (5, -6), 2).is_par


def test_a_bettered_result_changes_its_own_match(store: Store) -> None:
    for number, score in enumerate([-8, 10, -1]):
        store.record(result(str(number), score=score))
    store.record(result("0", score=-2))
    assert store.match("pyramid", 2) == Match(2, (-1,), 2)
    assert store.match("pyramid", 3) == Match(1, (-2, 10, -1), 3)


def test_a_match_of_no_games_is_refused(store: Store) -> None:
    with pytest.raises(PyramidError, match="expected 1 or more, got 0"):
        store.match("pyramid", 0)


# ---- preferences -----------------------------------------------------------------------------------------------------


def test_preferences_are_kept(path: Path) -> None:
    with Store(path) as store:
        assert store.preference("theme", "green") == "green"
        store.set_preference("theme", "dark")
        store.set_preference("sizes", {"card": [60, 84], "big": None})
        store.set_preference("theme", "light")
    with Store(path) as store:
        assert store.preference("theme", "green") == "light"
        assert store.preference("sizes", None) == {"card": [60, 84], "big": None}


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
def test_a_preference_that_json_cannot_hold_is_refused(store: Store, value: object) -> None:
    store.set_preference("theme", "dark")
    with pytest.raises(StoreError, match="preference theme: expected a value that JSON can hold"):
        store.set_preference("theme", value)
    assert store.preference("theme", None) == "dark"


def test_a_damaged_preference_is_not_set_and_said(path: Path) -> None:
    with Store(path) as store:
        store.set_preference("theme", "dark")
        raw(path, "UPDATE preferences SET value = '\"da'")
        assert store.preference("theme", "green") == "green"
        assert "theme" in store.take_messages()[0]


# ---- several programs and threads at once ----------------------------------------------------------------------------

WORKER = """
import sys
from pyramid_env import Game
from pyramid_env.table.store import Result, SavedGame, Store
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
game = Game(1).to_json()
print("ready", flush=True)
sys.stdin.readline()
with Store(path) as store:
    for message in store.messages:
        print(message, flush=True)
    for number in range(count):
        attempt = f"{name}{number}"
        store.save(SavedGame(attempt, "pyramid", game, 1.0, False, float(number)))
        store.record(Result(attempt, "pyramid", "7", number % 2 == 0, 1, 1, 1, 1.0, 9, False, 1.0))
        if len(sys.argv) > 4:
            print(attempt, flush=True)
"""


def start(path: Path, name: str, count: int, *more: str) -> subprocess.Popen[str]:
    """A program that is about to save and record; it begins when it is told to go."""
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path), name, str(count), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def go(programs: list[subprocess.Popen[str]]) -> None:
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n", program.communicate()
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()


def finish(programs: list[subprocess.Popen[str]]) -> list[str]:
    ends = [program.communicate(timeout=60) for program in programs]
    assert not any(program.returncode for program in programs), ends
    return [output for output, _ in ends]


def test_two_programs_lose_no_result_and_no_save(path: Path) -> None:
    programs = [start(path, name, 100) for name in "ab"]
    go(programs)
    assert finish(programs) == ["", ""]
    expected = {f"{name}{number}" for name in "ab" for number in range(100)}
    rows = raw(path, "SELECT number, attempt FROM results")
    assert len(rows) == len({number for number, _ in rows}) == 200
    assert {attempt for _, attempt in rows} == expected
    assert {attempt for (attempt,) in raw(path, "SELECT attempt FROM saves")} == expected
    with Store(path) as store:
        seen = store.statistics("pyramid")
    assert (seen.played, seen.won, seen.average_par) == (200, 100, 1.0)


def test_threads_share_a_store(path: Path) -> None:
    faults: list[BaseException] = []

    def play(store: Store, name: int) -> None:
        try:
            for number in range(25):
                store.save(saved(f"{name}.{number}"))
                store.record(result(f"{name}.{number}"))
                store.statistics("pyramid")
        except BaseException as error:
            faults.append(error)

    with Store(path) as store, Store(path) as other:
        threads = [threading.Thread(target=play, args=((store, other)[name % 2], name)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
        assert store.statistics("pyramid").played == other.statistics("pyramid").played == 100


@pytest.mark.parametrize("moves", [1, 17, 60])
def test_a_killed_program_loses_nothing_that_was_kept(path: Path, moves: int) -> None:
    program = start(path, "a", 100_000, "tell")
    go([program])
    assert program.stdout is not None
    with program:
        told = [program.stdout.readline() for _ in range(moves)]
        program.kill()
        told += program.stdout
    kept = [line.strip() for line in told]
    assert kept == [f"a{number}" for number in range(len(kept))]
    with Store(path) as store:
        assert store.messages == []
        recorded = [one.attempt for one in store.results("pyramid")]
        last = store.load("pyramid")
    assert recorded[: len(kept)] == kept
    assert len(recorded) <= len(kept) + 1  # the one that was going on
    assert last is not None
    assert last.updated >= len(kept) - 1
    assert len(raw(path, "SELECT * FROM saves")) in (len(recorded), len(recorded) + 1)


def test_a_held_database_is_waited_for_and_then_said(path: Path) -> None:
    with Store(path, timeout_s=0.1) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        store.save(saved())
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"another program has held the database for 0\.1 s.*try again"):
            store.record(result("a"))
        assert store.load("pyramid") == saved()
        other.execute("ROLLBACK")
        assert store.record(result("a")) == result("a")


def test_without_a_write_ahead_log_everything_is_kept_as_well(path: Path) -> None:
    with Store(path) as store:
        store.save(saved())
    assert raw(path, "PRAGMA journal_mode = DELETE") == [("delete",)]
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM saves").fetchall()  # keeps the next store from changing the mode
        store = Store(path, timeout_s=0.1)
        reader.execute("COMMIT")
    with store:
        store.record(result("a"))
        assert raw(path, "PRAGMA journal_mode") == [("delete",)]
        assert (store.load("pyramid"), store.results("pyramid")) == (saved(), (result("a"),))


# ---- damage ----------------------------------------------------------------------------------------------------------


def full_database(path: Path) -> bytes:
    """The bytes of a closed database of some dozen pages."""
    with Store(path) as store:
        for number in range(40):
            store.save(saved(f"attempt-{number}"))
            store.record(result(f"attempt-{number}"))
    return path.read_bytes()


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2 // 4096 * 4096
    return data[:middle] + bytes(byte ^ 0xFF for byte in data[middle : middle + 4096]) + data[middle + 4096 :]


def with_a_false_index(data: bytes) -> bytes:
    pages = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    return b"".join(page.replace(b"attempt-17", b"attempt-18") if page[0] == 0x0A else page for page in pages)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "garbage": lambda data: b"no database at all " * 500,
    "long garbage": lambda data: b"\x00\xff" * 4096,
    "one byte": lambda data: b"x",
    "cut in the header": lambda data: data[:50],
    "cut to a page": lambda data: data[:4096],
    "cut in half": lambda data: data[: len(data) // 2],
    "last page gone": lambda data: data[:-4096],
    "last byte gone": lambda data: data[:-1],
    "bytes flipped": flipped,
    "false index": with_a_false_index,
}


def files_aside(path: Path) -> list[Path]:
    """The databases that were set aside, without what lay beside them."""
    return [file for file in sorted(path.parent.glob("*.damaged-*")) if file.name[-4:] not in ("-wal", "-shm")]


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_database_is_set_aside_byte_for_byte(path: Path, kind: str) -> None:
    damaged = DAMAGES[kind](full_database(path))
    path.write_bytes(damaged)
    with Store(path) as store:
        (aside,) = files_aside(path)
        (message,) = store.take_messages()
        assert str(aside) in message
        assert store.results("pyramid") == ()
        assert store.record(result("new")) == result("new")
    assert aside.read_bytes() == damaged
    with Store(path) as store:
        assert store.messages == []
        assert store.results("pyramid") == (result("new"),)


def test_setting_aside_never_takes_a_name_that_is_taken(path: Path) -> None:
    path.parent.mkdir()
    for number in range(3):
        path.write_bytes(bytes([65 + number]) * 1000)
        Store(path).close()
    assert sorted(file.read_bytes()[:1] for file in files_aside(path)) == [b"A", b"B", b"C"]


def test_the_log_of_a_damaged_database_is_set_aside_with_it(path: Path, tmp_path: Path) -> None:
    """As a killed program leaves it: the newest results are in the log alone."""
    broken = tmp_path / "broken.sqlite3"
    damaged = flipped(full_database(path))
    with Store(path) as store:
        store.record(result("newest"))
        shutil.copy(f"{path}-wal", f"{broken}-wal")
    log = Path(f"{broken}-wal").read_bytes()
    assert log
    broken.write_bytes(damaged)
    with Store(broken) as store:
        assert len(store.messages) == 1
        (aside,) = files_aside(broken)
    assert aside.read_bytes() == damaged
    assert Path(f"{aside}-wal").read_bytes() == log


def test_a_log_whose_database_is_gone_is_set_aside(path: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite3"
    with Store(path) as store:
        store.record(result("a"))
        shutil.copy(f"{path}-wal", f"{broken}-wal")
    log = Path(f"{broken}-wal").read_bytes()
    with Store(broken) as store:
        assert len(store.messages) == 1
        (aside,) = tmp_path.glob("broken.sqlite3.damaged-*-wal")
        assert aside.read_bytes() == log


def test_programs_that_find_the_damage_at_once_set_it_aside_once(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"garbage " * 1000)
    programs = [start(path, name, 20) for name in "abc"]
    go(programs)
    outputs = finish(programs)
    (aside,) = files_aside(path)
    assert aside.read_bytes() == b"garbage " * 1000
    assert sum(str(aside) in output for output in outputs) == 1
    assert len("".join(outputs).splitlines()) == 1
    assert len(raw(path, "SELECT * FROM results")) == 60


def test_damage_to_an_open_database_is_found_once_and_all_go_on_with_the_fresh_one(path: Path) -> None:
    data = full_database(path)
    with Store(path) as first, Store(path) as second, Store(path) as third:
        damaged = data[:4096] + b"\xff" * (len(data) - 4096)
        path.write_bytes(damaged)
        second.set_preference("theme", "dark")  # from now on the others read the file anew
        assert first.results("pyramid") == ()
        (aside,) = files_aside(path)
        assert len(first.messages) == 1
        second.record(result("a"))
        third.save(saved())
        assert (second.messages, third.messages) == ([], [])
        assert first.results("pyramid") == (result("a"),)
        assert first.load("pyramid") == saved()
        assert files_aside(path) == [aside]
    assert aside.read_bytes() == damaged
    with Store(path) as store:
        assert (store.results("pyramid"), store.messages) == ((result("a"),), [])


def test_a_file_that_another_program_moved_gets_no_more_saves(path: Path) -> None:
    with Store(path) as store:
        store.save(saved("before"))
        set_aside(str(path))  # as another program does that found damage
        store.save(saved("after"))
        assert store.messages == []
    assert raw(path, "SELECT attempt FROM saves") == [("after",)]


def test_what_is_written_while_another_program_moves_the_file_is_written_to_the_fresh_one(path: Path) -> None:
    def write(connection: sqlite3.Connection) -> None:
        if not files_aside(path):
            set_aside(str(path))
        connection.execute("INSERT INTO preferences VALUES ('theme', '\"dark\"')")

    with closing(Database(str(path), 1.0)) as database:
        database.write(write)
    assert raw(path, "SELECT name FROM preferences") == [("theme",)]


def test_who_finds_the_damage_late_does_not_set_the_fresh_database_aside(path: Path) -> None:
    def write(connection: sqlite3.Connection) -> None:
        if files_aside(path):
            return
        set_aside(str(path))
        with Store(path) as other:
            other.record(result("others"))
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    with closing(Database(str(path), 1.0)) as database:
        database.write(write)
        assert database.messages == []
    assert len(files_aside(path)) == 1
    assert raw(path, "SELECT attempt FROM results") == [("others",)]


def test_a_newer_database_is_refused_and_left_alone(path: Path) -> None:
    full_database(path)
    raw(path, "PRAGMA user_version = 2")
    newer = path.read_bytes()
    with pytest.raises(StoreError, match="expected a database of version 1 at most, got version 2"):
        Store(path)
    assert path.read_bytes() == newer
    assert files_aside(path) == []


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    raw(path, "CREATE TABLE photos (name)")
    theirs = path.read_bytes()
    with pytest.raises(StoreError, match="got another program's"):
        Store(path)
    assert path.read_bytes() == theirs


# ---- doors that stay closed ------------------------------------------------------------------------------------------


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreError, match="expected an open store, got a closed one"):
        store.load("pyramid")


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="expected a file that can be opened and written"):
        Store(tmp_path)


def test_no_folder_can_be_made_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="expected a file that can be opened and written"):
        Store(tmp_path / "file" / "table.sqlite3")


def test_a_value_that_cannot_be_kept_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="NOT NULL"):
        store.record(replace(result("a"), seconds=float("nan")))
    assert store.results("pyramid") == ()
    store.record(result("a"))


def run(script: str, *arguments: Path | str) -> str:
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


READ_ONLY = """
import os, sys
from pyramid_env.table.store import Store, StoreError
if os.getuid() == 0:
    os.setuid(65534)  # root may write everywhere
for path in sys.argv[1:]:
    try:
        Store(path)
    except StoreError as error:
        print(error)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows knows no folder that can't be written to")
def test_a_folder_that_cannot_be_written_is_said_at_the_door() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        there = folder / "there.sqlite3"
        before = full_database(there)
        folder.chmod(0o555)
        there.chmod(0o444)
        told = run(READ_ONLY, there, folder / "new.sqlite3", folder / "sub" / "new.sqlite3").splitlines()
        folder.chmod(0o755)
        assert len(told) == 3
        assert all("expected a file that can be opened and written, got" in line for line in told)
        assert there.read_bytes() == before
        assert sorted(file.name for file in folder.iterdir()) == ["there.sqlite3", "there.sqlite3.lock"]


FULL = """
import resource, sys
from pyramid_env import Game
from pyramid_env.table.store import SavedGame, Store, StoreError
game = Game(1).to_json()
with Store(sys.argv[1]) as store:
    store.save(SavedGame("kept", "pyramid", game, 1.0, False, 1.0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (16384, resource.RLIM_INFINITY))
    for _ in range(2):
        try:
            store.save(SavedGame("lost", "pyramid", game, 1.0, False, 2.0))
        except StoreError as error:
            print(error)
    print(store.load("pyramid").attempt)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.save(SavedGame("again", "pyramid", game, 1.0, False, 3.0))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit to a file's size")
def test_a_file_that_cannot_grow_is_said_and_loses_nothing(path: Path) -> None:
    first, second, loaded = run(FULL, path).splitlines()
    assert first == second
    assert first.startswith(f"{path}: expected a file that can be opened and written, got ")
    assert loaded == "kept"
    assert [attempt for (attempt,) in raw(path, "SELECT attempt FROM saves ORDER BY updated")] == ["kept", "again"]
