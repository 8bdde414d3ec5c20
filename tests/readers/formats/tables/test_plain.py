"""Types that streams, filters and keys do not know are cast to plain ones; filters are exact on whole numbers."""

from __future__ import annotations

import subprocess
import sys
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cntkpy.readers import DataError, MinibatchSource, StreamDef, StreamDefs
from cntkpy.readers.formats.tables.plain import expanded_bytes, plain_array, plain_type

from .table_files import MAKERS, write_table


def coded(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A dictionary, coded in the order of its values, with a missing value at the end."""
    found = pa.array(values, kind)
    return pa.DictionaryArray.from_arrays(pa.array([*range(len(values)), None], pa.int32()), found)


def extension(kind: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


UUIDS = [uuid.UUID(int=1), uuid.UUID(int=1 << 127)]
TEXTS = pa.large_string()
D = Decimal
ARRAYS: list[tuple[pa.Array, pa.DataType, list[Any]]] = [
    (extension(pa.uuid(), [*(one.bytes for one in UUIDS), None]), TEXTS, [*map(str, UUIDS), None]),
    (extension(pa.bool8(), [0, 1, None]), pa.bool_(), [False, True, None]),
    (extension(pa.json_(), ['"a"', None]), pa.string(), ['"a"', None]),
    (extension(pa.fixed_shape_tensor(pa.float32(), (2, 1)), [[1, 2], [3, 4]]), pa.list_(pa.float32(), 2),
     [[1, 2], [3, 4]]),
    *((pa.array([D("1.5"), None], kind), pa.float64(), [1.5, None])
      for kind in (pa.decimal32(5, 2), pa.decimal64(5, 2), pa.decimal128(38, 1), pa.decimal256(60, 2))),
    *((pa.array([D(200), None], kind), pa.int64(), [200, None])
      for kind in (pa.decimal32(5, 0), pa.decimal64(5, 0), pa.decimal128(18, 0), pa.decimal128(3, -2))),
    (pa.array([D(200), None], pa.decimal128(19, 0)), pa.float64(), [200.0, None]),
    (pa.array([1.5, None], pa.float16()), pa.float32(), [1.5, None]),
    (pa.array(["b", None], pa.string_view()), TEXTS, ["b", None]),
    (pa.array([b"b", None], pa.binary_view()), pa.large_binary(), [b"b", None]),
    (pa.array([["b"], None, ["a", "c"]], pa.list_(pa.string_view())), pa.list_(TEXTS), [["b"], None, ["a", "c"]]),
    (pa.array([[1.5], None], pa.large_list(pa.float16())), pa.large_list(pa.float32()), [[1.5], None]),
    (pa.array([[D("1.5")], None], pa.list_(pa.decimal128(3, 1), 1)), pa.list_(pa.float64(), 1), [[1.5], None]),
    (pa.array([[[1.5, 2.5]], None], pa.list_(pa.list_(pa.float16(), 2), 1)), pa.list_(pa.list_(pa.float32(), 2), 1),
     [[[1.5, 2.5]], None]),
    (pa.array([["a"], None, ["b", "c"]], pa.list_view(pa.string_view())), pa.list_(TEXTS), [["a"], None, ["b", "c"]]),
    (pa.array([[1], None], pa.large_list_view(pa.int8())), pa.large_list(pa.int8()), [[1], None]),
    (pa.array([[(1, D("1.5"))], None], pa.map_(pa.int32(), pa.decimal128(5, 1))), pa.map_(pa.int32(), pa.float64()),
     [[(1, 1.5)], None]),
    (coded(["b", "a"], pa.string_view()), pa.dictionary(pa.int32(), TEXTS), ["b", "a", None]),
    (coded([7, 5], pa.int64()), pa.int64(), [7, 5, None]),
    (coded([D("1.5")], pa.decimal128(3, 1)), pa.float64(), [1.5, None]),
    (pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int16()), pa.array([1.5, None], pa.float16())),
     pa.float32(), [1.5, 1.5, None]),
    (pa.RunEndEncodedArray.from_arrays(pa.array([2, 3]), pa.array(["b", "a"], pa.string_view())),
     pa.dictionary(pa.int64(), TEXTS), ["b", "b", "a"]),
]  # fmt: skip


@pytest.mark.parametrize(("array", "kind", "values"), ARRAYS, ids=[str(one[0].type) for one in ARRAYS])
def test_arrays_become_plain(array: pa.Array, kind: pa.DataType, values: list[Any]) -> None:
    for begin in range(len(array)):
        found = plain_array(array.slice(begin))
        found.validate(full=True)
        assert (found.type, found.to_pylist()) == (kind, values[begin:])
        assert plain_type(array.type) == kind
    assert plain_array(array.slice(len(array))).to_pylist() == []
    assert plain_type(kind) == kind


PLAIN = [pa.array([1]), pa.array(["a"]), pa.array([[1.0]]), pa.array([{"a": 1}]), pa.array(["a"]).dictionary_encode()]


@pytest.mark.parametrize("array", PLAIN, ids=[str(one.type) for one in PLAIN])
def test_plain_arrays_are_not_copied(array: pa.Array) -> None:
    assert plain_array(array) is array


class Unregistered(pa.ExtensionType):
    """A type of a package that may be imported or not."""

    def __init__(self) -> None:
        super().__init__(pa.list_(pa.list_(pa.float32())), "cntkpy.test.matrix")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Unregistered:
        return cls()


def samples(path: str, stream: Any, **options: Any) -> list[Any]:
    make = MAKERS["parquet" if path.endswith("parquet") else "arrow"]
    source = MinibatchSource(make(path, StreamDefs(s=stream), **options), randomize=False, max_sweeps=1)
    found = source.next_minibatch(100)[source["s"]].as_sequences()
    return [one.indices.tolist() if stream.is_sparse else one.tolist() for one in found]


def test_an_extension_type_is_read_alike_whether_it_is_registered_or_not(kind: str) -> None:
    """`import datasets` registers its Array2D: the same file then has another type in the same process."""
    lists = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]]
    array = pa.ExtensionArray.from_storage(Unregistered(), pa.array(lists, pa.list_(pa.list_(pa.float32()))))
    path = write_table(pa.table({"x": array}), f"t.{kind}", 10)
    assert samples(path, StreamDef(field="x", shape=2)) == lists
    pa.register_extension_type(Unregistered())
    try:
        assert samples(path, StreamDef(field="x", shape=2)) == lists
    finally:
        pa.unregister_extension_type("cntkpy.test.matrix")


def test_fields_within_extension_types_are_columns(kind: str) -> None:
    found = pa.array([{"data": [1.0, 2.0], "shape": [2]}, {"data": [3.0], "shape": [1]}])
    path = write_table(pa.table({"x": found, "y": [1.0, 2.0]}), f"t.{kind}", 10)
    assert samples(path, StreamDef(field="x.data", shape=1)) == [[[1.0], [2.0]], [[3.0]]]


IDS = [2**63, 5, None, 0]
FILTERS: list[tuple[str, pa.Array, str, list[int]]] = [
    *(("ids", pa.array(IDS, pa.uint64()), text, rows) for text, rows in (
        ("c > -1", [0, 1, 3]), ("c != -1", [0, 1, 3]), ("c == -1", []), ("not c == -1", [0, 1, 3]),
        ("c in (-1, 5)", [1]), ("not c in (-1, 5)", [0, 3]), ("c < 0", []), ("c >= 0", [0, 1, 3]),
        ("c == 9223372036854775808", [0]), ("c > 9223372036854775807", [0]), ("c < 1e30", [0, 1, 3]),
        ("c != 18446744073709551616", [0, 1, 3]), ("c >= 4.5", [0, 1]), ("c <= 4.5", [3]), ("c == 4.5", []),
        ("c != 4.5", [0, 1, 3]), ("c is null", [2]), ("c == 5.0", [1]), ("not c > -1", []),
    )),
    *(("bytes", pa.array([-3, 200 - 256, None, 127], pa.int8()), text, rows) for text, rows in (
        ("c < 200", [0, 1, 3]), ("c > 200", []), ("c >= -3.5", [0, 3]), ("c > -3", [3]), ("c < -2.5", [0, 1]),
    )),
    ("large", pa.array([2**53, 2**53 + 1], pa.int64()), "c == 9007199254740993", [1]),
    ("large", pa.array([2**53, 2**53 + 1], pa.int64()), "c > 9007199254740992", [1]),
    ("half", pa.array([1, 3, None], pa.float16()), "c > 2", [1]),
    ("half", pa.array([1, 3, None], pa.float16()), "c in (1, 4)", [0]),
    ("decimal", pa.array([D("0.1"), D("2.5")], pa.decimal128(38, 1)), "c == 0.1", [0]),
    ("decimal", pa.array([D("0.1"), D("2.5")], pa.decimal128(38, 1)), "c > 0.2", [1]),
    ("decimal", pa.array([D(7), D(2)], pa.decimal64(9, 0)), "c >= 7", [0]),
    ("view", pa.array(["b", "a", None], pa.string_view()), "c == 'a'", [1]),
    ("view", pa.array(["b", "a", None], pa.string_view()), "not c in ('a', 'x')", [0]),
    ("view", pa.array(["b", "a", None], pa.string_view()), "c < 'b'", [1]),
    ("dictionary", coded(["b", "a"], pa.string_view()), "c == 'a'", [1]),
    ("dictionary", coded(["b", "a"], pa.large_string()), "c >= 'b'", [0]),
    ("dictionary", coded([7, 5], pa.int16()), "c == 5", [1]),
    ("struct", pa.array([{"s": "b"}, {"s": "a"}, None], pa.struct([("s", pa.string_view())])), "c.s == 'a'", [1]),
    ("struct", pa.array([{"s": 1}, {"s": 3}, None], pa.struct([("s", pa.float16())])), "c.s > 2", [1]),
    ("uuid", extension(pa.uuid(), [one.bytes for one in UUIDS]), f"c == '{UUIDS[1]}'", [1]),
    ("bool8", extension(pa.bool8(), [0, 1, None]), "c == true", [1]),
    ("json", extension(pa.json_(), ['"b"', '"a"']), "c == '\"a\"'", [1]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "column", "text", "rows"), FILTERS, ids=[f"{one[0]}: {one[2]}" for one in FILTERS])
@pytest.mark.sampled
def test_filters_on_every_type(kind: str, name: str, column: pa.Array, text: str, rows: list[int]) -> None:
    table = pa.table({"c": column, "y": np.arange(len(column), dtype=float)})
    if kind == "parquet" and pa.types.is_decimal(column.type) and column.type.bit_width < 128:
        table = table.set_column(0, "c", column.cast(pa.decimal128(column.type.precision, column.type.scale)))
    nested = pa.types.is_dictionary(column.type) or pa.types.is_struct(column.type)
    if nested and "string_view" in str(column.type):  # pyarrow does not write them to Parquet
        kind = "arrow"
    path = write_table(table, f"t.{kind}", 2)
    if rows:
        assert samples(path, StreamDef(field="y", shape=1), filter=text) == [[[float(row)]] for row in rows]
    else:
        with pytest.raises(DataError, match="no row fulfils the filter"):
            samples(path, StreamDef(field="y", shape=1), filter=text)


LISTS = pa.list_(pa.list_(pa.float32(), 3), 2)


def test_fixed_size_lists_of_fixed_size_lists(kind: str) -> None:
    values = [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]
    path = write_table(pa.table({"x": pa.array(values, LISTS)}), f"t.{kind}", 10)
    assert samples(path, StreamDef(field="x", shape=3)) == values
    assert samples(path, StreamDef(field="x", shape=6)) == [[[*row[0], *row[1]]] for row in values]
    with pytest.raises(DataError, match="a row has 2 x 3 values, but shape is 4") as caught:
        samples(path, StreamDef(field="x", shape=4))
    assert caught.value.hint == "write shape=6 for one sample, or shape=3 for a sequence of 2 samples"


def test_lists_of_three_levels(kind: str) -> None:
    values = [[[[1, 2], [3, 4]]], [[[5, 6], [7, 8]], [[9, 10], [11, 12]]]]
    path = write_table(pa.table({"x": pa.array(values, pa.list_(pa.list_(pa.list_(pa.int64()))))}), f"t.{kind}", 10)
    flat = [[[*one[0], *one[1]] for one in row] for row in values]
    assert samples(path, StreamDef(field="x", shape=4)) == flat


@pytest.mark.malformed
def test_ragged_samples_are_refused(kind: str) -> None:
    """Their numbers are as many as dim, but they are no array."""
    values = [[[[1, 2], [3, 4]]], [[[5, 6, 7], [8]]]]
    path = write_table(pa.table({"x": pa.array(values, pa.list_(pa.list_(pa.list_(pa.int64()))))}), f"t.{kind}", 10)
    with pytest.raises(DataError, match="row 1, column 'x': lists in it have 2 and 3 elements"):
        samples(path, StreamDef(field="x", shape=4))
    missing = pa.array([[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], None]], LISTS)
    path = write_table(pa.table({"x": missing}), f"u.{kind}", 10)
    with pytest.raises(DataError, match="row 1, column 'x': a value is missing"):
        samples(path, StreamDef(field="x", shape=6))


@pytest.mark.parametrize("values", [[["b", "a"], ["a", "a"]], [[1, 0], [0, 0]]], ids=["texts", "numbers"])
def test_fixed_size_lists_of_classes(kind: str, values: list[list[Any]]) -> None:
    inner = pa.string() if isinstance(values[0][0], str) else pa.int32()
    path = write_table(pa.table({"x": pa.array(values, pa.list_(inner, 2))}), f"t.{kind}", 10)
    assert samples(path, StreamDef(field="x", shape=2, is_sparse=True)) == [[1, 0], [0, 0]]


def test_booleans_are_two_classes(kind: str) -> None:
    path = write_table(pa.table({"x": [True, False]}), f"t.{kind}", 10)
    assert samples(path, StreamDef(field="x", shape=2, is_sparse=True)) == [[1], [0]]


def test_categories_of_numbers_are_the_same_classes_in_both_formats(kind: str) -> None:
    """pandas writes a category of whole numbers as such to Parquet, as a dictionary to Feather."""
    path = write_table(pa.table({"x": pa.array([7, 5, 7]).dictionary_encode()}), f"t.{kind}", 10)
    assert samples(path, StreamDef(field="x", shape=8, is_sparse=True)) == [[7], [5], [7]]


def test_the_size_of_a_dictionary_that_is_written_out() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 0, None, 1]), pa.array(["a" * 1000, "b"]))
    assert expanded_bytes(array) == 2001 + 8 * 4


@pytest.mark.malformed
def test_list_views_that_share_their_values_are_bounded() -> None:
    """A thousand lists, each of the same two million values."""
    values = pa.array(np.zeros(1 << 21, np.int8))
    offsets, sizes = pa.array([0] * 1000, pa.int32()), pa.array([1 << 21] * 1000, pa.int32())
    with pytest.raises(pa.ArrowInvalid, match="1000 list views share 2097152 values"):
        plain_array(pa.ListViewArray.from_arrays(offsets, sizes, values))


def test_statistics_of_types_that_are_cast_leave_no_row_out() -> None:
    """Those of decimals are whole numbers, those of UUIDs bytes: they are not compared with values of a filter."""
    column = pa.array([D("10.5"), D("20.5"), D("30.5"), D("40.5")], pa.decimal128(9, 1))
    pq.write_table(pa.table({"c": column, "y": np.arange(4.0)}), "t.parquet", row_group_size=1)
    assert samples("t.parquet", StreamDef(field="y", shape=1), filter="c < 35") == [[[0.0]], [[1.0]], [[2.0]]]
    ids = extension(pa.uuid(), [uuid.UUID(int=i).bytes for i in range(4)])
    pq.write_table(pa.table({"c": ids, "y": np.arange(4.0)}), "u.parquet", row_group_size=1)
    assert samples("u.parquet", StreamDef(field="y", shape=1), filter=f"c >= '{uuid.UUID(int=2)}'") == [
        [[2.0]],
        [[3.0]],
    ]


def test_the_public_names_do_not_import_pyarrow() -> None:
    code = "import sys, cntkpy.readers.formats.tables.plain; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path.cwd()).returncode == 0
