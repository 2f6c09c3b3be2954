"""Server: the table as a page on localhost, for people without a notebook.

Bound to loopback alone. The address holds a random token; requests without it, for another host's name, or from a page
of another origin are refused, so no other page in the browser can play along.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import urlsplit

from pyramid_env.deal import Deal
from pyramid_env.errors import PyramidError
from pyramid_env.rules import Rules
from pyramid_env.table.session import Session, open_store

STATIC: Final = Path(__file__).parent / "static"
LOOPBACK: Final = "127.0.0.1"
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

    Attributes:
        address: the page's address, with its token; whoever knows it can play.

    Raises:
        PyramidError: the port is taken, or not one.
    """

    def __init__(self, session: Session, port: int = 0) -> None:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65_535:
            raise PyramidError(f"port: expected a number from 0 to 65535, got {port!r}")
        self.session: Final = session
        token = secrets.token_urlsafe(24)
        try:
            self._http = _Http((LOOPBACK, port), session, token)
        except OSError as error:
            raise PyramidError(f"port {port}: expected a free one, got {error.strerror}") from None
        self.port: Final = int(self._http.server_address[1])
        self.address: Final = f"http://{LOOPBACK}:{self.port}/{token}/"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when the server was closed."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """Stop serving and keep the running game."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self.session.close()

    def __enter__(self) -> TableServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def play(
    rules: Rules | str = "pyramid",
    deal: Deal | int | str | None = None,
    *,
    port: int = 0,
    browser: bool = True,
    keep: bool = True,
    path: str | None = None,
) -> TableServer:
    """Serve a table on localhost, and open it in a browser.

    Args:
        rules: preset, text or Rules.
        deal: a Deal, a number or text; None: the unfinished game of these rules, or a random deal.
        port: 0 takes any free one.
        browser: open the page.
        keep: save games, results and preferences.
        path: the database; None: in the user's data folder.

    Returns:
        The running server; close it.
    """
    store, message = open_store(path) if keep else (None, None)
    session = Session(rules, deal, store=store)
    session.message = message or session.message
    server = TableServer(session, port)
    if browser:
        webbrowser.open(server.address)
    return server


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, at: tuple[str, int], session: Session, token: str) -> None:
        super().__init__(at, _Handler)
        self.session, self.token = session, token
        port = self.server_address[1]
        self.hosts: Final = frozenset(f"{name}:{port}" for name in (LOOPBACK, "localhost"))


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    server_version, sys_version = "pyramid_env", ""
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds of silence after which a connection is closed

    def do_GET(self) -> None:
        """A part of the page, or the state."""
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
        if not length.isdecimal() or int(length) > LARGEST_EVENT:
            return self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected at most {LARGEST_EVENT} bytes")
        try:
            event = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return self._refuse(HTTPStatus.BAD_REQUEST, "expected an event as JSON")
        self.server.session.handle(event)
        self._send_json(self.server.session.state())

    def _asked(self) -> str | None:
        """What of the page is asked for; None, and refused, for those who may not ask."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "expected this server's own name in Host")
        elif origin is not None and urlsplit(origin).netloc != host:
            self._refuse(HTTPStatus.FORBIDDEN, "requests from other origins are refused")
        elif self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and self.command != "GET":
            self._refuse(HTTPStatus.FORBIDDEN, "requests from other sites are refused")
        else:
            token, _, where = urlsplit(self.path).path.removeprefix("/").partition("/")
            if hmac.compare_digest(token.encode(), self.server.token.encode()):
                return where
            self._refuse(HTTPStatus.FORBIDDEN, "expected the address with its token, as it was printed")
        return None

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True  # what it may still send is not read
        self._send(status, f"{why}\n".encode(), "text/plain; charset=utf-8")

    def _send_json(self, value: Any) -> None:
        self._send(HTTPStatus.OK, json.dumps(value).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, text in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the address with its token would stand in every line."""
