"""The curriculum: solved deals, easy ones first, games that begin on a winning line, and honest statistics of them."""

import json

import numpy as np
import pytest

import agents.solved
import pyramid_env as pe
from agents.config import make_config
from agents.curriculum import LineStarts, OrderedDeals
from agents.env_config import OrderedConfig, StartsConfig
from agents.games import RandomDeals, TrainingGames
from agents.legal import legal_lists
from agents.ppo import Ppo
from agents.solved import SolvedBlock, SolvedDeals
from pyramid_env import functional
from pyramid_env.benchmark.lines import positions_along
from pyramid_env.errors import PyramidError
from pyramid_env.solver import solve_position

TINY = {
    "rules": "mini",
    "env": {"num_envs": 32},
    "network": {"embedding": 16, "shared": [16]},
    "ppo": {"n_steps": 8, "batch_size": 64, "n_epochs": 1},
}


def tiny(*overrides):
    return make_config(TINY, overrides)


@pytest.fixture
def closing():
    """Closes what was handed to it."""
    opened = []
    yield lambda made: opened.append(made) or made
    for made in opened:
        made.close()


def solved(closing, rules="mini", seed=(0,)):
    return closing(SolvedDeals(pe.rules(rules), list(seed)))


# ---- solved deals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["mini", "till_dawn"])
def test_every_deal_comes_with_a_line_that_wins_it(closing, rules):
    numbers, lines = solved(closing, rules).take(40)
    assert (numbers >= 1_000_000).all()
    for number, line in zip(numbers.tolist(), lines, strict=True):
        game = pe.Game(number, rules)
        for move in line[:-1].tolist():
            game.play(move)
            assert not game.is_won
        game.play(int(line[-1]))
        assert game.is_won


def test_the_stream_depends_on_the_seed_alone_and_can_be_taken_up_anywhere(closing):
    whole, lines = solved(closing).take(700)
    parts, at = solved(closing), 0
    for count in (0, 1, 199, 3, 1, 300):
        numbers, _ = parts.take(count)
        assert numbers.tolist() == whole[at : at + count].tolist()
        at += count
        later = solved(closing)
        later.restore(json.loads(json.dumps(parts.state())))
        numbers, found = later.take(5)
        assert numbers.tolist() == whole[at : at + 5].tolist()
        assert all(np.array_equal(a, b) for a, b in zip(found, lines[at : at + 5], strict=True))
    assert solved(closing, seed=[1]).take(20)[0].tolist() != whole[:20].tolist()


def test_of_each_block_only_the_easiest_are_taken(closing):
    block = agents.solved._solved(pe.rules("mini"), [0, 0], np.zeros(1, np.int64))
    assert sorted(block.easier.tolist()) == [n / block.numbers.size for n in range(block.numbers.size)]
    quarter = block.numbers[block.easier < 0.25]
    assert quarter.size == -(-block.numbers.size // 4)
    source = solved(closing)
    assert source.take(quarter.size, 0.25)[0].tolist() == quarter.tolist()
    after = agents.solved._solved(pe.rules("mini"), [0, 1], np.zeros(1, np.int64))
    assert source.take(3, 0.25)[0].tolist() == after.numbers[after.easier < 0.25][:3].tolist()


def test_short_lines_are_easier_and_long_searches_hard():
    states, steps = np.array([10, 10, 10, 10, 21, 90]), np.array([30, 20, 25, 40, 50, 1])
    assert (agents.solved._easier(states, steps) * 6).tolist() == pytest.approx([2, 0, 1, 3, 5, 4])


def test_rules_that_nobody_wins_are_refused(closing, monkeypatch):
    nothing = SolvedBlock(np.zeros(0, np.int64), np.zeros(0), [])
    monkeypatch.setattr("agents.solved._solved", lambda rules, seed, stop: nothing)
    with pytest.raises(PyramidError, match=r"none of 10,\d+ deals of mini.* in a row can be won"):
        solved(closing).take(1)


def test_what_ends_the_thread_is_raised_where_deals_are_taken(closing, monkeypatch):
    def fails(rules, seed, stop):
        raise MemoryError("no room")

    monkeypatch.setattr("agents.solved._solved", fails)
    with pytest.raises(MemoryError, match="no room"):
        solved(closing).take(1)


# ---- ordered deals ---------------------------------------------------------------------------------------------------


def test_easy_deals_come_first_then_all_that_can_be_won_then_others_too(closing):
    rules = pe.rules("mini")

    def dealt(done, **settings):
        deals = closing(OrderedDeals(rules, OrderedConfig(first=0.25, until=0.5, **settings), 0))
        deals.set_progress(done)
        return deals, deals.take(400).tolist()

    everything = solved(closing, seed=[0, 4]).take(4000)[0].tolist()
    easy, easy_ones = dealt(0.0)
    half, half_ones = dealt(0.25)
    full, full_ones = dealt(0.5, unrestricted=0.0)
    _, mixed = dealt(0.5, unrestricted=0.5)
    assert [deals.allowed for deals in (easy, half, full)] == [0.25, 0.625, 1.0]
    assert full_ones == everything[:400]
    assert set(easy_ones) < set(everything)
    assert everything.index(easy_ones[-1]) > everything.index(half_ones[-1]) > 400
    strangers = set(mixed) - set(everything)
    assert 140 < len(strangers) < 260
    assert not all(pe.solve(number, rules).value for number in list(strangers)[:60])


# ---- starts on lines -------------------------------------------------------------------------------------------------


def begun(closing, done, rules="mini", count=48, until=0.5):
    """The states of games that begin on lines at some time of the training, and moves to the lines' ends."""
    chosen = pe.rules(rules)
    starts = closing(LineStarts(chosen, StartsConfig(share=1.0, until=until), 3))
    starts.set_progress(done)
    arrays = functional.arrays(chosen, "memory", count)
    starts.begin("memory", arrays, np.arange(count))
    _, lines = solved(closing, rules, [3, 6]).take(count)
    lengths = np.array([line.size for line in lines])
    left = []
    for b, line in enumerate(lines):
        along = positions_along(chosen, [line] * line.size, np.arange(line.size))
        (match,) = np.flatnonzero((along == arrays.states[b]).all(axis=1))
        left.append(line.size - match)
    return arrays, np.array(left), lengths


def test_at_first_one_move_wins(closing):
    arrays, left, _ = begun(closing, 0.0, "pyramid")
    assert (left == 1).all()
    won = np.zeros(len(left), np.bool_)
    for column in legal_lists(arrays.bits).T:
        after = functional.Arrays(*(array.copy() for array in arrays))
        functional.step("pyramid", "memory", after, np.maximum(column, 0))
        won |= (column >= 0) & after.facts[:, functional.WON].astype(np.bool_)
    assert won.all()


def test_games_begin_further_from_the_end_as_the_training_goes_on(closing):
    means = []
    for done in (0.0, 0.125, 0.25, 0.499):
        arrays, left, lengths = begun(closing, done)
        assert (left >= 1).all()
        assert (left <= np.maximum(1, np.ceil(lengths * done / 0.5))).all()
        assert (arrays.steps == 0).all()
        means.append((left / lengths).mean())
        for b in range(0, len(left), 8):
            found = solve_position("mini", arrays.ranks[b], arrays.states[b], "steps")
            assert 1 <= found.value <= left[b]
    assert means == sorted(means)
    assert means[-1] > 0.4


def test_the_share_holds_and_in_the_end_all_games_are_whole(closing):
    starts = closing(LineStarts(pe.rules("mini"), StartsConfig(share=0.25, until=0.5), 0))
    assert 0.2 < starts.choose(4000).mean() < 0.3
    starts.set_progress(0.5)
    assert not starts.choose(4000).any()


def played(games, steps, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        yield games.step(np.array([rng.choice(row[row >= 0]) for row in legal_lists(games.bits)]).astype(np.int64))


def test_the_statistics_of_whole_games_and_of_those_from_a_line_are_kept_apart(closing):
    """Random play on mini: from one move before the end it often wins, from the deal seldom."""
    rules = pe.rules("mini")
    config = tiny("env.starts.share=0.5", "env.reward=win").env
    starts = closing(LineStarts(rules, config.starts, 0))
    games = TrainingGames(rules, config, RandomDeals(0), starts)
    on_line, counted = games._on_line.copy(), {True: 0, False: 0}
    for finished in played(games, 150):
        for b in finished.games.tolist():
            counted[bool(on_line[b])] += 1
        on_line = games._on_line.copy()
    report = games.report()
    assert (report["games"], report["started_games"]) == (counted[False], counted[True])
    assert min(counted.values()) > 50
    assert report["wins"] + 0.1 < report["started_wins"]
    assert report["started_length"] < 0.5 * report["length"]
    assert report["return"] == pytest.approx(report["wins"])  # each counts its own
    assert report["started_return"] == pytest.approx(report["started_wins"])
    assert games.report() == {}


def test_games_on_lines_go_on_from_what_was_kept(closing):
    rules, config = pe.rules("mini"), tiny("env.starts.share=0.5").env

    def fresh():
        deals, starts = RandomDeals(5), closing(LineStarts(rules, config.starts, 5))
        return TrainingGames(rules, config, deals, starts), deals, starts

    def play(made, seed):
        games, _, starts = made
        starts.set_progress(0.2)
        ends = [finished.games.tolist() for finished in played(games, 30, seed)]
        return ends, games.rows.tolist(), games._on_line.tolist(), games.report()

    first, again = fresh(), fresh()
    play(first, 0)
    list(played(first[0], 7))
    kept = first[0].state()
    again[0].restore(kept)
    for source, copy in zip(first[1:], again[1:], strict=True):
        copy.restore(json.loads(json.dumps(source.state())))
    assert play(first, 1) == play(again, 1)


def test_the_learner_tells_the_curriculum_how_far_it_is(closing, tmp_path, monkeypatch):
    logged = []
    monkeypatch.setattr(Ppo, "log", lambda self, values: logged.append(dict(values)))
    config = tiny("env.starts.share=0.5", "env.deals=ordered", "env.starts.until=1.0", "env.ordered.until=0.5")
    ppo = closing(Ppo(config))

    class Watch:
        def between_updates(self):
            return False

        def played(self, steps):
            return False

    ppo.learn(4 * config.steps_per_update, Watch(), tmp_path)
    assert [values["curriculum/reach"] for values in logged] == [0.0, 0.25, 0.5, 0.75]
    assert [values["curriculum/deals_allowed"] for values in logged] == [0.25, 0.625, 1.0, 1.0]
    assert sum(values.get("rollout/started_games", 0) for values in logged) > 0
    assert any("rollout/started_win_rate" in values for values in logged)
