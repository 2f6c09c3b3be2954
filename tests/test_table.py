"""The table without a browser: what a person does at it, what is shown and what is kept, also where things go wrong."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import random
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from conftest import needs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pyramid_env as pe
from pyramid_env import Deal, Game
from pyramid_env.errors import PyramidError
from pyramid_env.render import look, spots_of
from pyramid_env.table import Session, Store
from pyramid_env.table.attached import AttachedEnv
from pyramid_env.table.clock import Clock
from pyramid_env.table.events import LONGEST_MISTAKE
from pyramid_env.table.explain import open_cards
from pyramid_env.table.keeper import last_rules
from pyramid_env.table.live import LiveGame
from pyramid_env.table.preferences import Preferences
from pyramid_env.table.store import StoreError

ROOT = Path(__file__).parent.parent
PRESETS = sorted(pe.PRESETS)
ODD_RULES = ["microsoft:passes=1", "till_dawn:match_games=2", "pyramid:rows=5,ranks=9", "pyramid:scoring=none"]
LARGEST_STATE = 200_000
OWN_CARDS = str(Deal.number(5))


class Now:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def passes(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table.sqlite3"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store(path, timeout_s=0.1) as opened:
        yield opened


def raw(path: Path, statement: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def send(session: Session, kind: str, **more: Any) -> dict[str, Any]:
    session.handle({"type": kind, **more})
    return session.state()


def told(session: Session) -> str:
    message = session.state()["message"]
    assert set(message) == {"text", "kind"}
    return f"{message['kind']}: {message['text']}"


def play(session: Session, move: pe.Move | str) -> dict[str, Any]:
    """A move as a page sends it: spots, and the cards that lie there."""
    chosen = session.game.parse(move) if isinstance(move, str) else move
    if chosen.is_draw:
        return send(session, "play", spots=["draw"], cards=[])
    spots = list(spots_of(chosen))
    return send(session, "play", spots=spots, cards=[open_cards(session.game)[spot] for spot in spots])


def play_all(session: Session, moves: tuple[pe.Move, ...]) -> None:
    for move in moves:
        play(session, move)


@cache
def line(rules: str, number: int, won: bool) -> tuple[pe.Move, ...]:
    """Moves that win or lose a deal."""
    if won:
        return pe.solve(Deal.number(number, rules), rules, objective="steps").moves
    chance = random.Random(1)
    while True:
        game = Game(number, rules)
        while not game.is_over:
            game.play(chance.choice(game.legal_moves))
        if not game.is_won:
            return game.history


@cache
def winnable(rules: str = "mini") -> int:
    return next(number for number in range(1000) if len(line(rules, number, True)) > 4)


# ---- events ----------------------------------------------------------------------------------------------------------

HUGE = 10**5000
MALFORMED: list[Any] = [
    None, [], "undo", 3, {}, {"type": None}, {"type": []}, {"type": "nonsense"}, {"type": HUGE}, {"type": "x" * 10**6},
    {"type": "play"}, {"type": "play", "spots": []}, {"type": "play", "spots": 5}, {"type": "play", "spots": "r7c1"},
    {"type": "play", "spots": ["r7c1", "r7c2", "r7c3"]}, {"type": "play", "spots": [None]},
    {"type": "play", "spots": [HUGE]}, {"type": "play", "spots": ["x" * 10**6]}, {"type": "play", "spots": ["\ud800"]},
    {"type": "play", "spots": ["r7c1"], "cards": 3}, {"type": "play", "spots": ["r7c1"], "cards": [[]]},
    {"type": "play", "spots": ["r7c1"], "cards": ["5s", "8d"]}, {"type": "play", "spots": ["r9c9"]},
    {"type": "play", "spots": ["r7c1", "r7c1"]}, {"type": "play", "spots": ["stock", "stock"]},
    {"type": "play", "spots": ["draw", "draw"]}, {"type": "play", "spots": ["waste1.1"]},
    {"type": "play", "spots": ["waste7"]}, {"type": "play", "spots": ["recycle"]}, {"type": "play", "spots": ["", ""]},
    {"type": "new", "deal": -1}, {"type": "new", "deal": True}, {"type": "new", "deal": 1.5},
    {"type": "new", "deal": []}, {"type": "new", "deal": {}}, {"type": "new", "deal": HUGE},
    {"type": "new", "deal": -HUGE}, {"type": "new", "deal": "9" * 5000}, {"type": "new", "deal": 2**63},
    {"type": "new", "deal": "x" * 10**6}, {"type": "new", "deal": "Kd Kd"}, {"type": "new", "deal": "٣"},
    {"type": "new", "winnable": "yes"}, {"type": "new", "deal": float("nan")},
    {"type": "rules"}, {"type": "rules", "rules": None}, {"type": "rules", "rules": []},
    {"type": "rules", "rules": "pyramidd"}, {"type": "rules", "rules": "pyramid:rows=99"},
    {"type": "rules", "rules": "x" * 10**6}, {"type": "rules", "rules": "pyramid:passes=" + "9" * 900},
    {"type": "pause"}, {"type": "pause", "on": 1}, {"type": "pause", "on": "false"},
    {"type": "hint", "solver": "no"}, {"type": "favourite", "rules": "pyramid"}, {"type": "favourite", "on": True},
    {"type": "favourite", "rules": "x", "on": True}, {"type": "favourite", "rules": [], "on": True},
    {"type": "preference"}, {"type": "preference", "name": "theme"}, {"type": "preference", "name": []},
    {"type": "preference", "name": "favourites", "value": []}, {"type": "preference", "name": "theme", "value": "pink"},
    {"type": "preference", "name": "theme", "value": []}, {"type": "preference", "name": "theme", "value": HUGE},
    {"type": "preference", "name": "large_cards", "value": 1}, {"type": "preference", "name": "auto_pause"},
    {"type": "undo"}, {"type": "redo"},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MALFORMED)))  # by number: pytest can't print them all
def test_an_event_that_is_none_is_one_clear_message_and_changes_nothing(number: int) -> None:
    event, session = MALFORMED[number], Session("pyramid", 42)
    game, before = session.game.copy(), session.state()
    session.handle(event)
    after = session.state()
    assert session.game == game
    assert after["message"]["kind"] == "error"
    assert 5 < len(after["message"]["text"]) <= LONGEST_MISTAKE
    assert "\n" not in after["message"]["text"]
    assert not any(word in after["message"]["text"] for word in ("object has no", "unhashable", "NoneType"))
    assert after["version"] > before["version"]
    assert {**after, "version": 0, "message": 0} == {**before, "version": 0, "message": 0}
    json.dumps(after).encode()
    after["message"]["text"].encode()


def test_every_event_does_what_it_says() -> None:
    session = Session("pyramid", 42)
    assert set(session.events()) == {
        "play", "undo", "redo", "restart", "hint", "outlook", "new", "daily", "rules", "pause", "awake", "idle",
        "statistics", "favourite", "preference",
    }  # fmt: skip
    assert play(session, "draw")["made"] == 1
    assert send(session, "undo")["can_redo"]
    assert send(session, "redo")["made"] == 1
    assert send(session, "restart")["made"] == 0
    state = send(session, "hint")
    assert (state["hint"], state["message"]) == (["r7c4"], {"text": "Play Kd.", "kind": "info"})
    assert send(session, "hint", solver=True)["message"]["text"].endswith(", says the solver.")
    assert "can still be won" in send(session, "outlook")["message"]["text"]
    assert send(session, "new", deal=" 0007 ")["deal"] == "7"
    assert send(session, "new", deal=8)["deal"] == "8"
    assert int(send(session, "new", deal="  ")["deal"]) >= 1_000_000
    assert send(session, "new", deal=OWN_CARDS)["deal_text"] == OWN_CARDS
    assert pe.solve(Deal.number(int(send(session, "new", winnable=True)["deal"]))).value
    assert send(session, "daily")["deal"] == str(Deal.daily().deal_number)
    state = send(session, "rules", rules="microsoft:passes=1")
    assert (state["rules"], state["pass_text"], state["score_word"]) == ("microsoft:passes=1", "pass 1 of 1", "points")
    assert send(session, "pause", on=True)["paused"]
    assert not send(session, "pause", on=False)["paused"]
    version = session.version
    assert send(session, "awake")["version"] == version
    assert send(session, "statistics")["statistics"] == []
    assert send(session, "preference", name="theme", value="dark")["preferences"]["theme"] == "dark"
    session.handle(MappingProxyType({"type": "favourite", "rules": "giza", "on": True}))
    assert session.state()["presets"][0] == {"rules": "giza", "title": "Giza", "favourite": True}


def test_an_event_is_one_change() -> None:
    session = Session("pyramid", 42)
    changes: list[int] = []
    session.on_change = lambda: changes.append(session.version)
    events: list[dict[str, Any]] = [
        {"type": "play", "spots": ["draw"]}, {"type": "undo"}, {"type": "redo"}, {"type": "restart"}, {"type": "undo"},
        {"type": "hint"}, {"type": "new", "deal": 7}, {"type": "daily"}, {"type": "rules", "rules": "mini"},
        {"type": "pause", "on": True}, {"type": "play", "spots": ["draw"]}, {"type": "pause", "on": False},
        {"type": "statistics"}, {"type": "nonsense"}, {"type": "preference", "name": "theme", "value": "dark"},
    ]  # fmt: skip
    for count, event in enumerate(events, 1):
        session.handle(event)
        assert len(changes) == count, event
    session.new_game(9)
    session.game.play("draw")
    assert changes == list(range(1, len(events) + 3))


@pytest.mark.parametrize("rules", [*PRESETS, *ODD_RULES])
def test_all_moves_of_all_rules_are_played_by_their_spots(rules: str) -> None:
    session, plain, chance = Session(rules, 3), Game(3, rules), random.Random(3)
    while not plain.is_over and plain.moves_made < 40:
        state = session.state()
        assert [move["text"] for move in state["moves"]] == [plain.describe(move) for move in plain.legal_moves]
        assert [move["spots"] for move in state["moves"]] == [list(spots_of(move)) for move in plain.legal_moves]
        move = chance.choice(plain.legal_moves)
        plain.play(move)
        assert play(session, move)["made"] == plain.moves_made
    assert session.game == plain
    while plain.can_undo:
        plain.undo()
        send(session, "undo")
        assert session.game == plain
    while plain.can_redo:
        plain.redo()
        send(session, "redo")
    assert session.game == plain


def test_rules_and_deals_in_all_spellings() -> None:
    own = pe.Rules(rows=5, ranks=9, passes=2)
    assert Session(own, 3).state()["rules"] == str(own)
    assert Session("mini", str(Deal.number(5, "mini"))).game.deal == Deal.number(5, "mini")
    assert Session("pyramid", "42").game.deal.deal_number == 42
    assert Session("pyramid", Deal.daily()).state()["deal"] == str(Deal.daily().deal_number)
    assert Session("pyramid", 2**63 - 1).state()["deal"] == "9223372036854775807"  # JavaScript's numbers end at 2^53
    for rules, deal in (("nonsense", 1), ("pyramid", "Kd"), ("pyramid", -1), ("mini", Deal.number(1))):
        with pytest.raises(PyramidError):
            Session(rules, deal)
    assert play(session := Session("mini", 1), session.game.legal_moves[0])["made"] == 1


# ---- play ------------------------------------------------------------------------------------------------------------


def test_cards_that_lie_there_no_more_are_not_played() -> None:
    session = Session("pyramid", 42)
    spots, before = ["r7c4"], session.game.copy()
    assert open_cards(session.game)["r7c4"] == "Kd"
    for cards in (["Ks"], ["Kd", "Kd"], [""], ["2c"]):
        send(session, "play", spots=spots, cards=cards)
        assert session.game == before
        assert told(session).startswith(f"error: {'+'.join(filter(None, cards)) or 'no card'}: the table has changed")
    send(session, "play", spots=spots, cards=["Kd"])
    assert session.game.moves_made == 1
    send(session, "play", spots=spots, cards=["Kd"])
    assert told(session) == "error: Kd: the table has changed, no card lies there now"


def test_a_move_that_is_none_is_explained_by_its_cards() -> None:
    session = Session("till_dawn", 42)
    for spots, said in (
        (["r7c1", "r7c2"], "2s+7d: 2s and 7d make 9, not 13"),
        (["r1c1"], f"{open_cards(session.game)['r1c1']}: "),
        (["r9c9"], "r9c9: expected a place of a pyramid of 7 rows, got r9c9"),
        (["waste1"], "waste1: the waste is empty"),
        (["nonsense"], "play: expected the spots of one card or two"),
        (["3h"], "play: expected the spots of one card or two"),  # a card: it may lie face down
        (["r7c4"], ""),  # the king
        (["r7c4"], "r7c4: Kd has left the game"),
    ):
        send(session, "play", spots=spots)
        assert told(session).removeprefix("error: ").startswith(said), told(session)
    assert "face down" in send(Session("pyramid", 42), "play", spots=["stock"])["message"]["text"]


def test_two_decks_name_a_card_twice_and_the_one_at_the_spot_is_explained() -> None:
    for number in range(30):
        session = Session("double_pyramid", number)
        lying, moves = open_cards(session.game), session.state()["moves"]
        taken = [sorted(move["spots"]) for move in moves]
        for spots in itertools.combinations(lying, 2):
            cards = [lying[spot] for spot in spots]
            if "+".join(cards) in [move["text"] for move in moves] and sorted(spots) not in taken:
                send(session, "play", spots=list(spots), cards=cards)
                assert told(session).startswith(f"error: {'+'.join(cards)}: ")
                assert "is covered by" in told(session)
                return
    raise AssertionError("expected a covered copy of a card that plays")


def test_undo_and_redo_know_no_end() -> None:
    session = Session("tuts_tomb", 1)
    for _ in range(300):
        session.handle({"type": "play", "spots": ["draw"]})
    made = session.game.moves_made
    assert made > 200
    for left in range(made, 0, -1):
        session.handle({"type": "undo"})
        assert session.game.moves_made == left - 1
    assert send(session, "undo")["message"]["kind"] == "error"
    for _ in range(made):
        session.handle({"type": "redo"})
    assert session.game.moves_made == made


def test_the_end_is_said_plainly_with_what_to_do_next() -> None:
    number = winnable()
    session = Session("mini", number)
    play_all(session, line("mini", number, False))
    assert told(session).startswith("info: No moves left, ")
    assert all(word in told(session) for word in ("Undo", "Restart", "New"))
    assert send(session, "hint")["message"]["text"] == "The game is over: there is no move to show."
    assert send(session, "outlook")["message"]["text"] == "The game is over."
    assert send(session, "play", spots=["r1c1"])["message"]["text"] == "The game is over."
    send(session, "restart")
    play_all(session, line("mini", number, True))
    assert told(session).startswith("good: Won in 0:00 with ")


def test_an_end_that_python_plays_is_told_too() -> None:
    session = Session("mini", winnable())
    *moves, last = line("mini", winnable(), True)
    play_all(session, tuple(moves))
    send(session, "hint")
    session.game.play(last)
    assert told(session).startswith("good: Won")
    session.game.undo()
    send(session, "pause", on=True)
    session.game.play(last)
    state = session.state()
    assert (state["paused"], state["svg"] != "", state["message"]["kind"]) == (False, True, "good")


@pytest.mark.parametrize(
    "rules", ["pyramid", "one_pass", "solitaire13", "solitaire13_three_piles", "till_dawn", "double_pyramid"]
)
def test_every_control_of_the_rule_pages_works_in_each_of_their_presets(
    rules: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyramid_env.table.session.SOLVER_SECONDS", 0.2)
    now = Now()
    session = Session("mini", 1, store=store, now=now)
    state = send(session, "rules", rules=rules)
    assert (state["rules"], state["made"], state["pass_text"][:6]) == (rules, 0, "pass 1")
    state = send(session, "new", deal="42")
    assert (state["deal"], state["cards_left"], state["match"] is not None) == (
        "42", session.rules.cards, rules == "till_dawn"
    )  # fmt: skip
    for made in (1, 2, 3):
        state = send(session, "play", spots=["draw"])
        assert (state["made"], state["score"], state["score_word"]) == (made, -session.rules.cards, "par")
    start = send(session, "restart")
    assert (start["made"], start["can_undo"], start["svg"]) == (0, False, Session(rules, 42).state()["svg"])
    play(session, session.game.legal_moves[0])
    send(session, "play", spots=["draw"])
    svg = session.state()["svg"]
    for made in (1, 0):
        assert send(session, "undo")["made"] == made
    for made in (1, 2):
        assert send(session, "redo")["made"] == made
    assert session.state()["svg"] == svg
    assert set(send(session, "hint")["hint"]) in [set(move["spots"]) for move in session.state()["moves"]]
    assert "says the solver" in send(session, "hint", solver=True)["message"]["text"]
    assert re.search(r"won|win|Not decided", send(session, "outlook")["message"]["text"])
    now.passes(30)
    assert send(session, "pause", on=True)["svg"] == ""
    now.passes(30)
    assert send(session, "pause", on=False)["elapsed_s"] == 30.0
    for name in ("large_cards", "four_colours"):
        svg = session.state()["svg"]
        assert send(session, "preference", name=name, value=True)["svg"] != svg
    assert send(session, "favourite", rules=rules, on=True)["presets"][0]["favourite"]
    state = Session(rules, store=store).state()
    assert (state["deal"], state["made"], state["elapsed_s"]) == ("42", 2, 30.0)
    now.passes(400)
    assert session.state()["paused"]
    assert not send(session, "preference", name="auto_pause", value=False)["preferences"]["auto_pause"]
    assert int(send(session, "new")["deal"]) >= 1_000_000
    assert send(session, "statistics")["statistics"][0]["played"] == 1
    number = int(send(session, "new", winnable=True)["deal"])
    assert pe.solve(Deal.number(number, rules), rules).value == 1
    assert send(session, "daily")["deal"] == str(Deal.daily().deal_number)
    assert session.state()["statistics"][0]["played"] == 1


# ---- results ---------------------------------------------------------------------------------------------------------


def results(store: Store, rules: str = "mini") -> list[tuple[str, bool, bool]]:
    return [(each.deal, each.won, each.helped) for each in store.results(rules)]


def test_a_loss_that_undo_turns_into_a_win_is_one_win(store: Store) -> None:
    number = winnable()
    session = Session("mini", number, store=store)
    play_all(session, line("mini", number, False))
    assert results(store) == [(str(number), False, False)]
    while session.game.can_undo:
        send(session, "undo")
    play_all(session, line("mini", number, True))
    assert results(store) == [(str(number), True, False)]
    send(session, "restart")
    play_all(session, line("mini", number, False))
    send(session, "new", deal=1)
    assert results(store) == [(str(number), True, False)]  # a win stays one
    assert send(session, "new", deal=number)["statistics"][0]["played"] == 1
    play_all(session, line("mini", number, False))
    assert results(store)[1:] == [(str(number), False, False)]  # another attempt


def test_a_deal_that_is_left_after_a_move_counts_and_an_untouched_one_leaves_no_trace(store: Store, path: Path) -> None:
    session = Session("mini", 1, store=store)
    for deal in (2, 3):
        send(session, "new", deal=deal)
        send(session, "hint", solver=True)
        send(session, "outlook")
        send(session, "pause", on=True)
    session.close()
    assert results(store) == []
    assert raw(path, "SELECT * FROM saves") == []
    send(session, "pause", on=False)
    send(session, "play", spots=["draw"])
    send(session, "undo")
    send(session, "daily")
    assert results(store) == [("3", False, True)]
    assert raw(path, "SELECT * FROM saves") == []


def test_help_by_the_solver_is_kept_with_the_attempt(store: Store) -> None:
    number = winnable()
    session = Session("mini", number, store=store)
    play(session, line("mini", number, True)[0])
    send(session, "hint")
    assert not session.helped
    send(session, "outlook")
    again = Session("mini", store=store)  # without a word the program ended
    assert again.helped
    play_all(again, line("mini", number, True)[1:])
    assert results(store) == [(str(number), True, True)]
    statistics = again.state()["statistics"][0]
    assert (statistics["won"], statistics["helped"], statistics["best_time"]) == (1, 1, None)


def test_a_question_after_the_end_is_no_help(store: Store) -> None:
    session = Session("mini", winnable(), store=store)
    play_all(session, line("mini", winnable(), False))
    send(session, "hint", solver=True)
    send(session, "outlook")
    assert not session.helped


def test_a_saved_game_goes_on_under_the_same_rules_alone(store: Store) -> None:
    session = Session("pyramid", 42, store=store)
    for move in ("Kd", "draw", "draw"):
        play(session, move)
    send(session, "undo")
    game = session.game.copy()
    for rules, deal in (("pyramid", None), ("pyramid", 42), ("pyramid", "42"), ("pyramid", "")):
        again = Session(rules, deal, store=store)
        assert again.game == game
        assert told(again) == "info: Your last game goes on."
    assert Session("one_pass", 42, store=store).game.moves_made == 0
    assert Session("pyramid", 43, store=store).game.moves_made == 0
    assert Session("pyramid:scoring=none", store=store).game.moves_made == 0
    assert Session("pyramid", store=store).game == game
    assert results(store, "pyramid") == []


def test_other_rules_and_back_goes_on(store: Store) -> None:
    now = Now()
    session = Session("pyramid", 42, store=store, now=now)
    play(session, "Kd")
    now.passes(10)
    state = send(session, "rules", rules="till_dawn")
    assert (state["rules"], state["made"], state["match"]["scores"]) == ("till_dawn", 0, [])
    send(session, "play", spots=["draw"])
    now.passes(7)
    state = send(session, "rules", rules="pyramid")
    assert (state["deal"], state["made"], state["elapsed_s"], state["running"]) == ("42", 1, 10.0, False)
    assert send(session, "rules", rules="till_dawn")["elapsed_s"] == 7.0
    assert (results(store, "pyramid"), results(store, "till_dawn")) == ([], [])


def test_a_match_of_six(store: Store) -> None:
    session = Session("till_dawn", 1, store=store)
    scores: list[int] = []
    for number in range(2, 8):
        match = session.state()["match"]
        assert (match["number"], match["games"], match["scores"], match["complete"]) == (1, 6, scores, False)
        play(session, session.game.legal_moves[0])
        scores.append(session.game.par)
        send(session, "new", deal=number)
    ended = store.match("till_dawn", 6)
    assert (ended.scores, ended.total, ended.is_complete, ended.is_par) == (tuple(scores), sum(scores), True, False)
    match = session.state()["match"]  # another one begins with the next deal
    assert (match["number"], match["game"], match["scores"], match["complete"]) == (2, 1, [], False)
    send(session, "play", spots=["draw"])
    send(session, "new")
    match = session.state()["match"]
    assert (match["number"], match["game"], len(match["scores"])) == (2, 2, 1)
    assert Session("pyramid", 1, store=store).state()["match"] is None
    assert Session("till_dawn", 1).state()["match"] is None  # nothing is kept


def test_statistics_of_the_rules_that_are_played_come_first(store: Store) -> None:
    for rules in ("pyramid", "mini"):
        session = Session(rules, 1, store=store)
        send(session, "play", spots=["draw"])
        send(session, "new", deal=2)
    assert [each["rules"] for each in send(session, "statistics")["statistics"]] == ["mini", "pyramid"]
    assert [each["rules"] for each in send(session, "rules", rules="pyramid")["statistics"]][:1] != []
    assert [each["rules"] for each in send(session, "statistics")["statistics"]] == ["pyramid", "mini"]


# ---- clock -----------------------------------------------------------------------------------------------------------


def test_the_clock_counts_from_the_first_move_and_stands_in_pauses() -> None:
    now = Now()
    session = Session("pyramid", 42, now=now)
    now.passes(100)
    assert (session.state()["elapsed_s"], session.state()["running"]) == (0.0, False)
    play(session, "Kd")
    now.passes(10)
    assert (session.state()["elapsed_s"], session.state()["running"]) == (10.0, True)
    send(session, "pause", on=True)
    now.passes(1000)
    assert (session.state()["elapsed_s"], session.state()["running"]) == (10.0, False)
    send(session, "pause", on=False)
    now.passes(5)
    send(session, "restart")
    now.passes(5)
    assert session.state()["elapsed_s"] == 20.0  # a restart belongs to the attempt
    assert send(session, "new", deal=1)["elapsed_s"] == 0.0


def test_nobody_there_for_five_minutes_is_a_pause_whatever_is_asked_first() -> None:
    kinds = {"play": {"spots": ["draw"]}, "undo": {}, "hint": {}, "awake": {}, None: {}}
    for kind, more in kinds.items():
        now = Now()
        session = Session("pyramid", 42, now=now)
        play(session, "Kd")
        now.passes(299)
        assert not session.state()["paused"]
        send(session, "awake")
        now.passes(301)
        version = session.version
        state = session.state() if kind is None else send(session, kind, **more)
        assert state["version"] == version + 1
        assert (state["paused"], state["svg"], state["made"], state["elapsed_s"]) == (True, "", 1, 599.0)
        assert "nobody was here" in state["message"]["text"]
        now.passes(50)
        assert send(session, "pause", on=False)["elapsed_s"] == 599.0
        now.passes(1)
        assert send(session, "play", spots=["draw"])["made"] == 2


def test_a_pause_by_itself_does_not_stand_in_the_way_of_a_new_deal_or_a_setting() -> None:
    for event in (
        {"type": "new", "deal": 7},
        {"type": "preference", "name": "theme", "value": "dark"},
        {"type": "pause", "on": False},
    ):
        now = Now()
        session = Session("pyramid", 42, now=now)
        play(session, "Kd")
        now.passes(400)
        session.handle(event)
        state = session.state()
        assert state["paused"] == (event["type"] == "preference")
        assert state["message"]["kind"] != "error"
        assert (state["deal"] == "7") == (event["type"] == "new")
        assert (state["preferences"]["theme"] == "dark") == (event["type"] == "preference")


def test_without_auto_pause_nothing_stops_the_clock() -> None:
    now = Now()
    session = Session("pyramid", 42, now=now)
    send(session, "preference", name="auto_pause", value=False)
    play(session, "Kd")
    now.passes(4000)
    assert (session.state()["elapsed_s"], session.state()["paused"]) == (4000.0, False)
    send(session, "preference", name="auto_pause", value=True)
    now.passes(400)
    assert (session.state()["elapsed_s"], session.state()["paused"]) == (4300.0, True)


def test_idle_time_does_not_count_when_python_plays_on() -> None:
    now = Now()
    session = Session("pyramid", 42, now=now)
    session.game.play("Kd")
    now.passes(3600)
    session.game.play("draw")
    now.passes(1)
    assert session.state()["elapsed_s"] == 301.0


def test_saves_carry_the_time(store: Store, path: Path) -> None:
    now = Now()
    session = Session("pyramid", 42, store=store, now=now)
    play(session, "Kd")
    now.passes(60)
    send(session, "play", spots=["draw"])
    assert Session("pyramid", store=store).state()["elapsed_s"] == 60.0
    now.passes(5)
    send(session, "pause", on=True)
    again = Session("pyramid", store=store, now=now)
    assert (again.state()["elapsed_s"], again.state()["running"]) == (65.0, False)
    for kept in ("1e999", "-5.0", "'soon'"):
        raw(path, f"UPDATE saves SET elapsed_s = {kept}")
        assert Session("pyramid", store=store).state()["elapsed_s"] == 0.0


def test_a_clock_alone() -> None:
    now = Now()
    clock = Clock(now, idle_s=10.0)
    assert (clock.is_running, clock.elapsed_s, clock.idle_s) == (False, 0.0, 10.0)
    clock.start()
    now.passes(9)
    assert clock.touch()
    now.passes(11)
    assert clock.is_asleep
    assert clock.is_asleep  # asking does not wake it
    assert not clock.is_running
    assert clock.elapsed_s == 19.0
    assert not clock.touch()
    assert clock.touch()
    assert not clock.is_running
    clock.start()
    clock.stop()
    clock.reset(3.5)
    now.passes(100)
    assert (clock.elapsed_s, clock.is_asleep) == (3.5, False)


# ---- what is hidden --------------------------------------------------------------------------------------------------


def test_a_pause_shows_nothing_and_lets_nothing_be_done() -> None:
    session = Session("pyramid", 42)
    play(session, "Kd")
    send(session, "hint")
    assert session.state()["hint"]
    for kind, more in {
        "pause": {"on": True}, "play": {"spots": ["draw"]}, "undo": {}, "redo": {}, "restart": {}, "hint": {},
        "outlook": {}, "preference": {"name": "large_cards", "value": True}, "statistics": {},
    }.items():  # fmt: skip
        state = send(session, kind, **more)
        assert (state["svg"], state["moves"], state["hint"], state["can_undo"]) == ("", [], [], False)
        assert state["made"] == 1
        words = set(re.findall(r"\w+", json.dumps(state)))
        assert not words & {str(card) for card in session.game.deal.cards}
    assert "paused" in told(session).lower()
    send(session, "pause", on=False)
    assert session.state()["hint"] != []


def seen_in_part(rules: str, number: int = 5, moves: int = 80) -> Iterator[Game]:
    """Positions of a random game, without its number."""
    chance, deal = random.Random(7), Deal(Deal.number(number, rules).cards)
    game = Game(deal, rules)
    while not game.is_over and game.moves_made < moves:
        yield Game.from_state(deal, rules, game.state)
        game.play(chance.choice(game.legal_moves))


def hidden(game: Game) -> list[int]:
    """Indices of the cards that nobody has seen yet, but by elimination."""
    view = look(game)
    if game.pass_number > 1:
        return []
    cursor = int(game.state[2]) + (view.stock_top is not None)
    return [game.rules.places + k for k in range(cursor, game.rules.stock_size)]


def mixed(game: Game, chance: random.Random) -> Game:
    """The same position, the hidden cards in another order."""
    places = hidden(game)
    others = places.copy()
    chance.shuffle(others)
    cards = list(game.deal.cards)
    for here, there in zip(places, others, strict=True):
        cards[here] = game.deal.cards[there]
    return Game.from_state(Deal(tuple(cards)), game.rules, game.state)


def without_deal(session: Session) -> dict[str, Any]:
    return {**session.state(), "version": 0, "deal_text": ""}


@pytest.mark.parametrize("rules", PRESETS)
def test_hidden_cards_change_nothing_that_is_shown_or_said(rules: str) -> None:
    chance = random.Random(2)
    session, other = Session(rules, 1), Session(rules, 1)
    for game in itertools.islice(seen_in_part(rules), 0, None, 9):
        twin = mixed(game, chance)
        session.show(game)
        other.show(twin)
        if game.is_over or twin.is_over or game.legal_actions != twin.legal_actions:
            continue  # without limit of passes a draw is legal only where it can help: the rules tell that
        assert without_deal(session) == without_deal(other)
        lying = open_cards(game)
        pairs = [*itertools.combinations([*lying, "stock", "waste1", "r9c9"], 2), *((spot,) for spot in lying)]
        for spots in chance.sample(pairs, min(8, len(pairs))):
            named = [lying.get(spot, "2d") for spot in spots]
            for cards in ([], named, ["2d", "3c"][: len(spots)]):
                if sorted(spots) in [sorted(move["spots"]) for move in session.state()["moves"]]:
                    continue
                event = {"type": "play", "spots": list(spots), "cards": cards}
                session.handle(event)
                other.handle(event)
                assert told(session) == told(other)
                assert told(session).startswith("error")
        send(session, "hint")
        send(other, "hint")
        assert without_deal(session) == without_deal(other)


@pytest.mark.parametrize("rules", ["pyramid", "one_pass", "microsoft", "till_dawn", "solitaire13_three_piles"])
def test_a_lost_game_is_called_lost_only_when_all_cards_were_seen(rules: str) -> None:
    said = 0
    for number in range(15):
        session, chance = Session(rules, number), random.Random(number)
        while not session.game.is_over:
            session.game.play(chance.choice(session.game.legal_moves))
            game = session.game
            lost = "No removal is possible any more" in told(session)
            all_seen = game.pass_number > 1 or game.state[2] == game.rules.stock_size
            assert lost == (game.is_stuck and all_seen and not game.is_over)
            said += lost
        if said:
            return
    assert said or pe.rules(rules).passes == 1  # nothing to draw, nothing to remove: it is over


# ---- when the store fails --------------------------------------------------------------------------------------------


def test_a_held_store_is_told_and_the_result_is_kept_later(store: Store, path: Path) -> None:
    number = winnable()
    session = Session("mini", number, store=store)
    *moves, last = line("mini", number, True)
    play_all(session, tuple(moves))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        state = play(session, last)
        assert state["won"]
        assert state["message"]["text"].startswith("Not saved: ")
        assert "another program has held the database" in state["message"]["text"]
        assert state["message"]["kind"] == "error"
        other.execute("ROLLBACK")
    assert results(store) == []
    assert Session("mini", store=store).game.deal == session.game.deal  # it could still be won again
    send(session, "undo")
    send(session, "new", deal=number + 1)
    assert results(store) == [(str(number), True, False)]
    assert raw(path, "SELECT * FROM saves") == []


@pytest.mark.parametrize("name", ["save", "record", "forget", "load", "preference", "match", "all_statistics"])
def test_a_store_that_fails_is_told_and_the_game_goes_on(
    name: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise StoreError("table.sqlite3: expected a file that can be opened and written, got a read-only one")

    monkeypatch.setattr(store, name, fail)
    told_by = []
    session = Session("till_dawn", 1, store=store)
    told_by.append(told(session))
    for event in (
        {"type": "play", "spots": ["draw"]}, {"type": "preference", "name": "theme", "value": "dark"},
        {"type": "favourite", "rules": "mini", "on": True}, {"type": "statistics"}, {"type": "new", "deal": 2},
    ):  # fmt: skip
        session.handle(event)
        told_by.append(told(session))
    assert any("got a read-only one" in each for each in told_by)
    assert session.state()["preferences"]["theme"] == "dark"
    assert session.game.deal.deal_number == 2
    assert play(session, session.game.legal_moves[0])["made"] == 1


def test_damage_is_told_at_the_table(path: Path) -> None:
    path.write_bytes(b"nonsense" * 1000)
    with Store(path) as store:
        session = Session("pyramid", 1, store=store)
        assert told(session).startswith("error: The saved games")
        assert str(path) in told(session)
        send(session, "play", spots=["draw"])
        raw(path, "UPDATE saves SET game = '{'")
        again = Session("pyramid", store=store)
        assert "could not be read" in told(again)
        assert again.game.moves_made == 0
    assert path.with_name(next(path.parent.glob("*.damaged-*")).name).read_bytes() == b"nonsense" * 1000


@pytest.mark.parametrize("fault", ["newer", "folder"])
def test_a_table_without_a_store_plays_and_says_so(path: Path, fault: str) -> None:
    needs("anywidget", "notebook")
    if fault == "newer":
        raw(path, "PRAGMA user_version = 99")
    else:
        path.mkdir()
    table = pe.Table("pyramid", 42, path=path)
    assert table.state["message"]["text"].startswith("Nothing is kept: ")
    assert table.state["message"]["kind"] == "error"
    assert not table.state["keeps"]
    table.game.play("Kd")
    assert table.state["made"] == 1


def test_a_store_that_was_closed_is_told(path: Path) -> None:
    store = Store(path)
    session = Session("mini", 1, store=store)
    store.close()
    assert "open store" in send(session, "play", spots=["draw"])["message"]["text"]
    assert session.game.moves_made == 1
    assert "open store" in told(Session("mini", 1, store=store))


def test_a_folder_whose_name_is_no_text_can_be_told(tmp_path: Path) -> None:
    session = Session("mini", 1)
    session.handle({"type": "hint"})
    session.message = pe.table.session.Message("Not saved: /home/\udce4/table.sqlite3", "error")
    session.state()["message"]["text"].encode()


# ---- several tables on one store -------------------------------------------------------------------------------------


def test_two_tables_lose_no_result_of_each_other(path: Path) -> None:
    def play_games(name: int, faults: list[str]) -> None:
        with Store(path) as own:
            session = Session("mini", 1000 * name, store=own)
            for number in range(1, 9):
                chance = random.Random(number)
                while not session.game.is_over:
                    play(session, chance.choice(session.game.legal_moves))
                    faults += [told(session)] if "Not saved" in told(session) else []
                send(session, "new", deal=1000 * name + number)

    faults: list[str] = []
    threads = [threading.Thread(target=play_games, args=(name, faults)) for name in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    with Store(path) as store:
        deals = [int(each.deal) for each in store.results("mini")]
    assert sorted(deals) == [1000 * name + number for name in (1, 2) for number in range(8)]


def test_one_attempt_at_two_tables_is_one_result(path: Path) -> None:
    number = winnable()
    with Store(path) as here, Store(path) as there:
        first = Session("mini", number, store=here)
        play(first, line("mini", number, True)[0])
        second = Session("mini", store=there)
        assert second.game == first.game
        send(second, "new", deal=1)
        assert results(here) == [(str(number), False, False)]
        play_all(first, line("mini", number, True)[1:])
        assert results(there) == [(str(number), True, False)]


def test_two_tables_keep_their_own_preferences(path: Path) -> None:
    with Store(path) as here, Store(path) as there:
        first, second = Session("mini", 1, store=here), Session("mini", 1, store=there)
        send(first, "preference", name="theme", value="dark")
        send(first, "favourite", rules="giza", on=True)
        send(second, "preference", name="large_cards", value=True)
        send(second, "favourite", rules="mini", on=True)
        third = Session("mini", 1, store=here).state()["preferences"]
    assert (third["theme"], third["large_cards"], third["favourites"]) == ("dark", True, ["giza", "mini"])


CHILD = """
import sys
sys.path.insert(0, "tests")
from pyramid_env.table import Session, Store
from test_table import random_events
with Store(sys.argv[1]) as store:
    session = Session("pyramid", 0, store=store)
    for event in random_events(session, int(sys.argv[2])):
        session.handle(event)
        print(len(session.game.history), flush=True)
"""


def random_events(session: Session, seed: int) -> Iterator[dict[str, Any]]:
    """Events that never end a game for long."""
    chance = random.Random(seed)
    for number in itertools.count(1):
        kinds = ["play"] * 6 + ["undo", "redo", "hint", "restart", "pause"]
        if session.game.is_over:
            yield {"type": "undo"}
        kind = chance.choice(kinds)
        if kind == "play":
            move = chance.choice(session.state()["moves"])
            yield {"type": "play", "spots": ["draw"] if move["draw"] else move["spots"]}
        elif kind == "pause":
            yield {"type": "pause", "on": True}
            yield {"type": "pause", "on": False}
        elif kind != "restart" or number % 5 == 0:
            yield {"type": kind}


@pytest.mark.parametrize("events", [3, 25, 120])
def test_a_killed_program_loses_the_last_move_at_most(path: Path, events: int) -> None:
    call = [sys.executable, "-c", CHILD, str(path), str(events)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout is not None
        told_of = [child.stdout.readline() for _ in range(events)]
        child.kill()
        told_of += child.stdout.readlines()
    assert all(told_of)
    twin = Session("pyramid", 0)
    lines: list[tuple[Any, ...]] = []
    for event in itertools.islice(random_events(twin, events), len(told_of) + 1):
        twin.handle(event)
        lines.append((twin.game.history, twin.game.redo_path))
    with Store(path) as store:
        session = Session("pyramid", store=store)
        assert store.messages == []
        assert session.game.deal.deal_number == 0
        assert (session.game.history, session.game.redo_path) in lines[-2:]


# ---- the live game ---------------------------------------------------------------------------------------------------


def test_copies_of_a_live_game_are_games_of_their_own() -> None:
    session = Session("pyramid", 42)
    play(session, "Kd")
    live, version = session.game, session.version
    assert isinstance(live, LiveGame)
    for twin in (live.copy(), copy.copy(live), copy.deepcopy(live), pickle.loads(pickle.dumps(live))):
        assert type(twin) is Game
        assert twin == live
        twin.play("draw")
        twin.undo()
    read = type(live).from_json(live.to_json())
    read.play("draw")
    assert (session.version, live.moves_made) == (version, 1)


def test_a_game_from_before_the_new_deal_moves_the_table_no_more(store: Store) -> None:
    session = Session("pyramid", 42, store=store)
    old = session.game
    old.play("Kd")
    for event in ({"type": "new", "deal": 7}, {"type": "rules", "rules": "mini"}):
        session.handle(event)
        before = session.state()
        old.play("draw")
        old.undo()
        assert session.state() == before
        assert not before["running"]
        old = session.game
    assert [deal for deal, *_ in results(store, "pyramid")] == ["42"]


def test_python_and_hand_play_the_same_game(store: Store) -> None:
    session = Session("pyramid", 42, store=store)
    session.game.play("Kd")
    assert session.state()["made"] == 1
    assert "Not" not in told(session)
    send(session, "undo")
    assert session.game.moves_made == 0
    session.game.redo()
    assert Session("pyramid", store=store).game == session.game


# ---- preferences -----------------------------------------------------------------------------------------------------


def test_preferences_that_are_kept_come_back(store: Store) -> None:
    session = Session("mini", 1, store=store)
    for name, value in (("theme", "dark"), ("four_colours", True), ("large_cards", True), ("auto_pause", False)):
        send(session, "preference", name=name, value=value)
    for rules in ("giza", "pyramid:passes=2", "mini"):
        send(session, "favourite", rules=rules, on=True)
    state = send(session, "favourite", rules="giza", on=True)
    kept = {
        "theme": "dark", "four_colours": True, "large_cards": True, "auto_pause": False,
        "favourites": ["giza", "pyramid:passes=2", "mini"],
    }  # fmt: skip
    assert state["preferences"] == kept
    assert Session("pyramid", store=store).state()["preferences"] == kept
    assert send(session, "favourite", rules="giza", on=False)["preferences"]["favourites"] == kept["favourites"][1:]


def test_favourites_stand_first_in_their_order_and_each_preset_once() -> None:
    session = Session("microsoft:passes=1", 1)
    names = [each["rules"] for each in session.state()["presets"]]
    assert names == ["microsoft:passes=1", *pe.PRESETS]
    for rules in ("till_dawn", "giza", "microsoft:passes=1", "pyramid:passes=3"):
        send(session, "favourite", rules=rules, on=True)
    presets = session.state()["presets"]
    names = [each["rules"] for each in presets]
    assert names[:4] == ["till_dawn", "giza", "microsoft:passes=1", "pyramid"]
    assert sorted(names) == sorted(["microsoft:passes=1", *pe.PRESETS])
    assert [each["favourite"] for each in presets] == [True] * 4 + [False] * (len(names) - 4)
    assert all(each["title"] for each in presets)


@pytest.mark.parametrize(
    ("name", "value"),
    [("theme", "pink"), ("theme", 3), ("favourites", "giza"), ("favourites", [1]), ("favourites", {"a": 1}),
     ("auto_pause", "off"), ("large_cards", 1), ("four_colours", [])],
)  # fmt: skip
def test_a_kept_preference_that_is_none_counts_as_not_set(store: Store, name: str, value: Any) -> None:
    store.set_preference(name, value)
    other, good = ("theme", "dark") if name == "favourites" else ("favourites", ["mini"])
    store.set_preference(other, good)
    kept = Preferences.read(store)
    assert getattr(kept, name) == getattr(Preferences(), name)
    assert kept.favourites == ("mini",) or kept.theme == "dark"
    assert Session("pyramid", 1, store=store).state()["preferences"]["auto_pause"]


# ---- an environment on the table -------------------------------------------------------------------------------------


class Backwards(gym.ActionWrapper[Any, Any, Any]):
    """Counts actions from the end."""

    def action(self, action: Any) -> Any:
        return self.action_space.n - 1 - action


def make(rules: str = "pyramid", **more: Any) -> gym.Env[Any, Any]:
    return gym.make("pyramid_env/Pyramid-v0", rules=rules, **more)


def test_the_steps_of_an_environment_are_seen_and_nothing_is_kept(store: Store) -> None:
    session = Session("pyramid", 42, store=store)
    play(session, "Kd")
    env = AttachedEnv(make(), session)
    assert not session.state()["keeps"]
    assert session.state()["deal"] == "42"
    _, info = env.reset(options={"deal": 7})
    assert (session.state()["deal"], session.state()["made"]) == ("7", 0)
    live = session.game
    chance, ended = np.random.default_rng(1), False
    while not ended:
        action = chance.choice(np.flatnonzero(info["action_mask"]))
        *_, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
        inner: Any = env.unwrapped
        assert session.game.state.tolist() == inner.state.tolist()
    assert session.game is live  # with all its moves
    assert session.state()["made"] > 10
    session.close()
    assert (results(store, "pyramid"), Session("pyramid", store=store).game.deal.deal_number) == ([], 42)


def test_an_environment_takes_the_table_back_after_a_move_by_hand() -> None:
    session = Session("pyramid", 42)
    env = AttachedEnv(make(), session)
    env.reset(options={"deal": 7})
    draw = int(env.action_space.n) - 1
    env.step(draw)
    send(session, "undo")
    send(session, "rules", rules="microsoft")
    send(session, "new", deal=7)
    env.step(draw)
    inner: Any = env.unwrapped
    assert (session.rules, session.game.state.tolist()) == (inner.rules, inner.state.tolist())
    env.step(0)  # illegal, and nothing changes
    assert session.game.state.tolist() == inner.state.tolist()
    env.reset(options={"deal": 7})
    send(session, "rules", rules="one_pass")
    send(session, "new", deal=7)  # the same cards and the same position, of other rules
    env.step(draw)
    assert session.rules == inner.rules


def test_actions_of_another_meaning_show_what_they_did() -> None:
    session = Session("pyramid", 42)
    env = AttachedEnv(Backwards(make()), session)
    env.reset(options={"deal": 7})
    live = session.game
    env.step(0)  # the draw
    assert (session.game.history[-1].is_draw, session.game is live) == (True, True)


def test_no_environment_of_ours_is_refused() -> None:
    session = Session("pyramid", 42)
    with pytest.raises(PyramidError, match="expected a PyramidEnv, got CartPole"):
        AttachedEnv(gym.make("CartPole-v1"), session)


# ---- threads, ends, solver, last rules -------------------------------------------------------------------------------


def test_python_and_hand_may_play_at_the_same_time() -> None:
    session = Session("pyramid", 42)
    stop, faults = threading.Event(), list[BaseException]()

    def by_hand() -> None:
        try:
            while not stop.is_set():
                session.handle({"type": "undo"})
                session.handle({"type": "redo"})
        except BaseException as error:
            faults.append(error)

    hand = threading.Thread(target=by_hand)
    hand.start()
    for _ in range(300):
        with suppress(PyramidError):
            session.game.play("draw")
    stop.set()
    hand.join()
    assert faults == []
    replayed = Game(42)
    for move in session.game.history:
        replayed.play(move)
    assert (replayed.state == session.game.state).all()


def test_a_page_that_is_idle_pauses_only_where_nobody_plays_elsewhere() -> None:
    now = [0.0]
    session = Session("pyramid", 42, now=lambda: now[0])
    session.game.play("draw")
    now[0] = 299.0
    session.handle({"type": "idle"})
    assert not session.paused
    session.game.play("draw")  # from Python
    now[0] = 400.0
    session.handle({"type": "idle"})
    assert not session.paused
    now[0] = 600.0
    session.handle({"type": "idle"})
    assert session.paused


def test_why_a_game_ended_is_said_as_its_rules_have_it() -> None:
    exhausted = Session("solitaire13:end_on_exhausted=on", 1)
    while not exhausted.game.is_over:
        exhausted.game.play("draw")
    assert told(exhausted).startswith("info: The stock is exhausted, which ends the game: 52 cards remain.")
    for number in range(50):
        unlimited = Session("tuts_tomb", number)
        while not unlimited.game.is_over and unlimited.game.moves_made < 500:
            unlimited.game.play(unlimited.game.legal_moves[0])
        if unlimited.game.is_over and not unlimited.game.is_won and unlimited.game.state[1]:
            assert "no run through the stock would bring one" in told(unlimited)
            return
    raise AssertionError("expected a game that ends with cards in the stock")


def test_the_solver_says_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = next(n for n in range(20) if not pe.solve(n, "one_pass", objective="win").value)
    session = Session("one_pass", lost)
    send(session, "play", spots=["draw"])
    assert send(session, "outlook")["message"]["text"] == "Nobody could win this deal."
    monkeypatch.setattr(Game, "_best_way", lambda *_: ())  # the limits have ended its search
    said = send(Session("pyramid", 42), "hint", solver=True)["message"]["text"]
    assert said == "The solver found no way that betters this. You can: play Kd."


def test_the_rules_that_were_chosen_last_come_back(store: Store) -> None:
    assert last_rules(None) == last_rules(store) == "pyramid"
    session = Session("pyramid", 1, store=store)
    send(session, "rules", rules="microsoft:passes=1")
    assert last_rules(store) == "microsoft:passes=1"
    store.set_preference("rules", "no rules at all")
    assert last_rules(store) == "pyramid"


# ---- the widget ------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(path: Path) -> Any:
    needs("anywidget", "notebook")
    return pe.Table("pyramid", 42, path=path)


def test_a_table_outside_a_notebook_is_a_table(table: Any, path: Path) -> None:
    assert table.state["deal"] == "42"
    table._hear(table, {"type": "play", "spots": ["r7c4"], "cards": ["Kd"]}, [])
    assert table.state["made"] == table.game.moves_made == 1
    table.game.play("draw")
    assert table.state["made"] == 2
    version, old = table.state["version"], table.game
    assert table.new_game(7) is table.game
    assert (table.state["deal"], table.state["version"]) == ("7", version + 1)
    old.undo()
    assert table.state["version"] == version + 1
    assert str(table.rules) == "pyramid"
    assert pe.Table(path=path).game.moves_made == 0  # 42 was left and counts
    with pytest.raises(PyramidError):
        table.new_game("nonsense")
    env = table.attach(make())
    env.reset(options={"deal": 9})
    assert table.state["deal"] == "9"


def test_a_table_that_is_closed_lets_go_of_its_file_and_hears_no_more(table: Any, path: Path) -> None:
    table.game.play("Kd")
    shown = table.state
    held = table.game
    table.close()
    held.play("draw")
    assert table.state is shown
    again = pe.Table("pyramid", path=path)
    assert (again.game.deal.deal_number, again.game.moves_made) == (42, 1)
    again.close()
    again.close()


def test_a_table_that_keeps_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("anywidget", "notebook")
    monkeypatch.setenv("PYRAMID_ENV_DATA", str(path.parent / "data"))
    table = pe.Table("pyramid", 42, keep=False)
    table.game.play("Kd")
    assert not table.state["keeps"]
    assert not (path.parent / "data").exists()


# ---- whatever is done ------------------------------------------------------------------------------------------------

EVENTS = st.one_of(
    st.tuples(st.just("play"), st.integers(0, 30)),
    st.tuples(st.just("play"), st.integers(0, 30)),
    st.tuples(st.sampled_from(["undo", "redo", "hint"]), st.none()),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("new"), st.integers(0, 50)),
    st.tuples(st.just("rules"), st.sampled_from([*PRESETS, *ODD_RULES])),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("favourite"), st.sampled_from(PRESETS)),
    st.tuples(st.just("idle"), st.integers(0, 400)),
)


def as_event(session: Session, kind: str, value: Any) -> Mapping[str, Any]:
    if kind == "play":
        legal = session.legal()
        if not legal:
            return {"type": "play", "spots": ["draw"]}
        move, spots = legal[value % len(legal)]
        return {"type": "play", "spots": ["draw"] if move.is_draw else list(spots)}
    more = {"new": {"deal": value}, "rules": {"rules": value}, "pause": {"on": value}}
    return {"type": kind, **more.get(kind, {"rules": value, "on": True} if kind == "favourite" else {})}


def apply(plain: Game, session: Session, event: Mapping[str, Any]) -> Game:
    """The same on a plain game; ``session`` is that before the event."""
    kind = event["type"]
    if kind == "new":
        return Game(event["deal"], plain.rules)
    if session.paused and kind in ("play", "undo", "redo", "restart"):
        return plain
    if kind == "play" and not plain.is_over:
        wanted = event["spots"]
        plain.play("draw" if wanted == ["draw"] else next(m for m, s in session.legal() if list(s) == wanted))
    elif kind == "undo" and plain.can_undo:
        plain.undo()
    elif kind == "redo" and plain.can_redo:
        plain.redo()
    elif kind == "restart":
        plain.restart()
    return plain


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([*PRESETS, *ODD_RULES]), st.lists(EVENTS, max_size=40))
def test_whatever_is_done_the_table_shows_the_game_that_was_played(rules: str, script: list[tuple[str, Any]]) -> None:
    now = Now()
    with Store(":memory:") as store:
        session = Session(rules, 1, store=store, now=now)
        plain = Game(1, rules)
        left: dict[str, Game] = {}  # games of other rules that were touched
        touched = False
        for kind, value in script:
            if kind == "idle":
                now.passes(value)
                continue
            session.state()  # falls asleep, if nobody was there for long
            event, before = as_event(session, kind, value), session.version
            if kind == "rules" and str(pe.rules(value)) != str(session.rules):
                if touched and not plain.is_over:
                    left[str(plain.rules)] = plain
                session.handle(event)
                found = left.pop(str(pe.rules(value)), None)
                plain = found or Game(session.game.deal, value)
                touched = found is not None
            else:
                plain = apply(plain, session, event)
                touched = (touched and kind != "new") or plain.can_undo or plain.can_redo
                session.handle(event)
            state = session.state()
            assert session.game == plain
            assert state["version"] > before
            assert (state["made"], state["over"], state["score"]) == (plain.moves_made, plain.is_over, plain.score)
            assert state["cards_left"] == plain.cards_left
            assert (state["svg"] == "") == state["paused"]
            shown = [] if state["paused"] else [plain.describe(move) for move in plain.legal_moves]
            assert [move["text"] for move in state["moves"]] == shown
            text = json.dumps(state, allow_nan=False)
            assert len(text) < LARGEST_STATE
        again = Session(session.rules, store=store)
        if touched and not plain.is_over:
            assert again.game == plain
