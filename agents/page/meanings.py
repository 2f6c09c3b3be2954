"""Meanings: what the columns of a page's tables say, as far as the notes below the printed tables do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agents.details import PASSES
from agents.regret import KINDS
from pyramid_env.moves import Kind

RESULTS: Final[Mapping[str, str]] = {
    "agent": "who played; a clairvoyant one sees hidden cards, and is no legal player.",
    "wins %": "share of the games won.",
    "score": "mean score at the end of a game.",
    "at par %": "share of the matches with a total of zero or more.",
    "games": "games played: every deal once, by each run where a row stands for several.",
    "seconds": "time taken by agent and environment; the bound's is the solver's, whenever it ran.",
}

DETAILS: Final[Mapping[str, str]] = {
    "agent": "who played.",
    **{f"pass {number} %": "pyramids cleared in that pass, as a share of all games." for number in PASSES},
    "later %": "pyramids cleared in a later pass, as a share of all games.",
    **{f"{kind} %": f"share of the {kind} deals won." for kind in ("easy", "medium", "hard")},
    "moves": "mean moves of a game, draws among them.",
    "draws": "mean moves of a game that turned the stock, or turned the waste over.",
    "ms a move": "milliseconds for a move, agent and environment together.",
}

COMPARISONS: Final[Mapping[str, str]] = {
    "pair": "the first agent less the second.",
    "wins": "difference of the shares of games won, in percentage points.",
    "95 %": "interval of the difference to its left, Student's t over the deals.",
    "won alone": "deals that only the first won, and only the second.",
    "p": "so likely is a difference as large if the two are alike: McNemar's exact test for wins, a permutation test "
    "for scores.",
    "score": "difference of the mean scores, in points.",
}

_KIND_MEANINGS: Final = {
    Kind.PLACE_PAIR: "two cards of the pyramid",
    Kind.PLACE_WASTE: "a card of the pyramid with the top of the waste",
    Kind.PLACE_KING: "a king of the pyramid",
    Kind.WASTE_KING: "a king on top of the waste",
    Kind.PLACE_STOCK: "a card of the pyramid with the top of the stock",
    Kind.STOCK_KING: "a king on top of the stock",
    Kind.STOCK_WASTE: "the top of the stock with the top of the waste",
    Kind.WASTE_TWO: "the two uppermost cards of a waste pile",
    Kind.WASTE_TOPS: "the tops of two waste piles",
    Kind.DRAW: "cards turned from the stock, or the waste turned over",
}

SPLIT: Final[Mapping[str, str]] = {
    "agent": "who played.",
    **{f"pass {number}": "lost by moves of that pass." for number in PASSES},
    **{KINDS[kind]: f"lost by moves of this kind: {said}." for kind, said in _KIND_MEANINGS.items()},
}

HABITS: Final[Mapping[str, str]] = {
    "agent": "who played.",
    "pass": "through the stock, in which the move was made.",
    "made": "kind of the move made.",
    "would have cost nothing": "kinds of the moves that would have kept all that could still be reached.",
    "times": "how often, in all games.",
    "regret": "what it lost, as a mean over all games.",
}
