"""Worlds and move values: what a player holds possible, each order alike, and what moves are worth over them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

import pyramid_env as pe
from pyramid_env import kernels
from pyramid_env.moves import move_table
from pyramid_env.observation import Position, position_from_observation
from pyramid_env.rules import PRESETS, Rules
from pyramid_env.solver import SolverError, move_values, sample_worlds, solve_information_state, solve_position
from pyramid_env.vector_env import PyramidVectorEnv


def met(rules: Rules, games: int, seed: int, steps: int = 60) -> Position:
    """Positions, as a player knows them, that random play comes to."""
    env = PyramidVectorEnv(games, rules=rules, observation="memory", autoreset_mode="SameStep")
    observations, _ = env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    ranks, states = [], []
    for _ in range(steps):
        live = env.action_masks().any(axis=1)  # some deals offer no move at all
        position = position_from_observation(rules, observations)
        ranks.append(position.ranks[live])
        states.append(position.state[live])
        observations, *_ = env.step(env.random_actions(rng))
    return Position(np.concatenate(ranks), np.concatenate(states))


def seen(rules: Rules, deal: pe.Deal, draws: int) -> Position:
    """What is known of a deal after some draws; batch of one."""
    env = PyramidVectorEnv(1, rules=rules, observation="memory", autoreset_mode="Disabled")
    observations, _ = env.reset(options={"deals": [deal]})
    for _ in range(draws):
        observations, *_ = env.step(np.array([env.single_action_space.n - 1]))
    return position_from_observation(rules, observations)


def after(rules: Rules, state: NDArray[np.int64], action: int) -> NDArray[np.int64]:
    row = state.copy()
    kernels.step(kernels.table(rules), row, action)
    return row


# ---- worlds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_worlds_agree_with_what_was_seen_and_are_whole_decks(name: str) -> None:
    rules = pe.rules(name)
    ranks, _ = met(rules, 4, seed=1)
    worlds = sample_worlds(rules, ranks, 3, np.random.default_rng(0))
    assert worlds.shape == (len(ranks), 3, rules.cards)
    known = np.broadcast_to(ranks[:, None], worlds.shape)
    assert np.array_equal(worlds[known != 0], known[known != 0])
    deck = np.repeat(np.arange(1, rules.ranks + 1), rules.decks * rules.suits)
    assert np.all(np.sort(worlds, axis=2) == deck)


def test_every_order_of_the_unseen_cards_is_as_likely() -> None:
    rules = pe.rules("mini")
    position = seen(rules, pe.Deal.number(3, rules), rules.stock_size - 4)
    hidden = position.ranks[0] == 0
    assert hidden.sum() == 4
    worlds = sample_worlds(rules, position.ranks, 12_000, np.random.default_rng(7))[0][:, hidden]
    orders = sorted(set(permutations(worlds[0].tolist())))
    assert len(orders) > 10
    counts = [int((worlds == order).all(axis=1).sum()) for order in orders]
    assert sum(counts) == len(worlds)
    assert chisquare(counts).pvalue > 0.001


def test_neighbouring_worlds_of_a_position_are_independent() -> None:
    """A world is made by shuffling the one before, which must leave no trace of it."""
    rules = pe.rules("mini")
    position = seen(rules, pe.Deal.number(3, rules), rules.stock_size - 2)
    worlds = sample_worlds(rules, position.ranks, 8_000, np.random.default_rng(1))[0]
    last = worlds[:, -1]
    assert set(last.tolist()) == set(worlds[0, -2:].tolist())
    same = np.mean(last[1:] == last[:-1])
    assert abs(same - 0.5) < 0.03


def test_the_same_generator_gives_the_same_worlds() -> None:
    ranks, _ = met(pe.rules("pyramid"), 2, seed=3)
    first, second, other = (sample_worlds(pe.rules("pyramid"), ranks, 2, np.random.default_rng(s)) for s in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_knowledge_that_no_deck_allows_is_refused() -> None:
    rules = pe.rules("mini")
    ranks = pe.Deal.number(1, rules).ranks[None].copy()
    with pytest.raises(SolverError, match="ranks: expected shape"):
        sample_worlds(rules, ranks[:, :-1], 1, np.random.default_rng(0))
    with pytest.raises(SolverError, match="worlds: expected 1 or more"):
        sample_worlds(rules, ranks, 0, np.random.default_rng(0))
    ranks[0] = 1
    with pytest.raises(SolverError, match=r"ranks\[0\]: expected ranks from 1 to 7, 2 of each"):
        sample_worlds(rules, ranks, 1, np.random.default_rng(0))


# ---- move values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["win", "score", "earliest", "steps"])
@pytest.mark.parametrize("name", ["mini", "mini_one_pass", "mini:goal=all,stock_top=true,pair_stock_waste=true"])
def test_each_value_is_what_the_solver_says_in_that_world(name: str, objective: str) -> None:
    rules = pe.rules(name)
    ranks, states = met(rules, 4, seed=2, steps=12)
    values = move_values(rules, ranks, states, objective, 3, np.random.default_rng(5))
    worlds = sample_worlds(rules, ranks, 3, np.random.default_rng(5))
    assert values.proven.all()
    for n, m in zip(values.rows.tolist(), range(len(values.actions)), strict=True):
        if values.offsets[n + 1] - values.offsets[n] == 1:
            assert np.isnan(values.values[m]).all()
            continue
        position = after(rules, states[n], int(values.actions[m]))
        for w in range(3):
            deck = ranks[n] if values.known[n] else worlds[n, w]
            assert values.values[m, w] == solve_position(rules, deck, position, objective).value


@pytest.mark.parametrize("name", ["pyramid", "till_dawn", "microsoft", "tuts_tomb", "double_pyramid"])
@pytest.mark.parametrize("objective", ["win", "earliest"])
def test_whole_decks_in_worlds(name: str, objective: str) -> None:
    rules = pe.rules(name)
    ranks, states = met(rules, 2, seed=4, steps=20)
    hidden = np.flatnonzero((ranks == 0).any(axis=1))[::4]
    rated = move_values(rules, ranks[hidden], states[hidden], objective, 2, np.random.default_rng(5), max_states=19_000)
    worlds = sample_worlds(rules, ranks[hidden], 2, np.random.default_rng(5))
    found = 0
    for m, n in enumerate(rated.rows.tolist()):
        if not rated.proven[m] or np.isnan(rated.values[m, 0]):
            continue
        position = after(rules, states[hidden][n], int(rated.actions[m]))
        for w in range(2):
            assert rated.values[m, w] == solve_position(rules, worlds[n, w], position, objective).value
            found += 1
    assert found > 10


@pytest.mark.parametrize("name", PRESETS)
def test_the_moves_are_the_legal_ones(name: str) -> None:
    rules = pe.rules(name)
    env = PyramidVectorEnv(8, rules=rules, observation="memory", autoreset_mode="SameStep")
    observations, _ = env.reset(seed=6)
    rng = np.random.default_rng(6)
    for _ in range(20):
        masks = env.action_masks()
        position = position_from_observation(rules, observations)
        rated = move_values(rules, *position, "win", 1, rng, max_states=10)
        expected = [np.flatnonzero(mask).tolist() for mask in masks]
        got = [sorted(rated.actions[a:b].tolist()) for a, b in zip(rated.offsets[:-1], rated.offsets[1:], strict=True)]
        over = rules.passes is None  # there a game that is stuck looks like one that goes on
        assert all(g == e or (over and not e) for g, e in zip(got, expected, strict=True))
        dense = rated.dense(env.single_action_space.n)
        chosen = masks.sum(axis=1) > 1
        assert np.array_equal(~np.isnan(dense[chosen]), masks[chosen])
        observations, *_ = env.step(env.random_actions(rng))


def test_threads_change_nothing() -> None:
    rules = pe.rules("pyramid")
    ranks, states = met(rules, 8, seed=7)
    one, two = (
        move_values(rules, ranks, states, "win", 200, np.random.default_rng(1), workers=workers, max_states=500)
        for workers in (1, 2)
    )
    assert np.array_equal(one.values, two.values, equal_nan=True)
    assert np.array_equal(one.proven, two.proven)


def test_what_is_known_is_exact_and_needs_no_generator() -> None:
    rules = pe.rules("pyramid")
    ranks, states = met(rules, 4, seed=8, steps=120)
    known = np.flatnonzero((ranks != 0).all(axis=1))
    rated = move_values(rules, ranks[known], states[known], "win", 5)
    assert rated.known.all()
    assert np.array_equal(rated.values[:, :1].repeat(5, axis=1), rated.values, equal_nan=True)
    with pytest.raises(SolverError, match=r"rng: expected a numpy\.random\.Generator where cards are hidden"):
        move_values(rules, ranks, states)


def test_a_limit_is_said_and_counts_half_a_win() -> None:
    rules = pe.rules("pyramid")
    ranks, states = met(rules, 8, seed=9)
    rated = move_values(rules, ranks, states, "win", 8, np.random.default_rng(1), max_states=3)
    assert 0 < np.mean(~rated.proven) < 1
    assert set(np.unique(rated.values[~np.isnan(rated.values)])) == {0, 0.5, 1}
    assert not (rated.values[rated.proven] == 0.5).any()


def test_averages_lie_above_the_exact_value_of_the_best_legal_play() -> None:
    """Open cards in each world can only help; and once one card alone is unseen it is known, so there the two agree."""
    rules = pe.rules("mini_one_pass")
    moves = move_table(rules)
    higher = 0
    for number in range(10):
        game = pe.Game(number, rules)
        for draws in range(rules.stock_size):
            exact = solve_information_state(game, objective="win").move_values
            if len(exact) > 1:
                position = seen(rules, game.deal, draws)
                rated = move_values(rules, *position, "win", 2_000, np.random.default_rng(0))
                for action, mean in zip(rated.actions.tolist(), rated.means.tolist(), strict=True):
                    value = float(exact[moves[action]])
                    assert mean > value - 0.05
                    higher += mean > value + 0.02
                    if draws == rules.stock_size - 1:
                        assert mean == value
            game.play("draw")
    assert higher


def test_what_is_no_position_is_refused_with_its_row() -> None:
    rules = pe.rules("mini")
    ranks, states = met(rules, 2, seed=1, steps=3)
    rng = np.random.default_rng(0)
    broken = states.copy()
    broken[3, 0] = 0b111110
    with pytest.raises(SolverError, match=r"states\[3\]: pyramid: a card is gone whose cover is left"):
        move_values(rules, ranks, broken, rng=rng)
    with pytest.raises(SolverError, match="states: expected 6 rows, as many as ranks, got 5"):
        move_values(rules, ranks, states[:5], rng=rng)
    for name in ("worlds", "workers"):
        with pytest.raises(SolverError, match=f"{name}: expected a whole number from 1 up, got 0"):
            move_values(rules, ranks, states, rng=rng, **{name: 0})  # type: ignore[arg-type]  # options are ints here
