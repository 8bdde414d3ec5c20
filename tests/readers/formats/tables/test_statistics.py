"""Statistics of dates, times and booleans, and of fields of structs, which are columns of their own."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cntkpy.readers import DataError, MinibatchSource, StreamDef, StreamDefs
from cntkpy.readers.formats.tables.conditions import condition_of
from cntkpy.readers.formats.tables.filters import Filter

from .table_files import MAKERS, opened, write_table

ROWS, GROUP = 48, 8
DAY, MOMENT = date(1969, 12, 20), datetime(1969, 12, 31, 20)
CLOCK = [time(i // 2, 30 * (i % 2), i) for i in range(ROWS)]
MOMENTS = [MOMENT + timedelta(hours=i) for i in range(ROWS)]


def table() -> pa.Table:
    """Columns that ascend, each seventh value missing, before and after 1970."""

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([None if i % 7 == 3 else value for i, value in enumerate(values)], kind)

    days = [DAY + timedelta(days=i) for i in range(ROWS)]
    place = [
        None if i % 11 == 5 else {"floor": i // GROUP, "at": {"day": day, "name": f"n{i // 10}"}}
        for i, day in enumerate(days)
    ]
    return pa.table(
        {
            "row": np.arange(ROWS, dtype=np.float32),
            "day": column(days, pa.date32()),
            "day64": column(days, pa.date64()),
            "flag": column([i >= ROWS // 2 for i in range(ROWS)], pa.bool_()),
            "clock": column(CLOCK, pa.time32("s")),
            "clock_ns": column(CLOCK, pa.time64("ns")),
            "clock_us": column(CLOCK, pa.time64("us")),
            **{unit: column(MOMENTS, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
            "zone": column([one.replace(tzinfo=UTC) for one in MOMENTS], pa.timestamp("ms", "UTC")),
            "place": pa.array(place),
        }
    )


WAYS: list[dict[str, Any]] = [{}, {"version": "1.0"}, {"version": "2.4"}, {"store_schema": False}]
FLAT = ["day", "day64", "flag", "clock", "clock_ns", "clock_us", "s", "ms", "us", "ns"]
NESTED = ["place.floor", "place.at.day", "place.at.name"]
NOT_ORDERED = "flag"


def shown(draw: random.Random, name: str) -> str:
    """A value to compare with, of those in the column or near them."""
    number = draw.randrange(ROWS + 4)
    if name == "flag":
        return draw.choice(("true", "false"))
    if name == "place.floor":
        return str(number // GROUP)
    if name == "place.at.name":
        return f"'n{number // 10}'"
    if "day" in name:
        return f"'{DAY + timedelta(days=number)}'"
    if "clock" in name:
        return f"'{CLOCK[number % ROWS]}'"
    return f"'{MOMENT + timedelta(hours=number)}'"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "way", [WAYS[0], *(pytest.param(way, marks=pytest.mark.thorough) for way in WAYS[1:])], ids=str
)
def test_no_row_is_left_out_and_most_row_groups_are(way: dict[str, Any]) -> None:
    pq.write_table(table(), "t.parquet", row_group_size=GROUP, **way)
    write_table(table(), "t.arrow", GROUP)
    found, plain, draw = opened("t.parquet"), opened("t.arrow"), random.Random(str(way))
    for name in [*FLAT, *NESTED]:
        skipped = 0
        signs = ("==", "!=") if name == NOT_ORDERED else ("==", "!=", "<", "<=", ">", ">=")
        for sign in signs:
            condition = Filter(condition_of(f"{name} {sign} {shown(draw, name)}"))
            condition.check(found)
            for number, may in enumerate(condition.groups(found)):
                skipped += not may
                rows = condition.rows(plain, number)
                assert condition.rows(found, number).tolist() == rows.tolist()
                assert may or not len(rows), (name, sign, number)
        assert skipped >= len(signs), name


def test_rows_by_a_moment_with_its_zone() -> None:
    pq.write_table(table(), "t.parquet", row_group_size=GROUP)
    found = opened("t.parquet")
    condition = Filter(condition_of("zone >= '1970-01-01 00:00:00Z' and zone < '1970-01-01T06:00:00Z'"))
    assert condition.groups(found) == [True, True, False, False, False, False]
    rows = [condition.rows(found, number) + number * GROUP for number in range(found.groups)]
    assert np.concatenate(rows).tolist() == [4, 5, 6, 7, 8, 9]


def test_values_that_are_no_times() -> None:
    pq.write_table(table(), "t.parquet", row_group_size=GROUP)
    for column, value, hint in (
        ("clock", "'12:00:00.0005'", "'12:00:00'"),
        ("clock", "12", "'12:00:00'"),
        ("day", "'12:00:00'", "'2026-01-31'"),
        ("us", "'x'", "'2026-01-31', or '2026-01-31 12:00:00'"),
        ("zone", "'2026-01-31'", "'2026-01-31 12:00:00Z'"),
    ):
        with pytest.raises(DataError, match=f"column '{column}' cannot be compared with") as caught:
            Filter(condition_of(f"{column} == {value}")).check(opened("t.parquet"))
        assert caught.value.hint == f"write for instance {hint}, in quotes"


def test_fields_of_structs_are_streams_and_keys(kind: str) -> None:
    path = write_table(table().filter(pa.array([i % 11 != 5 for i in range(ROWS)])), f"t.{kind}", GROUP)
    streams = StreamDefs(
        x=StreamDef(field=["place.floor", "row"], shape=2),
        y=StreamDef(field="place.at.name", shape=5, is_sparse=True),
    )
    source = MinibatchSource(MAKERS[kind](path, streams, filter="place.floor > 2"), randomize=False, max_sweeps=1)
    (found,) = source.arrays(100)
    kept = [i for i in range(ROWS) if i % 11 != 5 and i // GROUP > 2]
    assert found["x"].tolist() == [[i // GROUP, i] for i in kept]
    assert found["y"].indices.tolist() == [i // 10 for i in kept]
    source.close()


def test_fields_that_are_not_there(kind: str) -> None:
    path = write_table(table(), f"t.{kind}", GROUP)
    for field, message, hint in (
        ("place.flor", f"{path} has no column 'place.flor'", "did you mean 'place.floor'?"),
        ("place.floor.x", "has no column 'place.floor.x'", ""),
        ("place", "(its fields are place.floor, place.at.day, place.at.name)", ""),
        ("place.floor", "column 'place.floor': a value is missing (null)", 'filter="place.floor is not null"'),
    ):
        with pytest.raises(DataError) as caught:
            source = MinibatchSource(MAKERS[kind](path, StreamDefs(x=StreamDef(field=field, shape=1))), max_sweeps=1)
            list(source.arrays(100))
        assert message in str(caught.value) and hint in (caught.value.hint or ""), (field, caught.value.hint)


def test_a_column_with_a_dot_counts_before_a_field() -> None:
    both = pa.table({"a.b": [1.0, 2.0], "a": [{"b": 5.0}, {"b": 6.0}]})
    write_table(both, "t.arrow", 2)
    assert opened("t.arrow").read(0, ["a.b"])["a.b"][0].to_pylist() == [1, 2]
    write_table(pa.table({"a.c": [{"b": 5.0}], "a": [{"c": 1.0}]}), "u.parquet", 2)
    assert opened("u.parquet").read(0, ["a.c.b"])["a.c.b"][0].to_pylist() == [5]


@pytest.mark.malformed
def test_damaged_schemas_of_times() -> None:
    """Bytes of the footer changed at random: ranges or none, and no exception but of a file that cannot be read."""
    pq.write_table(table(), "t.parquet", row_group_size=GROUP)
    content, draw = Path("t.parquet").read_bytes(), random.Random(5)
    length = int.from_bytes(content[-8:-4], "little")
    names = itertools.cycle([*FLAT, *NESTED])
    for _ in range(150):
        mutated = bytearray(content)
        for _ in range(draw.choice((1, 2, 4))):
            mutated[draw.randrange(len(content) - 8 - length, len(content) - 8)] = draw.randrange(256)
        Path("m.parquet").write_bytes(mutated)
        name = next(names)
        condition = Filter(condition_of(f"{name} == {shown(draw, name)}"))
        try:
            found = opened("m.parquet")
            condition.check(found)
            assert len(condition.groups(found)) == found.groups
        except DataError as error:
            assert "\n" not in error.message
