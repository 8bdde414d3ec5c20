"""Read no more than the first records of files, through the readers of a run: `check --data` does so.

Inside `first_records`, texts that are opened end after a limit of bytes, at the end of a record; tables, archives and
binary files are looked at as far as that many records need; no file is written.
"""

from __future__ import annotations

import io
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers.common.position import Position
from cntkpy.readers.errors import DataError

if TYPE_CHECKING:
    import numpy as np

BYTES_PER_RECORD, LEAST_BYTES = 64 << 10, 1 << 20
"""Bytes of a text that are read for each record that is asked for, and at least."""
LONGEST_RECORD = 256 << 20
"""Most bytes of a line that is longer than the limit."""
_MASTER_LABELS = b"#!MLF!#"
_MARK = b"\xef\xbb\xbf"


class NotInBeginning(Exception):
    """Nothing can be said from the beginnings of files: what belongs together may come later."""


class Beginnings:
    """Read limits of files, and the files that exceed them.

    Args:
        records: records of each file.
        whole: files that are read whole: lists of classes, words and states.
    """

    def __init__(self, records: int, whole: Iterable[str] = ()) -> None:
        self.records = max(1, records)
        self.limit = max(LEAST_BYTES, BYTES_PER_RECORD * self.records)
        """Bytes of a text that are read."""
        self.cut: dict[str, None] = {}
        """The files that have more than was read."""
        self._whole = frozenset(map(os.path.normpath, whole))

    def cuts(self, path: str) -> bool:
        """Return whether a text may be cut."""
        return os.path.normpath(path) not in self._whole

    def text_of(self, path: str, file: BinaryIO) -> bytes | None:
        """Return the beginning of a text, which ends with a record; None if it has no more bytes than the limit."""
        text = file.read(self.limit + 1)
        if len(text) <= self.limit:
            return None
        self.cut[path] = None
        while text.count(b"\n") < 2 and (line := file.readline(LONGEST_RECORD)):  # a header, and a record
            text += line
        return _whole_records(text)

    def count_of(self, path: str, count: int) -> int:
        """Return the number of records to read, of `count` in a file."""
        if count > self.records:
            self.cut[path] = None
        return min(count, self.records)


_current: list[Beginnings] = []


@contextmanager
def first_records(records: int, whole: Iterable[str] = ()) -> Generator[Beginnings]:
    """Read only the first records of files inside, on all threads; the arguments are those of `Beginnings`."""
    beginnings = Beginnings(records, whole)
    _current.append(beginnings)
    try:
        yield beginnings
    finally:
        _current.remove(beginnings)


def current() -> Beginnings | None:
    """Return the limits that hold now; None where files are read whole."""
    return _current[-1] if _current else None


def unless_cut(error: UserError) -> Exception:
    """Return an error about what belongs together in several places; `NotInBeginning` if not all of it was read."""
    limits = current()
    return NotInBeginning() if limits is not None and limits.cut else error


def _whole_records(text: bytes) -> bytes:
    """Return a text without the record at its end, which may continue; all of it where it has one record only."""
    text = text[: text.rfind(b"\n") + 1] or text
    start = text.removeprefix(_MARK).lstrip()
    if start.startswith(_MASTER_LABELS):
        end = max(text.rfind(b"\n.\n") + 3, text.rfind(b"\n.\r\n") + 4)
        if end < 4:
            raise NotInBeginning
        return text[:end]
    first = start[: start.find(b"\n")]
    if b"|" in first and not first.startswith(b"|"):
        return _without_last_sequence(text)
    return text if text.count(b'"') % 2 == 0 else text[: text.rfind(b"\n", 0, text.rfind(b'"')) + 1] or text


def _without_last_sequence(text: bytes) -> bytes:
    """Return a text in CNTK text format without its last sequence; all of it where it has one sequence only."""
    end, begin_of_last, last = len(text), 0, b""
    while end > 0:
        begin = text.rfind(b"\n", 0, end - 1) + 1
        key = text[begin:end].partition(b"|")[0].strip()
        if last and key and key != last:
            return text[:begin_of_last]
        if key:
            last, begin_of_last = key, begin
        end = begin
    return text


class BeginningBytes:
    """The beginning of a text, with the methods of `packed.DataBytes`."""

    descriptor = -1
    """Kernels cannot read from it."""
    packed = local = False
    """It is in memory, and no index of it is kept."""

    def __init__(self, path: str, text: bytes) -> None:
        self.path, self.size, self._text = path, len(text), text

    def read(self, into: np.ndarray, offset: int) -> None:
        """Fill a uint8 array from byte `offset` on."""
        if offset + len(into) > self.size:
            raise self.cut_short()
        into.data[:] = memoryview(self._text)[offset : offset + len(into)]

    def read_some(self, view: memoryview, offset: int) -> int:
        """Read some bytes from byte `offset` on; 0 at the end."""
        text = self._text[offset : offset + len(view)]
        view[: len(text)] = text
        return len(text)

    def bytes(self, offset: int, length: int) -> bytes:
        """Return these bytes; fewer at the end."""
        return self._text[offset : offset + length]

    def stream(self, buffering: int = -1) -> BinaryIO:
        """Return the text as a file of its own position."""
        raw = Position(self)
        return cast("BinaryIO", io.BufferedReader(raw, 1 << 16) if buffering else raw)

    def close(self) -> None:
        """Do nothing: there is nothing open."""

    def cut_short(self) -> DataError:
        """Return the error of a file that has fewer bytes than it had."""
        return DataError(f"The data file {self.path} was cut short while it was read.", path=self.path)
