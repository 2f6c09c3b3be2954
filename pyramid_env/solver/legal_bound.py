"""An upper bound on legal play in whole games: information relaxation on a scenario tree.

Take M orders of the unseen cards, each of them alone uniformly distributed, and a player who knows these M orders but
not which of them it is, until the cards that he sees tell. His decisions are nonanticipative: alike in all orders that
look alike so far. Each of the M orders counts the same.

Proven: the expectation of his share of wins over the sample is at least the chance of the best legal player. (The best
legal policy is one that he may follow; in each order it wins with the legal chance, whatever the M orders have to do
with each other, so its expected share is that chance, and he follows the best policy for the M at hand.) On the same
orders he never wins more than the clairvoyant player, who knows which order it is; with M = 1 he is that player.

Orders drawn independently differ after a few cards, and from then on he sees all. So the orders form a tree: they
have their first cards in common, part, have some more in common, part again. That way he does not know what comes late
until late.

Estimated: the expectation, by a mean over sampled pyramids and trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env.deal import Deal
from pyramid_env.kernels import CURSOR, MAX_MOVES, PASS
from pyramid_env.observation import seen_below
from pyramid_env.positions import Position, position_of, read_deal
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver.labels import solve_positions
from pyramid_env.solver.result import SolverError

UNKNOWN: Final = -1


@dataclass(frozen=True)
class SampledBound:
    """How many of some orders can be won from the start of one visible pyramid.

    Attributes:
        informed: by the player who knows the orders but not which of them it is. The expectation of
            ``informed / orders`` is at least the chance of the best legal player.
        clairvoyant: by the player who knows which one it is; never fewer.
        orders: M, the orders of the sample.
        solved: positions that the clairvoyant solver was asked about.
    """

    informed: int
    clairvoyant: int
    orders: int
    solved: int


def sample_bound(
    deal: Deal | int | str, rules: Rules | str = "pyramid", *, tree: Mapping[int, int], rng: np.random.Generator
) -> SampledBound:
    """An upper bound on the chance to win with the visible cards of a deal, from sampled orders of the unseen ones.

    Args:
        deal: whose visible cards are taken; where its hidden cards lie is not looked at.
        rules: the game.
        tree: where the orders part, see :func:`scenario_orders`.
        rng: draws the orders.

    Raises:
        DeckError: the deal is not of the rules' deck, or bears a number that deals other cards.
        SolverError: a tree that is none.
    """
    chosen = read_rules(rules)
    ranks = read_deal(deal, chosen).ranks
    state = kernels.start_state(chosen)
    seen = chosen.places + int(seen_below(kernels.table(chosen), int(state[CURSOR]), int(state[PASS])))
    orders = scenario_orders(np.sort(ranks[seen:]), tree, rng)
    return bound_orders(chosen, np.hstack([np.tile(ranks[:seen], (len(orders), 1)), orders]))


def scenario_orders(cards: NDArray[np.int8], tree: Mapping[int, int], rng: np.random.Generator) -> NDArray[np.int8]:
    """Orders of some cards that form a tree.

    Args:
        cards: (n,) the cards.
        tree: after how many cards the orders part, and into how many each: ``{0: M}`` gives M independent orders,
            ``{4: 3, 8: 3}`` nine that have the first four cards in common and by threes the next four.
        rng: draws the orders.

    Returns:
        (M, n) orders, M the product of the tree's numbers. Each of them alone is uniformly distributed.

    Raises:
        SolverError: a number of cards outside 0 .. n - 1, or of orders below 1.
    """
    orders = rng.permutation(cards)[None, :]
    for shared, branches in sorted(tree.items()):
        if not 0 <= shared < max(len(cards), 1) or branches < 1:
            raise SolverError(
                f"tree: expected numbers of cards from 0 to {len(cards) - 1} with 1 or more orders each, "
                f"got {shared}: {branches}"
            )
        orders = np.repeat(orders, branches, axis=0)
        orders[:, shared:] = rng.permuted(orders[:, shared:], axis=1)
    return orders


def bound_orders(rules: Rules | str, ranks: NDArray[np.int8]) -> SampledBound:
    """As :func:`sample_bound`, for given orders: ``ranks`` (M, cards) deals that look alike at the start.

    Raises:
        SolverError: no deals, or deals that do not look alike.
    """
    chosen = read_rules(rules)
    start = position_of(kernels.start_state(chosen))
    seen = chosen.places + int(seen_below(kernels.table(chosen), start[CURSOR], start[PASS]))
    if ranks.ndim != 2 or ranks.shape[1] != chosen.cards or not len(ranks):
        raise SolverError(f"ranks: expected an array (M, {chosen.cards}), M at least 1, got shape {ranks.shape}")
    if (ranks[:, :seen] != ranks[0, :seen]).any():
        raise SolverError(f"ranks: expected deals alike in their first {seen} cards, which can be seen at the start")
    player = _Informed(chosen, ranks)
    everything = np.arange(len(ranks))
    return SampledBound(
        informed=player.wins(everything, start),
        clairvoyant=int(player.winnable(everything, start).sum()),
        orders=len(ranks),
        solved=player.solved,
    )


def winnable(rules: Rules, ranks: NDArray[np.int8], states: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of B positions can be won with every card known: ``ranks`` (B, cards), ``states`` (B, 5).

    What a limit leaves open counts as won, so that the bound stays one.
    """
    return np.equal(solve_positions(rules, ranks, states).bound, 1)


class _Informed:
    """The player who knows M orders, but not which of them it is."""

    def __init__(self, rules: Rules, ranks: NDArray[np.int8]) -> None:
        self._rules: Final = rules
        self._table: Final = kernels.table(rules)
        self._ranks: Final = np.ascontiguousarray(ranks, np.int8)  # (M, cards)
        self._winnable: Final[dict[Position, NDArray[np.int8]]] = {}  # (M,) 1, 0 or UNKNOWN
        self._wins: Final[dict[tuple[Position, bytes], int]] = {}
        self._actions: Final = np.empty(MAX_MOVES, np.int64)
        self.solved = 0

    def winnable(self, orders: NDArray[np.intp], *positions: Position) -> NDArray[np.int8]:
        """(positions, orders) 1 where the clairvoyant player wins from a position in an order."""
        for position in positions:
            if position not in self._winnable:
                self._winnable[position] = np.full(len(self._ranks), UNKNOWN, np.int8)
        asked = [(position, o) for position in positions for o in orders if self._winnable[position][o] == UNKNOWN]
        if asked:
            ranks = self._ranks[[o for _, o in asked]]
            answers = winnable(self._rules, ranks, np.array([position for position, _ in asked], np.int64))
            for (position, o), answer in zip(asked, answers, strict=True):
                self._winnable[position][o] = answer
            self.solved += len(asked)
        return np.array([self._winnable[position][orders] for position in positions])

    def wins(self, orders: NDArray[np.intp], position: Position) -> int:
        """How many of ``orders``, which look alike so far, the best policy wins from a position on."""
        orders = orders[self.winnable(orders, position)[0] == 1]  # the others are lost whatever is done
        known = self._seen(position) == self._rules.stock_size
        if len(orders) <= 1 or known or kernels.is_finished(self._table, *position[:4]):
            return len(orders)
        key = (position, orders.tobytes())
        if key not in self._wins:
            self._wins[key] = self._best(orders, position)
        return self._wins[key]

    def _best(self, orders: NDArray[np.intp], position: Position) -> int:
        """The best move first, as the clairvoyant player has it; no other can do better than it does for him."""
        followers = self._followers(orders[0], position)
        most = self.winnable(orders, *followers).sum(axis=1)
        best = 0
        for n in np.argsort(-most, kind="stable"):
            if most[n] <= best:
                break
            best = max(best, sum(self.wins(part, followers[n]) for part in self._parts(orders, position, followers[n])))
        return best

    def _followers(self, order: int, position: Position) -> list[Position]:
        """The positions after the draw and after each removal; the cards seen decide which there are."""
        pyramid, stock, cursor, _, _ = position
        count = kernels.list_removals(self._table, self._ranks[order], pyramid, stock, cursor, self._actions)
        actions = [self._table.actions - 1, *self._actions[:count].tolist()]
        return [kernels.apply(self._table, *position, action) for action in actions]

    def _parts(self, orders: NDArray[np.intp], before: Position, after: Position) -> list[NDArray[np.intp]]:
        """The orders, parted by the cards that a move shows."""
        places = self._rules.places
        shown = self._ranks[orders, places + self._seen(before) : places + self._seen(after)]
        if shown.shape[1] == 0:
            return [orders]
        _, part = np.unique(shown, axis=0, return_inverse=True)
        return [orders[part.reshape(-1) == n] for n in range(part.max() + 1)]

    def _seen(self, position: Position) -> int:
        return int(seen_below(self._table, position[CURSOR], position[PASS]))
