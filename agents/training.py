"""Training: one run of MaskablePPO in one folder: play, learn, measure, keep the best, stop and go on at any time."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure as configure_logger

from agents.bounds import DealBound, find_bounds
from agents.checkpoint import (
    SUFFIX,
    Checkpoint,
    CheckpointError,
    load_checkpoint,
    pack_optimizer,
    save_checkpoint,
    unpack_optimizer,
)
from agents.config import Config, EnvConfig, load_config
from agents.evaluation import evaluate_agent, progress_bar, replace_file
from agents.networks import MaskedTokenPolicy, NonFiniteError, token_counts
from agents.sb3 import CompactRolloutBuffer, PyramidVecEnv, Sb3Agent, put_weights, weights_of
from pyramid_env.benchmark import parse_deals
from pyramid_env.deal import DealSource
from pyramid_env.errors import PyramidError
from pyramid_env.kernels import CARDS_LEFT, WON
from pyramid_env.moves import move_table
from pyramid_env.reward import RewardScheme
from pyramid_env.rules import Rules
from pyramid_env.solver import Limits
from pyramid_env.winnable import WinnableDeals

CONFIG_FILE: Final = "config.yaml"
EVALUATIONS_FILE: Final = "evaluations.jsonl"
PACKAGES: Final = ("numpy", "numba", "gymnasium", "torch", "stable-baselines3", "sb3-contrib", "safetensors")

FEW_DEALS: Final = 50
"""So few bounds are found sooner in this process than in others, which have to start first."""

Say = Callable[[str], None]
"""Where lines for people go."""


class TrainingError(PyramidError):
    """A run that cannot be started, continued or finished; the message says what to do."""


@dataclass(frozen=True)
class CardsReward:
    """``card`` for each card that leaves, ``win`` for the win: the win is what counts, cards show the way there."""

    card: float
    win: float

    def __call__(self, before: NDArray[np.int32], after: NDArray[np.int32]) -> NDArray[np.float32]:
        cards = before[:, CARDS_LEFT] - after[:, CARDS_LEFT]
        wins = after[:, WON] - before[:, WON]
        return (self.card * cards + self.win * wins).astype(np.float32)


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
        seconds: time the games took.
    """

    steps: int
    games: int
    win_rate: float
    mean_score: float
    share_of_bound: float | None
    regret: float | None
    seconds: float

    def rank(self, best_by: str) -> tuple[float, float]:
        """What the better one has more of."""
        pair = (self.win_rate, self.mean_score)
        return pair if best_by == "wins" else pair[::-1]


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


# ---- starting and going on -------------------------------------------------------------------------------------------


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
    """
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        raise TrainingError(
            f"{run}: already there, nothing is overwritten; go on with --resume {run}, or choose another --run"
        )
    run.mkdir(parents=True, exist_ok=True)
    replace_file(run / CONFIG_FILE, config.to_yaml())
    replace_file(run / "run.json", json.dumps(_circumstances(config), indent=2) + "\n")
    return _Trainer(config, run, say, progress).work()


def resume(run: Path, *, say: Say = lambda line: None, progress: bool = False) -> TrainingResult:
    """Go on with a run from its latest checkpoint, or from the start if it has none, to the total of its config.

    Games start anew and random numbers are drawn from the seed and the steps done, so going on twice from the same
    checkpoint gives the same result, though not the one of an uninterrupted run.

    Raises:
        TrainingError: no run there.
        CheckpointError: its checkpoint cannot be read or does not fit.
    """
    if not (run / CONFIG_FILE).is_file():
        raise TrainingError(f"{run}: expected a run folder of train.py, found no {CONFIG_FILE} there")
    config = load_config(run / CONFIG_FILE)
    latest = run / "checkpoints" / f"latest{SUFFIX}"
    return _Trainer(config, run, say, progress, latest if latest.is_file() else None).work()


# ---- the parts of a run ----------------------------------------------------------------------------------------------


def make_env(config: EnvConfig, rules: Rules, deals: DealSource | None = None) -> PyramidVecEnv:
    """The training environment of a config; ``deals`` as in :class:`PyramidVecEnv`."""
    scheme: str | RewardScheme = config.reward
    if config.reward == "cards":
        scheme = CardsReward(config.card_reward, config.win_reward)
    return PyramidVecEnv(
        rules,
        config.num_envs,
        observation=config.observation,
        reward=scheme,
        reward_scale=config.reward_scale,
        max_episode_steps=config.max_episode_steps,
        flat=True,
        deals=deals,
    )


def make_model(config: Config, env: PyramidVecEnv, seed: int) -> MaskablePPO:
    """MaskablePPO with the config's settings; SB3 seeds network, action sampling, batches and deals from ``seed``."""
    ppo = config.ppo
    last = ppo.final_learning_rate
    return MaskablePPO(
        MaskedTokenPolicy,
        env,
        learning_rate=lambda remaining: ppo.learning_rate * (last + (1.0 - last) * remaining),
        n_steps=ppo.n_steps,
        batch_size=ppo.batch_size,
        n_epochs=ppo.n_epochs,
        gamma=ppo.gamma,
        gae_lambda=ppo.gae_lambda,
        clip_range=ppo.clip_range,
        ent_coef=ppo.ent_coef,
        vf_coef=ppo.vf_coef,
        max_grad_norm=ppo.max_grad_norm,
        target_kl=ppo.target_kl,
        policy_kwargs=asdict(config.network),
        rollout_buffer_class=CompactRolloutBuffer,
        stats_window_size=1000,
        seed=seed,
        device="cpu",
    )


class _Trainer:
    """One call's work on a run: set up, learn, save."""

    def __init__(self, config: Config, run: Path, say: Say, progress: bool, latest: Path | None = None) -> None:
        self.config: Final = config
        self.run: Final = run
        self.say: Final = say
        self.progress: Final = progress
        torch.set_num_threads(config.threads)
        start = None if latest is None else load_checkpoint(latest)
        done = 0 if start is None else int(start.progress["steps"])
        seed = config.seed if not done else int(np.random.SeedSequence([config.seed, done]).generate_state(1)[0])
        self.source: Final = WinnableDeals(config.game, seed) if config.env.deals == "winnable" else None
        self.env: Final = make_env(config.env, config.game, self.source)
        self.model: Final = make_model(config, self.env, seed)
        self.best: Evaluation | None = self._best_so_far(start)
        self.measured_at = self._trim_evaluations(done)
        self.deals: Final = parse_deals(config.evaluation.deals)
        self.bounds: list[DealBound] | None = None
        self.evaluations: Final[list[Evaluation]] = []
        if start is not None and latest is not None:
            self._continue_from(start, latest)

    @property
    def policy(self) -> MaskedTokenPolicy:
        """The network that is trained."""
        policy = self.model.policy
        assert isinstance(policy, MaskedTokenPolicy)
        return policy

    def _continue_from(self, start: Checkpoint, latest: Path) -> None:
        if start.rules != self.config.game or start.level != self.config.env.observation:
            raise CheckpointError(f"{latest}: does not belong to the run's {CONFIG_FILE}: made on {start.rules}")
        put_weights(self.policy, start.policy, latest)
        unpack_optimizer(self.policy.optimizer, start.optimizer)
        self.model.num_timesteps = int(start.progress["steps"])
        self.model._n_updates = int(start.progress["updates"])

    def _best_so_far(self, start: Checkpoint | None) -> Evaluation | None:
        """The best evaluation of the run. ``best`` is written at once and ``latest`` seldom, so after a kill ``best``
        may hold a better one than ``latest`` knows of."""
        best = self._checkpoint("best")
        found = [start, load_checkpoint(best) if best.is_file() else None]
        known = [Evaluation(**each.progress["best"]) for each in found if each and each.progress.get("best")]
        return max(known, key=lambda evaluation: evaluation.rank(self.config.evaluation.best_by), default=None)

    def _trim_evaluations(self, done: int) -> int:
        """Drop the evaluations after step ``done``, which a kill has parted from their weights, and a line that it cut
        off; returns the steps of the last one kept, -1 if there is none."""
        path = self.run / EVALUATIONS_FILE
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

    def work(self) -> TrainingResult:
        """Learn until the config's total, or until stopped."""
        total, done = self.config.total_steps, self.model.num_timesteps
        began = time.perf_counter()
        if done >= total and self.measured_at == done:
            self.say(f"{self.run}: this run is finished, there is nothing left to do")
            return self._result(done, began)
        self.say(
            f"{self.config.game}: {total:,} steps{f', {done:,} of them done' if done else ''}, "
            f"{self.env.num_envs} games side by side; measured on {len(self.deals)} deals; run folder {self.run}"
        )
        try:
            self._find_bounds()
        except KeyboardInterrupt:
            self._say_stopped(" while searching for bounds")
            return self._result(done, began, finished=False)
        began = time.perf_counter()
        if done < total:
            self._learn(total, done)
        self.save("latest")
        finished = self.model.num_timesteps >= total
        if finished and self.measured_at < self.model.num_timesteps:
            self.evaluate()
            self.save("latest")
        if not finished:
            self._say_stopped("")
        return self._result(done, began, finished=finished)

    def _result(self, done: int, began: float, *, finished: bool = True) -> TrainingResult:
        """What this call came to, which began with ``done`` steps at the time ``began``; nothing is played after it."""
        self.env.close()
        if self.source is not None:
            self.source.close()
        steps = self.model.num_timesteps
        rate = (steps - done) / max(time.perf_counter() - began, 1e-9)
        return TrainingResult(self.run, str(self.config.game), steps, finished, tuple(self.evaluations), rate)

    def _say_stopped(self, where: str) -> None:
        command = shlex.join(["python", "train.py", "--resume", str(self.run)])
        steps, total = self.model.num_timesteps, self.config.total_steps
        self.say(f"stopped at {steps:,} of {total:,} steps{where}; go on with: {command}")

    def _learn(self, total: int, done: int) -> None:
        self.model.set_logger(configure_logger(str(self.run / "tensorboard"), ["tensorboard"]))
        with stop_on_signal(self.say) as stop:
            callback = _Watch(self, stop, total)
            callback.bar.start()
            try:
                self.model.learn(total - done, callback, reset_num_timesteps=False)
                self.check_weights()
            except _StopNow:
                pass
            except NonFiniteError as error:
                raise self._with_evidence(error) from error
            finally:
                callback.bar.stop()
                self.model.logger.close()
            if callback.cut_off:
                self.model.num_timesteps = callback.learned  # steps that were played but not learned from do not count

    def _find_bounds(self) -> None:
        if self.config.evaluation.bound:
            self.bounds = find_bounds(
                self.config.game,
                self.deals,
                limits=Limits(max_states=self.config.evaluation.bound_states),
                workers=1 if len(self.deals) < FEW_DEALS else None,
                folder=self.run / "bounds",
                progress=self.progress,
            )

    def evaluate(self) -> Evaluation:
        """Play the evaluation deals, with masks, note how it went, and keep the checkpoint if it is the best so far."""
        settings = self.config.evaluation
        agent = Sb3Agent(
            self.policy, self.config.game, self.config.env.observation, self.run.name, settings.deterministic
        )
        began = time.perf_counter()
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
        seconds = time.perf_counter() - began
        found = Evaluation(
            self.model.num_timesteps, len(records), wins / len(records), score, share, regret, round(seconds, 3)
        )
        self._keep(found)
        return found

    def _keep(self, found: Evaluation) -> None:
        self.evaluations.append(found)
        self.measured_at = found.steps
        with (self.run / EVALUATIONS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(found)) + "\n")
        best_by = self.config.evaluation.best_by
        better = self.best is None or found.rank(best_by) > self.best.rank(best_by)
        if better:
            self.best = found
            self.save("best")
        bound = "" if found.share_of_bound is None else f" ({found.share_of_bound:.1%} of the bound)"
        mark = "  best" if better else ""
        self.say(f"{found.steps:>11,} steps  wins {found.win_rate:5.1%}{bound}  score {found.mean_score:7.2f}{mark}")

    def save(self, name: str) -> None:
        """Write the whole state as checkpoint ``latest`` or ``best``."""
        path = self._checkpoint(name)
        policy = self.policy
        network = asdict(self.config.network)
        checkpoint = Checkpoint(
            rules=self.config.game,
            level=self.config.env.observation,
            actions=len(move_table(self.config.game)),
            tokens=tuple(token_counts(self.env.observation_space).tolist()),
            network=network,
            policy=weights_of(policy),
            optimizer=pack_optimizer(policy.optimizer),
            progress={
                "steps": self.model.num_timesteps,
                "updates": self.model._n_updates,
                "best": None if self.best is None else asdict(self.best),
            },
            versions=_versions(),
        )
        save_checkpoint(checkpoint, path)

    def check_weights(self) -> None:
        """Raise NonFiniteError for weights that an update has spoilt; the batch is what the next move is chosen for."""
        bad = [name for name, weight in weights_of(self.policy).items() if not torch.isfinite(weight).all()]
        if bad:
            batch = {"observations": self.env.buffer.copy(), "action_masks": self.env.action_masks().copy()}
            layer, _, parameter = bad[0].rpartition(".")
            raise NonFiniteError(f"{layer} (its {parameter})", batch)

    def _checkpoint(self, name: str) -> Path:
        return self.run / "checkpoints" / f"{name}{SUFFIX}"

    def _with_evidence(self, error: NonFiniteError) -> TrainingError:
        steps = self.model.num_timesteps
        path = self.run / f"nonfinite_{steps}.npz"
        np.savez_compressed(path, **error.batch)  # type: ignore[arg-type]  # stubs take names for flags
        latest = self._checkpoint("latest")
        back = f"; the latest good checkpoint is {latest}" if latest.is_file() else ""
        return TrainingError(
            f"step {steps:,}: {error}; the batch is in {path}{back}. A lower ppo.learning_rate or smaller rewards are "
            "the usual way out"
        )


class _StopNow(Exception):
    """Leave learn() between two updates."""


class _Watch(BaseCallback):
    """What happens beside learning: evaluation, checkpoints, the log, the bar, stopping."""

    def __init__(self, trainer: _Trainer, stop: threading.Event, total: int) -> None:
        super().__init__()
        self.trainer: Final = trainer
        self.stop: Final = stop
        self.total: Final = total
        self.learned = trainer.model.num_timesteps
        self.cut_off = False  # did a stop end a rollout halfway?
        every = trainer.config.evaluation.every_steps
        measured = trainer.measured_at == self.learned
        self.next_evaluation = self.learned + every * measured if every else total + 1
        self.next_checkpoint = self.learned + trainer.config.checkpoint_steps
        self.scores: list[float] = []
        self.bar: Final = progress_bar(trainer.progress)
        self.task: Final = self.bar.add_task("training", total=total, completed=self.learned)

    def _on_rollout_start(self) -> None:
        """Between two updates: all steps so far have been learned from."""
        trainer = self.trainer
        self.learned = self.model.num_timesteps
        trainer.check_weights()
        if self.stop.is_set():
            raise _StopNow
        settings = trainer.config.evaluation
        if self.learned >= self.next_evaluation:
            found = trainer.evaluate()
            self._log(found)
            self.next_evaluation = self.learned + settings.every_steps
        if self.learned >= self.next_checkpoint:
            trainer.save("latest")
            self.next_checkpoint = self.learned + trainer.config.checkpoint_steps

    def _log(self, found: Evaluation) -> None:
        for name, value in asdict(found).items():
            if value is not None and name != "steps":
                self.logger.record(f"evaluation/{name}", value)

    def _on_step(self) -> bool:
        self.scores += [info["score"] for info in self.locals["infos"] if info]
        self.bar.advance(self.task, self.trainer.env.num_envs)
        self.cut_off = self.stop.is_set()
        return not self.cut_off

    def _on_rollout_end(self) -> None:
        if self.scores:
            self.logger.record("rollout/score_mean", float(np.mean(self.scores)))
            self.logger.record("rollout/games", len(self.scores))
            self.scores = []


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


def _circumstances(config: Config) -> dict[str, Any]:
    """What a reader of the run folder may ask later: seed, versions, machine, command, time."""
    return {
        "rules": str(config.game),
        "seed": config.seed,
        "versions": _versions(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "threads": config.threads,
        "command": sys.argv,
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("pyramid-env", *PACKAGES):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
