"""Agents without training: what they choose, that they cannot peek, and that they do what their names promise."""

import subprocess
import sys

import numpy as np
import pytest

import pyramid_env as pe
from agents import AgentError, GreedyAgent, OracleAgent, RandomAgent, ScoutAgent, agent_names, make_agent
from agents.base import checked_masks, choose
from agents.evaluation import evaluate_agent
from pyramid_env.moves import Kind, move_table
from pyramid_env.rules import PRESETS
from pyramid_env.solver import solve
from pyramid_env.vector_env import PyramidVectorEnv

PYRAMID = pe.rules("pyramid")
MINI = pe.rules("mini")


def masks_of(rules, *rows):
    """A mask row for each tuple of move texts."""
    moves = move_table(rules)
    masks = np.zeros((len(rows), len(moves)), bool)
    for mask, texts in zip(masks, rows, strict=True):
        mask[[moves.index_of(moves.parse(text)) for text in texts]] = True
    return masks


def texts_of(rules, actions):
    moves = move_table(rules)
    return [moves.text(moves[a]) for a in actions]


def play(agent, rules, deals, **kwargs):
    return evaluate_agent(agent, rules, np.asarray(deals, np.int64), seed=0, **kwargs)


# ---- the registry and the door errors --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", agent_names())
def test_every_name_makes_an_agent(name):
    agent = make_agent(name, "till_dawn")
    assert agent.name == name
    assert agent.rules == pe.rules("till_dawn")
    assert agent.clairvoyant == (name == "oracle")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("gredy", "did you mean 'greedy'"),
        ("runs/nothing", "no such path"),
        ("random:fast", "random: expected no option, got 'fast'"),
        ("oracle:fast", "objective: expected one of win, score, got 'fast'"),
    ],
)
def test_what_makes_no_agent_is_named(spec, words):
    with pytest.raises(AgentError, match=words):
        make_agent(spec)


@pytest.mark.parametrize("name", agent_names())
def test_a_mask_without_a_legal_action_is_refused_with_its_row(name):
    rules = "pyramid" if name == "shipped" else MINI  # no agent is shipped for the small game
    agent = make_agent(name, rules)
    env = PyramidVectorEnv(3, rules=rules, observation=agent.level)
    observations, _ = env.reset(seed=1)
    masks = env.action_masks()
    masks[1] = False
    with pytest.raises(ValueError, match=r"none in 1 of 3 rows \(1\)"):
        agent.act(observations, masks, np.random.default_rng(0))


def test_masks_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"expected shape \(B, 5\), got \(2, 4\)"):
        checked_masks(np.ones((2, 4), bool), 5)


def test_many_empty_rows_are_not_all_listed():
    with pytest.raises(ValueError, match=r"none in 30 of 30 rows \(0, 1, .*, 9, \.\.\.\)"):
        checked_masks(np.zeros((30, 4), bool))


def test_untrained_agents_need_no_torch():
    code = (
        "import sys, agents; agents.make_agent('random'), agents.make_agent('greedy');"
        "assert not {'torch', 'stable_baselines3', 'sb3_contrib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- random ----------------------------------------------------------------------------------------------------------


def test_choose_is_uniform_in_each_row():
    rows = np.array([0, 1, 1, 1, 2, 2])
    actions = np.array([7, 1, 2, 3, 4, 5])
    rng = np.random.default_rng(0)
    drawn = np.array([choose(rows, actions, rng) for _ in range(6000)])
    assert set(drawn[:, 0]) == {7}
    assert np.allclose([np.mean(drawn[:, 1] == a) for a in (1, 2, 3)], 1 / 3, atol=0.03)
    assert np.allclose([np.mean(drawn[:, 2] == a) for a in (4, 5)], 1 / 2, atol=0.03)


def test_random_plays_every_legal_move_and_no_other():
    masks = np.repeat(masks_of(PYRAMID, ("r7c1", "r7c2+r7c5", "r7c3+waste", "draw")), 500, axis=0)
    actions = RandomAgent(PYRAMID).act({}, masks, np.random.default_rng(0))
    assert set(texts_of(PYRAMID, actions)) == {"r7c1", "r7c2+r7c5", "r7c3+waste", "draw"}


# ---- greedy ----------------------------------------------------------------------------------------------------------


def test_greedy_takes_king_then_pyramid_pair_then_waste_pair_then_draws():
    masks = masks_of(
        PYRAMID,
        ("r7c1", "r7c2+r7c5", "r7c3+waste", "draw"),
        ("waste", "r7c2+r7c5", "r7c3+waste", "draw"),
        ("r7c2+r7c5", "r7c3+waste", "draw"),
        ("r7c3+waste", "draw"),
        ("draw",),
    )
    actions = GreedyAgent(PYRAMID).act({}, masks, np.random.default_rng(0))
    assert texts_of(PYRAMID, actions) == ["r7c1", "waste", "r7c2+r7c5", "r7c3+waste", "draw"]


def test_greedy_breaks_ties_by_chance():
    masks = np.repeat(masks_of(PYRAMID, ("r7c1", "r7c2", "waste", "r7c3+r7c4", "draw")), 300, axis=0)
    actions = GreedyAgent(PYRAMID).act({}, masks, np.random.default_rng(0))
    assert set(texts_of(PYRAMID, actions)) == {"r7c1", "r7c2", "waste"}


def test_greedy_in_till_dawn_takes_waste_pairs_but_draws_rather_than_pair_stock_with_waste():
    rules = pe.rules("till_dawn")
    masks = masks_of(rules, ("stock+waste", "draw"), ("stock", "r7c1+stock", "draw"), ("waste+waste", "draw"))
    actions = GreedyAgent(rules).act({}, masks, np.random.default_rng(0))
    assert texts_of(rules, actions) == ["draw", "stock", "waste+waste"]


@pytest.mark.parametrize("preset", PRESETS)
def test_greedy_prefers_every_kind_of_every_preset(preset):
    rules = pe.rules(preset)
    records = play(GreedyAgent(rules), rules, range(10_000, 10_050))
    assert not any(record.truncated for record in records)
    assert {move.kind for move in move_table(rules)} <= set(Kind)


@pytest.mark.parametrize(("name", "low", "high"), [("random", 0.004, 0.028), ("greedy", 0.26, 0.34)])
def test_known_shares_of_cleared_deals(name, low, high):
    """60,000 deals gave 1.2 % and 30 %; these are 1,500, so four standard errors around."""
    records = play(make_agent(name, PYRAMID), PYRAMID, range(10_000, 11_500))
    assert low <= np.mean([record.won for record in records]) <= high


# ---- scout and oracle ------------------------------------------------------------------------------------------------


def test_scout_watches_until_all_is_seen_and_then_plays_a_best_line():
    rules = MINI
    stock = rules.stock_size
    for record in play(ScoutAgent(rules), rules, range(10_000, 10_060), keep_actions=True):
        moves = [move_table(rules)[a] for a in record.actions]
        assert all(move.is_draw for move in moves[:stock])
        game = pe.Game(record.deal, rules)
        for move in moves[:stock]:
            game.play(move)
        win = solve(game, objective="win")
        best = win if win.value else solve(game, objective="score")
        for move in best.moves:
            game.play(move)
        assert record.won == bool(win.value)
        if not record.won:
            assert record.score == best.value


def test_scout_clears_the_known_share():
    """49 % of pyramid deals, measured elsewhere on other deals; 60 deals here, three standard errors around."""
    records = play(ScoutAgent(PYRAMID), PYRAMID, range(10_000, 10_060))
    assert 0.29 <= np.mean([record.won for record in records]) <= 0.69


def test_scout_with_one_pass_plays_greedily_until_all_is_seen():
    rules = pe.rules("mini_one_pass")
    records = play(ScoutAgent(rules), rules, range(10_000, 10_200), keep_actions=True)
    greedy = play(GreedyAgent(rules), rules, range(10_000, 10_200))
    assert sum(r.won for r in records) >= sum(r.won for r in greedy) > 0
    assert any(not move_table(rules)[a].is_draw for r in records for a in r.actions[: rules.stock_size])


def test_scout_solves_at_once_where_nothing_is_hidden():
    rules = pe.rules("mini:predealt=8,draw_count=8,waste_piles=8,passes=1")
    assert rules.nothing_hidden
    for record in play(ScoutAgent(rules), rules, range(10_000, 10_060)):
        assert record.won == bool(solve(pe.Deal.number(record.deal, rules), rules, objective="win").value)


def test_scout_does_not_know_unseen_cards():
    """Two deals that differ in cards not yet turned get the same choice; the observations are the same, too."""
    rng = np.random.default_rng(3)
    env = PyramidVectorEnv(2, rules=MINI, observation="memory", autoreset_mode="Disabled")
    for number in range(20):
        cards = list(pe.Deal.number(number, MINI).cards)
        hidden = cards[-3:]
        others = [hidden[i] for i in (1, 2, 0)]
        deals = [pe.Deal(tuple(cards)), pe.Deal(tuple(cards[:-3] + others))]
        observations, _ = env.reset(options={"deals": deals})
        for _ in range(MINI.stock_size - 3):
            masks = env.action_masks()
            first, second = ScoutAgent(MINI).act(observations, masks, rng)
            assert first == second
            observations, *_ = env.step(np.array([first, second]))


@pytest.mark.parametrize("preset", ["mini", "mini_one_pass", "mini:goal=all,stock_top=true,pair_stock_waste=true"])
def test_oracle_reaches_the_bound_on_every_deal(preset):
    rules = pe.rules(preset)
    deals = range(10_000, 10_080)
    wins = play(OracleAgent(rules), rules, deals)
    scores = play(OracleAgent(rules, "score"), rules, deals)
    for win, score in zip(wins, scores, strict=True):
        deal = pe.Deal.number(win.deal, rules)
        assert win.won == bool(solve(deal, rules, objective="win").value)
        assert score.score == solve(deal, rules, objective="score").value
        if not win.won:
            assert win.score == score.score


@pytest.mark.parametrize("preset", ["pyramid", "till_dawn", "microsoft", "giza", "tuts_tomb"])
def test_oracle_reaches_the_bound_of_whole_decks(preset):
    rules = pe.rules(preset)
    for record in play(OracleAgent(rules), rules, range(10_000, 10_005)):
        assert record.won == bool(solve(pe.Deal.number(record.deal, rules), rules, objective="win").value)


def test_a_game_is_solved_once_and_then_followed():
    agent = OracleAgent(MINI)
    play(agent, MINI, range(10_000, 10_020))
    assert agent.plans.solved == 20
    play(agent, MINI, range(10_000, 10_020), batch_size=7)
    assert agent.plans.solved == 20


def test_a_plan_is_the_same_in_any_batch():
    alone = play(OracleAgent(MINI), MINI, range(10_000, 10_030), batch_size=1, keep_actions=True)
    together = play(OracleAgent(MINI), MINI, range(10_000, 10_030), batch_size=30, keep_actions=True)
    assert [r.actions for r in alone] == [r.actions for r in together]
