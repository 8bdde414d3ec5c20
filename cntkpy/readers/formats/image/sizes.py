"""Width and height as the headers of pictures say them, before anything is decoded."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Container

Size = tuple[int, int]
NO_LENGTH = {0x01, 0xD8, *range(0xD0, 0xD8)}
FRAMES = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
_HEAD = 1 << 16
"""Bytes in which a header of text has to end."""
_BLANK = rb"(?:\s|#[^\n]*\n)+"
_NETPBM = re.compile(rb"P[1-6]" + _BLANK + rb"(\d{1,18})" + _BLANK + rb"(\d{1,18})\s")
_FLOATS = re.compile(rb"P[Ff]\s+(\d{1,18})\s+(\d{1,18})\s")
_WIDTH, _HEIGHT = re.compile(rb"^WIDTH\s+(\d{1,18})\s", re.M), re.compile(rb"^HEIGHT\s+(\d{1,18})\s", re.M)
_RADIANCE = re.compile(rb"^[-+][XY] +(\d{1,18}) +[-+][XY] +(\d{1,18}) *$", re.M)


def size_of(data: bytes) -> Size | None:
    """Width and height of a picture (or the other way round); None if its format is not known here.

    Raises:
        struct.error: the header is not whole.
    """
    try:
        return next((size(data) for start, size in _KNOWN if data.startswith(start)), None)
    except OverflowError:  # a place of 64 bits, far after the end
        raise struct.error from None


def segment(data: bytes, markers: Container[int]) -> int:
    """Return the start of the first segment of a JPEG file with one of these markers; the end of the data if there is
    none."""
    position, end = 2, len(data) - 3
    while position < end and data[position] == 0xFF:
        marker = data[position + 1]
        if marker in markers:
            return position
        if marker == 0xFF or marker in NO_LENGTH:
            position += 1 if marker == 0xFF else 2
        else:
            position += 2 + (data[position + 2] << 8 | data[position + 3])
    return len(data)


def _jpeg(data: bytes) -> Size:
    height, width = struct.unpack_from(">HH", data, segment(data, FRAMES) + 5)
    return width, height


def _bmp(data: bytes) -> Size:
    width, height = struct.unpack_from("<ii", data, 18)
    return abs(width), abs(height)


def _webp(data: bytes) -> Size | None:
    if data[8:12] != b"WEBP":
        return None
    if data[12:16] == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if data[12:16] == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


def _at(form: str, place: int) -> Callable[[bytes], Size]:
    return lambda data: struct.unpack_from(form, data, place)


def _text(pattern: re.Pattern[bytes]) -> Callable[[bytes], Size]:
    def size(data: bytes) -> Size:
        match = pattern.search(data[:_HEAD])
        if match is None:
            raise struct.error
        return int(match[1]), int(match[2])

    return size


def _pam(data: bytes) -> Size:
    width, height = _WIDTH.search(data[:_HEAD]), _HEIGHT.search(data[:_HEAD])
    if width is None or height is None:
        raise struct.error
    return int(width[1]), int(height[1])


def _tiff(data: bytes) -> Size:
    """Return the largest numbers that any of its directories gives as width and height."""
    order = "<" if data[:2] == b"II" else ">"
    (version,) = struct.unpack_from(order + "H", data, 2)
    big = version == 43
    (position,) = struct.unpack_from(order + ("Q" if big else "I"), data, 8 if big else 4)
    seen: set[int] = set()
    width = height = 0
    while position and position not in seen and len(seen) < 1000:
        seen.add(position)
        (count,) = struct.unpack_from(order + ("Q" if big else "H"), data, position)
        position += 8 if big else 2
        for _ in range(min(count, 4096)):
            tag, kind = struct.unpack_from(order + "HH", data, position)
            form = {3: "H", 4: "I", 16: "Q"}.get(kind)
            if tag in (256, 257) and form:
                (value,) = struct.unpack_from(order + form, data, position + (12 if big else 8))
                width, height = (max(width, value), height) if tag == 256 else (width, max(height, value))
            position += 20 if big else 12
        (position,) = struct.unpack_from(order + ("Q" if big else "I"), data, position)
    return width, height


def _jpeg2000(data: bytes) -> Size:
    place = data.find(b"ihdr", 0, _HEAD)
    if place < 0:
        raise struct.error
    return struct.unpack_from(">II", data, place + 4)


_KNOWN: tuple[tuple[bytes, Callable[[bytes], Size | None]], ...] = (
    (b"\xff\xd8", _jpeg),
    (b"\x89PNG\r\n\x1a\n", _at(">II", 16)),
    (b"BM", _bmp),
    (b"GIF8", _at("<HH", 6)),
    (b"RIFF", _webp),
    (b"II*\0", _tiff),
    (b"MM\0*", _tiff),
    (b"II+\0", _tiff),
    (b"MM\0+", _tiff),
    (b"P7", _pam),
    (b"PF", _text(_FLOATS)),
    (b"Pf", _text(_FLOATS)),
    (b"P", _text(_NETPBM)),
    (b"#?", _text(_RADIANCE)),
    (b"\x59\xa6\x6a\x95", _at(">II", 4)),
    (b"\xff\x4f\xff\x51", _at(">II", 8)),
    (b"\0\0\0\x0cjP  ", _jpeg2000),
)
"""Magic bytes of formats, and the function that finds the size in each header."""
