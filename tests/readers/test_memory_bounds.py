"""What a file can make a reader allocate is bounded before it is allocated: peak memory of processes is measured."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MB = 1 << 20
MOST_MB = 800
"""Peak memory of the process that reads all of these files, imports included: about three times the bound of a part."""
READ = """
import json, random, resource, sys
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers import *

def read(path, kind):
    make = {"parquet": ParquetDeserializer, "arrow": ArrowDeserializer, "csv": CsvDeserializer, "ctf": CTFDeserializer}
    if kind == "tar":
        stream = StreamDef(field=path.split(".")[1], shape=1)
    else:
        stream = StreamDef(field="y", shape=1000, is_sparse=True) if "text" in path else StreamDef(field="y", shape=1)
    if kind == "b64":
        streams = StreamDefs(x=StreamDef(field="image", transforms=[]), y=StreamDef(field="label", shape=2))
        return MinibatchSource(Base64ImageDeserializer(path, streams)) and 1
    deserializer = (TarDeserializer if kind == "tar" else make[kind])(path, StreamDefs(x=stream))
    source = MinibatchSource(deserializer, randomize=True, max_sweeps=1)
    return len(source.next_minibatch(100)[source["x"]].as_sequences())

resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
found = {}
for path, kind in json.loads(sys.argv[1]):
    try:
        found[path] = read(path, kind)
    except UserError as error:
        found[path] = str(error)
with open("/proc/self/status") as file:
    peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
print(json.dumps([found, peak // 1024]))
"""


def read_all(files: dict[str, str]) -> tuple[dict[str, Any], int]:
    """What each file gives: a number of samples, or an error; and the peak memory of the process in MB."""
    done = subprocess.run(
        [sys.executable, "-c", READ, json.dumps(list(files.items()))], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found, peak = json.loads(done.stdout.splitlines()[-1])
    return found, peak


def repeated_texts(count: int, size: int) -> pa.Array:
    """A dictionary of one long text, and many places in it."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array(["a" * size]))


def tables() -> dict[str, str]:
    """Parquet and Arrow files of a few kilobytes that stand for gigabytes."""
    rows = 30_000_000
    numbers = pa.array(np.zeros(rows, np.int8))
    pq.write_table(pa.table({"y": numbers}), "rows.parquet", row_group_size=rows)
    pq.write_table(pa.table({"y": numbers.slice(0, rows // 4)}), "chunk.parquet", row_group_size=rows)
    lists = pa.ListArray.from_arrays(pa.array([0, rows], pa.int32()), numbers)
    pq.write_table(pa.table({"y": lists}), "list.parquet")
    texts = repeated_texts(100_000, 900_000)
    pq.write_table(pa.table({"y": texts}), "text.parquet", store_schema=False)
    inside = pa.ListArray.from_arrays(pa.array([0, 100_000], pa.int32()), texts)
    pq.write_table(pa.table({"y": inside}), "texts.parquet", store_schema=False)
    shared = pa.table({"y": ["a" * MB] * 300})
    pq.write_table(shared, "shared-text.parquet", use_dictionary=False, column_encoding={"y": "DELTA_BYTE_ARRAY"})
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2_000_000_000], pa.int32()), pa.array([1.0]))
    nested = pa.DictionaryArray.from_arrays(pa.array(np.zeros(5000, np.int32)), pa.array([np.zeros(MB, np.int8)]))
    files = {"runs.arrow": runs, "nested.arrow": nested, "text.arrow": texts}
    for path, array in files.items():
        table = pa.table({"y": array})
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    for form, make in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        table = pa.table({"y": np.zeros(1000)})
        path = f"{form}.arrow"
        with make(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
        data = bytearray(Path(path).read_bytes())
        at = data.index(b"\x28\xb5\x2f\xfd") - 8
        data[at : at + 8] = struct.pack("<q", 3 << 30)
        Path(path).write_bytes(data)
        files[path] = table
    names = [*Path().glob("*.parquet"), *map(Path, files)]
    return {path.name: path.suffix[1:] for path in names}


def lying_page() -> dict[str, str]:
    """A page of Parquet whose header says that it has two gigabytes once it is decompressed."""
    pq.write_table(pa.table({"y": np.arange(1000.0)}), "page.parquet", compression="zstd", use_dictionary=False)
    data = Path("page.parquet").read_bytes()
    plain = 8000 + 6  # values, and their levels
    sizes = [size for size in range(plain - 6, plain + 40) if varint(size) in data[:64]]
    assert sizes, "no size of a page"
    Path("page.parquet").write_bytes(data.replace(b"\x15" + varint(sizes[0]), b"\x15" + varint(2**31 - 1), 1))
    return {"page.parquet": "parquet"}


def varint(number: int) -> bytes:
    """A number of Thrift's compact protocol."""
    left, found = number << 1, bytearray()
    while left > 127:
        found.append(left & 127 | 128)
        left >>= 7
    return bytes([*found, left])


def archive(path: str, member: str, data: bytes) -> None:
    with tarfile.open(path, "w:gz") as file:
        header = tarfile.TarInfo(member)
        header.size = len(data)
        file.addfile(header, io.BytesIO(data))


def tars() -> dict[str, str]:
    size = 20 * MB
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|i1", "fortran_order": False, "shape": (size,)})
    members = {"txt": b"0 " * (size // 2), "json": b"[" + b"0," * (size // 2) + b"0]", "cls": b"0\n" * (size // 2),
               "npy": header.getvalue() + bytes(size)}  # fmt: skip
    for ending, data in members.items():
        archive(f"a.{ending}.tar.gz", f"a.{ending}", data)
    return {f"a.{ending}.tar.gz": "tar" for ending in members}


def texts() -> dict[str, str]:
    size = 5 * MB
    contents = {"cells.csv": b"y,z\n" + b"0," * size, "first.csv": b"0," * size, "cell.csv": b"a" * size,
                "quoted.csv": b'y,z\n0,"' + b"a\n" * size, "lines.csv": b"y,z\n" + b"0,1\n" * (size // 20)}  # fmt: skip
    long = b"|y" + b" 0" * (35 * MB) + b"\n"
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gz": lambda data: gzip.compress(data, 1), "bz2": bz2.compress, "xz": lambda data: lzma.compress(data, preset=0)
    }  # fmt: skip
    for name, data in contents.items():
        for ending, pack in packers.items():
            if ending == "gz" or name == "cells.csv":
                Path(f"{name}.{ending}").write_bytes(pack(data))
    Path("line.ctf.gz").write_bytes(packers["gz"](long))
    Path("line.b64.gz").write_bytes(packers["gz"](b"0\t0\t" + b"A" * (70 * MB)))
    return {path.name: path.name.split(".")[1] for path in Path().glob("*.*.*") if path.name.split(".")[1] != "tar"}


@pytest.mark.thorough
@pytest.mark.malformed
@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what the peak is")
def test_small_files_cannot_make_readers_allocate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = texts() | tables() | lying_page() | tars()
    assert max(path.stat().st_size for path in tmp_path.iterdir()) < 2 * MB
    found, peak = read_all(files)
    whole = {path for path, result in found.items() if isinstance(result, int)}
    fit = {"lines.csv.gz", "chunk.parquet", "text.parquet", "texts.parquet", "text.arrow"}
    assert whole == fit
    for path in ("rows.parquet", "list.parquet", "shared-text.parquet", "file.arrow", "stream.arrow"):
        assert "bytes decoded, in a file of" in found[path], found[path]
    for path in files:
        if path.startswith("a."):
            assert "in an archive of" in found[path], found[path]
        elif ".csv." in path and path not in whole:
            assert "has more than 4 MB" in found[path] or "larger than field limit" in found[path], found[path]
    assert "has a line or a sequence of more than 16 MB" in found["line.ctf.gz"], found["line.ctf.gz"]
    assert "line 1 is longer than 16777216 bytes" in found["line.b64.gz"], found["line.b64.gz"]
    assert peak < MOST_MB, f"{peak} MB"


CHANGE = """
import random
def change(path):
    data = open(path, "rb").read()
    draw = random.Random(path)
    for number in range(40):
        changed = bytearray(data)
        for _ in range(draw.choice((1, 1, 2, 8))):
            changed[draw.randrange(len(changed))] = draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))
        yield changed
"""
READ_CHANGED = READ.replace("def read(", CHANGE + "\ndef read(").replace(
    """    try:
        found[path] = read(path, kind)
    except UserError as error:
        found[path] = str(error)
""",
    """    for number, data in enumerate(change(path)):
        changed = path.replace(".", f"-{number}.", 1)
        with open(changed, "wb") as file:
            file.write(data)
        try:
            found[changed] = read(changed, kind)
        except UserError as error:
            found[changed] = str(error)
""",
)


@pytest.mark.thorough
@pytest.mark.malformed
@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what the peak is")
def test_changed_bytes_cannot_make_readers_allocate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of headers are changed, among others those that say how long something is."""
    monkeypatch.chdir(tmp_path)
    table = pa.table({"y": np.arange(300.0), "text": [f"t{i % 7}" for i in range(300)]})
    for form, make in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        with make(f"{form}.arrow", table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(table, max_chunksize=100)
    archive("a.txt.tar.gz", "a.txt", b"1")
    Path("t.csv.gz").write_bytes(gzip.compress(b"y,z\n" + b"1,2\n" * 100))
    files = {"file.arrow": "arrow", "stream.arrow": "arrow", "t.csv.gz": "csv"}
    monkeypatch.setattr(sys.modules[__name__], "READ", READ_CHANGED)
    found, peak = read_all(files)
    assert len(found) == 120
    assert len({type(result) for result in found.values()}) == 2, "some are read, some are refused"
    assert peak < MOST_MB, f"{peak} MB"
