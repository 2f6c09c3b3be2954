"""Problem and instance: one question under one set of rules, and one deal, as the search's kernels take them.

A Problem is what all deals share. An Instance holds what is computed for one deal; its arrays are used again for the
next one, since fresh memory is slow at the first touch.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyramid_env.kernels import Table, table
from pyramid_env.rules import LAST_COUNTED_PASS, MSC_ROWS, Rules
from pyramid_env.solver.shapes import Shapes, shapes

CLEAR: Final = 0
WIN: Final = 1
SCORE: Final = 2
STEPS: Final = 3
"""Questions: can the pyramid be cleared, can the game be won, the best score, the fewest steps to the win."""

FREE_KINGS: Final = 0  # mask of the stock's kings that leave as soon as they are reached
UNPLACED_KINGS: Final = 1  # mask of free kings left out of the positions altogether
KINGS: Final = 2  # kings of the deal
OTHERS: Final = 3  # other cards of the deal
PASS_LIMIT: Final = 4  # passes that may be used; LAST_COUNTED_PASS + 1 = without limit
ROOT_SHAPE: Final = 5  # tables hold for this shape and those within it
ROOT_STOCK: Final = 6  # the stock cards that positions can hold
LATE_FROM: Final = 7  # ``late`` holds for this pass limit and later ones; above LAST_COUNTED_PASS: for none
EARLIEST: Final = 8  # for SCORE: no clear comes in an earlier pass; 0: none comes at all
MOST_STEPS: Final = 9  # for STEPS: longer lines are of no interest
NEED: Final = 10  # packed: more partners inside the pyramid than these need not be told apart
HASTE: Final = 11  # for STEPS: how much more than one made a step ahead weighs; with 0 the first win is a shortest one
REACHED: Final = 12  # for SCORE: the score of a line that is known, the root's own at least; only more is of interest
FIRST_PASS: Final = 13  # for STEPS: the pass of the root
FACTS: Final = 14


class Problem(NamedTuple):
    """What stays fixed for all deals."""

    table: Table
    shapes: Shapes
    question: int
    single: int  # one card a draw, so onto one pile
    one_label: int  # of two positions of a key the earlier one always makes the other needless
    close_piles: int  # kings on top of the waste leave at once in the last pass
    keep_apex: int  # the clear ends the game and may come too early: a last king of the pyramid need not leave at once
    keep_pass: int  # the score depends on the pass of the clear
    keep_cleared: int  # the pass of the clear is part of a position
    goal_all: int  # every card has to leave (never so for the question CLEAR)
    stock_pairs: int  # two cards from outside the pyramid can leave together
    drop_cards: int  # stock cards that can never leave nor stand in the way need no place in a position
    vectors: int  # searches are long enough to be worth vectors.py in place of the quick grid of relaxation.py
    apex_points: int  # msc points for emptying the apex's row: lost without the clear


class Instance(NamedTuple):
    """The tables of one deal. N shapes of the pyramid; packed counts as in packed.py."""

    ranks: NDArray[np.int8]  # (cards,)
    of_rank: NDArray[np.int64]  # (ranks + 1,) mask of the stock cards of each rank
    facts: NDArray[np.int64]  # (FACTS,)
    closed: NDArray[np.int32]  # (N,) the shape after all kings that can leave have left
    counts: NDArray[np.int64]  # (N,) packed number of pyramid cards of each rank
    most: NDArray[np.int64]  # (ranks + 1,) by the lower rank of two: pairs of them that the grid tells apart
    stride: NDArray[np.int64]  # (ranks + 1,) likewise: how far one more pair moves a point of the grid
    raisable: NDArray[np.int64]  # (ranks + 1,) likewise: bits of the points that have room for one more pair
    mates: NDArray[np.int64]  # (places,) bits of the later places whose card makes a pair with this one's
    pairings: NDArray[np.int64]  # (N,) bits of the grid's points that a shape can give, see relaxation.py
    first: NDArray[np.int32]  # (N,) where a shape's vectors begin
    size: NDArray[np.int32]  # (N,) how many they are
    vectors: NDArray[np.int64]  # (V,) packed maximal vectors
    worths: NDArray[np.int64]  # (V,) what an end of the way is worth, see worth.py
    found: NDArray[np.int64]  # (WIDEST + 2,) scratch space
    found_worth: NDArray[np.int64]  # (WIDEST + 2,) scratch space
    late: NDArray[np.int32]  # (LAST_COUNTED_PASS, N) the latest times that leave hope, by the last pass that is used
    ahead: NDArray[np.int16]  # (N, times) these three: see fewest.py; (N, 0) under other rules
    extra: NDArray[np.int16]  # (N, times)
    ends: NDArray[np.int16]  # (N, times)
    turned: NDArray[np.int64]  # (stock_size + 1,) scratch space
    burdens: NDArray[np.int64]  # (stock_size, stock_size + 1) scratch space


@lru_cache
def problem_of(rules: Rules, question: int) -> Problem:
    """The (cached) problem of a question."""
    single = rules.draw_count == 1
    goal_all = rules.goal == "all" and question != CLEAR
    return Problem(
        table=table(rules),
        shapes=shapes(rules.rows),
        question=question,
        single=int(single),
        one_label=int(single and question != STEPS),
        close_piles=int(question != STEPS and rules.passes is not None),
        keep_apex=int(question == SCORE and rules.goal == "pyramid"),
        keep_pass=int(question == SCORE and rules.scoring == "par"),
        keep_cleared=int(question == SCORE and rules.goal == "all" and rules.scoring == "par"),
        goal_all=int(goal_all),
        stock_pairs=int(rules.pair_stock_waste or rules.pair_waste_two or rules.pair_waste_tops),
        # Where the last draw ends the game a card that is only there to be drawn puts off the end.
        drop_cards=int(single and question in (CLEAR, WIN) and not goal_all and not rules.end_on_exhausted),
        vectors=int(not single or rules.decks > 1 or question == STEPS),
        apex_points=MSC_ROWS[rules.rows - 1] if rules.rows <= len(MSC_ROWS) else 0,
    )


def last_pass(rules: Rules) -> int:
    """The pass limit that leaves all passes of the rules."""
    return LAST_COUNTED_PASS + 1 if rules.passes is None else rules.passes


WIDEST: Final = 256
"""Vectors kept for one shape (a dozen is usual); where there are more, their elementwise maximum stands for all of
them, which forbids less and is never wrong."""


def new_instance(rules: Rules, vectors: int = 0) -> Instance:
    """Empty tables for deals of some rules, with room for ``vectors`` (0: twice as many as shapes)."""
    count = shapes(rules.rows).masks.size
    # One pile is a stack, a limit of passes makes times countable, and with the clear all draws are in the line.
    limited = rules.draw_count == 1 and rules.passes is not None and rules.goal == "pyramid"
    times = rules.passes * (rules.stock_size + 1) if limited and rules.passes is not None else 0
    return Instance(
        ranks=np.zeros(rules.cards, np.int8),
        of_rank=np.zeros(rules.ranks + 1, np.int64),
        facts=np.zeros(FACTS, np.int64),
        closed=np.zeros(count, np.int32),
        counts=np.zeros(count, np.int64),
        most=np.zeros(rules.ranks + 1, np.int64),
        stride=np.zeros(rules.ranks + 1, np.int64),
        raisable=np.zeros(rules.ranks + 1, np.int64),
        mates=np.zeros(rules.rows * (rules.rows + 1) // 2, np.int64),
        pairings=np.zeros(count, np.int64),
        first=np.zeros(count, np.int32),
        size=np.zeros(count, np.int32),
        vectors=np.zeros(vectors or 2 * count, np.int64),
        worths=np.zeros(vectors or 2 * count, np.int64),
        found=np.zeros(WIDEST + 2, np.int64),
        found_worth=np.zeros(WIDEST + 2, np.int64),
        late=np.zeros((LAST_COUNTED_PASS, count), np.int32),
        ahead=np.zeros((count, times), np.int16),
        extra=np.zeros((count, times), np.int16),
        ends=np.zeros((count, times), np.int16),
        turned=np.zeros(rules.stock_size + 1, np.int64),
        burdens=np.zeros((rules.stock_size, rules.stock_size + 1), np.int64),
    )
