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


def test_the_readme_is_written_when_all_figures_are_there(tmp_path, monkeypatch, capsys):
    readme, file = tmp_path / "README.md", tmp_path / "RESULTS.md"
    readme.write_text(f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n")
    for name, value in (("RESULTS", tmp_path), ("README", readme), ("FILE", file)):
        monkeypatch.setattr(leaderboard, name, value)
    monkeypatch.setattr(leaderboard, "play", lambda *call: None)
    monkeypatch.setattr(leaderboard, "section", lambda preset: f"## {preset}\n")
    monkeypatch.setattr(leaderboard, "shipped_presets", lambda: ["pyramid", "one_pass"])
    monkeypatch.setattr(sys, "argv", ["leaderboard.py"])
    ends = {"low": 0.5, "high": 0.5}
    (tmp_path / "pyramid").mkdir()
    (tmp_path / "pyramid" / "summary.json").write_text(json.dumps(summary_of(ends, ends)))
    assert leaderboard.main() == 0
    assert "old" in readme.read_text()
    assert "README.md stays as it is: no figures of one_pass" in capsys.readouterr().err
    (tmp_path / "one_pass").mkdir()
    (tmp_path / "one_pass" / "summary.json").write_text(json.dumps(summary_of(ends, ends)))
    assert leaderboard.main() == 0
    text = readme.read_text()
    assert text == f"before\n{MARKS[0]}\n{glance(['pyramid', 'one_pass'])}\n{MARKS[1]}\nafter\n"
    assert glance(["pyramid", "one_pass"]) in file.read_text()
    assert between_marks(text, glance(["pyramid", "one_pass"])) == text


@pytest.mark.parametrize("text", ["", MARKS[0], MARKS[1] + MARKS[0], MARKS[0] * 2 + MARKS[1]])
def test_marks_that_are_missing_are_told(text):
    with pytest.raises(ValueError, match="once each"):
        between_marks(text, "| a |")


def test_a_bar_within_a_cell_ends_no_cell():
    assert markdown_table(["a", "b"], [["x|y", "z"]]).splitlines() == ["| a | b |", "|---|---|", "| x&#124;y | z |"]
