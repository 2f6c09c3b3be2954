"""Our masked PPO: collect what the policy does, estimate advantages, update; torch and our own kernels alone.

Proximal policy optimisation (Schulman et al. 2017) over legal moves: games are played side by side for ``n_steps``, the
advantages of what was done are estimated, and the policy is moved towards what did better than expected, in small steps
over shuffled batches. Illegal moves have no probability and no part in the entropy; a game that is over is worth
nothing from there on, one that was cut off what the value says of its last position. On request the values come from a
network of their own which sees all cards (agents/critic.py), and games begin near their end at first or with easy deals
(agents/curriculum.py).

All random numbers come from two generators of the config's seed, and a checkpoint holds both and the games as they
stand: a run that was interrupted goes on bit for bit as if it had not been.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter

from agents.checkpoint import Checkpoint, CheckpointError, pack_optimizer, put_weights, unpack_optimizer
from agents.config import Config, PpoConfig
from agents.critic import CRITIC_LEVEL, Critic
from agents.curriculum import LineStarts, OrderedDeals
from agents.faults import NonFiniteError, first_bad_layer
from agents.games import TrainingGames, make_deals, make_starts
from agents.learner import Learner, Watch
from agents.legal import draw_slots, legal_lists
from agents.rollout import Rollout
from agents.token_agent import BLOCK, TokenAgent
from agents.token_network import Network, half_precision, network_for, policy_weights
from agents.tokens import token_values

ADAM_EPS: Final = 1e-5


class Batch(NamedTuple):
    """Samples of one gradient step; N of them, K the most legal moves of one."""

    rows: Tensor  # (N, F) int8, or (T, G, F) whole sequences of G games; with a critic what that sees
    legal: Tensor  # (N, K) int16, filled up with NO_ACTION
    slots: Tensor  # (N,) column of the move that was made
    log_probs: Tensor  # (N,) of that move then
    advantages: Tensor  # (N,) normalised
    returns: Tensor  # (N,)
    memory: Tensor  # (G, H) before the first step of each sequence
    starts: Tensor  # (T, G) the game was a new one at this step

    def at(self, index: Tensor | slice) -> Batch:
        """Some of the samples; rows, memory and starts are left as they are."""
        flat = ("legal", "slots", "log_probs", "advantages", "returns")
        return self._replace(**{name: getattr(self, name)[index] for name in flat})


class Ppo(Learner):
    """PPO at work: see the file's docstring.

    Attributes:
        network: what is trained, and plays.
        critic: where values come from, if not from the network, whose own value is not trained then.
        games: what is played.
        rollout: what was done last.
    """

    kind = "ppo"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        rules = config.game
        self.ppo: Final[PpoConfig] = config.ppo
        self.network: Final = new_network(config)
        self.critic: Final = new_critic(config) if config.ppo.asymmetric_critic else None
        self.optimizer: Final = torch.optim.Adam(self._trained, config.ppo.learning_rate, eps=ADAM_EPS, fused=True)
        self.deals: Final = make_deals(config.env, rules, config.seed)
        self.starts: Final = make_starts(config.env, rules, config.seed)
        level = config.env.observation if self.critic is None else CRITIC_LEVEL
        self.games: Final = TrainingGames(rules, config.env, self.deals, self.starts, level)
        self.rollout: Final = Rollout(
            config.ppo.n_steps, config.env.num_envs, len(token_values(rules, level)), self.games.bits.shape[1]
        )
        self.acting_rng: Final = np.random.default_rng([config.seed, 2])
        self.batch_rng: Final = np.random.default_rng([config.seed, 3])
        self.memory: Final = torch.zeros(config.env.num_envs, config.network.recurrent)  # (B, H)
        self._first_memory = self.memory.clone()  # at the rollout's first step
        self._new: Final = np.ones(config.env.num_envs, np.bool_)  # (B,) games that have not been played yet
        self._crew: Final = ThreadPoolExecutor(config.threads)
        self._writer: SummaryWriter | None = None

    # ---- the story -----------------------------------------------------------------------------------------------

    def learn(self, total: int, watch: Watch, logs: Path) -> None:
        """See :meth:`Learner.learn`."""
        self._writer = SummaryWriter(str(logs), purge_step=self.steps + 1)
        try:
            while self.steps < total and not watch.between_updates():
                began = time.perf_counter()
                self.set_schedules(self.steps / total)
                for source in self._growing:
                    source.set_progress(self.steps / total)
                with half_precision(self.network, self.config.network.half):
                    self.collect(watch.played)
                    told = self.update()
                self.steps += self.config.steps_per_update
                self.updates += 1
                rate = self.config.steps_per_update / (time.perf_counter() - began)
                self.log({**told, "time/steps_per_second": rate})
        finally:
            self._writer.close()
            self._writer = None

    def set_schedules(self, done: float) -> None:
        """Set learning rate, clip range and entropy weight for the share of the training that is done."""
        ppo = self.ppo
        left = 1.0 - done if ppo.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
        rate, self.clip_range, self.ent_coef = (
            first * (last + (1.0 - last) * left)
            for first, last in (
                (ppo.learning_rate, ppo.final_learning_rate),
                (ppo.clip_range, ppo.final_clip_range),
                (ppo.ent_coef, ppo.final_ent_coef),
            )
        )
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    @torch.no_grad()
    def collect(self, played: Callable[[int], object] = lambda steps: None) -> None:
        """Play ``n_steps`` moves in every game, as the policy draws them, and estimate their advantages."""
        self._first_memory = self.memory.clone()
        self.rollout.truncated[:] = self.rollout.terminated[:] = False
        for t in range(self.rollout.steps):
            self._play(t)
            played(self.games.count)
        _, next_values, _ = self._look(self.games.rows, legal_lists(self.games.bits))
        self.rollout.estimate(next_values.numpy(), self.ppo.gamma, self.ppo.gae_lambda)

    def update(self) -> dict[str, float]:
        """Some epochs over the rollout, in shuffled batches; returns what people look at."""
        told: list[Tensor] = []
        samples = self._samples()
        for _ in range(self.ppo.n_epochs):
            for batch in self._batches(samples):
                told.append(self._gradients(batch))
                if self.steps < self.ppo.value_warm_up:
                    self._hold_policy()
                norms = [nn.utils.clip_grad_norm_(part, self.ppo.max_grad_norm) for part in self._parts]
                if not math.isfinite(float(sum(norms))):
                    legal = batch.legal.numpy()
                    raise self._spoilt(partial(self._evaluate, batch), batch.rows.numpy(), legal)
                self.optimizer.step()
                if self.ppo.target_kl is not None and float(told[-1][_KL]) > 1.5 * self.ppo.target_kl:
                    return self._told(told)
        return self._told(told)

    # ---- parts of it ---------------------------------------------------------------------------------------------

    def _play(self, t: int) -> None:
        """One move in every game, as step t of the rollout."""
        rollout, games = self.rollout, self.games
        rollout.rows[t], rollout.bits[t], rollout.starts[t] = games.rows, games.bits, self._new
        legal = legal_lists(games.bits)
        logits, values, memory = self._look(games.rows, legal)
        slots, log_probs = np.empty(games.count, np.int64), rollout.log_probs[t]
        if not draw_slots(logits.numpy(), self.acting_rng.random(games.count), slots, log_probs):
            raise self._spoilt(partial(self._look, games.rows, legal), games.rows, legal)
        actions = legal[np.arange(games.count), slots].astype(np.int64)
        finished = games.step(actions)
        rollout.actions[t], rollout.values[t], rollout.rewards[t] = actions, values.numpy(), games.rewards
        rollout.terminated[t, finished.games] = True
        cut = finished.cut_off
        if cut.size:
            rollout.terminated[t, cut], rollout.truncated[t, cut] = False, True
            last = torch.from_numpy(finished.last_rows)
            rollout.last_values[t, cut] = (
                self.network.last_values(last, memory[cut]) if self.critic is None else self.critic(last)
            ).numpy()
        self.memory.copy_(memory)
        self.memory[finished.games] = 0.0
        self._new[:] = False
        self._new[finished.games] = True

    def _look(self, rows: NDArray[np.int8], legal: NDArray[np.int16]) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (B, K), values (B,) and the next memory for the games as they stand."""
        tokens = torch.from_numpy(rows)
        logits, values, memory = self.network.step(self._seen(tokens), self.memory, torch.from_numpy(legal))
        return logits, values if self.critic is None else self.critic(tokens), memory

    def _seen(self, tokens: Tensor) -> Tensor:
        """What the policy may see of (..., F) rows."""
        return tokens if self.critic is None else tokens[..., : self.critic.seen].contiguous()

    @property
    def _parts(self) -> list[list[nn.Parameter]]:
        """What is trained, as parts that share nothing; the gradients of each are cut to length on their own."""
        if self.critic is None:
            return [list(self.network.parameters())]
        return [policy_weights(self.network), list(self.critic.parameters())]

    @property
    def _trained(self) -> list[nn.Parameter]:
        return [parameter for part in self._parts for parameter in part]

    @property
    def _growing(self) -> list[OrderedDeals | LineStarts]:
        """What changes with the share of the training that is done."""
        return [source for source in (self.deals, self.starts) if isinstance(source, (OrderedDeals, LineStarts))]

    def _samples(self) -> Batch:
        """The whole rollout as one batch: steps one after the other, the games of a step side by side."""
        rollout = self.rollout
        legal = legal_lists(rollout.bits.reshape(-1, rollout.bits.shape[-1]))
        advantages = rollout.advantages.reshape(-1)
        return Batch(
            rows=torch.from_numpy(rollout.rows),
            legal=torch.from_numpy(legal),
            slots=torch.from_numpy((legal == rollout.actions.reshape(-1, 1)).argmax(axis=1)),
            log_probs=torch.from_numpy(rollout.log_probs.reshape(-1)),
            advantages=torch.from_numpy((advantages - advantages.mean()) / (advantages.std() + 1e-8)),
            returns=torch.from_numpy(rollout.returns.reshape(-1)),
            memory=self._first_memory,
            starts=torch.from_numpy(rollout.starts),
        )

    def _batches(self, samples: Batch) -> Iterator[Batch]:
        """The samples in a random order, cut into batches; whole sequences where the network has a memory."""
        steps, games = samples.starts.shape
        if self.network.recurrent:
            order = torch.from_numpy(self.batch_rng.permutation(games))
            for chosen in torch.split(order, self.ppo.batch_size // steps):
                index = (torch.arange(steps)[:, None] * games + chosen).flatten()
                sequences = {"rows": samples.rows[:, chosen], "starts": samples.starts[:, chosen]}
                yield samples.at(index)._replace(**sequences, memory=samples.memory[chosen])
            return
        rows = samples.rows.flatten(0, 1)
        order = torch.from_numpy(self.batch_rng.permutation(steps * games))
        for index in torch.split(order, self.ppo.batch_size):
            yield samples.at(index)._replace(rows=rows[index])

    def _gradients(self, batch: Batch) -> Tensor:
        """Put the gradients of a batch's loss into the parameters; with several threads each takes a part of it."""
        count = len(batch.slots)
        size = -(-count // self.config.threads)
        if self.config.network.cards:
            size = min(size, BLOCK)  # what the graph takes stays in the processor's cache
        if self.network.recurrent or size == count:
            gradients, told = self._gradients_of(batch, count)
        else:
            cuts = [slice(start, start + size) for start in range(0, count, size)]
            parts = [batch.at(cut)._replace(rows=batch.rows[cut]) for cut in cuts]
            each = list(self._crew.map(lambda part: self._gradients_of(part, count), parts))
            gradients = [torch.stack(found).sum(0) for found in zip(*(found for found, _ in each), strict=True)]
            told = torch.stack([part for _, part in each]).sum(0)
        for parameter, gradient in zip(self._trained, gradients, strict=True):
            parameter.grad = gradient
        return told

    def _hold_policy(self) -> None:
        """Forget all gradients but the value head's own, which the policy does not depend on."""
        for parameter in policy_weights(self.network):
            parameter.grad = None

    def _gradients_of(self, batch: Batch, count: int) -> tuple[list[Tensor], Tensor]:
        """Gradients of a part of a batch of ``count`` samples, and sums of what is told, over the count."""
        logits, values = self._evaluate(batch)
        log_probs = logits.log_softmax(1)
        entropy = -(log_probs.exp() * log_probs).sum()  # what fills up counts 0 * MASKED_LOGIT = 0
        log_ratio = log_probs.gather(1, batch.slots[:, None]).squeeze(1) - batch.log_probs
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1.0 - self.clip_range, 1.0 + self.clip_range)
        gain = torch.minimum(ratio * batch.advantages, clipped * batch.advantages).sum()
        value_loss = (values - batch.returns).square().sum()
        loss = (-gain - self.ent_coef * entropy + self.ppo.vf_coef * value_loss) / count
        gradients = torch.autograd.grad(loss, self._trained)
        with torch.no_grad():
            kl = ((ratio - 1.0) - log_ratio).sum()
            outside = (ratio != clipped).sum()
            told = torch.stack([-gain, value_loss, entropy, kl, outside]) / count
        return list(gradients), told

    def _evaluate(self, batch: Batch) -> tuple[Tensor, Tensor]:
        seen = self._seen(batch.rows)
        if self.network.recurrent:
            logits, values = self.network.sequence(seen, batch.memory, batch.starts, batch.legal)
        else:
            logits, values = self.network(seen, batch.legal)
        return logits, values if self.critic is None else self.critic(batch.rows.flatten(0, -2))

    def _told(self, told: list[Tensor]) -> dict[str, float]:
        means = dict(zip(_TOLD, torch.stack(told).mean(0).tolist(), strict=True))
        means["train/explained_variance"] = self.rollout.explained_variance()
        means["train/learning_rate"] = self.optimizer.param_groups[0]["lr"]
        means["train/gradient_steps"] = len(told)
        for source in self._growing:
            means |= source.told()
        names = {"wins": "win_rate", "length": "episode_length"}
        names |= {f"started_{name}": f"started_{full}" for name, full in names.items()}
        return {**means, **{f"rollout/{names.get(name, name)}": value for name, value in self.games.report().items()}}

    # ---- what every learner can do -------------------------------------------------------------------------------

    def agent(self, name: str, deterministic: bool) -> TokenAgent:
        """See :meth:`Learner.agent`."""
        game, level, own = self.config.game, self.config.env.observation, self.critic is None
        return TokenAgent(self.network, game, level, name, deterministic, has_value=own)

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
        """See :meth:`Learner.check`; batches are checked before they change a weight, so this finds other faults."""
        if not all(torch.isfinite(parameter).all() for parameter in self._whole().parameters()):
            legal = legal_lists(self.games.bits)
            raise self._spoilt(partial(self._look, self.games.rows, legal), self.games.rows, legal)

    def training_state(self) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Any]]:
        """See :meth:`Learner.training_state`."""
        arrays = {f"games.{name}": torch.from_numpy(array) for name, array in self.games.state().items()}
        arrays |= {"memory": self.memory.clone(), "new": torch.from_numpy(self._new.copy())}
        if self.critic is not None:
            arrays |= {f"critic.{name}": parameter.detach() for name, parameter in self.critic.named_parameters()}
        state = {
            "deals": self.deals.state(),
            "starts": None if self.starts is None else self.starts.state(),
            "acting_rng": self.acting_rng.bit_generator.state,
            "batch_rng": self.batch_rng.bit_generator.state,
        }
        return pack_optimizer(self.optimizer), arrays, state

    def restore(self, checkpoint: Checkpoint, path: Path) -> None:
        """See :meth:`Learner.restore`."""
        put_weights(self.network, checkpoint.policy, path)
        unpack_optimizer(self.optimizer, checkpoint.optimizer)
        self.steps, self.updates = int(checkpoint.progress["steps"]), int(checkpoint.progress["updates"])
        arrays, state = checkpoint.training, checkpoint.progress["state"]
        mine = self.training_state()[1]
        for name in sorted(mine.keys() | arrays.keys()):
            shapes = [tuple(side[name].shape) if name in side else "none" for side in (mine, arrays)]
            if shapes[0] != shapes[1]:
                raise CheckpointError(f"{path}: {name}: expected shape {shapes[0]}, got {shapes[1]}")
        self.games.restore(
            {name.removeprefix("games."): array.numpy() for name, array in arrays.items() if name.startswith("games.")}
        )
        self.memory.copy_(arrays["memory"])
        self._new[:] = arrays["new"].numpy()
        if self.critic is not None:
            own = {n.removeprefix("critic."): array for n, array in arrays.items() if n.startswith("critic.")}
            put_weights(self.critic, own, path)
        self.deals.restore(state["deals"])
        if self.starts is not None:
            self.starts.restore(state["starts"])
        self.acting_rng.bit_generator.state = state["acting_rng"]
        self.batch_rng.bit_generator.state = state["batch_rng"]

    def close(self) -> None:
        """See :meth:`Learner.close`."""
        self.deals.close()
        if self.starts is not None:
            self.starts.close()
        self._crew.shutdown()

    def _spoilt(self, call: Callable[[], object], rows: NDArray[np.int8], legal: NDArray[np.int16]) -> NonFiniteError:
        """The error for what was fed to the network by ``call``."""
        batch: dict[str, NDArray[Any]] = {"observations": rows.copy(), "legal_actions": legal.copy()}
        return NonFiniteError(first_bad_layer(self._whole(), call), batch)

    def _whole(self) -> nn.Module:
        """All networks in one module."""
        return self.network if self.critic is None else nn.ModuleDict({"policy": self.network, "critic": self.critic})


_TOLD: Final = ("train/policy_loss", "train/value_loss", "train/entropy", "train/approx_kl", "train/clip_fraction")
_KL: Final = 3


def new_network(config: Config) -> Network:
    """A fresh network of a config, its weights drawn from the config's seed; torch's own generator stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return network_for(config.game, config.env.observation, asdict(config.network))


def new_critic(config: Config) -> Critic:
    """A fresh critic of a config, its weights drawn from the config's seed too, but others."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(np.random.default_rng([config.seed, 8]).integers(2**63)))
        return Critic(config.game, config.env.observation, asdict(config.network))
