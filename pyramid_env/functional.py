"""Arrays in, arrays out: reset and step of many games in the caller's own buffers, for loops of one's own.

No objects, no infos, no autoreset, nothing kept from call to call: what a game is lies in the arrays alone, which may
stand in any memory (shared between processes, pinned, behind a torch tensor). A loop of one's own::

    rules = pyramid_env.rules("pyramid")
    games = functional.arrays(rules, "memory", 4096)
    functional.reset(rules, "memory", games, deal_numbers)
    while True:
        functional.step(rules, "memory", games, actions(games.rows, games.masks))
        over = np.flatnonzero(games.facts[:, functional.OVER])
        functional.reset(rules, "memory", games, next_numbers(over.size), over)

Rewards are differences of facts: the growth of ``facts[:, functional.PAR]`` is the reward ``"par"``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyramid_env.deal import deal_numbers
from pyramid_env.env import ranks_of
from pyramid_env.errors import PyramidError
from pyramid_env.kernels import (
    CARDS_LEFT,
    CLEARED_IN,
    FACT_COLUMNS,
    MSC,
    OVER,
    PAR,
    PASS_NUMBER,
    PYRAMID_LEFT,
    SCORE,
    STATE_COLUMNS,
    WON,
    start_state,
)
from pyramid_env.moves import move_table
from pyramid_env.observation import layout
from pyramid_env.rules import Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.stepping import observe_games, packed, play_games

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
    masks: NDArray[np.int8]  # (B, A) 1 = legal; all zeros for a game that is over
    facts: NDArray[np.int32]  # (B, 9) columns PYRAMID_LEFT, PAR, OVER, ...
    rows: NDArray[np.int8]  # (B, F) the observation
    illegal: NDArray[np.bool_]  # (B,) the last step's action was illegal, and changed nothing


def arrays(rules: Rules | str, level: str, games: int) -> Arrays:
    """New buffers of zeros for so many games; reset them before stepping."""
    return Arrays(
        **{name: np.zeros((games, *shape), dtype) for name, (shape, dtype) in _expected(rules, level).items()}
    )


def _expected(rules: Rules | str, level: str) -> dict[str, tuple[tuple[int, ...], type[np.generic]]]:
    """Shape without the batch axis, and type, of each buffer."""
    chosen = read_rules(rules)
    return {
        "ranks": ((chosen.cards,), np.int8),
        "states": ((STATE_COLUMNS,), np.int64),
        "masks": ((len(move_table(chosen)),), np.int8),
        "facts": ((FACT_COLUMNS,), np.int32),
        "rows": ((layout(chosen, level).size,), np.int8),
        "illegal": ((), np.bool_),
    }


def check(rules: Rules | str, level: str, buffers: Arrays) -> int:
    """B; PyramidError naming the first buffer that compiled code could not write to as these rules and level need it.

    Every function here does so first: compiled code would write beyond a buffer that is too small.
    """
    games = len(buffers.illegal)
    for (name, (shape, dtype)), array in zip(_expected(rules, level).items(), buffers, strict=True):
        if not isinstance(array, np.ndarray) or array.shape != (games, *shape) or array.dtype != dtype:
            got = f"{getattr(array, 'dtype', type(array).__name__)} of shape {getattr(array, 'shape', '?')}"
            raise PyramidError(f"{name}: expected {np.dtype(dtype)} of shape {(games, *shape)}, got {got}")
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
    ids = deal_numbers(numbers, chosen)
    if len(ids) != index.size:
        raise PyramidError(f"numbers: expected {index.size} deal numbers, one a game, got {len(ids)}")
    buffers.ranks[index] = ranks_of(ids)
    buffers.states[index] = start_state(chosen)
    buffers.illegal[index] = False
    _observe(chosen, level, buffers, index)


def observe(rules: Rules | str, level: str, buffers: Arrays, games: NDArray[np.integer[Any]] | None = None) -> None:
    """Masks, facts and rows of positions that the caller wrote into ``ranks`` and ``states``; PyramidError as above."""
    index = _index(games, check(rules, level, buffers))
    _observe(read_rules(rules), level, buffers, index)


def step(
    rules: Rules | str,
    level: str,
    buffers: Arrays,
    actions: NDArray[np.int64],
    skip: NDArray[np.bool_] | None = None,
) -> int:
    """Play one action in every game, in place; ``masks`` must be those of ``states``, as every call here leaves them.

    Args:
        rules: preset, text or Rules.
        level: information level of the rows.
        buffers: written to.
        actions: (B,) integers. One outside 0..A-1 or masked changes nothing and is flagged in ``illegal``; in a game
            that is over every action is illegal.
        skip: (B,) true: leave this game as it is.

    Returns:
        How many actions were illegal.

    Raises:
        PyramidError: buffers, actions or ``skip`` that do not fit. Nothing has changed then.
    """
    chosen = read_rules(rules)
    games = check(chosen, level, buffers)
    given, left_out = np.asarray(actions), np.zeros(games, np.bool_) if skip is None else np.asarray(skip)
    if given.dtype.kind not in "iu" or given.shape != (games,):
        raise PyramidError(f"actions: expected integers of shape ({games},), got {given.dtype} of shape {given.shape}")
    if left_out.dtype != np.bool_ or left_out.shape != (games,):
        raise PyramidError(f"skip: expected bool of shape ({games},), got {left_out.dtype} of shape {left_out.shape}")
    chosen_actions, left_out = np.array(given, np.int64), np.array(left_out)  # as the kernels are compiled
    ranks, states, masks, facts, rows, illegal = buffers
    return play_games(*packed(chosen, level), ranks, states, chosen_actions, left_out, masks, facts, rows, illegal)


def _index(games: object, count: int) -> NDArray[np.int64]:
    """(n,) int64 indices of games; PyramidError if there are others, or one twice."""
    if games is None:
        return np.arange(count)
    given = np.asarray(games)
    if given.dtype.kind not in "iu" or given.ndim != 1 or (given.size and not 0 <= given.min() <= given.max() < count):
        raise PyramidError(f"games: expected indices from 0 to {count - 1}, got {given!r}")
    return np.array(given, np.int64)


def _observe(rules: Rules, level: str, buffers: Arrays, index: NDArray[np.int64]) -> None:
    ranks, states, masks, facts, rows, _ = buffers
    observe_games(*packed(rules, level), ranks, states, index, masks, facts, rows)
