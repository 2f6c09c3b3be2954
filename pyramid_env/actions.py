"""Actions of many games: taking those of a caller, and drawing legal ones at random."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.bits import as_index, count_bits, lowest_bit, upper_half


@kernel
def take_actions(
    bits: NDArray[np.int64],
    actions: NDArray[np.int64],
    restart: NDArray[np.bool_],
    count: int,
    strict: bool,
    out_actions: NDArray[np.int64],
) -> int:
    """Copy actions, and return the game of the first that is refused; -1: there is none.

    Refused are those outside 0..count-1 and, if strict, masked ones, but not of games in ``restart``.
    """
    wrong = 0
    for b in range(actions.size):  # all of them without a jump, many at once: there hardly ever is one
        out_actions[b] = actions[b]
        wrong |= int(np.uint64(actions[b]) >= np.uint64(count)) & ~int(restart[b])
    if strict and wrong == 0:
        for b in range(actions.size):
            action = 0 if restart[b] else actions[b]
            wrong |= 1 & ~(bits[b, as_index(action >> 6)] >> (action & 63)) & ~int(restart[b])
    if wrong == 0:
        return -1
    for b in range(actions.size):
        action = actions[b]
        if restart[b]:
            continue
        if action < 0 or action >= count:
            return b
        if strict and not (bits[b, as_index(action >> 6)] >> (action & 63)) & 1:
            return b
    return -1


@kernel
def nth_action(words: NDArray[np.int64], n: Any) -> int:
    """The action that is marked in place n (from 0) of those marked; n must be less than their number."""
    for w in range(words.size):
        here = count_bits(words[w])
        if n < here:
            word = words[w]
            for _ in range(n):
                word &= word - 1
            return w * 64 + lowest_bit(word)
        n -= here
    return -1


@kernel
def random_actions(bits: NDArray[np.int64], numbers: NDArray[np.uint64], out_actions: NDArray[np.int64]) -> None:
    """For each game a legal action, each alike if the numbers are uniform over all uint64; 0 where there is none."""
    for b in range(bits.shape[0]):
        legal = 0
        for w in range(bits.shape[1]):
            legal += count_bits(bits[b, w])
        out_actions[b] = 0
        if legal:
            out_actions[b] = nth_action(bits[b], np.int64(upper_half(numbers[b], np.uint64(legal))))
