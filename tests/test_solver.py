"""Solver: its answers against an exhaustive search, its lines against the game, its limits against the truth."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import bruteforce
import numpy as np
import pytest
from numpy.typing import NDArray

import pyramid_env as pe
from pyramid_env import kernels
from pyramid_env.errors import DeckError, RulesError
from pyramid_env.kernels import CLEARED, CURSOR, PASS, PYRAMID, STOCK
from pyramid_env.moves import move_table
from pyramid_env.rules import PAR_BONUS, PRESETS, Rules
from pyramid_env.solver import Objective, Solution, SolverError, Status, solve, solve_many, solve_position
from pyramid_env.solver.expand import CHILD_COLUMNS, MOST_CHILDREN, MOST_REMOVALS, expand_single, expand_walk
from pyramid_env.solver.positions import waiting
from pyramid_env.solver.problem import STEPS, last_pass, problem_of
from pyramid_env.solver.run import Workspace

RANDOM_GAMES = 60
MANY_RANDOM_GAMES = 1500
MOST_POSITIONS = 100_000
"""Small games with more positions than the exhaustive search should take are left out."""


def start(rules: Rules) -> NDArray[np.int64]:
    return kernels.start_state(rules)


def played(rules: Rules, ranks: NDArray[np.int8], state: NDArray[np.int64], solution: Solution) -> NDArray[np.int64]:
    """The position at the end of a solution's moves, each of which must be legal."""
    table = kernels.table(rules)
    moves = move_table(rules)
    now = tuple(int(column) for column in state)
    for move in solution.moves:
        action = moves.index_of(move)
        legal = kernels.legal_actions(rules, ranks, np.array(now, np.int64))
        assert action in legal, f"{move} is not legal at {now}"
        now = kernels.apply(table, *now, action)
    return np.array(now, np.int64)


def reached(rules: Rules, ranks: NDArray[np.int8], end: NDArray[np.int64], solution: Solution) -> int:
    """What a solution's moves are worth, by its objective."""
    pyramid, stock, _, _, cleared = (int(column) for column in end)
    won = bool(kernels.is_won(kernels.table(rules), pyramid, stock))
    match solution.objective:
        case Objective.WIN:
            return int(won)
        case Objective.SCORE:
            return int(kernels.score(kernels.table(rules), ranks, pyramid, stock, cleared))
        case Objective.EARLIEST:
            return cleared
        case _:
            return len(solution.moves) if won else 0


def check(
    rules: Rules, ranks: NDArray[np.int8], state: NDArray[np.int64], expected: dict[str, int], what: str = ""
) -> None:
    """Every objective's answer must be the expected one, proven, and reached by its moves."""
    for objective, value in expected.items():
        solution = solve_position(rules, ranks, state, objective)
        case = f"{what} {rules.to_dict()} {ranks.tolist()} {state.tolist()} {objective}"
        hopeless = value == 0 and objective != "score"
        assert solution.status is (Status.UNWINNABLE if hopeless and not _won(rules, state) else Status.OPTIMAL), case
        assert (solution.value, solution.bound) == (value, value), case
        assert reached(rules, ranks, played(rules, ranks, state, solution), solution) == value, case


def _won(rules: Rules, state: NDArray[np.int64]) -> bool:
    return bool(kernels.is_won(kernels.table(rules), int(state[PYRAMID]), int(state[STOCK])))


def survey(ranks: NDArray[np.int8], rules: Rules, most: int = MOST_POSITIONS) -> dict[str, int] | None:
    """The exhaustive search's answers for a deal, None if it has too many positions."""
    found = bruteforce.survey(ranks.tolist(), rules, most)
    if found is None:
        return None
    score = {"par": found.par, "msc": found.msc, "none": found.win}[rules.scoring]
    return {"win": found.win, "score": score, "earliest": found.earliest, "steps": found.steps}


def survey_from(ranks: NDArray[np.int8], rules: Rules, state: NDArray[np.int64], most: int) -> dict[str, int] | None:
    """The same from any position, over the exhaustive search's own moves."""
    first = bruteforce.Position(*(int(column) for column in state))
    depth = {first: 0}
    queue = [first]
    for position in queue:
        for following in bruteforce.followers(ranks.tolist(), rules, position):
            if following not in depth:
                depth[following] = depth[position] + 1
                queue.append(following)
        if len(queue) > most:
            return None
    won = [p for p in queue if p.pyramid == 0 and (p.stock == 0 or rules.goal == "pyramid")]
    par = max(PAR_BONUS[p.cleared_in] - p.pyramid.bit_count() - p.stock.bit_count() for p in queue)
    msc = max(int(kernels.msc_score(kernels.table(rules), ranks, p.pyramid, p.stock)) for p in queue)
    return {
        "win": int(bool(won)),
        "score": {"par": par, "msc": msc, "none": int(bool(won))}[rules.scoring],
        "earliest": min((p.cleared_in for p in queue if p.cleared_in), default=0),
        "steps": min((depth[p] for p in won), default=0),
    }


def random_rules(rng: np.random.Generator) -> Rules:
    """Any consistent combination of the switches with a small deck."""
    flags = ("stock_top", "pair_stock_waste", "pair_waste_two", "pair_waste_tops", "overlap", "end_on_exhausted")
    while True:
        draw_count = int(rng.choice([1, 1, 1, 2, 3, 4, 8]))
        try:
            rules = pe.Rules(
                decks=int(rng.choice([1, 1, 2])),
                rows=int(rng.choice([2, 3, 3, 4])),
                ranks=int(rng.choice([5, 7, 9])),
                suits=int(rng.integers(1, 4)),
                draw_count=draw_count,
                waste_piles=int(rng.choice([1, draw_count])),
                predealt=int(rng.choice([0, 0, 1, 3, 8])),
                passes=[1, 2, 3, None][int(rng.integers(4))],
                goal=str(rng.choice(["pyramid", "all"])),
                scoring=str(rng.choice(["par", "msc", "none"])),
                **{flag: bool(rng.random() < 0.4) for flag in flags},
            )
        except RulesError:
            continue
        if rules.cards <= 26:
            return rules


def small(name: str) -> Rules:
    """A preset's switches on a pyramid of three rows and a deck of 21 cards, two decks of 14 if it has two."""
    rules = PRESETS[name]
    deck = {"decks": rules.decks, "rows": 3, "ranks": 7, "suits": 3 if rules.decks == 1 else 1}
    if not rules.nothing_hidden:
        return rules.replace(**deck)
    return rules.replace(**deck, draw_count=5, waste_piles=5, predealt=15)


def winnable(name: str) -> pe.Deal:
    """The first numbered deal that can be won."""
    deals = (pe.Deal.number(number, name) for number in range(100))
    return next(deal for deal in deals if solve(deal, name).value)


def random_deals(rules: Rules, count: int, seed: int) -> Iterator[NDArray[np.int8]]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield pe.Deal.random(rng, rules).ranks


def random_play(rules: Rules, ranks: NDArray[np.int8], rng: np.random.Generator, most: int) -> NDArray[np.int64]:
    """A position that up to ``most`` random moves lead to."""
    now = tuple(int(column) for column in start(rules))
    for _ in range(int(rng.integers(most + 1))):
        legal = kernels.legal_actions(rules, ranks, np.array(now, np.int64))
        if not len(legal):
            break
        now = kernels.apply(kernels.table(rules), *now, int(rng.choice(legal)))
    return np.array(now, np.int64)


# ---- the answers -----------------------------------------------------------------------------------------------------


def check_random_games(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    checked = 0
    while checked < count:
        rules = random_rules(rng)
        ranks = pe.Deal.random(rng, rules).ranks
        expected = survey(ranks, rules)
        if expected is not None:
            check(rules, ranks, start(rules), expected)
            checked += 1


def test_any_switches_on_small_decks_equal_the_exhaustive_search() -> None:
    check_random_games(RANDOM_GAMES, seed=1)


@pytest.mark.slow
def test_any_switches_on_many_small_decks_equal_the_exhaustive_search() -> None:
    check_random_games(MANY_RANDOM_GAMES, seed=2)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("scoring", ["par", "msc"])
def test_presets_on_small_decks_equal_the_exhaustive_search(name: str, scoring: str) -> None:
    rules = small(name).replace(scoring=scoring)
    checked = 0
    for ranks in random_deals(rules, 8, seed=3):
        expected = survey(ranks, rules, 300_000)
        if expected is not None:
            check(rules, ranks, start(rules), expected)
            checked += 1
    assert checked >= 4


def test_positions_in_the_middle_of_a_game_equal_the_exhaustive_search() -> None:
    rng = np.random.default_rng(4)
    checked = 0
    while checked < 40:
        rules = random_rules(rng)
        ranks = pe.Deal.random(rng, rules).ranks
        state = random_play(rules, ranks, rng, 12)
        expected = survey_from(ranks, rules, state, 1500)
        if expected is not None:
            check(rules, ranks, state, expected)
            checked += 1


def test_positions_whose_steps_are_bounded_by_tables_equal_the_exhaustive_search() -> None:
    """One card a draw, limited passes, the clear wins: kings on the stock's top leave in passing, turns are counted."""
    rng = np.random.default_rng(5)
    checked = 0
    while checked < 60:
        rules = random_rules(rng)
        if rules.draw_count > 1:
            continue
        rules = rules.replace(goal="pyramid", passes=int(rng.integers(1, 4)))
        ranks = pe.Deal.random(rng, rules).ranks
        state = random_play(rules, ranks, rng, 8)
        expected = survey_from(ranks, rules, state, 30_000)
        if expected is not None:
            check(rules, ranks, state, expected)
            checked += 1


@pytest.mark.parametrize("name", ["one_pass", "microsoft:passes=1", "solitaire13_three_piles", "pyramid"])
def test_whole_decks_equal_the_exhaustive_search(name: str) -> None:
    check_whole_decks(name, "win", 6, 1_000_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("objective", Objective)
def test_whole_decks_equal_the_exhaustive_search_wherever_it_ends(name: str, objective: str) -> None:
    check_whole_decks(name, objective, 25, 3_000_000)


def check_whole_decks(name: str, objective: str, deals: int, most: int) -> None:
    rules = pe.rules(name)
    asked = rules.scoring if objective == "score" else objective
    for number in range(deals):
        ranks = pe.Deal.number(number, rules).ranks
        value = bruteforce.solve(ranks.tolist(), rules, asked, most)
        solution = solve_position(rules, ranks, start(rules), objective, max_seconds=60)
        end = played(rules, ranks, start(rules), solution)
        assert reached(rules, ranks, end, solution) == solution.value
        if value is not None and solution.is_proven:
            assert solution.value == value, f"{name} {number}"


# ---- the ways in -----------------------------------------------------------------------------------------------------


def test_a_game_in_progress_is_solved_from_where_it_stands() -> None:
    game = pe.Game(pe.Deal.number(7, "microsoft"), "microsoft")
    for _ in range(5):
        game.play(game.legal_moves[0])
    for objective in Objective:
        solution = solve(game, objective=objective)
        bare = solve_position(game.rules, game.ranks, game.state, objective)
        assert (solution.value, solution.moves) == (bare.value, bare.moves)


def test_moves_reach_the_value_when_played_in_a_game() -> None:
    deal = winnable("till_dawn")
    solution = solve(deal, "till_dawn", "score")
    game = pe.Game(deal, "till_dawn")
    for move in solution.moves:
        game.play(move)
    assert game.score == solution.value


def test_a_won_game_needs_no_further_moves() -> None:
    deal = winnable("pyramid")
    game = pe.Game(deal, "pyramid")
    for move in solve(deal).moves:
        game.play(move)
    assert game.is_won
    for objective in Objective:
        solution = solve(game, objective=objective)
        assert solution.status is Status.OPTIMAL
        assert solution.moves == ()
    assert solve(game, objective="earliest").value == game.cleared_in


def test_wrong_questions_are_refused() -> None:
    deal = pe.Deal.number(1, "pyramid")
    with pytest.raises(SolverError, match="objective: expected one of win, score, earliest, steps, got 'best'"):
        solve(deal, objective="best")
    with pytest.raises(SolverError, match="max_states"):
        solve(deal, max_states=-1)
    with pytest.raises(SolverError, match="rules"):
        solve(pe.Game(deal, "pyramid"), "one_pass")
    with pytest.raises(DeckError):
        solve(deal, "double_pyramid")
    with pytest.raises(SolverError, match="position"):
        solve_position("double_pyramid", deal.ranks, start(PRESETS["pyramid"]))
    with pytest.raises(SolverError, match="workers"):
        solve_many([1], workers=0)


@pytest.mark.parametrize("what", [1.5, None, ["Kh"], b"Kh", object()])
def test_symptom_solving_what_is_no_deal_was_an_attribute_error(what) -> None:
    with pytest.raises(SolverError, match="solve: expected a Deal, a deal number, a deal as text or a Game, got "):
        solve(what)


def test_symptom_a_deal_number_was_not_solved() -> None:
    deal = pe.Deal.number(42, "mini")
    for what in (42, np.int64(42), str(deal)):
        assert solve(what, "mini").moves == solve(deal, "mini").moves
    assert [s.moves for s in solve_many([42, str(deal)], "mini")] == [solve(deal, "mini").moves] * 2
    for what in (-1, True):
        with pytest.raises(DeckError, match="deal number: expected a whole number from 0"):
            solve(what)
    with pytest.raises(DeckError, match="not a deck of pyramid"):
        solve("Kh")


def test_symptom_a_deal_with_another_deals_number_was_solved() -> None:
    forged = pe.Deal(pe.Deal.number(42, "mini").cards, 43)
    for ask in (lambda: solve(forged, "mini"), lambda: solve_many([1, forged], "mini")):
        with pytest.raises(DeckError, match="expected the cards that deal number 43 has under mini"):
            ask()


@pytest.mark.parametrize("deals", [5, None, "94J8", pe.Deal.number(1)])
def test_symptom_many_deals_that_are_one_were_a_type_error(deals) -> None:
    with pytest.raises(SolverError, match="deals: expected several, in a list or the like, got "):
        solve_many(deals)
    with pytest.raises(DeckError, match="deal: expected a Deal, a deal number or a deal as text, got NoneType None"):
        solve_many([None])


def test_many_deals_come_back_in_order() -> None:
    numbers = [5, 3, 9, 3]
    told: list[tuple[int, int]] = []
    solutions = solve_many(numbers, "microsoft", "steps", progress=lambda done, total: told.append((done, total)))
    single = [solve(pe.Deal.number(number, "microsoft"), "microsoft", "steps") for number in numbers]
    assert [(s.value, s.moves) for s in solutions] == [(s.value, s.moves) for s in single]
    assert told[-1] == (4, 4)


def test_workers_give_the_same_answers() -> None:
    alone = solve_many(range(20), "mini", "score")
    shared = solve_many(range(20), "mini", "score", workers=2)
    assert [(s.value, s.moves) for s in alone] == [(s.value, s.moves) for s in shared]


# ---- limits ----------------------------------------------------------------------------------------------------------


@lru_cache
def truth_of(name: str, objective: str, number: int) -> Solution:
    return solve(pe.Deal.number(number, name), name, objective)


@pytest.mark.parametrize("limit", [{"max_states": 0}, {"max_states": 1}, {"max_states": 300}, {"max_seconds": 0}])
@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize("name", ["one_pass", "till_dawn", "solitaire13_three_piles", "tuts_tomb"])
def test_a_limit_gives_honest_ends(name: str, objective: str, limit: dict[str, int]) -> None:
    rules = pe.rules(name)
    for number in (1, 4, 5):
        deal = pe.Deal.number(number, rules)
        truth = truth_of(name, objective, number)
        solution = solve(deal, rules, objective, **limit)
        end = played(rules, deal.ranks, start(rules), solution)
        assert reached(rules, deal.ranks, end, solution) == solution.value
        if solution.status is not Status.LIMIT:
            assert (solution.status, solution.value) == (truth.status, truth.value)
        elif objective in ("win", "score"):
            assert solution.value <= truth.value <= solution.bound
        else:
            assert truth.value == 0 or solution.bound <= truth.value
            assert solution.value == 0 or truth.value <= solution.value
        if "max_states" in limit:
            assert solution.states <= 3 * limit["max_states"]  # `earliest` asks up to three times


def test_memory_stays_under_its_limit_and_the_bounds_are_kept() -> None:
    deal = pe.Deal.number(0, "double_pyramid")
    for megabytes in (0, 1, 4, 16):
        solution = solve(deal, "double_pyramid", "score", max_bytes=megabytes << 20)
        assert solution.status is Status.LIMIT
        assert solution.value <= solution.bound
        assert solution.states * 40 <= megabytes << 20


# ---- generation ------------------------------------------------------------------------------------------------------


def test_direct_generation_equals_the_walk_through_the_kernels() -> None:
    """A child of the direct way is one of the walk's; a child of the walk can be waited for from a direct one."""
    rng = np.random.default_rng(5)
    walked, direct = (np.empty((MOST_CHILDREN, CHILD_COLUMNS), np.int64) for _ in range(2))
    actions = np.empty(MOST_REMOVALS, np.int64)
    names = ["pyramid", "one_pass", "till_dawn", "pysol", "overlap", "double_pyramid", "classic:end_on_exhausted=true"]
    names += ["microsoft:pair_waste_two=true,end_on_exhausted=true", "solitaire13:end_on_exhausted=true"]
    checked = 0
    for name in names:
        rules = pe.rules(name)
        for _ in range(40):
            ranks = pe.Deal.random(rng, rules).ranks
            state = random_play(rules, ranks, rng, 80)
            problem, workspace = problem_of(rules, STEPS), Workspace(rules)
            workspace.take(problem, ranks, state, last_pass(rules))
            pyramid, stock, cursor, pass_number = (int(state[column]) for column in (PYRAMID, STOCK, CURSOR, PASS))
            shape = int(np.flatnonzero(problem.shapes.masks == pyramid)[0])
            if (pyramid == 0 and rules.goal == "pyramid") or workspace.instance.closed[shape] != shape:
                continue  # over, or a king of the pyramid would leave first
            at = (shape, stock, cursor, pass_number)
            count = expand_single(problem, workspace.instance, *at, direct)
            mine = {tuple(map(int, row)) for row in direct[:count]}
            count = expand_walk(problem, workspace.instance, *at, actions, walked)
            theirs = {tuple(map(int, row)) for row in walked[:count]}
            assert {row[:5] for row in mine} <= {row[:5] for row in theirs}, f"{rules} {state}"
            for row in theirs:
                assert any(
                    row[:2] == other[:2]
                    and 0 <= waiting(problem.table, row[1], *other[2:4], *row[2:4]) <= row[4] - other[4]
                    for other in mine
                ), f"{rules} {state}"
            checked += 1
    assert checked > 200


def test_cards_without_a_partner_put_off_the_end_on_exhausted() -> None:
    """The stock's last cards can be idle, and yet the game goes on until they are drawn."""
    rules = pe.Rules(rows=3, ranks=7, suits=2, passes=1, predealt=1, end_on_exhausted=True, scoring="msc")
    ranks = np.array([7, 6, 1, 7, 3, 2, 4, 1, 2, 6, 3, 5, 5, 4], np.int8)
    expected = survey(ranks, rules)
    assert expected is not None
    assert expected["win"] == 1
    check(rules, ranks, start(rules), expected)


def test_the_last_king_may_stay_where_the_game_ends_before_it() -> None:
    rules = pe.Rules(
        decks=2, rows=3, ranks=7, suits=1, draw_count=2, waste_piles=2, passes=1, stock_top=True, pair_waste_two=True,
        goal="all", end_on_exhausted=True,
    )  # fmt: skip
    ranks = np.array([7, 3, 6, 1, 5, 3, 2, 5, 7, 2, 6, 4, 1, 4], np.int8)
    expected = survey(ranks, rules)
    assert expected is not None
    assert expected["score"] == -1
    check(rules, ranks, start(rules), expected)


def test_the_pass_of_the_clear_of_a_cleared_game_stays() -> None:
    """With goal all the pyramid may be gone already: then ``earliest`` is known and costs no move."""
    rules = pe.rules("till_dawn")
    deal = winnable("till_dawn")
    game = pe.Game(deal, rules)
    for move in solve(deal, rules, "earliest").moves:
        game.play(move)
    assert game.state[CLEARED] > 0
    solution = solve(game, objective="earliest")
    assert (solution.value, solution.moves) == (game.cleared_in, ())
