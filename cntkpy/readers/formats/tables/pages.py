"""Headers of the pages of a column chunk of Parquet: how many bytes its values take at most once they are decoded.

A page of some bytes may stand for any number of equal values, and says itself how long it is once it is decompressed.
The headers are read before pyarrow takes memory for either.
"""

from __future__ import annotations

import struct
from typing import Any, BinaryIO, NamedTuple

from .compact import CompactReader
from .footer import ColumnChunk

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_2 = 0, 2, 3
"""Types of pages."""
_CODED, _DELTA_BYTES = (2, 8), 7
"""Encodings: places in the dictionary; texts of which each repeats the beginning of the one before it."""
_HEADER_BYTES, _MOST_HEADER_BYTES = 256, 1 << 16
_TYPE, _UNCOMPRESSED, _COMPRESSED, _DATA, _DICTIONARY, _DATA_2 = 1, 2, 3, 5, 7, 8
"""Numbers of fields."""
_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
"""Bytes of a value by physical types of one size."""
_BYTE_ARRAY = 6
_PLACE_BYTES = 8
"""Bytes of a value beside its own: where it begins, or its levels."""


class PageSizes(NamedTuple):
    """Sizes of the pages of a column chunk.

    Attributes:
        plain: bytes of all pages, decompressed.
        dictionary: bytes of the dictionary, decompressed; 0 where there is none.
        coded: whether values are places in the dictionary.
        shared: whether texts repeat the beginnings of others.
        values: how many there are.
    """

    plain: int
    dictionary: int
    coded: bool
    shared: bool
    values: int


def page_header(file: BinaryIO, begin: int, end: int) -> tuple[dict[int, Any], int]:
    """Return the fields of the header of a page, and the byte behind it.

    Args:
        file: the Parquet file.
        begin: the first byte of the page.
        end: the byte behind the column chunk.

    Raises:
        ValueError, LookupError: it is no header.
    """
    for most in (_HEADER_BYTES, _MOST_HEADER_BYTES):
        file.seek(begin)
        reader = CompactReader(file.read(min(most, end - begin)))
        try:
            return reader.fields(), begin + reader.position
        except (ValueError, LookupError):
            if most == _MOST_HEADER_BYTES:
                raise
    raise ValueError


def page_sizes(file: BinaryIO, chunk: ColumnChunk) -> PageSizes | None:
    """Return the sizes of the pages of a column chunk; None where a header is not understood.

    Args:
        file: the Parquet file.
        chunk: the column chunk, which lies within the file.
    """
    position, end = chunk.begin, chunk.begin + chunk.nbytes
    plain = dictionary = values = 0
    coded = shared = False
    try:
        while position < end and values < chunk.values:
            fields, position = page_header(file, position, end)
            size, packed = fields[_UNCOMPRESSED], fields[_COMPRESSED]
            if size < 0 or packed < 0:
                return None
            plain, position = plain + size, position + packed
            if fields[_TYPE] == DICTIONARY_PAGE:
                dictionary += size
            elif fields[_TYPE] in (DATA_PAGE, DATA_PAGE_2):
                first = fields[_TYPE] == DATA_PAGE
                about = fields[_DATA if first else _DATA_2]
                values += about[1]
                encoding = about[2 if first else 4]
                coded, shared = coded or encoding in _CODED, shared or encoding == _DELTA_BYTES
    except (ValueError, LookupError, TypeError, struct.error):
        return None
    return PageSizes(plain, dictionary, coded, shared, max(values, chunk.values))


def most_bytes(chunk: ColumnChunk, sizes: PageSizes, length: int) -> int:
    """Return the largest number of bytes that the decoded values of a column chunk take.

    Args:
        chunk: the column chunk.
        sizes: of its pages.
        length: bytes of a value of the type FIXED_LEN_BYTE_ARRAY.
    """
    values = max(sizes.values, 0)
    if chunk.kind != _BYTE_ARRAY:
        return values * (_WIDTHS.get(chunk.kind, max(length, 0)) + _PLACE_BYTES) + sizes.plain
    text = values * sizes.plain if sizes.shared else values * sizes.dictionary if sizes.coded else 0
    return text + values * _PLACE_BYTES + sizes.plain


def coded_bytes(chunk: ColumnChunk, sizes: PageSizes) -> int | None:
    """Return the bytes of texts that are read as places in a dictionary; None where they cannot be.

    Args:
        chunk: the column chunk.
        sizes: of its pages.
    """
    if chunk.kind != _BYTE_ARRAY or not sizes.coded or sizes.shared:
        return None
    return max(sizes.values, 0) * _PLACE_BYTES + sizes.plain
