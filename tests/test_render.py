"""Pictures: text, SVG and pixels show what lies open and nothing else, in every preset."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable
from itertools import pairwise
from textwrap import dedent
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import pyramid_env as pe
from pyramid_env import render
from pyramid_env.game import Game
from pyramid_env.render import glyphs
from pyramid_env.render.layout import CARD_HEIGHT, CARD_WIDTH, Style, layout
from pyramid_env.render.pixels import _card
from pyramid_env.render.svg import card_words

PRESETS = sorted(pe.PRESETS)
ODD_RULES = [
    "pyramid:rows=2,ranks=5,suits=1,decks=1",
    "pyramid:rows=9,ranks=9,suits=4,decks=2",
    "pyramid:draw_count=12,waste_piles=12,pair_waste_tops=on",
    "pyramid:predealt=24",
    "giza:passes=unlimited,stock_top=on",
    "pyramid:rows=4,ranks=5,suits=2",  # no stock at all
    "till_dawn:draw_count=4,waste_piles=4",
]
SVG = "{http://www.w3.org/2000/svg}"


def games_of(rules: str, moves: int = 300, seed: int = 5) -> list[Game]:
    """The positions of one random game, without the deal's number (which a picture may name)."""
    choose = random.Random(seed)
    game = Game(pe.Deal(pe.Deal.number(seed, rules).cards), rules)
    seen = [game.copy()]
    while not game.is_over and game.moves_made < moves:
        game.play(choose.choice(game.legal_moves))
        seen.append(game.copy())
    return seen


def hidden_cards(game: Game) -> list[int]:
    """Indices of the cards that nobody sees now: the stock but an open top, and what lies under open waste cards."""
    rules, view = game.rules, render.look(game)
    _, stock, cursor, *_ = game.state.tolist()
    on_table = {card for pile in view.piles for card in pile.cards} | {view.stock_top}
    left = [k for k in range(rules.stock_size) if stock >> k & 1]
    if rules.decks == 1:
        return [rules.places + k for k in left if game.deal.cards[rules.places + k] not in on_table]
    return [rules.places + k for k in left if k > cursor]


@pytest.mark.parametrize("rules", PRESETS)
def test_the_order_of_hidden_cards_changes_no_picture(rules: str) -> None:
    shuffle = random.Random(1)
    for game in games_of(rules)[::7]:
        hidden = hidden_cards(game)
        cards = list(game.deal.cards)
        mixed = hidden.copy()
        shuffle.shuffle(mixed)
        for here, there in zip(hidden, mixed, strict=True):
            cards[here] = game.deal.cards[there]
        view = render.look(game.rules, game.deal.cards, game.state)
        other = render.look(game.rules, cards, game.state)
        # Whether the game is over may hang on hidden cards (passes without limit): that is told, not drawn.
        assert other._replace(over=view.over, can_recycle=view.can_recycle) == view
        for draw in (render.text, render.svg, render.one_line):
            assert draw(other._replace(over=view.over)) == draw(view)
        small = {"width": 200, "height": 150}
        assert (render.rgb_array(other._replace(over=view.over), **small) == render.rgb_array(view, **small)).all()


@pytest.mark.parametrize("rules", [*PRESETS, *ODD_RULES])
def test_pictures_of_a_game_and_of_its_position_are_the_same(rules: str) -> None:
    for game in games_of(rules)[::9]:
        ids = np.array([card.id for card in game.deal.cards], np.int8)
        for cards in (game.deal, game.deal.cards, list(game.deal.cards), ids):
            assert render.svg(game.rules, cards, game.state) == render.svg(game)
            assert render.one_line(game.rules, cards, game.state) == game.position
            small = {"width": 200, "height": 150}
            assert (render.rgb_array(game.rules, cards, game.state, **small) == render.rgb_array(game, **small)).all()


def test_what_is_no_position_is_refused() -> None:
    game = Game(1)
    calls: list[Callable[[], Any]] = [
        lambda: render.text(game.rules),
        lambda: render.text(game.rules, game.deal),
        lambda: render.text(game, game.deal),
        lambda: render.svg("pyramid", game.deal, game.state),  # type: ignore[arg-type]  # the wrong order is the subject
    ]
    for call in calls:
        with pytest.raises(TypeError, match="expected a Game"):
            call()


# ---- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [*PRESETS, *ODD_RULES])
def test_text_names_every_card_that_lies_open_and_marks_the_exposed(rules: str) -> None:
    for game in games_of(rules)[::9]:
        view, picture = render.look(game), str(game)
        rows = picture.split("\n")[2 : 2 + game.rules.rows]
        for row, line in zip(view.rows, rows, strict=True):
            cells = [f"[{p.card}]" if p.exposed else str(p.card or ".") for p in row]
            assert re.findall(r"\[..\]|\w\w|\.", line) == cells
        assert max(map(len, picture.split("\n"))) <= 120
        assert picture.isascii()
        for pile in view.piles:
            assert not pile.cards or f"[{pile.cards[-1]}]" in picture


def test_a_game_prints_as_a_pyramid() -> None:
    game = Game(42, "till_dawn")
    for move in ("Kd", "draw", "draw", "draw"):
        game.play(move)
    assert str(game) == dedent("""\
        till_dawn, deal 42

                     5h
                   Kc  8h
                 3d  Jd  8s
               Jh  9d  6c  Qd
             7c  Tc  6s  Ah  Qs
           7h  9c  5d  Kh  Th  Ac
        [2s][7d][9s]  . [9h][2h][Qh]

        stock [4s] of 21   waste 4d [6h] of 3
        pass 1 of 3   par -51   51 cards left   4 moves""")


def test_colours_come_on_request_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    game = Game(42)
    plain, coloured = render.text(game), render.text(game, colour=True)
    assert "\x1b" not in plain
    assert re.sub("\x1b\\[[0-9]+m", "", coloured) == plain
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert render.has_colour(Terminal())
    assert not render.has_colour(io.StringIO())
    monkeypatch.setattr("sys.stdout", Terminal())
    assert render.text(game, colour=None) == coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert not render.has_colour(Terminal())
    assert render.text(game, colour=None) == plain
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not render.has_colour(Terminal())


# ---- layout ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [*PRESETS, *ODD_RULES])
def test_cards_lie_on_the_table_and_piles_beside_each_other(rules: str) -> None:
    sizes = set()
    for game in games_of(rules):
        drawn = layout(render.look(game))
        sizes.add((drawn.width, drawn.height))
        below = [s for s in drawn.spots if not s.note.startswith("row") and s.style is not Style.COVERED]
        for spot in drawn.spots:
            assert 0 <= spot.x <= drawn.width - CARD_WIDTH
            assert 0 <= spot.y <= drawn.height - CARD_HEIGHT
        for a in below:
            assert all(a is b or abs(a.x - b.x) >= CARD_WIDTH or abs(a.y - b.y) >= CARD_HEIGHT for b in below)
    assert len(sizes) == 1  # the picture does not jump while a game goes on


# ---- SVG -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [*PRESETS, *ODD_RULES])
def test_svg_is_xml_with_title_description_and_every_card(rules: str) -> None:
    for game in games_of(rules)[::9]:
        root = ElementTree.fromstring(render.svg(game))
        assert root.tag == f"{SVG}svg"
        title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert title is not None
        assert description is not None
        assert title.text == f"Pyramid solitaire: {game.rules}"
        assert f"{game.cards_left} cards left" in str(description.text)
        groups = root.findall(f"{SVG}g")
        exposed = [g for g in groups if g.get("class") == "exposed"]
        view = render.look(game)
        open_places = sum(place.exposed for row in view.rows for place in row)
        tops = sum(bool(pile.cards) for pile in view.piles) if game.rules.stock_size else 0
        assert len(exposed) == open_places + tops + (view.stock_top is not None)
        shown = [p.card for row in view.rows for p in row if p.card]
        names = [str(g.findtext(f"{SVG}title")).split(",")[0] for g in groups]
        for card in shown:
            assert card_words(card) in names


def test_svg_escapes_names_and_shows_itself_in_a_notebook() -> None:
    rules = pe.rules("mini").replace(preset="<me> & you")
    picture = Game(1, rules)._repr_svg_()
    ElementTree.fromstring(picture)
    assert picture.startswith("<svg ")


# ---- pixels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [*PRESETS, *ODD_RULES])
def test_pixels_have_the_size_asked_for(rules: str) -> None:
    game = games_of(rules, moves=12)[-1]
    for width, height in ((400, 300), (84, 84), (120, 500), (33, 300)):
        picture = render.rgb_array(game, width=width, height=height)
        assert picture.shape == (height, width, 3)
        assert picture.dtype == np.uint8
        assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 3


def test_pixels_are_600_by_800_new_and_the_same_each_time() -> None:
    game = Game(42)
    first, second = render.rgb_array(game), render.rgb_array(game)
    assert first.shape == (600, 800, 3)
    assert (first == second).all()
    first[:] = 0
    assert second.any()
    assert (render.rgb_array(game) == second).all()


def test_every_move_changes_the_pixels() -> None:
    for rules in ("pyramid", "till_dawn", "giza"):
        frames = [render.rgb_array(game, width=400, height=300) for game in games_of(rules, moves=25)]
        for before, after in pairwise(frames):
            assert (before != after).any()


def test_every_card_looks_different() -> None:
    faces = {_card(card, Style.EXPOSED, 70, 50).face.tobytes() for card in pe.Deal.number(1).cards}
    assert len(faces) == 52


@pytest.mark.parametrize("size", [31, 0, -5, 8193, 1.5, True, "800"])
def test_sizes_that_make_no_picture_are_refused(size: Any) -> None:
    with pytest.raises(ValueError, match="width: expected a whole number from 32 to 8192 pixels, got"):
        render.rgb_array(Game(1), width=size)
    with pytest.raises(ValueError, match="height: expected"):
        render.rgb_array(Game(1), height=size)


def test_glyphs_cover_what_they_should() -> None:
    for letter in glyphs.STROKES:
        cover = glyphs.words(letter, 24)
        assert cover.shape[0] == 24
        assert (cover.max() == 1) == (letter != " ")
    drawn = {glyphs.words(letter, 24).tobytes() for letter in glyphs.STROKES}
    assert len(drawn) == len(glyphs.STROKES) - 1  # O and 0 look alike
    suits = [glyphs.suit(number, 20) for number in range(4)]
    assert len({cover.tobytes() for cover in suits}) == 4
    for cover in suits:
        assert (np.abs(cover - cover[:, ::-1]) < 1e-6).all()  # symmetric
        assert 0.25 < cover.mean() < 0.75
