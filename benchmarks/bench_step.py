"""Steps a second of the environments, with masks and observations, beside other libraries' in the same run.

    python benchmarks/bench_step.py [--rules TEXT] [--observation LEVEL] [--seconds S] [--only PART ...]

Only ``step`` is timed; legal random actions are chosen between the steps. ``cpu`` is by CPU time of the whole process,
``wall`` by the clock, which on a busy machine means little. The fastest of several rounds counts: the one least
disturbed. Ratios are by CPU time, except those between numbers of threads. Peers that are not installed are named.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import SyncVectorEnv

import pyramid_env as pe

ID = pe.registration.ENV_ID
ROUNDS = 8
WARM_UP = 150  # steps before the first round: games that began together do not end together
MAIN = 4096
THREADS_AT = 16_384
SYNC_GAMES = 64
PEERS = ("pgx", "jumanji", "envpool", "pyspiel")
PARTS = ("single", "sizes", "threads", "levels", "presets", "rollout", "memory")


class Rate(NamedTuple):
    """Steps a second."""

    cpu: float
    wall: float


def main() -> None:
    """Parse, measure part by part, print."""
    options = parser().parse_args()
    print(f"{'environment':<58}{'games':>8}{'cpu':>14}{'wall':>14}{'ratio':>8}  to")
    for part in options.only:
        MEASURES[part](options)
    missing = [name for name in PEERS if importlib.util.find_spec(name) is None]
    if missing:
        print(f"not installed, so not measured: {', '.join(missing)}")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rules", default="pyramid", help="preset, or a text such as microsoft:passes=1")
    made.add_argument("--observation", default="memory", help="table, memory or clairvoyant")
    made.add_argument("--sizes", type=int, nargs="+", default=[1, 16, 256, 1024, 4096, 16384, 65536])
    made.add_argument("--seconds", type=float, default=0.4, help="seconds a round, choosing actions included")
    made.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="default: all parts")
    return made


def report(name: str, games: int, rate: Rate, reference: Rate | None = None, to: str = "", wall: bool = False) -> Rate:
    """Print one row, with the ratio to another."""
    ratio = ""
    if reference is not None:
        ratio = f"{rate.wall / reference.wall if wall else rate.cpu / reference.cpu:.2f}"
    print(f"{name:<58}{games:>8,}{rate.cpu:>14,.0f}{rate.wall:>14,.0f}{ratio:>8}  {to}", flush=True)
    return rate


# ---- what is measured ------------------------------------------------------------------------------------------------


def single(options: argparse.Namespace) -> None:
    """One game at a time: CartPole and ours through gym.make. Rows of other single environments belong here."""
    cartpole = report("CartPole, gym.make", 1, single_rate(gym.make("CartPole-v1"), any_action, options.seconds))
    ours = gym.make(ID, rules=options.rules, observation=options.observation)
    report("Pyramid, gym.make", 1, single_rate(ours, legal_action, options.seconds), cartpole, "CartPole, gym.make")


def sizes(options: argparse.Namespace) -> None:
    """Numbers of games, beside CartPole's vector environment, and SyncVectorEnv over our own single one."""
    single_env = {"rules": options.rules, "observation": options.observation}
    sync = SyncVectorEnv([lambda: gym.make(ID, **single_env)] * SYNC_GAMES)
    synced = report(f"Pyramid, SyncVectorEnv of {SYNC_GAMES}", SYNC_GAMES, vector_rate(sync, masked_actions, options))
    for games in options.sizes:
        cartpole = gym.make_vec("CartPole-v1", num_envs=games, vectorization_mode="vector_entry_point")
        reference = report("CartPole, its vector environment", games, vector_rate(cartpole, any_actions, options))
        for settings in (
            {"copy": True},
            {"copy": False},
            {"copy": False, "action_mask_format": "packed"},
            {"copy": False, "autoreset_mode": "SameStep"},
        ):
            rate = ours(games, options, **settings)
            report(f"Pyramid, {text(settings)}", games, rate, reference, "CartPole")
        print(f"{'':<58}{'':>8}{'':>14}{'':>14}{rate.cpu / synced.cpu:>8.0f}  SyncVectorEnv")


def threads(options: argparse.Namespace) -> None:
    """One thread and two; the ratio is by the clock."""
    for settings in ({"copy": False}, {"copy": False, "action_mask_format": "packed"}):
        one = report(f"Pyramid, {text(settings)}, one thread", THREADS_AT, ours(THREADS_AT, options, **settings))
        two = ours(THREADS_AT, options, num_threads=2, **settings)
        report(f"Pyramid, {text(settings)}, two threads", THREADS_AT, two, one, "one thread, by the clock", wall=True)


def levels(options: argparse.Namespace) -> None:
    """Information levels and reward schemes."""
    for settings in (
        *({"observation": level} for level in ("table", "memory", "clairvoyant")),
        *({"reward": reward} for reward in ("msc", "win", "shaped")),
    ):
        report(f"Pyramid, {text(settings)}", MAIN, ours(MAIN, options, copy=False, **settings))


def presets(options: argparse.Namespace) -> None:
    """Every preset, full masks and packed."""
    for preset in pe.PRESETS:
        full = report(f"{preset}, int8 masks", MAIN, ours(MAIN, options, rules=preset, copy=False))
        rate = ours(MAIN, options, rules=preset, copy=False, action_mask_format="packed")
        report(f"{preset}, packed masks", MAIN, rate, full, "int8 masks")


def rollout(options: argparse.Namespace) -> None:
    """Random games wholly inside the kernel."""
    for preset in pe.PRESETS:
        numbers = np.arange(20_000)
        pe.rollout(numbers[:8], preset)
        best = Rate(0.0, 0.0)
        for _ in range(3):
            cpu, wall = time.process_time(), time.perf_counter()
            moves = int(pe.rollout(numbers, preset).steps.sum())
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            best = max(best, Rate(moves / cpu, moves / wall))
        report(f"{preset}, rollout of {numbers.size:,} games (moves)", 1, best)


def memory(options: argparse.Namespace) -> None:
    """What a step writes, beside the speed at which this machine writes memory."""
    for mask_format in ("int8", "packed"):
        envs = pe.PyramidVectorEnv(MAIN, options.rules, options.observation, copy=False, action_mask_format=mask_format)
        envs.reset(seed=0)
        rate = ours(MAIN, options, copy=False, action_mask_format=mask_format)
        rows = {"mask": envs.masks.nbytes, "observation": envs.buffer.nbytes, "facts": envs.facts.nbytes}
        handed = sum(rows.values()) / MAIN
        print(f"{mask_format}: {handed:.0f} bytes a game of mask, observation and facts kept up to date, "
              f"{handed * rate.cpu / 1e9:.1f} GB/s if all were written")  # fmt: skip
    for name, size in (("memory", 256 << 20), ("second-level cache", 512 << 10)):
        block = np.zeros(size, np.uint8)
        best, repeats = np.inf, max(1, (256 << 20) // size)
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(repeats):
                block.fill(1)
            best = min(best, (time.perf_counter() - start) / repeats)
        print(f"{name}: {size / best / 1e9:.1f} GB/s written")


MEASURES: dict[str, Callable[[argparse.Namespace], None]] = {
    "single": single, "sizes": sizes, "threads": threads, "levels": levels, "presets": presets, "rollout": rollout,
    "memory": memory,
}  # fmt: skip


# ---- how it is measured ----------------------------------------------------------------------------------------------


def ours(games: int, options: argparse.Namespace, **settings: Any) -> Rate:
    """The rate of our vector environment."""
    arguments = {"rules": options.rules, "observation": options.observation, "illegal_action": "raise", **settings}
    envs = gym.make_vec(ID, num_envs=games, **arguments)
    rate = vector_rate(envs, legal_actions, options)
    envs.close()
    return rate


def text(settings: dict[str, Any]) -> str:
    """Settings as they are written in a call."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def single_rate(env: gym.Env[Any, Any], choose: Callable[..., Any], seconds: float) -> Rate:
    """Steps a second of one environment; resets are not timed."""
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    best = Rate(0.0, 0.0)
    for _ in range(ROUNDS):
        steps, cpu, wall, end = 0, 0.0, 0.0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            action = choose(env, info, rng)
            cpu_start, start = time.process_time(), time.perf_counter()
            _, _, terminated, truncated, info = env.step(action)
            wall += time.perf_counter() - start
            cpu += time.process_time() - cpu_start
            steps += 1
            if terminated or truncated:
                _, info = env.reset()
        best = Rate(max(best.cpu, steps / cpu), max(best.wall, steps / wall))
    return best


def vector_rate(
    envs: gym.vector.VectorEnv[Any, Any, Any], choose: Callable[..., Any], options: argparse.Namespace
) -> Rate:
    """Games times steps a second; the games' own resets are part of the steps."""
    rng = np.random.default_rng(0)
    _, infos = envs.reset(seed=0)
    best = Rate(0.0, 0.0)
    for warm in (True, *(False for _ in range(ROUNDS))):
        steps, cpu, wall, end = 0, 0.0, 0.0, time.perf_counter() + options.seconds
        while steps < 3 or (steps < WARM_UP if warm else time.perf_counter() < end):
            actions = choose(envs, infos, rng)
            cpu_start, start = time.process_time(), time.perf_counter()
            *_, infos = envs.step(actions)
            wall += time.perf_counter() - start
            cpu += time.process_time() - cpu_start
            steps += 1
        if not warm:
            played = steps * envs.num_envs
            best = Rate(max(best.cpu, played / cpu), max(best.wall, played / wall))
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
    """A random legal action for each game, as our vector environment draws them."""
    return envs.unwrapped.random_actions(rng)


def masked_actions(envs: Any, infos: dict[str, Any], rng: np.random.Generator) -> Any:
    """For each game the first legal action in an order of the actions that is drawn anew for each step."""
    order = rng.permutation(infos["action_mask"].shape[1])
    return order[infos["action_mask"][:, order].argmax(axis=1)]


if __name__ == "__main__":
    main()
