"""What hidden cards cost: exactly for small decks, between two bounds for whole games.

    python -m benchmarks.legal [--rules NAME ...] [--objectives win score] [--seconds S] [--whole NAME ...]
                               [--agent NAME] [--deals N] [--trees T] [--every K] [--branches B]

From the repository's root, since the legal player of the second table is one of the agents.

The first table is exact: over all deals of a deck the best clairvoyant result, the best legal result, and the
difference. The second one holds for whole games and for the chance to win:

    legal >=    what the agent has won, of N deals (95 % interval)
    legal <=    what the clairvoyant player wins of the same deals, less what a player loses of it who does not know
                which order of a scenario tree is dealt (T trees). Proven: the inequality between the expected values.
                Estimated: both terms; the end given takes the worse end of both 95 % intervals.

A tree parts after every K cards, into B orders each time.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import pyramid_env as pe
from agents.base import make_agent
from agents.evaluation import evaluate_agent
from agents.statistics import mean_t, wilson
from pyramid_env.solver import Status, solve
from pyramid_env.solver.legal import solve_legal
from pyramid_env.solver.legal_bound import sample_bound

SMALL = (
    "mini:ranks=5,suits=2",
    "mini:ranks=5,suits=2,passes=1",
    "mini:ranks=5,suits=3,passes=1",
    "mini:ranks=5,suits=3",
    "mini:ranks=13,suits=1,passes=1",
    "mini:ranks=13,suits=1",
    "mini_one_pass",
    "mini",
)
WHOLE = ("pyramid", "one_pass")


def main() -> None:
    """Parse, solve, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", nargs="*", default=SMALL, help="small decks for the first table")
    parser.add_argument("--objectives", nargs="+", default=("win", "score"), choices=("win", "score"))
    parser.add_argument("--seconds", type=float, default=600.0, help="limit for each line of the first table")
    parser.add_argument("--whole", nargs="*", default=WHOLE, help="whole games for the second table")
    parser.add_argument("--agent", default="scout", help="the legal player of the second table")
    parser.add_argument("--deals", type=int, default=1000, help="deals 0 .. N-1 for the player and the clairvoyant one")
    parser.add_argument("--trees", type=int, default=50, help="scenario trees, one for each of the deals 0 .. T-1")
    parser.add_argument("--every", type=int, default=4, help="cards between two partings of a tree")
    parser.add_argument("--branches", type=int, default=3, help="orders that a tree parts into each time")
    options = parser.parse_args()
    if options.rules:
        exact(options.rules, options.objectives, options.seconds)
    if options.whole:
        bounded(options.whole, options)


def exact(names: Sequence[str], objectives: Sequence[str], seconds: float) -> None:
    """Print the first table."""
    solve_legal("mini:ranks=5,suits=1,rows=2")  # compiles
    print(f"{'rules':34} {'for':5} {'clairvoyant':>20} {'best legal':>20} {'hidden cards cost':>20}", end="")
    print(f" {'pyramids':>8} {'states':>12} {'seconds':>8}  clairvoyant and legal as fractions")
    for name in names:
        for objective in objectives:
            found = solve_legal(name, objective, max_seconds=seconds)
            figures = (found.clairvoyant, found.value, found.hidden_cost)
            print(f"{name:34} {objective:5}", *(f"{float(figure):20.15f}" for figure in figures), end=" ")
            print(f"{found.pyramids:8} {found.states:12,} {found.seconds:8.1f}", end="  ")
            limit = " (limit: at most, at least)" if found.status is Status.LIMIT else ""
            print(f"{found.clairvoyant} {found.value}{limit}", flush=True)


def bounded(names: Sequence[str], options: argparse.Namespace) -> None:
    """Print the second table."""
    agent = options.agent
    print(
        f"\n{'rules':24} {'legal: ' + agent:>24} {'clairvoyant':>24} {'less on trees':>24} {'legal <=':>9} {'95 %':>7}"
    )
    for name in names:
        rules = pe.rules(name)
        deals = np.arange(options.deals)
        records = evaluate_agent(make_agent(agent, rules), rules, deals, seed=0)
        won = wilson(sum(record.won for record in records), options.deals)
        seen = wilson(sum(solve(int(deal), rules).value for deal in deals), options.deals)
        less = mean_t([tightening(deal, rules, options.every, options.branches) for deal in range(options.trees)])
        print(f"{name:24}", *(f"{e.value:8.2%} {e.low:7.2%} {e.high:7.2%}" for e in (won, seen, less)), end=" ")
        print(f"{seen.value - less.value:9.2%} {seen.high - max(less.low, 0):7.2%}", flush=True)


def tightening(deal: int, rules: pe.Rules, every: int, branches: int) -> float:
    """Share of a tree's orders that the clairvoyant player wins and the one who knows only the tree does not."""
    unseen = rules.stock_size - rules.predealt - rules.stock_top
    tree = dict.fromkeys(range(every, unseen, every), branches)
    found = sample_bound(deal, rules, tree=tree, rng=np.random.default_rng(deal))
    return (found.clairvoyant - found.informed) / found.orders


if __name__ == "__main__":
    main()
