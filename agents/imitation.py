"""Imitation: behaviour cloning, the moves of an expert's games as answers to learn, for PPO to go on from.

The expert plays training deals; what it saw and did is kept in memory and learned from again and again, half of it seen
in a mirror, since left and right make no difference to the game. The policy learns to give probability to the expert's
moves: the loss is the negative logarithm of what they have together among the legal moves, with one move the plain
cross-entropy. The value head learns what the games brought from each position on, by the reward of the config.

The learner never sees more than its observation. The expert ``solver`` does: see :class:`agents.experts.SolverExpert`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from agents.action_head import MASKED_LOGIT
from agents.checkpoint import Checkpoint, CheckpointError, pack_optimizer, put_weights, unpack_optimizer
from agents.config import Config
from agents.expert_games import Block, Lessons, Record, Samples, play, rebuild
from agents.experts import make_expert
from agents.faults import NonFiniteError, first_bad_layer
from agents.games import make_deals
from agents.learner import Learner, Watch
from agents.mirror import Mirror
from agents.ppo import new_network
from agents.sections import ImitationConfig
from agents.token_agent import TokenAgent
from agents.token_network import Network
from agents.tokens import token_values
from pyramid_env.errors import PyramidError
from pyramid_env.moves import move_table

MEASURED_AT_ONCE: Final = 4_096
"""Held-out positions."""


class Imitation(Learner):
    """See the file's docstring.

    Attributes:
        network: what is trained.
        lessons: the games to learn from; held_out: those to measure on.
    """

    kind = "imitation"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        rules, level = config.game, config.env.observation
        self.imitation: Final[ImitationConfig] = config.imitation
        self.network: Final[Network] = new_network(config)
        self.optimizer: Final = torch.optim.AdamW(
            self.network.parameters(),
            self.imitation.learning_rate,
            weight_decay=self.imitation.weight_decay,
            fused=True,
        )
        self.deals: Final = make_deals(config.env, rules, config.seed)
        features, words = len(token_values(rules, level)), -(-len(move_table(rules)) // 64)
        self.lessons, self.held_out = Lessons(features, words), Lessons(features, words)
        self.mirror: Final = Mirror(rules, level)
        self.rng: Final = np.random.default_rng([config.seed, 2])
        self._record = Record.none()  # held-out games first
        self._next = np.zeros(0, np.int64)  # deals that were taken for a block which was left
        self._writer: SummaryWriter | None = None

    # ---- the story -----------------------------------------------------------------------------------------------

    def learn(self, total: int, watch: Watch, logs: Path) -> None:
        """See :meth:`Learner.learn`."""
        self._writer = SummaryWriter(str(logs), purge_step=self.steps + 1)
        try:
            while self.steps < total and not watch.between_updates():
                if not self._have_games(watch):
                    break
                began = time.perf_counter()
                self._set_rate(self.steps / total)
                told = self._update(watch)
                self.steps += self.config.steps_per_update
                self.updates += 1
                rate = self.config.steps_per_update / (time.perf_counter() - began)
                self.log({**told, **self._measure(), **self._expert(), "time/steps_per_second": rate})
        finally:
            self._writer.close()
            self._writer = None

    def _have_games(self, watch: Watch) -> bool:
        """Let the expert play what the next update needs; false if it was stopped, and the block's games are left."""
        needed = self.steps + self.config.steps_per_update
        while True:
            book, wanted = self.held_out, self.imitation.held_out
            if book.games >= wanted:
                book, wanted = self.lessons, self.imitation.games
                if book.games >= wanted or book.size >= needed:
                    break
            block = self._block(min(self.config.env.num_envs, wanted - book.games), watch)
            if block is None:
                return False
            book.add(block)
        if not self.lessons.size:
            raise PyramidError(f"imitation.games: no deal with a first move among {self.lessons.games}")
        return True

    def _block(self, count: int, watch: Watch) -> Block | None:
        """That many games of the expert. Nothing of it depends on the blocks before, but for the deals."""
        if not self._next.size:
            self._next = self.deals.take(count)
        done = len(self._record.deals)
        rng = np.random.default_rng([self.config.seed, 3, done])
        block = play(self.config, self._next, make_expert(self.config), rng, lambda: watch.played(0))
        if block is not None:
            self._record = self._record.then(block.record)
            self._next = self._next[:0]
        return block

    def _set_rate(self, done: float) -> None:
        first, last = self.imitation.learning_rate, self.imitation.final_learning_rate
        for group in self.optimizer.param_groups:
            group["lr"] = first * (last + (1.0 - last) * 0.5 * (1.0 + math.cos(math.pi * done)))

    def _update(self, watch: Watch) -> dict[str, float]:
        told = []
        for _ in range(self.imitation.gradient_steps):
            samples = self.lessons.draw(self.imitation.batch_size, self.rng)
            half = len(samples.rows) // 2
            samples.rows[:half], samples.legal[:half] = self.mirror(samples.rows[:half], samples.legal[:half])
            told.append(self._learn_from(samples))
            watch.played(len(samples.rows))
        names = ("train/loss", "train/agreement", "train/value_loss")
        means = dict(zip(names, torch.stack(told).mean(0).tolist(), strict=True))
        return {**means, "train/learning_rate": self.optimizer.param_groups[0]["lr"]}

    def _learn_from(self, samples: Samples) -> Tensor:
        policy, value, agreed, lessons, valued = self._losses(samples)
        losses = policy / lessons.clamp(min=1), value / valued.clamp(min=1)
        self.optimizer.zero_grad()
        loss = losses[0] + self.imitation.vf_coef * losses[1]
        loss.backward()  # type: ignore[no-untyped-call]  # untyped in torch
        norm = torch.nn.utils.clip_grad_norm_(
            (p for p in self.network.parameters() if p.grad is not None), self.imitation.max_grad_norm
        )
        if not math.isfinite(float(norm)):
            raise self._spoilt(samples)
        self.optimizer.step()
        return torch.stack([losses[0].detach(), agreed / lessons.clamp(min=1), losses[1].detach()])

    def _losses(self, samples: Samples) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Sums over samples: policy loss, squared error of the value, times that the likeliest move is the expert's;
        and the numbers of samples from which there is a move, or a value, to learn."""
        rows, legal, best, returns = (torch.from_numpy(part) for part in samples)
        logits, values = self.network(rows, legal)
        lesson = (best != (legal >= 0)).any(1)
        each = -logits.log_softmax(1).masked_fill(~best, MASKED_LOGIT).logsumexp(1)
        known = returns.isfinite()
        errors = (values - returns.nan_to_num()).square() * known
        with torch.no_grad():
            agreed = best.gather(1, logits.argmax(1, keepdim=True)).squeeze(1) & lesson
        return (each * lesson).sum(), errors.sum(), agreed.sum(), lesson.sum(), known.sum()

    @torch.no_grad()
    def _measure(self) -> dict[str, float]:
        """How well the held-out games are foretold."""
        sums = [torch.stack(self._losses(samples)) for samples in self.held_out.all(MEASURED_AT_ONCE)]
        if not sums:
            return {}
        policy, value, agreed, lessons, valued = torch.stack(sums).sum(0).tolist()
        names = ("held_out/loss", "held_out/agreement", "held_out/value_loss")
        return dict(
            zip(names, (policy / max(1, lessons), agreed / max(1, lessons), value / max(1, valued)), strict=True)
        )

    def _expert(self) -> dict[str, float]:
        book = self.lessons
        return {"expert/games": book.games, "expert/moves": book.size, "expert/win_rate": book.wins / book.games}

    # ---- what every learner can do -------------------------------------------------------------------------------

    def agent(self, name: str, deterministic: bool) -> TokenAgent:
        """See :meth:`Learner.agent`."""
        return TokenAgent(self.network, self.config.game, self.config.env.observation, name, deterministic)

    def weights(self) -> dict[str, Tensor]:
        """See :meth:`Learner.weights`."""
        return {name: parameter.detach() for name, parameter in self.network.named_parameters()}

    def networks(self) -> tuple[Network, ...]:
        """See :meth:`Learner.networks`."""
        return (self.network,)

    def log(self, values: Mapping[str, float]) -> None:
        """See :meth:`Learner.log`."""
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(name, value, self.steps)

    def check(self) -> None:
        """See :meth:`Learner.check`; gradients are checked before they change a weight, so this finds other faults."""
        if not all(torch.isfinite(weight).all() for weight in self.weights().values()):
            raise NonFiniteError(first_bad_layer(self.network, lambda: None), {})

    def training_state(self) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Any]]:
        """See :meth:`Learner.training_state`. Games are kept as deals and moves."""
        record = (
            self._record if self.imitation.expert == "solver" else self._record._replace(best=np.zeros(0, np.int64))
        )
        arrays = {f"expert.{name}": torch.from_numpy(array) for name, array in record._asdict().items()}
        arrays["expert.next"] = torch.from_numpy(self._next)
        state = {"deals": self.deals.state(), "rng": self.rng.bit_generator.state}
        return pack_optimizer(self.optimizer), arrays, state

    def restore(self, checkpoint: Checkpoint, path: Path) -> None:
        """See :meth:`Learner.restore`."""
        put_weights(self.network, checkpoint.policy, path)
        unpack_optimizer(self.optimizer, checkpoint.optimizer)
        self.steps, self.updates = int(checkpoint.progress["steps"]), int(checkpoint.progress["updates"])
        kept: dict[str, NDArray[Any]] = {
            name.removeprefix("expert."): tensor.numpy() for name, tensor in checkpoint.training.items()
        }
        self._next = kept.pop("next")
        self._rebuild(Record(**kept), path)
        state = checkpoint.progress["state"]
        self.deals.restore(state["deals"])
        self.rng.bit_generator.state = state["rng"]

    def _rebuild(self, record: Record, path: Path) -> None:
        """Play the expert's games again, which are known."""
        held = self.imitation.held_out
        for book, games in ((self.held_out, record.cut(0, held)), (self.lessons, record.cut(held, len(record.deals)))):
            try:
                for block in rebuild(self.config, games):
                    self._record = self._record.then(block.record)
                    book.add(block)
            except PyramidError as error:
                raise CheckpointError(f"{path}: {error}") from None

    def close(self) -> None:
        """See :meth:`Learner.close`."""
        self.deals.close()

    def _spoilt(self, samples: Samples) -> NonFiniteError:
        layer = first_bad_layer(self.network, lambda: self._losses(samples))
        return NonFiniteError(layer, {"observations": samples.rows, "legal_actions": samples.legal})
