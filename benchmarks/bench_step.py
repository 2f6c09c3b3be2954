"""Steps a second of the environments, with masks and observations, beside other libraries' in the same run.

    python benchmarks/bench_step.py [--rules TEXT] [--observation LEVEL] [--seconds S] [--only PART ...]

Only ``step`` is timed; legal random actions are chosen between the steps. ``cpu`` is by CPU time of the whole process,
``wall`` by the clock, which on a busy machine means little. The fastest of several rounds counts: the one least
disturbed. Ratios are by CPU time, except those between numbers of threads; to another library there is one for each row
of ours above, in their order. The other libraries are those of benchmarks/peers.py, which
pip install -c constraints.txt -e ".[bench]" brings; those that are not installed are named.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import peers
from gymnasium.vector import SyncVectorEnv
from timing import Playable, Rate, Timer, measure, one_core, take_turns

import pyramid_env as pe

ID = pe.registration.ENV_ID
MAIN = 4096
THREADS_AT = 16_384
SYNC_GAMES = 64
OURS = (
    {"copy": False},
    {"copy": False, "action_mask_format": "packed"},
    {"copy": False, "autoreset_mode": "SameStep"},  # as pgx and jumanji do
)  # what is set beside the peers
Rows = dict[str, tuple[int, Rate]]  # by name: number of games, steps a second
PARTS = ("single", "peers", "sizes", "threads", "levels", "presets", "rollout", "memory")


def main() -> None:
    """Parse, measure part by part, print."""
    options = parser().parse_args()
    print(f"{'environment':<58}{'games':>8}{'cpu':>14}{'wall':>14}{'ratio':>8}  to")
    for part in options.only:
        MEASURES[part](options)
    missing = [peer for peer in (*peers.SINGLE, *peers.MANY) if not peers.installed(peer)]
    if missing:
        print("not measured, since their modules are not installed:", end=" ")
        print(", ".join(f"{peer.name} ({peer.module})" for peer in missing))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rules", default="pyramid", help="preset, or a text such as microsoft:passes=1")
    made.add_argument("--observation", default="memory", help="table, memory or clairvoyant")
    made.add_argument("--sizes", type=int, nargs="+", default=[1, 16, 256, 1024, 4096, 16384, 65536])
    made.add_argument("--peer-sizes", type=int, nargs="+", default=[256, 1024, 4096, 16384], help="games of the peers")
    made.add_argument("--seconds", type=float, default=0.4, help="seconds a round, choosing actions included")
    made.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="default: all parts")
    return made


def report(name: str, games: int, rate: Rate, *ratios: float, to: str = "") -> Rate:
    """Print one row, with what it is compared to."""
    columns = "".join(f"{ratio:>8.2f}" for ratio in ratios)
    print(f"{name:<58}{games:>8,}{rate.cpu:>14,.0f}{rate.wall:>14,.0f}{columns}  {to}".rstrip(), flush=True)
    return rate


# ---- what is measured ------------------------------------------------------------------------------------------------


def single(options: argparse.Namespace) -> None:
    """One game at a time: ours through gym.make, and other libraries'."""
    env = gym.make(ID, rules=options.rules, observation=options.observation)
    with one_core() as kept:
        head(peers.SINGLE, kept)
        table(*side_by_side({"Pyramid, gym.make": single_game(env)}, peers.SINGLE, options))


def peer_games(options: argparse.Namespace) -> None:
    """Many games: ours, and other libraries'."""
    found: tuple[Rows, Rows] = {}, {}
    with one_core() as kept:
        head(peers.MANY, kept)
        for games in options.peer_sizes:
            plays = {name_of(settings): our_games(games, options, **settings) for settings in OURS}
            rates = side_by_side(plays, peers.MANY, options)
            table(*rates)
            for best, rows in zip(found, rates, strict=True):
                best |= {name: max(row, best.get(name, row), key=lambda row: row[1].cpu) for name, row in rows.items()}
    print("each at its best number of games:")
    table(*found)


def head(rows: Sequence[peers.Peer], kept: bool) -> None:
    """Say how the rows below are measured, and what a step of each peer includes."""
    print(f"in turns, {'all on one core' if kept else 'on as many cores as each takes'}; what is timed:")
    print("    Pyramid: masks, observation, rewards, facts of the infos; dealt anew by the next step, or SameStep")
    for peer in filter(peers.installed, rows):
        print(f"    {peer.name}: {peer.includes}")


def side_by_side(
    ours: Mapping[str, Playable], others: Sequence[peers.Peer], options: argparse.Namespace
) -> tuple[Rows, Rows]:
    """Measure ours and those of the peers that are installed and work, in turns."""
    games = next(iter(ours.values())).games
    timers = {name: Timer(play) for name, play in ours.items()}
    for peer in filter(peers.installed, others):
        timer = peers.started(peer, games)
        if isinstance(timer, Timer):
            timers[peer.name] = timer
        else:
            print(f"{peer.name:<58}{games:>8,}  fails: {timer}", flush=True)
    take_turns(timers.values(), options.seconds)
    rows = {name: (games, timer.best) for name, timer in timers.items()}
    return {name: rows.pop(name) for name in ours}, rows


def table(ours: Rows, others: Rows) -> None:
    """Print rows of ours, then the others with how many times as fast each of ours is."""
    for name, row in ours.items():
        report(name, *row)
    for name, (games, rate) in others.items():
        report(name, games, rate, *(fast.cpu / rate.cpu for _, fast in ours.values()), to="Pyramid / this")


def sizes(options: argparse.Namespace) -> None:
    """Numbers of games, and SyncVectorEnv over our own single environment."""
    single_env = {"rules": options.rules, "observation": options.observation}
    sync = SyncVectorEnv([lambda: gym.make(ID, **single_env)] * SYNC_GAMES)
    synced = measure(vector_games(sync, masked_actions), options.seconds)
    report(f"Pyramid, SyncVectorEnv of {SYNC_GAMES}", SYNC_GAMES, synced)
    for games in options.sizes:
        for settings in ({"copy": True}, *OURS):
            rate = our_rate(games, options, **settings)
            report(name_of(settings), games, rate, rate.cpu / synced.cpu, to="SyncVectorEnv")


def threads(options: argparse.Namespace) -> None:
    """One thread and two, in turns; the ratio is by the clock."""
    for settings in ({"copy": False}, {"copy": False, "action_mask_format": "packed"}):
        thread_counts = {"one thread": 1, "two threads": 2}
        timers = {
            name: Timer(our_games(THREADS_AT, options, **settings, num_threads=count))
            for name, count in thread_counts.items()
        }
        take_turns(timers.values(), options.seconds)
        one, two = (timer.best for timer in timers.values())
        report(f"Pyramid, {text(settings)}, one thread", THREADS_AT, one)
        report(f"Pyramid, {text(settings)}, two threads", THREADS_AT, two, two.wall / one.wall, to="one, by the clock")


def levels(options: argparse.Namespace) -> None:
    """Information levels and reward schemes."""
    for settings in (
        *({"observation": level} for level in ("table", "memory", "clairvoyant")),
        *({"reward": reward} for reward in ("msc", "win", "shaped")),
    ):
        report(name_of(settings), MAIN, our_rate(MAIN, options, copy=False, **settings))


def presets(options: argparse.Namespace) -> None:
    """Every preset, full masks and packed."""
    for preset in pe.PRESETS:
        full = report(f"{preset}, int8 masks", MAIN, our_rate(MAIN, options, rules=preset, copy=False))
        rate = our_rate(MAIN, options, rules=preset, copy=False, action_mask_format="packed")
        report(f"{preset}, packed masks", MAIN, rate, rate.cpu / full.cpu, to="int8 masks")


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
        rate = our_rate(MAIN, options, copy=False, action_mask_format=mask_format)
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
    "single": single, "peers": peer_games, "sizes": sizes, "threads": threads, "levels": levels, "presets": presets,
    "rollout": rollout, "memory": memory,
}  # fmt: skip


# ---- how it is measured ----------------------------------------------------------------------------------------------


def our_rate(games: int, options: argparse.Namespace, **settings: Any) -> Rate:
    """The rate of our vector environment."""
    return measure(our_games(games, options, **settings), options.seconds)


def our_games(games: int, options: argparse.Namespace, **settings: Any) -> Playable:
    """Our vector environment, with random legal actions."""
    arguments = {"rules": options.rules, "observation": options.observation, "illegal_action": "raise", **settings}
    return vector_games(gym.make_vec(ID, num_envs=games, **arguments), random_actions)


def name_of(settings: dict[str, Any]) -> str:
    """The name of a row of ours."""
    return f"Pyramid, {text(settings)}"


def text(settings: dict[str, Any]) -> str:
    """Settings as they are written in a call."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def single_game(env: gym.Env[Any, Any]) -> Playable:
    """Our single environment, with random legal actions."""
    rng = np.random.default_rng(0)

    def choose(outcome: Any) -> int:
        if outcome is None or outcome[2] or outcome[3]:
            outcome = env.reset(seed=0 if outcome is None else None)
        legal = np.flatnonzero(outcome[-1]["action_mask"])
        return int(legal[rng.integers(len(legal))])

    return Playable(1, env.step, choose)


def vector_games(envs: gym.vector.VectorEnv[Any, Any, Any], actions: Callable[..., Any]) -> Playable:
    """A vector environment of our games; their resets are part of its steps."""
    rng = np.random.default_rng(0)

    def choose(outcome: Any) -> Any:
        outcome = envs.reset(seed=0) if outcome is None else outcome
        return actions(envs, outcome[-1], rng)

    return Playable(envs.num_envs, envs.step, choose)


def random_actions(envs: Any, infos: dict[str, Any], rng: np.random.Generator) -> Any:
    """A random legal action for each game, as our vector environment draws them."""
    return envs.unwrapped.random_actions(rng)


def masked_actions(envs: Any, infos: dict[str, Any], rng: np.random.Generator) -> Any:
    """For each game the first legal action in an order of the actions that is drawn anew for each step."""
    order = rng.permutation(infos["action_mask"].shape[1])
    return order[infos["action_mask"][:, order].argmax(axis=1)]


if __name__ == "__main__":
    main()
