"""Several training seeds as one row: its figures, the call, what it refuses, and where it is shown."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from test_page import Reader

import evaluate
import pyramid_env as pe
from agents.checkpoint import Checkpoint, save_checkpoint, weights_of
from agents.config import NetworkConfig, make_config
from agents.evaluation import read_records
from agents.report import Span, agent_row
from agents.seeds import Seeds, together
from agents.statistics import interquartile_mean, stratified_bootstrap
from agents.token_network import network_for
from agents.tokens import token_values
from pyramid_env.moves import move_table


def random_run(path, seed, rules="mini", level="memory", embedding=8, kind="ppo", settings=()):
    """A run folder whose network has random weights, sharp enough to play in a way of its own."""
    rules = pe.rules(rules)
    torch.manual_seed(seed)
    sizes = asdict(NetworkConfig(embedding=embedding, shared=(8,)))
    network = network_for(rules, level, sizes)
    with torch.no_grad():
        network.action.weight.mul_(200.0)
    tokens = tuple(token_values(rules, level).tolist())
    made = Checkpoint(kind, rules, level, len(move_table(rules)), tokens, sizes, weights_of(network))
    save_checkpoint(made, path / "checkpoints" / "best.safetensors")
    config = make_config({"rules": str(rules), "network": {"embedding": embedding, "shared": [8]}}, settings)
    (path / "config.yaml").write_text(config.to_yaml())
    return str(path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [random_run(folder / f"mini_{seed}", seed, settings=[f"seed={seed}"]) for seed in range(4)]


@pytest.fixture(scope="module")
def made(runs, tmp_path_factory):
    """An evaluation of four seeds beside an agent, with its page."""
    folder = tmp_path_factory.mktemp("seeds")
    call = ["--agents", "greedy", "--seeds", "ours", *runs, "--rules", "mini", "--deals", "test:0-59", "--workers", "1"]
    call += ["--threads", "1", "--out", str(folder), "--bounds", str(folder), "--html", str(folder / "page.html")]
    assert evaluate.main([*call, "--replays", "0"]) == 0
    return folder


def test_the_row_holds_interquartile_means_and_their_intervals(made, runs):
    summary = json.loads((made / "summary.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in summary["rows"]] == ["greedy", "ours (4 seeds)", "bound"]
    row = summary["rows"][1]
    ((name, each),) = [(told["name"], told["runs"]) for told in summary["seeds"]]
    assert name == "ours"
    assert [run["name"] for run in each] == runs
    games = {run: [record for record in read_records(made / "records.csv") if record.agent == run] for run in runs}
    for figure, of_game in (("wins", lambda record: record.won), ("score", lambda record: record.score)):
        means = [float(np.mean([of_game(record) for record in games[run]])) for run in runs]
        assert len(set(means)) > 1
        assert [run[figure]["value"]["low"] for run in each] == pytest.approx(means)
        found = stratified_bootstrap(means)
        assert row[figure]["value"]["low"] == row[figure]["value"]["high"] == pytest.approx(interquartile_mean(means))
        assert row[figure]["interval"] == pytest.approx({"low": found.low, "high": found.high})
        assert found.low < found.value < found.high
    for figure in ("of_winnable", "of_points", "regret"):
        assert row[figure]["low"] == pytest.approx(interquartile_mean([run[figure]["low"] for run in each]))
    assert row["games"] == 4 * 60
    assert [told["name"] for told in summary["details"]] == ["greedy", *runs]
    assert summary["comparisons"] == []


def test_table_and_page_show_it(made, runs, capsys):
    summary = json.loads((made / "summary.json").read_text(encoding="utf-8"))
    assert evaluate.main(["--resume", str(made)]) == 0
    printed = capsys.readouterr().out
    lines = [line for line in printed.splitlines() if line.startswith("ours (4 seeds)  ")]
    wins = f"{100 * summary['rows'][1]['wins']['value']['low']:.1f}"
    assert [line.split("  ")[1:] and wins in line for line in lines] == [True]
    assert "ours (4 seeds): interquartile mean over runs of one training" in printed
    assert all(f"ours: {run}" in printed for run in runs)
    page = Reader((made / "page.html").read_text(encoding="utf-8"))
    results, each, *_ = page.tables
    assert results[2][0] == "ours (4 seeds)"
    assert results[2][1] == wins
    assert [line[0] for line in each[1:]] == [f"ours: {run}" for run in runs]
    assert "interquartile mean over runs" in (made / "page.html").read_text(encoding="utf-8")


def test_figures_that_are_counted_both_ways_stay_so():
    record = read_row()
    rows = [replace(record, of_winnable=Span(low, low + 0.1)) for low in (0.1, 0.2, 0.3, 0.8)]
    row = Seeds("x", tuple(rows)).row
    assert row.of_winnable == pytest.approx((0.25, 0.35))
    assert row.match_total is None


def test_runs_of_which_one_has_not_played_stand_for_themselves():
    row = read_row()
    rows = {name: replace(row, name=name) for name in ("a", "b", "c")}
    shown, found = together(rows, {"x": ["b", "c"], "y": ["a", "d"]})
    assert [each.name for each in shown] == ["a", "x (2 seeds)"]
    assert [each.name for each in found] == ["x"]


def read_row():
    from agents.evaluation import evaluate_agent
    from agents.greedy import GreedyAgent

    rules = pe.rules("mini")
    return agent_row(evaluate_agent(GreedyAgent(rules), rules, np.arange(20), seed=0), rules)


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        (["ours"], "--seeds ours: expected two runs or more, of different seeds; got none"),
        (["ours", "0"], "--seeds ours: expected two runs or more, of different seeds; got one run alone"),
        (["0", "1"], "expected a name, then runs; got the path"),
        (["ours", "0", "nowhere"], "--seeds ours: expected run folders or checkpoint files, got nowhere, which is not"),
        (["ours", "0", "greedy"], "--seeds ours: expected run folders or checkpoint files, got greedy, which is not"),
        (["ours", "0", "0"], "--seeds: expected different agents, got"),
        (["ours", "0", "copy"], "--seeds ours: expected different seeds; "),
        (["ours", "0", "one_pass"], "trained on mini_one_pass, asked to play mini; they differ in passes"),
        (["ours", "0", "wide"], "has network {'embedding': 8"),
        (["ours", "0", "table"], "has level memory, "),
        (["ours", "0", "teacher"], "has kind ppo, "),
        (["ours", "0", "other"], "has ppo.gamma 0.99"),
        (["greedy", "0", "1"], "--seeds: expected another name than that of an agent, got greedy"),
        (["bound", "0", "1"], "--seeds: expected another name than that of an agent, got bound"),
        (["", "0", "1"], "--seeds: expected a name of 1 to 80 printable characters, then runs; got '' first"),
        (["a\nb", "0", "1"], "printable characters, then runs; got 'a\\nb' first"),
        (["x" * 81, "0", "1"], "--seeds: expected a name of 1 to 80 printable characters"),
        (["ours", "0", "same_seed"], "both have seed 0"),
        (["ours", "0", "1:sampled"], "--seeds ours: expected all runs :sampled or none; "),
        (["ours", "0", "file_of_other"], "has ppo.gamma 0.99"),
        (["ours", "best_of_two", "latest_of_two"], "are of one run"),
    ],
)
def test_a_mistake_in_the_runs_is_one_line_and_code_2(seeds, said, runs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    places = {str(number): run for number, run in enumerate(runs)}
    more = {
        "copy": {"seed": 0},
        "one_pass": {"rules": "mini_one_pass"},
        "wide": {"embedding": 16},
        "table": {"level": "table"},
        "teacher": {"kind": "teacher"},
        "other": {"settings": ["ppo.gamma=0.5"]},
        "same_seed": {"settings": ["seed=0"]},
    }
    for name in set(seeds) & set(more):
        places[name] = random_run(tmp_path / name, **{"seed": 9, **more[name]})
    places["1:sampled"] = f"{runs[1]}:sampled"
    if "file_of_other" in seeds:
        other = random_run(tmp_path / "other", 9, settings=["ppo.gamma=0.5"])
        places["file_of_other"] = f"{other}/checkpoints/best.safetensors"
    if "best_of_two" in seeds:
        for seed, name in ((9, "latest"), (10, "best")):
            random_run(tmp_path / "two", seed)
            path = tmp_path / "two" / "checkpoints" / "best.safetensors"
            places[f"{name}_of_two"] = str(path.rename(path.with_stem(name)))
    out = tmp_path / "out"
    call = ["--agents", "greedy", "--seeds", *(places.get(word, word) for word in seeds), "--rules", "mini"]
    assert evaluate.main([*call, "--no-bound", "--out", str(out)]) == evaluate.BAD_CALL
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert said in told.err
    assert not out.exists()


def test_names_are_given_once_and_a_submission_is_one_agent(runs, tmp_path, capsys):
    twice = ["--seeds", "ours", *runs[:2], "--seeds", "ours", *runs[2:], "--rules", "mini", "--out", str(tmp_path)]
    assert evaluate.main(twice) == evaluate.BAD_CALL
    assert "--seeds: expected different names, got ours twice" in capsys.readouterr().err
    call = ["--seeds", "ours", *runs, "--rules", "mini", "--submission", str(tmp_path / "x.json")]
    assert evaluate.main(call) == evaluate.BAD_CALL
    assert "--submission: expected one agent, got seeds of ours" in capsys.readouterr().err
