"""Steps a second of the environments, with masks and observations, beside Gymnasium's CartPole in the same run.

    python benchmarks/bench_step.py --rules pyramid --observation memory

Only ``step`` is timed, in CPU time; legal random actions are chosen between the steps. The fastest of several rounds
counts: on a busy machine the one least disturbed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import pyramid_env  # registers the id

ID = pyramid_env.registration.ENV_ID
ROUNDS = 5


def main() -> None:
    """Parse, measure, print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", default="pyramid", help="preset, or a text such as microsoft:passes=1")
    parser.add_argument("--observation", default="memory", help="table, memory or clairvoyant")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 16, 256, 1024, 4096, 16384, 65536])
    parser.add_argument("--seconds", type=float, default=0.5, help="seconds a round, choosing actions included")
    options = parser.parse_args()
    arguments = {"rules": options.rules, "observation": options.observation}
    print(f"{'environment':<34}{'games':>8}{'steps/s':>14}{'x CartPole':>12}")
    single = gym.make("CartPole-v1")
    reference = report("CartPole, gym.make", 1, single_rate(single, any_action, options.seconds), None)
    report("Pyramid, gym.make", 1, single_rate(gym.make(ID, **arguments), legal_action, options.seconds), reference)
    for size in options.sizes:
        cartpole = gym.make_vec("CartPole-v1", num_envs=size, vectorization_mode="vector_entry_point")
        reference = report("CartPole, its vector env", size, vector_rate(cartpole, any_actions, options.seconds), None)
        for copy in (True, False):
            envs = gym.make_vec(ID, num_envs=size, copy=copy, illegal_action="raise", **arguments)
            rate = vector_rate(envs, legal_actions, options.seconds)
            report(f"Pyramid, vector env, copy={copy}", size, rate, reference)


def report(name: str, games: int, rate: float, reference: float | None) -> float:
    """Print one row; return the rate."""
    ratio = "" if reference is None else f"{rate / reference:.2f}"
    print(f"{name:<34}{games:>8,}{rate:>14,.0f}{ratio:>12}", flush=True)
    return rate


def single_rate(env: gym.Env[Any, Any], choose: Callable[..., Any], seconds: float) -> float:
    """Steps a second of one environment; resets are not timed."""
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    best = 0.0
    for _ in range(ROUNDS):
        steps, inside, end = 0, 0.0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            action = choose(env, info, rng)
            start = time.process_time()
            _, _, terminated, truncated, info = env.step(action)
            inside += time.process_time() - start
            steps += 1
            if terminated or truncated:
                _, info = env.reset()
        best = max(best, steps / inside)
    return best


def vector_rate(envs: gym.vector.VectorEnv[Any, Any, Any], choose: Callable[..., Any], seconds: float) -> float:
    """Games times steps a second; the games' own resets (NEXT_STEP) are part of the steps."""
    rng = np.random.default_rng(0)
    _, infos = envs.reset(seed=0)
    best = 0.0
    for _ in range(ROUNDS):
        steps, inside, end = 0, 0.0, time.perf_counter() + seconds
        while steps < 3 or time.perf_counter() < end:
            actions = choose(envs, infos, rng)
            start = time.process_time()
            *_, infos = envs.step(actions)
            inside += time.process_time() - start
            steps += 1
        best = max(best, steps * envs.num_envs / inside)
    return best


def any_action(env: Any, info: dict[str, Any], rng: np.random.Generator) -> int:
    """A random action of two."""
    return int(rng.integers(2))


def legal_action(env: Any, info: dict[str, Any], rng: np.random.Generator) -> int:
    """A random legal action."""
    legal = np.flatnonzero(info["action_mask"])
    return int(legal[rng.integers(len(legal))])


def any_actions(envs: Any, infos: dict[str, Any], rng: np.random.Generator) -> Any:
    """A random action of two for each game."""
    return rng.integers(2, size=envs.num_envs)


def legal_actions(envs: Any, infos: dict[str, Any], rng: np.random.Generator) -> Any:
    """For each game the first legal action in an order of the actions that is drawn anew for each step."""
    order = rng.permutation(infos["action_mask"].shape[1])
    return order[infos["action_mask"][:, order].argmax(axis=1)]


if __name__ == "__main__":
    main()
