"""Plans: lines of play that the solver found, kept by position, so that a game is solved once and then followed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agents.base import AgentError
from pyramid_env.kernels import MAX_MOVES, PYRAMID, STOCK, apply, list_moves, table
from pyramid_env.moves import Move, move_table
from pyramid_env.observation import Position
from pyramid_env.rules import Rules
from pyramid_env.solver import Status, solve_position

OBJECTIVES: Final = ("win", "score")
MAX_POSITIONS: Final = 500_000
"""Positions kept (some 100 bytes each) before all are forgotten."""


class Plans:
    """Best moves in positions of which every card is known.

    A plan is played to the end of the game: after the solver's line (which may stop where nothing better can be
    reached) it takes what can be taken, else draws.

    Args:
        rules: the game.
        objective: ``"win"``: win if that is possible, else the best score; ``"score"``: the best score.
        max_states: the solver's limit for each of its searches; where it is hit, the best line found so far is played.
    """

    def __init__(self, rules: Rules, objective: str, max_states: int) -> None:
        if objective not in OBJECTIVES:
            raise AgentError(f"objective: expected one of {', '.join(OBJECTIVES)}, got {objective!r}")
        self._rules: Final = rules
        self._objective: Final = objective
        self._max_states: Final = max_states
        self._table: Final = table(rules)
        self._moves: Final = move_table(rules)
        self._actions: Final[dict[bytes, int]] = {}
        self.solved = 0  # positions handed to the solver so far

    def actions(self, positions: Position) -> NDArray[np.int64]:
        """The action in each of N positions (ranks (N, cards), state (N, 5)), none of them over."""
        keys = self._keys(positions.ranks, positions.state)
        chosen = np.empty(len(keys), np.int64)
        for n, key in enumerate(keys):
            if key not in self._actions:
                self._plan(positions.ranks[n], positions.state[n])
            chosen[n] = self._actions[key]
        return chosen

    def _plan(self, ranks: NDArray[np.int8], state: NDArray[np.int64]) -> None:
        if len(self._actions) > MAX_POSITIONS:
            self._actions.clear()
        self.solved += 1
        line, states = self._to_the_end(ranks, state, self._solve(ranks, state))
        for key, action in zip(self._keys(np.broadcast_to(ranks, (len(line), len(ranks))), states), line, strict=True):
            self._actions[key] = action

    def _solve(self, ranks: NDArray[np.int8], state: NDArray[np.int64]) -> Sequence[Move]:
        if self._objective == "win":
            solution = solve_position(self._rules, ranks, state, "win", max_states=self._max_states)
            if solution.status == Status.OPTIMAL and solution.value:
                return solution.moves
        return solve_position(self._rules, ranks, state, "score", max_states=self._max_states).moves

    def _to_the_end(
        self, ranks: NDArray[np.int8], state: NDArray[np.int64], moves: Sequence[Move]
    ) -> tuple[list[int], NDArray[np.int64]]:
        """Actions and the positions before them, from ``state`` until the game is over."""
        position: tuple[int, int, int, int, int] = tuple(state.tolist())
        scratch = np.empty(MAX_MOVES, np.int64)
        given = iter([self._moves.index_of(move) for move in moves])
        line, states = [], []
        while list_moves(self._table, ranks, *position[:4], scratch):
            action = next(given, int(scratch[0]))  # draw is listed last
            line.append(action)
            states.append(position)
            position = apply(self._table, *position, action)
        return line, np.array(states, np.int64).reshape(-1, len(state))

    def _keys(self, ranks: NDArray[np.int8], states: NDArray[np.int64]) -> list[bytes]:
        """One key a position: the cards left and the position row; cards that left do not matter."""
        places = self._rules.places
        cards = np.arange(ranks.shape[1])
        bits = np.where(cards < places, states[:, PYRAMID, None], states[:, STOCK, None])
        left = (bits >> np.where(cards < places, cards, cards - places)) & 1
        cards_left = np.where(left == 1, ranks, 0).astype(np.int8)
        return [row.tobytes() + state.tobytes() for row, state in zip(cards_left, states, strict=True)]
