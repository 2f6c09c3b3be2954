"""LabelledGames: games played beside the solver, which says of every legal move what it leads to with all cards known.

The cards lie as they were dealt, so a label knows what the player does not; the network that learns from it never sees
more than the observation. Deals are shuffled, so the true order of the unseen cards is one drawn from all that are
possible, and what the network learns is the average over them: the value of a move to a player without sight.

A move that the solver leaves open, since its limit was met, has no mark of the judge ``win``: with two decks 97 of 100
such moves still win, so that half a win would mark good moves as bad ones, about as many as there are bad ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.games import deal_anew
from agents.legal import legal_lists
from agents.tokens import compiled
from pyramid_env import functional
from pyramid_env.deal import DealSource
from pyramid_env.kernels import PYRAMID, SCORE, WON
from pyramid_env.observation import position_from_observation
from pyramid_env.rules import PAR_BONUS, Rules
from pyramid_env.solver import move_values

SLOTS: Final = 24
"""Legal moves of a sample; the few positions with more are left out."""

SCORED_TURNS: Final = 8
"""Of positions without hope of a clear the judge ``par`` looks at one in so many, since scores are dear."""

WIN_WORTH: Final = 10.0
"""What the judge ``par`` adds for a win, in points: about what is left over when the pyramid alone is cleared."""

Choose = Callable[[NDArray[np.int8], NDArray[np.int16]], NDArray[np.int64]]
"""Slots (B,) chosen for observation rows (B, F) and legal actions (B, K)."""


class Samples(NamedTuple):
    """N positions in which the choice matters."""

    rows: NDArray[np.int8]  # (N, F) observations
    legal: NDArray[np.int16]  # (N, SLOTS) filled up with -1
    targets: NDArray[np.float16]  # (N, SLOTS) 1 for the best moves, less by what is lost over ``scale``, 0 at least;
    # NaN where it is not known


class LabelledGames:
    """B games that never stop.

    Args:
        rules: what is played.
        level: of the observations.
        count: B.
        deals: where deals come from.
        judge: as in TeacherConfig.
        scale: a loss of so much, in the judge's units, makes a target of 0.
        max_states: the solver's limit for each move.
        worlds: samples with hidden cards are marked anew, by the average over so many orders of them; 1: they keep what
            is true of the deal, which is right on average too, but one draw.
        threads: of the solver.
        limit: a longer game is cut off: with unlimited passes a player may decline for ever.

    Attributes:
        ended: sums over the games that were played to their end since :meth:`report`: games, wins, score.
    """

    def __init__(
        self,
        rules: Rules,
        level: str,
        count: int,
        deals: DealSource,
        judge: str,
        scale: float,
        max_states: int,
        worlds: int,
        threads: int,
        limit: int,
    ) -> None:
        self.rules, self.level, self.count = rules, level, count
        self._deals: Final = deals
        self._judge, self._scale = judge, scale
        self._max_states, self._worlds, self._threads, self._limit = max_states, worlds, threads, limit
        self._arrays: Final = functional.arrays(rules, level, count)
        self.ended: Final = np.zeros(3)
        self._turn = 0
        self._kept = np.arange(0)  # the games that the last samples are of
        deal_anew(rules, level, self._arrays, deals, np.arange(count))

    @property
    def rows(self) -> NDArray[np.int8]:
        """(B, F) observations."""
        return self._arrays.rows

    @property
    def masks(self) -> NDArray[np.int8]:
        """(B, A) legal moves."""
        return self._arrays.masks

    def step(self, choose: Choose, rng: np.random.Generator, corrected: float, stray: float) -> Samples:
        """Label the positions as they stand, then play a move in each.

        Args:
            choose: the player.
            rng: decides the two below.
            corrected: so often a move that gives something away is taken back for one of the best; else, if nothing can
                be lost any more, the game ends.
            stray: so often any legal move is played instead.
        """
        arrays = self._arrays
        legal = legal_lists(arrays.bits)
        targets, hopeless = self._targets(legal)
        slots = self._slots(choose(arrays.rows, legal), legal, targets, rng, corrected, stray)
        chosen = np.arange(self.count), slots
        samples = self._samples(legal, targets, hopeless)
        if self._worlds > 1:
            samples = self._averaged(samples, arrays.states[self._kept], rng)
        actions = legal[chosen].astype(np.int64)
        functional.step(self.rules, self.level, arrays, actions, max_steps=self._limit)
        ended = arrays.terminated | arrays.truncated
        over = np.flatnonzero(ended)
        self.ended[:] += over.size, arrays.facts[over, WON].sum(), arrays.facts[over, SCORE].sum()
        lost = hopeless | ((targets[chosen] == 0.0) & (self._judge == "win"))
        deal_anew(self.rules, self.level, arrays, self._deals, np.flatnonzero(ended | lost))
        return samples

    def _targets(self, legal: NDArray[np.int16]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """(B, K) targets, and (B,) whether nothing can be gained any more."""
        every = np.arange(self.count)
        values = self._par(legal) if self._judge == "par" else self._worth(self._judge, legal, every)
        best, targets = self._marks(values)
        if self._judge != "win":
            return targets, np.zeros(self.count, np.bool_)
        none_wins, open_ones = ~(best[:, 0] > 0.0), np.isnan(values).any(axis=1)
        targets[none_wins & open_ones] = np.nan  # one of the open ones may be the best
        forced = (legal >= 0).sum(axis=1) < 2
        return targets, none_wins & ~open_ones & ~forced

    def _worth(self, judge: str, legal: NDArray[np.int16], which: NDArray[np.intp]) -> NDArray[np.float32]:
        """(N, K) what a judge says of the moves of the games ``which``; 0 for an only move, -inf where is none, NaN for
        what the judge ``win`` leaves open."""
        arrays = self._arrays
        return self._solved(judge, legal[which], arrays.ranks[which], arrays.states[which])

    def _solved(
        self,
        judge: str,
        legal: NDArray[np.int16],
        ranks: NDArray[np.int8],
        states: NDArray[np.int64],
        worlds: int = 1,
        rng: np.random.Generator | None = None,
    ) -> NDArray[np.float32]:
        found = move_values(
            self.rules, ranks, states, judge, worlds, rng, workers=self._threads, max_states=self._max_states
        )
        worth = np.nan_to_num(found.values)
        if self._judge == "win" and worlds == 1:
            worth[~found.proven] = np.nan
        if judge == "earliest":
            worth = np.array(PAR_BONUS, np.float32)[worth.astype(np.int64)]
        values = np.full(legal.shape, -np.inf, np.float32)
        rows = found.rows
        values[rows, _places(legal, rows, found.actions)] = worth.mean(axis=1)
        return values

    def _marks(self, values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(N, 1) the best of (N, K) values, and (N, K) targets."""
        best: NDArray[np.float32] = np.fmax.reduce(values, axis=1, keepdims=True)
        best[np.isinf(best)] = np.nan  # every move is left open
        return best, np.clip(1.0 - (best - values) / self._scale, 0.0, 1.0).astype(np.float32)

    def _averaged(self, samples: Samples, states: NDArray[np.int64], rng: np.random.Generator) -> Samples:
        """The samples, those with hidden cards marked by the average over worlds; those without a difference left out.

        Of the deal itself nothing is left in these marks, not even that it was chosen for making a difference.
        """
        known = position_from_observation(self.rules, samples.rows).ranks
        hidden = np.flatnonzero((known == 0).any(axis=1))
        if not hidden.size:
            return samples
        legal = samples.legal[hidden]
        _, targets = self._marks(self._solved(self._judge, legal, known[hidden], states[hidden], self._worlds, rng))
        samples.targets[hidden] = np.where(legal >= 0, targets, 0.0)
        differs = ((samples.targets < 1.0) & (samples.legal >= 0)).any(axis=1)
        return Samples(samples.rows[differs], samples.legal[differs], samples.targets[differs])

    def _par(self, legal: NDArray[np.int16]) -> NDArray[np.float32]:
        """As :meth:`_worth`, of the judge ``par``."""
        values = self._worth("earliest", legal, np.arange(self.count))
        pyramid = self._arrays.states[:, PYRAMID]
        hope = (values.max(axis=1) > 0.0) & (pyramid != 0)
        self._turn = (self._turn + 1) % SCORED_TURNS
        turn = np.arange(self.count) % SCORED_TURNS == self._turn
        for judge, which in (("win", hope), ("score", (pyramid == 0) | (~hope & turn))):
            chosen = np.flatnonzero(which & ((legal >= 0).sum(axis=1) > 1))
            if chosen.size:
                worth = self._worth(judge, legal, chosen)
                values[chosen] = values[chosen] + WIN_WORTH * worth if judge == "win" else worth
        return values

    def _slots(
        self,
        slots: NDArray[np.int64],
        legal: NDArray[np.int16],
        targets: NDArray[np.float32],
        rng: np.random.Generator,
        corrected: float,
        stray: float,
    ) -> NDArray[np.int64]:
        each = np.arange(self.count)
        lots = rng.random((3, self.count))
        wish = rng.random(legal.shape)
        anything = np.where(legal >= 0, wish, -1.0).argmax(axis=1)
        best = np.where((legal >= 0) & (targets == 1.0), wish, -1.0).argmax(axis=1)
        slots = np.where(lots[0] < stray, anything, slots)
        bad = targets[each, slots] < 1.0
        return np.where(bad & (lots[1] < corrected), best, slots)

    def _samples(self, legal: NDArray[np.int16], targets: NDArray[np.float32], hopeless: NDArray[np.bool_]) -> Samples:
        there = legal >= 0
        matters = (targets < 1.0) & there
        self._kept = kept = np.flatnonzero(matters.any(axis=1) & ~hopeless & (there.sum(axis=1) <= SLOTS))
        wide = np.full((kept.size, SLOTS), -1, np.int16)
        marks = np.zeros((kept.size, SLOTS), np.float16)
        width = min(legal.shape[1], SLOTS)
        wide[:, :width], marks[:, :width] = legal[kept, :width], targets[kept, :width]
        return Samples(self._arrays.rows[kept], wide, marks)

    def report(self) -> dict[str, float]:
        """Means over the games that were played to their end since the last report; empty if there were none."""
        games, wins, score = self.ended.tolist()
        self.ended[:] = 0.0
        return {"games": games, "wins": wins / games, "score": score / games} if games else {}


@compiled
def _places(legal: NDArray[np.int16], rows: NDArray[np.int64], actions: NDArray[np.int64]) -> NDArray[np.int64]:
    """(M,) the column of each action in its row of ``legal``."""
    places = np.zeros(len(rows), np.int64)
    for m in range(len(rows)):
        while legal[rows[m], places[m]] != actions[m]:
            places[m] += 1
    return places
