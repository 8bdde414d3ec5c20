"""Rows of the matrices of a table, and whole tables as matrices."""

from __future__ import annotations

import io
import tempfile
import threading
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import numpy as np

from cntkpy.readers.common.file_bytes import FileBytes
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.errors import DataError

from .archive import OPEN_FILES, Table, open_table

HELD = 256 << 20
"""Bytes of matrices that are held in memory once a part of them was wanted; of more, parts are read each time."""
_UTTERANCES_TOGETHER = 256  # utterances whose headers are read together
_VALUES_TOGETHER = 1 << 16  # values of matrices that are read together


class _Headers:
    """Headers of the matrices of a table, read when they are needed.

    Args:
        table: The table.
        which: int64[U], the entry of each utterance.
        dtype: float32 or float64, of the values.
        rows: int64[U], the rows of each, where these are known beforehand; None: the archive is asked.
        owner: What knows them, for messages.

    Attributes:
        rows: int64[U].
        columns: Columns of all matrices.
        lines: int64[U, 8], what kernels need to know of each, see `matrix_kernels`.
        spans: float32[U, 2], smallest value and range of compressed matrices.
        complete: Whether all are known.
    """

    def __init__(self, table: Table, which: np.ndarray, dtype: np.dtype, rows: np.ndarray | None, owner: str):
        self.table, self.which, self.dtype, self._owner = table, which, dtype, owner
        self.lines = np.zeros((len(which), 8), np.int64)
        self.spans = np.zeros((len(which), 2), np.float32)
        self._known = np.zeros(len(which), bool)
        self.complete = False
        if rows is None:
            table.require(which)
            _, rows = table.first_row(which)
        self.rows = rows
        self.columns = 0
        some = np.flatnonzero(rows > 0)[:1]
        if len(some):
            table.require(which[some])
            self.columns = int(table.first_column(which[some])[1][0])
            self._read(some)

    def keep(self, some: np.ndarray) -> None:
        """Continue with these utterances only."""
        self.which, self.rows, self._known = self.which[some], self.rows[some], self._known[some]
        self.lines, self.spans = self.lines[some], self.spans[some]

    def _read(self, some: np.ndarray) -> None:
        """Read the headers of these utterances, check them, and note where their values lie."""
        from . import matrix_kernels as m
        from . import object_kernels as k

        t, which = self.table, self.which[some]
        t.require(which)
        if (t.entries[which, k.KIND] == k.TEXT).any():
            self._parse_text()
        row, rows = t.first_row(which)
        col, cols = t.first_column(which)
        self._compare("rows", rows, self.rows[some], which, self._owner)
        wide = np.where(rows > 0, self.columns, cols)
        self._compare("columns", cols, wide, which, "the first matrix of the table")
        entries = t.entries[which]
        table = self.lines
        table[some, m.STORED], table[some, m.ALL_ROWS] = entries[:, k.KIND], entries[:, k.ROWS]
        table[some, m.ALL_COLS], table[some, m.ROW] = entries[:, k.COLS], row
        table[some, m.COL], table[some, m.USED], table[some, m.BEGIN] = col, rows, entries[:, k.DATA]
        packed = np.flatnonzero((entries[:, k.KIND] >= k.CM) & (entries[:, k.KIND] <= k.CM3))
        for number in np.unique(t.file[which[packed]]).tolist():
            mine = packed[t.file[which[packed]] == number]
            spans = np.empty((len(mine), 2), np.float32)  # smallest value and range stand 16 bytes before the values
            sizes, places = np.full(len(mine), 8), 8 * np.arange(len(mine))
            t.files[number].pieces(spans.reshape(-1).view(np.uint8), entries[mine, k.DATA] - 16, sizes, places)
            self.spans[some[mine]] = spans
        self._known[some] = True
        self.complete = bool(self._known.all())

    def require(self, some: np.ndarray) -> None:
        """Read the headers of these utterances, and of those beside them: all, if nothing is to be read."""
        missing = some[~self._known[some]]
        if not len(missing):
            return
        new = ~self._known
        if self.table.lines is not None:
            near = np.zeros(len(new) // _UTTERANCES_TOGETHER + 1, bool)
            near[missing // _UTTERANCES_TOGETHER] = True
            new &= np.repeat(near, _UTTERANCES_TOGETHER)[: len(new)]
        self._read(np.flatnonzero(new))

    def _compare(self, quantity: str, counts: np.ndarray, expected: np.ndarray, which: np.ndarray, owner: str) -> None:
        from . import object_kernels as k

        wrong = np.flatnonzero(counts != expected)
        if len(wrong):
            u = int(wrong[0])
            number = int(which[u])
            is_vector = self.table.is_vector(number)
            is_row = is_vector or self.table.entries[number, k.ROWS] == 1  # text does not tell them apart
            raise DataError(
                f"The {'vector' if is_vector else 'matrix'} of {self.table.keys[number]} ({self.table.place(number)}) "
                f"has {counts[u]} {quantity}, but {owner} says {expected[u]}.",
                path=self.table.path,
                hint="a vector is one frame; with dim=1, each of its values is" if is_row else None,
            )

    def _parse_text(self) -> None:
        """Parse all matrices in text, once, into a temporary file of binary ones."""
        from . import object_kernels as k

        t = self.table
        t.require(np.arange(len(t)))
        some = np.flatnonzero(t.entries[:, k.KIND] == k.TEXT)
        size = self.dtype.itemsize
        file = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as it is read
        position = 0
        for number in some.tolist():
            row = t.entries[number]
            begin, end, rows, cols = row[[k.DATA, k.END, k.ROWS, k.COLS]].tolist()
            source = t.files[int(t.file[number])]
            values = parse_matrix(source, begin, end, rows * cols, t.keys[number])
            file.write(values.astype(self.dtype).tobytes())
            row[k.KIND], row[k.DATA] = (k.FM if size == 4 else k.DM), position
            position += rows * cols * size
            row[k.END] = position
        file.flush()
        t.file[some] = t.files.add(FileBytes(t.path, cast("io.FileIO", file)))


class Matrices:
    """Rows of the matrices of a table, for some of its entries.

    Args:
        table: the table.
        which: int64[U], the entry of each utterance.
        dtype: float32 or float64, of the values.
        rows: int64[U], the rows of each, where these are known beforehand; None: the archive is asked.
        owner: what knows them, for messages.

    Raises:
        DataError: matrices are damaged or have different numbers of columns; also of `copy`.
    """

    def __init__(
        self,
        table: Table,
        which: np.ndarray,
        dtype: np.dtype | type = np.float32,
        rows: np.ndarray | None = None,
        owner: str = "",
    ):
        self.table, self.dtype = table, np.dtype(dtype)
        self._held: list[np.ndarray] = []
        self._local = threading.local()
        self._bytes = 0
        self._lock = threading.Lock()
        self._headers = _Headers(table, which, self.dtype, rows, owner)

    @property
    def which(self) -> np.ndarray:
        """The entry of each utterance, int64[U]."""
        return self._headers.which

    @property
    def rows(self) -> np.ndarray:
        """The rows of each, int64[U]."""
        return self._headers.rows

    @property
    def columns(self) -> int:
        """Columns of all matrices."""
        return self._headers.columns

    def keep(self, some: np.ndarray) -> None:
        """Continue with these utterances only."""
        self._headers.keep(some)

    @property
    def held(self) -> bool:
        """True if all of them fit into the memory for matrices of which parts are wanted."""
        return int(self.rows.sum()) * self.columns * self.dtype.itemsize <= HELD

    def copy(self, some: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows begin..end-1 of utterances, (n, columns), and where each begins; rows outside are those at the edge.

        Args:
            some: int64[m], numbers of utterances. begin, end: int64[m].

        Returns:
            dtype[n, columns], int64[m].
        """
        from . import matrix_kernels as m

        starts = starts_of(end - begin)
        out = np.empty((int(starts[-1]), self.columns), self.dtype)
        if not self._headers.complete:
            with self._lock:
                self._headers.require(some)
        table = self._headers.lines[some]
        missing = np.flatnonzero(table[:, m.ADDRESS] == 0)
        if len(missing):
            parts = missing[2 * (end - begin)[missing] < table[missing, m.USED]]
            if len(parts) and self._bytes < HELD:
                self._hold(np.unique(some[parts]))
                table[parts, m.ADDRESS] = self._headers.lines[some[parts], m.ADDRESS]
        place = starts[:-1]
        if not len(missing) or table[:, m.ADDRESS].all():
            self._copy(_Rows(some, table, self._headers.spans[some], np.full(len(some), -1), begin, end), place, out)
            return out, place
        for mine, handles, held in self._opened(some):
            chosen = some[mine]
            rows = _Rows(chosen, table[mine], self._headers.spans[chosen], handles, begin[mine], end[mine])
            self._copy(rows, place[mine], out)
            del held
        return out, place

    def _opened(self, some: np.ndarray) -> Iterator[tuple[Any, np.ndarray, list[FileBytes]]]:
        """Which of these utterances are in some open files, the descriptor of each, and what keeps the files open."""
        number = self.table.file[self.which[some]]
        if (number == number[0]).all():
            file = self.table.files[int(number[0])]
            yield slice(None), np.full(len(some), file.descriptor), [file]
            return
        files = np.unique(number)
        for index in range(0, len(files), OPEN_FILES):
            chosen = files[index : index + OPEN_FILES]
            held = [self.table.files[number] for number in chosen.tolist()]
            mine = np.flatnonzero(np.isin(number, chosen))
            handles = np.array([file.descriptor for file in held])
            yield mine, handles[np.searchsorted(chosen, number[mine])], held

    def _copy(
        self,
        rows: _Rows,
        place: np.ndarray,
        out: np.ndarray,
        scratch: np.ndarray | None = None,
        context: int = 0,
        first: int = 0,
        stop: int | None = None,
    ) -> None:
        """Copy rows out of memory or files, to the row place[i] - before of `out`, for i from first to stop - 1."""
        from . import matrix_kernels as m

        scratch = self._scratch(rows.table) if scratch is None else scratch
        stop, done = len(rows.some) if stop is None else stop, first
        while (done := m.copy_rows(*rows.arrays, place, context, out, scratch, done, stop)) >= 0:
            row = slice(done, done + 1)
            table = rows.table[row].copy()
            self._read_with_retries(rows, done, table[0], scratch)
            _, spans, handles, begin, end = (array[row] for array in rows.arrays)
            if m.copy_rows(table, spans, handles, begin, end, place[row], context, out, scratch, 0, 1) >= 0:
                raise ValueError("rows that do not fit were asked for")
            done += 1

    def _read_with_retries(self, rows: _Rows, i: int, line: np.ndarray, scratch: np.ndarray) -> None:
        """Read rows that could not be read in one go; `FileBytes` tries again, or tells why not. line: of the table."""
        from . import matrix_kernels as m

        first, last = (
            min(max(int(position), 0), int(line[m.USED]) - 1) for position in (rows.begin[i], rows.end[i] - 1)
        )
        previous, size = m.part_of(line, first, last - first + 1)
        number = int(self.table.file[self.which[rows.some[i]]])
        self.table.files[number].read(scratch[:size], int(line[m.BEGIN] + previous))
        line[m.ADDRESS] = scratch.ctypes.data - previous

    def _scratch(self, table: np.ndarray) -> np.ndarray:
        """Memory of this thread for one matrix as it is stored, used again: fresh pages cost as much as reading."""
        from . import matrix_kernels as m

        missing = table[table[:, m.ADDRESS] == 0]
        sizes = (missing[:, m.ALL_ROWS] + 8) * missing[:, m.ALL_COLS] * m.SIZES[missing[:, m.STORED]]
        size = int(sizes.max(initial=0))
        have = getattr(self._local, "scratch", None)
        if have is None or len(have) < size:
            have = self._local.scratch = np.empty(size + size // 8, np.uint8)
        return have

    def _hold(self, some: np.ndarray) -> None:
        """Read whole matrices of these utterances into memory, and keep them, as far as there is room."""
        from . import matrix_kernels as m
        from . import object_kernels as k

        with self._lock:
            some = some[self._headers.lines[some, m.ADDRESS] == 0]
            entries = self.table.entries[self.which[some]]
            sizes = entries[:, k.END] - entries[:, k.DATA]
            fit = np.cumsum(sizes) + self._bytes <= HELD
            some, entries, sizes = some[fit], entries[fit], sizes[fit]
            starts = starts_of(sizes)
            block = np.empty(int(starts[-1]), np.uint8)
            number = self.table.file[self.which[some]]
            for item in np.unique(number).tolist():
                mine = number == item
                self.table.files[item].pieces(block, entries[mine, k.DATA], sizes[mine], starts[:-1][mine])
            self._held.append(block)
            self._bytes += len(block)
            self._headers.lines[some, m.ADDRESS] = block.ctypes.data + starts[:-1]

    def each(self) -> Iterator[tuple[str, np.ndarray]]:
        """Key and matrix of every utterance in order, dtype[rows, columns]; some are read at a time."""
        for first in range(0, len(self.which), _UTTERANCES_TOGETHER):
            some = np.arange(first, min(first + _UTTERANCES_TOGETHER, len(self.which)))
            with self._lock:
                self._headers.require(some)
            table, counts, keys = self._headers.lines[some], self.rows[some], self.which[some].tolist()
            scratch, zeros = self._scratch(table), np.zeros(len(some), np.int64)
            ((_, handles, held),) = self._opened(some)  # no more files than are kept open
            rows, ends = _Rows(some, table, self._headers.spans[some], handles, zeros, counts), np.cumsum(counts)
            ends, places = ends.tolist(), ends - counts
            most, a = max(_VALUES_TOGETHER // max(self.columns, 1), 1), 0
            while a < len(some):
                previous_end = ends[a - 1] if a else 0
                b = max(a + 1, bisect_left(ends, previous_end + most, a))
                out = np.empty((ends[b - 1] - previous_end, self.columns), self.dtype)
                self._copy(rows, places, out, scratch, previous_end, a, b)
                position = 0
                for i in range(a, b):
                    yield self.table.keys[keys[i]], out[position : ends[i] - previous_end]
                    position = ends[i] - previous_end
                a = b
            del held


@dataclass
class _Rows:
    """Rows begin[i] .. end[i] - 1 of utterance some[i], and what `copy_rows` is told of it; handles: of the files."""

    some: np.ndarray
    table: np.ndarray
    spans: np.ndarray
    handles: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The first arguments of `copy_rows`."""
        return self.table, self.spans, self.handles, self.begin, self.end


def parse_matrix(file: FileBytes, begin: int, end: int, count: int, key: str) -> np.ndarray:
    """Return the `count` numbers of a matrix in text, float64[count], which end with `]` before `end`."""
    from . import text_kernels as k

    text = np.zeros(end - begin + k.PADDING, np.uint8)
    file.read(text[: end - begin], begin)
    out, state = np.empty(count), np.zeros(2, np.int64)
    while not k.parse_reals(text, 0, out, state):
        position, done = state.tolist()
        word = bytes(text[position:]).split(None, 1)[0].replace(b";", b" ").replace(b"]", b" ").split()[0].rstrip(b"\0")
        try:
            if b"_" in word or done == count:
                raise ValueError
            out[done] = float(word)
        except ValueError:
            raise DataError(
                f"{file.path}, byte {begin + position}, key '{key}': {word[:40]!r} is not a number.", path=file.path
            ) from None
        state[:] = position + len(word), done + 1
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
        f"Missing features for: {key}. It is listed in {place}, but {table.path} has no such key.",
        path=table.path,
        hint="leave it out of the list, or write the archive again",
    )
