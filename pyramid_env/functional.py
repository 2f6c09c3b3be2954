"""Arrays in, arrays out: reset and step of many games in the caller's own buffers, for loops of one's own.

No objects, no infos, nothing kept from call to call: what a game is lies in the arrays alone, which may stand in any
memory (shared between processes, pinned, behind a torch tensor). A loop of one's own::

    rules = pyramid_env.rules("pyramid")
    games = functional.arrays(rules, "memory", 4096)
    functional.reset(rules, "memory", games, deal_numbers)
    while True:
        functional.step(rules, "memory", games, choose(games.rows, games.masks))
        learn_from(games.rewards, games.terminated)
        over = np.flatnonzero(games.terminated)
        functional.reset(rules, "memory", games, next_numbers(over.size), over)

or, without a call for the new deals, ``step(..., restart=games.terminated.copy(), numbers=...)``. The kernels are those
of the vector environment (:mod:`pyramid_env.engine`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyramid_env.actions import take_actions
from pyramid_env.batch import LARGEST, NO_DEALS, NO_LIMIT
from pyramid_env.batch_arrays import COUNTS, ILLEGAL, Games, Outcome, new_games, new_outcome, new_scratch, tables
from pyramid_env.deal import check_number
from pyramid_env.engine import deal_games, step_kernels
from pyramid_env.errors import PyramidError
from pyramid_env.kernels import CARDS_LEFT, CLEARED_IN, MSC, OVER, PAR, PASS_NUMBER, PYRAMID_LEFT, SCORE, WON
from pyramid_env.moves import move_table
from pyramid_env.observation import layout
from pyramid_env.reward import ILLEGAL_REWARD
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules

__all__ = [
    "CARDS_LEFT",
    "CLEARED_IN",
    "MSC",
    "OVER",
    "PAR",
    "PASS_NUMBER",
    "PYRAMID_LEFT",
    "SCORE",
    "WON",
    "Arrays",
    "arrays",
    "check",
    "observe",
    "reset",
    "step",
]


class Arrays(NamedTuple):
    """The buffers of B games: C-contiguous, writable, of exactly these types.

    ``rows`` holds the observations, field after field; ``layout(rules, level).views(rows)`` names the fields.
    """

    ranks: NDArray[np.int8]  # (B, cards) the deal: pyramid places first, then the stock
    states: NDArray[np.int64]  # (B, 5) the position (pyramid_env.kernels)
    memory: NDArray[Any]  # (B, .) int32 or int64, as the rules need it: what the engine knows of a position
    bits: NDArray[np.int64]  # (B, words) legal moves: action a is bit a % 64 of word a // 64
    masks: NDArray[np.int8]  # (B, A) legal moves: 1 = legal; all zeros for a game that is over
    facts: NDArray[np.int32]  # (B, 9) columns PYRAMID_LEFT, PAR, OVER, ...
    rows: NDArray[np.int8]  # (B, F) the observation
    steps: NDArray[np.int64]  # (B,) of the running episode
    scores: NDArray[np.int64]  # (B,) the score, were the game to end now
    terminated: NDArray[np.bool_]  # (B,) no move is legal
    rewards: NDArray[np.float64]  # (B,) of the last step, as the three below
    truncated: NDArray[np.bool_]  # (B,) the episode has reached ``max_steps``
    illegal: NDArray[np.bool_]  # (B,) the action was illegal, and changed nothing


def arrays(rules: Rules | str, level: str, games: int) -> Arrays:
    """New buffers of zeros for so many games; reset them before stepping."""
    chosen = read_rules(rules)
    own = new_games(games, chosen, layout(chosen, level).size, len(move_table(chosen)), "int8")
    return Arrays(*own, *new_outcome(games))


@lru_cache
def _expected(rules: Rules, level: str) -> tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]:
    """Shape without the batch axis, and type, of each buffer."""
    return tuple((array.shape[1:], array.dtype) for array in arrays(rules, level, 1))


def check(rules: Rules | str, level: str, buffers: Arrays) -> int:
    """B; PyramidError naming the first buffer that compiled code could not write to as these rules and level need it.

    Every function here does so first: compiled code would write beyond a buffer that is too small.
    """
    games = len(buffers.ranks)
    for name, array, (shape, dtype) in zip(Arrays._fields, buffers, _expected(read_rules(rules), level), strict=True):
        if not isinstance(array, np.ndarray) or array.shape != (games, *shape) or array.dtype != dtype:
            got = f"{getattr(array, 'dtype', type(array).__name__)} of shape {getattr(array, 'shape', '?')}"
            raise PyramidError(f"{name}: expected {dtype} of shape {(games, *shape)}, got {got}")
        if not (array.flags.c_contiguous and array.flags.writeable and array.flags.aligned):
            raise PyramidError(f"{name}: expected a C-contiguous, aligned and writable array")
    return games


def reset(
    rules: Rules | str,
    level: str,
    buffers: Arrays,
    numbers: ArrayLike,
    games: NDArray[np.integer[Any]] | None = None,
) -> None:
    """Deal numbered deals.

    Args:
        rules: preset, text or Rules.
        level: information level of the rows.
        buffers: written to: everything of the games that are dealt.
        numbers: (n,) deal numbers, 0 .. 2^63 - 1; training deals are those from 1,000,000 up.
        games: (n,) which games get them; None: all, in order.

    Raises:
        PyramidError: buffers or indices that do not fit; DeckError: a number that is none. Nothing has changed then.
    """
    chosen = read_rules(rules)
    index = _index(games, check(chosen, level, buffers))
    deals = np.array(numbers, np.int64).reshape(-1)
    if deals.size != index.size:
        raise PyramidError(f"numbers: expected {index.size} deal numbers, one a game, got {deals.size}")
    if deals.size:
        check_number(int(deals.min()))
    _begin(chosen, level, buffers, index, deals)


def observe(rules: Rules | str, level: str, buffers: Arrays, games: NDArray[np.integer[Any]] | None = None) -> None:
    """Write all that follows from positions that the caller wrote into ``ranks`` and ``states``; errors as above."""
    index = _index(games, check(rules, level, buffers))
    _begin(read_rules(rules), level, buffers, index, NO_DEALS)


def step(
    rules: Rules | str,
    level: str,
    buffers: Arrays,
    actions: NDArray[np.integer[Any]],
    *,
    restart: NDArray[np.bool_] | None = None,
    numbers: NDArray[np.integer[Any]] | None = None,
    reward: int = PAR,
    max_steps: int = NO_LIMIT,
) -> int:
    """Play one action in every game, in place.

    Args:
        rules: preset, text or Rules.
        level: information level of the rows.
        buffers: written to; as ``reset``, ``observe`` or ``step`` left them.
        actions: (B,) integers from 0 to A - 1. One that is masked changes nothing and is flagged in ``illegal``; in a
            game that is over every action is.
        restart: (B,) games that are dealt anew instead, their reward being 0; None: none.
        numbers: (B,) the numbers of their deals; those of other games are not looked at.
        reward: the fact whose growth is the reward: PAR, MSC or WON.
        max_steps: ``truncated`` from so many steps on.

    Returns:
        How many actions were illegal.

    Raises:
        PyramidError: buffers or arguments that do not fit; DeckError: a number that is none. Nothing has changed then.
    """
    chosen = read_rules(rules)
    games = check(chosen, level, buffers)
    given = _of_shape("actions", actions, games, "iu", "integers").astype(np.int64)
    again = np.zeros(games, np.bool_) if restart is None else _of_shape("restart", restart, games, "b", "bool").copy()
    deals = np.zeros(games, np.int64)
    if numbers is not None:
        deals = _of_shape("numbers", numbers, games, "iu", "integers").astype(np.int64)
    elif again.any():
        raise PyramidError("numbers: expected deal numbers for the games in restart, got None")
    if again.any():
        check_number(int(deals[again].min()))
    count = len(move_table(chosen))
    if reward not in (PAR, MSC, WON):
        raise PyramidError(f"reward: expected PAR, MSC or WON, got {reward!r}")
    wrong = take_actions(buffers.bits, given, again, count, False, given)
    if wrong >= 0:
        raise PyramidError(f"actions: expected integers from 0 to {count - 1}, got {given[wrong]} for game {wrong}")
    counts = np.zeros(COUNTS, np.int64)
    step_kernels(chosen).play(
        *tables(chosen, level),
        *_own(buffers),
        new_scratch(chosen, games),
        given,
        again,
        deals,
        np.zeros((games, 0), np.int64),
        np.zeros(games, np.int64),
        *Outcome(buffers.rewards, buffers.truncated, buffers.illegal),
        counts,
        reward,
        ILLEGAL_REWARD,
        max_steps,
    )
    return int(counts[ILLEGAL])


def _of_shape(name: str, values: object, games: int, kinds: str, what: str) -> NDArray[Any]:
    """The values as an array (B,); PyramidError if they are of another shape or kind."""
    given = np.asarray(values)
    if given.dtype.kind not in kinds or given.shape != (games,):
        raise PyramidError(f"{name}: expected {what} of shape ({games},), got {given.dtype} of shape {given.shape}")
    if given.dtype == np.uint64 and (given > LARGEST).any():
        raise PyramidError(f"{name}: expected {what} below 2^63, got {given.max()}")
    return given


def _index(games: object, count: int) -> NDArray[np.int64]:
    """(n,) int64 indices of games; PyramidError for others."""
    if games is None:
        return np.arange(count)
    given = np.asarray(games)
    if given.dtype.kind not in "iu" or given.ndim != 1 or (given.size and not 0 <= given.min() <= given.max() < count):
        raise PyramidError(f"games: expected indices from 0 to {count - 1}, got {given!r}")
    return np.array(given, np.int64)


def _own(buffers: Arrays) -> Games:
    """Those of the buffers that are the games themselves."""
    parts: tuple[Any, ...] = buffers
    return Games(*parts[: len(Games._fields)])


def _begin(rules: Rules, level: str, buffers: Arrays, index: NDArray[np.int64], deals: NDArray[np.int64]) -> None:
    if not index.size:
        return
    for told in (buffers.rewards, buffers.truncated, buffers.illegal):
        told[index] = 0
    deal_games(*tables(rules, level), *_own(buffers), new_scratch(rules, index.size), index, deals)
