"""Evaluation: records that replay, runs that repeat, bounds that are kept, tables that say what they mean, and the
command line."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from rich.console import Console

import evaluate
from agents import Agent, GreedyAgent, Observations, RandomAgent, measure
from agents import bounds as bounds_module
from agents import evaluation as evaluation_module
from agents.bounds import MAX_STATES, BoundSearch, BoundStore, DealBound, find_bounds, tightened
from agents.evaluation import GameRecord, evaluate_agent, read_records, write_records
from agents.report import Row, agent_row, bound_row, footnotes, plain_table, print_table, table_cells, write_summary
from agents.statistics import mean_t, wilson
from pyramid_env import kernels
from pyramid_env.benchmark import parse_deals
from pyramid_env.deal import Deal
from pyramid_env.errors import IllegalMoveError, PyramidError
from pyramid_env.moves import move_table
from pyramid_env.rules import PRESETS, Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver import Limits

MINI = PRESETS["mini"]
DEALS = parse_deals("test:0-39")
LIMITS = Limits(max_states=MAX_STATES)


class FirstLegal(Agent):
    """Takes the first legal action, and checks what it is shown."""

    name = "first"

    def act(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        assert action_masks.dtype == np.bool_
        assert action_masks.any(axis=1).all(), "a finished game was handed in"
        assert {len(field) for field in observations.values()} == {len(action_masks)}
        return action_masks.argmax(axis=1)


class Decliner(FirstLegal):
    """Draws whenever it may."""

    name = "decliner"

    def act(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        last = action_masks.shape[1] - 1
        return np.where(action_masks[:, last], last, action_masks.argmax(axis=1))


def without_time(records: list[GameRecord]) -> list[GameRecord]:
    return [dataclasses.replace(record, seconds=0.0) for record in records]


# ---- playing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_the_actions_of_a_record_replay_to_its_figures(name: str) -> None:
    rules = PRESETS[name]
    table, moves = kernels.table(rules), move_table(rules)
    for record in evaluate_agent(RandomAgent(rules), rules, DEALS[:8], seed=3, batch_size=5, keep_actions=True):
        assert record.actions is not None
        ranks, state = Deal.number(record.deal, rules).ranks, kernels.start_state(rules)
        for action in record.actions:
            assert action in kernels.legal_actions(rules, ranks, state)
            kernels.step(table, state, action)
        assert not kernels.legal_actions(rules, ranks, state).size
        pyramid, stock, _, _, cleared = state.tolist()
        assert record.won == kernels.is_won(table, pyramid, stock)
        assert record.cleared_in == cleared
        assert record.par == kernels.par_score(pyramid, stock, cleared)
        assert record.msc == kernels.msc_score(table, ranks, pyramid, stock)
        assert record.score == kernels.score(table, ranks, pyramid, stock, cleared)
        assert record.steps == len(record.actions)
        assert record.draws == sum(moves[action].is_draw for action in record.actions)
        assert read_rules(record.rules) == rules
        assert not record.truncated


@pytest.mark.parametrize("level", ["table", "memory", "clairvoyant"])
def test_an_agent_without_chance_plays_a_deal_the_same_in_every_run(level: str) -> None:
    agent = FirstLegal(MINI)
    agent.level = level
    games = without_time(evaluate_agent(agent, MINI, DEALS, seed=0))
    assert [game.deal for game in games] == DEALS.tolist()
    assert without_time(evaluate_agent(agent, MINI, DEALS, seed=0, batch_size=7)) == games
    assert without_time(evaluate_agent(agent, MINI, DEALS[::-1], seed=0, batch_size=1)) == games[::-1]
    assert without_time(evaluate_agent(agent, MINI, DEALS[5:9], seed=0)) == games[5:9]


def test_an_agent_with_chance_repeats_a_block_whatever_was_played_before() -> None:
    agent = RandomAgent(MINI)
    games = without_time(evaluate_agent(agent, MINI, DEALS, seed=1, batch_size=8, keep_actions=True))
    assert (
        without_time(evaluate_agent(agent, MINI, DEALS[8:16], seed=1, batch_size=8, keep_actions=True)) == games[8:16]
    )
    other = without_time(evaluate_agent(agent, MINI, DEALS, seed=2, batch_size=8, keep_actions=True))
    assert [game.actions for game in other] != [game.actions for game in games]


def test_a_game_stopped_by_the_step_limit_is_no_error_and_no_win() -> None:
    rules = read_rules("mini:passes=unlimited")
    games = evaluate_agent(Decliner(rules), rules, DEALS, seed=0, max_steps=50)
    stopped = [game for game in games if game.truncated]
    assert stopped
    assert all(game.steps == 50 and not game.won for game in stopped)
    assert all(game.steps < 50 for game in games if not game.truncated)
    row = agent_row(games, rules)
    assert row.truncated == len(stopped)
    assert f"decliner: {len(stopped)} games stopped by the step limit" in "\n".join(footnotes([row], rules, unproven=0))


def test_seconds_are_shared_out_among_the_games_of_a_batch() -> None:
    games = evaluate_agent(FirstLegal(MINI), MINI, DEALS, seed=0)
    assert all(game.seconds > 0 for game in games)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: evaluate_agent(RandomAgent(PRESETS["giza"]), MINI, DEALS, seed=0),
            "expected an agent for mini, got one for giza",
        ),
        (lambda: evaluate_agent(RandomAgent(MINI), MINI, DEALS[:0], seed=0), "one at least"),
        (lambda: evaluate_agent(RandomAgent(MINI), MINI, np.array([1, 2, 1]), seed=0), "distinct"),
        (lambda: evaluate_agent(RandomAgent(MINI), MINI, DEALS, seed=-1), "seed: expected 0 or more, got -1"),
        (
            lambda: evaluate_agent(RandomAgent(MINI), MINI, DEALS, seed=0, batch_size=0),
            "batch_size: expected 1 or more",
        ),
        (lambda: evaluate_agent(RandomAgent(MINI), MINI, DEALS, seed=0, max_steps=0), "max_steps: expected 1 or more"),
    ],
)
def test_evaluate_agent_refuses(call: Callable[[], object], said: str) -> None:
    with pytest.raises(PyramidError, match=said):
        call()


def test_an_illegal_action_is_an_error_and_not_a_lost_game() -> None:
    class Illegal(FirstLegal):
        def act(
            self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
        ) -> NDArray[np.int64]:
            return (~action_masks).argmax(axis=1)

    with pytest.raises(IllegalMoveError):
        evaluate_agent(Illegal(MINI), MINI, DEALS, seed=0)


def test_actions_of_the_wrong_shape_are_refused() -> None:
    class OneForAll(FirstLegal):
        def act(
            self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
        ) -> NDArray[np.int64]:
            return np.zeros(1, np.int64)

    with pytest.raises(PyramidError, match="expected 40 action indices"):
        evaluate_agent(OneForAll(MINI), MINI, DEALS, seed=0)


# ---- records ---------------------------------------------------------------------------------------------------------

_WHOLE = st.integers(-2000, 2000)
_RECORDS = st.builds(
    GameRecord,
    agent=st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1),
    rules=st.sampled_from(["mini", "microsoft:passes=1,stock_top=false"]),
    deal=st.integers(0, 2**63 - 1),
    seed=st.integers(0, 2**64),
    won=st.booleans(),
    cleared_in=st.integers(0, 4),
    score=_WHOLE,
    par=_WHOLE,
    msc=_WHOLE,
    steps=st.integers(0, 2000),
    draws=st.integers(0, 2000),
    truncated=st.booleans(),
    seconds=st.floats(0, 1e6),
    actions=st.none() | st.lists(st.integers(0, 500)).map(tuple),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records")


@given(st.lists(_RECORDS, max_size=5))
def test_records_read_back(folder: Path, records: list[GameRecord]) -> None:
    path = folder / "records.csv"
    write_records(path, records)
    assert read_records(path) == records
    assert [file.name for file in folder.iterdir()] == ["records.csv"], "a temporary file was left behind"


@pytest.mark.parametrize(
    ("old", "new"), [(",1,", ",yes,"), ("mini,7", "mini,seven"), ("mini,7,", "mini,7,8,"), ("mini,7,", "7,")]
)
def test_a_damaged_record_names_its_line(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "records.csv"
    write_records(path, [game(deal=7, won=True)])
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(PyramidError, match=r"records.csv, line 2"):
        read_records(path)
    path.write_text("deal,won\n7,1\n")
    with pytest.raises(PyramidError, match="expected the columns agent, rules, deal"):
        read_records(path)


# ---- bounds ----------------------------------------------------------------------------------------------------------


def game(deal: int, *, agent: str = "me", won: bool = False, score: int = 0) -> GameRecord:
    return GameRecord(agent, "mini", deal, 0, won, int(won), score, score, 0, 10, 5, False, 0.5)


def test_bounds_are_the_same_however_they_are_found(tmp_path: Path) -> None:
    def without_time(found: list[DealBound]) -> list[DealBound]:
        return [bound._replace(seconds=0.0) for bound in found]

    alone = find_bounds(MINI, DEALS, workers=1)
    assert all(bound.proven for bound in alone)
    assert without_time(find_bounds(MINI, DEALS[::-1], workers=2, folder=tmp_path)) == without_time(alone)[::-1]
    # All that was found now comes from the file, times included.
    assert find_bounds(MINI, DEALS, workers=2, folder=tmp_path) == find_bounds(MINI, DEALS, workers=1, folder=tmp_path)


def test_an_interrupted_search_keeps_what_it_found_and_goes_on_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def interrupted(deal: int, rules: Rules, limits: Limits) -> DealBound:
        asked.append(deal)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return DealBound(deal, 0, 0, -3, -3, 0.1)

    monkeypatch.setattr(bounds_module, "bound_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        find_bounds(MINI, DEALS[:6], workers=1, folder=tmp_path)
    assert sorted(BoundStore(tmp_path, MINI, LIMITS).read()) == [0, 1, 2]
    assert len(find_bounds(MINI, DEALS[:6], workers=1, folder=tmp_path)) == 6
    assert asked == [0, 1, 2, 3, 3, 4, 5]


def test_a_worker_that_dies_is_an_error_and_no_endless_wait() -> None:
    class Deadly:
        def __reduce__(self) -> tuple[object, tuple[int]]:
            return os._exit, (1,)  # what unpickles it dies

    with pytest.raises(PyramidError, match="one of 2 processes ended before its answer"):
        find_bounds(MINI, DEALS[:2], limits=Deadly(), workers=2)  # type: ignore[arg-type]  # a stand-in


def test_a_search_that_is_left_early_keeps_what_its_processes_found(tmp_path: Path) -> None:
    with BoundSearch(MINI, DEALS, workers=2, folder=tmp_path) as search:
        counted: list[int] = []
        search._advance = lambda: counted.append(1)
        search.start()
        assert search._pool is not None
        wait(search._answers[:3])
        found = {answer.result() for answer in search._answers[:3]}
        processes = list(search._pool._processes.values())
    assert found <= set(BoundStore(tmp_path, MINI, LIMITS).read().values())
    assert len(counted) == sum(not answer.cancelled() for answer in search._answers)
    assert not any(process.is_alive() for process in processes)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks processes up in /proc")
def test_processes_that_search_end_with_a_caller_that_is_killed() -> None:
    code = (
        "import time, numpy as np, pyramid_env as pe\n"
        "from agents.bounds import BoundSearch\n"
        "with BoundSearch(pe.rules('mini'), np.arange(4), workers=2) as search:\n"
        "    search.start()\n"
        "    search.result()\n"
        "    print(*search._pool._processes, flush=True)\n"
        "    time.sleep(600)\n"
    )
    root = Path(evaluate.__file__).parent
    with subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        names = [Path("/proc") / word / "cmdline" for word in process.stdout.readline().split()]
        assert len(names) == 2
        assert all(name.read_bytes() for name in names)
        process.kill()
    deadline = time.monotonic() + 60
    while any(name.exists() and name.read_bytes() for name in names):  # one that has ended has no words left
        assert time.monotonic() < deadline, "processes of a killed caller are still there"
        time.sleep(0.05)


def test_stored_bounds_are_used_for_the_same_question_only(tmp_path: Path) -> None:
    def path(rules: str, limits: Limits) -> Path:
        return BoundStore(tmp_path, read_rules(rules), limits).path

    assert path("one_pass", LIMITS) == path("pyramid:passes=1,match_games=6", LIMITS)
    assert (
        len(
            {
                path("one_pass", LIMITS),
                path("pyramid", LIMITS),
                path("one_pass", Limits(max_states=9)),
            }
        )
        == 3
    )


@pytest.mark.parametrize("text", ["", "{}", '{"key": 1, "bounds": []}', "[]"])
def test_stored_bounds_that_cannot_be_read_are_an_error(tmp_path: Path, text: str) -> None:
    store = BoundStore(tmp_path, MINI, LIMITS)
    store.path.write_text(text)
    with pytest.raises(PyramidError, match="cannot read the stored bounds"):
        find_bounds(MINI, DEALS, workers=1, folder=tmp_path)


def test_two_runs_that_store_bounds_keep_both(tmp_path: Path) -> None:
    store = BoundStore(tmp_path, MINI, LIMITS)
    first, second = DealBound(1, 1, 1, 5, 5, 0.1), DealBound(2, 0, 1, -3, 9, 0.1)
    store.write({1: first})
    store.write({2: second})
    assert store.read() == {1: first, 2: second}


def test_a_game_raises_the_lower_end_of_an_unproven_bound() -> None:
    bounds = [DealBound(1, 0, 1, -5, 20, 0.1), DealBound(2, 0, 0, -7, -7, 0.1)]
    better = tightened(bounds, [game(1, won=True, score=12), game(1, score=-9), game(99, score=100)])
    assert better == [DealBound(1, 1, 1, 12, 20, 0.1), bounds[1]]


@pytest.mark.parametrize("record", [game(2, won=True, score=-8), game(2, score=-6)])
def test_a_game_above_a_proven_bound_is_a_fault_of_the_program(record: GameRecord) -> None:
    with pytest.raises(AssertionError, match="deal 2, mini: me reached"):
        tightened([DealBound(2, 0, 0, -7, -7, 0.1)], [record])


@pytest.mark.parametrize("name", PRESETS)
def test_no_game_beats_the_bound(name: str) -> None:
    rules, deals = PRESETS[name], DEALS[:3]
    games = [
        record
        for agent in (RandomAgent(rules), GreedyAgent(rules))
        for record in evaluate_agent(agent, rules, deals, seed=0)
    ]
    bounds = tightened(find_bounds(rules, deals, workers=1, limits=Limits(max_states=20_000)), games)
    assert len(bounds) == 3


# ---- the table -------------------------------------------------------------------------------------------------------

#   deal  bound          me
#   0     won, 40        won, 30
#   1     won, 20        lost, -10
#   2     lost, -4       lost, -8
#   3     lost, -8       lost, -12
_BOUNDS = [
    DealBound(0, 1, 1, 40, 40, 1),
    DealBound(1, 1, 1, 20, 20, 1),
    DealBound(2, 0, 0, -4, -4, 1),
    DealBound(3, 0, 0, -8, -8, 1),
]
_GAMES = [game(0, won=True, score=30), game(1, score=-10), game(2, score=-8), game(3, score=-12)]


def test_a_row_holds_the_figures_that_its_docstring_defines() -> None:
    row = agent_row(_GAMES, MINI, bounds=_BOUNDS)
    assert row.wins == (((0.25,) * 2), wilson(1, 4)[1:])
    assert row.score == ((0.0, 0.0), mean_t([30, -10, -8, -12])[1:])
    assert row.of_winnable == (0.5, 0.5)
    assert row.of_points == ((0 + 4 * 14) / (48 + 4 * 14),) * 2  # a mini deal has 14 cards: the lowest score is -14
    assert row.regret == (12.0, 12.0)
    assert row.match_total is None
    assert row.seconds == 2.0


def test_unproven_bounds_are_counted_both_ways() -> None:
    bounds = [*_BOUNDS[:3], DealBound(3, 0, 1, -8, 16, 1)]
    row, bound = agent_row(_GAMES, MINI, bounds=bounds), bound_row(bounds, MINI)
    assert row.of_winnable == (1 / 3, 1 / 2)
    assert row.of_points == (56 / 128, 56 / 104)
    assert row.regret == (12.0, 18.0)
    assert bound.wins.value == (0.5, 0.75)
    assert bound.wins.interval == (wilson(2, 4).low, wilson(3, 4).high)
    assert bound.score.value == (12.0, 18.0)
    heads, (mine, best) = table_cells([row, bound])
    assert mine[heads.index("regret")] == "12.0 .. 18.0"
    assert best[0] == "bound (clairvoyant)"
    assert best[heads.index("wins %")] == "50.0 .. 75.0"
    assert "1 deals met the solver's limits" in "\n".join(footnotes([row, bound], MINI, unproven=1))


def test_matches_are_totals_of_consecutive_deals() -> None:
    rules = read_rules("mini:match_games=2")
    row = agent_row([*_GAMES, game(4, score=1000)], rules)
    assert row.match_total is not None
    assert row.match_total.value == (0.0, 0.0)  # 30 - 10 and -8 - 12; the fifth game has no partner
    assert row.matches_at_par is not None
    assert row.matches_at_par.value == (0.5, 0.5)
    assert {"match", "at par %"} <= set(table_cells([row])[0])
    assert agent_row(_GAMES[:1], rules).match_total is None
    assert "at par" in "\n".join(footnotes([row], rules, unproven=0))


def test_the_footnotes_explain_no_column_that_is_not_shown() -> None:
    rules = read_rules("mini:match_games=2,scoring=msc")
    row = agent_row(_GAMES, rules)
    assert "match" in table_cells([row])[0]
    assert "at par %" not in table_cells([row])[0]
    assert "at par" not in "\n".join(footnotes([row], rules, unproven=0))


def test_bounds_of_other_deals_are_refused() -> None:
    with pytest.raises(PyramidError, match="same deals"):
        agent_row(_GAMES, MINI, bounds=_BOUNDS[::-1])


def test_nothing_winnable_leaves_no_share() -> None:
    row = agent_row(_GAMES[2:], MINI, bounds=_BOUNDS[2:])
    assert row.of_winnable is None
    heads, lines = table_cells([row, bound_row(_BOUNDS[2:], MINI)])
    assert "% of winnable" not in heads
    assert len(lines) == 2


def test_the_plain_table_is_aligned_and_the_terminals_holds_the_same_cells() -> None:
    rows = [agent_row(_GAMES, MINI, bounds=_BOUNDS), bound_row(_BOUNDS, MINI)]
    heads, lines = table_cells(rows)
    text = plain_table(heads, lines)
    assert len({len(line) for line in text.splitlines()}) == 1
    for terminal in (False, True):
        out = io.StringIO()
        print_table(rows, ["a note [not markup]"], console=Console(file=out, force_terminal=terminal, width=200))
        assert all(cell in out.getvalue() for line in lines for cell in line)
        assert "a note [not markup]" in out.getvalue()
        assert ("\x1b[" in out.getvalue()) == terminal


def test_the_summary_is_json_without_infinities(tmp_path: Path) -> None:
    row = agent_row(_GAMES[:1], MINI)
    write_summary(tmp_path / "summary.json", [row], {"seed": 5})
    summary = json.loads((tmp_path / "summary.json").read_text(), parse_constant=pytest.fail)
    assert summary["seed"] == 5
    assert summary["rows"][0]["score"] == {
        "value": {"low": 30.0, "high": 30.0},
        "interval": {"low": None, "high": None},
    }
    assert set(summary["rows"][0]) == {field.name for field in dataclasses.fields(Row)}


# ---- the command line ------------------------------------------------------------------------------------------------


def test_evaluate_prints_a_table_and_writes_records_and_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--agents", "random", "greedy", "oracle", "--rules", "mini", "--deals", "test:0-19", "--actions"]
    call += ["--out", str(tmp_path / "out"), "--bounds", str(tmp_path / "bounds"), "--workers", "1"]
    assert evaluate.main(call) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[2:6]] == ["random", "greedy", "oracle", "bound"]
    assert "oracle (clairvoyant)" in printed
    assert "deals test:0-19 · seed 0" in printed
    assert "python evaluate.py --agents random greedy" in printed
    records = read_records(tmp_path / "out" / "records.csv")
    assert [(r.agent, r.deal) for r in records] == [(a, d) for a in ("random", "greedy", "oracle") for d in range(20)]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["complete"]
    assert read_rules(summary["rules"]) == MINI
    assert [row["name"] for row in summary["rows"]] == ["random", "greedy", "oracle", "bound"]
    oracle, bound = summary["rows"][2:]
    assert oracle["wins"] == bound["wins"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (["--agents", "gredy"], "'greedy'"),
        (["--agents", "runs/nowhere"], "runs/nowhere"),
        (["--agents", "greedy", "random", "greedy"], "got greedy twice"),
        (["--agents", "greedy", "--rules", "piramid"], "did you mean 'pyramid'"),
        (["--agents", "greedy", "--rules", "pyramid:passes=9"], "passes: expected a whole number from 1 to 3"),
        (["--agents", "greedy", "--deals", "test:5-1"], "runs backwards"),
        (["--agents", "greedy", "--deals", "trial"], "unknown split 'trial'"),
        (["--agents", "greedy", "--seed", "-1"], "--seed: expected 0 or more, got -1"),
        (["--agents", "greedy", "--batch-size", "0"], "--batch-size: expected 1 or more"),
        (["--agents", "greedy", "--batch-size", "many"], "invalid int value: 'many'"),
        (["--agents", "greedy", "--threads", "0"], "--threads: expected 1 or more, got 0"),
        (["--agents", "greedy", "--bounds", __file__], "bounds: expected a folder or a path for a new one"),
        (["--agents", "greedy", "--out", f"{__file__}/out"], "--out: expected a folder or a path for a new one"),
        (["--agents", "greedy", "--bond"], "--bond"),
        ([], "--agents"),
    ],
)
def test_a_mistake_in_the_call_is_one_line_and_code_2(
    call: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = evaluate.main(call)
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("evaluate.py: error: ")
    assert said in err
    assert not list(tmp_path.iterdir()), "a mistaken call left files behind"


class OfEight(RandomAgent):
    """Likes eight games side by side."""

    name = "of eight"
    batch_size = 8


def test_an_agent_is_played_in_batches_that_it_likes_unless_told_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["--agents", "random", f"{__name__}:OfEight", "--rules", "mini", "--deals", "test:0-39", "--no-bound"]
    blocks: list[tuple[str, int]] = []
    play = evaluation_module._Games.play

    def played(games: Any, on_finished: Any) -> None:
        blocks.append((games.agent.name, len(games.deals)))
        play(games, on_finished)

    monkeypatch.setattr(evaluation_module._Games, "play", played)
    assert evaluate.main([*call, "--out", str(tmp_path / "liked")]) == 0
    assert blocks == [("random", 1), ("random", 40), ("of eight", 1), *[("of eight", 8)] * 5]
    assert "batch 256 (random), 8 (of eight)" in capsys.readouterr().out
    records, summary = untimed(tmp_path / "liked")
    assert summary["batch_size"] == {"random": 256, "of eight": 8}
    agent = OfEight(MINI)
    assert records[40:] == without_time(evaluate_agent(agent, MINI, DEALS, seed=0))
    assert records[40:] == without_time(evaluate_agent(agent, MINI, DEALS, seed=0, batch_size=8))
    assert records[40:] != without_time(evaluate_agent(agent, MINI, DEALS, seed=0, batch_size=40))
    assert evaluate.main([*call, "--out", str(tmp_path / "told"), "--batch-size", "16"]) == 0
    assert untimed(tmp_path / "told")[1]["batch_size"] == {"random": 16, "of eight": 16}
    assert "batch 16 · " in capsys.readouterr().out


def test_what_was_stopped_goes_on_in_the_batches_that_the_agent_likes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["--agents", f"{__name__}:OfEight", "--rules", "mini", "--deals", "test:0-39", "--no-bound"]
    assert evaluate.main([*call, "--out", str(tmp_path / "straight")]) == 0
    assert evaluate.main([*call, "--out", str(tmp_path / "again")]) == 0
    (tmp_path / "again" / "records.csv").write_text(
        "".join((tmp_path / "again" / "records.csv").read_text().splitlines(keepends=True)[:20])
    )
    blocks: list[int] = []
    play = evaluation_module._Games.play

    def played(games: Any, on_finished: Any) -> None:
        blocks.append(len(games.deals))
        play(games, on_finished)

    monkeypatch.setattr(evaluation_module._Games, "play", played)
    assert evaluate.main(["--resume", str(tmp_path / "again")]) == 0
    assert blocks == [1, 8, 8, 8]  # 19 games were there: two whole blocks
    straight, again = untimed(tmp_path / "straight"), untimed(tmp_path / "again")
    assert again[0] == straight[0]
    assert again[1]["rows"] == straight[1]["rows"]


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[BoundSearch]:
    """The searches that have begun."""
    begun: list[BoundSearch] = []
    start = BoundSearch.start

    def started(search: BoundSearch) -> None:
        start(search)
        begun.append(search)

    monkeypatch.setattr(BoundSearch, "start", started)
    return begun


def test_bounds_are_found_while_games_are_played(
    tmp_path: Path, searches: list[BoundSearch], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["--agents", "random", "greedy", "--rules", "mini", "--deals", "test:0-39", "--out"]

    def waiting(*args: Any, **options: Any) -> list[GameRecord]:
        assert wait(searches[-1]._answers, timeout=300).not_done == set(), "none is found before the games have ended"
        return evaluate_agent(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(measure, "evaluate_agent", waiting)
        aside = [*call, "out", "--bounds", str(tmp_path / "aside"), "--workers", "2"]
        patch.chdir(tmp_path)
        assert evaluate.main(aside) == 0
    (tmp_path / "out").rename(tmp_path / "with")
    monkeypatch.chdir(tmp_path)
    assert evaluate.main([*call, "out", "--bounds", str(tmp_path / "alone"), "--workers", "1"]) == 0
    assert searches[0]._answers
    assert not searches[-1]._answers, "with one worker there are no processes"
    (records, summary), (other_records, other) = untimed(tmp_path / "with"), untimed(tmp_path / "out")
    assert records == other_records
    told = ("arguments", "command")
    assert {name: summary[name] for name in summary if name not in told} == {
        name: other[name] for name in other if name not in told
    }


def test_ctrl_c_while_games_are_played_keeps_the_bounds_found_so_far(
    tmp_path: Path, searches: list[BoundSearch], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["--agents", "random", "greedy", "--rules", "mini", "--deals", "test:0-39", "--workers", "2"]
    call += ["--bounds", str(tmp_path / "bounds"), "--out", str(tmp_path / "out")]

    def interrupted(agent: Agent, *args: Any, **options: Any) -> list[GameRecord]:
        if agent.name == "greedy":
            wait(searches[-1]._answers, timeout=300, return_when=FIRST_COMPLETED)
            raise KeyboardInterrupt
        return evaluate_agent(agent, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(measure, "evaluate_agent", interrupted)
        assert evaluate.main(call) == evaluate.INTERRUPTED
    kept = BoundStore(tmp_path / "bounds", MINI, LIMITS).read()
    assert 0 < len(kept) <= len(DEALS)
    assert evaluate.main(["--resume", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["complete"]
    stored = BoundStore(tmp_path / "bounds", MINI, LIMITS).read()
    assert len(stored) == len(DEALS)
    assert {deal: stored[deal] for deal in kept} == kept  # with the same seconds: none was sought twice


def test_ctrl_c_leaves_the_records_of_finished_agents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(agent: Agent, *args: object, **options: object) -> list[GameRecord]:
        if agent.name == "greedy":
            raise KeyboardInterrupt
        return evaluate_agent(agent, *args, **options)  # type: ignore[arg-type]  # a stand-in

    monkeypatch.setattr(measure, "evaluate_agent", interrupted)
    call = ["--agents", "random", "greedy", "--rules", "mini", "--deals", "test:0-9", "--out", str(tmp_path)]
    call += ["--workers", "1"]
    assert evaluate.main(call) == evaluate.INTERRUPTED
    assert {record.agent for record in read_records(tmp_path / "records.csv")} == {"random"}
    assert not json.loads((tmp_path / "summary.json").read_text())["complete"]
    assert "random" in capsys.readouterr().out


def test_ctrl_c_during_the_first_agent_keeps_nothing_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **options: object) -> list[GameRecord]:
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "evaluate_agent", interrupted)
    call = ["--agents", "greedy", "--rules", "mini", "--deals", "test:0-9", "--out", str(tmp_path / "out")]
    call += ["--workers", "1"]
    assert evaluate.main(call) == evaluate.INTERRUPTED
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "interrupted: no game has finished, nothing is kept\n"
    assert not list(tmp_path.iterdir())


class Killed(BaseException):
    """Ends a run where it stands."""


def untimed(folder: Path) -> tuple[list[GameRecord], dict[str, Any]]:
    """Records and summary of a folder, without anything that was timed."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: bare(part) for key, part in value.items() if not key.startswith("seconds")}
        return [bare(part) for part in value] if isinstance(value, list) else value

    return without_time(read_records(folder / "records.csv")), bare(json.loads((folder / "summary.json").read_text()))


def test_a_run_killed_ten_times_and_resumed_makes_the_same_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--agents", "random", "greedy", "--rules", "mini", "--deals", "test:0-199", "--batch-size", "8"]
    call += ["--bounds", str(tmp_path / "bounds"), "--workers", "1", "--actions"]
    monkeypatch.chdir(tmp_path)
    assert evaluate.main([*call, "--out", "out"]) == 0
    straight = untimed(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "straight")
    rng, deaths = np.random.default_rng(5), 0
    play, replace_bytes, left = evaluation_module._Games.play, evaluation_module.replace_bytes, [3]

    def played(games: Any, on_finished: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        play(games, on_finished)

    def written(path: Path, data: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        replace_bytes(path, data)

    monkeypatch.setattr(evaluation_module._Games, "play", played)
    monkeypatch.setattr(evaluation_module, "replace_bytes", written)
    monkeypatch.setattr(measure, "SAVE_EVERY_S", 0.0)
    resumed = False
    for _ in range(60):
        left[0] = int(rng.integers(3, 24))
        began = (tmp_path / "out" / "summary.json").exists()
        try:
            code = evaluate.main(["--resume", "out"] if began else [*call, "--out", "out"])
        except Killed:
            deaths += 1
            continue
        resumed = began
        assert code == 0
        break
    assert deaths >= 10
    assert resumed
    assert untimed(tmp_path / "out") == straight


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_process_that_is_killed_leaves_what_can_be_gone_on_with(tmp_path: Path) -> None:
    root = Path(evaluate.__file__).parent
    code = "import sys, evaluate\nfrom agents import measure\nmeasure.SAVE_EVERY_S = 0.0\nsys.exit(evaluate.main())\n"
    call = ["--agents", "random", "--rules", "mini", "--deals", "test:0-9999", "--batch-size", "16", "--no-bound"]
    with subprocess.Popen([sys.executable, "-c", code, *call, "--out", str(tmp_path)], cwd=root) as process:
        while not (tmp_path / "records.csv").exists() and process.poll() is None:
            pass
        process.kill()
    games = len(read_records(tmp_path / "records.csv"))
    assert 0 < games < 10_000
    assert subprocess.run([sys.executable, "evaluate.py", "--resume", str(tmp_path)], cwd=root).returncode == 0
    records, summary = untimed(tmp_path)
    assert summary["complete"]
    rules = read_rules("mini")
    again = evaluate_agent(RandomAgent(rules), rules, parse_deals("test"), seed=0, batch_size=16)
    assert records == without_time(again)


def test_ctrl_c_keeps_the_games_of_the_agent_that_was_playing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    play, blocks = evaluation_module._Games.play, []

    def played(games: Any, on_finished: Any) -> None:
        if len(blocks) == 3:
            raise KeyboardInterrupt
        play(games, on_finished)
        blocks.append(len(games.deals))

    call = ["--agents", "greedy", "--rules", "mini", "--deals", "test:0-49", "--batch-size", "10", "--no-bound"]
    with monkeypatch.context() as patch:
        patch.setattr(evaluation_module._Games, "play", played)
        assert evaluate.main([*call, "--out", str(tmp_path / "out")]) == evaluate.INTERRUPTED
    told = capsys.readouterr()
    assert "interrupted: 20 games are kept; python evaluate.py --resume " in told.err  # the first block was the warm-up
    assert told.out == ""
    assert evaluate.main(["--resume", str(tmp_path / "out")]) == 0
    assert [record.deal for record in read_records(tmp_path / "out" / "records.csv")] == list(range(50))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "summary.json").unlink(), "no such file; an evaluation writes it"),
        (lambda folder: (folder / "summary.json").write_text("{"), "summary.json: cannot be read"),
        (lambda folder: (folder / "summary.json").write_text("{}"), "expected the summary of an evaluation"),
        (lambda folder: (folder / "records.csv").write_text("a,b\n"), "expected the columns"),
    ],
)
def test_what_cannot_be_gone_on_with_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Callable[[Path], object], said: str
) -> None:
    call = ["--agents", "greedy", "--rules", "mini", "--deals", "test:0-4", "--no-bound", "--out", str(tmp_path)]
    assert evaluate.main(call) == 0
    assert evaluate.main(["--resume", str(tmp_path), "--seed", "1"]) == evaluate.BAD_CALL
    assert "--resume: expected the folder alone" in capsys.readouterr().err
    spoil(tmp_path)
    assert evaluate.main(["--resume", str(tmp_path)]) == evaluate.BAD_CALL
    assert said in capsys.readouterr().err


def test_another_version_or_other_games_are_not_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--agents", "greedy", "--rules", "mini", "--deals", "test:0-4", "--no-bound", "--out", str(tmp_path)]
    assert evaluate.main(call) == 0
    path, records = tmp_path / "summary.json", tmp_path / "records.csv"
    text, games = path.read_text(), records.read_text()
    path.write_text(text.replace('"version": "', '"version": "9'))
    assert evaluate.main(["--resume", str(tmp_path)]) == evaluate.BAD_CALL
    assert "was written by pyramid_env 9" in capsys.readouterr().err
    path.write_text(text)
    lines = games.splitlines(keepends=True)
    records.write_text("".join([lines[0], lines[2], lines[1], *lines[3:]]))
    assert evaluate.main(["--resume", str(tmp_path)]) == evaluate.BAD_CALL
    assert "expected those of the first deals" in capsys.readouterr().err


def test_ctrl_c_while_the_call_is_checked_shows_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **options: object) -> Agent:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "make_agent", interrupted)
    assert evaluate.main(["--agents", "greedy", "--no-bound"]) == evaluate.INTERRUPTED
    assert capsys.readouterr().err == "evaluate.py: interrupted\n"


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("script", ["evaluate.py", "train.py"])
def test_ctrl_c_during_the_imports_shows_no_traceback(script: str) -> None:
    """The interrupt comes when the import of pyramid_env begins."""
    code = (
        "import importlib.abc, os, runpy, signal, sys\n"
        "class Interrupting(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'pyramid_env': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        f"runpy.run_path({script!r}, run_name='__main__')\n"
    )
    root = Path(evaluate.__file__).parent
    ended = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGINT
    assert ended.stderr == ""


def test_an_earlier_runs_files_are_not_replaced_unless_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--rules", "mini", "--deals", "test:0-4", "--no-bound", "--out", str(tmp_path)]
    assert evaluate.main(["--agents", "random", *call]) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    capsys.readouterr()
    assert evaluate.main(["--agents", "greedy", *call]) == evaluate.BAD_CALL
    said = f"--out: {tmp_path} holds records.csv and summary.json of an earlier run; --overwrite replaces them"
    assert capsys.readouterr().err == f"evaluate.py: error: {said}\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert evaluate.main(["--agents", "greedy", *call, "--overwrite"]) == 0
    assert {record.agent for record in read_records(tmp_path / "records.csv")} == {"greedy"}


def test_damaged_bounds_are_found_before_any_game_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "evaluate_agent", lambda *args, **options: pytest.fail("a game was played"))
    store = BoundStore(tmp_path / "bounds", MINI, LIMITS)
    store.path.parent.mkdir()
    store.path.write_text("damaged")
    call = ["--agents", "greedy", "--rules", "mini", "--out", str(tmp_path / "out"), "--bounds", str(store.path.parent)]
    assert evaluate.main(call) == evaluate.BAD_CALL
    assert "cannot read the stored bounds" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_records_open_with_the_csv_module_alone(tmp_path: Path) -> None:
    write_records(tmp_path / "records.csv", [game(7, won=True, score=3)])
    with (tmp_path / "records.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["deal"], row["won"], row["score"], row["actions"]) == ("7", "1", "3", "")
