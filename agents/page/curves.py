"""Curves: how an agent learned, read from its run folder or from its checkpoint, where that tells it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agents.base import SHIPPED, Agent
from pyramid_env.errors import PyramidError
from pyramid_env.rules import Rules

Curve = list[dict[str, Any]]
"""Evaluations during a training, in their order: ``steps``, ``games``, ``win_rate`` and more (agents.run_folder)."""


def curve_of(spec: str, agent: Agent, rules: Rules) -> Curve:
    """The learning curve of an agent; empty where none is kept.

    Args:
        spec: what the agent was made from: a name, a run folder, a checkpoint file, perhaps with ``:sampled``.
        agent: as it was made; those that cannot be trained have no curve.
        rules: what it plays.

    Raises:
        PyramidError: a run folder whose evaluations cannot be read.
    """
    if type(agent).__module__ not in ("agents.token_agent", "agents.sb3"):
        return []
    from agents.checkpoint import load_checkpoint  # needs torch, which such an agent has loaded
    from agents.run_folder import EVALUATIONS_FILE
    from agents.shipped import shipped_path

    path = Path(spec)
    if not path.exists():
        path = Path(spec.rpartition(":")[0])
    if spec.partition(":")[0] == SHIPPED:
        path = shipped_path(rules)
    if path.is_file():
        told = load_checkpoint(path).progress.get("curve")
        if told is not None:
            return list(told)
        path = path.parent.parent  # of a run folder's checkpoints
    file = path / EVALUATIONS_FILE
    if not file.is_file():
        return []
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    try:
        return [json.loads(line) for line in lines if line.endswith("\n")]  # a run that goes on may be writing the last
    except ValueError as error:
        raise PyramidError(f"{file}: expected an evaluation a line: {error}") from None
