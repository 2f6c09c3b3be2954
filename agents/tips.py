"""Tips: the advice that the rule pages give to people, as one agent of rules of thumb: no solver, no sampling.

Kings leave at once. A pair inside the pyramid comes before a pair with an outer card (waste or stock), that before a
draw; of several the one whose leaving exposes more, lies lower, so that the pyramid is worn down over its whole width,
covers cards that could take its like away, and leaves partners to spare. Never spend the last partners: after each move
every pyramid card must still have one, rank by rank and, taken from the bottom up, in the order in which the cards
cover each other. Two outer cards pair only where every card counts, once the pyramid can spare both. When every card
has been seen, play on in the head, by the same rules, and take the move that ends best.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent, Observations, checked_masks
from pyramid_env import kernels
from pyramid_env._numba import inlined_kernel, kernel
from pyramid_env.bits import count_bits, lowest_bit
from pyramid_env.geometry import geometry, row_column
from pyramid_env.kernels import CLEARED, CURSOR, MAX_MOVES, PASS, PYRAMID, STATE_COLUMNS, STOCK, Table, exposed_places
from pyramid_env.moves import Kind
from pyramid_env.observation import position_from_observation
from pyramid_env.rules import LAST_COUNTED_PASS, Rules

UNSEEN: Final = 0
"""Rank of a card that has not been seen."""

# What a move counts. The classes lie far apart, the points within a class are added.
AT_ONCE: Final = 1_000
PAIR_OF_PLACES: Final = 400
PAIR_WITH_PLACE: Final = 200
DRAW: Final = 0
NEEDLESS: Final = -100  # two outer cards where only the pyramid counts
SPENDS: Final = -500  # what the pyramid needs
LATE_DRAW: Final = -1_000  # without a limit of passes: once all is seen and nothing changes any more
EXPOSES: Final = 10  # a card that comes free
LOW: Final = 6  # a row further down
FREES_PARTNER: Final = 20  # a card below that could pair with it
SPARES: Final = 10  # a partner to spare
ENOUGH: Final = 2  # more to spare count no more

_KINGS: Final = (int(Kind.PLACE_KING), int(Kind.WASTE_KING), int(Kind.STOCK_KING))


class Head(NamedTuple):
    """What the player knows of the game, and where he counts. Ranks have index 0 for unseen cards."""

    table: Table
    ancestors: NDArray[np.int64]  # (P,) bits of all places that must leave before each place
    row_of: NDArray[np.int64]  # (P,) from 1
    copies: int  # cards of each rank
    inside: NDArray[np.int64]  # (ranks + 1,) cards of each rank left in the pyramid
    outside: NDArray[np.int64]  # (ranks + 1,) and outside it, unseen ones too
    mates: NDArray[np.int64]  # (P,) bits of the partners of a place
    kept: NDArray[np.int64]  # (P,) the partner kept for a place, -1 = none
    kept_for: NDArray[np.int64]  # (P,) the place that a partner is kept for, -1 = none
    asked_by: NDArray[np.int64]  # (P,) the place that last asked for a partner
    line: NDArray[np.int64]  # (5,) a position in the head
    moves: NDArray[np.int64]  # (MAX_MOVES,)
    later_moves: NDArray[np.int64]  # (MAX_MOVES,)


def new_head(rules: Rules) -> Head:
    """A head for games of some rules."""
    row_of = np.array([row_column(place)[0] for place in range(rules.places)], np.int64)
    by_rank = np.zeros(rules.ranks + 1, np.int64)
    return Head(
        table=kernels.table(rules),
        ancestors=np.array(geometry(rules.rows).ancestors),
        row_of=row_of,
        copies=rules.decks * rules.suits,
        inside=by_rank,
        outside=by_rank.copy(),
        mates=np.zeros(rules.places, np.int64),
        kept=np.zeros(rules.places, np.int64),
        kept_for=np.zeros(rules.places, np.int64),
        asked_by=np.zeros(rules.places, np.int64),
        line=np.zeros(STATE_COLUMNS, np.int64),
        moves=np.zeros(MAX_MOVES, np.int64),
        later_moves=np.zeros(MAX_MOVES, np.int64),
    )


# ---- counting partners -----------------------------------------------------------------------------------------------


@kernel
def rank_of(ranks: NDArray[np.int8], card: int) -> int:
    """The rank of a card as a plain number: an int8 would wrap round."""
    rank: int = 0 + np.int64(ranks[card])  # type: ignore[assignment]  # int64 is kernels' int
    return rank


@kernel
def count_ranks(head: Head, ranks: NDArray[np.int8], pyramid: int, stock: int) -> None:
    """Count the cards of each rank inside and outside the pyramid."""
    places = head.table.places
    head.inside[:] = 0
    head.outside[:] = head.copies
    for c in range(ranks.size):
        rank = ranks[c]
        if rank == UNSEEN:
            continue
        if c < places:
            head.outside[rank] -= 1
            head.inside[rank] += (pyramid >> c) & 1
        elif not (stock >> (c - places)) & 1:
            head.outside[rank] -= 1


@kernel
def _find_mates(head: Head, ranks: NDArray[np.int8], pyramid: int, rank: int) -> int:
    """Write for each card of a rank its possible partners inside the pyramid; returns the bits of these cards.

    One that lies over its partner never meets it, unless the rules let it leave with its only cover.
    """
    t = head.table
    cards = 0
    for i in range(t.places):
        head.kept[i] = head.kept_for[i] = -1
        if not (pyramid >> i) & 1 or ranks[i] != rank:
            continue
        cards |= 1 << i
        head.mates[i] = 0
        for j in range(t.places):
            if not (pyramid >> j) & 1 or ranks[j] != t.ranks - rank:
                continue
            apart = not (head.ancestors[i] >> j) & 1 and not (head.ancestors[j] >> i) & 1
            touching = (t.covers[i] >> j) & 1 or (t.covers[j] >> i) & 1
            if apart or (t.overlap and touching):
                head.mates[i] |= 1 << j
    return cards


@kernel
def most_pairs(head: Head, ranks: NDArray[np.int8], pyramid: int, rank: int) -> int:
    """The most pairs that the cards of a rank can make inside the pyramid."""
    left = _find_mates(head, ranks, pyramid, rank)
    pairs = 0
    while left:
        card = lowest_bit(left)
        left &= left - 1
        pairs += _keep_partner(head, card)
    return pairs


@kernel
def _keep_partner(head: Head, card: int) -> int:
    """Keep a partner for a card, giving others another one where that helps; 1 if there is one, else 0."""
    tried, waiting = 0, 1 << card
    while waiting:
        one = lowest_bit(waiting)
        waiting &= waiting - 1
        free = head.mates[one] & ~tried
        tried |= free
        while free:
            mate = lowest_bit(free)
            free &= free - 1
            head.asked_by[mate] = one
            if head.kept_for[mate] >= 0:
                waiting |= 1 << head.kept_for[mate]
                continue
            while mate >= 0:  # back along the way, each takes the partner that the next one gives up
                one = head.asked_by[mate]
                before = head.kept[one]
                head.kept_for[mate], head.kept[one] = one, mate
                mate = before
            return 1
    return 0


@kernel
def to_spare(head: Head, ranks: NDArray[np.int8], pyramid: int, rank: int) -> int:
    """Outer cards of a rank or its partner that the pyramid can spare, whichever is fewer; below 0: too few."""
    partner = head.table.ranks - rank
    inside, outside = head.inside, head.outside
    pairs = most_pairs(head, ranks, pyramid, rank)
    spare: int = min(outside[partner] - (inside[rank] - pairs), outside[rank] - (inside[partner] - pairs))
    return spare


@kernel
def comes_apart(head: Head, ranks: NDArray[np.int8], pyramid: int, stock: int) -> bool:
    """Does the pyramid come apart card by card, if every outer card were at hand? Each time what spares most leaves.

    A thumb's rule, not a proof. Counts anew.
    """
    king, inside, outside = head.table.ranks, head.inside, head.outside
    count_ranks(head, ranks, pyramid, stock)
    while pyramid:
        exposed = exposed_places(head.table, pyramid)
        best, cards, partner_outside = -1, 0, 0
        left = exposed
        while left:
            one = left & -left
            left ^= one
            rank = rank_of(ranks, lowest_bit(one))
            if rank == king:
                best, cards, partner_outside = 0, one, 0
                break
            others = left
            while others:
                other = others & -others
                others ^= other
                if ranks[lowest_bit(other)] == king - rank:
                    inside[rank] -= 1
                    inside[king - rank] -= 1
                    spare = to_spare(head, ranks, pyramid ^ one ^ other, rank)
                    inside[rank] += 1
                    inside[king - rank] += 1
                    if spare >= 0 and spare + PAIR_OF_PLACES > best:
                        best, cards, partner_outside = spare + PAIR_OF_PLACES, one | other, 0
            if outside[king - rank] > 0:
                inside[rank] -= 1
                outside[king - rank] -= 1
                spare = to_spare(head, ranks, pyramid ^ one, rank)
                inside[rank] += 1
                outside[king - rank] += 1
                if spare > best:
                    best, cards, partner_outside = spare, one, king - rank
        if best < 0:
            return False
        pyramid ^= cards
        if partner_outside:
            outside[partner_outside] -= 1
        while cards:
            inside[ranks[lowest_bit(cards)]] -= 1
            cards &= cards - 1
    return True


# ---- rating moves ----------------------------------------------------------------------------------------------------


@kernel
def rate(head: Head, ranks: NDArray[np.int8], state: NDArray[np.int64], action: int) -> int:
    """How good a legal move looks by the rules of thumb; larger is better."""
    t = head.table
    pyramid, stock = state[PYRAMID], state[STOCK]
    if action == t.actions - 1:
        return LATE_DRAW if t.passes == 0 and state[PASS] == LAST_COUNTED_PASS else DRAW
    after = kernels.apply(t, pyramid, stock, state[CURSOR], state[PASS], state[CLEARED], action)
    places, outer = pyramid & ~after[0], stock & ~after[1]
    if t.moves[action, 0] in _KINGS or after[0] == 0:
        return AT_ONCE
    if places == 0 and not t.goal_all:
        return NEEDLESS
    rank = rank_of(ranks, lowest_bit(places) if places else t.places + lowest_bit(outer))
    count_ranks(head, ranks, pyramid, stock)
    before = to_spare(head, ranks, pyramid, rank)
    count_ranks(head, ranks, after[0], after[1])
    spare = to_spare(head, ranks, after[0], rank)
    if spare < 0 <= before:
        return SPENDS + spare
    if spare >= 0 and not comes_apart(head, ranks, after[0], after[1]) and comes_apart(head, ranks, pyramid, stock):
        return SPENDS
    kind = PAIR_WITH_PLACE if outer and places else PAIR_OF_PLACES
    return kind + SPARES * min(spare, ENOUGH) + points_of_places(head, ranks, pyramid, places)


@kernel
def points_of_places(head: Head, ranks: NDArray[np.int8], pyramid: int, places: int) -> int:
    """What the places are worth that become empty."""
    t = head.table
    fresh = exposed_places(t, pyramid & ~places) & ~exposed_places(t, pyramid)
    points: int = EXPOSES * count_bits(fresh)
    while places:
        i = lowest_bit(places)
        places &= places - 1
        points += LOW * head.row_of[i]
        for j in range(t.places):
            if (pyramid >> j) & 1 and (head.ancestors[j] >> i) & 1 and ranks[i] + ranks[j] == t.ranks:
                points += FREES_PARTNER
    return points


@inlined_kernel
def _best(head: Head, ranks: NDArray[np.int8], state: NDArray[np.int64], moves: NDArray[np.int64], count: int) -> int:
    """The best looking of some moves."""
    chosen: int = moves[0]
    if count > 1:
        best = rate(head, ranks, state, chosen)
        for m in range(1, count):
            points = rate(head, ranks, state, moves[m])
            if points > best:
                best, chosen = points, moves[m]
    return chosen


@kernel
def ending(head: Head, ranks: NDArray[np.int8], state: NDArray[np.int64], action: int) -> int:
    """How well the game ends if it goes on with a move and then by the rules of thumb; every card must be known."""
    t, line = head.table, head.line
    for column in range(STATE_COLUMNS):
        line[column] = state[column]
    kernels.step(t, line, action)
    while True:
        count = kernels.list_moves(t, ranks, line[0], line[1], line[2], line[3], head.later_moves)
        if count == 0:
            break
        kernels.step(t, line, _best(head, ranks, line, head.later_moves, count))
    won = kernels.is_won(t, line[PYRAMID], line[STOCK])
    score = kernels.score(t, ranks, line[PYRAMID], line[STOCK], line[CLEARED])
    points: int = (won << 20) + (score << 6) - count_bits(line[PYRAMID])
    return points


@kernel
def choose_all(
    head: Head,
    ranks: NDArray[np.int8],
    states: NDArray[np.int64],
    masks: NDArray[np.bool_],
    out_actions: NDArray[np.int64],
) -> None:
    """Choose a legal action in each of B positions: ranks (B, cards), states (B, 5), masks (B, A)."""
    for b in range(states.shape[0]):
        count = 0
        for action in range(masks.shape[1]):
            if masks[b, action]:
                head.moves[count] = action
                count += 1
        known = True
        for c in range(ranks.shape[1]):
            known = known and ranks[b, c] != UNSEEN
        chosen = _best(head, ranks[b], states[b], head.moves, count)
        if known and count > 1 and rate(head, ranks[b], states[b], chosen) < AT_ONCE:
            best, points = ending(head, ranks[b], states[b], chosen), 0
            for m in range(count):
                if head.moves[m] != chosen:
                    points = ending(head, ranks[b], states[b], head.moves[m])
                    if points > best:
                        best, chosen = points, head.moves[m]
        out_actions[b] = chosen


class TipsAgent(Agent):
    """Plays by the rules of thumb above, from observations of the level ``memory``: it knows no unseen card."""

    name = "tips"
    level = "memory"

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self._head: Final = new_head(rules)

    def act(
        self, observations: Observations, action_masks: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See :meth:`Agent.act`."""
        masks = checked_masks(action_masks)
        ranks, states = position_from_observation(self.rules, observations)
        chosen = np.empty(len(masks), np.int64)
        choose_all(self._head, ranks, states, np.ascontiguousarray(masks), chosen)
        return chosen
