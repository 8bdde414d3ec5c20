"""What polars, duckdb, fastparquet, pandas and datasets write by default, from files that they wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cntkpy.readers import ArrowDeserializer, DataError, MinibatchSource, ParquetDeserializer, StreamDef, StreamDefs
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.formats.tables.deserializer import RowKeys, TableDeserializer
from cntkpy.readers.formats.tables.files import ArrowTable, ParquetTable, TableFile
from cntkpy.readers.formats.tables.nested import nested_names
from cntkpy.readers.formats.tables.stream import TableStream
from tools.docs.column_types import MARKED, WRITERS, columns, table

ROOT = Path(__file__).resolve().parents[4]
FILES = sorted(path for path in WRITERS.glob("*.*") if path.suffix in (".parquet", ".arrow"))
NUMBERS, CLASSES = [[[1.5]], [[2.5]]], [[1], [0]]
DENSE: dict[str, tuple[int, list[Any]]] = {
    "Float16 Float32 Float64 Decimal(5,1) DECIMAL(2,1) FLOAT DOUBLE float16 float32 float64": (1, NUMBERS),
    "category of float64|object of Decimal|Value(float16)|Value(float32)|Value(decimal128)": (1, NUMBERS),
    "Int8 Int64 UInt64 Boolean Decimal(18,0) INTEGER HUGEINT UBIGINT NUMERIC(18,0) BOOLEAN": (1, [[[1.0]], [[0.0]]]),
    "int64 uint64 bool|category of int64|ClassLabel|Value(int64)|Value(bool)|period": (1, [[[1.0]], [[0.0]]]),
    "List(Float64)|object of list|List(float32)": (1, [[[1.0], [2.0]], [[3.0]]]),
    "Array(Float32, 2)|object of ndarray|List(float32, 2)": (2, [[[1.0, 2.0]], [[3.0, 4.0]]]),
    "FLOAT[]|FLOAT[2]": (2, [[[1.0, 0.0]], [[1.0, 1.0]]]),
    "DECIMAL(2,1)[]": (2, [[[1.5, 0.0]], [[1.5, 1.0]]]),
    "FLOAT[3][2]": (3, [[[1.0, 0.0, 2.0], [3.0, 4.0, 5.0]], [[1.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]),
    "List(List(Float64))|object of lists of lists": (2, [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]),
    "Array(Float32, (2, 3))": (6, [[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]] * 2),
    "Array2D": (3, [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]] * 2),
    "Array3D": (6, [[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]] * 2),
}
SPARSE: dict[str, list[Any]] = {
    "Int8 Int64 UInt64 Boolean String Categorical Enum Decimal(18,0) INTEGER UBIGINT NUMERIC(18,0) BOOLEAN": CLASSES,
    "VARCHAR ENUM int64 uint64 bool str|category of str|object of str|category of int64|ClassLabel": CLASSES,
    "Value(int64)|Value(bool)|Value(string)|Json|MAP(INTEGER, FLOAT)|period": CLASSES,
    "UUID JSON|object of UUID": [[0], [1]],
    "List(Int64)|List(String)|List(ClassLabel)|List(string)|LargeList(int64)": [*CLASSES[:1], [0, 1]],
    "Array(Int64, 2)": [[1, 0], [0, 1]],
    "Array(String, 2)": [[1, 0], [0, 0]],
    "VARCHAR[]": [[1, 0], [1, 0]],
}


def names(text: str) -> list[str]:
    """Names of columns: between blanks, or where they have blanks themselves between bars."""
    bars = text.split("|")
    return [*bars, *(name for part in bars for name in part.split(" "))]


def opened(path: Path) -> TableFile:
    return (ParquetTable if path.suffix == ".parquet" else ArrowTable)(str(path))


def read(path: Path, stream: Any, **options: Any) -> list[Any]:
    make = ParquetDeserializer if path.suffix == ".parquet" else ArrowDeserializer
    deserializer = make(str(path), StreamDefs(x=stream), **options)
    source = MinibatchSource(deserializer, randomize=False, max_sweeps=1)
    found = source.next_minibatch(100)[source["x"]].as_sequences()
    return [one.indices.tolist() if stream.is_sparse else one.tolist() for one in found]


def cases() -> list[Any]:
    """Every column of every file with what it has to become."""
    dense = {name: value for text, value in DENSE.items() for name in names(text)}
    sparse = {name: value for text, value in SPARSE.items() for name in names(text)}
    found: list[Any] = []
    for path in FILES:
        if "wide" in path.stem:
            continue
        for name in opened(path).names:
            where = f"{path.name}: {name}"
            if name in dense and not (path.stem == "fastparquet" and "list" in name):
                dim, expected = dense[name]
                found.append(pytest.param(path, StreamDef(field=name, shape=dim), expected, id=f"{where}, dense"))
            if name in sparse:
                stream = StreamDef(field=name, shape=2, is_sparse=True)
                found.append(pytest.param(path, stream, sparse[name], id=f"{where}, sparse"))
    return found


@pytest.mark.parametrize(("path", "stream", "expected"), cases())
@pytest.mark.sampled
def test_values_of_columns(path: Path, stream: Any, expected: list[Any]) -> None:
    assert read(path, stream) == expected


def test_every_type_is_tried() -> None:
    assert len(FILES) == 10
    assert len(cases()) >= 150


@pytest.mark.parametrize("path", [path for path in FILES if "wide" not in path.stem], ids=lambda path: path.name)
@pytest.mark.sampled
def test_every_column_is_read_or_says_how_to_write_it(path: Path) -> None:
    for name, column in columns(path).items():
        assert column.dense or column.sparse or column.advice.startswith(("write ", "every value is missing")), name
        if nested_names(opened(path).schema, name):
            assert column.dense == "its fields"


@pytest.mark.malformed
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_type_that_pyarrow_lacks_is_not_blamed_on_the_file(ending: str) -> None:
    """pyarrow does not open a file with an integer of 128 bits, whichever column is read."""
    path = WRITERS / f"polars-wide.{ending}"
    with pytest.raises(DataError, match=r"Integers with more than 64 bits") as caught:
        read(path, StreamDef(field="row", shape=1))
    assert "the file may be whole: write the column as int64" in str(caught.value.hint)
    assert "damaged" not in str(caught.value.hint)


@pytest.mark.thorough
def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs/column-types.md").read_text(encoding="utf-8")
    block = MARKED.search(page)
    assert block is not None, "docs/column-types.md has no <!-- column types -->"
    assert block[0] == f"{block[1]}{table()}\n{block[2]}", "run: python -m tools.docs"
    assert page.count("\n| polars") >= 25


@pytest.mark.parametrize("path", [path for path in FILES if "wide" not in path.stem], ids=lambda path: path.name)
@pytest.mark.sampled
def test_texts_of_every_writer_are_filtered(path: Path) -> None:
    """Whatever type holds them: views, dictionaries, large texts, JSON, UUIDs."""
    zero = "00000000-0000-0000-0000-000000000000"
    for name in opened(path).names:
        text = {"UUID": zero, "object of UUID": zero, "Json": "1", "JSON": '"0"'}.get(name, "b")
        if name in (*names("String Categorical Enum VARCHAR ENUM str|category of str|object of str|Value(string)"),
                    "UUID", "object of UUID", "Json", "JSON"):  # fmt: skip
            for condition in (f"`{name}` == '{text}'", f"`{name}` in ('{text}', 'x')", f"not `{name}` != '{text}'"):
                assert read(path, StreamDef(field="row", shape=1), filter=condition) == [[[0.0]]], (name, condition)
            signs = (f"`{name}` < '{text}'", f"`{name}` > '{text}'", f"`{name}` is null")
            rows = [rows_left(path, condition) for condition in signs]
            assert sorted(map(len, rows)) == [0, 0, 1], name


def rows_left(path: Path, condition: str) -> list[Any]:
    """The rows that a filter leaves, which may be none."""
    try:
        return read(path, StreamDef(field="row", shape=1), filter=condition)
    except DataError as error:
        assert "no row fulfils the filter" in str(error)
        return []


def test_keys_may_be_uuids_and_json() -> None:
    table = opened(WRITERS / "duckdb.parquet")
    expected = {"UUID": [f"00000000-0000-0000-0000-00000000000{i}" for i in range(2)], "JSON": ['"0"', '"1"']}
    for name, keys in expected.items():
        corpus = Corpus(numeric=False)
        stream = TableStream("x", 1, False, ("DOUBLE",), False, None)
        data = TableDeserializer([table], [stream], keys=RowKeys(name, corpus))
        assert data.table.keys is not None
        assert [corpus.name(number) for number in data.table.keys.tolist()] == keys


def test_decimals_keep_their_digits_as_double() -> None:
    (found,) = opened(WRITERS / "duckdb.parquet").read(0, ["DECIMAL(2,1)"])["DECIMAL(2,1)"]
    assert found.to_pylist() == [1.5, 2.5]
