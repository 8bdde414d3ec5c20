"""Compressed text as if it were a plain file: read in order, or at any place, with bounded memory.

While a file is unpacked, the places are noted where unpacking can begin again. A gzip file has one every few megabytes
and at the start of every member (a block of BGZF is one), bzip2, xz and Zstandard files at the start of every stream or
frame. A seekable Zstandard file lists its frames in a table. A thread unpacks ahead of reading in order.
"""

from __future__ import annotations

import errno
import io
import logging
from bisect import bisect_right
from collections.abc import Callable
from threading import Condition, Thread
from typing import BinaryIO, cast

import numpy as np

from cntkpy.cntk_config.base.files import TEXT_LIMIT, open_input, read_input
from cntkpy.cntk_config.base.names import is_url
from cntkpy.readers.common.beginnings import BeginningBytes, current
from cntkpy.readers.common.codecs import (
    LONGEST_MAGIC,
    PIECE,
    Broken,
    Restart,
    Unpacker,
    binary_format,
    format_at_start,
    seek_table,
    unpacker,
)
from cntkpy.readers.common.file_bytes import FileBytes
from cntkpy.readers.common.position import Position
from cntkpy.readers.common.recent import RECENTLY
from cntkpy.readers.common.remote import RemoteBytes
from cntkpy.readers.errors import DataError

log = logging.getLogger("cntkpy.readers")
AHEAD, WORTH = 32 << 20, 1 << 20
"""Most bytes that a thread unpacks ahead of reading in order; the bytes from which on a thread is worth its start."""
APART, COPIES_APART = 256 << 10, 8 << 20
"""Bytes of plain text between places to begin again: at streams and frames, and at copies of the state of gzip."""
MOST_PLACES, MOST_STARTS = 1024, 1 << 16
"""Places that are noted with a copy of a state (40 KB each), and in all; of more, every other one is dropped."""
GATHERED = 256 << 10
"""Bytes that are unpacked at least at a time, however short the streams are."""
FAR = 64 << 20
"""Bytes that are unpacked in vain before there is a note of the cost."""
UNBELIEVABLE, BELIEVED = 200, 128 << 20
"""Largest unpacked size of a file as a multiple of its size, and in bytes; a file above both is refused."""
LONGEST = 1 << 30
"""Most bytes of a line or a sequence of a compressed file."""
LONGEST_TIMES, SHORT, SHORT_LIST = 50, 16 << 20, 4 << 20
"""The same in sizes of the file, unless a line or sequence, or a list of names, is shorter than so many bytes."""
TOOLS = {
    "gzip": "gzip -t",
    "zlib": "pigz -t",
    "bzip2": "bzip2 -t",
    "xz": "xz -t",
    "lzma": "xz -t",
    "zstd": "zstd -t",
}


class _Places:
    """The places of a compressed file from which it can be unpacked.

    Args:
        file: The compressed file.
        kind: Its format.

    Attributes:
        size: Bytes of the plain text, once they are known.
        table: The table of frames, if the file has one.
        known: The places that were met; of a file with a table, the start only.
    """

    def __init__(self, file: FileBytes | RemoteBytes, kind: str) -> None:
        self._path, self._packed_size = file.path, file.size
        self.table = seek_table(file.bytes, file.size) if kind == "zstd" else None
        self.size: int | None = None if self.table is None else int(self.table.plain[-1])
        self.known = [Restart()]
        self._copies = 0
        self._apart, self._copies_apart = APART, COPIES_APART

    def before(self, position: int) -> Restart:
        """Return the last place known from which byte `position` can be unpacked."""
        if self.table is not None:
            return self.table.place(position)
        return self.known[bisect_right(self.known, position, key=lambda place: place.plain) - 1]

    def end(self, plain: int) -> None:
        """Note that the text ends here.

        Raises:
            DataError: The table of frames says something else.
        """
        if self.table is not None and plain != self.size:
            raise self._wrong_table(f"the text has {self.size:,} bytes, and it has {plain:,}")
        self.size = plain

    def note(self, unpacker: Unpacker) -> None:
        """Note that unpacking can begin again where it is now, if it can and was not noted before."""
        plain = unpacker.plain
        if plain > BELIEVED and plain > UNBELIEVABLE * self._packed_size:
            raise DataError(
                f"The compressed file {self._path} has {self._packed_size:,} bytes and unpacks to more than {plain:,}: "
                "this is not believed to be data.",
                path=self._path,
                hint="unpack it, if it is",
            )
        if self.table is not None:  # it has the places; each that is passed is compared
            place = unpacker.restart()
            if place is not None and not self.table.has(place):
                raise self._wrong_table(f"no frame ends at byte {place.packed:,}, {plain:,} of the text")
            if plain >= self.table.plain[-1] and unpacker.piece():
                raise self._wrong_table(f"the text has {self.size:,} bytes, and it has more")
            return
        since = plain - self.known[-1].plain
        if since < self._apart:
            return
        place = unpacker.restart(copied=since >= self._copies_apart)
        if place is None:
            return
        self.known.append(place)
        self._copies += place.state is not None
        if self._copies > MOST_PLACES or len(self.known) > MOST_STARTS:
            self.known = self.known[::2]
            self._copies = sum(location.state is not None for location in self.known)
            self._apart, self._copies_apart = 2 * self._apart, 2 * self._copies_apart

    def _wrong_table(self, reason: str) -> DataError:
        return DataError(
            f"The seek table at the end of the compressed file {self._path} is wrong: it says that {reason}.",
            path=self._path,
            hint=f"compress it again: zstd -dc {self._path} | zstd > NEW.zst",
        )


class _Decoder:
    """Unpacks a compressed file from one of its places on.

    Args:
        file: The compressed file.
        kind: Its format.
        places: Where it can begin; more are noted.
    """

    def __init__(self, file: FileBytes | RemoteBytes, kind: str, places: _Places) -> None:
        self._file, self._kind, self._places = file, kind, places
        self.begin(Restart())

    @property
    def plain(self) -> int:
        """The place in the plain text of the next byte."""
        return self.unpacker.plain

    def begin(self, place: Restart) -> None:
        """Begin again at a place."""
        self.unpacker: Unpacker = unpacker(self._kind, self._file.bytes, place)

    def next(self) -> bytes:
        """Return the next bytes of the plain text, from many streams if these are short; none at its end."""
        parts: list[bytes] = []
        size = 0
        try:
            while size < GATHERED and (content := self.unpacker.piece()):
                parts.append(content)
                size += len(content)
                self._places.note(self.unpacker)
        except Broken as error:
            self.unpacker = _Fails(self.unpacker.plain, error)
            if parts:  # what is sound comes first
                return b"".join(parts)
            path = self._file.path
            if error.program:
                raise DataError(
                    f"The compressed file {path} cannot be read (the part at byte {error.offset}): {error}.",
                    path=path,
                    hint=f"unpack it ({error.program} {path} > NEW), or compress it with other options",
                ) from None
            raise DataError(
                f"The compressed file {path} is damaged at byte {error.offset}: {error}.",
                path=path,
                hint=f"{TOOLS[self._kind]} {path} tests it; make it again",
            ) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)


class _Pieces:
    """Unpacked pieces of a text, each by the byte where it begins, as `recent.Owner` of them.

    A piece that was unpacked ahead is in one of the two at any time: threads look for it without a lock.

    Attributes:
        recent: Those that were unpacked last; others may remove some, see `recent.Recent`.
        ahead: Those that were unpacked ahead and not yet read.
    """

    def __init__(self) -> None:
        self.recent: dict[int, bytes] = {}
        self.ahead: dict[int, bytes] = {}
        self._last: tuple[int, bytes] = (0, b"")

    def find(self, offset: int) -> tuple[int, bytes] | None:
        """Return the piece with byte `offset` and where it begins, if it was unpacked not long ago, or ahead."""
        begin, content = self._last
        if begin <= offset < begin + len(content):
            return self._last
        for begin, content in list(self.ahead.items()):
            if begin <= offset < begin + len(content):
                self._was_read(begin, content)
                self._last = begin, content
                return self._last
        for begin, content in list(self.recent.items()):
            if begin <= offset < begin + len(content):
                self._last = begin, content
                return self._last
        return None

    def add(self, begin: int, content: bytes) -> None:
        """Add a piece that was unpacked where it was needed."""
        RECENTLY.add(self, begin, content)
        self._last = begin, content

    def pass_over(self) -> None:
        """Keep no piece for those who read in order."""
        for begin, content in list(self.ahead.items()):
            self._was_read(begin, content)

    def _was_read(self, begin: int, content: bytes) -> None:
        RECENTLY.add(self, begin, content)
        if self.ahead.pop(begin, None) is not None:
            RECENTLY.release(self, len(content))


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
    """True if it is compressed."""

    def __init__(self, file: FileBytes | RemoteBytes, kind: str) -> None:
        self.path, self.kind = file.path, kind
        self._file, self.local = file, file.local
        self._places = _Places(file, kind)
        self._decoder = _Decoder(file, kind, self._places)
        self._pieces = _Pieces()
        self._warned = False
        self._changed = Condition()
        """Held while the decoder is looked at, but not while the thread uses it."""
        self._next_read = self._next_of_stream = 0
        self._thread: Thread | None = None
        """Unpacks ahead from `_offset` to `_until`; nobody else uses the decoder."""
        self._offset = self._until = 0

    @property
    def packed_size(self) -> int:
        """Bytes of the compressed file."""
        return self._file.size

    @property
    def size(self) -> int:
        """Bytes of the plain text. The whole file is unpacked if it was not before, unless it has a table of frames."""
        with self._changed:
            position = self._places.known[-1].plain
            while self._places.size is None:
                piece = self._piece(position)
                position = position if piece is None else piece[0] + len(piece[1])
            return self._places.size

    def read(self, into: np.ndarray, offset: int) -> None:
        """Fill a uint8 array from byte `offset` of the plain text on."""
        view = into.data
        in_order, self._next_read = offset == self._next_read, offset + len(view)
        got = 0
        while got < len(view):
            count = self._some(view[got:], offset + got)
            if not count:
                raise self.cut_short()
            got += count
        if in_order:
            self._unpack_ahead(offset + got)

    def read_some(self, view: memoryview, offset: int) -> int:
        """Read some bytes of the plain text from byte `offset` on; 0 at its end."""
        in_order = offset == self._next_of_stream
        count = self._some(view, offset)
        self._next_of_stream = offset + count
        if in_order:
            self._unpack_ahead(offset + count)
        return count

    def bytes(self, offset: int, length: int) -> bytes:
        """Return these bytes; fewer at the end of the text."""
        out = np.empty(length, np.uint8)
        got = 0
        while got < length and (count := self._some(out.data[got:], offset + got)):
            got += count
        return out[:got].tobytes()

    def ready(self, offset: int) -> bool:
        """Return whether byte `offset` can be read without waiting for the thread that unpacks it."""
        return self._thread is None or self._pieces.find(offset) is not None

    def forget(self, end: int) -> None:
        """The text up to byte `end` need not be kept."""
        RECENTLY.forget(self._pieces, end)

    def stream(self, buffering: int = -1) -> BinaryIO:
        """Return the text as a file of its own position."""
        raw = Position(self)
        return cast("BinaryIO", io.BufferedReader(raw, 1 << 16) if buffering else raw)

    def close(self) -> None:
        """Close the file."""
        with self._changed:
            self._until = 0
            self._wait_for_thread()
        self._file.close()

    def cut_short(self) -> DataError:
        """Return the error of a text that has fewer bytes than it had."""
        return DataError(f"The data file {self.path} was cut short while it was read.", path=self.path)

    def _some(self, view: memoryview, position: int) -> int:
        if (piece := self._pieces.find(position)) is None:
            with self._changed:
                piece = self._piece(position)
        if piece is None:
            return 0
        begin, content = piece
        result = np.frombuffer(content, np.uint8)[position - begin : position - begin + len(view)]
        np.frombuffer(view, np.uint8)[: len(result)] = result  # without the interpreter lock
        return len(result)

    def _piece(self, offset: int) -> tuple[int, bytes] | None:
        """Return the unpacked piece with byte `offset`, and where it begins; None after the end. `_changed` is held."""
        while self._has_thread() and self._pieces.find(offset) is None:
            if not self._offset <= offset < self._until:
                self._until = 0
            self._wait_for_thread(once=True)
        if (result := self._pieces.find(offset)) is not None:
            return result
        if self._places.size is not None and offset >= self._places.size:
            return None
        place = self._places.before(offset)
        if not place.plain <= self._decoder.plain <= offset:
            self._pieces.pass_over()
            self._decoder.begin(place)
            if offset - place.plain > FAR and not self._warned:
                self._tell_cost(place)
        while True:
            begin = self._decoder.plain
            content = self._decoder.next()
            if not content:
                self._places.end(begin)
                return None
            self._pieces.add(begin, content)
            if offset < begin + len(content):
                return begin, content

    def _unpack_ahead(self, position: int) -> None:
        """Let a thread unpack what follows byte `offset`, unless it does or that was unpacked before."""
        if position < WORTH:
            return
        with self._changed:
            if self._has_thread():
                self._until = max(self._until, position + AHEAD) if self._until else 0
            elif position <= self._decoder.plain < position + AHEAD // 2 and self._decoder.plain != self._places.size:
                self._offset, self._until = self._decoder.plain, position + AHEAD
                self._thread = Thread(target=self._unpack_more, name="cntkpy-unpack", daemon=True)
                self._thread.start()

    def _unpack_more(self) -> None:
        """Unpack in the thread. Damage is found once more, and raised, when a caller reads that far."""
        extra, most = True, GATHERED + PIECE
        try:
            while extra and RECENTLY.reserve(self._pieces, most):
                content = b""
                try:
                    content = self._decoder.next()
                finally:
                    RECENTLY.release(self._pieces, most - len(content))
                with self._changed:
                    if content:
                        self._pieces.ahead[self._offset] = content
                    else:
                        self._places.end(self._offset)
                    self._offset += len(content)
                    extra = bool(content) and self._offset < self._until
                    self._changed.notify_all()
        except DataError:
            pass
        finally:
            with self._changed:
                self._thread = None
                self._changed.notify_all()

    def _wait_for_thread(self, once: bool = False) -> None:
        """Wait until the thread has ended, or `once` until it has unpacked a piece. `_changed` is held."""
        while self._has_thread():
            self._changed.wait(1.0)
            if once:
                return

    def _has_thread(self) -> bool:
        """Return whether the thread is at work: that of a process from which this one was forked is not."""
        if self._thread is not None and not self._thread.is_alive():
            self._thread = None
        return self._thread is not None

    def _tell_cost(self, place: Restart) -> None:
        self._warned = True
        log.warning(
            "WARNING: %s can only be unpacked from its start on (byte %d), not from where data are read in a shuffled "
            "order: each jump costs that again. Compress it in pieces (bgzip, gzip, pbzip2, pzstd), unpack "
            "it, or write randomize=false.",
            self.path,
            place.packed,
        )


class _Fails:
    """Decoder that met damage and cannot continue."""

    def __init__(self, plain: int, error: Broken) -> None:
        self.plain, self._error = plain, error

    def piece(self) -> bytes:
        """Raises the error."""
        raise Broken(str(self._error), self._error.offset, self._error.program)

    def restart(self, copied: bool = False) -> Restart | None:
        """Nowhere."""
        return None


DataBytes = FileBytes | PackedBytes | RemoteBytes | BeginningBytes
"""The bytes of a file, or of what a URL names, or the plain text of either if it is compressed, or its beginning."""


def data_bytes(path: str) -> DataBytes:
    """Return the bytes of a text file, of its plain text if it is compressed.

    Args:
        path: its name, or a URL.

    Raises:
        OSError: it cannot be opened. DataError: a URL cannot be read, or it is compressed in a format of others.
    """
    file = raw_bytes(path)
    try:
        kind = format_at_start(file.bytes)
        other_kind = binary_format(file.bytes(0, LONGEST_MAGIC)) if kind is None else None
    except Broken as error:
        head = file.bytes(0, LONGEST_MAGIC)
        file.close()
        if (workbook := binary_format(head)) is not None:
            raise _no_text(path, *workbook) from None
        raise DataError(
            f"The file {path} is compressed in the format {error}, which is not read.",
            path=path,
            hint=f"unpack it, or compress it with zstd, gzip, bzip2 or xz: {error.program} {path} | zstd > NEW.zst",
        ) from None
    if other_kind is not None:
        file.close()
        raise _no_text(path, *other_kind)
    return file if kind is None else PackedBytes(file, kind)


def _no_text(path: str, kind: str, hint: str) -> DataError:
    return DataError(f"The file {path} is {kind} and not text.", path=path, hint=hint)


def text_bytes(path: str) -> DataBytes:
    """As `data_bytes`, of a text of records one after the other: inside `first_records` only its beginning."""
    data, limits = data_bytes(path), current()
    if limits is None or not limits.cuts(path):
        return data
    with data.stream() as file:
        text = limits.text_of(data.path, file)
    if text is None:
        return data
    data.close()
    return BeginningBytes(data.path, text)


def open_text(path: str) -> DataBytes:
    """Return a text file, compressed or not; inside `first_records` only its beginning.

    Raises:
        DataError: it cannot be opened.
    """
    return _or_say(text_bytes, path, f"The input file ({path}) cannot be read")


def open_or_say(path: str, problem: str) -> DataBytes:
    """As `data_bytes`.

    Raises:
        DataError: it cannot be opened; the message begins with the problem.
    """
    return _or_say(data_bytes, path, problem)


def _or_say(opens: Callable[[str], DataBytes], path: str, problem: str) -> DataBytes:
    try:
        return opens(path)
    except OSError as error:
        raise DataError(f"{problem}: {error.strerror or error}", path=path, hint="check 'file'") from None


def raw_bytes(path: str) -> FileBytes | RemoteBytes:
    """Return the bytes of a file, or of what a URL names, as they are; errors as of `data_bytes`."""
    if is_url(path):
        return RemoteBytes(path)
    return FileBytes(path, cast("io.FileIO", open_input(path, buffering=0)))


def believe(data: DataBytes, size: int, offset: int) -> None:
    """Refuse a line, or a sequence, of a compressed file that would fill the memory: a few bytes can hold it.

    Args:
        data: the file.
        size: bytes of the line or the sequence so far.
        offset: where it begins in the plain text.
    """
    if isinstance(data, PackedBytes) and size > (most := most_believed(data, LONGEST, SHORT)):
        raise DataError(
            f"The compressed file {data.path} of {data.packed_size:,} bytes has a line or a sequence of more than "
            f"{most >> 20} MB (byte offset "
            f"{offset} of what is unpacked).",
            path=data.path,
            hint="unpack it, if that is right",
        )


def most_believed(data: DataBytes, most: int, least: int) -> int:
    """Return the most bytes of plain text that are taken into memory as a whole: in proportion to a compressed file.

    Args:
        data: the file.
        most: of any file.
        least: what any compressed file may have.
    """
    return min(most, max(least, LONGEST_TIMES * data.packed_size)) if isinstance(data, PackedBytes) else most


def open_data(path: str, buffering: int = -1) -> BinaryIO:
    """Open a text file for reading, its plain text if it is compressed.

    Raises:
        OSError: it cannot be opened. DataError: of the reads, it is damaged.
    """
    data = text_bytes(path)
    if data.packed or not data.local:
        return data.stream(buffering)
    data.close()
    return open_input(path, buffering=buffering)


def read_data(path: str, limit: int = TEXT_LIMIT) -> bytes:
    """Return all bytes of a text file, of its plain text if it is compressed.

    Raises:
        OSError: as `read_input`; or it has more than `limit` bytes. DataError: it is damaged.
    """
    data = text_bytes(path)
    if data.local and not data.packed:
        data.close()
        return read_input(path, limit)
    most = most_believed(data, limit, SHORT_LIST)
    parts: list[bytes] = []
    size = 0
    try:
        with data.stream(0) as file:  # memory is taken as the bytes come
            while size <= most and (part := file.read(PIECE)):
                parts.append(part)
                size += len(part)
    finally:
        data.close()
    if size > most:
        why = "the limit of such a file"
        if isinstance(data, PackedBytes) and most < limit:
            why += f" that has {data.packed_size:,} compressed; unpack it, if that is right"
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes, {why}", path)
    return b"".join(parts)
