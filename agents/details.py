"""Details: what lies behind an agent's row: when it clears, how long it plays, which deals it wins; pairs of agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.evaluation import GameRecord
from agents.statistics import Estimate, McNemar, mcnemar, mean_t, paired_difference, permutation_test, wilson
from pyramid_env.benchmark import SHIPPED, SPLITS, Difficulty, bounds
from pyramid_env.benchmark.bounds import switches
from pyramid_env.errors import PyramidError
from pyramid_env.rules import PRESETS, Rules

PASSES: Final = ("1", "2", "3", "later")
"""Passes that a clear is counted in; what is missing to 1 was not cleared."""

SHOWN_PAIRS: Final = 10
"""So many pairs of agents at most are printed; the summary has all."""

_UNKNOWN: Final = "–"


class ClassResult(NamedTuple):
    """An agent's games on the deals of one class.

    Attributes:
        games: played.
        wins: share of them, with Wilson's interval.
        score: mean score, with Student's t interval.
    """

    games: int
    wins: Estimate
    score: Estimate


class Details(NamedTuple):
    """How an agent's games went.

    Attributes:
        name: the agent's.
        cleared: share of the games whose pyramid was cleared in each pass of PASSES.
        moves: mean moves a game; draws: those that turned the stock.
        seconds_per_move: agent and environment together.
        by_difficulty: results by class of the deal (pyramid_env.benchmark.Difficulty, small letters); empty where the
            deals have none.
    """

    name: str
    cleared: dict[str, float]
    moves: float
    draws: float
    seconds_per_move: float
    by_difficulty: dict[str, ClassResult]


class Comparison(NamedTuple):
    """Two agents on the same deals, game by game.

    Attributes:
        first, second: their names.
        games: compared.
        wins: share won by the first less that of the second, with Student's t interval.
        mcnemar: deals that one of the two alone won, and McNemar's exact test.
        score: mean score of the first less that of the second, with Student's t interval.
        score_p_value: of a permutation test: so likely is a difference as large if the two are alike.
    """

    first: str
    second: str
    games: int
    wins: Estimate
    mcnemar: McNemar
    score: Estimate
    score_p_value: float


def deal_classes(rules: Rules, deals: Sequence[int]) -> NDArray[np.int8] | None:
    """(D,) class of each deal; None unless bounds of these rules ship with the package and the deals are the
    benchmark's."""
    if not any(switches(PRESETS[preset]) == switches(rules) for preset in SHIPPED):
        return None
    numbers = np.asarray(deals, np.int64)
    found = np.full(numbers.size, -1, np.int8)
    for split, places in SPLITS.items():
        inside = (numbers >= places.start) & (numbers < places.stop)
        if inside.any():
            found[inside] = bounds(rules, split).difficulty[numbers[inside] - places.start]
    return None if (found < 0).any() else found


def details_of(name: str, records: Sequence[GameRecord], classes: NDArray[np.int8] | None) -> Details:
    """How the games of one agent went; ``classes`` are those of the deals, in the same order."""
    won, score, cleared, moves, draws = (
        np.array([getattr(record, field) for record in records])
        for field in ("won", "score", "cleared_in", "steps", "draws")
    )
    by_class = {}
    if classes is not None:
        for each in Difficulty:
            of_class = classes == each
            if of_class.any():
                games = int(of_class.sum())
                wins = wilson(int(won[of_class].sum()), games)
                by_class[each.name.lower()] = ClassResult(games, wins, mean_t(score[of_class]))
    return Details(
        name=name,
        cleared={name: float(np.mean(cleared == number + 1)) for number, name in enumerate(PASSES)},
        moves=float(moves.mean()),
        draws=float(draws.mean()),
        seconds_per_move=sum(record.seconds for record in records) / max(1, int(moves.sum())),
        by_difficulty=by_class,
    )


def compare(games: Mapping[str, Sequence[GameRecord]]) -> list[Comparison]:
    """Each pair of agents, in their order.

    Raises:
        PyramidError: two agents that did not play the same deals in the same order.
    """
    found = []
    for first, second in combinations(games, 2):
        ours, theirs = games[first], games[second]
        if [record.deal for record in ours] != [record.deal for record in theirs]:
            raise PyramidError(f"compare: expected the same deals in the same order, {first} and {second} differ")
        our_wins, their_wins = ([record.won for record in side] for side in (ours, theirs))
        our_scores, their_scores = ([record.score for record in side] for side in (ours, theirs))
        found.append(
            Comparison(
                first=first,
                second=second,
                games=len(ours),
                wins=paired_difference(our_wins, their_wins),
                mcnemar=mcnemar(our_wins, their_wins),
                score=paired_difference(our_scores, their_scores),
                score_p_value=permutation_test(our_scores, their_scores, resamples=_resamples(len(ours))),
            )
        )
    return found


def _resamples(games: int) -> int:
    """As many as take about a second."""
    return max(999, min(9_999, 20_000_000 // games))


# ---- tables ----------------------------------------------------------------------------------------------------------


def details_cells(every: Sequence[Details]) -> tuple[list[str], list[list[str]]]:
    """Heads and cells; passes that nobody clears in, classes that no deal has, and deals that nobody can win,
    are left out."""
    columns: list[tuple[str, list[str]]] = [("agent", [each.name for each in every])]
    for number in PASSES:
        if any(each.cleared[number] for each in every):
            head = f"pass {number} %" if number != "later" else "later %"
            columns.append((head, [f"{100 * each.cleared[number]:.1f}" for each in every]))
    for kind in (each.name.lower() for each in Difficulty if each != Difficulty.UNWINNABLE):
        results = [each.by_difficulty.get(kind) for each in every]
        if any(results):
            columns.append((f"{kind} %", [_UNKNOWN if not r else f"{100 * r.wins.value:.1f}" for r in results]))
    columns += [
        ("moves", [f"{each.moves:.1f}" for each in every]),
        ("draws", [f"{each.draws:.1f}" for each in every]),
        ("ms a move", [f"{1000 * each.seconds_per_move:.3g}" for each in every]),
    ]
    return [head for head, _ in columns], [list(line) for line in zip(*(cells for _, cells in columns), strict=True)]


def details_notes(every: Sequence[Details]) -> list[str]:
    """What the columns mean."""
    notes = ["pass n %: pyramids cleared in that pass, as a share of all games."]
    counts = {kind: result.games for each in every[:1] for kind, result in each.by_difficulty.items()}
    if counts:
        games = ", ".join(f"{kind} {count:,}" for kind, count in counts.items())
        notes.append(f"easy, medium, hard %: wins by class of the deal; deals: {games}.")
    return notes


def comparison_cells(every: Sequence[Comparison]) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of the first SHOWN_PAIRS pairs."""
    lines = [
        [
            f"{each.first} − {each.second}",
            f"{100 * each.wins.value:+.1f}",
            f"{100 * each.wins.low:+.1f} .. {100 * each.wins.high:+.1f}",
            f"{each.mcnemar.only_ours:,} : {each.mcnemar.only_theirs:,}",
            f"{each.mcnemar.p_value:.2g}",
            f"{each.score.value:+.1f}",
            f"{each.score.low:+.1f} .. {each.score.high:+.1f}",
            f"{each.score_p_value:.2g}",
        ]
        for each in every[:SHOWN_PAIRS]
    ]
    return ["pair", "wins", "95 %", "won alone", "p", "score", "95 %", "p"], lines


def comparison_notes(every: Sequence[Comparison]) -> list[str]:
    """What the columns mean."""
    notes = [
        "pairs, deal by deal: wins in percentage points; won alone: deals that one of the two won and the other did "
        "not; p: McNemar's exact test for wins, a permutation test for scores."
    ]
    if len(every) > SHOWN_PAIRS:
        notes.append(f"{len(every) - SHOWN_PAIRS} pairs more stand in the summary.")
    return notes
