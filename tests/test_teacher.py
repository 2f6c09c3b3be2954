"""Learning from the solver: what is marked and remembered, the mirror, the views of pairs, a run and its resume."""

import dataclasses
import json

import numpy as np
import pytest
import torch

import pyramid_env as pe
from agents.config import ConfigError, make_config
from agents.games import RandomDeals
from agents.labelled import SLOTS, LabelledGames, Samples
from agents.legal import legal_lists
from agents.mirror import Mirror
from agents.pair_views import CARD_LOOKS, PLACE_LOOKS, PairTables
from agents.teacher import Memory, Teacher
from agents.tips import TipsAgent
from agents.training import resume, train
from pyramid_env import functional
from pyramid_env.kernels import PASS, PYRAMID, STOCK
from pyramid_env.moves import move_table
from pyramid_env.observation import layout, position_from_observation
from pyramid_env.solver import move_values


def played(preset: str, games: int = 64, steps: int = 9, seed: int = 0) -> functional.Arrays:
    """Games some random moves after their start."""
    rules, rng = pe.rules(preset), np.random.default_rng(seed)
    arrays = functional.arrays(rules, "memory", games)
    functional.reset(rules, "memory", arrays, np.arange(1_000_000, 1_000_000 + games))
    for _ in range(steps):
        legal = legal_lists(arrays.bits)
        slots = (rng.random(legal.shape) * (legal >= 0)).argmax(axis=1)
        actions = np.maximum(legal[np.arange(games), slots], 0).astype(np.int64)
        functional.step(rules, "memory", arrays, actions)
    return arrays


def settings(**changes):
    """A config for a few seconds on the small game."""
    base = {
        "rules": "mini_one_pass",
        "algorithm": "teacher",
        "total_steps": 60_000,
        "checkpoint_steps": 10_000,
        "env": {"num_envs": 256},
        "network": {"embedding": 32, "groups": 32, "group_blocks": 1, "shared": [64]},
        "teacher": {"guided": 5_000, "batch_size": 256, "warm_up": 2_000, "learning_rate": 4e-3},
        "evaluation": {"deals": "validation:0-499", "every_steps": 0, "bound": False},
    }
    return make_config(base, [f"{name}={value}" for name, value in changes.items()])


# ---- mirror ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", pe.PRESETS)
def test_a_position_in_the_mirror_is_that_of_the_mirrored_deal(preset):
    rules, arrays = pe.rules(preset), played(preset)
    mirror = Mirror(rules, "memory")
    place = mirror.columns[layout(rules, "memory").offsets.pyramid :][: rules.places]
    place = place - layout(rules, "memory").offsets.pyramid
    turned = functional.arrays(rules, "memory", len(arrays.ranks))
    turned.ranks[:], turned.states[:] = arrays.ranks, arrays.states
    turned.ranks[:, : rules.places] = arrays.ranks[:, place]
    left = (arrays.states[:, PYRAMID, None] >> place) & 1
    turned.states[:, PYRAMID] = (left << np.arange(rules.places)).sum(axis=1)
    functional.observe(rules, "memory", turned)
    rows, legal = mirror(arrays.rows, legal_lists(arrays.bits))
    assert np.array_equal(rows, turned.rows)
    assert np.array_equal(np.sort(legal), np.sort(legal_lists(turned.bits)))
    again, same = mirror(rows, legal)
    assert np.array_equal(again, arrays.rows)
    assert np.array_equal(same, legal_lists(arrays.bits))
    assert not np.array_equal(rows, arrays.rows)


# ---- what is marked --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "judge", "scale"), [("pyramid", "win", 1.0), ("mini", "score", 30.0), ("mini", "earliest", 50.0)]
)
def test_targets_are_what_the_solver_says_of_each_move(preset, judge, scale):
    rules = pe.rules(preset)
    games = LabelledGames(rules, "memory", 48, RandomDeals(5), judge, scale, 200_000, 1, 1, 2_000)
    rng, checked = np.random.default_rng(0), 0
    worth = {"earliest": (0, 50, 35, 20)}

    def first(rows, legal):
        return np.zeros(len(rows), np.int64)

    for _ in range(16):
        arrays = games._arrays
        before = [
            pe.Game.from_state(pe.Deal.parse(ranks_text(ranks), rules), rules, state.copy())
            for ranks, state in zip(arrays.ranks, arrays.states, strict=True)
        ]
        rows = arrays.rows.copy()
        samples = games.step(first, rng, corrected=0.5, stray=0.2)
        for row, legal, targets in zip(*samples, strict=True):
            game = before[int((rows == row).all(axis=1).argmax())]
            rated = {move_table(rules).index_of(r.move): r.value for r in pe.rate_moves(game, judge)}
            values = {a: worth[judge][v] if judge in worth else v for a, v in rated.items()}
            best = max(values.values())
            for action, target in zip(legal[legal >= 0].tolist(), targets[legal >= 0].tolist(), strict=True):
                assert target == pytest.approx(max(0.0, 1.0 - (best - values[action]) / scale), abs=2e-3)
            assert (legal >= 0).sum() == len(rated)
            assert min(targets[legal >= 0]) < 1.0
            checked += 1
    assert checked > 10


def ranks_text(ranks):
    """A deal by its ranks alone."""
    return " ".join("A23456789TJQK"[rank - 1] for rank in ranks.tolist())


def test_the_judge_par_looks_at_the_clear_the_win_and_what_is_left():
    """The bonus of the clear and 10 for a win; the score once the pyramid is empty or cannot be cleared."""
    rules = pe.rules("mini", goal="all")
    games = LabelledGames(rules, "memory", 96, RandomDeals(5), "par", 30.0, 200_000, 1, 1, 2_000)
    rng, seen = np.random.default_rng(0), {"clear": 0, "after": 0, "no hope": 0}

    def last(rows, legal):
        return (legal >= 0).sum(axis=1) - 1

    for _ in range(30):
        arrays = games._arrays
        before = [
            pe.Game.from_state(pe.Deal.parse(ranks_text(ranks), rules), rules, state.copy())
            for ranks, state in zip(arrays.ranks, arrays.states, strict=True)
        ]
        rows = arrays.rows.copy()
        for row, legal, targets in zip(*games.step(last, rng, corrected=0.3, stray=0.5), strict=True):
            game = before[int((rows == row).all(axis=1).argmax())]
            rated = {judge: pe.rate_moves(game, judge) for judge in ("earliest", "win", "score")}
            of = {j: {move_table(rules).index_of(r.move): r.value for r in found} for j, found in rated.items()}
            kind = "after" if game.state[PYRAMID] == 0 else "clear" if max(of["earliest"].values()) else "no hope"
            bonus = (0, 50, 35, 20)
            values = of["score"]
            if kind == "clear":
                values = {action: bonus[value] + 10 * of["win"][action] for action, value in of["earliest"].items()}
            best = max(values.values())
            for action, target in zip(legal[legal >= 0].tolist(), targets[legal >= 0].tolist(), strict=True):
                assert target == pytest.approx(max(0.0, 1.0 - (best - values[action]) / 30.0), abs=2e-3)
            seen[kind] += 1
    assert min(seen.values()) >= 3, seen


def test_positions_with_hidden_cards_are_marked_by_the_average_over_their_orders():
    """Marks over 16 orders are as far from those over 512 others as 16 draws are; they know nothing of the deal."""
    rules, worlds = pe.rules("pyramid"), 16
    games = LabelledGames(rules, "memory", 256, RandomDeals(5), "win", 1.0, 200_000, worlds, 1, 2_000)
    rng, hidden, known = np.random.default_rng(0), [], []
    tips = TipsAgent(rules)

    def advised(rows, legal):
        fields = layout(rules, "memory").views(rows)
        return (legal == tips.act(fields, games.masks.astype(bool), rng)[:, None]).argmax(axis=1)

    for _ in range(40):
        for row, legal, targets in zip(*games.step(advised, rng, corrected=0.6, stray=0.03), strict=True):
            unseen = layout(rules, "memory").views(row)["unseen"].sum()
            (hidden if unseen else known).append((row, legal[legal >= 0], targets[legal >= 0].astype(float)))
    assert len(hidden) > 50
    assert len(known) > 20
    assert {value for *_, targets in known for value in targets} == {0.0, 1.0}
    assert all(np.allclose(targets * worlds, np.round(targets * worlds)) for *_, targets in hidden)
    assert sum(0.0 < value < 1.0 for *_, targets in hidden for value in targets) > 50
    some = hidden[:40]
    position = position_from_observation(rules, np.array([row for row, *_ in some]))
    found = move_values(rules, position.ranks, position.state, "win", 512, np.random.default_rng(9), max_states=200_000)
    exact = found.dense(len(move_table(rules)))
    off = []
    for values, (_, legal, targets) in zip(exact, some, strict=True):
        off += list(targets - (1.0 - values[legal].max() + values[legal]))
    assert abs(np.mean(off)) < 0.06
    assert np.sqrt(np.mean(np.square(off))) < 0.15


def test_a_game_that_cannot_be_won_any_more_ends_and_a_move_can_be_taken_back():
    """Where every losing move is taken back, games that are won to begin with are won."""
    rules = pe.rules("mini")
    rates = {}
    for corrected in (0.0, 1.0):
        games = LabelledGames(rules, "memory", 256, RandomDeals(1), "win", 1.0, 200_000, 1, 1, 2_000)
        rng = np.random.default_rng(0)
        for _ in range(60):
            games.step(lambda rows, legal: np.zeros(len(rows), np.int64), rng, corrected, 0.0)
        rates[corrected] = games.report()
    assert rates[1.0]["wins"] == 1.0
    assert rates[0.0]["games"] < rates[1.0]["games"]


def test_moves_that_the_solver_leaves_open_are_not_learned_from():
    """Kept is where one move is proven to win and another to lose; what is open beside them has no mark."""
    rules, limit = pe.rules("double_pyramid"), 100
    games = LabelledGames(rules, "memory", 128, RandomDeals(2), "win", 1.0, limit, 1, 1, 2_000)
    rng, kept, left_out = np.random.default_rng(0), 0, 0
    for _ in range(120):
        found = move_values(rules, games._arrays.ranks, games._arrays.states, "win", 1, max_states=limit)
        table = np.full((games.count, len(move_table(rules))), np.nan)
        table[found.rows, found.actions] = np.where(found.proven, found.values[:, 0], np.nan)
        samples = games.step(lambda rows, legal: np.zeros(len(rows), np.int64), rng, 0.6, 1.0)
        wins, losses = (table == 1.0).any(axis=1), (table == 0.0).any(axis=1)
        assert np.array_equal(games._kept, np.flatnonzero(wins & losses))
        for legal, targets, row in zip(samples.legal, samples.targets, table[games._kept], strict=True):
            legal = legal[legal >= 0]
            assert np.array_equal(targets[: legal.size], row[legal].astype(np.float16), equal_nan=True)
        kept += len(samples.rows)
        left_out += int((wins & ~losses & (np.bincount(found.rows, ~found.proven, games.count) > 0)).sum())
    assert kept > 10
    assert left_out > 10


def test_the_memory_keeps_the_last_samples():
    memory, rng = Memory(10, 3), np.random.default_rng(0)
    for start in range(0, 24, 4):
        values = np.arange(start, start + 4)
        legal = np.full((4, SLOTS), -1, np.int16)
        legal[:, :2] = values[:, None]
        memory.add(Samples(np.repeat(values[:, None], 3, axis=1).astype(np.int8), legal, np.zeros((4, SLOTS))))
    rows, legal, targets = memory.draw(500, rng)
    assert memory.size == 10
    assert set(rows[:, 0].tolist()) == set(range(14, 24))
    assert np.array_equal(rows[:, 0], legal[:, 0])
    assert legal.shape == targets.shape == (500, 2)


# ---- views -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", pe.PRESETS)
@pytest.mark.parametrize("level", ["table", "memory", "clairvoyant"])
def test_views_stay_within_their_tables(preset, level):
    rules, arrays = pe.rules(preset), played(preset)
    shown = functional.arrays(rules, level, len(arrays.ranks))
    shown.ranks[:], shown.states[:] = arrays.ranks, arrays.states
    functional.observe(rules, level, shown)
    tables = PairTables(rules, level)
    views, numbers = tables.views(shown.rows), tables.numbers
    slots = numbers.piles * numbers.depth + numbers.stock
    sizes = [PLACE_LOOKS] * rules.places + [CARD_LOOKS] * slots + [(numbers.copies + 1) ** 2] * 3
    sizes += [numbers.passes + 1] * 2
    first = np.concatenate([[0], np.cumsum(sizes)])
    assert first[-1] == tables.count
    assert (views >= first[:-1]).all()
    assert (views < first[1:]).all()
    # Each card that is left and seen is of exactly one group's ranks, unless it is a king.
    stock = views[:, :, rules.places : rules.places + slots] - first[rules.places : rules.places + slots]
    if level != "table":
        known = (
            np.isin(stock, (1, 2)).sum(axis=(1, 2)) + (stock[:, 0] == 3).sum(axis=1) + (stock[:, 0] == 5).sum(axis=1)
        )
        left = np.array([int(bits).bit_count() for bits in shown.states[:, STOCK]])
        assert np.array_equal(known, left)


def test_views_tell_a_pile_from_its_top_and_the_stock_from_the_next_card():
    """Stock 2 3 4 5 ...: after three draws the pile is 4 3 2 from its top, and the cards to come are not seen."""
    rules = pe.rules("pyramid")
    deck = sorted(pe.Deal.number(1).ranks.tolist())
    stock = [2, 3, 4, *[rank for rank in (5, 6, 7, 8, 9, 10, 11) for _ in range(3)]]
    for rank in stock:
        deck.remove(rank)
    arrays = functional.arrays(rules, "memory", 1)
    arrays.ranks[0] = [*deck, *stock]
    arrays.states[0] = pe.kernels.start_state(rules)
    functional.observe(rules, "memory", arrays)
    for _ in range(3):
        functional.step(rules, "memory", arrays, np.array([len(move_table(rules)) - 1]))
    tables = PairTables(rules, "memory")
    slots = tables.views(arrays.rows)[0, :, 28:76] - (28 * PLACE_LOOKS + CARD_LOOKS * np.arange(48))
    nine_four = slots[3]  # group of 4 and 9
    assert nine_four[:4].tolist() == [1, 4, 4, 0]  # 4 is its lower rank, 3 and 2 are others, then nothing
    assert nine_four[24:46].tolist() == [5] * 21 + [0]


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_a_short_run_learns_to_win_far_more_than_at_random(tmp_path):
    """500 deals of ``mini_one_pass``: random play wins 15.4 %, this run some 50 %; 57.6 % can be won."""
    result = train(settings(), tmp_path / "run")
    random = pe.rollout(np.arange(10_000, 10_500), "mini_one_pass", 1).won.mean()
    assert random < 0.2
    assert result.evaluations[-1].win_rate > 0.45
    again = train(settings(), tmp_path / "again")
    assert again.evaluations == result.evaluations


def test_a_run_that_was_stopped_goes_on(tmp_path):
    run = tmp_path / "run"
    train(settings(total_steps=10_000), run)
    config = dataclasses.replace(settings(total_steps=10_000), total_steps=20_000)
    (run / "config.yaml").write_text(config.to_yaml(), encoding="utf-8")
    result = resume(run)
    assert result.finished
    assert result.steps >= 20_000
    lines = (run / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["steps"] >= 10_000 for line in lines] == [True, True]


def test_the_network_is_shown_no_unseen_card():
    """Two deals that differ in unseen cards alone get the same values."""
    learner = Teacher(settings(rules="pyramid", **{"env.num_envs": 8}))
    rules = pe.rules("pyramid")
    arrays = functional.arrays(rules, "memory", 2)
    ranks = pe.Deal.number(3).ranks
    arrays.ranks[0] = ranks
    arrays.ranks[1] = [*ranks[:28], *ranks[28:][::-1]]
    arrays.states[:] = pe.kernels.start_state(rules)
    functional.observe(rules, "memory", arrays)
    legal = torch.from_numpy(legal_lists(arrays.bits))
    logits, _ = learner.network(torch.from_numpy(arrays.rows), legal)
    assert arrays.states[0, PASS] == 1
    assert torch.equal(logits[0], logits[1])
    learner.close()


def test_a_player_who_declines_for_ever_is_cut_off():
    """``tuts_tomb`` has no last pass: games of draws alone would never end."""
    games = LabelledGames(pe.rules("tuts_tomb"), "memory", 32, RandomDeals(1), "score", 50.0, 2_000, 1, 1, 6)
    rng = np.random.default_rng(0)
    for _ in range(6):
        games.step(lambda rows, legal: (legal >= 0).sum(axis=1) - 1, rng, corrected=0.0, stray=0.0)
    assert games.report()["games"] >= 32


def test_what_the_teacher_cannot_do_is_refused():
    with pytest.raises(ConfigError, match=r"env\.observation: expected memory with algorithm teacher, got table"):
        settings(**{"env.observation": "table"})
    with pytest.raises(ConfigError, match=r"teacher\.judge: expected one of win, earliest, score"):
        settings(**{"teacher.judge": "steps"})
    with pytest.raises(ConfigError, match=r"teacher\.memory: expected 256 or more, got 100"):
        settings(**{"teacher.memory": 100})
    with pytest.raises(ConfigError, match=r"network\.group_blocks: expected 0 without network\.groups, got 2"):
        settings(**{"network.groups": 0, "network.group_blocks": 2})
    with pytest.raises(ConfigError, match=r"network\.recurrent: expected 0 with algorithm teacher"):
        settings(**{"network.recurrent": 8})
