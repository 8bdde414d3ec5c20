"""The cache of URLs on the disk: bounded, shared by processes, and never of another version of an object."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from unreliable import Unreliable

from cntkpy.cntk_config.base import remote, url_cache
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import open_input, read_input, read_start
from cntkpy.cntk_config.base.url_cache import CachedObject
from cntkpy.cntk_config.base.writing import atomic_write

ROOT = Path(__file__).resolve().parents[3]
CONTENT = bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    fsspec.register_implementation("unreliable", Unreliable, clobber=True)
    monkeypatch.setattr(remote, "RETRY_SECONDS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(CachedObject, "block_bytes", 1 << 10)
    monkeypatch.setattr(url_cache, "_folder", lambda: tmp_path)
    monkeypatch.setattr(url_cache, "most_bytes", lambda: 1 << 20)
    monkeypatch.setattr(Unreliable, "tags", True)
    Unreliable.faults.clear()
    Unreliable.requests.clear()
    yield tmp_path
    fsspec.filesystem("unreliable").store.clear()


def put(name: str, content: bytes) -> str:
    fsspec.filesystem("unreliable").pipe_file(f"/{name}", content)
    return f"unreliable://{name}"


def held(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_what_is_kept_is_not_asked_for_again(folder: Path) -> None:
    url = put("a", CONTENT)
    assert read_input(url) == CONTENT
    assert Unreliable.requests == [(0, 10240)]  # neighbours are one request
    with open_input(url) as file:
        assert file.read() == CONTENT and file.fileno() > 0
    assert len(Unreliable.requests) == 1
    assert held(folder) == len(CONTENT)
    assert all("secret" not in path.name and len(path.name) < 60 for path in folder.iterdir())
    sorted(folder.iterdir())[0].unlink()
    next(folder.iterdir()).write_bytes(b"cut short")
    assert read_input(url) == CONTENT
    assert 2 <= len(Unreliable.requests) <= 3
    assert read_start(url, 3) == CONTENT[:3] and read_start(url, 99999) == CONTENT


def test_a_changed_object_is_another_one(folder: Path) -> None:
    url = put("a", CONTENT)
    assert read_input(url) == CONTENT
    put("a", CONTENT[::-1])
    assert read_input(url) == CONTENT[::-1]


SIGNED = (
    "X-Amz-Algorithm=AWS4&X-Amz-Credential=k&X-Amz-Date={0}&X-Amz-Expires=9&X-Amz-Signature={0}secret",
    "X-Goog-Credential=k&X-Goog-Date={0}&X-Goog-Signature={0}secret",
    "AWSAccessKeyId=k&Expires={0}&Signature={0}secret",
    "GoogleAccessId=k&Expires={0}&Signature={0}secret",
    "Expires={0}&Signature={0}secret&Key-Pair-Id=k",
    "sv=2026&sr=b&se={0}&sig={0}secret",
)


@pytest.mark.parametrize("signature", SIGNED)
def test_a_new_signature_of_the_same_object_changes_nothing(folder: Path, signature: str) -> None:
    put("a", CONTENT)
    for day in (1, 2):
        assert read_input(f"unreliable://a?versionId=7&{signature.format(day)}") == CONTENT
    assert len(Unreliable.requests) == 1
    assert all("secret" not in path.name and len(path.name) < 60 for path in folder.iterdir())
    assert read_input(f"unreliable://a?versionId=8&{signature.format(2)}") == CONTENT
    assert len(Unreliable.requests) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://h/d?id=a", "http://h/d?id=b"),
        ("http://h/d?id=a", "http://h/d"),
        ("http://h/d?sig=a", "http://h/d?sig=b"),
        ("http://h/d?token=a&Signature=1", "http://h/d?token=b&Signature=1"),
        ("http://me:s3cret@h/d", "http://you:s3cret@h/d"),
        ("http://h/d#a", "http://h/d#b"),
        ("http://h/d?to=v1", "http://h/d?to=v2"),
        ("zip://a::http://h/d?id=a", "zip://a::http://h/d?id=b"),
    ],
)
def test_urls_that_differ_have_blocks_of_their_own(one: str, other: str) -> None:
    """Servers that make their answers from the query give equal tags, times and sizes for different contents."""
    about = {"ETag": '"1-10"', "Last-Modified": "Sat, 28 Nov 2026 13:00:00 GMT", "size": 10}
    stamps = [CachedObject.__new__(CachedObject) for _ in range(2)]
    for made, url in zip(stamps, (one, other), strict=True):
        made.url, made.size, made._system = url, 10, Unreliable()
    assert stamps[0]._stamp(about) != stamps[1]._stamp(about) != ""
    assert stamps[0]._stamp(about) == stamps[0]._stamp(dict(about)) != stamps[0]._stamp({**about, "url": "http://h/v2"})
    assert stamps[0]._stamp({**about, "Last-Modified": "Sat, 28 Nov 2026 13:00:01 GMT"}) != stamps[0]._stamp(about)


def test_without_a_version_or_room_nothing_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Unreliable, "tags", False)
    assert read_input(put("a", CONTENT)) == CONTENT
    monkeypatch.setattr(Unreliable, "tags", True)
    monkeypatch.setattr(url_cache, "most_bytes", lambda: 0)
    assert read_input(put("a", CONTENT)) == CONTENT
    monkeypatch.setattr(url_cache, "most_bytes", lambda: 1 << 20)
    monkeypatch.setattr(url_cache, "_folder", lambda: None)
    assert read_input(put("a", CONTENT)) == CONTENT
    assert held(folder) == 0
    (folder / "no").touch()
    monkeypatch.setattr(url_cache, "_folder", lambda: folder / "no")
    assert read_input(put("a", CONTENT)) == CONTENT


def test_it_is_bounded_and_what_was_not_used_for_longest_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_cache, "most_bytes", lambda: 5 << 10)
    first = CachedObject(put("a", CONTENT))
    for number in range(10):
        assert first.blocks(number, number) == [CONTENT[number << 10 : (number + 1) << 10]]
        assert first.blocks(0, 0) == [CONTENT[:1024]]  # always in use
        assert held(folder) <= 5 << 10
    Unreliable.requests.clear()
    first.blocks(0, 0)
    first.blocks(9, 9)
    assert Unreliable.requests == []
    first.blocks(1, 1)
    assert Unreliable.requests == [(1024, 2048)]


READER = """
import random, sys
from pathlib import Path
import fsspec
from unreliable import Unreliable
from cntkpy.cntk_config.base import url_cache
folder, seed, content = Path(sys.argv[1]), int(sys.argv[2]), bytes(range(256)) * 40
fsspec.register_implementation("unreliable", Unreliable)
Unreliable.tags = True
fsspec.filesystem("unreliable").pipe_file("/a", content)
url_cache.CachedObject.block_bytes = 1 << 10
url_cache._folder = lambda: folder
url_cache.most_bytes = lambda: 6 << 10  # so that they remove each other's blocks
draw, found = random.Random(seed), url_cache.CachedObject("unreliable://a")
for _ in range(150):
    first = draw.randrange(10)
    last = draw.randrange(first, 10)
    assert b"".join(found.blocks(first, last)) == content[first << 10 : (last + 1) << 10]
"""


@pytest.mark.thorough
def test_several_processes_share_it(folder: Path) -> None:
    paths = os.pathsep.join(str(ROOT / name) for name in (".", "tests/tools"))
    readers = [
        subprocess.Popen([sys.executable, "-c", READER, str(folder), str(seed)], env=os.environ | {"PYTHONPATH": paths})
        for seed in range(3)
    ]
    assert [reader.wait(120) for reader in readers] == [0, 0, 0]
    assert 0 < held(folder) <= (6 + 3) << 10  # each may write a block at once
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


def test_the_limit_is_a_number_of_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for text, found in (("", 4096 << 20), ("0", 0), ("7", 7 << 20)):
        url_cache.most_bytes.cache_clear()
        monkeypatch.setenv(url_cache.SETTING, text)
        assert url_cache.most_bytes() == found
    url_cache.most_bytes.cache_clear()
    monkeypatch.setenv(url_cache.SETTING, "4G")
    with pytest.raises(UserError, match="the variable CNTKPY_URL_CACHE_MB of the environment is '4G', not a number"):
        url_cache.most_bytes()
    monkeypatch.undo()
    url_cache.most_bytes.cache_clear()


def test_an_object_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    system = fsspec.filesystem("unreliable")
    with atomic_write("unreliable://d/a", "w") as file:
        file.write("some")
        assert not system.exists("/d/a")
    assert system.cat_file("/d/a") == b"some" and system.ls("/d", detail=False) == ["/d/a"]
    with pytest.raises(ZeroDivisionError), atomic_write("unreliable://d/a") as file:
        file.write(b"other")
        raise ZeroDivisionError
    assert system.cat_file("/d/a") == b"some"
    Unreliable.faults.extend([ConnectionError("reset")] * 2)
    with atomic_write("unreliable://d/a") as file:
        file.write(b"other")
    assert system.cat_file("/d/a") == b"other"
    Unreliable.faults.extend([ConnectionError("no route to unreliable://u:secret@d/a?secret")] * 4)
    with (
        pytest.raises(OSError, match=r"no route to unreliable://d/a, 4 times") as caught,
        atomic_write("unreliable://u:secret@d/a?sig=secret") as file,
    ):
        file.write(b"third")
    assert caught.value.filename == "unreliable://d/a"
    assert system.cat_file("/d/a") == b"other" and system.ls("/d", detail=False) == ["/d/a"]
    with atomic_write(f"file://{tmp_path}/sub/b") as file:
        file.write(b"here")
    assert (tmp_path / "sub" / "b").read_bytes() == b"here"
