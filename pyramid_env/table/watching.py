"""Watching: an agent plays at the table; step along its game, see what it and the solver say of moves, take over."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pyramid_env.deal import Deal
from pyramid_env.errors import IllegalMoveError, PyramidError
from pyramid_env.game import Game
from pyramid_env.moves import Move
from pyramid_env.render.spots import spots_of
from pyramid_env.rules import Rules
from pyramid_env.table.events import Event, shown
from pyramid_env.table.player import MAX_MOVES, Acts, Judged, Player
from pyramid_env.table.session import Message, Session

if TYPE_CHECKING:
    from pyramid_env.solver import RatedMove
    from pyramid_env.table.widget import Table

OBJECTIVES: Final = ("win", "score")

SOLVER_SECONDS: Final = 2.0
"""The solver's time for all moves of a position, unless another is asked for."""


def watch(
    agent: Acts,
    deal: Deal | int | str | None = None,
    rules: Rules | str | None = None,
    *,
    seed: int = 0,
    objective: str | None = None,
    max_seconds: float | None = SOLVER_SECONDS,
) -> Table:
    """A table in a notebook at which an agent plays, as the last line of a cell::

        from agents import make_agent
        pe.watch(make_agent("shipped", "pyramid"), 42)

    Step along its game, let it run, scrub; beside the board stand the agent's numbers for the legal moves, what it
    expects, and what each move is worth at best by the solver, who knows the hidden cards. Take over at any position,
    play on by hand, and hand back: the agent plays on from there. Nothing is kept.

    Args:
        agent: anything with ``act(observations, action_masks, rng)``, see :class:`agents.base.Agent`. Without a
            ``level`` it is shown what the level ``"memory"`` shows.
        deal: a Deal, a number or text; None: a random deal.
        rules: preset, text or Rules; None: those that the agent was made for, or ``pyramid``.
        seed: of the agent's random numbers, which begin anew each time that it plays a game out.
        objective: what the solver rates moves by: ``"win"`` or ``"score"``; None: the score where points count to the
            last card (msc; par with goal ``all``), else the win.
        max_seconds: the solver's time for all moves of a position; None: no limit.

    Raises:
        PyramidError: no agent, other rules than its own, or a move of it that is illegal.
        ModuleNotFoundError: the notebook extra is missing.
    """
    from pyramid_env.table.widget import Table

    return Table(session=WatchSession(agent, deal, rules, seed=seed, objective=objective, max_seconds=max_seconds))


class WatchSession(Session):
    """A session in which an agent plays; a person steps along its game, takes over and hands back.

    The agent plays the whole deal out at once; its line is the live game's redo path. Besides the events of
    :class:`Session` there are watch (``to``: go to the position after so many moves) and takeover (``on``; false: hand
    back). Undo, redo and restart are steps along the line while the agent plays. What Python plays takes over too. No
    clock runs, and nothing is kept.

    Args:
        agent, deal, rules, seed, objective, max_seconds: see :func:`watch`.
        now: as in Session.

    Raises:
        PyramidError: see :func:`watch`.
    """

    def __init__(
        self,
        agent: Acts,
        deal: Deal | int | str | None = None,
        rules: Rules | str | None = None,
        *,
        seed: int = 0,
        objective: str | None = None,
        max_seconds: float | None = SOLVER_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        from pyramid_env.solver import Limits

        self.player: Final = Player(agent, rules)
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise PyramidError(f"seed: expected a whole number from 0 up, got {seed!r}")
        if objective not in (None, *OBJECTIVES):
            raise PyramidError(f"objective: expected one of {', '.join(OBJECTIVES)} or None, got {objective!r}")
        Limits(max_seconds=max_seconds)  # raises
        self.by_hand = False
        self._seed, self._objective, self._max_seconds = int(seed), objective, max_seconds
        self._line: tuple[Move, ...] = ()  # the moves of the whole game, as the agent was last asked for
        self._judged: list[Judged] = []  # of each position along _judged_line
        self._judged_line: tuple[Move, ...] = ()
        self._rated: dict[tuple[int, ...], list[RatedMove]] = {}  # by position row
        self._quiet = self._holds = self._held_change = False
        super().__init__(self.player.rules, deal, now=now)
        self.keeps_results = False

    @property
    def objective(self) -> str:
        """What the solver rates moves by."""
        if self._objective is not None:
            return self._objective
        rules = self.rules
        return "score" if rules.scoring == "msc" or (rules.scoring == "par" and rules.goal == "all") else "win"

    # ---- what a person sees ------------------------------------------------------------------------------------------

    def watching(self) -> dict[str, Any]:
        """What stands beside the board, as JSON values.

        Keys: ``agent`` (its name), ``at`` (moves made), ``length`` (of the whole line), ``by_hand``, ``says`` (what the
        agent's numbers are: ``"probability"``, ``"rating"``, ``"value"`` or null), ``value`` (what it expects of the
        rest of the game, or null), ``outlook`` (what the solver's values come to, or null), ``objective``, ``moves``:
        the legal ones, what the agent likes best first, else the one that is made. Each has ``text``, ``spots``,
        ``agent`` (its number, or null), ``solver`` (``"win"``, ``"lost"``, ``"+12"``, ``"790"``; ``"?"`` or
        ``"≥ +3"`` where that is not proven), ``best`` (no other is better, and some are worse) and ``made`` (it is the
        next of the line). In a pause there are no moves, and value and outlook are null.
        """
        game = self.game
        shown: dict[str, Any] = {
            "agent": self.player.name,
            "at": game.moves_made,
            "length": len(self._moves()),
            "by_hand": self.by_hand,
            "says": self.player.says,
            "value": None,
            "outlook": None,
            "objective": self.objective,
            "moves": [],
        }
        if self.paused:
            return shown
        judged, rated = self._judgement(), self._ratings()
        shown["value"] = judged.value
        shown["outlook"] = self._outlook(rated)
        made = game.redo_path[0] if game.can_redo else None
        top = max((each.bound for each in rated), default=0)
        for each, action in zip(rated, game.legal_actions, strict=True):
            best = each.value == top and any(other.bound < top for other in rated)
            move = {"text": game.describe(each.move), "spots": list(spots_of(each.move))}
            told = {"agent": judged.moves.get(action), "solver": self._worth(each), "best": best}
            shown["moves"].append({**move, **told, "made": each.move == made})
        shown["moves"].sort(key=lambda move: (-_number(move["agent"]), not move["made"]))
        return shown

    # ---- what a person does ------------------------------------------------------------------------------------------

    def handle(self, event: Event) -> None:
        """See :meth:`Session.handle`. One event is one change."""
        with self.lock:
            self._holds = True
            try:
                super().handle(event)
            finally:
                self._holds = False
                if self._held_change:
                    self._held_change = False
                    self._changed()

    def events(self) -> dict[str, Callable[[Event], None]]:
        """What can be done, by the type of the event."""
        return {
            **super().events(),
            "restart": lambda event: self._playing(self.restart),
            "watch": lambda event: self._playing(lambda: self.go_to(event["to"])),
            "takeover": lambda event: self._playing(lambda: self.take_over(event["on"])),
        }

    def play_spots(self, spots: tuple[str, ...], cards: tuple[str, ...]) -> None:
        """See :meth:`Session.play_spots`; only after a take-over."""
        self._check_playing()
        if not self.by_hand:
            raise IllegalMoveError(f"Take over first: {self.player.name} plays this game.")
        super().play_spots(spots, cards)

    def go_to(self, index: int) -> None:
        """Go to the position after so many moves of the line.

        Raises:
            PyramidError: no such position.
        """
        length = len(self._moves())
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index <= length:
            raise PyramidError(f"watch: expected a move from 0 to {length}, got {shown(index)}")
        with self._quietly():
            while self.game.moves_made > index:
                self.game.undo()
            while self.game.moves_made < index:
                self.game.redo()
        self._moved()

    def restart(self) -> None:
        """To the start of the line; by hand the moves are forgotten too."""
        if self.by_hand:
            self.game.restart()
        else:
            self.go_to(0)

    def take_over(self, on: bool) -> None:
        """Play by hand from here, or hand back: the agent plays on from here to the end, as its new line.

        Raises:
            PyramidError: the agent failed, or chose an illegal move; the game stays in your hands.
        """
        if not isinstance(on, bool):
            raise PyramidError(f"takeover: expected true or false, got {shown(on)}")
        if on == self.by_hand:
            return
        if not on and self._moves() != self._line:
            played = self.player.play_out(self.game, self._seed)
            judged = self.player.judge(played)
            self._take(played, judged)
        self.by_hand = on
        self.hint = None
        handed = Message(f"You play. Hand back at any time: {self.player.name} goes on from there.")
        self.message = handed if on else self._end()
        self._changed()

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _begin(self, game: Game) -> None:
        """A new deal: the agent plays it out, and nothing changes if it fails."""
        played = self.player.play_out(game, self._seed)
        judged = self.player.judge(played)
        super()._begin(played)
        self._touched = False  # no clock, no results
        self._rated.clear()
        self.by_hand = False
        self._note(judged)
        self.message = self._end()

    def _take(self, played: Game, judged: list[Judged]) -> None:
        """Give the live game the redo path of another one in the same position."""
        with self._quietly():
            for move in played.redo_path:
                self.game.play(move)
            while self.game.moves_made > played.moves_made:
                self.game.undo()
        self._note(judged)

    def _note(self, judged: list[Judged]) -> None:
        """The live game's line is the agent's, judged."""
        self._line = self._judged_line = self._moves()
        self._judged = judged

    def _moves(self) -> tuple[Move, ...]:
        """The whole line."""
        return (*self.game.history, *self.game.redo_path)

    def _moved(self) -> None:
        """The live game has changed; a move that is not the agent's takes over."""
        with self.lock:
            if self._quiet:
                return
            self.hint = None
            self.paused &= not self.game.is_over
            self.by_hand |= self._moves() != self._line
            self.message = self._end()
            self._changed()

    def _changed(self) -> None:
        if self._holds:
            self._held_change = True
            return
        self._judge_here()
        super()._changed()

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        """Moves of the live game are no changes meanwhile."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    def _judge_here(self) -> None:
        """Ask the agent what it makes of the line, if it did not judge it as far as here; failure is told."""
        if self.player.says is None or self._known() > self.game.moves_made:
            return
        self._judged_line = self._moves()
        try:
            self._judged = self.player.judge(self.game)
        except PyramidError as error:
            self._judged = []
            self.message = Message(str(error), "error")

    def _known(self) -> int:
        """Positions of the present line that were judged, or could not be: all before the first move that differs."""
        pairs = zip(self._judged_line, self._moves(), strict=False)
        return 1 + sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))

    def _judgement(self) -> Judged:
        made = self.game.moves_made
        return self._judged[made] if made < min(len(self._judged), self._known()) else Judged({}, None)

    def _ratings(self) -> list[RatedMove]:
        """The solver's of the present position."""
        from pyramid_env.solver import rate_moves

        game = self.game
        row = tuple(game.state.tolist())
        if row not in self._rated and not game.is_over:
            limit = None if self._max_seconds is None else self._max_seconds / len(game.legal_actions)
            self._rated[row] = rate_moves(game, self.objective, max_seconds=limit)
        return self._rated.get(row, [])

    def _worth(self, rated: RatedMove) -> str:
        if self.objective == "win":
            return "win" if rated.value else "lost" if rated.proven else "?"
        return f"{'' if rated.proven else '≥ '}{self._points(rated.value)}"

    def _points(self, score: int) -> str:
        signed = f"{score:+d}" if score and self.rules.scoring == "par" else str(score)
        return signed.replace("-", "−")

    def _outlook(self, rated: list[RatedMove]) -> str | None:
        """What the ratings come to, if that is proven."""
        if not rated:
            return None
        best = max(each.value for each in rated)
        if any(each.bound > best for each in rated):
            return None
        if self.objective == "win":
            return "the solver: it can be won" if best else "the solver: it can't be won"
        return f"the solver: {self._points(best)} at best"

    def _end(self) -> Message | None:
        """What to say at the end of a game; no time is told."""
        game = self.game
        if game.is_won:
            won = "Won" if self.by_hand else f"{self.player.name} won"
            return Message(f"{won} with {game.moves_made} moves.", "good")
        if self.by_hand:
            return None
        if game.is_over:
            return Message(f"{self.player.name} has no moves left, {game.cards_left} cards remain.")
        if game.moves_made >= MAX_MOVES:
            return Message(f"{self.player.name} was stopped after {MAX_MOVES:,} moves.")
        return None


def _number(value: float | None) -> float:
    return float("-inf") if value is None else value
