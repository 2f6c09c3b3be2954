"""What lies behind a row: passes, moves, classes of deals; and pairs of agents on the same deals."""

import dataclasses
import json

import numpy as np
import pytest

import evaluate
import pyramid_env as pe
from agents.details import (
    PASSES,
    SHOWN_PAIRS,
    compare,
    comparison_cells,
    comparison_notes,
    deal_classes,
    details_cells,
    details_notes,
    details_of,
)
from agents.evaluation import evaluate_agent
from agents.greedy import GreedyAgent
from agents.random_agent import RandomAgent
from agents.statistics import wilson
from pyramid_env.benchmark import Difficulty, bounds, parse_deals
from pyramid_env.errors import PyramidError

RULES = pe.rules("pyramid")
DEALS = parse_deals("test:0-199")


@pytest.fixture(scope="module")
def games():
    agents = {"random": RandomAgent(RULES), "greedy": GreedyAgent(RULES)}
    return {name: evaluate_agent(agent, RULES, DEALS, seed=0) for name, agent in agents.items()}


def test_details_are_counted_from_the_games(games):
    classes = deal_classes(RULES, DEALS.tolist())
    records = games["greedy"]
    made = details_of("greedy", records, classes)
    assert sum(made.cleared.values()) == pytest.approx(np.mean([record.won for record in records]))
    assert made.cleared["2"] == np.mean([record.cleared_in == 2 for record in records])
    assert made.moves == np.mean([record.steps for record in records])
    assert made.draws == np.mean([record.draws for record in records])
    assert made.seconds_per_move * made.moves * len(records) == pytest.approx(sum(r.seconds for r in records))
    assert sum(result.games for result in made.by_difficulty.values()) == len(records)
    hard = [record for record, kind in zip(records, classes, strict=True) if kind == Difficulty.HARD]
    result = made.by_difficulty["hard"]
    assert result.wins == wilson(sum(record.won for record in hard), len(hard))
    assert result.score.value == np.mean([record.score for record in hard])
    assert made.by_difficulty["unwinnable"].wins.value == 0.0


def test_clears_by_pass_are_those_of_all_passes():
    rules = pe.rules("pyramid:passes=unlimited")
    records = evaluate_agent(RandomAgent(rules), rules, DEALS, seed=0)
    made = details_of("random", records, None)
    assert tuple(made.cleared) == PASSES
    assert made.cleared["later"] == np.mean([record.cleared_in == 4 for record in records]) > 0


def test_deals_have_the_classes_of_their_splits():
    numbers = [9_999, 10_000, 5, 19_999]
    found = deal_classes(RULES, numbers)
    assert found.tolist() == [
        int(bounds(RULES, "test" if n < 10_000 else "validation").for_deal(n).difficulty) for n in numbers
    ]
    assert deal_classes(RULES, [5, 20_000]) is None
    assert deal_classes(pe.rules("mini"), [5]) is None
    assert deal_classes(pe.rules("solitaire13"), [5]) is not None  # the same switches as one_pass


def test_pairs_are_compared_deal_by_deal(games):
    (pair,) = compare(games)
    assert (pair.first, pair.second, pair.games) == ("random", "greedy", 200)
    won = {name: np.array([record.won for record in side]) for name, side in games.items()}
    assert pair.wins.value == pytest.approx(won["random"].mean() - won["greedy"].mean())
    assert pair.mcnemar.only_theirs == (won["greedy"] & ~won["random"]).sum()
    assert pair.mcnemar.p_value < 1e-6
    assert pair.score_p_value < 0.01
    assert pair.score.high < 0


def test_an_agent_against_itself_shows_no_difference(games):
    again = [dataclasses.replace(record, agent="again") for record in games["greedy"]]
    (pair,) = compare({"greedy": games["greedy"], "again": again})
    assert tuple(pair.wins) == tuple(pair.score) == (0.0, 0.0, 0.0)
    assert (pair.mcnemar.p_value, pair.score_p_value) == (1.0, 1.0)


def test_other_deals_are_refused(games):
    with pytest.raises(PyramidError, match="random and greedy differ"):
        compare({"random": games["random"], "greedy": games["greedy"][1:]})


def test_columns_that_say_nothing_are_left_out(games):
    every = [details_of(name, side, deal_classes(RULES, DEALS.tolist())) for name, side in games.items()]
    heads, lines = details_cells(every)
    assert heads == [
        "agent",
        "pass 1 %",
        "pass 2 %",
        "pass 3 %",
        "easy %",
        "medium %",
        "hard %",
        "moves",
        "draws",
        "ms a move",
    ]
    assert [line[0] for line in lines] == ["random", "greedy"]
    assert "unwinnable" in details_notes(every)[1]
    bare = [details_of("greedy", games["greedy"], None)]
    assert details_cells(bare)[0] == ["agent", "pass 1 %", "pass 2 %", "pass 3 %", "moves", "draws", "ms a move"]
    assert len(details_notes(bare)) == 1


def test_of_many_pairs_some_are_printed(games):
    many = compare({f"a{number}": games["greedy"][:20] for number in range(6)})
    assert len(many) == 15
    assert len(comparison_cells(many)[1]) == SHOWN_PAIRS
    assert "5 pairs more" in comparison_notes(many)[1]


def test_the_summary_and_the_terminal_tell_them(tmp_path, capsys):
    call = ["--agents", "random", "greedy", "--deals", "test:0-39", "--no-bound", "--out", str(tmp_path / "out")]
    assert evaluate.main(call) == 0
    printed = capsys.readouterr().out
    assert "ms a move" in printed
    assert "random − greedy" in printed
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert [each["name"] for each in summary["details"]] == ["random", "greedy"]
    assert set(summary["details"][0]["by_difficulty"]["easy"]["wins"]) == {"value", "low", "high"}
    (pair,) = summary["comparisons"]
    assert pair["mcnemar"]["only_ours"] + pair["mcnemar"]["only_theirs"] <= pair["games"] == 40
