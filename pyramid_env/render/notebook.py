"""Notebook: what a deal and a solver's answer show of themselves at the end of a notebook's cell."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pyramid_env.cards import check_deck
from pyramid_env.deal import Deal
from pyramid_env.errors import DeckError
from pyramid_env.game import Game
from pyramid_env.render.svg import svg
from pyramid_env.rules import PRESETS, Rules

if TYPE_CHECKING:
    from pyramid_env.solver import Solution


def preset_of(deal: Deal) -> Rules | None:
    """The first preset that plays with the deck of a deal: ``pyramid`` for 52 cards; None where there is none."""
    for rules in PRESETS.values():
        if rules.cards == len(deal.cards):
            try:
                check_deck(deal.cards, rules)
            except DeckError:
                continue
            return rules
    return None


def deal_svg(deal: Deal) -> str | None:
    """The table as a deal lays it, under the first preset of its deck, the stock face down; None without a preset."""
    rules = preset_of(deal)
    return None if rules is None else svg(Game(Deal(deal.cards), rules))


def solution_html(solution: Solution) -> str:
    """An answer as a small table, its moves to unfold."""
    rows = {
        "objective": solution.objective.value,
        "status": solution.status.value,
        "value": f"{solution.value}",
        "bound": f"{solution.bound}",
        "positions": f"{solution.states:,}",
        "seconds": f"{solution.seconds:.3f}",
    }
    cells = "".join(f"<tr><th scope='row'>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows.items())
    moves = escape(", ".join(map(str, solution.moves)))
    count = f"{len(solution.moves)} move{'' if len(solution.moves) == 1 else 's'}"
    line = f"<details><summary>{count}</summary>{moves}</details>" if solution.moves else "no moves"
    return f"<table>{cells}<tr><th scope='row'>line</th><td>{line}</td></tr></table>"
