"""Seeds: several runs of one training, with different seeds, as one row: interquartile means and their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from agents.report import Cells, Measured, Row, Span, table_cells
from agents.statistics import interquartile_mean, stratified_bootstrap
from pyramid_env.errors import PyramidError

_OPTION: Final = "--seeds"
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
        PyramidError: no name, a name twice, fewer than two runs, or a run that is not there.
    """
    found: dict[str, list[str]] = {}
    for name, *runs in given:
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
    """See that the runs called together, which are there, are of one training, as far as their files tell.

    Raises:
        PyramidError: a run of another algorithm, level, network or other settings than the first, or with the same
            weights as another; the difference is named.
    """
    if not seeds:
        return
    import torch  # only here: agents that are not trained do without it

    from agents.checkpoint import checkpoint_path, load_checkpoint

    for name, runs in seeds.items():
        paths = list(map(_path, runs))
        made = [load_checkpoint(checkpoint_path(path)) for path in paths]
        told = [_settings(path) or {} for path in paths]
        for number, (run, checkpoint) in enumerate(zip(runs, made, strict=True)):
            ours = told[number]
            kinds = ("kind", "level", "network")
            pairs = {what: (getattr(made[0], what), getattr(checkpoint, what)) for what in kinds}
            if told[0] and ours:
                pairs |= {key: (told[0].get(key), ours.get(key)) for key in sorted({*told[0], *ours})}
            for what, (theirs, here) in pairs.items():
                if theirs != here:
                    raise PyramidError(
                        f"{_OPTION} {name}: expected runs of one training, whose seeds alone differ; {runs[0]} has "
                        f"{what} {theirs}, {run} has {here}"
                    )
            for other, before in zip(runs[:number], made[:number], strict=True):
                if all(torch.equal(weights, before.policy[key]) for key, weights in checkpoint.policy.items()):
                    raise PyramidError(f"{_OPTION} {name}: expected different seeds; {other} and {run} are the same")


def _path(run: str) -> Path:
    """Of a run, which may have ``:sampled`` behind it."""
    return Path(run) if Path(run).exists() else Path(run.removesuffix(":sampled"))


def _settings(path: Path) -> dict[str, Any] | None:
    """The settings of a run folder by their dotted names, without those that may differ; None of a file."""
    from agents.run_folder import CONFIG_FILE, RunFolder

    if not (path / CONFIG_FILE).is_file():
        return None
    settings = RunFolder(path).config().to_dict()
    return {key: value for key, value in _dotted(settings).items() if key not in _MAY_DIFFER}


def _dotted(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in settings.items():
        found |= _dotted(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value}
    return found
