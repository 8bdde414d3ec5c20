"""Messages of Arrow's IPC formats: where they lie, their rows, and their bytes once they are decoded.

pyarrow does not say where the record batches of a stream are, nor how many bytes a compressed one takes before it takes
them. So the headers of messages are read here; their buffers are read by pyarrow.

https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

import struct
from typing import Any, BinaryIO, NamedTuple

from .library import arrow

MAGIC = b"ARROW1"
FEATHER_1 = b"FEA1"
_CONTINUED = 0xFFFFFFFF
SCHEMA, DICTIONARY, BATCH = 1, 2, 3
_MOST_HEADER_BYTES = 64 << 20
_BLOCK_BYTES = 24


class Message(NamedTuple):
    """A message of a file.

    Attributes:
        kind: SCHEMA, DICTIONARY or BATCH.
        begin: the byte at which it begins.
        end: the byte behind its body.
        rows: of a dictionary its values.
        nbytes: bytes of its buffers, decoded.
    """

    kind: int
    begin: int
    end: int
    rows: int
    nbytes: int


class Damaged(ValueError):
    """A header is wrong."""


def is_stream(head: bytes) -> bool:
    """Return whether a file that begins with these bytes, 8 of them, is in the stream format."""
    if len(head) < 8:
        return False
    first, second = struct.unpack("<II", head)
    return first == _CONTINUED or (0 < first < _MOST_HEADER_BYTES and second < first)  # before Arrow 0.15


def messages_of_stream(file: BinaryIO, size: int) -> list[Message]:
    """Return the messages of a stream up to its end mark, or the end of the file.

    Args:
        file: the file.
        size: its bytes.

    Raises:
        Damaged: a header is wrong, or the file ends within a message.
    """
    messages: list[Message] = []
    begin = 0
    while begin < size and (message := _message(file, begin, size)) is not None:
        messages.append(message)
        begin = message.end
    return messages


def messages_of_file(file: BinaryIO, size: int) -> list[Message]:
    """Return the dictionaries and the record batches that the footer of a file lists; else as `messages_of_stream`."""
    file.seek(max(0, size - 10))
    tail = file.read(10)
    if tail[4:] != MAGIC:
        raise Damaged("it ends without ARROW1")
    length = struct.unpack("<i", tail[:4])[0]
    if not 0 < length <= min(size - 10, _MOST_HEADER_BYTES):
        raise Damaged(f"its footer has {length} bytes")
    file.seek(size - 10 - length)
    footer = _Table.root(file.read(length))
    blocks = [*footer.structs(2, _BLOCK_BYTES), *footer.structs(3, _BLOCK_BYTES)]
    messages = [_message(file, struct.unpack_from("<q", block)[0], size) for block in blocks]
    return [message for message in messages if message is not None]


def _message(file: BinaryIO, begin: int, size: int) -> Message | None:
    """Return the message at a byte; None if the end of a stream is marked there."""
    if not 0 <= begin < size:
        raise Damaged(f"a message begins at byte {begin}")
    file.seek(begin)
    head = file.read(8)
    if len(head) < 4:
        raise Damaged(f"it ends within the message at byte {begin}")
    first = struct.unpack("<I", head[:4])[0]
    position = begin + (8 if first == _CONTINUED else 4)
    length = struct.unpack("<I", head[4:])[0] if first == _CONTINUED and len(head) == 8 else first
    if not length:
        return None
    if length > min(_MOST_HEADER_BYTES, size - position):
        raise Damaged(f"the header of the message at byte {begin} has {length} bytes")
    file.seek(position)
    message = _Table.root(file.read(length))
    kind, header, body = message.number(1, "<B"), message.table(2), message.number(3, "<q")
    position += length
    if header is None or not 0 <= body <= size - position:
        raise Damaged(f"it ends within the message at byte {begin}")
    batch = header.table(1) if kind == DICTIONARY else header
    if kind not in (DICTIONARY, BATCH) or batch is None:
        return Message(kind, begin, position + body, 0, 0)
    rows, nbytes = batch.number(0, "<q"), _decoded(file, position, position + body, batch)
    return Message(kind, begin, position + body, rows, nbytes)


def _decoded(file: BinaryIO, begin: int, end: int, batch: _Table) -> int:
    """Return the bytes of the buffers of a record batch whose body lies from begin to end."""
    compressed, total = batch.table(3) is not None, 0
    for buffer in batch.structs(2, 16):
        offset, length = struct.unpack("<qq", buffer)
        if not 0 <= length <= end - begin or not 0 <= offset <= end - begin - length:
            raise Damaged("a buffer lies outside of its message")
        if compressed and length >= 8:  # its length once it is decompressed, or -1
            file.seek(begin + offset)
            plain = struct.unpack("<q", file.read(8))[0]
            length = plain if plain >= 0 else length
        total += length
    return total


class _Table:
    """A table of FlatBuffers: fields by their numbers. All places are checked."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position
        self._fields = position - self._read("<i", position)
        self._size = self._read("<H", self._fields)

    @classmethod
    def root(cls, data: bytes) -> _Table:
        """Return the table that a buffer begins with."""
        if len(data) < 4:
            raise Damaged("a header is cut short")
        return cls(data, struct.unpack_from("<I", data)[0])

    def number(self, field: int, code: str) -> int:
        """Return a number; 0 where it is left out."""
        place = self._place(field)
        return self._read(code, place) if place else 0

    def table(self, field: int) -> _Table | None:
        """Return a table; None where it is left out."""
        place = self._place(field)
        return _Table(self._data, place + self._read("<I", place)) if place else None

    def structs(self, field: int, nbytes: int) -> list[bytes]:
        """Return the structs of a vector, each of so many bytes."""
        if not (place := self._place(field)):
            return []
        begin = place + self._read("<I", place)
        count, begin = self._read("<I", begin), begin + 4
        if count * nbytes > len(self._data) - begin:
            raise Damaged("a list in a header is longer than the header")
        return [self._data[index : index + nbytes] for index in range(begin, begin + count * nbytes, nbytes)]

    def _place(self, field: int) -> int:
        entry = 4 + 2 * field
        offset = self._read("<H", self._fields + entry) if entry < self._size else 0
        return self._position + offset if offset else 0

    def _read(self, code: str, position: int) -> int:
        if not 0 <= position <= len(self._data) - struct.calcsize(code):
            raise Damaged("a header points outside of itself")
        return struct.unpack_from(code, self._data, position)[0]


def batch_of_stream(file: BinaryIO, parts: list[Message], included: list[int], threads: bool) -> Any:
    """Return the record batch that is the last one of some messages of a stream, a `pyarrow.RecordBatch`.

    Args:
        file: the file.
        parts: the schema, the dictionaries that the batch needs, and the batch.
        included: numbers of the columns that are read.
        threads: whether several threads decode columns.
    """
    pa = arrow()
    pieces: list[bytes] = []
    for part in parts:
        file.seek(part.begin)
        pieces.append(file.read(part.end - part.begin))
    options = pa.ipc.IpcReadOptions(included_fields=included, use_threads=threads)
    with pa.ipc.open_stream(pa.BufferReader(b"".join(pieces)), options=options) as reader:
        return reader.read_next_batch()
