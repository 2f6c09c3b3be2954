"""Build: proves the bounds of the benchmark's deals with the solver and packs them into the package's files.

    python -m pyramid_env.benchmark.build --rules pyramid --split test validation --folder bounds_work

The answers to each question are kept in the folder, in one file a preset, split and objective. Ctrl-C (or a kill) ends
the run at any moment; the same command goes on where it was. The finished files go to the package's own data folder, or
to ``--out``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pyramid_env.benchmark.bounds import DATA, SHIPPED, file_name, read_bounds, write_bounds
from pyramid_env.benchmark.columns import Bounds
from pyramid_env.benchmark.difficulty import Difficulty
from pyramid_env.benchmark.pack import NEEDED, pack
from pyramid_env.benchmark.splits import SPLITS
from pyramid_env.errors import PyramidError
from pyramid_env.rules import PRESETS, Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver.many import solve_many
from pyramid_env.solver.result import DEFAULT_MAX_BYTES, Objective, read_objective

MAX_STATES: Final = 20_000_000
"""Positions stored for one answer, unless told otherwise."""

BAD_CALL: Final = 2
INTERRUPTED: Final = 130
"""Exit codes: a mistake in the call, or answers that cannot be packed; stopped by Ctrl-C, as shells know it."""


def build(
    rules: Rules,
    split: str,
    folder: Path,
    *,
    objectives: Iterable[str] = tuple(Objective),
    max_states: dict[str, int] | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
    workers: int | None = None,
    progress: bool = False,
) -> Bounds:
    """Solve all deals of a split and pack the answers.

    Args:
        rules: the game.
        split: ``"test"`` or ``"validation"``.
        folder: keeps the answers, finished or not; a later call with the same arguments takes them up.
        objectives: the questions; at least those of NEEDED.
        max_states: by objective, positions stored for one answer; MAX_STATES for those left out.
        max_bytes: bytes of a search's tables, for one answer.
        workers: threads; None: as many as cores that this process may use.
        progress: show bars on the terminal.

    Raises:
        PyramidError: a question is missing, a file in the folder holds other answers, or the answers do not fit
            together.
        OSError: the folder cannot be written.
    """
    asked = [str(read_objective(objective)) for objective in objectives]
    left_out = [objective for objective in NEEDED if objective not in asked]
    if left_out:
        raise PyramidError(f"objectives: expected {', '.join(NEEDED)} at least; {', '.join(left_out)} left out")
    answers = {
        objective: solve_many(
            SPLITS[split],
            rules,
            objective,
            workers=workers,
            progress=progress,
            file=folder / f"{rules.preset}_{split}_{objective}.npz",
            max_states=(max_states or {}).get(objective, MAX_STATES),
            max_bytes=max_bytes,
        )
        for objective in asked
    }
    return pack(rules, split, answers)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        limits = _limits(options.max_states)
        for rules in map(_preset, options.rules):
            for split in options.split:
                made = build(
                    rules,
                    split,
                    options.folder,
                    objectives=options.objectives,
                    max_states=limits,
                    max_bytes=options.max_bytes,
                    workers=options.workers,
                    progress=True,
                )
                path = options.out / file_name(rules.preset, split)
                size = write_bounds(made, path)
                print(f"{path}: {size / 1024:.0f} KiB; {_summary(read_bounds(path, rules, split))}", flush=True)
    except (PyramidError, OSError) as error:
        print(f"build: error: {error}", file=sys.stderr)
        return BAD_CALL
    except KeyboardInterrupt:
        print(f"build: interrupted; the same command goes on from {options.folder}", file=sys.stderr)
        return INTERRUPTED
    return 0


def _summary(made: Bounds) -> str:
    """What a file holds, in a line."""
    classes = ", ".join(f"{made.deals_of(each).size} {each.name.lower()}" for each in Difficulty)
    unsettled = ", ".join(
        f"{objective} {int((~made.proven(objective)).sum())}" for objective in Objective if objective in made.limits
    )
    return f"{made}; {classes}; not settled: {unsettled}; mean score {made.score_low.mean():.2f} or more"


def _preset(name: str) -> Rules:
    """The rules of a preset; PyramidError for rules with changed switches, which have no file name."""
    rules = read_rules(name)
    if rules != PRESETS[rules.preset]:
        raise PyramidError(f"--rules: expected presets as they are, got {name}")
    return rules


def _limits(texts: Iterable[str]) -> dict[str, int]:
    """Limits such as ``20000000`` (all objectives) and ``steps=1000000``, by objective."""
    limits: dict[str, int] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        if not number.isdecimal():
            raise PyramidError(f"--max-states: expected a number such as 20000000 or steps=1000000, got {text!r}")
        for objective in [str(read_objective(name))] if equals else Objective:
            limits[str(objective)] = int(number)
    return limits


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pyramid_env.benchmark.build",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rules", nargs="+", default=SHIPPED, metavar="PRESET", help=f"default: {' '.join(SHIPPED)}")
    parser.add_argument("--split", nargs="+", choices=list(SPLITS), default=list(SPLITS), help="default: both")
    parser.add_argument(
        "--objectives", nargs="+", choices=list(map(str, Objective)), default=list(map(str, Objective)),
        help="default: all; steps, the dearest, may be left out",
    )  # fmt: skip
    parser.add_argument(
        "--max-states", nargs="+", default=[str(MAX_STATES)], metavar="N",
        help=f"positions stored for one answer, for all objectives or as in steps=1000000 (default: {MAX_STATES})",
    )  # fmt: skip
    parser.add_argument(
        "--max-bytes", type=int, default=DEFAULT_MAX_BYTES, metavar="N",
        help=f"bytes of one search's tables (default: {DEFAULT_MAX_BYTES}); each worker may take as many",
    )  # fmt: skip
    parser.add_argument("--workers", type=int, help="threads (default: one a core)")
    parser.add_argument("--folder", type=Path, required=True, help="where answers are kept, finished or not")
    parser.add_argument("--out", type=Path, default=DATA, help="where the files go (default: the package's data)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
