"""PyramidEnv: starts, steps, rewards, infos, and the symptoms that users of neighbouring kits met."""

from __future__ import annotations

import copy
import pickle
import random

import gymnasium as gym
import numpy as np
import pytest

import pyramid_env as pe
from pyramid_env.errors import DeckError, IllegalMoveError, PyramidError
from pyramid_env.kernels import CARDS_LEFT, FACT_COLUMNS
from pyramid_env.reward import SCHEMES, Shaped

ID = "pyramid_env/Pyramid-v0"
RANKS = "94J856JJ9QQ457QT4K2T839TAA6A837A78Q34T56K2K97K3J6522"
OFTEN_DEAD = pe.rules(rows=2, ranks=7, suits=1, passes=1, predealt=4)
"""Two exposed places and one waste top, nothing to turn: 8 of 35 deals have no first move."""


def play(env: gym.Env, rng: np.random.Generator, **reset):
    """Every (observation, reward, terminated, truncated, info) of a random legal game; the reset's with reward 0."""
    observation, info = env.reset(**reset)
    steps = [(observation, 0.0, False, False, info)]
    while not (steps[-1][2] or steps[-1][3]):
        steps.append(env.step(rng.choice(np.flatnonzero(steps[-1][4]["action_mask"]))))
    return steps


def same(one: object, other: object) -> bool:
    """Equal in type, structure and every value."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and one.dtype == object:
        return same(list(one), list(other))
    return np.array_equal(one, other) and getattr(one, "dtype", None) == getattr(other, "dtype", None)


def contents(env: pe.PyramidEnv) -> list:
    """All that a step could change."""
    arrays = [env._states, env._ranks, env._masks, env._facts, env._rows]
    return [*(array.copy() for array in arrays), env._playing, env.deal, repr(env.np_random.bit_generator.state)]


# ---- starts ----------------------------------------------------------------------------------------------------------


def test_reset_takes_a_number_a_deal_a_text_or_a_game() -> None:
    env = pe.PyramidEnv("till_dawn")
    by_number, info = env.reset(options={"deal": 42})
    assert info["deal"] == 42
    assert env.deal == pe.Deal.number(42, "till_dawn")
    by_deal, info = env.reset(options={"deal": pe.Deal.number(42)})
    assert same(by_number, by_deal)
    assert info["deal"] == 42
    _, info = env.reset(options={"cards": RANKS})
    assert info["deal"] == -1
    assert pe.Deal.parse(info["cards"]) == pe.Deal.parse(RANKS) == env.deal
    game = pe.Game(42, "till_dawn")
    game.play("draw")
    from_game, info = env.reset(options={"game": game})
    assert from_game["stock"] == by_number["stock"] - 1
    assert env.game == game or env.game.state.tolist() == game.state.tolist()
    env.step(len(env.moves) - 1)
    assert game.draws == 1, "the environment plays a copy"
    assert "cards" not in env.reset(seed=1)[1]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"number": 1}, PyramidError, "expected deal, cards, game, got 'number'"),
        ({"deal": 1, "cards": RANKS}, PyramidError, "expected one of deal, cards, game, got deal, cards together"),
        ({"deal": -1}, DeckError, "deal number: expected a whole number from 0"),
        ({"deal": 1.0}, DeckError, "deal number: expected a whole number"),
        ({"deal": pe.Deal.number(1, "mini")}, DeckError, "expected 52 cards, got 14"),
        ({"cards": "KKKKK"}, DeckError, "too many: K"),
        ({"game": 3}, PyramidError, "expected a Game, got int"),
        ({"game": pe.Game(1, "one_pass")}, PyramidError, "expected a game of pyramid, got one of one_pass"),
    ],
)
def test_a_start_that_cannot_be_read_is_refused_and_changes_nothing(options, error, message) -> None:
    env = pe.PyramidEnv()
    env.reset(seed=1)
    before = copy.deepcopy(env)
    with pytest.raises(error, match=message):
        env.reset(seed=2, options=options)
    assert same(env.state, before.state)
    assert env.np_random.bit_generator.state == before.np_random.bit_generator.state


def test_random_deals_are_of_the_training_range_and_have_a_first_move() -> None:
    env = pe.PyramidEnv()
    assert len({env.reset()[1]["deal"] for _ in range(50)}) == 50
    assert all(env.reset()[1]["deal"] >= 1_000_000 for _ in range(50))
    env = pe.PyramidEnv(OFTEN_DEAD)
    assert all(env.reset()[1]["action_mask"].any() for _ in range(100))
    dead = next(n for n in range(100) if pe.Game(n, OFTEN_DEAD).is_over)
    _, info = env.reset(options={"deal": dead})
    assert not info["action_mask"].any()
    assert info["won"] is False
    with pytest.raises(PyramidError, match=f"deal {dead} is over"):
        env.step(0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rules": "piramide"}, "unknown preset 'piramide'"),
        ({"observation": "all"}, "observation: expected one of table, memory, clairvoyant, got 'all'"),
        (
            {"reward": "parr"},
            "reward: expected one of par, msc, win, shaped or a callable, got 'parr' .did you mean 'par'",
        ),
        ({"illegal_action": "ignore"}, "illegal_action: expected one of penalty, raise, got 'ignore'"),
        ({"render_mode": "film"}, "render_mode: expected one of None, human, ansi, rgb_array, svg, got 'film'"),
    ],
)
def test_an_argument_that_is_wrong_is_refused(arguments, message) -> None:
    with pytest.raises(PyramidError, match=message):
        pe.PyramidEnv(**arguments)


@pytest.mark.parametrize("seed", [-1, np.int64(-1), 1.5, "abc", True, [1], np.array([1, 2])])
def test_symptom_a_bad_seed_is_refused_and_changes_nothing(seed) -> None:
    env = pe.PyramidEnv()
    env.reset(seed=1)
    before = contents(env)
    with pytest.raises(PyramidError, match="seed: expected a whole number from 0 up or None, got "):
        env.reset(seed=seed)
    assert same(contents(env), before)
    assert same(env.reset(seed=np.int64(7)), pe.PyramidEnv().reset(seed=7))


@pytest.mark.parametrize("options", ["deal", 5, [("deal", 1)], [], ""])
def test_symptom_options_that_are_no_dict_were_a_bare_error(options) -> None:
    for env in (pe.PyramidEnv(), pe.PyramidVectorEnv(2)):
        with pytest.raises(PyramidError, match="reset options: expected a dict or None, got "):
            env.reset(options=options)


def test_symptom_a_deal_with_another_deals_number_was_dealt() -> None:
    forged = pe.Deal(pe.Deal.number(42).cards, 43)
    single, vector = pe.PyramidEnv(), pe.PyramidVectorEnv(2)
    for env, options in ((single, {"deal": forged}), (vector, {"deal": forged}), (vector, {"deals": [1, forged]})):
        with pytest.raises(DeckError, match="expected the cards that deal number 43 has under pyramid"):
            env.reset(options=options)


@pytest.mark.parametrize("name", ["observation", "reward", "illegal_action", "render_mode"])
@pytest.mark.parametrize("value", [["par"], {"raise": 1}, np.array(["ansi", "memory"]), 5])
def test_symptom_an_unhashable_choice_was_a_type_error(name, value) -> None:
    for make in (pe.PyramidEnv, pe.PyramidVectorEnv):
        with pytest.raises(PyramidError, match=f"{name}: expected one of .*, got "):
            make(**{name: value})


def test_symptom_a_rendered_game_in_progress_said_0_moves() -> None:
    single = pe.PyramidEnv(render_mode="ansi")
    vector = pe.PyramidVectorEnv(2, render_mode="ansi", autoreset_mode="Disabled")
    single.reset(options={"deal": 42})
    vector.reset(options={"deal": 42})
    single.step(len(single.moves) - 1)
    vector.step(np.full(2, len(single.moves) - 1))
    shown = single.render()
    assert vector.render() == (shown, shown)
    assert "deal 42" in shown
    assert "move" not in shown
    game = pe.Game(42)
    game.play("draw")
    assert str(game) == f"{shown}   1 move", "all else is the game's own picture"


# ---- steps -----------------------------------------------------------------------------------------------------------


def test_moves_masks_and_the_game_agree() -> None:
    env = gym.make(ID, rules="microsoft", illegal_action="raise")
    rng = np.random.default_rng(1)
    _, info = env.reset(options={"deal": 7})
    game, over = pe.Game(7, "microsoft"), False
    while not over:
        legal = np.flatnonzero(info["action_mask"])
        assert tuple(env.unwrapped.moves[a] for a in legal) == tuple(sorted(game.legal_moves))
        assert same(env.unwrapped.action_masks(), info["action_mask"].astype(bool))
        action = int(rng.choice(legal))
        _, _, over, _, info = env.step(action)
        game.play(action)
        assert (info["score"], info["deal"]) == (game.score, 7)
        assert env.unwrapped.game.state.tolist() == game.state.tolist()
    assert game.is_over
    assert (info["won"], info["cleared_in"], info["par"], info["msc"]) == (
        game.is_won,
        game.cleared_in,
        game.par,
        game.msc,
    )


def test_an_illegal_action_costs_one_and_changes_nothing() -> None:
    env = pe.PyramidEnv()
    observation, info = env.reset(seed=1)
    illegal = int(np.flatnonzero(info["action_mask"] == 0)[0])
    after, reward, terminated, truncated, info_after = env.step(illegal)
    assert (reward, terminated, truncated) == (-1.0, False, False)
    assert info_after.pop("illegal_action") is True
    assert same(after, observation)
    assert same(info_after, info)
    assert "illegal_action" not in env.step(len(env.moves) - 1)[4]


def test_an_illegal_action_raises_on_request_and_changes_nothing() -> None:
    env = pe.PyramidEnv(illegal_action="raise")
    env.reset(options={"deal": 3})
    before = contents(env)
    illegal = int(np.flatnonzero(~env.action_masks())[-1])
    with pytest.raises(IllegalMoveError, match=r"action 252 \(waste\): not legal in deal 3; legal: .*draw"):
        env.step(illegal)
    assert same(contents(env), before)


@pytest.mark.parametrize("preset", pe.PRESETS)
def test_returns_are_the_scores(preset: str) -> None:
    rules = pe.rules(preset)
    for reward in ("par", "msc", "win", "shaped"):
        env = pe.PyramidEnv(preset, reward=reward)
        for deal in range(3):
            steps = play(env, np.random.default_rng(deal), options={"deal": deal})
            info = steps[-1][-1]
            total = sum(step[1] for step in steps)
            won = float(info["won"])
            expected = {"par": info["par"] + rules.cards, "msc": info["msc"], "win": won, "shaped": won}[reward]
            assert total == pytest.approx(expected, abs=1e-4)


def test_shaping_pays_for_progress_and_takes_it_back_at_a_loss() -> None:
    env = pe.PyramidEnv("pyramid", reward=Shaped.of(pe.rules("pyramid"), gamma=0.5))
    env.reset(options={"cards": RANKS})
    assert env.step(len(env.moves) - 1)[1] == 0.0
    steps = play(env, np.random.default_rng(1), options={"cards": RANKS})
    removed = [(28 - (step[0]["pyramid"] != 0).sum()) / 28 for step in steps]
    for i in range(1, len(steps) - 1):
        assert steps[i][1] == pytest.approx(0.5 * removed[i] - removed[i - 1], abs=1e-6)
    assert not steps[-1][-1]["won"]
    assert steps[-1][1] == pytest.approx(-removed[-2], abs=1e-6)


def test_a_callable_rewards() -> None:
    def cards_gone(before, after):
        assert before.shape == after.shape == (1, FACT_COLUMNS)
        return before[:, CARDS_LEFT] - after[:, CARDS_LEFT]

    steps = play(pe.PyramidEnv(reward=cards_gone), np.random.default_rng(1), seed=1)
    assert {step[1] for step in steps} == {0.0, 1.0, 2.0}
    env = pe.PyramidEnv(reward=lambda before, after: 0.0)
    env.reset(seed=1)
    with pytest.raises(PyramidError, match=r"reward: expected an array of shape \(1,\), got \(\)"):
        env.step(len(env.moves) - 1)


@pytest.mark.parametrize("name", ["par", "msc", "win"])
def test_rewards_counted_by_the_kernel_are_those_of_the_scheme(name) -> None:
    scheme = SCHEMES[name](pe.rules("till_dawn"))
    for seed in range(5):
        counted = play(pe.PyramidEnv("till_dawn", reward=name), np.random.default_rng(seed), seed=seed)
        called = pe.PyramidEnv("till_dawn", reward=lambda before, after: scheme(before, after))
        assert same(counted, play(called, np.random.default_rng(seed), seed=seed))


def test_pictures_use_no_randomness_and_change_nothing() -> None:
    for mode in ("ansi", "rgb_array", "svg"):
        env = gym.make(ID, render_mode=mode)
        env.reset(seed=1)
        before, generator = env.unwrapped.state, copy.deepcopy(env.np_random.bit_generator.state)
        first, second = env.render(), env.render()
        assert np.array_equal(first, second)
        assert same(env.unwrapped.state, before)
        assert env.np_random.bit_generator.state == generator
    assert isinstance(gym.make(ID, render_mode="ansi").unwrapped, pe.PyramidEnv)
    env = pe.PyramidEnv()
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="expected a render_mode at construction"):
        assert env.render() is None


def test_the_class_docstring_is_the_specification() -> None:
    sections = [
        line.strip("# ") for line in (pe.PyramidEnv.__doc__ or "").splitlines() if line.strip().startswith("##")
    ]
    assert sections == [
        "Description",
        "Action Space",
        "Observation Space",
        "Rewards",
        "Starting State",
        "Episode End",
        "Arguments",
        "Info",
    ]
    for level in ("table", "memory", "clairvoyant"):
        for name in pe.PyramidEnv("till_dawn", observation=level).observation_space:
            assert f"``{name}``" in pe.PyramidEnv.__doc__


# ---- symptoms --------------------------------------------------------------------------------------------------------


def test_symptom_05_an_all_false_mask_never_yields_an_action_without_a_word() -> None:
    env = pe.PyramidEnv("mini")
    steps = play(env, np.random.default_rng(1), seed=1)
    assert not steps[-1][-1]["action_mask"].any()
    for action in (0, len(env.moves) - 1):
        with pytest.raises(PyramidError, match=r"step: expected a running game, deal \d+ is over; call reset"):
            env.step(action)
    with pytest.raises(PyramidError, match="expected a running game, got none"):
        pe.PyramidEnv().step(0)


def test_symptom_06_a_terminal_mask_is_all_zeros_and_the_docs_say_so() -> None:
    for preset in pe.PRESETS:
        steps = play(gym.make(ID, rules=preset), np.random.default_rng(1), seed=1)
        assert [bool(step[-1]["action_mask"].any()) for step in steps] == [True] * (len(steps) - 1) + [False]
    assert "Once it is over the mask is all zeros" in pe.PyramidEnv.__doc__
    assert "never sample from it" in pe.PyramidEnv.__doc__


def test_symptom_11_info_names_the_deal() -> None:
    env = gym.make(ID, rules="mini")
    for options, number in ((None, None), ({"deal": 5}, 5), ({"cards": "1234567"}, -1)):
        if number == -1:
            options = {"cards": str(pe.Deal.number(5, "mini"))}
        steps = play(env, np.random.default_rng(1), options=options)
        for step in steps:
            assert step[-1]["deal"] == (env.unwrapped.deal.deal_number if number is None else number)
            assert ("cards" in step[-1]) == (number == -1)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("start", [{}, {"options": {"cards": RANKS}}])
def test_symptom_12_copies_keep_the_running_game_and_their_own_random_state(duplicate, start) -> None:
    env = gym.make(ID, observation="clairvoyant")
    env.reset(seed=3)
    _, info = env.reset(**start)
    rng = np.random.default_rng(1)
    for _ in range(5):
        info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))[-1]
    twin = duplicate(env)
    for _ in range(2):
        over = False
        while not over:
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            one, other = env.step(action), twin.step(action)
            assert same(one, other)
            over, info = one[2], one[-1]
        one, other = env.reset(), twin.reset()
        assert same(one, other), "the next random deal is the same"
        info = one[-1]
    env.reset()
    assert twin.np_random.bit_generator.state != env.np_random.bit_generator.state, "the state is not shared"
    env.step(len(env.unwrapped.moves) - 1)
    assert not same(env.unwrapped.state, twin.unwrapped.state)


def test_symptom_12_a_fresh_environment_can_be_copied() -> None:
    twin = copy.deepcopy(pe.PyramidEnv())
    assert same(twin.reset(seed=1), pe.PyramidEnv().reset(seed=1))


def test_symptom_15_action_types() -> None:
    env = pe.PyramidEnv()
    draw = len(env.moves) - 1
    for action in (draw, np.int64(draw), np.int32(draw), np.uint8(draw), np.array(draw), np.array(draw, np.int32)):
        env.reset(seed=1)
        assert env.step(action)[0]["stock"] == 23
    env.reset(seed=1)
    before = contents(env)
    for action in (float(draw), np.float64(draw), True, np.True_, [draw], (draw,), np.array([draw]), "draw", None):
        with pytest.raises(IllegalMoveError, match=f"expected an integer from 0 to {draw}, got "):
            env.step(action)
    for action in (-1, draw + 1, 2**70):
        with pytest.raises(IllegalMoveError, match=f"expected an integer from 0 to {draw}, got {action}"):
            env.step(action)
    assert same(contents(env), before)


def test_symptom_16_no_global_generator_is_used() -> None:
    def record() -> list:
        env = gym.make(ID, rules="till_dawn")
        return [play(env, np.random.default_rng(1), seed=5), play(env, np.random.default_rng(2))]

    np.random.seed(1)  # noqa: NPY002 (the global generator is the subject)
    random.seed(1)
    states = (random.getstate(), pickle.dumps(np.random.get_state()))  # noqa: NPY002 (likewise)
    first = record()
    assert (random.getstate(), pickle.dumps(np.random.get_state())) == states  # noqa: NPY002 (likewise)
    np.random.seed(2)  # noqa: NPY002 (likewise)
    random.seed(2)
    assert same(first, record())


def test_symptom_18_truncated_is_not_terminated() -> None:
    env = gym.make(ID, max_episode_steps=10)
    steps = play(env, np.random.default_rng(1), seed=1)
    assert steps[-1][2:4] == (False, True)
    assert steps[-1][-1]["action_mask"].any(), "a truncated game could go on: its value is to be bootstrapped"
    assert "won" not in steps[-1][-1]
    assert 'info.get("won", False)' in pe.PyramidEnv.__doc__, "how to read such an end stands in the specification"
    steps = play(gym.make(ID), np.random.default_rng(1), seed=1)
    assert steps[-1][2:4] == (True, False)
    assert gym.spec(ID).max_episode_steps == 2000
    env = gym.make(ID)
    env.reset(seed=1)
    illegal = int(np.flatnonzero(~env.unwrapped.action_masks())[0])
    flags = [env.step(illegal)[2:4] for _ in range(2000)]
    assert flags == [(False, False)] * 1999 + [(False, True)]


def test_symptom_22_no_array_is_handed_out_twice() -> None:
    steps = play(gym.make(ID), np.random.default_rng(1), seed=1)
    arrays = [array for step in steps for array in [*step[0].values(), step[-1]["action_mask"]]]
    kept = [array.copy() for array in arrays]
    owners = [{id(array if array.base is None else array.base) for array in step[0].values()} for step in steps]
    assert len(set().union(*owners)) == len(steps), "a row of its own for each step"
    assert all(map(np.array_equal, arrays, kept))
    env = pe.PyramidEnv()
    observation, info = env.reset(seed=1)
    for array in [*observation.values(), info["action_mask"], env.action_masks(), env.state]:
        array[...] = 0
    assert same(env.step(len(env.moves) - 1)[0], pe_step(1))


def pe_step(seed: int):
    env = pe.PyramidEnv()
    env.reset(seed=seed)
    return env.step(len(env.moves) - 1)[0]
