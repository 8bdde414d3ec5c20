"""The row groups of several tables, one after the other, and the rows that a filter leaves of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cntkpy.readers.common.beginnings import unless_cut
from cntkpy.readers.common.bounds import most_decoded
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.errors import DataError

from .columns import Place
from .files import TableFile, too_large
from .filters import Filter
from .library import arrow

ROW_BYTES = 8
"""Bytes of the place of a row in an order."""
log = logging.getLogger("cntkpy.readers")


@dataclass(frozen=True, eq=False)
class RowGroup:
    """A row group that has rows to be read.

    Attributes:
        table: its file.
        number: its number in the file.
        first: rows of all files before it.
        whole: rows of it in the file.
        chosen: int32[n], the numbers of the rows that a filter leaves; None: all of them.
        nbytes: about the size of its decoded columns.
    """

    table: TableFile
    number: int
    first: int
    whole: int
    chosen: np.ndarray | None
    nbytes: int

    @property
    def rows(self) -> int:
        """Rows that are read."""
        return self.whole if self.chosen is None else len(self.chosen)

    def numbers(self) -> np.ndarray:
        """Return the numbers of its rows among those of all files, int64[rows]."""
        return self.first + (np.arange(self.whole) if self.chosen is None else self.chosen.astype(np.int64))

    def read(self, columns: Sequence[str], threads: bool = False) -> dict[str, list[Any]]:
        """Return its columns as arrays; those without rows are left out.

        Raises:
            DataError: it has another number of rows than before.
        """
        data = self.table.read(self.number, columns, threads)
        for column, arrays in data.items():
            if (count := sum(map(len, arrays))) != self.whole:
                raise changed(self.table.path, self.number, count, self.whole)
            if self.chosen is not None:
                arrays = _taken(arrays, self.chosen)
            data[column] = [array for array in arrays if len(array)]
        return data

    def placed(self, arrays: Sequence[Any], column: str) -> list[tuple[Any, Place]]:
        """Return the arrays of a column, each with its place."""
        rows = starts_of([len(array) for array in arrays]).tolist()
        return [(array, self.place(row, column)) for array, row in zip(arrays, rows[:-1], strict=True)]

    def place(self, row: int, column: str) -> Place:
        """Return the place of a row among those that are read."""
        return Place(self.table.path, self.number, row, column, self.chosen, self.table.row_name, self.table.size)


def row_groups(tables: Sequence[TableFile], condition: Filter | None = None) -> list[RowGroup]:
    """Return the row groups with rows to be read, in order.

    Args:
        tables: the files.
        condition: what rows have to fulfil. Its columns are read once, of the row groups that may have such rows.

    Raises:
        DataError: there are no rows.
    """
    result: list[RowGroup] = []
    first = groups = skipped = 0
    for table in tables:
        possible = [True] * table.groups if condition is None else condition.groups(table)
        counts = table.rows()
        if (nbytes := sum(counts) * ROW_BYTES) > most_decoded(table.size):
            part = f"the order of its {sum(counts):,} rows"
            raise too_large(table.path, part, nbytes, table.size, "read fewer rows, or write them to several files")
        sizes = zip(counts, table.bytes_of_groups(), possible, strict=True)
        for number, (rows, nbytes, may) in enumerate(sizes):
            chosen = None
            if condition is not None:
                skipped += not may
                chosen = condition.rows(table, number, first).astype(np.int32) if may else np.empty(0, np.int32)
                if len(chosen) == rows:
                    chosen = None
            share = nbytes if chosen is None else nbytes * len(chosen) // max(1, rows)
            group = RowGroup(table, number, first, rows, chosen, share)
            first, groups = first + rows, groups + 1
            if group.rows:
                result.append(group)
    if condition is not None:
        left = sum(row_group.rows for row_group in result)
        log.info("The filter leaves %d of %d rows; statistics skip %d of %d row groups.", left, first, skipped, groups)
    if not result:
        path = tables[0].path
        reason = f"{path}: no row fulfils the filter." if first else f"{path} has no rows."
        hint = "are the values right? `cntkpy preview` shows rows" if first else None
        raise unless_cut(DataError(reason, path=path, hint=hint))
    return result


def changed(path: str, group: int, count: int, expected: int) -> DataError:
    """Return the error of a row group with another number of rows than it had."""
    return DataError(
        f"{path}, row group {group}: it has {count} rows, but the file said {expected}.",
        path=path,
        hint="the file is damaged, or was changed while it was read",
    )


def _taken(arrays: Sequence[Any], chosen: np.ndarray) -> list[Any]:
    """Rows of arrays that lie one after the other, each by itself."""
    starts = starts_of([len(array) for array in arrays])
    cuts = np.searchsorted(chosen, starts)
    pieces = zip(arrays, starts.tolist(), cuts[:-1].tolist(), cuts[1:].tolist(), strict=False)
    return [item.take(arrow().array(chosen[a:b] - start)) for item, start, a, b in pieces]
