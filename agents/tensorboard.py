"""TensorBoard: the figures of a report as scalars and histograms, a run an agent, beside those of its training."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agents.evaluation import check_folder
from pyramid_env.errors import PyramidError

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

    from agents.details import ClassResult, Details
    from agents.page import Report
    from agents.regret import Regret
    from agents.report import Measured, Row, Span
    from agents.statistics import Estimate

_OPTION: Final = "--tensorboard"
_FILES: Final = "events.out.tfevents.*"
_BINS: Final = 40
_LONGEST: Final = 120
"""Characters of a folder's name, at most."""


def folder_of(name: str) -> str:
    """What the folder of an agent's figures is called."""
    return re.sub(r"[^\w.+()-]+", "-", name).strip("-.") or "agent"


def check_tensorboard(folder: Path, names: Sequence[str], *, overwrite: bool) -> None:
    """See that figures can be written.

    Args:
        folder: of the runs.
        names: of agents, a run each.
        overwrite: may figures that are there be replaced?

    Raises:
        PyramidError: tensorboard is not installed, the folder is a file or cannot be written to, two names make one
            folder, or figures are there.
    """
    try:
        from torch.utils import tensorboard  # noqa: F401 - asked for only to see whether it is there
    except ModuleNotFoundError as error:
        raise PyramidError(f"{_OPTION}: needs the extra 'train': {error}; pip install -e '.[train]'") from None
    check_folder(folder, _OPTION)
    runs = [folder_of(name) for name in names]
    if len(set(runs)) < len(runs):
        raise PyramidError(f"{_OPTION}: expected names that make different folders, got {', '.join(names)}")
    for run in runs:
        if len(run) > _LONGEST:
            raise PyramidError(f"{_OPTION}: expected names of {_LONGEST} characters at most, got {run}")
        check_folder(folder / run, _OPTION)
    there = [run for run in runs if any((folder / run).glob(_FILES))]
    if there and not overwrite:
        raise PyramidError(f"{_OPTION}: {folder} holds figures of {', '.join(there)}; --overwrite replaces them")


def write_tensorboard(folder: Path, report: Report) -> None:
    """Write the figures of a report, each agent's to a folder of its own, the bound's too.

    Event files of an earlier report in these folders are replaced, other files stay. All are written elsewhere first,
    and moved when they are complete.
    """
    from torch.utils.tensorboard import SummaryWriter

    folder.mkdir(parents=True, exist_ok=True)
    scores = {name: np.array([record.score for record in games]) for name, games in report.games.items()}
    if report.bounds is not None:
        scores["bound"] = np.array([bound.score_low for bound in report.bounds])
    runs = [*report.rows, *(run for each in report.seeds for run in each.runs)]
    with tempfile.TemporaryDirectory(prefix=".figures.", dir=folder) as aside:
        for row in runs:
            figures = agent_figures(row.name, row, report)
            with SummaryWriter(str(Path(aside) / folder_of(row.name))) as writer:
                _write(writer, figures, scores.get(row.name), report.curves.get(row.name, ()))
        for row in runs:
            made = folder / folder_of(row.name)
            made.mkdir(exist_ok=True)
            before = list(made.glob(_FILES))
            for file in (Path(aside) / made.name).iterdir():
                file.replace(made / file.name)
            for file in before:
                file.unlink()


def _write(
    writer: SummaryWriter, figures: Mapping[str, float], scores: Any, curve: Sequence[Mapping[str, Any]]
) -> None:
    for tag, value in figures.items():
        writer.add_scalar(tag, value, 0)
    if scores is not None:
        writer.add_histogram("scores", scores, 0, bins=_BINS)
    for point in curve:
        writer.add_scalar("learning/win_rate", point["win_rate"], point["steps"])
        writer.add_scalar("learning/mean_score", point["mean_score"], point["steps"])


# ---- what is told ----------------------------------------------------------------------------------------------------


def agent_figures(name: str, row: Row, report: Report) -> dict[str, float]:
    """The figures of one line of the table by their tags; those that the report does not have are left out.

    Where a figure has an interval, or two ends because bounds are not proven, ``_low`` and ``_high`` stand behind its
    tag; the figure itself is the lower end then.
    """
    found: dict[str, float] = {"results/games": row.games, "results/truncated": row.truncated}
    found["results/seconds"] = row.seconds
    for tag in ("wins", "score", "match_total", "matches_at_par"):
        found |= _of_measured(f"results/{tag}", getattr(row, tag))
    for tag in ("of_winnable", "of_points", "regret"):
        found |= _of_span(f"results/{tag}", getattr(row, tag))
    for details in report.details:
        if details.name == name:
            found |= _of_details(details)
    for regret in report.regret:
        if regret.name == name:
            found |= _of_regret(regret)
    for pair in report.comparisons:
        if pair.first == name:
            found |= _of_estimate(f"pairs/wins_less_{folder_of(pair.second)}", pair.wins)
            found |= _of_estimate(f"pairs/score_less_{folder_of(pair.second)}", pair.score)
    return {tag: value for tag, value in found.items() if np.isfinite(value)}


def _of_measured(tag: str, found: Measured | None) -> dict[str, float]:
    if found is None:
        return {}
    return {tag: found.value.low, f"{tag}_low": found.interval.low, f"{tag}_high": found.interval.high}


def _of_span(tag: str, found: Span | None) -> dict[str, float]:
    if found is None:
        return {}
    ends = {f"{tag}_low": found.low, f"{tag}_high": found.high}
    return {tag: found.low, **(ends if found.low < found.high else {})}


def _of_estimate(tag: str, found: Estimate) -> dict[str, float]:
    return {tag: found.value, f"{tag}_low": found.low, f"{tag}_high": found.high}


def _of_details(details: Details) -> dict[str, float]:
    found = {f"cleared/pass_{number}": share for number, share in details.cleared.items()}
    found |= {"play/moves": details.moves, "play/draws": details.draws}
    found["play/seconds_per_move"] = details.seconds_per_move
    for kind, result in details.by_difficulty.items():
        found |= _of_class(kind, result)
    return found


def _of_class(kind: str, result: ClassResult) -> dict[str, float]:
    return _of_estimate(f"difficulty/{kind}_wins", result.wins) | _of_estimate(f"difficulty/{kind}_score", result.score)


def _of_regret(regret: Regret) -> dict[str, float]:
    found = {"regret/total": regret.total}
    found |= {f"regret/pass_{number}": loss for number, loss in regret.by_pass.items()}
    return found | {f"regret/{kind.replace(' ', '_')}": loss for kind, loss in regret.by_kind.items()}
