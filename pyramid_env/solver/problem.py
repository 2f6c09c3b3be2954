"""Problem: one deal, one set of rules and one question, as the integers and tables that the search's kernels take."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env._numba import kernel
from pyramid_env.kernels import CURSOR, STOCK, Table, count_bits, table
from pyramid_env.rules import MSC_REMOVAL, MSC_ROWS, PAR_BONUS, SCORINGS, Rules
from pyramid_env.solver.relaxation import FIELD, SUM_SHIFT, Relaxation, build_relaxation, covers_vector
from pyramid_env.solver.shapes import Shapes, shapes

CLEAR: Final = 0
WIN: Final = 1
SCORE: Final = 2
STEPS: Final = 3
"""Questions: can the pyramid be cleared, can the game be won, the best score, the fewest steps to the win."""

DEAD: Final = -(1 << 30)

_PAR: Final = SCORINGS.index("par")
_BONUS: Final = PAR_BONUS
_REMOVAL_POINTS: Final = MSC_REMOVAL


class Problem(NamedTuple):
    """What stays fixed during one search. Masks are of stock cards unless they say otherwise."""

    table: Table
    shapes: Shapes
    relaxation: Relaxation
    ranks: NDArray[np.int8]  # (cards,)
    of_rank: NDArray[np.int64]  # (ranks + 1,) mask of each rank
    question: int
    single: int  # one card a draw, so onto one pile
    pass_limit: int  # passes that may be used; LAST_COUNTED_PASS + 1 = without limit
    free_kings: int  # mask of the kings that leave as soon as they are reached
    unplaced_kings: int  # mask of free kings left out of the positions altogether
    close_piles: int  # kings on top of the waste leave at once in the last pass
    keep_apex: int  # the clear ends the game and may come too early: a last king of the pyramid need not leave at once
    keep_pass: int  # the score depends on the pass of the clear
    keep_cleared: int  # the pass of the clear is part of a position
    goal_all: int  # every card has to leave (never so for the question CLEAR)
    stock_pairs: int  # two cards from outside the pyramid can leave together
    kings: int  # kings of the deal
    others: int  # other cards of the deal
    apex_points: int  # msc points for emptying the apex's row: lost without the clear


def build_problem(
    rules: Rules, ranks: NDArray[np.int8], state: NDArray[np.int64], question: int, pass_limit: int
) -> Problem:
    """The problem of a position of a deal; ``pass_limit`` as in :class:`Problem`."""
    switches = table(rules)
    all_shapes = shapes(rules.rows)
    stock_ranks = ranks[rules.places :]
    of_rank = np.zeros(rules.ranks + 1, np.int64)
    for k, rank in enumerate(stock_ranks):
        of_rank[rank] |= 1 << k
    single = rules.draw_count == 1
    # A free king costs nothing only where time is not counted in steps and drawing the last card does not end the game.
    free = single and not rules.end_on_exhausted and question != STEPS
    free_kings = int(of_rank[rules.ranks]) if free else 0
    # Those ahead leave in passing, whatever happens, and so need no place in a position, unless each card counts.
    ahead = int(state[STOCK]) & -(1 << int(state[CURSOR]))
    unplaced = free_kings & ahead if question != SCORE else 0
    kings = int((ranks == rules.ranks).sum())
    return Problem(
        table=switches,
        shapes=all_shapes,
        relaxation=build_relaxation(switches, all_shapes, ranks),
        ranks=ranks,
        of_rank=of_rank,
        question=question,
        single=int(single),
        pass_limit=pass_limit,
        free_kings=free_kings,
        unplaced_kings=unplaced,
        close_piles=int(question != STEPS and rules.passes is not None),
        keep_apex=int(question == SCORE and rules.goal == "pyramid"),
        keep_pass=int(question == SCORE and rules.scoring == "par"),
        keep_cleared=int(question == SCORE and rules.goal == "all" and rules.scoring == "par"),
        goal_all=int(rules.goal == "all" and question != CLEAR),
        stock_pairs=int(rules.pair_stock_waste or rules.pair_waste_two or rules.pair_waste_tops),
        kings=kings,
        others=rules.cards - kings,
        apex_points=MSC_ROWS[rules.rows - 1] if rules.rows <= len(MSC_ROWS) else 0,
    )


@kernel
def needed(problem: Problem, shape: int, stock: int) -> int:
    """Packed least numbers of pairs inside the pyramid, without which the stock can't serve what is left of it."""
    king = problem.table.ranks
    need = 0
    for pair in range((king - 1) // 2):
        low = (problem.relaxation.low[shape] >> (FIELD * pair)) & 15
        high = (problem.relaxation.high[shape] >> (FIELD * pair)) & 15
        stock_low = count_bits(stock & problem.of_rank[pair + 1])
        stock_high = count_bits(stock & problem.of_rank[king - 1 - pair])
        need |= max(low - stock_high, high - stock_low, 0) << (FIELD * pair)
    return need


@kernel
def can_clear(problem: Problem, shape: int, stock: int) -> bool:
    """False: the pyramid can't be cleared from here, whatever the order of the stock."""
    need = needed(problem, shape, stock)
    relaxation = problem.relaxation
    for at in range(relaxation.first[shape], relaxation.first[shape] + relaxation.size[shape]):
        if covers_vector(relaxation.vectors[at], need):
            return True
    return False


@kernel
def best_score(problem: Problem, shape: int, stock: int, pass_number: int, cleared: int) -> int:
    """No line from here scores more (par or msc)."""
    king = problem.table.ranks
    low, high = problem.relaxation.low[shape], problem.relaxation.high[shape]
    stays = 0  # cards that can't leave: without pairs outside the pyramid each pair needs a pyramid card
    left = 0  # cards left but for kings
    for pair in range((king - 1) // 2):
        inside = ((low >> (FIELD * pair)) & 15) + ((high >> (FIELD * pair)) & 15)
        outside = count_bits(stock & (problem.of_rank[pair + 1] | problem.of_rank[king - 1 - pair]))
        left += inside + outside
        if not problem.stock_pairs:
            stays += max(outside - inside, 0)
    clears = cleared > 0 or can_clear(problem, shape, stock)
    if problem.table.scoring == _PAR:
        if cleared > 0:
            return _BONUS[cleared] - stays
        return _BONUS[pass_number] - stays if clears else -max(stays, 1)
    removals = problem.kings + (problem.others - left) // 2 + (left - stays) // 2
    points: int = problem.shapes.row_points[problem.shapes.masks.size - 1]
    if not clears:
        points -= problem.apex_points
    return _REMOVAL_POINTS * removals + points


@kernel
def score_here(problem: Problem, shape: int, stock: int, cleared: int) -> int:
    """The score if nothing more leaves (par or msc)."""
    pyramid = problem.shapes.masks[shape]
    left = count_bits(pyramid) + count_bits(stock)
    if problem.table.scoring == _PAR:
        return _BONUS[cleared] - left
    points: int = problem.shapes.row_points[shape]
    return points + _REMOVAL_POINTS * _removals_done(problem, pyramid, stock)


@kernel
def _kings_left(problem: Problem, pyramid: int, stock: int) -> int:
    king = problem.table.ranks
    kings = count_bits(stock & problem.of_rank[king])
    left = pyramid
    while left:
        bit = left & -left
        left ^= bit
        if problem.ranks[count_bits(bit - 1)] == king:
            kings += 1
    return kings


@kernel
def _removals_done(problem: Problem, pyramid: int, stock: int) -> int:
    """Removals that led here: a king alone, all others two by two."""
    kings = _kings_left(problem, pyramid, stock)
    others = count_bits(pyramid) + count_bits(stock) - kings
    return problem.kings - kings + (problem.others - others) // 2


@kernel
def fewest_removals(problem: Problem, shape: int, pyramid: int, stock: int) -> int:
    """No win takes fewer further removals; -1: there is no win."""
    need = needed(problem, shape, stock)
    inner = -1  # the most pairs inside the pyramid on a relaxed way to the clear
    relaxation = problem.relaxation
    for at in range(relaxation.first[shape], relaxation.first[shape] + relaxation.size[shape]):
        if covers_vector(relaxation.vectors[at], need):
            inner = max(inner, relaxation.vectors[at] >> SUM_SHIFT)
    if inner < 0:
        return -1
    if problem.goal_all:
        kings = _kings_left(problem, pyramid, stock)
        return kings + (count_bits(pyramid) + count_bits(stock) - kings) // 2
    return count_bits(pyramid) - inner
