"""Experts: whose moves are learned from: an agent that sees what a player sees, or the solver, which sees all cards."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent
from agents.config import Config
from agents.planner import PlannerAgent
from agents.tips import TipsAgent
from pyramid_env.functional import Arrays
from pyramid_env.observation import layout
from pyramid_env.rules import PAR_BONUS, Rules
from pyramid_env.solver import move_values

MOST_MOVES: Final = 63
"""Legal moves of a position, far above the most there are."""


class Choice(NamedTuple):
    """What an expert does in n positions, by the columns of the list of legal moves."""

    slots: NDArray[np.int64]  # (n,) the move that it plays
    best: NDArray[np.int64]  # (n,) bit k: move k is as good as that


class Expert(Protocol):
    """A player of games in arrays of the level ``memory``."""

    def choose(
        self, arrays: Arrays, games: NDArray[np.intp], legal: NDArray[np.int16], rng: np.random.Generator
    ) -> Choice:
        """Moves in some of the games, (n,) their indices; (n, K) what is legal there, filled up with -1."""
        ...


class AgentExpert:
    """An agent; the move that it plays is the only one that counts."""

    def __init__(self, agent: Agent) -> None:
        self._agent: Final = agent
        self._layout: Final = layout(agent.rules, agent.level)

    def choose(
        self, arrays: Arrays, games: NDArray[np.intp], legal: NDArray[np.int16], rng: np.random.Generator
    ) -> Choice:
        """See :class:`Expert`."""
        fields = self._layout.views(arrays.rows[games])
        actions = self._agent.act(fields, arrays.masks[games].astype(np.bool_), rng)
        slots: NDArray[np.int64] = (legal == actions[:, None]).argmax(axis=1)
        return Choice(slots, np.int64(1) << slots)


class SolverExpert:
    """The solver with all cards open: plays any of the moves that keep the best result, and all of them count.

    It looks at hidden cards, so which of two moves is right may hang on a card that the learner cannot see. Over many
    deals what is hidden averages out, and a move that is right under most orders is learned. That is why all best moves
    count: the one that a line happens to hold would be an accident, and there is nothing to learn where none matters.
    Where nothing can be won any more ``tips`` plays the game to its end.
    """

    def __init__(self, rules: Rules, judge: str, max_states: int, threads: int) -> None:
        self._rules, self._judge = rules, judge
        self._max_states, self._threads = max_states, threads
        self._in_lost_games: Final = AgentExpert(TipsAgent(rules))

    def choose(
        self, arrays: Arrays, games: NDArray[np.intp], legal: NDArray[np.int16], rng: np.random.Generator
    ) -> Choice:
        """See :class:`Expert`."""
        best = legal >= 0
        free = np.flatnonzero(best.sum(axis=1) > 1)
        lost = np.zeros(len(games), np.bool_)
        if free.size:
            values = self._values(arrays, games[free], legal[free])
            top = values.max(axis=1)
            best[free] = values >= top[:, None]
            lost[free] = (top <= 0.0) & (self._judge != "score")
        slots: NDArray[np.int64] = np.where(best, rng.random(best.shape), -1.0).argmax(axis=1)
        if lost.any():
            slots[lost] = self._in_lost_games.choose(arrays, games[lost], legal[lost], rng).slots
        return Choice(slots, as_bits(best))

    def _values(self, arrays: Arrays, games: NDArray[np.intp], legal: NDArray[np.int16]) -> NDArray[np.float32]:
        """(n, K) what each legal move is worth; -inf where there is none."""
        found = move_values(
            self._rules, arrays.ranks[games], arrays.states[games], self._judge, 1,
            workers=self._threads, max_states=self._max_states,
        )  # fmt: skip
        table = found.dense(arrays.masks.shape[1])
        values = np.where(legal >= 0, np.take_along_axis(table, np.maximum(legal, 0).astype(np.intp), axis=1), -np.inf)
        if self._judge == "earliest":
            bonus = np.array(PAR_BONUS, np.float32)
            values = np.where(legal >= 0, bonus[np.maximum(values, 0.0).astype(np.int64)], -np.inf)
        return values.astype(np.float32)


def make_expert(config: Config) -> Expert:
    """The expert of a config, without a memory of games before."""
    rules, asked = config.game, config.imitation
    name, _, option = asked.expert.partition(":")
    if name == "solver":
        return SolverExpert(rules, asked.judge, asked.max_states, config.threads)
    if name == "tips":
        return AgentExpert(TipsAgent(rules))
    return AgentExpert(PlannerAgent(rules, ",".join(filter(None, (option, f"workers={config.threads}")))))


def as_bits(best: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(n,) bit k of each row of (n, K)."""
    assert best.shape[1] <= MOST_MOVES, best.shape
    bits: NDArray[np.int64] = best.astype(np.int64) @ (np.int64(1) << np.arange(best.shape[1]))
    return bits
