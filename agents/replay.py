"""Replay: recorded actions played again through the rules, many games at once, with what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.evaluation import GameRecord
from pyramid_env import functional
from pyramid_env.kernels import CLEARED_IN, MSC, PAR, SCORE, WON
from pyramid_env.moves import move_table
from pyramid_env.rules import Rules

_AT_ONCE = 4_096  # games
_END = np.iinfo(np.int64).min


class Fault(NamedTuple):
    """What is wrong with a recorded game.

    Attributes:
        deal: the deal's number.
        what: in words.
    """

    deal: int
    what: str

    def __str__(self) -> str:
        return f"deal {self.deal}: {self.what}"


def replay_faults(records: Sequence[GameRecord], rules: Rules, max_steps: int) -> list[Fault]:
    """Play recorded games again; what their actions do not make of them.

    Args:
        records: with their actions.
        rules: what was played.
        max_steps: the run's limit.

    Returns:
        One fault a game at most for its actions (not an action, illegal, after the end, stopped too early), else one
        for each figure that differs; none: every figure is what the actions make.
    """
    faults = []
    for start in range(0, len(records), _AT_ONCE):
        faults += _faults(records[start : start + _AT_ONCE], rules, max_steps)
    return faults


def _faults(records: Sequence[GameRecord], rules: Rules, max_steps: int) -> list[Fault]:
    count = len(move_table(rules))
    arrays = functional.arrays(rules, "table", len(records))
    functional.reset(rules, "table", arrays, np.array([record.deal for record in records], np.int64))
    actions = _columns(records)  # (B, T)
    broken: dict[int, str] = {}
    for t in range(actions.shape[1]):
        chosen = actions[:, t]
        for b in np.flatnonzero((chosen != _END) & ((chosen < 0) | (chosen >= count))).tolist():
            broken.setdefault(b, f"move {t + 1}: expected an action from 0 to {count - 1}, got {chosen[b]}")
        playing = (chosen >= 0) & (chosen < count)
        ended = arrays.terminated.copy()
        # A game that makes no move is given a masked action, which changes nothing.
        functional.step(rules, "table", arrays, np.where(playing, chosen, arrays.masks.argmin(axis=1)))
        for b in np.flatnonzero(playing & arrays.illegal).tolist():
            illegal = f"action {chosen[b]} ({_named(rules, chosen[b])}) is illegal"
            said = "the game is over before it" if ended[b] else illegal
            broken.setdefault(b, f"move {t + 1}: {said}")
    faults = []
    for b, (record, facts) in enumerate(zip(records, arrays.facts.tolist(), strict=True)):
        steps = len(record.actions or ())
        over, stopped = bool(arrays.terminated[b]), steps >= max_steps
        if b not in broken and not over and not stopped:
            broken[b] = f"not over after its {steps} actions"
        if b in broken:
            faults.append(Fault(record.deal, broken[b]))
            continue
        made = {
            "won": bool(facts[WON]),
            "cleared_in": facts[CLEARED_IN],
            "score": facts[SCORE],
            "par": facts[PAR],
            "msc": facts[MSC],
            "steps": steps,
            "draws": sum(action == count - 1 for action in record.actions or ()),  # draw is the last action
            "truncated": not over,
        }
        faults += [
            Fault(record.deal, f"{name}: {getattr(record, name)} recorded, {value} by its actions")
            for name, value in made.items()
            if getattr(record, name) != value
        ]
    return faults


def _columns(records: Sequence[GameRecord]) -> NDArray[np.int64]:
    """(B, T) actions, filled up with _END."""
    columns = np.full((len(records), max(len(record.actions or ()) for record in records)), _END, np.int64)
    for b, record in enumerate(records):
        columns[b, : len(record.actions or ())] = record.actions or ()
    return columns


def _named(rules: Rules, action: int) -> str:
    return str(move_table(rules)[action])
