"""The engine under the vector environment: mask formats, threads, rollouts, and long runs. Lockstep has the rules."""

from __future__ import annotations

import copy
import gc
import hashlib
import pickle
import threading
import tracemalloc

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from test_env import OFTEN_DEAD, same
from test_vector_env import MODES, choose

import pyramid_env as pe
from pyramid_env import engine, kernels, stepping
from pyramid_env.actions import nth_action
from pyramid_env.batch import unpack_masks
from pyramid_env.batch_arrays import MASK_FORMATS
from pyramid_env.deal import random_numbers
from pyramid_env.errors import DeckError, PyramidError
from pyramid_env.moves import move_table
from pyramid_env.observation import layout

WORD = 2**64


# ---- packed masks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("preset", pe.PRESETS)
@pytest.mark.parametrize("copies", [True, False])
def test_packed_masks_are_the_full_masks(preset, mode, copies) -> None:
    settings = {"autoreset_mode": mode, "max_episode_steps": 40, "copy": copies}
    full = pe.PyramidVectorEnv(5, preset, **settings)
    packed = pe.PyramidVectorEnv(5, preset, action_mask_format="packed", **settings)
    rng, actions = np.random.default_rng(1), full.single_action_space.n
    (observations, infos), (packed_observations, packed_infos) = full.reset(seed=1), packed.reset(seed=1)
    ended = np.zeros(5, bool)
    for _ in range(90):
        assert packed_infos["action_mask"].dtype == np.uint8
        assert packed_infos["action_mask"].shape == (5, 8 * -(-actions // 64))
        unpack(packed_infos, actions)
        assert same(packed_infos, as_bool(infos))
        assert same(packed_observations, observations)
        assert same(packed.action_masks(), full.action_masks())
        if mode == AutoresetMode.DISABLED and ended.any():
            options = {"reset_mask": ended}
            assert same(full.reset(options=options)[0], packed.reset(options=options)[0])
        chosen = choose(rng, full.action_masks())
        (observations, *one, infos), (packed_observations, *other, packed_infos) = (
            full.step(chosen),
            packed.step(chosen),
        )
        assert same(one, other)
        ended = one[1] | one[2]


def unpack(infos: dict, actions: int) -> None:
    infos["action_mask"] = unpack_masks(infos["action_mask"], actions)
    if "final_info" in infos:
        infos["final_info"] = dict(infos["final_info"])
        unpack(infos["final_info"], actions)


def as_bool(infos: dict) -> dict:
    infos = infos | {"action_mask": infos["action_mask"].astype(bool)}
    return infos | ({"final_info": as_bool(infos["final_info"])} if "final_info" in infos else {})


def test_an_illegal_action_is_named_with_packed_masks_too() -> None:
    envs = pe.PyramidVectorEnv(2, "mini", action_mask_format="packed", illegal_action="raise")
    envs.reset(seed=1)
    wrong = np.flatnonzero(~envs.action_masks()[1])[0]
    with pytest.raises(pe.errors.IllegalMoveError, match=r"not legal in game 1, deal \d+; legal: .*draw"):
        envs.step(np.array([envs.single_action_space.n - 1, wrong]))
    with pytest.raises(PyramidError, match="action_mask_format: expected one of int8, packed, got 'bits'"):
        pe.PyramidVectorEnv(2, action_mask_format="bits")


# ---- threads ---------------------------------------------------------------------------------------------------------


def digest(envs: pe.PyramidVectorEnv, steps: int) -> str:
    """Play with actions that follow from the masks; a checksum of everything handed out and kept, step by step."""
    total = hashlib.sha256()
    rng = np.random.default_rng(7)
    observations, infos = envs.reset(seed=3)
    for _ in range(steps):
        order = rng.permutation(envs.single_action_space.n)
        actions = order[envs.action_masks()[:, order].argmax(axis=1)]
        observations, *returned, infos = envs.step(actions)
        arrays = [*observations.values(), *returned, *(v for v in infos.values() if isinstance(v, np.ndarray))]
        arrays += [envs.states, envs.ranks, envs.masks, envs.facts, envs.buffer, envs.numbers, envs.steps]
        for array in arrays:
            if array.dtype != object:
                total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


@pytest.mark.parametrize("preset", [*pe.PRESETS, OFTEN_DEAD], ids=str)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_any_number_of_threads_gives_the_same(preset, mode) -> None:
    digests = set()
    for threads in (1, 2, 3):
        envs = pe.PyramidVectorEnv(
            101, preset, autoreset_mode=mode, max_episode_steps=60, copy=False, num_threads=threads
        )
        digests.add(digest(envs, 150))
        envs.close()
    assert len(digests) == 1


def test_threads_end_with_their_environment_and_are_not_copied() -> None:
    def running() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("pyramid_env step")]

    envs = pe.PyramidVectorEnv(8, "mini", num_threads=3)
    assert not running(), "threads start with the first step"
    one = digest(envs, 20)
    assert len(running()) == 2
    twins = [copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))]
    assert len(running()) == 2
    assert {digest(twin, 20) for twin in twins} == {one}
    envs.close()
    del envs, twins
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("pyramid_env step"):
            thread.join(5)
    assert not running()


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, "2"])
def test_a_number_of_threads_that_is_none_is_refused(value) -> None:
    with pytest.raises(PyramidError, match="num_threads: expected a whole number of 1 or more, got "):
        pe.PyramidVectorEnv(2, num_threads=value)


# ---- rollouts --------------------------------------------------------------------------------------------------------


def mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def choices(seed: int):
    """The numbers of the documented stream."""
    state = mix((seed + 0xD1B54A32D192ED03) % WORD)
    while True:
        state = (state + 0x9E3779B97F4A7C15) % WORD
        yield mix(state)


@pytest.mark.parametrize("preset", [*pe.PRESETS, "overlap:goal=all,pair_waste_two=true"])
def test_a_rollout_is_the_game_of_the_documented_choices(preset) -> None:
    deals, seeds = np.arange(40, 52), np.array([2**63 - 1, *range(5, 16)])
    played = pe.rollout(deals, preset, seeds)
    for i, (deal, seed) in enumerate(zip(deals.tolist(), seeds.tolist(), strict=True)):
        game, steps = pe.Game(deal, preset), 0
        for number in choices(seed):
            legal = sorted(game.legal_actions)
            if not legal:
                break
            game.play(move_table(game.rules)[legal[number * len(legal) // WORD]])
            steps += 1
        got = {name: values[i].item() for name, values in played._asdict().items()}
        assert got == {
            "score": game.score,
            "won": game.is_won,
            "cleared_in": int(game.state[kernels.CLEARED]),
            "steps": steps,
            "par": game.par,
            "msc": game.msc,
            "cards_left": game.cards_left,
            "over": True,
        }


def test_rollouts_take_deals_and_seeds_in_every_form() -> None:
    expected = pe.rollout([4, 5, 6], "mini", [7, 8, 9])
    for deals in (np.array([4, 5, 6], np.uint8), range(4, 7), [pe.Deal.number(n, "mini") for n in (4, 5, 6)]):
        for seeds in (7, np.array([7, 8, 9], np.int32), range(7, 10)):
            assert same(pe.rollout(deals, "mini", seeds), expected)
    for threads in (2, 3, 8):
        assert same(pe.rollout([4, 5, 6], "mini", 7, num_threads=threads), expected)
    cut = pe.rollout([4, 5, 6], "mini", 7, max_steps=2)
    assert cut.steps.tolist() == [2, 2, 2]
    assert not cut.over.any()
    assert pe.rollout([], "mini").score.shape == (0,)


@pytest.mark.parametrize(
    ("deals", "arguments", "error", "message"),
    [
        ([-1], {}, PyramidError, "deals: expected numbers from 0 to"),
        ([0.5], {}, PyramidError, "deals: expected deal numbers or Deals, got float64"),
        (5, {}, PyramidError, "deals: expected deal numbers or Deals, got int64 of shape"),
        ([pe.Deal.number(1)], {}, DeckError, "expected"),
        ([1, 2], {"seeds": [1]}, PyramidError, "seeds: expected a whole number from 0 up, or 2 of them"),
        ([1], {"seeds": -1}, PyramidError, "seeds: expected a whole number from 0 up"),
        ([1], {"seeds": True}, PyramidError, "seeds: expected a whole number from 0 up"),
        ([1], {"max_steps": 0}, PyramidError, "max_steps: expected a whole number of 1 or more, got 0"),
        ([1], {"num_threads": 0}, PyramidError, "num_threads: expected a whole number of 1 or more, got 0"),
    ],
)
def test_what_a_rollout_cannot_read_is_refused(deals, arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        pe.rollout(deals, "mini", **arguments)


def test_random_play_wins_as_often_as_published() -> None:
    """RULES.md: 60,000 deals, random 1.2 % (pyramid), 5 % and 261 points (microsoft), 2.1 % and par -17 (till_dawn)."""
    numbers = random_numbers(np.random.default_rng(1), 60_000)
    assert pe.rollout(numbers, "pyramid").won.mean() == pytest.approx(0.012, abs=0.002)
    microsoft, till_dawn = pe.rollout(numbers, "microsoft"), pe.rollout(numbers, "till_dawn")
    assert microsoft.won.mean() == pytest.approx(0.05, abs=0.005)
    assert microsoft.score.mean() == pytest.approx(261, abs=4)
    assert till_dawn.won.mean() == pytest.approx(0.021, abs=0.003)
    assert till_dawn.score.mean() == pytest.approx(-17, abs=1)


def test_the_nth_action_of_a_mask() -> None:
    words = np.array([0b1010, 0, 1 << 62 | 1], np.int64)
    assert [nth_action(words, n) for n in range(4)] == [1, 3, 128, 190]


def test_random_actions_are_legal_and_all_alike() -> None:
    envs = pe.PyramidVectorEnv(3, "giza", autoreset_mode="Disabled")
    envs.reset(options={"deal": 3})
    rng, legal = np.random.default_rng(1), np.flatnonzero(envs.action_masks()[0])
    drawn = np.array([envs.random_actions(rng) for _ in range(2000)])
    found, counts = np.unique(drawn, return_counts=True)
    assert found.tolist() == legal.tolist()
    assert len(legal) > 3
    assert (abs(counts / counts.mean() - 1) < 0.2).all()


# ---- long runs -------------------------------------------------------------------------------------------------------


def check_invariants(envs: pe.PyramidVectorEnv, sample: np.ndarray) -> None:
    """No card lost or doubled; the facts and, for a sample, mask and row, are those of the position."""
    rules, table = envs.rules, kernels.table(envs.rules)
    left = np.bitwise_count(envs.states[:, kernels.PYRAMID]) + np.bitwise_count(envs.states[:, kernels.STOCK])
    assert (left == envs.facts[:, kernels.CARDS_LEFT]).all()
    in_piles = (envs.buffer[:, : rules.places] != 0).sum(axis=1)
    fields = envs._layout.views(envs.buffer)
    assert (in_piles + fields["waste_count"].sum(axis=1) + fields["stock"][:, 0] == left).all()
    deck = np.sort(pe.Deal.number(0, rules).ranks)
    assert (np.sort(envs.ranks[sample], axis=1) == deck).all()
    shown = envs.action_masks()
    for b in sample:
        legal = np.zeros(envs.single_action_space.n, bool)
        legal[kernels.legal_actions(rules, envs.ranks[b], envs.states[b])] = True
        assert (shown[b] == legal).all()
        facts = np.zeros_like(envs.facts[b])
        kernels.write_facts(table, envs.ranks[b], envs.states[b], int(legal.sum()), facts)
        assert (facts == envs.facts[b]).all()


def soak(preset: str, games: int, steps: int, every: int, mask_format: str = "packed") -> None:
    envs = pe.PyramidVectorEnv(
        games, preset, copy=False, illegal_action="raise", action_mask_format=mask_format, max_episode_steps=500
    )
    envs.reset(seed=11)
    rng = np.random.default_rng(5)
    for step in range(steps):
        order = rng.permutation(envs.single_action_space.n)
        envs.step(order[envs.action_masks()[:, order].argmax(axis=1)])
        if step % every == 0:
            check_invariants(envs, rng.integers(games, size=8))


@pytest.mark.parametrize("preset", pe.PRESETS)
def test_invariants_over_a_short_run(preset) -> None:
    soak(preset, 64, 200, 10, "int8")


@pytest.mark.slow
@pytest.mark.parametrize("preset", pe.PRESETS)
def test_soak(preset) -> None:
    """A hundred million steps over all presets."""
    soak(preset, 8192, 815, 25)


@pytest.mark.slow
def test_ten_million_steps_under_two_thread_counts() -> None:
    digests = set()
    for threads in (1, 2):
        envs = pe.PyramidVectorEnv(20_000, "till_dawn", copy=False, num_threads=threads, action_mask_format="packed")
        digests.add(digest(envs, 500))
        envs.close()
    assert len(digests) == 1


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_stepping_does_not_take_more_and_more_memory(mode) -> None:
    envs = pe.PyramidVectorEnv(256, "mini", copy=False, autoreset_mode=mode, num_threads=2)
    digest(envs, 300)
    tracemalloc.start()
    digest(envs, 50)
    before = tracemalloc.get_traced_memory()[0]
    digest(envs, 600)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    envs.close()
    assert grown < 100_000


# ---- plain rules -----------------------------------------------------------------------------------------------------

PLAIN = ("pyramid", "one_pass", "solitaire13", "double_pyramid", "mini", "mini_one_pass", "pyramid:passes=unlimited")
NOT_PLAIN = ("pyramid:draw_count=2", "pyramid:pair_waste_two=true", "pyramid:stock_top=true", "pyramid:overlap=true",
             "pyramid:predealt=1", "pyramid:goal=all", "one_pass:end_on_exhausted=true")  # fmt: skip


@pytest.mark.parametrize("name", [*pe.PRESETS, *PLAIN[6:], *NOT_PLAIN])
@pytest.mark.parametrize("level", ["table", "memory", "clairvoyant"])
def test_plain_rules_are_those_that_the_plain_tables_leave_as_they_are(name, level) -> None:
    rules = pe.rules(name)
    full, at = kernels.table(rules), layout(rules, level).offsets
    made, fields = stepping.plain_table.py_func(full, full.one_word), stepping.plain_offsets.py_func(at)
    assert stepping.is_plain(full) == (name in PLAIN)
    assert (all(map(np.array_equal, made, full)) and fields == at) == (name in PLAIN)


@pytest.mark.parametrize("mask_format", MASK_FORMATS)
@pytest.mark.parametrize("name", ["pyramid", "double_pyramid", "mini_one_pass"])
def test_plain_rules_are_stepped_as_all_rules_are(name, mask_format, monkeypatch) -> None:
    settings = {"action_mask_format": mask_format, "max_episode_steps": 50}
    plain = pe.PyramidVectorEnv(16, name, **settings)
    monkeypatch.setattr(engine, "is_plain", lambda full: False)
    general = pe.PyramidVectorEnv(16, name, **settings)
    assert plain._batch._play.func is not general._batch._play.func
    assert same(plain.reset(seed=3), general.reset(seed=3))
    rng = np.random.default_rng(3)
    for _ in range(300):
        actions = plain.random_actions(rng)
        assert same(plain.step(actions), general.step(actions))
        assert same(plain.facts, general.facts)
