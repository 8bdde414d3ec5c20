"""CSV files as tables: blocks of whole rows are row groups, and columns have the types that fit all of their cells."""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isinf
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import shorten

from ..files import TableFile, guarded
from ..library import arrow, broken, compute
from ..partitions import Partition
from .text import MISSING, CsvText, TextBlock, is_number

log = logging.getLogger("cntkpy.readers")


@dataclass(frozen=True)
class _Group:
    """A row group: its text, its rows, and which rows of the text do not count (int64[n]; None: all do)."""

    block: TextBlock
    rows: int
    blank: np.ndarray | None


class CsvTable(TableFile):
    """A CSV file.

    It is parsed once when the object is made: for its rows, and for the types of columns, which have to fit all of
    their cells. These are whole numbers, numbers, booleans, dates, times, and else texts. Blanks around a cell do not
    count, an empty cell is a missing value.

    Args:
        path: the file, or a URL; it may be compressed.
        partition: the columns that are folders.
        texts: columns that are texts whatever their cells look like.
    """

    kind = "CSV"

    def __init__(self, path: str, partition: Partition | None = None, texts: Collection[str] = ()) -> None:
        self._texts = frozenset(texts)
        self._read_groups: list[_Group] = []
        self._odd: dict[str, TextBlock] = {}
        """Row of the first cell that is no number, by column of texts."""
        self._spaced: set[str] = set()
        """Columns with blanks around cells that are no texts: pyarrow takes them for texts."""
        self._infinite: set[str] = set()
        """Columns whose infinite values were looked at."""
        super().__init__(path, partition)

    @property
    def first_cells(self) -> list[str] | None:
        """The cells of the first row of a file without a header; None where it has one."""
        return None if self._text.header is not None else self._text.first

    def rows(self, column: str | None = None) -> list[int]:
        """Rows of every row group."""
        return [group.rows for group in self._read_groups]

    def bytes_of_groups(self) -> list[int]:
        """Bytes of the text."""
        return [group.block.size for group in self._read_groups]

    def row_name(self, group: int, row: int, column: str) -> str:
        """Return the line in which a row ends, and the column."""
        result = self._read_groups[group]
        line, _ = self._text.row(result.block, row)
        return f"{self.path}:{line}, column '{column}'"

    def detail(self, column: str) -> str:
        """Of a column of texts, the first cell that is no number."""
        if column not in self._odd:
            return ""
        number = self._text.names.index(column)
        for line, cells in self._text.rows(self._odd[column]):
            if cells[number].strip() not in MISSING and not is_number(cells[number]):
                return f" (line {line} has '{shorten(cells[number].strip(), 40)}')"
        return ""

    @contextmanager
    def opened(self, group: int | None = None) -> Generator[Any]:
        """Nothing is opened for pyarrow: it gets the text of a block. What it raises becomes an error of the file."""
        with guarded(f"{self.path} cannot be read as {self.kind}", self.path, "was it changed while it was read?"):
            yield None

    def with_kinds(self, kinds: Sequence[Any]) -> None:
        """Give the columns of the file other types."""
        pa = arrow()
        self.schema = pa.schema([pa.field(name, kind) for name, kind in zip(self.schema.names, kinds, strict=True)])

    def _open(self, path: str) -> None:
        self._text = CsvText(path)
        self.path = self._text.path

    def _schema(self, file: Any) -> Any:
        pa, text = arrow(), self._text
        kinds = [pa.string() if name in self._texts else pa.null() for name in text.names]
        for block in text.blocks():
            known = [pa.string() if pa.types.is_string(kind) else None for kind in kinds]
            table = text.parsed(block, known)
            for i, name in enumerate(text.names):
                column = table.column(i)
                kind = _kind_of(column, known[i] is not None)
                if kind != column.type:
                    self._spaced.add(name)
                kinds[i] = joined_kind(kinds[i], kind)
                if pa.types.is_string(kinds[i]) and name not in self._texts:
                    self._odd.setdefault(name, block)
            blank = _blank_rows(table)
            if blank is not None:  # or rows of NA
                blank = _blank_rows(text.parsed(block, [pa.string()] * text.width))
            rows = table.num_rows - (0 if blank is None else len(blank))
            if rows:
                self._read_groups.append(_Group(block, rows, blank))
        self.size = text.data.size
        self._spaced -= {name for name, kind in zip(text.names, kinds, strict=True) if pa.types.is_string(kind)}
        return pa.schema(list(zip(text.names, kinds, strict=True)))

    def _groups(self, file: Any) -> int:
        return len(self._read_groups)

    def _read(self, file: Any, group: int, columns: Sequence[str], threads: bool) -> Any:
        pa, result = arrow(), self._read_groups[group]
        kinds = {name: self.schema.field(name).type for name in columns}
        read = self._parsed(result.block, kinds, threads)
        for name, kind in kinds.items():
            is_new = pa.types.is_floating(kind) and name not in self._infinite
            if is_new and compute().any(compute().is_inf(read.column(name))).as_py():
                self._infinite.add(name)
                self._report_infinite(result.block, name)
        if result.blank is not None:
            kept = np.ones(read.num_rows, bool)
            kept[result.blank] = False
            read = read.filter(pa.array(kept))
        return read

    def _report_infinite(self, block: TextBlock, name: str) -> None:
        """Log the warning of the first number of a column in a block that is infinite, and not called so."""
        number = self._text.names.index(name)
        for line, cells in self._text.rows(block):
            cell = cells[number].strip()
            if is_number(cell) and isinf(float(cell)) and "inf" not in cell.lower():
                place = f"{self.path}:{line}, column '{name}'"
                log.warning("%s: '%s' is too large for its type, and read as infinite.", place, shorten(cell, 40))
                return

    def _parsed(self, block: TextBlock, kinds: dict[str, Any], threads: bool) -> Any:
        """Columns of a block, of these types."""
        pa = arrow()
        raw = {name: pa.string() if name in self._spaced else kind for name, kind in kinds.items()}
        table = self._text.parsed(block, [raw.get(name) for name in self._text.names], list(kinds), threads)
        columns: list[Any] = []
        for name, kind in kinds.items():
            column = table.column(name)
            if pa.types.is_string(column.type):
                column = _trimmed(column, () if pa.types.is_string(kind) else MISSING).cast(kind)
            columns.append(column)
        return pa.table(columns, names=list(kinds))


def joined_kind(first: Any, second: Any) -> Any:
    """Return the type that fits the cells of two: whole numbers are numbers, dates are times, what does not fit is
    text.
    """
    types = arrow().types
    if first == second or types.is_null(second):
        return first
    if types.is_null(first):
        return second
    if all(types.is_integer(kind) or types.is_floating(kind) for kind in (first, second)):
        return arrow().float64()
    if all(types.is_date(kind) or (types.is_timestamp(kind) and kind.tz is None) for kind in (first, second)):
        stamps = {kind.unit for kind in (first, second) if types.is_timestamp(kind)}
        return arrow().timestamp("ns" if "ns" in stamps else "s")
    return arrow().string()


def give_same_kinds(tables: Iterable[CsvTable]) -> None:
    """Give columns of the same name the same type in all files."""
    several = list(tables)
    names = {name for value in several for name in value.schema.names}
    kinds: dict[str, Any] = {name: arrow().null() for name in names}
    for value in several:
        for field in value.schema:
            kinds[field.name] = joined_kind(kinds[field.name], field.type)
    for cell in several:
        cell.with_kinds([kinds[name] for name in cell.schema.names])


def _kind_of(column: Any, text: bool) -> Any:
    """Return the type of the cells of a column, as pyarrow found it, or without the blanks around them."""
    pa = arrow()
    if text or not pa.types.is_string(column.type):
        return column.type
    trimmed = _trimmed(column, MISSING)
    if trimmed.null_count == len(trimmed):
        return pa.null()
    if trimmed.null_count == column.null_count and trimmed.equals(column):
        return pa.string()
    return next((kind for kind in _kinds() if _cast_or_none(trimmed, kind) is not None), pa.string())


def _kinds() -> tuple[Any, ...]:
    """Types in the order in which pyarrow tries them on CSV."""
    pa = arrow()
    return pa.int64(), pa.bool_(), pa.date32(), pa.timestamp("s"), pa.timestamp("ns"), pa.float64()


def _cast_or_none(column: Any, kind: Any) -> Any:
    try:
        return column.cast(kind)
    except broken():
        return None


def _trimmed(column: Any, missing: Collection[str]) -> Any:
    """Texts without the blanks around them; empty ones, and those of `missing`, are null."""
    trimmed = compute().utf8_trim_whitespace(column)
    nulls = compute().is_in(trimmed, value_set=arrow().array(["", *missing]))
    return compute().if_else(nulls, arrow().scalar(None, arrow().string()), trimmed)


def _blank_rows(table: Any) -> np.ndarray | None:
    """Return the rows in which no cell has anything, int64[n]; None if there are none."""
    blank: Any = None
    for column in table.columns:
        if arrow().types.is_string(column.type):
            empty = compute().equal(compute().utf8_trim_whitespace(column), "")
        elif column.null_count:
            empty = column.is_null()
        else:
            return None
        blank = empty if blank is None else compute().and_(blank, empty)
        if not compute().any(blank).as_py():
            return None
    indices = np.flatnonzero(blank.to_numpy())
    return indices if len(indices) else None
