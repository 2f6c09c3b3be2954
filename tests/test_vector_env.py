"""PyramidVectorEnv: step by step equal to SyncVectorEnv over PyramidEnv, and what it does beyond that."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from test_env import OFTEN_DEAD, RANKS, same

import pyramid_env as pe
from pyramid_env.errors import DeckError, IllegalMoveError, PyramidError

ID = "pyramid_env/Pyramid-v0"
MODES = list(AutoresetMode)
GAMES = 6


def both(mode: AutoresetMode, games: int = GAMES, steps: int = 2000, **arguments):
    """The native vector environment and SyncVectorEnv over single ones, alike."""

    def single() -> gym.Env:
        return gym.make(ID, max_episode_steps=steps, **arguments)

    native = gym.make_vec(ID, num_envs=games, autoreset_mode=mode, max_episode_steps=steps, **arguments)
    return native, SyncVectorEnv([single] * games, autoreset_mode=mode)


def choose(rng: np.random.Generator, masks, legal: float = 1.0):
    """(B,) actions: legal ones with the given chance, else any; 0 where there is none."""
    picks = [rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in masks]
    return np.where(rng.random(len(masks)) < legal, picks, rng.integers(masks.shape[1], size=len(masks)))


def play_side_by_side(native, sync, rng, steps: int, legal: float = 1.0, **reset) -> None:
    """Reset and step both with the same actions; everything returned must be equal, types and dtypes included."""
    assert same(native.reset(**copy.deepcopy(reset)), sync.reset(**copy.deepcopy(reset)))
    ended = np.zeros(native.num_envs, bool)
    for _ in range(steps):
        if native.unwrapped.autoreset_mode == AutoresetMode.DISABLED and ended.any():
            options = [{"reset_mask": ended.copy()} for _ in range(2)]
            assert same(native.reset(options=options[0]), sync.reset(options=options[1]))
        actions = choose(rng, native.action_masks(), legal)
        one, other = native.step(actions), sync.step(actions)
        assert same(one, other)
        ended = one[2] | one[3]


# ---- against SyncVectorEnv -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("preset", ["mini", "till_dawn", "giza", "tuts_tomb"])
@pytest.mark.parametrize("level", ["table", "clairvoyant"])
def test_equal_to_sync_vector_env(mode, preset, level) -> None:
    native, sync = both(mode, rules=preset, observation=level)
    play_side_by_side(native, sync, np.random.default_rng(1), 150, seed=7)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reward", ["par", "msc", "win", "shaped"])
def test_equal_with_illegal_actions_and_truncation(mode, reward) -> None:
    native, sync = both(mode, steps=17, rules="mini", reward=reward)
    play_side_by_side(native, sync, np.random.default_rng(2), 200, legal=0.6, seed=8)


@pytest.mark.parametrize("mode", MODES)
def test_equal_over_more_episodes_than_deals_are_fetched_ahead(mode) -> None:
    native, sync = both(mode, games=3, steps=2, rules=OFTEN_DEAD)
    play_side_by_side(native, sync, np.random.default_rng(3), 150, seed=[5, 5, 2**40])
    play_side_by_side(native, sync, np.random.default_rng(3), 10)
    play_side_by_side(native, sync, np.random.default_rng(3), 10, seed=[None, 1, None])


def test_ctrl_c_during_a_step_does_not_lose_count_of_the_deals_fetched_ahead(monkeypatch) -> None:
    envs = pe.PyramidVectorEnv(8, "mini", max_episode_steps=1)
    envs.reset(seed=0)
    streams, rng = envs._streams, np.random.default_rng(0)
    play = envs._batch.play

    def interrupted() -> None:
        play()
        raise KeyboardInterrupt

    for _ in range(4 * streams.AHEAD):
        monkeypatch.setattr(envs._batch, "play", interrupted)
        with pytest.raises(KeyboardInterrupt):
            envs.step(envs.random_actions(rng))
        monkeypatch.setattr(envs._batch, "play", play)
        envs.step(envs.random_actions(rng))
        assert (streams.used <= streams.AHEAD).all()
        assert streams.spent >= (streams.used == streams.AHEAD).sum()
    envs.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "option", [{"deal": 12}, {"cards": str(pe.Deal.number(3, "mini"))}, {"game": pe.Game(9, "mini")}]
)
def test_equal_with_one_start_for_all(mode, option) -> None:
    native, sync = both(mode, rules="mini")
    play_side_by_side(native, sync, np.random.default_rng(4), 60, seed=1, options=option)


def test_game_i_gets_the_deals_of_a_single_environment_seeded_with_seed_plus_i() -> None:
    envs = gym.make_vec(ID, num_envs=5, autoreset_mode="SameStep", max_episode_steps=1)
    _, infos = envs.reset(seed=100)
    deals = [infos["deal"]]
    for _ in range(40):
        deals.append(envs.step(np.full(5, envs.unwrapped.masks.shape[1] - 1))[-1]["deal"])
    for i in range(5):
        env = gym.make(ID)
        singles = [env.reset(seed=100 + i)[1]["deal"], *(env.reset()[1]["deal"] for _ in range(40))]
        assert singles == [int(row[i]) for row in deals]


# ---- starts ----------------------------------------------------------------------------------------------------------


def test_deals_and_games_one_for_each() -> None:
    envs = pe.PyramidVectorEnv(3, autoreset_mode="Disabled", observation="clairvoyant")
    singles = [pe.PyramidEnv(observation="clairvoyant") for _ in range(3)]
    deals = [5, pe.Deal.parse(RANKS), 7]
    observations, infos = envs.reset(options={"deals": deals})
    for i, deal in enumerate(deals):
        expected, info = singles[i].reset(options={"deal": deal})
        assert same({name: values[i] for name, values in observations.items()}, expected)
        assert infos["deal"][i] == info["deal"]
        assert envs.deal(i) == singles[i].deal
    assert infos["cards"].tolist() == [None, str(pe.Deal.parse(RANKS)), None]
    assert infos["_cards"].tolist() == [False, True, False]
    same_numbers = envs.reset(options={"deals": np.array([5, 6, 7])})
    assert same(same_numbers, envs.reset(options={"deals": [5, 6, 7]}))
    assert "cards" not in same_numbers[1]
    games = [pe.Game(n) for n in (5, 6, 7)]
    games[1].play("draw")
    observations, _ = envs.reset(options={"games": games})
    assert observations["stock"].ravel().tolist() == [24, 23, 24]
    assert [envs.game(i).state.tolist() for i in range(3)] == [game.state.tolist() for game in games]


def test_a_partial_reset_leaves_the_others_alone() -> None:
    envs = pe.PyramidVectorEnv(3, autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=1)
    envs.step(np.full(3, envs.masks.shape[1] - 1))
    before, masks = envs.buffer.copy(), envs.masks.copy()
    options = {"reset_mask": np.array([False, True, False]), "deals": np.array([-1, 8, -1])}
    observations, infos = envs.reset(options=options)
    assert set(options) == {"reset_mask", "deals"}, "the caller's options stay as they are"
    assert observations["stock"].ravel().tolist() == [23, 24, 23]
    assert (envs.buffer[[0, 2]] == before[[0, 2]]).all()
    assert infos["deal"].tolist() == [0, 8, 0]
    assert infos["_deal"].tolist() == [False, True, False]
    assert not infos["action_mask"][[0, 2]].any()
    assert (envs.action_masks()[[0, 2]] == masks[[0, 2]]).all()
    assert envs.steps.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"deals": [1, 2]}, PyramidError, 'options."deals".: expected 3 of them, one a game, got 2'),
        ({"deals": 1}, PyramidError, "expected 3 of them, one a game, got int"),
        ({"deals": np.array([1, -2, 3])}, DeckError, "deal number: expected a whole number from 0 to .*, got -2"),
        ({"deals": [1, 2.5, 3]}, DeckError, "deal number: expected a whole number"),
        ({"games": [1, 2, 3]}, PyramidError, "expected a Game, got int"),
        (
            {"deals": [1, 2, 3], "deal": 1},
            PyramidError,
            "expected one of deals, games, deal, cards, game, got deals, deal",
        ),
        ({"seed": 1}, PyramidError, "reset options: expected deals, games, deal, cards, game, got 'seed'"),
        ({"reset_mask": [True] * 3}, TypeError, "expected a bool array of shape .3,., got list"),
        ({"reset_mask": np.ones(3)}, TypeError, "expected a bool array of shape .3,., got float64"),
        ({"reset_mask": np.zeros(3, bool)}, PyramidError, "at least one true value, got shape .3,., 0 true"),
        ({"reset_mask": np.ones(4, bool)}, PyramidError, "got shape .4,."),
    ],
)
def test_a_start_that_cannot_be_read_is_refused_and_changes_nothing(options, error, message) -> None:
    envs = pe.PyramidVectorEnv(3)
    with pytest.raises(PyramidError, match="expected a reset of all games first"):
        envs.reset(options={"reset_mask": np.array([True, False, True])})
    envs.reset(seed=1)
    twin = copy.deepcopy(envs)
    with pytest.raises(error, match=message):
        envs.reset(seed=2, options=options)
    assert same(envs.reset(), twin.reset())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs: expected a whole number of 1 or more, got 0"),
        ({"max_episode_steps": 0}, "max_episode_steps: expected a whole number of 1 or more, got 0"),
        (
            {"autoreset_mode": "Never"},
            "autoreset_mode: expected an AutoresetMode or one of 'NextStep', 'SameStep', 'Disabled'",
        ),
        ({"reward": "score"}, "reward: expected one of par"),
    ],
)
def test_an_argument_that_is_wrong_is_refused(arguments, message) -> None:
    with pytest.raises(PyramidError, match=message):
        pe.PyramidVectorEnv(**arguments)


BAD_SEEDS = [
    *(-1, np.int64(-1), 1.5, "abc", b"abc", True, {0: 1, 1: 2, 2: 3}, np.array(5)),
    *([1, -5, 3], [1, 2.5, 3], ["a", "b", "c"], [1, 2], np.array([1, 2]), np.array([1, -2, 3]), np.ones(3)),
    *(np.ones((3, 1), int), [True, False, True]),
]


@pytest.mark.parametrize("seed", BAD_SEEDS, ids=repr)
def test_symptom_a_bad_seed_broke_the_environment_for_later_resets(seed) -> None:
    envs = pe.PyramidVectorEnv(3, "mini")
    envs.reset(seed=1)
    twin = copy.deepcopy(envs)
    with pytest.raises(PyramidError, match=r"seed(\[\d\])?: expected "):
        envs.reset(seed=seed)
    assert envs.np_random_seed == twin.np_random_seed
    assert same(envs.buffer, twin.buffer)
    for _ in range(20):
        assert same(envs.reset(), twin.reset())
    with pytest.raises(PyramidError, match="seed"):
        pe.PyramidVectorEnv(3, "mini").reset(seed=seed)


def test_symptom_an_array_of_seeds_was_a_truth_value_error() -> None:
    envs = pe.PyramidVectorEnv(3, "mini")
    expected = envs.reset(seed=[1, 2, 3])
    for seed in (np.array([1, 2, 3]), np.array([1, 2, 3], np.uint64), (1, 2, 3), range(1, 4), 1, np.int64(1)):
        assert same(envs.reset(seed=seed), expected)
        assert envs.np_random_seed == (1, 2, 3)
    with pytest.raises(PyramidError, match=r"seed\[1\]: expected a whole number from 0 up or None, got -5"):
        envs.reset(seed=[1, -5, 3])


@pytest.mark.parametrize("value", ["no", 0, 1, None, [True]])
def test_symptom_copy_no_was_taken_for_true(value) -> None:
    with pytest.raises(PyramidError, match="copy: expected True or False, got "):
        pe.PyramidVectorEnv(2, copy=value)
    assert pe.PyramidVectorEnv(2, copy=np.bool_(False)).copy is False


@pytest.mark.parametrize("value", [np.array(5), "123", {0: 1, 1: 2, 2: 3}, {1, 2, 3}, pe.Deal.number(1)])
def test_symptom_deals_that_are_no_sequence_were_a_bare_error(value) -> None:
    with pytest.raises(PyramidError, match=r'options."deals".: expected 3 of them, one a game, got '):
        pe.PyramidVectorEnv(3).reset(options={"deals": value})


def test_a_start_that_is_over_is_dealt_but_not_stepped() -> None:
    dead = next(n for n in range(100) if pe.Game(n, OFTEN_DEAD).is_over)
    alive = next(n for n in range(100) if not pe.Game(n, OFTEN_DEAD).is_over)
    for mode in MODES:
        envs = pe.PyramidVectorEnv(2, OFTEN_DEAD, autoreset_mode=mode)
        _, infos = envs.reset(options={"deals": [alive, dead]})
        assert infos["action_mask"].any(axis=1).tolist() == [True, False]
        assert infos["_won"].tolist() == [False, True]
        with pytest.raises(PyramidError, match=r"1 of 2 have ended \(first: 1\); reset those with options"):
            envs.step(choose(np.random.default_rng(1), envs.action_masks()))
        envs.reset(options={"reset_mask": np.array([False, True])})
        envs.step(choose(np.random.default_rng(1), envs.action_masks()))


# ---- steps -----------------------------------------------------------------------------------------------------------


def test_copy_false_hands_out_the_environments_own_arrays() -> None:
    safe, fast = (pe.PyramidVectorEnv(4, "mini", copy=copies) for copies in (True, False))
    rng = np.random.default_rng(1)
    one, other = safe.reset(seed=1), fast.reset(seed=1)
    for _ in range(60):
        assert same(one, other)
        for name, values in other[0].items():
            assert np.shares_memory(values, fast.buffer), name
        assert other[-1]["action_mask"] is fast.masks
        assert np.shares_memory(fast.action_masks(), fast.masks)
        kept = copy.deepcopy(one)
        actions = choose(rng, safe.action_masks())
        handed_out, one, other = one, safe.step(actions), fast.step(actions)
        assert same(handed_out, kept), "with copy=True a step changes nothing that was handed out before"
    assert not any(np.shares_memory(values, safe.buffer) for values in one[0].values())
    assert not np.shares_memory(safe.action_masks(), safe.masks)


@pytest.mark.parametrize("mode", MODES)
def test_one_illegal_action_changes_nothing_in_the_batch(mode) -> None:
    envs = pe.PyramidVectorEnv(4, "mini", autoreset_mode=mode, illegal_action="raise", max_episode_steps=9)
    rng = np.random.default_rng(1)
    envs.reset(seed=1)
    ended = np.zeros(4, bool)
    for _ in range(40):
        if mode == AutoresetMode.DISABLED and ended.any():
            envs.reset(options={"reset_mask": ended})
        actions = choose(rng, envs.action_masks())
        twin = copy.deepcopy(envs)
        ignored = ended if mode == AutoresetMode.NEXT_STEP else np.zeros(4, bool)
        for game in np.flatnonzero(~ignored):
            wrong = actions.copy()
            wrong[game] = np.flatnonzero(~envs.action_masks()[game])[0]
            with pytest.raises(IllegalMoveError, match=rf"not legal in game {game}, deal \d+; legal: "):
                envs.step(wrong)
        for i, name in enumerate(("states", "masks", "buffer", "facts", "numbers", "steps")):
            assert same(getattr(envs, name), getattr(twin, name)), (i, name)
        one, other = envs.step(actions), twin.step(actions)
        assert same(one, other)
        ended = one[2] | one[3]


@pytest.mark.parametrize("policy", ["penalty", "raise"])
def test_actions_that_are_no_actions_are_refused(policy) -> None:
    envs = pe.PyramidVectorEnv(2, illegal_action=policy)
    with pytest.raises(PyramidError, match="expected running games, got none"):
        envs.step(np.zeros(2, int))
    envs.reset(seed=1)
    draw = envs.masks.shape[1] - 1
    for actions in ([0.0, 1.0], [True, False], np.zeros(3, int), np.zeros((2, 1), int), 1, None, [[0], 0]):
        with pytest.raises(IllegalMoveError, match=r"actions: expected integers of shape \(2,\), got "):
            envs.step(actions)
    with pytest.raises(IllegalMoveError, match=rf"of shape \(2,\) from 0 to {draw}, got {2**63 + 5}"):
        envs.step(np.array([draw, 2**63 + 5], np.uint64))
    for wrong in (-1, draw + 1):
        with pytest.raises(IllegalMoveError, match=rf"expected integers from 0 to {draw}, got {wrong} in game 1"):
            envs.step(np.array([draw, wrong]))
    assert envs.steps.tolist() == [0, 0]
    for actions in ([draw, draw], np.array([draw, draw], np.int32), np.array([draw, draw], np.uint8)):
        assert envs.step(actions)[0]["stock"].shape == (2, 1)
    assert envs.states[:, 2].tolist() == [3, 3]


def test_a_callable_rewards_the_whole_batch() -> None:
    def step_cost(before, after):
        assert not before.flags.writeable
        assert not after.flags.writeable
        return np.full(len(after), -0.5)

    envs = pe.PyramidVectorEnv(3, "mini", reward=step_cost, max_episode_steps=1)
    envs.reset(seed=1)
    draw = np.full(3, envs.masks.shape[1] - 1)
    assert envs.step(draw)[1].tolist() == [-0.5] * 3
    assert envs.step(draw)[1].tolist() == [0.0] * 3, "the step that deals anew"


def test_frames_of_every_game() -> None:
    for mode, kind in (("ansi", str), ("rgb_array", np.ndarray)):
        envs = gym.make_vec(ID, num_envs=2, rules="mini", render_mode=mode)
        envs.reset(seed=1)
        frames = envs.render()
        assert [type(frame) for frame in frames] == [kind, kind]
        single = gym.make(ID, rules="mini", render_mode=mode)
        single.reset(seed=2)
        assert np.array_equal(frames[1], single.render())
    with pytest.raises(PyramidError, match="expected a render_mode at construction"):
        pe.PyramidVectorEnv(1).render()


def test_results_do_not_depend_on_the_number_of_games() -> None:
    few, many = pe.PyramidVectorEnv(3, "till_dawn"), pe.PyramidVectorEnv(9, "till_dawn")
    few.reset(seed=1)
    many.reset(seed=1)
    rng = np.random.default_rng(1)
    for _ in range(120):
        actions = choose(rng, many.action_masks())
        few.step(actions[:3])
        many.step(actions)
        assert same(few.buffer, many.buffer[:3])
        assert same(few.masks, many.masks[:3])


# ---- symptoms --------------------------------------------------------------------------------------------------------


def test_symptom_05_a_finished_game_is_not_stepped_without_a_word() -> None:
    envs = pe.PyramidVectorEnv(4, "mini", autoreset_mode="Disabled")
    envs.reset(seed=1)
    rng, ended = np.random.default_rng(1), np.zeros(4, bool)
    while not ended.any():
        _, _, terminated, truncated, _ = envs.step(choose(rng, envs.action_masks()))
        ended = terminated | truncated
    assert (envs.action_masks().any(axis=1) == ~ended).all()
    with pytest.raises(PyramidError, match=rf"{ended.sum()} of 4 have ended \(first: {np.flatnonzero(ended)[0]}"):
        envs.step(choose(rng, envs.action_masks()))


@pytest.mark.parametrize("mode", MODES)
def test_symptom_06_only_the_last_mask_of_a_game_is_empty(mode) -> None:
    envs = pe.PyramidVectorEnv(4, "mini", autoreset_mode=mode)
    envs.reset(seed=1)
    rng, episodes = np.random.default_rng(1), 0
    while episodes < 20:
        _, _, terminated, _, infos = envs.step(choose(rng, envs.action_masks()))
        shown = infos["action_mask"].any(axis=1)
        episodes += terminated.sum()
        if mode == AutoresetMode.SAME_STEP:
            assert shown.all()
            if terminated.any():
                assert not infos["final_info"]["action_mask"].any()
        else:
            assert (shown == ~terminated).all()
        if mode == AutoresetMode.DISABLED and terminated.any():
            envs.reset(options={"reset_mask": terminated})


@pytest.mark.parametrize("mode", MODES)
def test_symptom_10_final_observation_infos_and_returns_in_every_mode(mode) -> None:
    """The last observation, the final info and the episode's return can be told apart from the next game's."""
    envs = gym.wrappers.vector.RecordEpisodeStatistics(gym.make_vec(ID, num_envs=3, rules="mini", autoreset_mode=mode))
    _, infos = envs.reset(seed=1)
    deals, rng, ended, episodes = infos["deal"], np.random.default_rng(1), np.zeros(3, bool), 0
    while episodes < 15:
        if mode == AutoresetMode.DISABLED and ended.any():
            partly = envs.reset(options={"reset_mask": ended.copy()})[1]["deal"]
            deals = np.where(ended, partly, deals)
        observations, _, terminated, truncated, infos = envs.step(choose(rng, envs.env.action_masks()))
        if mode == AutoresetMode.NEXT_STEP:
            deals = np.where(ended, infos["deal"], deals)
        ended = terminated | truncated
        for i in np.flatnonzero(ended):
            final = infos["final_info"] if mode == AutoresetMode.SAME_STEP else infos
            last = {name: values[i] for name, values in observations.items()}
            if mode == AutoresetMode.SAME_STEP:
                assert last["pass"] == 1, "the next game's first observation"
                last = infos["final_obs"][i]
            left = sum((last[name] != 0).sum() for name in ("pyramid", "known"))
            bonus = (0, 50, 35, 20)[final["cleared_in"][i]]
            assert final["par"][i] == bonus - left
            assert final["_par"][i]
            assert final["deal"][i] == deals[i]
            assert infos["episode"]["r"][i] == final["par"][i] + pe.rules("mini").cards
            episodes += 1
        if mode == AutoresetMode.SAME_STEP:
            deals = infos["deal"]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_symptom_11_after_an_autoreset_info_names_the_deal_in_play(mode) -> None:
    envs = pe.PyramidVectorEnv(3, "mini", observation="clairvoyant", autoreset_mode=mode)
    _, infos = envs.reset(seed=1)
    rng, known = np.random.default_rng(1), set()
    for _ in range(100):
        observations, _, _, _, infos = envs.step(choose(rng, envs.action_masks()))
        for i in range(3):
            ranks = pe.Deal.number(int(infos["deal"][i]), "mini").ranks
            shown = np.concatenate([observations["pyramid"][i], observations["clairvoyant_stock"][i]])
            assert ((shown == ranks) | (shown == 0)).all()
        known |= set(infos["deal"].tolist())
    assert len(known) > 10


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))])
@pytest.mark.parametrize("mode", MODES)
def test_symptom_12_copies_keep_the_running_games_and_their_own_random_state(duplicate, mode) -> None:
    envs = pe.PyramidVectorEnv(3, "mini", autoreset_mode=mode, max_episode_steps=12, copy=False)
    envs.reset(seed=1, options={"deals": [4, pe.Deal.parse(str(pe.Deal.number(5, "mini")), "mini"), 6]})
    rng = np.random.default_rng(1)
    for _ in range(7):
        envs.step(choose(rng, envs.action_masks()))
    twin = duplicate(envs)
    assert not np.shares_memory(twin.buffer, envs.buffer)
    for _ in range(80):
        actions = choose(rng, envs.action_masks())
        one, other = envs.step(actions), twin.step(actions)
        assert same(one, other)
        assert np.shares_memory(other[0]["pyramid"], twin.buffer), "the copy's views look at the copy's buffer"
        ended = one[2] | one[3]
        if mode == AutoresetMode.DISABLED and ended.any():
            options = {"reset_mask": ended}
            assert same(envs.reset(options=options), twin.reset(options=options))
    envs.reset(seed=9)
    assert not same(envs.buffer, twin.buffer)
    assert not same(envs.reset()[1]["deal"], twin.reset()[1]["deal"]), "the random state is not shared"


def test_symptom_16_the_same_seed_gives_the_same_games_whatever_the_global_generator() -> None:
    def record() -> list:
        envs = pe.PyramidVectorEnv(3, "mini")
        rng = np.random.default_rng(1)
        return [envs.reset(seed=3), *(envs.step(choose(rng, envs.action_masks())) for _ in range(60))]

    np.random.seed(1)  # noqa: NPY002 (the global generator is the subject)
    first = record()
    np.random.seed(2)  # noqa: NPY002 (likewise)
    assert same(first, record())
    draws = {tuple(pe.PyramidVectorEnv(3).reset()[1]["deal"]) for _ in range(3)}
    assert len(draws) == 3, "without a seed every environment deals its own"


@pytest.mark.parametrize("mode", MODES)
def test_symptom_18_truncated_is_not_terminated(mode) -> None:
    envs = pe.PyramidVectorEnv(3, autoreset_mode=mode, max_episode_steps=5)
    envs.reset(seed=1)
    rng = np.random.default_rng(1)
    for step in range(1, 6):
        _, _, terminated, truncated, infos = envs.step(choose(rng, envs.action_masks()))
        assert not terminated.any()
        assert truncated.tolist() == [step == 5] * 3
    if mode == AutoresetMode.SAME_STEP:
        infos = infos["final_info"]
    assert infos["action_mask"].any(axis=1).all()
    assert "won" not in infos
    assert pe.PyramidVectorEnv(1).max_episode_steps is None
    assert pe.PyramidVectorEnv(1, max_episode_steps=-1).max_episode_steps is None
    assert gym.make_vec(ID, num_envs=1).max_episode_steps == 2000
