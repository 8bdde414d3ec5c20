"""Compressed formats, unpacked piece by piece: gzip, zlib, bzip2, xz, lzma and Zstandard.

Each unpacks into pieces of bounded size, whatever the file says, and knows where unpacking can begin again: at the
start of a member, stream or frame, and for gzip and zlib wherever its state was copied. Other formats are recognised,
so that a message can name them.
"""

from __future__ import annotations

import bz2
import importlib
import lzma
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import how_to_install
from cntkpy.cntk_config.base.lazy_modules import np

PIECE = 1 << 20
"""Most bytes that are unpacked at a time."""
INPUT = 1 << 16
MOST_MEMORY = 256 << 20
"""Bytes that unpacking may need for what it refers back to: xz -9 and zstd --ultra -22 need half of it."""
ZSTD = b"\x28\xb5\x2f\xfd"
MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", ZSTD: "zstd"}
LONGEST_MAGIC = 64
"""Bytes that `format_of` looks at."""
_BZIP2_BLOCKS = b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"
"""Marks of a bzip2 block and of the end of a stream."""
_LZMA = b"\x5d\0\0"
_ZLIB = 0x7801, 0x785E, 0x789C, 0x78DA
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_MOST_SKIPPED = 1000
"""Skippable frames at the start of a file that are passed to find its format."""
_OTHER = {
    b"\x04\x22\x4d\x18": ("LZ4", "lz4 -dc"),
    b"\x02\x21\x4c\x18": ("LZ4", "lz4 -dc"),
    b"LZIP\0": ("lzip", "lzip -dc"),
    b"LZIP\1": ("lzip", "lzip -dc"),
    b"\x89LZO\0\r\n\x1a\n": ("lzop", "lzop -dc"),
    b"\x1f\x9d": ("compress (.Z)", "gzip -dc"),
    b"\x1f\xa0": ("compress -H", "gzip -dc"),
    b"\x1f\x1e": ("pack (.z)", "gzip -dc"),
    b"LRZI\0": ("lrzip", "lrzip -d -o -"),
    b"\xff\x06\0\0sNaPpY": ("framed Snappy", "snzip -dc"),
    b"7z\xbc\xaf\x27\x1c": ("7-Zip", "7z x -so"),
    b"PK\3\4": ("ZIP", "unzip -p"),
    b"PK\5\6": ("ZIP", "unzip -p"),
    b"PK\7\x08": ("ZIP", "unzip -p"),
    b"Rar!\x1a\7": ("RAR", "unrar p -inul"),
    b"MSCF\0\0\0\0": ("Cabinet", "cabextract -p"),
    **{bytes([first]) + ZSTD[1:]: ("Zstandard of a version before 0.8", "zstd -dc") for first in (30, *range(34, 40))},
}
"""Formats that are not unpacked: name, and the program that does."""


class Broken(Exception):
    """Error in compressed data, with its byte in the compressed file.

    Args:
        what: what is wrong.
        offset: the byte.
        program: for a file that is whole, but needs more than is provided: the program that unpacks it.
    """

    def __init__(self, problem: str, offset: int, program: str = "") -> None:
        super().__init__(problem)
        self.offset, self.program = offset, program


class Restart(NamedTuple):
    """Restart point of unpacking: bytes before it in the plain text and in the compressed file; gzip's state."""

    plain: int = 0
    packed: int = 0
    state: Any = None


class Unpacker(Protocol):
    """The plain bytes from a restart on."""

    plain: int
    """Bytes of the plain text before the next piece."""

    def piece(self) -> bytes:
        """Return the next bytes, at most `PIECE`; none at the end of the file.

        Raises:
            Broken: the file is damaged or ends early.
        """
        ...

    def restart(self, copied: bool = False) -> Restart | None:
        """Return a restart at the current byte; None if there can be none. copied: a copy of the state may be
        made."""
        ...


Read = Callable[[int, int], bytes]
"""Bytes of the compressed file: (first, how many)."""


_BINARY = {
    b"PAR1": ("a Parquet file", "read it with type=ParquetDeserializer"),
    b"ARROW1\0\0": ("an Arrow file", "read it with type=ArrowDeserializer"),
    b"FEA1": ("a file of Feather, version 1", "write version 2, which type=ArrowDeserializer reads"),
    b"\x89HDF\r\n\x1a\n": ("an HDF5 file", "write its tables as Parquet or CSV"),
    b"\x93NUMPY": ("an array of NumPy", "write arrays by numpy.savez: cntkpy convert NAME.npz NAME.ctf"),
    b"SQLite format 3\0": ("a database of SQLite", "write its tables as Parquet or CSV"),
    b"Obj\1": ("an Avro file", "write it as Parquet or CSV"),
}
"""Beginnings of files of data that are not text, what they are, and what to do."""
_MEMBERS = {
    b"[Content_Types].xml": ("a workbook (xlsx)", "save the sheet as CSV"),
    b"_rels/.rels": ("a workbook (xlsx)", "save the sheet as CSV"),
    b"mimetype": ("a document (OpenDocument)", "save the sheet as CSV"),
    b".npy": ("an archive of arrays (npz)", "make text of it: cntkpy convert NAME.npz NAME.ctf"),
}
"""Parts of the name of the first member of a ZIP archive, what the archive is, and what to do."""


def binary_format(head: bytes) -> tuple[str, str] | None:
    """Return the name of a binary format and a hint, by the first bytes of a file; None if the format is unknown."""
    if head[:4] == b"PK\3\4":
        return next((kind for name, kind in _MEMBERS.items() if name in head[30:]), None)
    if not any(byte < 9 for byte in head):  # text, as of a table whose first column is PAR1
        return None
    return next((kind for magic, kind in _BINARY.items() if head.startswith(magic)), None)


def format_of(head: bytes) -> str | None:
    """Return the compressed format of a file that begins with these bytes: `gzip`, `bzip2`, `xz`, ...; None: it is
    none.
    """
    if head[:3] == b"BZh":
        block = any(bzip2_block.startswith(head[4:10]) for bzip2_block in _BZIP2_BLOCKS)
        return "bzip2" if head[3:4].isdigit() and block else None
    if len(head) >= 13 and head[:3] == _LZMA and (head[5:13] == b"\xff" * 8 or head[10:13] == bytes(3)):
        return "lzma"
    if len(head) > 2 and int.from_bytes(head[:2]) in _ZLIB and _inflates(head):
        return "zlib"
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)


def _inflates(head: bytes) -> bool:
    """Return whether these bytes are the start of a stream of zlib; `x^` may begin a text."""
    try:
        return bool(zlib.decompressobj().decompress(head, 1 << 16)) or len(head) < LONGEST_MAGIC
    except zlib.error:
        return False


def format_at_start(read: Read) -> str | None:
    """As `format_of`, past what Zstandard and LZ4 tell their readers to skip at the start of a file.

    Raises:
        Broken: it is compressed in a format that is not unpacked; the message is its name.
    """
    position, head = 0, read(0, LONGEST_MAGIC)
    for _ in range(_MOST_SKIPPED):
        if len(head) < 8 or int.from_bytes(head[:4], "little") not in _SKIPPABLE:
            break
        position += 8 + int.from_bytes(head[4:8], "little")
        head = read(position, LONGEST_MAGIC)
    for magic, (name, program) in _OTHER.items():
        if head.startswith(magic):
            raise Broken(name, position, program)
    return "zstd" if position else format_of(head)


def unpacker(name: str, read: Read, start: Restart) -> Unpacker:
    """Return the unpacker of a format that starts at a restart.

    Raises:
        UserError: a package is missing.
    """
    if name == "zstd":
        return _Frames(read, start)
    return _Streams(name, read, start)


_COPIED = "gzip", "zlib"
"""Formats of which the state of unpacking can be copied."""


class _Streams:
    """Streams of gzip (its members), zlib, bzip2, xz or lzma, one after the other."""

    def __init__(self, name: str, read: Read, start: Restart) -> None:
        self._name, self._read = name, read
        self.plain, self._packed = start.plain, start.packed
        self._object: Any = start.state.copy() if start.state is not None else None
        self._tail = b""
        """Bytes read and not yet unpacked; `_packed` is the place after it."""

    def piece(self) -> bytes:
        """See `Unpacker`."""
        while True:
            if self._object is None and not self._begin():
                return b""
            value: Any = self._object
            data = self._unpack()
            if value.eof:
                self._tail = value.unused_data
                self._object = None
            if data:
                self.plain += len(data)
                return data

    def restart(self, copied: bool = False) -> Restart | None:
        """See `Unpacker`."""
        here = self._packed - len(self._tail)
        if self._object is None:
            return Restart(self.plain, here)
        return Restart(self.plain, here, self._object.copy()) if copied and self._name in _COPIED else None

    def _begin(self) -> bool:
        """Begin the next stream; False at the end of the file. Zeros between streams are padding."""
        while not (remainder := self._tail.lstrip(b"\0")):
            self._tail = self._more()
            if not self._tail:
                return False
        if len(remainder) < LONGEST_MAGIC:
            remainder += self._more()
        self._tail = remainder
        if format_of(remainder) != self._name:
            raise Broken(f"what follows the end of its data is not {self._name}", self._packed - len(remainder))
        self._object = self._new()
        return True

    def _new(self) -> Any:
        if self._name in _COPIED:
            return zlib.decompressobj(31 if self._name == "gzip" else 15)
        if self._name == "bzip2":
            return bz2.BZ2Decompressor()
        return lzma.LZMADecompressor(lzma.FORMAT_XZ if self._name == "xz" else lzma.FORMAT_ALONE, MOST_MEMORY)

    def _more(self) -> bytes:
        packed = self._read(self._packed, INPUT)
        self._packed += len(packed)
        return packed

    def _unpack(self) -> bytes:
        decoder, copied = self._object, self._name in _COPIED
        ended = False
        if not self._tail and (copied or decoder.needs_input):
            self._tail = self._more()
            ended = not self._tail
        tail, self._tail = self._tail, b""
        position = self._packed - len(tail)
        try:
            plain = decoder.decompress(tail, PIECE)
        except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, MemoryError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            if "limit" in reason and isinstance(error, lzma.LZMAError):
                raise Broken(
                    f"unpacking it needs more than {MOST_MEMORY >> 20} MB of memory", position, "xz -dc"
                ) from None
            raise Broken(reason, position) from None
        if copied:
            self._tail = decoder.unconsumed_tail
        if ended and not plain and not decoder.eof:
            raise Broken("it ends early", self._packed)
        return plain


class _InGroup(Exception):
    """One of several blocks is damaged."""


_RAW, _RLE, _COMPRESSED = 0, 1, 2


class _Frames:
    """Frames of Zstandard, one after the other, unpacked in groups of blocks: a block is at most 128 KB of plain text.

    Each call of the library takes the interpreter lock, for which others wait; so it is given several blocks. Where it
    meets damage, the frame is unpacked once more, block by block, up to the one that is damaged.
    """

    def __init__(self, read: Read, start: Restart) -> None:
        self._library = _zstandard()
        self._file, self.plain, self._packed = read, start.plain, start.packed
        self._object: Any = None
        self._checksum = False
        self._ahead, self._ahead_at = b"", 0
        self._frame = start
        self._one_by_one = False

    def piece(self) -> bytes:
        """See `Unpacker`."""
        while True:
            if self._object is None:
                self._frame, self._one_by_one = Restart(self.plain, self._packed), False
                if not self._begin():
                    return b""
                continue
            try:
                blocks = self._block() if self._one_by_one else self._blocks()
            except _InGroup:
                blocks = self._once_more()
            if blocks:
                self.plain += len(blocks)
                return blocks

    def restart(self, copied: bool = False) -> Restart | None:
        """See `Unpacker`."""
        return Restart(self.plain, self._packed) if self._object is None else None

    def _blocks(self) -> bytes:
        """Return the plain text of the next blocks of the frame, as many as make a piece.

        Raises:
            _InGroup: one is damaged.
        """
        size, last = 0, 0
        for _ in range(max(1, PIECE >> 17)):
            if (begin := self._look(size, 3)) < 0:
                break
            header = int.from_bytes(self._ahead[begin : begin + 3], "little")
            end = size + 3 + (1 if header >> 1 & 3 == _RLE else header >> 3) + 4 * (header & self._checksum)
            if header >> 1 & 3 > _COMPRESSED or header >> 3 > 1 << 17 or self._look(size, end - size) < 0:
                break
            size, last = end, header & 1
            if last:
                break
        if not size:
            return self._block()  # which says what is wrong
        begin = self._look(0, size)
        self._packed += size
        try:
            plain = self._object.decompress(memoryview(self._ahead)[begin : begin + size])
        except (self._library.ZstdError, MemoryError, ValueError):
            raise _InGroup from None
        if self._object.eof != bool(last):
            raise _InGroup
        if last:
            self._object = None
        return plain

    def _look(self, offset: int, count: int) -> int:
        """Return the index in `_ahead` of `count` bytes at `offset` from here; -1 if the file ends before them."""
        begin = self._packed - self._ahead_at + offset
        if begin < offset or begin + count > len(self._ahead):
            self._ahead, self._ahead_at = self._file(self._packed, max(16 * INPUT, offset + count)), self._packed
            begin = offset
        return begin if begin + count <= len(self._ahead) else -1

    def _once_more(self) -> bytes:
        """Return the plain text of the next block, after one of a group turned out to be damaged; Broken if it is this
        one.
        """
        done, self._packed, self._one_by_one = self.plain - self._frame.plain, self._frame.packed, True
        self._begin()
        while done > 0:
            done -= len(self._block())
        return self._block()

    def _take(self, count: int) -> bytes:
        """Return the next bytes of the file; fewer at its end."""
        offset = self._packed - self._ahead_at
        if offset < 0 or offset + count > len(self._ahead):
            self._ahead, self._ahead_at, offset = self._file(self._packed, max(4 * INPUT, count)), self._packed, 0
        ahead = self._ahead[offset : offset + count]
        self._packed += len(ahead)
        return ahead

    def _all(self, count: int) -> bytes:
        result = self._take(count)
        if len(result) < count:
            raise Broken("it ends early", self._packed)
        return result

    def _begin(self) -> bool:
        """Begin the next frame; False at the end of the file."""
        position = self._packed
        magic = self._take(4)
        if not magic:
            return False
        number = int.from_bytes(magic, "little")
        if number in _SKIPPABLE:
            size = int.from_bytes(self._all(4), "little")
            self._packed += size
            if size and not self._file(self._packed - 1, 1):
                raise Broken("it ends early", position)
            return True
        if magic != ZSTD:
            raise Broken(
                "it ends early" if len(magic) < 4 else "what follows the end of its data is not zstd", position
            )
        descriptor = self._all(1)[0]
        single = descriptor >> 5 & 1
        id_size, content_size = (0, 1, 2, 4)[descriptor & 3], (single, 2, 4, 8)[descriptor >> 6]
        sizes = self._all(1 - single + id_size + content_size)
        header = magic + bytes([descriptor]) + sizes
        if number := int.from_bytes(sizes[1 - single :][:id_size], "little"):
            raise Broken(f"it was compressed with a dictionary (id {number})", position, "zstd -D DICTIONARY -dc")
        window = int.from_bytes(sizes[id_size:], "little") + 256 * (content_size == 2)
        if not single:
            window = (8 + (sizes[0] & 7)) << (7 + (sizes[0] >> 3))
        if window > MOST_MEMORY // 2:
            reason = f"unpacking it needs {window >> 20:,} MB of memory, and {MOST_MEMORY >> 21} MB are the limit"
            raise Broken(reason, position, "zstd --long=31 -dc")
        self._checksum = bool(descriptor >> 2 & 1)
        self._object = self._library.ZstdDecompressor(max_window_size=MOST_MEMORY // 2).decompressobj(PIECE)
        self._feed(header, position)
        return True

    def _block(self) -> bytes:
        """Return the plain text of the next block."""
        position = self._packed
        header = self._all(3)
        number = int.from_bytes(header, "little")
        last, kind, size = number & 1, number >> 1 & 3, number >> 3
        if kind > _COMPRESSED or size > 1 << 17:
            raise Broken("the header of a block is wrong", position)
        content = self._all(1 if kind == _RLE else size)
        end = self._all(4) if last and self._checksum else b""
        decoder = self._object
        data = self._feed(header + content + end, position)
        if last:
            self._object = None
            if not decoder.eof:
                raise Broken("a frame does not end after its last block", position)
        return data

    def _feed(self, data: bytes, position: int) -> bytes:
        try:
            return self._object.decompress(data)
        except (self._library.ZstdError, MemoryError, ValueError) as error:
            raise Broken(" ".join(str(error).split()), position) from None


def _zstandard() -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError as error:
        raise UserError(
            "MissingPackage",
            f"Zstandard files (.zst) are unpacked by the package zstandard, which is not installed: {error}",
            hint=how_to_install("zstd"),
        ) from error


class SeekTable(NamedTuple):
    """Starts of the frames of a Zstandard file, which its last, skippable frame says, and where the last one ends.

    Attributes:
        plain, packed: bytes before each frame in the plain text and in the file, int64[frames + 1], rising.
    """

    plain: np.ndarray
    packed: np.ndarray

    def place(self, offset: int) -> Restart:
        """Return the start of the frame with byte `offset` of the plain text."""
        frame = max(0, min(int(np.searchsorted(self.plain, offset, side="right")), len(self.plain) - 1) - 1)
        return Restart(int(self.plain[frame]), int(self.packed[frame]))

    def has(self, place: Restart) -> bool:
        """Return whether a frame ends there, or begins."""
        frame = int(np.searchsorted(self.packed, place.packed))
        return frame < len(self.packed) and self.packed[frame] == place.packed and self.plain[frame] == place.plain


_FOOTER, _SEEKABLE, _TABLE_FRAME = 9, 0x8F92EAB1, 0x184D2A5E


def seek_table(read: Read, size: int) -> SeekTable | None:
    """Return the table of frames at the end of a Zstandard file of this size; None if it has none that describes all of
    it.

    The table is 8 or 12 bytes of the file for a frame, and so are the arrays, at most twice as many.
    """
    footer = read(size - _FOOTER, _FOOTER) if size > 8 + _FOOTER else b""
    if len(footer) < _FOOTER:
        return None
    frames, flags, magic = struct.unpack("<IBI", footer)
    width = 12 if flags & 0x80 else 8
    begin = size - 8 - frames * width - _FOOTER
    if magic != _SEEKABLE or flags & 0x7C or not frames or begin < 0:
        return None
    content = read(begin, 8 + frames * width)
    if content[:8] != struct.pack("<II", _TABLE_FRAME, frames * width + _FOOTER) or len(content) < 8 + frames * width:
        return None
    sizes = np.frombuffer(content, "<u4", offset=8).reshape(frames, width // 4)[:, :2]
    ends = np.zeros((2, frames + 1), np.int64)
    np.cumsum(sizes.T, axis=1, out=ends[:, 1:])
    packed, plain = ends
    return SeekTable(plain, packed) if packed[-1] == begin else None
