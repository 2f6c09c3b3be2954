"""Game: laws that hold in every preset, the reasons for refusals, undo and redo, hints, saved games."""

from __future__ import annotations

import copy
import json
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pyramid_env as pe
from pyramid_env.errors import DeckError, IllegalMoveError, PyramidError, SaveError
from pyramid_env.game import Game, HistoryError
from pyramid_env.moves import Kind, Move, move_table

PRESETS = sorted(pe.PRESETS)
ALL_RULES = [
    *PRESETS,
    "tuts_tomb:overlap=on",
    "solitaire13:end_on_exhausted=on",
    "till_dawn:draw_count=3,waste_piles=3,pair_waste_tops=on",
    "mini:scoring=none",
]
LAWS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

EASY = """
                  Kd
                Qh  5c
              9s  Jc  7d
            3d  Ts  2h  Ah
          8s  4c  6h  Qc  Jd
        5h  Ks  3c  9d  Td  Kc
      7c  6d  Th  3h  8d  5s  Kh

      2s As Qd 8c 4s 9h Js Ac 2c 4h 6s 7s
      Jh Tc 8h 5d Ad Qs 9c 3s 7h 4d 6c 2d
"""


def play_random(rules: str, deal: int, seed: int, most: int = 400) -> Game:
    """A random game, up to some number of moves."""
    choose = random.Random(seed)
    game = Game(deal, rules)
    while not game.is_over and game.moves_made < most:
        game.play(choose.choice(game.legal_moves))
    return game


games = st.builds(
    play_random,
    st.sampled_from(ALL_RULES),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**32),
    st.integers(0, 120),
)


def removed(before: Game, after: Game) -> list[pe.Card]:
    """The cards that left between two positions of one deal."""
    places = before.rules.places

    def left(game: Game) -> set[int]:
        pyramid, stock = game.state[:2].tolist()
        return {i for i in range(game.rules.cards) if (pyramid >> i if i < places else stock >> (i - places)) & 1}

    assert left(after) <= left(before)
    return [before.deal.cards[i] for i in sorted(left(before) - left(after))]


# ---- laws ------------------------------------------------------------------------------------------------------------


@LAWS
@given(games)
def test_what_leaves_makes_the_highest_rank_and_nothing_comes_back(game: Game) -> None:
    end = game.copy()
    game.restart()
    for move in end.history:
        before = game.copy()
        game.play(move)
        gone = removed(before, game)
        assert len(gone) == (0 if move.is_draw else 1 if "+" not in str(move) else 2)
        assert sum(card.rank for card in gone) in (0, game.rules.ranks)
        assert game.cards_left == before.cards_left - len(gone)
    assert (game.state == end.state).all()


@LAWS
@given(games)
def test_undo_inverts_play_one_undo_a_move(game: Game) -> None:
    end = game.copy()
    seen = [str(game)]
    for move in reversed(end.history):
        assert game.undo() == move
        seen.append(str(game))
    assert game.moves_made == 0
    assert not game.can_undo
    assert (game.state == Game(game.deal, game.rules).state).all()
    for move, picture in zip(end.history, seen[-2::-1], strict=True):
        assert game.redo() == move
        assert str(game) == picture
    assert game == end


@LAWS
@given(games)
def test_legal_moves_are_just_those_that_play(game: Game) -> None:
    table = move_table(game.rules)
    before = game.copy()
    for action, move in enumerate(table):
        copied = game.copy()
        if action in game.legal_actions:
            copied.play(action)
            assert copied.moves_made == game.moves_made + 1
        else:
            with pytest.raises(IllegalMoveError, match=r".+: .+"):
                copied.play(move)
            assert copied == before
        assert game.is_legal(move) == (action in game.legal_actions)


@LAWS
@given(games)
def test_texts_read_back(game: Game) -> None:
    table = move_table(game.rules)
    for move in game.legal_moves:
        assert game.parse(table.text(move)) == move
        assert game.parse(str(move)) == move
        assert game.parse("+".join(reversed(table.text(move).split("+"))).upper()) == move
        if game.rules.decks == 1:
            assert game.parse(game.describe(move)) == move


@LAWS
@given(games, st.data())
def test_saved_games_come_back(game: Game, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(0, game.moves_made))):
        game.undo()
    again = Game.from_json(game.to_json())
    assert again == game
    assert again.to_json() == game.to_json()
    assert again.redo_path == game.redo_path
    assert again.deal.deal_number == game.deal.deal_number
    assert again.rules.preset == game.rules.preset


@LAWS
@given(games)
def test_every_position_of_a_game_is_a_consistent_start(game: Game) -> None:
    for position in [game.copy(), *(game.copy() for _ in range(min(3, game.moves_made)) if game.undo())]:
        begun = Game.from_state(game.deal, game.rules, position.state)
        assert begun.legal_moves == position.legal_moves
        assert begun.score == position.score
        assert not begun.can_undo
        again = Game.from_json(begun.to_json())
        assert again == begun
        again.restart()
        assert (again.state == position.state).all()


@LAWS
@given(games)
def test_copies_and_pickles_go_on_identically(game: Game) -> None:
    for twin in (copy.copy(game), copy.deepcopy(game), pickle.loads(pickle.dumps(game)), game.copy()):
        assert twin == game
        assert str(twin) == str(game)
        if not game.is_over:
            move = game.legal_moves[-1]
            twin.play(move)
            assert twin != game
            original = game.copy()
            original.play(move)
            assert twin == original


@LAWS
@given(games)
def test_counts_add_up(game: Game) -> None:
    removals = sum(not move.is_draw for move in game.history)
    assert game.draws + game.recycles + removals == game.moves_made == len(game.history)
    assert game.passes_used == 1 + game.recycles
    assert game.pass_number == min(game.passes_used, game.rules.last_pass)
    if game.is_won:
        assert game.is_over
        assert not game.is_stuck
    elif game.is_over:
        assert game.is_stuck


@LAWS
@given(games)
def test_stuck_means_that_drawing_on_finds_no_removal(game: Game) -> None:
    stuck = game.is_stuck
    while game.legal_moves and game.legal_moves[0].is_draw and game.moves_made < 600:
        game.play("draw")
    assert stuck == (not game.legal_moves and not game.is_won)


# ---- reading moves ---------------------------------------------------------------------------------------------------


def test_cards_locations_and_both_at_once_name_a_move() -> None:
    for text in ("8d+5s", "5s+8d", "8D + 5S", "r7c5+r7c6", "r7c6+r7c5", "8d+r7c6", "8♦+5♠"):
        game = Game(EASY)
        assert game.play(text) == Move(Kind.PLACE_PAIR, 25, 26)
    assert Game(EASY).play("Kh") == Game(EASY).play("r7c7") == Move(Kind.PLACE_KING, 27)


@pytest.mark.parametrize("as_index", [int, np.uint8, np.int16, np.int64, np.uint64, np.array])
def test_any_integer_is_an_action_index(as_index: Any) -> None:
    game = Game(EASY)
    assert game.play(as_index(game.legal_actions[0])) == Game(EASY).legal_moves[0]


@pytest.mark.parametrize("value", [True, np.True_, 1.0, np.float32(1), [1], (0, 1, 2), None, np.array([1]), Kind.DRAW])
def test_what_is_no_move_is_refused_by_its_type(value: Any) -> None:
    with pytest.raises(IllegalMoveError, match="expected a Move, a move's text or an action index, got"):
        Game(EASY).play(value)


@pytest.mark.parametrize("value", [-1, 254, 10**30])
def test_an_action_index_out_of_range_is_refused(value: int) -> None:
    with pytest.raises(IllegalMoveError, match=r"expected an action index from 0 to 253, got"):
        Game(EASY).play(value)


def test_with_two_decks_a_text_that_names_two_moves_asks_for_the_location() -> None:
    rules = pe.rules(decks=2, rows=2, ranks=5, suits=2)
    game = Game("5c 4c 4c  Ac Ac 2c 3c 2c 3c 5c Ad Ad 2d 2d 3d 3d 4d 4d 5d 5d", rules)
    game.play("draw")
    text = "4c+Ac"
    with pytest.raises(IllegalMoveError, match=r"4c\+Ac: expected the text of one move.*: r2c1\+waste, r2c2\+waste"):
        game.play(text)
    assert game.play("r2c2+waste")
    game.play("draw")
    assert game.play(text) == Move(Kind.PLACE_WASTE, 1, 0)  # one copy is left: no doubt any more


# ---- why a move is refused -------------------------------------------------------------------------------------------

REASONS = [
    # rules, moves before, move, reason
    ("pyramid", "", "Td+3c", "Td is still covered by 8d, 5s"),
    ("pyramid", "Kh", "Kc+r1c1", "Kc and Kd make 26, not 13; each leaves alone"),
    ("pyramid", "", "Kc", "Kc is still covered by 5s, Kh"),
    ("pyramid", "Kh", "Kc", "Kc is still covered by 5s"),
    ("pyramid", "Kh", "Kh", "Kh has left the game"),
    ("pyramid", "Kh", "r7c7", "Kh has left the game"),
    ("pyramid", "8d+5s", "5s+8c", "5s has left the game"),
    ("pyramid", "draw draw", "2s", "2s leaves only with a J, alone leaves a K"),
    ("pyramid", "draw", "2s+Jd", "Jd is still covered by Td, Kc"),
    ("pyramid", "draw draw draw draw", "5s+8c", None),
    ("pyramid", "draw draw draw draw draw", "5s+8c", "8c is buried in the waste under 4s"),
    ("pyramid", "draw " * 24, "Th+As", "Th and As make 11, not 13"),
    ("pyramid", "draw " * 24, "3h+Tc", "Tc is buried in the waste under 2d, 6c, 4d and 7 more"),
    ("pyramid", "", "8d+6d", "8d and 6d make 14, not 13"),
    ("pyramid", "", "Kh+3h", "Kh and 3h make 16, not 13; Kh leaves alone"),
    ("pyramid", "", "8d+8d", "8d is named twice, a card can't leave with itself"),
    ("pyramid", "", "r7c7+r7c7", "Kh is named twice, a card can't leave with itself"),
    ("pyramid", "", "8d+5d", "5d is still in the stock, face down"),
    ("pyramid", "", "stock", "the stock is face down, its top card can't leave"),
    ("pyramid", "", "waste", "the waste is empty"),
    ("pyramid", "draw", "waste+waste", "the waste holds one card only"),
    ("pyramid", "draw " * 7, "2s+Js", "2s is buried in the waste under Js, 9h, 4s and 3 more"),
    ("pyramid", "draw " * 6, "4s+9h", "the two uppermost cards of a waste do not pair under pyramid"),
    ("pyramid", "", "recycle", "only an empty stock is recycled, 24 cards are left to draw"),
    ("one_pass", "draw " * 24, "draw", "no pass is left, this is pass 1 of 1"),
    ("one_pass", "draw " * 24, "recycle", "no pass is left, this is pass 1 of 1"),
    ("microsoft", "", "8d+5d", "5d is still in the stock, under its top card"),
    ("microsoft", "", "2s+8d", "2s and 8d make 10, not 13"),
    ("microsoft", "draw draw", "As+Qd", None),
    ("microsoft:pair_stock_waste=off", "draw draw", "As+Qd", "the stock's top and a waste top do not pair under"),
    ("microsoft", "draw " * 6, "4s+9h", "the two uppermost cards of a waste do not pair under microsoft"),
    ("till_dawn", "draw " * 6, "4s+9h", None),
    ("pyramid:draw_count=3,waste_piles=3", "draw draw", "9h+4s", "the tops of two wastes do not pair under"),
    ("solitaire13_three_piles", "draw draw", "9h+4s", None),
    ("solitaire13_three_piles", "draw", "r7c1+waste4", "expected a waste pile from 1 to 3, got waste4"),
    ("solitaire13_three_piles", "", "r7c1+waste2", "waste 2 is empty"),
    ("pyramid", "", "r8c1", "expected a place of a pyramid of 7 rows, got r8c1"),
    ("pyramid", "", "r3c4", "expected a place of a pyramid of 7 rows, got r3c4"),
    ("pyramid", "", "As+2s+Th", "expected one card or two, got 3"),
    ("pyramid", "", "8d+", "expected a move such as"),
    ("pyramid", "", "", "expected a move such as"),
    ("pyramid", "", "hello", "expected a move such as 8d[+]5s, Kh, r2c1[+]waste or draw, got 'hello'"),
    ("pyramid", "8d+5s", "Td+3h", None),
    ("pyramid", "7c+6d", "Ks+5h", "Ks and 5h make 18, not 13; Ks leaves alone"),
]


@pytest.mark.parametrize(("rules", "before", "move", "reason"), REASONS)
def test_a_refusal_says_why(rules: str, before: str, move: str, reason: str | None) -> None:
    game = Game(EASY, rules)
    for earlier in before.split():
        game.play(earlier)
    if reason is None:
        game.play(move)
        return
    as_it_was = game.copy()
    with pytest.raises(IllegalMoveError, match=reason) as caught:
        game.play(move)
    assert repr(move)[1:-1] in str(caught.value)
    assert game == as_it_was


def test_a_move_to_a_game_that_is_over_says_so() -> None:
    game = Game("5c 4d 2c 3c Ac Ad 2d 3d 5d 4c", pe.rules(rows=2, ranks=5, suits=2, passes=1))
    for move in ("draw", "draw", "draw", "draw", "draw", "draw", "draw"):
        game.play(move)
    assert game.is_over
    for move in ("draw", "recycle", "5c", "r1c1", game.legal_actions or 0):
        with pytest.raises(IllegalMoveError, match="the game is over: no move is left"):
            game.play(move)
    won = Game("5c 4d Ac 3c 4c 2c Ad 2d 3d 5d", game.rules)
    won.play("4d+Ac")
    won.play("5c")
    assert won.is_won
    with pytest.raises(IllegalMoveError, match="the game is over: it is won"):
        won.play("draw")


def test_a_move_that_the_rules_lack_is_refused() -> None:
    with pytest.raises(IllegalMoveError, match="expected a move of pyramid, got"):
        Game(EASY).play(Move(Kind.STOCK_KING))


# ---- undo, redo, restart ---------------------------------------------------------------------------------------------


def test_nothing_to_undo_or_redo_is_an_error_of_its_own() -> None:
    game = Game(EASY)
    with pytest.raises(HistoryError, match="undo: expected a move to take back, got a game at its start"):
        game.undo()
    with pytest.raises(HistoryError, match="redo: expected a move that was taken back, got none"):
        game.redo()


def test_a_new_move_discards_the_redo_path_also_when_it_is_the_same() -> None:
    game = Game(EASY)
    for move in ("Kh", "8d+5s", "Kc"):
        game.play(move)
    for _ in range(3):
        game.undo()
    assert [str(move) for move in game.redo_path] == ["r7c7", "r7c5+r7c6", "r6c6"]
    game.play("Kh")
    assert game.redo_path == ()
    assert not game.can_redo


def test_a_refused_move_keeps_the_redo_path() -> None:
    game = Game(EASY)
    game.play("Kh")
    game.undo()
    with pytest.raises(IllegalMoveError):
        game.play("Kc")
    assert game.can_redo


def test_restart_deals_the_same_cards_and_forgets_the_moves() -> None:
    game = Game(EASY)
    game.play("Kh")
    game.restart()
    assert game == Game(EASY)
    assert not game.can_redo


@pytest.mark.parametrize("value", [None, 5, b"draw", ["draw"]])
def test_symptom_parsing_what_is_no_text_was_an_attribute_error(value: Any) -> None:
    with pytest.raises(IllegalMoveError, match=r"expected a move's text such as 8d.5s or draw, got "):
        Game(EASY).parse(value)


@pytest.mark.parametrize("text", ["r" + "9" * 5000 + "c1", "r1c" + "9" * 5000, "waste" + "9" * 5000, "x" * 10**6])
def test_symptom_a_huge_number_in_a_move_was_a_bare_value_error(text: str) -> None:
    with pytest.raises(IllegalMoveError, match=r"at most 100 characters, got \d+ characters: ") as caught:
        Game(EASY).play(text)
    assert len(str(caught.value)) < 200
    assert not Game(EASY).is_legal(text)


# ---- making games ----------------------------------------------------------------------------------------------------


def test_a_game_takes_deals_numbers_and_texts() -> None:
    assert Game(42) == Game(pe.Deal.number(42)) == Game(np.int64(42)) == Game(str(pe.Deal.number(42)))
    assert Game(None).deal.deal_number is not None
    assert Game(EASY).deal.deal_number is None


def test_a_deal_of_another_deck_is_refused() -> None:
    with pytest.raises(DeckError, match="expected 104 cards, got 52"):
        Game(pe.Deal.number(1), "double_pyramid")
    with pytest.raises(DeckError, match="deal number 7 has under pyramid"):
        Game(pe.Deal(pe.Deal.number(8).cards, 7))


def test_symptom_a_state_of_no_deal_was_put_on_a_random_one() -> None:
    for value in (None, 1.5, ["Kh"]):
        with pytest.raises(DeckError, match="deal: expected a Deal, a deal number or a deal as text, got "):
            Game.from_state(value, "pyramid", Game(1).state)
    with pytest.raises(DeckError, match=r"deal number: expected a whole number from 0 to .*, got True"):
        Game(True)


def test_games_are_equal_by_content_and_can_not_be_hashed() -> None:
    assert Game(1) != Game(2)
    assert Game(1) != Game(1, "one_pass")
    assert Game(1) != 1
    with pytest.raises(TypeError):
        hash(Game(1))


FULL, STOCK = (1 << 28) - 1, (1 << 24) - 1

BAD_STATES = [
    ((FULL, STOCK, 0, 1), "expected whole numbers pyramid, stock, cursor, pass, cleared"),
    ((float(FULL), STOCK, 0, 1, 0), "expected whole numbers"),
    ((FULL, [STOCK], 0, 1, 0), "expected whole numbers"),
    ((1 << 28, STOCK, 0, 1, 0), "expected pyramid bits"),
    ((FULL, 1 << 24, 0, 1, 0), "expected stock bits"),
    ((FULL, -1, 0, 1, 0), "expected stock bits"),
    ((FULL, STOCK, 25, 1, 0), "expected a cursor from 0 to 24, got 25"),
    ((FULL, STOCK, -1, 1, 0), "expected a cursor from 0 to 24, got -1"),
    ((FULL, STOCK & ~2, 1, 2, 0), "expected the cursor on the next stock card left, 2, got 1"),
    ((FULL, STOCK, 0, 0, 0), "expected a pass from 1 to 3, got 0"),
    ((FULL, STOCK, 0, 4, 0), "expected a pass from 1 to 3, got 4"),
    ((FULL, STOCK, 0, 1, 1), "expected cleared 0 while pyramid cards are left"),
    ((0, STOCK, 0, 1, 0), "expected the pyramid cleared in a pass from 1 to 1, got 0"),
    ((0, STOCK, 0, 3, 2), "expected the clear to have ended the game in pass 3"),
    ((FULL & ~1, STOCK, 0, 1, 0), "place 0 is empty but a card that lay on it is left"),
    ((FULL, STOCK & ~(1 << 20), 3, 1, 0), "stock card 20 is gone but was never turned"),
    ((FULL & ~(1 << 21), STOCK, 0, 1, 0), "expected as many cards of rank"),
    ((FULL, STOCK & ~0b110, 3, 1, 0), "no two stock cards pair"),
]


@pytest.mark.parametrize(("state", "reason"), BAD_STATES)
def test_a_state_that_no_play_leads_to_is_refused(state: Any, reason: str) -> None:
    with pytest.raises(PyramidError, match=reason):
        Game.from_state(EASY, "pyramid", state)


def test_a_state_in_the_middle_of_a_pass_with_a_pair_gone_is_fine() -> None:
    game = Game.from_state(EASY, "pyramid", (FULL & ~(0b11 << 25), STOCK, 5, 2, 0))
    assert game.pass_number == game.passes_used == 2
    assert game.cards_left == 50


# ---- hints -----------------------------------------------------------------------------------------------------------


def test_the_plain_hint_is_a_king_then_a_pair_then_a_draw() -> None:
    game = Game(EASY)
    assert game.describe(game.hint() or 0) == "Kh"
    game.play("Kh")
    assert game.describe(game.hint() or 0) == "7c+6d"
    end = play_random("pyramid", 3, 3)
    assert end.is_over
    assert end.hint() is None
    assert end.hint(solver=True) is None


def test_hints_of_the_solver_lead_to_a_shortest_win() -> None:
    for deal in range(12):
        game = Game(deal, "mini")
        best = pe.solve(game, objective="steps")
        while not game.is_over and best.moves:
            hint = game.hint(solver=True)
            assert hint is not None
            game.play(hint)
        if best.moves:
            assert game.is_won
            assert game.moves_made == len(best.moves)


def test_hints_of_the_solver_lead_to_the_best_score_where_no_win_is_possible() -> None:
    hopeless = [
        deal for deal in range(60) if not pe.solve(pe.Deal.number(deal, "mini_one_pass"), "mini_one_pass").value
    ]
    for deal in hopeless[:5]:
        game = Game(deal, "mini_one_pass")
        best = pe.solve(game, objective="score").value
        while not game.is_over:
            game.play(game.hint(solver=True) or 0)
        assert game.score == best


def test_limits_without_the_solver_are_refused() -> None:
    with pytest.raises(PyramidError, match="expected solver=True"):
        Game(1).hint(max_seconds=1)


# ---- saved games -----------------------------------------------------------------------------------------------------


def saved(**changes: Any) -> str:
    """A saved game with some of its parts replaced; a None removes the part."""
    game = Game(42, "mini")
    for _ in range(4):
        game.play(game.legal_actions[0])
    game.undo()
    parts = json.loads(game.to_json())
    for path, value in changes.items():
        *outer, last = path.split("__")
        inside = parts
        for name in outer:
            inside = inside[name]
        if value is ...:
            del inside[last]
        else:
            inside[last] = value
    return json.dumps(parts)


BAD_SAVES = [
    ({"format": "chess"}, 'expected a saved game, an object with "format"'),
    ({"version": 2}, "version: expected 1 at most, got 2"),
    ({"version": "1"}, "version: expected 1 at most, got '1'"),
    ({"version": True}, "version"),
    ({"colour": 1}, "saved game: expected the keys .*, got unknown 'colour'"),
    ({"redo": ...}, "saved game: expected the keys .*, got missing 'redo'"),
    ({"rules__jokers": 2}, "rules: expected the keys .*, got unknown 'jokers'"),
    ({"rules__passes": ...}, "rules: expected the keys .*, got missing 'passes'"),
    ({"rules__passes": 9}, "rules: passes: expected a whole number from 1 to 3"),
    ({"rules__rows": 9}, "rules: inconsistent rules"),
    ({"rules__preset": 3}, "rules: preset: expected a name, got 3"),
    ({"rules": []}, "rules: expected an object"),
    ({"deal__cards": "Ac Ad"}, "deal: not a deck"),
    ({"deal__cards": 7}, "deal: expected a deck as text"),
    ({"deal__number": 43}, "deal: number: expected the number of these cards or null, got 43"),
    ({"deal__number": -1}, "deal: deal number: expected a whole number"),
    ({"deal__number": "42"}, "deal: deal number: expected a whole number"),
    ({"start": 5}, "start: position: expected an object"),
    ({"start": {"pyramid": "0x3f"}}, "start: position: expected the keys"),
    (
        {"start": {"pyramid": 63, "stock": "0xff", "cursor": 0, "pass": 1, "cleared": 0}},
        "start: pyramid: expected bits such as",
    ),
    (
        {"start": {"pyramid": "0x3f", "stock": "0xff", "cursor": 0.5, "pass": 1, "cleared": 0}},
        "start: cursor: expected a small whole number, got 0.5",
    ),
    (
        {"start": {"pyramid": "0x3e", "stock": "0xff", "cursor": 0, "pass": 1, "cleared": 0}},
        "start: position .*: place 0 is empty",
    ),
    ({"moves": "draw"}, "moves: expected a list of moves, got 'draw'"),
    ({"moves": ["draw", 3]}, r"moves\[1\]: expected a move as text, got 3"),
    ({"moves": ["draw", "r1c1"]}, r"moves\[1\]: r1c1: .*"),
    ({"redo": ["draw", "r1c1"]}, r"redo\[1\]: r1c1: .*"),
]


@pytest.mark.parametrize(("changes", "reason"), BAD_SAVES)
def test_a_save_that_can_not_be_read_says_what_is_wrong(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(SaveError, match=reason):
        Game.from_json(saved(**changes))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "NaN", '"pyramid_env.game"', "[" * 100_000, "1" * 5000, "{}"])
def test_a_save_that_is_no_game_is_refused(text: str) -> None:
    with pytest.raises(SaveError, match="expected"):
        Game.from_json(text)


def test_a_save_with_a_key_twice_is_refused() -> None:
    twice = saved().replace('"redo":', '"moves": [], "redo":')
    with pytest.raises(SaveError, match="expected each key once, got 'moves' several times"):
        Game.from_json(twice)


def test_files_are_whole_or_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "game.json"
    game = Game(5, "till_dawn")
    game.save(path)
    assert Game.load(path) == game
    assert Game.load(str(path)) == game
    game.play("draw")
    monkeypatch.setattr(Game, "to_json", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        game.save(path)
    monkeypatch.undo()
    assert Game.load(path) == Game(5, "till_dawn")
    assert [file.name for file in tmp_path.iterdir()] == ["game.json"]


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SaveError, match=r"game\.json: expected JSON in UTF-8"):
        Game.load(path)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(SaveError, match=r"game\.json: damaged"):
        Game.load(path)
    with pytest.raises(FileNotFoundError):
        Game.load(tmp_path / "none.json")


def test_a_saved_game_looks_like_this() -> None:
    game = Game(7, "mini")
    game.play("draw")
    parts = json.loads(game.to_json())
    assert list(parts) == ["format", "version", "rules", "deal", "start", "moves", "redo"]
    assert parts["format"] == "pyramid_env.game"
    assert parts["deal"] == {"number": 7, "cards": str(game.deal)}
    assert parts["start"] is None
    assert parts["moves"] == ["draw"]
