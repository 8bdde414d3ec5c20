"""Compressed text as if it were a plain file: read in order, or at any place, with bounded memory.

While a file is unpacked, the places are noted where unpacking can begin again. A gzip file has one every few megabytes,
bzip2, xz and Zstandard files at the start of every stream or frame.
"""

from __future__ import annotations

import errno
import io
import logging
import weakref
from bisect import bisect_right
from collections import deque
from threading import Lock, RLock
from typing import BinaryIO, cast

import numpy as np

from cntk_config.base.files import TEXT_LIMIT, open_input, read_input
from cntk_config.base.names import is_url
from readers.common.codecs import LONGEST_MAGIC, Broken, Restart, Unpacker, format_of, unpacker
from readers.common.file_bytes import FileBytes
from readers.common.position import Position
from readers.common.remote import RemoteBytes
from readers.errors import DataError

log = logging.getLogger("cntkpy.readers")
RECENT = 256 << 20
"""Bytes of plain text of all files that are kept after they were unpacked: data are read after their index is made."""
APART, COPIES_APART = 256 << 10, 8 << 20
"""Bytes of plain text between places to begin again: at streams and frames, and at copies of the state of gzip."""
MOST_PLACES = 1024
"""Places that are noted; of more, every other one is dropped."""
GATHERED = 256 << 10
"""Bytes that are unpacked at least at a time, however short the streams are."""
FAR = 64 << 20
"""Bytes that are unpacked in vain before there is a note of the cost."""
UNBELIEVABLE, BELIEVED = 1000, 1 << 30
"""A file that unpacks to more than so many times its size, and to more than so many bytes, is refused."""
LONGEST = 1 << 30
"""Most bytes of a line or a sequence of a compressed file."""
TOOLS = {
    "gzip": "gzip -t",
    "bzip2": "bzip2 -t",
    "xz": "xz -t",
    "zstd": "zstd -t",
}


class PackedBytes:
    """The plain text of a compressed file, at any place and from any thread.

    Args:
        file: the file; it is this object's from now on.
        kind: its format, see `codecs.format_of`.

    Raises:
        DataError: of the methods, it cannot be read, or is damaged.
    """

    descriptor = -1
    """Kernels cannot read from it."""
    packed = True
    """Whether it is compressed."""

    def __init__(self, file: FileBytes | RemoteBytes, kind: str) -> None:
        self.path, self.kind = file.path, kind
        self._file, self.local = file, file.local
        self._unpacker: Unpacker = self._begin(Restart())
        self.recent: dict[int, bytes] = {}
        """What was unpacked last, by where it begins; others may remove some, see `_Recent`."""
        self._last: tuple[int, bytes] = (0, b"")
        self._places = [Restart()]
        self._apart, self._copies_apart = APART, COPIES_APART
        self._size: int | None = None
        self._told = False
        self._lock = RLock()

    @property
    def size(self) -> int:
        """Bytes of the plain text; the whole file is unpacked if it was not before."""
        with self._lock:
            at = self._places[-1].plain
            while self._size is None:
                piece = self._piece(at)
                at = at if piece is None else piece[0] + len(piece[1])
            return self._size

    def read(self, into: np.ndarray, at: int) -> None:
        """Fill a uint8 array from byte `at` of the plain text on."""
        view = into.data
        got = 0
        while got < len(view):
            count = self.read_some(view[got:], at + got)
            if not count:
                raise self.cut_short()
            got += count

    def read_some(self, view: memoryview, at: int) -> int:
        """Read some bytes of the plain text from byte `at` on; 0 at its end."""
        with self._lock:
            piece = self._piece(at)
        if piece is None:
            return 0
        begin, content = piece
        found = memoryview(content)[at - begin : at - begin + len(view)]
        view[: len(found)] = found
        return len(found)

    def bytes(self, at: int, length: int) -> bytes:
        """These bytes; fewer at the end of the text."""
        out = np.empty(length, np.uint8)
        got = 0
        while got < length and (count := self.read_some(out.data[got:], at + got)):
            got += count
        return out[:got].tobytes()

    def stream(self, buffering: int = -1) -> BinaryIO:
        """The text as a file of its own position."""
        raw = Position(self)
        return cast("BinaryIO", io.BufferedReader(raw, 1 << 16) if buffering else raw)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def cut_short(self) -> DataError:
        """The error of a text that has fewer bytes than it had."""
        return DataError(f"The data file {self.path} was cut short while it was read.", path=self.path)

    def _begin(self, place: Restart) -> Unpacker:
        return unpacker(self.kind, self._file.bytes, place)

    def _piece(self, at: int) -> tuple[int, bytes] | None:
        """The unpacked piece with byte `at`, and where it begins; None after the end."""
        if (found := self._kept(at)) is not None:
            return found
        if self._size is not None and at >= self._size:
            return None
        place = self._places[bisect_right(self._places, at, key=lambda one: one.plain) - 1]
        if not place.plain <= self._unpacker.plain <= at:
            self._unpacker = self._begin(place)
            if at - place.plain > FAR and not self._told:
                self._tell_cost(place)
        while True:
            begin = self._unpacker.plain
            content = self._next()
            if not content:
                self._size = begin
                return None
            _RECENT.add(self, begin, content)
            if at < begin + len(content):
                self._last = begin, content
                return self._last

    def _kept(self, at: int) -> tuple[int, bytes] | None:
        """The piece with byte `at`, if it was unpacked not long ago."""
        begin, content = self._last
        if begin <= at < begin + len(content):
            return self._last
        for begin, content in list(self.recent.items()):
            if begin <= at < begin + len(content):
                self._last = begin, content
                return self._last
        return None

    def _next(self) -> bytes:
        """The next bytes of the plain text, from many streams if these are short; none at its end."""
        parts: list[bytes] = []
        size = 0
        try:
            while size < GATHERED and (content := self._unpacker.piece()):
                parts.append(content)
                size += len(content)
                self._note(self._unpacker.plain)
        except Broken as error:
            self._unpacker = _Fails(self._unpacker.plain, error)
            if parts:  # what is sound comes first
                return b"".join(parts)
            raise DataError(
                f"The compressed file {self.path} is damaged at byte {error.at}: {error}.",
                path=self.path,
                hint=f"{TOOLS[self.kind]} {self.path} tests it; make it again",
            ) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _note(self, plain: int) -> None:
        """Note that unpacking can begin again here, if it can and was not noted before."""
        if plain > BELIEVED and plain > UNBELIEVABLE * self._file.size:
            raise DataError(
                f"The compressed file {self.path} has {self._file.size:,} bytes and unpacks to more than {plain:,}: "
                "this is not believed to be data.",
                path=self.path,
                hint="unpack it, if it is",
            )
        since = plain - self._places[-1].plain
        if since < self._apart:
            return
        place = self._unpacker.restart(copied=since >= self._copies_apart)
        if place is None:
            return
        self._places.append(place)
        if len(self._places) > MOST_PLACES:
            self._places = self._places[::2]
            self._apart, self._copies_apart = 2 * self._apart, 2 * self._copies_apart

    def _tell_cost(self, place: Restart) -> None:
        self._told = True
        log.warning(
            "WARNING: %s can only be unpacked from its start on (byte %d), not from where data are read in a shuffled "
            "order: each jump costs that again. Compress it in pieces (bgzip, gzip, pbzip2, or frames of zstd), unpack "
            "it, or write randomize=false.",
            self.path,
            place.packed,
        )


class _Recent:
    """What was unpacked last of all files; the oldest goes first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._order: deque[tuple[weakref.ref[PackedBytes], int, int]] = deque()
        self._held = 0

    def add(self, owner: PackedBytes, begin: int, content: bytes) -> None:
        """Keep a piece."""
        with self._lock:
            owner.recent[begin] = content
            self._order.append((weakref.ref(owner), begin, len(content)))
            self._held += len(content)
            while self._held > RECENT and len(self._order) > 1:
                of, at, size = self._order.popleft()
                self._held -= size
                if (found := of()) is not None:
                    found.recent.pop(at, None)


_RECENT = _Recent()


class _Fails:
    """What has met damage: unpacking cannot go on."""

    def __init__(self, plain: int, error: Broken) -> None:
        self.plain, self._error = plain, error

    def piece(self) -> bytes:
        """Raises the error."""
        raise Broken(str(self._error), self._error.at)

    def restart(self, copied: bool = False) -> Restart | None:
        """Nowhere."""
        return None


DataBytes = FileBytes | PackedBytes | RemoteBytes
"""The bytes of a file, or of what a URL names, or the plain text of either if it is compressed."""


def data_bytes(path: str) -> DataBytes:
    """The bytes of a text file, of its plain text if it is compressed.

    Args:
        path: its name, or a URL.

    Raises:
        OSError: it cannot be opened. DataError: a URL cannot be read.
    """
    file = raw_bytes(path)
    kind = format_of(file.bytes(0, LONGEST_MAGIC))
    return file if kind is None else PackedBytes(file, kind)


def raw_bytes(path: str) -> FileBytes | RemoteBytes:
    """The bytes of a file, or of what a URL names, as they are; errors as of `data_bytes`."""
    if is_url(path):
        return RemoteBytes(path)
    return FileBytes(path, cast("io.FileIO", open_input(path, buffering=0)))


def believe(data: DataBytes, size: int, at: int) -> None:
    """Refuse a line, or a sequence, of a compressed file that would fill the memory: a few bytes can hold it.

    Args:
        data: the file.
        size: bytes of the line or the sequence so far.
        at: where it begins in the plain text.
    """
    if data.packed and size > LONGEST:
        raise DataError(
            f"The compressed file {data.path} has a line or a sequence of more than {LONGEST >> 20} MB (byte offset "
            f"{at} of what is unpacked).",
            path=data.path,
            hint="unpack it, if that is right",
        )


def open_data(path: str, buffering: int = -1) -> BinaryIO:
    """Open a text file for reading, its plain text if it is compressed.

    Raises:
        OSError: it cannot be opened. DataError: of the reads, it is damaged.
    """
    data = data_bytes(path)
    if data.packed or not data.local:
        return data.stream(buffering)
    data.close()
    return open_input(path, buffering=buffering)


def read_data(path: str, limit: int = TEXT_LIMIT) -> bytes:
    """All bytes of a text file, of its plain text if it is compressed.

    Raises:
        OSError: as `read_input`; or it has more than `limit` bytes. DataError: it is damaged.
    """
    data = data_bytes(path)
    if data.local and not data.packed:
        data.close()
        return read_input(path, limit)
    with data.stream() as file:
        found = file.read(limit + 1)
    if len(found) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes, the limit of such a file", path)
    return found
