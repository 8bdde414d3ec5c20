"""Reading little text without Numba: the index of a file, and sequences without anything odd in them.

What both functions give is what the kernels give. Text that is malformed, or of which something is to be told, is left
to the kernels: these functions say that they cannot.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence

import numpy as np

from readers.common.chunk import Chunk, StreamData

from .events import QUIET_LIMIT, UNKNOWN
from .stream_format import StreamFormat

LINES, NUMBERS, NAMES = 0, 1, 2
_KEY = re.compile(rb"[0-9]*")
_NAMED_KEY = re.compile(rb"[^\0- |]*")
_BEFORE_STREAMS = {False: re.compile(rb"[0-9]*[ \t]*"), True: re.compile(rb"[^\0- ].*|[ \t]*", re.DOTALL)}
_NAME = re.compile(rb"[!-{}~]+")
_PLAIN = b"0123456789- "
_NUMBER = re.compile(rb"[+-]?[0-9]+(?:(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)|\.[0-9]*)?")
_LONGEST, _DIGITS = 4096, 18

Found = tuple[np.ndarray, np.ndarray, np.ndarray, int]
"""Keys uint64 (none if every line is a sequence), samples int32, offsets int64; number of lines."""


def find_sequences(text: bytes, at: int, mode: int, main: bytes, hashed: bool) -> Found | None:
    """The sequences of the lines of a text that begins at byte `at` of its file; None: a key is missing or too long."""
    keys: list[int] = []
    samples: list[int] = []
    offsets: list[int] = []
    stream = re.compile(rb"\|" + re.escape(main) + rb"(?:[^!-{}~]|\Z)") if main else None
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    last: bytes | int | None = None
    for line in lines:
        key = b"" if mode == LINES else (_NAMED_KEY if mode == NAMES else _KEY).match(line)[0]  # type: ignore[index]
        number = int(key) if mode == NUMBERS and 0 < len(key) <= _LONGEST else 0
        known = key if mode == NAMES else number
        if number >= 2**64 or len(key) > _LONGEST or (mode == NUMBERS and key == line and line is lines[-1]):
            return None
        if mode == LINES or (key and known != last):
            last = known
            keys.append(number if mode == NUMBERS else _hash(key) if hashed else len(key))
            samples.append(0)
            offsets.append(at)
        elif not samples:
            return None
        samples[-1] += stream is None or stream.search(line) is not None
        at += len(line) + 1
    kept = np.array([] if mode == LINES else keys, np.uint64)
    return kept, np.array(samples, np.int32), np.array(offsets, np.int64), len(lines)


def _hash(name: bytes) -> int:
    found = 5381
    for byte in name:
        found = (33 * found & 2**64 - 1) ^ byte
    return found


class _Stream:
    """What was read of one stream so far."""

    def __init__(self, form: StreamFormat):
        self.form = form
        self.values = array("d")
        self.indices = array("i")
        self.counts: list[int] = []
        self.bounds = [0]

    def read(self, text: bytes) -> bool:
        """A sample; whether it is one."""
        odd = text.translate(None, _PLAIN)
        if self.form.sparse:
            return not odd.translate(None, b"+eE.:") and self._sparse(text.split())
        numbers = text.split()
        if len(numbers) != self.form.dim:
            return False
        # float() knows more numbers than there are here: .5, inf, 1_0.
        if odd and (odd.translate(None, b"+eE.") or not all(map(_NUMBER.fullmatch, numbers))):
            return False
        try:
            self.values.extend(map(float, numbers))
        except ValueError:
            return False
        self.counts.append(len(numbers))
        return True

    def _sparse(self, entries: list[bytes]) -> bool:
        for entry in entries:
            index, colon, value = entry.partition(b":")
            if (
                not colon
                or not index.isdigit()
                or len(index) > _DIGITS
                or _NUMBER.fullmatch(value) is None
                or int(index) >= self.form.dim
            ):
                return False
            self.indices.append(int(index))
            self.values.append(float(value))
        self.counts.append(len(entries))
        return True

    def data(self, dtype: np.dtype) -> StreamData:
        """All samples."""
        f, count = self.form, len(self.counts)
        # Numbers that a type cannot hold become infinite without a word, as in the kernels.
        with np.errstate(over="ignore"):
            values = np.frombuffer(self.values, np.float64).astype(dtype)
        bounds = np.array(self.bounds, np.int64)
        if not f.sparse:
            return StreamData(f.dim, values, np.arange(count, dtype=np.int64) * f.dim, bounds)
        counts = np.array(self.counts, np.int32)
        starts = counts.cumsum(dtype=np.int64) - counts
        return StreamData(f.dim, values, starts, bounds, counts, np.frombuffer(self.indices, np.int32))


def parse(
    buffer: np.ndarray, begins: np.ndarray, ends: np.ndarray, nominal: np.ndarray, formats: Sequence[StreamFormat],
    dtype: np.dtype, named: bool = False, end_of_file: int = -1,
) -> tuple[Chunk, np.ndarray] | None:  # fmt: skip
    """Sequences buffer[begins[k]:ends[k]] as `parse.parse` reads them, and events of names that no input has.

    None: something in them is odd.
    """
    text = buffer.tobytes()
    lines = _Lines(formats, named)
    streams = lines.streams
    defining = [one for one in streams if one.form.defines_mb_size] or streams
    wanted = np.broadcast_to(nominal, len(begins)).tolist()
    for sequence, (begin, end, want) in enumerate(zip(begins.tolist(), ends.tolist(), wanted, strict=True)):
        if not 0 <= begin <= end <= len(text):
            return None
        found = text[begin:end].split(b"\n")
        if not found[-1]:
            found.pop()
        if end == end_of_file and found and len(found[-1].rpartition(b"|")[2].split()) < 2:
            return None  # the file may end behind a name
        at = begin
        for line in found:
            if not lines.read(line, at, sequence):
                return None
            at += len(line) + 1
        if max(len(one.counts) - one.bounds[-1] for one in defining) != want:
            return None
        for one in streams:
            one.bounds.append(len(one.counts))
    data = {one.form.name: one.data(dtype) for one in streams}
    used = sum(
        one.values.nbytes + one.sequences.nbytes + one.starts.nbytes
        + (0 if one.indices is None or one.counts is None else one.indices.nbytes + one.counts.nbytes)
        for one in data.values()
    )  # fmt: skip
    return Chunk(data, used), np.array(lines.events, np.int64).reshape(-1, 4)


class _Lines:
    """Reads lines to streams, and notes the names that no input has."""

    def __init__(self, formats: Sequence[StreamFormat], named: bool):
        self.streams = [_Stream(f) for f in formats]
        aliases = {one.form.alias.encode(): one for one in self.streams}
        self.events: list[tuple[int, int, int, int]] = []
        self._names = {alias: one for alias, one in aliases.items() if _NAME.fullmatch(alias)}
        self._before = _BEFORE_STREAMS[named]

    def read(self, line: bytes, at: int, sequence: int) -> bool:
        """Read the samples of a line, which begins at byte `at`; whether nothing in it is odd."""
        before, *parts = line.rstrip(b"\r").split(b"|")
        if self._before.fullmatch(before) is None:
            return False
        at += len(before)
        accepted = 0
        for part in parts:
            at += 1  # the bar
            if not part.startswith(b"#"):
                name, _, rest = part.replace(b"\t", b" ").partition(b" ")
                stream = self._names.get(name)
                if stream is not None:
                    accepted += 1
                    if not stream.read(rest):
                        return False
                elif not _NAME.fullmatch(name):
                    return False
                elif len(self.events) < QUIET_LIMIT:
                    self.events.append((UNKNOWN, at, sequence, -1))
            at += len(part)
        return 0 < accepted <= len(self.streams)
