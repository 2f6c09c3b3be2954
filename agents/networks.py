"""The token network in stable-baselines3: features, a masked distribution, a policy that fails loudly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib.common.maskable.distributions import MaskableCategorical, MaskableCategoricalDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

from agents.action_head import MASKED_LOGIT
from agents.base import checked_masks
from agents.faults import NonFiniteError, first_bad_layer
from agents.token_network import ACTIVATION_CLASSES, TokenTrunk
from agents.tokens import token_counts


class TokenFeatures(BaseFeaturesExtractor):
    """:class:`~agents.token_network.TokenTrunk` as SB3 wants it.

    Args:
        observation_space: a Box of integers from 0 up, or a Dict of them.
        embedding, layers, blocks, activation: as there.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        embedding: int = 256,
        layers: tuple[int, ...] = (),
        blocks: int = 0,
        activation: str = "relu",
    ) -> None:
        super().__init__(observation_space, (embedding, *layers)[-1])
        self.trunk = TokenTrunk(token_counts(observation_space), embedding, layers, blocks, activation)

    def forward(self, observations: Tensor | Mapping[str, Tensor]) -> Tensor:
        """(B, features) of a (B, F) tensor, or of one tensor a field."""
        if not isinstance(observations, Tensor):
            observations = torch.cat([field.flatten(1) for field in observations.values()], dim=1)
        features: Tensor = self.trunk(observations.int())  # SB3 keeps observations as floats
        return features


def refuse_ours(groups: int, group_blocks: int, cards: int, recurrent: int) -> None:
    """Raise ValueError for parts of a NetworkConfig that only our own algorithms have."""
    if groups or group_blocks or cards or recurrent:
        got = f"{groups}, {group_blocks}, {cards}, {recurrent}"
        raise ValueError(f"groups, group_blocks, cards, recurrent: expected 0, this policy has none of them; got {got}")


class MaskedDistribution(MaskableCategoricalDistribution):
    """The distribution over legal actions, computed on them alone.

    sb3-contrib builds a checked torch Categorical over all actions, twice a forward pass. Its simplex check used to
    fail at random with many actions (float32 rounding); 2.9.2 drops the cached probabilities first and so avoids
    that. A position has a handful of legal actions out of hundreds: here their logits are gathered first, nothing is
    checked, and the policy looks after finiteness. Results equal sb3-contrib's to rounding.

    Inside, K is the largest number of legal actions of a row; shorter rows are filled up with actions of probability
    exactly 0.
    """

    def __init__(self, action_dim: int) -> None:
        super().__init__(action_dim)
        self.proba_distribution(torch.zeros(1, action_dim))

    def proba_distribution(self, action_logits: Tensor) -> MaskedDistribution:
        """Start from (B, A) logits, nothing masked."""
        self._logits = action_logits.view(-1, self.action_dim)
        self.apply_masking(None)
        return self

    def apply_masking(self, masks: Any) -> None:
        """Mask (B, A), true = legal; None removes the mask."""
        logits = self._logits
        self._masks = None if masks is None else as_mask(masks, logits)
        if self._masks is None:
            self._actions = torch.arange(self.action_dim, device=logits.device).expand_as(logits)  # (B, K)
            self._legal = torch.ones_like(logits, dtype=torch.bool)  # (B, K)
        else:
            rows, actions = self._masks.nonzero(as_tuple=True)
            counts = self._masks.sum(dim=1)
            slots = torch.arange(len(rows), device=logits.device) - (counts.cumsum(0) - counts)[rows]
            self._legal = torch.arange(int(counts.max()), device=logits.device) < counts[:, None]
            self._actions = torch.zeros_like(self._legal, dtype=torch.long)
            self._actions[rows, slots] = actions
        self._log_probs: Tensor | None = None

    @property
    def _compact(self) -> Tensor:
        """(B, K) log-probabilities of ``_actions``."""
        if self._log_probs is None:
            logits = self._logits.gather(1, self._actions).masked_fill(~self._legal, MASKED_LOGIT)
            self._log_probs = logits.log_softmax(dim=1)
        return self._log_probs

    @property
    def log_probs(self) -> Tensor:
        """(B, A) log-probabilities of all actions; masked ones have MASKED_LOGIT."""
        rows, slots = self._legal.nonzero(as_tuple=True)
        every = torch.full_like(self._logits, MASKED_LOGIT)
        return every.index_put((rows, self._actions[rows, slots]), self._compact[rows, slots])

    @property
    def distribution(self) -> MaskableCategorical:  # type: ignore[override]  # a plain attribute in the base
        """The same as sb3-contrib's own object, for callers that look inside; built anew on each access."""
        return MaskableCategorical(logits=self._logits, masks=self._masks, validate_args=False)

    def log_prob(self, actions: Tensor) -> Tensor:
        """(B,) log-probability of (B,) actions; MASKED_LOGIT for a masked one."""
        found = (self._actions == actions.long().view(-1, 1)) & self._legal
        chosen = self._compact.gather(1, found.byte().argmax(dim=1, keepdim=True)).squeeze(1)
        return chosen.masked_fill(~found.any(dim=1), MASKED_LOGIT)

    def entropy(self) -> Tensor:
        """(B,) entropy over the legal actions."""
        return -(self._compact.exp() * self._compact).sum(dim=1)  # what fills up counts 0 * -1e8 = 0

    def sample(self) -> Tensor:
        """(B,) drawn actions, by inverting the cumulative distribution; one of probability 0 can't be met."""
        cumulative = self._compact.exp().cumsum(dim=1)
        drawn = torch.rand_like(cumulative[:, :1]) * cumulative[:, -1:]
        slots = torch.searchsorted(cumulative, drawn, right=True)
        return self._actions.gather(1, slots).squeeze(1)

    def mode(self) -> Tensor:
        """(B,) likeliest actions, the first of equals."""
        return self._actions.gather(1, self._compact.argmax(dim=1, keepdim=True)).squeeze(1)


def as_mask(masks: Any, logits: Tensor) -> Tensor:
    """Masks of any kind as a bool tensor of the logits' shape."""
    return torch.as_tensor(masks, dtype=torch.bool, device=logits.device).reshape(logits.shape)


class MaskedTokenPolicy(MaskableActorCriticPolicy):
    """MaskablePPO's policy on tokens, with masks required.

    * Predicting without masks, or with a row without a legal action, raises ValueError instead of playing something
      illegal.
    * NaN or infinity raises NonFiniteError with the layer and the batch instead of training on.

    Keyword arguments: those of sb3-contrib's policy, and ``embedding``, ``shared``, ``blocks``,
    ``policy``, ``value``, ``activation`` as in NetworkConfig (``recurrent`` must be 0).
    """

    says: ClassVar[str] = "probability"

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Discrete,
        lr_schedule: Any,
        *,
        embedding: int = 256,
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
        **kwargs: Any,
    ) -> None:
        refuse_ours(groups, group_blocks, cards, recurrent)
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch={"pi": list(policy), "vf": list(value)},
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

    @property
    def _actions(self) -> int:
        assert isinstance(self.action_space, spaces.Discrete)
        return int(self.action_space.n)

    def _build(self, lr_schedule: Any) -> None:
        self.action_dist: MaskedDistribution = MaskedDistribution(self._actions)
        super()._build(lr_schedule)

    def forward(self, obs: Any, deterministic: bool = False, action_masks: Any = None) -> tuple[Tensor, Tensor, Tensor]:
        """Actions, values and log-probabilities for a rollout."""
        values, distribution = self._values_and_distribution(obs, action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values, distribution.log_prob(actions)

    def evaluate_actions(self, obs: Any, actions: Tensor, action_masks: Any = None) -> tuple[Tensor, Tensor, Tensor]:
        """Values, log-probabilities of the actions taken, and entropies, for an update."""
        values, distribution = self._values_and_distribution(obs, action_masks)
        return values, distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Any, action_masks: Any = None) -> MaskedDistribution:
        """The distribution over legal actions."""
        return self._values_and_distribution(obs, action_masks)[1]

    def scores(self, rows: Tensor, action_masks: NDArray[np.bool_]) -> Tensor:
        """(B, A) log-probabilities, MASKED_LOGIT for what is illegal."""
        return self.get_distribution(rows, action_masks).log_probs

    def judge(self, rows: Tensor, action_masks: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
        """(B, A) probabilities, 0 for what is illegal, and (B,) values."""
        values, distribution = self._values_and_distribution(rows, action_masks)
        return distribution.log_probs.exp(), values.squeeze(1)

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
        action_masks: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Actions for observations; ``action_masks`` is required and each row needs a legal action."""
        return super().predict(observation, state, episode_start, deterministic, self._required(action_masks))

    def _required(self, action_masks: Any) -> NDArray[np.bool_]:
        if action_masks is None:
            raise ValueError(
                "action_masks: expected the masks of the observations, got none; without them the policy would choose "
                "illegal moves. Pass action_masks=env.action_masks(); to evaluate, use evaluate.py or sb3-contrib's "
                "MaskableEvalCallback"
            )
        return checked_masks(np.asarray(action_masks).reshape(-1, self._actions))

    def _values_and_distribution(self, obs: Any, action_masks: Any) -> tuple[Tensor, MaskedDistribution]:
        if not isinstance(action_masks, Tensor):  # those of an update are the ones that were checked in the rollout
            action_masks = self._required(action_masks)
        latent_pi, latent_vf = self.mlp_extractor(self.extract_features(obs))
        values, logits = self.value_net(latent_vf), self.action_net(latent_pi)
        if not torch.isfinite(logits.sum() + values.sum()):
            raise NonFiniteError(self._first_bad_layer(obs), as_arrays(obs, action_masks))
        distribution = self.action_dist.proba_distribution(logits)
        distribution.apply_masking(action_masks)
        return values, distribution

    def extract_features(self, obs: Any, features_extractor: Any = None) -> Tensor:
        """Features of tokens as they are: SB3's preprocessing would turn them into floats and back."""
        features: Tensor = self.features_extractor(obs)
        return features

    def _first_bad_layer(self, obs: Any) -> str:
        def call() -> None:
            latent_pi, latent_vf = self.mlp_extractor(self.extract_features(obs))
            self.action_net(latent_pi), self.value_net(latent_vf)

        return first_bad_layer(self, call)


def as_arrays(obs: Any, action_masks: Any) -> dict[str, NDArray[Any]]:
    """What a network was fed, as arrays by name."""
    fields = {"observations": obs} if isinstance(obs, Tensor) else {f"observations.{k}": v for k, v in obs.items()}
    arrays = {name: value.detach().cpu().numpy() for name, value in fields.items()}
    masks = action_masks.detach().cpu().numpy() if isinstance(action_masks, Tensor) else np.asarray(action_masks)
    return {**arrays, "action_masks": masks}
