"""A stamp in the headers of a binary file that is a cache: what it was made from, and a checksum of every section.

The header of a section has room that its format does not use; there stand the version of the stamp, 16 bytes that name
the source, and the CRC-32 of the section's header and data. Other readers of the format pass over it.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from cntkpy.cntk_config.base.writing import open_in_place, target_of
from cntkpy.readers.common.file_bytes import FileBytes

from .file import BinaryFile, StoredSection
from .format import CLOSED, HEADER, UNFINISHED

STAMP = struct.Struct("<8s16sI")
PLACE = 44
"""Offset in a header."""
VERSION = b"cntkpy\0\1"
_PIECE = 1 << 20


def stamp(path: str, source: bytes) -> None:
    """Write the stamps of a file that is complete.

    Args:
        path: the file.
        source: 16 bytes that name what it was made from.
    """
    file = BinaryFile(path)
    try:
        made = [
            (section.offset + PLACE, STAMP.pack(VERSION, source, _checksum(section, source)))
            for section in _sections(file)
        ]
    finally:
        file.close()
    with open(open_in_place(target_of(Path(path))), "r+b") as out:  # noqa: PTH123 - a descriptor
        for place, text in made:
            out.seek(place)
            out.write(text)
        out.flush()
        os.fsync(out.fileno())


def check(file: BinaryFile, source: bytes | None) -> str:
    """Return an error text for the stamps of a file; an empty text if they are right.

    Args:
        file: the open file.
        source: 16 bytes that name what it should have been made from; None: any file that is whole, or has no stamp.
    """
    for section in _sections(file):
        version, made_from, checksum = STAMP.unpack(file.bytes.bytes(section.offset + PLACE, STAMP.size))
        if version != VERSION:
            return "" if source is None and not version.strip(b"\0") else "it was written by another version or program"
        if source is not None and made_from != source:
            return "the data file, the label mapping or the section of the reader has changed since"
        if checksum != _checksum(section, made_from):
            return f"{f'its section {section.name!r}' if section.offset else 'its header'} is damaged"
    return ""


def may_be_replaced(path: str) -> bool:
    """Return whether a file is empty, a binary file or what is left of a stamped one: any other is no cache."""
    file = FileBytes(path)
    try:
        beginning = file.bytes(0, HEADER)
    finally:
        file.close()
    stamped = beginning[PLACE : PLACE + len(VERSION)] == VERSION
    return not beginning or stamped or int.from_bytes(beginning[:2], "little") in (CLOSED, UNFINISHED)


def _sections(file: BinaryFile) -> Iterator[StoredSection]:
    yield file.root
    yield from file.sections.values()


def _checksum(section: StoredSection, source: bytes) -> int:
    """CRC-32 of a section, its own place in the stamp taken as 0."""
    begin, size = section.offset, section.header.header_size + section.header.data_bytes
    first = bytearray(section.file.bytes(begin, min(size, _PIECE)))
    first[PLACE : PLACE + STAMP.size] = STAMP.pack(VERSION, source, 0)
    checksum = zlib.crc32(first)
    for index in range(_PIECE, size, _PIECE):
        checksum = zlib.crc32(section.file.bytes(begin + index, min(_PIECE, size - index)), checksum)
    return checksum
