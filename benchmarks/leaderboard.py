"""The leaderboard: every agent of the kit on the same test deals, by evaluate.py, as benchmarks/RESULTS.md; its first
table stands in README.md too.

    python benchmarks/leaderboard.py                   all presets that an agent is shipped for
    python benchmarks/leaderboard.py pyramid --planner 2000

Each table's figures lie in results/leaderboard/ as evaluate.py writes them. A preset whose figures are there is not
played again, so that an interrupted call goes on where it stopped; remove its folder to play it anew.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from agents.evaluation import replace_file  # noqa: E402 - the folder above is not installed
from agents.report import markdown_table  # noqa: E402 - as above
from agents.shipped import shipped_path, shipped_presets  # noqa: E402 - as above
from pyramid_env.rules import rules as read_rules  # noqa: E402 - as above

RESULTS: Final = ROOT / "results" / "leaderboard"
FILE: Final = ROOT / "benchmarks" / "RESULTS.md"
README: Final = ROOT / "README.md"
MARKS: Final = ("<!-- leaderboard -->", "<!-- end of leaderboard -->")
"""What stands around the table in the README, each in a line of its own."""
QUICK: Final = ("random", "greedy", "tips", "scout", "shipped")
HARD: Final = ("double_pyramid",)
"""Presets that take the solver too long for 10,000 deals: their tables go without scout, planner and bound."""

HEAD: Final = """# Results

Every agent on the same numbered test deals, which no training touches. Made by `python benchmarks/leaderboard.py`,
which calls the command below each table; intervals are 95 % (Wilson's for wins, Student's t for scores). `shipped` is
the trained network that comes with the kit (`agents/trained/`): it plays without search, from what a player has seen.
`bound` is the solver's, with all cards open: no player has to reach it. The planner takes seconds a game: a second
table of a preset, where there is one, has it on the first of the same deals; its other figures stand in the README.
Seconds are by the clock; the bound's are the solver's, whenever it ran.
"""


def main() -> int:
    """Play, then write the file."""
    parser = argparse.ArgumentParser(description="Measure every agent on the test deals.")
    parser.add_argument("presets", nargs="*", help="default: all that an agent is shipped for")
    parser.add_argument("--deals", type=int, default=10_000, help="test deals for the quick agents")
    parser.add_argument("--planner", type=int, default=1_000, help="test deals for the planner, 0: none")
    options = parser.parse_args()
    presets = options.presets or shipped_presets()
    for preset in presets:
        quick = tuple(agent for agent in QUICK if agent != "scout" or preset not in HARD)
        play(preset, quick, options.deals, RESULTS / preset)
        if options.planner and preset not in HARD:
            play(preset, (*QUICK, "planner"), options.planner, RESULTS / f"{preset}-planner")
    before = FILE.read_text(encoding="utf-8") if FILE.is_file() else ""
    sections = {preset: section(preset) if measured_here(preset) else old_section(preset, before)
                for preset in shipped_presets()}  # fmt: skip
    table_of_all = glance(shipped_presets(), before)
    overview = f"Deals won, and in brackets the mean score:\n\n{table_of_all}\n"
    replace_file(FILE, "\n".join([HEAD, overview, *filter(None, sections.values())]))
    replace_file(README, between_marks(README.read_text(encoding="utf-8"), table_of_all))
    kept = [preset for preset, text in sections.items() if text and not measured_here(preset)]
    if kept:
        print(f"as they were, since {RESULTS} has no figures of them: {', '.join(kept)}", file=sys.stderr)
    return 0


def measured_here(preset: str) -> bool:
    """Are figures of a preset there?"""
    return (RESULTS / preset / "summary.json").is_file()


def old_section(preset: str, before: str) -> str:
    """A preset's part of the file as it was; empty where it had none."""
    _, found, rest = before.partition(f"## {preset}\n")
    return found + rest.partition("\n## ")[0].rstrip("\n") + "\n" if found else ""


def command(preset: str, agents: tuple[str, ...], deals: int) -> list[str]:
    """The call of evaluate.py."""
    bound = ["--no-bound"] if preset in HARD else []
    return ["evaluate.py", "--agents", *agents, "--rules", preset, "--deals", f"test:0-{deals - 1}", *bound]


def play(preset: str, agents: tuple[str, ...], deals: int, out: Path) -> None:
    """Measure unless it has been done."""
    summary = out / "summary.json"
    if not (summary.is_file() and json.loads(summary.read_text(encoding="utf-8"))["complete"]):
        call = [*command(preset, agents, deals), "--out", str(out), "--overwrite"]
        subprocess.run([sys.executable, *call], cwd=ROOT, check=True)


def glance(presets: list[str], before: str = "") -> str:
    """Wins and scores of the quick agents: a line a preset, as it was ``before`` where no figures of it are there."""
    lines: list[list[str]] = []
    for preset in presets:
        old = next((line for line in before.splitlines() if line.startswith(f"| `{preset}` |")), None)
        if not measured_here(preset):
            lines += [] if old is None else [[cell.strip() for cell in old.strip("|").split("|")]]
        else:
            rows = json.loads((RESULTS / preset / "summary.json").read_text(encoding="utf-8"))["rows"]
            told = {row["name"]: (row["wins"]["value"], row["score"]["value"]) for row in rows}
            cells = [
                f"{span(told[name][0], 100.0, 1)} % ({span(told[name][1], 1.0)})" if name in told else "–"
                for name in (*QUICK, "bound")
            ]
            lines.append([f"`{preset}`", *cells])
    return markdown_table(["rules", *QUICK, "bound"], lines)


def between_marks(text: str, table: str) -> str:
    """A text with a table in place of what stands between MARKS; ValueError if they are not there once each."""
    if [text.count(mark) for mark in MARKS] != [1, 1] or text.index(MARKS[0]) > text.index(MARKS[1]):
        raise ValueError(f"expected {MARKS[0]}, and {MARKS[1]} behind it, once each")
    before, after = text.partition(MARKS[0])[0], text.partition(MARKS[1])[2]
    return f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{after}"


def section(preset: str) -> str:
    """A preset's part of the file."""
    parts = [f"## {preset}\n", origin(preset)]
    for folder in (RESULTS / preset, RESULTS / f"{preset}-planner"):
        if (folder / "summary.json").is_file():
            summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
            called = command(preset, tuple(row["name"] for row in agents_of(summary)), agents_of(summary)[0]["games"])
            parts += [table(summary), f"`python {' '.join(called)}`\n"]
    return "\n".join(parts)


def origin(preset: str) -> str:
    """How the shipped agent was made."""
    from agents.checkpoint import load_checkpoint

    told: dict[str, Any] | None = load_checkpoint(shipped_path(read_rules(preset))).progress
    found, called = [], "Shipped agent"
    while told is not None:
        curve = ", ".join(f"{point['steps'] / 1e6:.1f} M {point['win_rate']:.1%}" for point in told["curve"])
        call, deals = f"`python {' '.join(told['command'])}`", told["config"]["evaluation"]["deals"]
        chosen = f"the {told.get('chosen', 'best')} of its checkpoints, at {told['steps']:,} steps"
        found.append(
            f"{called}: {call}, {told['hours']:.1f} hours, seed {told['seed']}; {chosen}. Wins of {deals} on the way: "
            f"{curve}.\n"
        )
        told, called = told.get("before"), "It began with"
    return "\n".join(found)


def agents_of(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of players."""
    return [row for row in summary["rows"] if row["name"] != "bound"]


def table(summary: dict[str, Any]) -> str:
    """A summary as a Markdown table."""
    heads = ["agent", "deals", "wins %", "95 %", "score", "95 %", "of winnable %", "regret", "seconds"]
    lines = []
    for row in summary["rows"]:
        wins, score = row["wins"], row["score"]
        cells = [
            row["name"],
            f"{row['games']:,}",
            *measured(wins, 100.0, 2),
            *measured(score, 1.0, 1),
            span(row["of_winnable"], 100.0),
            span(row["regret"], 1.0),
            f"{row['seconds']:.0f}",
        ]
        lines.append(cells)
    return markdown_table(heads, lines) + "\n"


def measured(found: dict[str, Any], factor: float, digits: int) -> tuple[str, str]:
    """A figure and its interval."""
    low, high = (found["interval"][end] for end in ("low", "high"))
    low, high = (math.nan if end is None else end * factor for end in (low, high))
    return span(found["value"], factor, digits), f"{low:.{digits}f} .. {high:.{digits}f}"


def span(found: dict[str, float] | None, factor: float, digits: int = 1) -> str:
    """A figure; both ends where they differ."""
    if found is None:
        return "–"
    low, high = (f"{found[end] * factor:.{digits}f}" for end in ("low", "high"))
    return low if low == high else f"{low} .. {high}"


if __name__ == "__main__":
    sys.exit(main())
