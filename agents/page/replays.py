"""Replays: chosen games, move by move: what was legal, what it was worth, what the player's network made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent
from agents.evaluation import GameRecord
from agents.judgement import Judge
from agents.regret import objective, unit
from pyramid_env import functional
from pyramid_env.board import Board
from pyramid_env.deal import Deal
from pyramid_env.geometry import geometry, row_column
from pyramid_env.kernels import CURSOR, PASS, SCORE
from pyramid_env.moves import move_table
from pyramid_env.observation import layout
from pyramid_env.positions import position_of
from pyramid_env.render.layout import CARD_HEIGHT, CARD_WIDTH, COLUMN_STEP, FAN_DOWN, FAN_RIGHT, ROW_STEP
from pyramid_env.render.svg import SUITS
from pyramid_env.rules import Rules
from pyramid_env.solver import MoveValues, move_values

REPLAYS: Final = 10
"""Games on a page unless another number is asked for."""

DEAREST, WON, LOST = "highest regret", "won", "lost"
"""Why a game was chosen."""

_LOWEST: Final = "lowest score"
_SHARE_DIGITS: Final = 4


class Chosen(NamedTuple):
    """A game to look at.

    Attributes:
        record: the game, with its actions.
        why: it was chosen.
        best: what the bound says the deal was worth, in the unit of :func:`agents.regret.unit`; None if that is not
            proven.
    """

    record: GameRecord
    why: str
    best: int | None


def choose_games(
    games: Mapping[str, Sequence[GameRecord]], best: Mapping[int, int], count: int, rules: Rules
) -> list[Chosen]:
    """Games to look at, about as many of each agent.

    Of an agent those with the highest regret; where it has three or more, the last two are the first won and the first
    lost among its other games. Where no bound is proven, the lowest scores stand for the highest regret.

    Args:
        games: by agent.
        best: proven values of deals by number.
        count: in all; fewer where fewer were played.
        rules: what was played.
    """
    chosen = []
    for place, records in enumerate(games.values()):
        share = count // len(games) + (place < count % len(games))
        chosen += _of_agent(list(records), best, share, rules)
    return chosen


def _of_agent(records: list[GameRecord], best: Mapping[int, int], share: int, rules: Rules) -> list[Chosen]:
    def result(record: GameRecord) -> int:
        return record.won if objective(rules) == "win" else record.score

    known = [record for record in records if record.deal in best]
    ranked = sorted(known, key=lambda record: result(record) - best[record.deal])
    why = DEAREST
    if not known:
        ranked, why = sorted(records, key=result), _LOWEST
    dearest = [(record, why) for record in ranked]
    found = dearest[: share if share < 3 else share - 2]
    for won, name in ((True, WON), (False, LOST)) if share >= 3 else ():
        taken = {record.deal for record, _ in found}
        found += [(record, name) for record in records if record.won == won and record.deal not in taken][:1]
    taken = {record.deal for record, _ in found}
    found += [each for each in dearest if each[0].deal not in taken][
        : share - len(found)
    ]  # where none was won, or lost
    return [Chosen(record, why, best.get(record.deal)) for record, why in found]


# ---- the data of a page ----------------------------------------------------------------------------------------------


def table_data(rules: Rules) -> dict[str, Any]:
    """What a drawing of any position of these rules needs: places in card widths, what covers which, the piles, and how
    many cards of a pile can be seen at most (``fan``)."""
    spots = []
    for place in range(rules.places):
        row, column = row_column(place)
        left = (column - (row + 1) / 2) * COLUMN_STEP - CARD_WIDTH / 2
        spots.append([round(left, 3), round((row - 1) * ROW_STEP, 3)])
    covers = [_bits(int(of)) for of in geometry(rules.rows).covers]
    seen = 2 if rules.pair_waste_two else 1
    if rules.nothing_hidden:
        seen = max(1, -(-rules.stock_size // rules.waste_piles))
    return {
        "rules": str(rules),
        "places": spots,
        "covers": covers,
        "stock": rules.stock_size,
        "hasStock": rules.stock_size > 0 and not (rules.nothing_hidden and rules.passes == 1),
        "stockTop": rules.stock_top,
        "piles": rules.waste_piles if rules.stock_size else 0,
        "fan": seen,
        "fanStep": [FAN_RIGHT, 0] if rules.waste_piles == 1 else [0, FAN_DOWN],
        "height": CARD_HEIGHT,
        "passes": rules.passes,
        "unit": unit(rules),
        "suits": list(SUITS),
    }


def replay_data(
    chosen: Sequence[Chosen],
    rules: Rules,
    agents: Mapping[str, Agent],
    *,
    max_states: int | None = None,
    workers: int | None = 1,
) -> list[dict[str, Any]]:
    """The chosen games as JSON values, in their order.

    A game holds ``agent``, ``deal``, ``why``, ``score``, ``won``, ``best``, ``says`` (what its agent's numbers are:
    "probability", "rating", "value" or null), ``cards`` (their ids) and ``steps``, one a position, each a list of:
    cards that left with the move before; cursor; pass; score, were it to end here; stock cards seen so far; the
    network's value or null; which of the moves was made, -1 at the end; what it cost, null where unknown; the legal
    moves. A move is a list of: its cards, none for a draw; the agent's number or null; the solver's value, null for
    an only move; and 1 behind them where the solver met its limit.

    Args:
        chosen: games with their actions.
        rules: what was played.
        agents: by the names in the records; those that judge (:class:`agents.judgement.Judge`) are asked for what they
            made of the positions.
        max_states: the solver's limit for each move.
        workers: its threads; None takes one a core.
    """
    told: dict[int, dict[str, Any]] = {}
    for name in dict.fromkeys(each.record.agent for each in chosen):
        where = [place for place, each in enumerate(chosen) if each.record.agent == name]
        some = [chosen[place] for place in where]
        walk = _Walk([each.record for each in some], rules, agents.get(name))
        rated = move_values(rules, walk.ranks, walk.states, objective(rules), 1, workers=workers, max_states=max_states)
        told |= zip(where, _told(some, walk, rated, rules), strict=True)
    return [told[place] for place in range(len(chosen))]


class _Walk:
    """Games of one agent played again, side by side; N positions with a move in all, first those of the first moves.

    Attributes:
        game, move: (N,) which game, and its how many-th move, from 0.
        states, ranks: (N, 5), (N, cards) the positions.
        legal: the legal actions of each.
        seen: (N,) stock cards that have been turned so far.
        score: (N,) were the game to end there.
        shares: what the network says of each legal action, None without one; values: of each position, likewise.
        last: of each game (state, score, seen) after its last move.
    """

    def __init__(self, records: Sequence[GameRecord], rules: Rules, agent: Agent | None) -> None:
        network = agent if isinstance(agent, Judge) else None
        self.says = None if network is None else network.says
        self.legal: list[list[int]] = []
        self.shares: list[list[float] | None] = []
        self.values: list[float | None] = []
        self.rules, count = rules, len(records)
        games = functional.arrays(rules, "memory", count)
        functional.reset(rules, "memory", games, np.array([record.deal for record in records], np.int64))
        shown = None
        if network is not None:
            shown = functional.arrays(rules, network.level, count)
            network.begin(count)
        actions = [record.actions or () for record in records]
        parts: list[tuple[NDArray[Any], ...]] = []
        for t in range(max(map(len, actions), default=0)):
            live = np.flatnonzero([t < len(each) for each in actions])
            facts = games.facts[live, SCORE].astype(np.int64)
            parts.append((live, np.full(live.size, t), games.states[live].copy(), facts, self._seen(games.rows[live])))
            self.legal += [np.flatnonzero(mask).tolist() for mask in games.masks[live]]
            self._judge(network, shown, games, live)
            chosen = games.masks.argmin(axis=1)  # an illegal action changes nothing: the others have ended
            chosen[live] = [actions[game][t] for game in live.tolist()]
            functional.step(rules, "memory", games, chosen)
        empty = np.zeros(0, np.int64)
        stacked = (
            zip(*parts, strict=True) if parts else ((empty,), (empty,), (empty.reshape(0, 5),), (empty,), (empty,))
        )
        self.game, self.move, self.states, self.score, self.seen = (np.concatenate(part) for part in stacked)
        self.ranks = games.ranks[self.game]
        after = zip(games.states.tolist(), games.facts[:, SCORE].tolist(), self._seen(games.rows).tolist(), strict=True)
        self.last = list(after)

    def _seen(self, rows: NDArray[np.int8]) -> NDArray[np.int64]:
        known = layout(self.rules, "memory").views(rows).get("known")
        if known is None:
            return np.zeros(len(rows), np.int64)
        seen: NDArray[np.int64] = (known != self.rules.ranks + 1).sum(axis=1).astype(np.int64)
        return seen

    def _judge(
        self,
        network: Judge | None,
        shown: functional.Arrays | None,
        games: functional.Arrays,
        live: NDArray[np.intp],
    ) -> None:
        """Ask the network what it makes of the live positions."""
        legal = self.legal[-live.size :]
        if network is None or shown is None:
            self.shares += [None] * live.size
            self.values += [None] * live.size
            return
        shown.ranks[:], shown.states[:] = games.ranks, games.states
        functional.observe(self.rules, network.level, shown)
        views = layout(self.rules, network.level).views(shown.rows[live])
        judged = network.judge_in(live, views, games.masks[live].astype(np.bool_))
        self.shares += [judged.moves[row, each].tolist() for row, each in enumerate(legal)]
        self.values += [None] * live.size if judged.values is None else judged.values.tolist()


def _told(chosen: Sequence[Chosen], walk: _Walk, rated: MoveValues, rules: Rules) -> list[dict[str, Any]]:
    games = []
    for place, (record, why, best) in enumerate(chosen):
        deal = Deal.number(record.deal, rules)
        steps, gone = [], list[int]()
        for n in np.flatnonzero(walk.game == place).tolist():
            moves, values = _moves(
                walk, rated, n, Board(rules, deal, position_of(walk.states[n]), tuple(walk.legal[n]))
            )
            made = walk.legal[n].index((record.actions or ())[int(walk.move[n])])
            unproven = any(len(move) > 3 for move in moves)
            loss = None if unproven or None in values else _whole(max(values) - values[made])
            state, value = walk.states[n].tolist(), walk.values[n]
            shown = None if value is None else round(value, 2)
            steps.append(
                [gone, state[CURSOR], state[PASS], int(walk.score[n]), int(walk.seen[n]), shown, made, loss, moves]
            )
            gone = moves[made][0]
        state, score, seen = walk.last[place]
        steps.append([gone, state[CURSOR], state[PASS], score, seen, None, -1, None, []])
        told = {"agent": record.agent, "deal": record.deal, "why": why, "score": record.score, "won": record.won}
        games.append(
            {**told, "best": best, "says": walk.says, "cards": [card.id for card in deal.cards], "steps": steps}
        )
    return games


def _moves(walk: _Walk, rated: MoveValues, n: int, board: Board) -> tuple[list[list[Any]], list[Any]]:
    """The legal moves of a position, and the solver's values."""
    some = slice(rated.offsets[n], rated.offsets[n + 1])
    found = zip(rated.values[some, 0].tolist(), rated.proven[some].tolist(), strict=True)
    of = dict(zip(rated.actions[some].tolist(), found, strict=True))
    table, shares, moves, values = move_table(walk.rules), walk.shares[n], [], []
    for slot, action in enumerate(walk.legal[n]):
        move = table[action]
        value, proven = of[action]
        worth = None if np.isnan(value) else _whole(value)
        share = None if shares is None else round(shares[slot], _SHARE_DIGITS)
        values.append(worth)
        moves.append([[] if move.is_draw else board.cards_of(move), share, worth, *([] if proven else [1])])
    return moves, values


def _whole(value: float) -> int | float:
    """Without the decimal point where there is nothing behind it: a page holds thousands."""
    return int(value) if value == int(value) else value


def _bits(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]
