"""Measure agents on the same numbered deals, beside the solver's bound: one table, one record a game, one summary.

python evaluate.py --agents random greedy scout runs/x --rules pyramid --deals test:0-999
python evaluate.py --agents shipped greedy --html page.html     (the same to look at, with games to step through)
python evaluate.py --agents runs/x --deals test --submission x.json.gz --about by=Ann description=... code=... (...)
python evaluate.py --resume results/x     (after Ctrl-C, or a crash)
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
from pathlib import Path
from typing import Final, NoReturn

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports ends the process, without a traceback

from agents import Agent, agent_names, make_agent
from agents.bounds import MAX_STATES, BoundStore, default_folder
from agents.evaluation import MAX_STEPS, GameRecord, check_folder
from agents.measure import RECORDS_FILE, SUMMARY_FILE, Run, kept_games, play_and_report
from agents.page import REPLAYS
from agents.parquet import check_parquet
from agents.report import BOUND, footnotes, print_table
from agents.seeds import check_seeds, read_seeds, row_name
from agents.submission import STATED, check_statement, verify
from agents.tensorboard import check_tensorboard
from pyramid_env import __version__
from pyramid_env.benchmark import SPLITS, parse_deals
from pyramid_env.errors import PyramidError
from pyramid_env.rules import PRESETS, Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver import Limits

BAD_CALL: Final = 2
INTERRUPTED: Final = 130
"""Exit codes: a mistake in the call; stopped by Ctrl-C, as shells know it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        called = check_call(arguments)
        if isinstance(called, Run):
            return 0 if play_and_report(called) else INTERRUPTED
        return verify_files(called)
    except (PyramidError, OSError) as error:
        print(f"evaluate.py: error: {error}", file=sys.stderr)
        return BAD_CALL
    except KeyboardInterrupt:
        print("evaluate.py: interrupted", file=sys.stderr)
        return INTERRUPTED


def check_call(arguments: Sequence[str]) -> Run | list[Path]:
    """Read the command line, check what it names and make every agent, before anything takes long.

    Nothing is written: a folder is made when games have finished. Files to verify are only named.
    """
    options = _parser().parse_args(arguments)
    if options.verify:
        return list(options.verify)
    kept: dict[str, list[GameRecord]] = {}
    resumed: Path | None = options.resume
    if resumed is not None:
        if len(arguments) > 2:
            raise PyramidError(f"--resume: expected the folder alone, whose call is known; got {shlex.join(arguments)}")
        arguments, kept = kept_games(resumed)
        options = _parser().parse_args(arguments)
        options.out, options.overwrite = resumed, True
    if not (options.agents or options.seeds):
        raise PyramidError("expected what to measure (--agents, --seeds), --resume or --verify; got none of them")
    rules = read_rules(options.rules)
    deals = parse_deals(options.deals)
    least_values = {
        "seed": 0, "batch_size": 1, "max_steps": 1, "workers": 1, "max_states": 1, "threads": 1, "replays": 0,
    }  # fmt: skip
    for name, least in least_values.items():
        value = getattr(options, name)
        if value is not None and value < least:
            raise PyramidError(f"--{name.replace('_', '-')}: expected {least} or more, got {value}")
    about = _check_submission(options)
    _check_file(options.html, "--html", options.overwrite)
    _check_file(options.parquet, "--parquet", options.overwrite)
    if options.parquet is not None:
        check_parquet()
    options.actions |= options.regret or about is not None or options.html is not None
    out = options.out or _new_folder(rules)
    check_folder(out, "--out")
    old = [name for name in (RECORDS_FILE, SUMMARY_FILE) if (out / name).exists()]
    if old and not options.overwrite:
        raise PyramidError(f"--out: {out} holds {' and '.join(old)} of an earlier run; --overwrite replaces them")
    if not options.no_bound:
        BoundStore(options.bounds, rules, Limits(max_states=options.max_states)).check(deals)
    agents, specs, seeds = _make_agents(options, rules)
    if options.tensorboard is not None:
        together = [row_name(name, len(runs)) for name, runs in seeds.items()]
        check_tensorboard(options.tensorboard, [*agents, *together, BOUND], overwrite=options.overwrite)
    return Run(rules, deals, agents, specs, seeds, options, out, list(arguments), about, kept)


def _check_submission(options: argparse.Namespace) -> dict[str, str] | None:
    """What a submission states; None if none is asked for."""
    if options.submission is None:
        if options.about:
            raise PyramidError("--about: it is said of a submission; --submission names the file to write")
        return None
    if len(options.agents) != 1 or options.seeds:
        given = [*options.agents, *(f"seeds of {name}" for name, *_ in options.seeds)]
        raise PyramidError(f"--submission: expected one agent, got {', '.join(given)}")
    if options.submission.exists() and not options.overwrite:
        raise PyramidError(f"--submission: {options.submission} is already there; --overwrite replaces it")
    check_folder(options.submission.parent, "--submission")
    return check_statement(options.about)


def _check_file(file: Path | None, option: str, overwrite: bool) -> None:
    """PyramidError unless a file that an option names can be written."""
    if file is None:
        return
    if file.is_dir():
        raise PyramidError(f"{option}: expected a file to write, got the folder {file}")
    if file.exists() and not overwrite:
        raise PyramidError(f"{option}: {file} is already there; --overwrite replaces it")
    check_folder(file.parent, option)


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(BAD_CALL, f"{self.prog}: error: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _OneLineParser(
        prog="evaluate.py",
        description="Measure agents on the same numbered deals, beside the solver's bound.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument(
        "--verify", nargs="+", type=Path, metavar="FILE", help="check submissions: replay their games, compute anew"
    )
    asked.add_argument("--resume", type=Path, metavar="FOLDER", help="go on with an evaluation that was stopped")
    asked.add_argument(
        "--agents", nargs="+", metavar="AGENT", default=[],
        help=f"{', '.join(agent_names())}, a run folder of train.py, a checkpoint file, or module:factory",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", nargs="+", action="append", default=[], metavar=("NAME", "RUN"),
        help="runs of one training with different seeds, two or more, as one row; may be given again",
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
        "--regret", action="store_true", help="say move by move what each agent lost: some 20 to 50 ms a game"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with tables, plots and replays")
    parser.add_argument("--replays", type=int, default=REPLAYS, help="games to step through on the page")
    parser.add_argument(
        "--parquet", type=Path, metavar="FILE", help="write the records as Parquet too; needs the extra 'report'"
    )
    parser.add_argument(
        "--tensorboard", type=Path, metavar="FOLDER", help="write the figures for TensorBoard, a run an agent"
    )
    parser.add_argument(
        "--submission", type=Path, metavar="FILE", help="write result and games of one agent as one file"
    )
    parser.add_argument(
        "--about", nargs="+", default=[], metavar="KEY=TEXT", help=f"what a submission states: {', '.join(STATED)}"
    )
    parser.add_argument("--no-bound", action="store_true", help="leave the solver's bound out")
    parser.add_argument("--max-states", type=int, default=MAX_STATES, help="solver: states searched for one answer")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1,
        help="processes that search for bounds while games are played; 1: none, the search comes after the games",
    )  # fmt: skip
    parser.add_argument("--bounds", type=Path, default=default_folder(), help="folder that keeps bounds between runs")
    parser.add_argument(
        "--batch-size", type=int, help="games played side by side; what an agent likes unless given, see agents/base.py"
    )
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count() or 1, help="of a trained agent; results do not depend on it"
    )
    parser.add_argument("--max-steps", type=int, default=MAX_STEPS, help="a longer game is stopped, and not won")
    return parser


def _make_agents(
    options: argparse.Namespace, rules: Rules
) -> tuple[dict[str, Agent], dict[str, str], dict[str, list[str]]]:
    """Agents by what the table calls them: their names, or what was asked for where two have the same name; what each
    was asked for by; and the names of those that are runs of one training, by what they are called together."""
    together = read_seeds(options.seeds)
    specs = [*options.agents, *(run for runs in together.values() for run in runs)]
    if len(set(specs)) < len(specs):
        twice = next(spec for spec in specs if specs.count(spec) > 1)
        option = "--agents" if options.agents.count(twice) > 1 else "--seeds"
        raise PyramidError(f"{option}: expected different agents, got {twice} twice")
    made = [make_agent(spec, rules, threads=options.threads) for spec in specs]
    check_seeds(together)
    names = [agent.name for agent in made]
    called = {
        spec: name if names.count(name) == 1 else spec for spec, name in zip(specs, names, strict=True)
    }  # fmt: skip
    seeds = {name: [called[run] for run in runs] for name, runs in together.items()}
    for name in seeds:
        if name in (*called.values(), BOUND):
            raise PyramidError(f"--seeds: expected another name than that of an agent, got {name}")
    return dict(zip(called.values(), made, strict=True)), {called[spec]: spec for spec in specs}, seeds


def _new_folder(rules: Rules) -> Path:
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    return Path("results") / f"{stamp}-{re.sub(r'[^A-Za-z0-9_.]+', '-', str(rules))}"


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


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
