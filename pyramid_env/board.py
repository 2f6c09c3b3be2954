"""Board: a position with its cards: reads the text of moves, and says why one is refused."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from pyramid_env import kernels
from pyramid_env.cards import RANK_LETTERS, Card
from pyramid_env.deal import Deal
from pyramid_env.errors import DeckError, IllegalMoveError
from pyramid_env.geometry import geometry, place
from pyramid_env.moves import Kind, Move, move_table
from pyramid_env.positions import Position
from pyramid_env.rules import Rules


@dataclasses.dataclass(frozen=True)
class _Pile:
    """A part of a move's text that names the top of a waste pile."""

    pile: int


@dataclasses.dataclass(frozen=True)
class _Cards:
    """A part of a move's text that names a place or a card, as indices into the deal; two decks hold a card twice."""

    cards: tuple[int, ...]


_STOCK: Final = _Cards(())
"""The part that names the stock's top."""

_Part = _Pile | _Cards

LONGEST_TEXT: Final = 100
"""Characters of a move's text at most; a longer one is not read."""

_PLACE: Final = re.compile(r"r([0-9]+)c([0-9]+)")
_WASTE: Final = re.compile(r"waste([0-9]*)")


class Board(NamedTuple):
    """A position with its cards: reads the text of moves, and says why a move is refused.

    Cards are meant by their index in the deal: pyramid places first, then the stock.
    """

    rules: Rules
    deal: Deal
    position: Position
    legal: tuple[int, ...]  # legal actions, removals first, draw last

    def parse(self, text: str) -> int:
        """The action of the legal move that a text names; IllegalMoveError with the reason if there is none."""
        table = move_table(self.rules)
        if not isinstance(text, str):
            raise IllegalMoveError(f"expected a move's text such as 8d+5s or draw, got {type(text).__name__} {text!r}")
        if len(text) > LONGEST_TEXT:
            got = f"{len(text)} characters: {text[:20]!r}..."
            raise IllegalMoveError(f"expected a move's text of at most {LONGEST_TEXT} characters, got {got}")
        plain = text.strip().lower()
        is_draw = plain == "draw" or (plain == "recycle" and not self.stock_left)
        named = [] if plain in ("draw", "recycle") else _read_parts(text, self.rules, self.deal)
        cards = self.cards_at(named)
        matching = [
            action
            for action in self.legal
            if (is_draw if table[action].is_draw else _is_named(self.cards_of(table[action]), cards))
        ]
        if len(matching) > 1:
            texts = ", ".join(table.text(table[action]) for action in matching)
            raise IllegalMoveError(f"{text}: expected the text of one move, got several that it can mean: {texts}")
        if not matching:
            raise IllegalMoveError(f"{text}: {self.why_not(plain)}")
        return matching[0]

    def by_cards(self, move: Move) -> str:
        """A legal move as players write it."""
        if move.is_draw:
            return "draw" if self.stock_left else "recycle"
        return "+".join(self.name(card) for card in self.cards_of(move))

    # ---- cards -------------------------------------------------------------------------------------------------------

    @property
    def stock_left(self) -> int:
        """How many cards are left to draw in this pass."""
        _, stock, cursor, *_ = self.position
        return (stock >> cursor).bit_count()

    def name(self, card: int) -> str:
        """The card as text."""
        return str(self.deal.cards[card])

    def names(self, cards: Iterable[int], most: int = 3) -> str:
        """Cards as text, the first few by name."""
        texts = [self.name(card) for card in cards]
        more = f" and {len(texts) - most} more" if len(texts) > most else ""
        return ", ".join(texts[:most]) + more

    def is_left(self, card: int) -> bool:
        """Is the card still in the game?"""
        pyramid, stock, *_ = self.position
        places = self.rules.places
        return bool((pyramid >> card) & 1 if card < places else (stock >> (card - places)) & 1)

    def covers(self, card: int) -> list[int]:
        """The cards that lie on a pyramid card."""
        left = int(geometry(self.rules.rows).covers[card]) & self.position[kernels.PYRAMID]
        return [i for i in range(self.rules.places) if (left >> i) & 1]

    def pile(self, pile: int) -> list[int]:
        """The cards of a waste pile, the newest last."""
        _, stock, cursor, *_ = self.position
        return [self.rules.places + k for k in waste_pile(self.rules, stock, cursor, pile)]

    def cards_at(self, named: Sequence[_Part]) -> list[list[int]]:
        """For each part of a move's text, the cards that it can mean; the hidden stock means none."""
        parts = []
        for at, part in enumerate(named):
            if isinstance(part, _Pile):
                lying = self.pile(part.pile)
                again = at > 0 and named[0] == part  # waste+waste: the two uppermost
                parts.append(lying[-2:-1] if again else lying[-1:])
            elif part is _STOCK:
                open_top = self.rules.stock_top and self.stock_left
                parts.append([self.rules.places + self.position[kernels.CURSOR]] if open_top else [])
            else:
                parts.append(list(part.cards))
        return parts

    def cards_of(self, move: Move) -> list[int]:
        """The cards that a legal removal takes."""
        named = _read_parts(move_table(self.rules).text(move), self.rules, self.deal)
        return [card for part in self.cards_at(named) for card in part]

    # ---- why a move is refused ---------------------------------------------------------------------------------------

    def why_not(self, text: str) -> str:
        """The reason why the move of a readable text is not legal here."""
        if not self.legal:
            return f"the game is over: {self._why_over()}"
        if text in ("draw", "recycle"):
            return self._why_no_draw(text)
        named = _read_parts(text, self.rules, self.deal)
        parts = self.cards_at(named)
        for part, cards in zip(named, parts, strict=True):
            if not cards:
                return self._why_empty(part)
        tries = [self._why_not_cards(cards) for cards in itertools.product(*parts)]
        return max(tries)[1]  # of several copies of a card the ones that are nearest to being playable

    def _why_over(self) -> str:
        pyramid, stock, cursor, pass_number, _ = self.position
        table = kernels.table(self.rules)
        if kernels.is_won(table, pyramid, stock):
            return "it is won"
        if kernels.is_finished(table, pyramid, stock, cursor, pass_number):
            return "the stock of the last pass is exhausted"
        return "no move is left"

    def _why_no_draw(self, text: str) -> str:
        if self.stock_left:
            return f"only an empty stock is recycled, {self.stock_left} cards are left to draw"
        if self.position[kernels.STOCK] == 0:
            return f"there is nothing to {text}, stock and waste are empty"
        return f"no pass is left, this is pass {self.position[kernels.PASS]} of {self.rules.passes}"

    def _why_empty(self, part: _Part) -> str:
        if isinstance(part, _Pile):
            name = "the waste" if self.rules.waste_piles == 1 else f"waste {part.pile + 1}"
            return f"{name} holds one card only" if self.pile(part.pile) else f"{name} is empty"
        return "the stock is empty" if self.rules.stock_top else "the stock is face down, its top card can't leave"

    def _why_not_cards(self, cards: Sequence[int]) -> tuple[int, str]:
        """How near the removal of one or two cards is to being legal (higher is nearer), and what is in its way."""
        for card in cards:
            if not self.is_left(card):
                return 0, f"{self.name(card)} has left the game"
        if len(set(cards)) < len(cards):
            return 1, f"{self.name(cards[0])} is named twice, a card can't leave with itself"
        for card in cards:
            if hidden := self._why_hidden(card):
                return 2, hidden
        if wrong := _why_no_sum([self.deal.cards[card] for card in cards], self.rules):
            return 3, wrong
        for card in cards:
            if out_of_reach := self._why_out_of_reach(card, cards):
                return 4, out_of_reach
        return 5, f"{self._why_apart(cards)} under {self.rules}"

    def _why_hidden(self, card: int) -> str:
        """Why a card of the stock can't be taken; empty for cards that lie elsewhere or are the open top."""
        index, cursor = card - self.rules.places, self.position[kernels.CURSOR]
        if index < cursor or (index == cursor and self.rules.stock_top):
            return ""
        where = "under its top card" if self.rules.stock_top else "face down"
        return f"{self.name(card)} is still in the stock, {where}"

    def _why_out_of_reach(self, card: int, cards: Sequence[int]) -> str:
        """Which cards lie on a pyramid or waste card; those that leave with it count where the rules let them."""
        if card < self.rules.places:
            covers = self.covers(card)
            partner = [other for other in cards if other != card and self.rules.overlap]
            allowed = not covers or (covers == partner and not self.covers(covers[0]))
            return "" if allowed else f"{self.name(card)} is still covered by {self.names(covers)}"
        index = card - self.rules.places
        if index >= self.position[kernels.CURSOR]:
            return ""  # the open top of the stock
        pile = self.pile(index % self.rules.waste_piles)
        above = pile[pile.index(card) + 1 :]
        if not above or (len(above) == 1 and above[0] in cards):
            return ""
        return f"{self.name(card)} is buried in the waste under {self.names(reversed(above))}"

    def _why_apart(self, cards: Sequence[int]) -> str:
        """Both cards are in reach and make the sum, but lie in zones that do not pair."""
        stock = [card - self.rules.places for card in cards]
        if self.position[kernels.CURSOR] in stock:
            return "the stock's top and a waste top do not pair"
        if len({index % self.rules.waste_piles for index in stock}) == 1:
            return "the two uppermost cards of a waste do not pair"
        return "the tops of two wastes do not pair"


def waste_pile(rules: Rules, stock: int, cursor: int, pile: int) -> list[int]:
    """Stock indices of the cards on a waste pile, the newest last."""
    lying = []
    k = kernels.top_card(stock, cursor, pile, rules.waste_piles)
    while k >= 0:
        lying.append(k)
        k = kernels.top_card(stock, k, pile, rules.waste_piles)
    return lying[::-1]


def _read_parts(text: str, rules: Rules, deal: Deal) -> list[_Part]:
    """Read the one or two parts of a removal's text; IllegalMoveError for anything that is no move in these rules."""
    parts = text.split("+")
    if len(parts) > 2:
        raise IllegalMoveError(f"{text}: expected one card or two, got {len(parts)}")
    return [_read_part(part.strip(), text, rules, deal) for part in parts]


def _read_part(part: str, text: str, rules: Rules, deal: Deal) -> _Part:
    lower = part.lower()
    if lower == "stock":
        return _STOCK
    if found := _WASTE.fullmatch(lower):
        pile = int(found[1] or 1)  # a bare "waste" is the first, as Move prints it
        if not 1 <= pile <= rules.waste_piles:
            raise IllegalMoveError(f"{text}: expected a waste pile from 1 to {rules.waste_piles}, got {part}")
        return _Pile(pile - 1)
    if found := _PLACE.fullmatch(lower):
        row, column = int(found[1]), int(found[2])
        if not 1 <= column <= row <= rules.rows:
            raise IllegalMoveError(f"{text}: expected a place of a pyramid of {rules.rows} rows, got {part}")
        return _Cards((place(row, column),))
    try:
        card = Card.parse(part)
    except DeckError:
        raise IllegalMoveError(
            f"{text!r}: expected a move such as 8d+5s, Kh, r2c1+waste or draw, got {part!r} in it"
        ) from None
    copies = tuple(i for i, other in enumerate(deal.cards) if other == card)
    if not copies:
        raise IllegalMoveError(f"{text}: expected cards of the deck of {rules}, got {card}")
    return _Cards(copies)


def _is_named(cards: Sequence[int], parts: Sequence[Sequence[int]]) -> bool:
    """Do the parts of a text, in either order, name just these cards?"""
    if len(cards) != len(parts):
        return False
    return any(all(c in part for c, part in zip(cards, order, strict=True)) for order in itertools.permutations(parts))


def read_action(value: object, actions: int) -> int:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | Kind) or not isinstance(value, int | np.integer):
        got = f"{type(value).__name__} {value!r}"
        raise IllegalMoveError(f"expected a Move, a move's text or an action index, got {got}")
    if not 0 <= value < actions:
        raise IllegalMoveError(f"expected an action index from 0 to {actions - 1}, got {value}")
    return int(value)


def _why_no_sum(cards: Sequence[Card], rules: Rules) -> str:
    king = RANK_LETTERS[rules.ranks - 1]
    total = sum(card.rank for card in cards)
    if total == rules.ranks:
        return ""
    if len(cards) == 1:
        return f"{cards[0]} leaves only with a {RANK_LETTERS[rules.ranks - total - 1]}, alone leaves a {king}"
    alone = [str(card) for card in cards if card.rank == rules.ranks]
    hint = f"; {' and '.join(alone)} leaves alone" if len(alone) == 1 else "; each leaves alone" if alone else ""
    return f"{cards[0]} and {cards[1]} make {total}, not {rules.ranks}{hint}"
