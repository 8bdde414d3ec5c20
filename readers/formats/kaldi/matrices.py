"""Rows of the matrices of a table, and whole tables as matrices."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from readers.errors import DataError

from .archive import OPEN_FILES, MappedFile, Table, open_table

TOUCHED = 256 << 20
"""Bytes that are read before the system is told that it may take the memory of mapped files back."""
_BLOCK = 256  # utterances whose headers are read together
_TOGETHER = 1 << 17  # values of matrices that are read together


class Matrices:
    """Rows of the matrices of a table, for some of its entries.

    Args:
        table: the table.
        which: int64[U], the entry of each utterance.
        dtype: float32 or float64, of the values.
        rows: int64[U], how many rows each has, where that is told beforehand; None: the archive is asked.
        told: who tells it, for messages.

    Raises:
        DataError: matrices are damaged or have different numbers of columns; also of `copy`.
    """

    def __init__(
        self, table: Table, which: np.ndarray, dtype: np.dtype | type = np.float32, rows: np.ndarray | None = None,
        told: str = "",
    ):  # fmt: skip
        self.table, self.which, self.dtype, self.told = table, which, np.dtype(dtype), told
        count = len(which)
        self._addresses = np.zeros((count, 7), np.int64)
        self._spans = np.zeros((count, 2), np.float32)
        self._known = np.zeros(count, bool)
        self._bytes = np.zeros(count, np.int64)
        self._touched = 0
        self._all_known = False
        self._held: dict[int, MappedFile] = {}
        self._few = len(table.files) <= OPEN_FILES
        self._lock = threading.Lock()
        if rows is None:
            table.require(which)
            _, rows = table.first_row(which)
        self.rows = rows
        self.columns = 0
        some = np.flatnonzero(rows > 0)[:1]
        if len(some):
            table.require(which[some])
            self.columns = int(table.first_column(which[some])[1][0])
            self._look(some)

    def keep(self, some: np.ndarray) -> None:
        """Go on with these utterances only."""
        self.which, self.rows, self._known = self.which[some], self.rows[some], self._known[some]
        self._addresses, self._spans, self._bytes = self._addresses[some], self._spans[some], self._bytes[some]

    def _look(self, some: np.ndarray) -> None:
        """Read the headers of these utterances, check them, and note where their values lie."""
        from . import matrix_kernels as m
        from . import object_kernels as k

        t, which = self.table, self.which[some]
        t.require(which)
        if (t.entries[which, k.KIND] == k.TEXT).any():
            self._parse_text()
        row, rows = t.first_row(which)
        col, cols = t.first_column(which)
        self._compare("rows", rows, self.rows[some], which, self.told)
        wide = np.where(rows > 0, self.columns, cols)
        self._compare("columns", cols, wide, which, "the first matrix of the table")
        entries = t.entries[which]
        table = self._addresses
        table[some, m.STORED], table[some, m.ALL_ROWS] = entries[:, k.KIND], entries[:, k.ROWS]
        table[some, m.ALL_COLS], table[some, m.ROW] = entries[:, k.COLS], row
        table[some, m.COL], table[some, m.USED] = col, rows
        self._bytes[some] = rows * entries[:, k.COLS] * 4
        for number in np.unique(t.file[which]).tolist():
            file, mine = t.files[number], t.file[which] == number
            if self._few:
                self._held[number] = file
            table[some[mine], m.ADDRESS] = file.data.ctypes.data + entries[mine, k.DATA]
            packed = np.flatnonzero(mine & (entries[:, k.KIND] >= k.CM) & (entries[:, k.KIND] <= k.CM3))
            if len(packed):  # smallest value and range stand 16 bytes before the values: `read_object` read past them
                at = entries[packed, k.DATA] - 16
                self._spans[some[packed]] = file.data[at[:, None] + np.arange(8)].view("<f4")
        if self._few:
            self._known[some] = True
            self._all_known = bool(self._known.all())

    def _look_around(self, some: np.ndarray) -> None:
        """Look at those of these utterances that are new, and at those beside them: all, if nothing is to be read."""
        missing = some[~self._known[some]]
        if not len(missing):
            return
        new = ~self._known
        if self.table.lines is not None:
            near = np.zeros(len(new) // _BLOCK + 1, bool)
            near[missing // _BLOCK] = True
            new &= np.repeat(near, _BLOCK)[: len(new)]
        self._look(np.flatnonzero(new))

    def _compare(self, what: str, found: np.ndarray, expected: np.ndarray, which: np.ndarray, told: str) -> None:
        wrong = np.flatnonzero(found != expected)
        if len(wrong):
            u = int(wrong[0])
            number = int(which[u])
            raise DataError(
                f"The matrix of {self.table.keys[number]} ({self.table.place(number)}) has {found[u]} {what}, but "
                f"{told} says {expected[u]}.", path=self.table.path,
            )  # fmt: skip

    def _parse_text(self) -> None:
        """Parse all matrices in text, once, into a temporary file of binary ones."""
        from . import object_kernels as k

        t = self.table
        t.require(np.arange(len(t)))
        some = np.flatnonzero(t.entries[:, k.KIND] == k.TEXT)
        size = self.dtype.itemsize
        with tempfile.TemporaryFile() as file:
            at = 0
            for number in some.tolist():
                row = t.entries[number]
                begin, end, rows, cols = row[[k.DATA, k.END, k.ROWS, k.COLS]].tolist()
                source = t.files[int(t.file[number])]
                values = parse_matrix(source, begin, end, rows * cols, t.keys[number])
                file.write(values.astype(self.dtype).tobytes())
                row[k.KIND], row[k.DATA] = (k.FM if size == 4 else k.DM), at
                at += rows * cols * size
            file.flush()
            made = MappedFile(t.path, file.fileno())
        t.file[some] = t.files.add(made)

    def copy(self, some: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows begin..end-1 of utterances, (n, columns), and where each begins; rows outside are those at the edge.

        Args:
            some: int64[m], numbers of utterances. begin, end: int64[m].

        Returns:
            dtype[n, columns], int64[m].
        """
        from . import matrix_kernels as m

        place = np.zeros(len(some) + 1, np.int64)
        np.cumsum(end - begin, out=place[1:])
        out = np.empty((int(place[-1]), self.columns), self.dtype)
        place = place[:-1]
        if self._few:
            if not self._all_known:
                with self._lock:
                    self._look_around(some)
            for file in self._held.values():
                file.check_size()
            m.copy_rows(self._addresses, self._spans, some, begin, end, place, out)
        else:
            self._copy_from_many(some, begin, end, place, out)
        self._touched += out.nbytes
        if self._touched > TOUCHED:
            self._touched = 0
            self.table.files.release()
        return out, place

    def each(self) -> Iterator[tuple[str, np.ndarray]]:
        """Key and matrix of every utterance in order, dtype[rows, columns]; some are read at a time."""
        ends = np.cumsum(self.rows)
        first = 0
        while first < len(ends):
            before = int(ends[first - 1]) if first else 0
            last = int(np.searchsorted(ends, before + max(_TOGETHER // max(self.columns, 1), 1)))
            some = np.arange(first, max(min(last, len(ends)), first + 1))
            rows, place = self.copy(some, np.zeros(len(some), np.int64), self.rows[some])
            for u, at, count in zip(self.which[some].tolist(), place.tolist(), self.rows[some].tolist(), strict=True):
                yield self.table.keys[u], rows[at : at + count]
            first = int(some[-1]) + 1

    def _copy_from_many(
        self, some: np.ndarray, begin: np.ndarray, end: np.ndarray, place: np.ndarray, out: np.ndarray
    ) -> None:
        """The same for more files than are kept mapped: some of them at a time."""
        from . import matrix_kernels as m

        with self._lock:
            numbers = self.table.file[self.which[some]]
            files = np.unique(numbers)
            for at in range(0, len(files), OPEN_FILES // 2):
                mine = np.flatnonzero(np.isin(numbers, files[at : at + OPEN_FILES // 2]))
                held = [self.table.files[number] for number in files[at : at + OPEN_FILES // 2].tolist()]
                self._look(np.unique(some[mine]))
                m.copy_rows(self._addresses, self._spans, some[mine], begin[mine], end[mine], place[mine], out)
                del held


def parse_matrix(file: MappedFile, begin: int, end: int, count: int, key: str) -> np.ndarray:
    """The `count` numbers of a matrix in text, float64[count], which end with `]` before `end`."""
    from . import text_kernels as k

    text = np.concatenate([file.data[begin:end], np.zeros(k.PADDING, np.uint8)])
    out, state = np.empty(count), np.zeros(2, np.int64)
    while not k.parse_reals(text, 0, out, state):
        at, done = state.tolist()
        word = bytes(text[at:]).split(None, 1)[0].replace(b";", b" ").replace(b"]", b" ").split()[0].rstrip(b"\0")
        try:
            if b"_" in word or done == count:
                raise ValueError
            out[done] = float(word)
        except ValueError:
            raise DataError(
                f"{file.path}, byte {begin + at}, key '{key}': {word[:40]!r} is not a number.", path=file.path
            ) from None  # fmt: skip
        state[:] = at + len(word), done + 1
    return out


def read_matrices(specifier: str, dtype: np.dtype | type = np.float32) -> Iterator[tuple[str, np.ndarray]]:
    """Key and matrix of every entry of a table.

    Args:
        specifier: `ark:FILE` or `scp:FILE`.
        dtype: float32, or float64 to keep the last digits of double matrices.

    Yields:
        The key, dtype[rows, columns].

    Raises:
        DataError: the table cannot be read, or its matrices differ in their number of columns.
    """
    from . import object_kernels as k

    table = open_table(specifier, k.MATRICES)
    yield from Matrices(table, np.arange(len(table)), dtype).each()


def raise_missing(key: str, table: Table, place: str) -> NoReturn:
    """An utterance is listed, but has no entry in a table."""
    raise DataError(
        f"Missing features for: {key}. It is listed in {place}, but {table.path} has no such key.", path=table.path,
        hint="leave it out of the list, or write the archive again",
    )  # fmt: skip
