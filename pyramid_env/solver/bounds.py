"""Bounds: what a position can still come to at best, and which of its cards can no longer matter."""

from __future__ import annotations

from typing import Final

from pyramid_env._numba import inlined_kernel
from pyramid_env.bits import count_bits, highest_bit, lowest_bit
from pyramid_env.rules import LAST_COUNTED_PASS, MSC_REMOVAL, PAR_BONUS, SCORINGS
from pyramid_env.solver.lateness import time_of
from pyramid_env.solver.packed import FIELD, NUMBER, absent, count_of, covers_vector, excess, one_of, total
from pyramid_env.solver.positions import below
from pyramid_env.solver.problem import EARLIEST, KINGS, LATE_FROM, OTHERS, PASS_LIMIT, Instance, Problem
from pyramid_env.solver.relaxation import can_meet, partners
from pyramid_env.solver.worth import best_worth

_PAR: Final = SCORINGS.index("par")
_BONUS: Final = PAR_BONUS
_REMOVAL_POINTS: Final = MSC_REMOVAL
NO_WAY: Final = -1
FAR: Final = 1 << 20


@inlined_kernel
def stuck_waste(problem: Problem, instance: Instance, shape: int, stock: int, cursor: int) -> int:
    """The waste cards that can't leave any more in the last pass: from the topmost down that has too few partners.

    Of the cards of a rank, counted from the top of the waste, no more can leave than there are cards to pair with: in
    the pyramid, and where the rules allow also outside it.
    """
    waste = stock & below(cursor)
    if waste == 0:
        return 0
    table, places = problem.table, problem.table.places
    supply = instance.counts[shape]
    if problem.stock_pairs:
        others = stock if table.waste_two else stock & ~below(cursor)
        for rank in range(1, table.ranks):
            supply += count_bits(others & instance.of_rank[rank]) * one_of(rank)
    left = waste
    while left:
        k = highest_bit(left)
        left ^= 1 << k
        rank = 0 + instance.ranks[places + k]
        if rank == table.ranks:
            continue
        if count_of(supply, table.ranks - rank) == 0:
            return waste & below(k + 1)
        supply -= one_of(table.ranks - rank)
    return 0


@inlined_kernel
def idle_cards(problem: Problem, instance: Instance, shape: int, stock: int) -> int:
    """Stock cards that make no difference to the clear.

    A card without a partner anywhere stays for good. All it does is to bury what lies under it, and for that one such
    card between two others is as good as several.
    """
    king = problem.table.ranks
    lonely = 0
    missing = absent(instance.counts[shape], king)
    while missing:
        rank = lowest_bit(missing) // FIELD + 1
        missing &= missing - 1
        if not problem.stock_pairs or stock & instance.of_rank[rank] == 0:
            lonely |= instance.of_rank[king - rank]
    left = stock & lonely
    idle = 0
    while left:
        card = left & -left
        left ^= card
        under = highest_bit(stock & (card - 1))
        if under < 0 or (lonely >> under) & 1:
            idle |= card
    return idle


@inlined_kernel
def is_late(problem: Problem, instance: Instance, shape: int, cursor: int, pass_number: int) -> bool:
    """Is it too late to clear the pyramid within the pass limit?"""
    limit = instance.facts[PASS_LIMIT]
    return limit >= instance.facts[LATE_FROM] and time_of(cursor, pass_number) > instance.late[limit - 1, shape]


@inlined_kernel
def earliest_clear(problem: Problem, instance: Instance, shape: int, cursor: int, pass_number: int) -> int:
    """No clear comes in an earlier pass than this, if one comes at all; NO_WAY if it is too late for any."""
    limit = instance.facts[PASS_LIMIT]
    if limit > LAST_COUNTED_PASS:
        return pass_number
    time = time_of(cursor, pass_number)
    for clear_pass in range(max(pass_number, instance.facts[LATE_FROM]), limit + 1):
        if time <= instance.late[clear_pass - 1, shape]:
            return clear_pass
    return pass_number if limit < instance.facts[LATE_FROM] else NO_WAY


@inlined_kernel
def best_score(
    problem: Problem, instance: Instance, shape: int, stock: int, cursor: int, pass_number: int, cleared: int
) -> int:
    """No line from here scores more (par or msc)."""
    king = problem.table.ranks
    counts = instance.counts[shape]
    stuck = 0
    if pass_number == instance.facts[PASS_LIMIT] and problem.one_label:
        stuck = stuck_waste(problem, instance, shape, stock, cursor)
    supply = partners(instance, stock & ~stuck)  # for each rank the number of partners outside
    stays = count_bits(
        stuck
    )  # cards that can't leave: without pairs outside the pyramid each pair needs a pyramid card
    left = 0  # cards left but for kings
    for rank in range(1, (king + 1) // 2):
        inside = count_of(counts, rank) + count_of(counts, king - rank)
        outside = count_of(supply, rank) + count_of(supply, king - rank)
        left += inside + outside
        if not problem.stock_pairs:
            stays += max(outside - inside, 0)
    if stuck:
        left += count_bits(stuck & ~instance.of_rank[king])
    if cleared == 0 and instance.facts[EARLIEST] == 0:
        return _best_end(problem, instance, shape, supply, left, stays)
    clears_in = cleared
    if cleared == 0 and can_meet(problem, instance, shape, stock & ~stuck):
        clears_in = earliest_clear(problem, instance, shape, cursor, pass_number)
        if clears_in > 0:
            clears_in = max(clears_in, instance.facts[EARLIEST])
    if problem.table.scoring == _PAR:
        return _BONUS[clears_in] - stays if clears_in > 0 else -max(stays, 1)
    removals = instance.facts[KINGS] + (instance.facts[OTHERS] - left) // 2 + (left - stays) // 2
    points: int = problem.shapes.row_points[problem.shapes.masks.size - 1]
    if clears_in <= 0:
        points -= problem.apex_points
    return _REMOVAL_POINTS * removals + points


@inlined_kernel
def _best_end(problem: Problem, instance: Instance, shape: int, supply: int, left: int, stays: int) -> int:
    """No line from here scores more, in a deal that can't be cleared; see worth.py. ``left`` are the cards left but for
    kings, ``stays`` cards that can't leave."""
    worth = best_worth(instance, shape, supply)
    base = 0 if problem.stock_pairs else left - 2 * total(instance.counts[shape])
    if problem.table.scoring == _PAR:
        return min(worth - base, -stays)
    return worth + _REMOVAL_POINTS * (instance.facts[KINGS] + (instance.facts[OTHERS] - base) // 2)


@inlined_kernel
def score_here(problem: Problem, instance: Instance, shape: int, stock: int, cleared: int) -> int:
    """The score if nothing more leaves (par or msc)."""
    left = problem.shapes.cards[shape] + count_bits(stock)
    if problem.table.scoring == _PAR:
        return _BONUS[cleared] - left
    points: int = problem.shapes.row_points[shape]
    return points + _REMOVAL_POINTS * _removals_done(problem, instance, shape, stock)


@inlined_kernel
def _kings_left(problem: Problem, instance: Instance, shape: int, stock: int) -> int:
    kings = count_bits(stock & instance.of_rank[problem.table.ranks])
    return kings + problem.shapes.cards[shape] - total(instance.counts[shape])


@inlined_kernel
def _removals_done(problem: Problem, instance: Instance, shape: int, stock: int) -> int:
    """Removals that led here: a king alone, all others two by two."""
    kings = _kings_left(problem, instance, shape, stock)
    others = problem.shapes.cards[shape] + count_bits(stock) - kings
    return instance.facts[KINGS] - kings + (instance.facts[OTHERS] - others) // 2


@inlined_kernel
def fewest_steps(
    problem: Problem, instance: Instance, shape: int, stock: int, cursor: int, pass_number: int, supply: int
) -> int:
    """No win takes fewer further steps; NO_WAY: there is no win. ``supply`` as of ``partners``.

    Each pair inside the pyramid takes two of its cards, each other removal one (and cards left but for kings have to
    leave). So with P cards in the pyramid, i pairs inside it and T cards to be turned the removals are P - i, and where
    the stock's top is playable each of the P - 2 i stock cards may have been spared its turning.
    """
    counts = instance.counts[shape]
    others = total(counts)
    kings = problem.shapes.cards[shape] - others
    need = excess(counts, supply)
    if problem.goal_all:
        if not can_meet(problem, instance, shape, stock):
            return NO_WAY
        kings += count_bits(stock & instance.of_rank[problem.table.ranks])
        return kings + (problem.shapes.cards[shape] + count_bits(stock) - kings) // 2
    ahead = stock & ~below(cursor)
    clear_pass = pass_number
    if problem.single:
        clear_pass = max(
            earliest_clear(problem, instance, shape, cursor, pass_number), instance.facts[EARLIEST], pass_number
        )
    least = fewest_inner_pairs(problem, need)
    fewest = FAR
    for at in range(instance.first[shape], instance.first[shape] + instance.size[shape]):
        vector = instance.vectors[at]
        if not covers_vector(vector, need):
            continue
        most = total(vector) // 2
        if not problem.single:
            fewest = min(fewest, others - most)
            continue
        turned = ahead
        if clear_pass == pass_number:
            turned = ahead & below(_furthest(problem, instance, stock, cursor, excess(counts, vector)))
        turns = count_bits(turned)
        if problem.table.stock_top:
            inner = min(max((others - turns) // 2, least), most)
            fewest = min(fewest, max(others - inner, turns + inner))
        else:
            fewest = min(fewest, others - most + turns)
    return NO_WAY if fewest == FAR else kings + fewest + clear_pass - pass_number


@inlined_kernel
def fewest_inner_pairs(problem: Problem, need: int) -> int:
    """The pairs inside the pyramid that have to be, for want of partners in the stock."""
    least = 0
    if need:
        for rank in range(1, (problem.table.ranks + 1) // 2):
            least += max(count_of(need, rank), count_of(need, problem.table.ranks - rank))
    return least


@inlined_kernel
def _furthest(problem: Problem, instance: Instance, stock: int, cursor: int, demand: int) -> int:
    """How far the cursor has to go in this pass until the stock has served a demand (packed, by the rank served)."""
    king = problem.table.ranks
    furthest = 0
    left = demand
    while left:
        rank = lowest_bit(left) // FIELD + 1
        missing = count_of(left, rank)
        left &= ~(NUMBER << (FIELD * (rank - 1)))
        cards = stock & instance.of_rank[king - rank]
        missing -= count_bits(cards & below(cursor))
        cards &= ~below(cursor)
        while missing > 1:
            cards &= cards - 1
            missing -= 1
        if missing > 0 and cards:
            furthest = max(furthest, lowest_bit(cards) + 1)
    return furthest - 1 if problem.table.stock_top and furthest > 0 else furthest
