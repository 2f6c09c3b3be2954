"""Reference: the rules once more, slow and plain, as cards lying in lists.

It was written from the rules document alone, without a look at the package's kernels, so that the two readings of the
rules can check each other. Only the switches (``Rules``) are shared. Nothing here is fast or clever: the pyramid is a
list of rows, the stock and the waste piles are lists of cards, and every question is answered by looking at them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyramid_env.rules import Rules

PAR_BONUS_OF_PASS = {1: 50, 2: 35, 3: 20}
MSC_A_REMOVAL = 5
MSC_ROWS_FROM_THE_BOTTOM = (25, 50, 75, 100, 150, 250, 500)
PASS_THAT_STANDS_FOR_ALL_LATER = 4
RANK_OF_LETTER = {letter: rank for rank, letter in enumerate("A23456789TJQK", start=1)}


def read_ranks(text: str) -> list[int]:
    """The ranks of a deal written as letters; blanks and line breaks only shape the picture."""
    return [RANK_OF_LETTER[letter] for letter in text if not letter.isspace()]


class StockCard(NamedTuple):
    """A card that was dealt to the stock: its number (0 = first out of the stock in pass 1) and its rank."""

    number: int
    rank: int


class Reference:
    """One game in progress.

    Attributes:
        rules: the switches.
        pyramid: rows from the apex down, each a list of ranks; None where a card has left.
        stock: cards not turned in this pass, the next one first.
        wastes: the waste piles, each with its newest card last.
        cleared_in: the pass in which the last pyramid card left, 0 before that.
        removals: pairs and kings removed so far.
        passes_begun: passes through the stock so far, the running one included.
        seen: numbers of the stock cards that ever lay face up, in the order in which they were seen.
    """

    def __init__(self, rules: Rules, ranks: Sequence[int]) -> None:
        """Deal ``ranks``: the pyramid row by row, then the stock in drawing order."""
        if len(ranks) != rules.cards:
            raise ValueError(f"expected {rules.cards} ranks, got {len(ranks)}")
        self.rules = rules
        self.pyramid: list[list[int | None]] = []
        dealt = 0
        for row in range(1, rules.rows + 1):
            self.pyramid.append([int(rank) for rank in ranks[dealt : dealt + row]])
            dealt += row
        self.stock = [StockCard(number, int(rank)) for number, rank in enumerate(ranks[dealt:])]
        self.wastes: list[list[StockCard]] = [[] for _ in range(rules.waste_piles)]
        self.cleared_in = 0
        self.removals = 0
        self.seen: list[int] = []
        self.passes_begun = 1
        self._turn(rules.predealt)

    # What lies where

    @property
    def pass_number(self) -> int:
        """The pass through the stock that is running; without a limit, 4 stands for every later pass too."""
        return (
            self.passes_begun
            if self.rules.passes is not None
            else min(self.passes_begun, PASS_THAT_STANDS_FOR_ALL_LATER)
        )

    @property
    def pyramid_left(self) -> int:
        """Cards left in the pyramid."""
        return sum(len(row) - row.count(None) for row in self.pyramid)

    @property
    def cards_left(self) -> int:
        """Cards not removed, wherever they lie."""
        return self.pyramid_left + len(self.stock) + sum(len(pile) for pile in self.wastes)

    def is_covered(self, row: int, column: int) -> bool:
        """Whether a card still lies on this place; row and column from 0."""
        if row + 1 == len(self.pyramid):
            return False
        below = self.pyramid[row + 1]
        return below[column] is not None or below[column + 1] is not None

    # Moves

    def legal_moves(self) -> set[str]:
        """Every legal move as text; empty exactly when the game is over."""
        if self._ended_by_rule():
            return set()
        moves = self.legal_removals()
        if self._can_draw() and (moves or self.rules.passes is not None or self._removal_lies_ahead()):
            moves.add("draw")
        return moves

    def legal_removals(self) -> set[str]:
        """Every pair that makes the highest rank and every king (the highest rank alone) that may leave now."""
        switches = self.rules
        places = self._exposed_places()
        tops = [(self._pile_name(number), pile[-1].rank) for number, pile in enumerate(self.wastes) if pile]
        stock = [("stock", self.stock[0].rank)] if switches.stock_top and self.stock else []
        highest = switches.ranks

        moves = {name for name, rank in places + tops + stock if rank == highest}
        for at, (name, rank) in enumerate(places):
            for other, other_rank in places[at + 1 :] + tops + stock:
                if rank + other_rank == highest:
                    moves.add(f"{name}+{other}")
        if switches.pair_stock_waste:
            for name, rank in stock:
                moves |= {f"{name}+{other}" for other, other_rank in tops if rank + other_rank == highest}
        if switches.pair_waste_tops:
            for at, (name, rank) in enumerate(tops):
                moves |= {f"{name}+{other}" for other, other_rank in tops[at + 1 :] if rank + other_rank == highest}
        if switches.pair_waste_two:
            for number, pile in enumerate(self.wastes):
                if len(pile) >= 2 and pile[-1].rank + pile[-2].rank == highest:
                    moves.add(f"{self._pile_name(number)}+{self._pile_name(number)}")
        if switches.overlap:
            moves |= self._overlapping_pairs()
        return moves

    def play(self, move: str) -> None:
        """Make a legal move; ValueError, and no change, for any other."""
        if move not in self.legal_moves():
            raise ValueError(f"expected one of {sorted(self.legal_moves())}, got {move!r}")
        if move == "draw":
            self._draw()
        else:
            for name in move.split("+"):
                self._take(name)
            self.removals += 1
            if self.cleared_in == 0 and self.pyramid_left == 0:
                self.cleared_in = self.pass_number
        self._look_at_stock()

    # The end and the score

    @property
    def is_over(self) -> bool:
        """No move is legal."""
        return not self.legal_moves()

    @property
    def is_won(self) -> bool:
        """The goal is reached: the pyramid is cleared, or every card has left."""
        return (self.pyramid_left if self.rules.goal == "pyramid" else self.cards_left) == 0

    @property
    def score(self) -> int:
        """The score so far, by the scoring of the rules."""
        if self.rules.scoring == "par":
            return self.par()
        return self.msc() if self.rules.scoring == "msc" else int(self.is_won)

    def par(self) -> int:
        """The bonus for the pass of the clear, less the cards left."""
        return PAR_BONUS_OF_PASS.get(self.cleared_in, 0) - self.cards_left

    def msc(self) -> int:
        """Points for each removal and for each emptied row, counted from the bottom row."""
        points = MSC_A_REMOVAL * self.removals
        for bonus, row in zip(MSC_ROWS_FROM_THE_BOTTOM, reversed(self.pyramid), strict=False):
            if all(rank is None for rank in row):
                points += bonus
        return points

    # Copies

    def copy(self) -> Reference:
        """The same position as a game of its own."""
        twin = Reference.__new__(Reference)
        twin.rules = self.rules
        twin.pyramid = [list(row) for row in self.pyramid]
        twin.stock = list(self.stock)
        twin.wastes = [list(pile) for pile in self.wastes]
        twin.cleared_in = self.cleared_in
        twin.removals = self.removals
        twin.seen = list(self.seen)
        twin.passes_begun = self.passes_begun
        return twin

    def key(self) -> tuple[object, ...]:
        """All that decides how the game can go on and what it will score; equal keys, equal positions."""
        return (
            tuple(tuple(row) for row in self.pyramid),
            tuple(self.stock),
            tuple(tuple(pile) for pile in self.wastes),
            self.pass_number,
            self.cleared_in,
        )

    def packed(self) -> tuple[int, int, int, int, int]:
        """The position as five numbers: pyramid bits, stock bits, first card not turned, pass, pass of the clear.

        Bit i of the pyramid is place i, row by row; bit k of the stock is stock card k, whether turned or not.
        """
        left = [rank is not None for row in self.pyramid for rank in row]
        kept = [*self.stock, *(card for pile in self.wastes for card in pile)]
        return (
            sum(1 << place for place, is_left in enumerate(left) if is_left),
            sum(1 << card.number for card in kept),
            self.stock[0].number if self.stock else self.rules.stock_size,
            self.pass_number,
            self.cleared_in,
        )

    # Inside

    def _exposed_places(self) -> list[tuple[str, int]]:
        return [
            (_place_name(row, column), rank)
            for row, ranks in enumerate(self.pyramid)
            for column, rank in enumerate(ranks)
            if rank is not None and not self.is_covered(row, column)
        ]

    def _overlapping_pairs(self) -> set[str]:
        """Each card together with the only card that still covers it, where that one is itself exposed."""
        pairs = set()
        for row, ranks in enumerate(self.pyramid[:-1]):
            below = self.pyramid[row + 1]
            for column, rank in enumerate(ranks):
                left, right = below[column], below[column + 1]
                if rank is None or (left is None) == (right is None):
                    continue  # gone, or none or both of its covers are left
                cover_column, cover_rank = (column, left) if left is not None else (column + 1, right)
                if rank + cover_rank == self.rules.ranks and not self.is_covered(row + 1, cover_column):
                    pairs.add(f"{_place_name(row, column)}+{_place_name(row + 1, cover_column)}")
        return pairs

    def _pile_name(self, number: int) -> str:
        return "waste" if len(self.wastes) == 1 else f"waste{number + 1}"

    def _ended_by_rule(self) -> bool:
        """Ended although cards might still be moved: at the clear, or when the last pass has run out."""
        if self.rules.goal == "pyramid" and self.pyramid_left == 0:
            return True
        return self.rules.end_on_exhausted and self.passes_begun == self.rules.passes and not self.stock

    def _can_draw(self) -> bool:
        """A card can be turned, or the waste can be turned over for another pass."""
        if self.stock:
            return True
        return any(self.wastes) and (self.rules.passes is None or self.passes_begun < self.rules.passes)

    def _removal_lies_ahead(self) -> bool:
        """Whether only drawing, to the end of the next pass, ever meets a position with a removal."""
        ahead = self.copy()
        last = self.passes_begun + 1
        while ahead.passes_begun < last or ahead.stock:
            if not ahead._can_draw():
                return False
            ahead._draw()
            if ahead.legal_removals():
                return True
        return False

    def _draw(self) -> None:
        if self.stock:
            self._turn(self.rules.draw_count)
            return
        self.stock = sorted(card for pile in self.wastes for card in pile)  # the first out comes first again
        self.wastes = [[] for _ in self.wastes]
        self.passes_begun += 1

    def _turn(self, count: int) -> None:
        """Turn the next cards up, each onto its pile; all that are left if there are fewer."""
        for card in self.stock[:count]:
            self.wastes[card.number % len(self.wastes)].append(card)
            self._see(card)
        del self.stock[:count]
        self._look_at_stock()

    def _look_at_stock(self) -> None:
        if self.rules.stock_top and self.stock:
            self._see(self.stock[0])

    def _see(self, card: StockCard) -> None:
        if card.number not in self.seen:
            self.seen.append(card.number)

    def _take(self, name: str) -> None:
        """Take one named card away."""
        if name == "stock":
            del self.stock[0]
        elif name.startswith("waste"):
            self.wastes[int(name.removeprefix("waste") or 1) - 1].pop()
        else:
            row, column = name.removeprefix("r").split("c")
            self.pyramid[int(row) - 1][int(column) - 1] = None


def _place_name(row: int, column: int) -> str:
    return f"r{row + 1}c{column + 1}"
