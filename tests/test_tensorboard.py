"""Figures for TensorBoard: those of the summary, a run an agent, replaced only where that was asked for."""

import json
import math

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import evaluate
from agents.evaluation import read_records
from agents.shipped import shipped_path
from agents.tensorboard import folder_of
from pyramid_env.rules import PRESETS


def read(folder):
    """Scalars by tag, each (step, value) in their order, and the histograms."""
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0, "histograms": 0})
    found.Reload()
    scalars = {tag: [(each.step, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]}
    return scalars, {tag: found.Histograms(tag) for tag in found.Tags()["histograms"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An evaluation of three agents of which one was trained; the folders of the evaluation and of its figures."""
    folder = tmp_path_factory.mktemp("figures")
    call = ["--agents", "random", "greedy", "shipped", "--rules", "one_pass", "--deals", "test:0-39", "--regret"]
    call += ["--workers", "1", "--threads", "1", "--out", str(folder / "out"), "--tensorboard", str(folder / "board")]
    assert evaluate.main(call) == 0
    return folder


def test_the_figures_are_those_of_the_summary(made):
    summary = json.loads((made / "out" / "summary.json").read_text(encoding="utf-8"))
    assert {path.name for path in (made / "board").iterdir()} == {"random", "greedy", "shipped", "bound"}
    for row in summary["rows"]:
        scalars, _ = read(made / "board" / row["name"])
        told = {tag: each for tag, each in scalars.items() if not tag.startswith("learning/")}
        assert all(step == 0 for each in told.values() for step, _ in each)
        told = {tag: value for tag, ((_, value),) in told.items()}
        wanted = {f"results/{name}": row[name] for name in ("games", "truncated", "seconds")}
        for name in ("wins", "score"):
            value, interval = row[name]["value"], row[name]["interval"]
            wanted |= {f"results/{name}": value["low"]}
            wanted |= {f"results/{name}_{end}": interval[end] for end in ("low", "high")}
        wanted |= {f"results/{name}": row[name]["low"] for name in ("of_winnable", "of_points", "regret")}
        for each in summary["details"]:
            if each["name"] == row["name"]:
                wanted |= {f"cleared/pass_{number}": share for number, share in each["cleared"].items()}
                wanted |= {f"play/{name}": each[name] for name in ("moves", "draws", "seconds_per_move")}
                for kind, result in each["by_difficulty"].items():
                    for figure in ("wins", "score"):
                        value, low, high = (result[figure][part] for part in ("value", "low", "high"))
                        tag = f"difficulty/{kind}_{figure}"
                        wanted |= {tag: value, f"{tag}_low": low, f"{tag}_high": high}
        for each in summary["regret"]:
            if each["name"] == row["name"]:
                wanted |= {"regret/total": each["total"]}
                wanted |= {f"regret/pass_{number}": loss for number, loss in each["by_pass"].items()}
                wanted |= {f"regret/{kind.replace(' ', '_')}": loss for kind, loss in each["by_kind"].items()}
        for each in summary["comparisons"]:
            if each["first"] == row["name"]:
                for figure in ("wins", "score"):
                    tag = f"pairs/{figure}_less_{each['second']}"
                    value, low, high = (each[figure][part] for part in ("value", "low", "high"))
                    wanted |= {tag: value, f"{tag}_low": low, f"{tag}_high": high}
        wanted = {tag: value for tag, value in wanted.items() if value is not None and math.isfinite(value)}
        assert told == pytest.approx(wanted, rel=1e-6)
        assert ("regret/total" in told) == (row["name"] != "bound")


def test_histograms_hold_every_score(made):
    for name in ("random", "greedy", "shipped"):
        scores = [record.score for record in read_records(made / "out" / "records.csv") if record.agent == name]
        _, histograms = read(made / "board" / name)
        (found,) = histograms["scores"]
        told = found.histogram_value
        assert (told.min, told.max, told.num) == (min(scores), max(scores), 40)
        assert told.sum == sum(scores)
        assert sum(told.bucket) == 40
    _, histograms = read(made / "board" / "bound")
    assert histograms["scores"][0].histogram_value.num == 40


def test_a_trained_agent_has_its_learning_curve(made):
    from agents.checkpoint import load_checkpoint

    scalars, _ = read(made / "board" / "shipped")
    curve = load_checkpoint(shipped_path(PRESETS["one_pass"])).progress["curve"]
    steps, values = zip(*scalars["learning/win_rate"], strict=True)
    assert list(steps) == [point["steps"] for point in curve]
    assert values == pytest.approx([point["win_rate"] for point in curve], rel=1e-6)
    assert not any(tag.startswith("learning/") for tag in read(made / "board" / "greedy")[0])


def test_figures_that_are_there_are_replaced_only_when_asked(tmp_path, capsys):
    board = tmp_path / "board"
    call = ["--rules", "mini", "--deals", "test:0-9", "--no-bound", "--tensorboard", str(board)]
    assert evaluate.main(["--agents", "random", *call, "--out", str(tmp_path / "a")]) == 0
    (board / "random" / "notes.txt").write_text("mine")
    first = read(board / "random")[0]["results/score"]
    other = ["--agents", "random", "greedy", *call, "--seed", "5", "--out", str(tmp_path / "b")]
    capsys.readouterr()
    assert evaluate.main(other) == evaluate.BAD_CALL
    assert f"--tensorboard: {board} holds figures of random; --overwrite replaces them" in capsys.readouterr().err
    assert read(board / "random")[0]["results/score"] == first
    assert evaluate.main([*other, "--overwrite"]) == 0
    again = read(board / "random")[0]["results/score"]
    assert len(again) == 1
    assert again != first
    assert {path.name for path in board.iterdir()} == {"random", "greedy"}
    assert len(list((board / "random").glob("events.out.tfevents.*"))) == 1
    assert (board / "random" / "notes.txt").read_text() == "mine"
    assert np.isfinite(again[0][1])


def test_a_file_is_no_folder_for_figures(tmp_path, capsys):
    (tmp_path / "board").write_text("")
    call = [
        "--agents",
        "random",
        "--rules",
        "mini",
        "--deals",
        "test:0-9",
        "--no-bound",
        "--out",
        str(tmp_path / "out"),
    ]
    assert evaluate.main([*call, "--tensorboard", str(tmp_path / "board")]) == evaluate.BAD_CALL
    assert "--tensorboard: expected a folder or a path for a new one" in capsys.readouterr().err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "random").write_text("")
    assert evaluate.main([*call, "--tensorboard", str(tmp_path / "full")]) == evaluate.BAD_CALL
    assert "full/random is a file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "folder"),
    [("runs/first", "runs-first"), ("../x", "x"), ("ours (4 seeds)", "ours-(4-seeds)"), ("/", "agent")],
)
def test_folders_of_agents_lie_beside_each_other(name, folder):
    assert folder_of(name) == folder
