"""The critic that sees all cards: it does, the policy does not, and what is played needs no critic."""

import numpy as np
import pytest
import torch

import agents
import pyramid_env as pe
from agents.checkpoint import load_checkpoint
from agents.config import make_config
from agents.evaluation import evaluate_agent
from agents.legal import legal_lists
from agents.ppo import Ppo
from agents.training import resume, train
from pyramid_env import functional
from pyramid_env.observation import layout

TINY = {
    "rules": "mini",
    "total_steps": 256,
    "checkpoint_steps": 64,
    "env": {"num_envs": 8},
    "network": {"embedding": 16, "shared": [16], "value": [8]},
    "ppo": {"n_steps": 8, "batch_size": 32, "n_epochs": 2, "asymmetric_critic": True},
    "evaluation": {"deals": "validation:0-19", "every_steps": 128, "bound": False},
}


def tiny(*overrides):
    return make_config(TINY, overrides)


def learned(config, updates):
    """A learner after some updates, and what the last of them told."""
    ppo, told = Ppo(config), {}
    for _ in range(updates):
        ppo.set_schedules(0.0)
        ppo.collect()
        told = ppo.update()
    return ppo, told


def with_other_hidden_cards(ppo):
    """Rows of the games as they stand, and once more with the unseen stock cards in reverse order; what was changed.

    By the cards themselves: the rows come from the environment's own observation.
    """
    games = ppo.games
    rules, arrays = games.rules, games._arrays
    before, changed = games.rows.copy(), np.zeros(games.count, bool)
    seen = ppo.critic.seen
    known = layout(rules, "memory").views(before[:, :seen])["known"]
    for b in range(games.count):
        hidden = np.flatnonzero(known[b] == rules.ranks + 1) + rules.places
        reverse = arrays.ranks[b, hidden[::-1]]
        changed[b] = not np.array_equal(reverse, arrays.ranks[b, hidden])
        arrays.ranks[b, hidden] = reverse
    functional.observe(rules, games.level, arrays)
    return before, games.rows.copy(), changed


@pytest.mark.parametrize("rules", ["pyramid", "till_dawn"])
@pytest.mark.parametrize("groups", [0, 4])
def test_hidden_cards_change_the_critics_values_and_no_logit_of_the_policy(rules, groups):
    small = ["env.num_envs=32", "ppo.batch_size=64", f"network.groups={groups}"]
    ppo, _ = learned(tiny(f"rules={rules}", *small), 2)
    legal = legal_lists(ppo.games.bits)
    rows, other, changed = with_other_hidden_cards(ppo)
    assert changed.sum() >= 8
    assert np.array_equal(legal, legal_lists(ppo.games.bits))
    with torch.no_grad():
        first, values, _ = ppo._look(rows, legal)
        second, other_values, _ = ppo._look(other, legal)
    assert torch.equal(first, second)
    assert (values != other_values).numpy()[changed].all()
    assert torch.equal(values[torch.from_numpy(~changed)], other_values[torch.from_numpy(~changed)])


def test_what_the_policy_gets_is_what_the_player_sees():
    ppo, _ = learned(tiny("rules=pyramid", "env.num_envs=16"), 3)
    arrays = ppo.games._arrays
    plain = functional.arrays("pyramid", "memory", 16)
    plain.ranks[:], plain.states[:] = arrays.ranks, arrays.states
    functional.observe("pyramid", "memory", plain)
    assert np.array_equal(ppo._seen(torch.from_numpy(ppo.games.rows)).numpy(), plain.rows)
    assert ppo.games.rows.shape[1] > plain.rows.shape[1]


def test_the_two_share_nothing_and_the_policys_own_value_stays_as_it_was():
    config = tiny()
    ppo, _ = learned(config, 1)
    plain, fresh = Ppo(tiny("ppo.asymmetric_critic=false")), Ppo(config)
    for (name, now), at_first, without in zip(
        ppo.network.named_parameters(), fresh.network.parameters(), plain.network.parameters(), strict=True
    ):
        assert torch.equal(at_first, without)  # the same policy begins, with the switch or without
        assert torch.equal(now, at_first) == name.startswith(("value.", "worth.")), name
    for now, at_first in zip(ppo.critic.parameters(), fresh.critic.parameters(), strict=True):
        assert not torch.equal(now, at_first)
    policy, critic = ({p.data_ptr() for p in module.parameters()} for module in (ppo.network, ppo.critic))
    assert not policy & critic


def test_a_game_that_is_cut_off_is_worth_what_the_critic_says_of_its_last_position():
    ppo = Ppo(tiny("env.max_episode_steps=3", "ppo.gamma=0.5", "ppo.gae_lambda=0", "env.reward=win"))
    with torch.no_grad():
        ppo.critic.worth.weight.zero_()
        ppo.critic.worth.bias.fill_(8.0)
    ppo.collect()
    assert ppo.rollout.truncated[2].all()
    assert np.allclose(ppo.rollout.last_values[2], 8.0)
    assert np.allclose(ppo.rollout.advantages, 0.5 * 8.0 - 8.0)


def test_two_threads_share_the_gradient_of_a_batch():
    one, two = (Ppo(tiny(f"threads={threads}", "ppo.batch_size=64")) for threads in (1, 2))
    for ppo in (one, two):
        ppo.set_schedules(0.0)
        ppo.collect()
        (batch,) = ppo._batches(ppo._samples())
        ppo._gradients(batch)
    assert all(torch.allclose(a.grad, b.grad, atol=1e-6) for a, b in zip(one._trained, two._trained, strict=True))
    assert all(p.grad is not None for p in one.critic.parameters())
    two.close()


def test_the_critic_learns_what_no_player_can_know():
    """Games that pay by the last stock card's rank. While it is unseen it is any of the unseen cards with equal chance,
    so a player's expectation errs by their variance; the critic reads it off."""
    sizes = ["env.num_envs=64", "ppo.batch_size=128", "ppo.learning_rate=1e-2", "ppo.max_grad_norm=10"]
    ppo = Ppo(tiny(*sizes))
    fields = layout(pe.rules("mini"), "clairvoyant").views(ppo.rollout.rows)
    errors = blind = np.zeros(0)
    for _ in range(40):
        ppo.set_schedules(0.0)
        ppo.collect()
        unseen, counts = fields["known"][..., -1] == 8, fields["unseen"].astype(float)
        last = fields["clairvoyant_stock"][..., -1]
        errors = np.square(ppo.rollout.values - last)[unseen]
        chances = counts[unseen] / counts[unseen].sum(axis=1, keepdims=True)
        blind = chances @ np.arange(1, 8) ** 2 - (chances @ np.arange(1, 8)) ** 2
        ppo.rollout.returns[:] = last
        ppo.rollout.advantages[:] = 0.0
        ppo.update()
    assert errors.size > 50
    assert errors.mean() < 0.5 * blind.mean()


def test_the_saved_agent_plays_at_its_own_level_and_holds_no_critic(tmp_path):
    run = train(tiny(), tmp_path / "run").run
    best, latest = (load_checkpoint(run / "checkpoints" / f"{name}.safetensors") for name in ("best", "latest"))
    assert not any("critic" in name for name in [*best.policy, *best.training, *latest.policy])
    assert any(name.startswith("critic.") for name in latest.training)
    assert best.level == latest.level == "memory"
    for path in (run, run / "checkpoints" / "latest.safetensors"):
        agent = agents.load(path)
        assert agent.level == "memory"
        records = evaluate_agent(agent, pe.rules("mini"), np.arange(10_000, 10_020), seed=0)
        assert len(records) == 20


def test_nan_in_the_critic_is_named():
    ppo = Ppo(tiny())
    ppo.set_schedules(0.0)
    with torch.no_grad():
        ppo.critic.trunk.table.weight.fill_(float("nan"))
    with pytest.raises(ArithmeticError, match=r"first seen in critic.trunk.table \(its weight\)"):
        ppo.check()
    ppo.collect()
    with pytest.raises(ArithmeticError, match=r"first seen in critic.trunk.table"):
        ppo.update()
    assert all(torch.isfinite(weight).all() for weight in ppo.weights().values())


def test_a_run_does_not_change_its_critic_halfway(tmp_path):
    run = train(tiny("total_steps=128"), tmp_path / "run").run
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("asymmetric_critic: true", "asymmetric_critic: false"))
    with pytest.raises(pe.errors.PyramidError, match=r"critic\.\S+: expected shape none, got \("):
        resume(run)
