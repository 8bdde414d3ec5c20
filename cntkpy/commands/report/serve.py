"""`cntkpy runs --serve`: the report of runs with their newest state, for a browser on this machine.

The server listens on the loopback only. It answers one address with one page: without the token of this start, or under
another name of the host (a page of another site that has made its own name lead here), the answer is 403.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import math
import secrets
import socketserver
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.systems.files import HAS_DRIVES
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.commands.report.page import page
from cntkpy.commands.runs.find import find_runs

HOST = "127.0.0.1"
TOKEN_BYTES = 24
LIVE_SECONDS = 2
"""Seconds between two questions of the page."""
SHARE = 10
"""Largest share of the time that making the page may take; the page asks less often to keep it."""
REQUEST_SECONDS = 10
"""Seconds without a request after which a connection is closed."""
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LivePage:
    """The page of runs, rebuilt when it is older than a second.

    Args:
        words: Runs and folders, as `find_runs` takes them.

    Raises:
        UserError: A word names no run.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._words, self._lock = list(words), threading.Lock()
        self._live_seconds, self._made = LIVE_SECONDS, 0.0
        self._content = b""
        self._make()

    def content(self) -> bytes:
        """Return the page. If the runs cannot be read now, it is the one before: a run may be writing its files."""
        with self._lock:
            if time.monotonic() - self._made > 1:
                with suppress(UserError):
                    self._make()
            return self._content

    def _make(self) -> None:
        begun = time.monotonic()
        self._content = page(find_runs(self._words, empty_folders=True), self._live_seconds).encode()
        self._made = time.monotonic()
        self._live_seconds = max(LIVE_SECONDS, math.ceil(SHARE * (self._made - begun)))


class RunsServer(socketserver.ThreadingTCPServer):
    """Server of one page on the loopback.

    Args:
        live: The page.
        port: 0: any that is free.

    Raises:
        UserError: The port cannot be used.
    """

    allow_reuse_address = not HAS_DRIVES  # on Windows it would let two programs listen on one port
    daemon_threads = True

    def __init__(self, live: LivePage, port: int) -> None:
        self.live, self.token = live, secrets.token_urlsafe(TOKEN_BYTES)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            used = error.errno == errno.EADDRINUSE
            reason = "another program listens there" if used else str(error.strerror or error)
            message = f"cannot listen on {HOST}:{port}: {reason}"
            raise UserError("CannotListen", message, hint="leave out --port for a port that is free") from None
        self.port: int = self.server_address[1]
        self.hosts = {f"{HOST}:{self.port}", f"localhost:{self.port}"}

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    def allows(self, hosts: Sequence[str], target: str) -> HTTPStatus:
        """Return the status of the answer to a request.

        Args:
            hosts: Its `Host` headers.
            target: The path and the query.
        """
        token, path = "", ""
        with suppress(ValueError):
            parts = urlsplit(target)
            path = parts.path
            token = "".join(parse_qs(parts.query).get("token", []))
        is_token = hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())
        if not is_token or len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return HTTPStatus.FORBIDDEN
        return HTTPStatus.OK if path == "/" and target.startswith("/?") else HTTPStatus.NOT_FOUND

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Leave out connections that ended early: a browser closes those that it does not need."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; other methods get 501 from the class above, without a look at the runs."""

    server: RunsServer  # pyright: ignore[reportIncompatibleVariableOverride]
    timeout = REQUEST_SECONDS
    server_version, sys_version = "cntkpy", ""

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        status = self.server.allows(self.headers.get_all("Host", []), self.path)
        content = self.server.live.content() if status == HTTPStatus.OK else f"{status} {status.phrase}\n".encode()
        tag = f'"{hashlib.sha256(content).hexdigest()}"'
        if status == HTTPStatus.OK and self.headers.get("If-None-Match") == tag:
            status, content = HTTPStatus.NOT_MODIFIED, b""
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if status == HTTPStatus.OK:
            self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: addresses have the token."""


def serve(words: Sequence[str], port: int = 0, opens: bool = False) -> None:
    """Serve the page of runs until a signal ends the process.

    Args:
        words: Runs and folders.
        port: 0: any that is free.
        opens: Open the page in the browser, too.

    Raises:
        UserError: A word names no run, or the port cannot be used.
    """
    with RunsServer(LivePage(words), port) as server:
        print(server.url, flush=True)
        print("Only this machine can open the page. Ctrl-C ends it.", file=sys.stderr, flush=True)
        with _opened(server.url) if opens else nullcontext():
            server.serve_forever()


@contextmanager
def _opened(url: str) -> Generator[None]:
    """Open an address in the browser by a file in a folder of this user only: all users see words of command lines."""
    with tempfile.TemporaryDirectory(prefix="cntkpy-") as folder:
        file = Path(folder, "runs.html")
        with atomic_write(file, "w", durable=False) as page_of_address:
            page_of_address.write(f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={url}">')
        if not webbrowser.open(file.as_uri()):
            print("warning: no browser was found; open the address by hand", file=sys.stderr)
        yield
