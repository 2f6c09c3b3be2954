"""Marks: what a picture points out about some of its cards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

from pyramid_env.errors import PyramidError
from pyramid_env.game import Game
from pyramid_env.kernels import CURSOR
from pyramid_env.render.spots import STOCK, is_spot, spots_of, waste_spot
from pyramid_env.render.view import View, look
from pyramid_env.rules import Rules

NONE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True)
class Marks:
    """Spots (:mod:`pyramid_env.render.spots`) that a picture points out, each kind in a way of its own.

    Attributes:
        playable: their cards take part in a legal removal.
        hinted: a hint names them.
        selected: the player has chosen them.
        last: the last move took a card from there, or laid one there. A pyramid place that is empty now shows a trace.

    A spot where nothing lies is passed over. Any iterable of keys will do and is kept as a frozenset.

    Raises:
        PyramidError: a key that is none.
    """

    playable: frozenset[str] = NONE
    hinted: frozenset[str] = NONE
    selected: frozenset[str] = NONE
    last: frozenset[str] = NONE

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, _keys(field.name, getattr(self, field.name)))


def _keys(name: str, keys: Iterable[str]) -> frozenset[str]:
    if keys is NONE:
        return NONE
    wanted = "expected spots such as r7c3, stock, waste1, waste1.1"
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise PyramidError(f"{name}: {wanted} in a set, got {keys!r}")
    found = list(keys)
    wrong = [key for key in found if not is_spot(key)]
    if wrong:
        raise PyramidError(f"{name}: {wanted}, got {wrong[0]!r}")
    return frozenset(found)


def marks_of(game: Game) -> Marks:
    """The marks of a game in progress: what can be removed, and what the last move touched.

    A removal touched the spots of its cards, a draw the tops of the piles that got cards, a recycle the stock.
    """
    return marks_for(game, look(game), None)


def marks_for(position: Game | Rules | View, view: View, marks: Marks | None) -> Marks:
    """The marks asked for; else those of the game; else what can be removed in the view."""
    if marks is not None:
        if not isinstance(marks, Marks):
            raise PyramidError(f"marks: expected Marks or None, got {marks!r}")
        return marks
    last = last_spots(position) if isinstance(position, Game) else NONE
    return Marks(view.playable, last=last)


def last_spots(game: Game) -> frozenset[str]:
    """What the last move touched; nothing at the start."""
    if not game.moves_made:
        return NONE
    move = game.history[-1]
    if not move.is_draw:
        return frozenset(spots_of(move))
    before, after = game._line[game.moves_made - 1], game._line[game.moves_made]
    _, stock, start, *_ = before
    if start == game.rules.stock_size:
        return frozenset((STOCK,))
    turned = [k for k in range(start, after[CURSOR]) if stock >> k & 1]
    return frozenset(waste_spot(k % game.rules.waste_piles) for k in turned)
