"""Training runs: same seed same result, nothing overwritten, stopped and continued, and something is learned."""

import dataclasses
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

import evaluate as evaluate_script
import pyramid_env as pe
import train as train_script
from agents import load, make_agent
from agents.checkpoint import load_checkpoint, save_checkpoint
from agents.config import ALGORITHMS, load_config, make_config
from agents.evaluation import evaluate_agent
from agents.run_folder import EVALUATIONS_FILE, RunFolder, TrainingError
from agents.sb3_learner import MaskablePpoLearner, make_env
from agents.training import Trainer, _Watch, resume, stop_on_signal, train

TINY = {
    "rules": "mini",
    "total_steps": 256,
    "threads": 1,
    "checkpoint_steps": 128,
    "env": {"num_envs": 8},
    "network": {"embedding": 16, "shared": [16]},
    "ppo": {"n_steps": 8, "batch_size": 32, "n_epochs": 2},
    "maskable_ppo": {"n_steps": 8, "batch_size": 32, "n_epochs": 2},
    "imitation": {"games": 8, "held_out": 4, "batch_size": 32, "gradient_steps": 1},
    "dqn": {"buffer_size": 512, "learning_starts": 64, "train_freq": 8, "gradient_steps": 2, "batch_size": 32},
    "evaluation": {"deals": "validation:0-19", "every_steps": 128, "bound": False},
}


@pytest.fixture(autouse=True)
def torch_threads():
    """Runs set torch's thread count for the whole process."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
sb3_algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS[1:])


def tiny(*overrides):
    return make_config(TINY, overrides)


def started(run, *overrides, say=lambda line: None):
    """A trainer in a new run folder, which has not begun."""
    folder = RunFolder(run)
    folder.start(tiny(*overrides))
    return Trainer(tiny(*overrides), folder, say, False)


def continued(run):
    folder = RunFolder(run)
    return Trainer(folder.config(), folder, lambda line: None, False, folder.checkpoint("latest"))


def weights(run, name="latest"):
    return load_checkpoint(run / "checkpoints" / f"{name}.safetensors").policy


def evaluated(run):
    return [json.loads(line)["steps"] for line in (run / EVALUATIONS_FILE).read_text().splitlines()]


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


# ---- a run and its folder --------------------------------------------------------------------------------------------


@every_algorithm
def test_a_run_leaves_all_that_is_needed_to_understand_and_repeat_it(tmp_path, algorithm):
    run, lines = tmp_path / "run", []
    settings = tiny("evaluation.bound=true", f"algorithm={algorithm}")
    result = train(settings, run, say=lines.append)
    assert result.finished
    assert result.steps == 256
    assert load_config(run / "config.yaml") == settings
    told = json.loads((run / "run.json").read_text())
    assert told["seed"] == 0
    assert {"python", "torch", "stable-baselines3", "pyramid-env"} <= set(told["versions"])
    evaluations = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    assert [entry["steps"] for entry in evaluations] == [0, 128, 256]
    assert all(0 <= entry["share_of_bound"] <= 1 and entry["regret"] >= 0 for entry in evaluations)
    assert any((run / "tensorboard").glob("events*"))
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["best.safetensors", "latest.safetensors"]
    best = load_checkpoint(run / "checkpoints" / "best.safetensors").progress["best"]
    assert best["win_rate"] == max(entry["win_rate"] for entry in evaluations)
    assert any("256 steps" in line and "of the bound" in line for line in lines)


@every_algorithm
def test_the_run_folder_is_an_agent_that_does_as_its_evaluation_says(tmp_path, algorithm):
    result = train(tiny(f"algorithm={algorithm}"), tmp_path / "run")
    for agent in (make_agent(str(tmp_path / "run"), "mini"), load(tmp_path / "run")):
        records = evaluate_agent(agent, pe.rules("mini"), np.arange(10_000, 10_020), seed=0)
        assert np.mean([record.won for record in records]) == max(e.win_rate for e in result.evaluations)


@every_algorithm
def test_the_same_seed_gives_the_same_result_and_another_seed_another(tmp_path, algorithm):
    torch.manual_seed(int(tmp_path.stat().st_ino))  # nothing global may count
    settings = [tiny(f"seed={seed}", f"algorithm={algorithm}") for seed in (0, 0, 1)]
    results = [train(each, tmp_path / f"run{i}") for i, each in enumerate(settings)]
    assert same(weights(results[0].run), weights(results[1].run))
    assert not same(weights(results[0].run), weights(results[2].run))
    plain = [[(e.steps, e.win_rate, e.mean_score) for e in result.evaluations] for result in results]
    assert plain[0] == plain[1]


@every_algorithm
def test_evaluating_more_often_changes_nothing_of_what_is_learned(tmp_path, algorithm):
    often = train(tiny("evaluation.every_steps=64", f"algorithm={algorithm}"), tmp_path / "often")
    seldom = train(tiny("evaluation.every_steps=0", f"algorithm={algorithm}"), tmp_path / "seldom")
    assert len(often.evaluations) == 5
    assert len(seldom.evaluations) == 1
    assert same(weights(often.run), weights(seldom.run))


def test_an_existing_folder_is_not_overwritten(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("mine")
    with pytest.raises(
        TrainingError, match=r"nothing is overwritten; go on with --resume .*run, or choose another --run"
    ):
        train(tiny(), tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.txt"]


# ---- stopping and going on -------------------------------------------------------------------------------------------


def stopping_at(steps, monkeypatch):
    """Ask for a stop, as Ctrl-C does, as soon as so many steps have been played: in the middle of a rollout."""
    stop, left = threading.Event(), [steps]

    class Stopping:
        def __enter__(self):
            return stop

        def __exit__(self, *_):
            return None

    played = _Watch.played

    def counting(watch, steps):
        left[0] -= steps
        if left[0] <= 0:
            stop.set()
        return played(watch, steps)

    monkeypatch.setattr("agents.training.stop_on_signal", lambda say: Stopping())
    monkeypatch.setattr(_Watch, "played", counting)


@sb3_algorithms
def test_a_stopped_run_saves_what_it_learned_and_goes_on_to_the_same_total(tmp_path, monkeypatch, algorithm):
    run, lines = tmp_path / "run", []
    trainer = started(run, f"algorithm={algorithm}", say=lines.append)
    stopping_at(80, monkeypatch)
    result = trainer.work()
    assert not result.finished
    # Steps that were played but not learned from do not count; these two learn from what they have first.
    steps = 96 if algorithm in ("teacher", "imitation") else 64
    assert result.steps == steps
    assert f"go on with: python train.py --resume {run}" in lines[-1]
    saved = load_checkpoint(run / "checkpoints" / "latest.safetensors")
    assert saved.progress["steps"] == steps
    assert same(saved.policy, trainer.learner.weights())
    monkeypatch.undo()

    copies = [tmp_path / "again", run]
    subprocess.run(["cp", "-r", str(run), str(copies[0])], check=True)
    ended = [resume(copy) for copy in copies]
    assert all(result.finished and result.steps == 256 for result in ended)
    assert same(weights(copies[0]), weights(copies[1]))  # going on from the same checkpoint gives the same


def test_going_on_takes_up_optimiser_counters_and_learning_rate(tmp_path, monkeypatch):
    run = tmp_path / "run"
    trainer = started(run, "algorithm=maskable_ppo")
    stopping_at(150, monkeypatch)
    trainer.work()
    monkeypatch.undo()
    again = continued(run)
    model = again.learner.model
    assert (again.learner.steps, again.learner.updates) == (128, 2 * 128 // 64)
    before, after = (t.learner.model.policy.optimizer.state_dict()["state"] for t in (trainer, again))
    assert all(torch.equal(before[i]["exp_avg_sq"], after[i]["exp_avg_sq"]) for i in before)
    rates = []
    monkeypatch.setattr(model, "train", lambda: rates.append(model.lr_schedule(model._current_progress_remaining)))
    again.work()
    start = tiny().maskable_ppo.learning_rate
    assert rates[0] == pytest.approx(start * (0.1 + 0.9 * 64 / 256))
    assert rates[-1] == pytest.approx(start * 0.1)


def test_going_on_with_a_finished_run_says_so_and_touches_nothing(tmp_path, capsys):
    run = tmp_path / "run"
    train(tiny(), run)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.rglob("*") if path.is_file()}
    assert train_script.main(["--resume", str(run)]) == 0
    out = capsys.readouterr().out
    assert "this run is finished" in out
    assert "done: 256 steps\n" in out  # no "0 a second"
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.rglob("*") if path.is_file()}
    assert after == before


def test_a_stop_during_the_very_last_update_counts_all_that_was_learned(tmp_path, monkeypatch):
    run = tmp_path / "run"
    trainer = started(run)
    learn = trainer.learner.update

    def stopped_in_the_last():
        told = learn()
        if trainer.learner.steps == 256 - 64:
            os.kill(os.getpid(), signal.SIGINT)
        return told

    monkeypatch.setattr(trainer.learner, "update", stopped_in_the_last)
    result = trainer.work()
    assert result.finished
    assert load_checkpoint(run / "checkpoints" / "latest.safetensors").progress["steps"] == 256
    assert evaluated(run) == [0, 128, 256]


def test_an_interrupt_in_the_last_evaluation_loses_nothing_learned(tmp_path, monkeypatch):
    run = tmp_path / "run"

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(tiny("evaluation.every_steps=0"), run)
    monkeypatch.undo()
    learned = weights(run)
    assert resume(run).finished
    assert evaluated(run) == [256]
    assert same(learned, weights(run))


def killed(run, monkeypatch, at):
    """A run killed after its evaluation at step ``at``, before the next write of latest."""

    class Killed(BaseException):
        pass

    keep = Trainer._keep

    def dies(self, found):
        keep(self, found)
        if found.steps == at:
            raise Killed

    monkeypatch.setattr(Trainer, "_keep", dies)
    with pytest.raises(Killed):
        train(tiny("evaluation.every_steps=64"), run)
    monkeypatch.undo()


def test_after_a_kill_a_better_best_is_not_overwritten(tmp_path, monkeypatch):
    run = tmp_path / "run"
    killed(run, monkeypatch, at=192)  # latest is of step 128
    best = run / "checkpoints" / "best.safetensors"
    good = load_checkpoint(best)
    unbeaten = {**good.progress["best"], "steps": 192, "win_rate": 1.0}
    save_checkpoint(dataclasses.replace(good, progress={**good.progress, "best": unbeaten}), best)
    before = best.read_bytes()
    resume(run)
    assert best.read_bytes() == before
    latest = load_checkpoint(run / "checkpoints" / "latest.safetensors")
    assert latest.progress["best"] == unbeaten


def test_after_a_kill_the_evaluations_do_not_go_back_in_steps(tmp_path, monkeypatch):
    run = tmp_path / "run"
    killed(run, monkeypatch, at=192)
    assert evaluated(run) == [0, 64, 128, 192]
    with (run / EVALUATIONS_FILE).open("a") as file:
        file.write('{"steps": 2')  # cut off by the kill
    resume(run)
    assert evaluated(run) == [0, 64, 128, 192, 256]


def test_a_damaged_line_of_evaluations_is_named(tmp_path):
    train(tiny(), tmp_path / "run")
    path = tmp_path / "run" / EVALUATIONS_FILE
    path.write_text("nonsense\n" + path.read_text())
    with pytest.raises(TrainingError, match=r"evaluations.jsonl, line 1: expected an evaluation, got 'nonsense'"):
        resume(tmp_path / "run")


def test_ctrl_c_during_the_bounds_is_one_line_and_resume_starts_from_the_beginning(tmp_path, capsys, monkeypatch):
    run = tmp_path / "my run"

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("agents.training.find_bounds", interrupted)
    config = written(tmp_path, "evaluation.bound=true")
    assert train_script.main(["--config", str(config), "--run", str(run)]) == 130
    out, err = capsys.readouterr()
    command = f"python train.py --resume '{run}'"
    assert out.splitlines()[1:] == [f"stopped at 0 of 256 steps while searching for bounds; go on with: {command}"]
    assert err == ""
    monkeypatch.undo()
    assert resume(run).steps == 256
    fresh = train(tiny(), tmp_path / "fresh")
    assert same(weights(run), weights(fresh.run))


def test_ctrl_c_while_workers_start_shows_no_traceback(tmp_path, pytestconfig):
    config = written(tmp_path, "rules=pyramid:passes=2", "evaluation.bound=true", "evaluation.deals=validation:0-299")
    process = subprocess.Popen(
        [sys.executable, "train.py", "--config", str(config), "--run", str(tmp_path / "run")],
        cwd=pytestconfig.rootpath,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert "measured on" in process.stdout.readline()
    time.sleep(0.3)  # the workers have been started, and import
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "while searching for bounds; go on with: python train.py --resume" in out
    assert [line for line in err.splitlines() if not line.startswith("pyramid_env: compiling ")] == []


def test_the_script_does_without_torch_until_it_trains(pytestconfig):
    """The workers that search for bounds import the script anew."""
    code = "import sys, train; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=pytestconfig.rootpath).returncode == 0


def test_what_cannot_go_on_is_refused(tmp_path):
    with pytest.raises(TrainingError, match=r"expected a run folder of train\.py, found no config\.yaml there"):
        resume(tmp_path / "nothing")


def test_signals_stop_softly_once_and_hard_twice():
    lines = []
    with stop_on_signal(lines.append) as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(1)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert "stopping after this update" in lines[0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# ---- faults ----------------------------------------------------------------------------------------------------------


def test_symptom_nan_stops_with_step_layer_and_batch(tmp_path, monkeypatch):
    run = tmp_path / "run"
    trainer = started(run, "evaluation.every_steps=0", "algorithm=maskable_ppo")
    model = trainer.learner.model
    learn = model.train

    def poison():
        learn()
        if model.num_timesteps >= 128:
            with torch.no_grad():
                model.policy.action_net.weight.fill_(float("nan"))

    monkeypatch.setattr(model, "train", poison)
    with pytest.raises(
        TrainingError, match=r"step 128: NaN .* action_net \(its weight\); the batch is in .*nonfinite_128.npz"
    ):
        trainer.work()
    with np.load(run / "nonfinite_128.npz") as batch:
        assert set(batch) == {"observations", "action_masks"}


def test_symptom_a_cut_off_game_counts_as_ended(monkeypatch):
    """gym #3102: where the step limit cuts a game off, the value of its last position is added to the reward."""
    config = tiny("algorithm=maskable_ppo", "env.max_episode_steps=3", "maskable_ppo.gamma=0.5", "env.reward=win")
    model = MaskablePpoLearner(config).model
    with torch.no_grad():
        model.policy.value_net.weight.zero_()
        model.policy.value_net.bias.fill_(8.0)
    stored = []
    add = model.rollout_buffer.add
    monkeypatch.setattr(
        model.rollout_buffer, "add", lambda *args, **kwargs: (stored.append(args[2].copy()), add(*args, **kwargs))
    )
    monkeypatch.setattr(model, "train", lambda: None)
    model.learn(64)
    assert np.allclose(stored[2], 0.5 * 8.0)  # no game on mini is won or over in three steps, so all are cut off
    assert np.allclose(stored[1], 0.0)


def test_the_cards_reward_pays_for_cards_and_for_the_win():
    config = tiny("env.reward=cards", "env.card_reward=0.1", "env.win_reward=2.0")
    env = make_env(config.env, config.game)
    env.seed(0)
    env.reset()
    agent, rng, won = make_agent("greedy", "mini"), np.random.default_rng(0), 0
    returns = np.zeros(env.num_envs)
    for _ in range(60):
        _, rewards, dones, infos = env.step(agent.act({}, env.action_masks(), rng))
        returns += rewards
        for b in np.flatnonzero(dones):
            info, cards = infos[b], env.rules.cards
            bonus = {0: 0, 1: 50, 2: 35, 3: 20}[info["cleared_in"]]
            left = bonus - info["par"]
            assert returns[b] == pytest.approx(0.1 * (cards - left) + 2.0 * info["is_success"])
            won += info["is_success"]
            returns[b] = 0.0
    assert won > 10


# ---- the command line ------------------------------------------------------------------------------------------------


def written(tmp_path, *overrides):
    path = tmp_path / "tiny.yaml"
    path.write_text(tiny(*overrides).to_yaml())
    return path


def test_the_script_trains_and_says_how_to_measure(tmp_path, capsys):
    config, run = written(tmp_path), tmp_path / "run"
    assert train_script.main(["--config", str(config), "--run", str(run), "total_steps=128", "seed=3"]) == 0
    out, err = capsys.readouterr()
    assert "128 steps" in out
    assert f"python evaluate.py --agents random greedy {run} --rules mini" in out
    assert err == ""  # no bar where there is no terminal
    assert load_config(run / "config.yaml").seed == 3


def test_the_command_to_measure_a_run_of_other_rules_works(tmp_path, capsys):
    config, run = written(tmp_path, "rules=mini:passes=1,stock_top=true"), tmp_path / "my run"
    assert train_script.main(["--config", str(config), "--run", str(run), "total_steps=64"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("measure it with: ")]
    words = shlex.split(line.removeprefix("measure it with: "))
    assert words[:2] == ["python", "evaluate.py"]
    call = evaluate_script.check_call([*words[2:], "--no-bound"])
    assert call.rules == pe.rules("mini:passes=1,stock_top=true")
    assert list(call.agents) == ["random", "greedy", str(run)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--config", "nothing.yaml"], "no file 'nothing.yaml'"),
        (["--config", "CONFIG", "--run", "RUN", "ppo.gama=1"], "did you mean 'ppo.gamma'"),
        (["--config", "CONFIG", "--run", "."], "nothing is overwritten"),
        (["--resume", "nothing"], "expected a run folder of train.py"),
    ],
)
def test_door_errors_are_one_line_and_exit_code_2(tmp_path, capsys, arguments, words):
    names = {"CONFIG": str(written(tmp_path)), "RUN": str(tmp_path / "run")}
    assert train_script.main([names.get(argument, argument) for argument in arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("train.py: error: ")
    assert words in err
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--config", "a", "--resume", "b"],
        ["--resume", "b", "seed=1"],
        ["--resume", "b", "--run", "c"],
        ["--resume", "b", "--init", "c"],
    ],
)
def test_contradictory_calls_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        train_script.main(arguments)
    assert stopped.value.code == 2


def test_ctrl_c_saves_and_resume_goes_on(tmp_path, pytestconfig):
    config, run = written(tmp_path, "total_steps=1000000", "evaluation.every_steps=0"), tmp_path / "run"
    script = [sys.executable, "train.py"]
    process = subprocess.Popen(
        [*script, "--config", str(config), "--run", str(run)],
        cwd=pytestconfig.rootpath,
        stdout=subprocess.PIPE,
        text=True,
    )
    latest = run / "checkpoints" / "latest.safetensors"
    deadline = time.monotonic() + 120
    while not latest.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"go on with: python train.py --resume {run}" in out
    steps = load_checkpoint(latest).progress["steps"]
    assert 0 < steps < 1_000_000
    text = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(text.replace("total_steps: 1000000", f"total_steps: {steps + 64}"))
    assert train_script.main(["--resume", str(run)]) == 0
    assert load_checkpoint(latest).progress["steps"] == steps + 64


# ---- learning --------------------------------------------------------------------------------------------------------


def test_a_short_training_beats_random_and_an_untrained_policy_clearly(tmp_path, pytestconfig):
    """On mini random wins 49 % of these deals, as does the untrained policy, drawn from; greedy 77 %, bound 80 %."""
    config = load_config(
        pytestconfig.rootpath / "configs" / "smoke.yaml",
        ["total_steps=24_000", "evaluation.bound=false", "evaluation.deterministic=false"],
    )
    result = train(config, tmp_path / "run")
    rules, deals = pe.rules("mini"), np.arange(10_000, 10_500)
    chance = np.mean([record.won for record in evaluate_agent(make_agent("random", rules), rules, deals, seed=0)])
    assert abs(result.evaluations[0].win_rate - chance) < 0.08
    assert chance < 0.55
    assert result.evaluations[-1].win_rate > chance + 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "best", "within"), [("mini", 11978 / 15015, 0.005), ("mini_one_pass", 0.550597, 0.016)]
)
def test_own_ppo_comes_near_the_exact_optimum_of_legal_play(tmp_path, pytestconfig, preset, best, within):
    """The best legal play wins 79.774 % of all deals of mini and 55.060 % of mini_one_pass (benchmarks/legal.py). Met:
    79.66 % after 97 CPU seconds and 54.13 % after 389; the latter is still more than half a point short."""
    config = load_config(pytestconfig.rootpath / "configs" / f"{preset}.yaml", ["evaluation.every_steps=0"])
    agent = make_agent(str(train(config, tmp_path / "run").run), preset)
    records = evaluate_agent(agent, pe.rules(preset), np.arange(100_000), seed=0, batch_size=4_000)
    assert abs(np.mean([record.won for record in records]) - best) < within
