"""Shipped agents: the trained networks that come with the kit, one for each preset that has one, and how they got here.

    python -m agents.shipped runs/pyramid_teacher     the best checkpoint of a run becomes the shipped one of its preset
    python -m agents.shipped --last runs/one_pass_ppo     its last one, where wins are too rare to tell which is best

Such a file holds the weights to play with, the run's settings and versions and its training curve, and those of the run
that it began with; nothing that only a training needs.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from agents.base import SHIPPED, AgentError
from pyramid_env.errors import PyramidError
from pyramid_env.rules import PRESETS, Rules

FOLDER: Final = Path(__file__).parent / "trained"
_SUFFIX: Final = ".safetensors"


def shipped_path(rules: Rules) -> Path:
    """The file of the agent shipped for some rules.

    Raises:
        AgentError: there is none.
    """
    for preset in shipped_presets():
        if PRESETS[preset] == rules:
            return FOLDER / f"{preset}{_SUFFIX}"
    raise AgentError(
        f"{SHIPPED}: no trained agent comes with the kit for {rules}; there are for {', '.join(shipped_presets())}; "
        "train one with train.py"
    )


def shipped_presets() -> list[str]:
    """The presets that an agent is shipped for, in the order of the presets."""
    return [preset for preset in PRESETS if (FOLDER / f"{preset}{_SUFFIX}").is_file()]


def ship(run: Path, file: Path | None = None, *, last: bool = False) -> Path:
    """Write the best checkpoint of a run folder as a file to ship; its path.

    Args:
        run: folder of train.py.
        file: where; None: among the shipped ones, by the name of the preset.
        last: take the last checkpoint instead.

    Raises:
        PyramidError: no run folder, no checkpoint, or its rules are no preset and no file is named.
    """
    from agents.checkpoint import (
        checkpoint_path,
        load_checkpoint,
        save_checkpoint,
    )  # need torch, playing others does not
    from agents.run_folder import RunFolder

    config = RunFolder(run).config()
    checkpoint = load_checkpoint(RunFolder(run).checkpoint_path("latest") if last else checkpoint_path(run))
    if file is None:
        if str(config.game) not in PRESETS:
            raise PyramidError(f"{run}: expected a run on a preset, got {config.game}; name a file to write")
        file = FOLDER / f"{config.game}{_SUFFIX}"
    told = {**_told(run), "steps": checkpoint.progress["steps"], "chosen": "last" if last else "best"}
    save_checkpoint(replace(checkpoint, optimizer={}, training={}, progress=told), file)
    return file


def _told(run: Path) -> dict[str, Any]:
    """How the best checkpoint of a run came about; ``before`` says the same of what the run began with, None if that
    was nothing, or is not known."""
    from agents.checkpoint import checkpoint_path, load_checkpoint
    from agents.run_folder import EVALUATIONS_FILE, RunFolder

    folder = RunFolder(run)
    config, before = folder.config(), None
    if config.init is not None:
        init = Path(config.init)
        first = load_checkpoint(folder.checkpoint_path("init")).progress
        before = _told(init) if (init / "run.json").is_file() else first if "command" in first else None
    circumstances = json.loads((run / "run.json").read_text(encoding="utf-8"))
    curve = (run / EVALUATIONS_FILE).read_text(encoding="utf-8").splitlines()
    return {
        "config": {**asdict(config), "init": config.init and _of_clone(config.init)},
        "seed": config.seed,
        "command": [_of_clone(word) for word in circumstances["command"]],
        "hours": _hours(run, circumstances["started"]),
        "curve": [json.loads(line) for line in curve],
        "steps": load_checkpoint(checkpoint_path(run)).progress["steps"],
        "before": before,
    }


def _of_clone(word: str) -> str:
    """A word of a command line; a folder elsewhere becomes one among the clone's runs."""
    return f"runs/{Path(word).name}" if Path(word).is_absolute() else word


def _hours(run: Path, started: str) -> float:
    """From the start of a run to its last checkpoint."""
    last = max(path.stat().st_mtime for path in (run / "checkpoints").iterdir())
    return round((last - datetime.datetime.fromisoformat(started).timestamp()) / 3600.0, 2)


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m agents.shipped", description="Make a run's agent a shipped one.")
    parser.add_argument("run", type=Path, help="run folder of train.py")
    parser.add_argument("--last", action="store_true", help="the last checkpoint instead of the best")
    parser.add_argument("file", type=Path, nargs="?", help="where (default: the shipped agent of the run's preset)")
    options = parser.parse_args()
    try:
        print(ship(options.run, options.file, last=options.last))
    except (PyramidError, OSError) as error:
        print(f"python -m agents.shipped: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
