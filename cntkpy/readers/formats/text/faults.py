"""Malformed places of a text file: counted, logged, and too many of them an error."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from cntkpy.cntk_config.base.diagnostics import nearest
from cntkpy.readers.common.packed import DataBytes
from cntkpy.readers.errors import DataError

from .events import UNKNOWN
from .index import BOM, TextIndex
from .messages import describe, names_in, other_format
from .parse import Parsed
from .stream_format import StreamFormat

_SEARCHED_BYTES = 256 << 10
log = logging.getLogger("cntkpy.readers")


class Faults:
    """The malformed places of a file that were met. A place counts once, however often it is read.

    Args:
        file: The file.
        index: Its sequences.
        formats: Its streams.
        maximum: Places that are tolerated.
        trace_level: From 1 on, each is logged.
    """

    def __init__(
        self, file: DataBytes, index: TextIndex, formats: Sequence[StreamFormat], maximum: int, trace_level: int
    ):
        self._file, self._index, self._formats = file, index, formats
        self._maximum, self._trace_level = maximum, trace_level
        self._lock = threading.Lock()
        self._counted: set[int] = set()
        self._warned: set[str] = set()
        self._kept_quiet = False

    def budget(self, sequences: np.ndarray | slice) -> int:
        """Return the number of places in these sequences that are tolerated.

        Once there were too many, what is sound can still be read.
        """
        return max(0, self._maximum - len(self._counted) + self._known(sequences))

    def _known(self, sequences: np.ndarray | slice) -> int:
        """Return the number of places in these sequences that are counted already."""
        if not self._counted:
            return 0
        begins, ends = self._index.begins[sequences], self._index.ends[sequences]
        with self._lock:
            known = np.array(sorted(self._counted)) >> 4
        return int(np.sum(np.searchsorted(known, ends) - np.searchsorted(known, begins)))

    def report(self, parsed: Parsed, buffer: np.ndarray, begins: np.ndarray, sequences: np.ndarray) -> None:
        """Log warnings and count places.

        Args:
            parsed: The events.
            buffer: The text.
            begins: The place in the text where each sequence begins, int64[n].
            sequences: Numbers of the sequences, int64[n].

        Raises:
            DataError: There are more places than are tolerated.
        """
        with self._lock:
            places, text, line, cure = Places(self._file), "", 0, None
            for kind, position, number, stream in parsed.events.tolist():
                sequence = int(sequences[number])
                offset = int(self._index.begins[sequence]) + position - int(begins[number])
                counted = kind < UNKNOWN
                if counted:
                    fresh = (offset << 4) + kind not in self._counted
                    self._counted.add((offset << 4) + kind)
                    last = len(self._counted) > self._maximum
                else:
                    fresh, last = True, False
                if not last and (self._trace_level < 1 or not fresh):
                    self._kept_quiet |= fresh
                    continue
                message = describe(buffer, kind, position, stream, self._formats, int(begins[number]))
                if kind >= UNKNOWN:
                    if message in self._warned:
                        continue
                    self._warned.add(message)
                line, column = places.find(offset)
                key = self._index.table.names(np.array([sequence]))[0]
                place = f"line {line}, column {column}, sequence id {key}"
                text = f"{message} ({place}, byte offset {offset})."
                if last:
                    cure = other_format(buffer, kind, position, stream, self._formats)
                    break
                log.warning("%s (%s), at offset %d in the input file (%s).", message, place, offset, self._file.path)
            exhausted = len(self._counted) > self._maximum and bool((parsed.events[:, 0] < UNKNOWN).any())
        if exhausted:
            quiet = "; traceLevel=1 shows all the others" if self._kept_quiet else ""
            path = self._file.path
            raise DataError(
                f"Reached the maximum number of allowed errors while reading the input file ({path}). {text}",
                path=path,
                line=line,
                hint=cure
                or f"mend the file, or raise maxErrors (now {self._maximum}) to skip malformed samples{quiet}",
            )


def absence(stream: str, formats: Sequence[StreamFormat], file: DataBytes) -> tuple[str, str, str] | None:
    """Return message, advice and path if the first bytes of a file have no sample of a stream, but have other names."""
    alias = next((f.alias for f in formats if f.name == stream), None)
    text = file.bytes(0, _SEARCHED_BYTES)
    names = names_in(text)
    if alias is None or alias in names:
        return None
    message = f"'{alias}'" if alias == stream else f"'{alias}', the alias of the input '{stream}'"
    where = f" in its first {_SEARCHED_BYTES >> 10} KB" if len(text) == _SEARCHED_BYTES else ""
    near = nearest(alias, names)
    there = f"it has: {', '.join(names) or 'none'}"
    cure = f"did you mean '{near}'? write alias = {near}" if near else "write one of them as alias = ..."
    return (
        f"The input file ({file.path}) has no values called {message}{where}.",
        f"{there}; {cure} in the section of '{stream}'" if names else there,
        file.path,
    )


class Places:
    """Line and column (both from 1) of bytes of a text, read again only as far as needed."""

    def __init__(self, data: DataBytes):
        self._data = data
        self._read = 0
        self._lines = 0
        self._last = -1
        with suppress(OSError), data.stream() as file:
            self._last += len(BOM) * (file.read(len(BOM)) == BOM)  # no editor shows it

    def find(self, offset: int) -> tuple[int, int]:
        """Line and column of byte `offset`."""
        if offset < self._read:
            self.__init__(self._data)
        try:
            with self._data.stream() as file:
                file.seek(self._read)
                while self._read < offset and (block := file.read(min(1 << 20, offset - self._read))):
                    count = block.count(b"\n")
                    if count:
                        self._lines += count
                        self._last = self._read + block.rfind(b"\n")
                    self._read += len(block)
        except OSError:
            return 0, 0
        return self._lines + 1, offset - self._last
