"""EvaluationCallback: for people with an SB3 loop of their own; masks are passed, deals are the same at each time."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from agents.base import AgentError
from agents.dqn import TokenQPolicy
from agents.evaluation import evaluate_agent
from agents.networks import MaskedTokenPolicy
from agents.sb3 import PyramidVecEnv, Sb3Agent
from pyramid_env.benchmark.splits import parse_deals


class EvaluationCallback(BaseCallback):
    """Plays numbered deals every so many steps with the likeliest legal moves, and logs how they went.

    Logs ``eval/win_rate``, ``eval/mean_score`` and ``eval/games``. SB3's ``EvalCallback`` knows no masks; sb3-contrib's
    ``MaskableEvalCallback`` passes them, but draws other deals each time and for one game after the other.

    Args:
        deals: as evaluate.py's ``--deals``.
        every_steps: environment steps between two evaluations.
        best_path: where the model with the most wins is saved (the score decides between equals); None: nowhere.
        seed: of the evaluation.
        verbose: 1 prints each evaluation.

    Attributes:
        best: win rate and mean score of the best so far.
        history: (steps, win rate, mean score) of every evaluation.
    """

    def __init__(
        self,
        deals: str = "validation:0-499",
        every_steps: int = 100_000,
        best_path: Path | str | None = None,
        seed: int = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        if every_steps < 1:
            raise ValueError(f"every_steps: expected 1 or more, got {every_steps}")
        self.deals: Final = parse_deals(deals)
        self.every_steps: Final = every_steps
        self.best_path: Final = None if best_path is None else Path(best_path)
        self.seed: Final = seed
        self.best = (-1.0, -np.inf)
        self.history: Final[list[tuple[int, float, float]]] = []
        self._measured_at = 0

    def _on_training_start(self) -> None:
        policy, env = self.model.policy, self.model.get_env()
        inner = env
        while inner is not None and not isinstance(inner, PyramidVecEnv):
            inner = getattr(inner, "venv", None)  # wrappers of SB3, such as VecMonitor
        if inner is None or not isinstance(policy, (MaskedTokenPolicy, TokenQPolicy)):
            raise AgentError(
                "EvaluationCallback: expected a PyramidVecEnv and a MaskedTokenPolicy or TokenQPolicy, got "
                f"{type(env).__name__} and {type(policy).__name__}"
            )
        self._agent = Sb3Agent(policy, inner.rules, inner.level)
        self._measured_at = self.num_timesteps

    def _on_step(self) -> bool:
        if self.num_timesteps - self._measured_at >= self.every_steps:
            self._measure()
        return True

    def _on_training_end(self) -> None:
        if self.num_timesteps > self._measured_at:
            self._measure()

    def _measure(self) -> None:
        self._measured_at = self.num_timesteps
        policy = self._agent.policy
        assert isinstance(policy, (MaskedTokenPolicy, TokenQPolicy))
        training = policy.training
        policy.set_training_mode(False)
        games = evaluate_agent(self._agent, self._agent.rules, self.deals, seed=self.seed)
        policy.set_training_mode(training)
        found = float(np.mean([game.won for game in games])), float(np.mean([game.score for game in games]))
        self.history.append((self.num_timesteps, *found))
        for name, value in zip(("win_rate", "mean_score", "games"), (*found, len(games)), strict=True):
            self.logger.record(f"eval/{name}", value)
        if self.verbose:
            print(f"{self.num_timesteps:,} steps: wins {found[0]:.1%}, score {found[1]:.2f}")
        if found > self.best:
            self.best = found
            if self.best_path is not None:
                self.model.save(self.best_path)
