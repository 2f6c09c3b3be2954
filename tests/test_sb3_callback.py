"""The evaluation callback for SB3 loops: same deals, masks passed, what it logs and keeps."""

import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

import pyramid_env as pe
from agents import AgentError
from agents.evaluation import evaluate_agent
from agents.networks import MaskedTokenPolicy
from agents.sb3 import PyramidVecEnv, Sb3Agent
from agents.sb3_callback import EvaluationCallback
from pyramid_env.benchmark.splits import parse_deals

SIZES = {"embedding": 16, "shared": (16,)}


def model(env, seed=0):
    return MaskablePPO(MaskedTokenPolicy, env, n_steps=32, batch_size=64, seed=seed, policy_kwargs=SIZES)


@pytest.mark.parametrize("wrapper", [lambda env: env, VecMonitor])
def test_it_measures_on_the_same_deals_every_so_many_steps_and_at_the_end(wrapper, tmp_path):
    rules = pe.rules("mini")
    callback = EvaluationCallback("validation:0-99", every_steps=512, best_path=tmp_path / "best.zip")
    learner = model(wrapper(PyramidVecEnv(rules, 8, flat=True, seed=0)))
    learner.learn(1_280, callback)
    assert [steps for steps, *_ in callback.history] == [512, 1_024, 1_280]
    games = evaluate_agent(Sb3Agent(learner.policy, rules, "memory"), rules, parse_deals("validation:0-99"), seed=0)
    assert callback.history[-1][1] == np.mean([game.won for game in games])
    assert callback.history[-1][2] == np.mean([game.score for game in games])
    assert callback.best == max((wins, score) for _, wins, score in callback.history)
    best = MaskablePPO.load(tmp_path / "best.zip")
    games = evaluate_agent(Sb3Agent(best.policy, rules, "memory"), rules, parse_deals("validation:0-99"), seed=0)
    assert (np.mean([g.won for g in games]), np.mean([g.score for g in games])) == callback.best


def test_it_refuses_what_it_cannot_measure():
    with pytest.raises(ValueError, match="every_steps: expected 1 or more, got 0"):
        EvaluationCallback(every_steps=0)
    env = PyramidVecEnv(pe.rules("mini"), 8, flat=True)
    unmasked = PPO("MlpPolicy", env, n_steps=32, batch_size=64, device="cpu")
    with pytest.raises(AgentError, match=r"expected a PyramidVecEnv and a MaskedTokenPolicy or .*, got .*ActorCritic"):
        unmasked.learn(64, EvaluationCallback())
