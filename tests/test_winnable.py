"""Winnable deals: the same ones for a seed whatever the timing, solved in the background, kept between runs."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import subprocess
import sys
import threading
import time
import warnings

import gymnasium as gym
import numpy as np
import pytest
from test_env import same

import pyramid_env as pe
from pyramid_env import winnable
from pyramid_env.deal import FIRST_TRAINING_NUMBER, random_numbers
from pyramid_env.errors import DeckError, PyramidError
from pyramid_env.solver import solve, solve_many
from pyramid_env.winnable import BLOCK, WinnableDeals

ID = "pyramid_env/Pyramid-v0"
SEED = 11


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """No test touches the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pyramid_env" / "winnable"


@pytest.fixture
def no_solver(monkeypatch):
    """From here on nothing is solved."""

    def fail(*arguments, **options):
        raise AssertionError("solved")

    monkeypatch.setattr(winnable, "solve_many", fail)


@pytest.fixture(scope="module")
def plain() -> list[int]:
    """The first winnable deals of the seed, found one by one."""
    candidates = random_numbers(np.random.default_rng(SEED), 1000).tolist()
    return [number for number in candidates if solve(number, "mini").value]


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "winnable-deals"]


def refused(deals: WinnableDeals) -> None:
    with pytest.raises(PyramidError, match="expected an open source"):
        deals.take(1)


def gone(found: list[threading.Thread]) -> bool:
    for thread in found:
        thread.join(10)
    return not any(thread.is_alive() for thread in found)


# ---- one deal --------------------------------------------------------------------------------------------------------


def test_a_winnable_random_deal_is_the_first_of_the_generator_that_can_be_won(plain):
    rng = np.random.default_rng(SEED)
    assert [pe.Deal.random(rng, "mini", winnable=True).deal_number for _ in range(20)] == plain[:20]


def test_random_deals_are_what_they_were_unless_asked_to_be_winnable():
    rng, other = np.random.default_rng(3), np.random.default_rng(3)
    assert [pe.Deal.random(rng).deal_number for _ in range(5)] == random_numbers(other, 5).tolist()
    assert pe.Deal.random(np.random.default_rng(3)).deal_number == 789974133213320490


def test_winnable_under_the_rules_that_are_asked_for():
    deals = [pe.Deal.random(np.random.default_rng(seed), "one_pass", winnable=True) for seed in range(3)]
    assert [solve(deal, "one_pass").value for deal in deals] == [1, 1, 1]


def test_no_winnable_deal_in_sight_is_an_error(monkeypatch):
    monkeypatch.setattr(winnable, "MAX_REFUSED", 3)
    rng = np.random.default_rng(0)
    with pytest.raises(DeckError, match="none of 3 deals of one_pass in a row can be won"):
        [pe.Deal.random(rng, "one_pass", winnable=True) for _ in range(20)]


@pytest.mark.parametrize("value", [5, None])
def test_a_winnable_random_deal_needs_a_generator(value):
    with pytest.raises(DeckError, match=r"random deal: expected a numpy\.random\.Generator, got "):
        pe.Deal.random(value, winnable=True)


# ---- the stream ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"ahead": 1}, {"workers": 3}, {"ahead": 100, "workers": 2, "cache": False}])
@pytest.mark.parametrize("counts", [[200], [1] * 200, [0, 3, 150, 47]])
def test_a_seed_gives_the_same_deals_whatever_the_timing(plain, options, counts):
    with WinnableDeals("mini", SEED, **options) as deals:
        taken = [deals.take(count) for count in counts]
        assert deals.taken == 200
    assert [numbers.dtype for numbers in taken] == [np.int64] * len(counts)
    assert np.concatenate(taken).tolist() == plain[:200]
    assert min(plain) >= FIRST_TRAINING_NUMBER


def test_it_is_an_endless_iterator(plain):
    with WinnableDeals("mini", SEED) as deals:
        assert list(itertools.islice(deals, 30)) == plain[:30]


def test_other_seeds_and_rules_give_other_deals():
    streams = [WinnableDeals("mini", 0), WinnableDeals("mini", 1), WinnableDeals("mini_one_pass", 0)]
    first = [tuple(deals.take(50).tolist()) for deals in streams]
    assert len(set(first)) == 3
    for deals in streams:
        deals.close()


def test_several_threads_may_take(plain):
    found: list[int] = []
    with WinnableDeals("mini", SEED, ahead=5) as deals:
        takers = [
            threading.Thread(target=lambda: found.extend(n for _ in range(20) for n in deals.take(3).tolist()))
            for _ in range(3)
        ]
        for taker in takers:
            taker.start()
        for taker in takers:
            taker.join(60)
    assert sorted(found) == sorted(plain[:180])


def test_it_solves_no_further_ahead_than_asked():
    deals = WinnableDeals("mini", SEED, ahead=10)
    deals.take(1)
    time.sleep(0.5)
    assert 10 <= len(deals._search._waiting) < 10 + BLOCK
    deals.close()


def test_a_deal_that_is_open_at_the_limit_is_passed_over(plain):
    middling = int(np.median([solve(number, "mini").states for number in plain]))
    found = [number for number in plain if solve(number, "mini", max_states=middling).value]
    with WinnableDeals("mini", SEED, max_states=middling) as deals:
        assert deals.take(50).tolist() == found[:50] != plain[:50]


def test_a_copy_goes_on_from_the_same_place(plain):
    with WinnableDeals("mini", SEED) as deals:
        deals.take(70)
        copies = [copy.deepcopy(deals), pickle.loads(pickle.dumps(deals))]
        for twin in [*copies, deals]:
            assert twin.taken == 70
            assert twin.take(30).tolist() == plain[70:100]
        for twin in copies:
            twin.close()


def test_it_prints_what_it_is():
    assert repr(WinnableDeals("microsoft:passes=1", 4)) == "WinnableDeals('microsoft:passes=1', seed=4, 0 taken)"


@pytest.mark.parametrize(
    "options", [{"seed": -1}, {"seed": None}, {"seed": 1.5}, {"ahead": 0}, {"workers": True}, {"max_states": "many"}]
)
def test_arguments_out_of_range_are_refused(options):
    with pytest.raises(PyramidError, match=f"winnable deals: {next(iter(options))}: expected a whole number from"):
        WinnableDeals("mini", **options)


def test_a_negative_count_is_refused():
    with pytest.raises(PyramidError, match="winnable deals: count: expected a whole number from 0 up, got -1"):
        WinnableDeals("mini").take(-1)


# ---- the thread ------------------------------------------------------------------------------------------------------


def test_no_thread_runs_before_the_first_deal_is_taken():
    deals = WinnableDeals("mini")
    assert not threads()
    deals.take(1)
    assert len(threads()) == 1
    deals.close()
    assert not threads()


def test_a_closed_source_says_so():
    deals = WinnableDeals("mini")
    deals.take(1)
    deals.close()
    deals.close()
    for closed in (deals, WinnableDeals("mini")):
        closed.close()
        with pytest.raises(PyramidError, match="expected an open source, got a closed one"):
            closed.take(1)


def test_a_source_that_is_dropped_ends_its_thread():
    deals = WinnableDeals("mini")
    deals.take(1)
    running = threads()
    assert running
    del deals
    gc.collect()
    assert gone(running)


def test_closing_does_not_wait_for_the_solver_to_finish(monkeypatch):
    begun = threading.Event()

    def endless(candidates, rules, *, progress, **options):
        begun.set()
        while True:
            progress(1, 2)
            time.sleep(0.01)

    monkeypatch.setattr(winnable, "solve_many", endless)
    deals = WinnableDeals("mini", SEED)
    asking = threading.Thread(target=refused, args=(deals,), daemon=True)
    asking.start()
    assert begun.wait(10)
    began = time.monotonic()
    deals.close()
    assert time.monotonic() - began < 2
    assert gone([asking])


def test_what_ends_the_thread_is_raised_where_deals_are_taken(monkeypatch, plain):
    calls = []

    def fail_later(*arguments, **options):
        calls.append(1)
        if len(calls) > 2:
            raise MemoryError("no room")
        return solve_many(*arguments, **options)

    monkeypatch.setattr(winnable, "solve_many", fail_later)
    deals = WinnableDeals("mini", SEED)
    assert deals.take(60).tolist() == plain[:60]
    for _ in range(2):
        with pytest.raises(MemoryError, match="no room"):
            deals.take(100)
    deals.close()


def test_rules_without_winnable_deals_are_an_error_not_a_wait(monkeypatch):
    monkeypatch.setattr(winnable, "MAX_REFUSED", BLOCK)
    with (
        WinnableDeals("mini", max_states=1) as deals,
        pytest.raises(PyramidError, match=f"none of {BLOCK} deals of mini in a row can be won"),
    ):
        deals.take(10_000)


def test_a_program_ends_though_nothing_is_closed(tmp_path):
    code = "from pyramid_env.winnable import WinnableDeals; d = WinnableDeals('pyramid', ahead=10**6); print(d.take(1))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    words = [line for line in ended.stderr.splitlines() if not line.startswith("pyramid_env: compiling ")]
    assert (ended.stdout.count("["), words) == (1, [])


# ---- the cache -------------------------------------------------------------------------------------------------------


def test_a_second_run_solves_nothing(plain, cache, request):
    with WinnableDeals("mini", SEED) as deals:
        deals.take(300)
    (file,) = cache.iterdir()
    assert file.stat().st_size < 2500
    request.getfixturevalue("no_solver")
    with WinnableDeals("mini:match_games=3", SEED) as deals:
        assert deals.take(300).tolist() == plain[:300]
    assert list(cache.iterdir()) == [file]


def test_a_later_run_goes_on_where_an_earlier_one_stopped(plain, monkeypatch):
    with WinnableDeals("mini", SEED, ahead=1) as deals:
        deals.take(150)
    solved = []
    monkeypatch.setattr(winnable, "solve_many", lambda c, *a, **o: solved.append(len(c)) or solve_many(c, *a, **o))
    with WinnableDeals("mini", SEED, ahead=1) as deals:
        assert deals.take(400).tolist() == plain[:400]
    assert 0 < sum(solved) <= 400


def test_a_shorter_run_does_not_shorten_the_file(cache, request):
    with WinnableDeals("mini", SEED) as deals:  # it has read the cache before the others write it
        with WinnableDeals("mini", SEED, ahead=1) as longer:
            longer.take(500)
        deals._search._ahead = 1
        deals.take(1)
    request.getfixturevalue("no_solver")
    with WinnableDeals("mini", SEED, ahead=1) as again:
        again.take(500)


@pytest.mark.parametrize("options", [{"seed": SEED + 1}, {"max_states": 999}, {"rules": "mini_one_pass"}])
def test_what_answers_depend_on_has_a_file_of_its_own(options, cache):
    for given in ({}, options):
        with WinnableDeals(**{"rules": "mini", "seed": SEED, "ahead": 1, **given}) as deals:
            deals.take(1)
    assert len(list(cache.iterdir())) == 2


def test_no_cache_and_another_folder(tmp_path, cache):
    with WinnableDeals("mini", cache=False) as deals:
        deals.take(1)
    assert not cache.exists()
    with WinnableDeals("mini", cache=tmp_path / "mine") as deals:
        deals.take(1)
    assert len(list((tmp_path / "mine").iterdir())) == 1
    assert not cache.exists()


def test_a_damaged_file_is_refused(cache):
    with WinnableDeals("mini", SEED) as deals:
        deals.take(1)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", b"nothing", whole[: len(whole) // 2], whole.replace(b"pyramid_env", b"pyramid_inv")):
        file.write_bytes(damaged)
        with pytest.raises(PyramidError, match=r"cannot read the kept verdicts: .*; delete the file to solve anew"):
            WinnableDeals("mini", SEED)


def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    told = []
    monkeypatch.setattr(warnings, "warn", lambda text, **options: told.append(text))
    with WinnableDeals("mini", cache=tmp_path / "file") as deals:
        deals.take(1)
    assert len(told) == 1
    assert told[0].startswith("winnable deals: not kept for the next run: ")


# ---- the environments ------------------------------------------------------------------------------------------------


def last_action(envs, rng):
    masks = envs.action_masks()
    return (rng.random(masks.shape) * masks).argmax(axis=1)


def test_the_environments_play_the_deals_of_the_source_in_its_order(plain):
    for mode in ("SameStep", "NextStep"):
        with WinnableDeals("mini", SEED) as deals:
            envs = gym.make_vec(ID, num_envs=4, rules="mini", autoreset_mode=mode, deals=deals)
            _, infos = envs.reset(seed=5)
            seen = infos["deal"].tolist()
            before, rng = infos["deal"], np.random.default_rng(0)
            for _ in range(60):
                infos = envs.step(last_action(envs, rng))[-1]
                seen += infos["deal"][infos["deal"] != before].tolist()
                before = infos["deal"]
            assert len(seen) > 10
            assert seen == plain[: len(seen)]


def test_equal_to_sync_vector_env_with_a_source_of_its_own():
    sources = [WinnableDeals("mini", SEED) for _ in range(2)]
    native = gym.make_vec(ID, num_envs=3, rules="mini", deals=sources[0])
    sync = gym.vector.SyncVectorEnv([lambda: gym.make(ID, rules="mini", deals=sources[1])] * 3)
    assert same(native.reset(seed=1), sync.reset(seed=1))
    rng = np.random.default_rng(2)
    for _ in range(80):
        actions = last_action(native.unwrapped, rng)
        assert same(native.step(actions), sync.step(actions))
    for source in sources:
        source.close()


def test_a_deal_that_is_named_takes_none_from_the_source():
    with WinnableDeals("mini", SEED) as deals:
        env = pe.PyramidEnv("mini", deals=deals)
        assert env.reset(options={"deal": 3})[1]["deal"] == 3
        assert deals.taken == 0
        twin = copy.deepcopy(env)
        assert env.reset()[1]["deal"] == twin.reset()[1]["deal"]


@pytest.mark.parametrize("make", [pe.PyramidEnv, lambda **options: pe.PyramidVectorEnv(2, **options)])
def test_what_is_no_source_is_refused(make):
    with pytest.raises(PyramidError, match=r"deals: expected None or a source with take\(count\), got list"):
        make(rules="mini", deals=[1, 2, 3])
    with pytest.raises(PyramidError, match="deals: expected a source for pyramid, got one for mini"):
        make(rules="pyramid", deals=WinnableDeals("mini"))


def test_a_source_of_ones_own_is_checked():
    class Own:
        def __init__(self):
            self.given = [5, 6]

        def take(self, count):
            return self.given

    own = Own()
    envs = pe.PyramidVectorEnv(2, "mini", deals=own)
    assert envs.reset()[1]["deal"].tolist() == [5, 6]
    for given, error in (([5], PyramidError), ([0.5, 1.5], PyramidError), ([-1, 3], DeckError)):
        own.given = given
        with pytest.raises(error, match="expected"):
            envs.reset()


# ---- training --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ppo", "maskable_ppo"])
def test_training_on_winnable_deals(tmp_path, cache, monkeypatch, algorithm):
    pytest.importorskip("sb3_contrib", reason="training needs its extra")
    import agents.games
    from agents.config import ConfigError, make_config
    from agents.training import train

    settings = {
        "rules": "mini",
        "algorithm": algorithm,
        "total_steps": 512,
        "env": {"num_envs": 8, "deals": "winnable"},
        "network": {"embedding": 8, "shared": [8]},
        algorithm: {"n_steps": 32, "batch_size": 64, "n_epochs": 1},
        "evaluation": {"deals": "validation:0-9", "bound": False},
    }
    trained_on = []
    take = agents.games.KnownWinnable.take

    def note(self, count):
        trained_on.extend(take(self, count).tolist())
        return np.array(trained_on[-count:])

    monkeypatch.setattr(agents.games.KnownWinnable, "take", note)
    assert train(make_config(settings), tmp_path / "run").finished
    assert min(trained_on) >= FIRST_TRAINING_NUMBER
    with WinnableDeals("mini", 0) as deals:
        assert len(trained_on) >= 8
        assert trained_on == deals.take(len(trained_on)).tolist()
    assert not threads()
    with pytest.raises(ConfigError, match=r"env.deals: expected one of random, winnable, ordered, got 'winable'"):
        make_config(settings, ["env.deals=winable"])
