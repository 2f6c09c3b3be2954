"""Faults that other Pyramid programs had: each numbered symptom of the rules document as one small test."""

from __future__ import annotations

from pathlib import Path

import bruteforce
import numpy as np
import pytest
from reference import Reference

import pyramid_env as pe
from pyramid_env.errors import IllegalMoveError
from pyramid_env.moves import move_table

MINI = pe.rules("mini")
"""Ranks A to 7, two suits, three rows: pairs make 7 (A 6, 2 5, 3 4), and a 7 leaves alone as a king does."""

ALL_CLUBS_TWICE = pe.rules(decks=2, rows=3, ranks=7, suits=1)

EASY = """
           7
          6 A
         4 2 3      5A763425
"""
EASY_WIN = ("r3c1+r3c3", "draw", "r3c2+waste", "r2c1+r2c2", "r1c1")


def play(game: pe.Game, *moves: str) -> pe.Game:
    for move in moves:
        game.play(move)
    return game


def legal(game: pe.Game) -> set[str]:
    """The texts of all legal moves."""
    return {move_table(game.rules).text(move) for move in game.legal_moves}


def refused(game: pe.Game, *moves: str) -> None:
    """Each of these moves is refused and leaves the game as it was."""
    before = game.copy()
    for move in moves:
        with pytest.raises(IllegalMoveError):
            game.play(move)
        assert not game.is_legal(move)
    assert game == before


def waste_tops(game: pe.Game) -> list[str]:
    """Draw to the end of the pass; the cards that lay on top on the way, as they print."""
    tops = []
    while game.state[2] < game.rules.stock_size:
        turned = game.deal.cards[game.rules.places + int(game.state[2])]
        game.play("draw")
        tops.append(str(turned))
    return tops


def test_fault_01_a_king_with_one_cover_left_could_be_removed() -> None:
    game = pe.Game(
        """
           A
          7 2
         6 4 3      55432A67""",
        MINI,
    )
    refused(game, "r2c1")
    play(game, "r3c2+r3c3")  # the 6 still covers the 7
    refused(game, "r2c1")
    play(game, *["draw"] * 6, "r3c1+waste")  # 6 + A
    assert "r2c1" in legal(game)


def test_fault_02_a_pair_was_offered_only_for_the_leftmost_of_several_equal_cards() -> None:
    game = pe.Game(
        """
           A
          7 2
         3 6 3      4455267A""",
        MINI,
    )
    assert legal(play(game, "draw")) == {"r3c1+waste", "r3c3+waste", "draw"}


def test_fault_03_undo_of_a_pair_brought_back_one_card_or_undo_of_a_draw_needed_two() -> None:
    game = pe.Game(EASY, MINI)
    positions = [str(game)]
    for move in EASY_WIN:
        game.play(move)
        positions.append(str(game))
    cards_left = []
    for position in reversed(positions):
        assert str(game) == position
        cards_left.append(game.cards_left)
        if game.can_undo:
            game.undo()
    assert cards_left == [7, 8, 10, 12, 12, 14]


def test_fault_04_after_the_last_pass_the_waste_top_was_dead() -> None:
    for passes in (1, 2, 3):
        game = pe.Game(
            """
               A
              7 2
             6 5 3      5A627344""",
            MINI.replace(passes=passes),
        )
        play(game, *["draw"] * (9 * passes - 1))  # eight cards a pass, and the recycles
        assert legal(game) == {"r3c3+waste"}  # 3 + 4
        play(game, "r3c3+waste")
        assert game.cards_left == 12


def test_fault_05_the_win_was_declared_by_the_wrong_zone() -> None:
    relaxed = play(pe.Game(EASY, MINI), *EASY_WIN[:-1])
    assert not relaxed.is_won  # the apex alone is left: two empty rows are no win
    assert play(relaxed, "r1c1").is_won
    assert relaxed.is_over

    strict = play(pe.Game(EASY, MINI.replace(goal="all")), *EASY_WIN)
    assert not strict.is_won  # the pyramid is gone, seven stock cards are not
    assert not strict.is_over

    stock_gone = play(
        pe.Game("5 A2 43", pe.rules(rows=2, ranks=5, suits=1)), "draw", "r2c1+waste", "draw", "r2c2+waste"
    )
    assert not stock_gone.is_won  # the stock is gone, the apex is not
    assert play(stock_gone, "r1c1").is_won


def test_fault_06_draw_was_offered_with_nothing_to_draw() -> None:
    game = pe.Game("5 A2 43", pe.rules(rows=2, ranks=5, suits=1))  # three passes
    play(game, "draw", "r2c1+waste", "draw", "r2c2+waste")
    assert legal(game) == {"r1c1"}
    refused(game, "draw", "recycle")
    last_pass_run_out = play(pe.Game(EASY, "mini_one_pass"), *["draw"] * 8)
    assert "draw" not in legal(last_pass_run_out)
    refused(last_pass_run_out, "draw", "recycle")
    no_stock = pe.Game("5 32 4A2 34A5", pe.rules(rows=4, ranks=5, suits=2))
    assert "draw" not in legal(no_stock)


def test_fault_07_undo_of_a_draw_left_the_top_of_the_stock_face_up() -> None:
    game = pe.Game(EASY, MINI)
    before = str(game)
    after = str(play(game, "draw"))
    game.undo()
    assert str(game) == before
    refused(game, "r3c2+stock", "r3c2+waste", "stock")
    game.redo()
    assert str(game) == after


@pytest.mark.parametrize("last_card", ["stock", "waste"])
def test_fault_08_crash_on_taking_the_very_last_stock_card_then_recycling(last_card: str) -> None:
    game = pe.Game(
        """
           A
          7 2
         6 5 3      5A627344""",
        MINI.replace(stock_top=True),
    )
    play(game, *["draw"] * (7 if last_card == "stock" else 8))
    play(game, f"r3c3+{last_card}")
    assert "stock" not in " ".join(legal(game))
    play(game, "recycle")
    assert game.pass_number == 2
    assert waste_tops(game) == ["5d", "Ad", "6d", "2d", "7d", "3d", "4c"]
    assert game.cards_left == 12


def test_fault_09_an_emptied_place_was_accepted_as_partner() -> None:
    game = play(pe.Game(EASY, MINI), "r3c1+r3c3")
    refused(game, "r3c1", "r3c1+r3c3", "r3c1+r3c2", "r3c2+r3c3", "r3c1+waste")
    play(game, "draw", "r3c2+waste")
    refused(game, "r3c2+waste", "r3c2", "r2c1+r3c2")


def test_fault_10_buried_waste_cards_were_playable() -> None:
    game = play(pe.Game(EASY, MINI), "draw", "draw")  # the 5 under the ace would take the 2
    buried, place = str(game.deal.cards[6]), str(game.deal.cards[4])
    assert (buried[0], place[0]) == ("5", "2")
    assert legal(game) == {"r3c1+r3c3", "draw"}
    refused(game, f"{buried}+{place}", "r3c2+waste", "waste+waste")


def test_fault_11_one_9_took_two_4s_with_it() -> None:
    game = pe.Game(
        """
           K
          Q J
         4 9 4      AA223355667788 9TT JQK""",
        pe.rules(rows=3, suits=2),
    )
    assert legal(game) == {"r3c1+r3c2", "r3c2+r3c3", "draw"}
    play(game, "r3c1+r3c2")
    assert game.cards_left == 24
    assert legal(game) == {"draw"}
    refused(game, "r3c2+r3c3", "r3c3")


def test_fault_12_a_removed_card_served_as_partner() -> None:
    game = pe.Game(
        """
           A
          7 2
         3 6 3      4455267A""",
        MINI,
    )
    four, first_three, second_three = (str(game.deal.cards[at]) for at in (6, 3, 5))
    play(game, "draw", f"{four}+{first_three}")
    refused(game, f"{four}+{second_three}", f"{four}+{first_three}", "r3c3+waste")
    play(game, "draw")
    assert "r3c3+waste" in legal(game)  # the other 4


@pytest.mark.parametrize("preset", ["mini", "pyramid", "till_dawn", "giza", "overlap"])
def test_fault_13_cards_vanished_that_make_no_13_or_an_illegal_move_changed_the_game(preset: str) -> None:
    rng = np.random.default_rng(13)
    game = pe.Game(13, preset)
    moves = move_table(game.rules)
    for _ in range(25):
        if game.is_over:
            break
        before = game.copy()
        for move in moves:
            if move in game.legal_moves:
                twin = game.copy()
                twin.play(move)
                gone = vanished(game, twin)
                assert (len(gone) == 0) == move.is_draw
                assert move.is_draw or sum(gone) == game.rules.ranks
            elif rng.random() < 0.2:
                with pytest.raises(IllegalMoveError):
                    game.play(move)
        assert game == before
        game.play(int(rng.choice(game.legal_actions)))


def vanished(before: pe.Game, after: pe.Game) -> list[int]:
    """Ranks of the cards that are left in one position and not in the other."""
    places = before.rules.places
    gone = [int(b & ~a) for b, a in zip(before.state[:2], after.state[:2], strict=True)]
    at = [i for i in range(places) if gone[0] >> i & 1] + [
        places + k for k in range(before.rules.stock_size) if gone[1] >> k & 1
    ]
    return [int(before.ranks[i]) for i in at]


def test_fault_14_the_same_card_could_be_chosen_twice() -> None:
    game = pe.Game(
        """
           A
          2 2
         7 4 3      7A556634""",
        MINI,
    )
    play(game, "draw")
    king = str(game.deal.cards[3])
    refused(game, "r3c1+r3c1", "r3c2+r3c2", "waste+waste", f"{king}+{king}")
    assert legal(game) == {"r3c1", "r3c2+r3c3", "waste", "draw"}


@pytest.mark.parametrize("preset", ["pyramid", "microsoft", "tuts_tomb", "double_pyramid"])
def test_fault_15_recycle_reversed_the_order(preset: str) -> None:
    game = pe.Game(15, pe.rules(preset, draw_count=1, passes=3))
    first = waste_tops(game)
    assert first == [str(card) for card in game.deal.cards[game.rules.places :]]
    for _ in range(2):
        game.play("recycle")
        assert waste_tops(game) == first
    assert not game.is_legal("draw")


def test_fault_16_redo_after_an_undone_recycle_shuffled_anew() -> None:
    game = pe.Game(16, "pyramid")
    first = waste_tops(game)
    game.play("recycle")
    recycled = game.state.tolist()
    game.undo()
    assert game.pass_number == 1
    game.redo()
    assert game.state.tolist() == recycled
    assert waste_tops(game) == first


def test_fault_17_the_same_deal_number_gave_other_cards_after_save_restart_or_update(tmp_path: Path) -> None:
    game = pe.Game(17, "pyramid")
    cards = str(game.deal)
    for _ in range(40):
        game.play(game.legal_actions[0])
    game.save(tmp_path / "game.json")
    loaded = pe.Game.load(tmp_path / "game.json")
    assert loaded == game
    assert str(loaded.deal) == cards
    loaded.restart()
    assert str(loaded.deal) == cards
    assert loaded == pe.Game(17, "pyramid")
    assert cards.startswith("5s 6d Ts 4c 5c Td 2d 2s 7s 7d 8d 2c 6h 8h 4h Qs Kh Kd Qc Kc 5d 9d 3s 3d 8c 9s 3h Qh")


@pytest.mark.parametrize("preset", pe.PRESETS)
def test_fault_18_cards_were_lost_or_doubled_between_zones(preset: str) -> None:
    rng = np.random.default_rng(18)
    game = pe.Game(18, preset)
    plain = Reference(game.rules, game.ranks.tolist())
    moves = move_table(game.rules)
    removed = 0
    while not game.is_over and game.moves_made < 300:
        before = game.copy()
        move = moves.text(game.play(int(rng.choice(game.legal_actions))))
        plain.play(move)
        removed += len(vanished(before, game))
        assert game.cards_left + removed == game.rules.cards
        assert tuple(game.state.tolist()) == plain.packed()


def test_fault_19_no_game_over_after_the_last_draw_without_a_match() -> None:
    game = pe.Game(
        """
           A
          7 2
         6 6 5      7A244335""",
        "mini_one_pass",
    )
    play(game, *["draw"] * 7)
    assert not game.is_over
    play(game, "draw")  # a 5, and nothing takes it
    assert game.is_over
    assert not game.is_won
    assert legal(game) == set()


def test_fault_20_a_row_bonus_was_paid_twice_or_the_score_computed_before_the_removal() -> None:
    game = pe.Game(EASY, MINI.replace(scoring="msc"))
    scores = [game.score]
    for move in EASY_WIN:
        game.play(move)
        scores.append(game.score)
    assert scores == [0, 5, 5, 5 + 5 + 25, 35 + 5 + 50, 90 + 5 + 75]
    for _ in EASY_WIN:
        game.undo()
    assert game.score == 0
    for _ in EASY_WIN:
        game.redo()
    assert game.score == scores[-1]

    two_rows_at_once = pe.Game("4 5A 23", pe.rules(rows=2, ranks=5, suits=1, overlap=True, scoring="msc"))
    assert play(two_rows_at_once, "r2c1").score == 5
    assert play(two_rows_at_once, "r1c1+r2c2").score == 5 + 5 + 25 + 50


def test_fault_21_ace_2_and_10_were_taken_as_thirteen() -> None:
    game = pe.Game(
        """
           K
          Q J
         A 2 T      3456789""",
        pe.rules(rows=3, suits=1),
    )
    assert legal(game) == {"draw"}
    refused(game, "r3c1+r3c2+r3c3", "Ac+2c+Tc", "r3c1+r3c2", "r3c2+r3c3", "r3c1+r3c3")


def test_fault_22_removing_the_first_card_of_a_row_shifted_its_neighbours() -> None:
    game = pe.Game(
        """
           A
          7 2
         3 6 3      4455267A""",
        MINI,
    )
    play(game, "draw", "r3c1+waste", "draw")
    assert legal(game) == {"r3c3+waste", "draw"}  # the other 3 is still the third card of its row
    refused(game, "r3c1+waste", "r3c2+waste", "r2c1")  # and the 6 still covers the 7


def test_fault_23_a_memory_of_a_solver_left_out_part_of_the_position() -> None:
    rng = np.random.default_rng(23)
    one_deck = [rank for rank in range(1, MINI.ranks + 1) for _ in range(MINI.suits)]
    draw_three = {"draw_count": 3, "passes": None}
    for switches in ({}, {"passes": 1}, draw_three, {"stock_top": True, "goal": "all"}):
        rules = MINI.replace(**switches)
        for _ in range(10):
            ranks = rng.permutation(one_deck).tolist()
            deal = pe.Deal.parse("".join("A234567"[rank - 1] for rank in ranks), rules)
            for objective, same in (("win", "win"), ("score", "par"), ("earliest", "earliest"), ("steps", "steps")):
                solution = pe.solve(deal, rules, objective=objective)
                assert (solution.value or 0) == bruteforce.solve(ranks, rules, same), (str(rules), str(deal), objective)


FROM_THE_MIDDLE = (
    # A king of the stock is still to come when only the king on the apex is left: it has to leave before the clear.
    ("mini", "7 55 434 62 7AA236", "draw draw draw draw draw"),
    # Ah + 4c, waste top and stock top, uncover the king 5c, which must leave before the next card covers it.
    (
        "mini:ranks=5,suits=3,passes=unlimited,stock_top=true,pair_stock_waste=true,overlap=true",
        "A A3 223 5A5244453",
        "r3c2+r3c3 draw draw draw",
    ),
)


@pytest.mark.parametrize(("preset", "deal", "moves"), FROM_THE_MIDDLE)
def test_fault_23_also_from_the_middle_of_a_known_game(preset: str, deal: str, moves: str) -> None:
    game = play(pe.Game(deal, pe.rules(preset)), *moves.split())
    plain = Reference(game.rules, game.ranks.tolist())
    for move in moves.split():
        plain.play(move)
    solved_as_searched(game, plain)


@pytest.mark.parametrize(
    "changes",
    [
        "",
        "passes=1,predealt=3",
        "stock_top=true,pair_stock_waste=true,pair_waste_two=true,goal=all",
        "passes=unlimited,overlap=true",
        "draw_count=3,passes=unlimited",
    ],
)
def test_fault_23_also_from_the_middle_of_random_games(changes: str) -> None:
    rng = np.random.default_rng(24)
    rules = pe.rules(f"mini:{changes}")
    one_deck = [rank for rank in range(1, rules.ranks + 1) for _ in range(rules.suits)]
    for _ in range(8):
        ranks = rng.permutation(one_deck).tolist()
        game = pe.Game("".join("A234567"[rank - 1] for rank in ranks), rules)
        plain = Reference(rules, ranks)
        for _ in range(int(rng.integers(1, 12))):
            if game.is_over:
                break
            move = "draw" if game.is_legal("draw") and rng.random() < 0.6 else game.legal_moves[0]
            plain.play(move_table(rules).text(game.play(move)))
        solved_as_searched(game, plain)


def solved_as_searched(game: pe.Game, plain: Reference) -> None:
    """The solver's answers from a position are those of a search through all that can follow."""
    steps = {plain.packed(): 0}
    positions = [plain]
    for position in positions:
        for move in position.legal_moves():
            follower = position.copy()
            follower.play(move)
            if follower.packed() not in steps:
                steps[follower.packed()] = steps[position.packed()] + 1
                positions.append(follower)
    wins = [steps[position.packed()] for position in positions if position.is_won]
    best = {
        "win": int(bool(wins)),
        "score": max(position.score for position in positions),
        "earliest": min((position.cleared_in for position in positions if position.cleared_in), default=0),
        "steps": min(wins, default=0),
    }
    for objective, value in best.items():
        solution = pe.solve(game, objective=objective)
        assert (solution.value or 0) == value, (objective, str(game.deal), game.history)


def test_fault_24_two_copies_of_one_card_were_mixed_up_with_two_decks() -> None:
    game = pe.Game(
        """
           A
          7 2
         3 6 3      4455267A""",
        ALL_CLUBS_TWICE,
    )
    play(game, "draw")
    assert legal(game) == {"r3c1+waste", "r3c3+waste", "draw"}
    refused(game, "3c+4c")  # which 3 of clubs?
    play(game, "r3c3+waste")
    assert [place for place in range(6) if not int(game.state[0]) >> place & 1] == [5]
    play(game, "draw", "3c+4c")
    assert [place for place in range(6) if not int(game.state[0]) >> place & 1] == [3, 5]
    assert [card for card in range(8) if not int(game.state[1]) >> card & 1] == [0, 1]


def test_fault_25_the_overlap_rule_without_the_test_that_the_cover_is_itself_exposed() -> None:
    game = pe.Game(
        """
           A
          6 7
         5 4 3      2234567A""",
        MINI.replace(overlap=True),
    )
    play(game, "r3c2+r3c3", "r2c2")  # the 6 is the only cover of the ace, but lies under the 5
    assert legal(game) == {"draw"}
    refused(game, "r1c1+r2c1")
    play(game, "draw", "r3c1+waste")
    assert legal(game) == {"r1c1+r2c1", "draw"}
    assert play(game, "r1c1+r2c1").is_won
