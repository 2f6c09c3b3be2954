"""Winnability: how many deals can be won with every card known, beside the rates that other programs published.

    python benchmarks/winnability.py [--deals N] [--seconds S] [--workers W] [--folder DIR] [--rules TEXT ...]

Deals 0 .. N-1, decided by the solver; a row stops early after S seconds. With a folder the answers are kept, so that an
interrupted study goes on where it was, and more deals can be added later. The output is a Markdown table. Intervals are
Wilson's, 95 %; deals left undecided by the solver's limit count both ways. A row agrees if its interval and the
published one overlap.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pyramid_env as pe
from pyramid_env.solver import solve_many

CHUNK = 1_000  # deals of one file, and of one look at the clock
Z = 1.959964  # two-sided 95 % of the normal distribution


class Published(NamedTuple):
    """A rate that other programs measured, in percent, with the rules that it stands for."""

    rules: str
    text: str
    low: float
    high: float
    deals: int | None = None  # of a range of estimates: deals of the largest sample, whose error widens the range


PUBLISHED = (
    Published("pyramid", "65.0–66.5", 65.0, 66.5, 2_800),
    Published("pyramid:passes=2", "48.5–49", 48.5, 49.0, 2_800),
    Published("pyramid:passes=unlimited", "67 ± 5", 62.0, 72.0),
    Published("one_pass", "3.88 ± 0.22", 3.66, 4.10),
    Published("microsoft", "66.47 ± 0.25", 66.22, 66.72),
    Published("microsoft:passes=1", "9.39 ± 0.10", 9.29, 9.49),
    Published("microsoft:passes=2", "59.2 ± 0.5", 58.7, 59.7),
    Published("microsoft:passes=unlimited", "66.74 ± 0.29", 66.45, 67.03),
    Published("classic", "7.08 ± 0.22", 6.86, 7.30),
    Published("till_dawn", "63–67", 63.0, 67.0),
    Published("pysol", "63–67", 63.0, 67.0),
    Published("overlap", "83–84", 83.0, 84.0),
    Published("solitaire13_three_piles", "44.3 ± 2.5", 41.8, 46.8),
    Published("solitaire13_three_piles:pair_waste_tops=false", "22.2 ± 2.1", 20.1, 24.3),
    Published("tuts_tomb", "56 ± 5", 51.0, 61.0),
)
ELSEWHERE = (
    Published("microsoft:passes=1", "one pass: 9.02", 9.02, 9.02),
    Published("classic", "all 52 cards in one pass: 6.80", 6.80, 6.80),
    Published("microsoft:passes=unlimited", "unlimited: 66.87", 66.87, 66.87),
)
"""Of 100 million deals, rules not fully stated."""


class Count(NamedTuple):
    """What the solver said about the deals of a row."""

    deals: int
    won: int
    undecided: int
    pace: float | None  # deals a CPU second, of chunks that this call solved from the first deal on; None: of none

    @property
    def interval(self) -> tuple[float, float]:
        """Percent; the low end takes undecided deals for lost, the high end for won."""
        return wilson(self.won, self.deals)[0], wilson(self.won + self.undecided, self.deals)[1]


def main() -> None:
    """Parse, solve row by row, print."""
    options = parser().parse_args()
    solve_many(range(2), "mini", workers=1)  # compiles
    chosen = options.rules or [published.rules for published in PUBLISHED]
    print("| rules | deals | can be won | 95 % | undecided | published | agrees | deals a CPU second |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    counts = {}
    try:
        for text in chosen:
            rules = str(pe.rules(text))
            counts[rules] = count(rules, options)
            print(row(rules, counts[rules]), flush=True)
    except KeyboardInterrupt:
        print("interrupted" + (f"; go on with --folder {options.folder}" if options.folder else ""), file=sys.stderr)
    for published in ELSEWHERE:
        if published.rules in counts:
            low, high = counts[published.rules].interval
            lies = "inside" if low <= published.low <= high else "outside"
            print(f"\nPublished elsewhere, {published.text} % (of 100 million deals, rules not fully stated): "
                  f"{lies} our {low:.2f}–{high:.2f} for `{published.rules}`.")  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--deals", type=int, default=100_000, help="for each row (default: 100000)")
    made.add_argument("--seconds", type=float, default=600.0, help="for each row (default: 600)")
    made.add_argument("--workers", type=int, help="threads (default: one a core)")
    made.add_argument("--folder", type=Path, help="keep the answers there, and go on from them")
    made.add_argument("--max-states", type=int, default=20_000_000, help="positions stored for one deal")
    made.add_argument("--rules", nargs="+", help="rows, such as microsoft:passes=1 (default: all published ones)")
    return made


def count(rules: str, options: argparse.Namespace) -> Count:
    """Solve the deals of a row, chunk after chunk, until all are done or time is out."""
    won = undecided = done = solved = 0
    cpu, end = 0.0, time.monotonic() + options.seconds
    while done < options.deals and time.monotonic() < end:
        deals = range(done, min(done + CHUNK, options.deals))
        file = None if options.folder is None else options.folder / chunk_name(rules, deals)
        fresh = file is None or not any(file.parent.glob(f"{file.name}*"))  # the file, or a journal of it
        began = time.process_time()
        solutions = solve_many(deals, rules, workers=options.workers, file=file, max_states=options.max_states)
        if fresh:
            solved += len(deals)
            cpu += time.process_time() - began
        done += len(deals)
        won += int((solutions.value == 1).sum())
        undecided += int((solutions.value != solutions.bound).sum())
        if sys.stderr.isatty():
            print(f"\r{rules}: {done:,} of {options.deals:,} deals ", end="\r", file=sys.stderr, flush=True)
    return Count(done, won, undecided, solved / cpu if solved else None)


def chunk_name(rules: str, deals: range) -> str:
    """The file's name of a chunk of deals."""
    return f"{re.sub(r'[^a-z0-9]+', '-', rules)}_{deals.start}_{deals.stop}.npz"


def row(rules: str, found: Count) -> str:
    """One line of the table."""
    low, high = found.interval
    share = f"{100 * found.won / found.deals:.2f}"
    if found.undecided:
        share += f"–{100 * (found.won + found.undecided) / found.deals:.2f}"
    published = next((each for each in PUBLISHED if each.rules == rules), None)
    text = agrees = "–"
    if published is not None:
        theirs = interval_of(published)
        text = f"{published.text} %"
        agrees = "yes" if low <= theirs[1] and theirs[0] <= high else "no"
    pace = "–" if found.pace is None else f"{found.pace:,.0f}"
    return (
        f"| `{rules}` | {found.deals:,} | {share} % | {low:.2f}–{high:.2f} | {found.undecided} | {text} | {agrees} "
        f"| {pace} |"
    )


def interval_of(published: Published) -> tuple[float, float]:
    """The published interval in percent; a range of estimates is widened by the error of its largest sample."""
    if published.deals is None:
        return published.low, published.high
    n = published.deals
    return wilson(published.low / 100 * n, n)[0], wilson(published.high / 100 * n, n)[1]


def wilson(won: float, deals: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a share, in percent."""
    share, square = won / deals, Z * Z / deals
    middle = (share + square / 2) / (1 + square)
    half = Z / (1 + square) * (share * (1 - share) / deals + square / (4 * deals)) ** 0.5
    return 100 * max(0.0, middle - half), 100 * min(1.0, middle + half)


if __name__ == "__main__":
    main()
