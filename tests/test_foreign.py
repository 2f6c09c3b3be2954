"""Agents of the user's own: made from module:factory, played beside ours, refused where they are none."""

import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import evaluate
import pyramid_env as pe
from agents import AgentError, GreedyAgent, make_agent
from agents.base import Agent
from agents.evaluation import evaluate_agent, read_records
from agents.foreign import ForeignAgent
from pyramid_env.benchmark import parse_deals
from pyramid_env.errors import IllegalMoveError

MINI = pe.rules("mini")
DEALS = parse_deals("test:0-29")

PLAYERS = """
    import numpy as np
    from agents import GreedyAgent

    class First:
        level = "memory"
        def __init__(self, rules):
            self.rules = rules
        def act(self, observations, action_masks, rng):
            assert "ranks" in observations or len(observations) > 3
            return action_masks.argmax(axis=1)

    class Counts(First):
        name = "counts"
        def begin(self, games):
            self.moves = np.zeros(games, int)
        def act_in(self, games, observations, action_masks, rng):
            self.moves[games] += 1
            return self.act(observations, action_masks, rng)

    class Peeks(First):
        level = "clairvoyant"

    class Elsewhere(First):
        level = "cards"

    class Family:
        greedy = GreedyAgent
        def nothing(rules):
            return None

    number = 5
"""


@pytest.fixture
def players(tmp_path, monkeypatch):
    """A folder with a module of players, as the present one; its name."""
    name = "players_" + tmp_path.name.replace("-", "_")
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(PLAYERS), encoding="utf-8")
    (tmp_path / f"{name}_broken.py").write_text("import no_such_package_anywhere\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_a_class_of_the_users_plays(players):
    agent = make_agent(f"{players}:First", MINI)
    assert isinstance(agent, ForeignAgent)
    assert (agent.name, agent.level, agent.clairvoyant) == (f"{players}:First", "memory", False)
    games = evaluate_agent(agent, MINI, DEALS, seed=0)
    assert [game.deal for game in games] == DEALS.tolist()
    assert make_agent(f"{players}:Peeks", MINI).clairvoyant


def test_one_that_remembers_is_told_which_games_it_plays(players):
    agent = make_agent(f"{players}:Counts", MINI)
    games = evaluate_agent(agent, MINI, DEALS, seed=0)
    assert agent.name == "counts"
    assert agent.player.moves.tolist() == [game.steps for game in games]


def test_a_factory_may_return_an_agent_of_ours(players):
    agent = make_agent(f"{players}:Family.greedy", MINI)
    assert type(agent) is not ForeignAgent
    assert isinstance(agent, Agent)
    assert agent.name == GreedyAgent.name


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("Second", "has no 'Second'"),
        ("Family.blue", "has no 'blue'"),
        ("number", "expected a class or a function of the rules, got int"),
        ("Family.nothing", r"expected an object with act\(observations, action_masks, rng\), got NoneType"),
        ("Elsewhere", "level: expected one of table, memory, clairvoyant, got 'cards'"),
    ],
)
def test_what_is_no_agent_is_told(players, factory, words):
    with pytest.raises(AgentError, match=words):
        make_agent(f"{players}:{factory}", MINI)


def test_a_module_that_is_missing_is_told_from_one_that_misses_something(players):
    with pytest.raises(AgentError, match=r"nowhere\.at_all:make: no module 'nowhere'"):
        make_agent("nowhere.at_all:make", MINI)
    with pytest.raises(ModuleNotFoundError, match="no_such_package_anywhere"):
        make_agent(f"{players}_broken:make", MINI)


def test_it_stands_in_the_table_beside_ours(players, tmp_path, capsys):
    call = ["--agents", "greedy", f"{players}:First", "--rules", "mini", "--deals", "test:0-19", "--no-bound"]
    assert evaluate.main([*call, "--out", str(tmp_path / "out")]) == 0
    assert f"{players}:First" in capsys.readouterr().out
    records = read_records(tmp_path / "out" / "records.csv")
    assert {record.agent for record in records} == {"greedy", f"{players}:First"}


def test_an_illegal_move_of_the_users_agent_ends_the_evaluation(players):
    agent = make_agent(f"{players}:First", MINI)
    agent.player.act = lambda observations, masks, rng: np.zeros(len(masks), np.int64)
    with pytest.raises(IllegalMoveError):
        evaluate_agent(agent, MINI, DEALS, seed=0)


def test_the_readmes_example_plays(tmp_path, monkeypatch, capsys):
    readme = (Path(evaluate.__file__).parent / "README.md").read_text(encoding="utf-8")
    (block,) = [text for text in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "class LastMove" in text]
    assert len(block.splitlines()) <= 20
    (tmp_path / "mine.py").write_text(block, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (call,) = re.findall(r"evaluate\.py (--agents greedy mine:LastMove [^`]*)`", readme)
    assert evaluate.main([*call.split(), "--no-bound"]) == 0
    assert re.search(r"^last move +\d", capsys.readouterr().out, re.MULTILINE)
