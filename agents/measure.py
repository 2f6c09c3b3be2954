"""Measure: plays agents over the same deals, finds the bounds, keeps and reports what comes of it.

It can be stopped at any time, and gone on with: finished games are kept, and the report is the same but for seconds.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from agents.base import Agent
from agents.bounds import BoundSearch, DealBound, tightened
from agents.details import (
    Comparison,
    Details,
    compare,
    comparison_cells,
    comparison_notes,
    deal_classes,
    details_cells,
    details_notes,
    details_of,
)
from agents.evaluation import (
    GameRecord,
    evaluate_agent,
    progress_bar,
    read_records,
    replace_file,
    warm_up,
    whole_blocks,
    write_records,
)
from agents.page import Report, curve_of, page_text
from agents.parquet import write_parquet
from agents.regret import Regret, gap_notes, regret_cells, regret_notes, regret_of
from agents.report import Row, agent_row, bound_row, footnotes, print_table, read_summary, write_summary
from agents.seeds import Seeds, seeds_cells, seeds_notes, together
from agents.submission import Submission, row_values, verify, write_submission
from agents.tensorboard import write_tensorboard
from pyramid_env import __version__
from pyramid_env.benchmark import format_deals, may_be_training_deals
from pyramid_env.errors import PyramidError
from pyramid_env.rules import Rules
from pyramid_env.solver import Limits

RECORDS_FILE: Final = "records.csv"
SUMMARY_FILE: Final = "summary.json"
SAVE_EVERY_S: Final = 5.0
"""Finished games are written to disk this often; a kill loses what was played since."""


@dataclass(frozen=True)
class Run:
    """A checked call: everything that takes long starts from here.

    Attributes:
        rules, deals, agents: who plays what; agents by what tables call them.
        specs: what each agent was asked for by, likewise.
        seeds: names of those that are runs of one training, by what they are called together.
        options: of the command line.
        out: folder of records and summary.
        arguments: the command line's words.
        about: what a submission states, if one is asked for.
        kept: games of a call that was stopped, by agent.
    """

    rules: Rules
    deals: NDArray[np.int64]
    agents: dict[str, Agent]
    specs: dict[str, str]
    seeds: dict[str, list[str]]
    options: argparse.Namespace
    out: Path
    arguments: list[str]
    about: dict[str, str] | None
    kept: dict[str, list[GameRecord]] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The call, to be typed again."""
        return shlex.join(["python", "evaluate.py", *self.arguments])

    def batch_size(self, name: str) -> int:
        """Games that an agent plays side by side: what was asked for, else what it likes."""
        asked: int | None = self.options.batch_size
        return self.agents[name].batch_size if asked is None else asked

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
            "batch_size": {name: self.batch_size(name) for name in self.agents},
            "max_steps": options.max_steps,
            "threads": options.threads,
            "bound_limits": None if options.no_bound else asdict(Limits(max_states=options.max_states)),
        }

    def lines(self) -> list[str]:
        """The same for people, below the table."""
        said = (
            f"{self.rules} · deals {format_deals(self.deals)} · seed {self.options.seed} · "
            f"batch {self._batches()} · step limit {self.options.max_steps} · pyramid_env {__version__}"
        )
        training = ["Some deals lie in the training range: a trained agent may have met them."]
        return [said, self.command, *(training if may_be_training_deals(self.deals) else [])]

    def _batches(self) -> str:
        sizes: dict[int, list[str]] = {}
        for name in self.agents:
            sizes.setdefault(self.batch_size(name), []).append(name)
        if len(sizes) == 1:
            return str(*sizes)
        return ", ".join(f"{size} ({', '.join(names)})" for size, names in sizes.items())


def kept_games(folder: Path) -> tuple[list[str], dict[str, list[GameRecord]]]:
    """The command line of an evaluation that wrote to a folder, and the games that it finished, by agent.

    Raises:
        PyramidError: nothing there to go on with, files that cannot be read, or made by another version.
    """
    summary = read_summary(folder / SUMMARY_FILE)
    if "arguments" not in summary or summary.get("version") != __version__:
        made = summary.get("version", "an unknown version")
        raise PyramidError(
            f"--resume: {folder} was written by pyramid_env {made}, in another way than by {__version__}"
        )
    games: dict[str, list[GameRecord]] = {}
    for record in read_records(folder / RECORDS_FILE) if (folder / RECORDS_FILE).exists() else ():
        games.setdefault(record.agent, []).append(record)
    return summary["arguments"], games


def play_and_report(run: Run) -> bool:
    """Play all agents, find the bounds, print the table. Ctrl-C ends the work, not the report on what is finished.

    Returns:
        Whether all was done.
    """
    games = _Kept(run)
    bounds, done = None, True
    try:
        with progress_bar(True) as bar:
            bounds = _play_and_bound(run, games, bar)
    except KeyboardInterrupt:
        done = False
        if not games.count:
            print("interrupted: no game has finished, nothing is kept", file=sys.stderr)
            return False
        games.write()
        said = f"interrupted: {games.count:,} games are kept; python evaluate.py --resume {shlex.quote(str(run.out))}"
        print(f"{said} goes on", file=sys.stderr)
    if games.finished:
        _report(run, games.finished, bounds, complete=done)
    return done


class _Kept:
    """All games so far, and their files.

    Attributes:
        records: by agent; the last agent's may be some of its games.
    """

    def __init__(self, run: Run) -> None:
        self._run: Final = run
        self._written_at = time.monotonic()
        self.records: dict[str, list[GameRecord]] = {}
        for name in run.agents:
            if run.kept.get(name):
                self.records[name] = whole_blocks(run.kept[name], run.deals, run.batch_size(name))

    @property
    def finished(self) -> dict[str, list[GameRecord]]:
        """Of agents that have played all deals."""
        return {name: games for name, games in self.records.items() if len(games) == len(self._run.deals)}

    @property
    def count(self) -> int:
        """Games so far."""
        return sum(map(len, self.records.values()))

    def note(self, name: str, records: list[GameRecord]) -> None:
        """An agent has these games now; they are written if it is time."""
        self.records[name] = records
        if time.monotonic() - self._written_at > SAVE_EVERY_S or len(records) == len(self._run.deals):
            self.write()

    def write(self) -> None:
        """Write all games, and what is known from them."""
        rows, _ = _rows(self._run, self.finished, None)
        _write(self._run, self.records, rows, complete=False)
        self._written_at = time.monotonic()


def _play_and_bound(run: Run, games: _Kept, bar: Progress) -> list[DealBound] | None:
    """Play all agents, and find the bounds meanwhile; None without."""
    options = run.options
    if options.no_bound:
        _play(run, games, bar)
        return None
    limits = Limits(max_states=options.max_states)
    with BoundSearch(
        run.rules, run.deals, limits=limits, workers=options.workers, folder=options.bounds, progress=bar
    ) as search:
        search.start()
        _play(run, games, bar, search.keep)
        found = search.result()
    return tightened(found, (record for played in games.finished.values() for record in played))


def _play(run: Run, games: _Kept, bar: Progress, between: Callable[[], object] = lambda: None) -> None:
    """Play agent after agent, as far as they have not played; ``between`` is called when some games have ended."""
    options = run.options

    def on_block(name: str, records: list[GameRecord]) -> None:
        games.note(name, records)
        between()

    for name, agent in run.agents.items():
        if name not in games.finished:
            warm_up(agent, run.rules)
            evaluate_agent(
                agent,
                run.rules,
                run.deals,
                seed=options.seed,
                batch_size=run.batch_size(name),
                max_steps=options.max_steps,
                name=name,
                keep_actions=options.actions,
                progress=bar,
                finished=games.records.get(name, ()),
                on_block=partial(on_block, name),
            )
        print(f"{name}: {len(games.records[name]):,} games", file=sys.stderr)


def _rows(
    run: Run, records: dict[str, list[GameRecord]], bounds: list[DealBound] | None
) -> tuple[list[Row], list[Seeds]]:
    """The lines of the table, and the runs behind those that stand for several."""
    rows, seeds = together(
        {
            name: agent_row(games, run.rules, clairvoyant=run.agents[name].clairvoyant, bounds=bounds)
            for name, games in records.items()
        },
        run.seeds,
    )
    return (rows if bounds is None else [*rows, bound_row(bounds, run.rules)]), seeds


def _write(run: Run, records: dict[str, list[GameRecord]], rows: list[Row], *, complete: bool, **more: Any) -> None:
    told = {"arguments": run.arguments, **run.describe(), "complete": complete}
    write_summary(run.out / SUMMARY_FILE, rows, told, **more)  # first: it says how to go on
    write_records(run.out / RECORDS_FILE, [record for games in records.values() for record in games])


def _report(run: Run, records: dict[str, list[GameRecord]], bounds: list[DealBound] | None, *, complete: bool) -> None:
    rows, seeds = _rows(run, records, bounds)
    classes = deal_classes(run.rules, run.deals.tolist())
    details = [details_of(name, games, classes) for name, games in records.items()]
    of_seeds = {name for runs in run.seeds.values() for name in runs}
    pairs = compare({name: games for name, games in records.items() if name not in of_seeds})
    regret = _regret(run, records) if complete else []
    told = [asdict(each) for each in seeds]
    _write(run, records, rows, complete=complete, seeds=told, details=details, comparisons=pairs, regret=regret)
    if run.about is not None and complete:
        _submit(run, records, rows, run.about)
    unproven = sum(not bound.proven for bound in bounds or [])
    notes = [*footnotes(rows, run.rules, unproven=unproven), *seeds_notes(seeds), *details_notes(details)]
    more = [*([seeds_cells(seeds)] if seeds else []), details_cells(details)]
    if pairs:
        more.append(comparison_cells(pairs))
        notes += comparison_notes(pairs)
    if regret:
        more += regret_cells(regret)
        notes += regret_notes(regret)
    proven = bounds is not None and all(bound.proven for bound in bounds)
    best = [bound.score_high for bound in bounds] if bounds and proven else None
    notes += gap_notes(records, best, run.rules)
    print_table(rows, [*notes, *run.lines(), f"files: {run.out}"], more=more)
    if complete:
        _write_files(run, records, rows, seeds, bounds, details, pairs, regret)


def _regret(run: Run, records: dict[str, list[GameRecord]]) -> list[Regret]:
    """Where each agent's regret comes from, if that was asked for."""
    options = run.options
    if not options.regret:
        return []
    return [
        regret_of(name, games, run.rules, max_states=options.max_states, workers=options.workers, progress=True)
        for name, games in records.items()
    ]


def _write_files(
    run: Run,
    records: dict[str, list[GameRecord]],
    rows: list[Row],
    seeds: list[Seeds],
    bounds: list[DealBound] | None,
    details: list[Details],
    comparisons: list[Comparison],
    regret: list[Regret],
) -> None:
    """Write the page, the figures and the table, if they were asked for."""
    options = run.options
    if options.html is not None or options.tensorboard is not None:
        report = Report(
            rules=run.rules,
            rows=rows,
            seeds=seeds,
            details=details,
            comparisons=comparisons,
            regret=regret,
            games=records,
            bounds=bounds,
            lines=run.lines(),
            summary=read_summary(run.out / SUMMARY_FILE),
            agents=run.agents,
            curves=_curves(run),
            replays=options.replays,
            max_states=options.max_states,
            workers=options.workers,
        )
        if options.html is not None:
            replace_file(options.html, page_text(report))
            print(f"page: {options.html}", file=sys.stderr)
        if options.tensorboard is not None:
            write_tensorboard(options.tensorboard, report)
            print(f"figures: tensorboard --logdir {shlex.quote(str(options.tensorboard))}", file=sys.stderr)
    if options.parquet is not None:
        write_parquet(options.parquet, [record for games in records.values() for record in games])
        print(f"records: {options.parquet}", file=sys.stderr)


def _curves(run: Run) -> dict[str, list[dict[str, Any]]]:
    """How the agents learned, as far as that is known."""
    return {name: curve_of(run.specs[name], agent, run.rules) for name, agent in run.agents.items()}


def _submit(run: Run, records: dict[str, list[GameRecord]], rows: list[Row], about: dict[str, str]) -> None:
    """Write the submission, and check it as anybody would."""
    ((name, games),) = records.items()
    agent = run.agents[name]
    told = {"agent": name, "level": agent.level, "clairvoyant": agent.clairvoyant, **about}
    file: Path = run.options.submission
    described = {**run.describe(), "batch_size": run.batch_size(name)}
    write_submission(file, Submission(told, described, games, list(map(row_values, rows))))
    verify(file, workers=run.options.workers, folder=run.options.bounds)
    print(f"submission: {file}, checked", file=sys.stderr)
