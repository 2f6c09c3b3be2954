"""Positions: reading deals and position rows, and the check that play can lead to a position."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyramid_env import kernels
from pyramid_env.deal import Deal, check_number
from pyramid_env.errors import DeckError, PyramidError
from pyramid_env.geometry import geometry
from pyramid_env.rules import Rules

Position = tuple[int, int, int, int, int]
"""The columns of a position row as plain integers: pyramid, stock, cursor, pass, cleared."""

POSITION_KEYS: Final = ("pyramid", "stock", "cursor", "pass", "cleared")


def read_deal(deal: object, rules: Rules) -> Deal:
    """A deal from a Deal, a deal number or a text.

    Raises:
        DeckError: it is none of these, not of the rules' deck, or a Deal whose number deals other cards.
    """
    if isinstance(deal, str):
        return Deal.parse(deal, rules)
    if isinstance(deal, (int, np.integer)):
        return Deal.number(check_number(deal), rules)
    if not isinstance(deal, Deal):
        got = f"{type(deal).__name__} {deal!r}"
        raise DeckError(f"deal: expected a Deal, a deal number or a deal as text, got {got}")
    deal.check(rules)
    if deal.deal_number is not None and Deal.number(deal.deal_number, rules) != deal:
        raise DeckError(f"expected the cards that deal number {deal.deal_number} has under {rules}, got {deal}")
    return deal


def position_of(row: NDArray[np.int64]) -> Position:
    pyramid, stock, cursor, pass_number, cleared = row.tolist()
    return pyramid, stock, cursor, pass_number, cleared


def read_position(state: ArrayLike) -> Position:
    try:
        row = np.asarray(state)
    except ValueError:  # rows of different lengths
        row = np.empty(0)
    if row.shape != (kernels.STATE_COLUMNS,) or row.dtype.kind not in "iu":
        raise PyramidError(f"position: expected whole numbers {', '.join(POSITION_KEYS)}, got {state!r}")
    return position_of(row)


def check_position(rules: Rules, ranks: NDArray[np.int8], position: Position) -> None:
    """Raise PyramidError, with the reason, for a position that no play can lead to (as far as counting shows)."""
    reason = _why_misspelt(rules, position) or _why_unplayed(rules, ranks, position)
    if reason:
        raise PyramidError(f"position {position} of {rules}: {reason}")


def _why_misspelt(rules: Rules, position: Position) -> str:
    pyramid, stock, cursor, pass_number, cleared = position
    for name, bits, size in (("pyramid", pyramid, rules.places), ("stock", stock, rules.stock_size)):
        if not 0 <= bits < 1 << size:
            return f"expected {name} bits from 0 to {(1 << size) - 1} ({size} cards), got {bits}"
    if not 0 <= cursor <= rules.stock_size:
        return f"expected a cursor from 0 to {rules.stock_size}, got {cursor}"
    canonical = kernels.next_card(stock, cursor, rules.stock_size)
    if cursor != canonical:
        return f"expected the cursor on the next stock card left, {canonical}, got {cursor}"
    if not 1 <= pass_number <= rules.last_pass:
        return f"expected a pass from 1 to {rules.last_pass}, got {pass_number}"
    if pyramid and cleared:
        return f"expected cleared 0 while pyramid cards are left, got {cleared}"
    if not pyramid and not 1 <= cleared <= pass_number:
        return f"expected the pyramid cleared in a pass from 1 to {pass_number}, got {cleared}"
    if not pyramid and rules.goal == "pyramid" and cleared != pass_number:
        return f"expected the clear to have ended the game in pass {pass_number}, got a clear in pass {cleared}"
    return ""


def _why_unplayed(rules: Rules, ranks: NDArray[np.int8], position: Position) -> str:
    pyramid, stock, cursor, pass_number, _ = position
    gone_places = [i for i in range(rules.places) if not (pyramid >> i) & 1]
    gone_stock = [k for k in range(rules.stock_size) if not (stock >> k) & 1]
    ancestors = geometry(rules.rows).ancestors
    for i in gone_places:
        if int(ancestors[i]) & pyramid:
            return f"place {i} is empty but a card that lay on it is left"
    if pass_number == 1:
        if cursor < rules.predealt:
            return f"expected the {rules.predealt} cards turned beforehand on the waste, got a cursor of {cursor}"
        if any(k > cursor for k in gone_stock):
            return f"stock card {max(gone_stock)} is gone but was never turned"
    by_place = Counter(int(ranks[i]) for i in gone_places)
    by_stock = Counter(int(ranks[rules.places + k]) for k in gone_stock)
    stock_pairs = rules.pair_stock_waste or rules.pair_waste_two or rules.pair_waste_tops
    for rank in range(1, rules.ranks):
        partner = rules.ranks - rank
        gone, partners = by_place[rank] + by_stock[rank], by_place[partner] + by_stock[partner]
        if gone != partners:
            return f"expected as many cards of rank {rank} gone as of rank {partner}, got {gone} and {partners}"
        if not stock_pairs and by_stock[rank] > by_place[partner]:
            return (
                f"{by_stock[rank]} stock cards of rank {rank} are gone but only {by_place[partner]} of rank {partner} "
                "from the pyramid, and no two stock cards pair"
            )
    return ""
