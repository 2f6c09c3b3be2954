"""Learning from an expert's games: what is kept, the loss, a run and its resume; starting from weights of another."""

import dataclasses
import shutil
import threading

import numpy as np
import pytest
import torch

import pyramid_env as pe
import train as train_script
from agents import make_agent
from agents.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from agents.config import ConfigError, make_config
from agents.evaluation import evaluate_agent
from agents.expert_games import Lessons, Record, play, rebuild
from agents.experts import make_expert
from agents.imitation import Imitation
from agents.legal import legal_lists
from agents.ppo import Ppo
from agents.run_folder import RunFolder, TrainingError
from agents.teacher import Teacher
from agents.training import Trainer, _Watch, resume, train
from pyramid_env.errors import PyramidError
from pyramid_env.moves import move_table

TINY = {
    "rules": "mini",
    "algorithm": "imitation",
    "total_steps": 512,
    "checkpoint_steps": 64,
    "env": {"num_envs": 8},
    "network": {"embedding": 16, "shared": [16]},
    "imitation": {"games": 24, "held_out": 10, "batch_size": 32, "gradient_steps": 2},
    "ppo": {"n_steps": 8, "batch_size": 32, "n_epochs": 2},
    "teacher": {"judge": "score", "scale": 30.0, "batch_size": 4, "warm_up": 0},
    "evaluation": {"deals": "validation:0-19", "every_steps": 128, "bound": False},
}
DEALS = np.arange(1_000_000, 1_000_032)


def tiny(*overrides):
    return make_config(TINY, overrides)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def weights(run, name="latest"):
    return load_checkpoint(RunFolder(run).checkpoint_path(name)).policy


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def played(config, seed=0, deals=DEALS):
    block = play(config, deals, make_expert(config), np.random.default_rng(seed))
    assert block is not None
    return block


def lessons_of(block):
    book = Lessons(block.positions.rows.shape[1], block.positions.bits.shape[1])
    book.add(block)
    return book


# ---- the expert's games ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expert", ["tips", "planner:2"])
def test_an_agent_plays_as_it_does_in_evaluation_and_its_moves_are_the_lessons(expert):
    config = tiny(f"imitation.expert={expert}", "rules=pyramid")
    block = played(config, deals=DEALS if expert == "tips" else DEALS[:3])
    if expert == "tips":  # which draws no random numbers
        records = evaluate_agent(make_agent("tips"), config.game, DEALS, seed=0, keep_actions=True)
        assert block.record.actions.tolist() == [action for record in records for action in record.actions]
        assert block.record.lengths.tolist() == [record.steps for record in records]
        assert block.wins == sum(record.won for record in records)
    legal = legal_lists(block.positions.bits)
    slots = (legal == block.record.actions[:, None]).argmax(axis=1)
    assert np.array_equal(block.positions.best, np.int64(1) << slots)
    assert np.array_equal(legal[np.arange(len(slots)), slots], block.record.actions)


@pytest.mark.parametrize(
    ("rules", "judge"), [("pyramid", "win"), ("mini", "score"), ("mini", "earliest"), ("mini_one_pass", "win")]
)
def test_of_the_solver_all_moves_count_that_keep_the_best_result(rules, judge):
    config = tiny(f"rules={rules}", "imitation.expert=solver", f"imitation.judge={judge}")
    block, at, narrow = played(config), 0, 0
    for deal, length in zip(block.record.deals[:10].tolist(), block.record.lengths.tolist(), strict=False):
        game = pe.Game(deal, rules)
        for action, best, bits in zip(*(part[at : at + length] for part in lists(block)), strict=True):
            rated = {move_table(game.rules).index_of(r.move): r.value for r in pe.rate_moves(game, judge)}
            legal = legal_lists(bits[None])[0]
            if len(rated) > 1:
                worth = (0, 50, 35, 20, 0) if judge == "earliest" else None
                values = [worth[rated[a]] if worth else rated[a] for a in legal.tolist()]
                wanted = [k for k, value in enumerate(values) if value == max(values)]
                assert [k for k in range(len(legal)) if best >> k & 1] == wanted
                narrow += len(wanted) < len(legal)
                if max(values) > 0 or judge == "score":
                    assert action in legal[wanted]
            game.play(int(action))
        assert game.is_over
        at += length
    assert narrow > 10


def lists(block):
    return block.record.actions, block.positions.best, block.positions.bits


def test_the_solver_wins_whatever_can_be_won():
    block = played(tiny("rules=pyramid", "imitation.expert=solver"))
    winnable = sum(pe.solve(pe.Deal.number(int(deal)), "pyramid", "win").value for deal in DEALS)
    assert block.wins == winnable > 10


def test_returns_are_what_the_game_brought_from_there_on():
    config = tiny("env.reward=par", "imitation.gamma=0.5", "env.reward_scale=0.1")
    block, at = played(config), 0
    for deal, length in zip(block.record.deals.tolist(), block.record.lengths.tolist(), strict=True):
        game, pars = pe.Game(deal, "mini"), []
        for action in block.record.actions[at : at + length].tolist():
            pars.append(game.par)
            game.play(action)
        rewards = 0.1 * np.diff([*pars, game.par])
        wanted = [sum(0.5**k * reward for k, reward in enumerate(rewards[t:])) for t in range(length)]
        assert np.allclose(block.positions.returns[at : at + length], wanted, atol=1e-5)
        at += length
    assert at == len(block.positions.rows) > 100


def test_a_game_that_is_cut_off_teaches_moves_but_no_value():
    config = tiny("env.max_episode_steps=5")
    block = played(config)
    cut = np.repeat(block.record.lengths == 5, block.record.lengths)
    over = played(tiny()).record.lengths
    assert block.record.lengths.tolist() == np.minimum(over, 5).tolist()
    assert np.isnan(block.positions.returns[np.repeat(over > 5, block.record.lengths)]).all()
    assert np.isfinite(block.positions.returns[~cut]).all()
    learner = Imitation(config)
    told = learner._learn_from(lessons_of(block).draw(64, np.random.default_rng(0)))
    assert torch.isfinite(told).all()
    assert told[0] > 0.0


@pytest.mark.parametrize("expert", ["tips", "solver"])
def test_games_are_rebuilt_from_deals_and_moves(expert, monkeypatch):
    monkeypatch.setattr("agents.expert_games.REBUILT_AT_ONCE", 5)
    config = tiny(f"imitation.expert={expert}")
    block = played(config)
    record = block.record if expert == "solver" else block.record._replace(best=np.zeros(0, np.int64))
    blocks = list(rebuild(config, record))
    assert len(blocks) == 7
    for name in block.positions._fields:
        found = np.concatenate([getattr(part.positions, name) for part in blocks])
        assert np.array_equal(found, getattr(block.positions, name), equal_nan=name == "returns")
    assert sum(part.wins for part in blocks) == block.wins
    again = Record.none()
    for part in blocks:
        again = again.then(part.record)
    assert all(np.array_equal(a, b) for a, b in zip(again, block.record, strict=True))


def test_moves_of_other_games_are_refused():
    config = tiny()
    record = played(config).record
    with pytest.raises(PyramidError, match=r"the moves kept for deal 10000\d\d are not those of a game by these rules"):
        list(rebuild(config, record._replace(deals=record.deals + 1)))
    with pytest.raises(PyramidError, match=r"expert games: "):
        list(rebuild(config, record._replace(lengths=record.lengths - 1)))


def test_lessons_grow_and_are_drawn_from_all_games():
    config = tiny()
    block = played(config)
    book = Lessons(block.positions.rows.shape[1], block.positions.bits.shape[1])
    for _ in range(3):
        book.add(block)
    assert (book.size, book.games, book.wins) == (3 * len(block.positions.rows), 96, 3 * block.wins)
    rows = np.concatenate([samples.rows for samples in book.all(100)])
    assert np.array_equal(rows, np.concatenate([block.positions.rows] * 3))
    drawn = book.draw(4_000, np.random.default_rng(0))
    choices = ((drawn.legal >= 0).sum(axis=1) > 1).reshape(-1, 2).mean(axis=0)
    assert choices[0] == 1.0
    assert choices[1] == pytest.approx(np.mean((legal_lists(block.positions.bits) >= 0).sum(axis=1) > 1), abs=0.05)
    assert len(np.unique(drawn.rows, axis=0)) > 0.9 * len(np.unique(rows, axis=0))
    assert (drawn.best <= (drawn.legal >= 0)).all()
    assert drawn.best.any(axis=1).all()


# ---- learning --------------------------------------------------------------------------------------------------------


def test_the_loss_is_that_of_the_moves_together_written_out():
    """Probabilities over all actions by torch's own distributions; positions without a choice have no part in it."""
    config = tiny("rules=pyramid", "imitation.expert=solver", "env.reward=par")
    learner = Imitation(config)
    samples = lessons_of(played(config)).draw(200, np.random.default_rng(0))
    policy, value, agreed, lessons, valued = learner._losses(samples)
    logits, values = learner.network(torch.from_numpy(samples.rows))
    total, right, count = 0.0, 0, 0
    for row, legal, best in zip(logits, samples.legal, samples.best, strict=True):
        there, good = legal[legal >= 0], legal[best]
        if len(good) == len(there):
            continue
        mask = torch.full_like(row, -torch.inf)
        mask[there] = 0.0
        chances = torch.distributions.Categorical(logits=row + mask).probs
        total -= chances[good].sum().log().item()
        right += int(chances.argmax()) in good
        count += 1
    assert (int(agreed), int(lessons), int(valued)) == (right, count, 200)
    assert 20 < count < 200
    assert policy.item() == pytest.approx(total, rel=1e-4)
    assert value.item() == pytest.approx(((values - torch.from_numpy(samples.returns)) ** 2).sum().item(), rel=1e-4)


def test_a_short_run_plays_nearly_as_its_expert(tmp_path):
    """500 deals of ``mini``: random play wins 49 %, ``tips`` 78 %; of the held-out moves four in five are its own."""
    changes = [
        "imitation.games=2000",
        "imitation.held_out=200",
        "imitation.batch_size=256",
        "imitation.gradient_steps=50",
    ]
    config = tiny(
        *changes, "total_steps=200_000", "env.num_envs=256", "network.embedding=32", "network.shared=[64]",
        "imitation.learning_rate=4e-3", "evaluation.deals=validation:0-499", "evaluation.every_steps=0",
    )  # fmt: skip
    said = {}
    folder = RunFolder(tmp_path / "run")
    folder.start(config)
    trainer = Trainer(config, folder, lambda line: None, False)
    log = trainer.learner.log
    trainer.learner.log = lambda values: (said.update(values), log(values))
    result = trainer.work()
    records = evaluate_agent(make_agent("tips", "mini"), pe.rules("mini"), np.arange(10_000, 10_500), seed=0)
    expert = np.mean([record.won for record in records])
    assert expert > 0.7
    assert result.evaluations[-1].win_rate > expert - 0.04
    assert said["held_out/agreement"] > 0.85
    assert said["held_out/value_loss"] < 0.25
    assert said["expert/games"] == 2000


def test_the_learner_of_solver_games_is_shown_no_unseen_card():
    """Two deals that differ in unseen cards alone: the solver may choose other moves, the network sees no other."""
    config = tiny("rules=pyramid", "imitation.expert=solver")
    learner = Imitation(config)
    arrays = pe.functional.arrays(config.game, "memory", 2)
    ranks = pe.Deal.number(3).ranks
    arrays.ranks[:] = ranks, [*ranks[:28], *ranks[28:][::-1]]
    arrays.states[:] = pe.kernels.start_state(config.game)
    pe.functional.observe(config.game, "memory", arrays)
    assert np.array_equal(arrays.rows[0], arrays.rows[1])
    logits, values = learner.network(torch.from_numpy(arrays.rows), torch.from_numpy(legal_lists(arrays.bits)))
    assert torch.equal(logits[0], logits[1])
    assert values[0] == values[1]


# ---- stopping and going on -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expert", "deals", "share"),
    [("tips", "random", 0.0), ("tips", "random", 0.3), ("tips", "winnable", 0.6), ("solver", "random", 0.9)],
)
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path, monkeypatch, expert, deals, share):
    """Stopped in the first block of games, in later ones, and while it learns."""
    settings = tiny(f"imitation.expert={expert}", f"env.deals={deals}")
    stop, left, asked = threading.Event(), [0], _Watch.played

    class Stopping:
        def __enter__(self):
            return stop

        def __exit__(self, *_):
            return None

    def counting(watch, steps):
        left[0] -= 1
        if left[0] == 0:
            stop.set()
        return asked(watch, steps)

    monkeypatch.setattr(_Watch, "played", counting)
    whole = train(settings, tmp_path / "whole")
    left[0] = 1 + int(share * -left[0])
    monkeypatch.setattr("agents.training.stop_on_signal", lambda say: Stopping())
    first = train(settings, tmp_path / "run")
    assert not first.finished
    assert share > 0.0 or first.steps == 0
    monkeypatch.undo()
    assert resume(tmp_path / "run").finished
    ends = [load_checkpoint(RunFolder(run).checkpoint_path("latest")) for run in (whole.run, tmp_path / "run")]
    assert same(ends[0].policy, ends[1].policy)
    assert same(ends[0].optimizer, ends[1].optimizer)
    assert same(ends[0].training, ends[1].training)
    assert ends[0].progress == ends[1].progress
    lines = [(run / "evaluations.jsonl").read_text() for run in (whole.run, tmp_path / "run")]
    assert lines[0] == lines[1]


def test_games_that_are_needed_are_played_once_and_the_rest_not_at_all(tmp_path):
    few = train(tiny("imitation.games=1000", "total_steps=256"), tmp_path / "few").run
    kept = load_checkpoint(RunFolder(few).checkpoint_path("latest")).training
    moves = int(kept["expert.lengths"][10:].sum())
    assert 256 <= moves < 256 + 8 * 40
    many = train(tiny("total_steps=1024"), tmp_path / "many").run
    kept = load_checkpoint(RunFolder(many).checkpoint_path("latest")).training
    assert len(kept["expert.deals"]) == 34
    assert len(np.unique(kept["expert.deals"])) == 34


def test_a_checkpoint_with_moves_of_other_games_is_refused(tmp_path):
    run = train(tiny("total_steps=64"), tmp_path / "run").run
    path = RunFolder(run).checkpoint_path("latest")
    made = load_checkpoint(path)
    training = {**made.training, "expert.deals": made.training["expert.deals"] + 1}
    save_checkpoint(dataclasses.replace(made, training=training), path)
    with pytest.raises(CheckpointError, match=r"latest\.safetensors: expert games: "):
        resume(run)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("imitation.expert=tip", "imitation.expert: expected one of tips, planner, solver, got 'tip'"),
        ("imitation.expert=tips:3", "imitation.expert: expected no option after tips, got 'tips:3'"),
        ("imitation.expert=planner:x", "imitation.expert: planner: expected win, score, a number of worlds"),
        ("imitation.expert=planner:seconds=1", "imitation.expert: expected no seconds, as games must repeat"),
        ("imitation.judge=steps", "imitation.judge: expected one of win, earliest, score"),
        ("imitation.games=0", "imitation.games: expected 1 or more, got 0"),
        ("imitation.gamma=2", "imitation.gamma: expected a number from 0.0 to 1.0"),
        ("env.observation=table", "env.observation: expected memory with algorithm imitation, got table"),
        ("network.recurrent=8", "network.recurrent: expected 0 with algorithm imitation"),
        ("ppo.value_warm_up=-1", "ppo.value_warm_up: expected 0 or more, got -1"),
    ],
)
def test_what_imitation_cannot_do_is_refused(override, words):
    with pytest.raises(ConfigError) as error:
        tiny(override)
    assert words in str(error.value)


# ---- starting from the weights of another run ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cloned(tmp_path_factory):
    return train(tiny(), tmp_path_factory.mktemp("cloned") / "run").run


@pytest.mark.parametrize("algorithm", ["ppo", "teacher", "imitation"])
def test_a_run_starts_with_the_weights_of_another(tmp_path, cloned, algorithm):
    config = tiny(f"algorithm={algorithm}", f"init={cloned}", "total_steps=256", "seed=5")
    result = train(config, tmp_path / "run")
    start = RunFolder(cloned).checkpoint("best").progress["best"]
    assert result.evaluations[0].win_rate == start["win_rate"]
    assert result.evaluations[0].mean_score == start["mean_score"]
    assert same(weights(tmp_path / "run", "init"), weights(cloned, "best"))
    assert not same(weights(tmp_path / "run"), weights(cloned, "best"))
    made = load_checkpoint(RunFolder(tmp_path / "run").checkpoint_path("latest"))
    assert made.progress["steps"] == 256
    assert f"init: {cloned}" in (tmp_path / "run" / "config.yaml").read_text()


def test_fresh_networks_of_every_kind_take_the_weights(cloned):
    for learner in (Ppo(tiny("algorithm=ppo")), Teacher(tiny("algorithm=teacher")), Imitation(tiny())):
        networks = learner.networks()
        assert networks
        assert all(learner.weights().keys() == dict(network.named_parameters()).keys() for network in networks)


def test_resume_does_not_need_the_other_run(tmp_path, cloned):
    """Nor does a run that was ended before its first checkpoint."""
    other = shutil.copytree(cloned, tmp_path / "other")
    config = tiny("algorithm=ppo", f"init={other}")
    whole = train(config, tmp_path / "whole")
    RunFolder(tmp_path / "run").start(config)
    shutil.rmtree(other)
    resumed = resume(tmp_path / "run")
    assert same(weights(whole.run), weights(resumed.run))
    for name in ("latest", "best"):
        RunFolder(resumed.run).checkpoint_path(name).unlink()
    (resumed.run / "evaluations.jsonl").unlink()
    assert same(weights(whole.run), weights(resume(tmp_path / "run").run))


def test_a_relative_path_is_as_one_writes_it(tmp_path, cloned, monkeypatch):
    monkeypatch.chdir(cloned.parent)
    assert train(tiny("init=run/checkpoints/latest.safetensors", "total_steps=64"), tmp_path / "run").finished
    assert same(weights(tmp_path / "run", "init"), weights(cloned))


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["rules=mini_one_pass"], "they differ in passes 3 (trained) and 1 (asked for)"),
        (["algorithm=ppo", "env.observation=table"], "level 'memory' does not belong to 'table' in env.observation"),
        (["network.embedding=8"], "another network; they differ in network.embedding 16 (there) and 8 (asked for)"),
        (["network.shared=[16,16]", "network.blocks=1"], "network.shared (16,) (there) and (16, 16) (asked for)"),
    ],
)
def test_weights_that_do_not_fit_are_refused_before_there_is_a_folder(tmp_path, cloned, overrides, words):
    with pytest.raises(CheckpointError) as error:
        train(tiny(f"init={cloned}", *overrides), tmp_path / "run")
    assert words in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_of_stable_baselines3_is_no_start(tmp_path):
    settings = {**TINY, "algorithm": "maskable_ppo", "maskable_ppo": TINY["ppo"], "total_steps": 64}
    run = train(make_config(settings), tmp_path / "run").run
    words = r"expected a checkpoint of ppo, teacher, imitation to start from, got maskable_ppo"
    with pytest.raises(CheckpointError, match=words):
        train(tiny(f"init={run}"), tmp_path / "next")
    with pytest.raises(ConfigError, match=r"init: expected null with algorithm maskable_ppo, it is for ppo, teacher"):
        make_config(settings, [f"init={run}"])


def test_nothing_there_is_said_and_an_older_network_has_what_is_younger_by_default(tmp_path, cloned):
    with pytest.raises(CheckpointError, match=r"nowhere: expected a checkpoint file or a run folder"):
        train(tiny("init=nowhere"), tmp_path / "run")
    made = load_checkpoint(RunFolder(cloned).checkpoint_path("best"))
    older = {name: value for name, value in made.network.items() if name != "group_blocks"}
    save_checkpoint(dataclasses.replace(made, network=older), tmp_path / "old.safetensors")
    assert train(tiny(f"init={tmp_path / 'old.safetensors'}", "total_steps=64"), tmp_path / "run").finished


def test_a_started_run_is_not_overwritten(tmp_path, cloned):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("mine")
    with pytest.raises(TrainingError, match="nothing is overwritten"):
        train(tiny(f"init={cloned}"), tmp_path / "run")


def test_the_script_takes_a_path_to_start_from(tmp_path, cloned, capsys):
    config = tmp_path / "tiny.yaml"
    config.write_text(tiny("algorithm=ppo", "total_steps=64").to_yaml())
    odd = shutil.copytree(cloned, tmp_path / "a: run")
    call = ["--config", str(config), "--run", str(tmp_path / "run"), "--init", str(odd)]
    assert train_script.main(call) == 0
    assert RunFolder(tmp_path / "run").config().init == str(odd)
    assert train_script.main([*call[:3], str(tmp_path / "next"), "--init", "nowhere"]) == 2
    assert "train.py: error: nowhere: expected a checkpoint file" in capsys.readouterr().err
    assert not (tmp_path / "next").exists()


# ---- the value first -------------------------------------------------------------------------------------------------


def parts_of(learner):
    found = {name: weight.clone() for name, weight in learner.weights().items()}
    value = {name: found.pop(name) for name in list(found) if name.startswith(("value.", "worth."))}
    return found, value


@pytest.mark.parametrize("threads", [1, 2])
def test_in_the_warm_up_the_value_head_alone_learns(threads):
    config = tiny("algorithm=ppo", "ppo.value_warm_up=64", "network.value=[8]", f"threads={threads}")
    learner = Ppo(config)
    learner.set_schedules(0.0)
    before = parts_of(learner)
    learner.collect()
    assert learner.update()["train/approx_kl"] == pytest.approx(0.0, abs=1e-6)
    after = parts_of(learner)
    assert same(before[0], after[0])
    assert not any(torch.equal(before[1][name], after[1][name]) for name in after[1])
    learner.steps = 64
    learner.collect()
    learner.update()
    assert not same(after[0], parts_of(learner)[0])
    learner.close()


def test_a_run_stopped_in_the_warm_up_goes_on_bit_for_bit(tmp_path):
    config = tiny("algorithm=ppo", "ppo.value_warm_up=192")
    whole = train(config, tmp_path / "whole")
    run = tmp_path / "run"
    RunFolder(run).start(config)
    trainer = Trainer(config, RunFolder(run), lambda line: None, False)
    saved = trainer.save

    class Killed(BaseException):
        pass

    def dies(name):
        saved(name)
        if name == "latest" and trainer.learner.steps == 128:
            raise Killed

    trainer.save = dies
    with pytest.raises(Killed):
        trainer.work()
    resume(run)
    ends = [load_checkpoint(RunFolder(each).checkpoint_path("latest")) for each in (whole.run, run)]
    assert same(ends[0].policy, ends[1].policy)
    assert same(ends[0].optimizer, ends[1].optimizer)
