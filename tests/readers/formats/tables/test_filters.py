"""Filters on the rows of tables, statistics of row groups, and files in folders that are columns."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.commands.cli import main
from cntkpy.readers import DataError, MinibatchSource, ParquetDeserializer, StreamDef, StreamDefs
from cntkpy.readers.formats.tables.conditions import BadConditionError, Combined, Comparison, comparisons, condition_of
from cntkpy.readers.formats.tables.files import ParquetTable
from cntkpy.readers.formats.tables.filters import Filter
from cntkpy.readers.formats.tables.footer import statistics
from cntkpy.readers.formats.tables.groups import row_groups
from cntkpy.readers.formats.tables.partitions import files_of, partitions_of

from .table_files import MAKERS, opened, write_table

ROWS = 60


def table() -> pa.Table:
    """Rows with a number, a class in order, and a name that is missing in every seventh row."""
    every = range(ROWS)
    return pa.table(
        {
            "x": pa.array([i / 2 for i in every], pa.float32()),
            "label": pa.array([i // 10 for i in every], pa.uint8()),
            "name": pa.array([None if i % 7 == 0 else f"n{i % 3}" for i in every]),
            "coded": pa.array([f"c{i // 20}" for i in every]).dictionary_encode(),
            "flag": [i % 2 == 0 for i in every],
            "day": pa.array(every, pa.date32()),
            "series": pa.array([[float(i)] * (i % 3) for i in every], pa.list_(pa.float32())),
        }
    )


def write(found: pa.Table, path: str, rows: int = 8) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return write_table(found, path, rows)


def rows_of(path: str, text: str) -> list[int]:
    """The rows that a filter leaves."""
    groups = row_groups([opened(path)], Filter(condition_of(text)))
    return np.concatenate([group.numbers() for group in groups]).tolist()


WHERE: list[tuple[str, Any]] = [
    ("label < 3", lambda i: i // 10 < 3),
    ("label <= 3 and x > 4.5", lambda i: i // 10 <= 3 and i / 2 > 4.5),
    ("NOT (label = 0 OR label == 5)", lambda i: i // 10 not in (0, 5)),
    ("not not label != 2", lambda i: i // 10 != 2),
    ("label in (1, 400, -1)", lambda i: i // 10 == 1),
    ("label not in (1, 2)", lambda i: i // 10 not in (1, 2)),
    ("label >= 2.5", lambda i: i // 10 >= 2.5),
    ("name == 'n1'", lambda i: i % 7 and i % 3 == 1),
    ("not name == 'n1'", lambda i: i % 7 and i % 3 != 1),  # of a missing value nothing is true
    ("name is null", lambda i: i % 7 == 0),
    ("`name` is not null and coded in ('c0', 'c2')", lambda i: i % 7 and i // 20 != 1),
    ("flag == true", lambda i: i % 2 == 0),
    ("day >= '1970-02-01'", lambda i: i >= 31),
    ('coded > "c1"', lambda i: i // 20 > 1),
]


@pytest.mark.parametrize(("text", "holds"), WHERE, ids=[one[0] for one in WHERE])
def test_rows_that_are_left(kind: str, text: str, holds: Any) -> None:
    path = write(table(), f"t.{kind}")
    assert rows_of(path, text) == [i for i in range(ROWS) if holds(i)]


def random_text(draw: random.Random, depth: int = 0) -> str:
    if depth < 3 and draw.random() < 0.6:
        parts = [random_text(draw, depth + 1) for _ in range(draw.choice((1, 2, 2)))]
        return f"not ({parts[0]})" if len(parts) == 1 else f"({parts[0]} {draw.choice(('and', 'or'))} {parts[1]})"
    sign = draw.choice(("==", "!=", "<", "<=", ">", ">="))
    return draw.choice(
        (
            f"label {sign} {draw.randrange(-1, 8)}",
            f"x {sign} {draw.randrange(-2, 64) / 2}",
            f"name {sign} 'n{draw.randrange(4)}'",
            "name is null",
            f"label in ({draw.randrange(8)}, {draw.randrange(8)})",
        )
    )


def test_statistics_leave_no_row_out() -> None:
    """Row groups that are skipped have no row that the filter leaves, for 150 random conditions; NaN included."""
    found = table()
    values = found["x"].to_numpy().copy()
    values[5], values[16:24] = np.nan, np.nan
    found = found.set_column(0, "x", pa.array(values))
    path, plain = write(found, "t.parquet"), write(found, "t.arrow")
    draw, skipped = random.Random(1), 0
    tables = opened(path), opened(plain)
    for _ in range(150):
        condition = Filter(condition_of(random_text(draw)))
        possible = condition.groups(tables[0])
        assert condition.groups(tables[1]) == [True] * tables[1].groups
        for number, may in enumerate(possible):
            skipped += not may
            assert may or not len(condition.rows(tables[1], number))
    assert skipped > 200


def test_row_groups_that_are_skipped_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(table(), "t.parquet")
    read: list[int] = []
    original = ParquetTable._read
    monkeypatch.setattr(
        ParquetTable, "_read", lambda self, file, group, *more: read.append(group) or original(self, file, group, *more)
    )
    assert rows_of(path, "label == 2") == list(range(20, 30))
    assert read == [2, 3]


def test_a_filtered_row_keeps_its_number(kind: str) -> None:
    """Rows are joined to lines by the number that they have in the file."""
    path = write(table(), f"t.{kind}")
    Path("y.ctf").write_text("".join(f"|y {i}\n" for i in range(ROWS)))
    streams = StreamDefs(x=StreamDef(field="x", shape=1))
    from cntkpy.readers import CTFDeserializer

    text = CTFDeserializer("y.ctf", StreamDefs(y=StreamDef(field="y", shape=1)))
    filtered = MAKERS[kind](path, streams, filter="label in (1, 3)")
    source = MinibatchSource([filtered, text], max_sweeps=1)
    seen: list[float] = []
    for m in source.minibatches(7):
        x, y = (np.concatenate(m[source[name]].as_sequences()).ravel() for name in ("x", "y"))
        assert (y == 2 * x).all()
        seen += y.tolist()
    assert sorted(seen) == [*range(10, 20), *range(30, 40)]


def test_other_columns_are_those_of_the_rows(kind: str) -> None:
    """Lists without elements and missing names are errors, unless their rows are left out; numbers of classes stay."""
    path = write(table(), f"t.{kind}")
    streams = StreamDefs(s=StreamDef(field="series", shape=1), n=StreamDef(field="name", shape=3, is_sparse=True))
    source = MinibatchSource(
        MAKERS[kind](path, streams, filter="name in ('n1', 'n2') and label < 4"), max_sweeps=1, randomize=False
    )
    expected = [i for i in range(40) if i % 7 and i % 3]
    found = [one for m in source.minibatches(5) for one in m[source["s"]].as_sequences()]
    assert [one.ravel().tolist() for one in found] == [[i] * (i % 3) for i in expected]
    classes = [
        int(one.toarray().argmax(1)[0])
        for m in MinibatchSource(
            MAKERS[kind](path, StreamDefs(n=streams["n"]), filter="name in ('n1', 'n2')"), max_sweeps=1, randomize=False
        ).minibatches(9)
        for one in next(iter(m.values())).as_sequences()
    ]
    assert set(classes) == {1, 2}


@pytest.mark.malformed
def test_errors_name_the_row_of_the_file(kind: str) -> None:
    path = write(table(), f"t.{kind}")
    with pytest.raises(DataError, match=r"row group 1, row 1, column 'series': the list is empty"):
        MinibatchSource(MAKERS[kind](path, StreamDefs(s=StreamDef(field="series", shape=1)), filter="x > 3.5"))
    wrong = [
        ("lable < 5", "has no column 'lable'", "did you mean 'label'?"),
        ("label < 'a'", "column 'label' cannot be compared with 'a': it is uint8", "write a number, without quotes"),
        ("name == 5", "column 'name' cannot be compared with 5: it is string", "write '5' in quotes"),
        ("flag == 1", "column 'flag' cannot be compared with 1: it is bool", "write true or false"),
        ("day < 'x'", "column 'day' cannot be compared with 'x': it is date32", "write for instance '2026-01-31'"),
        ("series == 1", "column 'series' cannot be compared with 1: it is list", "filters compare numbers, texts"),
        ("label > 100", "no row fulfils the filter", "are the values right?"),
    ]
    for text, words, hint in wrong:
        with pytest.raises(DataError) as caught:
            MinibatchSource(MAKERS[kind](path, StreamDefs(x=StreamDef(field="x", shape=1)), filter=text))
        assert words in caught.value.message and hint in str(caught.value.hint)


@pytest.mark.malformed
def test_texts_that_are_no_conditions() -> None:
    for text, place in (
        ("", "at its end"),
        ("label <", "at its end"),
        ("label << 5", "at '< 5' (character 8)"),
        ("a=1 b=2", "at 'b=2' (character 5)"),
        ("a == 'x", "at ''x' (character 6)"),
        ("a in ()", "at ')' (character 7)"),
        ("__import__('os')", "at '('os')'"),
        ("a = 1 and and b = 2", "at 'and b = 2'"),
        ("a = 1; drop", "at '; drop'"),
    ):
        with pytest.raises(BadConditionError) as caught:
            condition_of(text)
        assert place in str(caught.value)
    for text in ("(" * 101 + "a=1" + ")" * 101, "a = 1 or " * 500 + "a = 1"):
        with pytest.raises(BadConditionError, match="at most 4000 characters and 100 brackets"):
            condition_of(text)
    nested = condition_of("not (" * 99 + "a=1 and b=2" + ")" * 99)
    assert isinstance(nested, Combined)
    assert [one.column for one in comparisons(nested)] == ["a", "b"]
    assert condition_of("`a b`=1e2") == Comparison("a b", "==", (100.0,))


@pytest.mark.malformed
def test_damaged_footers_tell_nothing_wrong_about_types() -> None:
    """Bytes of the footer changed at random: statistics or none, and no exception."""
    path = Path(write(table(), "t.parquet"))
    content, draw = path.read_bytes(), random.Random(2)
    length = int.from_bytes(content[-8:-4], "little")
    readable = 0
    for _ in range(100):
        mutated = bytearray(content)
        for _ in range(draw.choice((1, 2, 4))):
            mutated[draw.randrange(len(content) - 8 - length, len(content))] = draw.randrange(256)
        path.write_bytes(mutated)
        with path.open("rb") as file:
            for group in statistics(file, len(mutated)):
                readable += 1
                for low, high, nulls, _ in group.values():
                    assert isinstance(low, bytes | None) and isinstance(high, bytes | None)
                    assert isinstance(nulls, int | None)
    assert readable


# ------------------------------------------------------------------------------------------------ folders and patterns


def test_folders_are_columns(kind: str) -> None:
    for split, year in (("train", 1), ("train", 2), ("test", 1), ("a%20b", 2)):
        write(table().slice(10 * year, 5), f"data/split={split}/year={year}/part.{kind}")
    write(table(), f"data/_hidden/part.{kind}")
    streams = StreamDefs(x=StreamDef(field="x", shape=1), s=StreamDef(field="split", shape=3, is_sparse=True))

    def read(file: Any, text: str | None) -> dict[int, set[float]]:
        source = MinibatchSource(MAKERS[kind](file, streams, filter=text), max_sweeps=1, randomize=False)
        found: dict[int, set[float]] = {}
        for m in source.minibatches(4):
            for x, s in zip(m[source["x"]].as_sequences(), m[source["s"]].as_sequences(), strict=True):
                found.setdefault(int(s.toarray().argmax()), set()).add(float(x[0, 0]))
        return found

    one, two = {5, 5.5, 6, 6.5, 7}, {10, 10.5, 11, 11.5, 12}
    assert read("data", None) == {0: two, 1: one, 2: one | two}  # 'a b', test, train
    assert read("data", "year == 1") == {1: one, 2: one}
    assert read(f"data/split=t*/*/part.{kind}", "split != 'test' and year < 2") == {1: one}
    assert read(f"data/**/part.{kind}", "split = 'a b'") == {0: two}
    paths = files_of(["data"], (f".{kind}",))
    assert len(paths) == 4
    assert {n: one.value for n, one in partitions_of(paths)[0].items()} == {
        "split": "a b",
        "year": 2,
    }
    empty = partitions_of(["a/n=__HIVE_DEFAULT_PARTITION__/x", "a/n=3/x"])
    assert [part["n"].value for part in empty] == [None, 3]


@pytest.mark.malformed
def test_files_that_are_not_there(kind: str) -> None:
    Path("none").mkdir()
    streams = StreamDefs(x=StreamDef(field="x", shape=1))
    for file, words in (("none", "none has no files"), (f"none/*.{kind}", "fits no file")):
        with pytest.raises(DataError, match=words):
            MinibatchSource(MAKERS[kind](file, streams))
    paths = [write(table(), f"data/split=a/x.{kind}"), write(table(), f"data/x.{kind}")]
    with pytest.raises(DataError, match=r"is in no folder 'split=\.\.\.', but other files are"):
        MinibatchSource(MAKERS[kind](paths, streams))


def test_check_finds_wrong_filters(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(table(), f"data/split=a/x.{kind}")
    config = """
command=train
precision=float
train=[ action=train ; modelPath=m
 SimpleNetworkBuilder=[layerSizes=1:1 ; trainingCriterion=SquareError ; evalCriterion=SquareError]
 SGD=[epochSize=0 ; maxEpochs=1 ; learningRatesPerMB=0.1]
 reader=[ deserializers=([type={} ; file={} ;
  filter="{}"
  input=[ features=[dim=1 ; alias=x] ; labels=[dim=1 ; alias=label] ] ]) ]]
"""
    name = {"parquet": "ParquetDeserializer", "arrow": "ArrowDeserializer"}[kind]
    for file, text, words in (
        ("data", "split == 'a' and label < 3", ""),
        ("data/*/*", "lable < 3", "has no column 'lable' - did you mean 'label'?"),
        ("data", "label < ", "is no condition: look at its end - write for instance"),
    ):
        Path("c.cntk").write_text(config.format(name, file, text))
        main(["check", "--data", "c.cntk"])
        found = capsys.readouterr().out
        assert words in found and ("c.cntk:8:" in found) == bool(words), found


def test_a_filter_needs_no_pyarrow_to_be_checked() -> None:
    from cntkpy.cntk_config import parse
    from cntkpy.readers.formats.tables.parameters import ParquetParameters

    section = parse('file=x.parquet;filter="a <";input=[x=[dim=1]]')
    with pytest.raises(UserError, match="is no condition"):
        ParquetParameters(section).check_together()


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (pa.array([Decimal("1.5")]), r"decimal128\(2, 1\)"),
        (pa.array(np.ones(1, np.float16)), "halffloat"),
        (pa.array(["a"]).dictionary_encode(), "string"),
        (pa.array([1], pa.uint64()), "uint64"),
    ],
)
def test_a_message_has_the_type_of_the_file(array: pa.Array, shown: str, tmp_path: Path) -> None:
    """D8: and not that of the numbers which are compared."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"d": array, "y": [1.0]}), path)
    wrong = "5" if shown == "string" else "'a'"
    with pytest.raises(DataError, match=f"'d' cannot be compared with {wrong}: it is {shown}"):
        MinibatchSource(ParquetDeserializer(str(path), StreamDefs(y=StreamDef("y", 1)), filter=f"d == {wrong}"))
