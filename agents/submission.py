"""Submission: one file with a result and every game it comes from; and the check that it is what the rules make of it.

A file is JSON, one line a game, packed by gzip if its name ends with ``.gz``. What has to be stated and what counts as
peeking stands in docs/benchmark.md. Checking needs neither the agent nor what it needs: the recorded actions are played
again through the rules, and each figure is computed anew.
"""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from agents.bounds import find_bounds, tightened
from agents.evaluation import GameRecord, replace_bytes
from agents.replay import replay_faults
from agents.report import Row, agent_row, bound_row, json_row
from pyramid_env.benchmark import parse_deals
from pyramid_env.errors import PyramidError
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver import Limits

FORMAT: Final = "pyramid_env.submission"
FORMAT_VERSION: Final = 1

STATED: Final = {
    "by": "who submits it",
    "description": "what plays: the method in a sentence or two, and whether it searches",
    "training": "what it learned from: deals or none, environment steps, seeds, how the one shown was chosen",
    "code": "where the code, or the way to repeat it, is found",
}
"""What a submission states in words."""

_COLUMNS: Final = tuple(
    field.name for field in fields(GameRecord) if field.name not in ("agent", "rules", "seed", "seconds")
)
_WORDS: Final = ("rules", "deals", "version", "command")
_NUMBERS: Final = ("seed", "batch_size", "max_steps")
_SHOWN: Final = 20
_MOST_DIGITS: Final = 9  # of an action


class SubmissionError(PyramidError):
    """A file that is no submission, or one that does not hold what it says; all that is wrong, a line each."""


class Submission(NamedTuple):
    """What a file holds.

    Attributes:
        about: agent, level, clairvoyant, and the texts of STATED.
        run: what identifies the run: rules, switches, deals, seed, version, command, limits.
        records: the games, in the order of the run's deals.
        rows: the agent's figures and, if they were found, the bound's, as JSON values.
    """

    about: dict[str, Any]
    run: dict[str, Any]
    records: list[GameRecord]
    rows: list[dict[str, Any]]


def check_statement(given: Sequence[str]) -> dict[str, str]:
    """The texts of STATED from ``key=value`` words; PyramidError if one is unknown, empty or missing."""
    said = {}
    for word in given:
        key, equals, value = word.partition("=")
        if not equals or key not in STATED:
            raise PyramidError(f"--about: expected key=text with one of {', '.join(STATED)}, got {word!r}")
        said[key] = value.strip()
    missing = [f"{key} ({what})" for key, what in STATED.items() if not said.get(key)]
    if missing:
        raise PyramidError(f"--about: a submission states {'; '.join(missing)}: give each as key=text")
    return said


def write_submission(path: Path, made: Submission) -> None:
    """Write a submission, whole or not at all."""
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "about": made.about, "run": made.run, "rows": made.rows}
    games = ",\n".join(json.dumps(_line(record), allow_nan=False) for record in made.records)
    text = json.dumps({**head, "columns": _COLUMNS}, indent=1, allow_nan=False, ensure_ascii=False)
    data = f'{text[:-2]},\n "games": [\n{games}\n]}}\n'.encode()
    replace_bytes(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _line(record: GameRecord) -> list[Any]:
    values = asdict(record)
    return [*(values[name] for name in _COLUMNS[:-1]), " ".join(map(str, record.actions or ()))]


def read_submission(path: Path) -> Submission:
    """Read a file as it stands; what it says is not checked.

    Raises:
        SubmissionError: not there, or no submission; what is expected is said.
    """
    try:
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        found = json.loads(text)
    except (OSError, EOFError, ValueError) as error:
        raise SubmissionError(f"{path}: cannot be read: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise SubmissionError(f"{path}: expected a submission (format {FORMAT!r})")
    if found.get("format_version") != FORMAT_VERSION:
        raise SubmissionError(
            f"{path}: expected format_version {FORMAT_VERSION}, got {found.get('format_version')!r}; "
            "take the version of pyramid_env that wrote it"
        )
    try:
        _check_kinds(found)
        about, run = found["about"], found["run"]
        games = [_game(values, about["agent"], run) for values in found["games"]]
    except (KeyError, TypeError, ValueError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise SubmissionError(f"{path}: not as a submission is written: {what}") from None
    return Submission(about, run, games, found["rows"])


def _check_kinds(found: Mapping[str, Any]) -> None:
    about, run, rows = found["about"], found["run"], found["rows"]
    kinds: list[tuple[str, Any, type]] = [("about", about, dict), ("run", run, dict), ("rows", rows, list)]
    kinds += [(f"about.{name}", about[name], str) for name in ("agent", "level", *STATED)]
    kinds += [(f"run.{name}", run[name], str) for name in _WORDS]
    kinds += [(f"run.{name}", run[name], int) for name in _NUMBERS]
    kinds += [("about.clairvoyant", about["clairvoyant"], bool), ("run.switches", run["switches"], dict)]
    for name, value, kind in kinds:
        if type(value) is not kind:
            raise ValueError(f"{name}: expected {kind.__name__}, got {value!r}")
    if found["columns"] != list(_COLUMNS):
        raise ValueError(f"columns: expected {list(_COLUMNS)}, got {found['columns']!r}")


def _game(values: list[Any], agent: str, run: Mapping[str, Any]) -> GameRecord:
    given = dict(zip(_COLUMNS, values, strict=True))
    actions = given.pop("actions")
    flags = {name: given[name] for name in ("won", "truncated")}
    if not all(type(value) is bool for value in flags.values()):
        raise ValueError(f"deal {given['deal']}: expected true or false for won and truncated, got {flags}")
    for name, value in given.items():
        if name not in flags and type(value) is not int:
            raise ValueError(f"deal {given['deal']}: {name}: expected a whole number, got {value!r}")
    if not isinstance(actions, str) or not all(
        word.isdecimal() and len(word) <= _MOST_DIGITS for word in actions.split()
    ):
        raise ValueError(f"deal {given['deal']}: actions: expected numbers with spaces between")
    kept = tuple(map(int, actions.split()))
    return GameRecord(agent=agent, rules=run["rules"], seed=run["seed"], seconds=0.0, actions=kept, **given)


# ---- checking --------------------------------------------------------------------------------------------------------


def verify(
    path: Path, *, workers: int | None = None, folder: Path | None = None, progress: bool = False
) -> tuple[Submission, list[Row]]:
    """Read a submission and check all that can be checked without the agent.

    Args:
        path: the file.
        workers, folder, progress: for the solver's bounds, as :func:`agents.bounds.find_bounds` takes them; those of
            the benchmark's deals come with the package.

    Returns:
        What the file holds, and the rows as the games make them; their seconds alone are as recorded.

    Raises:
        SubmissionError: the file cannot be read, or it does not hold what it says: other switches than the rules have,
            a game missing, twice or too many, an illegal action, a figure that the actions do not make, a row that the
            games do not make. Each is said; of many the first.
    """
    made = read_submission(path)
    try:
        rules, deals = read_rules(made.run["rules"]), parse_deals(made.run["deals"])
    except PyramidError as error:
        raise SubmissionError(f"{path}: run: {error}") from None
    faults = _switch_faults(made, rules) + _statement_faults(made) + _deal_faults(made, deals.tolist())
    faults = faults or [str(fault) for fault in replay_faults(made.records, rules, made.run["max_steps"])]
    rows = [] if faults else _rows(made, rules, workers=workers, folder=folder, progress=progress)
    faults = faults or _row_faults(made, rows)
    if faults:
        shown = faults[:_SHOWN] + ([f"and {len(faults) - _SHOWN:,} more"] if len(faults) > _SHOWN else [])
        raise SubmissionError(f"{path}: does not hold what it says:\n  " + "\n  ".join(shown))
    return made, [replace(row, seconds=told["seconds"]) for row, told in zip(rows, made.rows, strict=True)]


def _switch_faults(made: Submission, rules: Rules) -> list[str]:
    ours, theirs = rules.to_dict(), made.run["switches"]
    return [
        f"run.switches: {name}: {theirs.get(name)!r} recorded, {ours.get(name)!r} by the rules {rules}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def _statement_faults(made: Submission) -> list[str]:
    faults = [f"about.{name}: nothing is stated" for name in STATED if not made.about[name].strip()]
    if made.about["clairvoyant"] != (made.about["level"] == "clairvoyant"):
        faults.append(f"about.clairvoyant: {made.about['clairvoyant']} recorded, the level is {made.about['level']}")
    return faults


def _deal_faults(made: Submission, deals: list[int]) -> list[str]:
    played = [record.deal for record in made.records]
    if played == deals:
        return []
    wanted, counts = set(deals), Counter(played)
    faults = [f"deal {deal}: no game of it" for deal in deals if deal not in counts]
    faults += [f"deal {deal}: not among the run's deals" for deal in counts if deal not in wanted]
    faults += [f"deal {deal}: {count} games of it" for deal, count in counts.items() if count > 1]
    return faults or ["games: expected in the order of the run's deals"]


def _rows(made: Submission, rules: Rules, *, workers: int | None, folder: Path | None, progress: bool) -> list[Row]:
    """The rows that the games make."""
    limits, bounds = made.run.get("bound_limits"), None
    if limits is not None:
        deals = np.array([record.deal for record in made.records], np.int64)
        found = find_bounds(rules, deals, limits=Limits(**limits), workers=workers, folder=folder, progress=progress)
        bounds = tightened(found, made.records)
    row = agent_row(made.records, rules, clairvoyant=made.about["clairvoyant"], bounds=bounds)
    return [row] if bounds is None else [row, bound_row(bounds, rules)]


def _row_faults(made: Submission, rows: list[Row]) -> list[str]:
    if len(rows) != len(made.rows):
        return [f"rows: {len(made.rows)} recorded, {len(rows)} by the games"]
    faults = []
    for row, recorded in zip(map(row_values, rows), made.rows, strict=True):
        ours, theirs = _flat(row), _flat(recorded)
        faults += [
            f"row {row['name']}: {name}: {theirs.get(name)!r} recorded, {ours.get(name)!r} by the games"
            for name in sorted(ours.keys() | theirs.keys())
            if name != "seconds" and not _same(ours.get(name), theirs.get(name))
        ]
    return faults


def _same(one: Any, other: Any) -> bool:
    """Equal; numbers to rounding, which differs from machine to machine."""
    if type(one) is float and type(other) is float:
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return type(one) is type(other) and bool(one == other)


def row_values(row: Row) -> dict[str, Any]:
    """A row of the table as JSON values."""
    values: dict[str, Any] = json_row(asdict(row))
    return values


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """The numbers of nested objects by their dotted names."""
    if not isinstance(value, dict):
        return {name: value}
    parts = (_flat(part, f"{name}.{key}" if name else key) for key, part in value.items())
    return {key: part for each in parts for key, part in each.items()}
