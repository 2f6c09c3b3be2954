"""Judgement: what an agent's network makes of positions, for people who look at its games."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from agents.base import Observations


class Judgement(NamedTuple):
    """What a network makes of B positions.

    Attributes:
        moves: (B, A) float32, 0 for moves that are not legal; what the numbers are is said by :attr:`Judge.says`.
        values: (B,) float32 what it expects of the rest of the game, by the reward it was trained with; None if it was
            not trained to say.
    """

    moves: NDArray[np.float32]
    values: NDArray[np.float32] | None


@runtime_checkable
class Judge(Protocol):
    """An agent that tells what it makes of positions.

    Attributes:
        level: information level of the observations it wants.
        says: what it tells of a move: its ``"probability"``, which sum to 1 over the legal moves; a ``"rating"`` of
            each move by itself, 1 = it loses nothing; or a ``"value"``: what it expects of the rest of a game with it.
    """

    level: str

    @property
    def says(self) -> str:
        """As above."""
        ...

    def begin(self, games: int) -> None:
        """See :meth:`agents.base.Agent.begin`."""
        ...

    def judge_in(
        self, games: NDArray[np.intp], observations: Observations, action_masks: NDArray[np.bool_]
    ) -> Judgement:
        """What it makes of the positions that ``act_in`` would choose in; an agent with a memory remembers them
        likewise, so a game is judged in a second run through it, not while it is played.

        Raises:
            ValueError: as :meth:`agents.base.Agent.act`.
        """
        ...
