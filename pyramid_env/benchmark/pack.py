"""Pack: puts the solver's answers to the four questions together, each proof tightening the others, into Bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env.benchmark.bounds import switches
from pyramid_env.benchmark.columns import Bounds, score_cap
from pyramid_env.benchmark.lines import play_lines
from pyramid_env.benchmark.splits import SPLITS
from pyramid_env.errors import PyramidError
from pyramid_env.rules import Rules
from pyramid_env.solver.blocks import STATUSES
from pyramid_env.solver.columns import Solutions
from pyramid_env.solver.result import Status

NEEDED: Final = ("win", "earliest", "score")
"""Questions that bounds cannot do without; ``steps`` may be left out."""

_UNWINNABLE: Final = STATUSES.index(Status.UNWINNABLE)


def pack(rules: Rules, split: str, answers: Mapping[str, Solutions]) -> Bounds:
    """The bounds that the answers prove together.

    Every line is played through the rules' kernels and has to reach its value. What a line reaches counts for all
    questions (one that wins shows a pass and a number of steps too), and so does what is proven impossible.

    Args:
        rules: the game.
        split: whose deals the answers are about.
        answers: by objective, Solutions for ``win``, ``earliest``, ``score`` and, if wanted, ``steps``.

    Raises:
        PyramidError: a question is missing; answers are about other rules, deals or objectives, or by different
            versions of the solver; a line does not reach its value; answers contradict each other.
    """
    _check_answers(rules, split, answers)
    lines = [play_lines(solutions) for solutions in answers.values()]
    win, score, steps = answers["win"], answers["score"], answers.get("steps")
    win_high: NDArray[Any] = win.bound.copy()
    for objective in answers.keys() & {"earliest", "steps"}:
        win_high[answers[objective].status == _UNWINNABLE] = 0
    earliest_low = _at_least(answers["earliest"], win_high if rules.goal == "pyramid" else np.ones(len(win)))
    columns: dict[str, NDArray[Any]] = {
        "win_low": np.max([line.won for line in lines], axis=0).astype(np.int8),
        "win_high": win_high,
        "earliest_low": earliest_low,
        "earliest_high": _fewest(line.cleared for line in lines),
        "score_low": np.max([line.score for line in lines], axis=0),
        "score_high": np.minimum(score.bound, score_cap(rules, earliest_low)),
        "states": win.states,
    }
    if steps is not None:
        columns["steps_low"] = _at_least(steps, win_high)
        columns["steps_high"] = _fewest(np.where(line.won, line.steps, 0) for line in lines)
    limits = MappingProxyType({objective: solutions.limits for objective, solutions in answers.items()})
    try:
        return Bounds(rules=rules, split=split, deals=win.deals, solver_version=win.version, limits=limits, **columns)
    except ValueError as error:
        raise PyramidError(f"bounds of {rules}, {split}: answers contradict each other: {error}") from error


def _at_least(solutions: Solutions, possible: NDArray[Any]) -> NDArray[np.int64]:
    """(n,) the low ends of passes or steps: 0 where there is none, proven; 1 at least where that is open."""
    never = (solutions.status == _UNWINNABLE) | (possible == 0)
    low: NDArray[np.int64] = np.where(never, 0, np.maximum(solutions.bound, 1))
    return low


def _fewest(reached: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    """(n,) the fewest passes or steps of those that any line reaches; 0 where none does."""
    none = np.iinfo(np.int64).max
    fewest = np.min([np.where(values > 0, values, none) for values in reached], axis=0)
    return np.where(fewest < none, fewest, 0)


def _check_answers(rules: Rules, split: str, answers: Mapping[str, Solutions]) -> None:
    where, deals = f"bounds of {rules}, {split}", SPLITS[split]
    missing = [objective for objective in NEEDED if objective not in answers]
    if missing:
        raise PyramidError(f"{where}: expected answers about {', '.join(NEEDED)}, got none about {', '.join(missing)}")
    for objective, solutions in answers.items():
        if solutions.objective != objective:
            raise PyramidError(f"{where}: expected answers about {objective}, got {solutions}")
        if switches(solutions.rules) != switches(rules):
            raise PyramidError(f"{where}: expected answers under these rules, got {solutions}")
        if not np.array_equal(solutions.deals, np.arange(deals.start, deals.stop)):
            raise PyramidError(f"{where}: expected answers about deals {deals.start} to {deals[-1]}, got {solutions}")
    versions = {solutions.version for solutions in answers.values()}
    if len(versions) > 1:
        raise PyramidError(f"{where}: expected one version of the solver, got {', '.join(map(str, sorted(versions)))}")
