"""CSV files as tables: types of columns, rows, lines, filters, folders, compositions, compressed files, errors."""

from __future__ import annotations

import csv
import gzip
import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cntkpy.readers import CsvDeserializer, DataError, MinibatchSource, StreamDef, StreamDefs, create_reader
from cntkpy.readers.formats.tables.csv import text as csv_text
from cntkpy.readers.formats.tables.csv.rows import DELIMITERS, rows_in
from cntkpy.readers.formats.tables.csv.table import CsvTable

TABLE = '''id,width,kind,day,split,wild
7,1.5,rose,2026-01-01,train,true
8,-3e2,"lily, ""red""",2026-01-02,test,false
9,0.25,"two
lines",2026-02-03,train,true
10,4,rose,2026-03-01,test,false
'''


def write(text: str, name: str = "a.csv") -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(text.encode())
    return name


def read(path: Any, *streams: str, order: str = "false", **more: str) -> dict[str, list[Any]]:
    """Every sample of streams NAME:DIM[:sparse[:COLUMN]], and the keys."""
    inside = []
    for one in streams:
        name, dim, *rest = one.split(":")
        inside.append(f"{name}=[dim={dim};format={(*rest, 'dense')[0]};alias={rest[1] if len(rest) > 1 else name}]")
    given = "".join(f';{name}="{value}"' for name, value in more.items())
    reader = create_reader(
        f'randomize={order};deserializers=([type=CsvDeserializer;file="{path}"{given};input=[{";".join(inside)}]])'
    )
    reader.start_minibatch_loop(16, 0)
    found: dict[str, list[Any]] = {name.split(":")[0]: [] for name in streams} | {"keys": []}
    while (minibatch := reader.get_minibatch()) is not None:
        found["keys"] += list(minibatch.keys)
        for name in found:
            if name != "keys":
                rows = minibatch.streams[name]
                dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
                found[name] += dense.reshape(len(minibatch.keys), -1).tolist()
    reader.close()
    return found


def kinds(text: str, **more: Any) -> dict[str, str]:
    table = CsvTable(write(text), **more)
    return {field.name: str(field.type) for field in table.schema}


def test_columns_become_streams() -> None:
    found = read(write(TABLE), "id:1", "width:1", "kind:3:sparse", "wild:1")
    assert found["id"] == [[7], [8], [9], [10]]
    assert found["width"] == [[1.5], [-300], [0.25], [4]]
    assert found["kind"] == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]  # lily, rose, two lines
    assert found["wild"] == [[1], [0], [1], [0]]
    assert found["keys"] == [0, 1, 2, 3]


def test_the_same_as_a_parquet_file() -> None:
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "a": rng.normal(size=500),
            "b": rng.integers(-9, 9, 500),
            "c": [f"k{i}" for i in rng.integers(0, 5, 500)],
        }
    )
    pq.write_table(table, "t.parquet", row_group_size=100)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    write("a,b,c\n" + "".join(f"{a!r},{b},{c}\n" for a, b, c in rows), "t.csv")
    streams = StreamDefs(x=StreamDef(field=["a", "b"], shape=2), y=StreamDef(field="c", shape=5, is_sparse=True))
    found = []
    for kind in ("Parquet", "Csv"):
        config = {"type": f"{kind}Deserializer", "file": f"t.{kind.lower()}"}
        described = CsvDeserializer("t.csv", streams, filter="a > -1 and c != 'k2'") | config
        source = MinibatchSource(described, max_sweeps=1, randomize=False)
        found.append([{"x": one["x"], "y": one["y"].toarray()} for one in source.arrays(50)])
        source.close()
    assert len(found[0]) == len(found[1]) > 5
    for one, other in zip(*found, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,x\n2.5,y\n", {"a": "double", "b": "string"}),
        ("a,b\n1,2026-01-01\n,2026-01-02\n", {"a": "int64", "b": "date32[day]"}),
        ("a,b\n 1 ,\t2.5\n2, 3\n", {"a": "int64", "b": "double"}),
        ("a,b\nNA,1\n2,3\n", {"a": "int64", "b": "int64"}),
        ("a,b\nnan,inf\n2,3\n", {"a": "double", "b": "double"}),
        ("1;2\n3;x\n", {"1": "int64", "2": "string"}),
        ("a\tb\n1\t2\n", {"a": "int64", "b": "int64"}),
        ("\ufeffa,b\r\n1,\"2\"\r\n", {"a": "int64", "b": "int64"}),
        ("a,b\r1,2\r3,4\r", {"a": "int64", "b": "int64"}),
        ("a,b\n,1\n,2\n", {"a": "null", "b": "int64"}),
        ("a,b\n2026-01-01,1\n2026-01-01 12:00:00,2\n", {"a": "timestamp[s]", "b": "int64"}),
        ("a,b\n2026-01-01,1\n5,2\n", {"a": "string", "b": "int64"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("block", [8, 4 << 20])
def test_types_fit_all_cells(text: str, expected: dict[str, str], block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The type does not depend on where the text is cut."""
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", max(block, 1 + max(map(len, text.encode().splitlines(True)))))
    assert kinds(text) == expected


def test_types_are_the_same_in_all_files() -> None:
    write("a,c\n1,10\n", "d/1.csv")
    write("a,c\n2.5,9b\n", "d/2.csv")
    found = read("d", "a:1", "c:2:sparse")
    assert found["a"] == [[1], [2.5]] and found["c"] == [[1, 0], [0, 1]]


def test_listed_classes_and_keys_are_texts() -> None:
    write("007\n7\n", "names.txt")
    write("k,c\n01,7\n1,007\n")
    reader = create_reader(
        "randomize=false;useNumericSequenceKeys=false;deserializers=([type=CsvDeserializer;file=a.csv;keyColumn=k;"
        "input=[c=[dim=2;format=sparse;labelMappingFile=names.txt]]])"
    )
    reader.start_minibatch_loop(2, 0)
    minibatch = reader.get_minibatch()
    assert minibatch is not None and list(minibatch.keys) == ["01", "1"]
    assert minibatch.streams["c"].toarray().reshape(2, 2).tolist() == [[0, 1], [1, 0]]
    reader.close()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("day >= '2026-01-02' and split == 'test'", [1, 3]),
        ("wild == true", [0, 2]),
        ("width > 1 or kind == 'two\nlines'", [0, 2, 3]),
        ("id in (7, 10)", [0, 3]),
    ],
)
def test_filters(condition: str, expected: list[int]) -> None:
    source = MinibatchSource(
        CsvDeserializer(write(TABLE), StreamDefs(x=StreamDef(field="id", shape=1)), filter=condition),
        randomize=False,
        max_sweeps=1,
    )
    (found,) = source.arrays(10)
    assert found["x"][:, 0].tolist() == [[7, 8, 9, 10][i] for i in expected]
    source.close()


def test_missing_values_and_folders() -> None:
    write("a,c\n1,x\n,y\nNA,x\n4,\n", "d/part=one/t.csv")
    write("a,c\n5,y\n", "d/part=two/t.csv.gz")
    Path("d/part=two/t.csv.gz").write_bytes(gzip.compress(b"a,c\n5,y\n"))
    found = read("d", "a:1", "c:2:sparse", "part:2:sparse", filter="a is not null and c is not null")
    assert found["a"] == [[1], [5]] and found["part"] == [[1, 0], [0, 1]]
    assert found["keys"] == [0, 4]
    assert read("d", "a:1", filter="part == 'two'")["a"] == [[5]]


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zst"])
def test_compressed(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import bz2
    import lzma

    import zstandard

    monkeypatch.setattr(csv_text, "BLOCK_BYTES", 300)
    text = "x,c\n" + "".join(f"{i},k{i % 3}\n" for i in range(400))
    packed = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zst": zstandard.ZstdCompressor().compress,
    }[ending](text.encode())
    Path(f"a.csv.{ending}").write_bytes(packed)
    found = read(f"a.csv.{ending}", "x:1", "c:3:sparse", order="true")
    assert sorted(found["x"]) == [[i] for i in range(400)] and found["x"] != sorted(found["x"])
    assert all(row[int(x[0]) % 3] == 1 for x, row in zip(found["x"], found["c"], strict=True))


def test_beside_text_format_and_shared_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", 200)
    write("x,n\n" + "".join(f'{i},"a\n{i}"\n' for i in range(300)))
    write("".join(f"{i} |y {i} {-i}\n" for i in range(300)), "a.ctf")
    section = (
        "deserializers=([type=CNTKTextFormatDeserializer;file=a.ctf;input=[y=[dim=2;format=dense]]]:"
        "[type=CsvDeserializer;file=a.csv;input=[x=[dim=1]]])"
    )
    for first in (section, "deserializers=([type=CsvDeserializer;file=a.csv;input=[x=[dim=1]]])"):
        seen: list[float] = []
        for worker in range(3):
            reader = create_reader(first)
            reader.start_minibatch_loop(30, 1, None, worker, 3)
            while (minibatch := reader.get_minibatch()) is not None:
                x = minibatch.streams["x"].reshape(-1)
                seen += x.tolist()
                if "y" in minibatch.streams:
                    assert (minibatch.streams["y"].reshape(-1, 2) == np.stack([x, -x], 1)).all()
            reader.close()
        assert sorted(seen) == list(range(300))


def test_a_position_is_kept() -> None:
    write("x\n" + "".join(f"{i}\n" for i in range(100)))
    streams = StreamDefs(x=StreamDef(field="x", shape=1))
    source = MinibatchSource(CsvDeserializer("a.csv", streams), max_sweeps=1)
    every = [one["x"][:, 0].tolist() for one in source.arrays(10)]
    source = MinibatchSource(CsvDeserializer("a.csv", streams), max_sweeps=1)
    part = source.arrays(10)
    first = [next(part)["x"][:, 0].tolist() for _ in range(4)]
    other = MinibatchSource(CsvDeserializer("a.csv", streams), max_sweeps=1)
    other.restore_from_checkpoint(source.get_checkpoint_state())
    assert first + [one["x"][:, 0].tolist() for one in other.arrays(10)] == every


@pytest.mark.malformed
@pytest.mark.parametrize("before", [0, 500])
@pytest.mark.parametrize(
    ("rows", "message", "hint"),
    [
        ("1,a\n2\n", "a.csv:{2}: the row has 1 columns, but the first one has 2", "quote texts with the delimiter"),
        ("1,a\nq,b\n", "column 'x' cannot be the stream 'x': it is string, not numbers (line {2} has 'q')", ""),
        ("1,a\n,b\n", "a.csv:{2}, column 'x': a value is missing (null)", 'filter = "x is not null"'),
        ("1,a\nNA,b\n", "a.csv:{2}, column 'x': a value is missing (null)", 'filter = "x is not null"'),
        ("1,a\n2,\n", "a.csv:{2}, column 'y': a value is missing (null)", 'filter = "y is not null"'),
        ('1,"a\nb"\n2,\n', "a.csv:{3}, column 'y': a value is missing (null)", ""),
        ('1,a\n2,"b\n3,c\n', "a.csv:{2}: a quote in this row is not closed", "quotes within it are doubled"),
        ('1,a\n"2"5,b\n', "a.csv:{2}: the quotes in this row are wrong", "quotes within it are doubled"),
        ('1,"a\nb"\n2,"b""c"d\n3,"e"\n', "a.csv:{3}: the quotes in this row are wrong", "quotes within it are doubled"),
        ("1,a\n2,\udce9\n", "a.csv:{2} is not text in UTF-8", "iconv"),
        ("1,a\n2,b\n3,c\n4,d\n5,e\n", "column 'y' has more than 4 classes", "write the number of its classes"),
    ],
)  # fmt: skip
def test_errors_name_the_line(rows: str, message: str, hint: str, before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", 100)
    text = "x,y\n" + "1,a\n\n" * (before // 2) + rows
    Path("a.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        read("a.csv", "x:1", "y:4:sparse")
    expected = message.format(*[1 + before // 2 * 2 + i for i in range(5)])
    assert expected in str(caught.value)
    assert hint in (caught.value.hint or "")


def test_quotes_within_cells_and_blanks_behind_texts() -> None:
    """Both are as written: only a cell that begins with a quote is a text in quotes."""
    Path("a.csv").write_bytes(b'x,y\n1,a\n2,d"o"g\n"3" ,"a"\t\n4,"a""" \r\n5,"b"')
    found = read("a.csv", "x:1", "y:4:sparse")
    assert np.asarray(found["x"]).ravel().tolist() == [1, 2, 3, 4, 5]


@pytest.mark.malformed
@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        ("x,y\n1,a\n".encode("utf-16"), "a.csv:1 is not text in UTF-8", "iconv -f utf-16 -t utf-8"),
        ("x,y\n1,é\n".encode("latin-1"), "a.csv:2 is not text in UTF-8", "iconv -f latin1 -t utf-8"),
        (b'x,y\n1,a\n\n2,"b\n3,c\n', "a.csv:4: a quote in this row is not closed", "quotes within it are doubled"),
        (b'"x,y\n1,a\n', "a.csv:1: a quote in this row is not closed", "quotes within it are doubled"),
        (b'\n"x" c,y\n1,a\n', "a.csv:2: the quotes in this row are wrong", "quotes within it are doubled"),
    ],
)
def test_encodings_and_quotes(content: bytes, message: str, hint: str) -> None:
    Path("a.csv").write_bytes(content)
    with pytest.raises(DataError) as caught:
        read("a.csv", "x:1", "y:4:sparse")
    assert message in str(caught.value) and hint in (caught.value.hint or "")


@pytest.mark.malformed
@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "a.csv has no rows", ""),
        ("x,y\n", "a.csv has no rows after its header", ""),
        ("x,y\n,\n \n", "a.csv has no rows after its header", ""),
        ("y,z\n1,2\n", "a.csv has no column 'x'", "its columns are y, z"),
        ("1,2\n", "a.csv has no column 'x'", "its columns are 1, 2"),
        ("x,x\n1,2\n", "two columns are called 'x'", "rename one"),
        (",x\n1,2\n", "column 1 has no name in the header", "index=False"),
        ("x\n1\n" + "2" * 200 + "\n3\n", "the row from line 3 on has more than", "is a quote not closed?"),
    ],
)
def test_what_is_no_table(text: str, message: str, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", 100)
    with pytest.raises(DataError) as caught:
        read(write(text), "x:1")
    assert message in str(caught.value) and hint in (caught.value.hint or "")


def test_check_finds_what_a_column_cannot_be(cntkpy) -> None:
    write("x,kind\n1,a\n2,b\nzwei,b\n")
    write(
        "command=c\nc=[action=test;modelPath=m]\nreader=[deserializers=([type=CsvDeserializer;file=a.csv;"
        "filter=\"kind > 3\";input=[x=[dim=1];y=[dim=2;format=sparse;alias=kin]]])]\n",
        "m.cntk",
    )  # fmt: skip
    shown = cntkpy("check", "--data", "m.cntk").out
    assert "a.csv: column 'x' cannot be the stream 'x': it is string, not numbers (line 4 has 'zwei')" in shown
    assert "has no column 'kin'" in shown and "did you mean 'kind'" in shown
    assert "column 'kind' cannot be compared with 3" in shown
    write("x,kind\n1,a\n2\n")
    assert "a.csv:3: the row has 1 columns, but the first one has 2" in cntkpy("check", "--data", "m.cntk").out


def test_a_file_that_changes_while_it_is_read() -> None:
    write("x\n1\n2\n")
    table = CsvTable("a.csv")
    write("x\n1\n")
    with pytest.raises(DataError, match=r"a\.csv was cut short while it was read"):
        table.read(0, ["x"])
    write("x\n1\nq\n")
    with pytest.raises(DataError, match=r"a\.csv: the rows from line 2 on cannot be read as a table: .*'q'"):
        table.read(0, ["x"])


def as_states(text: str, delimiter: str) -> tuple[list[int], bool]:
    """Ends of rows by the states of a parser: within a text, at the start of a cell, in a cell."""
    ends, state, i = [], "start", 0
    while i < len(text):
        sign = text[i]
        if state == "text":
            if sign == '"' and text[i + 1 : i + 2] == '"':
                i += 1
            elif sign == '"':
                state = "cell"
        elif sign == '"' and state == "start":
            state = "text"
        elif sign == "\n" or (sign == "\r" and text[i + 1 : i + 2] not in ("\n", "")):
            ends.append(i + 1)
            state = "start"
        else:
            state = "start" if sign in (delimiter, "\r") else "cell"
        i += 1
    return ends, state == "text"


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_ends_of_rows(delimiter: str) -> None:
    chance = random.Random(delimiter)
    for _ in range(1500):
        text = "".join(chance.choices(f'"\n\ra{delimiter}', k=chance.randrange(14)))
        found = rows_in(text.encode(), delimiter)
        assert (found.ends.tolist(), found.unclosed) == as_states(text, delimiter), text


def test_rows_are_those_of_the_module_csv(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the cells are and wherever the text is cut."""
    chance = random.Random(1)
    pieces = ['"a\nb"', '"x ""y"""', "1", "2.5", "é", " 7 ", '5" long', "", '"q,r"']
    for block in [*range(40, 100, 7), 4 << 20] * 3:
        monkeypatch.setattr(csv_text, "BLOCK_BYTES", block)
        rows = [chance.choices(pieces, k=3) for _ in range(chance.randrange(1, 30))]
        text = "u,v,w\n" + "".join(",".join(row) + chance.choice(["\n", "\r\n", "\n\n", "\n,,\n"]) for row in rows)
        expected = [[c.strip() or None for c in row] for row in csv.reader(io.StringIO(text, newline=""))][1:]
        expected = [row for row in expected if any(row)]
        table = CsvTable(write(text), texts=("u", "v", "w"))
        found = []
        for group in range(table.groups):
            columns = table.read(group, ["u", "v", "w"])
            found += zip(*(pa.chunked_array(columns[name]).to_pylist() for name in "uvw"), strict=True)
        assert [list(row) for row in found] == expected


def test_a_number_too_large_is_told_once_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    """A double cannot hold the first, a float the second; `inf` is not reported."""
    path = write("a,b,c\n1,2,inf\n\n3,1e39,1\n1e400,1e38,2\n1e500,1e40,3\n")
    streams = read(path, "a:1", "b:1", "c:1")
    assert streams["a"] == [[1], [3], [np.inf], [np.inf]] and streams["c"] == [[np.inf], [1], [2], [3]]
    assert [record.getMessage() for record in caplog.records] == [
        "a.csv:5, column 'a': '1e400' is too large for its type, and read as infinite.",
        "a.csv:4, column 'b': a value is too large for its type, and read as infinite.",
    ]


def test_the_place_of_a_number_too_large_among_columns_of_parquet(caplog: pytest.LogCaptureFixture) -> None:
    pq.write_table(pa.table({"a": [1.0, 2.0, 3.0], "b": [np.inf, 1.0, -1e40]}), "a.parquet")
    inside = "input=[x=[dim=2;columns=a:b]]"
    reader = create_reader(f"randomize=false;deserializers=([type=ParquetDeserializer;file=a.parquet;{inside}])")
    reader.start_minibatch_loop(4, 0)
    reader.get_minibatch()
    (record,) = caplog.records
    assert record.getMessage().startswith("a.parquet, row group 0, row 2, column 'b': a value is too large")


def test_previewed(cntkpy) -> None:
    write(TABLE)
    inside = "width=[dim=1];kind=[dim=3;format=sparse]"
    write(f"reader=[deserializers=([type=CsvDeserializer;file=a.csv;input=[{inside}]])]", "m.cntk")
    got = cntkpy("preview", "m.cntk", "reader")
    assert got.code == 0 and "4 samples" in got.out and "kind: sparse, 3" in got.out
