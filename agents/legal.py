"""Legal moves as short lists: from mask bits to (B, K) actions, and choosing among them by the policy's logits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agents.tokens import compiled
from pyramid_env.bits import count_bits, lowest_bit

NO_ACTION = -1
"""Fills up the rows of games with fewer legal actions than others."""


def legal_lists(bits: NDArray[np.int64]) -> NDArray[np.int16]:
    """The legal actions of each row, ascending, filled up with NO_ACTION.

    Args:
        bits: (B, words) action a is bit a % 64 of word a // 64.

    Returns:
        (B, K) int16, K the most legal actions of a row, 1 at least.
    """
    actions = np.full((len(bits), max(1, _most(bits))), NO_ACTION, np.int16)
    _list(bits, actions)
    return actions


def mask_bits(masks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(B, words) bits of (B, A) masks, true = legal."""
    words = -(-masks.shape[1] // 64)
    packed = np.zeros((len(masks), words * 8), np.uint8)
    given = np.packbits(masks, axis=1, bitorder="little")
    packed[:, : given.shape[1]] = given
    return packed.view(np.int64)


@compiled
def _most(bits: NDArray[np.int64]) -> int:
    most = 0
    for b in range(bits.shape[0]):
        here = 0
        for w in range(bits.shape[1]):
            here += count_bits(bits[b, w])
        most = max(most, here)
    return most


@compiled
def _list(bits: NDArray[np.int64], out_actions: NDArray[np.int16]) -> None:
    for b in range(bits.shape[0]):
        k = 0
        for w in range(bits.shape[1]):
            word = bits[b, w]
            while word:
                out_actions[b, k] = w * 64 + lowest_bit(word)
                word &= word - 1
                k += 1


@compiled
def draw_slots(
    logits: NDArray[np.float32],
    numbers: NDArray[np.float64],
    out_slots: NDArray[np.int64],
    out_log_probs: NDArray[np.float32],
) -> bool:
    """Draw a column of each row with the probabilities softmax(logits).

    Args:
        logits: (B, K); MASKED_LOGIT where there is no action, a real one in column 0.
        numbers: (B,) from [0, 1).
        out_slots: (B,) gets the column.
        out_log_probs: (B,) gets the log-probability of that column.

    Returns:
        Whether all logits were finite; if not, nothing that was drawn is worth anything.
    """
    finite = True
    for b in range(logits.shape[0]):
        top = logits[b, 0]
        for k in range(logits.shape[1]):
            finite = finite and np.isfinite(logits[b, k])
            top = max(top, logits[b, k])
        total = 0.0
        for k in range(logits.shape[1]):
            total += np.exp(np.float64(logits[b, k] - top))
        left, slot = numbers[b] * total, 0
        for k in range(logits.shape[1]):
            weight = np.exp(np.float64(logits[b, k] - top))
            if weight > 0.0:
                slot = k  # where rounding leaves something of ``left`` at the end: the last that can be
                left -= weight
                if left < 0.0:
                    break
        out_slots[b] = slot
        out_log_probs[b] = logits[b, slot] - top - np.log(total)
    return finite
