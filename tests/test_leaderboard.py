"""The leaderboard: the README shows the table that the report's figures make, and its cells agree with all others."""

import json
import re
import sys

import pytest

from agents.report import markdown_table
from benchmarks import leaderboard
from benchmarks.leaderboard import FILE, MARKS, QUICK, README, between_marks, glance

RESULTS = FILE.read_text(encoding="utf-8")


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def first_table(text):
    return re.search(r"^\|.*?(?=\n\n|\n<!--)", text, re.DOTALL | re.MULTILINE)[0]


def summary_of(wins, score):
    figure = {"interval": {"low": 0.0, "high": 1.0}}
    return {
        "complete": True,
        "rows": [
            {"name": name, "wins": {"value": wins, **figure}, "score": {"value": score, **figure}}
            for name in (*QUICK, "bound")
        ],
    }


def test_the_readme_shows_the_table_of_the_results():
    shown = README.read_text(encoding="utf-8").split(MARKS[0])[1].split(MARKS[1])[0]
    assert shown.strip() == first_table(RESULTS)


def test_its_cells_agree_with_the_tables_of_the_presets():
    heads, _, *lines = first_table(RESULTS).splitlines()
    names = cells_of(heads)[1:]
    compared = 0
    for line in lines:
        preset, *cells = cells_of(line)
        section = RESULTS.split(f"## {preset.strip('`')}\n")[1].split("\n## ")[0]
        rows = {row[0]: row for row in map(cells_of, first_table(section).splitlines()[2:])}
        assert {name for name, cell in zip(names, cells, strict=True) if cell != "–"} == set(rows)
        for name, cell in zip(names, cells, strict=True):
            if cell != "–":
                wins, score = re.fullmatch(r"(\S+) % \((\S+)\)", cell).groups()
                assert float(wins) == pytest.approx(float(rows[name][2]), abs=0.0551)
                assert score == rows[name][4]
                compared += 1
    assert compared >= 25


def test_the_table_is_made_of_what_evaluate_wrote(tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard, "RESULTS", tmp_path)
    for preset, wins, score in (("pyramid", (0.5, 0.5), (1.0, 1.0)), ("microsoft", (0.25, 0.75), (10.0, 20.0))):
        ends = [dict(zip(("low", "high"), pair, strict=True)) for pair in (wins, score)]
        (tmp_path / preset).mkdir()
        (tmp_path / preset / "summary.json").write_text(json.dumps(summary_of(*ends)))
    lines = glance(["pyramid", "one_pass", "microsoft"]).splitlines()
    assert lines[0] == "| rules | random | greedy | tips | scout | shipped | bound |"
    assert set(cells_of(lines[2])[1:]) == {"50.0 % (1.0)"}
    assert set(cells_of(lines[3])[1:]) == {"25.0 .. 75.0 % (10.0 .. 20.0)"}
    assert len(lines) == 4


def test_presets_without_figures_stay_as_they_were(tmp_path, monkeypatch, capsys):
    readme, file = tmp_path / "README.md", tmp_path / "RESULTS.md"
    readme.write_text(f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n")
    for name, value in (("RESULTS", tmp_path), ("README", readme), ("FILE", file)):
        monkeypatch.setattr(leaderboard, name, value)
    monkeypatch.setattr(leaderboard, "play", lambda *call: None)
    monkeypatch.setattr(leaderboard, "section", lambda preset: f"## {preset}\n\nnew {preset}\n")
    monkeypatch.setattr(leaderboard, "shipped_presets", lambda: ["pyramid", "one_pass", "microsoft"])
    monkeypatch.setattr(sys, "argv", ["leaderboard.py"])

    def measure(preset, wins):
        ends = {"low": wins, "high": wins}
        (tmp_path / preset).mkdir(exist_ok=True)
        (tmp_path / preset / "summary.json").write_text(json.dumps(summary_of(ends, ends)))

    measure("pyramid", 0.5)
    measure("one_pass", 0.25)
    assert leaderboard.main() == 0
    first = glance(["pyramid", "one_pass"])
    assert readme.read_text() == f"before\n{MARKS[0]}\n{first}\n{MARKS[1]}\nafter\n"
    assert first in file.read_text()
    assert "microsoft" not in file.read_text()
    assert capsys.readouterr().err == ""
    kept = file.read_text()
    assert leaderboard.main() == 0
    assert file.read_text() == kept

    (tmp_path / "one_pass" / "summary.json").unlink()
    measure("pyramid", 0.75)
    monkeypatch.setattr(leaderboard, "section", lambda preset: f"## {preset}\n\nnewer {preset}\n")
    assert leaderboard.main() == 0
    assert "of them: one_pass" in capsys.readouterr().err
    text = file.read_text()
    assert "newer pyramid" in text
    assert "new one_pass" in text
    assert "newer one_pass" not in text
    assert first_table(text) == first.replace("50.0 % (0.5)", "75.0 % (0.8)")
    assert first_table(text) in readme.read_text()


@pytest.mark.parametrize("text", ["", MARKS[0], MARKS[1] + MARKS[0], MARKS[0] * 2 + MARKS[1]])
def test_marks_that_are_missing_are_told(text):
    with pytest.raises(ValueError, match="once each"):
        between_marks(text, "| a |")


def test_a_bar_within_a_cell_ends_no_cell():
    assert markdown_table(["a", "b"], [["x|y", "z"]]).splitlines() == ["| a | b |", "|---|---|", "| x&#124;y | z |"]
