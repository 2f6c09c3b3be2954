"""Train an agent: ``python train.py --config configs/pyramid_small.yaml [--run runs/name] [key=value ...]``."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports ends the process, without a traceback

from agents.config import load_config
from pyramid_env.errors import PyramidError

if TYPE_CHECKING:
    from agents.training import TrainingResult

BAD_CALL: Final = 2
INTERRUPTED: Final = 130
"""Exit codes: a mistake in the call, or a run that cannot go on; stopped by Ctrl-C, as shells know it."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="train.py",
        description="Train an agent. The run folder gets config, checkpoints, evaluations and TensorBoard logs.",
        epilog="example: python train.py --config configs/smoke.yaml --run runs/try seed=1 ppo.learning_rate=3e-4",
    )
    what = made.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", type=Path, help="YAML file with settings; those left out keep their defaults")
    what.add_argument("--resume", type=Path, metavar="RUN", help="go on with the run in this folder")
    made.add_argument("--run", type=Path, help="new folder for the run (default: runs/ and the config's name)")
    made.add_argument(
        "--init", metavar="PATH", help="start with the weights of this run folder or checkpoint of ours; as init=PATH"
    )
    made.add_argument(
        "settings", nargs="*", metavar="key=value", help="settings to change, such as ppo.learning_rate=3e-4"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    reader = parser()
    options = reader.parse_intermixed_args(arguments)
    if options.resume is not None and (options.run is not None or options.init is not None or options.settings):
        reader.error(
            "--resume takes the run's own folder and settings; --run, --init and key=value belong to a new run"
        )
    try:
        result = _work(options)
    except (PyramidError, OSError) as error:
        print(f"train.py: error: {error}", file=sys.stderr)
        return BAD_CALL
    except KeyboardInterrupt:
        print("train.py: stopped at once; --resume goes on from the latest checkpoint, if any", file=sys.stderr)
        return INTERRUPTED
    if not result.finished:
        return INTERRUPTED
    rate = f", {result.steps_per_second:,.0f} a second in this call" if result.steps_per_second else ""
    print(f"done: {result.steps:,} steps{rate}")
    print(f"measure it with: {_measure(result)}")
    return 0


def _measure(result: TrainingResult) -> str:
    """The command that compares the finished run with untrained agents."""
    call = ["--agents", "random", "greedy", str(result.run), "--rules", result.rules, "--deals", "test:0-999"]
    return shlex.join(["python", "evaluate.py", *call])


def _work(options: argparse.Namespace) -> TrainingResult:
    # Here, because the processes that search for bounds import this file anew and have no use for torch.
    from agents.training import resume, train

    # The bar belongs to a terminal; where lines go to a file they stay plain.
    progress = sys.stdout.isatty()
    if options.resume is not None:
        return resume(options.resume, say=_say, progress=progress)
    init = [] if options.init is None else [f"init={json.dumps(options.init)}"]
    config = load_config(options.config, [*options.settings, *init])
    run = options.run or Path("runs") / options.config.stem
    return train(config, run, say=_say, progress=progress)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
