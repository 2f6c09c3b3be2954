"""The table as people meet it: in JupyterLab and on the localhost page, at desktop and phone width, by mouse and by
keyboard, in a headless Chromium."""

import json
import os
import re
import secrets
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from conftest import needs

import pyramid_env as pe
from pyramid_env.render import spots_of
from pyramid_env.table import Session, Store, TableServer

DESKTOP = {"width": 1280, "height": 960}
PHONE = {"width": 390, "height": 844}
WAIT_MS = 30_000  # a fresh installation compiles the rules and the solver meanwhile
ROOT = Path(__file__).parent.parent


class Seat:
    """A person at a table: what is seen and done goes through the browser alone."""

    def __init__(self, page, data, reopen):
        self.page, self.data, self._reopen = page, data, reopen
        self.touch = page.context.new_cdp_session(page) if page.evaluate("navigator.maxTouchPoints > 0") else None
        self.errors = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.set_default_timeout(WAIT_MS)

    def at(self, selector):
        return self.page.locator(f".pt {selector}").first

    def control(self, name):
        return self.at(f"[data-control={name}]")

    def shows(self, name):
        return self.at(f".pt-status [data-shows={name}]").inner_text()

    @property
    def said(self):
        return self.at(".pt-message").inner_text()

    @property
    def version(self):
        return int(self.page.locator(".pt").first.get_attribute("data-version"))

    @property
    def moves(self):
        return int(self.shows("moves").split()[0])

    @property
    def deal(self):
        return self.control("copy").inner_text().split()[-1]

    def changes(self, act):
        """Act, and wait for the table's answer."""
        before = self.version
        act()
        self.until(lambda: self.version > before)

    def until(self, is_so):
        """Wait; by asking again, since the page's own policy forbids scripts that are texts."""
        end = time.monotonic() + WAIT_MS / 1000
        while not is_so():
            assert time.monotonic() < end, f"waited in vain; it says: {self.said}"
            self.page.wait_for_timeout(15)

    def press(self, control):
        self.changes(self.control(control).click)

    def key(self, key):
        self.changes(lambda: self.page.keyboard.press(key))

    def spot(self, spot):
        return self.page.locator(f'.pt-board [data-spot="{spot}"]')

    def middle(self, spot):
        """Where the card shows: the upper strip that no cover hides."""
        box = self.spot(spot).bounding_box()
        across = 0.2 if "." in spot else 0.5  # under another waste card
        return box["x"] + across * box["width"], box["y"] + min(0.22 * box["height"], box["height"] / 2)

    def click(self, spot):
        """By mouse, or with a finger where there is a touch screen."""
        (self.page.touchscreen.tap if self.touch else self.page.mouse.click)(*self.middle(spot))

    def drag(self, spot, target, short=0.0):
        """Drag a card onto another one, or only most of the way."""
        x0, y0 = self.middle(spot)
        x1, y1 = self.middle(target)
        x1, y1 = x1 + (x0 - x1) * short, y1 + (y0 - y1) * short
        path = [(x0, y0), (x0 + 4, y0 + 9), ((x0 + x1) / 2, (y0 + y1) / 2), (x1, y1)]
        if self.touch:
            for kind, point in zip(("touchStart", *["touchMove"] * 3), path, strict=True):
                points = [{"x": point[0], "y": point[1]}]
                self.touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
            self.touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
            return
        mouse = self.page.mouse
        mouse.move(*path[0])
        mouse.down()
        for point in path[1:]:
            mouse.move(*point, steps=2)
        mouse.up()

    def drag_by(self, spot, dx, dy, home=False):
        """Drag a card somewhere, and back if it is to come home."""
        x, y = self.middle(spot)
        mouse = self.page.mouse
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + dx, y + dy, steps=3)
        if home:
            mouse.move(x, y, steps=3)
        mouse.up()

    def make(self, way, first, *second):
        """A removal in one of its ways: click, drag, or a king dragged off its place."""
        if way == "off":
            self.drag_by(first, 0, -160)
        elif way == "drag":
            self.drag(first, *second)
        else:
            for spot in (first, *second):
                self.click(spot)

    def play(self, move, by="click"):
        """One move by hand."""
        spots = spots_of(move)
        if move.is_draw and self.spot("stock").get_attribute("data-card").startswith("K"):
            return self.press("draw")  # a click would take the king
        if move.is_draw or len(spots) == 1:
            return self.changes(lambda: self.click(spots[0]))
        if spots[0] == "stock":  # a click there would draw: the other card comes first
            spots = spots[::-1]
        if by == "drag":
            return self.changes(lambda: self.drag(*spots))
        self.click(spots[0])
        return self.changes(lambda: self.click(spots[1]))

    def new(self, control, value=None):
        """Another deal by the dialog."""
        self.control("new").click()
        if value is not None:
            self.control("number").fill(str(value))
        self.changes(self.control(control).click)

    def reopen(self):
        """Reload the page in mid-game."""
        self._reopen(self.page)
        self.page.wait_for_selector(".pt [data-control=new]")

    def results(self):
        with Store(self.data) as store:
            return store.results("pyramid")


@pytest.fixture
def page_seat(browser, tmp_path):
    """Sit down at a page on localhost."""
    closing = []

    def sit(rules="pyramid", deal=None, *, size=DESKTOP, session=None, **options):
        data = tmp_path / "table.sqlite3"
        store = Store(data)
        server = TableServer(session or Session(rules, deal, store=store))
        touch = {"has_touch": True, "is_mobile": True} if size == PHONE else {}
        context = browser.new_context(viewport=size, **touch, **options)
        closing.extend([context.close, server.close, store.close])
        page = context.new_page()
        seat = Seat(page, data, lambda page: page.reload())
        seat.server = server
        page.goto(server.address)
        page.wait_for_selector(".pt-status [data-shows=moves]")
        return seat

    yield sit
    for close in closing:
        close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab server: its address, token, folder of notebooks, and the table's database."""
    needs("jupyterlab", "browser")
    needs("anywidget", "notebook")
    folder, token = tmp_path_factory.mktemp("lab"), secrets.token_hex(8)
    (folder / "books").mkdir()
    places = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime"}
    environment = os.environ | {name: str(folder / place) for name, place in places.items()}
    environment |= {"PYRAMID_ENV_DATA": str(folder), "PYTHONPATH": str(ROOT)}
    call = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--port=0",
        f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder / 'books'}", "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(call, env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    try:
        yield _address(server, folder), token, folder
    finally:
        server.terminate()
        server.wait(30)


def _address(server, folder):
    """Where the server listens, as it writes down itself."""
    end = time.monotonic() + 60
    while time.monotonic() < end and server.poll() is None:
        for file in (folder / "runtime").glob("jpserver-*.json"):
            try:
                address = json.loads(file.read_text())["url"]
                urllib.request.urlopen(f"{address}api", timeout=5).close()
            except (ValueError, OSError):
                continue
            return address
        time.sleep(0.2)
    raise AssertionError((folder / "log").read_text())


@pytest.fixture
def lab_seat(browser, lab):
    """Sit down at a table in a notebook."""
    address, token, folder = lab
    contexts = []

    def sit(code, size=DESKTOP):
        name = f"{secrets.token_hex(4)}.ipynb"
        cells = [
            {
                "cell_type": "code",
                "id": f"c{at}",
                "metadata": {},
                "source": source,
                "outputs": [],
                "execution_count": None,
            }
            for at, source in enumerate(code)
        ]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
        (folder / "books" / name).write_text(json.dumps(book))
        contexts.append(browser.new_context(viewport=size))
        page = contexts[-1].new_page()

        def reopen(page):
            page.locator(".jp-NotebookPanel-toolbar [data-jp-item-name=save]").first.click()
            page.wait_for_timeout(1500)
            page.reload()

        seat = Seat(page, folder / "table.sqlite3", reopen)
        page.goto(f"{address}lab/workspaces/{secrets.token_hex(4)}/tree/{name}?token={token}")
        page.wait_for_selector(".jp-NotebookPanel-toolbar")
        _run_all(page)
        page.wait_for_selector(".pt-status [data-shows=moves]")
        return seat

    yield sit
    for context in contexts:
        context.close()


def _run_all(page):
    """JupyterLab lets a call pass that comes before its kernel is connected: call until the first cell has run."""
    page.locator(".jp-StatusBar-Widget", has_text="| Idle").wait_for()
    for _ in range(3):
        if (asks := page.locator(".jp-Dialog button.jp-mod-accept")).count():  # which kernel, for it came too early
            asks.first.click()
        page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
        page.locator('.lm-Menu-item[data-command="runmenu:run-all"]').click()
        for _ in range(50):
            page.wait_for_timeout(200)
            if page.locator(".jp-InputPrompt").first.inner_text().strip() != "[ ]:":
                return
    raise AssertionError("the notebook does not run")


def _restart_and_run_all(page):
    page.locator(".lm-MenuBar-itemLabel", has_text="Kernel").first.click()
    page.locator('.lm-Menu-item[data-command="kernelmenu:restart-and-clear"]').click()
    page.locator(".jp-Dialog button.jp-mod-accept").click()
    page.wait_for_timeout(1000)
    _run_all(page)


def winning(deal, rules="pyramid"):
    """The moves of a shortest win."""
    moves = pe.solve(pe.Deal.number(deal, rules), rules, objective="steps", max_seconds=30).moves
    assert moves
    return moves


WON = next(
    number
    for number in range(100)
    if pe.solve(pe.Deal.number(number), "pyramid", objective="steps", max_seconds=5).moves
)


# ---- whole games -----------------------------------------------------------------------------------------------------


def play_to_the_win(seat, by):
    for at, move in enumerate(winning(WON)):
        seat.play(move, by)
        assert seat.moves == at + 1
    assert seat.said.startswith("Won in ")
    result = seat.results()[-1]
    assert (result.won, result.deal, result.moves, result.helped) == (True, str(WON), seat.moves, False)
    assert seat.errors == []


@pytest.mark.parametrize("by", ["click", "drag"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_whole_game_is_won_on_the_page(page_seat, size, by):
    play_to_the_win(page_seat(deal=WON, size=size), by)


@pytest.mark.parametrize("by", ["click", "drag"])
def test_a_whole_game_is_won_in_jupyterlab(lab_seat, by):
    play_to_the_win(lab_seat(["import pyramid_env as pe", f"table = pe.Table('pyramid', {WON})\ntable"]), by)


def test_a_whole_game_is_won_by_the_keyboard(page_seat):
    seat = page_seat(deal=WON)
    for move in winning(WON):
        if move.is_draw:
            seat.key("d")
            continue
        spots = spots_of(move)
        for at, spot in enumerate(spots):
            seat.spot(spot).focus()
            last = at == len(spots) - 1
            (seat.key if last else seat.page.keyboard.press)("Enter")
    assert seat.said.startswith("Won in ")


def positions_by_kind(rules):
    """A position of random games for each kind of move but the draw, with a move of that kind."""
    rng, found = np.random.default_rng(5), {}
    kinds = {move.kind for move in pe.moves.move_table(pe.rules(rules)) if not move.is_draw}
    for number in range(2_000):
        game = pe.Game(number, rules)
        while not game.is_over and set(found) != kinds:
            for move in game.legal_moves:
                if move.kind in kinds and move.kind not in found:
                    found[move.kind] = pe.Game.from_state(game.deal, rules, game.state), move
            game.play(game.legal_moves[rng.integers(len(game.legal_moves))])
        if set(found) == kinds:
            break
    assert set(found) == kinds
    return found


@pytest.mark.parametrize(
    "rules", ["pyramid", "till_dawn", "microsoft", "giza", "solitaire13_three_piles", "overlap", "double_pyramid"]
)
def test_all_kinds_of_moves_can_be_made_by_click_and_by_drag_both_ways(page_seat, rules):
    session = Session(rules, 1)
    seat = page_seat(session=session)
    for game, move in positions_by_kind(rules).values():
        spots = spots_of(move)
        session.show(game)
        seat.changes(lambda: seat.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))"))
        if len(spots) == 1:  # a king: a click, or dragged off its place
            ways = [("click", spots), ("off", spots)]
        else:
            ways = [("click", spots[::-1] if spots[0] == "stock" else spots), ("drag", spots), ("drag", spots[::-1])]
        for way, (first, *second) in ways:  # a click on the stock would draw, so it comes second
            seat.changes(lambda way=way, first=first, second=second: seat.make(way, first, *second))
            assert seat.moves == 1, (move, way, seat.said)
            seat.press("undo")
    assert seat.errors == []


def test_a_drag_that_comes_home_again_plays_nothing(page_seat):
    seat = page_seat(deal=42)
    seat.drag_by("r7c4", 0, -120, home=True)  # the king
    seat.drag_by("r7c4", 6, 3)  # a click that slipped
    seat.page.wait_for_timeout(400)
    assert seat.moves == 0
    seat.changes(lambda: seat.drag_by("r7c4", 0, -160))
    assert seat.moves == 1


def test_enter_in_the_field_of_rules_plays_those_rules(page_seat):
    seat = page_seat(deal=42)
    seat.key("d")
    seat.control("new").click()
    seat.control("rules-text").fill("giza")
    seat.key("Enter")
    assert seat.control("rules").input_value() == "giza"
    seat.changes(lambda: seat.control("rules").select_option("pyramid"))
    assert (seat.deal, seat.moves) == ("42", 1)  # not left: it goes on
    seat.control("new").click()
    seat.control("number").fill("Pyramid solitaire, till_dawn, deal 77")  # as the copy button writes it
    seat.page.keyboard.press("Enter")
    seat.until(lambda: seat.deal == "77")
    assert seat.control("rules").input_value() == "till_dawn"


# ---- every control ---------------------------------------------------------------------------------------------------


def use_every_control(seat):
    seat.changes(lambda: seat.click("stock"))
    seat.changes(lambda: seat.click("stock"))
    assert seat.moves == 2
    seat.press("undo")
    seat.press("undo")
    assert seat.moves == 0
    assert seat.control("undo").is_disabled()
    seat.press("redo")
    assert seat.moves == 1
    seat.press("hint")
    assert seat.page.locator(".pt-board .pyr-hinted").count() >= 1
    seat.press("best")
    assert "the solver" in seat.said
    seat.press("outlook")
    assert "can still be won" in seat.said
    seat.press("restart")
    assert seat.moves == 0
    assert seat.deal == str(WON)
    seat.changes(lambda: seat.click("stock"))
    seat.press("pause")
    assert seat.page.locator(".pt-board [data-spot]").count() == 0
    time_then = seat.shows("time")
    seat.page.wait_for_timeout(1200)
    assert seat.shows("time") == time_then
    seat.press("resume")
    assert seat.page.locator(".pt-board [data-spot]").count() > 28
    seat.control("settings").click()
    for name in ("large_cards", "four_colours", "auto_pause"):
        before = seat.page.locator(".pt-board").inner_html()
        seat.press(name)
        assert (seat.page.locator(".pt-board").inner_html() != before) == (name != "auto_pause")
    seat.changes(lambda: seat.control("theme").select_option("dark"))
    assert seat.page.locator(".pt").first.get_attribute("data-theme") == "dark"
    seat.at("dialog[open] [data-control=close]").click()
    seat.press("star")
    assert seat.control("star").get_attribute("aria-pressed") == "true"
    assert seat.at("[data-control=rules] option").inner_text() == "★ Pyramid"
    seat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    seat.control("copy").click()
    seat.until(
        lambda: seat.page.evaluate("navigator.clipboard.readText()") == f"Pyramid solitaire, pyramid, deal {WON}"
    )
    seat.control("help").click()
    assert "Undo".lower() in seat.at("dialog[open]").inner_text().lower()
    seat.at("dialog[open] [data-control=close]").click()
    seat.control("full").click()
    seat.until(lambda: seat.page.evaluate("Boolean(document.fullscreenElement?.classList.contains('pt'))"))
    seat.control("full").click()
    seat.until(lambda: seat.page.evaluate("!document.fullscreenElement"))
    seat.new("random")
    assert int(seat.deal) >= 1_000_000
    seat.control("new").click()
    seat.control("winnable").check()
    seat.changes(seat.control("random").click)
    assert pe.solve(pe.Deal.number(int(seat.deal)), "pyramid", objective="win").value == 1
    seat.new("deal", 4711)
    assert seat.deal == "4711"
    seat.new("daily")
    assert re.fullmatch(r"20\d{6}", seat.deal)
    seat.changes(lambda: seat.control("rules").select_option("till_dawn"))
    assert "game 1 of 6" in seat.shows("match")
    seat.changes(lambda: seat.control("rules").select_option("pyramid"))
    seat.control("new").click()
    seat.control("rules-text").fill("tuts_tomb:overlap=true")
    seat.press("other-rules")
    assert seat.control("rules").input_value() == "tuts_tomb:overlap=true"
    assert seat.errors == []


def test_every_control_does_its_work_on_the_page(page_seat):
    use_every_control(page_seat(deal=WON))


def test_every_control_does_its_work_on_a_phone(page_seat):
    use_every_control(page_seat(deal=WON, size=PHONE))


def test_every_control_does_its_work_in_jupyterlab(lab_seat):
    use_every_control(lab_seat([f"import pyramid_env as pe\ntable = pe.Table('pyramid', {WON})\ntable"]))


def reload_and_go_on(seat):
    for move in (moves := winning(WON))[:5]:
        seat.play(move)
    left = seat.shows("left")
    seat.reopen()
    assert (seat.moves, seat.deal, seat.shows("left")) == (5, str(WON), left)
    for move in moves[5:]:
        seat.play(move)
    assert seat.said.startswith("Won in ")
    seat.changes(seat.control("statistics").click)
    row = seat.at(".pt-table tr[data-rules=pyramid]")
    shown = {cell.get_attribute("data-shows"): cell.inner_text() for cell in row.locator("td").all()}
    results = seat.results()
    par = sum(result.par for result in results) / len(results)
    assert shown["played"] == str(len(results))
    assert shown["won"].split()[0] == str(sum(result.won for result in results))
    assert float(shown["par"].replace("−", "-")) == pytest.approx(par, abs=0.051)
    assert re.fullmatch(r"\d+:\d\d", shown["best"])
    assert int(shown["streak"]) >= 1


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_reloading_the_page_goes_on_and_statistics_follow(page_seat, size):
    reload_and_go_on(page_seat(deal=WON, size=size))


def test_reloading_jupyterlab_goes_on_and_statistics_follow(lab_seat):
    reload_and_go_on(lab_seat([f"import pyramid_env as pe\ntable = pe.Table('pyramid', {WON})\ntable"]))


def test_a_restarted_kernel_goes_on_where_the_last_move_left_the_game(lab_seat):
    seat = lab_seat([f"import pyramid_env as pe\ntable = pe.Table('pyramid', {WON})\ntable"])
    for move in winning(WON)[:4]:
        seat.play(move)
    left = seat.shows("left")
    seat.page.evaluate("document.querySelector('.pt').remove()")
    _restart_and_run_all(seat.page)
    seat.page.wait_for_selector(".pt-status [data-shows=moves]")
    assert (seat.moves, seat.shows("left")) == (4, left)
    assert "goes on" in seat.said


def test_python_moves_the_table_and_the_table_moves_python(lab_seat):
    seat = lab_seat(
        [
            "import pyramid_env as pe\nimport gymnasium as gym",
            "table = pe.Table('pyramid', 42, keep=False)\ntable",
            "table.game.play('Kd')\ntable.game.play('draw')",
        ]
    )
    seat.until(lambda: seat.moves == 2)
    seat.press("undo")
    assert seat.moves == 1


def test_steps_of_an_attached_environment_show_on_the_table(lab_seat):
    seat = lab_seat(
        [
            "import pyramid_env as pe\nimport gymnasium as gym",
            "table = pe.Table('pyramid', 42, keep=False)\ntable",
            "env = table.attach(gym.make('pyramid_env/Pyramid-v0'))\n_, info = env.reset(options={'deal': 7})\n"
            "for _ in range(3):\n    _, _, _, _, info = env.step(env.action_space.n - 1)",
        ]
    )
    seat.until(lambda: seat.moves == 3)
    assert seat.deal == "7"


# ---- details ---------------------------------------------------------------------------------------------------------


def test_a_card_dropped_near_its_partner_is_drawn_to_it(page_seat):
    game = next(game for game in map(pe.Game, range(99)) if game.legal_moves[0].kind == pe.Kind.PLACE_PAIR)
    seat = page_seat(deal=game.deal.deal_number)
    first, second = spots_of(game.legal_moves[0])
    seat.changes(lambda: seat.drag(first, second, short=0.18 if abs(int(first[-1]) - int(second[-1])) > 2 else 0.3))
    assert seat.moves == 1


def test_a_pair_that_is_none_is_explained_and_changes_nothing(page_seat):
    seat = page_seat(deal=42)
    seat.click("r7c1")
    seat.changes(lambda: seat.click("r7c2"))
    assert "make 9, not 13" in seat.said
    assert seat.moves == 0
    assert seat.page.locator(".pyr-selected").get_attribute("data-spot") == "r7c2"
    seat.page.keyboard.press("Escape")
    seat.changes(lambda: seat.click("r6c1"))
    assert "is covered by 2s and 7d" in seat.said
    assert seat.moves == 0


def test_the_game_pauses_by_itself_after_five_idle_minutes(page_seat):
    now = [0.0]  # the table's clock; the page has the browser's
    seat = page_seat(session=Session("pyramid", 42, now=lambda: now[0]))

    def wait(seconds):
        now[0] += seconds
        seat.page.clock.run_for(1000 * seconds)

    seat.page.clock.install()
    seat.page.reload()
    seat.page.wait_for_selector(".pt-board [data-spot]")
    seat.changes(lambda: seat.page.keyboard.press("d"))
    wait(290)
    assert seat.page.locator(".pt-board [data-spot]").count() > 28
    seat.changes(lambda: wait(20))
    assert seat.page.locator(".pt-board [data-spot]").count() == 0
    seat.press("resume")
    seat.control("settings").click()
    seat.press("auto_pause")
    seat.at("dialog[open] [data-control=close]").click()
    wait(900)
    assert seat.page.locator(".pt-board [data-spot]").count() > 28


def test_an_idle_page_does_not_pause_a_game_that_is_played_elsewhere(page_seat):
    now = [0.0]
    session = Session("pyramid", 42, now=lambda: now[0])
    seat = page_seat(session=session)
    seat.page.clock.install()
    seat.page.reload()
    seat.page.wait_for_selector(".pt-board [data-spot]")
    for _ in range(8):
        session.game.play("draw")
        now[0] += 60
        session.handle({"type": "awake"})
        seat.page.clock.run_for(60_000)
    assert not session.paused
    assert seat.page.locator(".pt-board [data-spot]").count() > 28


def lost_line(rules):
    """A deal and moves that lose it."""
    rng = np.random.default_rng(0)
    while True:
        game = pe.Game(int(rng.integers(1000)), rules)
        while not game.is_over:
            moves = game.legal_moves
            game.play(moves[rng.integers(len(moves))])
        if not game.is_won:
            return game.deal.deal_number, game.history


def test_no_moves_left_is_said_plainly_with_what_to_do_next(page_seat):
    deal, line = lost_line("mini_one_pass")
    seat = page_seat("mini_one_pass", deal)
    for move in line:
        seat.play(move)
    assert seat.said.startswith("No moves left")
    assert all(word in seat.said for word in ("Undo", "Restart", "New"))
    assert seat.control("hint").is_disabled()
    seat.press("undo")
    assert "No moves left" not in seat.said


def test_a_match_of_six_runs_on_the_table(page_seat):
    seat = page_seat("till_dawn", 1)
    for game in range(1, 7):
        assert f"match 1: game {game} of 6" in seat.shows("match")
        seat.key("d")
        seat.new("deal", game + 1)
    assert "match 2: game 1 of 6" in seat.shows("match")
    with Store(seat.data) as store:
        assert len(store.match("till_dawn", 6).scores) == 6


def test_arrow_keys_walk_over_the_table(page_seat):
    seat = page_seat(deal=42)
    seat.spot("r7c1").focus()
    walked = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft"):
        seat.page.keyboard.press(key)
        walked.append(seat.page.evaluate("document.activeElement.dataset.spot"))
    assert walked[:2] == ["r7c2", "r7c3"]
    assert walked[2] == "stock"
    assert walked[3].startswith("r7c")
    assert seat.page.evaluate("document.querySelectorAll(\".pt-board [tabindex='0']\").length") == 1


def test_keys_of_the_table_do_not_reach_jupyterlab(lab_seat):
    seat = lab_seat(["import pyramid_env as pe", f"table = pe.Table('pyramid', {WON}, keep=False)\ntable"])
    cells = seat.page.locator(".jp-Cell").count()
    felt = seat.at(".pt-felt").bounding_box()
    seat.page.mouse.click(felt["x"] + 5, felt["y"] + 5)  # beside the cards: the keys stay the table's
    seat.page.evaluate(
        "window.again = 0; window.addEventListener('keydown', (event) => { window.again += !event.isTrusted; }, true)"
    )
    for _ in range(4):  # d, d in a notebook's command mode: delete the cell
        seat.page.keyboard.press("d")
    seat.until(lambda: seat.moves == 4)
    seat.page.wait_for_timeout(1_200)
    assert seat.page.evaluate("window.again") == 0, "JupyterLab held keys back to see whether a chord comes"
    assert seat.page.locator(".jp-Cell").count() == cells
    seat.page.keyboard.press("Control+s")  # which is not the table's
    seat.page.wait_for_timeout(300)
    assert seat.moves == 4


@pytest.mark.parametrize("rules", sorted(pe.PRESETS))
def test_every_preset_fits_on_a_phone(page_seat, rules):
    seat = page_seat(rules, 1, size=PHONE)
    assert seat.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    board, felt = seat.at(".pt-board svg").bounding_box(), seat.at(".pt-felt").bounding_box()
    assert board["width"] <= felt["width"] + 1
    seat.key("h")
    assert seat.errors == []


def axe_faults(page):
    """Serious and critical findings of axe in the table."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, context=".pt").response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    return [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in serious]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(page_seat, scheme):
    seat = page_seat(deal=42, color_scheme=scheme)
    assert axe_faults(seat.page) == []
    seat.click("r7c1")
    seat.press("hint")
    assert axe_faults(seat.page) == []
    for control in ("new", "settings", "help", "statistics"):
        seat.control(control).click()
        seat.at("dialog[open]").wait_for()
        assert axe_faults(seat.page) == [], control
        seat.at("dialog[open] [data-control=close]").click()
    seat.press("pause")
    assert axe_faults(seat.page) == []


def test_axe_finds_no_serious_fault_beside_an_agent(page_seat):
    seat = page_seat(session=pe.table.WatchSession(FirstLegal(), 42, "pyramid"))
    assert axe_faults(seat.page) == []


# ---- an agent's game -------------------------------------------------------------------------------------------------


class FirstLegal:
    """The first legal action: removals before draws."""

    name = "first legal"

    def act(self, observations, action_masks, rng):
        return np.asarray(action_masks).argmax(axis=1)


def test_an_agents_game_is_stepped_scrubbed_and_taken_over(page_seat):
    seat = page_seat(session=pe.table.WatchSession(FirstLegal(), 42, "pyramid"))
    length = int(seat.control("watch-slider").get_attribute("max"))
    assert length > 10
    assert "first legal" in seat.at(".pt-watch h2").inner_text()
    seat.press("watch-next")
    seat.press("watch-next")
    assert seat.moves == 2
    assert seat.page.locator(".pt-ratings tr.pt-made").count() == 1
    seat.press("watch-back")
    assert seat.moves == 1
    seat.press("watch-last")
    assert seat.moves == length
    seat.press("watch-first")
    seat.changes(lambda: seat.control("watch-slider").fill(str(length // 2)))
    assert seat.moves == length // 2
    seat.control("watch-speed").select_option("100")
    seat.control("watch-run").click()
    seat.until(lambda: seat.moves == length)
    seat.press("watch-first")
    seat.changes(lambda: seat.click("stock"))
    assert seat.moves == 0
    assert "Take over" in seat.said
    seat.press("watch-takeover")
    seat.changes(lambda: seat.click("stock"))
    seat.changes(lambda: seat.click("stock"))
    assert seat.moves == 2
    seat.press("watch-takeover")
    assert int(seat.control("watch-slider").get_attribute("max")) > 2
    seat.press("watch-last")
    assert seat.control("watch-next").is_disabled()
    assert seat.errors == []
