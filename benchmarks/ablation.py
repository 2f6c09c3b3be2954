"""What each way of learning from the solver brings on `pyramid`: short runs that differ in one switch each.

    python benchmarks/ablation.py              all variants, one after the other; a table at the end
    python benchmarks/ablation.py --only ppo teacher

Own PPO with each switch alone, then the algorithms that learn from marks. Steps are chosen so that all take about as
much CPU time, which is measured (the solver's included). Wins are those of validation deals 0-1999, at the end of the
run. Finished runs, in runs/ablation/, are not made again.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from agents.statistics import wilson  # noqa: E402 - the folder above is not installed

RUNS: Final = ROOT / "runs" / "ablation"
DEALS: Final = 2_000


class Variant(NamedTuple):
    """A run: a config and what is changed in it."""

    name: str
    what: str
    config: str
    changes: tuple[str, ...]


def _ppo(name: str, what: str, *changes: str, steps: int = 1_500_000) -> Variant:
    return Variant(name, what, "pyramid", (f"total_steps={steps}", "env.reward=win", *changes))


def _teacher(name: str, what: str, *changes: str, steps: int = 500_000) -> Variant:
    return Variant(name, what, "pyramid_teacher", (f"total_steps={steps}", *changes))


GROUPS: Final = ("network.cards=0", "network.half=false", "network.groups=128", "network.group_blocks=3")
VARIANTS: Final = (
    _ppo("ppo", "own PPO, the win alone as reward"),
    _ppo("shaped", "and potential-based shaping", "env.reward=shaped"),
    _ppo("winnable", "and winnable deals alone", "env.deals=winnable"),
    _ppo("ordered", "and winnable deals, easy ones first", "env.deals=ordered"),
    _ppo("starts", "and half of the games begun on the solver's lines", "env.starts.share=0.5"),
    _ppo("critic", "and a critic that sees all cards", "ppo.asymmetric_critic=true", steps=1_000_000),
    _ppo("choices", "and moves without a choice left out", "env.skip_forced=true"),
    _ppo(
        "cards", "and the cards as a graph, learning in bfloat16", "network.groups=0", "network.cards=64",
        "network.half=true", steps=250_000,
    ),
    _ppo(
        "together", "shaping, starts and critic together", "env.reward=shaped", "env.starts.share=0.5",
        "ppo.asymmetric_critic=true", steps=1_000_000,
    ),
    Variant("imitation", "behaviour cloning of `tips`", "pyramid_imitation", ("total_steps=1_000_000",)),
    Variant(
        "finetune", "PPO from there on", "pyramid_finetune",
        ("init=runs/ablation/imitation", "total_steps=1_000_000"),
    ),
    _teacher("teacher-groups", "value labels, pairs of ranks as groups", *GROUPS),
    _teacher("teacher", "value labels, the cards as a graph"),
    _teacher("teacher-worlds", "and marks averaged over 8 orders of the hidden cards", "teacher.worlds=8"),
)  # fmt: skip


def main() -> int:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description="Short runs that differ in one switch each.")
    parser.add_argument("--only", nargs="+", choices=[variant.name for variant in VARIANTS])
    options = parser.parse_args()
    chosen = [variant for variant in VARIANTS if not options.only or variant.name in options.only]
    for variant in chosen:
        run(variant)
    print("| run | what | steps | CPU seconds | wins % | 95 % |\n|---|---|---|---|---|---|")
    for variant in chosen:
        print(line(variant))
    return 0


def run(variant: Variant) -> None:
    """Train, and keep the CPU time that it took."""
    folder = RUNS / variant.name
    if (folder / "cpu_seconds").is_file():
        return
    call = ["train.py", "--config", f"configs/{variant.config}.yaml", "--run", str(folder)]
    fixed = ["threads=1", f"evaluation.deals=validation:0-{DEALS - 1}", "evaluation.every_steps=0"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *call, *fixed, *variant.changes], cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    (folder / "cpu_seconds").write_text(f"{seconds:.0f}\n", encoding="utf-8")


def line(variant: Variant) -> str:
    """A variant's line of the table."""
    folder = RUNS / variant.name
    last = json.loads((folder / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    wins = wilson(round(last["win_rate"] * last["games"]), last["games"])
    seconds = (folder / "cpu_seconds").read_text(encoding="utf-8").strip()
    value, low, high = (f"{100.0 * share:.1f}" for share in wins)
    cells = [variant.name, variant.what, f"{last['steps']:,}", seconds, value, f"{low} .. {high}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
