"""Reward schemes: from the facts of a position before and after a step to the reward of that step."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env.errors import PyramidError
from pyramid_env.kernels import CARDS_LEFT, MSC, OVER, PAR, PYRAMID_LEFT, WON
from pyramid_env.rules import Rules

RewardScheme = Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[Any]]
"""``scheme(before, after)``: facts before and after the step, (B, 9) each, to the rewards (B,).

The columns of facts stand in :mod:`pyramid_env.kernels`. Both arrays belong to the environment: keep copies only. Two
cases are not the scheme's: an illegal action earns ``ILLEGAL_REWARD``, a step that only deals a new game earns 0.
"""

ILLEGAL_REWARD: Final = -1.0
"""The reward of an illegal action where such actions are tolerated."""


def par(before: NDArray[np.int32], after: NDArray[np.int32]) -> NDArray[np.float32]:
    """+1 for each card that leaves, +50/+35/+20 for the clear in pass 1/2/3: in all the par score plus cards dealt."""
    return (after[:, PAR] - before[:, PAR]).astype(np.float32)


def msc(before: NDArray[np.int32], after: NDArray[np.int32]) -> NDArray[np.float32]:
    """Points by the msc scoring; the return is the msc score."""
    return (after[:, MSC] - before[:, MSC]).astype(np.float32)


def win(before: NDArray[np.int32], after: NDArray[np.int32]) -> NDArray[np.float32]:
    """1 for the step that wins, else 0."""
    return (after[:, WON] - before[:, WON]).astype(np.float32)


@dataclass(frozen=True)
class Shaped:
    """``win`` plus gamma * potential(after) - potential(before), which leaves the best play unchanged.

    (Ng, Harada, Russell 1999: "Policy invariance under reward transformations".) The potential is the share of the
    goal's cards that has left, and 0 once the game is over.

    Attributes:
        column: facts column that counts the cards still in the way of the goal.
        total: that count before the first move.
        gamma: the learner's discount factor; best play stays the same only if the two are equal.
    """

    column: int
    total: int
    gamma: float = 1.0

    @classmethod
    def of(cls, rules: Rules, gamma: float = 1.0) -> Shaped:
        """The scheme for some rules: pyramid cards count, or all cards where all must leave."""
        if not isinstance(gamma, Real) or not 0.0 < gamma <= 1.0:
            raise PyramidError(f"gamma: expected a number above 0 and at most 1, got {gamma!r}")
        return cls(CARDS_LEFT, rules.cards, gamma) if rules.goal == "all" else cls(PYRAMID_LEFT, rules.places, gamma)

    def __call__(self, before: NDArray[np.int32], after: NDArray[np.int32]) -> NDArray[np.float32]:
        shaping = self.gamma * self._potential(after) - self._potential(before)
        return win(before, after) + shaping.astype(np.float32)

    def _potential(self, facts: NDArray[np.int32]) -> NDArray[np.float64]:
        share: NDArray[np.float64] = 1.0 - facts[:, self.column] / self.total
        share[facts[:, OVER] != 0] = 0.0
        return share


SCHEMES: Final[dict[str, Callable[[Rules], RewardScheme]]] = {
    "par": lambda rules: par,
    "msc": lambda rules: msc,
    "win": lambda rules: win,
    "shaped": Shaped.of,
}
"""Reward schemes by name, made for some rules."""


def reward_scheme(reward: str | RewardScheme, rules: Rules) -> RewardScheme:
    """The scheme of a name (``"par"``, ``"msc"``, ``"win"``, ``"shaped"`` with gamma 1), or a callable as it is."""
    if callable(reward):
        return reward
    if not isinstance(reward, str) or reward not in SCHEMES:
        close = difflib.get_close_matches(str(reward), SCHEMES, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise PyramidError(f"reward: expected one of {', '.join(SCHEMES)} or a callable, got {reward!r}{hint}")
    return SCHEMES[reward](rules)


_COLUMNS: Final[tuple[tuple[RewardScheme, int], ...]] = ((par, PAR), (msc, MSC), (win, WON))


def column_of(scheme: RewardScheme) -> int:
    """The column of the facts whose growth a scheme rewards, so that a kernel can do it; -1 = it's not that simple."""
    for known, column in _COLUMNS:
        if scheme is known:
            return column
    return -1


def rewards_of(scheme: RewardScheme, before: NDArray[np.int32], after: NDArray[np.int32]) -> NDArray[np.float64]:
    """The scheme's rewards as a new float64 array (B,), shape checked."""
    rewards = np.array(scheme(before, after), np.float64)
    if rewards.shape != (len(after),):
        raise PyramidError(f"reward: expected an array of shape ({len(after)},), got {rewards.shape} from {scheme!r}")
    return rewards
