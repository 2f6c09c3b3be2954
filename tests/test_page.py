"""The page of an evaluation: whole and well-formed, its figures those of the summary, and alive in a browser."""

import dataclasses
import html
import html.parser
import json
import re
import sys

import numpy as np
import pytest
import torch

import evaluate
import pyramid_env as pe
from agents import make_agent
from agents.details import details_of
from agents.evaluation import evaluate_agent
from agents.greedy import GreedyAgent
from agents.judgement import Judgement
from agents.page import Report, choose_games, curve_of, page_text
from agents.page.meanings import COMPARISONS, DETAILS, HABITS, RESULTS, SPLIT
from agents.page.replays import DEAREST, LOST, WON, replay_data
from agents.page.svg import ticks
from agents.parquet import write_parquet
from agents.regret import KINDS, regret_of
from agents.report import agent_row
from agents.token_agent import TokenAgent
from agents.token_network import TokenNetwork
from agents.tokens import token_values
from pyramid_env.benchmark import parse_deals
from pyramid_env.moves import move_table
from pyramid_env.rules import PRESETS

DEALS = parse_deals("test:0-39")
VOID = {"meta", "link", "br", "input", "hr", "img"}


class Reader(html.parser.HTMLParser):
    """Checks that every element is closed in order; keeps attributes, the cells of tables, and scripts by id."""

    def __init__(self, text):
        super().__init__()
        self.open, self.attributes, self.tables, self.scripts, self.cell = [], [], [], {}, None
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *each) for each in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag == "script":
            self.script = dict(attrs).get("id", "code")
            self.scripts[self.script] = ""

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, *each) for each in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[self.script] += data
        elif {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data


def played(name, rules, deals=DEALS, **options):
    return evaluate_agent(make_agent(name, rules), rules, deals, seed=0, keep_actions=True, **options)


def small_report(rules, name="greedy", deals=DEALS[:6], replays=1, called=None):
    """The report of one agent's few games, without bounds."""
    called = called or name
    games = {called: [dataclasses.replace(record, agent=called) for record in played(name, rules, deals)]}
    return Report(
        rules=rules,
        rows=[agent_row(games[called], rules)],
        details=[details_of(called, games[called], None)],
        comparisons=[],
        regret=[],
        games=games,
        bounds=None,
        lines=["some games", f"python evaluate.py --agents {called}"],
        summary={"agents": called},
        agents={},
        curves={},
        replays=replays,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A page by the command line, with its summary; three agents on mini."""
    folder = tmp_path_factory.mktemp("page")
    call = ["--agents", "random", "greedy", "oracle", "--rules", "mini", "--deals", "test:0-39", "--regret"]
    call += ["--workers", "1", "--threads", "1", "--out", str(folder), "--bounds", str(folder / "bounds")]
    assert evaluate.main([*call, "--html", str(folder / "page.html"), "--replays", "7"]) == 0
    return folder


@pytest.fixture(scope="module")
def page(made):
    return Reader((made / "page.html").read_text(encoding="utf-8"))


# ---- the file --------------------------------------------------------------------------------------------------------


def test_the_page_asks_for_nothing_outside(made, page):
    text = (made / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|url\(|@import|\bsrc\s*=", text)
    targets = [value for _, name, value in page.attributes if name in ("href", "src")]
    assert all(value.startswith(("#", "data:,")) for value in targets)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for value in targets if re.fullmatch("#[a-z]+", value)} <= set(ids)


def test_its_figures_are_those_of_the_summary(made, page):
    summary = json.loads((made / "summary.json").read_text(encoding="utf-8"))
    assert json.loads(page.scripts["summary"]) == summary
    results, details, pairs, split, *_ = page.tables
    heads = results[0]
    for line, row in zip(results[1:], summary["rows"], strict=True):
        cells = dict(zip(heads, line, strict=True))
        assert (
            cells["wins %"] == f"{100 * row['wins']['value']['low']:.{2 if row['wins']['value']['low'] < 0.01 else 1}f}"
        )
        assert cells["score"] == f"{row['score']['value']['low']:.1f}".replace("-", "−")
        assert cells["regret"] == f"{row['regret']['low']:.1f}"
        assert cells["games"] == str(row["games"])
    for line, each in zip(details[1:], summary["details"], strict=True):
        assert dict(zip(details[0], line, strict=True))["moves"] == f"{each['moves']:.1f}"
    for line, each in zip(pairs[1:], summary["comparisons"], strict=True):
        assert line[1] == f"{100 * each['wins']['value']:+.1f}".replace("-", "−")
    for line, each in zip(split[1:], summary["regret"], strict=True):
        assert line[1] == f"{each['total']:.2f}"


def test_every_column_is_defined(made, page):
    text = (made / "page.html").read_text(encoding="utf-8")
    for name in ("results", "details", "pairs", "regret"):
        part = re.search(f'<section id="{name}">.*?</section>', text, re.DOTALL)[0]
        defined = {each for terms in re.findall("<dt>(.*?)</dt>", part) for each in html.unescape(terms).split(", ")}
        for table in Reader(part).tables:
            assert set(table[0]) <= defined
    assert set(KINDS.values()) <= set(SPLIT)
    assert all(
        meaning.endswith(".") for each in (RESULTS, DETAILS, COMPARISONS, HABITS, SPLIT) for meaning in each.values()
    )


def test_names_are_escaped():
    name = "</script><script>alert('x')</script>\"&"
    text = page_text(small_report(pe.rules("mini"), called=name))
    found = Reader(text)
    assert "<script>alert" not in text
    assert json.loads(found.scripts["data"])["games"][0]["agent"] == name
    assert json.loads(found.scripts["summary"])["agents"] == name
    assert found.tables[0][1][0] == name


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_makes_a_page_with_a_replay(preset):
    rules = pe.rules(preset)
    report = small_report(rules, deals=DEALS[:3])
    report = dataclasses.replace(report, max_states=2_000)
    data = json.loads(Reader(page_text(report)).scripts["data"])
    (game,) = data["games"]
    record = next(record for record in report.games["greedy"] if record.deal == game["deal"])
    assert len(game["steps"]) == record.steps + 1
    assert game["steps"][-1][3] == record.score == game["score"]
    table = data["table"]
    assert len(table["places"]) == rules.places
    assert min(x for x, _ in table["places"]) == pytest.approx(-max(x + 1 for x, _ in table["places"]))


def test_a_page_is_small():
    rules = pe.rules("double_pyramid")
    text = page_text(dataclasses.replace(small_report(rules, deals=DEALS[:10], replays=10), max_states=100))
    assert len(text.encode()) < 600_000


def test_without_replays_there_is_no_board():
    found = Reader(page_text(small_report(pe.rules("mini"), replays=0)))
    assert ("div", "id", "replay") not in found.attributes
    assert json.loads(found.scripts["data"])["games"] == []


# ---- the replays -----------------------------------------------------------------------------------------------------


def test_replays_say_what_was_legal_seen_and_lost():
    rules = pe.rules("pyramid")
    records = played("greedy", rules, DEALS[:8])
    found = regret_of("greedy", records, rules)
    lost = {deal: (total, loss) for deal, total, loss in found.deals}
    chosen = choose_games({"greedy": records}, {}, 8, rules)
    for game in replay_data(chosen, rules, {}):
        twin = pe.Game(game["deal"], rules)
        left = set(range(rules.cards))
        for gone, cursor, passed, score, seen, value, made, _, moves in game["steps"]:
            left -= set(gone)
            pyramid, stock, at, in_pass, _ = twin.state.tolist()
            assert left == {i for i in range(28) if pyramid >> i & 1} | {28 + k for k in range(24) if stock >> k & 1}
            assert (cursor, passed, score, value) == (at, in_pass, twin.score, None)
            assert seen == (24 if passed > 1 else cursor)
            told = {"+".join(str(twin.deal.cards[card]) for card in cards) or "draw" for cards, *_ in moves}
            legal = {"draw" if move.is_draw else twin.describe(move) for move in twin.legal_moves}
            assert len(told) == len(moves) == len(legal)
            if made >= 0:
                twin.play(sorted(twin.legal_actions)[made])
        assert twin.is_over
        losses = [step[7] or 0 for step in game["steps"]]
        total, dearest = lost.get(game["deal"], (0, None))
        assert sum(losses) == total
        if dearest:
            assert max(losses) == losses[dearest.move - 1] == dearest.loss


def test_games_are_chosen_by_regret_then_one_won_and_one_lost():
    rules = pe.rules("pyramid")
    records = played("greedy", rules)
    best = {record.deal: 30 for record in records}
    chosen = choose_games({"greedy": records}, best, 5, rules)
    assert [each.why for each in chosen] == [DEAREST] * 3 + [WON, LOST]
    assert [each.record.score for each in chosen[:3]] == sorted(record.score for record in records)[:3]
    assert chosen[3].record == next(record for record in records if record.won)
    assert len({each.record.deal for each in chosen}) == 5
    both = choose_games({"a": records, "b": records}, best, 3, rules)
    assert [each.record.deal for each in both] == [chosen[0].record.deal, chosen[1].record.deal, chosen[0].record.deal]
    none_won = [dataclasses.replace(record, won=False) for record in records]
    assert len(choose_games({"a": none_won}, best, 5, rules)) == 5
    assert len(choose_games({"a": records[:2]}, best, 5, rules)) == 2
    assert choose_games({"a": records}, {}, 1, rules)[0].why == "lowest score"


def test_a_game_that_was_stopped_ends_there():
    """Games beside it go on; it does not."""
    rules = pe.rules("pyramid")
    records = played("greedy", rules, DEALS[:3])
    records[1] = dataclasses.replace(records[1], actions=records[1].actions[:3], steps=3, truncated=True)
    games = replay_data(choose_games({"greedy": records}, {}, 3, rules), rules, {})
    (stopped,) = (game for game in games if game["deal"] == records[1].deal)
    twin = pe.Game(records[1].deal, rules)
    for action in records[1].actions:
        twin.play(action)
    assert stopped["steps"][-1][1:4] == [twin.state[2], twin.pass_number, twin.score]
    assert len(stopped["steps"]) == 4


def test_games_without_a_move_are_replays_too():
    rules = pe.rules("mini")
    records = [dataclasses.replace(record, actions=(), steps=0) for record in played("greedy", rules, DEALS[:2])]
    for game in replay_data(choose_games({"greedy": records}, {}, 2, rules), rules, {}):
        assert [step[6] for step in game["steps"]] == [-1]


@pytest.mark.parametrize(("preset", "says"), [("pyramid", "probability"), ("microsoft", "rating")])
def test_a_network_says_what_it_makes_of_the_moves(preset, says):
    rules = pe.rules(preset)
    agent = make_agent("shipped", rules)
    records = evaluate_agent(agent, rules, DEALS[:2], seed=0, keep_actions=True)
    games = replay_data(choose_games({"shipped": records}, {}, 2, rules), rules, {"shipped": agent})
    for game in games:
        assert game["says"] == says
        for *_, value, made, _, moves in game["steps"][:-1]:
            shares = [share for _, share, *_ in moves]
            assert value is None
            assert shares[made] == max(shares)
            assert all(0 <= share <= 1 for share in shares)


def test_a_network_with_memory_judges_as_it_played():
    rules = pe.rules("mini")
    torch.manual_seed(0)
    network = TokenNetwork(token_values(rules, "table"), len(move_table(rules)), embedding=16, recurrent=8)
    with torch.no_grad():
        network.action.weight.mul_(200.0)
    agent = TokenAgent(network, rules, "table")
    records = evaluate_agent(agent, rules, DEALS[:6], seed=0, keep_actions=True)
    for game in replay_data(choose_games({"ppo": records}, {}, 6, rules), rules, {"ppo": agent}):
        assert game["says"] == "probability"
        for *_, value, made, _, moves in game["steps"][:-1]:
            shares = [share for _, share, *_ in moves]
            assert sum(shares) == pytest.approx(1.0, abs=1e-3)
            assert shares[made] == max(shares)
            assert np.isfinite(value)


def test_the_curve_of_an_agent_is_found(tmp_path):
    rules = pe.rules("pyramid")
    agent = make_agent("shipped", rules)
    curve = curve_of("shipped", agent, rules)
    assert curve[0]["steps"] == 0
    assert curve_of("shipped:sampled", agent, rules) == curve
    (tmp_path / "evaluations.jsonl").write_text('{"steps": 3, "win_rate": 0.5, "games": 2}\n{"ste')
    assert curve_of(str(tmp_path), agent, rules) == [{"steps": 3, "win_rate": 0.5, "games": 2}]
    assert curve_of("greedy", make_agent("greedy", rules), rules) == []


def test_ticks_are_round():
    assert ticks(0, 1, 6) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert ticks(-52, 50, 6) == [-50, -25, 0, 25, 50]
    assert ticks(0, 0.037, 5) == [0, 0.01, 0.02, 0.03]


# ---- the command line ------------------------------------------------------------------------------------------------


def test_a_page_that_cannot_be_written_is_refused_before_play(tmp_path, capsys):
    (tmp_path / "there.html").write_text("old")
    call = ["--agents", "random", "--rules", "mini", "--deals", "test:0-3", "--out", str(tmp_path / "out")]
    for wrong, reason in (
        (["--html", str(tmp_path)], "expected a file to write, got the folder"),
        (["--html", str(tmp_path / "there.html")], "is already there; --overwrite replaces it"),
        (["--html", str(tmp_path / "there.html" / "x.html")], "is a file"),
        (["--html", str(tmp_path / "x.html"), "--replays", "-1"], "--replays: expected 0 or more"),
    ):
        assert evaluate.main([*call, *wrong]) == 2
        assert reason in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_records_become_a_parquet_file(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="the extra 'report' is not installed")
    records = played("random", pe.rules("mini"), DEALS[:5])
    records[0] = dataclasses.replace(records[0], actions=None)
    write_parquet(tmp_path / "x.parquet", records)
    read = pq.read_table(tmp_path / "x.parquet").to_pylist()
    actions = [record.actions and list(record.actions) for record in records]
    assert read == [{**dataclasses.asdict(r), "actions": a} for r, a in zip(records, actions, strict=True)]
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


def test_the_command_line_writes_a_parquet_file(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="the extra 'report' is not installed")
    call = ["--agents", "random", "greedy", "--rules", "mini", "--deals", "test:0-3", "--no-bound"]
    assert evaluate.main([*call, "--out", str(tmp_path / "out"), "--parquet", str(tmp_path / "x.parquet")]) == 0
    columns = pq.read_table(tmp_path / "x.parquet").to_pydict()
    assert columns["agent"] == ["random"] * 4 + ["greedy"] * 4
    assert columns["actions"] == [None] * 8


def test_parquet_without_its_extra_is_refused_before_play(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    call = ["--agents", "random", "--rules", "mini", "--deals", "test:0-3", "--out", str(tmp_path / "out")]
    assert evaluate.main([*call, "--parquet", str(tmp_path / "x.parquet")]) == 2
    assert "--parquet: needs the extra 'report'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# ---- a browser -------------------------------------------------------------------------------------------------------


class Tab:
    """The page in a fresh context; what it says on the console, and what it asks for."""

    def __init__(self, browser, file, hash="", **options):
        self.page = browser.new_context(**options).new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.route("**/*", self._route)
        self.page.goto(file.as_uri() + hash)

    def _route(self, route):
        self.asked.append(route.request.url)
        if route.request.url.startswith("file:"):
            route.continue_()
        else:
            route.abort()

    def at(self, selector):
        return self.page.locator(selector)

    def standing(self):
        return self.at("#standing").inner_text()


@pytest.fixture
def tab(browser, made):
    tabs = []

    def opened(hash="", **options):
        tabs.append(Tab(browser, made / "page.html", hash, **options))
        return tabs[-1]

    yield opened
    for each in tabs:
        each.page.context.close()
        assert each.said == []
        assert len(each.asked) == 1  # the page itself


def test_buttons_slider_and_keys_step_through_a_game(tab):
    here = tab()
    assert here.standing().startswith("move 1 of ")
    assert here.at("#previous").is_disabled()
    here.at("#next").click()
    assert here.standing().startswith("move 2 of ")
    here.page.keyboard.press("ArrowRight")
    assert here.standing().startswith("move 3 of ")
    here.page.keyboard.press("ArrowLeft")
    here.at("#previous").click()
    assert here.standing().startswith("move 1 of ")
    here.at("#last").click()
    assert here.standing().startswith("after move ")
    assert here.at("#next").is_disabled()
    assert "The game is over" in here.at("#none").inner_text()
    here.at("#slider").fill("3")
    assert here.standing().startswith("move 4 of ")
    here.at("#slider").press("ArrowRight")
    assert here.standing().startswith("move 5 of ")
    assert here.page.evaluate("location.hash") == "#game=1&move=5"
    here.at("#first").click()
    here.at("#loss").click()
    assert here.at("#moves tr.made.lossy").count() == 1


def test_a_link_opens_a_game_at_a_move(tab):
    here = tab("#game=2&move=4")
    assert here.standing().startswith("move 4 of ")
    assert here.at("#game").input_value() == "1"
    here.at(".games tbody tr:nth-child(3) a").click()
    assert here.at("#game").input_value() == "2"
    assert here.at("#moves tr.made").count() == 1
    assert tab("#game=99&move=4").standing().startswith("move 1 of ")


def test_values_of_moves_are_numbers_and_shares_are_bars(browser, tmp_path):
    class Values(GreedyAgent):
        """Expects -1.5 of every legal move."""

        says = "value"

        def judge_in(self, games, observations, action_masks):
            return Judgement(
                np.where(action_masks, -1.5, 0.0).astype(np.float32), np.full(len(games), -1.5, np.float32)
            )

    class Shares(GreedyAgent):
        """Finds all legal moves as likely."""

        says = "probability"

        def judge_in(self, games, observations, action_masks):
            return Judgement((action_masks / action_masks.sum(axis=1, keepdims=True)).astype(np.float32), None)

    rules = pe.rules("mini")
    for agent, head, bars in ((Values(rules), "value", 0), (Shares(rules), "policy", 1)):
        report = dataclasses.replace(small_report(rules), agents={"greedy": agent})
        (tmp_path / f"{head}.html").write_text(page_text(report), encoding="utf-8")
        tab = Tab(browser, tmp_path / f"{head}.html")
        rows = tab.at("#moves tr").count()
        assert rows > 0
        assert tab.at("#says").inner_text() == head
        assert tab.at("#moves .share").count() == bars * rows
        told = tab.at("#moves tr").first.inner_text()
        assert ("−1.50" in told) == (head == "value")
        assert ("%" in told) == (head == "policy")
        assert [tab.at(f"#{name}").is_visible() for name in ("network", "teacher", "expects")] == [
            head == "policy", False, head == "value",
        ]  # fmt: skip
        assert tab.said == []
        tab.page.context.close()


def test_hidden_cards_are_shown_on_request_alone(tab):
    here = tab()
    assert here.at("#stock li.hidden").count() == 8
    here.at("#hidden").check()
    assert here.at("#stock li.hidden").count() == 0
    assert here.at("#stock li.peek").count() == 8


@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_a_phone_and_a_desk(tab, width):
    here = tab(viewport={"width": width, "height": 844})
    assert here.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown = here.page.evaluate(
        "[...document.querySelectorAll('svg.plot')].filter((e) => e.getClientRects().length).length"
    )
    assert shown == here.at("figure").count()
    board = here.at("#board svg").bounding_box()
    assert board["x"] >= 0
    assert board["x"] + board["width"] <= width


def test_dark_mode_has_another_background(tab):
    seen = {
        scheme: tab(color_scheme=scheme).page.evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    }
    light, dark = (sum(map(int, re.findall(r"\d+", seen[scheme])[:3])) for scheme in ("light", "dark"))
    assert dark < 150 < 600 < light


def test_it_opens_in_two_seconds(tab):
    took_ms = tab().page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert 0 < took_ms < 2000
