"""Questions: what was asked about which deals, under which limits, of which solver; what tells two files apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env.cards import RANKS_A_SUIT, SUIT_LETTERS, Card, card_list
from pyramid_env.deal import Deal, check_number, deal_numbers
from pyramid_env.positions import read_deal
from pyramid_env.rules import Rules
from pyramid_env.solver.result import Limits, Objective, SolverError, read_objective

FILE_FORMAT: Final = "pyramid_env.solutions"
FILE_VERSION: Final = 1
UNNUMBERED: Final = -1
"""What stands in a ``deals`` column for a deal without a number."""

CARD_IDS: Final = RANKS_A_SUIT * len(SUIT_LETTERS)
RANK_OF_ID: Final = np.array([Card.from_id(card).rank for card in range(CARD_IDS)], np.int8)  # (52,)
RANK_OF_ID.flags.writeable = False


class Dealt(NamedTuple):
    """Deals in columns: their numbers, and the cards of those that have none."""

    numbers: NDArray[np.int64]  # (n,) UNNUMBERED for a deal without a number
    cards: NDArray[np.int8]  # (u, cards) card ids of the u deals without a number, in their order

    def ids(self, rules: Rules, start: int, stop: int) -> NDArray[np.int8]:
        """(stop - start, cards) card ids of the deals from ``start`` up to ``stop``."""
        numbers = self.numbers[start:stop]
        bare = numbers == UNNUMBERED
        ids = deal_numbers(np.where(bare, 0, numbers), rules)
        if bare.any():
            first = int(np.count_nonzero(self.numbers[:start] == UNNUMBERED))
            ids[bare] = self.cards[first : first + int(bare.sum())]
        return ids

    def ranks(self, rules: Rules, start: int, stop: int) -> NDArray[np.int8]:
        """(stop - start, cards) ranks of the cards of the same deals."""
        return RANK_OF_ID[self.ids(rules, start, stop)]


@dataclass(frozen=True, eq=False)
class Question:
    """What was asked, of which version of the solver: everything that the answers depend on."""

    rules: Rules
    objective: Objective
    limits: Limits
    dealt: Dealt
    version: int

    def header(self) -> dict[str, Any]:
        """All but the deals, as JSON values."""
        return {
            "format": FILE_FORMAT,
            "file_version": FILE_VERSION,
            "solver_version": self.version,
            "objective": str(self.objective),
            "limits": asdict(self.limits),
            "rules": self.rules.to_dict(),
        }

    @classmethod
    def from_header(cls, header: Any, numbers: NDArray[np.int64], cards: NDArray[np.int8]) -> Question:
        """The question of a header and its deals: their (n,) numbers, and the card ids of those without, in any shape.

        ValueError, TypeError or KeyError, with the reason, if they are none.
        """
        if not isinstance(header, dict) or header.get("format") != FILE_FORMAT:
            raise ValueError(f"expected the format {FILE_FORMAT}, got another")
        if header.get("file_version") != FILE_VERSION:
            raise ValueError(f"expected file version {FILE_VERSION}, got {header.get('file_version')!r}")
        rules = Rules(**header["rules"])
        version = header["solver_version"]
        if type(version) is not int:
            raise ValueError(f"expected a whole number as solver version, got {version!r}")
        cards = cards.reshape(-1, rules.cards)
        bare = int(np.count_nonzero(numbers == UNNUMBERED))
        if numbers.ndim != 1 or (numbers < UNNUMBERED).any() or len(cards) != bare:
            raise ValueError("expected deal numbers from 0 up, and the cards of each deal without a number")
        if cards.size and not 0 <= cards.min() <= cards.max() < CARD_IDS:
            raise ValueError(f"expected card ids from 0 to {CARD_IDS - 1}")
        dealt = Dealt(numbers, cards)
        return cls(rules, read_objective(header["objective"]), Limits(**header["limits"]), dealt, version)

    def deal(self, index: int) -> Deal:
        """The deal at an index from 0."""
        number = int(self.dealt.numbers[index])
        ids = self.dealt.ids(self.rules, index, index + 1)[0]
        return Deal(tuple(card_list(ids)), None if number == UNNUMBERED else number)

    def switches(self) -> dict[str, Any]:
        """The objective and the rules' switches. A preset's name and the games of a match change no answer."""
        left_out = ("preset", "match_games")
        switches = {name: value for name, value in self.rules.to_dict().items() if name not in left_out}
        return {"objective": str(self.objective), **switches}

    def same_deals(self, other: Question) -> bool:
        """Are the deals the same, number for number, and card for card where there is none?"""
        mine, theirs = self.dealt, other.dealt
        return np.array_equal(mine.numbers, theirs.numbers) and np.array_equal(mine.cards, theirs.cards)

    def differences(self, other: Question) -> list[str]:
        """What another question has otherwise, as "expected, got" with this one's as expected; empty if nothing."""
        mine, theirs = (
            {"solver version": question.version, **asdict(question.limits), **question.switches()}
            for question in (self, other)
        )
        found = [
            f"{name}: expected {value}, got {theirs[name]}" for name, value in mine.items() if value != theirs[name]
        ]
        expected, got = self.dealt.numbers, other.dealt.numbers
        if len(expected) != len(got):
            found.append(f"deals: expected {len(expected)}, got {len(got)}")
        elif found:
            pass  # under other rules a number deals other cards: no use in comparing
        elif (differ := np.flatnonzero(expected != got)).size:
            first = int(differ[0])
            found.append(f"deals[{first}]: expected {self.deal(first).name}, got {other.deal(first).name}")
        elif (differ := np.flatnonzero((self.dealt.cards != other.dealt.cards).any(axis=1))).size:
            first = int(np.flatnonzero(expected == UNNUMBERED)[differ[0]])
            found.append(f"deals[{first}]: expected {self.deal(first).name}, got {other.deal(first).name}")
        return found

    def check_same(self, other: Question, path: Path) -> None:
        """SolverError, naming what differs, unless ``other``, found in a file, is the same question."""
        found = self.differences(other)
        if found:
            raise SolverError(f"{path}: holds the answers to another question; {'; '.join(found)}")


# ---- reading deals ---------------------------------------------------------------------------------------------------


def read_deals(deals: object, rules: Rules) -> Dealt:
    """Deals, their numbers or their texts, in columns. A range or an array of whole numbers is read at once.

    Raises:
        SolverError: one deal where several are expected.
        DeckError: one of them is no deal, not of the rules' deck, or bears a number that deals other cards.
    """
    if isinstance(deals, range):
        for end in {deals[0], deals[-1]} if deals else ():
            check_number(end)
        # Not arange from start to stop: the stop may lie beyond the highest number.
        return _numbered(deals.start + deals.step * np.arange(len(deals), dtype=np.int64), rules)
    if isinstance(deals, np.ndarray) and deals.ndim == 1 and deals.dtype.kind in "iu":
        for end in (deals.min(), deals.max()) if deals.size else ():
            check_number(end)
        return _numbered(deals.astype(np.int64), rules)
    scalar = isinstance(deals, np.ndarray) and deals.ndim == 0
    if isinstance(deals, (str, bytes)) or scalar or not isinstance(deals, Iterable):
        raise SolverError(f"deals: expected several, in a list or the like, got {type(deals).__name__} {deals!r}")
    numbers: list[int] = []
    cards: list[list[int]] = []
    for deal in deals:
        if isinstance(deal, (int, np.integer)):
            numbers.append(check_number(deal))
            continue
        read = read_deal(deal, rules)
        numbers.append(UNNUMBERED if read.deal_number is None else read.deal_number)
        if read.deal_number is None:
            cards.append([card.id for card in read.cards])
    return Dealt(np.array(numbers, np.int64), np.array(cards, np.int8).reshape(-1, rules.cards))


def _numbered(numbers: NDArray[np.int64], rules: Rules) -> Dealt:
    return Dealt(numbers, np.empty((0, rules.cards), np.int8))
