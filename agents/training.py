"""Training: one run of an algorithm in one folder: play, learn, measure, keep the best, stop and go on at any time."""

from __future__ import annotations

import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from agents.bounds import DealBound, find_bounds
from agents.checkpoint import (
    Checkpoint,
    CheckpointError,
    check_rules,
    check_shape,
    load_checkpoint,
    put_weights,
    save_checkpoint,
)
from agents.config import Config
from agents.evaluation import evaluate_agent, progress_bar
from agents.faults import NonFiniteError
from agents.learner import Learner, make_learner
from agents.run_folder import CONFIG_FILE, EVALUATIONS_FILE, Evaluation, RunFolder, TrainingError, versions
from agents.warm_start import check_first_weights, grown
from pyramid_env.benchmark import parse_deals
from pyramid_env.solver import Limits

__all__ = [
    "CONFIG_FILE",
    "EVALUATIONS_FILE",
    "Evaluation",
    "Trainer",
    "TrainingError",
    "TrainingResult",
    "resume",
    "stop_on_signal",
    "train",
]

FEW_DEALS: Final = 50
"""So few bounds are found sooner in this process than in others, which have to start first."""

Say = Callable[[str], None]
"""Where lines for people go."""


@dataclass(frozen=True)
class TrainingResult:
    """What a call of :func:`train` or :func:`resume` came to.

    Attributes:
        run: the run folder.
        rules: what is played, as text.
        steps: environment steps trained for in all.
        finished: all of them done; false: stopped before, ``resume`` goes on.
        evaluations: of this call.
        steps_per_second: of this call, evaluation included; 0 if there was nothing left to learn.
    """

    run: Path
    rules: str
    steps: int
    finished: bool
    evaluations: tuple[Evaluation, ...]
    steps_per_second: float


def train(config: Config, run: Path, *, say: Say = lambda line: None, progress: bool = False) -> TrainingResult:
    """Start a run in a new folder.

    Args:
        config: all settings; written to the folder.
        run: the folder; must not exist, or be empty.
        say: gets a line for each thing worth telling.
        progress: show a bar on the terminal.

    Raises:
        TrainingError: the folder holds something, or the network became NaN (the batch is saved, the message says
            where).
        CheckpointError: what ``init`` names cannot be read or does not fit; nothing has been written then.
    """
    folder = RunFolder(run)
    folder.start(config)
    return Trainer(config, folder, say, progress).work()


def resume(run: Path, *, say: Say = lambda line: None, progress: bool = False) -> TrainingResult:
    """Go on with a run from its latest checkpoint, or from the start if it has none, to the total of its config.

    With our own PPO and with imitation the result is, on one thread, bit for bit that of a run that was never
    interrupted. With the others games start anew (and what they remember is lost) and random numbers are drawn from the
    seed and the steps done, so going on twice from the same checkpoint gives the same result, though not the one of
    an uninterrupted run.

    Raises:
        TrainingError: no run there.
        CheckpointError: its checkpoint cannot be read or does not fit.
    """
    folder = RunFolder(run)
    config = folder.config()
    return Trainer(config, folder, say, progress, folder.checkpoint("latest")).work()


class Trainer:
    """One call's work on a run: set up, learn, save.

    Attributes:
        learner: the algorithm at work.
        measured_at: steps of the last evaluation, -1 = none.
    """

    def __init__(
        self, config: Config, folder: RunFolder, say: Say, progress: bool, start: Checkpoint | None = None
    ) -> None:
        self.config: Final = config
        self.folder: Final = folder
        self.say: Final = say
        self.progress: Final = progress
        done = 0 if start is None else int(start.progress["steps"])
        if start is not None:
            self._check(start)
        # Our own have threads of their own, which share out whole batches, unless they learn from sequences.
        shares = config.algorithm in ("ppo", "teacher") and not config.network.recurrent
        torch.set_num_threads(1 if shares else config.threads)
        self.learner: Final[Learner] = make_learner(config, done)
        self.best: Evaluation | None = self._best_so_far(start)
        self.measured_at = folder.trim_evaluations(done)
        self.deals: Final = parse_deals(config.evaluation.deals)
        self.bounds: list[DealBound] | None = None
        self.evaluations: Final[list[Evaluation]] = []
        if start is not None:
            self.learner.restore(start, folder.checkpoint_path("latest"))
        elif config.init is not None:
            self._begin_with(folder.checkpoint_path("init"))

    def _check(self, start: Checkpoint) -> None:
        """Raise CheckpointError, the difference named, unless the checkpoint belongs to the run's config."""
        path, config = self.folder.checkpoint_path("latest"), self.config
        check_rules(start, config.game, path)
        check_shape(start, path)
        pairs = (("algorithm", start.kind, config.algorithm), ("level", start.level, config.env.observation))
        for what, made, wanted in pairs:
            if made != wanted:
                raise CheckpointError(
                    f"{path}: {what} {made!r} does not belong to {wanted!r} in the run's {CONFIG_FILE}"
                )

    def _begin_with(self, path: Path) -> None:
        """Put the weights that the run starts with into the learner's networks."""
        first = load_checkpoint(path)
        check_first_weights(first, self.config, path)
        for network in self.learner.networks():
            put_weights(network, grown(first.policy, network), path)

    def _best_so_far(self, start: Checkpoint | None) -> Evaluation | None:
        """The best evaluation of the run. ``best`` is written at once and ``latest`` seldom, so after a kill ``best``
        may hold a better one than ``latest`` knows of."""
        found = [start, self.folder.checkpoint("best")]
        known = [Evaluation(**each.progress["best"]) for each in found if each and each.progress.get("best")]
        return max(known, key=lambda evaluation: evaluation.rank(self.config.evaluation.best_by), default=None)

    def work(self) -> TrainingResult:
        """Learn until the config's total, or until stopped."""
        total, done = self.config.total_steps, self.learner.steps
        began = time.perf_counter()
        if done >= total and self.measured_at == done:
            self.say(f"{self.folder.path}: this run is finished, there is nothing left to do")
            return self._result(done, began)
        self.say(
            f"{self.config.game}, {self.config.algorithm}: {total:,} steps"
            f"{f', {done:,} of them done' if done else ''}, {self.config.env.num_envs} games side by side; "
            f"measured on {len(self.deals)} deals; run folder {self.folder.path}"
        )
        try:
            self._find_bounds()
        except KeyboardInterrupt:
            self._say_stopped(" while searching for bounds")
            return self._result(done, began, finished=False)
        began = time.perf_counter()
        if done < total:
            self._learn(total)
        self.save("latest")
        finished = self.learner.steps >= total
        if finished and self.measured_at < self.learner.steps:
            self.evaluate()
            self.save("latest")
        if not finished:
            self._say_stopped("")
        return self._result(done, began, finished=finished)

    def _result(self, done: int, began: float, *, finished: bool = True) -> TrainingResult:
        """What this call came to, which began with ``done`` steps at the time ``began``; nothing is played after it."""
        self.learner.close()
        steps = self.learner.steps
        rate = (steps - done) / max(time.perf_counter() - began, 1e-9)
        rules, evaluations = str(self.config.game), tuple(self.evaluations)
        return TrainingResult(self.folder.path, rules, steps, finished, evaluations, rate)

    def _say_stopped(self, where: str) -> None:
        command = shlex.join(["python", "train.py", "--resume", str(self.folder.path)])
        steps, total = self.learner.steps, self.config.total_steps
        self.say(f"stopped at {steps:,} of {total:,} steps{where}; go on with: {command}")

    def _learn(self, total: int) -> None:
        with stop_on_signal(self.say) as stop:
            watch = _Watch(self, stop, total)
            watch.bar.start()
            try:
                self.learner.learn(total, watch, self.folder.path / "tensorboard")
                self.learner.check()
            except NonFiniteError as error:
                raise self._with_evidence(error) from error
            finally:
                watch.bar.stop()

    def _find_bounds(self) -> None:
        if self.config.evaluation.bound:
            self.bounds = find_bounds(
                self.config.game,
                self.deals,
                limits=Limits(max_states=self.config.evaluation.bound_states),
                workers=1 if len(self.deals) < FEW_DEALS else None,
                folder=self.folder.path / "bounds",
                progress=self.progress,
            )

    def evaluate(self) -> None:
        """Play the evaluation deals, with masks, note how it went, and keep the checkpoint if it is the best so far."""
        settings = self.config.evaluation
        agent = self.learner.agent(self.folder.path.name, settings.deterministic)
        records = evaluate_agent(
            agent, self.config.game, self.deals, seed=self.config.seed, batch_size=settings.batch_size
        )
        wins = sum(record.won for record in records)
        score = float(np.mean([record.score for record in records]))
        share = regret = None
        if self.bounds is not None:
            possible = sum(bound.win_high for bound in self.bounds)
            share = wins / possible if possible else None
            regret = float(np.mean([bound.score_high for bound in self.bounds])) - score
        self._keep(Evaluation(self.learner.steps, len(records), wins / len(records), score, share, regret))

    def _keep(self, found: Evaluation) -> None:
        self.evaluations.append(found)
        self.measured_at = found.steps
        best_by = self.config.evaluation.best_by
        better = self.best is None or found.rank(best_by) > self.best.rank(best_by)
        if better:
            self.best = found
            self.save("best")
        # After ``best``: a kill between the two is made good by evaluating again, the other way round it would not be.
        self.folder.add_evaluation(found)
        self.learner.log({f"evaluation/{name}": value for name, value in asdict(found).items() if value is not None})
        bound = "" if found.share_of_bound is None else f" ({found.share_of_bound:.1%} of the bound)"
        mark = "  best" if better else ""
        self.say(f"{found.steps:>11,} steps  wins {found.win_rate:5.1%}{bound}  score {found.mean_score:7.2f}{mark}")

    def save(self, name: str) -> None:
        """Write checkpoint ``latest``, from which the run goes on, or ``best``, which is only to be played."""
        progress = {"best": None if self.best is None else asdict(self.best)}
        checkpoint = self.learner.checkpoint(progress, versions(), whole=name == "latest")
        save_checkpoint(checkpoint, self.folder.checkpoint_path(name))

    def _with_evidence(self, error: NonFiniteError) -> TrainingError:
        steps = self.learner.steps
        path = self.folder.keep_evidence(steps, error.batch)
        latest = self.folder.checkpoint_path("latest")
        back = f"; the latest good checkpoint is {latest}" if latest.is_file() else ""
        return TrainingError(
            f"step {steps:,}: {error}; the batch is in {path}{back}. A lower {self.config.algorithm}.learning_rate or "
            "smaller rewards are the usual way out"
        )


class _Watch:
    """What happens beside learning: evaluation, checkpoints, the bar, stopping."""

    def __init__(self, trainer: Trainer, stop: threading.Event, total: int) -> None:
        self.trainer: Final = trainer
        self.stop: Final = stop
        every, done = trainer.config.evaluation.every_steps, trainer.learner.steps
        self.next_evaluation = trainer.measured_at + every if trainer.measured_at >= 0 else 0
        if not every:
            self.next_evaluation = total + 1
        self.next_checkpoint = done + trainer.config.checkpoint_steps
        self.bar: Final = progress_bar(trainer.progress)
        self.task: Final = self.bar.add_task("training", total=total, completed=done)

    def between_updates(self) -> bool:
        """See :class:`agents.learner.Watch`."""
        trainer, steps = self.trainer, self.trainer.learner.steps
        trainer.learner.check()
        if self.stop.is_set():
            return True
        if steps >= self.next_evaluation:
            trainer.evaluate()
            self.next_evaluation = steps + trainer.config.evaluation.every_steps
        if steps >= self.next_checkpoint:
            trainer.save("latest")
            self.next_checkpoint = steps + trainer.config.checkpoint_steps
        return False

    def played(self, steps: int) -> bool:
        """See :class:`agents.learner.Watch`."""
        self.bar.advance(self.task, steps)
        return self.stop.is_set()


@contextmanager
def stop_on_signal(say: Say) -> Iterator[threading.Event]:
    """An event that Ctrl-C (or SIGTERM) sets; a second one interrupts at once. Only in the main thread."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(signum: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        say("stopping after this update; once more stops at once and loses what came after the latest checkpoint")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
