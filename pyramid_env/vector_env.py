"""PyramidVectorEnv: many games of Pyramid solitaire in step, all of them in one kernel call a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from pyramid_env.batch import LARGEST, Batch, unpack_masks
from pyramid_env.batch_arrays import MASK_FORMATS
from pyramid_env.deal import Deal, DealSource, deal_numbers
from pyramid_env.env import (
    FRAME_MODES,
    ILLEGAL_ACTION,
    MAX_DEAD_DEALS,
    NO_NUMBER,
    START_OPTIONS,
    Observation,
    PyramidEnv,
    Start,
    check_choice,
    check_options,
    check_seed,
    check_source,
    deal_start,
    game_start,
    illegal_text,
    next_numbers,
    read_options,
    read_start,
    render_position,
)
from pyramid_env.errors import IllegalMoveError, PyramidError
from pyramid_env.infos import Infos
from pyramid_env.moves import MoveTable, move_table
from pyramid_env.observation import layout
from pyramid_env.reward import ILLEGAL_REWARD, RewardScheme, column_of, reward_scheme, rewards_of
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.streams import DealStreams

if TYPE_CHECKING:
    from pyramid_env.game import Game

_LINKED: Final = (
    *("moves", "_layout", "states", "ranks", "facts", "buffer", "steps", "numbers", "masks", "_infos"),
    *("_views", "_before", "_facts_seen", "_before_seen"),
)
"""Attributes that are made from the others, so that a copy of the environment has its own."""

NO_GAMES: Final[NDArray[np.intp]] = np.empty(0, np.intp)

ONE_FOR_EACH: Final = ("deals", "games")


class PyramidVectorEnv(VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """B games at once, with the spaces, rewards and infos of :class:`~pyramid_env.env.PyramidEnv`, batched.

    Game i behaves exactly as a ``PyramidEnv`` in a ``SyncVectorEnv`` does: ``reset(seed=s)`` gives it the deals of a
    single environment reset with ``seed=s + i``, now and after every autoreset. All positions are stepped by one kernel
    call; no Python code runs per game in a step, except that with ``SAME_STEP`` the ``final_obs`` of the games that
    ended are dicts, made one by one.

    Attributes:
        rules, level, moves: as in the single environment.
        num_envs: B.
        states: (B, 5) int64 position rows; ranks: (B, cards) int8; facts: (B, 9) int32 (:mod:`pyramid_env.kernels`).
        masks: (B, A) int8, 1 = legal, all zeros for a game that is over; or packed.
        buffer: (B, F) int8, the fields of the observations side by side (:mod:`pyramid_env.observation`).
        numbers: (B,) int64 deal numbers, -1 for a deal without one.
        steps: (B,) int64 steps of the running episodes.

    These arrays are the environment's own and change in place: read them, do not write them.

    Arguments beyond those of the single environment:
        num_envs: how many games.
        autoreset_mode: an AutoresetMode or its value: ``NEXT_STEP`` (default), ``SAME_STEP``, ``DISABLED``.
        max_episode_steps: an episode is truncated after so many steps; None or -1 = never. ``gym.make_vec`` passes the
            registered limit.
        deals: as in the single environment; the games that need a deal take theirs in rising order.
        copy: a bool. True (default): observations, masks and all else returned are new arrays. False, the fast way:
            observations, ``action_masks()`` and the arrays of the infos are the environment's own and change with the
            next step or reset.
        action_mask_format: ``"int8"`` (default): masks are (B, A) int8. ``"packed"``: one bit an action, (B, bytes)
            uint8, action a is bit a % 8 of byte a // 8, rows filled up to whole words of 8 bytes: 32 bytes a game
            instead of 254, and faster. ``masks`` and the infos have them so; :meth:`action_masks` is (B, A) bool as
            ever.
        num_threads: threads that share the games of a step (default 1). Results are the same for any number; worth it
            from some thousand games.

    Reset options: ``{"deals": ...}`` B deal numbers or Deals, ``{"games": ...}`` B Games, or one ``deal``, ``cards`` or
    ``game`` for all; besides, ``"reset_mask"``, (B,) bool: reset those games alone (the entries of the others in
    ``deals`` or ``games`` are not looked at). Infos of a partial reset speak of the games that were reset, as
    ``_action_mask`` etc. say; :meth:`action_masks` has all of them.

    Infos are those of the single environment as arrays of length B. Beside each stands a bool array, its name after an
    underscore: which games have the value; the others have 0 or None, and a key that no game has is absent. So
    ``infos["cards"]`` is present only while a game is played from a deal without number, and ``infos["won"]`` only when
    some game is over. A truncated game is not over: count wins as ``infos.get("won", np.zeros(B, bool))``, with
    ``SAME_STEP`` from ``infos["final_info"]``.

    With ``DISABLED`` a step while any game has ended raises PyramidError, as does, in any mode, a step while a game was
    started by the caller in a position that is already over.
    """

    metadata: dict[str, Any] = {**PyramidEnv.metadata, "render_modes": list(FRAME_MODES)}  # noqa: RUF012 (as Gymnasium)

    def __init__(
        self,
        num_envs: int = 1,
        rules: Rules | str = "pyramid",
        observation: str = "memory",
        reward: str | RewardScheme = "par",
        illegal_action: str = "penalty",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        copy: bool = True,
        deals: DealSource | None = None,
        action_mask_format: str = "int8",
        num_threads: int = 1,
    ) -> None:
        self.num_envs = _positive("num_envs", num_envs)
        self.rules = read_rules(rules)
        self.deals = check_source(deals, self.rules)
        self.level = observation
        if not isinstance(copy, (bool, np.bool_)):
            raise PyramidError(f"copy: expected True or False, got {copy!r}")
        self.copy = bool(copy)
        self.render_mode = check_choice("render_mode", render_mode, (None, *FRAME_MODES))
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        unlimited = max_episode_steps in (None, -1)
        self.max_episode_steps = None if unlimited else _positive("max_episode_steps", max_episode_steps)
        self._raises = check_choice("illegal_action", illegal_action, ILLEGAL_ACTION) == "raise"
        self._reward = reward_scheme(reward, self.rules)
        self.action_mask_format = check_choice("action_mask_format", action_mask_format, MASK_FORMATS)
        single = PyramidEnv(self.rules, observation)
        self.single_action_space, self.single_observation_space = single.action_space, single.observation_space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._streams = DealStreams(num_envs)
        self._batch = Batch(
            self.num_envs,
            self.rules,
            self.level,
            self.action_mask_format,
            _positive("num_threads", num_threads),
            column_of(self._reward),
            self.max_episode_steps,
            self._streams if self.deals is None else None,
        )
        self._batch.numbers[:] = NO_NUMBER
        self._unnumbered: dict[int, Deal] = {}  # deals without number, by game
        self._ended = np.zeros(num_envs, np.bool_)  # the last step ended the episode
        self._dead = np.zeros(num_envs, np.bool_)  # started by the caller in a position that is over
        self._restarts = 0  # so many have ended and are dealt anew by the next step
        self._any_dead = False
        self._stopped = False  # some can't be stepped
        self._started = False
        self._link()

    def _link(self) -> None:
        """Take up what is shared with all environments of these rules, and the views on the own arrays."""
        self.moves: MoveTable = move_table(self.rules)
        self._layout = layout(self.rules, self.level)
        games = self._batch.games
        self.states, self.ranks, self.facts = games.states, games.ranks, games.facts
        self.buffer, self.steps, self.numbers = games.rows, games.steps, self._batch.numbers
        packs = self.action_mask_format == "packed"
        self.masks: NDArray[Any] = games.bits.view(np.uint8) if packs else games.masks
        self._infos = Infos(self._batch, self.masks, self._unnumbered, self.copy)
        self._views = self._layout.views(self.buffer)
        self._before = np.zeros_like(self.facts)
        self._facts_seen, self._before_seen = _read_only(self.facts), _read_only(self._before)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _LINKED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._link()

    # ---- Gymnasium -------------------------------------------------------------------------------------------------

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | NDArray[np.integer[Any]] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Deal new games; see the class for ``options``.

        Args:
            seed: a whole number from 0 up, game i is seeded with ``seed + i``; or B of them in a sequence or an integer
                array, game i is seeded with ``seed[i]``. None: its deals go on from where they were.
            options: see the class; not changed.

        Raises:
            PyramidError: seeds or options that cannot be read (DeckError for a deal), before anything changes.
            TypeError: a ``reset_mask`` that is no bool array, as SyncVectorEnv raises it; likewise.
        """
        given = read_options(options)
        which = self._reset_mask(given.pop("reset_mask", None))
        starts, seeds = self._starts(given, which), self._seeds(seed)
        self._streams.seed(seeds, which)
        index = np.flatnonzero(which)
        if starts is None:
            self._deal_random(index)
        elif isinstance(starts, np.ndarray):
            self._deal_numbers(index, starts[index])
        else:
            self._deal_starts(index, starts)
        self._ended[index] = False
        self._dead[index] = self._batch.games.terminated[index]
        self._any_dead = bool(self._dead.any())
        self._note_ended(int(self._ended.sum()))
        self._started = True
        terminated = self._batch.games.terminated
        infos = self._infos.of_all(None, terminated.nonzero()[0]) if which.all() else self._infos.of_some(index, None)
        return self._observations(), infos

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Play one action in every game; those that autoreset ignore theirs.

        An error (IllegalMoveError, PyramidError) comes before anything has changed in any game.
        """
        given = self._read_actions(actions)
        self._check_playing()
        self._take(given)
        batch, outcome, counted = self._batch, self._batch.outcome, column_of(self._reward) >= 0
        if self._restarts:
            self._name_deals()
        if not counted:
            np.copyto(self._before, self.facts)
        self._streams.spent += 1  # too many: Ctrl-C may come before it is known how many
        ended, illegal, dead, spent = batch.play()
        self._streams.spent += spent - 1
        if counted:
            rewards = outcome.rewards.copy()
        else:
            rewards = rewards_of(self._reward, self._before_seen, self._facts_seen)
            rewards[outcome.illegal] = ILLEGAL_REWARD
            rewards[batch.restart] = 0.0
        if dead:
            self._deal_random(np.flatnonzero(batch.restart & batch.games.terminated))
        terminated, truncated = batch.games.terminated.copy(), outcome.truncated.copy()
        tried = outcome.illegal if illegal else None
        if ended and self.autoreset_mode == AutoresetMode.SAME_STEP:
            infos = self._restart(terminated | truncated, tried)
        else:
            infos = self._infos.of_all(tried, terminated.nonzero()[0] if ended else NO_GAMES)
            if ended or self._restarts:
                np.logical_or(terminated, truncated, out=self._ended)
                self._note_ended(ended)
        return self._observations(), rewards, terminated, truncated, infos

    def _note_ended(self, ended: int) -> None:
        """Take note of how many games have ended, and what follows from that."""
        if self.autoreset_mode == AutoresetMode.NEXT_STEP:
            self._restarts = ended
            np.copyto(self._batch.restart, self._ended)
        self._stopped = self._any_dead or (self.autoreset_mode == AutoresetMode.DISABLED and ended > 0)

    def render(self) -> tuple[Any, ...] | None:
        """One frame a game."""
        if self.render_mode is None:
            raise PyramidError(f"render: expected a render_mode at construction, one of {', '.join(FRAME_MODES)}")
        mode, games = self.render_mode, range(self.num_envs)
        return tuple(render_position(self.rules, self.deal(i), self.states[i], mode) for i in games)

    @property  # type: ignore[misc]  # no setter: there are B generators
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]  # one a game
        """The generators that each game's deals come from, as SyncVectorEnv gives them; they run a few deals ahead."""
        return tuple(self._streams.generator(i) for i in range(self.num_envs))

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]  # one a game
        """The seed of each game's generator; None where it came from the system's entropy."""
        return tuple(self._streams.seeds)

    # ---- beyond Gymnasium --------------------------------------------------------------------------------------------

    def action_masks(self) -> NDArray[np.bool_]:
        """(B, A) bool, true = legal, a row of a game that is over all false.

        A view with ``copy=False``, unless the masks are packed.
        """
        if self.action_mask_format == "packed":
            return unpack_masks(self.masks, len(self.moves))
        return self.masks.astype(np.bool_) if self.copy else self.masks.view(np.bool_)

    def random_actions(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """(B,) for each game one of its legal actions, all alike, drawn from ``rng``; 0 for a game that is over."""
        return self._batch.random_actions(rng)

    def deal(self, index: int) -> Deal:
        """The deal that a game is played from."""
        if not self._started:
            raise PyramidError("no deal yet; call reset() first")
        number = int(self.numbers[index])
        return self._unnumbered[index] if number == NO_NUMBER else Deal.number(number, self.rules)

    def game(self, index: int) -> Game:
        """A game's present position as a :class:`~pyramid_env.game.Game` of its own."""
        from pyramid_env.game import Game

        return Game.from_state(self.deal(index), self.rules, self.states[index].copy())

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        self._batch.close()

    # ---- checks ----------------------------------------------------------------------------------------------------

    def _read_actions(self, actions: object) -> NDArray[np.int64]:
        expected = f"actions: expected integers of shape ({self.num_envs},)"
        try:
            given = np.asarray(actions)
        except ValueError as error:  # lists of unequal lengths
            raise IllegalMoveError(f"{expected}, got {type(actions).__name__}: {error}") from None
        if given.dtype.kind not in "iu" or given.shape != (self.num_envs,):
            raise IllegalMoveError(f"{expected}, got {given.dtype} of shape {given.shape}")
        if given.dtype == np.uint64 and (given > LARGEST).any():
            raise IllegalMoveError(f"{expected} from 0 to {len(self.moves) - 1}, got {given.max()}")
        return np.ascontiguousarray(given, np.int64)

    def _check_playing(self) -> None:
        if not self._started:
            raise PyramidError("step: expected running games, got none; call reset() first")
        if self._stopped:
            stopped = self._dead | self._ended if self.autoreset_mode == AutoresetMode.DISABLED else self._dead
            games = ", ".join(map(str, np.flatnonzero(stopped)[:8]))
            raise PyramidError(
                f"step: expected running games, but {int(stopped.sum())} of {self.num_envs} have ended "
                f'(first: {games}); reset those with options={{"reset_mask": ...}}'
            )

    def _take(self, actions: NDArray[np.int64]) -> None:
        """Numbers outside 0..A-1 are refused always, masked ones under ``illegal_action="raise"``."""
        b = self._batch.take(actions, self._raises)
        if b < 0:
            return
        action, where = int(self._batch.actions[b]), f"game {b}, deal {self.deal(b).name}"
        if not 0 <= action < len(self.moves):
            raise IllegalMoveError(
                f"actions: expected integers from 0 to {len(self.moves) - 1}, got {action} in {where}"
            )
        raise IllegalMoveError(illegal_text(self.moves, action, self._batch.mask_row(b).view(np.int8), where))

    def _reset_mask(self, mask: Any) -> NDArray[np.bool_]:
        if mask is None:
            return np.ones(self.num_envs, np.bool_)
        expected = f'options["reset_mask"]: expected a bool array of shape ({self.num_envs},)'
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"{expected}, got {getattr(mask, 'dtype', type(mask).__name__)}")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise PyramidError(f"{expected} with at least one true value, got shape {mask.shape}, {mask.sum()} true")
        if not self._started and not mask.all():
            raise PyramidError("reset: expected a reset of all games first, got a reset_mask")
        return mask

    def _seeds(self, seed: object) -> Sequence[int | None]:
        """(B,) the games' seeds, all checked; None leaves a stream as it is."""
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, (int, np.integer)):
            first = check_seed(seed)
            assert first is not None
            return range(first, first + self.num_envs)
        if not _is_sequence(seed):
            expected = f"a whole number from 0 up, None, or {self.num_envs} of them in a sequence or an array"
            raise PyramidError(f"seed: expected {expected}, got {type(seed).__name__} {seed!r}")
        if len(seed) != self.num_envs:
            raise PyramidError(f"seed: expected {self.num_envs} seeds, got {len(seed)}")
        return [check_seed(one, f"seed[{i}]") for i, one in enumerate(seed)]

    # ---- dealing ---------------------------------------------------------------------------------------------------

    def _starts(self, given: dict[str, Any], which: NDArray[np.bool_]) -> NDArray[np.int64] | dict[int, Start] | None:
        """What the options name: deal numbers (B,), a start for each game of ``which``, or None for random deals."""
        check_options(given, (*ONE_FOR_EACH, *START_OPTIONS))
        if not given:
            return None
        ((key, value),) = given.items()
        if key in START_OPTIONS:
            start = read_start(given, self.rules)
            assert start is not None
            return dict.fromkeys(np.flatnonzero(which).tolist(), start)
        if key == "deals" and isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.shape == which.shape:
            numbers = value.astype(np.int64)
            if (numbers[which] < 0).any():
                deal_numbers(numbers[which], self.rules)  # names the bad number
            return numbers
        items = _items(key, value, self.num_envs)
        read = deal_start if key == "deals" else game_start
        return {i: read(items[i], self.rules) for i in np.flatnonzero(which).tolist()}

    def _deal_random(self, index: NDArray[np.intp]) -> None:
        """Give games their next random deals; deals without a first move are passed over."""
        for _ in range(MAX_DEAD_DEALS):
            self._deal_numbers(index, self._next_numbers(index))
            index = index[self._batch.games.terminated[index]]
            if not index.size:
                return
        raise PyramidError(f"no deal with a first move among {MAX_DEAD_DEALS} of {self.rules}")

    def _next_numbers(self, index: NDArray[np.intp]) -> NDArray[np.int64]:
        return self._streams.take(index) if self.deals is None else next_numbers(self.deals, index.size)

    def _name_deals(self) -> None:
        """See to it that the games that the coming step deals anew have deals: their streams' or the source's."""
        if self.deals is None and not self._streams.spent and not self._unnumbered:
            return
        (index,) = self._batch.restart.nonzero()
        if self.deals is not None:
            self._number(index, next_numbers(self.deals, index.size))
            return
        self._streams.fill(index)
        self._forget_unnumbered(index)

    def _number(self, index: NDArray[np.intp], numbers: NDArray[np.int64]) -> None:
        """Note the deals of some games; DeckError if a number is none."""
        if numbers.size and numbers.min() < 0:
            deal_numbers(numbers, self.rules)  # names the bad number
        self.numbers[index] = numbers
        self._forget_unnumbered(index)

    def _deal_numbers(self, index: NDArray[np.intp], numbers: NDArray[np.int64]) -> None:
        self._number(index, numbers)
        self._batch.begin(index, numbers)

    def _deal_starts(self, index: NDArray[np.intp], starts: dict[int, Start]) -> None:
        self._forget_unnumbered(index)
        for i, start in starts.items():
            self.ranks[i], self.states[i], self.numbers[i] = start.ranks, start.state, start.number
            if start.deal is not None and start.number == NO_NUMBER:
                self._unnumbered[i] = start.deal
        self._batch.begin(index)

    def _forget_unnumbered(self, index: NDArray[np.intp]) -> None:
        if self._unnumbered:
            for i in index.tolist():
                self._unnumbered.pop(i, None)

    # ---- what is handed out ------------------------------------------------------------------------------------------

    def _observations(self) -> Observation:
        return self._layout.views(self.buffer.copy()) if self.copy else dict(self._views)

    def _restart(self, ended: NDArray[np.bool_], illegal: NDArray[np.bool_] | None) -> dict[str, Any]:
        """SAME_STEP: keep what the ended games showed last, deal them anew, and return the infos of the step."""
        (index,) = ended.nonzero()
        final_obs = np.empty(self.num_envs, dtype=object)  # all None
        fields = self._layout.views(self.buffer[index])
        games = zip(*map(list, fields.values()), strict=True)
        for i, values in zip(index.tolist(), games, strict=True):
            final_obs[i] = dict(zip(fields, values, strict=True))
        final_info = self._infos.of_some(index, illegal)
        self._deal_random(index)
        infos = self._infos.of_all(None if illegal is None else illegal & ~ended, NO_GAMES)
        infos["final_obs"], infos["final_info"] = final_obs, final_info
        infos["_final_obs"], infos["_final_info"] = ended, ended.copy()
        return infos


def _is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Can it hold one value a game? Text can't."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _items(key: str, value: object, count: int) -> Sequence[Any]:
    if not _is_sequence(value) or len(value) != count:
        got = len(value) if _is_sequence(value) else type(value).__name__
        raise PyramidError(f'options["{key}"]: expected {count} of them, one a game, got {got}')
    return value


def _positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise PyramidError(f"{name}: expected a whole number of 1 or more, got {value!r}")
    return int(value)


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = ", ".join(repr(m.value) for m in AutoresetMode)
        raise PyramidError(f"autoreset_mode: expected an AutoresetMode or one of {known}, got {mode!r}") from None


def _read_only(array: NDArray[np.int32]) -> NDArray[np.int32]:
    view = array.view()
    view.flags.writeable = False
    return view
