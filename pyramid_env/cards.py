"""Cards: ranks, suits, the notation, and the check that a list of cards is the deck of the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pyramid_env.errors import DeckError
from pyramid_env.rules import Rules

RANK_LETTERS: Final = "A23456789TJQK"
SUIT_LETTERS: Final = "cdhs"
SUIT_SYMBOLS: Final = "♣♦♥♠"
RANKS_A_SUIT: Final = len(RANK_LETTERS)


class Card(NamedTuple):
    """One card: ``rank`` 1 (ace) .. 13 (king), ``suit`` 0..3 (clubs, diamonds, hearts, spades). Prints as ``"Ts"``."""

    rank: int
    suit: int

    @property
    def id(self) -> int:
        """0..51, suit by suit: ``suit * 13 + rank - 1``; the same for short decks."""
        return self.suit * RANKS_A_SUIT + self.rank - 1

    @property
    def symbol(self) -> str:
        """Rank and suit for people: ``"10♠"``."""
        return ("10" if self.rank == 10 else RANK_LETTERS[self.rank - 1]) + SUIT_SYMBOLS[self.suit]

    def __str__(self) -> str:
        return RANK_LETTERS[self.rank - 1] + SUIT_LETTERS[self.suit]

    @classmethod
    def from_id(cls, card_id: int) -> Card:
        """The card of an id, 0..51."""
        return cls(card_id % RANKS_A_SUIT + 1, card_id // RANKS_A_SUIT)

    @classmethod
    def parse(cls, text: str) -> Card:
        """Read ``"9h"``, ``"Ts"``, ``"10s"``, ``"K♠"``; case does not matter. DeckError for anything else."""
        card = _read(text) if isinstance(text, str) else None
        if card is None or card[1] is None:
            raise DeckError(f"expected a card such as 9h, Ts or 10♠, got {text!r}")
        return cls(card[0], card[1])


def deck(rules: Rules) -> list[Card]:
    """The deck of the rules in its sorted order: deck by deck, suit by suit, rank by rank."""
    one = [Card(rank, suit) for suit in range(rules.suits) for rank in range(1, rules.ranks + 1)]
    return one * rules.decks


def check_deck(cards: Sequence[Card], rules: Rules) -> None:
    """Raise DeckError, naming missing and surplus cards, unless ``cards`` are the deck of the rules in some order."""
    want, got = Counter(deck(rules)), Counter(cards)
    if want != got:
        raise DeckError(_complaint(rules, len(cards), _names(want - got), _names(got - want), []))


def parse_cards(text: str, rules: Rules) -> list[Card]:
    """Read a whole deck: the pyramid row by row, left to right, then the stock in drawing order.

    Ranks alone will do (``"94J856…"``): suits are then given in the order c, d, h, s to the cards of each rank as they
    come. Spaces, commas and line breaks separate cards and may be left out.

    Raises:
        DeckError: with every missing, surplus and unreadable card.
    """
    if not isinstance(text, str):
        raise DeckError(f"expected a deck as text, got {type(text).__name__}")
    tokens, unreadable = _tokens(text)
    with_suit = [(rank, suit) for rank, suit in tokens if suit is not None]
    if with_suit and len(with_suit) < len(tokens):
        bare = [RANK_LETTERS[rank - 1] for rank, suit in tokens if suit is None]
        raise DeckError(
            f"expected suits on all cards or on none, got {len(bare)} of {len(tokens)} cards without: {' '.join(bare)}"
        )
    if unreadable or not with_suit:
        ranks = [rank for rank, _ in tokens]
        _check_ranks(ranks, unreadable, rules)
        return _give_suits(ranks, rules)
    cards = [Card(rank, suit) for rank, suit in with_suit]
    check_deck(cards, rules)
    return cards


def _check_ranks(ranks: list[int], unreadable: list[str], rules: Rules) -> None:
    want = Counter(card.rank for card in deck(rules))
    got = Counter(ranks)
    if unreadable or want != got:
        raise DeckError(_complaint(rules, len(ranks), _rank_names(want - got), _rank_names(got - want), unreadable))


def _give_suits(ranks: list[int], rules: Rules) -> list[Card]:
    seen: Counter[int] = Counter()
    cards = []
    for rank in ranks:
        cards.append(Card(rank, seen[rank] % rules.suits))
        seen[rank] += 1
    return cards


def _complaint(rules: Rules, got: int, missing: list[str], doubled: list[str], unreadable: list[str]) -> str:
    parts = [f"not a deck of {rules}: expected {rules.cards} cards, got {got}"]
    for what, names in (("missing", missing), ("too many", doubled), ("unreadable", unreadable)):
        if names:
            parts.append(f"{what}: {' '.join(names)}")
    return "; ".join(parts)


def _names(cards: Counter[Card]) -> list[str]:
    return [str(card) for card in sorted(cards.elements())]


def _rank_names(ranks: Counter[int]) -> list[str]:
    return [RANK_LETTERS[rank - 1] for rank in sorted(ranks.elements())]


def _tokens(text: str) -> tuple[list[tuple[int, int | None]], list[str]]:
    """Split a deck's text into (rank, suit or None), and the pieces that are no card."""
    cards: list[tuple[int, int | None]] = []
    unreadable: list[str] = []
    for word in text.replace(",", " ").split():
        at = 0
        while at < len(word):
            for length in (3, 2, 1):
                card = _read(word[at : at + length]) if at + length <= len(word) else None
                if card is not None:
                    cards.append(card)
                    at += length
                    break
            else:
                unreadable.append(word[at])
                at += 1
    return cards, unreadable


def _read(text: str) -> tuple[int, int | None] | None:
    """One card's text to (rank, suit or None); None if it is no card."""
    if text.startswith("10"):
        text = "T" + text[2:]
    rank = RANK_LETTERS.find(text[:1].upper()) + 1 if text else 0
    if rank == 0 or len(text) > 2:
        return None
    if len(text) == 1:
        return rank, None
    suit = max(SUIT_LETTERS.find(text[1].lower()), SUIT_SYMBOLS.find(text[1]))
    return (rank, suit) if suit >= 0 else None


def card_list(cards: Iterable[int]) -> list[Card]:
    """Card ids to cards."""
    return [Card.from_id(int(card_id)) for card_id in cards]
