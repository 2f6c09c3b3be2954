"""Solver benchmark: time, positions and memory of a deal for each preset and objective, on one core.

    python benchmarks/bench_solver.py [--deals N] [--seconds S] [--rules TEXT ...] [--objectives NAME ...]

Deals 0 .. N-1; a row stops early after S seconds, and says after how many deals. Each row runs in a process of its own,
so that its memory is its own: the highest resident size less that before the first deal. Deals a second are by CPU
time of the whole batch; times of a deal are its Solution's seconds. A deal that meets a limit is undecided.

At the end of a row the plain exhaustive search of the tests (tests/bruteforce.py) solves the same deals from 0 on for
a while. ``plain`` is how many it could decide within its own limit of positions, ``x`` how many times as long it took
for these than the solver; the answers must be the same.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pyramid_env as pe
from pyramid_env.rules import PRESETS
from pyramid_env.solver import Objective, Status, solve_many
from pyramid_env.solver.blocks import STATUSES

_LIMIT = STATUSES.index(Status.LIMIT)
TESTS = Path(__file__).resolve().parent.parent / "tests"
GROWTH = 4  # a batch has at most so many times the deals of the one before, whose pace it is sized by
COLUMNS = (
    ("rules", 44), ("objective", 9), ("deals", 7), ("deals/s", 8), ("median ms", 9), ("95 % ms", 9), ("99 % ms", 9),
    ("slowest ms", 10), ("states", 9), ("undecided", 9), ("MiB", 6), ("plain", 5), ("x", 7),
)  # fmt: skip


class Row(NamedTuple):
    """What was measured of one kind of question."""

    rules: str
    objective: str
    seconds: NDArray[np.float64]  # (n,) of each deal
    states: NDArray[np.int64]  # (n,) of each deal
    undecided: int
    cpu_s: float  # of all of them
    mebibytes: float | None  # None where the system doesn't tell
    plain_deals: int
    plain_factor: float | None  # None if the plain search decided none

    def __str__(self) -> str:
        median, high, higher, slowest = np.percentile(self.seconds, [50, 95, 99, 100]) * 1000
        count = self.seconds.size
        texts = (
            self.rules, self.objective, f"{count:,}", f"{count / self.cpu_s:,.1f}", f"{median:.2f}", f"{high:.2f}",
            f"{higher:.1f}", f"{slowest:.1f}", f"{self.states.mean():,.0f}", f"{self.undecided}",
            "-" if self.mebibytes is None else f"{self.mebibytes:.0f}", f"{self.plain_deals}",
            "-" if self.plain_factor is None else f"{self.plain_factor:,.0f}",
        )  # fmt: skip
        return line(texts)


def main() -> None:
    """Parse, measure row by row, print."""
    options = parser().parse_args()
    solve_many(range(2), "mini", workers=1)  # compiles, once for all rows
    print(line([name for name, _ in COLUMNS]), flush=True)
    for rules in options.rules:
        for objective in options.objectives:
            # A process that is new for each row, not forked: forking beside the solver's threads isn't safe.
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
                print(process.submit(measure, str(pe.rules(rules)), objective, options).result(), flush=True)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--deals", type=int, default=1_000, help="of each row (default: 1000)")
    made.add_argument("--seconds", type=float, default=20.0, help="of each row (default: 20)")
    made.add_argument("--rules", nargs="+", default=list(PRESETS), help="default: every preset")
    made.add_argument("--objectives", nargs="+", default=[str(each) for each in Objective], help="default: all")
    made.add_argument("--max-states", type=int, default=5_000_000, help="positions stored for one deal")
    made.add_argument("--max-seconds", type=float, default=10.0, help="for one deal")
    made.add_argument(
        "--plain-seconds", type=float, default=20.0, help="for the plain search in a row, 0: leave it out"
    )
    made.add_argument("--plain-positions", type=int, default=3_000_000, help="limit of the plain search for one deal")
    return made


def line(texts: Any) -> str:
    """Texts in the columns of the table, the first two to the left."""
    cells = [
        text.ljust(width) if column < 2 else text.rjust(width)
        for column, (text, (_, width)) in enumerate(zip(texts, COLUMNS, strict=True))
    ]
    return " ".join(cells)


def measure(rules: str, objective: str, options: argparse.Namespace) -> Row:
    """One row, in a process of its own."""
    solve_many(range(2), "mini", objective, workers=1)  # loads what was compiled
    before = highest_mebibytes()
    limits = {"max_states": options.max_states, "max_seconds": options.max_seconds}
    parts = []
    done, size, cpu = 0, 1, 0.0
    while done < options.deals and cpu < options.seconds:
        began = time.process_time()
        parts.append(solve_many(range(done, done + size), rules, objective, workers=1, **limits))
        took = max(time.process_time() - began, 1e-9)
        cpu += took
        done += size
        left = options.seconds - cpu
        size = max(1, min(GROWTH * size, int(left * size / took), options.deals - done))
    mebibytes = None if before is None else max(0.0, (highest_mebibytes() or 0.0) - before)
    seconds = np.concatenate([part.seconds for part in parts])
    values = np.concatenate([np.where(part.status == _LIMIT, None, part.value) for part in parts])
    plain_deals, factor = plainly(rules, objective, values, seconds, options)
    states = np.concatenate([part.states for part in parts])
    undecided = sum(value is None for value in values)
    return Row(rules, objective, seconds, states, undecided, cpu, mebibytes, plain_deals, factor)


def plainly(
    rules: str, objective: str, values: NDArray[Any], seconds: NDArray[np.float64], options: argparse.Namespace
) -> tuple[int, float | None]:
    """How many of the deals the plain search decides in its time, and how many times as long it takes for them.

    Args:
        rules, objective: the question.
        values: (n,) the solver's answers, None where it gave none.
        seconds: (n,) the solver's times.
        options: the command line.
    """
    sys.path.insert(0, str(TESTS))
    import bruteforce

    game = pe.rules(rules)
    asked = game.scoring if objective == "score" else objective
    if options.plain_seconds <= 0 or asked == "none":
        return 0, None
    bruteforce.solve(pe.Deal.number(0, "mini").ranks, pe.rules("mini"), asked, plain=True)  # compiles
    theirs = ours = spent = 0.0
    decided = 0
    for deal, value in enumerate(values):
        if spent > options.plain_seconds:
            break
        began = time.process_time()
        answer = bruteforce.solve(pe.Deal.number(deal, game).ranks, game, asked, options.plain_positions, plain=True)
        took = time.process_time() - began
        spent += took
        if answer is None or value is None:
            continue
        if answer != value:
            raise SystemExit(f"deal {deal} of {rules}, {objective}: the solver says {value}, plain search {answer}")
        decided, theirs, ours = decided + 1, theirs + took, ours + float(seconds[deal])
    return decided, theirs / ours if decided else None


def highest_mebibytes() -> float | None:
    """The highest resident size of this process so far; None where the system doesn't tell."""
    status = Path("/proc/self/status")  # Linux; its getrusage would count the process that started this one
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        return None if found is None else int(found[1]) / 1024
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS: bytes


if __name__ == "__main__":
    main()
