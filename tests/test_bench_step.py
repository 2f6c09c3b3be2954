"""The benchmark of steps: it names the libraries that are missing or fail, and counts steps as it says."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def bench(monkeypatch):
    """The modules peers and timing, imported as the script finds them: beside itself."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("peers"), importlib.import_module("timing")


def test_a_library_that_fails_is_answered_with_its_error(bench):
    peers, _ = bench

    def broken(games):
        raise RuntimeError(f"no {games} games\nand a second line")

    assert peers.started(peers.Peer("it", "sys", broken, ""), 3) == "RuntimeError: no 3 games"


def test_only_libraries_that_can_be_found_are_installed(bench):
    peers, _ = bench
    assert peers.installed(peers.Peer("it", "gymnasium", peers.cartpoles, ""))
    assert not peers.installed(peers.Peer("it", "no_such_library", peers.cartpoles, ""))


def test_only_the_step_is_timed_and_every_game_of_it_counts(bench):
    _, timing = bench

    def choose(outcome):
        assert outcome in (None, "reached")
        time.sleep(0.002)
        return "chosen"

    def step(actions):
        assert actions == "chosen"
        end = time.process_time() + 0.001
        while time.process_time() < end:
            pass
        return "reached"

    timer = timing.Timer(timing.Playable(7, step, choose))
    timer.round(0.05)
    assert 0 < timer.best.cpu <= 7 / 0.001
    assert timer.best.cpu > 7 / 0.002  # the sleep is not in it, nor are two steps one
    assert timer.best.wall <= timer.best.cpu * 1.1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system keeps no process on a core")
def test_the_cores_are_given_back(bench):
    _, timing = bench
    before = os.sched_getaffinity(0)
    with timing.one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


def test_peers_that_are_not_installed_are_named_and_the_others_measured(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda name: None if name in ('pyspiel', 'pgx', 'jumanji', 'envpool') else found(name)\n"
    )
    call = [sys.executable, str(FOLDER / "bench_step.py"), "--rules", "mini", "--only", "single", "peers"]
    call += ["--seconds", "0.001", "--peer-sizes", "4", "8"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    found = subprocess.run(call, capture_output=True, text=True, timeout=300, check=True, env=environment)
    *rows, missing = found.stdout.splitlines()
    assert missing.startswith("not measured")
    for name in ("OpenSpiel solitaire", "pgx connect_four", "pgx 2048", "jumanji Game2048", "envpool Blackjack"):
        assert name in missing
        assert not any(name in row for row in rows)
    cartpole = [row.split("Pyramid / this")[0] for row in rows if row.startswith("CartPole") and "/ this" in row]
    ratios = [row[94:].split() for row in cartpole]  # to each row of ours, which stand above
    assert [len(row) for row in ratios] == [1, 3, 3, 3]  # one game, two numbers of games, the best of these
    assert sum(row.startswith("Pyramid") for row in rows) == 1 + 3 * 3
