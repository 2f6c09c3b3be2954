"""Regret, move by move: what each choice of a game cost, measured by the best that was left with every card known.

The value of a position is the best score (or win) that can still be reached from it. A move that keeps it costs
nothing; what one loses is gone for good, so over a game the losses add up to the bound's score less the game's: its
regret. Some of it nobody can avoid who does not see hidden cards. How much is not known, but a planner that plays the
same deals shows how much of it can be avoided: :func:`gap_notes`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.evaluation import GameRecord, progress_bar
from agents.statistics import Estimate, paired_difference
from pyramid_env import functional
from pyramid_env.errors import PyramidError
from pyramid_env.kernels import PASS, SCORE, WON
from pyramid_env.moves import Kind, move_table
from pyramid_env.rules import Rules
from pyramid_env.solver import move_values, solve_positions

KINDS: Final = {
    Kind.PLACE_PAIR: "pyramid pair",
    Kind.PLACE_WASTE: "pair with the waste",
    Kind.PLACE_KING: "pyramid king",
    Kind.WASTE_KING: "waste king",
    Kind.PLACE_STOCK: "pair with the stock",
    Kind.STOCK_KING: "stock king",
    Kind.STOCK_WASTE: "stock with waste",
    Kind.WASTE_TWO: "two of the waste",
    Kind.WASTE_TOPS: "two wastes",
    Kind.DRAW: "draw",
}
"""What reports call the kinds of move."""

TOP: Final = 10
"""Habits and deals that are named."""

_AT_ONCE: Final = 64


def objective(rules: Rules) -> str:
    """What moves are rated by: ``"score"``, or ``"win"`` where nothing else is scored."""
    return "win" if rules.scoring == "none" else "score"


def unit(rules: Rules) -> str:
    """What a loss is counted in."""
    return {"score": "points", "win": "wins"}[objective(rules)]


class Loss(NamedTuple):
    """A move that cost something.

    Attributes:
        deal, move: the deal's number; the move's in the game, from 1.
        in_pass: pass through the stock.
        chosen, best: kinds of the move made, and of those that would have cost nothing, joined by " or ".
        text: the move made.
        loss: in points, or wins.
    """

    deal: int
    move: int
    in_pass: int
    chosen: str
    best: str
    text: str
    loss: int


class Habit(NamedTuple):
    """Moves of one kind, made in one pass where one of another kind would have cost nothing.

    Attributes:
        in_pass, chosen, best: as in Loss.
        times: how often in all games.
        loss: mean over all games.
    """

    in_pass: int
    chosen: str
    best: str
    times: int
    loss: float


class Regret(NamedTuple):
    """Where an agent's regret comes from.

    Attributes:
        name: the agent's.
        unit: "points", or "wins" where nothing else is scored.
        games: that were looked at; left_out: those with a position that the solver's limit left open.
        total: mean regret a game: the sum of each of the two below.
        by_pass: mean loss by pass of the move.
        by_kind: mean loss by kind of the move made.
        habits: the most expensive, at most TOP.
        deals: the deals with the highest regret, at most TOP: number, regret, and the dearest move.
    """

    name: str
    unit: str
    games: int
    left_out: int
    total: float
    by_pass: dict[str, float]
    by_kind: dict[str, float]
    habits: list[Habit]
    deals: list[tuple[int, int, Loss]]


class _Choices(NamedTuple):
    """The positions of some games in which there was a choice."""

    game: NDArray[np.int64]  # (C,) ascending
    move: NDArray[np.int64]  # (C,) from 0
    action: NDArray[np.int64]  # (C,)
    states: NDArray[np.int64]  # (C, 5)
    ranks: NDArray[np.int8]  # (G, cards)
    result: NDArray[np.int64]  # (G,) what the games came to


def regret_of(
    name: str,
    records: Sequence[GameRecord],
    rules: Rules,
    *,
    max_states: int | None = None,
    workers: int | None = 1,
    progress: bool = False,
) -> Regret:
    """What each choice in an agent's games cost.

    Args:
        name: the agent's.
        records: its games, with their actions.
        rules: what was played.
        max_states: the solver's limit for each position; a game with one beyond is left out.
        workers: threads of the solver; None takes one a core.
        progress: show a bar on the terminal.

    Raises:
        PyramidError: no games, or games without their actions.
    """
    if not records or any(record.actions is None for record in records):
        raise PyramidError(f"regret: expected games of {name} with their actions, as evaluate.py --actions keeps them")
    losses: list[Loss] = []
    left_out = 0
    with progress_bar(progress) as bar:
        task = bar.add_task(f"{name}: regret", total=len(records))
        for start in range(0, len(records), _AT_ONCE):
            block = records[start : start + _AT_ONCE]
            found, missing = _losses(block, rules, objective(rules), max_states, workers)
            losses += found
            left_out += missing
            bar.advance(task, len(block))
    return _summed(name, losses, len(records) - left_out, left_out, unit(rules))


def _losses(
    records: Sequence[GameRecord], rules: Rules, asked: str, max_states: int | None, workers: int | None
) -> tuple[list[Loss], int]:
    """The moves of some games that cost something, and how many games were left out."""
    choices = _choices(records, rules, asked)
    values = solve_positions(
        rules, choices.ranks[choices.game], choices.states, asked, workers=workers, max_states=max_states
    )
    last = np.append(choices.game[1:] != choices.game[:-1], True)[: len(choices.game)]
    after = np.where(last, choices.result[choices.game], np.append(values.value[1:], 0))
    cost = values.value - after
    open_games = np.zeros(len(records), np.bool_)
    open_games[choices.game[~values.proven]] = True
    dear = np.flatnonzero((cost > 0) & ~open_games[choices.game])
    if not dear.size:
        return [], int(open_games.sum())
    rated = move_values(
        rules, choices.ranks[choices.game[dear]], choices.states[dear], asked, 1,
        workers=workers, max_states=max_states,
    )  # fmt: skip
    moves, found = move_table(rules), []
    for place, at in enumerate(dear.tolist()):
        some = slice(rated.offsets[place], rated.offsets[place + 1])
        worth = rated.values[some, 0]
        best = {moves[action].kind for action in rated.actions[some][worth >= worth.max()].tolist()}
        move = moves[int(choices.action[at])]
        found.append(
            Loss(
                deal=records[int(choices.game[at])].deal,
                move=int(choices.move[at]) + 1,
                in_pass=int(choices.states[at, PASS]),
                chosen=KINDS[move.kind],
                best=" or ".join(KINDS[kind] for kind in sorted(best)),
                text=move.text(rules.waste_piles),
                loss=int(cost[at]),
            )
        )
    return found, int(open_games.sum())


def _choices(records: Sequence[GameRecord], rules: Rules, asked: str) -> _Choices:
    """Play recorded games again and note where there was a choice."""
    arrays = functional.arrays(rules, "table", len(records))
    functional.reset(rules, "table", arrays, np.array([record.deal for record in records], np.int64))
    actions = [record.actions or () for record in records]
    parts: list[tuple[NDArray[np.int64], ...]] = []
    for t in range(max(map(len, actions))):
        playing = np.array([t < len(each) for each in actions])
        chosen = np.where(playing, [each[t] if t < len(each) else 0 for each in actions], arrays.masks.argmin(axis=1))
        free = np.flatnonzero(playing & (arrays.masks.sum(axis=1) > 1))
        parts.append((free, np.full(free.size, t), chosen[free], arrays.states[free].copy()))
        functional.step(rules, "table", arrays, chosen)
    game, move, action, states = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((move, game))
    result = arrays.facts[:, WON if asked == "win" else SCORE].astype(np.int64)
    return _Choices(game[order], move[order], action[order], states[order], arrays.ranks.copy(), result)


def _summed(name: str, losses: Sequence[Loss], games: int, left_out: int, counted_in: str) -> Regret:
    by_pass, by_kind, habits = Counter[str](), Counter[str](), Counter[tuple[int, str, str]]()
    times, deals = Counter[tuple[int, str, str]](), defaultdict[int, list[Loss]](list)
    for loss in losses:
        habit = loss.in_pass, loss.chosen, loss.best
        by_pass[str(loss.in_pass)] += loss.loss
        by_kind[loss.chosen] += loss.loss
        habits[habit] += loss.loss
        times[habit] += 1
        deals[loss.deal].append(loss)
    worst = Counter({deal: sum(loss.loss for loss in each) for deal, each in deals.items()}).most_common(TOP)
    count = max(1, games)
    return Regret(
        name=name,
        unit=counted_in,
        games=games,
        left_out=left_out,
        total=by_pass.total() / count,
        by_pass={key: total / count for key, total in sorted(by_pass.items())},
        by_kind={key: total / count for key, total in by_kind.most_common()},
        habits=[Habit(*key, times=times[key], loss=total / count) for key, total in habits.most_common(TOP)],
        deals=[(deal, total, max(deals[deal], key=lambda loss: loss.loss)) for deal, total in worst],
    )


# ---- tables ----------------------------------------------------------------------------------------------------------

Cells = tuple[list[str], list[list[str]]]


def regret_cells(every: Sequence[Regret]) -> list[Cells]:
    """Two tables, heads and cells: where the regret of each agent comes from, and the dearest habits."""
    passes = sorted({name for each in every for name in each.by_pass})
    kinds = [name for name in KINDS.values() if any(name in each.by_kind for each in every)]
    split = [
        [
            each.name,
            f"{each.total:.2f}",
            *(f"{each.by_pass.get(name, 0.0):.2f}" for name in passes),
            *(f"{each.by_kind.get(name, 0.0):.2f}" for name in kinds),
        ]
        for each in every
    ]
    habits = [
        [each.name, str(habit.in_pass), habit.chosen, habit.best, f"{habit.times:,}", f"{habit.loss:.2f}"]
        for each in every
        for habit in each.habits
    ]
    return [
        (["agent", "regret", *(f"pass {name}" for name in passes), *kinds], split),
        (["agent", "pass", "made", "would have cost nothing", "times", "regret"], habits),
    ]


def regret_notes(every: Sequence[Regret]) -> list[str]:
    """What the columns mean, and which deals to look at."""
    counted_in = every[0].unit
    notes = [
        f"regret: {counted_in} a game that a move lost for good, with all cards known, by the pass and the kind of the "
        f"move; below, by what would have cost nothing instead; the {TOP} dearest of each agent."
    ]
    for each in every:
        if each.left_out:
            notes.append(f"{each.name}: {each.left_out:,} games are left out, whose positions met the solver's limit.")
        named = (
            f"{deal} ({lost} {counted_in}; move {loss.move}, {loss.text}: {loss.loss})"
            for deal, lost, loss in each.deals[:5]
        )
        if each.deals:
            notes.append(f"deals to look at, {each.name}: {', '.join(named)}.")
    return notes


def gap_notes(games: Mapping[str, Sequence[GameRecord]], best: Sequence[int] | None, rules: Rules) -> list[str]:
    """What hidden cards cost and what an agent's play costs, where the planner played too.

    Args:
        games: of the agents on the same deals.
        best: the bound's score of each deal; None where not all are proven.
        rules: what was played.
    """
    planner = next((name for name in games if name.partition(":")[0] == "planner"), None)
    if planner is None or best is None:
        return []
    reached = [record.score for record in games[planner]]
    cost = paired_difference(best, reached)
    notes = [f"gap: of the bound {_apart(cost, rules)} a deal are lost by {planner}: what hidden cards cost, at most."]
    for name, records in games.items():
        if name != planner:
            more = paired_difference(reached, [record.score for record in records])
            notes.append(f"gap: {name} loses {_apart(more, rules)} more than that: what its play costs, at least.")
    return notes


def _apart(found: Estimate, rules: Rules) -> str:
    return f"{found.value:.2f} {unit(rules)} ({found.low:.2f} .. {found.high:.2f})"
