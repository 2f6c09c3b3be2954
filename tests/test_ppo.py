"""Our PPO: its parts against hand arithmetic, what it must learn, and that it goes on bit for bit after any end."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pyramid_env as pe
from agents import make_agent
from agents.action_head import MASKED_LOGIT, plain_logits
from agents.checkpoint import load_checkpoint, save_checkpoint
from agents.config import make_config
from agents.evaluation import evaluate_agent
from agents.games import Finished, RandomDeals, TrainingGames
from agents.legal import draw_slots, legal_lists, mask_bits
from agents.pair_groups import PairGroups
from agents.pair_views import PairTables
from agents.ppo import Ppo
from agents.rollout import Rollout
from agents.run_folder import EVALUATIONS_FILE, RunFolder, TrainingError
from agents.token_agent import TokenAgent
from agents.token_network import Residual, TokenNetwork, network_for
from agents.tokens import token_values
from agents.training import Trainer, resume, train
from pyramid_env.moves import move_table

TINY = {
    "rules": "mini",
    "total_steps": 512,
    "checkpoint_steps": 64,
    "env": {"num_envs": 8},
    "network": {"embedding": 16, "shared": [16]},
    "ppo": {"n_steps": 8, "batch_size": 32, "n_epochs": 2},
    "evaluation": {"deals": "validation:0-19", "every_steps": 128, "bound": False},
}


def tiny(*overrides):
    return make_config(TINY, overrides)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# ---- advantages ------------------------------------------------------------------------------------------------------


def test_advantages_are_those_of_hand_arithmetic():
    """gamma 1/2, lambda 1/2. Game 0 is over after step 1, game 1 cut off there, game 2 goes on.

    Values 1, 2, 3 and then 4; rewards 1, 10, 0; last values of what was cut off 6.
    """
    rollout = Rollout(steps=3, games=3, features=1, words=1)
    rollout.values[:] = np.array([[1.0], [2.0], [3.0]])
    rollout.rewards[:] = np.array([[1.0], [10.0], [0.0]])
    rollout.terminated[1, 0] = True
    rollout.truncated[1, 1] = True
    rollout.last_values[1, 1] = 6.0
    rollout.estimate(np.full(3, 4.0, np.float32), gamma=0.5, gae_lambda=0.5)
    # delta at step 2: 0 + 4/2 - 3 = -1, in all games
    # step 1: over 10 - 2 = 8; cut off 10 + 6/2 - 2 = 11; going on 10 + 3/2 - 2 + (-1)/4 = 9.25
    # step 0: 1 + 2/2 - 1 = 1, and a quarter of the above
    assert rollout.advantages.tolist() == [[3.0, 3.75, 3.3125], [8.0, 11.0, 9.25], [-1.0, -1.0, -1.0]]
    assert np.array_equal(rollout.returns, rollout.advantages + rollout.values)


def test_with_lambda_1_a_return_is_the_discounted_sum_of_what_came():
    rng = np.random.default_rng(0)
    rollout = Rollout(steps=20, games=4, features=1, words=1)
    rollout.values[:], rollout.rewards[:] = rng.normal(size=(2, 20, 4))
    rollout.terminated[[3, 11], [0, 2]] = True
    ahead = rng.normal(size=4).astype(np.float32)
    rollout.estimate(ahead, gamma=0.9, gae_lambda=1.0)
    expected = ahead.astype(np.float64)
    for t in range(19, -1, -1):
        expected = rollout.rewards[t] + 0.9 * np.where(rollout.terminated[t], 0.0, expected)
        assert np.allclose(rollout.returns[t], expected, atol=1e-4)


def test_symptom_a_cut_off_game_counts_as_ended():
    """gym #3102: what is to be expected of a game that the limit cuts off is the value of its last position."""
    ppo = Ppo(tiny("env.max_episode_steps=3", "ppo.gamma=0.5", "ppo.gae_lambda=0", "env.reward=win"))
    with torch.no_grad():
        ppo.network.worth.weight.zero_()
        ppo.network.worth.bias.fill_(8.0)
    ppo.collect()
    rollout = ppo.rollout
    assert rollout.truncated[2].all()  # no game on mini is won or over in three steps, so all are cut off
    assert not rollout.terminated.any()
    assert np.allclose(rollout.last_values[2], 8.0)
    assert np.allclose(rollout.advantages, 0.5 * 8.0 - 8.0)


def test_the_value_of_a_cut_off_game_is_that_of_its_own_last_position():
    ppo = Ppo(tiny("env.max_episode_steps=2"))
    ends = []
    step = ppo.games.step

    def noting(actions):
        ends.append(step(actions))
        return ends[-1]

    ppo.games.step = noting
    ppo.collect()
    last = ends[1].last_rows
    assert not np.array_equal(last, ppo.rollout.rows[2])  # not the next deal's first position
    moves = pe.observation.layout(pe.rules("mini"), "memory").views(last)
    assert (moves["cursor"].sum(axis=1) > 0).any()
    with torch.no_grad():
        _, values = ppo.network(torch.from_numpy(last))
    assert np.allclose(values.numpy(), ppo.rollout.last_values[1], atol=1e-6)


# ---- legal moves -----------------------------------------------------------------------------------------------------


def random_masks(rows, actions, seed=0):
    rng = np.random.default_rng(seed)
    masks = rng.random((rows, actions)) < 0.05
    masks[np.arange(rows), rng.integers(actions, size=rows)] = True
    return masks


@pytest.mark.parametrize("actions", [20, 64, 254])
def test_legal_lists_are_the_masks(actions):
    masks = random_masks(200, actions)
    lists = legal_lists(mask_bits(masks))
    assert lists.shape[1] == masks.sum(axis=1).max()
    for row, mask in zip(lists, masks, strict=True):
        assert row[row >= 0].tolist() == np.flatnonzero(mask).tolist()


@pytest.mark.parametrize("preset", ["mini", "pyramid", "double_pyramid"])
def test_the_environments_bits_are_the_same_lists(preset):
    games = TrainingGames(pe.rules(preset), tiny().env, RandomDeals(0))
    masks = games._arrays.masks.astype(np.bool_)
    assert np.array_equal(legal_lists(games.bits), legal_lists(mask_bits(masks)))


def positions(preset, steps=30):
    """Rows and lists of legal moves from the middle of random games."""
    games = TrainingGames(pe.rules(preset), tiny("env.num_envs=64").env, RandomDeals(0))
    rng = np.random.default_rng(0)
    for _ in range(steps):
        games.step(np.array([rng.choice(row[row >= 0]) for row in legal_lists(games.bits)]).astype(np.int64))
    return torch.from_numpy(games.rows.copy()), torch.from_numpy(legal_lists(games.bits))


@pytest.mark.parametrize("preset", ["pyramid", "till_dawn", "giza"])
@pytest.mark.parametrize("sizes", [{"shared": (32,), "blocks": 1, "policy": (8,)}, {"groups": 8}])
def test_logits_of_legal_actions_and_their_gradients_are_those_of_torch(preset, sizes, monkeypatch):
    torch.manual_seed(0)
    network = network_for(pe.rules(preset), "memory", {"embedding": 16, **sizes})
    with torch.no_grad():
        for weight in (network.action.weight, network.action.group_weight):
            if weight is not None:
                weight.normal_()
        for block in network.trunk.layers.modules():
            if isinstance(block, Residual):
                block.layers[-1].weight.normal_()  # no longer the identity
    tokens, legal = positions(preset)
    found = []
    for plain in (False, True):
        if plain:
            monkeypatch.setattr("agents.action_head._LegalLogits", SimpleNamespace(apply=plain_logits))
        logits, values = network(tokens, legal)
        picked = network(tokens)[0].gather(1, legal.long().clamp(min=0)).masked_fill(legal < 0, MASKED_LOGIT)
        assert torch.allclose(logits, picked, rtol=1e-4, atol=1e-4)
        loss = (logits.log_softmax(1)[:, 0] * torch.arange(64)).sum() + values.sum()
        found.append((logits, values, torch.autograd.grad(loss, list(network.parameters()))))
    ours, theirs = found
    assert torch.allclose(ours[0], theirs[0], rtol=1e-4, atol=1e-4)
    assert torch.equal(ours[1], theirs[1])
    assert all(
        torch.allclose(a, b, rtol=1e-3, atol=1e-3 * b.abs().max()) for a, b in zip(ours[2], theirs[2], strict=True)
    )
    assert all(a.abs().max() > 0.0 for a in ours[2])


def with_ranks(rows, rules, change):
    """Rows of level memory with every rank put through ``change``, and the counts of unseen cards along with it."""
    changed, fields = rows.copy(), pe.observation.layout(rules, "memory")
    views, before = fields.views(changed), fields.views(rows)
    lookup = np.array([change.get(rank, rank) for rank in range(rules.ranks + 2)], np.int8)
    for name in ("pyramid", "waste", "waste_under", "stock_top", "known"):
        if name in views:
            views[name][:] = lookup[before[name]]
    for rank in range(1, rules.ranks + 1):
        views["unseen"][..., lookup[rank] - 1] = before["unseen"][..., rank - 1]
    return changed


def test_pair_groups_are_all_alike_to_the_network():
    """Exchanging aces with fives and queens with eights exchanges the features of two groups, and nothing else."""
    rules = pe.rules("pyramid")
    tokens, legal = positions("pyramid", steps=12)
    exchanged = torch.from_numpy(with_ranks(tokens.numpy(), rules, {1: 5, 5: 1, 12: 8, 8: 12}))
    torch.manual_seed(0)
    groups = network_for(rules, "memory", {"embedding": 16, "groups": 8, "group_blocks": 2}).groups
    for block in groups.blocks:
        torch.nn.init.normal_(block.back.weight)
    order = [4, 1, 2, 3, 0, 5]
    before, after = groups(tokens), groups(exchanged)
    assert torch.allclose(before[:, order], after, atol=1e-5)
    assert not torch.allclose(before, after, atol=1e-2)
    moved = torch.tensor([*order, -1], dtype=torch.int8)
    assert torch.equal(moved[groups.group_of(tokens, legal).long()], groups.group_of(exchanged, legal))


@pytest.mark.parametrize("preset", ["pyramid", "till_dawn", "microsoft", "giza", "overlap", "double_pyramid", "mini"])
def test_the_group_of_a_move_is_that_of_the_cards_that_leave(preset):
    rules = pe.rules(preset)
    games = TrainingGames(rules, tiny("env.num_envs=64").env, RandomDeals(1))
    groups = PairGroups(PairTables(rules, "memory"), 4, 0)
    rng, seen = np.random.default_rng(0), set()
    for _ in range(60):
        legal = legal_lists(games.bits)
        actions = np.array([rng.choice(row[row >= 0]) for row in legal]).astype(np.int64)
        chosen = torch.from_numpy(actions.astype(np.int16)[:, None])
        found = groups.group_of(torch.from_numpy(games.rows), chosen)[:, 0].tolist()
        ranks, left = games._arrays.ranks.copy(), games._arrays.states[:, :2].copy()
        ended = games.step(actions).games.tolist()
        for b in set(range(games.count)) - set(ended):
            pyramid, stock = (int(bits) for bits in left[b] & ~games._arrays.states[b, :2])
            gone = [i for i in range(rules.places) if pyramid >> i & 1]
            gone += [rules.places + k for k in range(rules.stock_size) if stock >> k & 1]
            assert found[b] == (min(ranks[b, gone]) - 1 if len(gone) == 2 else -1)
            seen.add(move_table(rules)[int(actions[b])].kind)
    assert len(seen) >= 4


def test_masked_moves_are_never_drawn_and_legal_ones_as_often_as_they_should():
    logits = np.full((40_000, 4), MASKED_LOGIT, np.float32)
    logits[:, :3] = [0.0, math.log(2.0), 0.0]
    slots, log_probs = np.empty(40_000, np.int64), np.empty(40_000, np.float32)
    numbers = np.random.default_rng(0).random(40_000)
    numbers[:2] = 0.0, np.nextafter(1.0, 0.0)
    assert draw_slots(logits, numbers, slots, log_probs)
    assert np.allclose(np.bincount(slots, minlength=4) / 40_000, [0.25, 0.5, 0.25, 0.0], atol=0.01)
    assert np.allclose(np.exp(log_probs), np.array([0.25, 0.5, 0.25])[slots])
    logits[7, 1] = np.nan
    assert not draw_slots(logits, numbers, slots, log_probs)


def test_training_draws_legal_moves_alone():
    """The games refuse an illegal move, so that it was legal is seen in the masks that were stored."""
    ppo = Ppo(tiny("rules=pyramid", "ppo.n_steps=40", "env.num_envs=32"))
    ppo.collect()
    legal = legal_lists(ppo.rollout.bits.reshape(-1, ppo.rollout.bits.shape[-1]))
    assert (legal == ppo.rollout.actions.reshape(-1, 1)).any(axis=1).all()
    with pytest.raises(pe.errors.PyramidError, match="expected legal ones, got 0 in game 0"):
        ppo.games.step(np.zeros(32, np.int64))


def test_the_entropy_of_a_uniform_policy_is_the_log_of_the_number_of_legal_moves():
    ppo = Ppo(tiny("ppo.n_epochs=1", "ppo.batch_size=64"))
    with torch.no_grad():
        ppo.network.action.weight.zero_()
    ppo.set_schedules(0.0)
    ppo.collect()
    legal = legal_lists(ppo.rollout.bits.reshape(-1, ppo.rollout.bits.shape[-1]))
    expected = np.log((legal >= 0).sum(axis=1)).mean()
    assert expected > 0.3
    assert ppo.update()["train/entropy"] == pytest.approx(expected, abs=1e-6)


def test_gradients_are_finite_and_those_of_the_loss_written_out():
    """The clipped loss by torch's own distributions, over all actions."""
    ppo = Ppo(tiny("ppo.batch_size=64", "ppo.ent_coef=0.1"))
    ppo.set_schedules(0.0)
    ppo.collect()
    with torch.no_grad():  # a policy that has moved, so that ratios are clipped
        for parameter in ppo.network.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    (batch,) = ppo._batches(ppo._samples())
    ppo._gradients(batch)
    ours = [parameter.grad.clone() for parameter in ppo.network.parameters()]
    assert all(torch.isfinite(gradient).all() for gradient in ours)
    logits, values = ppo.network(batch.rows)
    masks = torch.zeros(logits.shape, dtype=torch.bool)
    for row, actions in enumerate(batch.legal.tolist()):
        masks[row, [a for a in actions if a >= 0]] = True
    policy = torch.distributions.Categorical(logits=logits.masked_fill(~masks, -1e8))
    actions = batch.legal.gather(1, batch.slots[:, None]).squeeze(1)
    ratio = (policy.log_prob(actions) - batch.log_probs).exp()
    assert ((ratio - 1.0).abs() > 0.2).any()
    gain = torch.min(ratio * batch.advantages, ratio.clamp(0.8, 1.2) * batch.advantages)
    loss = -gain.mean() - 0.1 * policy.entropy().mean() + 0.5 * (values - batch.returns).square().mean()
    plain = torch.autograd.grad(loss, list(ppo.network.parameters()))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(ours, plain, strict=True))


def test_two_threads_share_the_gradient_of_a_batch():
    one, two = (Ppo(tiny(f"threads={threads}", "ppo.batch_size=64")) for threads in (1, 2))
    for ppo in (one, two):
        ppo.set_schedules(0.0)
        ppo.collect()
        (batch,) = ppo._batches(ppo._samples())
        ppo._gradients(batch)
    pairs = zip(one.network.parameters(), two.network.parameters(), strict=True)
    assert all(torch.allclose(a.grad, b.grad, atol=1e-6) for a, b in pairs)
    two.close()


def test_a_batch_of_card_graphs_is_learned_from_piece_by_piece(monkeypatch):
    found = []
    for piece in (256, 16):
        monkeypatch.setattr("agents.ppo.BLOCK", piece)
        ppo = Ppo(tiny("ppo.batch_size=64", "network.cards=8", "network.card_layers=1"))
        sizes: list[int] = []
        whole = ppo._gradients_of
        monkeypatch.setattr(
            ppo, "_gradients_of", lambda b, n, whole=whole, sizes=sizes: sizes.append(len(b.slots)) or whole(b, n)
        )
        ppo.set_schedules(0.0)
        ppo.collect()
        (batch,) = ppo._batches(ppo._samples())
        ppo._gradients(batch)
        assert sizes == [min(piece, 64)] * max(1, 64 // piece)
        found.append([parameter.grad for parameter in ppo.network.parameters()])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*found, strict=True))


def test_schedules_go_from_one_end_to_the_other():
    settings = [
        "ppo.learning_rate=1.0",
        "ppo.final_learning_rate=0.1",
        "ppo.clip_range=0.4",
        "ppo.final_clip_range=0.5",
    ]
    ends = {}
    for schedule in ("linear", "cosine"):
        ppo = Ppo(tiny(*settings, "ppo.ent_coef=0.01", "ppo.final_ent_coef=0", f"ppo.schedule={schedule}"))
        for done in (0.0, 0.25, 0.5, 1.0):
            ppo.set_schedules(done)
            ends[schedule, done] = ppo.optimizer.param_groups[0]["lr"], ppo.clip_range, ppo.ent_coef
    for schedule in ("linear", "cosine"):
        assert ends[schedule, 0.0] == pytest.approx((1.0, 0.4, 0.01))
        assert ends[schedule, 0.5] == pytest.approx((0.55, 0.3, 0.005))
        assert ends[schedule, 1.0] == pytest.approx((0.1, 0.2, 0.0))
    assert ends["linear", 0.25][2] == pytest.approx(0.0075)
    assert ends["cosine", 0.25][2] == pytest.approx(0.01 * (0.5 + 0.5 * math.sqrt(0.5)))


# ---- games -----------------------------------------------------------------------------------------------------------


def test_the_games_are_those_of_the_environment_and_their_sums_are_right():
    """Random play beside Game objects of the same deals."""
    deals = RandomDeals(3)
    games = TrainingGames(pe.rules("mini"), tiny("env.reward=par").env, deals)
    numbers, rng = RandomDeals(3), np.random.default_rng(0)
    played = [pe.Game(int(number), "mini") for number in numbers.take(8)]
    finished = {"games": 0, "wins": 0, "par": 0, "length": 0}
    for _ in range(200):
        legal = legal_lists(games.bits)
        actions = np.array([rng.choice(row[row >= 0]) for row in legal]).astype(np.int64)
        before = [game.par for game in played]
        ended = games.step(actions)
        for b, game in enumerate(played):
            game.play(int(actions[b]))
            assert games.rewards[b] == game.par - before[b]
        assert ended.games.tolist() == [b for b, game in enumerate(played) if game.is_over]
        assert ended.cut_off.size == 0
        fresh = numbers.take(ended.games.size)
        for b, number in zip(ended.games.tolist(), fresh.tolist(), strict=True):
            game = played[b]
            finished["games"] += 1
            finished["wins"] += game.is_won
            finished["par"] += game.par
            finished["length"] += len(game.history)
            played[b] = pe.Game(number, "mini")
    report = games.report()
    assert report["games"] == finished["games"] > 50
    for name in ("wins", "par", "length"):
        assert report[name] == pytest.approx(finished[name] / finished["games"])
    assert report["return"] == pytest.approx(report["par"] + pe.rules("mini").cards)
    assert games.report() == {}


@pytest.mark.parametrize("changes", [(), ("env.max_episode_steps=15",)])
@pytest.mark.parametrize("preset", ["mini", "one_pass", "till_dawn", "giza"])
def test_games_in_which_moves_without_a_choice_are_made_at_once_are_the_same_games(preset, changes):
    """One game after the other by a player who decides by the number of moves so far; both ways count the same."""

    def play(choices):
        settings = tiny(
            "env.num_envs=1", "ppo.batch_size=8", "env.reward=par", f"env.skip_forced={choices}", *changes
        ).env
        games = TrainingGames(pe.rules(preset), settings, RandomDeals(4))
        seen = []
        for _ in range(400 if choices else 4000):
            legal = legal_lists(games.bits)[0]
            legal = legal[legal >= 0]
            assert legal.size > 1 or not choices
            finished = games.step(legal[[(7 * int(games.rows.sum())) % legal.size]].astype(np.int64))
            if finished.games.size or games.ended[0] > len(seen):
                assert choices or games.ended[0] == len(seen) + 1
                seen += [None] * (int(games.ended[0]) - len(seen) - 1) + [games.ended.tolist()]
        return seen

    every, choices = play(False), play(True)
    compared = [pair for pair in zip(every, choices, strict=False) if pair[1] is not None]
    assert len(compared) > 10
    assert all(one == pytest.approx(other) for one, other in compared)


def test_games_go_on_from_what_was_kept():
    def fresh():
        deals = RandomDeals(5)
        return TrainingGames(
            pe.rules("pyramid"), tiny("env.max_episode_steps=30", "env.reward=shaped").env, deals
        ), deals

    def play(games, steps, seed):
        rng, seen = np.random.default_rng(seed), []
        for _ in range(steps):
            legal = legal_lists(games.bits)
            seen.append((games.rows.copy(), legal))
            ended: Finished = games.step(np.array([rng.choice(row[row >= 0]) for row in legal]).astype(np.int64))
            seen.append((games.rewards.copy(), ended.games, ended.cut_off, ended.last_rows))
        return [array.tolist() for arrays in seen for array in arrays], games.report()

    games, deals = fresh()
    play(games, 45, 0)
    kept, state = games.state(), json.loads(json.dumps(deals.state()))
    copy, copied_deals = fresh()
    copy.restore(kept)
    copied_deals.restore(state)
    assert play(games, 60, 1) == play(copy, 60, 1)


# ---- learning --------------------------------------------------------------------------------------------------------


class Toy:
    """A toy in place of the games: 8 tokens of 0..3 and 40 actions; ten moves a game.

    Of the actions with each remainder by 4 one is legal. The right move, worth 1, is the one whose remainder is
    token 0; another legal one is worth 0, an illegal one -1. With ``hidden`` the token is shown at a game's
    first move only, and what it says holds for all of them.
    """

    ACTIONS, LEGAL, MOVES = 40, 4, 10

    def __init__(self, count, hidden=False, masked=True):
        self.count, self.hidden, self.masked = count, hidden, masked
        self.rng = np.random.default_rng(7)
        self.rows = np.zeros((count, 8), np.int8)
        self.bits = np.zeros((count, 1), np.int64)
        self.rewards = np.zeros(count, np.float32)
        self.moves = np.zeros(count, np.int64)
        self.wanted = np.zeros(count, np.int64)
        self.score, self.played = 0.0, 0
        self.show(np.arange(count))

    def show(self, games):
        if self.hidden:
            self.rows[:, 0] = 0
            first = np.flatnonzero(self.moves == 0)
            self.wanted[first] = self.rng.integers(self.LEGAL, size=first.size)
            self.rows[first, 0] = self.wanted[first]
        else:
            self.wanted[games] = self.rng.integers(self.LEGAL, size=games.size)
            self.rows[games, 0] = self.wanted[games]
        self.rows[:, 1:] = self.rng.integers(4, size=(self.count, 7))
        tens = self.rng.integers(self.ACTIONS // self.LEGAL, size=(self.count, self.LEGAL))
        self.legal = tens * self.LEGAL + np.arange(self.LEGAL)  # (B, 4) in the column of its remainder
        masks = np.zeros((self.count, self.ACTIONS), bool)
        np.put_along_axis(masks, self.legal, True, axis=1)
        self.bits[:] = mask_bits(masks if self.masked else np.ones_like(masks))

    def step(self, actions):
        right = self.legal[np.arange(self.count), self.wanted] == actions
        legal = (self.legal == actions[:, None]).any(axis=1)
        self.rewards[:] = np.where(right, 1.0, np.where(legal, 0.0, -1.0))
        self.score, self.played = self.score + float(self.rewards.sum()), self.played + self.count
        self.moves = (self.moves + 1) % self.MOVES
        games = np.flatnonzero(self.moves == 0)
        self.show(np.arange(self.count))
        return Finished(games, games[:0], self.rows[:0], self.bits[:0])

    def report(self):
        mean, self.score, self.played = self.score / self.played, 0.0, 0
        return {"mean": mean}


def on_toy(updates, *overrides, **toy):
    """Mean rewards of a move: untrained, and in the last update."""
    config = tiny("env.num_envs=64", "ppo.n_steps=20", "ppo.batch_size=320", "ppo.gamma=0", *overrides)
    ppo = Ppo(config)
    ppo.games = Toy(64, **toy)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = TokenNetwork(
            np.full(8, 4), Toy.ACTIONS, embedding=32, shared=(32,), recurrent=config.network.recurrent
        )
    ppo.network, ppo.optimizer = network, torch.optim.Adam(network.parameters(), 3e-3, eps=1e-5)
    ppo.rollout = Rollout(20, 64, 8, 1)
    scores = []
    for _ in range(updates):
        ppo.set_schedules(0.0)
        for group in ppo.optimizer.param_groups:
            group["lr"] = 3e-3
        ppo.collect()
        scores.append(ppo.update()["rollout/mean"])
    return scores[0], scores[-1]


def test_the_toy_is_learned_with_masks_and_neither_untrained_nor_without_them():
    """A move's mean reward: untrained 0.27; trained 0.999; trained as long without masks -0.88, which finding a legal
    move among forty costs."""
    untrained, trained = on_toy(25)
    assert 0.2 < untrained < 0.3
    assert trained > 0.95
    assert on_toy(25, masked=False)[1] < -0.5


def test_what_was_seen_once_is_remembered_with_memory_alone():
    """Shown at the first of ten moves, wanted at all: mean reward 0.999 with a GRU; without at most 0.1 + 0.9 / 4."""
    untrained, trained = on_toy(50, "network.recurrent=32", hidden=True)
    assert 0.2 < untrained < 0.35
    assert trained > 0.9
    assert on_toy(50, hidden=True)[1] < 0.4


def test_memory_of_a_sequence_is_that_of_its_steps_and_ends_with_the_game():
    ppo = Ppo(
        tiny("rules=mini", "env.observation=table", "network.recurrent=8", "ppo.n_steps=32", "ppo.batch_size=256")
    )
    ppo.set_schedules(0.0)
    for _ in range(2):
        ppo.collect()
    (batch,) = ppo._batches(ppo._samples())
    assert batch.starts[1:].any()
    with torch.no_grad():
        logits, values = ppo._evaluate(batch)
    log_probs = logits.log_softmax(1).gather(1, batch.slots[:, None]).squeeze(1)
    assert torch.allclose(log_probs, batch.log_probs, atol=1e-5)
    assert torch.allclose(values, batch.returns - torch.from_numpy(_unshuffled(ppo, batch)), atol=1e-4)


def _unshuffled(ppo, batch):
    """Advantages in the batch's order of games, before they were normalised."""
    flat = ppo.rollout.advantages.reshape(-1)
    return batch.advantages.numpy() * (flat.std() + 1e-8) + flat.mean()


def test_an_agent_with_memory_plays_each_game_as_if_alone():
    """Games of a block end one after the other, so rows are not games."""
    rules = pe.rules("mini")
    torch.manual_seed(0)
    network = TokenNetwork(token_values(rules, "table"), len(move_table(rules)), embedding=16, recurrent=8)
    with torch.no_grad():
        network.action.weight.mul_(200.0)
    agent = TokenAgent(network, rules, "table")
    deals = np.arange(10_000, 10_030)
    together = evaluate_agent(agent, rules, deals, seed=0, keep_actions=True)
    alone = evaluate_agent(agent, rules, deals, seed=0, keep_actions=True, batch_size=1)
    assert [record.actions for record in together] == [record.actions for record in alone]
    with torch.no_grad():
        network.core.weight_hh.zero_()
    other = evaluate_agent(agent, rules, deals, seed=0, keep_actions=True)
    assert [record.actions for record in other] != [record.actions for record in alone]
    with pytest.raises(pe.errors.PyramidError, match="call begin and act_in"):
        agent.act({}, np.ones((1, len(move_table(rules))), bool), np.random.default_rng(0))


class OneDeal:
    """The same deal for ever."""

    def __init__(self, number):
        self.number = number

    def take(self, count):
        return np.full(count, self.number)


def test_one_deal_is_learned_to_its_bound():
    """Deal 10,008 of mini: the solver's best par is known; an untrained policy averages far less."""
    rules = pe.rules("mini")
    number = next(n for n in range(10_000, 10_100) if pe.solve(n, rules, "score").value == 50)
    ppo = Ppo(
        tiny("env.reward=par", "env.reward_scale=0.02", "env.num_envs=32", "ppo.n_steps=32", "ppo.batch_size=256")
    )
    ppo.games = TrainingGames(rules, ppo.config.env, OneDeal(number))
    scores = []
    for _ in range(40):
        ppo.set_schedules(0.0)
        for group in ppo.optimizer.param_groups:
            group["lr"] = 3e-3
        ppo.collect()
        scores.append(ppo.update()["rollout/par"])
    (record,) = evaluate_agent(ppo.agent("ppo", True), rules, np.array([number]), seed=0)
    assert scores[0] < 30.0
    assert record.par == 50


def test_the_log_has_what_people_look_for(tmp_path, monkeypatch):
    seen = {}
    log = Ppo.log
    monkeypatch.setattr(Ppo, "log", lambda self, values: (seen.update(values), log(self, values)))
    train(tiny("evaluation.bound=true", "ppo.n_steps=32", "ppo.batch_size=64"), tmp_path / "run")
    wanted = {
        "rollout": ("win_rate", "par", "score", "episode_length", "return", "games"),
        "evaluation": ("win_rate", "mean_score", "share_of_bound", "regret"),
        "train": ("entropy", "explained_variance", "clip_fraction", "approx_kl", "learning_rate", "policy_loss"),
        "time": ("steps_per_second",),
    }
    assert {f"{part}/{name}" for part, names in wanted.items() for name in names} <= set(seen)
    assert all(math.isfinite(value) for value in seen.values())
    assert any((tmp_path / "run" / "tensorboard").iterdir())


# ---- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "words"), [("action", r"action \(its weight\)"), ("trunk.table", r"trunk.table \(its")]
)
def test_symptom_nan_stops_with_step_layer_and_batch(tmp_path, monkeypatch, layer, words):
    run, config = tmp_path / "run", tiny("evaluation.every_steps=0")
    folder = RunFolder(run)
    folder.start(config)
    trainer = Trainer(config, folder, lambda line: None, False)
    learn = trainer.learner.update

    def poison():
        told = learn()
        if trainer.learner.steps >= 128:
            with torch.no_grad():
                trainer.learner.network.get_submodule(layer).weight.fill_(float("nan"))
        return told

    monkeypatch.setattr(trainer.learner, "update", poison)
    with pytest.raises(TrainingError, match=rf"step 192: NaN .* {words}.*; the batch is in .*nonfinite_192.npz"):
        trainer.work()
    with np.load(run / "nonfinite_192.npz") as batch:
        assert set(batch) == {"observations", "legal_actions"}
    assert load_checkpoint(run / "checkpoints" / "latest.safetensors").progress["steps"] == 128


def test_a_batch_with_gradients_that_are_not_finite_changes_no_weight():
    ppo = Ppo(tiny())
    ppo.set_schedules(0.0)
    ppo.collect()
    ppo.rollout.returns[0, 0] = np.inf
    with pytest.raises(ArithmeticError, match="NaN or infinity"):
        ppo.update()
    assert all(torch.isfinite(weight).all() for weight in ppo.weights().values())


# ---- going on --------------------------------------------------------------------------------------------------------


def weights(run, name="latest"):
    return load_checkpoint(run / "checkpoints" / f"{name}.safetensors").policy


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


class Killed(BaseException):
    pass


def killed_at(monkeypatch, place, call):
    """Kill the run in the so manieth call of a function of the learner or the trainer."""
    owner, name = {"collect": (Ppo, "collect"), "gradients": (Ppo, "_gradients"), "keep": (Trainer, "_keep")}.get(
        place, (Trainer, "save")
    )
    original, left = getattr(owner, name), [call]

    def dies(self, *args, **kwargs):
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return original(self, *args, **kwargs)

    monkeypatch.setattr(owner, name, dies)


VARIANTS = {
    "plain": [],
    "cut off": ["env.max_episode_steps=5", "env.reward=shaped", "ppo.target_kl=0.01", "ppo.schedule=cosine"],
    "memory": ["network.recurrent=8", "env.observation=table"],
    "wide": ["network.blocks=1", "checkpoint_steps=192", "ppo.batch_size=64"],
    "critic": ["ppo.asymmetric_critic=true", "network.groups=4", "network.recurrent=8", "env.observation=table"],
    "curriculum": ["env.starts.share=0.6", "env.deals=ordered", "ppo.asymmetric_critic=true"],
    "choices": ["env.skip_forced=true", "network.cards=8", "network.half=true", "ppo.asymmetric_critic=true"],
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_killed_again_and_again_ends_bit_for_bit_as_one_that_was_not(tmp_path, monkeypatch, variant):
    config = tiny(*VARIANTS[variant])
    straight = train(config, tmp_path / "straight").run
    run, rng = tmp_path / "killed", np.random.default_rng(len(variant))
    deaths = [("collect", 3), ("gradients", 5), ("keep", 2), ("save", 3), ("collect", 1)]
    deaths += [(str(rng.choice(["collect", "gradients", "save"])), int(rng.integers(1, 6))) for _ in range(4)]
    died = 0
    for place, call in deaths:
        killed_at(monkeypatch, place, call)
        try:
            resume(run) if run.exists() else train(config, run)
        except Killed:
            died += 1
        monkeypatch.undo()
        np.random.seed(died)  # noqa: NPY002 - nothing global may count
        torch.manual_seed(died)
    assert died >= 5
    assert resume(run).finished
    assert (run / EVALUATIONS_FILE).read_bytes() == (straight / EVALUATIONS_FILE).read_bytes()
    for name in ("latest", "best"):
        assert same(weights(run, name), weights(straight, name))
    ends = [load_checkpoint(folder / "checkpoints" / "latest.safetensors") for folder in (run, straight)]
    assert all(ends[0].progress[what] == ends[1].progress[what] for what in ("steps", "updates", "state"))
    assert all(torch.equal(ends[0].training[name], ends[1].training[name]) for name in ends[0].training)


def test_a_run_that_was_asked_to_stop_goes_on_bit_for_bit(tmp_path, monkeypatch):
    straight = train(tiny(), tmp_path / "straight").run
    run, collect, left = tmp_path / "stopped", Ppo.collect, [3]

    def signalled(self, played):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGINT)
        collect(self, played)

    monkeypatch.setattr(Ppo, "collect", signalled)
    result = train(tiny(), run)
    assert not result.finished
    assert result.steps == 3 * 64
    assert resume(run).finished
    assert (run / EVALUATIONS_FILE).read_bytes() == (straight / EVALUATIONS_FILE).read_bytes()
    assert same(weights(run), weights(straight))


def test_a_process_killed_outright_goes_on_bit_for_bit(tmp_path, pytestconfig):
    """SIGKILL at moments that nobody chose."""
    config = tmp_path / "tiny.yaml"
    settings = ["total_steps=6400", "checkpoint_steps=320", "evaluation.every_steps=1280"]
    config.write_text(tiny(*settings).to_yaml())
    straight, run = tmp_path / "straight", tmp_path / "killed"
    train(tiny(*settings), straight)
    call = [sys.executable, "train.py", "--config", str(config), "--run", str(run)]
    for wait in (0.05, 0.4):
        process = subprocess.Popen(call, cwd=pytestconfig.rootpath, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout.readline()  # it has begun
        time.sleep(wait)
        process.kill()
        process.communicate()
        call = [sys.executable, "train.py", "--resume", str(run)]
    done = subprocess.run(call, cwd=pytestconfig.rootpath, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (run / EVALUATIONS_FILE).read_bytes() == (straight / EVALUATIONS_FILE).read_bytes()
    assert same(weights(run), weights(straight))
    assert not list((run / "checkpoints").glob("*.tmp"))


def test_going_on_with_winnable_deals_is_bit_for_bit_too(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = tiny("env.deals=winnable", "total_steps=256")
    straight = train(config, tmp_path / "straight").run
    run = tmp_path / "killed"
    killed_at(monkeypatch, "collect", 3)
    with pytest.raises(Killed):
        train(config, run)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    resume(run)
    assert same(weights(run), weights(straight))


# ---- what does not fit is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("rules: mini_one_pass", "they differ in passes 3 .trained. and 1 .asked for."),
        ("algorithm: dqn", "algorithm 'ppo' does not belong to 'dqn'"),
        ("observation: table", "level 'memory' does not belong to 'table'"),
        ("embedding: 8", r"weights do not fit the network: .*: expected shape"),
        ("num_envs: 16", "games.ranks: expected shape"),
    ],
)
def test_a_checkpoint_that_does_not_belong_to_the_settings_is_refused(tmp_path, setting, words):
    run = train(tiny(), tmp_path / "run").run
    key = setting.partition(":")[0]
    lines = (run / "config.yaml").read_text().splitlines()
    changed = [
        line[: len(line) - len(line.lstrip())] + setting if line.strip().startswith(key + ":") else line
        for line in lines
    ]
    (run / "config.yaml").write_text("\n".join(changed))
    with pytest.raises(pe.errors.PyramidError, match=words):
        resume(run)


def test_an_agent_of_another_environment_version_or_shape_is_refused(tmp_path):
    from dataclasses import replace

    run = train(tiny("total_steps=64"), tmp_path / "run").run
    made = load_checkpoint(run / "checkpoints" / "best.safetensors")
    assert not made.optimizer
    assert not made.training
    path = tmp_path / "a.safetensors"
    save_checkpoint(replace(made, environment="pyramid_env/Pyramid-v9"), path)
    with pytest.raises(pe.errors.PyramidError, match=r"trained in pyramid_env/Pyramid-v9, this version has .*-v0"):
        make_agent(str(path), "mini")
    save_checkpoint(replace(made, tokens=made.tokens[1:]), path)
    with pytest.raises(pe.errors.PyramidError, match=r"made for observations of \d+ entries"):
        make_agent(str(path), "mini")
    save_checkpoint(replace(made, kind="ppo2"), path)
    words = "expected a checkpoint of kind ppo, teacher, imitation, maskable_ppo, dqn, got 'ppo2'"
    with pytest.raises(pe.errors.PyramidError, match=words):
        make_agent(str(path), "mini")
    shutil.rmtree(run)


def test_our_agents_need_no_stable_baselines3(tmp_path, pytestconfig):
    run = train(tiny("total_steps=64"), tmp_path / "run").run
    code = (
        "import sys; from agents import load; load(sys.argv[1]); import agents.ppo;"
        "assert not {'stable_baselines3', 'sb3_contrib'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(run)], cwd=pytestconfig.rootpath).returncode == 0
