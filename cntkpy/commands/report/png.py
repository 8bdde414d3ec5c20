"""A small picture as a PNG in the text of an address, without a package for images (https://www.w3.org/TR/png-3/)."""

from __future__ import annotations

import base64
import struct
import zlib

COLOR_TYPES = {1: 0, 3: 2}
"""Grey and RGB, by the number of channels."""


def data_url(width: int, height: int, channels: int, pixels: bytes) -> str:
    """Return the address of a picture with eight bits a channel; `pixels`: rows from the top."""
    row = width * channels
    lines = b"".join(b"\0" + pixels[begin : begin + row] for begin in range(0, row * height, row))
    header = struct.pack(">IIBBBBB", width, height, 8, COLOR_TYPES[channels], 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(lines, 9)) + _chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunks).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
