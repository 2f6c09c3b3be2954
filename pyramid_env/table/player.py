"""Player: an agent at a table, asked for its moves and for what it makes of them, in one game."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pyramid_env import functional
from pyramid_env.errors import IllegalMoveError, PyramidError
from pyramid_env.game import Game
from pyramid_env.observation import LEVELS, layout
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules

MAX_MOVES: Final = 2_000
"""A game that is not over after so many moves just ends there, as in evaluation."""

SAYS: Final = ("probability", "rating", "value")
"""What a judge's numbers can be."""

_DIGITS: Final = 6


class Acts(Protocol):
    """All that an agent needs. One that remembers games has ``begin(games)`` and ``act_in(games, ...)`` too, one that
    tells what it makes of positions ``says`` and ``judge_in(games, observations, action_masks)``; ``level``, ``rules``
    and ``name`` are taken where it has them."""

    def act(
        self, observations: Mapping[str, NDArray[np.int8]], action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> Any:
        """(B,) legal action indices for observations (B, size) and masks (B, A)."""
        ...


class Judged(NamedTuple):
    """What an agent makes of a position: a number for each legal action, and what it expects; None: not known."""

    moves: dict[int, float | None]
    value: float | None


class Player:
    """An agent, as a table asks it; it is shown observations of its own level alone, never the deal.

    Args:
        agent: see :class:`Acts`.
        rules: what it is to play; None: its own, or ``pyramid`` if it has none.

    Raises:
        PyramidError: no agent, a level or kind of judgement that is none, or other rules than its own.
        RulesError: unknown rules.
    """

    def __init__(self, agent: Acts, rules: Rules | str | None = None) -> None:
        if isinstance(agent, str):
            raise PyramidError(
                f"watch: expected an agent, got the name {agent!r}; from agents import make_agent; "
                f'pe.watch(make_agent({agent!r}, "pyramid"), 42)'
            )
        if isinstance(agent, type) or not callable(getattr(agent, "act", None)):
            what = f"the class {agent.__name__}" if isinstance(agent, type) else type(agent).__name__
            raise PyramidError(f"watch: expected an agent, with act(observations, action_masks, rng), got {what}")
        self._agent: Final[Any] = agent
        self.level: Final[str] = getattr(agent, "level", "memory")
        if self.level not in LEVELS:
            raise PyramidError(f"level of the agent: expected one of {', '.join(LEVELS)}, got {self.level!r}")
        called = str(getattr(agent, "name", "") or type(agent).__name__)
        clairvoyant = self.level == "clairvoyant" and "clairvoyant" not in called.lower()
        self.name: Final = f"{called} (clairvoyant)" if clairvoyant else called
        own = getattr(agent, "rules", None)
        self._own: Final = None if own is None else read_rules(own)
        self.rules: Final = read_rules(rules) if rules is not None else self._own or read_rules("pyramid")
        self._check(self.rules)
        self.says: Final[str | None] = getattr(agent, "says", None) if hasattr(agent, "judge_in") else None
        if self.says not in (None, *SAYS):
            raise PyramidError(f"says of {self.name}: expected one of {', '.join(SAYS)}, got {self.says!r}")
        self._remembers: Final = _remembers(agent)

    def play_out(self, game: Game, seed: int) -> Game:
        """The game with the agent's moves from here to the end as its redo path; the given one stays as it is.

        An agent with a memory is taken through the moves so far first. Its random numbers begin anew with each call.

        Raises:
            IllegalMoveError: it chose an illegal move, or no move. PyramidError: it failed, or plays by other rules.
        """
        self._check(game.rules)
        rng = np.random.default_rng(seed)
        played, here = game.copy(), game.moves_made
        seat = _Seat(game.rules, self.level)
        if self._remembers:
            self._ask(0, self._agent.begin, 1)
            for before in itertools.islice(_positions(game), here):
                self._act(seat, before, rng)
        while not played.is_over and played.moves_made < MAX_MOVES:
            action = self._act(seat, played, rng)
            try:
                played.play(action)
            except IllegalMoveError as error:
                legal = ", ".join(f"{each} ({played.describe(each)})" for each in played.legal_actions)
                raise IllegalMoveError(
                    f"{self.name} chose an illegal move, as move {played.moves_made + 1}: expected one of the actions "
                    f"{legal}, got {action}: {error}"
                ) from None
        while played.moves_made > here:
            played.undo()
        return played

    def judge(self, game: Game) -> list[Judged]:
        """What the agent makes of each position of a game, from the first to the end of the redo path, in one run.

        Raises:
            PyramidError: it failed, or gave other than a number a move.
        """
        if self.says is None:
            return []
        if hasattr(self._agent, "begin"):
            self._ask(0, self._agent.begin, 1)
        seat = _Seat(game.rules, self.level)
        return [self._judge(seat, each) for each in _positions(game)]

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _check(self, rules: Rules) -> None:
        """PyramidError unless the agent plays by these rules."""
        if self._own not in (None, rules):
            raise PyramidError(f"{self.name} plays {self._own} only, not {rules}: watch an agent made for that")

    def _act(self, seat: _Seat, game: Game, rng: np.random.Generator) -> int:
        seen, masks = seat.see(game)
        ask, games = (self._agent.act_in, (np.zeros(1, np.intp),)) if self._remembers else (self._agent.act, ())
        chosen = np.asarray(self._ask(game.moves_made, ask, *games, seen, masks, rng))
        if chosen.shape != (1,) or not np.issubdtype(chosen.dtype, np.integer):
            raise IllegalMoveError(
                f"{self.name}, move {game.moves_made + 1}: expected one action index, an integer array of shape (1,), "
                f"got {chosen.dtype} of shape {chosen.shape}"
            )
        return int(chosen[0])

    def _judge(self, seat: _Seat, game: Game) -> Judged:
        if game.is_over:
            return Judged({}, None)
        seen, masks = seat.see(game)
        told = self._ask(game.moves_made, self._agent.judge_in, np.zeros(1, np.intp), seen, masks.copy())
        moves, values = np.asarray(told.moves), told.values
        if moves.shape != masks.shape:
            raise PyramidError(f"{self.name}: expected a judgement of shape {masks.shape}, got {moves.shape}")
        value = None if values is None else _finite(np.asarray(values).reshape(-1)[0])
        return Judged({action: _finite(moves[0, action]) for action in game.legal_actions}, value)

    def _ask(self, made: int, ask: Callable[..., Any], *given: Any) -> Any:
        """What the agent answers; what it raises becomes a PyramidError that says where."""
        try:
            return ask(*given)
        except PyramidError:
            raise
        except Exception as error:
            where = f"{self.name}, move {made + 1}"
            raise PyramidError(f"{where}: the agent failed: {type(error).__name__}: {error}") from error


class _Seat:
    """Where the agent sits: what it sees of a position."""

    def __init__(self, rules: Rules, level: str) -> None:
        self._rules, self._level, self._layout = rules, level, layout(rules, level)
        self._shown = functional.arrays(rules, level, 1)

    def see(self, game: Game) -> tuple[dict[str, NDArray[np.int8]], NDArray[np.bool_]]:
        """Observation fields (1, size) and mask (1, A), the agent's to keep."""
        shown = self._shown
        shown.ranks[0], shown.states[0] = game.ranks, game.state
        functional.observe(self._rules, self._level, shown)
        return self._layout.views(shown.rows.copy()), shown.masks.astype(np.bool_)


def _remembers(agent: object) -> bool:
    """Has it ``begin`` and an ``act_in`` of its own? That of a base class with an abstract ``act`` only hands on."""
    if not (callable(getattr(agent, "begin", None)) and callable(getattr(agent, "act_in", None))):
        return False
    owner: type = next((each for each in type(agent).__mro__ if "act_in" in vars(each)), object)
    return not getattr(vars(owner).get("act"), "__isabstractmethod__", False)


def _positions(game: Game) -> Iterator[Game]:
    """A game that goes from its first position to the end of its redo path, in each position once."""
    twin = game.copy()
    while twin.can_undo:
        twin.undo()
    yield twin
    while twin.can_redo:
        twin.redo()
        yield twin


def _finite(number: Any) -> float | None:
    """As JSON can hold it."""
    value = float(number)
    return round(value, _DIGITS) if math.isfinite(value) else None
