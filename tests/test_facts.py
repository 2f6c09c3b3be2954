"""Facts of the game that can be counted: shapes, pairs, lengths, limits of the scores, positions by depth."""

from __future__ import annotations

from itertools import combinations
from math import comb

import bruteforce
import numpy as np
import pytest
from reference import read_ranks

import pyramid_env as pe
from pyramid_env import kernels
from pyramid_env.deal import Deal
from pyramid_env.game import Game
from pyramid_env.geometry import geometry
from pyramid_env.moves import move_table
from pyramid_env.rules import MSC_REMOVAL, MSC_ROWS

EVERYTHING_FITS = """
              K
             K K
            K 7 8
           9 T J Q
          7 8 9 T J
         Q 7 8 9 T J
        Q 7 8 9 T J Q      A23456 A23456 A23456 A23456
"""
"""From the last place up each card makes 13 with the next card of the stock; four kings wait on top."""

THREE_DEALS = (
    "94J856JJ9QQ457QT4K2T839TAA6A837A78Q34T56K2K97K3J6522",
    "K4AK5623Q8587K954933QTJK6TJQTA4A7QJT297672A894258J36",
    "5JJJ5A65Q928479QTQ445KA937KT87326A8K69A728J63243QTTK",
)

POSITIONS_BY_DEPTH = {
    "pyramid": (
        (1, 2, 2, 3, 4, 6, 7, 9, 12, 25, 47, 71, 107),
        (1, 2, 2, 3, 4, 5, 7, 10, 12, 13, 15, 23, 34),
        (1, 4, 7, 8, 10, 13, 15, 19, 26, 36, 54, 82, 119),
    ),
    "till_dawn": (
        (1, 2, 3, 6, 9, 13, 16, 36, 86, 181, 391, 696, 1035),
        (1, 2, 3, 5, 7, 12, 21, 31, 40, 62, 97, 156, 245),
        (1, 4, 7, 10, 15, 21, 29, 43, 70, 126, 222, 376, 604),
    ),
    "microsoft": (
        (1, 2, 3, 6, 9, 13, 16, 36, 86, 181, 391, 696, 1034),
        (1, 2, 3, 5, 7, 12, 21, 31, 39, 59, 92, 150, 237),
        (1, 4, 7, 10, 15, 21, 29, 43, 70, 126, 222, 376, 604),
    ),
    "pysol": (
        (1, 3, 6, 9, 13, 16, 36, 86, 181, 391, 696, 1034, 1614),
        (1, 3, 5, 7, 12, 21, 31, 39, 59, 92, 150, 237, 385),
        (1, 4, 8, 13, 19, 27, 40, 64, 113, 200, 342, 547, 823),
    ),
    "solitaire13_three_piles": (
        (1, 2, 4, 7, 14, 40, 97, 187, 360, 706),
        (1, 2, 3, 7, 18, 41, 90, 191, 427, 910),
        (1, 4, 8, 12, 21, 40, 75, 143, 270, 521),
    ),
    "tuts_tomb": (
        (1, 2, 3, 5, 6, 9, 17, 29, 45, 64, 86, 115, 149),
        (1, 2, 2, 2, 4, 6, 7, 12, 19, 23, 25, 28, 30),
        (1, 4, 8, 11, 13, 18, 29, 44, 61, 81, 112, 162, 240),
    ),
    "overlap": (
        (1, 2, 3, 4, 6, 9, 15, 19, 28, 44, 77, 126, 202),
        (1, 2, 2, 3, 4, 5, 7, 11, 16, 19, 22, 31, 48),
        (1, 4, 8, 11, 14, 17, 21, 26, 34, 47, 70, 105, 155),
    ),
    "giza": (
        (1, 7, 26, 70, 156, 299),
        (1, 8, 40, 152, 467, 1161),
        (1, 14, 72, 239, 625, 1377),
    ),
}
"""Different positions after exactly 0, 1, 2 .. moves, for each of the three deals."""

MINI_GAMES = {
    ("mini", "7 6A 423 5A763425"): (
        *(1, 2, 3, 4, 6, 10, 12, 18, 25, 31, 39, 48, 58, 70, 88, 113, 144, 176, 206, 234, 254),
        *(269, 285, 304, 308, 293, 262, 216, 161, 103, 55, 24, 7, 1),
    ),
    ("mini_one_pass", "7 6A 423 5A763425"): (1, 2, 3, 4, 6, 10, 12, 18, 25, 30, 32, 28, 21, 13, 5, 1),
    ("mini", "A 72 635 4476532A"): (
        *(1, 1, 2, 3, 4, 6, 6, 6, 7, 11, 17, 25, 35, 45, 56, 65, 74, 85, 100, 119, 135, 149, 159),
        *(170, 166, 143, 113, 84, 56, 33, 16, 4),
    ),
    ("mini_one_pass", "A 72 635 4476532A"): (1, 1, 2, 3, 4, 6, 6, 6, 7, 10, 11, 9, 6, 2),
}
"""The same for whole games, until no position has a move left."""


@pytest.mark.parametrize(("decks", "rows", "shapes"), [(1, 7, 1_430), (2, 9, 16_796)])
def test_reachable_shapes_are_catalan_numbers(decks: int, rows: int, shapes: int) -> None:
    table = kernels.table(pe.rules(rows=rows, decks=decks))
    full = (1 << table.places) - 1
    found, waiting = {full}, [full]
    for shape in waiting:
        exposed = kernels.exposed_places(table, shape)
        for place in range(table.places):
            smaller = shape & ~(1 << place)
            if exposed >> place & 1 and smaller not in found:
                found.add(smaller)
                waiting.append(smaller)
    assert len(found) == shapes == comb(2 * rows + 2, rows + 1) // (rows + 2)


def test_pairs_of_places() -> None:
    shape = geometry(7)
    pairs = list(combinations(range(shape.places), 2))
    above_each_other = [(i, j) for i, j in pairs if shape.ancestors[i] >> j & 1]
    assert (len(pairs), len(above_each_other), len(shape.pairs())) == (378, 182, 196)
    assert set(pairs) == set(above_each_other) | set(shape.pairs())


def test_sizes_of_the_presets() -> None:
    sizes = {name: (rules.places, rules.stock_size, len(move_table(rules))) for name, rules in pe.PRESETS.items()}
    one_waste = 196 + 28 + 28 + 1 + 1
    assert sizes["pyramid"] == (28, 24, one_waste) == (28, 24, 254)
    assert sizes["one_pass"] == sizes["solitaire13"] == sizes["tuts_tomb"] == sizes["pyramid"]
    assert sizes["microsoft"] == sizes["classic"] == sizes["pysol"] == (28, 24, one_waste + 28 + 1 + 1)
    assert sizes["till_dawn"] == (28, 24, one_waste + 28 + 1 + 1 + 1)
    assert sizes["solitaire13_three_piles"] == (28, 24, 196 + 3 * 28 + 28 + 3 + 3 + 1)
    assert sizes["giza"] == (28, 24, 196 + 8 * 28 + 28 + 8 + comb(8, 2) + 1)
    assert sizes["overlap"] == (28, 24, one_waste + 2 * 21)
    assert sizes["double_pyramid"][:2] == sizes["double_pyramid_pysol"][:2] == (45, 59)
    assert sizes["mini"] == sizes["mini_one_pass"]
    assert sizes["mini"][:2] == (6, 8)


def test_all_72_draws_and_2_recycles_can_be_played() -> None:
    game = Game(0, "pyramid")
    while "draw" in texts(game):
        game.play("draw")
    assert (game.draws, game.recycles, game.moves_made) == (72, 2, 74)
    assert game.score == -52


def test_no_game_of_pyramid_is_longer_than_102_steps() -> None:
    rng = np.random.default_rng(5)
    lengths = []
    for number in range(60):
        game = Game(number, "pyramid")
        while not game.is_over:
            draw = len(move_table(game.rules)) - 1
            patient = draw in game.legal_actions and rng.random() < 0.9
            game.play(draw if patient else int(rng.choice(game.legal_actions)))
        lengths.append(game.moves_made)
        assert game.draws <= 72
        assert game.recycles <= 2
        assert game.moves_made - game.draws - game.recycles <= 28
    assert 74 < max(lengths) <= 102


def test_msc_and_par_at_their_highest() -> None:
    for rules, score in (
        (pe.rules("microsoft"), 1290),
        (pe.rules("microsoft", scoring="par"), 50),
        (pe.rules("classic"), 50),
        (pe.rules("microsoft", scoring="none"), 1),
    ):
        game = Game(EVERYTHING_FITS, rules)
        while not game.is_over:
            game.play(max((m for m in game.legal_moves if not m.is_draw), key=lambda m: (m.first, m.second)))
        assert game.is_won
        assert game.cards_left == 0
        assert game.score == score
    row_bonuses = sum(MSC_ROWS)
    assert row_bonuses + 28 * MSC_REMOVAL == 1290


def test_every_score_lies_in_its_range() -> None:
    rng = np.random.default_rng(6)
    for preset in ("pyramid", "till_dawn", "microsoft"):
        for number in range(20):
            game = Game(number, preset)
            while not game.is_over:
                game.play(int(rng.choice(game.legal_actions)))
            assert -52 <= game.par <= 50
            assert 0 <= game.msc <= 1290


def test_the_apex_leaves_last_as_a_king_or_with_the_waste_top() -> None:
    last_moves = []
    for number in range(60):
        game = Game(number, "pyramid")
        while not game.is_over:
            game.play(game.legal_actions[0])  # a removal if there is one
        if game.is_won:
            last_moves.append(game.history[-1])
    found = {move_table(game.rules).text(move) for move in last_moves}
    assert len(last_moves) >= 10
    assert found <= {"r1c1", "r1c1+waste"}


@pytest.mark.parametrize("preset", POSITIONS_BY_DEPTH)
def test_positions_by_depth(preset: str) -> None:
    rules = pe.rules(preset)
    for deal, counts in zip(THREE_DEALS, POSITIONS_BY_DEPTH[preset], strict=True):
        depth = len(counts) - 1
        assert package_positions_by_depth(deal, rules, depth) == list(counts)
        assert bruteforce.positions_by_depth(read_ranks(deal), rules, depth) == list(counts)


@pytest.mark.parametrize(("preset", "deal"), MINI_GAMES)
def test_positions_of_a_mini_game_from_the_first_to_the_last(preset: str, deal: str) -> None:
    rules = pe.rules(preset)
    counts = MINI_GAMES[preset, deal]
    by_depth = package_positions_by_depth(deal, rules, len(counts))
    assert by_depth == bruteforce.positions_by_depth(read_ranks(deal), rules, len(counts))
    assert by_depth == [*counts, 0]


def texts(game: Game) -> set[str]:
    return {move_table(game.rules).text(move) for move in game.legal_moves}


def package_positions_by_depth(deal: str, rules: pe.Rules, depth: int) -> list[int]:
    """How many different positions the kernels reach by exactly 0, 1, .. moves."""
    ranks = Deal.parse(deal, rules).ranks
    table = kernels.table(rules)
    layer = {tuple(kernels.start_state(rules).tolist())}
    out = np.empty(kernels.MAX_MOVES, np.int64)
    counts = [1]
    for _ in range(depth):
        coming = set()
        for position in layer:
            count = kernels.list_moves(table, ranks, *position[:4], out)
            coming |= {kernels.apply(table, *position, action) for action in out[:count].tolist()}
        layer = coming
        counts.append(len(layer))
    return counts
