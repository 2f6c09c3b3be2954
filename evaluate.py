"""Measure agents on the same numbered deals, beside the solver's bound: one table, one record a game, one summary.

python evaluate.py --agents random greedy scout runs/x --rules pyramid --deals test:0-999
python evaluate.py --agents runs/x --deals test --submission x.json.gz --about by=Ann description=... code=... (...)
python evaluate.py --verify x.json.gz
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports ends the process, without a traceback

import numpy as np
from numpy.typing import NDArray

from agents import Agent, agent_names, make_agent
from agents.bounds import MAX_STATES, BoundStore, DealBound, default_folder, find_bounds, tightened
from agents.details import (
    compare,
    comparison_cells,
    comparison_notes,
    deal_classes,
    details_cells,
    details_notes,
    details_of,
)
from agents.evaluation import BATCH_SIZE, MAX_STEPS, GameRecord, check_folder, evaluate_agent, warm_up, write_records
from agents.report import Row, agent_row, bound_row, footnotes, print_table, write_summary
from agents.submission import STATED, Submission, check_statement, row_values, verify, write_submission
from pyramid_env import __version__
from pyramid_env.benchmark import SPLITS, format_deals, may_be_training_deals, parse_deals
from pyramid_env.errors import PyramidError
from pyramid_env.rules import PRESETS, Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver import Limits

BAD_CALL: Final = 2
INTERRUPTED: Final = 130
"""Exit codes: a mistake in the call; stopped by Ctrl-C, as shells know it."""

RECORDS_FILE: Final = "records.csv"
SUMMARY_FILE: Final = "summary.json"


@dataclass(frozen=True)
class Run:
    """A checked call: everything that takes long starts from here."""

    rules: Rules
    deals: NDArray[np.int64]
    agents: dict[str, Agent]
    options: argparse.Namespace
    out: Path
    command: str
    about: dict[str, str] | None

    def describe(self) -> dict[str, Any]:
        """What the summary says of the run, besides its rows."""
        options = self.options
        return {
            "command": self.command,
            "version": __version__,
            "rules": str(self.rules),
            "switches": self.rules.to_dict(),
            "deals": format_deals(self.deals),
            "seed": options.seed,
            "batch_size": options.batch_size,
            "max_steps": options.max_steps,
            "threads": options.threads,
            "bound_limits": None if options.no_bound else asdict(Limits(max_states=options.max_states)),
        }

    def lines(self) -> list[str]:
        """The same for people, below the table."""
        said = (
            f"{self.rules} · deals {format_deals(self.deals)} · seed {self.options.seed} · "
            f"batch {self.options.batch_size} · step limit {self.options.max_steps} · pyramid_env {__version__}"
        )
        training = ["Some deals lie in the training range: a trained agent may have met them."]
        return [said, self.command, *(training if may_be_training_deals(self.deals) else [])]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        called = check_call(arguments)
        return play_and_report(called) if isinstance(called, Run) else verify_files(called)
    except (PyramidError, OSError) as error:
        print(f"evaluate.py: error: {error}", file=sys.stderr)
        return BAD_CALL
    except KeyboardInterrupt:
        print("evaluate.py: interrupted", file=sys.stderr)
        return INTERRUPTED


def check_call(arguments: Sequence[str]) -> Run | list[Path]:
    """Read the command line, check what it names and make every agent, before anything takes long.

    Nothing is written: a folder is made when the first agent has finished. Files to verify are only named.
    """
    options = _parser().parse_args(arguments)
    if options.verify:
        return list(options.verify)
    rules = read_rules(options.rules)
    deals = parse_deals(options.deals)
    least_values = {"seed": 0, "batch_size": 1, "max_steps": 1, "workers": 1, "max_states": 1, "threads": 1}
    for name, least in least_values.items():
        if getattr(options, name) < least:
            raise PyramidError(f"--{name.replace('_', '-')}: expected {least} or more, got {getattr(options, name)}")
    about = _check_submission(options)
    out = options.out or _new_folder(rules)
    check_folder(out, "--out")
    old = [name for name in (RECORDS_FILE, SUMMARY_FILE) if (out / name).exists()]
    if old and not options.overwrite:
        raise PyramidError(f"--out: {out} holds {' and '.join(old)} of an earlier run; --overwrite replaces them")
    if not options.no_bound:
        BoundStore(options.bounds, rules, Limits(max_states=options.max_states)).check(deals)
    agents = _make_agents(options.agents, rules, options.threads)
    return Run(rules, deals, agents, options, out, shlex.join(["python", "evaluate.py", *arguments]), about)


def _check_submission(options: argparse.Namespace) -> dict[str, str] | None:
    """What a submission states; None if none is asked for."""
    if options.submission is None:
        if options.about:
            raise PyramidError("--about: it is said of a submission; --submission names the file to write")
        return None
    if len(options.agents) != 1:
        raise PyramidError(f"--submission: expected one agent, got {', '.join(options.agents)}")
    if options.submission.exists() and not options.overwrite:
        raise PyramidError(f"--submission: {options.submission} is already there; --overwrite replaces it")
    check_folder(options.submission.parent, "--submission")
    options.actions = True
    return check_statement(options.about)


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(BAD_CALL, f"{self.prog}: error: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _OneLineParser(
        prog="evaluate.py",
        description="Measure agents on the same numbered deals, beside the solver's bound.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument(
        "--verify", nargs="+", type=Path, metavar="FILE", help="check submissions: replay their games, compute anew"
    )
    asked.add_argument(
        "--agents", nargs="+", metavar="AGENT",
        help=f"{', '.join(agent_names())}, a run folder of train.py, a checkpoint file, or module:factory",
    )  # fmt: skip
    parser.add_argument(
        "--rules", default="pyramid", help=f"{', '.join(PRESETS)}; or changed, as in microsoft:passes=1"
    )
    parser.add_argument("--deals", default="test:0-999", help=f"{', '.join(SPLITS)}, validation:0-99, or 123,456-460")
    parser.add_argument("--seed", type=int, default=0, help="of the agents' random numbers")
    parser.add_argument("--out", type=Path, help="folder for records and summary (default: a new one in results/)")
    parser.add_argument("--overwrite", action="store_true", help="replace records and summary of an earlier run there")
    parser.add_argument("--actions", action="store_true", help="keep every game's actions in the records")
    parser.add_argument(
        "--submission", type=Path, metavar="FILE", help="write result and games of one agent as one file"
    )
    parser.add_argument(
        "--about", nargs="+", default=[], metavar="KEY=TEXT", help=f"what a submission states: {', '.join(STATED)}"
    )
    parser.add_argument("--no-bound", action="store_true", help="leave the solver's bound out")
    parser.add_argument("--max-states", type=int, default=MAX_STATES, help="solver: states searched for one answer")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes that search for bounds")
    parser.add_argument("--bounds", type=Path, default=default_folder(), help="folder that keeps bounds between runs")
    parser.add_argument("--batch-size", type=int, default=BATCH_SIZE, help="games played side by side")
    parser.add_argument(
        "--threads", type=int, default=1,
        help="torch threads of trained agents; more than one can be far slower, above all on cores that are shared",
    )  # fmt: skip
    parser.add_argument("--max-steps", type=int, default=MAX_STEPS, help="a longer game is stopped, and not won")
    return parser


def _make_agents(specs: Sequence[str], rules: Rules, threads: int) -> dict[str, Agent]:
    """Agents by what the table calls them: their names, or what was asked for where two have the same name."""
    if len(set(specs)) < len(specs):
        twice = next(spec for spec in specs if list(specs).count(spec) > 1)
        raise PyramidError(f"--agents: expected different agents, got {twice} twice")
    made = [make_agent(spec, rules, threads=threads) for spec in specs]
    names = [agent.name for agent in made]
    return {
        name if names.count(name) == 1 else spec: agent for spec, name, agent in zip(specs, names, made, strict=True)
    }


def _new_folder(rules: Rules) -> Path:
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    return Path("results") / f"{stamp}-{re.sub(r'[^A-Za-z0-9_.]+', '-', str(rules))}"


def play_and_report(run: Run) -> int:
    """Play all agents, find the bounds, print the table. Ctrl-C ends the work, not the report on what is finished."""
    records: dict[str, list[GameRecord]] = {}
    bounds: list[DealBound] | None = None
    code = 0
    try:
        _play(run, records)
        bounds = _bounds(run, records)
    except KeyboardInterrupt:
        kept = "what is finished is kept" if records else "no agent has finished, nothing is kept"
        print(f"interrupted: {kept}", file=sys.stderr)
        code = INTERRUPTED
    if records:
        _report(run, records, bounds, complete=code == 0)
    return code


def _play(run: Run, records: dict[str, list[GameRecord]]) -> None:
    """Play agent after agent; the files on disk always hold those that have finished."""
    for name, agent in run.agents.items():
        options = run.options
        warm_up(agent, run.rules)
        records[name] = evaluate_agent(
            agent,
            run.rules,
            run.deals,
            seed=options.seed,
            batch_size=options.batch_size,
            max_steps=options.max_steps,
            name=name,
            keep_actions=options.actions,
            progress=True,
        )
        _write(run, records, _rows(run, records, None), complete=False)
        print(f"{name}: {len(records[name]):,} games", file=sys.stderr)


def verify_files(files: Sequence[Path]) -> int:
    """Check submissions, print what they hold; the first that does not hold what it says ends it."""
    for file in files:
        made, rows = verify(file, folder=default_folder(), progress=True)
        rules = read_rules(made.run["rules"])
        unproven = [row for row in rows if row.wins.value.low != row.wins.value.high]
        said = [f"{key}: {made.about[key]}" for key in STATED]
        versions = f"recorded by pyramid_env {made.run['version']}, checked by {__version__}"
        notes = [f"{file}: {len(made.records):,} games replayed, every figure is what they make", versions]
        notes += [f"{rules} · deals {made.run['deals']} · seed {made.run['seed']}", made.run["command"], *said]
        print_table(rows, [*footnotes(rows, rules, unproven=len(unproven)), *notes])
    return 0


def _bounds(run: Run, records: dict[str, list[GameRecord]]) -> list[DealBound] | None:
    options = run.options
    if options.no_bound:
        return None
    found = find_bounds(
        run.rules,
        run.deals,
        limits=Limits(max_states=options.max_states),
        workers=options.workers,
        folder=options.bounds,
        progress=True,
    )
    return tightened(found, (record for games in records.values() for record in games))


def _rows(run: Run, records: dict[str, list[GameRecord]], bounds: list[DealBound] | None) -> list[Row]:
    rows = [
        agent_row(games, run.rules, clairvoyant=run.agents[name].clairvoyant, bounds=bounds)
        for name, games in records.items()
    ]
    return rows if bounds is None else [*rows, bound_row(bounds, run.rules)]


def _write(run: Run, records: dict[str, list[GameRecord]], rows: list[Row], *, complete: bool, **more: Any) -> None:
    write_records(run.out / RECORDS_FILE, [record for games in records.values() for record in games])
    write_summary(run.out / SUMMARY_FILE, rows, {**run.describe(), "complete": complete}, **more)


def _report(run: Run, records: dict[str, list[GameRecord]], bounds: list[DealBound] | None, *, complete: bool) -> None:
    rows = _rows(run, records, bounds)
    classes = deal_classes(run.rules, run.deals.tolist())
    details = [details_of(name, games, classes) for name, games in records.items()]
    pairs = compare(records)
    _write(run, records, rows, complete=complete, details=details, comparisons=pairs)
    if run.about is not None and complete:
        _submit(run, records, rows, run.about)
    unproven = sum(not bound.proven for bound in bounds or [])
    notes = [*footnotes(rows, run.rules, unproven=unproven), *details_notes(details)]
    more = [details_cells(details)]
    if pairs:
        more.append(comparison_cells(pairs))
        notes += comparison_notes(pairs)
    print_table(rows, [*notes, *run.lines(), f"files: {run.out}"], more=more)


def _submit(run: Run, records: dict[str, list[GameRecord]], rows: list[Row], about: dict[str, str]) -> None:
    """Write the submission, and check it as anybody would."""
    ((name, games),) = records.items()
    agent = run.agents[name]
    told = {"agent": name, "level": agent.level, "clairvoyant": agent.clairvoyant, **about}
    file: Path = run.options.submission
    write_submission(file, Submission(told, run.describe(), games, list(map(row_values, rows))))
    verify(file, workers=run.options.workers, folder=run.options.bounds)
    print(f"submission: {file}, checked", file=sys.stderr)


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
