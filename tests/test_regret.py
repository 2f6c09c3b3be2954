"""Regret move by move: it adds up to the bound less the game, and names moves that the solver rates below the best."""

import json

import numpy as np
import pytest

import evaluate
import pyramid_env as pe
from agents import make_agent
from agents.bounds import bound_of, find_bounds
from agents.evaluation import evaluate_agent
from agents.regret import KINDS, TOP, gap_notes, regret_cells, regret_notes, regret_of
from pyramid_env.benchmark import parse_deals
from pyramid_env.errors import PyramidError
from pyramid_env.moves import Kind
from pyramid_env.solver import Limits

DEALS = parse_deals("test:0-23")


def played(name, rules, deals=DEALS, **options):
    return evaluate_agent(make_agent(name, rules), rules, deals, seed=0, keep_actions=True, **options)


@pytest.mark.parametrize(
    "preset", ["pyramid", "till_dawn", "one_pass", "microsoft", "giza", "mini", "pyramid:scoring=none"]
)
def test_losses_add_up_to_the_bound_less_the_game(preset):
    rules = pe.rules(preset)
    games = played("greedy", rules)
    found = regret_of("greedy", games, rules, max_states=200_000)
    best = find_bounds(rules, DEALS, limits=Limits(max_states=200_000), workers=1)
    assert all(bound.proven for bound in best)
    assert found.left_out == 0
    if rules.scoring == "none":
        regret = [bound.win_high - record.won for bound, record in zip(best, games, strict=True)]
    else:
        regret = [bound.score_high - record.score for bound, record in zip(best, games, strict=True)]
    assert found.unit == ("wins" if rules.scoring == "none" else "points")
    assert found.total == pytest.approx(np.mean(regret))
    assert found.total > 0
    assert sum(found.by_pass.values()) == pytest.approx(found.total)
    assert sum(found.by_kind.values()) == pytest.approx(found.total)
    assert [deal[1] for deal in found.deals] == sorted(regret, reverse=True)[: len(found.deals)]
    assert sum(habit.loss for habit in found.habits) <= found.total + 1e-9


def test_a_loss_is_a_move_that_is_rated_below_the_best():
    rules = pe.rules("pyramid")
    games = {record.deal: record for record in played("greedy", rules)}
    for deal, _, loss in regret_of("greedy", list(games.values()), rules).deals:
        game = pe.Game(deal, rules)
        for action in games[deal].actions[: loss.move - 1]:
            game.play(int(action))
        ratings = {str(rating.move): rating.value for rating in pe.rate_moves(game, "score")}
        best = max(ratings.values())
        assert best - ratings[loss.text] == loss.loss
        assert game.state[3] == loss.in_pass
        kinds = {KINDS[r.move.kind] for r in pe.rate_moves(game, "score") if r.value == best}
        assert set(loss.best.split(" or ")) == kinds


def test_a_player_who_sees_all_loses_nothing():
    rules = pe.rules("mini")
    found = regret_of("oracle", played("oracle:score", rules), rules)
    assert (found.total, found.habits, found.deals, found.by_pass) == (0.0, [], [], {})
    assert regret_cells([found])[1][1] == []
    assert len(regret_notes([found])) == 1


def test_games_whose_positions_stay_open_are_left_out_whole():
    rules = pe.rules("double_pyramid")
    games = played("greedy", rules, DEALS[:2])
    found = regret_of("greedy", games, rules, max_states=50)
    assert (found.games, found.left_out, found.total) == (0, 2, 0.0)
    assert "2 games are left out" in regret_notes([found])[1]


def test_games_without_actions_are_refused():
    rules = pe.rules("mini")
    games = evaluate_agent(make_agent("greedy", rules), rules, DEALS, seed=0)
    for records in (games, []):
        with pytest.raises(PyramidError, match="regret: expected games of greedy with their actions"):
            regret_of("greedy", records, rules)


def test_every_kind_of_move_has_a_name():
    assert set(KINDS) == set(Kind)
    assert len(set(KINDS.values())) == len(KINDS)


def test_the_gap_is_told_where_the_planner_played():
    rules = pe.rules("mini")
    games = {"planner": played("planner:8,workers=1", rules), "greedy": played("greedy", rules)}
    best = [bound_of(deal, rules, Limits()).score_high for deal in DEALS.tolist()]
    told = gap_notes(games, best, rules)
    assert len(told) == 2
    lost = np.mean(best) - np.mean([record.score for record in games["planner"]])
    assert f"of the bound {lost:.2f} points" in told[0]
    assert told[1].startswith("gap: greedy loses ")
    assert gap_notes({"greedy": games["greedy"]}, best, rules) == gap_notes(games, None, rules) == []


def test_the_command_line_tells_it(tmp_path, capsys):
    call = ["--agents", "greedy", "tips", "--rules", "mini", "--deals", "test:0-19", "--regret", "--workers", "1"]
    assert evaluate.main([*call, "--out", str(tmp_path / "out"), "--bounds", str(tmp_path / "bounds")]) == 0
    printed = capsys.readouterr().out
    assert "would have cost nothing" in printed
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    greedy = summary["regret"][0]
    assert greedy["total"] == pytest.approx(summary["rows"][0]["regret"]["low"])
    assert len(greedy["habits"]) <= TOP
    assert set(greedy["deals"][0][2]) == {"deal", "move", "in_pass", "chosen", "best", "text", "loss"}
