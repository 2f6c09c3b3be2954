"""Many deals: the order, the columns, the file; runs that are killed, interrupted or resumed lose nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pyramid_env as pe
from pyramid_env.errors import DeckError
from pyramid_env.solver import Limits, Objective, Solution, SolverError, Status, journal, many, solve, solve_many
from pyramid_env.solver.blocks import STATUSES, Block, solve_block
from pyramid_env.solver.columns import SOLVER_VERSION, Solutions
from pyramid_env.solver.journal import Journal
from pyramid_env.solver.progress import shown
from pyramid_env.solver.question import Question, read_deals

ROOT = Path(__file__).resolve().parent.parent
MINI = pe.rules("mini")
KILLS = 10

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def made_up(rules, ranks, objective, limits, stop) -> Block:
    """Answers at once, other ones for other cards; the lines have 0 to 6 moves."""
    weights = np.arange(1, ranks.shape[1] + 1)
    value = (ranks @ weights).astype(np.int32)
    lengths = value % 7
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    actions = (np.repeat(value, lengths) + np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)) % 11
    return Block((value % 3).astype(np.int8), value, value + 1, value * 2, value / 7, actions.astype(np.int16), offsets)


@pytest.fixture
def instant(monkeypatch):
    """The solver gives made-up answers."""
    monkeypatch.setattr(many, "solve_block", made_up)


@pytest.fixture
def slow(monkeypatch):
    """The solver takes 5 ms a deal; the list says how many deals it was asked about, block by block."""
    asked = []

    def solve_slowly(rules, ranks, objective, limits, stop):
        asked.append(len(ranks))
        count = 0
        while count < len(ranks) and not stop[0]:
            time.sleep(0.005)
            count += 1
        return made_up(rules, ranks[:count], objective, limits, stop)

    monkeypatch.setattr(many, "solve_block", solve_slowly)
    return asked


def partial(path: Path) -> Path:
    return Path(f"{path}.partial")


def journaled(path: Path, deals, **limits) -> set[int]:
    """The indices of the deals that the journal beside a file holds."""
    question = Question(MINI, Objective.WIN, Limits(**limits), read_deals(deals, MINI), SOLVER_VERSION)
    with Journal(partial(path), question) as opened:
        return {start + i for start, block in opened.blocks for i in range(block.status.size)}


def broken_off(path: Path, deals, after: int, **asked) -> None:
    """A run of which the journal is left."""

    def interrupt(done: int, total: int) -> None:
        if done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve_many(deals, "mini", workers=1, file=path, progress=interrupt, **asked)
    assert partial(path).exists()
    assert not path.exists()


# ---- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", Objective)
def test_answers_are_those_of_solve_in_the_order_of_the_deals(objective):
    deals = [9, pe.Deal.number(5, "mini"), str(pe.Deal.number(7, "mini")), 9, np.int64(0), *range(20, 60)]
    solutions = solve_many(deals, "mini", objective, workers=2)
    assert len(solutions) == len(deals)
    for deal, solution in zip(deals, solutions, strict=True):
        alone = solve(deal, "mini", objective)
        assert (solution.status, solution.value, solution.bound) == (alone.status, alone.value, alone.bound)
        assert (solution.moves, solution.states, solution.objective) == (alone.moves, alone.states, alone.objective)
        assert solution.seconds >= 0


def test_any_number_of_workers_gives_the_same():
    alone = solve_many(range(100), "mini", "steps", workers=1)
    for workers in (2, 3, 200, None):
        shared = solve_many(range(100), "mini", "steps", workers=workers)
        assert shared == alone
        assert (shared.states == alone.states).all()


@pytest.mark.parametrize(
    "deals",
    [range(50, 0, -3), np.arange(50, 0, -3), np.arange(50, 0, -3).astype(np.uint8), (n for n in range(50, 0, -3))],
)
def test_numbers_may_come_in_any_shape(deals, instant):
    assert solve_many(deals, "mini") == solve_many(list(range(50, 0, -3)), "mini")


def test_the_highest_numbers_are_deals(instant):
    last = 2**63 - 1
    assert solve_many(range(last - 2, last + 1), "mini").deals.tolist() == [last - 2, last - 1, last]


@pytest.mark.parametrize("deals", [range(-3, 5), range(2**63 - 2, 2**63 + 2), np.array([3, -1]), [3, True], [2**63]])
def test_numbers_out_of_range_are_refused(deals):
    with pytest.raises(DeckError, match="deal number: expected a whole number from 0 to"):
        solve_many(deals, "mini")


@pytest.mark.parametrize("deals", [5, None, "94J8", b"94J8", np.array(5), pe.Deal.number(1)])
def test_one_deal_is_refused(deals):
    with pytest.raises(SolverError, match="deals: expected several, in a list or the like, got "):
        solve_many(deals)


@pytest.mark.parametrize("deals", [[1.5], np.array([1.5]), [None], np.array([[1, 2]])])
def test_what_is_no_deal_is_refused(deals):
    with pytest.raises(DeckError, match="deal: expected a Deal, a deal number or a deal as text, got "):
        solve_many(deals)


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "2"])
def test_workers_are_counted_from_one(workers):
    with pytest.raises(SolverError, match="workers: expected a whole number from 1 up or None, got "):
        solve_many([1], workers=workers)


def test_no_deals_are_answered(tmp_path):
    solutions = solve_many([], "mini", file=tmp_path / "none.npz")
    assert len(solutions) == 0
    assert list(solutions) == []
    assert solve_many(range(0), "mini", file=tmp_path / "none.npz") == solutions


def test_a_block_is_answered_in_columns_and_stops_when_told():
    ranks = read_deals(range(30), MINI).ranks(MINI, 0, 30)
    block = solve_block(MINI, ranks, Objective.SCORE, Limits(), np.zeros(1, np.int64))
    assert [column.dtype for column in block] == [np.int8, np.int32, np.int32, np.int64, np.float64, np.int16, np.int64]
    assert [column.shape for column in block[:5]] == [(30,)] * 5
    assert (block.offsets.shape, block.offsets[0], block.offsets[-1]) == ((31,), 0, len(block.actions))
    stopped = solve_block(MINI, ranks, Objective.SCORE, Limits(), np.ones(1, np.int64))
    assert [len(column) for column in stopped] == [0, 0, 0, 0, 0, 0, 1]


def test_blocks_grow_for_easy_deals_and_stay_small_for_hard_ones(slow):
    solve_many(range(100), "mini", workers=1)
    assert max(slow) <= 1.5 * many.BLOCK_SECONDS / 0.005
    assert slow[0] == 1
    assert len(slow) < 60


def test_a_workers_error_ends_the_run_and_the_others(slow, monkeypatch, tmp_path):
    slowly = many.solve_block
    hard = pe.Deal.number(50, "mini").ranks

    def fail(rules, ranks, *rest):
        if (ranks == hard).all(axis=1).any():
            raise MemoryError("no room")
        return slowly(rules, ranks, *rest)

    monkeypatch.setattr(many, "solve_block", fail)
    with pytest.raises(MemoryError, match="no room"):
        solve_many(range(100), "mini", workers=3, file=tmp_path / "a.npz")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("solver-")]
    assert len(journaled(tmp_path / "a.npz", range(100))) >= 20


# ---- progress --------------------------------------------------------------------------------------------------------


def test_progress_is_told_in_rising_counts_to_the_last_deal(instant):
    told = []
    solve_many(range(1000), "mini", progress=lambda done, total: told.append((done, total, threading.current_thread())))
    done = [done for done, _, _ in told]
    assert done == sorted(set(done))
    assert done[-1] == 1000
    assert {(total, thread) for _, total, thread in told} == {(1000, threading.main_thread())}


def test_progress_begins_with_what_the_file_holds(slow, tmp_path):
    told = []
    broken_off(tmp_path / "a.npz", range(50), after=10)
    held = len(journaled(tmp_path / "a.npz", range(50)))
    for _ in range(2):
        solve_many(range(50), "mini", file=tmp_path / "a.npz", progress=lambda done, total: told.append(done))
    assert told[0] == held
    assert told[-2:] == [50, 50]


def test_progress_is_nothing_else_than_a_flag_or_a_function():
    for progress in ("yes", None, 1):
        with pytest.raises(SolverError, match="progress: expected True, False or a function"):
            solve_many([1], "mini", progress=progress)


class Terminal:
    """A terminal that keeps what is written."""

    encoding = "utf-8"

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text
        return len(text)

    def flush(self):
        pass


@pytest.mark.parametrize("rich", [True, False])
def test_a_bar_is_shown_on_a_terminal_with_rich_and_without(rich, monkeypatch, instant):
    if rich:
        pytest.importorskip("rich", reason="without rich there is no bar")
        monkeypatch.setenv("TERM", "xterm")
    else:
        monkeypatch.setitem(sys.modules, "rich", None)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    solve_many(range(10), "mini", progress=True)
    assert "10/10" in terminal.text if rich else "10 of 10 deals" in terminal.text


def test_no_bar_is_shown_elsewhere(capfd, instant):
    solve_many(range(10), "mini", progress=True)
    with shown(True, 10) as tell:
        tell(1, 10)
    assert capfd.readouterr() == ("", "")


# ---- columns ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def some() -> Solutions:
    """Deals with and without a number, some of them undecided."""
    deals = [3, str(pe.Deal.number(7, "mini")), 4, *range(20, 40), str(pe.Deal.number(8, "mini"))]
    return solve_many(deals, "mini", "steps", max_states=20)


def test_columns_hold_what_the_solutions_say(some):
    assert {solution.status for solution in some} == set(Status)
    for i, solution in enumerate(some):
        assert isinstance(solution, Solution)
        assert solution == some[i] == some[i - len(some)]
        assert STATUSES[some.status[i]] is solution.status
        assert (some.value[i], some.bound[i], some.states[i]) == (solution.value, solution.bound, solution.states)
        assert [pe.moves.move_table(MINI)[action] for action in some.line(i)] == list(solution.moves)
    assert some.deals[:4].tolist() == [3, -1, 4, 20]
    assert some.deal(1) == pe.Deal.number(7, "mini")
    assert some.deal(-1) == pe.Deal.number(8, "mini")
    assert some.deal(3).deal_number == 20
    assert (some.rules, some.objective, some.limits) == (MINI, Objective.STEPS, Limits(max_states=20))
    assert some.version == SOLVER_VERSION
    with pytest.raises(IndexError):
        some[len(some)]


@pytest.mark.parametrize(
    "part", [slice(1, 4), slice(None), slice(None, None, -1), slice(5, 0, -2), slice(9, 3), slice(-1, None)]
)
def test_a_slice_is_the_solutions_of_these_deals(some, part):
    taken = some[part]
    assert list(taken) == list(some)[part]
    assert [taken.deal(i) for i in range(len(taken))] == [some.deal(i) for i in range(len(some))][part]
    assert (taken == some) is (len(taken) == len(some) and part.step is None)


def test_solutions_are_equal_if_the_answers_are(some):
    deals = [some.deal(i) for i in range(len(some))]
    assert solve_many(deals, "mini", "steps", max_states=20) == some
    assert solve_many(deals, "mini:match_games=2", "steps", max_states=20) == some
    assert solve_many(deals, "mini", "steps") != some
    assert solve_many(deals, "mini", "earliest", max_states=20) != some
    assert solve_many(deals[:-1], "mini", "steps", max_states=20) != some
    assert some != list(some)


def test_columns_cannot_be_written_to(some):
    for name in ("deals", "status", "value", "bound", "states", "seconds", "actions", "offsets"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(some, name)[0] = 1


def test_columns_make_a_table(some):
    table = some.to_columns()
    assert {len(column) for column in table.values()} == {len(some)}
    assert table["status"].tolist() == [solution.status.value for solution in some]
    assert table["steps"].tolist() == [len(solution.moves) for solution in some]


def test_solutions_print_what_they_are(some):
    assert repr(some).startswith("Solutions(24 deals of mini, steps: ")
    assert repr(some[:0]) == "Solutions(0 deals of mini, steps)"


# ---- the file --------------------------------------------------------------------------------------------------------


def test_a_file_gives_back_what_was_saved(some, tmp_path):
    path = tmp_path / "new" / "some.npz"
    some.save(path)
    read = Solutions.load(str(path))
    assert read == some
    assert list(read) == list(some)
    assert (read.rules, read.rules.preset, read.limits, read.version) == (MINI, "mini", some.limits, SOLVER_VERSION)
    assert [read.deal(i) for i in range(len(read))] == [some.deal(i) for i in range(len(some))]
    read[2:9].save(path)
    assert Solutions.load(path) == some[2:9]
    assert os.listdir(path.parent) == ["some.npz"]


def test_a_file_opens_with_numpy_alone_and_says_what_made_it(some, tmp_path):
    some.save(tmp_path / "some.npz")
    with np.load(tmp_path / "some.npz", allow_pickle=False) as columns:
        assert columns["value"].tolist() == some.value.tolist()
        assert columns["cards"].shape == (2, MINI.cards)
        header = json.loads(bytes(columns["header"]))
    assert header["solver_version"] == SOLVER_VERSION
    assert header["package"] == pe.__version__
    assert header["objective"] == "steps"
    assert header["limits"] == {"max_states": 20, "max_seconds": None, "max_bytes": 2 << 30}
    assert pe.Rules(**header["rules"]) == MINI


@pytest.mark.parametrize("limit", [None, 7, 1.5, float("inf")])
def test_every_limit_is_read_back(limit, tmp_path, instant):
    made = solve_many([1], "mini", max_seconds=limit, max_bytes=None, file=tmp_path / "a.npz")
    assert made.limits == Solutions.load(tmp_path / "a.npz").limits == Limits(None, limit, None)


def test_a_damaged_file_is_refused_or_reads_the_same(some, tmp_path):
    path = tmp_path / "some.npz"
    some.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    damaged = [whole[:length] for length in rng.integers(0, len(whole), 40)]
    for at in rng.integers(0, len(whole), 160):
        damaged.append(whole[:at] + bytes([whole[at] ^ (1 << rng.integers(8))]) + whole[at + 1 :])
    damaged += [b"", b"garbage", b"\x80\x04N.", whole[: len(whole) // 2] * 2]
    refused = 0
    for data in damaged:
        path.write_bytes(data)
        try:
            assert Solutions.load(path) == some  # a bit of a date, say
        except SolverError:
            refused += 1
    assert refused > len(damaged) / 2
    with pytest.raises(FileNotFoundError):
        Solutions.load(tmp_path / "none.npz")


def test_columns_that_do_not_fit_together_are_refused(some, tmp_path):
    path = tmp_path / "some.npz"
    some.save(path)
    with np.load(path) as columns:
        good = dict(columns)
    header = json.loads(bytes(good["header"]))
    bad = {
        "status": np.full_like(good["status"], 3),
        "value": good["value"][1:],
        "bound": good["bound"].astype(np.int64),
        "actions": np.full_like(good["actions"], 30_000),
        "offsets": good["offsets"][::-1].copy(),
        "deals": np.full_like(good["deals"], -2),
        "cards": good["cards"][1:],
        "seconds": np.array([{}] * len(some)),
    }
    for name, value in {"format": "x", "file_version": 9, "solver_version": "2", "objective": "x", "rules": {}}.items():
        text = json.dumps({**header, name: {"rows": 99} if name == "rules" else value})
        bad[f"header {name}"] = np.frombuffer(text.encode(), np.uint8)
    for name, column in bad.items():
        np.savez(path, **{**good, name.partition(" ")[0]: column})
        with pytest.raises(SolverError, match="cannot read it"):
            Solutions.load(path)


# ---- a run's file ----------------------------------------------------------------------------------------------------


def test_a_finished_file_is_returned_at_once(slow, tmp_path):
    path = tmp_path / "deep" / "a.npz"
    made = solve_many(range(20), "mini", file=path)
    assert os.listdir(path.parent) == ["a.npz"]
    slow.clear()
    assert list(solve_many(range(20), "mini", file=str(path))) == list(made) == list(Solutions.load(path))
    assert slow == []


def test_a_run_that_was_interrupted_is_taken_up(slow, tmp_path):
    path = tmp_path / "a.npz"
    broken_off(path, range(100), after=30)
    held = journaled(path, range(100))
    assert 30 <= len(held) < 100
    (tmp_path / "a.npz.new").write_bytes(b"a kill while the file was written")
    slow.clear()
    resumed = solve_many(range(100), "mini", workers=2, file=path)
    assert sum(slow) == 100 - len(held)
    assert os.listdir(tmp_path) == ["a.npz"]
    assert list(resumed) == list(solve_many(range(100), "mini"))


QUESTIONS = [
    ({"deals": range(1, 41)}, r"deals\[0\]: expected 1, got 0"),
    ({"deals": range(41)}, "deals: expected 41, got 40"),
    ({"deals": [*range(39), str(pe.Deal.number(39, "mini"))]}, r"deals\[39\]: expected .*, got 39"),
    ({"rules": "mini:passes=2"}, "passes: expected 2, got 3"),
    ({"objective": "score"}, "objective: expected score, got win"),
    ({"max_states": 99}, "max_states: expected 99, got None"),
    ({"max_bytes": None}, "max_bytes: expected None, got 2147483648"),
    ({"version": 4}, f"solver version: expected 4, got {SOLVER_VERSION}"),
]


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(("change", "message"), QUESTIONS)
def test_the_file_of_another_question_is_refused_and_kept(change, message, finished, slow, monkeypatch, tmp_path):
    path = tmp_path / "a.npz"
    if finished:
        solve_many(range(40), "mini", file=path)
    else:
        broken_off(path, range(40), after=5)
    before = {entry: entry.read_bytes() for entry in tmp_path.iterdir()}
    asked = {"deals": range(40), "rules": "mini", **change}
    if version := asked.pop("version", None):
        monkeypatch.setattr(many, "SOLVER_VERSION", version)
    slow.clear()
    with pytest.raises(SolverError, match=f"{path.name}.*: holds the answers to another question; {message}"):
        solve_many(**asked, file=path)
    assert slow == []
    assert {entry: entry.read_bytes() for entry in tmp_path.iterdir()} == before


def test_deals_without_a_number_are_told_apart(instant, tmp_path):
    texts = [str(pe.Deal.number(number, "mini")) for number in range(5)]
    solve_many(texts[:4], "mini", file=tmp_path / "a.npz")
    solve_many(texts[:4], "mini", file=tmp_path / "a.npz")
    with pytest.raises(SolverError, match=rf"deals\[3\]: expected {texts[4]}, got {texts[3]}"):
        solve_many([*texts[:3], texts[4]], "mini", file=tmp_path / "a.npz")


def test_a_presets_name_is_no_other_question(instant, tmp_path):
    made = solve_many(range(9), "mini", file=tmp_path / "a.npz")
    same = pe.Rules(ranks=7, suits=2, rows=3, match_games=3)
    assert solve_many(range(9), same, file=tmp_path / "a.npz") == made


@pytest.mark.parametrize("garbage", [b"", b"garbage", b"\0" * 1000])
@pytest.mark.parametrize("name", ["a.npz", "a.npz.partial"])
def test_a_file_of_something_else_is_refused_and_kept(name, garbage, instant, tmp_path):
    (tmp_path / name).write_bytes(garbage)
    if name == "a.npz.partial" and not garbage:  # a run was killed as it began
        assert solve_many([1], "mini", file=tmp_path / "a.npz") == solve_many([1], "mini")
        return
    with pytest.raises(SolverError, match=f"{name}: expected .*, cannot read it"):
        solve_many([1], "mini", file=tmp_path / "a.npz")
    assert (tmp_path / name).read_bytes() == garbage
    assert os.listdir(tmp_path) == [name]


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(SolverError, match="file: expected a file's path, got the folder"):
        solve_many([1], "mini", file=tmp_path)


def test_a_journal_cut_off_anywhere_is_taken_up(instant, tmp_path):
    path = tmp_path / "a.npz"
    deals = [*range(60), str(pe.Deal.number(7, "mini"))]
    expected = solve_many(deals, "mini")
    broken_off(path, deals, after=40)
    whole = partial(path).read_bytes()
    held = len(journaled(path, deals))
    counts = []
    lengths = np.random.default_rng(2).integers(0, len(whole), 60).tolist()
    for length in [*lengths, 0, 1, len(whole) - 1, len(whole)]:
        partial(path).write_bytes(whole[:length])
        counts.append((length, len(journaled(path, deals))))
        assert len(journaled(path, deals)) == counts[-1][1]
        partial(path).write_bytes(whole[:length])
        assert list(solve_many(deals, "mini", file=path)) == list(expected)
        path.unlink()
    assert [count for _, count in sorted(counts)] == sorted(count for _, count in counts)
    assert max(counts) == (len(whole), held)
    assert 0 < dict(counts)[len(whole) - 1] < held  # one block less


@pytest.mark.parametrize("tail", [b"\0" * 100, b"PyraSolB" * 9, bytes(range(256))])
def test_a_torn_end_of_a_journal_is_dropped(tail, instant, tmp_path):
    path = tmp_path / "a.npz"
    broken_off(path, range(60), after=20)
    held = journaled(path, range(60))
    with partial(path).open("ab") as file:
        file.write(tail)
    assert journaled(path, range(60)) == held
    assert list(solve_many(range(60), "mini", file=path)) == list(solve_many(range(60), "mini"))


def test_what_is_written_after_a_torn_end_is_read(slow, tmp_path):
    path = tmp_path / "a.npz"
    broken_off(path, range(60), after=10)
    with partial(path).open("ab") as file:
        file.write(partial(path).read_bytes()[-20:])
    first = journaled(path, range(60))
    broken_off(path, range(60), after=30)
    assert journaled(path, range(60)) > first


def test_a_damaged_block_is_solved_again(instant, tmp_path):
    path = tmp_path / "a.npz"
    broken_off(path, range(60), after=50)
    data = bytearray(partial(path).read_bytes())
    data[-5] ^= 1
    partial(path).write_bytes(data)
    assert list(solve_many(range(60), "mini", file=path)) == list(solve_many(range(60), "mini"))


def test_a_full_disk_is_an_error_and_what_was_written_before_stays(slow, monkeypatch, tmp_path):
    path = tmp_path / "a.npz"
    write, calls = journal._write, []

    def fail_in_the_fifth(file, data):
        calls.append(len(data))
        if len(calls) == 5:
            write(file, data[: len(data) // 2])
            raise OSError("No space left on device")
        write(file, data)

    monkeypatch.setattr(journal, "_write", fail_in_the_fifth)
    with pytest.raises(OSError, match="No space left"):
        solve_many(range(60), "mini", workers=3, file=path)
    monkeypatch.undo()
    monkeypatch.setattr(many, "solve_block", made_up)
    assert len(journaled(path, range(60))) >= 3
    assert list(solve_many(range(60), "mini", file=path)) == list(solve_many(range(60), "mini"))


def test_a_kill_between_the_last_two_steps_leaves_nothing_behind(slow, tmp_path):
    path = tmp_path / "a.npz"
    broken_off(path, range(30), after=29)
    solve_many(range(30), "mini").save(path)
    slow.clear()
    assert solve_many(range(30), "mini", file=path) == Solutions.load(path)
    assert slow == []
    assert not partial(path).exists()


# ---- other processes -------------------------------------------------------------------------------------------------

PROGRAM = """
import os, sys, time
from pyramid_env.rules import rules
from pyramid_env.solver import many
from pyramid_env.solver.question import read_deals

path, log, count = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT), int(sys.argv[3])
mini, real = rules("mini"), many.solve_block
number = {ranks.tobytes(): at for at, ranks in enumerate(read_deals(range(count), mini).ranks(mini, 0, count))}
assert len(number) == count
many.solve_many(range(1), mini)  # compiles, or loads what is compiled

def logged(rules, ranks, objective, limits, stop):
    numbers = " ".join(str(number[row.tobytes()]) for row in ranks)
    os.write(log, f"begin {numbers}\\n".encode())
    until = time.monotonic() + 0.004 * len(ranks)
    while time.monotonic() < until and not stop[0]:
        time.sleep(0.001)
    block = real(rules, ranks, objective, limits, stop)
    if block.status.size:
        os.write(log, f"end {' '.join(numbers.split()[: block.status.size])}\\n".encode())
    return block

many.solve_block = logged
many.solve_many(range(count), "mini", workers=2, file=path)
"""


class Run:
    """A process that solves the mini deals 0 .. count - 1, 4 ms each at least, and logs which."""

    def __init__(self, path: Path, count: int) -> None:
        self.path, self.count = path, count
        self.log = path.with_name("log")
        self.log.unlink(missing_ok=True)
        command = [sys.executable, "-c", PROGRAM, str(path), str(self.log), str(count)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    def wait_until(self, ready: Callable[[], object]) -> None:
        while not ready():
            assert self.process.poll() is None, self.process.communicate()[1]
            time.sleep(0.001)

    def has_begun(self) -> bool:
        return bool(self.blocks("begin"))

    def end(self, number: int) -> str:
        """Send a signal and wait for the end; what the process wrote to stderr, a word about compiling left out."""
        self.process.send_signal(number)
        lines = self.process.communicate(timeout=20)[1].splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("pyramid_env: compiling "))

    def blocks(self, word: str) -> list[list[int]]:
        """The deals of each block that was begun, or ended."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [list(map(int, line.split()[1:])) for line in lines if line.startswith(word)]


@posix_only
def test_ten_kills_lose_nothing_and_repeat_only_deals_in_flight(tmp_path):
    count = 800
    path = tmp_path / "a.npz"
    rng = np.random.default_rng()
    held: set[int] = set()
    solved = in_flight = 0
    for kill in range(KILLS):
        run = Run(path, count)
        if kill:  # the first kill may come while the file is begun, the others while deals are solved
            run.wait_until(run.has_begun)
        else:
            run.wait_until(partial(path).exists)
        time.sleep(rng.uniform(0, 0.25))
        run.end(signal.SIGKILL)
        assert not path.exists()
        begun = run.blocks("begin")
        assert held.isdisjoint(deal for block in begun for deal in block)
        before, held = held, journaled(path, range(count))
        assert held >= before
        # Each of the two workers had one block at most that was begun and is not in the journal.
        lost = [block for block in begun if not held.issuperset(block)]
        assert len(lost) <= 2
        assert all(held.isdisjoint(block) for block in lost)
        solved += sum(map(len, begun))
        in_flight += sum(map(len, lost))
    run = Run(path, count)
    assert run.process.wait(timeout=60) == 0, run.process.communicate()[1]
    run.process.communicate()
    solved += sum(map(len, run.blocks("begin")))
    assert solved == count + in_flight
    assert sorted(os.listdir(tmp_path)) == ["a.npz", "log"]
    resumed, whole = Solutions.load(path), solve_many(range(count), "mini")
    assert resumed == whole
    assert (resumed.states == whole.states).all()
    assert solve_many(range(count), "mini", file=path) == whole


@posix_only
def test_ctrl_c_ends_at_once_and_keeps_every_finished_deal(tmp_path):
    count = 2000
    path = tmp_path / "a.npz"
    run = Run(path, count)
    run.wait_until(lambda: len(run.blocks("end")) > 5)
    began = time.monotonic()
    error = run.end(signal.SIGINT)
    assert time.monotonic() - began < 10
    assert run.process.returncode == -signal.SIGINT
    assert error.rstrip().endswith("KeyboardInterrupt")
    ended = {deal for block in run.blocks("end") for deal in block}
    assert journaled(path, range(count)) == ended


@posix_only
def test_two_runs_on_one_file_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    run = Run(path, 2000)
    run.wait_until(run.has_begun)
    with pytest.raises(SolverError, match=r"a\.npz\.partial: another run has this file open"):
        solve_many(range(2000), "mini", file=path)
    run.end(signal.SIGKILL)
    assert len(solve_many(range(2000), "mini", file=path)) == 2000
