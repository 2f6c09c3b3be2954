"""Teacher: a network learns from the solver what each move of the positions that it meets itself is worth.

As in DAgger (Ross, Gordon, Bagnell 2011) the learner plays and an expert marks what it should have done; here the
expert is exact and marks every legal move, so the network learns values of moves, of which it plays the best. At first
the agent ``tips`` plays in its place. All marked positions go into a memory, from which batches are drawn; half of them
are seen in a mirror, since left and right make no difference to the game.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.tensorboard import SummaryWriter

from agents.checkpoint import Checkpoint, pack_optimizer, put_weights, unpack_optimizer
from agents.config import Config, TeacherConfig
from agents.faults import NonFiniteError, first_bad_layer
from agents.games import make_deals
from agents.labelled import SLOTS, LabelledGames, Samples
from agents.learner import Learner, Watch
from agents.mirror import Mirror
from agents.tips import TipsAgent
from agents.token_agent import BLOCK, TokenAgent
from agents.token_network import Network, half_precision, network_for, policy_weights
from agents.tokens import token_values
from pyramid_env.observation import layout


class Teacher(Learner):
    """See the file's docstring.

    Attributes:
        network: what is trained.
        average: the running average of its weights, which plays and is kept: it does not sway as the last ones do.
        games: what is played and marked.
        marked: positions marked so far; learned: samples learned from.
    """

    kind = "teacher"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        rules, level, teacher = config.game, config.env.observation, config.teacher
        self.teacher: Final[TeacherConfig] = teacher
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.network: Final[Network] = network_for(rules, level, asdict(config.network))
        self.average: Final[Any] = AveragedModel(self.network, multi_avg_fn=partial(_average, teacher.average))
        self.network.half_precision = config.network.half  # the average, which plays to be measured, stays exact
        self.optimizer: Final = torch.optim.AdamW(
            self.network.parameters(), teacher.learning_rate, weight_decay=teacher.weight_decay, fused=True
        )
        self._crew: Final = ThreadPoolExecutor(config.threads)
        self._learning: Final = policy_weights(self.network)
        self.deals: Final = make_deals(config.env, rules, config.seed)
        self.games: Final = LabelledGames(
            rules, level, config.env.num_envs, self.deals, teacher.judge, teacher.scale, teacher.max_states,
            teacher.worlds, config.threads, config.env.max_episode_steps,
        )  # fmt: skip
        self.memory: Final = Memory(teacher.memory, len(token_values(rules, level)))
        self.mirror: Final = Mirror(rules, level)
        self.rng: Final = np.random.default_rng([config.seed, 2])
        self.marked, self.learned = 0, 0
        self._layout: Final = layout(rules, level)
        self._guide: Final = TipsAgent(rules)
        self._writer: SummaryWriter | None = None

    def learn(self, total: int, watch: Watch, logs: Path) -> None:
        """See :meth:`Learner.learn`."""
        self._writer = SummaryWriter(str(logs), purge_step=self.steps + 1)
        try:
            while self.steps < total and not watch.between_updates():
                began = time.perf_counter()
                self._set_rate(self.steps / total)
                for _ in range(self.teacher.n_steps):
                    self._play()
                    watch.played(self.games.count)
                told = self._update()
                self.steps += self.config.steps_per_update
                self.updates += 1
                rate = self.config.steps_per_update / (time.perf_counter() - began)
                report = {f"rollout/{name}": value for name, value in self.games.report().items()}
                self.log({**told, **report, "train/marked": self.marked, "time/steps_per_second": rate})
        finally:
            self._writer.close()
            self._writer = None

    def _set_rate(self, done: float) -> None:
        teacher = self.teacher
        last = teacher.final_learning_rate
        rise = min(1.0, (self.learned + 1) / max(1, teacher.warm_up))
        rate = teacher.learning_rate * rise * (last + (1.0 - last) * 0.5 * (1.0 + math.cos(math.pi * done)))
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def _play(self) -> None:
        """Mark and play one move in every game."""
        chooser = self._guided if self.steps < self.teacher.guided else self._own
        samples = self.games.step(chooser, self.rng, self.teacher.corrected, self.teacher.stray)
        self.memory.add(samples)
        self.marked += len(samples.rows)

    def _guided(self, rows: NDArray[np.int8], legal: NDArray[np.int16]) -> NDArray[np.int64]:
        fields = self._layout.views(rows)
        actions = self._guide.act(fields, self.games.masks.astype(np.bool_), self.rng)
        slots: NDArray[np.int64] = (legal == actions[:, None]).argmax(axis=1)
        return slots

    def _own(self, rows: NDArray[np.int8], legal: NDArray[np.int16]) -> NDArray[np.int64]:
        slots = np.zeros(len(rows), np.int64)
        free = np.flatnonzero((legal >= 0).sum(axis=1) > 1)
        player = self.average.module

        def play(some: NDArray[np.intp]) -> None:
            with torch.no_grad():  # which holds for one thread alone
                logits, _ = player(torch.from_numpy(rows[some]), torch.from_numpy(legal[some]))
            slots[some] = logits.numpy().argmax(axis=1)

        with half_precision(player, self.config.network.half):
            list(self._crew.map(play, (free[start : start + BLOCK] for start in range(0, free.size, BLOCK))))
        return slots

    def _update(self) -> dict[str, float]:
        """Learn until each marked position has been learned from ``reuse`` times on average."""
        told = []
        while self.learned < self.marked * self.teacher.reuse and self.memory.size >= self.teacher.batch_size:
            rows, legal, targets = self.memory.draw(self.teacher.batch_size, self.rng)
            half = len(rows) // 2
            rows[:half], legal[:half] = self.mirror(rows[:half], legal[:half])
            told.append(self._learn_from(rows, legal, targets))
            self.learned += len(rows)
        if not told:
            return {}
        names = ("train/loss", "train/best_chosen")
        rate = {"train/learning_rate": self.optimizer.param_groups[0]["lr"]}
        return {**dict(zip(names, torch.stack(told).mean(0).tolist(), strict=True)), **rate}

    def _learn_from(self, rows: NDArray[np.int8], legal: NDArray[np.int16], targets: NDArray[np.float32]) -> Tensor:
        """A gradient step; each thread takes a part of the batch. The loss, and how often the best move was chosen."""
        size = -(-len(rows) // self.config.threads)
        cuts = [slice(start, start + size) for start in range(0, len(rows), size)]
        results = list(self._crew.map(lambda cut: self._gradients(rows[cut], legal[cut], targets[cut]), cuts))
        for parameter, *parts in zip(self._learning, *(found for found, _ in results), strict=True):
            parameter.grad = sum(parts[1:], parts[0]) / len(rows)
        norm = torch.nn.utils.clip_grad_norm_(self._learning, self.teacher.max_grad_norm)
        if not math.isfinite(float(norm)):
            look = partial(self.network, torch.from_numpy(rows), torch.from_numpy(legal))
            raise NonFiniteError(first_bad_layer(self.network, look), {"observations": rows, "legal_actions": legal})
        self.optimizer.step()
        self.average.update_parameters(self.network)
        return torch.stack([told for _, told in results]).sum(0) / len(rows)

    def _gradients(
        self, rows: NDArray[np.int8], legal: NDArray[np.int16], targets: NDArray[np.float32]
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        """Sums over samples: gradients of the loss; the loss, and whether a best move was chosen."""
        marked, aims = torch.from_numpy((legal >= 0) & ~np.isnan(targets)), torch.from_numpy(np.nan_to_num(targets))
        logits, _ = self.network(torch.from_numpy(rows), torch.from_numpy(legal))
        each = torch.nn.functional.binary_cross_entropy_with_logits(logits, aims, reduction="none")
        loss = torch.where(marked, each, 0.0).sum()
        gradients = torch.autograd.grad(loss, self._learning)
        chosen = logits.masked_fill(~marked, -math.inf).argmax(1, keepdim=True)
        right = (aims.gather(1, chosen) >= 1.0).float().sum()
        return gradients, torch.stack([loss.detach(), right])

    # ---- what every learner can do -------------------------------------------------------------------------------

    def agent(self, name: str, deterministic: bool) -> TokenAgent:
        """See :meth:`Learner.agent`."""
        network, game, level = self.average.module, self.config.game, self.config.env.observation
        return TokenAgent(network, game, level, name, deterministic, rates_moves=True, has_value=False)

    def weights(self) -> dict[str, Tensor]:
        """See :meth:`Learner.weights`."""
        return {name: parameter.detach() for name, parameter in self.average.module.named_parameters()}

    def networks(self) -> tuple[nn.Module, ...]:
        """See :meth:`Learner.networks`."""
        return self.network, self.average.module

    def log(self, values: Mapping[str, float]) -> None:
        """See :meth:`Learner.log`."""
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(name, value, self.steps)

    def check(self) -> None:
        """See :meth:`Learner.check`; gradients are checked before they change a weight, so this finds other faults."""
        if not all(torch.isfinite(weight).all() for weight in self.weights().values()):
            raise NonFiniteError(first_bad_layer(self.network, lambda: None), {"observations": self.games.rows.copy()})

    def training_state(self) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Any]]:
        """See :meth:`Learner.training_state`. The memory, some hundred MB, is not kept: it fills up anew."""
        state = {"marked": self.marked, "learned": self.learned, "deals": self.deals.state()}
        own = {name: parameter.detach() for name, parameter in self.network.named_parameters()}
        return pack_optimizer(self.optimizer), {**own, "averaged": self.average.n_averaged.clone()}, state

    def restore(self, checkpoint: Checkpoint, path: Path) -> None:
        """See :meth:`Learner.restore`. The memory is empty then and games start anew."""
        own = dict(checkpoint.training)
        self.average.n_averaged.copy_(own.pop("averaged"))
        put_weights(self.average.module, checkpoint.policy, path)
        put_weights(self.network, own, path)
        unpack_optimizer(self.optimizer, checkpoint.optimizer)
        self.steps, self.updates = int(checkpoint.progress["steps"]), int(checkpoint.progress["updates"])
        state = checkpoint.progress["state"]
        self.marked, self.learned = int(state["marked"]), int(state["learned"])
        self.deals.restore(state["deals"])
        self.rng.bit_generator.state = np.random.default_rng([self.config.seed, 2, self.steps]).bit_generator.state

    def close(self) -> None:
        """See :meth:`Learner.close`."""
        self._crew.shutdown()
        self.deals.close()


def _average(keep: float, averaged: Any, latest: Any, count: Any) -> None:
    """Move the running average towards the latest weights; the first of them count for more, so that it starts soon."""
    steps = int(count)
    torch._foreach_lerp_(list(averaged), list(latest), 1.0 - min(keep, (1 + steps) / (10 + steps)))


class Memory:
    """The last samples, in a ring of arrays.

    Attributes:
        size: how many there are.
    """

    def __init__(self, capacity: int, features: int) -> None:
        self.size = 0
        self._at = 0
        self._parts: Final = Samples(
            np.zeros((capacity, features), np.int8),
            np.zeros((capacity, SLOTS), np.int16),
            np.zeros((capacity, SLOTS), np.float16),
        )

    def add(self, samples: Samples) -> None:
        """Put samples in, over the oldest ones."""
        capacity = len(self._parts.rows)
        index = (self._at + np.arange(len(samples.rows))) % capacity
        self._parts.rows[index], self._parts.legal[index] = samples.rows, samples.legal
        self._parts.targets[index] = samples.targets
        self._at = (self._at + len(index)) % capacity
        self.size = min(capacity, self.size + len(index))

    def draw(
        self, count: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int8], NDArray[np.int16], NDArray[np.float32]]:
        """Rows, legal moves and targets of so many samples, as new arrays."""
        index = rng.integers(self.size, size=count)
        legal = self._parts.legal[index]
        width = max(1, int((legal >= 0).sum(axis=1).max()))
        return self._parts.rows[index], legal[:, :width].copy(), self._parts.targets[index, :width].astype(np.float32)
