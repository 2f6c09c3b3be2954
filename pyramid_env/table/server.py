"""Server: the table as a page on localhost, for people without a notebook.

Bound to loopback alone. The address holds a random token; requests without it, for another host's name, or from a page
of another origin are refused, so no other page in the browser can play along.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Final

from pyramid_env.deal import Deal
from pyramid_env.errors import PyramidError
from pyramid_env.rules import Rules
from pyramid_env.table.keeper import last_rules, open_store
from pyramid_env.table.session import Message, Session
from pyramid_env.table.store import Store

STATIC: Final = Path(__file__).parent / "static"
LOOPBACK: Final = "127.0.0.1"
HTTP_PORT: Final = 80
"""Browsers leave this one out of Host and Origin."""

LARGEST_EVENT: Final = 10_000
"""Bytes of an event at most."""

FILES: Final = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "table.js": ("table.js", "text/javascript; charset=utf-8"),
    "table.css": ("table.css", "text/css; charset=utf-8"),
}
"""What the page is made of, by the end of the address."""

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class TableServer:
    """Serves one session on localhost, from construction until :meth:`close`; a context manager.

    Args:
        session: what is played.
        port: 0 takes any free one.
        store: closed with the server; None: none is.

    Attributes:
        address: the page's address, with its token; whoever knows it can play.

    Raises:
        PyramidError: the port is taken, or not one.
    """

    def __init__(self, session: Session, port: int = 0, *, store: Store | None = None) -> None:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65_535:
            raise PyramidError(f"port: expected a number from 0 to 65535, got {port!r}")
        self.session: Final = session
        self._store: Final = store
        token = secrets.token_urlsafe(24)
        try:
            self._http = _Http((LOOPBACK, port), session, token)
        except OSError as error:
            raise PyramidError(f"port {port}: expected a free one, got: {error.strerror}") from None
        self.port: Final = int(self._http.server_address[1])
        self.address: Final = f"http://{LOOPBACK}:{self.port}/{token}/"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when the server was closed."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """Stop serving and keep the running game; further calls do nothing."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self.session.close()
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> TableServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def play(
    rules: Rules | str | None = None,
    deal: Deal | int | str | None = None,
    *,
    port: int = 0,
    browser: bool = True,
    keep: bool = True,
    path: str | None = None,
) -> TableServer:
    """Serve a table on localhost, and open it in a browser.

    Args:
        rules: preset, text or Rules; None: those that were chosen last at a table, or ``pyramid``.
        deal: a Deal, a number or text; None: the unfinished game of these rules, or a random deal.
        port: 0 takes any free one.
        browser: open the page.
        keep: save games, results and preferences.
        path: the database; None: in the user's data folder.

    Returns:
        The running server; close it.
    """
    store, trouble = open_store(path) if keep else (None, "")
    try:
        session = Session(last_rules(store) if rules is None else rules, deal, store=store)
        session.message = Message(trouble, "error") if trouble else session.message
        server = TableServer(session, port, store=store)
    except BaseException:
        if store is not None:
            store.close()
        raise
    threading.Thread(target=_warm_up, daemon=True).start()
    if browser:
        webbrowser.open(server.address)
    return server


def _warm_up() -> None:
    """Load the solver, or compile it (about a minute, once), before somebody asks."""
    from pyramid_env.solver import solve

    solve(0, "mini", objective="steps")


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # there it would let another program listen too
    allow_reuse_port = False

    def __init__(self, at: tuple[str, int], session: Session, token: str) -> None:
        self.session, self.token = session, token
        self._open: Final[set[socket.socket]] = set()
        self._closed = False
        super().__init__(at, _Handler)
        port = self.server_address[1]
        names = (LOOPBACK, "localhost")
        self.hosts: Final = frozenset([*(f"{name}:{port}" for name in names), *(names if port == HTTP_PORT else ())])

    def server_bind(self) -> None:
        """Without the base's question for the host's name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, int(self.server_address[1])

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer on one connection, until it ends."""
        self._open.add(request)
        try:
            if self._closed:
                self.shutdown_request(request)
            else:
                super().process_request_thread(request, client_address)
        finally:
            self._open.discard(request)

    def server_close(self) -> None:
        """Connections that a browser keeps open end too."""
        super().server_close()
        self._closed = True
        for request in tuple(self._open):
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in mid-answer is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    server_version, sys_version = "pyramid_env", ""
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # not 0.9, whose answers have no headers
    timeout = 60  # seconds of silence after which a connection is closed

    def do_GET(self) -> None:
        """A part of the page, or the state."""
        if "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0") != "0":
            self.close_connection = True  # what is sent along is not read
        where = self._asked()
        if where is None:
            return
        if where == "state":
            self._send_json(self.server.session.state())
        elif where in FILES:
            name, kind = FILES[where]
            self._send(HTTPStatus.OK, (STATIC / name).read_bytes(), kind)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def do_POST(self) -> None:
        """An event; the state after it is the answer."""
        where = self._asked()
        if where is None:
            return
        length = self.headers.get("Content-Length", "")
        if where != "event":
            return self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
        if self.headers.get_content_type() != "application/json":
            return self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json")
        if "Transfer-Encoding" in self.headers or not re.fullmatch("[0-9]+", length):
            return self._refuse(HTTPStatus.LENGTH_REQUIRED, "expected Content-Length, and no Transfer-Encoding")
        if len(length) > len(str(LARGEST_EVENT)) or int(length) > LARGEST_EVENT:
            return self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected at most {LARGEST_EVENT} bytes")
        body = self.rfile.read(int(length))
        try:
            event = json.loads(body)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict) or len(body) < int(length):
            return self._refuse(HTTPStatus.BAD_REQUEST, "expected an event, an object as JSON")
        try:
            self.server.session.handle(event)
            state = self.server.session.state()
        except Exception as error:  # a fault of ours; the page says it and the game goes on
            return self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}")
        self._send_json(state)

    def _asked(self) -> str | None:
        """What of the page is asked for; None, and refused, for those who may not ask."""
        host = ",".join(self.headers.get_all("Host", []))
        if host not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "expected this server's own name in Host")
        elif any(origin != f"http://{host}" for origin in self.headers.get_all("Origin", [])):
            self._refuse(HTTPStatus.FORBIDDEN, "requests from other origins are refused")
        elif self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not self._is_visit():
            self._refuse(HTTPStatus.FORBIDDEN, "requests from other sites are refused")
        else:
            token, slash, where = self.path.partition("?")[0].removeprefix("/").partition("/")
            if not hmac.compare_digest(token.encode(), self.server.token.encode()):
                self._refuse(HTTPStatus.FORBIDDEN, "expected the address with its token, as it was printed")
            elif not slash and self.command == "GET":
                self._send(HTTPStatus.PERMANENT_REDIRECT, b"", "text/plain", Location=f"/{token}/")
            else:
                return where
        return None

    def _is_visit(self) -> bool:
        """Does a person follow a link to the page, in a window of its own? It comes from another site then."""
        how = self.headers.get("Sec-Fetch-Mode"), self.headers.get("Sec-Fetch-Dest")
        return self.command == "GET" and how == ("navigate", "document")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses: requests that are none, and other methods; in this server's own words."""
        status = HTTPStatus(code)
        if status is HTTPStatus.NOT_IMPLEMENTED:
            self.close_connection = True
            self._send(HTTPStatus.METHOD_NOT_ALLOWED, b"expected GET or POST\n", "text/plain", Allow="GET, POST")
        else:
            self._refuse(status, status.phrase)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True  # what it may still send is not read
        self._send(status, f"{why}\n".encode(), "text/plain; charset=utf-8")

    def _send_json(self, value: Any) -> None:
        self._send(HTTPStatus.OK, json.dumps(value).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, **more: str) -> None:
        self.send_response(status)
        for name, text in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body)), **more}.items():
            self.send_header(name, text)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the address with its token would stand in every line."""
