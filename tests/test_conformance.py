"""Conformance: Gymnasium's and SB3's checkers and wrappers accept every preset and level without a single warning."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers import FlattenObservation
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from test_env import same
from test_vector_env import choose

import pyramid_env as pe
from pyramid_env.observation import LEVELS, layout

ID = "pyramid_env/Pyramid-v0"
MODULE_ID = f"pyramid_env:{ID}"
"""The id for a process that has not imported pyramid_env: Gymnasium imports the module before the colon."""

every_preset_and_level = pytest.mark.parametrize(
    ("preset", "level"), [(preset, level) for preset in pe.PRESETS for level in LEVELS]
)
every_mode = pytest.mark.parametrize("mode", AutoresetMode)


# ---- single ----------------------------------------------------------------------------------------------------------


@every_preset_and_level
def test_gymnasium_check_env(preset: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the declared render modes once a preset: pictures do not depend on the level. A window needs pygame."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gym.make(ID, rules=preset, observation=level).unwrapped
    check_env(env, skip_render_check=level != "memory" or find_spec("pygame") is None)


@every_preset_and_level
def test_symptom_21_sb3_check_env_passes_though_it_samples_without_masks(preset: str, level: str) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker", reason="SB3 comes with the training extra")
    checker.check_env(gym.make(ID, rules=preset, observation=level).unwrapped, warn=True)


def test_symptom_21_an_environment_that_raises_would_fail_the_checkers() -> None:
    """Why tolerating illegal actions is the default: under ``raise`` the checker's unmasked samples are refused."""
    with pytest.raises(pe.errors.IllegalMoveError):
        check_env(gym.make(ID, illegal_action="raise").unwrapped, skip_render_check=True)


@pytest.mark.parametrize("reward", ["msc", "win", "shaped"])
def test_check_env_with_other_rewards(reward: str) -> None:
    check_env(gym.make(ID, reward=reward).unwrapped, skip_render_check=True)


def test_the_passive_checker_and_flattening_accept_a_whole_game() -> None:
    env = FlattenObservation(gym.make(ID, rules="mini"))
    rng = np.random.default_rng(1)
    observation, info = env.reset(seed=1)
    over = False
    while not over:
        assert observation in env.observation_space
        observation, _, over, _, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))


# ---- vector ----------------------------------------------------------------------------------------------------------


@every_preset_and_level
def test_the_vector_environment_keeps_gymnasiums_contract(preset: str, level: str) -> None:
    for mode in AutoresetMode:
        envs = gym.make_vec(ID, num_envs=3, rules=preset, observation=level, autoreset_mode=mode)
        assert isinstance(envs, pe.PyramidVectorEnv)
        single = gym.make(ID, rules=preset, observation=level)
        frames = [each for each in single.metadata["render_modes"] if each != "human"]  # many games have no window
        assert envs.metadata == {**single.metadata, "autoreset_mode": mode, "render_modes": frames}
        assert envs.single_observation_space == single.observation_space
        assert envs.single_action_space == single.action_space
        assert envs.observation_space == batch_space(single.observation_space, 3)
        assert envs.action_space == batch_space(single.action_space, 3)
        assert (envs.num_envs, envs.closed, envs.spec.id, envs.unwrapped) == (3, False, ID, envs)
        envs.action_space.seed(1)
        returned = envs.reset(seed=1), *(envs.step(envs.action_space.sample()) for _ in range(3))
        for observations, *rest, infos in returned:
            assert observations in envs.observation_space
            assert [(array.shape, array.dtype) for array in rest] in (
                [],
                [((3,), np.float64), ((3,), np.bool_), ((3,), np.bool_)],
            )
            assert infos["action_mask"].shape == (3, envs.single_action_space.n)
            assert infos["action_mask"].dtype == np.int8
            assert all(len(values) == 3 for values in infos.values())
        envs.close()
        assert envs.closed
        envs.close()


def test_make_vec_offers_every_vectorization() -> None:
    for vectorization, kind in (
        (None, pe.PyramidVectorEnv),
        ("vector_entry_point", pe.PyramidVectorEnv),
        ("sync", SyncVectorEnv),
    ):
        envs = gym.make_vec(ID, num_envs=2, vectorization_mode=vectorization, rules="mini")
        assert isinstance(envs, kind)
        again = gym.make_vec(envs.spec)
        assert isinstance(again, kind)
        assert same(envs.reset(seed=1), again.reset(seed=1))


@every_mode
def test_gymnasiums_vector_wrappers_see_what_they_see_over_sync_vector_env(mode: AutoresetMode) -> None:
    """RecordEpisodeStatistics and DictInfoToList, over the native environment and over SyncVectorEnv."""
    native = gym.make_vec(ID, num_envs=3, rules="mini", autoreset_mode=mode)
    sync = SyncVectorEnv([lambda: gym.make(ID, rules="mini")] * 3, autoreset_mode=mode)
    one, other = (RecordEpisodeStatistics(envs) for envs in (native, sync))
    assert same(one.reset(seed=1), other.reset(seed=1))
    as_list = DictInfoToList(one)
    rng, episodes = np.random.default_rng(1), 0
    for _ in range(120):
        actions = choose(rng, native.action_masks())
        (*mine, infos), (*theirs, their_infos) = one.step(actions), other.step(actions)
        assert same(mine, theirs)
        assert infos.keys() == their_infos.keys()
        if "episode" in infos:
            for key in ("r", "l", "_r", "_l"):
                if key in infos["episode"]:
                    assert same(infos["episode"][key], their_infos["episode"][key]), key
        listed = as_list._convert_info_to_list(infos)
        assert [info["deal"] for info in listed] == infos["deal"].tolist()
        ended = mine[2] | mine[3]
        episodes += ended.sum()
        if mode == AutoresetMode.DISABLED and ended.any():
            one.reset(options={"reset_mask": ended.copy()})
            # SyncVectorEnv takes the mask out of the options, and the wrapper then forgets the other games' statistics
            other.env.reset(options={"reset_mask": ended.copy()})
            for name in ("episode_returns", "episode_lengths"):
                getattr(other, name)[ended] = 0
            other.prev_dones[ended] = False
    assert episodes > 10


# ---- worker processes ------------------------------------------------------------------------------------------------


def test_symptom_13_a_fresh_process_knows_the_id() -> None:
    """By ``module:id`` with nothing imported, and by the plain id once pyramid_env is."""
    for lines in (f"gymnasium.make({MODULE_ID!r})", f"import pyramid_env; gymnasium.make({ID!r})"):
        subprocess.run([sys.executable, "-W", "error", "-c", f"import gymnasium; {lines}.reset(seed=1)"], check=True)


def test_symptom_13_async_vector_env_with_spawn() -> None:
    envs = gym.make_vec(
        MODULE_ID, num_envs=2, vectorization_mode="async", vector_kwargs={"context": "spawn"}, rules="mini"
    )
    native = gym.make_vec(ID, num_envs=2, rules="mini")
    rng = np.random.default_rng(1)
    try:
        assert same(envs.reset(seed=1), native.reset(seed=1))
        for _ in range(20):
            actions = choose(rng, native.action_masks())
            assert same(envs.step(actions), native.step(actions))
    finally:
        envs.close()


def test_symptom_13_sb3_workers_with_spawn() -> None:
    util = pytest.importorskip("stable_baselines3.common.env_util", reason="SB3 comes with the training extra")
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env", reason="SB3 comes with the training extra")
    kwargs = {"rules": "mini", "render_mode": None}
    spawned = {"vec_env_cls": vec_env.SubprocVecEnv, "vec_env_kwargs": {"start_method": "spawn"}}
    envs = util.make_vec_env(MODULE_ID, 1, seed=1, env_kwargs=kwargs, **spawned)
    try:
        observations = envs.reset()
        assert same(dict(observations), gym.make_vec(ID, num_envs=1, rules="mini").reset(seed=1)[0])
        masks = envs.env_method("action_masks")[0]
        assert masks.dtype == np.bool_
        envs.step([np.flatnonzero(masks)[0]])
    finally:
        envs.close()


def test_importing_registers_the_id_once_and_compiles_nothing() -> None:
    code = """
import importlib, gymnasium, pyramid_env
importlib.reload(pyramid_env)
gymnasium.spec("pyramid_env/Pyramid-v0")
modules = [importlib.import_module(f"pyramid_env.{name}") for name in ("kernels", "observation", "stepping", "deal")]
kernels = [f for module in modules for f in vars(module).values() if hasattr(f, "signatures")]
assert kernels and not any(f.signatures for f in kernels)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_an_observation_needs_no_copy_to_be_flat() -> None:
    envs = pe.PyramidVectorEnv(4, "till_dawn")
    observations, _ = envs.reset(seed=1)
    assert same(layout(envs.rules, "memory").flat(observations), envs.buffer)
