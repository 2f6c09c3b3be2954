"""Worlds: whole deals that agree with all that a player has seen, each as likely as any other."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.bits import upper_half
from pyramid_env.deal import GAMMA, mix
from pyramid_env.rules import Rules
from pyramid_env.solver.result import SolverError

UNSEEN: Final = 0
"""The rank of a card that has not been seen."""


def sample_worlds(rules: Rules, ranks: NDArray[np.int8], count: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Deals that a player holds possible: the cards not seen yet in every order alike.

    Args:
        rules: whose deck it is.
        ranks: (N, cards) what a player knows, as of ``position_from_observation``: 0 for a card not seen.
        count: K, worlds a position.
        rng: drawn from once, for N numbers.

    Returns:
        (N, K, cards) int8 ranks of whole decks.

    Raises:
        SolverError: a count below 1, ranks of another shape, or more cards of a rank than the deck has.
    """
    known = checked_knowledge(rules, ranks)
    if count < 1:
        raise SolverError(f"worlds: expected 1 or more, got {count}")
    out = np.empty((len(known), count, rules.cards), np.int8)
    fill_worlds(known, rules.ranks, rules.decks * rules.suits, world_seeds(rng, len(known)), out)
    return out


def checked_knowledge(rules: Rules, ranks: NDArray[np.int8]) -> NDArray[np.int8]:
    """The ranks (N, cards) as the kernels take them; SolverError names the first bad row."""
    known = np.array(ranks, np.int8)
    if known.ndim != 2 or known.shape[1] != rules.cards:
        raise SolverError(f"ranks: expected shape (N, {rules.cards}), got {known.shape}")
    copies = rules.decks * rules.suits
    wrong = ((known < UNSEEN) | (known > rules.ranks)).any(axis=1)
    for rank in range(1, rules.ranks + 1):
        wrong |= (known == rank).sum(axis=1) > copies
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        expected = f"ranks from 1 to {rules.ranks}, {copies} of each at most, or 0 for a card not seen"
        raise SolverError(f"ranks[{row}]: expected {expected}; got {known[row].tolist()}")
    return known


def world_seeds(rng: np.random.Generator, count: int) -> NDArray[np.uint64]:
    """(count,) a seed for the worlds of each position."""
    return rng.integers(0, 2**64, size=count, dtype=np.uint64)


@kernel
def fill_worlds(
    ranks: NDArray[np.int8], highest: int, copies: int, seeds: NDArray[np.uint64], out_worlds: NDArray[np.int8]
) -> None:
    """Write (N, K, cards) worlds of (N, cards) known ranks; the same seed gives the same ones, fewer or more.

    Fisher-Yates over the cards not seen, from the last down: card i changes with card j, the upper half of x (i + 1),
    x the next number of SplitMix64.
    """
    cards = ranks.shape[1]
    for n in range(ranks.shape[0]):
        state = mix(seeds[n] + GAMMA)
        for w in range(out_worlds.shape[1]):
            if w == 0:
                unseen = _fill_in_order(ranks[n], highest, copies, out_worlds[n, 0])
            else:  # one uniform order shuffled is another
                for c in range(cards):
                    out_worlds[n, w, c] = out_worlds[n, w - 1, c]
            world = out_worlds[n, w]
            last = cards - 1
            for left in range(unseen, 1, -1):
                while ranks[n, last] != UNSEEN:  # the cards not seen need not lie side by side
                    last -= 1
                state += GAMMA
                nth = np.int64(upper_half(mix(state), np.uint64(left)))
                other = 0
                while nth > 0 or ranks[n, other] != UNSEEN:
                    nth -= ranks[n, other] == UNSEEN
                    other += 1
                world[last], world[other] = world[other], world[last]
                last -= 1


@kernel
def _fill_in_order(ranks: NDArray[np.int8], highest: int, copies: int, out_world: NDArray[np.int8]) -> int:
    """Write the known ranks and, in rising order, those that are missing; returns how many these are."""
    rank = left = unseen = 0
    for c in range(ranks.size):
        out_world[c] = ranks[c]
        if ranks[c] != UNSEEN:
            continue
        unseen += 1
        while left == 0 and rank < highest:
            rank += 1
            left = copies
            for other in range(ranks.size):
                left -= ranks[other] == rank
        left -= 1
        out_world[c] = rank
    return unseen
