"""Pure-Python fallbacks of the kernels for text: the index of a file, and the parsing of sequences.

Results and errors are those of the kernels. Well-formed lines take a fast path, all others go through `odd`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cntkpy.readers.common.chunk import Chunk
from cntkpy.readers.formats.text.events import BUDGET, DONE, EMPTY_ROW, LESS, MORE, QUIET_LIMIT, REPEATED, UNKNOWN
from cntkpy.readers.formats.text.odd import read_line
from cntkpy.readers.formats.text.offsets import Offsets
from cntkpy.readers.formats.text.parse import Parsed, damaged_sequences
from cntkpy.readers.formats.text.stream_format import StreamFormat
from cntkpy.readers.formats.text.stream_values import StreamValues
from cntkpy.readers.formats.text.tables import Text
from cntkpy.readers.kernels.budget import fits_budget
from cntkpy.readers.kernels.text_codes import LINES, LONG_NAME, LONGEST_NAME, NAMES, NO_ID, NUMBERS, OVERFLOW

_KEY = re.compile(rb"[0-9]*")
_NAMED_KEY = re.compile(rb"[^\0- |]*")
_BEFORE_STREAMS = {False: re.compile(rb"[0-9]*[ \t]*"), True: re.compile(rb"[^\0- ].*|[ \t]*", re.DOTALL)}
_NAME = re.compile(rb"[!-{}~]+")
_ODD_LINE_WORK = 20
"""Time of a malformed line, in times of a well-formed one."""


@dataclass(frozen=True, eq=False)
class Found:
    """Keys uint64 (none if every line is a sequence, or they are 0, 1, 2, ...), samples int32, offsets int64 of
    sequences; the lines with them.

    fault: error code and byte offset of the first line whose key is malformed; then `lines` are those before it.
    """

    keys: np.ndarray
    samples: np.ndarray
    offsets: np.ndarray
    lines: int
    fault: tuple[int, int] | None = None


def find_sequences(text: bytes, position: int, mode: int, main: bytes, hashed: bool) -> Found:
    """Return the sequences of the lines of a text that begins at byte `position` of its file."""
    keys: list[int] = []
    samples: list[int] = []
    offsets: list[int] = []
    stream = re.compile(rb"\|" + re.escape(main) + rb"(?:[^!-{}~]|\Z)") if main else None
    lines = text.split(b"\n")
    ends = len(lines) - 1  # of lines that end in LF
    if not lines[-1]:
        lines.pop()
    last: bytes | int | None = None
    fault: int | None = None
    number = 0
    for number, line in enumerate(lines):
        match = None if mode == LINES else (_NAMED_KEY if mode == NAMES else _KEY).match(line)
        key = b"" if match is None else match[0]
        if mode == NUMBERS and key:
            known = _numeric(key)
            if known is None:
                fault = OVERFLOW
                break
            if number == ends and key == line:  # no LF says that the number is whole
                key = b""
        else:
            known = key
            if len(key) > LONGEST_NAME:
                fault = LONG_NAME
                break
        if mode == LINES or (key and known != last):
            last = known
            keys.append(known if isinstance(known, int) else _hash(known) if hashed else len(known))
            samples.append(0)
            offsets.append(position)
        elif not samples:
            fault = NO_ID
            break
        samples[-1] += stream is None or stream.search(line) is not None
        position += len(line) + 1
    counted = mode == LINES or (mode == NUMBERS and keys == list(range(len(keys))))
    kept = np.array([] if counted else keys, np.uint64)
    arrays = kept, np.array(samples, np.int32), np.array(offsets, np.int64)
    return Found(*arrays, len(lines)) if fault is None else Found(*arrays, number, (fault, position))


def form_chunks(begins: Offsets, ends: Offsets, maximum: int) -> np.ndarray:
    """First sequence of every chunk of at most this many bytes (or one sequence), then the number of sequences."""
    first: list[int] = []
    end = 0
    while end < len(begins):
        first.append(end)
        end = max(ends.searchsorted(int(begins[end]) + maximum), end + 1)
    return np.array([*first, len(begins)], np.int64)


def _numeric(key: bytes) -> int | None:
    """Return a key of digits as a number; None if it takes more than 64 bits."""
    digits = key.lstrip(b"0")
    if len(digits) > 20:
        return None
    number = int(digits or b"0")
    return number if number < 2**64 else None


def _hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = (33 * value & 2**64 - 1) ^ byte
    return value


def parse(
    pieces: Text,
    formats: Sequence[StreamFormat],
    dtype: np.dtype,
    budget: int,
    named: bool = False,
    end_of_file: int = -1,
) -> Parsed | None:
    """Parse sequences as `parse.parse` does.

    None: a sequence does not lie in the buffer, a value is infinite, which the kernels report with its place, or so
    much is odd that they are quicker.
    """
    text, begins, ends, nominal = pieces.buffer.tobytes(), pieces.begins, pieces.ends, pieces.nominal
    lines = _Lines(formats, named)
    streams = lines.streams
    defining = [stream for stream in streams if stream.form.defines_mb_size] or streams
    wanted = np.broadcast_to(nominal, len(begins)).tolist()
    for sequence, (begin, end, want) in enumerate(zip(begins.tolist(), ends.tolist(), wanted, strict=True)):
        if not 0 <= begin <= end <= len(text):
            return None
        rows = text[begin:end].split(b"\n")
        if not rows[-1]:
            rows.pop()
        last = len(rows) - 1 if end == end_of_file else -1
        position = begin
        for number, line in enumerate(rows):
            may_be_cut = number == last and len(line.rpartition(b"|")[2].split()) < 2
            if may_be_cut or not lines.read(line, position, sequence):
                if not fits_budget(_ODD_LINE_WORK * len(line)):
                    return None
                lines.read_odd(line, position, sequence, is_last=number == last)
                if lines.errors > budget:
                    return Parsed(None, BUDGET, lines.found())
            position += len(line) + 1
        most = max(len(stream.counts) - stream.bounds[-1] for stream in defining)
        if most != want:
            lines.note(MORE if most > want else LESS, begin, sequence)
            if lines.errors > budget:
                return Parsed(None, BUDGET, lines.found())
        for stream in streams:
            stream.bounds.append(len(stream.counts))
    data = {stream.form.name: stream.data(dtype) for stream in streams}
    if any(np.isinf(stream.values).any() for stream in data.values()):
        return None
    used = sum(
        stream.values.nbytes
        + stream.sequences.nbytes
        + stream.starts.nbytes
        + (0 if stream.indices is None or stream.counts is None else stream.indices.nbytes + stream.counts.nbytes)
        for stream in data.values()
    )
    events = lines.found()
    return Parsed(Chunk(data, used, damaged=damaged_sequences(events, len(begins))), DONE, events)


class _Lines:
    """Reads lines to streams, and notes what is odd. errors: how much of that counts as an error."""

    def __init__(self, formats: Sequence[StreamFormat], named: bool):
        self.streams = [StreamValues(f) for f in formats]
        self.errors = 0
        self._events: list[tuple[int, int, int, int]] = []
        self._quiet = 0
        self._names = {stream.form.alias.encode(): stream for stream in self.streams}
        self._numbered = {stream.form.alias.encode(): (i, stream) for i, stream in enumerate(self.streams)}
        self._head, self._named = _BEFORE_STREAMS[named], named

    def found(self) -> np.ndarray:
        """Return the events, int64[n, 4], see `events`."""
        return np.array(self._events, np.int64).reshape(-1, 4)

    def note(self, kind: int, place: int, sequence: int, stream: int = -1) -> None:
        """Note an event, if it is an error or there is room."""
        if kind < UNKNOWN:
            self.errors += 1
        elif self._quiet < QUIET_LIMIT:
            self._quiet += 1
        else:
            return
        self._events.append((kind, place, sequence, stream))

    def read(self, line: bytes, position: int, sequence: int) -> bool:
        """Read the samples of a line at byte `position`; return False, without reading, if it is malformed."""
        head, *parts = line.rstrip(b"\r").split(b"|")
        if self._head.fullmatch(head) is None:
            return False
        read: list[StreamValues] = []
        unknown: list[int] = []
        position += len(head)
        for part in parts:
            position += 1  # the bar
            if not part.startswith(b"#"):
                name, _, values = part.replace(b"\t", b" ").partition(b" ")
                stream = self._names.get(name)
                if stream is not None:
                    if not stream.read(values):
                        break
                    read.append(stream)
                elif not _NAME.fullmatch(name):
                    break
                else:
                    unknown.append(position)
            position += len(part)
        else:
            if 0 < len(read) <= len(self.streams):
                for place in unknown:
                    self.note(UNKNOWN, place, sequence)
                return True
        for stream in reversed(read):
            stream.undo_sample()
        return False

    def read_odd(self, line: bytes, position: int, sequence: int, is_last: bool) -> None:
        """Read a line in which something is odd. is_last: the file ends where it ends."""

        def note(kind: int, place: int, stream: int) -> None:
            self.note(kind, position + place, sequence, stream)

        samples = read_line(line + b"\n", self._numbered, self._named, is_last, note)
        if not 0 < samples <= len(self.streams):
            note(REPEATED if samples else EMPTY_ROW, 0, -1)
