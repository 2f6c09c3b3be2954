"""Seeds: several runs of one training, with different seeds, as one row: interquartile means and their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from agents.report import Cells, Measured, Row, Span, table_cells
from agents.statistics import interquartile_mean, stratified_bootstrap
from pyramid_env.errors import PyramidError

_OPTION: Final = "--seeds"
_LONGEST: Final = 80
"""Characters of a name, at most."""
_SAMPLED: Final = ":sampled"
_MAY_DIFFER: Final = ("seed", "init", "threads")
"""Settings in which runs of one training may differ."""


@dataclass(frozen=True)
class Seeds:
    """Several runs of one training.

    Attributes:
        name: what tables call them.
        runs: their rows, two or more, in the order in which they were named.
    """

    name: str
    runs: tuple[Row, ...]

    @property
    def row(self) -> Row:
        """All runs as one line of the table: of every figure the interquartile mean over the runs, the interval from a
        stratified bootstrap over them. Games, games stopped by the step limit, and seconds are those of all runs."""
        return Row(
            name=row_name(self.name, len(self.runs)),
            clairvoyant=self.runs[0].clairvoyant,
            games=sum(run.games for run in self.runs),
            wins=_middle([run.wins for run in self.runs]),
            score=_middle([run.score for run in self.runs]),
            match_total=_middle_if_any([run.match_total for run in self.runs]),
            matches_at_par=_middle_if_any([run.matches_at_par for run in self.runs]),
            of_winnable=_middle_span([run.of_winnable for run in self.runs]),
            of_points=_middle_span([run.of_points for run in self.runs]),
            regret=_middle_span([run.regret for run in self.runs]),
            truncated=sum(run.truncated for run in self.runs),
            seconds=sum(run.seconds for run in self.runs),
        )


def row_name(name: str, runs: int) -> str:
    """What the table calls so many runs."""
    return f"{name} ({runs} seeds)"


def _middle(every: Sequence[Measured]) -> Measured:
    low, high = (stratified_bootstrap([getattr(each.value, end) for each in every]) for end in Span._fields)
    return Measured(Span(low.value, high.value), Span(low.low, high.high))


def _middle_if_any(every: Sequence[Measured | None]) -> Measured | None:
    found = [each for each in every if each is not None]
    return _middle(found) if len(found) == len(every) else None


def _middle_span(every: Sequence[Span | None]) -> Span | None:
    found = [each for each in every if each is not None]
    if len(found) < len(every):
        return None
    return Span(*(interquartile_mean([getattr(each, end) for each in found]) for end in Span._fields))


def together(rows: Mapping[str, Row], seeds: Mapping[str, Sequence[str]]) -> tuple[list[Row], list[Seeds]]:
    """Rows to show, and the runs behind those that stand for several.

    Args:
        rows: of those that have played, by name, in the order of the table.
        seeds: names of runs, by what they are called together. Where one of them has not played yet, the others stand
            for themselves.
    """
    complete = {name: runs for name, runs in seeds.items() if all(run in rows for run in runs)}
    inside = {run for runs in complete.values() for run in runs}
    found = [Seeds(name, tuple(rows[run] for run in runs)) for name, runs in complete.items()]
    return [*(row for name, row in rows.items() if name not in inside), *(each.row for each in found)], found


def seeds_cells(every: Sequence[Seeds]) -> Cells:
    """Heads and cells: a line a run."""
    return table_cells([replace(run, name=f"{each.name}: {run.name}") for each in every for run in each.runs])


def seeds_notes(every: Sequence[Seeds]) -> list[str]:
    """What the rows of several seeds are."""
    if not every:
        return []
    rows = ", ".join(each.row.name for each in every)
    return [
        f"{rows}: interquartile mean over runs of one training with different seeds; 95 %: stratified bootstrap over "
        "the runs. Games and seconds are those of all runs. A table of its own has a line a run."
    ]


# ---- the call --------------------------------------------------------------------------------------------------------


def read_seeds(given: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """Runs by what they are called together, from ``[name, run, run, ...]`` each.

    Raises:
        PyramidError: no name, one that does not fit in a line, a name twice, fewer than two runs, or a run that is not
            there.
    """
    found: dict[str, list[str]] = {}
    for name, *runs in given:
        if not name.strip() or not name.isprintable() or len(name) > _LONGEST:
            raise PyramidError(
                f"{_OPTION}: expected a name of 1 to {_LONGEST} printable characters, then runs; got {name!r} first"
            )
        if Path(name).exists():
            raise PyramidError(f"{_OPTION}: expected a name, then runs; got the path {name} first")
        if name in found:
            raise PyramidError(f"{_OPTION}: expected different names, got {name} twice")
        if len(runs) < 2:
            got = "one run alone" if runs else "none"
            raise PyramidError(f"{_OPTION} {name}: expected two runs or more, of different seeds; got {got}")
        for run in runs:
            if not _path(run).exists():
                raise PyramidError(
                    f"{_OPTION} {name}: expected run folders or checkpoint files, got {run}, which is not there"
                )
        found[name] = runs
    return found


def check_seeds(seeds: Mapping[str, Sequence[str]]) -> None:
    """See that the runs called together, which are there, are of one training, as far as their files tell: a file
    outside a run folder has no settings.

    Raises:
        PyramidError: a run of another algorithm, level, network or other settings than one before it, with its seed or
            weights, or played in another way; the difference is named.
    """
    for name, runs in seeds.items():
        ways = {run: run != str(_path(run)) and run.endswith(_SAMPLED) for run in runs}
        if len(set(ways.values())) > 1:
            greedy, sampled = (next(run for run, way in ways.items() if way is asked) for asked in (False, True))
            raise PyramidError(f"{_OPTION} {name}: expected all runs {_SAMPLED} or none; {sampled} is, {greedy} is not")
        read: list[_Read] = []
        for run in runs:
            this = _read(run)
            for other in read:
                _compare(name, other, this)
            read.append(this)


class _Read(NamedTuple):
    """What the files of a run tell.

    Attributes:
        run: what was asked for.
        folder: of the run; None where that is not known, nor then its settings.
        told: what runs of one training have in common.
        seed: None where it is not known.
        weights: of the policy.
    """

    run: str
    folder: Path | None
    told: dict[str, Any]
    seed: int | None
    weights: Mapping[str, Any]


def _read(run: str) -> _Read:
    from agents.checkpoint import checkpoint_path, load_checkpoint  # need torch, agents that are not trained do not
    from agents.run_folder import CONFIG_FILE, RunFolder

    path = _path(run).resolve()
    checkpoint = load_checkpoint(checkpoint_path(path))
    told = {what: getattr(checkpoint, what) for what in ("kind", "level", "network")}
    folder = next((each for each in (path, *path.parents[:2]) if (each / CONFIG_FILE).is_file()), None)
    if folder is None:
        return _Read(run, None, told, None, checkpoint.policy)
    config = RunFolder(folder).config()
    settings = _dotted(config.to_dict())
    told |= {key: value for key, value in settings.items() if key not in _MAY_DIFFER}
    return _Read(run, folder, told, config.seed, checkpoint.policy)


def _compare(name: str, one: _Read, other: _Read) -> None:
    import torch

    both_known = one.folder is not None and other.folder is not None
    keys = one.told.keys() | other.told.keys() if both_known else one.told.keys() & other.told.keys()
    for key in sorted(keys, key=lambda key: (key not in ("kind", "level", "network"), key)):
        if one.told.get(key) != other.told.get(key):
            raise PyramidError(
                f"{_OPTION} {name}: expected runs of one training, whose seeds alone differ; {one.run} has "
                f"{key} {one.told.get(key)}, {other.run} has {other.told.get(key)}"
            )
    expected = f"{_OPTION} {name}: expected different seeds; {one.run} and {other.run}"
    if all(torch.equal(weights, one.weights[key]) for key, weights in other.weights.items()):
        raise PyramidError(f"{expected} are the same")
    if both_known and one.folder == other.folder:
        raise PyramidError(f"{expected} are of one run")
    if both_known and one.seed == other.seed:
        raise PyramidError(f"{expected} both have seed {one.seed}")


def _path(run: str) -> Path:
    """Of a run, which may have ``:sampled`` behind it."""
    return Path(run) if Path(run).exists() else Path(run.removesuffix(_SAMPLED))


def _dotted(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in settings.items():
        found |= _dotted(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value}
    return found
