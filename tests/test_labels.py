"""Labels: many positions at once say what one position at a time says, and what an exhaustive search says."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from test_solver import random_play, random_rules, small, survey_from

import pyramid_env as pe
from pyramid_env import kernels
from pyramid_env.kernels import PASS
from pyramid_env.rules import PRESETS, Rules
from pyramid_env.solver import SolverError, rate_moves, solve, solve_position, solve_positions

OBJECTIVES = ("win", "score", "earliest", "steps")


def positions(rules: Rules, count: int, seed: int, most: int = 60) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Positions that random play reaches in random deals."""
    rng = np.random.default_rng(seed)
    ranks = [pe.Deal.random(rng, rules).ranks for _ in range(count)]
    return np.array(ranks), np.array([random_play(rules, deal, rng, most) for deal in ranks])


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_many_positions_equal_one_at_a_time(name: str, objective: str) -> None:
    rules = small(name)
    ranks, states = positions(rules, 30, seed=1, most=15)
    found = solve_positions(rules, ranks, states, objective)
    assert found.proven.all()
    for row in range(len(states)):
        alone = solve_position(rules, ranks[row], states[row], objective)
        assert (found.value[row], found.bound[row]) == (alone.value, alone.bound), states[row]


@pytest.mark.parametrize("name", ["pyramid", "microsoft", "till_dawn", "one_pass"])
def test_whole_decks_from_the_middle_of_play(name: str) -> None:
    rules = pe.rules(name)
    ranks, states = positions(rules, 60, seed=2)
    found = solve_positions(rules, ranks, states, "win", workers=2)
    for row in range(len(states)):
        assert found.value[row] == solve_position(rules, ranks[row], states[row], "win").value, states[row]
    assert 0 < found.value.sum() < len(states) or name == "one_pass"


def test_positions_equal_the_exhaustive_search() -> None:
    rng = np.random.default_rng(3)
    checked = 0
    while checked < 40:
        rules = random_rules(rng)
        ranks = pe.Deal.random(rng, rules).ranks
        states = np.array([random_play(rules, ranks, rng, 12) for _ in range(4)])
        expected = [survey_from(ranks, rules, state, 1200) for state in states]
        if any(each is None for each in expected):
            continue
        for objective in OBJECTIVES:
            found = solve_positions(rules, ranks, states, objective)
            case = f"{rules.to_dict()} {ranks.tolist()} {states.tolist()} {objective}"
            assert found.value.tolist() == [each[objective] for each in expected if each], case
        checked += 1


def test_a_limit_leaves_a_position_open() -> None:
    ranks, states = positions(pe.rules("double_pyramid"), 4, seed=4, most=3)
    found = solve_positions("double_pyramid", ranks, states, "score", max_states=50)
    assert not found.proven.any()
    assert np.all(found.value <= found.bound)


def test_no_positions_are_no_answers() -> None:
    rules = pe.rules("mini")
    found = solve_positions(rules, np.zeros((0, rules.cards), np.int8), np.zeros((0, 5), np.int64))
    assert [len(column) for column in found] == [0, 0, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: 0b111110}, "a card is gone whose cover is left"),
        ({1: 1 << 8}, "expected a mask of 8 cards"),
        ({2: 3, 1: 0b11110111}, "cursor: expected the next card to turn"),
        ({3: 4}, "pass: expected 1 to 3"),
    ],
)
def test_an_impossible_position_is_named(change: dict[int, int], message: str) -> None:
    rules = pe.rules("mini")
    states = np.array([kernels.start_state(rules)] * 3)
    for column, number in change.items():
        states[1, column] = number
    with pytest.raises(SolverError, match=rf"states\[1\]: .*{message}"):
        solve_positions(rules, pe.Deal.number(1, rules).ranks, states)


def test_arrays_of_other_shapes_and_decks_are_refused() -> None:
    rules = pe.rules("mini")
    start, ranks = kernels.start_state(rules), pe.Deal.number(1, rules).ranks
    with pytest.raises(SolverError, match="ranks: expected shape"):
        solve_positions(rules, ranks[:-1], start)
    with pytest.raises(SolverError, match="states: expected shape"):
        solve_positions(rules, ranks, start[:3])
    with pytest.raises(SolverError, match=r"ranks\[0\]: expected the ranks of a whole deck"):
        solve_positions(rules, np.ones_like(ranks), start)
    with pytest.raises(SolverError, match="workers"):
        solve_positions(rules, ranks, start, workers=0)


# ---- every move rated ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", ["mini", "microsoft", "till_dawn"])
def test_each_move_is_worth_what_the_game_after_it_is(name: str, objective: str) -> None:
    game = pe.Game(pe.Deal.number(5, name), name)
    for _ in range(6):
        rated = rate_moves(game, objective)
        assert [each.move for each in rated] == list(game.legal_moves)
        for each in rated:
            game.play(each.move)
            after = solve(game, objective=objective)
            game.undo()
            step = int(objective == "steps" and (after.value > 0 or game.is_won))
            assert (each.value, each.proven) == (after.value + step, True), each
        best = solve(game, objective=objective)
        values = [each.value for each in rated if each.value] or [0]
        assert best.value == (max(each.value for each in rated) if objective in ("win", "score") else min(values))
        game.play(game.hint())


def test_a_last_move_to_the_win_is_one_step() -> None:
    game = pe.Game(pe.Deal.number(5, "mini"), "mini")
    moves = solve(game, objective="steps").moves
    for move in moves[:-1]:
        game.play(move)
    rated = {each.move: each for each in rate_moves(game, "steps")}
    assert rated[moves[-1]].value == 1
    game.play(moves[-1])
    assert game.is_won
    assert rate_moves(game) == []


def test_only_a_game_has_moves_to_rate() -> None:
    with pytest.raises(SolverError, match="expected a Game, got int"):
        rate_moves(42)  # type: ignore[arg-type]  # the wrong type is the subject


def test_positions_from_pass_two_on_know_their_pass() -> None:
    rules = pe.rules("pyramid")
    ranks, states = positions(rules, 200, seed=6, most=100)
    late = states[:, PASS] == rules.passes
    assert late.any()
    found = solve_positions(rules, ranks, states, "earliest")
    assert np.all((found.value == 0) | (found.value >= states[:, PASS]))
