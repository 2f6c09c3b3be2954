"""Watching: the agent's own game is shown, along its whole line, with honest numbers; taking over and handing back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import needs
from numpy.typing import NDArray

from agents import make_agent
from agents.evaluation import evaluate_agent
from pyramid_env import Deal, Game, functional, rate_moves
from pyramid_env.errors import IllegalMoveError, PyramidError
from pyramid_env.kernels import CURSOR, PASS
from pyramid_env.moves import move_table
from pyramid_env.observation import layout
from pyramid_env.rules import PRESETS, rules
from pyramid_env.table.player import MAX_MOVES, Player
from pyramid_env.table.watching import WatchSession

Seen = Mapping[str, NDArray[np.int8]]
Masks = NDArray[np.bool_]


class First:
    """Takes the first legal move: removals before draws."""

    def act(self, observations: Seen, action_masks: Masks, rng: np.random.Generator) -> NDArray[np.int64]:
        return action_masks.argmax(axis=1)


class Declines(First):
    """Draws as long as it can."""

    def act(self, observations: Seen, action_masks: Masks, rng: np.random.Generator) -> NDArray[np.int64]:
        return np.array([np.flatnonzero(mask)[-1] for mask in action_masks])


class Spy(First):
    """Keeps what it was shown, and tries to write to it."""

    def __init__(self, level: str = "memory") -> None:
        self.level = level
        self.shown: list[dict[str, list[int]]] = []

    def act(self, observations: Seen, action_masks: Masks, rng: np.random.Generator) -> NDArray[np.int64]:
        self.shown.append({name: values[0].tolist() for name, values in observations.items()})
        chosen = super().act(observations, action_masks, rng)
        for values in observations.values():
            values[:] = 0
        action_masks[:] = False
        return chosen


class Remembers:
    """Keeps the masks that it was shown, game by game, and plays by how many those were."""

    name = "elephant"

    def __init__(self) -> None:
        self.games: list[list[list[int]]] = []
        self.kept: list[tuple[Seen, dict[str, list[int]]]] = []  # what it was shown, and what was in it then

    def begin(self, games: int) -> None:
        assert games == 1
        self.games.append([])

    def act(self, observations: Seen, action_masks: Masks, rng: np.random.Generator) -> NDArray[np.int64]:
        raise AssertionError("an agent with a memory is asked by act_in")

    def act_in(
        self, games: NDArray[np.intp], observations: Seen, action_masks: Masks, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        assert games.tolist() == [0]
        legal = np.flatnonzero(action_masks[0])
        self.games[-1].append(legal.tolist())
        self.kept.append((observations, {name: values[0].tolist() for name, values in observations.items()}))
        return legal[[len(self.games[-1]) % legal.size]]


class Told(NamedTuple):
    moves: NDArray[np.float32]
    values: NDArray[np.float32] | None


class Judges(Remembers):
    """Tells of each move how many positions it has judged in this game, and the same as its value."""

    says = "value"

    def judge_in(self, games: NDArray[np.intp], observations: Seen, action_masks: Masks) -> Told:
        self.act_in(games, observations, action_masks, np.random.default_rng(0))
        count = np.float32(len(self.games[-1]))
        return Told(action_masks * count, np.array([count]))


class Fails(First):
    """Plays like First until it is told to fail."""

    def __init__(self) -> None:
        self.how: Callable[[Masks], Any] | None = None

    def act(self, observations: Seen, action_masks: Masks, rng: np.random.Generator) -> Any:
        return super().act(observations, action_masks, rng) if self.how is None else self.how(action_masks)


def an_illegal_one(masks: Masks) -> NDArray[np.int64]:
    return masks.argmin(axis=1)


def a_fault(masks: Masks) -> NDArray[np.int64]:
    raise KeyError("spades")


@cache
def agent(name: str, preset: str = "pyramid") -> Any:
    return make_agent(name, preset, threads=1)


def watched(player: Any, deal: Any = 42, preset: str | None = None, **more: Any) -> WatchSession:
    return WatchSession(player, deal, preset, max_seconds=more.pop("max_seconds", 0.2), **more)


def go(session: WatchSession, to: int) -> dict[str, Any]:
    session.handle({"type": "watch", "to": to})
    shown: dict[str, Any] = session.state()["watch"]
    assert shown["at"] == to
    return shown


def take_over(session: WatchSession, on: bool = True) -> None:
    session.handle({"type": "takeover", "on": on})
    assert session.by_hand == on, session.state()["message"]


def play(session: WatchSession, text: str) -> None:
    move = session.game.parse(text)
    spots = ["draw"] if move.is_draw else next(list(s) for m, s in session.legal() if m == move)
    session.handle({"type": "play", "spots": spots})


def line(session: WatchSession) -> list[int]:
    moves = move_table(session.rules)
    return [moves.index_of(move) for move in (*session.game.history, *session.game.redo_path)]


def along(session: WatchSession) -> Iterator[Game]:
    """The game of the line, in each of its positions, played anew."""
    game = Game(session.game.deal, session.rules)
    yield game
    for action in line(session):
        game.play(action)
        yield game


def told(session: WatchSession) -> str:
    message = session.state()["message"]
    return f"{message['kind']}: {message['text']}"


# ---- what is watched -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tips", "shipped", "oracle"])
def test_the_watched_game_is_the_one_that_evaluation_plays(name: str) -> None:
    player = agent(name)
    (record,) = evaluate_agent(player, rules("pyramid"), np.array([42]), seed=0, keep_actions=True)
    session = watched(player)
    assert tuple(line(session)) == record.actions
    assert session.game.moves_made == 0
    last = go(session, record.steps)
    assert (session.game.score, session.game.is_won) == (record.score, record.won)
    assert last["moves"] == []


def test_each_index_shows_its_position_wherever_one_comes_from() -> None:
    session = watched(agent("tips"))
    expected = [(game.state.tolist(), game.position) for game in along(session)]
    moves = line(session)
    for index in [*range(len(moves) + 1), *np.random.default_rng(1).permutation(len(moves) + 1).tolist()]:
        go(session, index)
        assert (session.game.state.tolist(), session.game.position) == expected[index]
    assert line(session) == moves


def test_undo_redo_and_restart_of_the_toolbar_are_steps() -> None:
    session = watched(agent("tips"))
    moves = line(session)
    for kind, at in (("redo", 1), ("redo", 2), ("undo", 1), ("redo", 2), ("restart", 0), ("undo", 0)):
        session.handle({"type": kind})
        assert (session.game.moves_made, line(session), session.by_hand) == (at, moves, False)
    assert told(session) == "error: undo: expected a move to take back, got a game at its start"


def test_the_next_move_of_the_line_is_marked_as_made() -> None:
    session = watched(agent("tips"))
    for index, action in enumerate(line(session)):
        shown = go(session, index)
        made = [move["text"] for move in shown["moves"] if move["made"]]
        assert made == [session.game.describe(action)]
        assert shown["moves"][0]["made"]  # it does not judge: the move that it makes comes first
        assert all(move["agent"] is None for move in shown["moves"])


def test_random_games_repeat_by_seed_and_survive_a_glance_by_hand() -> None:
    lines = [line(watched(agent("random"), seed=seed)) for seed in (0, 0, 1)]
    assert lines[0] == lines[1] != lines[2]
    session = watched(agent("random"))
    go(session, 20)
    take_over(session)
    take_over(session, False)
    assert line(session) == lines[0]


@pytest.mark.parametrize("preset", PRESETS)
def test_any_agent_with_act_alone_plays_every_preset(preset: str) -> None:
    session = watched(First(), 3, preset, max_seconds=0.02)
    (*_, end) = along(session)
    assert end.is_over
    for index in (0, end.moves_made // 2, end.moves_made):
        shown = go(session, index)
        assert json.loads(json.dumps(shown)) == shown
        legal = [session.game.describe(move) for move in session.game.legal_moves]
        assert sorted(move["text"] for move in shown["moves"]) == sorted(legal)


def test_a_game_without_end_is_stopped() -> None:
    session = watched(Declines(), 42, "tuts_tomb", max_seconds=0.02)
    assert len(line(session)) == MAX_MOVES
    shown = go(session, MAX_MOVES)
    assert shown["moves"]
    assert not any(move["made"] for move in shown["moves"])
    assert told(session) == "info: Declines was stopped after 2,000 moves."


def test_the_clock_stands_and_nothing_is_kept() -> None:
    seconds = [0.0]
    session = watched(First(), now=lambda: seconds[0])
    take_over(session)
    play(session, "draw")
    seconds[0] = 1000.0
    session.handle({"type": "redo"})
    session.handle({"type": "pause", "on": True})
    session.handle({"type": "pause", "on": False})
    seconds[0] = 2000.0
    state = session.state()
    assert (state["elapsed_s"], state["running"], state["paused"], state["keeps"]) == (0.0, False, False, False)


# ---- what the agent sees ---------------------------------------------------------------------------------------------


def swapped(number: int, preset: str, first: int, second: int) -> Deal:
    """A numbered deal with two stock cards in each other's place."""
    cards = str(Deal.number(number, rules(preset))).split()
    places = rules(preset).places
    a, b = places + first, places + second
    cards[a], cards[b] = cards[b], cards[a]
    return Deal.parse(" ".join(cards), rules(preset))


def test_an_agent_sees_no_hidden_card_while_it_is_hidden() -> None:
    spies = [Spy(), Spy()]
    session, _ = (
        watched(spy, deal)
        for spy, deal in zip(spies, (Deal.number(42, rules("pyramid")), swapped(42, "pyramid", 15, 20)), strict=True)
    )
    hidden = sum(game.state[PASS] == 1 and game.state[CURSOR] <= 15 for game in along(session))
    assert hidden > 10
    assert spies[0].shown[:hidden] == spies[1].shown[:hidden]
    assert spies[0].shown != spies[1].shown


def test_a_judgement_knows_no_hidden_card() -> None:
    sessions = [watched(agent("shipped"), deal) for deal in (42, swapped(42, "pyramid", 15, 20))]
    hidden = sum(game.state[PASS] == 1 and game.state[CURSOR] <= 15 for game in along(sessions[0]))
    assert hidden > 10
    for index in range(hidden):
        known = [[(m["text"], m["agent"]) for m in go(session, index)["moves"]] for session in sessions]
        assert known[0] == known[1]


@pytest.mark.parametrize("level", ["table", "memory", "clairvoyant"])
def test_observations_are_those_of_the_agents_level(level: str) -> None:
    spy = Spy(level)
    session = watched(spy)
    shown = functional.arrays("pyramid", level, 1)
    games = (game for game in along(session) if not game.is_over)
    for game, seen in zip(games, spy.shown, strict=True):
        shown.ranks[0], shown.states[0] = game.ranks, game.state
        functional.observe("pyramid", level, shown)
        views = layout(rules("pyramid"), level).views(shown.rows)
        assert seen == {name: values[0].tolist() for name, values in views.items()}
    assert session.state()["watch"]["agent"] == ("Spy (clairvoyant)" if level == "clairvoyant" else "Spy")


def test_an_agent_that_names_no_level_is_shown_what_memory_shows() -> None:
    spy = Spy()
    del spy.level
    watched(spy)
    assert "known" in spy.shown[0]
    assert "clairvoyant_stock" not in spy.shown[0]


def test_an_agent_with_a_memory_is_asked_each_move_once_in_order() -> None:
    player = Remembers()
    session = watched(player)
    assert player.games == [[sorted(game.legal_actions) for game in along(session) if not game.is_over]]
    go(session, 12)
    take_over(session)
    play(session, "draw")
    assert len(player.games) == 1
    take_over(session, False)
    assert player.games[1] == [sorted(game.legal_actions) for game in along(session) if not game.is_over]
    assert len(player.games) == 2
    for seen, then in player.kept:  # its own to keep
        assert {name: values[0].tolist() for name, values in seen.items()} == then


# ---- what is said of the moves ---------------------------------------------------------------------------------------


def test_probabilities_sum_to_one_and_the_agent_makes_the_likeliest_move() -> None:
    session = watched(agent("shipped"))
    assert session.state()["watch"]["says"] == "probability"
    for index in range(len(line(session))):
        shown = go(session, index)
        shares = [move["agent"] for move in shown["moves"]]
        assert sum(shares) == pytest.approx(1.0, abs=1e-4)
        assert shares == sorted(shares, reverse=True)
        assert shown["moves"][0]["made"]


def test_ratings_are_of_each_move_by_itself_and_the_best_rated_is_made() -> None:
    session = watched(agent("shipped", "till_dawn"), 42)
    assert session.state()["watch"]["says"] == "rating"
    for index in range(0, len(line(session)), 5):
        shown = go(session, index)
        assert shown["value"] is None  # it was not trained to say it
        assert all(0 <= move["agent"] <= 1 for move in shown["moves"])
        assert shown["moves"][0]["made"]


def test_a_judge_with_a_memory_judges_each_position_once_in_order() -> None:
    player = Judges()
    session = watched(player)
    played, judged = player.games
    assert played == judged
    for index in (0, 5, 3, len(played) - 1):
        shown = go(session, index)
        assert shown["value"] == index + 1
        assert {move["agent"] for move in shown["moves"]} == {index + 1}
    assert len(player.games) == 2


def test_after_a_move_by_hand_the_present_position_is_judged() -> None:
    player = Judges()
    session = watched(player)
    go(session, 8)
    take_over(session)
    for moves in (9, 10):
        play(session, "draw")
        assert session.state()["watch"]["value"] == moves + 1
        assert len(player.games[-1]) == moves + 1
    runs = len(player.games)
    for index in (3, 10, 9):
        assert go(session, index)["value"] == index + 1
    assert len(player.games) == runs


def test_the_shipped_agents_judgement_by_hand_is_that_of_the_same_game_watched() -> None:
    session = watched(agent("shipped"))
    go(session, 6)
    take_over(session)
    play(session, "draw")
    by_hand = session.state()["watch"]["moves"]
    take_over(session, False)
    handed_back = session.state()["watch"]["moves"]
    assert [(m["text"], m["agent"]) for m in by_hand] == [(m["text"], m["agent"]) for m in handed_back]
    assert handed_back[0]["made"]


@pytest.mark.parametrize(("preset", "objective"), [("pyramid", "win"), ("till_dawn", "score"), ("microsoft", "score")])
def test_the_solvers_values_are_those_of_rate_moves(preset: str, objective: str) -> None:
    session = watched(agent("greedy", preset), 42, max_seconds=None)
    mattered = 0
    for index, game in enumerate(along(session)):
        if index % 4 and len(game.legal_actions) < 3:
            continue
        shown = go(session, index)
        assert shown["objective"] == objective
        rated = {game.describe(each.move): each.value for each in rate_moves(game, objective)}
        words = {move["text"]: move["solver"] for move in shown["moves"]}
        if objective == "win":
            assert words == {text: ("win" if value else "lost") for text, value in rated.items()}
        else:
            assert {text: int(word.replace("−", "-")) for text, word in words.items()} == rated
            assert (preset == "microsoft") == (not any(word.startswith(("+", "−")) for word in words.values()))
        best = {move["text"] for move in shown["moves"] if move["best"]}
        differ = len(set(rated.values())) > 1
        assert best == {text for text, value in rated.items() if differ and value == max(rated.values())}
        mattered += differ
    assert mattered


def test_what_the_solver_does_not_prove_in_time_is_said_to_be_open() -> None:
    session = watched(First(), 42, "double_pyramid_pysol", max_seconds=0.0, objective="win")
    shown = session.state()["watch"]
    assert {move["solver"] for move in shown["moves"]} == {"?"}
    assert shown["outlook"] is None
    assert not any(move["best"] for move in shown["moves"])
    shown = watched(First(), 42, "double_pyramid_pysol", max_seconds=0.0).state()["watch"]
    assert all(move["solver"].startswith("≥ ") for move in shown["moves"])


def test_a_pause_hides_the_moves_too() -> None:
    session = watched(Judges())
    assert session.state()["watch"]["value"] == 1
    session.handle({"type": "pause", "on": True})
    shown = session.state()["watch"]
    assert (shown["moves"], shown["value"], shown["outlook"]) == ([], None, None)
    for event in ({"type": "watch", "to": 1}, {"type": "takeover", "on": True}, {"type": "restart"}):
        session.handle(event)
        assert told(session) == "error: The game is paused. Go on first."
    session.handle({"type": "pause", "on": False})
    assert session.state()["watch"]["moves"]


# ---- taking over -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tips", "shipped", "random"])
def test_what_if_another_move_is_played_and_the_agent_goes_on(name: str) -> None:
    session = watched(agent(name))
    before = line(session)
    index = next(i for i, game in enumerate(along(session)) if i > 3 and len(game.legal_actions) > 1)
    go(session, index)
    other = next(action for action in session.game.legal_actions if action != before[index])
    live = session.game
    play(session, session.game.describe(other))
    assert told(session) == f"error: Take over first: {name} plays this game."
    take_over(session)
    play(session, session.game.describe(other))
    assert session.state()["watch"]["length"] == index + 1
    take_over(session, False)
    assert session.game is live
    assert session.game.moves_made == index + 1
    after = line(session)
    assert after[: index + 1] == [*before[:index], other]
    (*_, end) = along(session)  # which checks each move
    assert end.is_over
    assert go(session, index)["moves"]
    assert session.game.redo_path[0] == move_table(session.rules)[other]


def test_by_hand_undo_and_restart_are_those_of_a_game_by_hand() -> None:
    session = watched(First())
    moves = line(session)
    go(session, 4)
    take_over(session)
    session.handle({"type": "undo"})
    session.handle({"type": "redo"})
    assert line(session) == moves
    session.handle({"type": "restart"})
    assert line(session) == []
    take_over(session, False)
    assert line(session) == moves


def test_a_game_ended_by_hand_can_be_handed_back() -> None:
    session = watched(agent("tips"))
    take_over(session)
    go(session, len(line(session)) - 1)
    play(session, session.game.describe(session.game.redo_path[0]))
    assert told(session) == f"good: Won with {session.game.moves_made} moves."
    take_over(session, False)
    assert told(session) == f"good: tips won with {session.game.moves_made} moves."
    assert session.state()["watch"]["length"] == session.game.moves_made


def test_a_move_from_python_takes_over() -> None:
    session = watched(agent("tips"))
    session.game.redo()
    assert not session.by_hand
    session.game.undo()
    session.game.play("draw")
    assert session.by_hand


# ---- events ----------------------------------------------------------------------------------------------------------


def test_one_event_is_one_change() -> None:
    session = watched(agent("tips"))
    changes: list[int] = []
    session.on_change = lambda: changes.append(session.version)
    events: list[dict[str, Any]] = [
        {"type": "watch", "to": 30}, {"type": "watch", "to": 2}, {"type": "watch", "to": 2},
        {"type": "watch", "to": 999}, {"type": "undo"}, {"type": "redo"}, {"type": "restart"},
        {"type": "play", "spots": ["draw"]}, {"type": "hint"}, {"type": "outlook"}, {"type": "takeover", "on": True},
        {"type": "play", "spots": ["draw"]}, {"type": "undo"}, {"type": "play", "spots": ["draw"]},
        {"type": "takeover", "on": False}, {"type": "takeover", "on": False}, {"type": "new", "deal": "7"},
        {"type": "rules", "rules": "mini"}, {"type": "pause", "on": True}, {"type": "pause", "on": False},
        {"type": "daily"}, {"type": "nonsense"},
    ]  # fmt: skip
    for count, event in enumerate(events, 1):
        session.handle(event)
        assert len(changes) == count, event
    assert changes == list(range(changes[0], changes[0] + len(events)))


def test_what_python_asks_for_is_one_change_too() -> None:
    session = watched(agent("tips"))
    changes: list[int] = []
    session.on_change = lambda: changes.append(session.version)
    session.go_to(30)
    session.take_over(True)
    session.game.play("draw")
    session.take_over(False)
    assert len(changes) == 4
    assert not session.by_hand


@pytest.mark.parametrize("to", [-1, 60, 10**30, True, 1.0, "1", None, [1]])
def test_a_move_out_of_range_is_one_clear_error(to: object) -> None:
    session = watched(agent("tips"))
    go(session, 3)
    session.handle({"type": "watch", "to": to})
    assert told(session) == f"error: watch: expected a move from 0 to 59, got {to!r}"
    assert session.game.moves_made == 3


@pytest.mark.parametrize("event", [{"type": "watch"}, {"type": "takeover"}, {"type": "takeover", "on": 1}])
def test_events_that_say_too_little(event: dict[str, Any]) -> None:
    session = watched(First())
    session.handle(event)
    assert told(session).startswith(f"error: {event['type']}: expected ")
    assert not session.by_hand


def test_other_deals_are_played_by_the_agent_too() -> None:
    session = watched(agent("tips"))
    take_over(session)
    session.handle({"type": "new", "deal": 7})
    assert line(session) == line(watched(agent("tips"), 7))
    assert (session.by_hand, session.game.moves_made) == (False, 0)
    session.handle({"type": "daily"})
    assert session.game.deal == Deal.daily(rules=session.rules)
    assert line(session)


def test_another_deal_has_values_of_its_own() -> None:
    session = watched(agent("tips", "microsoft"), 1, max_seconds=None)
    for deal in (2, 3):
        before = session.state()["watch"]
        session.handle({"type": "new", "deal": deal})
        shown = session.state()["watch"]
        assert shown == watched(agent("tips", "microsoft"), deal, max_seconds=None).state()["watch"]
        assert shown["outlook"] != before["outlook"]


def test_other_rules_are_for_agents_without_rules_of_their_own() -> None:
    session = watched(agent("tips"))
    session.handle({"type": "rules", "rules": "mini"})
    assert told(session) == "error: tips plays pyramid only, not mini: watch an agent made for that"
    assert str(session.rules) == "pyramid"
    free = watched(First())
    free.handle({"type": "rules", "rules": "mini"})
    assert str(free.rules) == "mini"
    assert line(free)
    assert free.state()["watch"]["moves"]


# ---- agents that are none --------------------------------------------------------------------------------------------


def test_a_name_is_no_agent_and_the_error_says_how_to_make_one() -> None:
    with pytest.raises(PyramidError, match=r'pe\.watch\(make_agent\(\'tips\', "pyramid"\), 42\)'):
        watched("tips")


@pytest.mark.parametrize(
    ("player", "said"),
    [(First, "got the class First"), (7, "got int"), (None, "got NoneType"), (lambda game: 0, "got function")],
)
def test_what_is_no_agent_is_refused(player: object, said: str) -> None:
    with pytest.raises(PyramidError, match=said):
        watched(player)


def test_settings_that_are_none_are_refused() -> None:
    for more in ({"seed": -1}, {"seed": True}, {"seed": 1.5}, {"objective": "steps"}, {"max_seconds": -1}):
        with pytest.raises(PyramidError, match=f"{next(iter(more))}: expected"):
            watched(First(), **more)
    with pytest.raises(PyramidError, match="level of the agent: expected one of table, memory, clairvoyant, got 'all'"):
        watched(Spy("all"))
    with pytest.raises(PyramidError, match="tips plays pyramid only, not mini"):
        watched(agent("tips"), 1, "mini")


def test_an_illegal_move_is_refused_at_the_door() -> None:
    player = Fails()
    player.how = an_illegal_one
    with pytest.raises(
        IllegalMoveError, match=r"Fails chose an illegal move, as move 1: .*\(Kd\).*, got 0: r2c1\+r2c2"
    ):
        watched(player)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (an_illegal_one, "Fails chose an illegal move"),
        (a_fault, "the agent failed: KeyError: 'spades'"),
        (lambda masks: 3, "expected one action index"),
        (lambda masks: np.array([0.5]), "expected one action index"),
        (lambda masks: np.array([10**6]), "expected an action index"),
        (lambda masks: None, "expected one action index"),
    ],
)
def test_an_agent_that_fails_later_leaves_the_table_as_it_is(how: Callable[[Masks], Any], said: str) -> None:
    player = Fails()
    session = watched(player)
    take_over(session)
    play(session, "draw")
    before = session.game.copy()
    player.how = how
    for event in ({"type": "takeover", "on": False}, {"type": "new", "deal": 7}):
        session.handle(event)
        assert told(session).startswith("error: Fails")
        assert said in told(session)
        assert session.game == before
        assert session.by_hand


def test_a_judge_that_fails_says_so_and_play_goes_on() -> None:
    class Breaks(Judges):
        broken = False

        def judge_in(self, games: NDArray[np.intp], observations: Seen, action_masks: Masks) -> Told:
            if self.broken:
                return Told(np.zeros((1, 3), np.float32), None)
            return super().judge_in(games, observations, action_masks)

    player = Breaks()
    session = watched(player)
    take_over(session)
    player.broken = True
    play(session, "Kd")  # the agent drew
    assert told(session).startswith("error: elephant: expected a judgement of shape (1, ")
    assert all(move["agent"] is None for move in session.state()["watch"]["moves"])
    assert session.game.moves_made == 1


def test_which_agents_remember() -> None:
    assert Player(Remembers())._remembers
    assert Player(agent("shipped"))._remembers
    assert not Player(agent("tips"))._remembers  # its act_in only hands on
    assert not Player(First())._remembers


def test_watch_makes_a_table() -> None:
    needs("anywidget", "notebook")
    from pyramid_env.table import Table, watch

    table = watch(agent("tips"), 42)
    assert isinstance(table, Table)
    assert table.state["watch"]["length"] == 59
    table.session.handle({"type": "watch", "to": 5})
    assert table.state["watch"]["at"] == table.game.moves_made == 5
