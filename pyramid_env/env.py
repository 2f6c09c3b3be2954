"""PyramidEnv: one game of Pyramid solitaire as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from pyramid_env.cards import RANKS_A_SUIT
from pyramid_env.deal import Deal, DealSource, check_number, deal_numbers, random_numbers
from pyramid_env.errors import IllegalMoveError, PyramidError
from pyramid_env.kernels import CLEARED_IN, MSC, OVER, PAR, SCORE, WON, start_state
from pyramid_env.moves import MoveTable, move_table
from pyramid_env.observation import layout
from pyramid_env.positions import read_deal
from pyramid_env.reward import ILLEGAL_REWARD, RewardScheme, column_of, reward_scheme, rewards_of
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.single_step import GameArrays, field_views, observer, play_game

if TYPE_CHECKING:
    from pyramid_env.game import Game
    from pyramid_env.render.window import Window

Observation = dict[str, NDArray[np.int8]]

ILLEGAL_ACTION: Final = ("penalty", "raise")
"""What an illegal action does: cost ILLEGAL_REWARD and change nothing, or raise IllegalMoveError and change nothing."""

RENDER_MODES: Final = ("human", "ansi", "rgb_array", "svg")
FRAME_MODES: Final = RENDER_MODES[1:]
"""Render modes whose pictures are returned: all that a vector environment has."""

RENDER_FPS: Final = 4
NO_NUMBER: Final = -1
"""``info["deal"]`` of a deal that has no number."""

END_FACTS: Final = {"won": WON, "is_success": WON, "cleared_in": CLEARED_IN, "par": PAR, "msc": MSC}
"""Info keys of a game that is over, with their columns of the facts."""

START_OPTIONS: Final = ("deal", "cards", "game")
"""Reset options of one game."""

END_FLAGS: Final = ("won", "is_success")
MAX_DEAD_DEALS: Final = 10_000
"""So many deals in a row without a first move are a fault of the rules, not chance."""


class PyramidEnv(gym.Env[Observation, np.int64]):
    """Pyramid solitaire, one game at a time.

    ## Description
    Cards lie in a pyramid of R rows, each covered by two cards of the row below; the rest of the deck is the stock. Two
    available cards whose ranks sum to 13 leave together, a king leaves alone, stock cards are turned to the waste. The
    goal is to clear the pyramid, or to remove every card, by the preset. ``rules`` chooses the game: a preset's name
    (``"pyramid"``, ``"till_dawn"``, ``"microsoft"``, ...), a text such as ``"microsoft:passes=1"``, or a
    :class:`~pyramid_env.rules.Rules`. A deal is fixed at reset; stepping is deterministic.

    ## Action Space
    ``Discrete(A)``: one index for each move that the rules can ever allow (254 for ``pyramid``), the same for all
    deals. ``env.unwrapped.moves[a]`` is the :class:`~pyramid_env.moves.Move` of action a and prints as text
    (``r7c1+r7c3``, ``r7c1+waste``, ``draw``). With P places and W waste piles the order is: pairs of places; place with
    pile; kings of the pyramid; kings of the waste; then, where the rules have them, place with stock, stock king, stock
    with waste, two of one waste, two waste tops; ``draw`` last, which recycles the waste when the stock is empty.

    Legal actions: ``info["action_mask"]`` (A,) int8, 1 = legal, what ``action_space.sample(mask=...)`` takes, and
    ``env.unwrapped.action_masks()`` (A,) bool, what sb3-contrib's MaskablePPO asks for. While the game goes on at least
    one action is legal. **Once it is over the mask is all zeros: there is nothing to choose, so never sample from it**
    (``Discrete.sample`` would silently return 0). An action is an ``int``, a NumPy integer or a 0-d integer array;
    anything else, and a number outside 0..A-1, raises IllegalMoveError.

    ## Observation Space
    ``Dict`` of one-dimensional int8 boxes from 0. P places, W waste piles, S stock cards, K the highest rank (13); 0 as
    a rank means no card.

    | field | shape | values | level | meaning |
    |---|---|---|---|---|
    | ``pyramid`` | (P,) | 0..K | table | rank at each place, row by row, 0 = gone |
    | ``waste`` | (W,) | 0..K | table | rank of the top of each pile |
    | ``waste_count`` | (W,) | 0..S | table | cards on each pile |
    | ``waste_under`` | (W,) | 0..K | table | rank of the card below the top; only with ``pair_waste_two`` |
    | ``stock`` | (1,) | 0..S | table | cards not yet turned in this pass |
    | ``stock_top`` | (1,) | 0..K | table | rank of the next stock card; only with ``stock_top`` |
    | ``pass`` | (1,) | 1..4 | table | pass through the stock; 4 = any later one |
    | ``cleared`` | (1,) | 0..4 | table | pass of the clear, 0 = not yet; only when all cards must leave |
    | ``known`` | (S,) | 0..K+1 | memory | each stock card in drawing order: its rank, 0 = gone, K+1 = never seen |
    | ``cursor`` | (1,) | 0..S | memory | index in ``known`` of the next card to turn, S = none |
    | ``unseen`` | (K,) | 0..8 | memory | how many cards of each rank have never been seen |
    | ``clairvoyant_stock`` | (S,) | 0..K | clairvoyant | rank of every stock card still in the game, seen or not |

    ``observation`` chooses the level: ``"table"`` what lies open now; ``"memory"`` (default) also all that a player who
    forgets nothing knows; ``"clairvoyant"`` everything, for comparison only. A level has the fields of those before it.
    With rules that hide nothing (``giza``) ``table`` has the memory fields too. The fields and the mask of a step are
    views on one array of that step, which nothing writes to later.

    ## Rewards
    ``reward``: ``"par"`` (default) +1 for each card that leaves and +50/+35/+20 for the clear in pass 1/2/3, so that
    the return is the par score plus the cards dealt; ``"msc"`` the points of the msc scoring; ``"win"`` 1 for the
    winning step; ``"shaped"`` ``win`` with potential-based shaping (:class:`~pyramid_env.reward.Shaped`); or a callable
    ``(facts_before, facts_after) -> rewards`` (:mod:`pyramid_env.reward`). An illegal action earns -1 under
    ``illegal_action="penalty"``.

    ## Starting State
    A random numbered deal from 1,000,000 up, drawn from ``np_random`` or taken from ``deals`` (deals without a first
    move, possible where nothing can be turned, are passed over), or what ``reset(options=...)`` names, one of:

    - ``{"deal": 42}`` or ``{"deal": Deal}``: a deal by number or a :class:`~pyramid_env.deal.Deal`;
    - ``{"cards": "94J8..."}``: a deal as text, with suits or ranks alone;
    - ``{"game": game}``: the present position of a :class:`~pyramid_env.game.Game` of the same rules.

    ## Episode End
    Terminated: no move is legal (won, or lost). The environment itself never truncates; the registered id does after
    2,000 steps (``max_episode_steps``), which only games with many illegal or pointless actions reach. Stepping on
    after the end raises PyramidError.

    A game that is truncated is not over: it is neither won nor lost, so its last info has none of the keys ``won``,
    ``is_success``, ``cleared_in``, ``par`` and ``msc``, and its mask is not empty. To count wins over episodes that may
    end either way, read ``info.get("won", False)``; ``info["score"]`` is there at both ends.

    ## Arguments
    - ``rules``: preset, text or Rules; default ``"pyramid"``.
    - ``observation``: ``"table"``, ``"memory"`` (default) or ``"clairvoyant"``.
    - ``reward``: see Rewards; default ``"par"``.
    - ``illegal_action``: ``"penalty"`` (default): nothing changes, reward -1, ``info["illegal_action"]``; ``"raise"``:
      IllegalMoveError, nothing changes.
    - ``render_mode``: ``"ansi"``: :meth:`render` returns text; ``"rgb_array"``: a (600, 800, 3) uint8 picture;
      ``"svg"``: the SVG as a str (:class:`~pyramid_env.render.Drawing`), which a notebook shows as the picture where
      ``env.render()`` ends a cell; ``"human"``: a window shows each position by itself, 4 a second (needs pygame-ce,
      of the extra ``render``); once the person in front of it has closed it, the environment goes on without.
    - ``deals``: None (default), or where the random deals come from instead of ``np_random``, seeds or not: anything
      with ``take(count)`` (:class:`~pyramid_env.deal.DealSource`), such as
      :class:`~pyramid_env.winnable.WinnableDeals`.

    ## Info
    | key | when | value |
    |---|---|---|
    | ``action_mask`` | always | (A,) int8, 1 = legal |
    | ``deal`` | always | the deal's number, -1 if it has none |
    | ``cards`` | deal without number | the deal as text |
    | ``score`` | always | score by the rules' scoring, were the game to end now |
    | ``illegal_action`` | after one | True |
    | ``won``, ``is_success`` | over | bool |
    | ``cleared_in`` | over | pass of the clear, 0 = never |
    | ``par``, ``msc`` | over | final scores by both scorings |
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(
        self,
        rules: Rules | str = "pyramid",
        observation: str = "memory",
        reward: str | RewardScheme = "par",
        illegal_action: str = "penalty",
        render_mode: str | None = None,
        deals: DealSource | None = None,
    ) -> None:
        self.rules = read_rules(rules)
        self.level = observation
        self.deals = check_source(deals, self.rules)
        self.render_mode = check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        self._shows = self.render_mode == "human"
        self._raises = check_choice("illegal_action", illegal_action, ILLEGAL_ACTION) == "raise"
        self._reward = reward_scheme(reward, self.rules)
        self._counted = column_of(self._reward)
        actions, fields = len(move_table(self.rules)), layout(self.rules, self.level)
        self.action_space = spaces.Discrete(actions)
        self.observation_space = fields.space()
        self._arrays = GameArrays(self.rules, self.level)
        self._number = NO_NUMBER
        self._deal: Deal | None = None  # made from the number when asked for
        self._playing = False
        self._started = False
        self._link()

    def _link(self) -> None:
        """Take up the tables that all environments of these rules share, and the views on the own arrays."""
        self.moves: MoveTable = move_table(self.rules)
        self._actions = len(self.moves)
        own = self._arrays
        self._states, self._ranks, self._masks, self._facts, self._rows = (
            own.states,
            own.ranks,
            own.masks,
            own.facts,
            own.rows,
        )
        self._observe = observer(self.rules, self.level, own)
        self._play = partial(play_game, own.flat, own.longs, own.bytes, own.facts, self._counted)
        self._legal = slice(0, self._actions)
        self._fields = field_views(layout(self.rules, self.level), self._actions)
        self._window: Window | None = None  # opened by the first picture; a copy opens its own

    def __getstate__(self) -> dict[str, Any]:
        views = ("_states", "_ranks", "_masks", "_facts", "_rows")
        linked = ("moves", "_actions", "_observe", "_play", "_legal", "_fields", "_window", *views)
        return {name: value for name, value in self.__dict__.items() if name not in linked}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._link()

    # ---- Gymnasium -------------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Deal a new game; see Starting State.

        Args:
            seed: a whole number from 0 up starts the random deals anew; None goes on with them.
            options: what to start from; None or empty for a random deal.

        Raises:
            PyramidError: a seed or options that cannot be read (DeckError for a deal), before anything changes.
        """
        start = read_start(options, self.rules)
        super().reset(seed=check_seed(seed))
        if start is not None:
            self._begin(start)
        else:
            for _ in range(MAX_DEAD_DEALS):
                drawn = random_numbers(self.np_random, 1) if self.deals is None else next_numbers(self.deals, 1)
                self._begin(numbered_start(int(drawn[0]), self.rules))
                if self._playing:
                    break
            else:
                raise PyramidError(f"no deal with a first move among {MAX_DEAD_DEALS} of {self.rules}")
        if self._shows:
            self.render()
        return self._handed_out(int(self._facts[0, SCORE]), bool(self._facts[0, OVER]), illegal=False)

    def step(
        self, action: int | np.integer[Any] | NDArray[np.integer[Any]]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one action; the second flag, truncated, is always False here (a TimeLimit wrapper sets it)."""
        chosen = check_action(action, self._actions)
        if not self._playing:
            raise PyramidError(f"step: expected a running game, {self._why_not_playing()}; call reset() first")
        before = None if self._counted >= 0 else self._facts.copy()
        illegal, over, score, gained = self._play(chosen)
        if illegal:
            if self._raises:
                raise IllegalMoveError(illegal_text(self.moves, chosen, self._masks[0], self._name()))
            reward = ILLEGAL_REWARD
        elif before is None:
            reward = float(gained)
        else:
            reward = float(rewards_of(self._reward, before, self._facts.copy())[0])
        self._playing = not over
        if self._shows:
            self.render()
        observation, info = self._handed_out(score, over, illegal)
        return observation, reward, over, False, info

    def render(self) -> Any:
        """The position as text (``ansi``), (600, 800, 3) uint8 picture (``rgb_array``) or SVG (``svg``).

        With ``human`` None: it is shown in the window, as after each reset and step. MissingPackage without pygame.
        """
        if self.render_mode is None:
            gym.logger.warn(f"render: expected a render_mode at construction, one of {', '.join(RENDER_MODES)}")
            return None
        if not self._shows:
            return render_position(self.rules, self.deal, self._states[0], self.render_mode)
        from pyramid_env.render.window import Window

        if self._window is None:
            self._window = Window(RENDER_FPS)
        if not self._window.is_closed:
            self._window.show(render_position(self.rules, self.deal, self._states[0], "rgb_array"))
        return None

    def close(self) -> None:
        """Take the window away, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    # ---- beyond Gymnasium --------------------------------------------------------------------------------------------

    def action_masks(self) -> NDArray[np.bool_]:
        """(A,) bool, a new array: true = legal; what MaskablePPO asks for."""
        return np.array(self._masks[0], np.bool_)

    @property
    def deal(self) -> Deal:
        """The deal in play."""
        if not self._started:
            raise PyramidError("no deal yet; call reset() first")
        if self._deal is None:
            self._deal = Deal.number(self._number, self.rules)
        return self._deal

    @property
    def game(self) -> Game:
        """The present position as a :class:`~pyramid_env.game.Game` of its own, without the moves that led to it."""
        from pyramid_env.game import Game

        return Game.from_state(self.deal, self.rules, self._states[0].copy())

    @property
    def state(self) -> NDArray[np.int64]:
        """(5,) copy of the position row (:mod:`pyramid_env.kernels`)."""
        return np.array(self._states[0])

    # ---- inside ----------------------------------------------------------------------------------------------------

    def _begin(self, start: Start) -> None:
        self._number, self._deal = start.number, start.deal
        self._ranks[0], self._states[0] = start.ranks, start.state
        self._observe()
        self._playing = not self._facts[0, OVER]
        self._started = True

    def _handed_out(self, score: int, over: bool, illegal: bool) -> tuple[Observation, dict[str, Any]]:
        """Observation and info of the present position: views on one new array, which no later step touches."""
        shown = self._arrays.shown.copy()
        info = {"action_mask": shown[self._legal], "deal": self._number, "score": score}
        if self._number == NO_NUMBER:
            info["cards"] = str(self.deal)
        if illegal:
            info["illegal_action"] = True
        if over:
            facts = self._facts[0].tolist()
            for key, column in END_FACTS.items():
                info[key] = bool(facts[column]) if key in END_FLAGS else facts[column]
        return self._fields(shown), info

    def _name(self) -> str:
        return f"deal {self.deal.name}"

    def _why_not_playing(self) -> str:
        return f"{self._name()} is over" if self._started else "got none"


class Start(NamedTuple):
    """What a game starts from: a deal and a position of it."""

    number: int  # NO_NUMBER if the deal has none
    deal: Deal | None  # None: to be made from the number when asked for
    ranks: NDArray[np.int8]  # (cards,)
    state: NDArray[np.int64]  # (5,)


def numbered_start(number: int, rules: Rules) -> Start:
    """The start of a numbered deal."""
    return Start(number, None, ranks_of(deal_numbers([number], rules)[0]), _first_state(rules))


@lru_cache
def _first_state(rules: Rules) -> NDArray[np.int64]:
    """(5,) position row before the first move; one read-only array for all callers."""
    state = start_state(rules)
    state.setflags(write=False)
    return state


def deal_start(deal: object, rules: Rules) -> Start:
    """The start of a deal, given as Deal or number.

    Raises:
        DeckError: it is neither, of another deck, or a Deal whose number deals other cards.
    """
    if not isinstance(deal, Deal):
        return numbered_start(check_number(deal), rules)
    return _checked_start(read_deal(deal, rules), rules)


def _checked_start(deal: Deal, rules: Rules) -> Start:
    """The start of a deal that is known to be right."""
    return Start(NO_NUMBER if deal.deal_number is None else deal.deal_number, deal, deal.ranks, _first_state(rules))


def game_start(game: Any, rules: Rules) -> Start:
    """The present position of a Game; PyramidError if it is none or plays by other rules."""
    from pyramid_env.game import Game

    if not isinstance(game, Game):
        raise PyramidError(f'options["game"]: expected a Game, got {type(game).__name__}')
    if game.rules != rules:
        raise PyramidError(f'options["game"]: expected a game of {rules}, got one of {game.rules}')
    return _checked_start(game.deal, rules)._replace(state=np.array(game.state, np.int64))


def check_source(source: Any, rules: Rules) -> DealSource | None:
    """The source, or None; PyramidError if it is none, or says that it is for other rules."""
    if source is None:
        return None
    if not callable(getattr(source, "take", None)):
        raise PyramidError(f"deals: expected None or a source with take(count), got {type(source).__name__} {source!r}")
    meant = getattr(source, "rules", rules)
    if isinstance(meant, Rules) and meant.replace(match_games=1) != rules.replace(match_games=1):
        raise PyramidError(f"deals: expected a source for {rules}, got one for {meant}")
    found: DealSource = source
    return found


def next_numbers(source: DealSource, count: int) -> NDArray[np.int64]:
    """(count,) the next deal numbers of a source; PyramidError if it gives anything else."""
    numbers = np.asarray(source.take(count))
    if numbers.shape != (count,) or numbers.dtype.kind not in "iu":
        got = f"{numbers.dtype} of shape {numbers.shape}"
        raise PyramidError(f"deals: expected take({count}) to give {count} deal numbers, got {got}")
    return numbers.astype(np.int64)


def read_options(options: object) -> dict[str, Any]:
    """A copy of reset's options, empty for None; PyramidError if they are no mapping."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise PyramidError(f"reset options: expected a dict or None, got {type(options).__name__} {options!r}")
    return dict(options)


def check_seed(seed: object, name: str = "seed") -> int | None:
    """A seed as int, or None; PyramidError, naming it, if it is neither a whole number from 0 up nor None."""
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise PyramidError(f"{name}: expected a whole number from 0 up or None, got {seed!r}")
    return int(seed)


def read_start(options: Mapping[str, Any] | None, rules: Rules) -> Start | None:
    """What ``reset(options=...)`` of one game names; None: a random deal. PyramidError for unknown or several keys."""
    given = read_options(options)
    check_options(given, START_OPTIONS)
    for key, value in given.items():
        if key == "game":
            return game_start(value, rules)
        return deal_start(value if key == "deal" else Deal.parse(value, rules), rules)
    return None


def check_options(given: dict[str, Any], known: tuple[str, ...]) -> None:
    """PyramidError for unknown option keys, or for more than one that names a start."""
    unknown = [key for key in given if key not in known]
    if unknown:
        raise PyramidError(f"reset options: expected {', '.join(known)}, got {', '.join(map(repr, unknown))}")
    if len(given) > 1:
        raise PyramidError(f"reset options: expected one of {', '.join(known)}, got {', '.join(given)} together")


def ranks_of(ids: NDArray[np.int8]) -> NDArray[np.int8]:
    """Card ids to ranks."""
    ranks: NDArray[np.int8] = ids % np.int8(RANKS_A_SUIT) + np.int8(1)
    return ranks


def check_action(action: object, actions: int) -> int:
    """An action as int; IllegalMoveError if it is no integer of 0..A-1 (a float, a bool and a list are none)."""
    if type(action) is int and 0 <= action < actions:
        return action
    if isinstance(action, np.ndarray) and action.ndim == 0:
        action = action[()]
    if isinstance(action, bool) or not isinstance(action, (int, np.integer)):
        got = f"{type(action).__name__} {action!r}"
        raise IllegalMoveError(f"action: expected an integer from 0 to {actions - 1}, got {got}")
    chosen = int(action)
    if not 0 <= chosen < actions:
        raise IllegalMoveError(f"action: expected an integer from 0 to {actions - 1}, got {chosen}")
    return chosen


def illegal_text(moves: MoveTable, action: int, mask: NDArray[np.int8], where: str) -> str:
    """The message for an illegal action: what was tried, what is legal, in which game."""
    legal = [moves.text(moves[int(a)]) for a in np.flatnonzero(mask)]
    return f"action {action} ({moves.text(moves[action])}): not legal in {where}; legal: {', '.join(legal)}"


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """The value; PyramidError if it is none of the choices, which are texts or None."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise PyramidError(f"{name}: expected one of {', '.join(map(str, choices))}, got {value!r}")
    return value


def render_position(rules: Rules, deal: Deal, state: NDArray[np.int64], render_mode: str) -> Any:
    """A position as text, picture or SVG, without a count of moves: an environment does not keep the moves."""
    from pyramid_env.render import Drawing, rgb_array, svg, text

    if render_mode == "svg":
        return Drawing(svg(rules, deal, state))
    return text(rules, deal, state) if render_mode == "ansi" else rgb_array(rules, deal, state)
