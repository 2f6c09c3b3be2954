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
from conftest import needs

import pyramid_env as pe
from pyramid_env import render
from pyramid_env.game import Game
from pyramid_env.render import Appearance, Drawing, Marks, glyphs, marks_of, spots_of
from pyramid_env.render.appearance import DARK, LIGHT
from pyramid_env.render.layout import CARD_HEIGHT, CARD_WIDTH, LETTERS, Style, layout
from pyramid_env.render.pixels import _Brush, _card
from pyramid_env.render.shapes import CROWNS, RANKS, STAR, SUITS
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
LOOKS = [
    Appearance(),
    Appearance("light", True, False),
    Appearance("dark", False, True),
    Appearance("dark", True, True),
]
SMALL = {"width": 200, "height": 150}


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
        for look in LOOKS:
            assert render.svg(other, appearance=look, interactive=True) == render.svg(
                view._replace(over=other.over, can_recycle=other.can_recycle), appearance=look, interactive=True
            )
            pictures = [render.rgb_array(v._replace(over=view.over), appearance=look, **SMALL) for v in (other, view)]
            assert (pictures[0] == pictures[1]).all()


@pytest.mark.parametrize("rules", [*PRESETS, *ODD_RULES])
def test_pictures_of_a_game_and_of_its_position_are_the_same(rules: str) -> None:
    for game in games_of(rules)[::9]:
        ids = np.array([card.id for card in game.deal.cards], np.int8)
        for cards in (game.deal, game.deal.cards, list(game.deal.cards), ids):
            marks = Marks(marks_of(game).playable)  # a position does not tell what the last move was
            assert render.svg(game.rules, cards, game.state) == render.svg(game, marks=marks)
            assert render.one_line(game.rules, cards, game.state) == game.position
            picture = render.rgb_array(game, marks=marks, **SMALL)
            assert (render.rgb_array(game.rules, cards, game.state, **SMALL) == picture).all()


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


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("rules", [*PRESETS, *ODD_RULES])
def test_cards_lie_on_the_table_and_piles_beside_each_other(rules: str, bare: bool, large: bool) -> None:
    sizes = set()
    for game in games_of(rules):
        drawn = layout(render.look(game), large=large, bare=bare)
        sizes.add((drawn.width, drawn.height))
        below = [s for s in drawn.spots if not s.note.startswith("row") and s.style is not Style.COVERED]
        pyramid = [s for s in drawn.spots if s.note.startswith("row")]
        for spot in drawn.spots:
            assert 0 <= spot.x <= drawn.width - CARD_WIDTH
            assert 0 <= spot.y <= drawn.height - CARD_HEIGHT
        for a in below:
            assert all(a is b or not overlap(a.x, a.y, b.x, b.y) for b in below)
            assert not any(overlap(a.x, a.y, b.x, b.y) for b in pyramid)
        for label in drawn.labels:
            assert label.y + LETTERS * label.size / 2 <= drawn.height
        assert len({spot.key for spot in drawn.spots}) == len(drawn.spots)
        assert bool(drawn.labels) == (not bare or bool(below))
    assert len(sizes) == 1  # the picture does not jump while a game goes on


def overlap(ax: float, ay: float, bx: float, by: float) -> bool:
    return abs(ax - bx) < CARD_WIDTH - 1e-9 and abs(ay - by) < CARD_HEIGHT - 1e-9


def test_large_cards_are_larger_on_the_same_screen() -> None:
    for rules in PRESETS:
        view = render.look(Game(1, rules))
        for bare in (False, True):
            small, large = layout(view, bare=bare), layout(view, bare=bare, large=True)
            gain = min(800 / large.width, 600 / large.height) / min(800 / small.width, 600 / small.height)
            assert gain > (1.05 if view.rules.waste_piles == 1 and view.rules.rows >= 7 else 0.999)


# ---- spots and marks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [*PRESETS, *ODD_RULES])
def test_spots_of_a_removal_hold_the_cards_that_leave(rules: str) -> None:
    for game in games_of(rules)[::5]:
        drawn = {spot.key: spot.card for spot in layout(render.look(game)).spots}
        for move in game.legal_moves:
            if move.is_draw:
                assert spots_of(move) == ("stock",)
                continue
            cards = [drawn[key] for key in spots_of(move)]
            assert None not in cards
            assert sum(card.rank for card in cards if card) == game.rules.ranks
            named = {str(card) for card in cards}
            assert {pe.Card.parse(part).__str__() for part in game.describe(move).split("+")} == named


@pytest.mark.parametrize("rules", [*PRESETS, *ODD_RULES])
def test_marks_of_a_game_are_what_can_leave_and_what_the_last_move_touched(rules: str) -> None:
    assert marks_of(Game(1, rules)).last == frozenset()
    before = None
    for game in games_of(rules):
        marks = marks_of(game)
        assert marks.playable == {key for move in game.legal_moves if not move.is_draw for key in spots_of(move)}
        if before is not None:
            move = game.history[-1]
            if move.is_draw:
                views = render.look(before), render.look(game)
                grown = {
                    f"waste{n}"
                    for n, (a, b) in enumerate(zip(views[0].piles, views[1].piles, strict=True), 1)
                    if b.size > a.size
                }
                assert marks.last == (grown or {"stock"})
            else:
                assert marks.last == set(spots_of(move))
        before = game


def test_marks_take_any_keys_of_spots_and_refuse_others() -> None:
    assert Marks(hinted=["r7c3", "stock", "waste1", "waste8.2"]).hinted == {"r7c3", "stock", "waste1", "waste8.2"}
    for wrong in (["waste"], ["r0c1"], ["Kd"], [3], "r1c1", 5):
        with pytest.raises(pe.errors.PyramidError, match=r"selected: expected spots such as r7c3.*got"):
            Marks(selected=wrong)  # type: ignore[arg-type]  # the wrong type is the subject
    with pytest.raises(pe.errors.PyramidError, match="marks: expected Marks or None, got"):
        render.svg(Game(1), marks={"r7c1"})


def test_appearances_that_are_none_are_refused() -> None:
    for theme in ("night", None, ["dark"]):
        with pytest.raises(pe.errors.PyramidError, match="theme: expected one of auto, light, dark, got"):
            Appearance(theme)
    for switch in ("four_colours", "large_cards"):
        with pytest.raises(pe.errors.PyramidError, match=f"{switch}: expected True or False, got 1"):
            Appearance(**{switch: 1})


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(share * p for share, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_what_is_read_stands_out_from_what_it_stands_on() -> None:
    for palette in (LIGHT, DARK):
        assert contrast(palette.letter, palette.table) >= 4.5
        for ink in (palette.black, palette.red, palette.green, palette.blue):
            for ground in (palette.exposed, palette.covered):
                assert contrast(ink, ground) >= 4.5
        for mark in (palette.playable, palette.hinted):
            assert contrast(mark, palette.table) >= 2
        assert contrast(palette.exposed, palette.table) >= 3
        assert contrast(palette.last, palette.exposed) >= 3


# ---- SVG -------------------------------------------------------------------------------------------------------------


def classes(group: ElementTree.Element) -> set[str]:
    return {name.removeprefix("pyr-") for name in str(group.get("class")).split()}


def groups_of(picture: str) -> list[ElementTree.Element]:
    return [g for g in ElementTree.fromstring(picture).findall(f"{SVG}g") if "card" in classes(g)]


@pytest.mark.parametrize("rules", [*PRESETS, *ODD_RULES])
def test_svg_is_xml_with_title_description_and_every_card(rules: str) -> None:
    for game in games_of(rules)[::9]:
        root = ElementTree.fromstring(render.svg(game))
        assert root.tag == f"{SVG}svg"
        assert root.get("role") == "img"
        title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert title is not None
        assert description is not None
        assert title.text == f"Pyramid solitaire: {game.rules}"
        assert f"{game.cards_left} cards left" in str(description.text)
        groups = groups_of(render.svg(game))
        exposed = [g for g in groups if "exposed" in classes(g)]
        view = render.look(game)
        open_places = sum(place.exposed for row in view.rows for place in row)
        tops = sum(bool(pile.cards) for pile in view.piles) if game.rules.stock_size else 0
        assert len(exposed) == open_places + tops + (view.stock_top is not None)
        shown = [p.card for row in view.rows for p in row if p.card]
        names = [str(g.findtext(f"{SVG}title")).split(",")[0] for g in groups]
        for card in shown:
            assert card_words(card) in names
            assert card_words(card) in str(description.text)


@pytest.mark.parametrize("interactive", [False, True])
@pytest.mark.parametrize("rules", [*PRESETS, *ODD_RULES])
def test_every_group_names_its_spot_its_card_and_its_marks(rules: str, interactive: bool) -> None:
    for game in games_of(rules)[::9]:
        spots, marks = layout(render.look(game)).spots, marks_of(game)
        marks = Marks(marks.playable, marks.playable, [s.key for s in spots[:2]], marks.last)
        groups = {str(g.get("data-spot")): g for g in groups_of(render.svg(game, marks=marks, interactive=interactive))}
        assert set(groups) == {s.key for s in spots} | {key for key in marks.last if key[0] == "r"}
        for spot in spots:
            group = groups[spot.key]
            assert group.get("data-card") == ("" if spot.card is None else str(spot.card))
            marked = {name for name in ("playable", "hinted", "selected", "last") if spot.key in getattr(marks, name)}
            assert classes(group) == {"card", spot.style.name.lower(), *marked}
        for key in marks.last & set(groups) - {s.key for s in spots}:  # a card has left: a trace
            assert classes(groups[key]) == {"card", "empty", "trace", "last"}


@pytest.mark.parametrize("rules", PRESETS)
def test_an_interactive_svg_is_made_of_buttons_with_names(rules: str) -> None:
    for game in games_of(rules)[::9]:
        picture = render.svg(game, interactive=True)
        root = ElementTree.fromstring(picture)
        assert root.get("role") == "group"
        assert root.get("aria-label")
        assert root.get("width") is root.get("height") is None
        assert "<title" not in picture
        assert "score" not in picture
        spots = {spot.key: spot for spot in layout(render.look(game)).spots}
        for group in groups_of(picture):
            if "trace" in classes(group):
                assert group.get("aria-hidden") == "true"
                continue
            spot, words = spots[str(group.get("data-spot"))], str(group.get("aria-label"))
            can_be_chosen = spot.style is not Style.COVERED or "playable" in classes(group)
            assert group.get("role") == ("button" if can_be_chosen else "img")
            assert group.get("tabindex") == ("-1" if can_be_chosen else None)
            assert spot.note in words
            assert ("playable" in words) == ("playable" in classes(group))
            if spot.card:
                assert words.startswith(card_words(spot.card))
            for cover in spot.covers:
                assert card_words(cover) in words.split("covered by ")[1]


def test_svgs_of_several_looks_can_stand_on_one_page() -> None:
    """No ids, no rule for all elements of a kind, and every colour hangs on the class of its own root."""
    for look in LOOKS:
        for interactive in (False, True):
            picture = render.svg(Game(42), appearance=look, interactive=interactive)
            root = ElementTree.fromstring(picture)
            assert not re.search(r"[ \"]id=|url\(|href", picture)
            for element in root.iter():
                assert all(name.startswith("pyr-") for name in (element.get("class") or "pyr-").split())
            sheet = str(root.findtext(f"{SVG}style"))
            rules = re.findall(r"([^{}]+)\{([^{}]*)\}", sheet.replace("@media (prefers-color-scheme:dark){", ""))
            assert len(rules) > 20
            name = str(root.get("class")).split()[-1]
            for selectors, text in rules:
                for selector in selectors.strip().split(","):
                    assert selector.startswith(".pyr-")
                if "#" in text:
                    assert selectors.strip().startswith(f".{name} ")
            assert ("prefers-color-scheme" in sheet) == (look.theme == "auto")
            assert (look.palette.green in sheet) == look.four_colours
            assert (DARK.table in sheet) == (look.theme != "light")


def test_marks_are_told_apart_by_shape() -> None:
    """By more than colour: thin line, dashes with a star, double line, dot."""
    game = Game(42)
    key = "r7c1"
    shapes = []
    for name in ("playable", "hinted", "selected", "last"):
        group = next(g for g in groups_of(render.svg(game, marks=Marks(**{name: {key}}))) if g.get("data-spot") == key)
        shapes.append({part.get("class") for part in group} & {"pyr-ring", "pyr-inner", "pyr-star", "pyr-dot"})
    assert shapes == [{"pyr-ring"}, {"pyr-ring", "pyr-star"}, {"pyr-ring", "pyr-inner"}, {"pyr-dot"}]
    sheet = render.svg(game)
    assert "pyr-hinted>.pyr-ring{stroke-width:.085;stroke-dasharray" in sheet


def test_an_empty_stock_that_can_be_turned_over_says_so() -> None:
    game = Game(1)
    while render.look(game).stock_count:
        game.play("draw")
    stock = next(g for g in groups_of(render.svg(game, interactive=True)) if g.get("data-spot") == "stock")
    assert "turn the waste over" in str(stock.get("aria-label"))
    assert "pyr-pen" in {part.get("class") for part in stock}


def test_svg_escapes_names_and_shows_itself_in_a_notebook() -> None:
    rules = pe.rules("mini").replace(preset='<me> & "you"')
    for interactive in (False, True):
        ElementTree.fromstring(render.svg(Game(1, rules), interactive=interactive))
    picture = Game(1, rules)._repr_svg_()
    ElementTree.fromstring(picture)
    assert picture.startswith("<svg ")
    drawing = Drawing(picture)
    assert drawing == picture
    assert drawing._repr_html_() == picture


def test_a_deal_shows_the_table_and_no_card_of_the_stock() -> None:
    for rules in ("pyramid", "mini", "double_pyramid"):
        deal = pe.Deal.number(7, rules)
        picture = deal._repr_svg_()
        assert picture is not None
        names = [g.get("data-card") for g in groups_of(picture)]
        chosen = pe.rules(rules)
        assert [name for name in names if name] == [str(card) for card in deal.cards[: chosen.places]]
    assert pe.Deal.number(7, "pyramid:rows=2,ranks=5,suits=1,decks=1")._repr_svg_() is None  # no preset has the deck


def test_a_solution_shows_its_evidence_as_a_table() -> None:
    solution = pe.solve(Game(3, "mini"), objective="score")
    table = ElementTree.fromstring(solution._repr_html_())
    told = {str(row.findtext("th")): "".join(row.find("td").itertext()) for row in table}
    assert told["status"] == "optimal"
    assert told["value"] == str(solution.value)
    assert told["bound"] == str(solution.bound)
    assert told["positions"] == f"{solution.states:,}"
    assert ", ".join(map(str, solution.moves)) in told["line"]


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
    for look in LOOKS:
        for strip in (False, True):
            faces = {_card(c, Style.EXPOSED, strip, _Brush(look, 50)).face.tobytes() for c in pe.Deal.number(1).cards}
            assert len(faces) == 52


def test_every_mark_changes_the_pixels_in_its_own_way_and_near_its_card_alone() -> None:
    game, key = Game(42), "r7c3"
    plain = render.rgb_array(game, marks=Marks())
    drawn = layout(render.look(game))
    spot = next(s for s in drawn.spots if s.key == key)
    scale = min(800 / drawn.width, 600 / drawn.height)
    left, top = (800 - scale * drawn.width) / 2 + scale * spot.x, (600 - scale * drawn.height) / 2 + scale * spot.y
    seen = set()
    for name in ("playable", "hinted", "selected", "last"):
        picture = render.rgb_array(game, marks=Marks(**{name: {key}}))
        ys, xs = (picture != plain).any(axis=2).nonzero()
        assert ys.size > 20
        near = 0.25 * scale
        assert left - near <= xs.min() <= xs.max() <= left + scale * CARD_WIDTH + near
        assert top - near <= ys.min() <= ys.max() <= top + scale * CARD_HEIGHT + near
        seen.add((ys.tobytes(), xs.tobytes()))
    assert len(seen) == 4  # other pixels, not only other colours


def test_a_trace_shows_where_cards_have_left() -> None:
    game = Game(42)
    game.play(next(move for move in game.legal_moves if not move.is_draw))
    with_trace, without = render.rgb_array(game), render.rgb_array(game, marks=Marks(marks_of(game).playable))
    assert (with_trace != without).any()


@pytest.mark.parametrize("look", LOOKS[1:])
def test_pixels_look_like_the_svg(look: Appearance) -> None:
    """Against a rasteriser: the same colours at the same places, but for the letters of labels and edges."""
    resvg = needs("resvg_py", "render")
    image = needs("PIL.Image", "render")
    for rules in ("pyramid", "giza", "till_dawn", "solitaire13_three_piles"):
        game = games_of(rules, moves=20)[-1]
        drawn = layout(render.look(game), large=look.large_cards)
        text = render.svg(game, appearance=look)
        data = bytes(resvg.svg_to_bytes(svg_string=text, width=round(drawn.width * 80), skip_system_fonts=True))
        theirs = np.asarray(image.open(io.BytesIO(data)).convert("RGB")).astype(int)
        height, width, _ = theirs.shape
        ours = render.rgb_array(game, width=width, height=height, appearance=look).astype(int)
        far = np.abs(ours - theirs).max(axis=2) > 60
        assert far.mean() < 0.03


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
    suits = [glyphs.fill(shape, 20, 20, 20, 40, 40) for shape in SUITS]
    assert len({cover.tobytes() for cover in suits}) == 4
    for cover in suits:
        assert (np.abs(cover - cover[:, ::-1]) < 0.1).all()  # symmetric
        assert 0.25 < cover.mean() < 0.75
    ranks = {glyphs.pen(shape, 4, 4, (3, 3), 4, 40, 40).tobytes() for shape in RANKS}
    assert len(ranks) == 13
    for shape in (*CROWNS.values(), STAR):
        assert 0.1 < glyphs.fill(shape, 20, 20, 18, 40, 40).mean() < 0.6
    assert not glyphs.fill(STAR, -50, 20, 10, 40, 40).any()  # beside the canvas
