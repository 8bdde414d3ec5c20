"""Objects behind http: servers without ranges, servers that stall, and answers that depend on the query."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cntkpy.cntk_config.base import remote, url_cache
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import open_input, read_input, read_start
from cntkpy.cntk_config.base.url_cache import CachedObject

CONTENT = bytes(range(256)) * 400
TAGS = {"ETag": '"1"', "Last-Modified": "Sat, 28 Nov 2026 13:00:00 GMT"}


class Server(BaseHTTPRequestHandler):
    """Sends `CONTENT`, or what the query says, and notes what it was asked for."""

    protocol_version = "HTTP/1.1"
    ranges: ClassVar[bool] = False
    headers_more: ClassVar[dict[str, str]] = {}
    size_in_ranges: ClassVar[int | None] = None
    stall_at: ClassVar[int | None] = None
    drip_seconds: ClassVar[float] = 0.0
    """Before each byte after `stall_at`; 0: no byte comes any more."""
    cut_at: ClassVar[list[int]] = []
    asked: ClassVar[list[str]] = []
    go: ClassVar[threading.Event] = threading.Event()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_HEAD(self) -> None:
        """Answer without data."""
        self._answer(False)

    def do_GET(self) -> None:
        """Answer."""
        self.asked.append(self.headers.get("Range", "all"))
        self._answer(True)

    def _answer(self, body: bool) -> None:
        query = self.path.partition("?")[2]
        content = query.encode() * 100 if query.startswith("id=") else CONTENT
        sent, more = content, dict(self.headers_more)
        status = 200
        if body and self.ranges and "Range" in self.headers:
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            sent, status = content[int(first) : int(last) + 1], 206
            more["Content-Range"] = f"bytes {first}-{last}/{self.size_in_ranges or len(content)}"
        self.send_response(status)
        for name, value in {"Content-Length": str(len(sent)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        if not body:
            return
        try:
            if self.stall_at is not None:
                self.wfile.write(sent[: self.stall_at])
                self.wfile.flush()
                while not self.go.wait(self.drip_seconds or 60.0):
                    self.wfile.write(b"x")
                    self.wfile.flush()
                self.close_connection = True
                return
            cut = self.cut_at.pop() if self.cut_at else len(sent)
            self.wfile.write(sent[:cut])
            self.close_connection = cut < len(sent)
        except OSError:
            self.close_connection = True


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(remote, "RETRY_SECONDS", (0.0, 0.0))
    monkeypatch.setattr(CachedObject, "block_bytes", 1 << 12)
    monkeypatch.setattr(url_cache, "_folder", lambda: tmp_path)
    monkeypatch.setattr(url_cache, "most_bytes", lambda: 1 << 20)
    for name, value in {
        "ranges": False, "headers_more": {}, "size_in_ranges": None, "stall_at": None, "drip_seconds": 0.0,
        "cut_at": [], "asked": [], "go": threading.Event(),
    }.items():  # fmt: skip
        monkeypatch.setattr(Server, name, value)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    Server.go.set()
    server.shutdown()
    server.server_close()
    remote.stall_seconds.cache_clear()


def set_timeout(monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    remote.stall_seconds.cache_clear()
    monkeypatch.setenv(remote.TIMEOUT_SETTING, seconds)


@pytest.mark.parametrize("tags", [TAGS, {"ETag": '"1"'}, {"Last-Modified": TAGS["Last-Modified"]}])
def test_the_query_chooses_the_data(host: str, tags: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both answers have the same tag, time and size, as of a server that makes tags of versions."""
    monkeypatch.setattr(Server, "headers_more", tags)
    for _ in range(2):
        for name in ("id=a", "id=b"):
            assert read_input(f"{host}/d?{name}") == name.encode() * 100
    assert len(Server.asked) == 2  # and the second time nobody is asked


def test_ranges_are_asked_for_where_the_server_knows_them(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "ranges", True)
    found = CachedObject(f"{host}/a")
    assert found.fetch(5000, 5003) == CONTENT[5000:5003] and Server.asked == ["bytes=5000-5002"]
    assert read_start(f"{host}/a", 10) == CONTENT[:10]
    monkeypatch.setattr(Server, "size_in_ranges", 7)
    with pytest.raises(OSError, match="byte 5000: it has 7 bytes now instead of 102400: it has changed"):
        found.fetch(5000, 5003)


@pytest.mark.parametrize("tags", [TAGS, {}])
def test_a_server_without_ranges_is_asked_once_for_all(
    host: str, tags: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Server, "headers_more", tags)
    found = CachedObject(f"{host}/a")
    for begin in (0, 50_000, 9000, 102_300):
        assert found.fetch(begin, begin + 100) == CONTENT[begin : begin + 100]
    assert found.blocks(0, 24) == [CONTENT[at : at + 4096] for at in range(0, len(CONTENT), 4096)]
    assert Server.asked == ["bytes=0-99", "all"]
    assert len(list(tmp_path.iterdir())) == (25 if tags else 0)
    found.close()
    if tags:  # the next run
        assert b"".join(CachedObject(f"{host}/a").blocks(0, 24)) == CONTENT and len(Server.asked) == 2
    with open_input(f"{host}/b") as file:
        assert file.read() == CONTENT


def test_the_start_of_an_object_is_not_the_whole(host: str) -> None:
    assert read_start(f"{host}/a", 10) == CONTENT[:10] and read_start(f"{host}/a", 1 << 20) == CONTENT


def test_a_download_that_ends_early_begins_again(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "cut_at", [len(CONTENT), 70_000, len(CONTENT)])
    found = CachedObject(f"{host}/a")
    assert found.fetch(100, 102_400) == CONTENT[100:]
    assert Server.asked == ["bytes=100-102399", "all", "all"]
    monkeypatch.setattr(Server, "cut_at", [10] * 9)
    with pytest.raises(OSError, match="3 times"):
        CachedObject(f"{host}/c").fetch(100, 200)


@pytest.mark.thorough
@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("drip", [0.0, 0.2])
def test_a_server_that_stalls_ends_the_request(
    host: str, ranges: bool, drip: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sends a part and then nothing, or a byte now and then, which takes an hour for the rest."""
    monkeypatch.setattr(remote, "RETRY_SECONDS", (0.0,))
    set_timeout(monkeypatch, "0.5")
    monkeypatch.setattr(Server, "ranges", ranges)
    monkeypatch.setattr(Server, "stall_at", 10)
    monkeypatch.setattr(Server, "drip_seconds", drip)
    found = CachedObject(f"{host}/a")
    began = time.monotonic()
    with pytest.raises(OSError, match=r"no answer in time \(CNTKPY_URL_TIMEOUT_SECONDS=0\.5\), 2 times"):
        found.fetch(0, 50_000)
    assert 0.9 < time.monotonic() - began < 10


def test_a_server_that_never_answers(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    set_timeout(monkeypatch, "0.5")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(OSError, match=r"no answer in time \(CNTKPY_URL_TIMEOUT_SECONDS=0\.5\), 3 times"):
            CachedObject(f"http://127.0.0.1:{silent.getsockname()[1]}/a")
    assert time.monotonic() - began < 10


def test_other_file_systems_have_the_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec
    from unreliable import Unreliable

    fsspec.register_implementation("unreliable", Unreliable, clobber=True)
    fsspec.filesystem("unreliable").pipe_file("/a", CONTENT)
    set_timeout(monkeypatch, "0.2")
    monkeypatch.setattr(remote, "SLOWEST", 1 << 30)
    monkeypatch.setattr(Unreliable, "faults", [3.0, 3.0, 3.0])
    found = CachedObject("unreliable://a")
    with pytest.raises(OSError, match=r"no answer in time \(CNTKPY_URL_TIMEOUT_SECONDS=0\.2\), 3 times"):
        found.fetch(0, 10)
    fsspec.filesystem("unreliable").store.clear()


@pytest.mark.parametrize("text", ["0", "-1", "1e9", "nan", "soon", "0.0", "1234567"])
def test_the_limit_is_a_number_of_seconds(text: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_timeout(monkeypatch, text)
    message = f"the variable CNTKPY_URL_TIMEOUT_SECONDS of the environment is '{text}', not a number of seconds"
    with pytest.raises(UserError, match=message):
        CachedObject(f"{host}/a")


def test_a_full_disk_is_named(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(piece: bytes) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left on device") as caught:
        CachedObject(f"{host}/a").download(full, lambda: None)
    assert caught.value.hint == "make room on the disk of the caches and temporary files"  # type: ignore[attr-defined]
    assert Server.asked == ["all"]


MEMORY = """
import sys
from pathlib import Path
from cntkpy.cntk_config.base.url_cache import CachedObject
found = CachedObject(sys.argv[1])
assert found.fetch(found.size - 5, found.size) == bytes(5)
assert found.fetch(0, 10) == bytes(10)
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="the most memory of a process is read from /proc")
def test_pythons_own_server_and_a_large_file_take_little_memory(tmp_path: Path) -> None:
    (tmp_path / "www").mkdir()
    with (tmp_path / "www" / "large").open("wb") as large:
        large.truncate(300 << 20)
    server = subprocess.Popen(
        [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(tmp_path / "www")],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().split(' port ')[1].split()[0]}/large"
        words = [sys.executable, "-c", MEMORY, url]
        environment = {"CNTKPY_URL_CACHE_MB": "0", "PATH": "", "TMPDIR": str(tmp_path)}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) < 150 << 10  # kilobytes
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()  # type: ignore[union-attr]
