"""Objects on S3 that are much larger than what is kept of them on the disk and in memory; the server fails at times.

The packages are not in the extra `dev`, for they are large: pip install 'moto[server]' s3fs.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cntkpy.cntk_config.base import remote as base_remote
from cntkpy.cntk_config.base import url_cache
from cntkpy.cntk_config.base.remote import RemoteObject
from cntkpy.readers import create_reader
from cntkpy.readers.common import remote
from cntkpy.readers.formats.tables import deserializer
from cntkpy.readers.pipeline import randomize
from cntkpy.readers.pipeline.store import ChunkStore

from .servers import s3_on

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is known from /proc"),
]
MB = 1 << 20
SIZE, DISK, MEMORY = 64 * MB, 8 * MB, 8 * MB
"""Of an object, and what may be kept of it."""
DIM = 64
SERVER = """
import logging, sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
from tests.readers.common.test_servers import Failing, Faults
logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
faults = Faults()
faults.often = 0.1
server = make_server("127.0.0.1", 0, Failing(DomainDispatcherApplication(create_backend_app), faults), threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A file system with a bucket, from a server in a process of its own, whose memory does not count."""
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base_remote, "RETRY_SECONDS", (0.0, 0.01, 0.02, 0.05))
    Path("cache").mkdir()
    monkeypatch.setattr(url_cache, "_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(url_cache, "most_bytes", lambda: DISK)
    monkeypatch.setattr(remote, "KEPT", MEMORY)
    monkeypatch.setattr(deserializer, "DEFAULT_MEMORY", MEMORY)
    monkeypatch.setitem(ChunkStore.__init__.__kwdefaults__, "memory", MEMORY)
    monkeypatch.setattr(randomize.chunks_in_memory, "__defaults__", (MEMORY,))
    root = Path(__file__).parents[3]
    server = subprocess.Popen([sys.executable, "-c", SERVER], cwd=root, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = int(server.stdout.readline())
    with s3_on(port, monkeypatch) as system:
        yield system
    server.terminate()
    server.wait()
    server.stdout.close()


def put(system: Any, name: str, content: bytes) -> None:
    """Write an object, however often the server fails."""
    for _ in range(50):
        try:
            system.pipe_file(f"bucket/{name}", content)
            return
        except OSError:
            continue
    raise AssertionError("the server fails always")


def table(name: str) -> int:
    """A Parquet file of about `SIZE` bytes; its rows."""
    rows = SIZE // (4 * DIM)
    values = np.random.default_rng(0).normal(size=(rows, DIM)).astype(np.float32)
    values[:, 0] = np.arange(rows)
    column = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIM)
    pq.write_table(pa.table({"x": column}), name, row_group_size=rows // 32, compression="none")
    return rows


def text(name: str) -> int:
    """A text file of about `SIZE` bytes; its sequences."""
    tail = " ".join(f"0.{i:06d}" for i in range(DIM - 1))
    lines = SIZE // (len(tail) + 24)
    with Path(name).open("w") as file:
        file.writelines(f"{k} |x {k} {tail}\n" for k in range(lines))
    return lines


def kept() -> int:
    """Bytes of the cache on the disk."""
    total = 0
    for path in Path("cache").iterdir():
        with suppress(FileNotFoundError):  # it went just now
            total += path.stat().st_size
    return total


def memory() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


MADE = {"t.parquet": (table, "ParquetDeserializer"), "a.ctf": (text, "CNTKTextFormatDeserializer")}


@pytest.mark.parametrize("name", MADE)
def test_nothing_is_lost_and_little_is_kept(bucket: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, kind = MADE[name]
    rows = make(name)
    size = Path(name).stat().st_size
    put(bucket, name, Path(name).read_bytes())
    asked: list[int] = []
    fetch = RemoteObject.fetch
    monkeypatch.setattr(
        RemoteObject, "fetch", lambda self, begin, end: asked.append(end - begin) or fetch(self, begin, end)
    )
    chunks = f"chunkSizeInBytes={2 * MB};" if name == "a.ctf" else ""
    section = f'deserializers=([type={kind};{chunks}file="s3://bucket/{name}";input=[x=[dim={DIM};format=dense]]])'
    for order in ("warm", "false", "true"):  # what is imported for the first minibatch does not count
        asked.clear()
        for path in Path("cache").iterdir():
            path.unlink()
        before, disk = memory(), 0
        held, seen = [0, 0], list[np.ndarray]()
        reader = create_reader(f"randomize={order == 'true'};{section}")
        reader.start_minibatch_loop(256, 0)
        for number, minibatch in enumerate(iter(reader.get_minibatch, None)):
            seen.append(minibatch.streams["x"].reshape(-1, DIM)[:, 0].astype(np.int64))
            assert seen[-1].tolist() == list(minibatch.keys)
            if number % 64 == 0:
                half = int(number * 512 > rows)
                held[half], disk = max(held[half], memory() - before), max(disk, kept())
            if order == "warm" and number > 100:
                break
        reader.close()
        if order == "warm":
            continue
        found = np.concatenate(seen)
        assert np.array_equal(np.sort(found), np.arange(rows)) and (found[0] == 0) == (order == "false")
        passes = 2 if name == "a.ctf" else 1  # text is read for its index first
        assert 0 < disk <= DISK
        assert held[0] < SIZE and held[1] < held[0] + SIZE // 2, "memory grows with what was read"
        blocks = 1 if order == "false" else 3  # shuffled, each chunk of 2 MB is in one block or two, of 4 MB each
        assert sum(asked) < (passes + blocks) * size
