"""View: what lies open on the table. Pictures are drawn from a View alone, so none can show a hidden card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pyramid_env import kernels
from pyramid_env.board import waste_pile
from pyramid_env.cards import Card, card_list
from pyramid_env.deal import Deal
from pyramid_env.game import Game
from pyramid_env.geometry import place
from pyramid_env.render.spots import spots_of_actions
from pyramid_env.rules import Rules

Cards: TypeAlias = Deal | Sequence[Card] | NDArray[np.int8]
"""The cards of a deal, pyramid first, then the stock: a Deal, Cards, or card ids."""


class Place(NamedTuple):
    """One place of the pyramid; ``card`` is None once it has left."""

    card: Card | None
    exposed: bool


class Pile(NamedTuple):
    """One waste pile: how many cards lie there, and those that can be seen, the newest last."""

    size: int
    cards: tuple[Card, ...]


class View(NamedTuple):
    """What lies open: the pyramid, the waste piles, the stock's size and its top if that is face up; how it stands."""

    rules: Rules
    rows: tuple[tuple[Place, ...], ...]
    piles: tuple[Pile, ...]
    stock_count: int
    stock_top: Card | None
    can_recycle: bool  # stock empty, waste cards left, and a pass for them
    pass_number: int
    cleared_in: int
    score: int
    cards_left: int
    won: bool
    over: bool
    playable: frozenset[str]  # spots whose cards take part in a legal removal
    deal_number: int | None = None
    moves: int | None = None

    @property
    def has_stock(self) -> bool:
        """Can there be cards in the stock at all? Not where all are turned for good before the first move."""
        nothing_to_turn = self.rules.nothing_hidden and self.rules.passes == 1
        return self.rules.stock_size > 0 and not nothing_to_turn

    @property
    def title(self) -> str:
        """Rules and deal number in words."""
        return str(self.rules) if self.deal_number is None else f"{self.rules}, deal {self.deal_number}"

    @property
    def pass_text(self) -> str:
        """``"pass 2 of 3"``; without limit ``"pass 2"``, and ``"pass 4+"`` from the fourth on."""
        if self.rules.passes is None:
            return f"pass {self.pass_number}{'+' if self.pass_number == self.rules.last_pass else ''}"
        return f"pass {self.pass_number} of {self.rules.passes}"

    @property
    def end_text(self) -> str:
        """``"won"``, ``"over"``, ``"cleared in pass 1"``, or nothing."""
        if self.won or self.over:
            return "won" if self.won else "over"
        return f"cleared in pass {self.cleared_in}" if self.cleared_in else ""


def look(position: Game | Rules | View, cards: Cards | None = None, state: NDArray[np.int64] | None = None) -> View:
    """The View of a Game, or of rules, cards and a (5,) position row. A View comes back as it is."""
    if isinstance(position, View):
        return position
    if isinstance(position, Game):
        if cards is not None or state is not None:
            raise TypeError("expected a Game alone, or rules, cards and state; got a Game and more")
        view = _look(position.rules, position.deal.cards, position.state)
        return view._replace(deal_number=position.deal.deal_number, moves=position.moves_made)
    if not isinstance(position, Rules) or cards is None or state is None:
        raise TypeError(f"expected a Game, or rules, cards and state; got {type(position).__name__} and not all three")
    if isinstance(cards, Deal):
        return _look(position, cards.cards, state)._replace(deal_number=cards.deal_number)
    known = card_list(cards.tolist()) if isinstance(cards, np.ndarray) else list(cards)
    return _look(position, known, state)


def _look(rules: Rules, cards: Sequence[Card], state: NDArray[np.int64]) -> View:
    pyramid, stock, cursor, pass_number, cleared = state.tolist()
    table = kernels.table(rules)
    ranks = np.array([card.rank for card in cards], np.int8)
    exposed = kernels.exposed_places(table, pyramid)
    legal, taken = kernels.legal_actions(rules, ranks, state).tolist(), spots_of_actions(rules)
    rows = []
    for row in range(1, rules.rows + 1):
        in_row = range(place(row, 1), place(row + 1, 1))
        rows.append(tuple(Place(cards[i] if pyramid >> i & 1 else None, bool(exposed >> i & 1)) for i in in_row))
    left = stock >> cursor
    return View(
        rules=rules,
        rows=tuple(rows),
        piles=tuple(_pile(rules, cards, stock, cursor, pile) for pile in range(rules.waste_piles)),
        stock_count=left.bit_count(),
        stock_top=cards[rules.places + cursor] if rules.stock_top and left else None,
        can_recycle=not left and kernels.can_draw(table, stock, cursor, pass_number),
        pass_number=pass_number,
        cleared_in=cleared,
        score=int(kernels.score(table, ranks, pyramid, stock, cleared)),
        cards_left=pyramid.bit_count() + stock.bit_count(),
        won=bool(kernels.is_won(table, pyramid, stock)),
        over=not legal,
        playable=frozenset(spot for action in legal for spot in taken[action]),
    )


def _pile(rules: Rules, cards: Sequence[Card], stock: int, cursor: int, pile: int) -> Pile:
    """All cards of a pile can be seen where nothing is hidden, two where the second is playable, else the top alone."""
    lying = waste_pile(rules, stock, cursor, pile)
    seen = len(lying) if rules.nothing_hidden else 2 if rules.pair_waste_two else 1
    return Pile(len(lying), tuple(cards[rules.places + k] for k in lying[-seen:]))
