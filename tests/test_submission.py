"""Submissions: written, read back, checked by replaying; and found out when anything in them was changed."""

import gzip
import json

import pytest

import evaluate
import pyramid_env as pe
from agents.evaluation import evaluate_agent
from agents.random_agent import RandomAgent
from agents.replay import replay_faults
from agents.submission import STATED, SubmissionError, read_submission, verify
from pyramid_env.benchmark import parse_deals
from pyramid_env.moves import move_table

ABOUT = [f"{key}=some {key}" for key in STATED]


def call(file, *more, agents=("tips",), rules="mini", deals="test:0-29"):
    words = ["--agents", *agents, "--rules", rules, "--deals", deals, "--submission", str(file)]
    return [*words, "--out", str(file.parent / "out"), "--bounds", str(file.parent / "bounds"), *more]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A submission of thirty games as a file."""
    file = tmp_path_factory.mktemp("submission") / "tips.json"
    assert evaluate.main(call(file, "--about", *ABOUT)) == 0
    return file


def changed(written, tmp_path, change):
    """The file with something changed in what it holds."""
    found = json.loads(written.read_text(encoding="utf-8"))
    change(found)
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(found), encoding="utf-8")
    return file


# ---- what is true ----------------------------------------------------------------------------------------------------


def test_a_submission_is_what_its_games_make(written, capsys):
    made, rows = verify(written, folder=written.parent / "bounds")
    assert [record.deal for record in made.records] == list(range(30))
    assert made.about == {"agent": "tips", "level": "memory", "clairvoyant": False, **dict(w.split("=") for w in ABOUT)}
    assert [row.name for row in rows] == ["tips", "bound"]
    assert rows[0].seconds == made.rows[0]["seconds"] > 0
    assert evaluate.main(["--verify", str(written)]) == 0
    printed = capsys.readouterr().out
    assert "30 games replayed, every figure is what they make" in printed
    assert "description: some description" in printed
    assert len(written.read_text(encoding="utf-8").splitlines()) > 30  # a line a game


def test_a_packed_one_holds_the_same(written, tmp_path):
    file = tmp_path / "tips.json.gz"
    assert evaluate.main(call(file, "--about", *ABOUT, "--no-bound")) == 0
    assert file.read_bytes()[:2] == b"\x1f\x8b"
    made, rows = verify(file)
    assert len(rows) == 1
    actions = [record.actions for record in read_submission(written).records]
    assert [record.actions for record in made.records] == actions


@pytest.mark.parametrize("preset", pe.PRESETS)
def test_games_by_all_rules_replay_to_what_was_recorded(preset):
    rules, limit = pe.rules(preset), 40
    deals = parse_deals("test:0-15")
    for max_steps in (limit, 2_000):
        games = evaluate_agent(RandomAgent(rules), rules, deals, seed=1, max_steps=max_steps, keep_actions=True)
        assert replay_faults(games, rules, max_steps) == []


# ---- what is not -----------------------------------------------------------------------------------------------------


def tampered(column, value):
    """A change of the fifth game."""

    def change(found):
        found["games"][4][found["columns"].index(column)] = value

    return change


def longer(found):
    found["games"][4][-1] += " 3"


def shorter(found):
    actions = found["games"][4][-1].split()
    found["games"][4][-1] = " ".join(actions[:-1])


def another_action(found):
    """The last action one that is not legal there."""
    actions = found["games"][4][-1].split()
    found["games"][4][-1] = " ".join([*actions[:-1], "0" if actions[-1] != "0" else "1"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (tampered("score", 99), r"deal 4: score: 99 recorded, -?\d+ by its actions"),
        (tampered("won", False), "deal 4: won: False recorded, True by its actions"),
        (tampered("draws", 0), "deal 4: draws: 0 recorded, [1-9]"),
        (tampered("truncated", True), "deal 4: truncated: True recorded, False by its actions"),
        (another_action, r"deal 4: move \d+: action [01] \(.+\) is illegal"),
        (tampered("actions", "99999"), "deal 4: move 1: expected an action from 0 to [0-9]+, got 99999"),
        (longer, r"deal 4: move \d+: the game is over before it"),
        (shorter, r"deal 4: not over after its \d+ actions"),
        (tampered("deal", 30), "deal 4: no game of it\n  deal 30: not among the run's deals"),
        (lambda found: found["games"].pop(7), "deal 7: no game of it"),
        (lambda found: found["games"].insert(9, found["games"][8]), "deal 8: 2 games of it"),
        (lambda found: found["games"].reverse(), "games: expected in the order of the run's deals"),
        (lambda found: found["run"].update(deals="test:0-30"), "deal 30: no game of it"),
        (lambda found: found["run"]["switches"].update(passes=1), "run.switches: passes: 1 recorded, [^1]"),
        (lambda found: found["rows"][0]["wins"]["value"].update(low=0.8), "row tips: wins.value.low: 0.8 recorded"),
        (lambda found: found["rows"][0].update(regret=None), "row tips: regret"),
        (lambda found: found["rows"][1]["score"]["value"].update(low=0.0), "row bound: score.value.low: 0.0 recorded"),
        (lambda found: found["rows"].pop(), "rows: 1 recorded, 2 by the games"),
        (lambda found: found["about"].update(training="  "), "about.training: nothing is stated"),
        (lambda found: found["about"].update(level="clairvoyant"), "about.clairvoyant: False recorded, the level is"),
    ],
)
def test_what_was_changed_is_found_and_said(written, tmp_path, change, words):
    file = changed(written, tmp_path, change)
    with pytest.raises(SubmissionError, match=words):
        verify(file, folder=written.parent / "bounds")


def test_a_game_cut_short_is_no_longer_game_of_the_run(written, tmp_path):
    """A lower step limit does not make a stopped game of one that was given up."""
    file = changed(written, tmp_path, lambda found: (shorter(found), found["run"].update(max_steps=3)))
    with pytest.raises(SubmissionError, match="deal 4: "):
        verify(file, folder=written.parent / "bounds")


def test_of_many_faults_the_first_are_said(written, tmp_path, capsys):
    def change(found):
        for game in found["games"]:
            game[found["columns"].index("score")] = 7

    assert evaluate.main(["--verify", str(changed(written, tmp_path, change))]) == 2
    told = capsys.readouterr().err
    assert told.count("score: 7 recorded") == 20
    assert told.rstrip().endswith("more")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda found: found.update(format="csv"), "expected a submission"),
        (lambda found: found.update(format_version=2), "expected format_version 1, got 2"),
        (lambda found: found.pop("rows"), "no 'rows'"),
        (lambda found: found["run"].pop("deals"), "no 'deals'"),
        (lambda found: found["run"].update(rules="piramid"), "run: .*did you mean 'pyramid'"),
        (lambda found: found["run"].update(deals="trial"), "run: deals: unknown split 'trial'"),
        (lambda found: found["run"].update(max_steps="9"), "run.max_steps: expected int, got '9'"),
        (lambda found: found["columns"].reverse(), "columns: expected"),
        (tampered("score", 1.5), "deal 4: score: expected a whole number, got 1.5"),
        (tampered("won", 1), "deal 4: expected true or false"),
        (tampered("actions", "1 -2"), "deal 4: actions: expected numbers"),
        (tampered("actions", "1 " + "9" * 30), "deal 4: actions: expected numbers"),
        (lambda found: found["games"][3].pop(), "not as a submission is written"),
    ],
)
def test_what_is_no_submission_is_said(written, tmp_path, change, words):
    with pytest.raises(SubmissionError, match=words):
        verify(changed(written, tmp_path, change))


def test_files_that_cannot_be_read_are_said(written, tmp_path, capsys):
    torn = tmp_path / "torn.json.gz"
    torn.write_bytes(gzip.compress(written.read_bytes())[:-40])
    for file in (torn, tmp_path / "nowhere.json", tmp_path):
        with pytest.raises(SubmissionError, match="cannot be read"):
            verify(file)
    assert evaluate.main(["--verify", str(torn)]) == 2
    assert capsys.readouterr().err.startswith(f"evaluate.py: error: {torn}: cannot be read")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "--about: a submission states by (who submits it); description"),
        (("--about", *ABOUT[1:]), "a submission states by (who submits it): give"),
        (("--about", *ABOUT, "colour=blue"), "expected key=text with one of by, description"),
        (("--about", *ABOUT, "by"), "got 'by'"),
    ],
)
def test_a_submission_without_a_statement_is_refused_before_anything_is_played(tmp_path, capsys, more, words):
    assert evaluate.main(call(tmp_path / "tips.json", *more)) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_other_mistakes_in_the_call(tmp_path, capsys):
    file = tmp_path / "tips.json"
    file.write_text("kept", encoding="utf-8")
    for words, said in (
        (call(file, "--about", *ABOUT), "is already there; --overwrite replaces it"),
        (
            call(tmp_path / "b.json", "--about", *ABOUT, agents=("tips", "greedy")),
            "expected one agent, got tips, greedy",
        ),
        (["--agents", "tips", "--about", "by=me"], "--submission names the file"),
    ):
        assert evaluate.main(words) == 2
        assert said in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == "kept"


def test_the_draw_is_the_last_action():
    assert all(move_table(rules)[-1].is_draw for rules in pe.PRESETS.values())
