"""Files of data that are not text, named where text is read: the message says what they are (D11)."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from cntkpy.readers import CsvDeserializer, CTFDeserializer, DataError, MinibatchSource, StreamDef, StreamDefs

TABLE = pa.table({"a": [1.0, 2.0]})


def parquet() -> bytes:
    whole = io.BytesIO()
    pq.write_table(TABLE, whole)
    return whole.getvalue()


def arrow() -> bytes:
    whole = io.BytesIO()
    with ipc.new_file(whole, TABLE.schema) as file:
        file.write_table(TABLE)
    return whole.getvalue()


def array() -> bytes:
    whole = io.BytesIO()
    np.save(whole, np.ones(2))
    return whole.getvalue()


def arrays() -> bytes:
    whole = io.BytesIO()
    np.savez(whole, x=np.ones(2))
    return whole.getvalue()


def archive(name: str) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as file:
        file.writestr(name, "content")
    return whole.getvalue()


KINDS: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "Parquet": (parquet, "is a Parquet file and not text", "type=ParquetDeserializer"),
    "Arrow": (arrow, "is an Arrow file and not text", "type=ArrowDeserializer"),
    "NumPy": (array, "is an array of NumPy and not text", "numpy.savez"),
    "npz": (arrays, r"is an archive of arrays \(npz\) and not text", "cntkpy convert NAME.npz"),
    "xlsx": (lambda: archive("[Content_Types].xml"), r"is a workbook \(xlsx\) and not text", "save the sheet as CSV"),
    "ods": (lambda: archive("mimetype"), r"is a document \(OpenDocument\) and not text", "save the sheet as CSV"),
    "SQLite": (lambda: b"SQLite format 3\0" + bytes(84), "is a database of SQLite and not text", "as Parquet or CSV"),
    "zip": (lambda: archive("d.ctf"), "is compressed in the format ZIP", "unzip -p"),
}


@pytest.mark.malformed
@pytest.mark.parametrize("reader", [CTFDeserializer, CsvDeserializer])
@pytest.mark.parametrize("kind", KINDS)
def test_what_it_is(kind: str, reader: Callable[..., object], tmp_path: Path) -> None:
    make, message, hint = KINDS[kind]
    path = tmp_path / "d.txt"
    path.write_bytes(make())
    with pytest.raises(DataError, match=message) as caught:
        MinibatchSource(reader(str(path), StreamDefs(x=StreamDef("a", 1))))
    assert hint in str(caught.value.hint)


@pytest.mark.thorough
def test_a_table_with_such_a_name(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("PAR1,FEA1\n1,2\n")
    source = MinibatchSource(CsvDeserializer(str(path), StreamDefs(x=StreamDef("PAR1", 1))), max_sweeps=1)
    assert source.next_minibatch(1)[source.streams.x].asarray().tolist() == [[[1.0]]]
