"""`missing`, `other`, `indicators` of the streams of tables, and `random(1) < 0.8` in filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cntkpy.cntk_config import parse
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers import create_reader
from cntkpy.readers.formats.tables.conditions import BadConditionError, Combined, Comparison, Draw, condition_of
from cntkpy.readers.formats.tables.filters import Filter, draw
from cntkpy.readers.formats.tables.groups import row_groups

from .table_files import KINDS, opened, write_table

CSV = "a,b,city,flag,n\n1.5,7,Bonn,true,0\n,NA,,,\nnan,9,Ulm,false,2\n4,,Rom,true,1\n"
TYPES = ["csv", *KINDS]


def write(kind: str) -> str:
    """The same rows in a file of a kind; its name."""
    if kind == "csv":
        Path("d.csv").write_text(CSV)
        return "d.csv"
    table = pa.table(
        {
            "a": [1.5, None, float("nan"), 4],
            "b": pa.array([7, None, 9, None], pa.int32()),
            "city": pa.array(["Bonn", None, "Ulm", "Rom"]).dictionary_encode(),
            "flag": [True, None, False, True],
            "n": pa.array([0, None, 2, 1], pa.uint8()),
        }
    )
    return write_table(table, f"d.{kind}", 3)


def read(kind: str, streams: str, path: str | None = None) -> dict[str, Any]:
    """The streams of a table in the order of its rows, as arrays (rows, dim)."""
    name = {"csv": "CsvDeserializer", **KINDS}[kind]
    section = f'randomize=false;deserializers=([type={name};file="{path or write(kind)}";input=[{streams}]])'
    reader = create_reader(parse(section))
    reader.start_minibatch_loop(100, 0)
    minibatch = reader.get_minibatch()
    assert minibatch is not None
    result = {}
    for stream in reader.streams:
        value = minibatch.streams[stream.name]
        dense = value.toarray() if hasattr(value, "toarray") else np.asarray(value)
        result[stream.name] = dense.reshape(4 if path is None else 2, -1).tolist()
    return result


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", TYPES)
def test_numbers(kind: str) -> None:
    """Missing numbers and NaN become the number of their column; indicators say where."""
    values = read(
        kind,
        "x=[dim=3;columns=(a:b:flag);missing=(2.5:-1:0.5)];there=[dim=3;columns=(a:b:city);indicators=true];"
        "y=[dim=1;alias=b;missing=100]",
    )
    assert values["x"] == [[1.5, 7, 1], [2.5, -1, 0.5], [2.5, 9, 0], [4, -1, 1]]
    assert values["there"] == [[0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 1, 0]]
    assert values["y"] == [[7], [100], [9], [100]]


@pytest.mark.parametrize("kind", TYPES)
def test_classes(kind: str) -> None:
    Path("cities.txt").write_text("Ulm\nBonn\n<missing>\n<other>\n")
    city = 'alias=city;format=sparse;labelMappingFile=cities.txt;missing="<missing>";other="<other>"'
    values = read(
        kind, f"c=[dim=4;{city}];d=[dim=4;format=sparse;alias=city;missing=none];n=[dim=4;format=sparse;missing=3]"
    )
    assert np.argmax(values["c"], axis=1).tolist() == [1, 2, 0, 3]
    assert np.argmax(values["d"], axis=1).tolist() == [0, 3, 2, 1]  # Bonn, Rom, Ulm, and the class that is added
    assert np.argmax(values["n"], axis=1).tolist() == [0, 3, 2, 1]


def test_columns_without_a_value() -> None:
    """In rows to be predicted, a column may be empty."""
    Path("e.csv").write_text("a,city,n,x\n,,,1\n,,,2\n")
    Path("cities.txt").write_text("Ulm\n<missing>\n")
    streams = 'a=[dim=1;missing=7];c=[dim=2;alias=city;format=sparse;labelMappingFile=cities.txt;missing="<missing>"]'
    values = read(
        "csv", f"{streams};n=[dim=3;format=sparse;missing=2];i=[dim=2;columns=(a:x);indicators=true]", "e.csv"
    )
    assert values == {"a": [[7], [7]], "c": [[0, 1]] * 2, "n": [[0, 0, 1]] * 2, "i": [[1, 0]] * 2}


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        ("x=[dim=2;columns=(a:b);missing=1]", "there are 1 values for 2 columns"),
        ("x=[dim=1;alias=a;missing=many]", "'many' is not a number"),
        ("x=[dim=1;alias=a;missing=inf]", "'inf' is not a number"),
        ("x=[dim=1;alias=a;missing=1;indicators=true]", "indicators have no missing values"),
        ("x=[dim=1;alias=a;format=sparse;indicators=true]", "indicators are numbers"),
        ("x=[dim=4;alias=city;format=sparse;other=z]", "there is no labelMappingFile"),
        ("x=[dim=4;alias=city;format=sparse;labelMappingFile=c.txt;other=Rim]", "does not list the class 'Rim'"),
        (
            "x=[dim=4;alias=city;format=sparse;labelMappingFile=c.txt;missing=none]",
            "add a line 'none', and write dim = 2",
        ),
        ("x=[dim=1;alias=city;missing=1]", "not a number"),
        ("x=[dim=4;alias=n;format=sparse;missing=none]", "write missing = 3"),
        ("x=[dim=2;columns=(a:b)]", "a value is missing (null)"),
    ],
)
def test_errors(stream: str, said: str) -> None:
    Path("c.txt").write_text("Rom\n")
    with pytest.raises(UserError) as caught:
        read("parquet", stream)
    assert said in caught.value.message + str(caught.value.hint)


def test_draws_are_uniform_and_always_the_same() -> None:
    assert draw(np.arange(3), 1).tolist() == draw(np.arange(10), 1)[:3].tolist()
    drawn = draw(np.arange(100_000), 1)
    assert drawn.min() >= 0 and drawn.max() < 1
    counts = np.histogram(drawn, 20, (0, 1))[0]
    assert abs(counts - 5000).max() < 300
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(drawn, draw(np.arange(100_000), 2))[0, 1]) < 0.01

    # SplitMix64 of the seed, then of its exclusive or with the number of the row, by the arithmetic of Python.
    def mixed(value: int) -> int:
        value = (value + 0x9E3779B97F4A7C15) % 2**64
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
        return value ^ value >> 31

    assert drawn[7] == (mixed(7 ^ mixed(1)) >> 11) * 2.0**-53


@pytest.mark.parametrize("kind", list(KINDS))
def test_parts_of_a_table(kind: str) -> None:
    """Parts share no row and leave none out, whatever the row groups; other conditions go with them."""
    rows = 300
    tables = [opened(write_table(pa.table({"i": range(a, a + 150)}), f"p{a}.{kind}", 70)) for a in (0, 150)]
    parts = []
    for text in ("random(5) < 0.6", "random(5) >= 0.6 and RANDOM( 5 ) < 0.8", "not random(5) < 0.8"):
        parts.append(np.concatenate([group.numbers() for group in row_groups(tables, Filter(condition_of(text)))]))
    assert sorted(np.concatenate(parts).tolist()) == list(range(rows))
    assert parts[0].tolist() == np.flatnonzero(draw(np.arange(rows), 5) < 0.6).tolist()
    both = row_groups(tables, Filter(condition_of("random(5) < 0.6 and i < 100 and random(6) < 0.5")))
    expected = (draw(np.arange(rows), 5) < 0.6) & (draw(np.arange(rows), 6) < 0.5) & (np.arange(rows) < 100)
    assert np.concatenate([group.numbers() for group in both]).tolist() == np.flatnonzero(expected).tolist()


def test_the_grammar() -> None:
    assert condition_of("random(1) < 0.8") == Draw(1, "<", 0.8)
    assert condition_of("random < 3 and random(0)>=.5") == Combined(
        "and", (Comparison("random", "<", (3,)), Draw(0, ">=", 0.5))
    )
    for text in (
        "random() < 1",
        "random(x) < 1",
        "random(-1) < 1",
        "random(1) < 'a'",
        "random(1) in (1, 2)",
        "random(1",
    ):
        with pytest.raises(BadConditionError):
            condition_of(text)
