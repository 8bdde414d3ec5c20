"""`hf://` URLs: huggingface_hub reads them from a small imitation of the Hub on loopback.

The package is not in the extra `dev`, for few people need it: pip install huggingface_hub.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cntkpy.cntk_config.base import remote as base_remote
from cntkpy.cntk_config.base import url_cache
from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.url_cache import CachedObject
from cntkpy.readers import DataError

from .servers import Answers, minibatches, part, serving

pytestmark = pytest.mark.thorough
TOKEN = "hf_s3cret"
CTF = "".join(f"{k} |x {k} {-k} |y {k % 4}:1\n" for k in range(2000)).encode()


class Hub(Answers):
    """The part of the Hub that reading needs, of one private repository of data, `me/data`."""

    files: ClassVar[dict[str, bytes]] = {}
    asked: ClassVar[list[tuple[str, str | None]]] = []
    """The files that were asked for, and which bytes."""
    failures: ClassVar[list[int]] = []
    """Answers to the next requests for bytes, instead of these."""

    def answer(self, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.send(401, b"{}", body, {"X-Error-Message": "Invalid credentials"})
        elif path.rstrip("/") in ("/api/datasets/me/data", "/api/datasets/me/data/revision/main"):
            self.send(200, json.dumps({"id": "me/data", "private": True, "sha": "1" * 40}).encode(), body)
        elif path.startswith("/api/datasets/me/data/tree/main"):
            tree = [
                {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                for name, content in self.files.items()
            ]
            self.send(200, json.dumps(tree).encode(), body)
        elif (name := path.removeprefix("/datasets/me/data/resolve/main/")) in self.files:
            self._bytes(name, body)
        else:
            missing = "EntryNotFound" if "/resolve/" in path else "RepoNotFound"
            self.send(404, b"{}", body, {"X-Error-Code": missing, "X-Error-Message": "not found"})

    def _bytes(self, name: str, body: bool) -> None:
        content, asked = self.files[name], self.headers.get("Range")
        self.asked.append((name, asked))
        if self.failures:
            self.send(self.failures.pop(), b"no", body)
            return
        if asked is None:
            self.send(200, content, body)
            return
        found, where = part(content, asked)
        self.send(206, found, body, where)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Hub, and nothing kept of other tests."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base_remote, "RETRY_SECONDS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(CachedObject, "block_bytes", 1 << 13)
    Path("cache").mkdir()
    monkeypatch.setattr(url_cache, "_folder", lambda: tmp_path / "cache")
    Hub.asked.clear()
    Hub.failures.clear()
    table = pa.table(
        {"x": pa.array([[k, -k] for k in range(2000)], pa.list_(pa.float32(), 2)), "y": [k % 4 for k in range(2000)]}
    )
    pq.write_table(table, "t.parquet", row_group_size=200)
    Path("a.ctf").write_bytes(CTF)
    Hub.files = {"train.ctf": CTF, "train.parquet": Path("t.parquet").read_bytes(), "list.txt": b"a\nb\n"}
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with serving(Hub) as host:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://{host}")
        template = f"http://{host}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        huggingface_hub.HfFileSystem.clear_instance_cache()
        yield
        huggingface_hub.HfFileSystem.clear_instance_cache()


def data_of(path: str, order: str = "randomize=false") -> list[Any]:
    kind = "ParquetDeserializer" if path.endswith("parquet") else "CNTKTextFormatDeserializer"
    inputs = "x=[dim=2;format=dense];y=[dim=4;format=sparse]"
    return minibatches(f'{order};deserializers=([type={kind};file="{path}";input=[{inputs}]])')


def test_the_same_as_local_files(hub: None, caplog: pytest.LogCaptureFixture) -> None:
    for name, local in (("train.ctf", "a.ctf"), ("train.parquet", "t.parquet")):
        for order in ("randomize=false", "randomize=true;chunkSizeInBytes=5000;randomizationWindow=300"):
            assert data_of(f"hf://datasets/me/data/{name}", order) == data_of(local, order)
    assert data_of("hf://datasets/me/data@main/train.ctf") == data_of("a.ctf")
    assert read_input("hf://datasets/me/data/list.txt") == b"a\nb\n"
    assert TOKEN not in caplog.text and list(Path("cache").iterdir())


def test_only_what_is_needed_is_asked_for(hub: None) -> None:
    """Blocks, each once: what was read is kept on the disk, for the Hub says which version of a file it is."""
    data_of("hf://datasets/me/data/train.ctf")
    sizes = []
    for name, asked in Hub.asked:
        assert name == "train.ctf" and asked is not None
        first, _, last = asked.removeprefix("bytes=").partition("-")
        sizes.append(int(last) + 1 - int(first))
    assert sum(sizes) == len(CTF)
    Hub.asked.clear()
    data_of("hf://datasets/me/data/train.ctf")
    assert Hub.asked == []


def test_failures(hub: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    expected = data_of("a.ctf")
    Hub.failures += [403]
    with pytest.raises(DataError) as caught:
        data_of("hf://datasets/me/data/train.ctf")
    messages = [str(caught.value)]
    assert "hf://datasets/me/data/train.ctf cannot be read at byte 0: the server forbids it (403)" in messages[0]
    Hub.failures += [409, 409]
    assert data_of("hf://datasets/me/data/train.ctf") == expected
    assert "hf://datasets/me/data/train.ctf cannot be read at byte 0" in caplog.text
    for url in ("hf://datasets/me/data/none.ctf", "hf://datasets/me/none/train.ctf"):
        with pytest.raises(DataError, match=rf"{url} cannot be opened: there is no such object\.") as caught:
            data_of(url)
        messages.append(str(caught.value))
    monkeypatch.setenv("HF_TOKEN", "hf_0ther")
    import huggingface_hub

    huggingface_hub.HfFileSystem.clear_instance_cache()
    with pytest.raises(DataError, match=r"hf://datasets/me/data/train.ctf cannot be opened: .*\(401\)\.") as caught:
        data_of("hf://datasets/me/data/train.ctf")
    messages.append(str(caught.value))
    every = "".join(messages) + caplog.text
    assert TOKEN not in every and "hf_0ther" not in every
