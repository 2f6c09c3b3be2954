"""Shipped agents: what their files hold, that they fit, play well, and how a run becomes one."""

import json

import numpy as np
import pytest

import pyramid_env as pe
from agents import AgentError, agent_names, make_agent
from agents.checkpoint import load_checkpoint
from agents.config import make_config
from agents.evaluation import evaluate_agent
from agents.shipped import FOLDER, ship, shipped_path, shipped_presets
from agents.token_agent import QUICK_BATCH
from agents.training import train
from pyramid_env.benchmark.splits import parse_deals
from pyramid_env.errors import PyramidError

WINS = {"pyramid": 0.50, "one_pass": 0.005, "till_dawn": 0.30, "microsoft": 0.50, "double_pyramid": 0.88}
"""What each agent wins at least of the first 300 validation deals, well below what it won when it was shipped."""


def test_there_is_one_for_each_preset_that_is_promised():
    assert set(shipped_presets()) == set(WINS)
    assert "shipped" in agent_names()


@pytest.mark.parametrize("preset", WINS)
def test_a_shipped_file_is_small_and_tells_how_it_was_made(preset):
    path = shipped_path(pe.rules(preset))
    assert path.stat().st_size <= 3_000_000
    checkpoint = load_checkpoint(path)
    assert str(checkpoint.rules) == preset
    assert checkpoint.level == "memory"
    assert not checkpoint.optimizer
    assert not checkpoint.training
    told = checkpoint.progress
    assert {"config", "seed", "command", "hours", "curve", "steps"} <= set(told)
    assert told["config"]["rules"] == preset
    assert "deals" in told["config"]["evaluation"]
    assert told["steps"] in [point["steps"] for point in told["curve"]]
    assert not any(str(word).startswith("/") for word in (*told["command"], told["config"].get("init")))


@pytest.mark.parametrize("preset", WINS)
def test_a_shipped_agent_plays_well(preset):
    agent = make_agent("shipped", preset)
    games = evaluate_agent(agent, pe.rules(preset), parse_deals("validation:0-299"), seed=0, batch_size=150)
    assert agent.name == "shipped"
    assert not agent.clairvoyant
    assert np.mean([game.won for game in games]) >= WINS[preset]


def test_a_batch_changes_no_game_of_a_network_unless_it_draws():
    rules = pe.rules("one_pass")
    agent, sampled = make_agent("shipped", rules), make_agent("shipped:sampled", rules)
    assert (agent.batch_size, sampled.batch_size) == (QUICK_BATCH, 256)
    deals = parse_deals("validation:0-299")
    liked = evaluate_agent(agent, rules, deals, seed=0, keep_actions=True)
    small = evaluate_agent(agent, rules, deals, seed=0, keep_actions=True, batch_size=70)
    assert [game.actions for game in liked] == [game.actions for game in small]


def test_rules_without_a_shipped_agent_are_told():
    with pytest.raises(AgentError, match=r"no trained agent comes with the kit for giza; there are for .*pyramid"):
        make_agent("shipped", "giza")


def test_a_run_becomes_a_file_to_ship(tmp_path):
    config = make_config(
        {
            "rules": "mini",
            "total_steps": 512,
            "checkpoint_steps": 256,
            "env": {"num_envs": 8},
            "network": {"embedding": 16, "shared": [16]},
            "ppo": {"n_steps": 8, "batch_size": 32},
            "evaluation": {"deals": "validation:0-19", "every_steps": 256, "bound": False},
        },
        [],
    )
    train(config, tmp_path / "run")
    file = ship(tmp_path / "run", tmp_path / "mini.safetensors")
    shipped, best = load_checkpoint(file), load_checkpoint(tmp_path / "run" / "checkpoints" / "best.safetensors")
    assert all((shipped.policy[name] == weight).all() for name, weight in best.policy.items())
    assert shipped.progress["curve"][-1]["steps"] == 512
    assert json.dumps(shipped.progress["config"]["rules"]) == '"mini"'
    deals = parse_deals("validation:0-49")
    played = [
        [game.score for game in evaluate_agent(make_agent(str(path), "mini"), config.game, deals, seed=0)]
        for path in (file, tmp_path / "run")
    ]
    assert played[0] == played[1]
    assert shipped.progress["before"] is None
    assert shipped.progress["chosen"] == "best"
    last = load_checkpoint(ship(tmp_path / "run", tmp_path / "last.safetensors", last=True))
    latest = load_checkpoint(tmp_path / "run" / "checkpoints" / "latest.safetensors")
    assert all((last.policy[name] == weight).all() for name, weight in latest.policy.items())
    assert (last.progress["chosen"], last.progress["steps"]) == ("last", 512)
    assert last.progress["curve"] == shipped.progress["curve"]
    for number, init in enumerate((tmp_path / "run", file)):  # a run, and what was shipped of it
        later = tmp_path / f"later{number}"
        train(make_config({**config.to_dict(), "init": str(init)}, []), later)
        told = load_checkpoint(ship(later, tmp_path / "later.safetensors")).progress
        assert told["before"]["curve"] == shipped.progress["curve"]
        assert told["before"]["steps"] == shipped.progress["steps"]
        assert told["config"]["init"] == f"runs/{init.name}"


def test_a_run_that_is_no_preset_needs_a_file(tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(PyramidError, match="expected a run folder"):
        ship(tmp_path / "run")
    assert FOLDER.is_dir()


@pytest.mark.parametrize("spec", ["shipped", "shipped:sampled"])
def test_threads_share_a_move_out_and_play_the_same_games(spec):
    rules, played = pe.rules("one_pass"), []
    for threads in (1, 2, 3):
        agent = make_agent(spec, rules, threads=threads)
        games = evaluate_agent(agent, rules, parse_deals("validation:0-299"), seed=0, batch_size=300, keep_actions=True)
        assert (agent._crew is not None) == (threads > 1)
        played.append([game.actions for game in games])
    assert played[0] == played[1] == played[2]
