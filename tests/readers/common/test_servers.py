"""Data on servers that drop, delay and fail, on loopback: S3 (moto), HTTP, Google Cloud Storage (a small imitation).

The packages are not in the extra `dev`, for they are large: pip install 'moto[server]' s3fs gcsfs.
"""

from __future__ import annotations

import gzip
import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cntkpy.cntk_config.base import remote as base_remote
from cntkpy.cntk_config.base import url_cache
from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.url_cache import CachedObject
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.readers import DataError

from .servers import Answers, minibatches, part, s3_on, serving

pytestmark = pytest.mark.thorough
CTF = "".join(f"{k} |x {k} {t} |y {k % 4}:1\n" for k in range(3000) for t in range(1 + k % 3)).encode()
INPUTS = "input=[x=[dim=2;format=dense];y=[dim=4;format=sparse]]"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base_remote, "RETRY_SECONDS", (0.0, 0.01, 0.02, 0.05))
    monkeypatch.setattr(CachedObject, "block_bytes", 1 << 12)
    Path("cache").mkdir()
    monkeypatch.setattr(url_cache, "_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(url_cache, "most_bytes", lambda: 40 << 10)


class Faults:
    """What happens to requests for data, drawn at random: nothing, a delay, an error, or an end in the middle."""

    def __init__(self) -> None:
        self.draw = random.Random(4)
        self.often = 0.0
        self.always = False
        self.met = {"delay": 0, "error": 0, "drop": 0}

    def next(self) -> str:
        """`delay`, `error`, `drop`, or nothing."""
        if self.always:
            return "error"
        if self.draw.random() >= self.often:
            return ""
        kind = self.draw.choice(["delay", "error", "drop"])
        self.met[kind] += 1
        return kind


def data_of(path: str, more: str, kind: str = "") -> list[Any]:
    source = f'deserializers=([type={kind};file="{path}";{INPUTS}])' if kind else f'file="{path}";{INPUTS}'
    return minibatches(f"{more};{source}")


def files() -> dict[str, tuple[str, bytes]]:
    table = pa.table(
        {
            "x": pa.array([[k, k / 2] for k in range(3000)], pa.list_(pa.float32(), 2)),
            "y": pa.array([k % 4 for k in range(3000)]),
        }
    )
    pq.write_table(table, "t.parquet", row_group_size=300)
    return {
        "a.ctf": ("", CTF),
        "a.ctf.gz": ("", gzip.compress(CTF)),
        "t.parquet": ("ParquetDeserializer", Path("t.parquet").read_bytes()),
    }


def nothing_is_lost(put: Callable[[str, bytes], str], faults: Faults) -> None:
    """Read files of every kind from a server that fails, and compare with local ones: in order, and shuffled."""
    for name, (kind, content) in files().items():
        Path(name).write_bytes(content)
        url = put(name, content)
        for order in ("randomize=false", "randomize=true;chunkSizeInBytes=5000;randomizationWindow=300"):
            expected = data_of(name, order, kind)
            faults.often = 0.25
            assert data_of(url, order, kind) == expected
            faults.often = 0.0
    assert min(faults.met.values()) > 3
    cache = list(Path("cache").iterdir())
    assert cache and sum(path.stat().st_size for path in cache) <= 40 << 10


# ---- S3


class Failing:
    """A WSGI application whose answers with data fail."""

    def __init__(self, inner: Any, faults: Faults) -> None:
        self.inner, self.faults = inner, faults

    def __call__(self, environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        """Answer a request."""
        data = environment["REQUEST_METHOD"] == "PUT" or "HTTP_RANGE" in environment
        fault = self.faults.next() if data else ""
        if fault == "delay":
            time.sleep(0.05)
        if fault == "error":
            start("503 Slow Down", [("Content-Type", "text/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>reduce your request rate</Message></Error>"]
        answer = self.inner(environment, start)
        return self._half(answer) if fault == "drop" else answer

    def _half(self, answer: Iterable[bytes]) -> Iterator[bytes]:
        whole = b"".join(answer)
        yield whole[: len(whole) // 2]
        raise ConnectionAbortedError("dropped by the test")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Faults]]:
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    import logging

    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    faults = Faults()
    app = Failing(DomainDispatcherApplication(create_backend_app), faults)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    with s3_on(server.server_port, monkeypatch) as system:
        yield system, faults
    server.shutdown()


def test_s3(s3: tuple[Any, Faults], caplog: pytest.LogCaptureFixture) -> None:
    system, faults = s3

    def put(name: str, content: bytes) -> str:
        system.pipe_file(f"bucket/{name}", content)
        return f"s3://bucket/{name}"

    nothing_is_lost(put, faults)
    assert "s3://bucket/a.ctf cannot be read at byte" in caplog.text and "s3cret" not in caplog.text
    faults.often = 0.3
    for k in range(12):
        with atomic_write(f"s3://bucket/out{k}") as file:
            file.write(b"%d" % k * 5000)
    faults.often = 0.0
    system.invalidate_cache()
    assert [system.cat_file(f"bucket/out{k}") for k in range(12)] == [b"%d" % k * 5000 for k in range(12)]
    url = put("b.ctf", CTF)
    faults.always = True
    with pytest.raises(DataError, match=r"The data at s3://bucket/b.ctf cannot be read at byte 0: .*, 5 times\."):
        data_of(url, "randomize=false")
    faults.always = False
    with pytest.raises(DataError, match=r"s3://bucket/none cannot be opened: there is no such object\."):
        data_of("s3://bucket/none", "randomize=false")


# ---- HTTP


class Store(Answers):
    """Objects with ranges and tags."""

    objects: ClassVar[dict[str, bytes]] = {}
    faults: ClassVar[Faults] = Faults()

    def answer(self, body: bool) -> None:
        content = self.content()
        fault = self.faults.next() if body and "Range" in self.headers else ""
        if content is None or fault == "error":
            self.send(503 if fault else 404, b"", True)
            return
        if fault == "delay":
            time.sleep(0.05)
        status, more = 200, {"ETag": f'"{hash(content)}"', "Accept-Ranges": "bytes"}
        if (asked := self.headers.get("Range")) is not None:
            content, where = part(content, asked)
            status, more = 206, more | where
        if fault == "drop":
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return
        self.send(status, content, body, more)

    def content(self) -> bytes | None:
        """The object that is asked for."""
        return self.objects.get(urlsplit(self.path).path)


class Cloud(Store):
    """The part of the interface of Google Cloud Storage that reading needs."""

    def content(self) -> bytes | None:
        """The object, or what is known of it."""
        where = urlsplit(self.path)
        name = "/" + unquote(where.path.rpartition("/o/")[2])
        found = self.objects.get(name)
        if found is None or parse_qs(where.query).get("alt") == ["media"]:
            return found
        about = {"name": name[1:], "bucket": "bucket", "size": str(len(found)), "etag": str(hash(found)),
                 "contentType": "text/plain", "generation": "1", "kind": "storage#object"}  # fmt: skip
        return json.dumps(about).encode()


def serve(handler: type[Store]) -> Iterator[tuple[str, Faults]]:
    handler.objects.clear()
    handler.faults = Faults()
    with serving(handler) as host:
        yield host, handler.faults


@pytest.fixture
def http() -> Iterator[tuple[str, Faults]]:
    yield from serve(Store)


def test_http(http: tuple[str, Faults], caplog: pytest.LogCaptureFixture) -> None:
    host, faults = http
    number = 0

    def put(name: str, content: bytes) -> str:
        nonlocal number
        number += 1
        Store.objects[f"/{name}"] = content
        return f"http://{host}/{name}?signature=s3cret{number}"

    nothing_is_lost(put, faults)
    faults.always = True
    with pytest.raises(DataError) as caught:
        data_of(f"http://{host}/a.ctf?signature=s3cret&new", "randomize=false;chunkSizeInBytes=100000")
    assert caught.value.message.startswith(f"The data at http://{host}/a.ctf cannot be read at byte ")
    faults.always = False
    with pytest.raises(OSError, match="there is no such object"):
        read_input(f"http://{host}/none")
    assert "trying again" in caplog.text and "s3cret" not in caplog.text + caught.value.message
    assert not [path.name for path in Path("cache").iterdir() if "s3cret" in path.name]


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Faults]]:
    gcsfs = pytest.importorskip("gcsfs")
    for address, faults in serve(Cloud):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{address}")
        monkeypatch.setenv("FSSPEC_GS_TOKEN", "anon")
        gcsfs.GCSFileSystem.clear_instance_cache()
        yield address, faults
        gcsfs.GCSFileSystem.clear_instance_cache()


def test_google_cloud_storage(cloud: tuple[str, Faults]) -> None:
    _, faults = cloud

    def put(name: str, content: bytes) -> str:
        Cloud.objects[f"/{name}"] = content
        return f"gs://bucket/{name}"

    nothing_is_lost(put, faults)
    with pytest.raises(DataError, match=r"gs://bucket/none cannot be opened: there is no such object\."):
        data_of("gs://bucket/none", "randomize=false")
    assert np.frombuffer(read_input("gs://bucket/a.ctf"), np.uint8).tobytes() == CTF
