"""The training benchmark: a round of it runs, and every contestant is in the table."""

import subprocess
import sys


def test_a_small_round_prints_every_contestant(pytestconfig):
    small = ["--rules", "mini", "--rounds", "1", "--games", "8", "--steps", "8", "--batch", "32", "--epochs", "1"]
    call = [sys.executable, "-m", "benchmarks.bench_train", *small]
    done = subprocess.run(call, cwd=pytestconfig.rootpath, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.startswith("|")]
    assert rows[2:] == ["own PPO", "our policy", "stock policy", "stock, torch's sum", "stock MLP"]


def test_the_second_question_gives_own_ppo_a_fifth_of_the_time(pytestconfig, tmp_path):
    config = tmp_path / "tiny.yaml"
    config.write_text(
        "rules: mini\nenv: {num_envs: 16}\nnetwork: {embedding: 8, shared: [8]}\n"
        "ppo: {n_steps: 8, batch_size: 64}\nmaskable_ppo: {n_steps: 8, batch_size: 64}\n"
        "evaluation: {deals: 'validation:0-19'}\n"
    )
    call = [sys.executable, "-m", "benchmarks.bench_train", "--reach", "1", "--config", str(config)]
    done = subprocess.run(call, cwd=pytestconfig.rootpath, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == ["MaskablePPO", "own PPO", "own PPO, as in the config"]
    assert [float(row[1]) for row in rows] == [1, 0, 0]
    assert all(0 < float(row[3].rstrip("%")) <= 100 for row in rows)
