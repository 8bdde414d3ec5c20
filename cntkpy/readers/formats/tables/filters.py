"""Conditions as Arrow expressions: which row groups may have rows that fulfil them, and which rows do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, copysign, floor, inf, isfinite
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple

import numpy as np

from cntkpy.readers.common.bounds import most_decoded
from cntkpy.readers.errors import DataError

from .columns import is_number, is_text
from .conditions import Comparison, Condition, Draw, Value, comparisons, draws
from .files import TableFile, guarded, too_large
from .footer import Statistics, number_of
from .library import arrow, compute
from .partitions import PartitionValue
from .plain import expanded_bytes

SIGNS: dict[str, Callable[[Any, Any], Any]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_ROW = "row"
_DAY = 86_400_000
"""Milliseconds."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Filter:
    """A condition that rows have to fulfil. A comparison with a missing value (null) is not fulfilled.

    Args:
        condition: what the text says.
    """

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self.columns = list(dict.fromkeys(comparison.column for comparison in comparisons(condition)))
        self._seeds = sorted({draw.seed for draw in draws(condition)})

    def check(self, table: TableFile) -> None:
        """Refuse a table without these columns, or with columns that cannot be compared so.

        Raises:
            DataError: it names the file and the column.
        """
        for comparison in comparisons(self.condition):
            kind = _plain(table.field(comparison.column).type)
            for value in comparison.values:
                if (hint := _mismatch(kind, value)) is not None:
                    column = f"{table.path}: column '{comparison.column}'"
                    stored = _plain(table.stored_field(comparison.column).type)
                    message = f"{column} cannot be compared with {_shown(value)}: it is {stored}."
                    raise DataError(message, path=table.path, hint=hint)

    def groups(self, table: TableFile) -> list[bool]:
        """Which row groups may have such rows, as the statistics of the file and the names of its folders say."""
        known = table.known_of_groups()
        if len(known) != table.groups:
            known = [dict[str, Statistics]() for _ in range(table.groups)]
        kinds = {name: _plain(table.field(name).type) for name in self.columns}
        same = {name for name in self.columns if _plain(table.stored_field(name).type) == kinds[name]}
        folders = {name: _range_of_folder(table.folders[name]) for name in self.columns if name in table.folders}
        kept: list[bool] = []
        for partition in known:
            ranges = {
                name: _range(partition[name], kinds[name])
                for name in self.columns
                if name in partition and name in same
            } | folders
            kept.append(may_hold(self.condition, ranges, kinds)[0])
        return kept

    def rows(self, table: TableFile, group: int, first: int = 0) -> np.ndarray:
        """Return the numbers of the rows of a row group that fulfil the condition, int64[n], ascending.

        Args:
            table: the file.
            group: the row group.
            first: rows of all files before it.
        """
        pa = arrow()
        data = table.read(group, self.columns) if self.columns else {}
        with guarded(f"{table.path}, row group {group}: the filter cannot be used", table.path):
            columns = {
                name: pa.chunked_array(
                    [_written_out(array, table, name) for array in arrays], _plain(table.field(name).type)
                )
                for name, arrays in data.items()
            }
            count = sum(map(len, next(iter(data.values())))) if data else table.rows()[group]
            kinds = {name: _plain(table.field(name).type) for name in self.columns}
            names: list[str] = [self._free_name(f"{_ROW}{i}") for i in range(1 + len(self._seeds))]
            drawn = [pa.array(draw(first + np.arange(count), seed)) for seed in self._seeds]
            every = pa.table([*columns.values(), pa.array(np.arange(count)), *drawn], names=[*columns, *names])
            expression = _expression(self.condition, kinds, dict(zip(self._seeds, names[1:], strict=True)))
            return every.filter(expression).column(names[0]).to_numpy()

    def _free_name(self, name: str) -> str:
        """Return a name that no column of the condition has."""
        while name in self.columns:
            name += "_"
        return name


def draw(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return the number that `random(seed)` is in a row, float64[n] in [0, 1).

    It is a function of the seed and of the number of the row alone: two rounds of the mixing function of SplitMix64.

    Args:
        rows: the numbers of rows, counted through all files, int64[n].
        seed: a whole number from 0 on.
    """
    state = rows.astype(np.uint64) ^ _mixed(np.array([seed], np.uint64))
    return (_mixed(state) >> np.uint64(11)) * 2.0**-53


def _mixed(state: np.ndarray) -> np.ndarray:
    """Return a step of SplitMix64, uint64[n]."""
    with np.errstate(over="ignore"):
        state = state + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))


def _plain(kind: Any) -> Any:
    """Return a type, that of its values for a dictionary."""
    return kind.value_type if arrow().types.is_dictionary(kind) else kind


def _written_out(array: Any, table: TableFile, column: str) -> Any:
    """Return an array without its dictionary.

    Raises:
        DataError: it would have more bytes than are believed.
    """
    if not arrow().types.is_dictionary(array.type):
        return array
    if (nbytes := expanded_bytes(array)) > most_decoded(table.size):
        raise too_large(table.path, f"column '{column}'", nbytes, table.size)
    return array.cast(array.type.value_type)


class Range(NamedTuple):
    """Limits of the values of a column in a row group; None: unknown. Texts are bytes of UTF-8.

    Attributes:
        low, high: no value is below or above.
        has_nulls: whether there are missing values.
        has_values: whether there are others.
    """

    low: Any = None
    high: Any = None
    has_nulls: bool = True
    has_values: bool = True


def may_hold(condition: Condition, ranges: Mapping[str, Range], kinds: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return whether a condition may be true in a row, and whether it may be false; with null it is neither.

    Args:
        condition: what is asked.
        ranges: what is known of columns.
        kinds: types of columns.
    """
    if isinstance(condition, Comparison):
        return _may_compare(condition, ranges.get(condition.column, Range()), kinds[condition.column])
    if isinstance(condition, Draw):
        return True, True
    true, false = zip(*(may_hold(part, ranges, kinds) for part in condition.parts), strict=True)
    if condition.word == "not":
        return false[0], true[0]
    return (all(true), any(false)) if condition.word == "and" else (any(true), all(false))


def _may_compare(comparison: Comparison, known: Range, kind: Any) -> tuple[bool, bool]:
    if comparison.sign == "null":
        return known.has_nulls, known.has_values
    if not known.has_values:
        return False, False
    low, high = known.low, known.high
    if low is None or high is None:
        return True, True
    floating = arrow().types.is_floating(kind)  # NaN, which is different from all, is in no statistics
    values = [_comparable(value, kind) for value in comparison.values]
    if comparison.sign in ("==", "in"):
        only = low == high and low in values
        return any(low <= value <= high for value in values), floating or not only
    value = values[0]
    if comparison.sign == "!=":
        return floating or not low == high == value, low <= value <= high
    true, false = (low, high) if comparison.sign in ("<", "<=") else (high, low)
    sign = SIGNS[comparison.sign]
    return bool(sign(true, value)), floating or not sign(false, value)


def _comparable(value: Value, kind: Any) -> Any:
    """Return a value as statistics have it."""
    if arrow().types.is_temporal(kind):
        return _counted(_scalar(value, kind))
    if isinstance(value, str):
        return value.encode()
    return float(np.float32(value)) if kind == arrow().float32() else value


def _counted(scalar: Any) -> int:
    """Return a date in days, a time of day or a timestamp in nanoseconds."""
    types, kind = arrow().types, scalar.type
    if types.is_date(kind):
        return scalar.value if types.is_date32(kind) else scalar.value // _DAY
    return scalar.value * (10**9 // _PER_SECOND[kind.unit])


def _range(known: Statistics, kind: Any) -> Range:
    types = arrow().types
    nulls = known.nulls != 0
    if is_text(kind):
        return Range(known.low, known.high, nulls)
    if types.is_date(kind) or types.is_boolean(kind):
        low, high = (number_of(bound, signed=True, floating=False) for bound in (known.low, known.high))
        return Range(low, high, nulls)
    if types.is_time(kind) or types.is_timestamp(kind):
        if known.per_second is None:
            return Range(None, None, nulls)
        scale = 10**9 // known.per_second
        low, high = (number_of(bound, signed=True, floating=False) for bound in (known.low, known.high))
        return Range(None if low is None else low * scale, None if high is None else high * scale, nulls)
    if types.is_integer(kind) or kind in (arrow().float32(), arrow().float64()):
        floating = types.is_floating(kind)
        signed = floating or types.is_signed_integer(kind)
        low = number_of(known.low, signed=signed, floating=floating)
        high = number_of(known.high, signed=signed, floating=floating)
        return Range(low, high, nulls)
    return Range(None, None, nulls)


def _range_of_folder(item: PartitionValue) -> Range:
    if item.value is None:
        return Range(None, None, True, False)
    value = item.value.encode() if isinstance(item.value, str) else item.value
    return Range(value, value, False)


def _expression(condition: Condition, kinds: Mapping[str, Any], drawn: Mapping[int, str]) -> Any:
    """Return a condition as a `pyarrow.compute.Expression`; drawn: the columns of random numbers, by seed."""
    if isinstance(condition, Comparison):
        return _compared(condition, kinds[condition.column])
    if isinstance(condition, Draw):
        return SIGNS[condition.sign](compute().field(drawn[condition.seed]), condition.value)
    expression, *expressions = (_expression(part, kinds, drawn) for part in condition.parts)
    for operand in expressions:
        expression = expression & operand if condition.word == "and" else expression | operand
    return ~expression if condition.word == "not" else expression


def _compared(comparison: Comparison, kind: Any) -> Any:
    column = compute().field((comparison.column,))
    if comparison.sign == "null":
        return column.is_null()
    expression, *expressions = (
        _simple(column, "==" if comparison.sign == "in" else comparison.sign, value, kind)
        for value in comparison.values
    )
    for operand in expressions:
        expression = expression | operand
    return expression


def _simple(column: Any, sign: str, value: Value, kind: Any) -> Any:
    """Return a comparison with one value. Whole numbers are compared exactly, whatever the value is."""
    if arrow().types.is_integer(kind) and isinstance(value, int | float):
        sign, value = _as_whole(sign, value)
        low, high = _limits(kind)
        if isinstance(value, float) or not low <= value <= high:  # true, or false, for all numbers; null stays null
            holds = SIGNS[sign](0, value)
            return column == column if holds else column != column
    return SIGNS[sign](column, _scalar(value, kind))


def _as_whole(sign: str, value: float) -> tuple[str, float]:
    """Return a comparison of whole numbers that says the same; the value is a float where there is none."""
    if isinstance(value, int) or not isfinite(value):
        return sign, value
    if value.is_integer() or sign in ("==", "!="):
        return sign, int(value) if value.is_integer() else inf
    return ("<=", floor(value)) if sign in ("<", "<=") else (">=", ceil(value))


def _limits(kind: Any) -> tuple[int, int]:
    """Return the smallest and the largest number of a type of whole numbers."""
    bits, signed = kind.bit_width, arrow().types.is_signed_integer(kind)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def _scalar(value: Value, kind: Any) -> Any:
    """Return a value as one of a type."""
    pa = arrow()
    if is_text(kind):
        return pa.scalar(value, kind)
    if pa.types.is_temporal(kind):
        return _moment(value, kind)
    if pa.types.is_floating(kind) and isinstance(value, int):
        value = float(value) if abs(value) < 1 << 1023 else copysign(inf, value)
    return pa.scalar(value, kind)


def _moment(value: Value, kind: Any) -> Any:
    """Return a text as a date, a timestamp or a time of day.

    Raises:
        ArrowException, TypeError: it is none, or one with smaller parts of a second than the type has.
    """
    pa = arrow()
    if not pa.types.is_time(kind):
        return pa.scalar(value, pa.string()).cast(kind)
    if not isinstance(value, str):
        raise TypeError(value)
    count, remainder = divmod(
        pa.scalar(f"1970-01-01 {value}").cast(pa.timestamp("ns")).value, 10**9 // _PER_SECOND[kind.unit]
    )
    if remainder:
        raise pa.ArrowInvalid(value)
    return pa.scalar(count, kind)


def _mismatch(kind: Any, value: Value) -> str | None:
    """Return a hint for a value that cannot be compared with a column; None if it can be."""
    pa = arrow()
    if is_text(kind):
        return None if isinstance(value, str) else f"write '{value}' in quotes"
    if pa.types.is_boolean(kind):
        return None if isinstance(value, bool) else "write true or false"
    if is_number(kind):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if number else "write a number, without quotes"
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        try:
            _moment(value, kind)
        except (pa.ArrowException, TypeError):
            return f"write for instance {_example(kind)}, in quotes"
        return None
    hint = "filters compare numbers, texts, booleans, dates and times"
    if pa.types.is_struct(kind):
        hint += "; a field of it is a column, too: COLUMN.FIELD"
    return hint


def _example(kind: Any) -> str:
    types = arrow().types
    if types.is_time(kind):
        return "'12:00:00'"
    if types.is_timestamp(kind) and kind.tz is not None:
        return "'2026-01-31 12:00:00Z'"
    return "'2026-01-31', or '2026-01-31 12:00:00'" if types.is_timestamp(kind) else "'2026-01-31'"


def _shown(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
