"""The best legal play: the exact expected result of a player who sees what the rules show and forgets nothing.

The player knows the pyramid, every stock card that has been turned, and which cards are missing; all orders of the
unseen cards are equally likely. The value is the expected result of the best play on what is known so far, exact to the
last digit: ``solve_legal`` over all deals of a small deck, ``solve_information_state`` from one table position on.

With unlimited passes a game goes on only while some removal lies ahead. That tells a player nothing of use: without a
removal at hand the draw is the only move, and the removal that ends the run of draws tells as much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import factorial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env.deal import Deal
from pyramid_env.errors import PyramidError
from pyramid_env.kernels import CURSOR, PASS
from pyramid_env.moves import Move
from pyramid_env.observation import Position, seen_below
from pyramid_env.positions import check_position, read_deal, read_position
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver.api import InProgress
from pyramid_env.solver.legal_pyramids import visible_pyramids
from pyramid_env.solver.legal_run import LegalSearch
from pyramid_env.solver.legal_search import MAX_UNSEEN
from pyramid_env.solver.result import DEFAULT_MAX_BYTES, Limits, Objective, SolverError, Status, read_objective

OBJECTIVES: Final = (Objective.WIN, Objective.SCORE)


@dataclass(frozen=True)
class LegalSolution:
    """What hidden cards allow over all deals of a deck, each order of the cards equally likely.

    Attributes:
        status: OPTIMAL, or LIMIT: a limit was met before all deals were settled.
        objective: WIN: values are chances to win. SCORE: expected final scores.
        value: the best expected result of a legal player, exact. LIMIT: proven to be within reach.
        bound: proven, no legal player expects more; equal to ``value`` unless the status is LIMIT.
        clairvoyant: the expected result of the best play with every card known. LIMIT: it is no more than this.
        pyramids: visible pyramids settled; those that differ by names of ranks or by mirroring are one.
        states: information states stored in all, those with every card known included.
        seconds: wall-clock time.
    """

    status: Status
    objective: Objective
    value: Fraction
    bound: Fraction
    clairvoyant: Fraction
    pyramids: int
    states: int
    seconds: float

    @property
    def hidden_cost(self) -> Fraction:
        """What not seeing the stock costs: the clairvoyant value less the legal one."""
        return self.clairvoyant - self.value


@dataclass(frozen=True)
class InformationStateSolution:
    """What one information state allows, all orders of the unseen cards being equally likely.

    Attributes:
        status: OPTIMAL, or LIMIT: a limit was met first.
        objective: WIN: values are chances to win. SCORE: expected final scores.
        value: the best expected final result of a legal player, exact. LIMIT: proven to be within reach.
        bound: proven, no legal player expects more; equal to ``value`` unless the status is LIMIT.
        clairvoyant: the expected result with every card known from here on. LIMIT: it is no more than this.
        move_values: the exact value of every legal move, best play after it; empty at the end of a game and for LIMIT.
        unseen: cards that have not been seen.
        states: information states stored, those with every card known included.
        seconds: wall-clock time.
    """

    status: Status
    objective: Objective
    value: Fraction
    bound: Fraction
    clairvoyant: Fraction
    move_values: Mapping[Move, Fraction]
    unseen: int
    states: int
    seconds: float

    @property
    def moves(self) -> tuple[Move, ...]:
        """The best moves: all those of the highest value."""
        return tuple(move for move, value in self.move_values.items() if value == self.value)

    @property
    def hidden_cost(self) -> Fraction:
        """What not seeing the cards costs from here on: the clairvoyant value less the legal one."""
        return self.clairvoyant - self.value


def solve_legal(
    rules: Rules | str,
    objective: str = "win",
    *,
    max_seconds: float | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
    progress: Callable[[int, int], None] | None = None,
) -> LegalSolution:
    """The best expected result of a legal player over all deals of a small deck.

    Time grows with the visible pyramids times the orders of the stock: decks of up to some fifteen cards take seconds
    to minutes.

    Args:
        rules: the game.
        objective: ``"win"`` or ``"score"``.
        max_seconds: wall-clock limit.
        max_bytes: limit of the search's own tables.
        progress: called after each visible pyramid with (orders of the deck settled, orders of the deck in all).

    Raises:
        RulesError: unknown rules.
        SolverError: unknown objective, a limit that is none, or a stock of more cards than can be summed over.
    """
    chosen = read_rules(rules)
    finder = LegalSearch(chosen, _read_objective(objective), Limits(None, max_seconds, max_bytes))
    state = kernels.start_state(chosen)
    position = read_position(state)
    unseen = chosen.stock_size
    _check_unseen(unseen)
    orders, orders_in_all = factorial(unseen), factorial(chosen.cards)
    deck = np.repeat(np.arange(1, chosen.ranks + 1), chosen.decks * chosen.suits).astype(np.int8)
    legal = clairvoyant = settled = pyramids = states = 0
    complete = True
    for pyramid, ways in visible_pyramids(chosen):
        ranks = _dealt(pyramid, deck)
        finder.begin(ranks)
        gain = finder.gain(ranks, position, unseen)
        open_gain = None if gain is None else finder.open_gain(ranks, position, unseen)
        states += finder.states
        if gain is None or open_gain is None:
            complete = False
            break
        legal += ways * gain
        clairvoyant += ways * int(open_gain * orders)
        settled += ways * orders
        pyramids += 1
        if progress is not None:
            progress(settled, orders_in_all)
    assert not complete or settled == orders_in_all, f"{settled} of {orders_in_all} orders settled"
    now, most = finder.range_from(deck, position)
    ceiling = (orders_in_all - settled) * (most - now)
    return LegalSolution(
        status=Status.OPTIMAL if complete else Status.LIMIT,
        objective=finder.objective,
        value=now + Fraction(legal, orders_in_all),
        bound=now + Fraction(legal + ceiling, orders_in_all),
        clairvoyant=now + Fraction(clairvoyant + ceiling, orders_in_all),
        pyramids=pyramids,
        states=states,
        seconds=finder.seconds,
    )


def solve_information_state(
    what: Deal | int | str | InProgress | Position,
    rules: Rules | str | None = None,
    objective: str = "win",
    *,
    max_seconds: float | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
) -> InformationStateSolution:
    """The best expected result of a legal player from one information state on, and the value of each legal move.

    Hidden cards of what is handed in are not looked at, only which cards they are. In the first pass cards are unseen
    until they are turned (or, with ``stock_top``, next); later everything is known.

    With unlimited passes and no removal at hand a real game may be over where this counts the orders that end it along
    with those that do not.

    Args:
        what: a game in progress, a deal, its number or its text (its start is meant), or a position as an observation
            tells it (:func:`pyramid_env.observation.position_from_observation`).
        rules: the rules of a deal (``"pyramid"`` if None) or of a position; a game brings its own.
        objective: ``"win"`` or ``"score"``.
        max_seconds: wall-clock limit.
        max_bytes: limit of the search's own tables.

    Raises:
        SolverError: unknown objective, a limit that is none, rules given along with a game of other rules, more unseen
            cards than can be summed over, or nothing that can be solved.
        DeckError: the deal is not of the rules' deck, or bears a number that deals other cards.
        PyramidError: a position that no play can lead to.
    """
    asked = _read_objective(objective)
    chosen, ranks, state = _read_table(what, rules)
    position = read_position(state)
    finder = LegalSearch(chosen, asked, Limits(None, max_seconds, max_bytes))
    unseen = chosen.stock_size - int(seen_below(finder.table, position[CURSOR], position[PASS]))
    ranks = _with_unseen_sorted(chosen, ranks, unseen)
    check_position(chosen, ranks, position)
    _check_unseen(unseen)
    now, most = finder.range_from(ranks, position)
    orders = factorial(unseen)
    finder.begin(ranks)
    gain = finder.gain(ranks, position, unseen)
    open_gain = None if gain is None else finder.open_gain(ranks, position, unseen)
    move_values = None if open_gain is None else finder.move_values(ranks, position, unseen)
    complete = gain is not None and open_gain is not None and move_values is not None
    return InformationStateSolution(
        status=Status.OPTIMAL if complete else Status.LIMIT,
        objective=asked,
        value=now + Fraction(gain or 0, orders),
        bound=Fraction(most) if gain is None else now + Fraction(gain, orders),
        clairvoyant=Fraction(most) if open_gain is None else now + open_gain,
        move_values=move_values or {},
        unseen=unseen,
        states=finder.states,
        seconds=finder.seconds,
    )


# ---- what is asked ---------------------------------------------------------------------------------------------------


def _read_objective(objective: str) -> Objective:
    asked = read_objective(objective)
    if asked not in OBJECTIVES:
        raise SolverError(f"objective: expected one of {', '.join(OBJECTIVES)} for legal play, got {objective!r}")
    return asked


def _check_unseen(unseen: int) -> None:
    if unseen > MAX_UNSEEN:
        raise SolverError(f"unseen cards: expected at most {MAX_UNSEEN}, as all their orders are summed, got {unseen}")


def _dealt(pyramid: tuple[int, ...], deck: NDArray[np.int8]) -> NDArray[np.int8]:
    """A pyramid's ranks, then those left in the deck, sorted."""
    left = np.bincount(deck) - np.bincount(pyramid, minlength=int(deck.max()) + 1)
    return np.concatenate([pyramid, np.repeat(np.arange(left.size), left)]).astype(np.int8)


def _read_table(
    what: Deal | int | str | InProgress | Position, rules: Rules | str | None
) -> tuple[Rules, NDArray[np.int8], NDArray[np.int64]]:
    """Rules, ranks (cards,) and position row (5,) of what is asked about."""
    if isinstance(what, (Deal, int, np.integer, str)):
        chosen = read_rules("pyramid" if rules is None else rules)
        return chosen, read_deal(what, chosen).ranks, kernels.start_state(chosen)
    if isinstance(what, Position):
        if rules is None:
            raise SolverError("rules: expected those of the position, got None")
        chosen = read_rules(rules)
        if np.shape(what.ranks) != (chosen.cards,):
            raise SolverError(f"position: expected {chosen.cards} ranks, got an array of shape {np.shape(what.ranks)}")
        return chosen, what.ranks, what.state
    if not isinstance(what, InProgress):
        expected = "a Game, a Deal, a deal number, a deal as text or a Position"
        raise SolverError(f"solve_information_state: expected {expected}, got {type(what).__name__} {what!r}")
    if rules is not None and read_rules(rules) != what.rules:
        raise SolverError(f"rules: expected none or the game's ({what.rules}), got {rules}")
    return what.rules, what.ranks, what.state


def _with_unseen_sorted(rules: Rules, ranks: NDArray[np.int8], unseen: int) -> NDArray[np.int8]:
    """The ranks with those of the unseen cards, which are what the deck lacks, in ascending order."""
    known = np.asarray(ranks, np.int64)[: rules.cards - unseen]
    each = np.arange(1, rules.ranks + 1)
    left = rules.decks * rules.suits - (known[:, None] == each).sum(axis=0)
    if left.min() < 0 or left.sum() != unseen:
        raise PyramidError(
            f"position of {rules}: expected the ranks of {rules.cards - unseen} cards of its deck seen "
            f"so far, got {known.tolist()}"
        )
    return np.concatenate([known, np.repeat(each, left)]).astype(np.int8)
