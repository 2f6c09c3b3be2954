"""Explanations: which card lies at which spot, and why two spots make no move."""

from __future__ import annotations

import re

from pyramid_env.errors import IllegalMoveError
from pyramid_env.game import Game
from pyramid_env.render.spots import STOCK, waste_spot
from pyramid_env.render.view import look


def open_cards(game: Game) -> dict[str, str]:
    """The cards that lie open, by their spots."""
    view = look(game)
    found = {} if view.stock_top is None else {STOCK: str(view.stock_top)}
    for row, places in enumerate(view.rows, 1):
        for column, lying in enumerate(places, 1):
            if lying.card is not None:
                found[f"r{row}c{column}"] = str(lying.card)
    for pile, waste in enumerate(view.piles):
        for depth, card in enumerate(reversed(waste.cards)):
            found[waste_spot(pile, depth)] = str(card)
    return found


def refuse(game: Game, spots: tuple[str, ...], cards: tuple[str, ...]) -> None:
    """Raise IllegalMoveError with the reason why spots that are no move are none.

    Args:
        game: the position.
        spots: one or two.
        cards: what lies open there, by name, ``""`` where nothing does: cards are called by their names.
    """
    named = "+".join(card or spot for card, spot in zip(cards, spots, strict=True))
    for spot, card in zip(spots, cards, strict=True):
        if covers := _covers(game, spot, spots):
            raise IllegalMoveError(f"{named}: {card} is covered by {' and '.join(covers)}")
    parts = list(spots)
    for at, (spot, card) in enumerate(zip(spots, cards, strict=True)):
        top, dot, _ = spot.partition(".")
        if dot:  # under the top of the waste, which a move's text names together with the top alone
            parts[at] = top if top in spots else card or spot
    text = "+".join(parts)
    try:
        game.parse(text)
    except IllegalMoveError as error:
        _, colon, reason = str(error).partition(f"{text}: ")
        if not colon:
            raise
        named = "+".join(card or part for card, part in zip(cards, parts, strict=True))
        raise IllegalMoveError(f"{named}: {reason}") from None
    raise IllegalMoveError(f"{text}: expected the spots of a legal move")


def _covers(game: Game, spot: str, spots: tuple[str, ...]) -> list[str]:
    """The cards that lie on a pyramid card, but for one that may leave with it."""
    found = re.fullmatch(r"r([0-9])c([0-9])", spot)
    if found is None:
        return []
    row, column = int(found[1]), int(found[2])
    lying = open_cards(game)
    over = [f"r{row + 1}c{at}" for at in (column, column + 1) if f"r{row + 1}c{at}" in lying]
    if game.rules.overlap and len(over) == 1 and over[0] in spots:
        return []
    return [lying[each] for each in over]
