"""The checkers checked: the reference against the rules' sentences, the brute force against both and the oracle."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import bruteforce
import numpy as np
import pytest
from reference import Reference, read_ranks

import pyramid_env as pe

ORACLE = Path(__file__).parent / "data" / "oracle.csv"

SMALL_RULES = {
    "mini": pe.rules("mini"),
    "mini_one_pass": pe.rules("mini_one_pass"),
    "two passes": pe.rules("mini", passes=2),
    "without limit": pe.rules("mini", passes=None),
    "stock top": pe.rules("mini", stock_top=True),
    "both tops": pe.rules("mini", stock_top=True, pair_stock_waste=True, scoring="msc"),
    "both tops, all must go": pe.rules("mini", stock_top=True, pair_stock_waste=True, goal="all", passes=2),
    "till dawn": pe.rules("mini", stock_top=True, pair_stock_waste=True, pair_waste_two=True, goal="all", passes=2),
    "top two of the waste": pe.rules("mini", pair_waste_two=True, goal="all"),
    "one card turned": pe.rules("mini", stock_top=True, pair_stock_waste=True, goal="all", predealt=1, passes=2),
    "all cards turned": pe.rules("mini", predealt=8, passes=2, goal="all"),
    "draw three": pe.rules("mini", draw_count=3, passes=None),
    "draw three, two passes": pe.rules("mini", draw_count=3, passes=2, pair_waste_two=True),
    "draw three, stock top": pe.rules("mini", draw_count=3, stock_top=True, pair_stock_waste=True, passes=2),
    "three piles": pe.rules("mini", draw_count=3, waste_piles=3, passes=1, pair_waste_tops=True),
    "three piles, tops apart": pe.rules("mini", draw_count=3, waste_piles=3, passes=3),
    "three piles, everything pairs": pe.rules(
        "mini",
        draw_count=3,
        waste_piles=3,
        passes=2,
        pair_waste_tops=True,
        pair_waste_two=True,
        stock_top=True,
        pair_stock_waste=True,
        goal="all",
    ),
    "two piles, three turned": pe.rules("mini", draw_count=2, waste_piles=2, predealt=3, passes=None, goal="all"),
    "open piles": pe.rules("mini", draw_count=4, waste_piles=4, predealt=8, passes=1, pair_waste_tops=True, goal="all"),
    "overlap": pe.rules("mini", overlap=True, passes=2),
    "overlap without limit": pe.rules("mini", overlap=True, passes=None, stock_top=True),
    "ends with the stock": pe.rules("mini", end_on_exhausted=True, passes=2),
    "ends with the stock, stock top": pe.rules("mini", end_on_exhausted=True, passes=2, stock_top=True, goal="all"),
    "four rows": pe.rules("mini", rows=4, passes=2, scoring="msc"),
    "two rows, two decks": pe.rules("mini", rows=2, decks=2, ranks=5, suits=1, passes=2, stock_top=True),
    "no stock": pe.rules("mini", rows=4, ranks=5, suits=2, overlap=True),
    "two rows, nine ranks": pe.rules("mini", rows=2, ranks=9, suits=1, passes=None, draw_count=2, scoring="none"),
}


def little_game(picture: str, **switches: object) -> Reference:
    """A pyramid of two rows and a stock of ten cards, any ranks."""
    return Reference(pe.rules(rows=2, suits=1, **switches), read_ranks(picture))


def play_all(game: Reference, moves: str) -> Reference:
    for move in moves.split():
        game.play(move)
    return game


# The reference against the rules' sentences


def test_only_exposed_cards_leave_and_a_king_leaves_alone() -> None:
    game = little_game("""
          K
         9 4   AA AAA AAA AA""")
    assert game.legal_moves() == {"r2c1+r2c2", "draw"}
    assert play_all(game, "r2c1+r2c2").legal_moves() == {"r1c1", "draw"}
    assert not game.is_won
    assert play_all(game, "r1c1").is_won
    assert game.is_over
    assert game.par() == 50 - 10
    assert game.msc() == 2 * 5 + 25 + 50


def test_an_illegal_move_is_refused_and_changes_nothing() -> None:
    game = little_game("""
          K
         9 4   5A AAA AAA AA""")
    before = game.key()
    for move in ("r1c1", "r2c1", "r2c1+waste", "waste", "stock", "r2c1+stock", "r9c9", ""):
        with pytest.raises(ValueError, match="expected one of"):
            game.play(move)
    assert game.key() == before


def test_one_card_outside_the_pyramid_is_available() -> None:
    game = little_game("""
          A
         8 7   K 5 6 AAAAAAA""")
    assert play_all(game, "draw").legal_moves() == {"waste", "draw"}
    assert play_all(game, "draw").legal_moves() == {"r2c1+waste", "draw"}  # the king is buried
    assert play_all(game, "r2c1+waste").legal_moves() == {"waste", "draw"}  # and comes to light again


def test_the_recycle_keeps_the_order_and_the_last_card_stays_playable() -> None:
    game = little_game(
        """
          A
         8 7   23456789TJ""",
        passes=2,
    )
    play_all(game, "draw " * 4 + "r2c1+waste " + "draw " * 6)
    assert [card.rank for card in game.wastes[0]] == [2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert play_all(game, "draw").pass_number == 2
    assert game.wastes == [[]]
    assert [card.rank for card in game.stock] == [2, 3, 4, 6, 7, 8, 9, 10, 11]
    play_all(game, "draw " * 9)
    assert game.legal_moves() == set()
    assert game.is_over
    assert not game.is_won

    game = little_game(
        """
          A
         8 7   AAAAAAAAA6""",
        passes=1,
    )
    assert play_all(game, "draw " * 10).legal_moves() == {"r2c2+waste"}


def test_the_stock_top_is_playable_where_the_rules_say_so() -> None:
    picture = """
          A
         8 7   5 8 6K7AAAAA"""
    assert little_game(picture).legal_moves() == {"draw"}
    game = little_game(picture, stock_top=True)
    assert game.legal_moves() == {"r2c1+stock", "draw"}
    assert game.seen == [0]
    assert play_all(game, "draw").legal_moves() == {"r2c1+waste", "draw"}
    assert game.seen == [0, 1]

    game = play_all(little_game(picture, stock_top=True, pair_stock_waste=True), "draw")
    assert game.legal_moves() == {"r2c1+waste", "stock+waste", "draw"}
    play_all(game, "stock+waste")
    assert [card.rank for card in game.stock[:3]] == [6, 13, 7]
    assert game.legal_moves() == {"r2c2+stock", "draw"}
    assert play_all(game, "draw").legal_moves() == {"r2c2+waste", "stock", "draw"}
    assert play_all(game, "stock").legal_moves() == {"r2c2+waste", "stock+waste", "draw"}
    assert play_all(game, "draw").legal_moves() == {"draw"}
    assert game.seen == [0, 1, 2, 3, 4, 5]


def test_the_two_uppermost_waste_cards_leave_together_where_the_rules_say_so() -> None:
    picture = """
          A
         8 8   A 9 4 AAAAAAA"""
    assert play_all(little_game(picture), "draw draw draw").legal_moves() == {"draw"}
    game = play_all(little_game(picture, pair_waste_two=True), "draw draw draw")
    assert game.legal_moves() == {"waste+waste", "draw"}
    assert [card.rank for card in play_all(game, "waste+waste").wastes[0]] == [1]


def test_three_piles_take_card_k_on_pile_k_mod_three() -> None:
    picture = """
          A
         8 8   2 5 T   3 K 4  9 9 4  A"""
    game = play_all(little_game(picture, draw_count=3, waste_piles=3, passes=2), "draw")
    assert [[card.rank for card in pile] for pile in game.wastes] == [[2], [5], [10]]
    assert game.legal_moves() == {"r2c1+waste2", "r2c2+waste2", "draw"}
    play_all(game, "draw")
    assert game.legal_moves() == {"waste2", "draw"}
    play_all(game, "waste2 r2c2+waste2 draw")
    assert [[card.rank for card in pile] for pile in game.wastes] == [[2, 3, 9], [9], [10, 4, 4]]
    play_all(game, "draw draw")
    assert [card.rank for card in game.stock] == [2, 10, 3, 4, 9, 9, 4, 1]
    play_all(game, "draw")
    assert [[card.rank for card in pile] for pile in game.wastes] == [[2, 3], [], [10]]

    game = play_all(little_game(picture, draw_count=3, waste_piles=3, pair_waste_tops=True), "draw draw draw")
    assert game.legal_moves() == {"waste1+waste3", "waste2+waste3", "draw"}


def test_draw_three_onto_one_pile_buries_two_and_the_last_draw_turns_what_is_left() -> None:
    game = little_game(
        """
          A
         8 7   565 AAA AAA 6""",
        draw_count=3,
    )
    assert play_all(game, "draw").legal_moves() == {"r2c1+waste", "draw"}
    assert play_all(game, "r2c1+waste").legal_moves() == {"r2c2+waste", "draw"}
    play_all(game, "draw draw draw")
    assert not game.stock
    assert game.legal_moves() == {"r2c2+waste", "draw"}
    play_all(game, "draw draw")
    assert [card.rank for card in game.wastes[0]] == [5, 6, 1]


def test_predealt_cards_lie_on_the_waste_before_the_first_move() -> None:
    game = little_game(
        """
          A
         8 7   6 5 AAAAAAAA""",
        predealt=2,
        stock_top=True,
    )
    assert game.legal_moves() == {"r2c1+waste", "draw"}
    assert game.seen == [0, 1, 2]
    assert len(game.stock) == 8


def test_overlap_lets_a_card_leave_with_its_only_cover() -> None:
    picture = """
          A
         J 3
        2 K 9   AAAAAAA"""
    switches = {"rows": 3, "suits": 1, "passes": 1}
    strict, relaxed = (Reference(pe.rules(overlap=on, **switches), read_ranks(picture)) for on in (False, True))
    assert strict.legal_moves() == relaxed.legal_moves() == {"r3c2", "draw"}  # two cards cover the jack
    assert play_all(strict, "r3c2").legal_moves() == {"draw"}
    assert play_all(relaxed, "r3c2").legal_moves() == {"r2c1+r3c1", "draw"}
    play_all(relaxed, "r2c1+r3c1")
    assert relaxed.pyramid == [[1], [None, 3], [None, None, 9]]


def test_overlap_wants_the_cover_itself_exposed() -> None:
    picture = """
            A
           5 Q
          8 K 9
         J J J J   AAA"""
    game = Reference(pe.rules(rows=4, suits=1, overlap=True), read_ranks(picture))
    game.pyramid[2][1] = None  # 8 is now the only cover of 5, but lies under two jacks
    assert game.legal_moves() == {"draw"}
    game.pyramid[3][0] = game.pyramid[3][1] = None
    assert game.legal_moves() == {"r2c1+r3c1", "draw"}


def test_end_on_exhausted_ends_with_the_last_card_of_the_last_pass() -> None:
    picture = """
          A
         8 7   AAAAAAAAA6"""
    assert play_all(little_game(picture, passes=1), "draw " * 10).legal_moves() == {"r2c2+waste"}
    assert play_all(little_game(picture, passes=1, end_on_exhausted=True), "draw " * 10).is_over
    game = play_all(little_game(picture, passes=2, end_on_exhausted=True), "draw " * 10)
    assert game.legal_moves() == {"r2c2+waste", "draw"}
    assert play_all(game, "draw " * 11).is_over


def test_with_goal_all_play_goes_on_after_the_clear_and_lowers_the_loss() -> None:
    game = little_game(
        """
          K
         9 4   AQ AAAAAAAA""",
        stock_top=True,
        pair_stock_waste=True,
        goal="all",
    )
    play_all(game, "r2c1+r2c2 r1c1")
    assert (game.par(), game.is_won, game.is_over) == (40, False, False)
    play_all(game, "draw stock+waste")
    assert game.par() == 42


def test_the_bonus_is_that_of_the_pass_of_the_clear() -> None:
    for passes, bonus in ((1, 50), (2, 35), (3, 20), (4, 0), (5, 0)):
        game = little_game(
            """
              K
             9 4   AQ AAAAAAAA""",
            passes=None,
        )
        play_all(game, "r2c1+r2c2 " + "draw " * (11 * (passes - 1)) + "r1c1")
        assert game.par() == bonus - 10
        assert game.pass_number == min(passes, 4)


def test_without_a_limit_the_game_is_over_when_a_whole_run_offers_nothing() -> None:
    assert little_game("A 87 AAAAAAAAAA", passes=None).is_over
    game = little_game("A 87 A6AAAAAAAA", passes=None)
    play_all(game, "draw " * 12)
    assert game.pass_number == 2
    assert game.legal_moves() == {"draw"}
    assert play_all(game, "draw").legal_moves() == {"r2c2+waste", "draw"}
    play_all(game, "draw " * 11)  # passed over, the six is met again in every pass
    assert play_all(game, "r2c2+waste").is_over


def test_without_a_limit_drawing_three_can_strand_a_card_for_good() -> None:
    assert little_game("A 87 A6AAAAAAAA", passes=None, draw_count=3).is_over  # the six never comes to the top
    game = little_game("A 87 5K6AAAAAAA", passes=None, draw_count=3)
    play_all(game, "draw r2c2+waste")
    assert game.legal_moves() == {"waste", "draw"}
    assert play_all(game, "draw").is_over  # from now on the king lies second of 5 K A, in every pass


def test_nothing_can_be_drawn_from_nothing() -> None:
    game = Reference(pe.rules("mini", rows=4, ranks=5, suits=2), read_ranks("A" * 10))
    assert game.is_over
    game = little_game("K 94 AAAAAAAAAA", passes=1)
    assert play_all(game, "draw " * 10).legal_moves() == {"r2c1+r2c2"}


# The brute force against the reference


def graph(game: Reference, most: int = 20_000) -> dict[tuple[int, ...], Reference]:
    """Every position that can be reached, by its five numbers; breadth first."""
    found = {game.packed(): game}
    waiting = [game]
    for position in waiting:
        for move in position.legal_moves():
            follower = position.copy()
            follower.play(move)
            if follower.packed() not in found:
                found[follower.packed()] = follower
                waiting.append(follower)
        assert len(found) < most
    return found


@pytest.mark.parametrize("name", SMALL_RULES)
def test_brute_force_and_reference_know_the_same_positions(name: str) -> None:
    rules = SMALL_RULES[name]
    rng = np.random.default_rng(7)
    one_deck = [rank for rank in range(1, rules.ranks + 1) for _ in range(rules.suits * rules.decks)]
    for _ in range(2):
        ranks = [int(rank) for rank in rng.permutation(one_deck)]
        game = Reference(rules, ranks)
        positions = graph(game)
        assert len({position.key() for position in positions.values()}) == len(positions)
        assert bruteforce.start(ranks, rules) == game.packed()
        steps = {game.packed(): 0}
        for packed, position in positions.items():
            followers = set()
            for move in position.legal_moves():
                follower = position.copy()
                follower.play(move)
                followers.add(follower.packed())
                steps.setdefault(follower.packed(), steps[packed] + 1)
            assert bruteforce.followers(ranks, rules, bruteforce.Position(*packed)) == followers
        wins = [packed for packed, position in positions.items() if position.is_won]
        expected = bruteforce.Survey(
            win=int(bool(wins)),
            par=max(position.par() for position in positions.values()),
            msc=max(position.msc() for position in positions.values()),
            earliest=min((p.cleared_in for p in positions.values() if p.cleared_in), default=bruteforce.NEVER),
            steps=min((steps[packed] for packed in wins), default=bruteforce.NEVER),
            positions=len(positions),
        )
        assert bruteforce.survey(ranks, rules) == expected
        for objective in bruteforce.OBJECTIVES:
            for plain in (False, True):
                answer = bruteforce.solve(ranks, rules, objective, plain=plain)
                assert answer == getattr(expected, objective), (objective, plain)


def test_positions_by_depth_counts_each_depth_for_itself() -> None:
    for name, rules in SMALL_RULES.items():
        rng = np.random.default_rng(11)
        one_deck = [rank for rank in range(1, rules.ranks + 1) for _ in range(rules.suits * rules.decks)]
        ranks = [int(rank) for rank in rng.permutation(one_deck)]
        layer = {Reference(rules, ranks).key(): Reference(rules, ranks)}
        counts = [1]
        for _ in range(8):
            coming = {}
            for position in layer.values():
                for move in position.legal_moves():
                    follower = position.copy()
                    follower.play(move)
                    coming[follower.key()] = follower
            layer = coming
            counts.append(len(layer))
        assert bruteforce.positions_by_depth(ranks, rules, 8) == counts, name


def test_the_limit_leaves_a_question_open() -> None:
    deck, rules, _, _ = next(oracle())
    for objective in bruteforce.OBJECTIVES:
        assert bruteforce.solve(deck, rules, objective, limit=10) is None
    assert bruteforce.survey(deck, rules, limit=10) is None


# The brute force against the oracle


def oracle() -> Iterator[tuple[list[int], pe.Rules, str, int]]:
    """The lines of the oracle: ranks, rules, objective, value."""
    changes: dict[str, Callable[[pe.Rules], pe.Rules]] = {
        "": lambda rules: rules,
        "passes=1": lambda rules: rules.replace(passes=1),
        "pair_waste_tops off": lambda rules: rules.replace(pair_waste_tops=False),
        "overlap on": lambda rules: rules.replace(overlap=True),
        "predealt=0": lambda rules: rules.replace(predealt=0),
    }
    with ORACLE.open() as lines:
        for line in csv.DictReader(line for line in lines if not line.startswith("#")):
            preset, _, change = line["rules"].partition(" with ")
            yield read_ranks(line["deck"]), changes[change](pe.rules(preset)), line["objective"], int(line["value"])


def test_brute_force_agrees_with_the_oracle() -> None:
    """As many of the lines as a small search decides."""
    decided = dict.fromkeys(bruteforce.OBJECTIVES, 0)
    for deck, rules, objective, value in oracle():
        answer = bruteforce.solve(deck, rules, objective, limit=5_000)
        assert answer in (None, value), (deck, str(rules), objective)
        decided[objective] += answer is not None
    assert decided["win"] > 400
    assert decided["par"] >= 10
    assert decided["steps"] >= 10


@pytest.mark.slow
def test_brute_force_agrees_with_the_oracle_on_every_line() -> None:
    """Hours; the searches want up to 5 GB."""
    for deck, rules, objective, value in oracle():
        assert bruteforce.solve(deck, rules, objective, limit=100_000_000) == value, (deck, str(rules), objective)
