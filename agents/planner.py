"""Planner: rates each move over sampled orders of the unseen cards, and plays exactly once every card is known."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent, AgentError, Observations, checked_masks
from agents.plans import OBJECTIVES, Plans
from pyramid_env.observation import Position, position_from_observation
from pyramid_env.rules import PAR_BONUS, Rules
from pyramid_env.solver.move_values import MoveValues, move_values

WORLDS: Final = 32
"""Orders of the unseen cards for each choice, unless told otherwise."""
ROUND: Final = 8
"""Orders that are added at a time while a budget of seconds lasts."""
SCORE_WORLDS: Final = 4
"""Orders where no move has hope of a win (a clear): there the score counts, which takes the solver far longer."""
MAX_STATES: Final = 1_000
"""Positions that the solver may look at for one move in one order."""
LAST_STATES: Final = 300_000
"""Positions of one search once every card is known."""
UNCLEARED: Final = -12.0
"""Par score of a deal that cannot be cleared, about: in `till_dawn` the best ones average -11.5 (validation deals)."""


class Settings(NamedTuple):
    """What may follow the name, parted by commas: ``planner:score``, ``planner:64``, ``planner:seconds=0.5``.

    Attributes:
        objective: ``"win"`` or ``"score"``; ``""``: what the rules rank by, see :func:`objective_of`.
        worlds: orders of the unseen cards for each choice.
        seconds: time for each choice, in place of a number of orders: as many as fit, 8 at least. The faster the
            machine, the better it plays then, and games do not repeat.
        workers: threads; 0 takes one a core. They change no choice, unless seconds are counted.
    """

    objective: str = ""
    worlds: int = WORLDS
    seconds: float = 0.0
    workers: int = 0


def read_settings(option: str) -> Settings:
    """Settings from the text after ``planner:``; AgentError for a word that is none."""
    found = Settings()
    for word in filter(None, option.split(",")):
        name, equals, value = word.partition("=")
        try:
            if word in OBJECTIVES:
                found = found._replace(objective=word)
            elif name == "seconds" and 0 < float(value) < float("inf"):
                found = found._replace(seconds=float(value))
            elif name == "workers" and int(value) >= 1:
                found = found._replace(workers=int(value))
            elif not equals and int(word) >= 1:
                found = found._replace(worlds=int(word))
            else:
                raise ValueError
        except ValueError:
            expected = f"{', '.join(OBJECTIVES)}, a number of worlds, seconds=..., workers=..."
            raise AgentError(f"planner: expected {expected}; got {word!r}") from None
    return found


def objective_of(rules: Rules) -> str:
    """What results under these rules are ranked by: points where the rules count them to the last card, else wins."""
    return "score" if rules.scoring == "msc" or (rules.scoring == "par" and rules.goal == "all") else "win"


class PlannerAgent(Agent):
    """Plans over what it does not know, from observations of the level ``memory`` alone.

    While cards are unseen it deals them in K orders, asks the solver what can follow each legal move in each order, and
    takes the best on average. Between equals it draws: that loses nothing in any of the orders, and tells a card more.
    From the moment every card is known it plays a best line.

    For wins the average is that of the deals still to be won. For points it is the par bonus of the earliest clear, or
    with msc scoring the share of wins: cheap, and most of what the score depends on. Where no move has hope in any
    order the best final score decides, averaged over a few.

    Args:
        rules: the game.
        option: see :class:`Settings`.
    """

    name = "planner"
    level = "memory"

    def __init__(self, rules: Rules, option: str = "") -> None:
        super().__init__(rules)
        self.settings: Final = read_settings(option)
        self.objective: Final = self.settings.objective or objective_of(rules)
        self.plans: Final = Plans(rules, self.objective, LAST_STATES)
        self._by_pass: Final = self.objective == "score" and rules.scoring == "par"

    def act(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See :meth:`Agent.act`."""
        masks = checked_masks(action_masks)
        position = position_from_observation(self.rules, observations)
        chosen: NDArray[np.int64] = masks.argmax(axis=1)
        choice = masks.sum(axis=1) > 1
        hidden = position.unseen.any(axis=1)
        known = np.flatnonzero(choice & ~hidden)
        if known.size:
            chosen[known] = self.plans.actions(Position(position.ranks[known], position.state[known]))
        unknown = np.flatnonzero(choice & hidden)
        if unknown.size:
            chosen[unknown] = self._choose(Position(position.ranks[unknown], position.state[unknown]), rng)
        return chosen

    def _choose(self, positions: Position, rng: np.random.Generator) -> NDArray[np.int64]:
        """The action in each of N positions with hidden cards and several moves."""
        rated, hopes = self._hopes(positions, rng)
        hopeless = np.maximum.reduceat(hopes, rated.offsets[:-1]) <= self._floor
        chosen = best_moves(rated, hopes)
        left = np.flatnonzero(hopeless)
        if left.size:
            again = self._rate(Position(positions.ranks[left], positions.state[left]), "score", SCORE_WORLDS, rng)
            chosen[left] = best_moves(again, again.means)
        return chosen

    @property
    def _floor(self) -> float:
        """What a move without hope is worth."""
        return UNCLEARED if self._by_pass else 0.0

    def _hopes(self, positions: Position, rng: np.random.Generator) -> tuple[MoveValues, NDArray[np.float64]]:
        """The moves and (M,) what each is worth on average."""
        asked = "earliest" if self._by_pass else "win"
        if not self.settings.seconds:
            rated = self._rate(positions, asked, self.settings.worlds, rng)
            return rated, self._worth(rated).mean(axis=1)
        ends = time.perf_counter() + self.settings.seconds * len(positions.ranks)
        rounds: list[NDArray[np.float64]] = []
        while not rounds or time.perf_counter() < ends:
            rated = self._rate(positions, asked, ROUND, rng)
            rounds.append(self._worth(rated).mean(axis=1))
        return rated, np.mean(rounds, axis=0)

    def _worth(self, rated: MoveValues) -> NDArray[np.float64]:
        """(M, K) values as what they are worth."""
        if not self._by_pass:
            return rated.values.astype(np.float64)
        worth = np.array([UNCLEARED, *PAR_BONUS[1:]])
        return worth[rated.values.astype(np.int64)]

    def _rate(self, positions: Position, objective: str, worlds: int, rng: np.random.Generator) -> MoveValues:
        workers = self.settings.workers or None
        return move_values(self.rules, *positions, objective, worlds, rng, workers=workers, max_states=MAX_STATES)


def best_moves(rated: MoveValues, worth: NDArray[np.floating]) -> NDArray[np.int64]:
    """(N,) the best move of each position, each of which has some; of equals the last, which is the draw."""
    best = np.maximum.reduceat(worth, rated.offsets[:-1])
    entries = np.flatnonzero(worth >= best[rated.rows] - _EQUAL)
    last = entries[np.searchsorted(entries, rated.offsets[1:]) - 1]
    chosen: NDArray[np.int64] = rated.actions[last]
    return chosen


_EQUAL: Final = 1e-6
