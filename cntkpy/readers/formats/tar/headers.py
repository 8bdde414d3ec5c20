"""The members of a tar archive, found by reading its headers only. Formats: ustar, GNU, pax, and the one of Unix V7.

Headers are parsed by Python's `tarfile`. Its own loop over an archive is not used: it takes a damaged header for the
end of the archive, so that the rest of the data would be missing without a word.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import NamedTuple

from cntkpy.readers.common.packed import DataBytes
from cntkpy.readers.errors import DataError

BLOCK = tarfile.BLOCKSIZE
LONGEST_HEADER = 1 << 20
"""Most bytes of a long name or of a pax header."""
LARGEST = 1 << 50
"""A member that claims more bytes is damaged."""
_DATA = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_REFUSED = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}
_END = bytes(BLOCK)


class Member(NamedTuple):
    """A file in an archive: its data are the bytes at .. at + size - 1."""

    name: str
    offset: int
    size: int


class _Following(NamedTuple):
    """Properties of the member that follows the headers."""

    name: str | None = None
    size: int | None = None


def members(data: DataBytes) -> Iterator[Member]:
    """Yield the files of an archive in their order; folders are passed over.

    Args:
        data: the archive, unpacked if it is compressed.

    Raises:
        DataError: it is damaged or cut short, or has a member that is a link, a device, a pipe or a sparse file.
    """
    position, following = 0, _Following()
    while (block := data.bytes(position, BLOCK)) != _END:
        if not position and len(block) < BLOCK:
            raise _broken(data, position, "it has no header of a tar archive", "is it a tar archive?")
        if len(block) < BLOCK:
            reason = "it ends without the two blocks of zeros that mark the end"
            raise _broken(data, position, reason, "it was cut short: copy or make it again")
        header = _parsed(data, block, position)
        position += BLOCK
        if header.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, *_PAX):
            following = _read_following(data, header, position, following)
            position = _after(position, header.size)
            continue
        name = (header.name if following.name is None else following.name).removeprefix("./")
        size = header.size if following.size is None else following.size
        following = _Following()
        if header.type == tarfile.DIRTYPE or (header.type in _DATA and name.endswith("/")):
            continue
        if header.type not in _DATA:
            reason = _REFUSED.get(header.type, f"of the unknown type {header.type!r}")
            message = f"its member '{_shown(name)}' is {reason}"
            raise _broken(
                data, position - BLOCK, message, "members are plain files: tar --dereference --hard-dereference"
            )
        _check_size(data, name, position, size)
        yield Member(name, position, size)
        position = _after(position, size)


_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)


def name_before(data: DataBytes, offset: int) -> str:
    """Return the name in the header just before some data; of a long one its beginning."""
    return _shown(_parsed(data, data.bytes(offset - BLOCK, BLOCK), offset - BLOCK).name.removeprefix("./"))


def _parsed(data: DataBytes, block: bytes, offset: int) -> tarfile.TarInfo:
    try:
        header = tarfile.TarInfo.frombuf(block, "utf-8", "backslashreplace")  # pyright: ignore[reportArgumentType]
    except tarfile.HeaderError as error:
        hint = "is it a tar archive?" if not offset else "make the archive again"
        raise _broken(data, offset, f"it has no sound header there ({error})", hint) from None
    if not 0 <= header.size < LARGEST:
        raise _broken(data, offset, f"a member of {header.size} bytes cannot be", "make the archive again")
    return header


def _check_size(data: DataBytes, name: str, position: int, size: int) -> None:
    """Refuse a member whose data are not all there. What is compressed is unpacked for that by the next header."""
    there = (
        data.size >= position + size if not data.packed else (not size or len(data.bytes(position + size - 1, 1)) == 1)
    )
    if not there:
        message = f"its member '{_shown(name)}' has {size} bytes, and the archive ends before"
        raise _broken(data, position, message, "it was cut short: copy or make it again")


def _after(offset: int, size: int) -> int:
    """Return the offset of the header after some data."""
    return offset + -(-size // BLOCK) * BLOCK


def _read_following(data: DataBytes, header: tarfile.TarInfo, position: int, known: _Following) -> _Following:
    """Return the known attributes of the next member, with those of a long-name or pax header added."""
    if header.size > LONGEST_HEADER:
        raise _broken(data, position - BLOCK, f"a header of {header.size} bytes is too long", "make the archive again")
    content = data.bytes(position, header.size)
    if len(content) < header.size:
        raise _broken(data, position - BLOCK, "it ends within a header", "it was cut short: copy or make it again")
    if header.type == tarfile.GNUTYPE_LONGLINK:
        return known
    if header.type == tarfile.GNUTYPE_LONGNAME:
        return known._replace(name=content.partition(b"\0")[0].decode("utf-8", "backslashreplace"))
    for key, value in _pax(data, content, position):
        if key.startswith("GNU.sparse."):
            raise _broken(data, position - BLOCK, "the member that follows is a sparse file", "tar without --sparse")
        if header.type == tarfile.XGLTYPE:
            continue
        if key == "path":
            known = known._replace(name=value)
        elif key == "size":
            if not (value.isascii() and value.isdigit() and len(value) < 16):
                raise _broken(data, position - BLOCK, f"'{value[:40]}' is not a size", "make the archive again")
            known = known._replace(size=int(value))
    return known


def _pax(data: DataBytes, content: bytes, position: int) -> Iterator[tuple[str, str]]:
    """Yield the records `length key=value` of a pax header."""
    begin = 0
    while begin < len(content):
        digits = content[begin : begin + 8].partition(b" ")[0]
        length = int(digits) if digits.isdigit() else 0
        record = content[begin + len(digits) + 1 : begin + length]
        key, equals, value = record.partition(b"=")
        if length > len(content) - begin or not equals or not value.endswith(b"\n"):
            raise _broken(data, position + begin, "a record of a pax header is wrong", "make the archive again")
        yield key.decode("utf-8", "replace"), value[:-1].decode("utf-8", "backslashreplace")
        begin += length


def _broken(data: DataBytes, position: int, reason: str, hint: str) -> DataError:
    return DataError(f"The archive {data.path} cannot be read at byte {position}: {reason}.", path=data.path, hint=hint)


def _shown(name: str) -> str:
    """Return a name in a message."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name[:200])
