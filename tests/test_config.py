"""Config: what is read, what is refused, and that what is refused is named."""

import dataclasses

import pytest

from agents.config import Config, ConfigError, load_config, make_config


def write(tmp_path, text):
    path = tmp_path / "job.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_overrides_defaults_and_the_rest_stays(tmp_path):
    config = load_config(
        write(tmp_path, "rules: mini\nseed: 3\nenv: {num_envs: 8}\nppo: {n_steps: 4, batch_size: 16}\n")
    )
    assert (config.rules, config.seed, config.env.num_envs, config.ppo.batch_size) == ("mini", 3, 8, 16)
    assert config.env.observation == Config().env.observation
    assert config.steps_per_update == 32


def test_overrides_come_last_and_reach_inner_settings(tmp_path):
    path = write(tmp_path, "seed: 3\nppo: {learning_rate: 0.5}\n")
    config = load_config(path, ["seed=4", "ppo.learning_rate=3e-4", "network.shared=[64, 32]", "ppo.target_kl=null"])
    assert config.seed == 4
    assert config.ppo.learning_rate == 3e-4
    assert config.network.shared == (64, 32)
    assert config.ppo.target_kl is None


def test_empty_file_is_all_defaults(tmp_path):
    assert load_config(write(tmp_path, "")) == Config()


def test_yaml_reads_back(tmp_path):
    config = make_config({"rules": "microsoft:passes=1", "ppo": {"target_kl": 0.02}, "network": {"policy": [32]}})
    assert load_config(write(tmp_path, config.to_yaml())) == config


@pytest.mark.parametrize("text", ["3e-4", "3.0e-4", "0.0003"])
def test_every_way_to_write_a_number_is_a_number(tmp_path, text):
    assert load_config(write(tmp_path, f"ppo: {{learning_rate: {text}}}")).ppo.learning_rate == 3e-4


@pytest.mark.parametrize("text", ["1e6", "1_000_000", "1000000", "1.0e+6"])
def test_every_way_to_write_a_whole_number(tmp_path, text):
    assert load_config(write(tmp_path, f"total_steps: {text}")).total_steps == 1_000_000


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"sed": 1}, ["unknown key 'sed'", "did you mean 'seed'"]),
        ({"ppo": {"learnig_rate": 1}}, ["unknown key 'ppo.learnig_rate'", "'ppo.learning_rate'"]),
        ({"learning_rate": 1}, ["unknown key 'learning_rate'", "'ppo.learning_rate'"]),
        ({"env": {"gamma": 1}}, ["unknown key 'env.gamma'", "'ppo.gamma'"]),
        ({"zzzzqqq": 1}, ["unknown key 'zzzzqqq'", "known: rules, algorithm, seed"]),
        ({3: 1}, ["unknown key '3'"]),
        ({"seed": "one"}, ["job: seed: expected a whole number, got 'one' (str)"]),
        ({"seed": True}, ["seed: expected a whole number, got True (bool)"]),
        ({"seed": 1.5}, ["seed: expected a whole number, got 1.5 (float)"]),
        ({"ppo": {"gamma": "high"}}, ["job: ppo.gamma: expected a finite number, got 'high' (str)"]),
        ({"ppo": {"gamma": float("nan")}}, ["ppo.gamma: expected a finite number, got nan"]),
        ({"ppo": {"gamma": 1.5}}, ["ppo.gamma: expected a number from 0.0 to 1.0, got 1.5"]),
        ({"ppo": 3}, ["ppo: expected settings (n_steps", "got 3 (int)"]),
        ({"network": {"shared": 64}}, ["network.shared: expected a list such as [256, 256], got 64"]),
        ({"network": {"shared": [64, "x"]}}, ["network.shared[1]: expected a whole number, got 'x'"]),
        ({"network": {"shared": [0]}}, ["network.shared: expected 1 or more, got 0"]),
        ({"evaluation": {"deterministic": "yes please"}}, ["evaluation.deterministic: expected true or false"]),
        ({"evaluation": {"deals": 5}}, ["evaluation.deals: expected text, got 5 (int)"]),
        ({"evaluation": {"deals": "tset"}}, ["evaluation.deals: ", "tset"]),
        ({"evaluation": {"deals": "1000000-1000009"}}, ["evaluation.deals: expected deals below the training range"]),
        ({"env": {"observation": "clairvoyant"}}, ["env.observation: expected one of table, memory"]),
        ({"env": {"reward": "pra"}}, ["env.reward", "did you mean 'par'"]),
        ({"rules": "pyramyd"}, ["rules: unknown preset 'pyramyd'", "did you mean 'pyramid'"]),
        ({"env": {"num_envs": 0}}, ["env.num_envs: expected 1 or more, got 0"]),
        ({"env": {"num_envs": 8}, "ppo": {"n_steps": 4}}, ["ppo.batch_size: expected at most the 32 samples"]),
        ({"env": {"num_envs": 3}, "ppo": {"n_steps": 3, "batch_size": 4}}, ["leaves a batch of one of the 9 samples"]),
        ({"env": {"deals": "orderd"}}, ["env.deals: expected one of random, winnable, ordered", "'ordered'"]),
        ({"env": {"ordered": {"first": 0}}}, ["env.ordered.first: expected more than 0, got 0.0"]),
        ({"env": {"ordered": {"unrestricted": 2}}}, ["env.ordered.unrestricted: expected a number from 0.0 to 1.0"]),
        ({"env": {"starts": {"share": 1.5}}}, ["env.starts.share: expected a number from 0.0 to 1.0, got 1.5"]),
        ({"env": {"starts": {"until": 0.0}}}, ["env.starts.until: expected more than 0, got 0.0"]),
        ({"env": {"starts": 0.5}}, ["env.starts: expected settings (share, until), got 0.5"]),
        (
            {"algorithm": "teacher", "env": {"deals": "ordered"}},
            ["env.deals: expected random or winnable with algorithm teacher, it is for ppo alone, got ordered"],
        ),
        (
            {"algorithm": "dqn", "env": {"starts": {"share": 0.5}}},
            ["env.starts.share: expected 0 with algorithm dqn, it is for ppo alone, got 0.5"],
        ),
        (
            {"env": {"starts": {"share": 0.5}}, "network": {"recurrent": 8}},
            ["env.starts.share: expected 0 with network.recurrent, got 0.5"],
        ),
        (
            {"algorithm": "teacher", "env": {"skip_forced": True}},
            ["env.skip_forced: expected false with algorithm teacher, it is for ppo alone"],
        ),
        (
            {"env": {"skip_forced": True}, "network": {"recurrent": 8}},
            ["env.skip_forced: expected false with network.recurrent, got true"],
        ),
        ({"ppo": {"asymmetric_critic": 1}}, ["ppo.asymmetric_critic: expected true or false"]),
        ([1, 2], ["job: expected a mapping of settings, got list"]),
    ],
)
def test_what_is_wrong_is_named(data, words):
    with pytest.raises(ConfigError) as error:
        make_config(data, source="job")
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("seed", "expected key=value such as ppo.learning_rate=3e-4, got 'seed'"),
        ("=3", "expected key=value"),
        ("ppo.gama=1", "did you mean 'ppo.gamma'"),
        ("seed.x=1", "seed has no settings of its own"),
        ("network.shared=[1", "cannot read the value '[1'"),
    ],
)
def test_wrong_overrides_are_named(override, words):
    with pytest.raises(ConfigError) as error:
        make_config({"seed": 1}, [override])
    assert words in str(error.value)


def test_missing_file_names_its_neighbours(tmp_path):
    path = write(tmp_path, "")
    with pytest.raises(ConfigError, match=r"no file .*jbo.yaml.* has job.yaml"):
        load_config(path.with_name("jbo.yaml"))


def test_not_yaml_is_refused_with_the_place(tmp_path):
    with pytest.raises(ConfigError, match=r"job\.yaml: not YAML: .*line 1"):
        load_config(write(tmp_path, "a: [1"))


def test_configs_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().seed = 1


def test_every_shipped_config_reads(pytestconfig):
    found = sorted((pytestconfig.rootpath / "configs").glob("*.yaml"))
    assert {"smoke.yaml", "pyramid_small.yaml"} <= {path.name for path in found}
    for path in found:
        load_config(path)
