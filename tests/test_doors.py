"""The doors for other tools: the examples of docs/doors.md run, and what goes through a door is what the game says."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import pyramid_env as pe
from pyramid_env import functional
from pyramid_env.errors import DeckError, PyramidError
from pyramid_env.moves import move_table
from pyramid_env.observation import layout
from pyramid_env.wrappers import MaskInObservation

ROOT = Path(__file__).parent.parent
SECTIONS = (ROOT / "docs" / "doors.md").read_text(encoding="utf-8").split("\n## ")[1:]
EXAMPLES = {text.split("\n")[0]: re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1) for text in SECTIONS}
NEEDED = {"stable-baselines3": "sb3_contrib", "RLlib": "ray.rllib", "TorchRL": "torchrl", "PufferLib": "pufferlib"}


def missing(module: str) -> bool:
    """Is the package not installed? Its parent is looked at first: find_spec would import it."""
    return importlib.util.find_spec(module.split(".")[0]) is None


@pytest.mark.parametrize("door", EXAMPLES)
def test_the_example_runs(door, tmp_path) -> None:
    if door in NEEDED and missing(NEEDED[door]):
        pytest.skip(f"{NEEDED[door]} is not installed")
    example = tmp_path / "example.py"
    example.write_text(EXAMPLES[door], encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(example)], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()


def test_every_door_has_an_example_of_about_twenty_lines() -> None:
    assert set(NEEDED) < set(EXAMPLES)
    assert all(8 <= len(code.splitlines()) <= 26 for code in EXAMPLES.values())
    assert all(max(map(len, code.splitlines())) <= 125 for code in EXAMPLES.values())


# ---- arrays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", pe.PRESETS)
@pytest.mark.parametrize("level", ["table", "memory", "clairvoyant"])
def test_arrays_hold_what_the_vector_environment_holds(preset, level) -> None:
    rules, rng = pe.rules(preset), np.random.default_rng(1)
    envs = pe.PyramidVectorEnv(5, rules, level, autoreset_mode="Disabled")
    envs.reset(options={"deals": np.arange(5)})
    games = functional.arrays(rules, level, 5)
    functional.reset(preset, level, games, range(5))
    for _ in range(40):
        for name in ("ranks", "states", "masks", "facts"):
            assert np.array_equal(getattr(games, name), getattr(envs, name)), name
        assert np.array_equal(games.rows, envs.buffer)
        assert np.array_equal(games.terminated, games.facts[:, functional.OVER] != 0)
        over = np.flatnonzero(games.terminated)
        if over.size:
            numbers = rng.integers(100, size=over.size)
            functional.reset(rules, level, games, numbers, over)
            which, deals = np.zeros(5, bool), np.zeros(5, np.int64)
            which[over], deals[over] = True, numbers
            envs.reset(options={"deals": deals, "reset_mask": which})
        actions = (rng.random(games.masks.shape) * games.masks).argmax(axis=1)
        actions[rng.integers(5)] = rng.integers(games.masks.shape[1])
        illegal = ~games.masks[np.arange(5), actions].astype(bool)
        assert functional.step(rules, level, games, actions) == illegal.sum()
        assert np.array_equal(games.illegal, illegal)
        _, rewards, _, _, _ = envs.step(actions)
        assert np.array_equal(games.rewards, rewards)


def test_a_step_deals_anew_where_it_is_told_to() -> None:
    rules, restart, numbers = pe.rules("mini"), np.array([False, True, False]), np.array([-5, 7, -5])
    games, fresh = functional.arrays(rules, "memory", 3), functional.arrays(rules, "memory", 1)
    functional.reset(rules, "memory", games, [1, 2, 3])
    functional.reset(rules, "memory", fresh, [7])
    draw = len(move_table(rules)) - 1
    functional.step(rules, "memory", games, np.full(3, draw), restart=restart, numbers=numbers, max_steps=1)
    assert np.array_equal(games.rows[1], fresh.rows[0])
    assert games.steps.tolist() == [1, 0, 1]
    assert games.truncated.tolist() == [True, False, True]
    with pytest.raises(PyramidError, match="numbers: expected deal numbers for the games in restart, got None"):
        functional.step(rules, "memory", games, np.full(3, draw), restart=restart)
    with pytest.raises(DeckError, match="expected a whole number from 0"):
        functional.step(rules, "memory", games, np.full(3, draw), restart=~restart, numbers=numbers)


def test_illegal_actions_change_nothing_but_the_count_of_steps() -> None:
    games = functional.arrays("mini", "table", 2)
    functional.reset("mini", "table", games, [1, 2])
    before = [array.copy() for array in games]
    draw = len(move_table(pe.rules("mini"))) - 1
    assert functional.step("mini", "table", games, np.argmin(games.masks, axis=1)) == 2
    assert (games.illegal.tolist(), games.rewards.tolist()) == ([True, True], [-1.0, -1.0])
    for array in (games.illegal, games.rewards, games.steps):
        array[:] = 0
    assert all(map(np.array_equal, before, games))
    game = pe.Game(1, "mini")
    game.play("draw")
    games.states[0] = game.state
    functional.observe("mini", "table", games, np.array([0]))
    legal = sorted(move_table(pe.rules("mini")).index(move) for move in game.legal_moves)
    assert np.flatnonzero(games.masks[0]).tolist() == legal
    for action in (draw + 1, -1):
        with pytest.raises(PyramidError, match=f"actions: expected integers from 0 to {draw}, got {action} for game 1"):
            functional.step("mini", "table", games, np.array([draw, action]))


def test_buffers_may_lie_in_any_memory() -> None:
    own = functional.arrays("mini", "memory", 4)
    shared = functional.Arrays(*(np.frombuffer(bytearray(a.nbytes), a.dtype).reshape(a.shape) for a in own))
    for games in (own, shared):
        functional.reset("mini", "memory", games, [5, 6, 7, 8])
        functional.step("mini", "memory", games, np.full(4, len(move_table(pe.rules("mini"))) - 1, np.int32))
    assert all(map(np.array_equal, own, shared))


@pytest.mark.parametrize(
    ("name", "spoil", "words"),
    [
        ("masks", lambda a: a[:, :-1], r"masks: expected int8 of shape \(2, 20\), got int8 of shape \(2, 19\)"),
        ("masks", lambda a: a.astype(bool), "masks: expected int8 of shape .*, got bool"),
        ("states", lambda a: np.asfortranarray(a), "states: expected a C-contiguous, aligned and writable array"),
        ("facts", lambda a: a.tolist(), "facts: expected int32 of shape .*, got list"),
        ("rows", lambda a: a[:1], "rows: expected int8 of shape"),
    ],
)
def test_buffers_that_do_not_fit_are_refused(name, spoil, words) -> None:
    games = functional.arrays("mini", "memory", 2)
    bad = games._replace(**{name: spoil(getattr(games, name))})
    for call in (
        lambda: functional.reset("mini", "memory", bad, [1, 2]),
        lambda: functional.step("mini", "memory", bad, np.zeros(2, np.int64)),
        lambda: functional.observe("mini", "memory", bad),
    ):
        with pytest.raises(PyramidError, match=words):
            call()


def test_arguments_that_do_not_fit_are_refused() -> None:
    games = functional.arrays("mini", "memory", 2)
    for numbers, error, words in (
        ([1], PyramidError, "expected 2 deal numbers, one a game, got 1"),
        ([1, -1], DeckError, "expected a whole number from 0"),
    ):
        with pytest.raises(error, match=words):
            functional.reset("mini", "memory", games, numbers)
    with pytest.raises(PyramidError, match="games: expected indices from 0 to 1"):
        functional.reset("mini", "memory", games, [1], np.array([2]))
    assert not games.ranks.any()
    with pytest.raises(PyramidError, match=r"actions: expected integers of shape \(2,\), got float64"):
        functional.step("mini", "memory", games, np.zeros(2))
    with pytest.raises(PyramidError, match=rf"actions: expected integers below 2\^63, got {2**64 - 1}"):
        functional.step("mini", "memory", games, np.array([0, 2**64 - 1], np.uint64))
    with pytest.raises(PyramidError, match=r"restart: expected bool of shape \(2,\), got int64"):
        functional.step("mini", "memory", games, np.zeros(2, np.int64), restart=np.zeros(2, np.int64))
    with pytest.raises(PyramidError, match="reward: expected PAR, MSC or WON, got 'par'"):
        functional.step("mini", "memory", games, np.zeros(2, np.int64), reward="par")


# ---- the mask inside the observation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float", "bool"])
@pytest.mark.parametrize("preset", ["mini", "till_dawn", "giza"])
def test_the_wrapper_shows_the_same_game_with_its_mask(preset, kind) -> None:
    plain = gym.make("pyramid_env/Pyramid-v0", rules=preset)
    wrapped = MaskInObservation(gym.make("pyramid_env/Pyramid-v0", rules=preset), mask=kind)
    rng, over = np.random.default_rng(0), False
    (fields, info), (observation, told) = plain.reset(seed=4), wrapped.reset(seed=4)
    while not over:
        assert observation in wrapped.observation_space
        assert np.array_equal(observation["observations"], layout(pe.rules(preset), "memory").flat(fields))
        assert np.array_equal(observation["action_mask"], info["action_mask"])
        assert np.array_equal(wrapped.action_masks(), info["action_mask"].astype(bool))
        assert told.keys() == info.keys()
        action = rng.choice(np.flatnonzero(info["action_mask"]))
        fields, reward, over, _, info = plain.step(action)
        observation, same_reward, same_over, _, told = wrapped.step(action)
        assert (reward, over) == (same_reward, same_over)
    assert not observation["action_mask"].any()


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
def test_the_wrapper_passes_gymnasiums_checker() -> None:
    check_env(MaskInObservation(pe.PyramidEnv("mini")), skip_render_check=True)


def test_the_wrapper_refuses_what_it_does_not_know() -> None:
    with pytest.raises(PyramidError, match="expected a PyramidEnv, got CartPoleEnv"):
        MaskInObservation(gym.make("CartPole-v1"))
    with pytest.raises(PyramidError, match="mask: expected one of float, bool, got 'int'"):
        MaskInObservation(pe.PyramidEnv(), mask="int")


# ---- PufferLib -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(missing("pufferlib"), reason="pufferlib is not installed")
@pytest.mark.filterwarnings("ignore")
def test_pufferlibs_buffers_hold_what_the_native_environment_shows() -> None:
    from agents.puffer import PyramidPufferEnv

    env = PyramidPufferEnv("mini", 16, seed=7)
    native = pe.PyramidVectorEnv(16, "mini", autoreset_mode="SameStep")
    rows, infos = env.reset()
    native.reset(seed=7)
    rng, returns, games = np.random.default_rng(0), 0.0, 0.0
    for _ in range(60):
        assert np.array_equal(rows, np.concatenate([native.buffer, native.masks], axis=1))
        assert all(row in env.single_observation_space for row in rows)
        actions = (rng.random(native.masks.shape) * native.masks).argmax(axis=1).astype(np.int32)
        _, rewards, terminated, truncated, _ = native.step(actions)
        rows, given, terminals, truncations, infos = env.step(actions)
        assert np.array_equal(given, rewards)
        assert np.array_equal(terminals, terminated)
        assert np.array_equal(truncations, truncated)
        returns += sum(info["episode_return"] * info["games"] for info in infos)
        games += sum(info["games"] for info in infos)
        assert bool(infos) == bool((terminated | truncated).any())
    assert games > 20
    assert returns > 0
