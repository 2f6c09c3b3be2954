"""VecEnv adapter, masked token policy, trained policies as agents: what other kits got wrong does not happen here."""

import math
import os
import textwrap

import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.distributions import MaskableCategorical
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor

import agents.sb3
import evaluate
import pyramid_env as pe
from agents import load, make_agent
from agents.action_head import MASKED_LOGIT
from agents.checkpoint import (
    Checkpoint,
    CheckpointError,
    load_checkpoint,
    pack_optimizer,
    save_checkpoint,
    unpack_optimizer,
    weights_of,
)
from agents.evaluation import evaluate_agent
from agents.faults import NonFiniteError
from agents.networks import MaskedDistribution, MaskedTokenPolicy, TokenFeatures
from agents.page.replays import choose_games, replay_data
from agents.sb3 import CompactRolloutBuffer, PyramidVecEnv, Sb3Agent, flat_space
from agents.tokens import token_counts
from pyramid_env.moves import move_table
from pyramid_env.observation import layout

MINI = pe.rules("mini")
SIZES = {"embedding": 16, "shared": (16,), "policy": (), "value": (8,), "activation": "relu"}


def random_actions(env, rng):
    return make_agent("random", env.rules).act({}, get_action_masks(env), rng)


def small_policy(rules=MINI, seed=0):
    torch.manual_seed(seed)
    space = spaces.Discrete(len(move_table(rules)))
    policy = MaskedTokenPolicy(flat_space(rules, "memory"), space, lambda _: 1e-3, **SIZES)
    with torch.no_grad():
        policy.action_net.weight.mul_(100)  # a fresh policy is nearly uniform
    return policy


def some_positions(rules=MINI, games=64, steps=6, seed=0):
    """Flat observation rows and masks from the middle of random games."""
    env = PyramidVecEnv(rules, games, flat=True, seed=seed)
    rows, rng = env.reset(), np.random.default_rng(seed)
    for _ in range(steps):
        rows, *_ = env.step(random_actions(env, rng))
    return rows, env.action_masks().copy()


# ---- PyramidVecEnv ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["mini", "pyramid", "till_dawn", "giza", "tuts_tomb"])
def test_observations_are_those_of_the_native_environment(preset):
    env, flat = PyramidVecEnv(preset, 6, seed=3), PyramidVecEnv(preset, 6, flat=True, seed=3)
    fields, rows = env.reset(), flat.reset()
    rng = np.random.default_rng(0)
    for _ in range(30):
        assert np.array_equal(layout(env.rules, "memory").flat(fields), rows)
        assert all(flat.observation_space.contains(row) for row in rows)
        assert env.observation_space.contains({name: values[0] for name, values in fields.items()})
        actions = random_actions(env, rng)
        fields, rewards, dones, _ = env.step(actions)
        rows, flat_rewards, flat_dones, _ = flat.step(actions)
        assert rewards.dtype == np.float32
        assert np.array_equal(rewards, flat_rewards)
        assert np.array_equal(dones, flat_dones)


def test_seeds_deal_what_the_native_environment_deals():
    env = PyramidVecEnv("mini", 4)
    env.seed(11)
    env.reset()
    native = pe.PyramidVectorEnv(4, rules="mini")
    native.reset(seed=11)
    assert np.array_equal(env.envs.numbers, native.numbers)
    env.reset()  # a seed counts for one reset
    assert not np.array_equal(env.envs.numbers, native.numbers)


def test_observations_handed_out_do_not_change_later():
    env = PyramidVecEnv("mini", 4, seed=0)
    before = env.reset()
    kept = {name: values.copy() for name, values in before.items()}
    env.step(random_actions(env, np.random.default_rng(0)))
    assert all(np.array_equal(before[name], kept[name]) for name in kept)


@pytest.mark.parametrize("flat", [False, True])
def test_infos_tell_of_finished_games_and_only_of_those(flat):
    env = PyramidVecEnv("mini", 8, flat=flat, seed=5, reward="par", reward_scale=0.1)
    env.reset()
    games = [pe.Game(int(number), "mini") for number in env.envs.numbers]
    rng, returns, finished = np.random.default_rng(1), np.zeros(8), 0
    for _ in range(60):
        actions = random_actions(env, rng)
        _, rewards, dones, infos = env.step(actions)
        returns += rewards
        for b, info in enumerate(infos):
            games[b].play(int(actions[b]))
            assert games[b].is_over == dones[b]
            if not dones[b]:
                assert info == {}
                continue
            finished += 1
            assert info["deal"] == games[b].deal.deal_number
            assert info["score"] == games[b].score
            assert info["is_success"] == games[b].is_won
            assert not info["TimeLimit.truncated"]
            assert info["episode"]["l"] == len(games[b].history)
            assert info["episode"]["r"] == games[b].par + MINI.cards  # a game's return under the reward par
            assert returns[b] == pytest.approx(0.1 * info["episode"]["r"])
            last = info["terminal_observation"]
            pyramid = (layout(MINI, "memory").views(last) if flat else last)["pyramid"]
            left = [bool(int(games[b].state[0]) >> i & 1) for i in range(MINI.places)]
            assert (pyramid != 0).tolist() == left
            games[b], returns[b] = pe.Game(int(env.envs.numbers[b]), "mini"), 0.0
    assert finished > 10


def test_games_cut_off_are_truncated_with_their_last_observation():
    env = PyramidVecEnv("pyramid", 3, max_episode_steps=4, flat=True, seed=0)
    env.reset()
    draw = np.full(3, len(move_table(env.rules)) - 1)
    for step in range(1, 5):
        _, _, dones, infos = env.step(draw)
        assert dones.all() == (step == 4)
    for info in infos:
        assert info["TimeLimit.truncated"]
        assert not info["is_success"]
        assert layout(env.rules, "memory").views(info["terminal_observation"])["cursor"][0] == 4


def test_masks_come_from_one_buffer_and_are_what_sb3_contrib_asks_for():
    env = PyramidVecEnv("mini", 5, seed=0)
    env.reset()
    assert is_masking_supported(env)
    masks = get_action_masks(env)
    assert masks.shape == (5, len(move_table(MINI)))
    assert masks.dtype == bool
    assert all(np.shares_memory(row, env.envs.masks) for row in env.env_method("action_masks"))
    assert np.array_equal(np.stack(env.env_method("action_masks", indices=[3, 1])), masks[[3, 1]])


def test_the_rest_of_the_vec_env_interface():
    env = PyramidVecEnv("mini", 3, seed=0)
    assert env.get_attr("render_mode") == [None] * 3
    assert env.get_attr("level", indices=1) == ["memory"]
    assert env.env_is_wrapped(Monitor) == [False] * 3
    assert not env.has_attr("nonsense")
    env.set_attr("mood", "good")
    assert env.get_attr("mood", [0, 2]) == ["good", "good"]
    with pytest.raises(ValueError, match="share one environment"):
        env.set_attr("mood", "bad", indices=[0])
    with pytest.raises(AttributeError, match="expected 'action_masks'"):
        env.env_method("render")
    env.close()


def test_an_illegal_action_raises():
    env = PyramidVecEnv("mini", 2, seed=0)
    env.reset()
    illegal = np.array([int(np.flatnonzero(~mask)[0]) for mask in get_action_masks(env)])
    with pytest.raises(pe.errors.IllegalMoveError):
        env.step(illegal)


@pytest.mark.parametrize("policy", ["MultiInputPolicy", "MlpPolicy", MaskedTokenPolicy])
def test_the_documented_call_trains(policy):
    env = PyramidVecEnv("mini", num_envs=4, flat=policy != "MultiInputPolicy", seed=0)
    model = MaskablePPO(policy, VecMonitor(env), n_steps=8, batch_size=16, n_epochs=1, seed=0, device="cpu")
    model.learn(64)
    assert model.num_timesteps == 64


def test_the_example_of_the_docstring_runs():
    example = textwrap.dedent(agents.sb3.__doc__.partition("::\n")[2])
    assert "MaskablePPO(MaskedTokenPolicy, env" in example
    names = {}
    exec(example.replace("10_000", "2_000"), names)
    assert names["model"].num_timesteps >= 2_000


def test_options_given_game_by_game_reach_each_game():
    """Once the first game's options were taken for all."""
    env = PyramidVecEnv("mini", 3)
    env.set_options([{"deal": 5}, {"deal": pe.Deal.number(6, MINI)}, {"cards": str(pe.Deal.number(7, MINI))}])
    env.reset()
    assert [env.envs.deal(i).cards for i in range(3)] == [pe.Deal.number(n, MINI).cards for n in (5, 6, 7)]
    games = [pe.Game(number, "mini") for number in (1, 2, 3)]
    games[1].play("draw")
    env.set_options([{"game": game} for game in games])
    env.reset()
    assert [env.envs.game(i).position for i in range(3)] == [game.position for game in games]
    env.set_options({"deal": 4})
    env.reset()
    assert env.envs.numbers.tolist() == [4, 4, 4]
    env.set_options({"deals": [4, 5, 6]})
    env.reset()
    assert env.envs.numbers.tolist() == [4, 5, 6]
    env.set_options([{}, {}, {}])
    env.reset()
    assert (env.envs.numbers >= 1_000_000).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([{"deal": 1}], "expected 2 dicts, one a game, got 1"),
        ([{"deal": 1}, {}], "for game 1, got nothing"),
        ([{"deal": 1, "cards": ""}, {"deal": 1}], "for game 0, got deal, cards"),
        ([{"deals": [1, 2]}, {"deals": [3, 4]}], "for game 0, got deals"),
        ([{"deal": 1}, {"game": pe.Game(1, "mini")}], "a game for all or for none, got 1 of 2"),
    ],
)
def test_options_that_do_not_say_where_each_game_starts_are_refused(options, words):
    with pytest.raises(pe.errors.PyramidError, match=words):
        PyramidVecEnv("mini", 2).set_options(options)


# ---- network and distribution ----------------------------------------------------------------------------------------


def test_the_token_sum_is_a_linear_layer_on_the_one_hot_encoding():
    space = flat_space(MINI, "memory")
    extractor = TokenFeatures(space, embedding=8, layers=(), activation="relu")
    counts = token_counts(space)
    rng = np.random.default_rng(0)
    rows = (rng.random((50, len(counts))) * counts).astype(np.int8)
    one_hot = np.concatenate([np.eye(n)[rows[:, f]] for f, n in enumerate(counts)], axis=1)
    linear = torch.as_tensor(one_hot, dtype=torch.float32) @ extractor.trunk.table.weight
    assert torch.allclose(extractor(torch.from_numpy(rows)), linear.relu(), atol=1e-5)


def test_its_gradient_is_that_of_torch():
    space = flat_space(MINI, "memory")
    extractor = TokenFeatures(space, embedding=8, layers=(4,), activation="tanh")
    rows = torch.from_numpy(some_positions()[0])
    extractor(rows).square().sum().backward()
    ours = extractor.trunk.table.weight.grad.clone()
    table = extractor.trunk.table.weight.detach().clone().requires_grad_()
    plain = torch.nn.functional.embedding_bag(rows.long() + extractor.trunk.offsets, table, mode="sum")
    extractor.trunk.layers(extractor.trunk.activation(plain)).square().sum().backward()
    assert torch.allclose(ours, table.grad, atol=1e-5)


def test_fields_and_flat_rows_give_the_same_features():
    rows = torch.from_numpy(some_positions()[0])
    fields = layout(MINI, "memory").space()
    torch.manual_seed(0)
    by_field = TokenFeatures(fields, 8)
    views = layout(MINI, "memory").views(rows)
    views = {name: views[name] for name in fields.spaces}  # a Dict space sorts its fields
    order = np.concatenate([layout(MINI, "memory").views(np.arange(rows.shape[1]))[name] for name in fields.spaces])
    assert torch.equal(by_field(views), by_field(rows[:, order]))


def test_token_counts_refuse_other_spaces():
    with pytest.raises(ValueError, match="integer boxes from 0 up"):
        token_counts(spaces.Box(-1, 1, (3,), np.float32))


def random_masks(rng, rows, actions, share):
    masks = rng.random((rows, actions)) < share
    masks[np.arange(rows), rng.integers(actions, size=rows)] = True
    return masks


@pytest.mark.parametrize("share", [0.01, 0.2, 1.0])
def test_the_distribution_equals_sb3_contribs(share):
    rng = np.random.default_rng(0)
    masks = random_masks(rng, 200, 254, share)
    logits = torch.as_tensor(rng.normal(size=(200, 254)) * 4, dtype=torch.float32)
    mine, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    ours = MaskedDistribution(254).proba_distribution(mine)
    ours.apply_masking(masks)
    reference = MaskableCategorical(logits=theirs, masks=masks)
    actions = reference.sample()
    assert torch.allclose(ours.log_prob(actions), reference.log_prob(actions), atol=1e-5)
    assert torch.allclose(ours.entropy(), reference.entropy(), atol=1e-5)
    assert torch.equal(ours.mode(), reference.probs.argmax(dim=1))
    assert torch.allclose(ours.log_probs.exp(), reference.probs, atol=1e-6)
    assert torch.allclose(ours.distribution.probs, reference.probs, atol=1e-6)
    (ours.log_prob(actions).sum() + ours.entropy().sum()).backward()
    (reference.log_prob(actions).sum() + reference.entropy().sum()).backward()
    assert torch.allclose(mine.grad, theirs.grad, atol=1e-5)


def test_without_masks_it_is_the_plain_distribution():
    logits = torch.randn(20, 7)
    ours = MaskedDistribution(7).proba_distribution(logits)
    plain = torch.distributions.Categorical(logits=logits)
    assert torch.allclose(ours.entropy(), plain.entropy(), atol=1e-6)
    ours.apply_masking(np.eye(7, dtype=bool)[np.arange(20) % 7])
    assert torch.allclose(ours.entropy(), torch.zeros(20))
    ours.apply_masking(None)
    assert torch.allclose(ours.entropy(), plain.entropy(), atol=1e-6)


def test_masked_actions_are_never_drawn_and_legal_ones_as_often_as_they_should():
    masks = np.zeros((20_000, 254), bool)
    masks[:, [3, 100, 253]] = True
    logits = torch.zeros(20_000, 254)
    logits[:, 100] = math.log(2.0)
    torch.manual_seed(0)
    ours = MaskedDistribution(254).proba_distribution(logits)
    ours.apply_masking(masks)
    drawn = ours.sample().numpy()
    assert set(drawn) == {3, 100, 253}
    assert np.allclose([np.mean(drawn == a) for a in (3, 100, 253)], [0.25, 0.5, 0.25], atol=0.015)
    assert torch.all(ours.log_prob(torch.full((20_000,), 7)) == MASKED_LOGIT)


def test_the_entropy_of_a_uniform_policy_is_the_log_of_the_number_of_legal_moves():
    rng = np.random.default_rng(0)
    masks = random_masks(rng, 100, 254, 0.05)
    ours = MaskedDistribution(254).proba_distribution(torch.zeros(100, 254))
    ours.apply_masking(masks)
    assert np.allclose(ours.entropy().numpy(), np.log(masks.sum(axis=1)), atol=1e-6)


def test_symptom_simplex_check_fails_at_random_with_many_actions():
    """sb3-contrib #81, #247: rounding made a masked distribution fail its own check after 100,000s of steps."""
    rng = np.random.default_rng(0)
    for scale in (1.0, 30.0, 1000.0):
        masks = random_masks(rng, 4000, 1024, 0.5)
        logits = torch.as_tensor(rng.normal(size=(4000, 1024)) * scale, dtype=torch.float32)
        ours = MaskedDistribution(1024).proba_distribution(logits)
        ours.apply_masking(masks)
        ours.apply_masking(masks)
        drawn = ours.sample()
        assert masks[np.arange(4000), drawn.numpy()].all()
        assert torch.isfinite(ours.log_prob(drawn)).all()
        assert torch.isfinite(ours.entropy()).all()


# ---- what the policy refuses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", ["features_extractor.trunk.layers.0", "action_net", "value_net"])
def test_symptom_nan_goes_on_training_silently(layer):
    """sb3-contrib #221, #195: it stops, and names the layer and holds the batch."""
    policy = small_policy()
    rows, masks = some_positions()
    with torch.no_grad():
        policy.get_submodule(layer).weight[0, 0] = float("nan")
    with pytest.raises(NonFiniteError, match=rf"first seen in .*{layer} \(its weight\)") as error:
        policy(torch.from_numpy(rows), action_masks=masks)
    assert np.array_equal(error.value.batch["observations"], rows)
    assert np.array_equal(error.value.batch["action_masks"], masks)


def test_nan_in_the_embedding_is_named():
    policy = small_policy()
    rows, masks = some_positions()
    with torch.no_grad():
        policy.features_extractor.trunk.table.weight.fill_(float("inf"))
    with pytest.raises(NonFiniteError, match=r"features_extractor.trunk.table \(its weight\)"):
        policy(torch.from_numpy(rows), action_masks=masks)


def test_symptom_predict_without_masks_plays_illegal_moves():
    """sb3-contrib #212, #208."""
    policy = small_policy()
    rows, masks = some_positions()
    with pytest.raises(ValueError, match="expected the masks of the observations, got none"):
        policy.predict(rows)
    with pytest.raises(ValueError, match="expected the masks of the observations, got none"):
        policy(torch.from_numpy(rows))
    actions, _ = policy.predict(rows, action_masks=masks, deterministic=True)
    assert masks[np.arange(len(rows)), actions].all()
    single, _ = policy.predict(rows[0], action_masks=masks[0], deterministic=True)
    assert single == actions[0]


def test_symptom_the_ordinary_evaluation_has_no_masks():
    """sb3-contrib #226, #178: SB3's evaluate_policy raises instead of playing illegal moves."""
    env = PyramidVecEnv("mini", 2, flat=True, seed=0)
    model = MaskablePPO(MaskedTokenPolicy, env, n_steps=8, batch_size=16, seed=0, device="cpu")
    with pytest.raises(ValueError, match="expected the masks"):
        evaluate_policy(model, env, n_eval_episodes=2, warn=False)


def test_symptom_an_all_false_mask_gives_an_arbitrary_action():
    """sb3-contrib #200."""
    policy = small_policy()
    rows, masks = some_positions()
    masks[2] = False
    with pytest.raises(ValueError, match=r"none in 1 of 64 rows \(2\)"):
        policy.predict(rows, action_masks=masks)
    with pytest.raises(ValueError, match=r"none in 1 of 64 rows \(2\)"):
        Sb3Agent(policy, MINI, "memory").act(layout(MINI, "memory").views(rows), masks, np.random.default_rng(0))


# ---- replays ---------------------------------------------------------------------------------------------------------


def test_replays_show_the_policys_probabilities_and_values():
    policy = small_policy()
    agent = Sb3Agent(policy, MINI, "memory")
    records = evaluate_agent(agent, MINI, np.arange(8), seed=0, keep_actions=True)
    games = replay_data(choose_games({"ppo": records}, {}, 4, MINI), MINI, {"ppo": agent})
    assert len(games) == 4
    for game in games:
        assert game["says"] == "probability"
        for *_, value, made, _, moves in game["steps"][:-1]:
            shares = [share for _, share, *_ in moves]
            assert sum(shares) == pytest.approx(1.0, abs=1e-3)
            assert shares[made] == max(shares)
            assert value is not None
        env = PyramidVecEnv(MINI, 1, flat=True)
        env.set_options({"deals": [game["deal"]]})
        rows, masks = torch.from_numpy(env.reset()), env.action_masks()
        *_, value, _, _, moves = game["steps"][0]
        with torch.no_grad():
            assert value == pytest.approx(policy.predict_values(rows).item(), abs=0.01)
            found = policy.get_distribution(rows, masks).log_probs.exp()[0][masks[0]]
        assert [share for _, share, *_ in moves] == pytest.approx(found.tolist(), abs=1e-4)


# ---- agents and checkpoints ------------------------------------------------------------------------------------------


def checkpoint_of(policy, rules=MINI):
    space = flat_space(rules, "memory")
    tokens = tuple(token_counts(space).tolist())
    network = {name: list(value) if isinstance(value, tuple) else value for name, value in SIZES.items()}
    return Checkpoint("maskable_ppo", rules, "memory", len(move_table(rules)), tokens, network, weights_of(policy))


def test_the_agent_plays_the_policys_likeliest_moves():
    policy = small_policy()
    rows, masks = some_positions()
    observations = layout(MINI, "memory").views(rows)
    likeliest, _ = policy.predict(rows, action_masks=masks, deterministic=True)
    chosen = Sb3Agent(policy, MINI, "memory").act(observations, masks, np.random.default_rng(0))
    assert np.array_equal(chosen, likeliest)


def test_the_sampled_agent_follows_the_policy_and_the_generator_alone():
    policy = small_policy()
    rows, masks = some_positions(games=4)
    rows, masks = rows[:1].repeat(8000, axis=0), masks[:1].repeat(8000, axis=0)
    agent = Sb3Agent(policy, MINI, "memory", deterministic=False)
    observations = layout(MINI, "memory").views(rows)
    first = agent.act(observations, masks, np.random.default_rng(1))
    torch.manual_seed(99)
    assert np.array_equal(first, agent.act(observations, masks, np.random.default_rng(1)))
    with torch.no_grad():
        expected = policy.get_distribution(torch.from_numpy(rows[:1]), masks[:1]).log_probs.exp()[0].numpy()
    assert np.allclose(np.bincount(first, minlength=len(expected)) / 8000, expected, atol=0.03)


def test_a_checkpoint_plays_as_its_policy(tmp_path):
    policy = small_policy()
    save_checkpoint(checkpoint_of(policy), tmp_path / "a.safetensors")
    rows, masks = some_positions()
    observations = layout(MINI, "memory").views(rows)
    for agent in (load(tmp_path / "a.safetensors"), make_agent(str(tmp_path / "a.safetensors"), MINI)):
        expected = Sb3Agent(policy, MINI, "memory").act(observations, masks, np.random.default_rng(0))
        assert np.array_equal(agent.act(observations, masks, np.random.default_rng(0)), expected)
    assert list(tmp_path.iterdir()) == [tmp_path / "a.safetensors"]


@pytest.mark.skipif(os.name != "posix", reason="file modes")
@pytest.mark.parametrize("umask", [0o022, 0o027])
def test_a_checkpoint_can_be_read_by_those_who_can_read_other_files(tmp_path, umask):
    """Once only its owner could."""
    before = os.umask(umask)
    try:
        save_checkpoint(checkpoint_of(small_policy()), tmp_path / "a.safetensors")
        (tmp_path / "other").touch()
    finally:
        os.umask(before)
    assert (tmp_path / "a.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_only_a_caller_who_asks_gets_other_torch_threads(tmp_path):
    save_checkpoint(checkpoint_of(small_policy()), tmp_path / "a.safetensors")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        make_agent(str(tmp_path / "a.safetensors"), MINI)
        assert torch.get_num_threads() == 2
        make_agent(str(tmp_path / "a.safetensors"), MINI, threads=1)
        assert torch.get_num_threads() == 1
        torch.set_num_threads(2)
        evaluate.check_call(["--agents", str(tmp_path / "a.safetensors"), "--rules", "mini", "--no-bound"])
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_symptom_a_model_saved_elsewhere_does_not_load(tmp_path):
    """SB3 #403, #1122: nothing is pickled, the file is a JSON header and raw numbers."""
    save_checkpoint(checkpoint_of(small_policy()), tmp_path / "a.safetensors")
    data = (tmp_path / "a.safetensors").read_bytes()
    assert data[8:9] == b"{"
    assert b"numpy" not in data
    assert b"torch" not in data


def test_a_checkpoint_of_other_rules_is_refused_with_the_difference(tmp_path):
    save_checkpoint(checkpoint_of(small_policy()), tmp_path / "a.safetensors")
    with pytest.raises(
        CheckpointError, match=r"trained on mini, asked to play mini_one_pass; they differ in passes 3 .* and 1"
    ):
        make_agent(str(tmp_path / "a.safetensors"), "mini_one_pass")
    assert make_agent(str(tmp_path / "a.safetensors"), "pyramid:ranks=7,suits=2,rows=3").rules == MINI


def test_a_checkpoint_of_another_shape_is_refused(tmp_path):
    made = checkpoint_of(small_policy())
    path = tmp_path / "a.safetensors"
    save_checkpoint(
        Checkpoint(made.kind, made.rules, made.level, made.actions, made.tokens[:-1], made.network, made.policy), path
    )
    with pytest.raises(CheckpointError, match=r"made for observations of \d+ entries"):
        load(path)
    weights = {**made.policy, "action_net.bias": torch.zeros(3)}
    save_checkpoint(
        Checkpoint(made.kind, made.rules, made.level, made.actions, made.tokens, made.network, weights), path
    )
    with pytest.raises(CheckpointError, match=r"action_net.bias: expected shape \(\d+,\), got \(3,\)"):
        load(path)


@pytest.mark.parametrize("damage", [b"", b"not a checkpoint", None])
def test_a_damaged_checkpoint_is_refused(tmp_path, damage):
    path = tmp_path / "a.safetensors"
    save_checkpoint(checkpoint_of(small_policy()), path)
    path.write_bytes(path.read_bytes()[:-100] if damage is None else damage)
    with pytest.raises(CheckpointError, match="not a checkpoint, or damaged"):
        load(path)
    with pytest.raises(CheckpointError, match="no such checkpoint"):
        load_checkpoint(tmp_path / "b.safetensors")


def test_weights_that_are_not_finite_are_not_written_over_good_ones(tmp_path):
    path, policy = tmp_path / "a.safetensors", small_policy()
    save_checkpoint(checkpoint_of(policy), path)
    good = path.read_bytes()
    with torch.no_grad():
        policy.value_net.bias.fill_(float("nan"))
    with pytest.raises(CheckpointError, match=r"value_net\.bias holds NaN"):
        save_checkpoint(checkpoint_of(policy), path)
    assert path.read_bytes() == good
    assert list(tmp_path.iterdir()) == [path]


def test_the_optimiser_goes_on_as_if_nothing_had_happened():
    rows, masks = (torch.from_numpy(array) for array in some_positions())

    def step(policy):
        policy.optimizer.zero_grad()
        policy.evaluate_actions(rows, masks.byte().argmax(dim=1), masks)[1].sum().backward()
        policy.optimizer.step()

    policy, copy = small_policy(), small_policy(seed=1)
    step(policy)
    copy.load_state_dict(policy.state_dict())
    unpack_optimizer(copy.optimizer, pack_optimizer(policy.optimizer))
    step(policy)
    step(copy)
    assert all(torch.equal(a, b) for a, b in zip(policy.parameters(), copy.parameters(), strict=True))


def test_the_compact_buffer_keeps_masks_as_bytes():
    buffer = CompactRolloutBuffer(4, flat_space(MINI, "memory"), spaces.Discrete(len(move_table(MINI))), n_envs=3)
    assert buffer.action_masks.dtype == bool
    assert buffer.observations.dtype == np.int8
