"""Pictures in a column of bytes, in any format that OpenCV decodes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from threading import Lock
from typing import Any

import numpy as np

from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.contracts import DEFAULT_MEMORY
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.image.decode import PictureError

from .files import TableFile
from .groups import RowGroup
from .library import arrow

BYTES = "bytes"
"""The field of a struct that has the picture, as the data sets of Hugging Face have it."""


class PictureColumn:
    """The encoded pictures of a column, numbered from 0 through all row groups.

    The row groups that were asked for last are kept, up to 256 MB of them.

    Args:
        groups: the row groups.
        column: has bytes, or structs with a field `bytes`.
        keys: of the rows, uint64[N]; None: their numbers.
    """

    classes: np.ndarray | None = None
    """They are other columns."""

    def __init__(self, groups: Sequence[RowGroup], column: str, keys: np.ndarray | None = None) -> None:
        self._groups, self._column, self.keys = list(groups), column, keys
        self._first = starts_of([group.rows for group in groups])
        self._kept: OrderedDict[int, list[Any]] = OrderedDict()
        self._lock = Lock()
        self.path = groups[0].table.path

    def __len__(self) -> int:
        return int(self._first[-1])

    @property
    def files(self) -> list[str]:
        """The tables."""
        return list(dict.fromkeys(group.table.path for group in self._groups))

    def name(self, record: int) -> str:
        """Return the column; `place` says which row it is."""
        del record
        return self._column

    def place(self, record: int) -> str:
        """Return the place of a picture, for messages."""
        group, row = self._at(record)
        return self._groups[group].place(row, self._column).text()

    def source(self, record: int) -> tuple[str, int | None]:
        """Return the file of a picture; a row has no line."""
        group, row = self._at(record)
        return self._groups[group].place(row, self._column).path, None

    def encoded(self, record: int) -> bytes:
        """Return the bytes of a picture.

        Raises:
            PictureError: the value is missing (null).
        """
        group, row = self._at(record)
        for array in self._arrays(group):
            if row < len(array):
                value = array[row].as_py()
                if value is None:
                    raise PictureError("the value is missing (null)", hint="leave such rows out with a filter")
                return value
            row -= len(array)
        raise IndexError(record)

    def close(self) -> None:
        """Let go of the row groups."""
        with self._lock:
            self._kept.clear()

    def _at(self, record: int) -> tuple[int, int]:
        """Return the row group of a record, and its row there."""
        group = int(np.searchsorted(self._first, record, side="right")) - 1
        return group, record - int(self._first[group])

    def _arrays(self, number: int) -> list[Any]:
        """Return the pictures of a row group: read by one thread, the others wait for it."""
        with self._lock:
            if number not in self._kept:
                cells = self._groups[number].read([self._column])[self._column]
                self._kept[number] = [
                    cell.field(BYTES) if arrow().types.is_struct(cell.type) else cell for cell in cells
                ]
                sizes = (sum(array.nbytes for array in arrays) for arrays in reversed(self._kept.values()))
                kept = sum(size <= DEFAULT_MEMORY for size in accumulate(sizes))
                while len(self._kept) > max(1, kept):
                    self._kept.popitem(last=False)
            self._kept.move_to_end(number)
            return self._kept[number]


def check_pictures(table: TableFile, column: str) -> None:
    """Refuse a column that has no bytes.

    Raises:
        DataError: it names the file and the column.
    """
    types, kind = arrow().types, table.field(column).type
    inner = kind
    if types.is_struct(kind) and kind.get_field_index(BYTES) >= 0:
        inner = kind.field(BYTES).type
    if not any(test(inner) for test in (types.is_binary, types.is_large_binary, types.is_binary_view)):
        raise DataError(
            f"{table.path}: column '{column}' cannot have pictures: it is {kind}.",
            path=table.path,
            hint="pictures are columns of bytes (binary), or structs with a field 'bytes'; paths stand in a map file",
        )
