"""Solver benchmark: time and positions a deal for each preset and objective, on one core.

    python benchmarks/bench_solver.py [--deals N] [--seconds S] [--rules NAME ...] [--objectives NAME ...]

Deals 0 .. N-1. A kind that takes long stops after S seconds, and says after how many deals.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import pyramid_env as pe
from pyramid_env.rules import PRESETS
from pyramid_env.solver import Objective, Status, solve


def main() -> None:
    """Parse, solve, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deals", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0, help="for each line of the table")
    parser.add_argument("--rules", nargs="+", default=list(PRESETS))
    parser.add_argument("--objectives", nargs="+", default=list(Objective))
    options = parser.parse_args()
    solve(pe.Deal.number(0, "mini"), "mini")  # compiles
    print(
        f"{'rules':44} {'objective':9} {'deals':>5} {'deals/s':>8} {'median ms':>9} {'95 % ms':>9} {'slowest s':>9}",
        end="",
    )
    print(f" {'positions':>9} {'proven':>6} {'won':>6} {'mean value':>10}")
    for name in options.rules:
        for objective in options.objectives:
            print(line(name, objective, options.deals, options.seconds), flush=True)


def line(name: str, objective: str, deals: int, budget_s: float) -> str:
    """Solve and describe one kind of question."""
    rules = pe.rules(name)
    seconds: list[float] = []
    solutions = []
    while len(solutions) < deals and sum(seconds) < budget_s:
        deal = pe.Deal.number(len(solutions), rules)
        started = time.process_time()
        solutions.append(solve(deal, rules, objective, max_seconds=budget_s))
        seconds.append(time.process_time() - started)
    median, high = np.percentile(seconds, [50, 95]) * 1000
    proven = sum(solution.is_proven for solution in solutions)
    won = sum(solution.status is Status.OPTIMAL and solution.value > 0 for solution in solutions)
    count = len(solutions)
    return (
        f"{name:44} {objective:9} {count:5} {count / sum(seconds):8.1f} {median:9.2f} {high:9.1f} {max(seconds):9.2f}"
        f" {np.mean([s.states for s in solutions]):9.0f} {proven / count:6.1%} {won / count:6.1%}"
        f" {np.mean([s.value for s in solutions]):10.2f}"
    )


if __name__ == "__main__":
    main()
