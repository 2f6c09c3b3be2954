"""Session: one table with its running game: what a person does at it, and what is kept of that.

The page sends events (:meth:`Session.handle`) and shows :meth:`Session.state`; it knows no rules. The same session
stands behind the notebook's widget and the page on localhost.
"""

from __future__ import annotations

import dataclasses
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from pyramid_env.deal import Deal
from pyramid_env.errors import IllegalMoveError, PyramidError
from pyramid_env.game import Game
from pyramid_env.moves import Move
from pyramid_env.render.spots import is_spot, spots_of
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.table.clock import IDLE_S, Clock
from pyramid_env.table.events import (
    Event,
    deal_of,
    flag_of,
    read_deal_number,
    rules_of,
    short,
    shown,
    text_of,
    texts_of,
)
from pyramid_env.table.explain import open_cards, refuse
from pyramid_env.table.keeper import Keeper
from pyramid_env.table.live import LiveGame
from pyramid_env.table.preferences import PREFERENCES, Preferences
from pyramid_env.table.store import Match, Result, SavedGame, Statistics, Store

__all__ = ["SOLVER_SECONDS", "Event", "Hint", "Message", "Session"]

SOLVER_SECONDS: Final = 5.0
"""Time limit of a question to the solver; whether a lost game could have been won at all is a second one."""

_WITHOUT_HANDS: Final = ("new", "daily", "rules", "pause", "favourite", "preference", "statistics")
"""Events that do as well when the game has just paused by itself; the others must be asked for again."""

_IDLE: Final = "Paused: nobody was here for five minutes. Go on whenever you like."


@dataclasses.dataclass(frozen=True)
class Message:
    """A line for the player; ``kind`` is ``"info"``, ``"good"`` or ``"error"``."""

    text: str
    kind: str = "info"


@dataclasses.dataclass(frozen=True)
class Hint:
    """A move worth playing; ``solver``: the solver said so, who knows the hidden cards."""

    move: Move
    text: str
    solver: bool = False


class Session:
    """A table: the live game, its clock, and what is kept: the running game, results, preferences.

    An *attempt* is one deal from the moment it is dealt until another one is. It gives one result: when the game ends,
    or when the deal is left after a move; a loss that undo turns into a win becomes one. A restart belongs to the
    attempt. Games without a move leave no trace.

    Args:
        rules: preset, text or Rules.
        deal: a Deal, a number or text; None: the game of these rules that was left unfinished goes on, or a random
            deal. The same deal as the unfinished one's goes on too.
        store: where things are kept; None: nowhere.
        now: seconds of a clock that never goes back, for the game's time.

    Raises:
        RulesError, DeckError: as :class:`pyramid_env.Game`.
    """

    def __init__(
        self,
        rules: Rules | str = "pyramid",
        deal: Deal | int | str | None = None,
        *,
        store: Store | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        chosen, deal = read_rules(rules), read_deal_number(deal)
        self.lock: Final = threading.RLock()
        self.on_change: Callable[[], None] = lambda: None
        self.message: Message | None = None
        self.hint: Hint | None = None
        self._keeper: Final = Keeper(store, self._warn)
        self.clock: Final = Clock(now, IDLE_S if self.preferences.auto_pause else None)
        self.paused = False
        self.keeps_results = True  # not while an agent is watched or an environment followed
        self._game: LiveGame | None = None
        self._rng: Final = np.random.default_rng()
        self._version = 0
        self._attempt, self._helped, self._touched = "", False, False
        self._recorded = False  # has this attempt given its result?
        if not (deal is None and self._continue(chosen)):
            game = Game(deal, chosen)
            if not self._continue(chosen, game.deal):
                self._begin(game)
        self._keeper.say_messages()

    # ---- what a person sees ------------------------------------------------------------------------------------------

    @property
    def game(self) -> LiveGame:
        """The live game; another one after each new deal."""
        assert self._game is not None
        return self._game

    @property
    def rules(self) -> Rules:
        """The rules of the running game."""
        return self.game.rules

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._version

    @property
    def helped(self) -> bool:
        """Did the solver, or an agent, help in this attempt?"""
        return self._helped

    @property
    def keeps(self) -> bool:
        """Is anything kept?"""
        return self._keeper.store is not None

    @property
    def preferences(self) -> Preferences:
        """How the table looks and behaves."""
        return self._keeper.preferences

    def legal(self) -> list[tuple[Move, tuple[str, ...]]]:
        """The legal moves with the spots that they take cards from; ``stock`` for a draw."""
        return [(move, spots_of(move)) for move in self.game.legal_moves]

    def match(self) -> Match | None:
        """The running match, where the rules have matches and results are kept."""
        return self._keeper.match(self.rules)

    def statistics(self) -> tuple[Statistics, ...]:
        """Of all rules that have results, those of the running game first; read anew when a result was recorded here,
        or the event ``statistics`` asked."""
        now = str(self.rules)
        return tuple(sorted(self._keeper.statistics(), key=lambda each: (each.rules != now, each.rules)))

    @property
    def has_result(self) -> bool:
        """Has this attempt given its result? Undo after the end leads back into such a one."""
        return self._recorded

    def watching(self) -> dict[str, Any] | None:
        """What stands beside the board while an agent is watched; None: nobody is."""
        return None

    def state(self) -> dict[str, Any]:
        """Everything that the page shows, as JSON values (see :func:`pyramid_env.table.state.state_of`)."""
        from pyramid_env.table.state import state_of

        with self.lock:
            if self.clock.is_asleep:
                self.message = Message(_IDLE)
                self._fall_asleep()
                self._version += 1
            return state_of(self)

    # ---- what a person does ------------------------------------------------------------------------------------------

    def handle(self, event: Event) -> None:
        """Do what an event of the page asks for.

        An event is a mapping with a ``type``: play (``spots``, ``cards``), undo, redo, restart, hint (``solver``),
        outlook, new (``deal``, ``winnable``), daily, rules (``rules``), pause (``on``), awake, idle, statistics,
        favourite (``rules``, ``on``), preference (``name``, ``value``).

        Mistakes of the player become the message on the table; nothing is raised for them.
        """
        with self.lock:
            kind = event.get("type") if isinstance(event, Mapping) else None
            known = self.events()
            if not isinstance(kind, str) or kind not in known:
                return self._tell(Message(f"expected an event of {', '.join(known)}, got {shown(kind)}", "error"))
            if self.clock.is_asleep:
                self._fall_asleep()
                if kind not in _WITHOUT_HANDS:
                    return self._tell(Message(_IDLE))
            if kind == "idle":  # of this page; somebody plays elsewhere, or Python does
                return
            self.clock.touch()
            if kind == "awake":
                return
            if kind not in ("favourite", "preference", "statistics"):
                self.message = None
            before = self._version
            try:
                known[kind](event)
            except (ValueError, KeyError, TypeError) as error:
                missing = isinstance(error, KeyError)
                return self._tell(Message(f"{kind}: expected {error}" if missing else str(error), "error"))
            if self._version == before:
                self._changed()

    def events(self) -> dict[str, Callable[[Event], None]]:
        """What can be done, by the type of the event."""
        return {
            "play": lambda event: self.play_spots(texts_of(event, "spots"), texts_of(event, "cards")),
            "undo": lambda event: self._playing(self.game.undo),
            "redo": lambda event: self._playing(self.game.redo),
            "restart": lambda event: self._playing(self.game.restart),
            "hint": lambda event: self.give_hint(solver=flag_of(event, "solver", False)),
            "outlook": lambda event: self.ask_outlook(),
            "new": lambda event: self.new_game(deal_of(event), winnable=flag_of(event, "winnable", False)),
            "daily": lambda event: self.new_game(Deal.daily(rules=self.rules)),
            "rules": lambda event: self.change_rules(rules_of(event)),
            "pause": lambda event: self.pause(flag_of(event, "on")),
            "awake": lambda event: None,
            "idle": lambda event: None,
            "statistics": lambda event: self._keeper.reread(),
            "favourite": lambda event: self.set_favourite(rules_of(event), flag_of(event, "on")),
            "preference": lambda event: self.set_preference(text_of(event, "name"), event.get("value")),
        }

    def play_spots(self, spots: tuple[str, ...], cards: tuple[str, ...]) -> None:
        """Play the removal that takes the cards of these spots, or ``draw``; ``cards`` names what the player saw there.

        Raises:
            IllegalMoveError: other cards lie there by now, or there is no such move, with the reason; that tells of
                cards which lie open at these spots, and of no others in the stock.
        """
        self._check_playing()
        if spots == ("draw",):
            self.game.play("draw")
            return
        if not spots or not all(map(is_spot, spots)):
            raise IllegalMoveError("play: expected the spots of one card or two, such as r7c3 or waste1, or draw")
        lying = open_cards(self.game)
        now = tuple(lying.get(spot, "") for spot in spots)
        if cards and cards != now:
            seen, there = "+".join(filter(None, cards)), " and ".join(filter(None, now))
            raise IllegalMoveError(f"{seen or 'no card'}: the table has changed, {there or 'no card'} lies there now")
        for move, taken in self.legal():
            if sorted(taken) == sorted(spots) and not move.is_draw:
                self.game.play(move)
                return
        if self.game.is_over:
            raise IllegalMoveError("The game is over.")
        refuse(self.game, spots, now)

    def give_hint(self, *, solver: bool = False) -> None:
        """Show a legal move; on request the solver's best one."""
        self._check_playing()
        if self.game.is_over:
            raise IllegalMoveError("The game is over: there is no move to show.")
        if solver:
            self._be_helped()
        way = self.game._best_way(None, {"max_seconds": SOLVER_SECONDS / 3}) if solver else ()  # three searches at most
        move = way[0] if way else self.game.hint()
        assert move is not None  # the game is not over
        text = self.game.describe(move)
        self.hint = Hint(move, text, bool(way))
        said = {"draw": "Draw a card", "recycle": "Turn the waste over"}.get(text, f"Play {text}")
        if solver and not way:
            self.message = Message(f"The solver found no way that betters this. You can: {said[0].lower()}{said[1:]}.")
        else:
            self.message = Message(f"{said}, says the solver." if solver else f"{said}.")

    def ask_outlook(self) -> None:
        """Say whether the game can still be won; the solver knows the hidden cards."""
        from pyramid_env.solver import Status, solve

        self._check_playing()
        if self.game.is_over:
            raise IllegalMoveError("The game is over.")
        self._be_helped()
        found = solve(self.game, objective="win", max_seconds=SOLVER_SECONDS)
        if found.value == 1:
            text, kind = f"It can still be won, in {len(found.moves)} moves at most.", "good"
        elif found.status is Status.LIMIT:
            text, kind = f"Not decided within {SOLVER_SECONDS:.0f} seconds.", "info"
        else:
            start = self.game.copy()
            start.restart()
            lost = not self.game.can_undo or solve(start, objective="win", max_seconds=SOLVER_SECONDS).status is (
                Status.UNWINNABLE
            )
            text = "Nobody could win this deal." if lost else "It can't be won any more from here. Undo leads back."
            kind = "info"
        self.message = Message(text, kind)

    def new_game(self, deal: Deal | int | str | None = None, *, winnable: bool = False) -> None:
        """Deal: a numbered deal (digits as text too), cards as text, or a random one; ``winnable``: that can be won.

        Raises:
            DeckError: no deal of these rules' deck.
        """
        with self.lock:
            chosen = read_deal_number(deal)
            if chosen is None:
                chosen = Deal.random(self._rng, self.rules, winnable=winnable)
            self._lay(Game(chosen, self.rules))

    def change_rules(self, rules: Rules | str) -> None:
        """Play by other rules: the game that was left unfinished there, or a random deal. This one stays saved."""
        chosen = read_rules(rules)
        if str(chosen) == str(self.rules):
            return
        self.clock.stop()
        self._save()
        if not self._continue(chosen):
            self._begin(Game(Deal.random(self._rng, chosen), chosen))
        self._keeper.remember(str(chosen))
        self._keeper.say_messages()

    def follow(self) -> None:
        """From now on show what others play; the running game stays saved, and no results are kept."""
        with self.lock:
            self.clock.stop()
            self._save()
            self.keeps_results = False

    def show(self, game: Game) -> None:
        """Put another game on the table; the running one is left as by a new deal."""
        with self.lock:
            self._lay(game)

    def pause(self, on: bool) -> None:
        """Hide the board and stop the clock, or go on."""
        if on and not self.game.is_over:
            self.paused = True
            self.clock.stop()
            self._save()
        elif not on:
            self.paused = False
            if self._touched and not self.game.is_over:
                self.clock.start()

    def set_favourite(self, rules: str, on: bool) -> None:
        """Put a preset among the favourites, or take it out."""
        self._keeper.favour(str(read_rules(rules)), on)

    def set_preference(self, name: str, value: Any) -> None:
        """Change how the table looks and behaves, see :class:`Preferences`."""
        if name not in PREFERENCES:
            raise PyramidError(f"preference: expected one of {', '.join(PREFERENCES)}, got {shown(name)}")
        self._keeper.prefer(**{name: value})
        self.clock.idle_s = IDLE_S if self.preferences.auto_pause else None

    def close(self) -> None:
        """Keep the running game as it stands."""
        with self.lock:
            self.clock.stop()
            self._save()
            self._keeper.flush()

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _playing(self, change: Callable[[], Any]) -> None:
        self._check_playing()
        change()

    def _check_playing(self) -> None:
        if self.paused:
            raise IllegalMoveError("The game is paused. Go on first.")

    def _fall_asleep(self) -> None:
        """Nobody was there for long: the clock stands already, now the board is hidden too."""
        self.clock.stop()
        self.paused = not self.game.is_over
        self._save()

    def _be_helped(self) -> None:
        self._helped = True
        self._save()

    def _lay(self, game: Game) -> None:
        """Another game; the running one is left."""
        self.message = None
        self._leave()
        self._begin(game)
        self._changed()

    def _begin(self, game: Game) -> None:
        """A new attempt."""
        self._set_game(game)
        self._attempt, self._helped, self._recorded = uuid.uuid4().hex, False, False
        self._touched = game.can_undo or game.can_redo
        self.clock.reset()

    def _continue(self, rules: Rules, deal: Deal | None = None) -> bool:
        """Go on with the unfinished game of these rules, if there is one (of this deal, if one is asked for)."""
        found = self._keeper.load(rules, deal) if self.keeps_results else None
        if found is None:
            return False
        saved, game = found
        self._set_game(game)
        self._attempt, self._helped, self._touched = saved.attempt, saved.helped, True
        self._recorded = False
        self.clock.reset(_seconds(saved.elapsed_s))
        if game.is_over:  # the program ended between the last save and the result
            self._record()
            return False
        if game.moves_made:
            self.message = Message("Your last game goes on.")
        return True

    def _set_game(self, game: Game) -> None:
        if self._game is not None:
            self._game.detach()  # whoever still holds it moves this table no more
        self._game = LiveGame.of(game, self._moved, self.lock)
        self.paused, self.hint = False, None

    def _moved(self) -> None:
        """The live game has changed, by hand or from Python."""
        with self.lock:
            self.message = self.hint = None
            self._touched |= self.game.can_undo or self.game.can_redo
            if self.game.is_over:
                self.paused = False
                self.clock.stop()
                self._record()
            else:
                if not self.paused:
                    self.clock.start()
                self._save()
            self._changed()

    def _leave(self) -> None:
        """The attempt ends here: a deal that was touched and left counts as played."""
        self.clock.stop()
        if self._touched and not self.game.is_over:
            self._record()

    def _save(self) -> None:
        if not (self._touched and self.keeps_results) or self.game.is_over:
            return
        saved = SavedGame(
            self._attempt, str(self.rules), self.game.to_json(), self.clock.elapsed_s, self._helped, time.time()
        )
        self._keeper.save(saved)

    def _record(self) -> None:
        if not self.keeps_results:
            return
        game = self.game
        result = Result(
            self._attempt, str(game.rules), game.deal.name, game.is_won, game.score, game.par, game.msc,
            self.clock.elapsed_s, game.moves_made, self._helped, time.time(),
        )  # fmt: skip
        self._keeper.record(result)
        self._recorded = True

    def _warn(self, text: str) -> None:
        self.message = Message(text, "error")

    def _tell(self, message: Message) -> None:
        self.message = dataclasses.replace(message, text=short(message.text))
        self._changed()

    def _changed(self) -> None:
        self._version += 1
        self.on_change()


def _seconds(kept: object) -> float:
    """Seconds as they were kept; 0 for what is no time."""
    return float(kept) if isinstance(kept, int | float) and 0 <= kept < float("inf") else 0.0
