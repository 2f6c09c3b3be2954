"""The best legal play: its exact values against a plain reading of the rules, its bound, its limits."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count, permutations
from math import factorial, perm

import numpy as np
import pytest
from numpy.typing import NDArray
from reference import Reference

import pyramid_env as pe
from pyramid_env import kernels
from pyramid_env.errors import DeckError, PyramidError, RulesError
from pyramid_env.moves import move_table
from pyramid_env.observation import Position, position_from_observation
from pyramid_env.rules import Rules
from pyramid_env.solver import SolverError, Status
from pyramid_env.solver.legal import solve_information_state, solve_legal
from pyramid_env.solver.legal_bound import bound_orders, sample_bound, scenario_orders
from pyramid_env.solver.legal_pyramids import mirror, visible_pyramids
from pyramid_env.solver.legal_states import Room, build_spec, bytes_of, new_memory

MINI = pe.rules("mini")
START = kernels.start_state(MINI)

TINY = "mini:ranks=5,suits=1,rows=2"  # 3 + 2 cards: 120 deals
SMALL = "mini:ranks=7,suits=1,rows=2"  # 3 + 4 cards: 5,040 deals

MINI_VALUES = {
    ("mini_one_pass", "win"): ("7812514/14189175", "8038078/14189175"),
    ("mini_one_pass", "score"): ("2773934/121275", "112994789/4729725"),
    ("mini", "win"): ("11978/15015", "11978/15015"),
    ("mini", "score"): ("152789041/4729725", "42178646/1289925"),
}
"""Legal and clairvoyant value over all deals."""


# ---- a plain second reading: sets of games that look alike ----------------------------------------------------------

World = tuple[tuple[Reference, tuple[int, ...]], ...]
"""Games that a player can't tell apart, one for each order of the unseen cards, each with its deal."""


def result(game: Reference, objective: str) -> int:
    return int(game.is_won) if objective == "win" else game.score


def after(world: World, move: str) -> list[World]:
    """The worlds that a move may lead to: games that show other cards, or end where others go on, are told apart."""
    parts: dict[object, list[tuple[Reference, tuple[int, ...]]]] = {}
    for game, deal in world:
        played = game.copy()
        played.play(move)
        shown = tuple((number, deal[game.rules.places + number]) for number in played.seen)
        parts.setdefault((shown, played.is_over), []).append((played, deal))
    return [tuple(part) for part in parts.values()]


def best(world: World, objective: str, known: dict[object, int]) -> int:
    """Total result of the best policy over the games of a world."""
    key = tuple(game.key() for game, _ in world)
    if key not in known and len(world) == 1 and world[0][0].rules.passes is None:
        known[key] = best_reached(world[0][0], objective)
    if key not in known:
        moves = world[0][0].legal_moves()
        known[key] = max(
            (sum(best(part, objective, known) for part in after(world, move)) for move in moves),
            default=sum(result(game, objective) for game, _ in world),
        )
    return known[key]


def best_reached(game: Reference, objective: str) -> int:
    """As best() for one game without a limit of passes, where moves may lead in circles: no move lowers a score."""
    met = {game.key()}
    waiting = [game]
    reached = []
    while waiting:
        at = waiting.pop()
        reached.append(result(at, objective))
        for move in at.legal_moves():
            follower = at.copy()
            follower.play(move)
            if follower.key() not in met:
                met.add(follower.key())
                waiting.append(follower)
    return max(reached)


def policies(world: World, objective: str) -> list[int]:
    """Total result of every policy there is: a move for this world, and a policy for each world it may lead to."""
    moves = world[0][0].legal_moves()
    if not moves:
        return [sum(result(game, objective) for game, _ in world)]
    totals = []
    for move in moves:
        sums = [0]
        for part in after(world, move):
            sums = [total + more for total in sums for more in policies(part, objective)]
        totals += sums
    return totals


def worlds(rules: Rules, deals: Iterator[tuple[int, ...]]) -> list[World]:
    """The first worlds of some deals."""
    parts: dict[object, list[tuple[Reference, tuple[int, ...]]]] = {}
    for deal in deals:
        game = Reference(rules, deal)
        shown = tuple(deal[rules.places + number] for number in game.seen)
        parts.setdefault((deal[: rules.places], shown, game.is_over), []).append((game, deal))
    return [tuple(part) for part in parts.values()]


def all_deals(rules: Rules) -> Iterator[tuple[int, ...]]:
    return permutations(list(range(1, rules.ranks + 1)) * rules.suits * rules.decks)


@pytest.mark.parametrize("objective", ["win", "score"])
@pytest.mark.parametrize("switches", ["passes=1", "passes=1,stock_top=true,pair_stock_waste=true,goal=all"])
def test_no_policy_for_a_tiny_deck_is_better(switches: str, objective: str) -> None:
    rules = pe.rules(f"{TINY},{switches}")
    total = most = 0
    for world in worlds(rules, all_deals(rules)):
        totals = policies(world, objective)
        most = max(most, len(totals))
        total += max(totals)
    assert most > 10  # there was something to choose
    assert solve_legal(rules, objective).value == Fraction(total, factorial(5))


@pytest.mark.parametrize(
    ("switches", "objective"),
    [("passes=2,draw_count=2", "win"), ("passes=1", "score")],
)
def test_values_of_tiny_decks_are_those_of_a_plain_enumeration(switches: str, objective: str) -> None:
    rules = pe.rules(f"{SMALL},{switches}")
    legal = clairvoyant = 0
    for world in worlds(rules, all_deals(rules)):
        known: dict[object, int] = {}
        legal += best(world, objective, known)
        clairvoyant += sum(best((one,), objective, known) for one in world)
    solved = solve_legal(rules, objective)
    assert (solved.value, solved.clairvoyant) == (Fraction(legal, factorial(7)), Fraction(clairvoyant, factorial(7)))


# ---- single information states --------------------------------------------------------------------------------------

GAMES = (
    "mini:ranks=5",
    "mini:ranks=5,passes=1,scoring=msc",
    "mini:ranks=5,passes=2,scoring=none",
    "mini:ranks=5,passes=2,end_on_exhausted=true",
    "mini:ranks=5,passes=2,predealt=1",
    "mini:ranks=5,passes=1,overlap=true,draw_count=2,waste_piles=2",
    "mini:ranks=5,passes=unlimited,draw_count=3",
    "mini:ranks=5,passes=unlimited,draw_count=2,overlap=true,scoring=msc",
    "mini:ranks=5,passes=1,stock_top=true,pair_stock_waste=true,pair_waste_two=true,goal=all",
    "mini:ranks=5,passes=2,stock_top=true,draw_count=3,predealt=1,scoring=msc",
    "mini:ranks=5,passes=1,rows=2,draw_count=3,waste_piles=3,pair_waste_tops=true",
    "mini:ranks=5,passes=2,rows=2,goal=all",
)
MOST_UNSEEN = 4


def in_progress(rules: Rules, rng: np.random.Generator) -> pe.Game:
    """A game with few unseen cards, reached by random moves."""
    while True:
        game = pe.Game(pe.Deal.random(rng, rules), rules)
        while not game.is_over and unseen_cards(game) > MOST_UNSEEN:
            game.play(int(rng.choice(game.legal_actions)))
        if not game.is_over:
            return game


def unseen_cards(game: pe.Game) -> int:
    if game.pass_number > 1:
        return 0
    cursor = int(game.state[kernels.CURSOR])
    return game.rules.stock_size - min(cursor + game.rules.stock_top, game.rules.stock_size)


def world_of(game: pe.Game) -> World:
    """The games that look like this one to its player, by replaying its moves with each order of the unseen cards."""
    ranks = game.ranks.tolist()
    seen = len(ranks) - unseen_cards(game)
    world = []
    for order in sorted(set(permutations(ranks[seen:]))):
        deal = (*ranks[:seen], *order)
        twin = Reference(game.rules, deal)
        for move in game.history:
            twin.play(reference_text(twin, move))
        world.append((twin, deal))
    return tuple(world)


def reference_text(game: Reference, move: pe.Move) -> str:
    table = move_table(game.rules)
    return next(text for text in game.legal_moves() if table.parse(text) == move)


def worth(world: World, objective: str, known: dict[object, int]) -> int:
    """As best(), also where some of the games are over and others are not."""
    running = tuple((game, deal) for game, deal in world if not game.is_over)
    over = sum(result(game, objective) for game, _ in world if game.is_over)
    return over + (best(running, objective, known) if running else 0)


@pytest.mark.parametrize("objective", ["win", "score"])
@pytest.mark.parametrize("name", GAMES)
def test_values_of_information_states_are_those_of_a_plain_enumeration(name: str, objective: str) -> None:
    rules = pe.rules(name)
    rng = np.random.default_rng(len(name))
    for _ in range(2):
        game = in_progress(rules, rng)
        world = world_of(game)
        known: dict[object, int] = {}
        solved = solve_information_state(game, objective=objective)
        assert solved.status is Status.OPTIMAL
        assert solved.value == Fraction(worth(world, objective, known), len(world))
        assert solved.clairvoyant == Fraction(sum(worth((one,), objective, known) for one in world), len(world))
        assert solved.unseen == unseen_cards(game)
        assert set(game.legal_moves) == set(solved.move_values)
        running = tuple((twin, deal) for twin, deal in world if not twin.is_over)
        for move, value in solved.move_values.items():
            total = sum(result(twin, objective) for twin, _ in world if twin.is_over)
            for part in after(running, reference_text(running[0][0], move)):
                total += best(part, objective, known)
            assert value == Fraction(total, len(world)), (str(game.deal), game.history, move)
        assert max(solved.move_values.values()) == solved.value == solved.bound


def test_a_pair_at_hand_may_be_worth_less_than_a_look_at_the_stock() -> None:
    deal = """
           A
          5 4
         2 3 5      2 3 4 A
    """
    game = pe.Game(deal, "mini:ranks=5,passes=1")
    game.play("r3c3")
    solved = solve_information_state(game)
    assert {game.describe(move): value for move, value in solved.move_values.items()} == {
        "2c+3c": Fraction(3, 4),
        "draw": Fraction(23, 24),
    }
    assert [game.describe(move) for move in solved.moves] == ["draw"]
    assert (solved.value, solved.clairvoyant, solved.hidden_cost) == (Fraction(23, 24), 1, Fraction(1, 24))


def test_hidden_cards_change_nothing() -> None:
    one = pe.Deal.parse("7 6A 423 5A763425", MINI)
    other = pe.Deal.parse("7 6A 423 5436A527", MINI)
    first, second = (solve_information_state(deal, MINI, "score") for deal in (one, other))
    assert first.value == second.value
    assert first.move_values == second.move_values
    assert first.hidden_cost > 0


def test_a_game_and_its_observation_have_the_same_value() -> None:
    env = pe.PyramidEnv(rules="mini", observation="memory")
    observation, _ = env.reset(options={"deal": 3})
    rng = np.random.default_rng(0)
    for _ in range(6):
        seen = position_from_observation(MINI, observation)
        told = solve_information_state(seen, MINI, "score")
        known = solve_information_state(env.game, objective="score")
        assert (told.value, told.clairvoyant, told.move_values) == (known.value, known.clairvoyant, known.move_values)
        observation, *_ = env.step(int(rng.choice(env.game.legal_actions)))


def test_values_agree_with_the_solver_once_everything_is_known() -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        game = pe.Game(pe.Deal.random(rng, "mini"), "mini")
        while game.pass_number == 1 and not game.is_over:
            game.play(int(rng.choice(game.legal_actions)))
        for objective in ("win", "score"):
            solved = solve_information_state(game, objective=objective)
            assert solved.value == solved.clairvoyant == solved.bound == pe.solve(game, objective=objective).value


def test_a_finished_game_has_its_result_and_no_moves() -> None:
    game = pe.Game(3, TINY)
    while not game.is_over:
        game.play(game.legal_moves[0])
    solved = solve_information_state(game, objective="score")
    assert (solved.value, solved.move_values, solved.moves) == (game.score, {}, ())


@pytest.mark.parametrize("objective", ["win", "score"])
def test_following_the_best_moves_through_every_deal_yields_the_value(objective: str) -> None:
    rules = pe.rules(f"{TINY},passes=1")
    total = 0
    for ranks in all_deals(rules):
        game = pe.Game(" ".join("_A2345"[rank] for rank in ranks), rules)
        while not game.is_over:
            game.play(solve_information_state(game, objective=objective).moves[-1])
        total += int(game.is_won) if objective == "win" else game.score
    assert Fraction(total, factorial(5)) == solve_legal(rules, objective).value


# ---- what changes no value -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [TINY, SMALL, "mini:ranks=5", "mini:ranks=5,suits=3", "mini", "mini:ranks=13,suits=1"])
def test_visible_pyramids_are_as_many_as_can_be_dealt(name: str) -> None:
    rules = pe.rules(name)
    pyramids = list(visible_pyramids(rules))
    assert len({pyramid for pyramid, _ in pyramids}) == len(pyramids)
    assert sum(ways for _, ways in pyramids) == perm(rules.cards, rules.places)


def test_mirrored_and_renamed_pyramids_have_the_same_value() -> None:
    rules = pe.rules("mini:ranks=5,passes=1,stock_top=true,scoring=msc")
    rng = np.random.default_rng(8)
    deck = np.repeat(np.arange(1, 6), 2)
    names = np.array([0, 3, 1, 4, 2, 5])  # 1 and 4 are called 3 and 2, 2 and 3 are called 1 and 4
    for _ in range(5):
        ranks = rng.permutation(deck)
        image = np.concatenate([ranks[: rules.places][mirror(rules.rows)], ranks[rules.places :]])
        values = set()
        for deal in (ranks, image, names[ranks], names[image]):
            solved = solve_information_state(" ".join("_A2345"[rank] for rank in deal), rules, "score")
            values.add((solved.value, solved.clairvoyant, tuple(sorted(solved.move_values.values()))))
        assert len(values) == 1


# ---- players ---------------------------------------------------------------------------------------------------------


def test_no_agent_beats_the_best_legal_play() -> None:
    agents = pytest.importorskip("agents.evaluation", reason="agents need the training extra")
    base = pytest.importorskip("agents.base", reason="agents need the training extra")
    rules = pe.rules("mini_one_pass")
    legal, clairvoyant = (Fraction(figure) for figure in MINI_VALUES["mini_one_pass", "win"])
    deals = np.arange(2000)
    shares = {
        name: np.mean([r.won for r in agents.evaluate_agent(base.make_agent(name, rules), rules, deals, seed=1)])
        for name in ("random", "greedy", "scout")
    }
    margin = 4 * 0.5 / len(deals) ** 0.5
    assert shares["random"] < shares["greedy"] <= legal + margin
    assert shares["scout"] <= legal + margin < clairvoyant + 2 * margin


@pytest.mark.slow
@pytest.mark.parametrize(("name", "objective"), list(MINI_VALUES))
def test_values_of_the_mini_games(name: str, objective: str) -> None:
    solved = solve_legal(name, objective)
    assert (str(solved.value), str(solved.clairvoyant)) == MINI_VALUES[name, objective]
    assert solved.pyramids == 1196


@pytest.mark.parametrize(
    ("name", "objective", "legal", "clairvoyant"),
    [
        ("mini:ranks=5", "win", "328/525", "328/525"),
        ("mini:ranks=5,passes=1", "win", "8536/14175", "8552/14175"),
        ("mini:ranks=5", "score", "413624/14175", "137962/4725"),
        ("mini:ranks=5,passes=unlimited,draw_count=3", "win", "1937/4725", "1937/4725"),
    ],
)
def test_values_of_decks_of_ten_cards(name: str, objective: str, legal: str, clairvoyant: str) -> None:
    solved = solve_legal(name, objective)
    assert solved.status is Status.OPTIMAL
    assert (str(solved.value), str(solved.clairvoyant)) == (legal, clairvoyant)
    assert solved.bound == solved.value
    assert solved.hidden_cost == solved.clairvoyant - solved.value


# ---- limits ----------------------------------------------------------------------------------------------------------


def test_tables_take_the_bytes_that_are_counted() -> None:
    spec = build_spec(MINI, win=True)
    room = Room(states=5000, known=300, waiting=70, links=900)
    memory = new_memory(spec, room)
    grows = (memory.states, memory.slots, memory.gains, memory.stack, memory.links)
    assert sum(table.nbytes for table in grows) == bytes_of(spec, room)


def test_tables_that_grow_change_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = solve_legal("mini:ranks=5,suits=2,rows=2")
    monkeypatch.setattr("pyramid_env.solver.legal_run._FIRST_ROOM", Room(states=1, known=1, waiting=1, links=1))
    solved = solve_legal("mini:ranks=5,suits=2,rows=2")
    assert (solved.value, solved.clairvoyant, solved.states) == (expected.value, expected.clairvoyant, expected.states)


@pytest.mark.parametrize("limit", [{"max_bytes": 0}, {"max_bytes": 3_000_000}, {"max_seconds": 0}])
def test_a_limit_leaves_proven_bounds(limit: dict[str, float]) -> None:
    legal, clairvoyant = (Fraction(figure) for figure in MINI_VALUES["mini_one_pass", "win"])
    solved = solve_legal("mini_one_pass", **limit)
    assert solved.status is Status.LIMIT
    assert 0 <= solved.value <= legal <= solved.bound <= 1
    assert clairvoyant <= solved.clairvoyant
    state = solve_information_state(0, "mini_one_pass", "score", **limit)
    assert state.status is Status.LIMIT
    assert state.value == -14
    assert state.bound == state.clairvoyant == 50
    assert state.move_values == {}


def test_memory_stays_under_its_limit() -> None:
    tracemalloc.start()
    try:
        solve_legal("mini:ranks=5,suits=3", max_bytes=4_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    solve_legal(TINY, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (120, 120)
    assert len(told) == 6


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: solve_legal("minni"), RulesError, "did you mean 'mini'"),
        (lambda: solve_legal("mini", "steps"), SolverError, "expected one of win, score for legal play, got 'steps'"),
        (lambda: solve_legal("mini", "luck"), SolverError, "got 'luck'"),
        (lambda: solve_legal("mini", max_bytes=-1), SolverError, "max_bytes: expected a number from 0 up"),
        (lambda: solve_legal("pyramid"), SolverError, "expected at most 18, as all their orders are summed, got 24"),
        (lambda: solve_information_state(1), SolverError, "got 24"),
        (lambda: solve_information_state(3.5), SolverError, "got float 3.5"),
        (lambda: solve_information_state(pe.Game(1, "mini"), "pyramid"), SolverError, "expected none or the game's"),
        (lambda: solve_information_state("A A A", "mini"), DeckError, "expected 14 cards"),
        (lambda: solve_information_state(Position(np.zeros(14, np.int8), START)), SolverError, "expected those of the"),
        (lambda: solve_information_state(Position(np.zeros(9, np.int8), START), "mini"), SolverError, "14 ranks"),
        (lambda: solve_information_state(Position(np.ones(14, np.int8), START), "mini"), PyramidError, "of its deck"),
        (lambda: sample_bound(1, "mini", tree={8: 2}, rng=np.random.default_rng(0)), SolverError, "got 8: 2"),
        (lambda: sample_bound(1, "mini", tree={0: 0}, rng=np.random.default_rng(0)), SolverError, "got 0: 0"),
        (lambda: bound_orders("mini", np.ones((0, 14), np.int8)), SolverError, "got shape"),
        (lambda: bound_orders("mini", np.arange(28, dtype=np.int8).reshape(2, 14)), SolverError, "alike"),
    ],
)
def test_what_cannot_be_solved_says_why(call: Callable[[], object], error: type[PyramidError], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        call()


# ---- the bound for whole games --------------------------------------------------------------------------------------


def orders_of(rules: Rules, deal: pe.Deal) -> NDArray[np.int8]:
    """(M, cards) the deal with every order of its stock."""
    ranks = deal.ranks.tolist()
    orders = sorted(set(permutations(ranks[rules.places :])))
    return np.array([(*ranks[: rules.places], *order) for order in orders], np.int8)


GAPS = ("mini:ranks=5,passes=1", "mini:ranks=7,suits=1,rows=2,passes=2,draw_count=2")


@pytest.mark.parametrize("name", GAPS)
def test_with_all_orders_the_bound_is_the_legal_value(name: str) -> None:
    rules = pe.rules(name)
    gaps = 0
    for number in range(60):
        deal = pe.Deal.number(number, rules)
        found = bound_orders(rules, orders_of(rules, deal))
        solved = solve_information_state(deal, rules)
        assert Fraction(found.informed, found.orders) == solved.value
        assert Fraction(found.clairvoyant, found.orders) == solved.clairvoyant
        gaps += solved.hidden_cost > 0
    assert gaps


@pytest.mark.parametrize("name", GAPS)
def test_the_expected_bound_lies_between_the_legal_and_the_clairvoyant_value(name: str) -> None:
    rules = pe.rules(name)
    deal = next(d for n in count() if solve_information_state(d := pe.Deal.number(n, rules), rules).hidden_cost)
    orders = orders_of(rules, deal)
    solved = solve_information_state(deal, rules)
    pairs = [bound_orders(rules, orders[[i, j]]) for i in range(len(orders)) for j in range(len(orders))]
    assert solved.value <= Fraction(sum(pair.informed for pair in pairs), 2 * len(pairs)) <= solved.clairvoyant
    assert sum(pair.clairvoyant for pair in pairs) == 2 * len(pairs) * solved.clairvoyant
    assert all(pair.informed <= pair.clairvoyant for pair in pairs)
    assert any(pair.informed < pair.clairvoyant for pair in pairs)


def test_scenario_orders_form_a_tree() -> None:
    cards = np.arange(8, dtype=np.int8)
    orders = scenario_orders(cards, {3: 2, 5: 3}, np.random.default_rng(0))
    assert orders.shape == (6, 8)
    assert (np.sort(orders, axis=1) == cards).all()
    assert (orders[:, :3] == orders[0, :3]).all()
    assert len(np.unique(orders[:, :5], axis=0)) == 2
    assert len(np.unique(orders, axis=0)) > 2


def test_each_scenario_order_is_uniformly_distributed() -> None:
    rng = np.random.default_rng(3)
    drawn = [tuple(scenario_orders(np.arange(3, dtype=np.int8), {1: 2}, rng)[1].tolist()) for _ in range(6000)]
    counts = [drawn.count(order) for order in permutations(range(3))]
    assert all(abs(count - 1000) < 5 * 1000**0.5 for count in counts)


def test_a_sampled_bound_is_the_same_for_the_same_seed() -> None:
    first, second = (sample_bound(7, "pyramid", tree={12: 2, 18: 2}, rng=np.random.default_rng(1)) for _ in range(2))
    assert first == second
    assert first.orders == 4
    assert 0 <= first.informed <= first.clairvoyant <= 4
