"""Deals: a fixed order of the deck, by number, by date, from a generator, or from text."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyramid_env._numba import inlined_kernel, kernel
from pyramid_env.bits import as_index, upper_half
from pyramid_env.cards import Card, card_list, check_deck, deck, parse_cards
from pyramid_env.errors import DeckError
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules

MAX_NUMBER: Final = 2**63 - 1
FIRST_TRAINING_NUMBER: Final = 1_000_000
"""Random deals are drawn from here up to MAX_NUMBER, so that training never meets a benchmark deal (0 .. 19,999)."""

# Increment and mixing constants of SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
# generators").
GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_S27: Final = np.uint64(27)
_S30: Final = np.uint64(30)
_S31: Final = np.uint64(31)


@dataclass(frozen=True)
class Deal:
    """The deck in a fixed order: the pyramid row by row, left to right, then the stock in drawing order.

    Attributes:
        cards: all cards of the deal.
        deal_number: the deal's number, or None for a deal from text; takes no part in comparisons.

    Mind the two names: ``Deal.number(42)`` is the classmethod that makes a deal from its number, also when called on an
    instance; the number of a deal at hand is ``deal.deal_number``.

    ``str(deal)`` is the deal as text; ``Deal.parse`` reads it back. A deal knows its deck, not its
    rules: the same numbered deal is the same order of cards under all rules with the same decks, ranks and suits.
    """

    cards: tuple[Card, ...]
    deal_number: int | None = field(default=None, compare=False)

    @classmethod
    def number(cls, number: int, rules: Rules | str = "pyramid") -> Deal:
        """Make the deal of a number, 0 .. 2^63 - 1, as :func:`shuffle` says; DeckError for any other number.

        The number of a deal that is already made is its attribute ``deal_number``.
        """
        chosen = read_rules(rules)
        checked = check_number(number)
        return cls(tuple(card_list(deal_numbers([checked], chosen)[0])), checked)

    @classmethod
    def daily(cls, date: datetime.date | None = None, rules: Rules | str = "pyramid") -> Deal:
        """The deal of a date (today in UTC if none is given): the deal numbered YYYYMMDD."""
        if date is None:
            date = datetime.datetime.now(datetime.UTC).date()
        if not isinstance(date, datetime.date):
            raise DeckError(f"expected a datetime.date, got {type(date).__name__}")
        if isinstance(date, datetime.datetime) and date.tzinfo is not None:
            date = date.astimezone(datetime.UTC)
        return cls.number(date.year * 10_000 + date.month * 100 + date.day, rules)

    @classmethod
    def random(cls, rng: np.random.Generator, rules: Rules | str = "pyramid", *, winnable: bool = False) -> Deal:
        """A random numbered deal from 1,000,000 up (the training range), drawn from the generator.

        Args:
            rng: the generator.
            rules: whose deck is dealt, and whose game the deal is to be winnable in.
            winnable: draw until the solver proves that the deal can be won (one that is open after a million positions
                is passed over); the same generator gives the same deal on every machine.

        Raises:
            DeckError: ``rng`` is no numpy.random.Generator, or 10,000 deals in a row cannot be won.
        """
        if not winnable:
            return cls.number(int(random_numbers(rng, 1)[0]), rules)
        from pyramid_env.winnable import random_winnable  # the solver is built on deals

        chosen = read_rules(rules)
        return cls.number(random_winnable(rng, chosen), chosen)

    @classmethod
    def parse(cls, text: str, rules: Rules | str = "pyramid") -> Deal:
        """Read a deal from text, with suits or ranks alone; DeckError lists missing, doubled and unreadable cards."""
        return cls(tuple(parse_cards(text, read_rules(rules))))

    def check(self, rules: Rules | str) -> None:
        """Raise DeckError unless this is a deal of the deck that the rules play with."""
        check_deck(self.cards, read_rules(rules))

    @property
    def ranks(self) -> NDArray[np.int8]:
        """(cards,) rank of every card, pyramid places first, then the stock."""
        return np.array([card.rank for card in self.cards], np.int8)

    @property
    def name(self) -> str:
        """The number, or the text of a deal without one: what logs and infos call it."""
        return str(self) if self.deal_number is None else str(self.deal_number)

    def __str__(self) -> str:
        return " ".join(map(str, self.cards))

    def __repr__(self) -> str:
        return f"Deal.number({self.deal_number})" if self.deal_number is not None else f"Deal.parse({str(self)!r})"

    def _repr_svg_(self) -> str | None:
        from pyramid_env.render.notebook import deal_svg  # pictures are built on deals

        return deal_svg(self)


class DealSource(Protocol):
    """Where an environment takes its random deals from, instead of its seeded generator."""

    def take(self, count: int) -> NDArray[np.int64]:
        """(count,) int64: the next deal numbers, 0 .. 2^63 - 1."""
        ...


def check_number(number: object) -> int:
    """A deal number as int; DeckError if it is none."""
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 0 <= number <= MAX_NUMBER:
        raise DeckError(f"deal number: expected a whole number from 0 to {MAX_NUMBER}, got {number!r}")
    return int(number)


def random_numbers(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """(count,) deal numbers of the training range; DeckError if ``rng`` is no numpy.random.Generator."""
    if not isinstance(rng, np.random.Generator):
        raise DeckError(f"random deal: expected a numpy.random.Generator, got {type(rng).__name__} {rng!r}")
    return rng.integers(FIRST_TRAINING_NUMBER, MAX_NUMBER, size=count, dtype=np.int64, endpoint=True)


def deal_numbers(numbers: ArrayLike, rules: Rules) -> NDArray[np.int8]:
    """Card ids of many numbered deals at once.

    Args:
        numbers: (B,) deal numbers, 0 .. 2^63 - 1.
        rules: whose deck is dealt.

    Returns:
        (B, cards) int8 card ids (``Card.from_id``), pyramid first, then the stock in drawing order.
    """
    wanted = np.ascontiguousarray(numbers, dtype=np.int64).reshape(-1)
    if wanted.size and wanted.min() < 0:
        raise DeckError(f"deal number: expected a whole number from 0 to {MAX_NUMBER}, got {int(wanted.min())}")
    out = np.empty((wanted.size, rules.cards), np.int8)
    shuffle(wanted.view(np.uint64), sorted_ids(rules), out, np.empty(rules.cards, np.int64))
    return out


@lru_cache
def sorted_ids(rules: Rules) -> NDArray[np.int8]:
    """(cards,) card ids of the sorted deck, where every shuffle starts; one read-only array for all callers."""
    ids = np.array([card.id for card in deck(rules)], np.int8)
    ids.setflags(write=False)
    return ids


def _division_tables() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """For each divisor d of 2 .. MOST_CARDS: floor(2^64 / d), and 2^64 mod d."""
    divisors = range(2, MOST_CARDS + 1)
    inverse = np.array([0, 0, *(2**64 // d for d in divisors)], np.uint64)
    rest = np.array([0, 0, *(2**64 % d for d in divisors)], np.uint64)
    return inverse, rest


MOST_CARDS: Final = 104
_INVERSE, _REST = _division_tables()


@inlined_kernel
def mix(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@kernel
def shuffle(
    numbers: NDArray[np.uint64], start: NDArray[np.int8], out_ids: NDArray[np.int8], out_choices: NDArray[np.int64]
) -> None:
    """Deal by number; this is the definition, pinned for good by golden values in the tests.

    state = mix(number + gamma); then Fisher-Yates from the last card down: for i = n-1 .. 1 swap card i with card j, j
    uniform in 0..i: state += gamma, x = mix(state), both again while x < 2^64 mod (i + 1) (so that no j is favoured),
    j = x mod (i + 1). All arithmetic is modulo 2^64; mix and gamma are SplitMix64's. The cards start sorted: deck by
    deck, suits c d h s, ranks ace to king. ``out_choices`` (cards,) is scratch.
    """
    cards = start.size
    for b in range(numbers.size):
        state = mix(numbers[b] + GAMMA)
        # All choices first, then all swaps: together they take twice the time.
        for i in range(cards - 1, 0, -1):
            bound = np.uint64(i + 1)
            state += GAMMA
            x = mix(state)
            while x < _REST[bound]:
                state += GAMMA
                x = mix(state)
            # x mod bound without a division: the product's upper half is the quotient, or one less.
            j = x - upper_half(x, _INVERSE[bound]) * bound
            if j >= bound:
                j -= bound
            out_choices[i] = np.int64(j)
        for i in range(cards):
            out_ids[b, i] = start[i]
        for i in range(cards - 1, 0, -1):
            other = as_index(out_choices[i])
            out_ids[b, i], out_ids[b, other] = out_ids[b, other], out_ids[b, i]
