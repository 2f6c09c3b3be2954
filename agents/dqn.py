"""Masked DQN on stable-baselines3's: double, duelling, masked where a move is chosen and where the next one is valued.

How to train with it, outside of train.py::

    from agents.dqn import MaskedDQN
    from agents.sb3 import PyramidVecEnv

    env = PyramidVecEnv("mini", num_envs=64, flat=True)
    model = MaskedDQN("TokenQPolicy", env, buffer_size=50_000, train_freq=1, gradient_steps=2)
    model.learn(10_000)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn

from agents.action_head import MASKED_LOGIT
from agents.base import checked_masks
from agents.checkpoint import Checkpoint, check_shape, network_arguments, put_weights
from agents.faults import NonFiniteError, first_bad_layer
from agents.networks import TokenFeatures, as_arrays, as_mask, refuse_ours
from agents.sb3 import flat_space
from agents.token_network import ACTIVATION_CLASSES


class Duel(nn.Module):
    """A value and an advantage for each action, whose mean is taken off: action values (Wang et al. 2016)."""

    def __init__(self, width: int, actions: int) -> None:
        super().__init__()
        self.value = nn.Linear(width, 1)
        self.advantage = nn.Linear(width, actions)

    def forward(self, features: Tensor) -> Tensor:
        """(B, A) action values of (B, D) features."""
        advantages = self.advantage(features)
        values: Tensor = self.value(features) + advantages - advantages.mean(dim=1, keepdim=True)
        return values


class MaskedQNetwork(QNetwork):
    """Action values on tokens; fails loudly where they are not finite."""

    def make_duelling(self) -> None:
        """Put a duel in place of the last layer."""
        last = self.q_net[-1]
        assert isinstance(last, nn.Linear)
        self.q_net[-1] = Duel(last.in_features, last.out_features)

    def forward(self, obs: Any) -> Tensor:
        """(B, A) action values."""
        values: Tensor = self._values(obs)
        if not torch.isfinite(values.sum()):
            layer = first_bad_layer(self, lambda: self._values(obs))
            raise NonFiniteError(layer, as_arrays(obs, np.zeros((len(values), 0), np.bool_)))
        return values

    def _values(self, obs: Any) -> Tensor:
        assert self.features_extractor is not None
        values: Tensor = self.q_net(self.features_extractor(obs))
        return values


class TokenQPolicy(DQNPolicy):
    """DQN's policy on tokens, with masks required wherever it chooses.

    Keyword arguments: those of SB3's policy, ``embedding``, ``shared``, ``blocks``, ``policy``, ``activation`` as in
    NetworkConfig (``value`` is not used, ``recurrent`` must be 0), and ``duelling``.
    """

    says: ClassVar[str] = "value"

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Discrete,
        lr_schedule: Any,
        *,
        embedding: int = 128,
        shared: tuple[int, ...] = (256,),
        blocks: int = 0,
        policy: tuple[int, ...] = (),
        value: tuple[int, ...] = (),
        activation: str = "relu",
        groups: int = 0,
        group_blocks: int = 0,
        cards: int = 0,
        card_layers: int = 0,
        half: bool = False,
        recurrent: int = 0,
        duelling: bool = True,
        **kwargs: Any,
    ) -> None:
        refuse_ours(groups, group_blocks, cards, recurrent)
        self.duelling: Final = duelling
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch=list(policy),
            activation_fn=ACTIVATION_CLASSES[activation],
            features_extractor_class=TokenFeatures,
            features_extractor_kwargs={
                "embedding": embedding,
                "layers": tuple(shared),
                "blocks": blocks,
                "activation": activation,
            },
            normalize_images=False,
            **kwargs,
        )

    def make_q_net(self) -> QNetwork:
        """See the parent."""
        made = MaskedQNetwork(**self._update_features_extractor(self.net_args, features_extractor=None))
        if self.duelling:
            made.make_duelling()
        return made.to(torch.device(self.device))

    def scores(self, rows: Tensor, action_masks: NDArray[np.bool_]) -> Tensor:
        """(B, A) action values, MASKED_LOGIT for what is illegal."""
        values = self.q_net(rows)
        scores: Tensor = values.masked_fill(~as_mask(action_masks, values), MASKED_LOGIT)
        return scores

    def judge(self, rows: Tensor, action_masks: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
        """(B, A) action values, 0 for what is illegal, and (B,) the highest of the others."""
        scores = self.scores(rows, action_masks)
        return scores.where(as_mask(action_masks, scores), 0.0), scores.amax(dim=1)

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = True,
        action_masks: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """The best legal actions; ``action_masks`` is required and each row needs a legal action."""
        if action_masks is None:
            raise ValueError(
                "action_masks: expected the masks of the observations, got none; without them the policy would choose "
                "illegal moves. Pass action_masks=env.action_masks(); to evaluate, use evaluate.py"
            )
        self.set_training_mode(False)
        rows, vectorized = self.obs_to_tensor(observation)
        assert isinstance(rows, Tensor)
        masks = checked_masks(np.asarray(action_masks).reshape(len(rows), -1))
        with torch.no_grad():
            actions = self.scores(rows, masks).argmax(dim=1).cpu().numpy()
        return (actions if vectorized else actions[0]), state


class MaskedSamples(NamedTuple):
    """Transitions, with the masks of the positions that they lead to."""

    observations: Tensor  # (N, F)
    actions: Tensor  # (N, 1)
    next_observations: Tensor  # (N, F)
    next_masks: Tensor  # (N, A) bool; all false where the game is over
    dones: Tensor  # (N, 1) the game is over; not: it was cut off
    rewards: Tensor  # (N, 1)


class MaskedReplayBuffer(ReplayBuffer):
    """SB3's buffer, with the legal moves of the next positions, one bit each."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert isinstance(self.action_space, spaces.Discrete)
        self._actions: Final = int(self.action_space.n)
        self._masks: Final = np.zeros((self.buffer_size, self.n_envs, -(-self._actions // 8)), np.uint8)
        self.next_masks: NDArray[np.bool_] | None = None  # (B, A) of the next transition that is added

    def add(self, *args: Any, **kwargs: Any) -> None:
        """See the parent; ``next_masks`` must have been set."""
        assert self.next_masks is not None
        self._masks[self.pos] = np.packbits(self.next_masks, axis=1)
        self.next_masks = None
        super().add(*args, **kwargs)

    def sample_masked(self, count: int, rng: np.random.Generator) -> MaskedSamples:
        """Transitions drawn from the generator."""
        at = rng.integers(self.buffer_size if self.full else self.pos, size=count)
        game = rng.integers(self.n_envs, size=count)
        over = self.dones[at, game] * (1.0 - self.timeouts[at, game])
        masks = np.unpackbits(self._masks[at, game], axis=1, count=self._actions).view(np.bool_)
        arrays = (
            self.observations[at, game],
            self.actions[at, game].astype(np.int64),
            self.next_observations[at, game],
            masks,
            over[:, None],
            self.rewards[at, game][:, None],
        )
        return MaskedSamples(*(torch.as_tensor(array, device=self.device) for array in arrays))


class MaskedDQN(DQN):
    """DQN that never plays or values an illegal move, on environments with ``action_masks() -> (B, A) bool``.

    With probability epsilon a game's move is a random legal one; all random numbers come from one generator.

    Args:
        double: the network chooses the next move and the target network values it (van Hasselt et al. 2016); false:
            the target network does both.
        others: as in SB3's DQN.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"TokenQPolicy": TokenQPolicy}

    def __init__(self, *args: Any, double: bool = True, **kwargs: Any) -> None:
        self.double: Final = double
        super().__init__(*args, **{**kwargs, "replay_buffer_class": MaskedReplayBuffer})

    def _setup_model(self) -> None:
        super()._setup_model()
        self.rng = np.random.default_rng(self.seed)

    def _masks(self) -> NDArray[np.bool_]:
        assert self.env is not None
        masks: NDArray[np.bool_] = np.stack(self.env.env_method("action_masks"))
        return masks

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        masks = checked_masks(self._masks())
        actions = np.where(masks, self.rng.random(masks.shape), -1.0).argmax(axis=1)  # a random legal one
        if self.num_timesteps >= learning_starts:
            assert isinstance(self.policy, TokenQPolicy)
            best, _ = self.policy.predict(self._last_obs, action_masks=masks)
            actions = np.where(self.rng.random(n_envs) < self.exploration_rate, actions, best)
        return actions, actions

    def _store_transition(
        self,
        replay_buffer: Any,
        buffer_action: Any,
        new_obs: Any,
        reward: Any,
        dones: Any,
        infos: list[dict[str, Any]],
    ) -> None:
        masks = self._masks().copy()
        for b in np.flatnonzero(dones):  # those of the next deal by now
            masks[b] = infos[b].get("terminal_action_mask", False)
        replay_buffer.next_masks = masks
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """See the parent."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        assert isinstance(self.replay_buffer, MaskedReplayBuffer)
        losses = []
        for _ in range(gradient_steps):
            samples = self.replay_buffer.sample_masked(batch_size, self.rng)
            values = self.q_net(samples.observations).gather(1, samples.actions)
            loss = nn.functional.smooth_l1_loss(values, self.targets(samples))
            losses.append(loss.item())
            self.policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # untyped in torch
            nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", float(np.mean(losses)))

    @torch.no_grad()
    def targets(self, samples: MaskedSamples) -> Tensor:
        """(N, 1) what the values of the moves made should be."""
        valued = self.q_net_target(samples.next_observations)
        chosen_by = self.q_net(samples.next_observations) if self.double else valued
        best = chosen_by.masked_fill(~samples.next_masks, MASKED_LOGIT).argmax(dim=1, keepdim=True)
        targets: Tensor = samples.rewards + (1.0 - samples.dones) * self.gamma * valued.gather(1, best)
        return targets


def q_policy_of(checkpoint: Checkpoint, path: Path) -> TokenQPolicy:
    """The policy of a DQN checkpoint, ready to play; CheckpointError if it does not fit this version."""
    check_shape(checkpoint, path)
    space = flat_space(checkpoint.rules, checkpoint.level)
    sizes = network_arguments(checkpoint)
    policy = TokenQPolicy(space, spaces.Discrete(checkpoint.actions), lambda _: 0.0, **sizes)
    put_weights(policy.q_net, checkpoint.policy, path)
    policy.set_training_mode(False)
    return policy
