"""Evaluation: plays an agent over numbered deals on the native vector environment and keeps one record a game."""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agents.base import Agent
from pyramid_env.deal import MAX_NUMBER
from pyramid_env.errors import PyramidError
from pyramid_env.kernels import CLEARED_IN, MSC, PAR, SCORE, WON
from pyramid_env.moves import move_table
from pyramid_env.rules import Rules
from pyramid_env.vector_env import PyramidVectorEnv

MAX_STEPS: Final = 2000
"""Far above the longest game with a last pass (double_pyramid: 224 steps); only endless declining meets it."""

_WARM_UP: Final = np.array([MAX_NUMBER])


@dataclass(frozen=True)
class GameRecord:
    """One game of one agent.

    Attributes:
        agent: the agent's name.
        rules: the rules as text; ``pyramid_env.rules`` reads it.
        deal: the deal's number.
        seed: the seed of the run.
        won: was the goal reached?
        cleared_in: pass of the clear, 0 = never (4 stands for every later pass).
        score: final score by the rules' scoring.
        par: final par score, whatever the scoring.
        msc: final msc score, whatever the scoring.
        steps: moves made: removals, draws and recycles.
        draws: draws and recycles among them.
        truncated: the step limit stopped the game; it counts as not won, with the score of its last position.
        seconds: its share of the time that its batch took, agent and environment together.
        actions: the action indices in order, or None if they were not kept.
    """

    agent: str
    rules: str
    deal: int
    seed: int
    won: bool
    cleared_in: int
    score: int
    par: int
    msc: int
    steps: int
    draws: int
    truncated: bool
    seconds: float
    actions: tuple[int, ...] | None = None


def evaluate_agent(
    agent: Agent,
    rules: Rules,
    deals: NDArray[np.int64],
    *,
    seed: int,
    batch_size: int | None = None,
    max_steps: int = MAX_STEPS,
    name: str | None = None,
    keep_actions: bool = False,
    progress: bool | Progress = False,
    finished: Sequence[GameRecord] = (),
    on_block: Callable[[list[GameRecord]], object] = lambda records: None,
) -> list[GameRecord]:
    """Play each deal once; records come in the order of the deals.

    Deals are played in blocks of ``batch_size`` in the given order, and the agent's generator is seeded anew for
    each block, from the seed and the block's deals. So a block's games do not depend on what was played before
    them, and an agent that draws no random numbers plays a deal the same in every run; one that does repeats its
    games under the same seed, deals and batch size only.

    Args:
        agent: made for the same rules.
        rules: the game.
        deals: (D,) distinct deal numbers.
        seed: of the agent's random numbers; deals have none.
        batch_size: games side by side; None: as many as the agent likes (:attr:`Agent.batch_size`).
        max_steps: a game that is not over after so many moves is stopped and counts as not won.
        name: what the records call the agent; its own name if None.
        keep_actions: keep every game's actions, for replays.
        progress: show a bar on the terminal, or a line in a bar that is shown already.
        finished: records of an earlier call with the same arguments, which was stopped: whole blocks from the first
            deal on; these are not played again.
        on_block: given all records so far each time that a block has ended.

    Raises:
        PyramidError: an agent made for other rules, no deals, a deal twice, a batch size, step limit or seed out of
        range, or finished games that are none of this call. IllegalMoveError: the agent chose an illegal action.
    """
    batch_size = agent.batch_size if batch_size is None else batch_size
    _check_call(agent, rules, deals, seed, batch_size, max_steps)
    called = name or agent.name
    records = whole_blocks(finished, deals, batch_size)
    with progress_in(progress) as bar:
        task = bar.add_task(called, total=len(deals), completed=len(records))
        for start in range(len(records), len(deals), batch_size):
            games = _Games(agent, rules, deals[start : start + batch_size], seed, max_steps, keep_actions)
            games.play(lambda finished: bar.advance(task, finished))
            records.extend(games.records(called, seed))
            on_block(records)
    return records


def whole_blocks(records: Sequence[GameRecord], deals: NDArray[np.int64], batch_size: int) -> list[GameRecord]:
    """Those of some records, of games in the order of the deals, that make whole blocks: what a stopped call leaves
    for the next.

    Raises:
        PyramidError: they are not the games of the first deals.
    """
    if [record.deal for record in records] != deals[: len(records)].tolist():
        raise PyramidError("finished games: expected those of the first deals, in their order")
    whole = len(records) if len(records) == len(deals) else len(records) // batch_size * batch_size
    return list(records[:whole])


def warm_up(agent: Agent, rules: Rules) -> None:
    """Play one game off the record, so that what is compiled or loaded on first use is not in any game's seconds.

    The deal is the highest number there is: of no split, and as good as never met in training.
    """
    _check_call(agent, rules, _WARM_UP, 0, 1, MAX_STEPS)
    _Games(agent, rules, _WARM_UP, 0, MAX_STEPS, keep_actions=False).play(lambda finished: None)


def _check_call(
    agent: Agent, rules: Rules, deals: NDArray[np.int64], seed: int, batch_size: int, max_steps: int
) -> None:
    if agent.rules != rules:
        raise PyramidError(f"{agent.name}: expected an agent for {rules}, got one for {agent.rules}")
    if deals.ndim != 1 or not deals.size:
        raise PyramidError(f"deals: expected (D,) numbers, one at least, got an array of shape {deals.shape}")
    if np.unique(deals).size != deals.size:
        raise PyramidError(f"deals: expected distinct numbers, got {deals.size - np.unique(deals).size} of them twice")
    for what, value, least in (("seed", seed, 0), ("batch_size", batch_size, 1), ("max_steps", max_steps, 1)):
        if value < least:
            raise PyramidError(f"{what}: expected {least} or more, got {value}")


class _Games:
    """One block of games side by side; only those still running are shown to the agent.

    The environment steps all its games or none, so the place of an ended game is filled: its deal is dealt again
    and played with the first legal action, off the record.
    """

    def __init__(
        self, agent: Agent, rules: Rules, deals: NDArray[np.int64], seed: int, max_steps: int, keep_actions: bool
    ) -> None:
        self.agent: Final = agent
        self.rules: Final = rules
        self.deals: Final = deals  # (B,)
        self.rng: Final = np.random.default_rng([seed, *deals.tolist()])
        self.envs: Final = PyramidVectorEnv(
            len(deals),
            rules=rules,
            observation=agent.level,
            illegal_action="raise",
            autoreset_mode=AutoresetMode.DISABLED,
            max_episode_steps=max_steps,
            copy=False,
        )
        self.facts: Final = np.zeros_like(self.envs.facts)  # (B, 9) at the end of each game
        self.steps: Final = np.zeros(len(deals), np.int64)
        self.draws: Final = np.zeros(len(deals), np.int64)
        self.truncated: Final = np.zeros(len(deals), np.bool_)
        self.seconds: Final = np.zeros(len(deals))
        self.actions: Final[list[list[int]] | None] = [[] for _ in deals] if keep_actions else None

    def play(self, on_finished: Callable[[int], object]) -> None:
        """Play all games to their ends; ``on_finished`` is told how many ended, each time."""
        self.agent.begin(len(self.deals))
        observations, _ = self.envs.reset(options={"deals": self.deals})
        self.facts[:] = self.envs.facts  # for deals that offer no move at all
        dead = ~self.envs.action_masks().any(axis=1)
        on_finished(int(dead.sum()))
        live = np.flatnonzero(~dead)
        if not live.size:
            return
        fillers = np.where(dead, self.deals[live[0]], self.deals)
        ended = dead
        while live.size:
            began = time.perf_counter()
            if ended.any():
                observations, _ = self.envs.reset(options={"deals": fillers, "reset_mask": ended})
            chosen = self._choose(observations, live)
            actions = self.envs.action_masks().argmax(axis=1)
            actions[live] = chosen
            observations, _, terminated, truncated, _ = self.envs.step(actions)
            ended = terminated | truncated
            self._note(live, chosen, ended, terminated)
            self.seconds[live] += (time.perf_counter() - began) / live.size
            on_finished(int(ended[live].sum()))
            live = live[~ended[live]]

    def _choose(self, observations: dict[str, NDArray[np.int8]], live: NDArray[np.intp]) -> NDArray[np.int64]:
        """The agent's (live,) actions; it gets copies, so it cannot change the games."""
        shown = {field: values[live] for field, values in observations.items()}
        chosen = np.asarray(self.agent.act_in(live, shown, self.envs.action_masks()[live], self.rng))
        if chosen.shape != live.shape or not np.issubdtype(chosen.dtype, np.integer):
            raise PyramidError(
                f"{self.agent.name}: expected {live.size} action indices, got {chosen.dtype} of shape {chosen.shape}"
            )
        return chosen.astype(np.int64)

    def _note(
        self,
        live: NDArray[np.intp],
        chosen: NDArray[np.int64],
        ended: NDArray[np.bool_],
        terminated: NDArray[np.bool_],
    ) -> None:
        """Write down one step of the live games."""
        self.steps[live] += 1
        self.draws[live] += chosen == len(move_table(self.rules)) - 1  # draw is the last action
        if self.actions is not None:
            for b, action in zip(live.tolist(), chosen.tolist(), strict=True):
                self.actions[b].append(action)
        over = live[ended[live]]
        self.facts[over] = self.envs.facts[over]
        self.truncated[over] = ~terminated[over]

    def records(self, name: str, seed: int) -> Iterator[GameRecord]:
        """One record a game, in the order of the deals."""
        text = str(self.rules)
        for b, facts in enumerate(self.facts.tolist()):
            yield GameRecord(
                agent=name,
                rules=text,
                deal=int(self.deals[b]),
                seed=seed,
                won=bool(facts[WON]),
                cleared_in=facts[CLEARED_IN],
                score=facts[SCORE],
                par=facts[PAR],
                msc=facts[MSC],
                steps=int(self.steps[b]),
                draws=int(self.draws[b]),
                truncated=bool(self.truncated[b]),
                seconds=round(float(self.seconds[b]), 6),
                actions=None if self.actions is None else tuple(self.actions[b]),
            )


# ---- files and the terminal ------------------------------------------------------------------------------------------

_COLUMNS: Final = tuple(field.name for field in fields(GameRecord))
_NO_ACTIONS: Final = "-"
"""How a kept, but empty, list of actions is written; nothing at all means that they were not kept."""


def write_records(path: Path, records: Sequence[GameRecord]) -> None:
    """Write records as CSV, one game a line; flags are 0 or 1, actions stand in one column with spaces between."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_as_row, records))
    replace_file(path, out.getvalue())


def read_records(path: Path) -> list[GameRecord]:
    """Read what :func:`write_records` wrote; PyramidError names the line that cannot be read."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != _COLUMNS:
            raise PyramidError(f"{path}: expected the columns {', '.join(_COLUMNS)}, got {reader.fieldnames}")
        records = []
        for row in reader:
            try:
                records.append(_from_row(row))
            except (TypeError, ValueError) as error:
                raise PyramidError(f"{path}, line {reader.line_num}: cannot read the game: {error}") from None
    return records


def _as_row(record: GameRecord) -> dict[str, Any]:
    row = asdict(record)
    row["won"], row["truncated"] = int(record.won), int(record.truncated)
    row["actions"] = "" if record.actions is None else " ".join(map(str, record.actions)) or _NO_ACTIONS
    return row


def _from_row(row: dict[str, str]) -> GameRecord:
    if None in row or None in row.values():
        raise ValueError(f"expected {len(_COLUMNS)} columns")
    return GameRecord(
        agent=row["agent"],
        rules=row["rules"],
        **{name: int(row[name]) for name in ("deal", "seed", "cleared_in", "score", "par", "msc", "steps", "draws")},
        won=_flag(row["won"]),
        truncated=_flag(row["truncated"]),
        seconds=float(row["seconds"]),
        actions=_actions(row["actions"]),
    )


def _actions(text: str) -> tuple[int, ...] | None:
    if not text:
        return None
    return () if text == _NO_ACTIONS else tuple(map(int, text.split()))


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(f"expected 0 or 1, got {text!r}")
    return text == "1"


def replace_file(path: Path, text: str) -> None:
    """Write a text file whole or not at all: under a temporary name beside it, then renamed."""
    replace_bytes(path, text.encode())


def replace_bytes(path: Path, data: bytes) -> None:
    """As :func:`replace_file`, of any file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_folder(folder: Path, what: str) -> None:
    """Raise PyramidError unless files can be written to the folder, or it can be made; nothing is made here."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), Path())
    if not there.is_dir():
        raise PyramidError(f"{what}: expected a folder or a path for a new one, got {folder}; {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PyramidError(
            f"{what}: expected a folder that can be written to, got {folder}; no right to write in {there}"
        )


@contextmanager
def progress_in(shown: bool | Progress) -> Iterator[Progress]:
    """A progress bar while the block runs; one that is shown already goes on being shown."""
    if isinstance(shown, Progress):
        yield shown
    else:
        with progress_bar(shown) as bar:
            yield bar


def progress_bar(shown: bool) -> Progress:
    """A progress bar on stderr; nothing where stderr is no terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not (shown and console.is_terminal),
        transient=True,
    )
