"""Servers on loopback for tests of data behind URLs: what imitations of HTTP interfaces and of S3 have in common."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from cntkpy.readers import create_reader

SECRET = "s3cret"
"""The key of S3, which no message may have."""


class Answers(BaseHTTPRequestHandler):
    """Answers requests for data (GET) and for what is known of them (HEAD)."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_HEAD(self) -> None:
        """Answer without data."""
        self.answer(False)

    def do_GET(self) -> None:
        """Answer."""
        self.answer(True)

    def answer(self, body: bool) -> None:
        """Answer the request; `body`: with data."""
        raise NotImplementedError

    def send(self, status: int, content: bytes, body: bool, more: dict[str, str] | None = None) -> None:
        """Send an answer; `more`: further headers."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


def part(content: bytes, asked: str) -> tuple[bytes, dict[str, str]]:
    """The bytes of a header `Range`, and the header of the answer that says which they are."""
    first, _, last = asked.removeprefix("bytes=").partition("-")
    end = min(int(last or len(content)) + 1, len(content))
    return content[int(first) : end], {"Content-Range": f"bytes {first}-{end - 1}/{len(content)}"}


@contextmanager
def serving(handler: type[Answers]) -> Iterator[str]:
    """Serve in a thread; gives `host:port`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@contextmanager
def s3_on(port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The file system of an S3 server at a port of this machine, with an empty `bucket`."""
    import fsspec

    for name, value in {
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_MAX_ATTEMPTS": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    kind = fsspec.get_filesystem_class("s3")
    kind.clear_instance_cache()
    system = fsspec.filesystem("s3")
    system.retries = 1  # so that the attempts are ours
    system.mkdir("bucket")
    yield system
    kind.clear_instance_cache()


def minibatches(section: str) -> list[Any]:
    """Keys and values of all minibatches of 64 samples of the streams x, which is dense, and y, which is sparse."""
    reader = create_reader(section)
    try:
        reader.start_minibatch_loop(64, 0)
        return [
            (m.keys, m.streams["x"].tolist(), m.streams["y"].toarray().tolist())
            for m in iter(reader.get_minibatch, None)
        ]
    finally:
        reader.close()
