"""Game: checked play for people and planners, with undo, redo, restart, hint, save and load.

Everything that changes a position is done by the kernels; a game keeps the line of positions.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyramid_env import kernels
from pyramid_env.board import Board, read_action
from pyramid_env.deal import Deal
from pyramid_env.errors import HistoryError, IllegalMoveError, PyramidError, SaveError
from pyramid_env.moves import Kind, Move, MoveTable, move_table
from pyramid_env.positions import Position, check_position, position_of, read_deal, read_position
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.saves import SAVE_FORMAT, SAVE_VERSION, game_from_json, start_to_json

HINT_SECONDS: Final = 10.0
"""Time limit of each search of the solver's hint."""

_HINT_ORDER: Final = (Kind.PLACE_KING, Kind.WASTE_KING, Kind.STOCK_KING, Kind.PLACE_PAIR)
"""What the plain hint prefers; other removals follow, a draw comes last."""


class Game:
    """One game in progress.

    ``print(game)`` shows the pyramid; exposed cards stand in brackets. Moves are played as a :class:`Move`, as text, or
    as an action index. Text names cards (``"8d+5s"``, ``"Kh"``), locations (``"r7c1+waste"``, ``"r7c2"``,
    ``"stock+waste2"``), or one of each; ``"draw"`` turns cards, or recycles when the stock is empty, ``"recycle"`` does
    only the latter.

    A game remembers the whole line of moves. Undo and redo go along it one move at a time, draws and recycles
    included. A new move discards what could have been redone, also when it equals the first move of it.

    Two games are equal when rules, deal, start, played moves and redo path are equal. Copies and pickles go on
    identically and share nothing that changes.

    Args:
        deal: a Deal, a deal number, or a deal as text; ``None`` deals a random numbered deal, and
            ``game.deal.deal_number`` says which.
        rules: the rules, or a preset's name as :func:`pyramid_env.rules.rules` reads it.

    Raises:
        DeckError: the deal is not one of the deck that the rules play with, or bears a number that deals other cards.
        RulesError: unknown rules.
    """

    __hash__ = None  # type: ignore[assignment]  # a game changes

    def __init__(self, deal: Deal | int | str | None = None, rules: Rules | str = "pyramid") -> None:
        chosen = read_rules(rules)
        dealt = Deal.random(np.random.default_rng(), chosen) if deal is None else read_deal(deal, chosen)
        self._set_up(dealt, chosen, position_of(kernels.start_state(chosen)))

    @classmethod
    def from_state(cls, deal: Deal | int | str, rules: Rules | str, state: ArrayLike) -> Game:
        """A game that starts in the middle, with no moves to undo; :meth:`restart` returns to this position.

        Args:
            deal: as for Game, but not None.
            rules: as for Game.
            state: (5,) position row: pyramid, stock, cursor, pass, cleared (see kernels.py).

        Raises:
            DeckError: as for Game.
            PyramidError: no play can lead to the position, with the reason. The check finds every misspelt position and
                counts that can't be right, it does not search for a way.
        """
        chosen = read_rules(rules)
        dealt = read_deal(deal, chosen)
        start = read_position(state)
        check_position(chosen, dealt.ranks, start)
        game = cls.__new__(cls)
        game._set_up(dealt, chosen, start)
        return game

    def _set_up(self, deal: Deal, rules: Rules, start: Position) -> None:
        self._rules = rules
        self._deal = deal
        self._ranks = deal.ranks  # stays writeable: Numba would compile every kernel again for a read-only array
        self._line = [start]  # positions from the start to the end of the redo path
        self._actions: list[int] = []  # action i leads from position i to position i + 1
        self._at = 0  # index of the present position
        self._legal: tuple[int, ...] | None = None

    # ---- what is on the table ----------------------------------------------------------------------------------------

    @property
    def rules(self) -> Rules:
        """The rules."""
        return self._rules

    @property
    def deal(self) -> Deal:
        """The deal."""
        return self._deal

    @property
    def ranks(self) -> NDArray[np.int8]:
        """(cards,) rank of every card, pyramid places first, then the stock; a copy."""
        return self._ranks.copy()

    @property
    def state(self) -> NDArray[np.int64]:
        """(5,) position row: pyramid, stock, cursor, pass, cleared (see kernels.py); a copy."""
        return np.array(self._line[self._at], np.int64)

    @property
    def legal_actions(self) -> tuple[int, ...]:
        """Action indices of the legal moves, removals first, draw last; empty when the game is over."""
        if self._legal is None:
            self._legal = tuple(kernels.legal_actions(self._rules, self._ranks, self.state).tolist())
        return self._legal

    @property
    def legal_moves(self) -> tuple[Move, ...]:
        """The legal moves, removals first, draw last; empty when the game is over."""
        return tuple(self._table[action] for action in self.legal_actions)

    def is_legal(self, move: Move | str | int) -> bool:
        """Would :meth:`play` accept this?"""
        try:
            self._read(move)
        except IllegalMoveError:
            return False
        return True

    @property
    def position(self) -> str:
        """What lies open, in one line, for logs: rows from the apex, ``.`` = gone, then stock, waste tops and pass."""
        from pyramid_env.render.text import one_line

        return one_line(self)

    # ---- how it stands -----------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """No move is legal: won, ended by the rules, or nothing left to do."""
        return not self.legal_actions

    @property
    def is_won(self) -> bool:
        """The rules' goal is reached."""
        pyramid, stock, *_ = self._line[self._at]
        return bool(kernels.is_won(kernels.table(self._rules), pyramid, stock))

    @property
    def is_stuck(self) -> bool:
        """Not won, and no removal will ever be possible again, whatever is drawn. A draw may still be legal then.

        Looks at hidden cards: for players who should not know, this is information.
        """
        if self.is_won:
            return False
        position = self._line[self._at]
        table = kernels.table(self._rules)
        draw = len(self._table) - 1
        while True:
            actions = kernels.legal_actions(self._rules, self._ranks, np.array(position, np.int64))
            if actions.size == 0:
                return True
            if actions[0] != draw or self._rules.passes is None:  # without limit a draw is legal only where it can help
                return False
            position = kernels.apply(table, *position, draw)

    @property
    def score(self) -> int:
        """The score by the rules' scoring, were the game to end here; without scoring 1 for a win, else 0."""
        pyramid, stock, _, _, cleared = self._line[self._at]
        return int(kernels.score(kernels.table(self._rules), self._ranks, pyramid, stock, cleared))

    @property
    def par(self) -> int:
        """The par score, were the game to end here, whatever the rules' scoring."""
        pyramid, stock, _, _, cleared = self._line[self._at]
        return int(kernels.par_score(pyramid, stock, cleared))

    @property
    def msc(self) -> int:
        """The msc points so far, whatever the rules' scoring."""
        pyramid, stock, *_ = self._line[self._at]
        return int(kernels.msc_score(kernels.table(self._rules), self._ranks, pyramid, stock))

    @property
    def cards_left(self) -> int:
        """Cards not removed, wherever they lie."""
        pyramid, stock, *_ = self._line[self._at]
        return pyramid.bit_count() + stock.bit_count()

    @property
    def pass_number(self) -> int:
        """The pass as the rules count it, from 1; with unlimited passes 4 stands for the fourth and every later one."""
        return self._line[self._at][kernels.PASS]

    @property
    def passes_used(self) -> int:
        """Passes begun so far, really counted also where passes are unlimited."""
        return self._line[0][kernels.PASS] + self.recycles

    @property
    def cleared_in(self) -> int:
        """The pass in which the last pyramid card left; 0 = not yet."""
        return self._line[self._at][kernels.CLEARED]

    @property
    def moves_made(self) -> int:
        """Moves from the start to here: removals, draws and recycles, one each."""
        return self._at

    @property
    def draws(self) -> int:
        """How many of the moves turned cards."""
        return sum(move.is_draw for move in self.history) - self.recycles

    @property
    def recycles(self) -> int:
        """How many of the moves turned the waste over."""
        played = zip(self.history, self._line, strict=False)
        return sum(move.is_draw and position[kernels.CURSOR] == self._rules.stock_size for move, position in played)

    @property
    def history(self) -> tuple[Move, ...]:
        """The moves from the start to here."""
        return tuple(self._table[action] for action in self._actions[: self._at])

    @property
    def redo_path(self) -> tuple[Move, ...]:
        """The moves that :meth:`redo` would play again, the next one first."""
        return tuple(self._table[action] for action in self._actions[self._at :])

    # ---- playing -----------------------------------------------------------------------------------------------------

    def play(self, move: Move | str | int) -> Move:
        """Play a move and discard the redo path.

        Args:
            move: a Move, text, or an action index (any integer type, also a 0-d array).

        Returns:
            The move as played.

        Raises:
            IllegalMoveError: not a move, or not legal here, with the reason; the game is unchanged.
        """
        action = self._read(move)
        after = kernels.apply(kernels.table(self._rules), *self._line[self._at], action)
        del self._line[self._at + 1 :], self._actions[self._at :]
        self._line.append(after)
        self._actions.append(action)
        self._go_to(self._at + 1)
        return self._table[action]

    def parse(self, text: str) -> Move:
        """The legal move that a text names here, without playing it; IllegalMoveError as :meth:`play` raises it."""
        return self._table[self._board.parse(text)]

    def describe(self, move: Move | int) -> str:
        """A legal move by its cards, as players write it: ``"8d+5s"``, ``"Kh"``, ``"draw"``, ``"recycle"``.

        :meth:`play` reads it back, unless two decks let it name two different legal moves.
        """
        return self._board.by_cards(self._table[self._read(move)])

    @property
    def can_undo(self) -> bool:
        """Is there a move to take back?"""
        return self._at > 0

    @property
    def can_redo(self) -> bool:
        """Is there a move that was taken back?"""
        return self._at < len(self._actions)

    def undo(self) -> Move:
        """Take the last move back, and return it. HistoryError if none was made."""
        if not self.can_undo:
            raise HistoryError("undo: expected a move to take back, got a game at its start")
        self._go_to(self._at - 1)
        return self._table[self._actions[self._at]]

    def redo(self) -> Move:
        """Play the move again that was taken back last, and return it. HistoryError if there is none."""
        if not self.can_redo:
            raise HistoryError("redo: expected a move that was taken back, got none")
        self._go_to(self._at + 1)
        return self._table[self._actions[self._at - 1]]

    def restart(self) -> None:
        """Go back to the start of the same deal and forget all moves, also those to redo."""
        del self._line[1:], self._actions[:]
        self._go_to(0)

    def hint(self, *, solver: bool = False, objective: str | None = None, **limits: Any) -> Move | None:
        """A legal move worth playing, or None when the game is over.

        The plain hint sees only what lies open: a king, else a pair in the pyramid, else another removal, else draw.

        Args:
            solver: ask the solver instead. It is clairvoyant: it knows the hidden cards, so its hint tells about them.
                The move lies on a shortest way to a win if there is one, else on a way to the best score. Where the
                limits end the search, it lies on the best way found; where no way betters the present position, or
                none was found, it is the plain hint.
            objective: one of the solver's objectives, instead of "a shortest win, else the best score".
            **limits: the solver's limits for each search (``max_states``, ...); ``max_seconds`` is 10 if not given.
        """
        if self.is_over:
            return None
        if not solver and (objective is not None or limits):
            raise PyramidError("hint: expected solver=True with an objective or limits, got them alone")
        way = self._best_way(objective, {"max_seconds": HINT_SECONDS, **limits}) if solver else ()
        if way:
            return way[0]
        ranked = (move for kind in _HINT_ORDER for move in self.legal_moves if move.kind == kind)
        return next(ranked, self.legal_moves[0])

    def _best_way(self, objective: str | None, limits: dict[str, Any]) -> tuple[Move, ...]:
        """The solver's moves from here; without an objective to a shortest win, any win, or the best score."""
        from pyramid_env.solver import Status, solve

        if objective is not None:
            return solve(self, objective=objective, **limits).moves
        shortest = solve(self, objective="steps", **limits)
        if shortest.moves:
            return shortest.moves
        if shortest.status is Status.LIMIT and (moves := solve(self, objective="win", **limits).moves):
            return moves
        return solve(self, objective="score", **limits).moves

    # ---- saving ------------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The whole game as JSON: rules, deal, start, moves and redo path."""
        start = self._line[0]
        fresh = start == position_of(kernels.start_state(self._rules))
        saved = {
            "format": SAVE_FORMAT,
            "version": SAVE_VERSION,
            "rules": self._rules.to_dict(),
            "deal": {"number": self._deal.deal_number, "cards": str(self._deal)},
            "start": None if fresh else start_to_json(start),
            "moves": [self._table.text(move) for move in self.history],
            "redo": [self._table.text(move) for move in self.redo_path],
        }
        return json.dumps(saved, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Game:
        """Read :meth:`to_json`; every move is replayed and checked. SaveError says what could not be read."""
        return game_from_json(cls, text)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the game to a file, complete or not at all: a new file takes the name when it is finished."""
        target = Path(os.path.realpath(path))
        unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            with unfinished.open("x", encoding="utf-8") as file:
                file.write(self.to_json())
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Game:
        """Read a saved game. SaveError names file and fault; OSError if the file can't be opened."""
        try:
            return cls.from_json(Path(path).read_bytes().decode("utf-8"))
        except UnicodeDecodeError as error:
            raise SaveError(f"{os.fspath(path)}: expected JSON in UTF-8, got {error}") from error
        except SaveError as error:
            raise SaveError(f"{os.fspath(path)}: {error}") from error

    # ---- Python's own protocols --------------------------------------------------------------------------------------

    def copy(self) -> Game:
        """A game of its own that goes on identically."""
        return self.__copy__()

    def __copy__(self) -> Game:
        twin = type(self).__new__(type(self))
        twin.__setstate__(self.__getstate__())
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Game:
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        return {
            "rules": self._rules,
            "deal": self._deal,
            "line": self._line.copy(),
            "actions": self._actions.copy(),
            "at": self._at,
        }

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self._set_up(saved["deal"], saved["rules"], saved["line"][0])
        self._line, self._actions = saved["line"], saved["actions"]
        self._go_to(saved["at"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Game):
            return NotImplemented
        mine, theirs = self.__getstate__(), other.__getstate__()
        return mine == theirs

    def __str__(self) -> str:
        from pyramid_env.render.text import text

        return text(self)

    def __repr__(self) -> str:
        return f"<Game {self._deal!r} rules={str(self._rules)!r} moves={self._at} score={self.score}>"

    def _repr_svg_(self) -> str:
        from pyramid_env.render.svg import svg

        return svg(self)

    # ---- inside ------------------------------------------------------------------------------------------------------

    @property
    def _table(self) -> MoveTable:
        return move_table(self._rules)

    @property
    def _board(self) -> Board:
        return Board(self._rules, self._deal, self._line[self._at], self.legal_actions)

    def _go_to(self, index: int) -> None:
        self._at = index
        self._legal = None

    def _read(self, move: object) -> int:
        """The action of a legal move in any spelling; raises IllegalMoveError otherwise."""
        if isinstance(move, str):
            return self._board.parse(move)
        action = self._table.index_of(move) if isinstance(move, Move) else read_action(move, len(self._table))
        if action not in self.legal_actions:
            text = self._table.text(self._table[action])
            raise IllegalMoveError(f"{text}: {self._board.why_not(text)}")
        return action
