"""The page's server: the table plays, and whoever is not its own page in this browser is refused."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pyramid_env as pe
from pyramid_env.__main__ import main
from pyramid_env.errors import PyramidError
from pyramid_env.table import Session, Store, TableServer, play
from pyramid_env.table.server import FILES, HEADERS, LARGEST_EVENT, STATIC

ROOT = Path(__file__).parent.parent
DRAW = b'{"type": "play", "spots": ["draw"]}'
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def server() -> Iterator[TableServer]:
    with TableServer(Session("pyramid", 42)) as serving:
        yield serving


class Answer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status, self.body, self.headers = answer.status, answer.read(), answer.headers

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def token_of(server: TableServer) -> str:
    return server.address.rsplit("/", 2)[1]


def ask(
    server: TableServer, where: str = "state", method: str = "GET", body: bytes | None = None, **headers: str
) -> Answer:
    """One request; ``where`` begins with a slash, or follows the token. Header names are written with underscores."""
    path = where if where.startswith("/") else f"/{token_of(server)}/{where}"
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        line.putrequest(method, path, skip_host="Host" in headers)
        if body is not None:
            headers = {"Content_Length": str(len(body)), **headers}
        for name, value in headers.items():
            line.putheader(name.replace("_", "-"), value)
        line.endheaders(body)
        return Answer(line.getresponse())
    finally:
        line.close()


def post(server: TableServer, body: bytes = DRAW, **headers: str) -> Answer:
    return ask(server, "event", "POST", body, **{"Content_Type": "application/json", **headers})


def talk(server: TableServer, sent: bytes, wait: bool = True) -> bytes:
    """What comes back for raw bytes, until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
        line.sendall(sent)
        if not wait:
            return b""
        line.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: line.recv(65536), b""))


# ---- who may ask -----------------------------------------------------------------------------------------------------


def test_the_page_is_bound_to_loopback_alone(server: TableServer) -> None:
    assert server._http.socket.getsockname() == ("127.0.0.1", server.port)
    assert server.address.startswith(f"http://127.0.0.1:{server.port}/")
    others = {each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1", "127.0.1.1"}:
        with pytest.raises(OSError):  # noqa: PT011 - which one depends on the system
            socket.create_connection((address, server.port), timeout=1).close()


def test_tokens_are_long_and_random() -> None:
    servers = [TableServer(Session("mini", 1)) for _ in range(4)]
    tokens = [token_of(server) for server in servers]
    for server in servers:
        server.close()
    assert len(set(tokens)) == 4
    assert all(re.fullmatch(r"[\w-]{32,}", token) for token in tokens)  # 24 random bytes


def test_without_the_token_nothing_is_told(server: TableServer) -> None:
    token = token_of(server)
    for path in (
        "/", "/state", "//state", "/x/state", f"/{token[:-1]}/state", f"/{token}x/state", f"/{token.lower()}/state",
        f"/x/{token}/state", "/%2e%2e/state", f"/?{token}/state", f"/#{token}/", "/\xff\xfe/state", f"//{token}x/",
        f"http://127.0.0.1:{server.port}/{token}/state", "*", "/" + "x" * 10_000,
    ):  # fmt: skip
        told = talk(server, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode("latin-1"))
        assert told.startswith(b"HTTP/1.1 403 "), path
        assert token.encode() not in told
        assert b"svg" not in told
    for path in ("/event", f"/{token[1:]}/event"):
        assert ask(server, path, "POST", DRAW, Content_Type="application/json").status == 403
    assert server.session.game.moves_made == 0


def test_other_hosts_names_are_refused(server: TableServer) -> None:
    """A name that an attacker lets point to this machine is a name of its own in Host."""
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", f"127.0.0.1:{server.port + 1}", ""):
        assert ask(server, Host=host).status == 403
        assert post(server, Host=host).status == 403
    two = f"Host: 127.0.0.1:{server.port}\r\nHost: evil.example\r\n"
    for headers in ("", two):
        told = talk(server, f"GET /{token_of(server)}/state HTTP/1.1\r\n{headers}\r\n".encode())
        assert told.startswith(b"HTTP/1.1 403 ")
    for host in ("127.0.0.1", "localhost"):
        assert ask(server, Host=f"{host}:{server.port}").status == 200
    assert server.session.game.moves_made == 0


def test_other_origins_and_sites_are_refused(server: TableServer) -> None:
    own = f"http://127.0.0.1:{server.port}"
    for origin in (
        "http://evil.example", "null", "", "file://", f"https://127.0.0.1:{server.port}", "http://127.0.0.1",
        f"http://localhost:{server.port}", f"http://evil.example@127.0.0.1:{server.port}", "http://[", f"{own}/",
        f"ftp://127.0.0.1:{server.port}",
    ):  # fmt: skip
        for answer in (ask(server, Origin=origin), ask(server, "", Origin=origin), post(server, Origin=origin)):
            assert answer.status == 403, origin
    for site in ("cross-site", "same-site", "nonsense"):
        for where in ("state", "", "table.js"):
            assert ask(server, where, Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors").status == 403
            assert (
                ask(server, where, Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe").status
                == 403
            )
        assert post(server, Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document").status == 403
    assert server.session.game.moves_made == 0
    visit = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert ask(server, "", **visit).status == 200  # a link in a mail
    assert post(server, Origin=own, Sec_Fetch_Site="same-origin").json["made"] == 1
    assert ask(server, "state", Origin=own, Sec_Fetch_Site="same-origin").status == 200


def test_port_80_is_left_out_of_host_and_origin(server: TableServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyramid_env.table.server.HTTP_PORT", server.port)
    with TableServer(Session("mini", 1)) as other:
        assert "localhost" not in other._http.hosts
    server.close()
    with TableServer(Session("mini", 1), server.port) as again:
        assert ask(again, Host="127.0.0.1", Origin="http://127.0.0.1").status == 200


# ---- what is answered ------------------------------------------------------------------------------------------------


def test_the_page_is_made_of_the_files_and_its_state(server: TableServer) -> None:
    for where, (name, kind) in FILES.items():
        answer = ask(server, where)
        assert (answer.status, answer.body) == (200, (STATIC / name).read_bytes())
        assert answer.headers["Content-Type"] == kind
    page = (STATIC / "page.html").read_text()
    named = re.findall(r'(?:href|src)="([^"]+)"', page) + re.findall(
        r'from "\./([^"]+)"', (STATIC / "page.js").read_text()
    )
    assert {name for name in named if not name.startswith("data:")} == set(FILES) - {""}
    assert ask(server).json == json.loads(json.dumps(server.session.state()))
    assert ask(server, "?query").status == 200


def test_the_files_of_the_page_are_in_the_package() -> None:
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert "pyramid_env.table" in packed["packages"]
    found = {path.name for glob in packed["package-data"]["pyramid_env.table"] for path in STATIC.parent.glob(glob)}
    assert {name for name, _ in FILES.values()} <= found


def test_an_address_without_its_last_slash_leads_to_the_page(server: TableServer) -> None:
    answer = ask(server, f"/{token_of(server)}")
    assert (answer.status, answer.headers["Location"]) == (308, f"/{token_of(server)}/")
    assert ask(server, answer.headers["Location"]).status == 200


@pytest.mark.parametrize(
    "where",
    ["x", "page.html", "State", "state/", "event", "/state", "../state", "../../pyproject.toml", "..%2f..%2fsession.py",
     "%2e%2e/session.py", "..\\session.py", "static/table.js", "table.js/", "table.js%00", "\xff"],
)  # fmt: skip
def test_other_pages_are_not_there(server: TableServer, where: str) -> None:
    line = f"GET /{token_of(server)}/{where} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode("latin-1")
    told = talk(server, line)
    assert told.startswith(b"HTTP/1.1 404 ")
    assert told.endswith(b"\r\n\r\nthere is no such page\n")
    assert post(server).status == 200


def test_every_answer_has_the_headers(server: TableServer) -> None:
    answers = [ask(server, where) for where in (*FILES, "state", "x", "/x/")]
    answers += [post(server), post(server, b"{"), ask(server, "", "PUT"), ask(server, "", "HEAD")]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert "Python" not in answer.headers["Server"]
        assert "Access-Control-Allow-Origin" not in answer.headers
    policy = dict(part.strip().partition(" ")[::2] for part in HEADERS["Content-Security-Policy"].split(";"))
    assert (policy["default-src"], policy["script-src"], policy["frame-ancestors"]) == ("'none'", "'self'", "'none'")
    assert HEADERS["X-Content-Type-Options"] == "nosniff"
    assert HEADERS["Cache-Control"] == "no-store"
    assert HEADERS["Referrer-Policy"] == "no-referrer"  # the token is in the address


@pytest.mark.parametrize("method", ["HEAD", "PUT", "OPTIONS", "DELETE", "PATCH", "TRACE", "CONNECT", "get", "X"])
def test_other_methods_are_refused(server: TableServer, method: str) -> None:
    answer = ask(server, "state", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST")
    assert answer.body == (b"" if method == "HEAD" else b"expected GET or POST\n")


def test_what_is_no_event_is_refused(server: TableServer) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data; boundary=x"):
        assert post(server, Content_Type=kind).status == 415
    for body in (
        b"",
        b"{",
        b"\xff\xfe",
        b"[1]",
        b"3",
        b'"undo"',
        b"null",
        b"[" * 5000,
        b"9" * 5000,
        b'{"type": ' + b"9" * 5000 + b"}",
    ):
        answer = post(server, body)
        assert (answer.status, answer.body) == (400, b"expected an event, an object as JSON\n")
    for body in (b" " * (LARGEST_EVENT + 1), b" " * 100_000):
        assert post(server, body).status == 413
    assert post(server, DRAW + b" " * (LARGEST_EVENT - len(DRAW))).status == 200
    for length in ("9" * 5000, str(2**63), "100000"):
        assert post(server, b"", Content_Length=length).status == 413
    for length in ("", "-1", "+3", "0x10", "1e3", "x"):
        assert post(server, b"", Content_Length=length).status == 411
    assert ask(server, "event", "POST", None, Content_Type="application/json").status == 411
    assert ask(server, "state", "POST", DRAW, Content_Type="application/json").status == 404
    assert server.session.game.moves_made == 1
    assert post(server, b'{"type": NaN}').json["message"]["kind"] == "error"
    assert post(server, b'{"type": "undo\\ud800"}').json["message"]["kind"] == "error"
    assert post(server, DRAW, Content_Type="application/json; charset=utf-8").json["made"] == 2


def test_bodies_in_pieces_and_cut_bodies_are_refused(server: TableServer) -> None:
    head = (
        f"POST /{token_of(server)}/event HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        "Content-Type: application/json\r\n"
    ).encode()
    pieces = b"%x\r\n%s\r\n0\r\n\r\n" % (len(DRAW), DRAW)
    for length in (b"", b"Content-Length: %d\r\n" % len(DRAW)):
        told = talk(server, head + length + b"Transfer-Encoding: chunked\r\n\r\n" + pieces)
        assert told.startswith(b"HTTP/1.1 411 ")
        assert told.count(b"HTTP/1.1") == 1
    told = talk(server, head + b"Content-Length: 99\r\n\r\n" + DRAW)
    assert told.startswith(b"HTTP/1.1 400 ")
    assert server.session.game.moves_made == 0


def test_what_is_sent_along_with_a_get_is_no_request(server: TableServer) -> None:
    own = f"Host: 127.0.0.1:{server.port}\r\n"
    inner = (
        f"POST /{token_of(server)}/event HTTP/1.1\r\n{own}Content-Type: application/json\r\nContent-Length: {len(DRAW)}"
    )
    body = inner.encode() + b"\r\n\r\n" + DRAW
    told = talk(
        server, f"GET /{token_of(server)}/state HTTP/1.1\r\n{own}Content-Length: {len(body)}\r\n\r\n".encode() + body
    )
    assert told.count(b"HTTP/1.1 ") == 1
    assert server.session.game.moves_made == 0


@pytest.mark.parametrize(
    "sent",
    [b"\r\n\r\n", b"x\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/x\r\n\r\n",
     b"\x16\x03\x01\x02\x00\r\n\r\n",
     b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
     b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", b"GET /\r\n\r\n", b""],
)  # fmt: skip
def test_what_is_no_request_is_refused_and_the_server_goes_on(
    server: TableServer, sent: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    told = talk(server, sent)
    assert not told or re.match(rb"HTTP/1\.[01] (4\d\d|505) ", told)
    assert b"<" not in told.partition(b"\r\n\r\n")[2]
    assert ask(server).status == 200
    assert capsys.readouterr() == ("", "")


def test_nothing_is_logged(server: TableServer, capfd: pytest.CaptureFixture[str]) -> None:
    """A browser that goes away, and what it asked for, are nobody's business."""
    for where in ("", "state", "x", "/x/"):
        ask(server, where)
    post(server, b"{")
    head = f"GET /{token_of(server)}/table.js HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.port)) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closes with a reset
            line.sendall(head * 20)
    time.sleep(0.3)
    assert ask(server).status == 200
    assert capfd.readouterr() == ("", "")


def test_one_connection_serves_many_requests(server: TableServer) -> None:
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    for made in range(1, 10):
        line.request("POST", f"/{token_of(server)}/event", DRAW, JSON)
        assert json.loads(line.getresponse().read())["made"] == made
    assert line.sock is not None
    kept = line.sock
    server.close()
    assert kept.recv(1) == b""  # it ends with the server
    line.close()
    assert server.session.game.moves_made == 9


def test_many_who_play_at_once_play_one_game(server: TableServer) -> None:
    events = [
        DRAW,
        b'{"type": "undo"}',
        b'{"type": "redo"}',
        b'{"type": "hint"}',
        b'{"type": "play", "spots": ["r7c4"]}',
    ]
    faults: list[Any] = []

    def ask_often(seed: int) -> None:
        version = -1
        for number in range(20):
            answer = post(server, events[(seed + number) % len(events)])
            state = answer.json
            spots = re.findall(r'data-spot="(r\dc\d)" data-card="(\w\w)"', state["svg"])
            taken = 52 - state["cards_left"]
            if answer.status != 200 or state["version"] <= version or len(spots) < 28 - taken:
                faults.append(state)
            version = state["version"]

    threads = [threading.Thread(target=ask_often, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    game = server.session.game
    plain = pe.Game(42)
    for move in game.history:
        plain.play(move)
    assert plain.state.tolist() == game.state.tolist()


# ---- starting and ending ---------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_or_none_is_one_clear_error(server: TableServer, tmp_path: Path) -> None:
    for port in (server.port, -1, 65_536, True, "80", 80.0, None):
        with pytest.raises(PyramidError, match=r"^port( \d+)?: expected a "):
            TableServer(Session("mini", 1), port)
        with pytest.raises(PyramidError):
            play("mini", 1, port=port, browser=False, path=str(tmp_path / "a.sqlite3"))


def test_play_serves_and_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    path = str(tmp_path / "a.sqlite3")
    with play("till_dawn", "7", path=path) as server:
        assert opened == [server.address]
        assert post(server).json["made"] == 1
    server.close()  # once more
    with play("till_dawn", browser=False, path=path) as again:
        state = ask(again).json
        assert (state["deal"], state["made"], state["message"]["text"]) == ("7", 1, "Your last game goes on.")
    assert len(opened) == 1
    assert not list(tmp_path.glob("*-wal"))  # the database was closed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pyramidd"], "unknown preset 'pyramidd' (did you mean 'pyramid'?)"),
        (["pyramid:rows=99"], "rows: expected a whole number from 2 to 9"),
        (["pyramid", "--deal", "Kd"], "expected"),
        (["pyramid", "--deal", "9" * 30], "deal number: expected"),
        (["mini", "--deal", "-1"], "expected"),
        (["--port", "70000"], "port: expected a number from 0 to 65535, got 70000"),
        (["--port", "-1"], "port: expected a number from 0 to 65535, got -1"),
    ],
)
def test_a_mistake_in_the_call_is_one_line(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
    assert main(["play", *arguments, "--no-browser", "--data", str(tmp_path / "a.sqlite3")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("pyramid_env play: ")
    assert said in told.err
    assert told.err.count("\n") == 1
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == handlers


def test_the_call_alone_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, status in (([], 2), (["play", "--port", "x"], 2), (["play", "--help"], 0), (["--help"], 0)):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == status
    told = capsys.readouterr().out
    assert all(name in told for name in ("--deal", "--no-save", "till_dawn"))


class Program:
    """``python -m pyramid_env play``, as it is called."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        call = [sys.executable, "-m", "pyramid_env", "play", "--no-browser", *arguments]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.child = subprocess.Popen(call, cwd=ROOT, env={**os.environ, **environment}, **pipes)
        assert self.child.stdout is not None
        ready, _, _ = select.select([self.child.stdout], [], [], 60)
        line = self.child.stdout.readline() if ready else ""
        found = re.fullmatch(r"The table: (http://127\.0\.0\.1:(\d+)/[\w-]+/)\n", line)
        assert found, (line, self.child.stderr.read() if self.child.stderr and not ready else "")
        self.address, self.port = found[1], int(found[2])

    def end(self, number: int) -> tuple[int, str, str]:
        self.child.send_signal(number)
        out, err = self.child.communicate(timeout=20)
        return self.child.returncode, out, err


@pytest.fixture
def programs() -> Iterator[Callable[..., Program]]:
    begun: list[Program] = []

    def begin(*arguments: str, **environment: str) -> Program:
        begun.append(Program(*arguments, **environment))
        return begun[-1]

    yield begin
    for program in begun:
        program.child.kill()
        program.child.communicate()


@pytest.mark.skipif(os.name == "nt", reason="signals are Unix's")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_the_program_serves_at_once_and_ends_when_told_to(
    programs: Callable[..., Program], tmp_path: Path, number: int
) -> None:
    path = tmp_path / "folder" / "a.sqlite3"
    program = programs("--deal", "42", "--data", str(path))
    begun = time.monotonic()
    assert ask(program, "").status == 200
    assert ask(program, "state").json["deal"] == "42"
    assert time.monotonic() - begun < 1.0
    assert post(program).json["made"] == 1
    time.sleep(0.2)
    status, _, err = program.end(number)
    assert (status, err) == (0, "")
    with Store(path) as store:
        session = Session("pyramid", store=store)
        assert (session.game.moves_made, session.game.deal.deal_number) == (1, 42)
        assert session.clock.elapsed_s > 0.15  # also the time since the last move


@pytest.mark.skipif(os.name == "nt", reason="signals are Unix's")
def test_a_program_that_saves_nothing_leaves_nothing(programs: Callable[..., Program], tmp_path: Path) -> None:
    program = programs("microsoft:passes=1", "--no-save", PYRAMID_ENV_DATA=str(tmp_path / "data"))
    state = post(program).json
    assert (state["rules"], state["keeps"], state["made"]) == ("microsoft:passes=1", False, 1)
    status, _, err = program.end(signal.SIGINT)
    assert (status, err) == (0, "")
    assert not (tmp_path / "data").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals are Unix's")
def test_a_program_that_cannot_save_plays_and_says_so(programs: Callable[..., Program], tmp_path: Path) -> None:
    program = programs("mini", "--data", str(tmp_path))  # a folder
    assert not post(program).json["keeps"]
    status, _, err = program.end(signal.SIGTERM)
    assert status == 0
    assert err.startswith("pyramid_env play: Nothing is kept: ")
    assert err.count("\n") == 1
