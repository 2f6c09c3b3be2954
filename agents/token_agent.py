"""TokenAgent: a TokenNetwork as a player, with its memory where it has one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Agent, AgentError, Observations, checked_masks
from agents.checkpoint import Checkpoint, check_shape, network_arguments, put_weights
from agents.judgement import Judgement
from agents.legal import draw_slots, legal_lists, mask_bits
from agents.token_network import Network, network_for
from pyramid_env.moves import move_table
from pyramid_env.observation import layout
from pyramid_env.rules import Rules

BLOCK: Final = 256
"""Positions that a network learns from, or plays, together: what it works on stays in the processor's cache."""

PART: Final = 128
"""Positions that it looks at together when it plays as an agent: threads take parts, and the parts, so the results, are
the same for any number of them."""

QUICK_BATCH: Final = 1_024
"""Games that it plays side by side where nothing is drawn: whole parts for all threads until few games are left."""


class TokenAgent(Agent):
    """A trained network as an agent.

    Args:
        network: takes observation rows of ``level``.
        rules: what it was trained on.
        level: its information level.
        name: what tables call it.
        deterministic: the likeliest action; false: draw from the policy, with the generator that ``act`` is given.
        rates_moves: it was trained to say what each move is worth, not how likely it should be.
        has_value: it was trained to say what a position is worth.

    Attributes:
        rates_moves, has_value: as above.
        batch_size: :attr:`Agent.batch_size`: QUICK_BATCH, unless actions are drawn.
    """

    def __init__(
        self,
        network: Network,
        rules: Rules,
        level: str,
        name: str = "ppo",
        deterministic: bool = True,
        *,
        rates_moves: bool = False,
        has_value: bool = True,
    ) -> None:
        super().__init__(rules)
        self.name = name
        self.level = level
        if deterministic:
            self.batch_size = QUICK_BATCH
        self.network: Final = network
        self.rates_moves: Final = rates_moves
        self.has_value: Final = has_value
        self._layout: Final = layout(rules, level)
        self._deterministic: Final = deterministic
        self._memory = torch.zeros(0, network.recurrent)  # (B, H) of the games of the present block
        self._crew: ThreadPoolExecutor | None = None

    @property
    def says(self) -> str:
        """See :class:`agents.judgement.Judge`."""
        return "rating" if self.rates_moves else "probability"

    def begin(self, games: int) -> None:
        """See :meth:`Agent.begin`."""
        self._memory = torch.zeros(games, self.network.recurrent)

    def act(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See :meth:`Agent.act`."""
        if self.network.recurrent:
            raise AgentError(f"{self.name}: remembers what it saw: call begin and act_in, which say whose turn it is")
        return self._choose(observations, action_masks, rng, torch.zeros(len(action_masks), 0))[0]

    def act_in(
        self,
        games: NDArray[np.intp],
        observations: Observations,
        action_masks: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """See :meth:`Agent.act_in`."""
        chosen, self._memory[games] = self._choose(observations, action_masks, rng, self._memory[games])
        return chosen

    def judge_in(
        self, games: NDArray[np.intp], observations: Observations, action_masks: NDArray[np.bool_]
    ) -> Judgement:
        """See :meth:`agents.judgement.Judge.judge_in`."""
        masks = checked_masks(action_masks, len(move_table(self.rules)))
        legal = legal_lists(mask_bits(masks))
        rows = self._layout.flat(observations)
        with torch.no_grad():
            logits, values, self._memory[games] = self.network.step(
                torch.from_numpy(rows), self._memory[games], torch.from_numpy(legal)
            )
            shares = logits.sigmoid() if self.rates_moves else logits.softmax(dim=1)
        moves = np.zeros(masks.shape, np.float32)
        position, slot = np.nonzero(legal >= 0)
        moves[position, legal[position, slot]] = shares.numpy()[position, slot]
        return Judgement(moves, values.numpy() if self.has_value else None)

    def _choose(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator, memory: Tensor
    ) -> tuple[NDArray[np.int64], Tensor]:
        legal = legal_lists(mask_bits(checked_masks(action_masks, len(move_table(self.rules)))))
        rows = self._layout.flat(observations)
        lots = np.empty(0) if self._deterministic else rng.random(len(legal))
        slots = np.zeros(len(legal), np.int64)
        which = np.arange(len(legal))
        if not self.network.recurrent:
            which = np.flatnonzero((legal >= 0).sum(axis=1) > 1)  # an only move needs no thought

        def play(some: NDArray[np.intp]) -> None:
            with torch.no_grad():  # which holds for one thread alone
                logits, _, after = self.network.step(
                    torch.from_numpy(rows[some]), memory[some], torch.from_numpy(legal[some])
                )
            memory[some] = after
            chosen = logits.numpy().argmax(axis=1)
            if not self._deterministic:
                draw_slots(logits.numpy(), lots[some], chosen, np.empty(len(some), np.float32))
            slots[some] = chosen

        parts = [which[start : start + PART] for start in range(0, which.size, PART)]
        if self.threads > 1 and len(parts) > 1:
            if self._crew is None:
                self._crew = ThreadPoolExecutor(self.threads)
            list(self._crew.map(play, parts))
        else:
            for some in parts:
                play(some)
        return legal[np.arange(len(legal)), slots].astype(np.int64), memory


def network_of(checkpoint: Checkpoint, path: Path) -> Network:
    """The network of a checkpoint, ready to play or to be trained further.

    Raises:
        CheckpointError: the observation or the actions of its rules have changed since, or weights do not fit.
    """
    check_shape(checkpoint, path)
    network = network_for(checkpoint.rules, checkpoint.level, network_arguments(checkpoint))
    put_weights(network, checkpoint.policy, path)
    return network
