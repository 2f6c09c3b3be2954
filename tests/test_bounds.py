"""The benchmark's bounds: built, packed, read back, refused if tampered with; those that ship are solved again."""

from __future__ import annotations

import importlib
import io
import json
import zlib
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import pyramid_env as pe
from pyramid_env.benchmark import SHIPPED, SPLITS, Bounds, Difficulty, bounds
from pyramid_env.benchmark.bounds import DATA, file_name, read_bounds, write_bounds
from pyramid_env.benchmark.build import main
from pyramid_env.benchmark.difficulty import difficulties
from pyramid_env.benchmark.lines import play_lines
from pyramid_env.benchmark.pack import pack
from pyramid_env.errors import PyramidError, RulesError
from pyramid_env.solver import Limits, Objective, SolverError, Status, solve, solve_many
from pyramid_env.solver.blocks import Block
from pyramid_env.solver.columns import SOLVER_VERSION, Solutions

MINI = pe.rules("mini")
TINY = {"test": range(0, 40), "validation": range(40, 60)}
SAMPLE = 20
"""Deals of each shipped file that are solved again."""
SAMPLE_STATES = 30_000
"""Positions stored for one of them: what takes longer has to agree as far as it came."""

PYPROJECT = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")


@pytest.fixture
def tiny(monkeypatch):
    """Splits of a few deals."""
    for name in ("bounds", "pack", "build"):  # the function of that name hides the module pyramid_env.benchmark.bounds
        monkeypatch.setattr(importlib.import_module(f"pyramid_env.benchmark.{name}"), "SPLITS", TINY)


def answers(preset="mini", split="test", objectives=tuple(Objective), **limits) -> dict[str, Solutions]:
    return {name: solve_many(TINY[split], preset, name, workers=1, **limits) for name in objectives}


def built(tmp_path, *arguments, rules=("mini",), code=0) -> Path:
    """Run the command; returns the folder of the finished files."""
    call = ["--rules", *rules, "--folder", str(tmp_path / "work"), "--out", str(tmp_path / "out"), "--workers", "1"]
    assert main([*call, *arguments]) == code
    return tmp_path / "out"


# ---- from the solver to the file and back ----------------------------------------------------------------------------


def test_what_is_built_is_what_the_solver_says(tiny, tmp_path, capsys):
    out = built(tmp_path)
    assert sorted(path.name for path in out.iterdir()) == ["mini_test.npz", "mini_validation.npz"]
    assert "mini_test.npz: 2 KiB; Bounds(mini, test: 40 deals, " in capsys.readouterr().out
    for split, deals in TINY.items():
        found = read_bounds(out / file_name("mini", split), MINI, split)
        assert (found.rules, found.split, found.solver_version) == (MINI, split, SOLVER_VERSION)
        assert found.limits == dict.fromkeys(Objective, Limits(20_000_000))
        assert found.deals.tolist() == list(deals)
        assert len(found) == len(deals)
        for number in deals:
            row = found.for_deal(number)
            assert row.deal == number
            for objective in Objective:
                solution = solve(number, MINI, objective)
                assert solution.value == getattr(row, f"{objective}_low") == getattr(row, f"{objective}_high")
                assert found.proven(objective).all()
            assert row.states == solve(number, MINI, "win").states


@pytest.mark.parametrize("preset", ["till_dawn", "microsoft", "solitaire13_three_piles"])
def test_goals_and_scorings_are_packed_alike(monkeypatch, preset):
    monkeypatch.setitem(TINY, "test", range(6))
    monkeypatch.setattr(importlib.import_module("pyramid_env.benchmark.pack"), "SPLITS", TINY)
    found = pack(pe.rules(preset), "test", answers(preset, max_states=20_000))
    for number in range(6):
        row = found.for_deal(number)
        solution = solve(number, preset, "win")
        assert row.win_low <= solution.value <= row.win_high
        assert row.score_low <= row.score_high


def test_the_command_goes_on_from_what_is_in_its_folder(tiny, tmp_path, monkeypatch):
    out = built(tmp_path, "--split", "test")
    first = (out / "mini_test.npz").read_bytes()
    (out / "mini_test.npz").unlink()
    monkeypatch.setattr("pyramid_env.solver.many.solve_block", None)  # nothing is solved again
    assert (built(tmp_path, "--split", "test") / "mini_test.npz").read_bytes() == first


def test_ctrl_c_leaves_a_folder_to_go_on_from(tiny, tmp_path, monkeypatch, capsys):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("pyramid_env.benchmark.build.solve_many", interrupt)
    built(tmp_path, code=130)
    assert capsys.readouterr().err == f"build: interrupted; the same command goes on from {tmp_path / 'work'}\n"


def test_steps_may_be_left_out(tiny, tmp_path):
    out = built(tmp_path, "--objectives", "win", "earliest", "score", "--split", "test")
    found = read_bounds(out / "mini_test.npz", MINI, "test")
    assert found.steps_low is None
    assert found.steps_high is None
    assert found.for_deal(3)[7:9] == (None, None)
    assert set(found.limits) == {"win", "earliest", "score"}
    with pytest.raises(PyramidError, match="bounds of mini, test: steps were not computed"):
        found.proven("steps")


def test_limits_are_given_by_objective(tiny, tmp_path):
    out = built(tmp_path, "--max-states", "9", "steps=7", "score=1000", "--split", "validation")
    limits = read_bounds(out / "mini_validation.npz", MINI, "validation").limits
    assert limits == {"win": Limits(9), "earliest": Limits(9), "score": Limits(1000), "steps": Limits(7)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--objectives", "win", "score"], "objectives: expected win, earliest, score at least; earliest left out"),
        (["--max-states", "many"], "--max-states: expected a number such as 20000000 or steps=1000000, got 'many'"),
        (["--max-states", "step=5"], "objective: expected one of win, score, earliest, steps, got 'step'"),
        (["--rules", "mini:passes=2"], "--rules: expected presets as they are, got mini:passes=2"),
        (["--rules", "pyramids"], "unknown preset 'pyramids'"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(tiny, tmp_path, capsys, arguments, said):
    built(tmp_path, *arguments, code=2)
    told = capsys.readouterr().err
    assert told.startswith(f"build: error: {said}")
    assert told.count("\n") == 1


def test_another_limit_is_another_question(tiny, tmp_path, capsys):
    built(tmp_path, "--split", "test")
    built(tmp_path, "--split", "test", "--max-states", "5", code=2)
    assert "holds the answers to another question; max_states: expected 5, got 20000000" in capsys.readouterr().err


@pytest.mark.parametrize("states", [0, 3, 10, 30, 100])
def test_open_questions_keep_what_is_proven(tiny, tmp_path, states):
    found = pack(MINI, "test", answers(max_states=states))
    path = tmp_path / "some.npz"
    write_bounds(found, path)
    assert same(read_bounds(path, MINI, "test"), found)
    for number in TINY["test"]:
        row = found.for_deal(number)
        for objective in ("win", "score"):
            value = solve(number, MINI, objective).value
            assert getattr(row, f"{objective}_low") <= value <= getattr(row, f"{objective}_high")
        for objective in ("earliest", "steps"):
            low, high = getattr(row, f"{objective}_low"), getattr(row, f"{objective}_high")
            assert_within(solve(number, MINI, objective).value, low, high)
        assert (row.difficulty is Difficulty.OPEN) == (row.win_low < row.win_high)
    if states == 3:
        assert not found.proven("steps").all()


def assert_within(value: int, low: int, high: int) -> None:
    """A value of ``earliest`` or ``steps`` against its bounds; 0 = never."""
    if value == 0:
        assert high == 0
    else:
        assert 0 < low <= value
        assert high == 0 or value <= high


def test_a_line_counts_for_every_question(tiny):
    """A line of one objective settles what another left open."""
    some = answers()
    for name in ("win", "earliest", "steps"):
        some[name] = solve_many(TINY["test"], "mini", name, workers=1, max_states=0)
    found = pack(MINI, "test", some)
    assert (found.win_low == (some["score"].value > 0)).all()
    assert ((found.earliest_high > 0) == (found.win_low == 1)).all()
    assert ((found.steps_high > 0) == (found.win_low == 1)).all()


def same(one: Bounds, other: Bounds) -> bool:
    return (
        all(np.array_equal(getattr(one, name), getattr(other, name)) for name in one._columns())
        and one._columns() == other._columns()
        and (one.rules, one.split, one.solver_version) == (other.rules, other.split, other.solver_version)
        and dict(one.limits) == dict(other.limits)
    )


# ---- what does not fit together is refused ---------------------------------------------------------------------------


def changed(solutions: Solutions, **columns) -> Solutions:
    fields = {name: getattr(solutions, name).copy() for name in Block._fields}
    for name, change in columns.items():
        change(fields[name])
    return Solutions(solutions.question, Block(**fields))


def test_a_line_that_is_illegal_or_reaches_something_else_is_found(tiny):
    some = answers()
    win = some["win"]
    deal = int(np.flatnonzero(win.value)[0])
    draw = len(pe.moves.move_table(MINI)) - 1

    def last_is_a_draw(actions):
        actions[win.offsets[deal + 1] - 1] = draw

    def all_are_the_same(actions):
        actions[:] = 0

    with pytest.raises(PyramidError, match=f"1 lines are wrong; that of deal {deal} does not reach 1"):
        play_lines(changed(win, actions=last_is_a_draw))
    with pytest.raises(PyramidError, match="is not legal"):
        play_lines(changed(some["steps"], actions=all_are_the_same))
    for name, solutions in some.items():
        with pytest.raises(PyramidError, match="lines are wrong; that of deal 0 does not reach"):
            pack(MINI, "test", {**some, name: changed(solutions, value=lambda value: np.add(value, 1, out=value))})


def test_answers_that_contradict_each_other_are_refused(tiny):
    some = answers()
    deal = int(np.flatnonzero(some["win"].value)[0])

    def set_to(number):
        def change(column):
            column[deal] = number

        return change

    never = changed(some["earliest"], status=set_to(1), bound=set_to(0))
    with pytest.raises(PyramidError, match=f"answers contradict each other: deal {deal}: expected"):
        pack(MINI, "test", {**some, "earliest": never})
    low = changed(some["score"], bound=set_to(-5))
    with pytest.raises(PyramidError, match=f"answers contradict each other: deal {deal}: expected score: low <= high"):
        pack(MINI, "test", {**some, "score": low})
    long = changed(some["steps"], bound=set_to(300))
    with pytest.raises(PyramidError, match=f"answers contradict each other: deal {deal}: expected steps: low <= high"):
        pack(MINI, "test", {**some, "steps": long})


def test_answers_to_other_questions_are_refused(tiny):
    some = answers()
    others = {
        "answers about score": {**some, "score": some["win"]},
        "answers under these rules": {**some, "win": solve_many(TINY["test"], "mini_one_pass", workers=1)},
        "answers about deals 0 to 39": {**some, "win": some["win"][1:]},
        "answers about win, earliest, score, got none about win": {
            "score": some["score"],
            "earliest": some["earliest"],
        },
    }
    for said, given in others.items():
        with pytest.raises(PyramidError, match=f"bounds of mini, test: expected {said}"):
            pack(MINI, "test", given)
    some["score"].question.__dict__["version"] = SOLVER_VERSION + 1
    old = {
        **some,
        "score": Solutions(some["score"].question, Block(*(getattr(some["score"], f) for f in Block._fields))),
    }
    with pytest.raises(PyramidError, match="expected one version of the solver"):
        pack(MINI, "test", old)


@pytest.fixture
def columns(tiny) -> dict:
    """The columns of a file, and its header."""
    made = pack(MINI, "test", answers())
    return {name: getattr(made, name).copy() for name in made._columns()}


WRONG = [
    ("win_low", lambda c: c + 1, "win: 0 <= low <= high <= 1"),
    ("win_low", lambda c: 1 - c, "expected"),
    ("win_high", lambda c: 1 - c, "expected"),
    ("win_high", lambda c: c[:-1], "win_high: expected 40 numbers"),
    ("earliest_low", lambda c: c + 3, "earliest: passes 0 to 3"),
    ("earliest_high", lambda c: c - 1, "earliest: passes 0 to 3"),
    ("earliest_high", lambda c: c * 0, "a win has a clear"),
    ("score_low", lambda c: c + 1, "score: low <= high"),
    ("score_low", lambda c: c * 0 - 20, "score: as high as a clear in its pass makes it"),
    ("score_high", lambda c: c * 0 + 51, "score: no higher than a clear in the earliest pass makes it"),
    ("score_high", lambda c: c + 0.5, "score_high: expected whole numbers that fit int16"),
    ("score_high", lambda c: c.astype(np.int64) + 2**20, "score_high: expected whole numbers that fit int16"),
    ("steps_low", lambda c: c + 1, "steps: low <= high"),
    ("steps_low", lambda c: c - 1, "steps: from 0"),
    ("steps_high", lambda c: c * 0, "steps of a win"),
    ("states", lambda c: -1 - c, "states: from 0"),
    ("deals", lambda c: c[::-1], "deals: expected one or more numbers that rise by one"),
    ("deals", lambda c: c - 1, "deals: from 0"),
]


@pytest.mark.parametrize(("name", "change", "said"), WRONG)
def test_columns_that_contradict_each_other_make_no_bounds(columns, name, change, said):
    limits = dict.fromkeys(Objective, Limits())
    made = {"rules": MINI, "split": "test", "solver_version": 1, "limits": limits}
    Bounds(**columns, **made)
    with pytest.raises(ValueError, match=said):
        Bounds(**{**columns, name: change(columns[name])}, **made)


def test_one_end_alone_and_missing_limits_make_no_bounds(columns):
    made = {"rules": MINI, "split": "test", "solver_version": 1}
    with pytest.raises(ValueError, match="steps: expected both ends or none"):
        Bounds(**{**columns, "steps_high": None}, **made, limits=dict.fromkeys(Objective, Limits()))
    with pytest.raises(ValueError, match="limits: expected those of score"):
        Bounds(**columns, **made, limits={"win": Limits(), "earliest": Limits(), "steps": Limits()})


def test_bounds_cannot_be_written_to(tiny):
    made = pack(MINI, "test", answers())
    for name in (*made._columns(), "difficulty"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(made, name)[0] = 1
    with pytest.raises(AttributeError):
        made.split = "validation"


# ---- the file --------------------------------------------------------------------------------------------------------


def rewritten(path: Path, change) -> None:
    """Change the members of a file: the header as a dict, the others as arrays."""
    with ZipFile(path) as members:
        parts = {name: np.lib.format.read_array(io.BytesIO(members.read(name))) for name in members.namelist()}
    parts["header.npy"] = json.loads(parts["header.npy"].tobytes())
    change(parts)
    parts["header.npy"] = np.frombuffer(json.dumps(parts["header.npy"]).encode(), np.uint8)
    with ZipFile(path, "w") as members:
        for name, part in parts.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, part, allow_pickle=False)
            members.writestr(name, data.getvalue())


def header(**changes):
    return lambda parts: parts["header.npy"].update(changes)


def column(name, change):
    def apply(parts):
        parts[f"{name}.npy"] = change(parts[f"{name}.npy"])

    return apply


TAMPERED = [
    (header(), None),
    (header(format="other"), "expected the format pyramid_env.bounds, got another"),
    (header(file_version=2), "expected file version 1, got 2"),
    (header(rules={**MINI.to_dict(), "passes": 2}), "made under other rules; passes: expected 3, got 2"),
    (header(rules={**MINI.to_dict(), "passes": 7}), "passes: expected a whole number from 1 to 3"),
    (header(split="validation"), "expected 40 deals of test from 0"),
    (header(deals=39), "expected 40 deals of test from 0"),
    (header(first_deal=1), "expected 40 deals of test from 0"),
    (header(solver_version="2"), "expected a whole number as solver version"),
    (header(limits={}), "cannot take the file"),
    (header(limits={"win": {"max_states": -1}}), "max_states: expected a number from 0 up"),
    (lambda parts: parts.pop("score.npy"), "cannot take the file: 'score'"),
    (lambda parts: parts.update({"more.npy": np.zeros(40, np.int8)}), "unknown columns more"),
    (column("win", lambda c: 1 - c), "expected"),
    (column("win_open", lambda c: c + 1), "expected win: 0 <= low <= high <= 1"),
    (column("earliest", lambda c: c[:-1]), "cannot take the file"),
    (column("score", lambda c: c.astype(np.float64)), "expected a row of whole numbers, got float64"),
    (column("score", lambda c: c[:, None]), r"expected a row of whole numbers, got int8 of shape \(40, 1\)"),
    (column("score_open", lambda c: c - 1), "score: low <= high"),
    (column("states", lambda c: -c - 1), "states: from 0"),
]


@pytest.mark.parametrize(("change", "said"), TAMPERED)
def test_a_file_that_was_tampered_with_is_refused(tiny, tmp_path, change, said):
    path = tmp_path / "mini_test.npz"
    made = pack(MINI, "test", answers())
    write_bounds(made, path)
    rewritten(path, change)
    if said is None:
        assert same(read_bounds(path, MINI, "test"), made)
    else:
        with pytest.raises(PyramidError, match=said) as caught:
            read_bounds(path, MINI, "test")
        assert str(caught.value).startswith(f"{path}: expected bounds of mini, test; cannot take the file: ")


def test_a_damaged_file_is_refused_or_reads_the_same(tiny, tmp_path):
    path = tmp_path / "mini_test.npz"
    made = pack(MINI, "test", answers())
    size = write_bounds(made, path)
    whole = path.read_bytes()
    assert len(whole) == size
    rng = np.random.default_rng(1)
    damaged = [whole[:length] for length in rng.integers(0, len(whole), 40)]
    for at in rng.integers(0, len(whole), 160):
        damaged.append(whole[:at] + bytes([whole[at] ^ (1 << rng.integers(8))]) + whole[at + 1 :])
    refused = 0
    for data in [*damaged, b"", b"garbage", b"\x80\x04N."]:
        path.write_bytes(data)
        try:
            assert same(read_bounds(path, MINI, "test"), made)  # a bit of a date, say
        except PyramidError:
            refused += 1
    assert refused > 150


def test_a_file_is_written_whole_or_not_at_all_and_the_same_each_time(tiny, tmp_path, monkeypatch):
    path = tmp_path / "mini_test.npz"
    made = pack(MINI, "test", answers())
    write_bounds(made, path)
    first = path.read_bytes()
    write_bounds(made, path)
    assert path.read_bytes() == first

    def full(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_bounds(made, path)
    assert path.read_bytes() == first
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_opens_with_numpy_alone(tiny, tmp_path):
    made = pack(MINI, "test", answers())
    write_bounds(made, tmp_path / "some.npz")
    with np.load(tmp_path / "some.npz", allow_pickle=False) as stored:
        assert stored["score"].tolist() == made.score_low.tolist()
        assert not stored["score_open"].any()
        assert json.loads(stored["header"].tobytes())["package"] == pe.__version__


# ---- the front -------------------------------------------------------------------------------------------------------


def test_unknown_presets_and_splits_are_told_the_known_ones():
    with pytest.raises(RulesError, match=r"unknown preset 'pyramids'.*known: pyramid, one_pass"):
        bounds("pyramids")
    with pytest.raises(PyramidError, match="bounds: unknown split 'train'; known: test, validation"):
        bounds("pyramid", "train")


@pytest.mark.parametrize("rules", ["giza", "pyramid:passes=2", pe.rules("microsoft", scoring="par")])
def test_rules_without_stored_bounds_say_so(rules):
    with pytest.raises(PyramidError, match=r"bounds: none are stored for .*; stored: pyramid, one_pass, .*as they are"):
        bounds(rules)


def test_rules_of_the_same_switches_have_the_same_bounds(tiny, tmp_path, monkeypatch):
    module = importlib.import_module("pyramid_env.benchmark.bounds")
    monkeypatch.setattr(module, "SHIPPED", ("mini",))
    monkeypatch.setattr(module, "DATA", tmp_path)
    module._shipped.cache_clear()
    with pytest.raises(PyramidError, match=r"no such file; make it with python -m pyramid_env\.benchmark\.build"):
        bounds("mini")
    write_bounds(pack(MINI, "test", answers()), tmp_path / "mini_test.npz")
    try:
        assert bounds("mini") is bounds(pe.rules("mini", match_games=6), "test")
        assert bounds("mini").for_deal(5).deal == 5
    finally:
        module._shipped.cache_clear()


@pytest.mark.parametrize(
    ("number", "said"), [(40, "expected one of the test deals, 0 to 39, got 40"), (-1, "deal number")]
)
def test_a_deal_of_another_split_is_refused(tiny, number, said):
    with pytest.raises(PyramidError, match=said):
        pack(MINI, "test", answers()).for_deal(number)


def test_an_unknown_objective_is_refused(tiny):
    with pytest.raises(SolverError, match="objective: expected one of win, score, earliest, steps, got 'par'"):
        pack(MINI, "test", answers()).proven("par")


# ---- difficulty ------------------------------------------------------------------------------------------------------


def test_difficulty_follows_from_pass_and_search():
    table = [  # win_low, win_high, earliest_high, states
        (1, 1, 1, 100, Difficulty.EASY),
        (1, 1, 2, 200, Difficulty.EASY),
        (1, 1, 2, 201, Difficulty.HARD),
        (1, 1, 3, 10, Difficulty.MEDIUM),
        (1, 1, 3, 90, Difficulty.MEDIUM),
        (1, 1, 3, 5000, Difficulty.HARD),
        (1, 1, 2, 100, Difficulty.EASY),
        (0, 0, 0, 99_999, Difficulty.UNWINNABLE),
        (0, 1, 0, 99_999, Difficulty.OPEN),
        (0, 1, 2, 99_999, Difficulty.OPEN),
    ]
    *given, expected = (np.array(column) for column in zip(*table, strict=True))
    found = difficulties(*(column.astype(np.int8) for column in given[:3]), given[3], 3)
    assert found.dtype == np.int8
    assert found.tolist() == expected.tolist()


def test_classes_part_the_deals(tiny):
    made = pack(MINI, "test", answers())
    parts = [made.deals_of(each) for each in Difficulty]
    assert sorted(np.concatenate(parts).tolist()) == list(TINY["test"])
    assert made.deals_of(Difficulty.UNWINNABLE).tolist() == made.deals[made.win_high == 0].tolist()
    assert {made.for_deal(int(number)).difficulty for number in parts[0]} <= {Difficulty.EASY}


# ---- what ships ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[(preset, split) for preset in SHIPPED for split in SPLITS], ids="-".join)
def shipped(request) -> Bounds:
    """A shipped file; missing files are a failure as soon as the package is to hold them."""
    preset, split = request.param
    if not (DATA / file_name(preset, split)).exists() and "data/*.npz" not in PYPROJECT:
        pytest.skip("the bounds have not been built yet, and pyproject.toml does not list them as package data")
    return bounds(preset, split)


def test_shipped_bounds_are_those_of_the_split(shipped):
    assert shipped.deals.tolist() == list(SPLITS[shipped.split])
    assert shipped.rules.preset in SHIPPED
    assert shipped.solver_version <= SOLVER_VERSION
    assert (DATA / file_name(shipped.rules.preset, shipped.split)).stat().st_size < 300_000
    assert shipped.proven("win").mean() > (0.98 if shipped.rules.decks > 1 else 0.999_999)


def test_a_sample_of_shipped_bounds_is_solved_again(shipped):
    rules = shipped.rules
    rng = np.random.default_rng(zlib.crc32(f"{rules} {shipped.split}".encode()))
    for number in rng.choice(shipped.deals, SAMPLE, replace=False).tolist():
        row = shipped.for_deal(number)
        for objective in Objective:
            if getattr(row, f"{objective}_low") is None:
                continue
            low, high = getattr(row, f"{objective}_low"), getattr(row, f"{objective}_high")
            solution = solve(number, rules, objective, max_states=SAMPLE_STATES)
            where = f"deal {number}, {objective}: stored {low}..{high}, solved {solution}"
            if objective in ("win", "score"):
                assert low <= solution.bound, where
                assert solution.value <= high, where
            else:
                assert solution.value == 0 or 0 < low <= solution.value, where
                assert high == 0 or solution.bound <= high, where
                assert high == 0 or solution.status is not Status.UNWINNABLE, where
            if low == high and solution.is_proven:
                assert solution.value == low, where
