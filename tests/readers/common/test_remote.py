"""Data behind URLs: the same as of local files, from a server that drops and delays, and messages with the URL."""

from __future__ import annotations

import gzip
import pickle
import random
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unreliable import Unreliable

from cntkpy.cntk_config.base import remote as base_remote
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import command_for, how_to_install
from cntkpy.cntk_config.base.url_cache import CachedObject
from cntkpy.commands.cli import main
from cntkpy.readers import (
    CTFDeserializer,
    DataError,
    MinibatchSource,
    ParquetDeserializer,
    StreamDef,
    StreamDefs,
    create_reader,
)
from cntkpy.readers.common import remote
from cntkpy.readers.common.labels import load_labels
from cntkpy.readers.common.packed import data_bytes
from cntkpy.readers.common.remote import RemoteBytes

CTF = "".join(f"{k} |x {k} {t} |y {k % 4}:1\n" for k in range(900) for t in range(1 + k % 3)).encode()


class Answer(Exception):
    """What a server answers by HTTP, as fsspec's libraries raise it."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status}, message='no'")
        self.status = status


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    fsspec.register_implementation("unreliable", Unreliable, clobber=True)
    monkeypatch.setattr(base_remote, "RETRY_SECONDS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(CachedObject, "block_bytes", 1 << 10)
    monkeypatch.setattr(remote, "KEPT", 1 << 12)
    Unreliable.faults.clear()
    yield
    for system in (fsspec.filesystem("memory"), fsspec.filesystem("unreliable")):
        system.store.clear()


def put(name: str, content: bytes, scheme: str = "unreliable") -> str:
    fsspec.filesystem(scheme).pipe_file(f"/{name}", content)
    return f"{scheme}://{name}"


def minibatches(path: str, more: str, kind: str = "") -> list[Any]:
    inputs = "input=[x=[dim=2;format=dense];y=[dim=4;format=sparse]]"
    source = f'deserializers=([type={kind};file="{path}";{inputs}])' if kind else f'file="{path}";{inputs}'
    reader = create_reader(f"{more};{source}")
    reader.start_minibatch_loop(64, 0)
    found = [
        (m.keys, m.streams["x"].tolist(), m.streams["y"].toarray().tolist()) for m in iter(reader.get_minibatch, None)
    ]
    reader.close()
    return found


def tables() -> dict[str, bytes]:
    table = pa.table(
        {
            "x": pa.array([[k, k / 2] for k in range(900)], pa.list_(pa.float32(), 2)),
            "y": pa.array([k % 4 for k in range(900)]),
        }
    )
    pq.write_table(table, "t.parquet", row_group_size=100)
    with pa.ipc.new_file("t.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    return {name: Path(name).read_bytes() for name in ("t.parquet", "t.arrow")}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("order", "faulty"),
    [
        ("randomize=false", True),
        pytest.param("randomize=false", False, marks=pytest.mark.thorough),
        *(
            pytest.param(order, faulty, marks=pytest.mark.thorough)
            for order in ("randomize=true", "chunkSizeInBytes=5000;randomizationWindow=200")
            for faulty in (False, True)
        ),
    ],
)
def test_the_same_minibatches_as_of_local_files(order: str, faulty: bool) -> None:
    Path("a.ctf").write_bytes(CTF)
    files = {"a.ctf": ("", CTF), "a.ctf.gz": ("", gzip.compress(CTF))}
    kinds = {"t.parquet": "ParquetDeserializer", "t.arrow": "ArrowDeserializer"}
    files |= {name: (kinds[name], content) for name, content in tables().items()}
    draw = random.Random(3)
    for name, (kind, content) in files.items():
        expected = minibatches(name if kind else "a.ctf", order, kind)
        if faulty:
            kinds_of_fault = [None, None, ConnectionError("reset"), TimeoutError("late"), OSError("503"), 7, 0.001]
            Unreliable.faults.extend(draw.choice(kinds_of_fault) for _ in range(3000))
            for at in range(0, 3000, 3):  # never so many in a row that the last attempt fails
                Unreliable.faults[at] = None
        assert minibatches(put(name, content), order, kind) == expected
        Unreliable.faults.clear()


def test_requests_are_ranges_and_little_is_kept() -> None:
    url = put("a", bytes(range(256)) * 100)
    data: Any = data_bytes(url)
    assert isinstance(data, RemoteBytes) and data.size == 25_600
    Unreliable.requests.clear()
    assert data.bytes(5000, 3) == bytes([136, 137, 138])
    assert Unreliable.requests == [(4096, 5120)]
    assert data.bytes(5010, 10) == bytes(range(146, 156))  # what was asked for is kept
    assert len(Unreliable.requests) == 1
    assert data.bytes(10, 10_000) == (bytes(range(256)) * 100)[10:10_010]
    assert Unreliable.requests[-1] == (10, 10_010)  # a chunk is one request
    for at in range(0, 25_600, 900):
        assert data.bytes(at, 2) == bytes([at % 256, (at + 1) % 256])
    assert len(data._blocks) <= 4
    assert data.bytes(25_598, 100) == b"\xfe\xff" and data.bytes(30_000, 5) == b""
    with data.stream() as file:
        assert file.seek(-3, 2) == 25_597
        assert file.read() == b"\xfd\xfe\xff"
    with pytest.raises(DataError, match="became shorter"):
        data.read(np.empty(10, np.uint8), 25_595)


@pytest.mark.malformed
def test_errors_name_the_url_without_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    put("host/a.ctf", CTF)
    url = "unreliable://me:secret@host/a.ctf?sig=secret"
    Unreliable.faults.extend([OSError(f"503 at {url}")] * 4)
    with pytest.raises(DataError) as caught:
        minibatches(url, "randomize=false")
    assert caught.value.message.startswith("The data at unreliable://host/a.ctf cannot be read at byte 0: 503 at ")
    assert caught.value.message.endswith(", 4 times.")
    assert "secret" not in caught.value.message + caplog.text
    assert caplog.text.count("trying again in") == 3
    assert caught.value.hint == "check the network and the server"
    Unreliable.faults.extend([5] * 4)
    with pytest.raises(DataError, match="bytes came instead of 1024, 4 times"):
        minibatches(url, "randomize=false")
    Unreliable.faults.append(PermissionError("not yours"))
    with pytest.raises(DataError, match="cannot be read at byte 0: not yours"):
        minibatches(url, "randomize=false")
    with pytest.raises(
        DataError, match=r"unreliable://host/b.ctf cannot be opened: there is no such object\."
    ) as caught:
        minibatches("unreliable://host/b.ctf", "randomize=false")
    assert caught.value.hint == "check the URL"
    silent = FileNotFoundError("unreliable://host/a.ctf")
    silent.__cause__ = ConnectionError("nobody answers")  # as fsspec says of a server that does not
    Unreliable.faults.extend([silent] * 4)
    with pytest.raises(DataError, match=r"cannot be read at byte 0: nobody answers, 4 times\."):
        minibatches("unreliable://host/a.ctf", "randomize=false")
    for status, words in ((404, "there is no such object"), (403, r"the server forbids it \(403\)")):
        answer = FileNotFoundError("unreliable://host/a.ctf")
        answer.__cause__ = Answer(status)
        Unreliable.faults.append(answer)
        with pytest.raises(DataError, match=f"cannot be read at byte 0: {words}"):
            minibatches("unreliable://host/a.ctf", "randomize=false")
    with pytest.raises(DataError, match=r"The data at nowhere://host/b.ctf cannot be opened"):
        minibatches("nowhere://host/b.ctf", "randomize=false")
    put("host/bad.ctf", CTF.replace(b"|x 700 0", b"|x 700 z"))
    with pytest.raises(DataError, match=r"the input file \(unreliable://host/bad.ctf\).*line 1400, column 12"):
        minibatches("unreliable://host/bad.ctf?sig=secret", "randomize=false")


@pytest.mark.malformed
def test_damaged_tables_name_the_url() -> None:
    content = bytearray(tables()["t.parquet"])
    content[4:300] = bytes(296)
    url = put("t.parquet", bytes(content))
    with pytest.raises(DataError, match=r"^unreliable://t.parquet, row group 0 cannot be read as Parquet"):
        minibatches(url, "randomize=false", "ParquetDeserializer")


def test_other_texts_and_sources() -> None:
    rows = "".join(f"{i % 3} {i} {i / 2}\n" for i in range(400)).encode()
    labels = put("labels", b"0\n1\n2\n", "memory")
    assert load_labels(labels).mapping() == {0: "0", 1: "1", 2: "2"}
    Path("u").write_bytes(rows)
    columns = f'features=[dim=2;start=1];labels=[dim=1;start=0;labelDim=3;labelMappingFile="{labels}"]'
    found = []
    for path in ("u", put("u", rows, "memory")):
        reader = create_reader(f'readerType=UCIFastReader;file="{path}";{columns}')
        reader.start_minibatch_loop(30, 0)
        found.append([m.streams["features"].tolist() for m in iter(reader.get_minibatch, None)])
    assert found[0] == found[1]
    streams = StreamDefs(x=StreamDef(field="x", shape=2), y=StreamDef(field="y", shape=4, is_sparse=True))
    put("a.ctf", CTF)
    put("t.parquet", tables()["t.parquet"])
    for made in (
        CTFDeserializer("unreliable://a.ctf", streams),
        ParquetDeserializer("unreliable://t.parquet", streams),
    ):
        source = MinibatchSource(made, max_sweeps=1)
        source.next_minibatch(64)
        copy = pickle.loads(pickle.dumps(source))
        rest = [[m[s["x"]].num_samples for m in s.minibatches(64)] for s in (source, copy)]
        assert rest[0] == rest[1] and sum(rest[0]) > 800


def test_every_other_format_is_read_whole() -> None:
    picture = cv2.imencode(".png", np.arange(48, dtype=np.uint8).reshape(4, 4, 3))[1].tobytes()
    with zipfile.ZipFile("a.zip", "w") as archive:
        archive.writestr("q.png", picture)
    Path("a.ctf").write_bytes(b"".join(b"%d |x %d 2 3\n" % (k, k) for k in range(9)))
    for name in ("a.cbf", "a.bin", "a.scp"):
        assert main(["convert", "-q", "a.ctf", name, "--stream", "x:3"]) == 0
    for name in ("a.cbf", "a.bin", "a.ark", "a.scp", "a.zip"):
        put(f"d/{name}", Path(name).read_bytes())
    put("d/p.png", picture)
    put("d/map", b"unreliable://d/p.png\t0\n.../p.png\t1\nunreliable://d/a.zip@/q.png\t0\n")
    Path("p.png").write_bytes(picture)
    Path("map").write_bytes(b"p.png\t0\n.../p.png\t1\na.zip@/q.png\t0\n")
    scale = "[type=Scale;width=2;height=2;channels=3]"
    for section in (
        'deserializers=([type=CNTKBinaryFormatDeserializer;file="{}a.cbf"])',
        'readerType=BinaryReader;file="{}a.bin"',
        'deserializers=([type=HTKFeatureDeserializer;input=[x=[dim=3;scpFile="{}a.scp"]]])',
        f'deserializers=([type=ImageDeserializer;file="{{}}map";input=[x=[transforms=({scale})];y=[labelDim=2]]])',
        'readerType=ImageReader;file="{}map";x=[width=2;height=2;channels=3];y=[labelDim=2]',
    ):
        found = []
        for folder in ("", "unreliable://d/"):
            reader = create_reader(f"randomize=false;{section.format(folder)}")
            reader.start_minibatch_loop(30, 0)
            found.append([m.streams["x"].tolist() for m in iter(reader.get_minibatch, None)])
            reader.close()
        assert found[0] == found[1] != []


def test_check_does_not_look_for_urls_as_files(capsys: pytest.CaptureFixture[str]) -> None:
    Path("c.cntk").write_text(
        "command=t\nprecision=float\n"
        't=[action=test;modelPath=m;reader=[file="memory://a.ctf";input=[x=[dim=2;format=dense]]]]\n'
    )
    main(["check", "c.cntk"])
    assert "a.ctf" not in capsys.readouterr().out
    main(["check", "--data", "c.cntk"])
    assert "memory://a.ctf cannot be opened: there is no such object" in capsys.readouterr().out
    put("a.ctf", b"0 |x 1 2 3\n", "memory")
    main(["check", "--data", "c.cntk"])
    assert "line 1 of 'memory://a.ctf': the stream 'x' has 3 values, but its dim is 2" in capsys.readouterr().out


def test_without_fsspec_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(UserError, match=r"is read by fsspec, which is not installed") as caught:
        data_bytes("memory://a")
    assert caught.value.hint == how_to_install("remote")


@pytest.mark.parametrize(
    ("url", "package"), [("s3://bucket/a", "s3fs"), ("hf://datasets/me/data/a.ctf", "huggingface_hub")]
)
def test_a_missing_package_of_fsspec_is_named(url: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=f"{url} needs a package that is not installed: Install {package}") as caught:
        data_bytes(url)
    assert caught.value.hint == command_for([package])
