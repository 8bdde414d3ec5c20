"""Lists of one size in Parquet: kernels read what pyarrow reads, and leave to it what they do not know."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cntkpy.readers import DataError
from cntkpy.readers.formats.tables import files
from cntkpy.readers.formats.tables.deserializer import TableDeserializer
from cntkpy.readers.formats.tables.files import ParquetTable
from cntkpy.readers.formats.tables.list_kernels import pattern, unpack
from cntkpy.readers.formats.tables.plain import plain_type
from cntkpy.readers.formats.tables.stream import TableStream
from cntkpy.readers.kernels import budget

PATH = "t.parquet"


@pytest.fixture(autouse=True)
def kernels() -> Any:
    """Kernels are there already."""
    before = budget._left  # pyright: ignore[reportPrivateUsage]
    budget.reset(0)
    yield
    budget.reset(before)


def numbers(rows: int, size: int, distinct: int | None, dtype: Any = np.float32) -> np.ndarray:
    """Numbers, all different or few different ones."""
    rng = np.random.default_rng(rows + size)
    return (rng.standard_normal if distinct is None else lambda n: rng.integers(0, distinct, n))(rows * size).astype(
        dtype
    )


def written(kind: pa.DataType, values: np.ndarray, size: int, **options: Any) -> ParquetTable:
    lists = pa.array(values.reshape(-1, size).tolist(), kind)
    table = pa.table({"x": lists, "label": np.arange(len(lists))})
    options = {"row_group_size": 70, "write_batch_size": 7, "data_page_size": 600, **options}
    pq.write_table(table, PATH, **options)
    return ParquetTable(PATH)


def read_by_kernels(table: ParquetTable, group: int = 0, name: str = "x") -> bool:
    return name in table._lists(group, [name])  # pyright: ignore[reportPrivateUsage]


def same_as_pyarrow(table: ParquetTable) -> bool:
    expected = pq.ParquetFile(PATH)
    for group in range(table.groups):
        found = table.read(group, ["label", "x"])
        for name in ("x", "label"):
            column = expected.read_row_group(group)[name]
            if not pa.chunked_array(found[name]).equals(column.cast(plain_type(column.type))):
                return False
    return True


@pytest.mark.parametrize("compression", ["none", "snappy"])
@pytest.mark.parametrize("distinct", [None, 1, 2, 300])
@pytest.mark.parametrize("size", [1, 8, 13])
@pytest.mark.sampled
def test_lists_of_one_size(size: int, distinct: int | None, compression: str) -> None:
    """Many pages, some of which begin within a row; plain, in a dictionary, or first the one and then the other."""
    for kind in (pa.list_(pa.float32(), size), pa.list_(pa.float32()), pa.large_list(pa.float64())):
        dtype = kind.value_type.to_pandas_dtype()
        values = numbers(150, size, distinct, dtype)
        table = written(kind, values, size, compression=compression, dictionary_pagesize_limit=800)
        assert all(read_by_kernels(table, group) for group in range(3)), kind
        assert same_as_pyarrow(table), kind


def test_fields_that_cannot_be_null() -> None:
    kind = pa.list_(pa.field("element", pa.float32(), nullable=False), 3)
    x = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(30, dtype=np.float32)), type=kind)
    schema = pa.schema([pa.field("x", kind, nullable=False), ("label", pa.int64())])
    pq.write_table(pa.table([x, pa.array(range(10))], schema=schema), PATH)
    table = ParquetTable(PATH)
    assert read_by_kernels(table)
    assert table.read(0, ["x"])["x"][0].flatten().to_pylist() == list(range(30))


@pytest.mark.parametrize(
    ("lists", "kind"),
    [
        ([[1, 2], [3, None]], pa.list_(pa.float32(), 2)),
        ([[1, 2], None], pa.list_(pa.float32(), 2)),
        ([[1, 2], [3]], pa.list_(pa.float32())),
        ([[1], [2, 3, 4]], pa.list_(pa.float32())),
        ([[1, 2, 3], []], pa.list_(pa.float32())),
        ([[1, 2], [3, 4]], pa.list_(pa.int32(), 2)),
        ([[1, 2], [3, 4]], pa.list_(pa.float16(), 2)),
        ([], pa.list_(pa.float32(), 2)),
    ],
)
def test_other_lists_are_left_to_pyarrow(lists: list[Any], kind: pa.DataType) -> None:
    values = [None if one is None else [n if n is None else np.float16(n) for n in one] for one in lists]
    pq.write_table(pa.table({"x": pa.array(values if kind.value_type == pa.float16() else lists, kind),
                             "label": np.arange(len(lists))}), PATH)  # fmt: skip
    table = ParquetTable(PATH)
    assert not (table.groups and read_by_kernels(table))
    assert same_as_pyarrow(table)


@pytest.mark.parametrize("options", [{"compression": "zstd"}, {"data_page_version": "2.0"}])
def test_other_files_are_left_to_pyarrow(options: dict[str, Any]) -> None:
    table = written(pa.list_(pa.float32(), 3), numbers(150, 3, None), 3, **options)
    assert not read_by_kernels(table)
    assert same_as_pyarrow(table)


def test_a_missing_number_is_named_as_without_kernels() -> None:
    pq.write_table(pa.table({"x": pa.array([[1, 2], [3, None]], pa.list_(pa.float32(), 2))}), PATH)
    texts: list[str] = []
    for left in (budget.BUDGET, 0):
        budget.reset(left)
        with pytest.raises(DataError) as error:
            TableDeserializer([ParquetTable(PATH)], [TableStream("x", 2, False, ("x",))]).load_chunk(0)
        texts.append(str(error.value))
    assert texts[0] == texts[1]
    assert "row group 0, row 1, column 'x': a value is missing" in texts[0]


def test_little_data_is_read_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(pa.list_(pa.float32(), 3), numbers(150, 3, None), 3)
    budget.reset(budget.BUDGET)
    assert not read_by_kernels(table)
    monkeypatch.setattr(files, "BYTES_IN_BUDGET", 1e-5)
    assert read_by_kernels(table)


def test_mutated_files_are_read_or_left_to_pyarrow() -> None:
    """The kernels are never given what lies outside: with NUMBA_BOUNDSCHECK=1 this would be an error."""
    table = written(pa.list_(pa.float32(), 3), numbers(150, 3, 40), 3, compression="none")
    content, draw, read = Path(PATH).read_bytes(), random.Random(2), 0
    for _ in range(300):
        mutated = bytearray(content)
        for _ in range(draw.randrange(1, 4)):
            mutated[draw.randrange(len(mutated))] = draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))
        Path(PATH).write_bytes(mutated)
        try:
            table = ParquetTable(PATH)
            for group in range(min(table.groups, 3)):
                lists = table._lists(group, ["x"]) if "x" in table.names else {}  # pyright: ignore[reportPrivateUsage]
                for one in lists.values():
                    one.validate(full=True)
                    read += 1
        except DataError:
            continue
    assert 50 < read < 900


def encoded(values: Sequence[int], width: int, draw: random.Random) -> bytes:
    """Runs of one value, and groups of eight values of a few bits each, as they come."""
    found, at = bytearray(), 0

    def varint(number: int) -> None:
        while number > 127:
            found.append(number & 127 | 128)
            number >>= 7
        found.append(number)

    while at < len(values):
        same = 1
        while at + same < len(values) and values[at + same] == values[at]:
            same += 1
        if draw.random() < 0.5:
            count = draw.randrange(1, same + 1)
            varint(count << 1)
            found += values[at].to_bytes((width + 7) // 8, "little")
        else:
            groups = draw.randrange(1, 4)
            count = groups * 8
            varint(groups << 1 | 1)
            whole = sum(value << i * width for i, value in enumerate(values[at : at + count]))
            found += whole.to_bytes(groups * width, "little")
        at += count
    return bytes(found)


@pytest.mark.parametrize("width", [0, 1, 2, 7, 8, 11, 18, 31])
def test_values_of_a_few_bits(width: int) -> None:
    draw = random.Random(width)
    for _ in range(20):
        values = [draw.randrange(1 << width) for _ in range(60)]
        values = [one for one in values for _ in range(draw.choice((1, 1, 1, 20)))]
        data = np.frombuffer(encoded(values, width, draw), np.uint8)
        out = np.full(len(values), -1, np.int32)
        assert unpack(data, width, out) == len(values)
        assert out.tolist() == values
        assert unpack(data[: len(data) // 2], width, out) < len(values)


@pytest.mark.parametrize("every", [1, 5, 8])
def test_patterns_are_told_from_others(every: int) -> None:
    draw = random.Random(every)
    for first in range(3 * every):
        values = [int((first + i) % every != 0) for i in range(100)]
        data = np.frombuffer(encoded(values, 1, draw), np.uint8)
        assert pattern(data, 1, 100, first, every, 0, 1)
        assert not pattern(data, 1, 200, first, every, 0, 1)
        at = draw.randrange(100)
        values[at] ^= 1
        assert not pattern(np.frombuffer(encoded(values, 1, draw), np.uint8), 1, 100, first, every, 0, 1)
