"""The wire format of Protocol Buffers: what a message holds, field by field.

What CNTK uses of it: docs/specification/model-files.md 4.1. Every length is compared with the message that it lies in
before anything is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cntkpy.networks.nodes.file_support.records import BadFile

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_WIDTHS = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10


class Span(NamedTuple):
    """A part of a file.

    Attributes:
        content: the whole file.
        start, end: offsets.
    """

    content: bytes
    start: int
    end: int


class Field(NamedTuple):
    """A field of a message.

    Attributes:
        number: which field it is.
        wire: its wire type.
        value: of a varint.
        span: the bytes of the value.
    """

    number: int
    wire: int
    value: int
    span: Span

    def varint(self) -> int:
        """Return the unsigned value of a varint field."""
        self.expect(VARINT)
        return self.value

    def integer(self) -> int:
        """Return the value of an int32 or int64 field."""
        value = self.varint()
        return value - (1 << 64) if value >= 1 << 63 else value

    def real(self) -> float:
        """Return the value of a float or double field."""
        width = {FIXED32: "f", FIXED64: "d"}.get(self.wire)
        if width is None:
            raise BadFile(f"field {self.number} is not a number", self.span.start)
        return struct.unpack_from("<" + width, self.span.content, self.span.start)[0]

    def message(self) -> Span:
        """Return the bytes of a field that holds a message."""
        self.expect(BYTES)
        return self.span

    def text(self) -> str:
        """Return the value of a string field."""
        span = self.message()
        try:
            return span.content[span.start : span.end].decode("utf-8")
        except UnicodeDecodeError:
            raise BadFile("a text is not UTF-8", span.start) from None

    def expect(self, wire: int) -> None:
        """Check the wire type."""
        if self.wire != wire:
            raise BadFile(f"field {self.number} has the wire type {self.wire}, not {wire}", self.span.start)


def fields(span: Span) -> Iterator[Field]:
    """Yield the fields of a message, in the order of the file."""
    content, position, end = span
    while position < end:
        field_start = position
        key, position = read_varint(content, position, end)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise BadFile("a field has the number 0", field_start)
        value = 0
        if wire == VARINT:
            start = position
            value, position = read_varint(content, position, end)
        else:
            if wire == BYTES:
                length, position = read_varint(content, position, end)
            elif wire in _WIDTHS:
                length = _WIDTHS[wire]
            else:
                raise BadFile(f"a field has the wire type {wire}", field_start)
            if length > end - position:
                raise BadFile(f"a field of {length} bytes does not fit: {end - position} are left", field_start)
            start, position = position, position + length
        yield Field(number, wire, value, Span(content, start, position))


def read_varint(content: bytes, position: int, end: int) -> tuple[int, int]:
    """Return an unsigned integer of variable length, and the position after it."""
    value, start = 0, position
    for shift in range(0, 7 * _LONGEST_VARINT, 7):
        if position >= end:
            raise BadFile("a number does not end", start)
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, position
    raise BadFile("a number is too long", start)


def varints(parts: list[Field]) -> list[int]:
    """Return the values of a repeated varint field, packed or not."""
    result: list[int] = []
    for field in parts:
        if field.wire != BYTES:
            result.append(field.varint())
            continue
        content, position, end = field.span
        while position < end:
            value, position = read_varint(content, position, end)
            result.append(value)
    return result


def reals(parts: list[Field], dtype: np.dtype) -> np.ndarray:
    """Return the values of a repeated float or double field, packed or not."""
    wire = FIXED32 if dtype.itemsize == 4 else FIXED64
    runs: list[tuple[int, int]] = []
    for field in parts:
        if field.wire != BYTES:
            field.expect(wire)
        start, end = field.span.start, field.span.end
        if (end - start) % dtype.itemsize:
            raise BadFile(f"{end - start} bytes are not numbers of {dtype.itemsize} bytes", start)
        runs.append((start, end))
    if len(runs) == 1:
        start, end = runs[0]
        return np.frombuffer(parts[0].span.content, dtype, (end - start) // dtype.itemsize, start)
    return np.frombuffer(b"".join(parts[0].span.content[start:end] for start, end in runs), dtype)
