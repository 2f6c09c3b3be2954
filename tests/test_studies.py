"""The studies in benchmarks/: the winnability table and the solver benchmark say what was counted."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import pyramid_env as pe
from pyramid_env.solver import solve

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("winnability", FOLDER / "winnability.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(study, capsys, monkeypatch, *arguments) -> list[list[str]]:
    """The cells of the rows that the study prints."""
    monkeypatch.setattr(sys, "argv", ["winnability.py", *arguments])
    study.main()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_published_rates_name_rules_that_exist_once(study):
    names = [published.rules for published in study.PUBLISHED]
    assert [str(pe.rules(name)) for name in names] == names
    assert len(set(names)) == len(names)
    assert {published.rules for published in study.ELSEWHERE} <= set(names)
    assert all(0 < published.low < published.high < 100 for published in study.PUBLISHED)


@pytest.mark.parametrize(("won", "deals"), [(0, 10), (10, 10), (33, 1000), (665, 1000)])
def test_the_interval_is_wilsons(study, won, deals):
    statistics = pytest.importorskip("agents.statistics", reason="agents need the training extra")
    expected = statistics.wilson(won, deals)
    assert study.wilson(won, deals) == pytest.approx((100 * expected.low, 100 * expected.high), abs=1e-5)


def test_a_row_counts_deals_and_goes_on_from_its_folder(study, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(study, "CHUNK", 30)
    call = ["--deals", "70", "--workers", "1", "--folder", str(tmp_path), "--rules", "mini", "microsoft:passes=1"]
    rows = table(study, capsys, monkeypatch, *call)
    won = sum(solve(number, "mini").value for number in range(70))
    assert rows[0][:3] == ["`mini`", "70", f"{100 * won / 70:.2f} %"]
    assert rows[0][4:7] == ["0", "–", "–"]
    assert rows[1][0] == "`microsoft:passes=1`"
    assert rows[1][5] == "9.39 ± 0.10 %"
    assert sorted(path.name for path in tmp_path.glob("mini*")) == [f"mini_{k}.npz" for k in ("0_30", "30_60", "60_70")]
    again = table(study, capsys, monkeypatch, *call)
    assert [row[:7] for row in again] == [row[:7] for row in rows]
    assert [row[7] for row in again] == ["–", "–"]  # nothing was solved, so there is no pace


def test_undecided_deals_count_both_ways(study, capsys, monkeypatch):
    ((_, _, share, interval, undecided, *_),) = table(
        study, capsys, monkeypatch, "--deals", "50", "--workers", "1", "--rules", "mini", "--max-states", "1"
    )
    assert int(undecided) > 0
    low, high = (float(end) for end in share.removesuffix(" %").split("–"))
    assert high == pytest.approx(low + 2 * int(undecided))
    assert float(interval.split("–")[0]) <= low < high <= float(interval.split("–")[1])


def test_the_solver_benchmark_agrees_with_the_plain_search():
    call = [sys.executable, str(FOLDER / "bench_solver.py"), "--rules", "mini", "--objectives", "win", "score"]
    found = subprocess.run([*call, "--deals", "20"], capture_output=True, text=True, timeout=300, check=True)
    header, *rows = found.stdout.splitlines()
    assert header.split()[:3] == ["rules", "objective", "deals"]
    for row, objective in zip(rows, ("win", "score"), strict=True):
        cells = row.split()
        assert cells[:3] == ["mini", objective, "20"]
        assert cells[9] == "0"
        assert cells[11] == "20"
