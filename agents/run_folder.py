"""RunFolder: the files of a training run: settings, circumstances, evaluations, checkpoints."""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.checkpoint import SUFFIX, Checkpoint, load_checkpoint, save_checkpoint
from agents.config import Config, load_config
from agents.evaluation import replace_file
from agents.warm_start import first_weights
from pyramid_env.errors import PyramidError

CONFIG_FILE: Final = "config.yaml"
EVALUATIONS_FILE: Final = "evaluations.jsonl"
PACKAGES: Final = ("numpy", "numba", "gymnasium", "torch", "stable-baselines3", "sb3-contrib", "safetensors")


class TrainingError(PyramidError):
    """A run that cannot be started, continued or finished; the message says what to do."""


@dataclass(frozen=True)
class Evaluation:
    """How the policy did on the evaluation deals.

    Attributes:
        steps: environment steps it had trained for.
        games: deals played.
        win_rate: share won.
        mean_score: by the rules' scoring.
        share_of_bound: wins by the wins that are proven possible; None without a bound.
        regret: mean of best proven score less score; None without a bound.
    """

    steps: int
    games: int
    win_rate: float
    mean_score: float
    share_of_bound: float | None
    regret: float | None

    def rank(self, best_by: str) -> tuple[float, float]:
        """What the better one has more of."""
        pair = (self.win_rate, self.mean_score)
        return pair if best_by == "wins" else pair[::-1]


class RunFolder:
    """The folder of one run.

    Attributes:
        path: where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path

    def start(self, config: Config) -> None:
        """Make the folder and write down what is asked for, and the weights to start with if the config has ``init``.

        Raises:
            TrainingError: the folder holds something.
            CheckpointError: what ``init`` names cannot be read or does not fit; there is no folder then.
        """
        path = self.path
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise TrainingError(
                f"{path}: already there, nothing is overwritten; go on with --resume {path}, or choose another --run"
            )
        first = first_weights(config)
        path.mkdir(parents=True, exist_ok=True)
        if first is not None:
            save_checkpoint(first, self.checkpoint_path("init"))
        replace_file(path / CONFIG_FILE, config.to_yaml())
        replace_file(path / "run.json", json.dumps(_circumstances(config), indent=2) + "\n")

    def config(self) -> Config:
        """The settings of the run; TrainingError if this is no run folder."""
        if not (self.path / CONFIG_FILE).is_file():
            raise TrainingError(f"{self.path}: expected a run folder of train.py, found no {CONFIG_FILE} there")
        return load_config(self.path / CONFIG_FILE)

    def checkpoint_path(self, name: str) -> Path:
        """Where checkpoint ``"latest"``, ``"best"`` or ``"init"``, which the run started with, is or will be."""
        return self.path / "checkpoints" / f"{name}{SUFFIX}"

    def checkpoint(self, name: str) -> Checkpoint | None:
        """That checkpoint, if there is one."""
        path = self.checkpoint_path(name)
        return load_checkpoint(path) if path.is_file() else None

    def add_evaluation(self, found: Evaluation) -> None:
        """Write an evaluation behind the others."""
        with (self.path / EVALUATIONS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(found)) + "\n")

    def trim_evaluations(self, done: int) -> int:
        """Drop the evaluations after step ``done``, which a kill has parted from their weights, and a line that it cut
        off; returns the steps of the last one kept, -1 if there is none."""
        path = self.path / EVALUATIONS_FILE
        if not path.is_file():
            return -1
        text, kept, last = path.read_text(encoding="utf-8"), "", -1
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            try:
                steps = int(json.loads(line)["steps"]) if line.endswith("\n") else done + 1
            except (ValueError, TypeError, KeyError):
                raise TrainingError(f"{path}, line {number}: expected an evaluation, got {line.strip()!r}") from None
            if steps <= done:
                kept, last = kept + line, steps
        if kept != text:
            replace_file(path, kept)
        return last

    def keep_evidence(self, steps: int, batch: dict[str, NDArray[Any]]) -> Path:
        """Write the batch at which the network broke."""
        path = self.path / f"nonfinite_{steps}.npz"
        np.savez_compressed(path, **batch)  # type: ignore[arg-type]  # stubs take names for flags
        return path


def _circumstances(config: Config) -> dict[str, Any]:
    """What a reader of the run folder may ask later: seed, versions, machine, command, time."""
    return {
        "rules": str(config.game),
        "algorithm": config.algorithm,
        "seed": config.seed,
        "versions": versions(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "threads": config.threads,
        "command": sys.argv,
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def versions() -> dict[str, str]:
    """Versions of Python, of this package and of what it trains with."""
    found = {"python": platform.python_version()}
    for package in ("pyramid-env", *PACKAGES):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
