"""A binary file opened for reading: its tree of sections, checked before anything of it is believed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cntkpy.readers.common.file_bytes import FileBytes
from cntkpy.readers.errors import DataError

from . import format as f

_DEPTH = 16
OF_CBF = b"nib_ktnc"
"""Magic bytes of CNTK binary format, which has nothing to do with these."""
MOST_BYTES = 1 << 30  # of a label map or statistics, which are read at once


@dataclass(eq=False)
class StoredSection:
    """A section of a file and the sections inside it."""

    header: f.Header
    offset: int
    file: FileBytes
    inside: list[StoredSection] = field(default_factory=list["StoredSection"])

    @property
    def name(self) -> str:
        """Its name."""
        return self.header.name

    @property
    def begin(self) -> int:
        """Offset of its data in bytes."""
        return self.offset + self.header.header_size

    def error(self, message: str, hint: str | None = None) -> DataError:
        """Return an error about this section."""
        return DataError(f"The section '{self.name}' of {self.file.path} {message}.", path=self.file.path, hint=hint)

    def content(self) -> bytes:
        """Return all its data."""
        if self.header.data_bytes > MOST_BYTES:
            raise self.error(f"has {self.header.data_bytes} bytes, too many to be read at once")
        return self.file.bytes(self.begin, self.header.data_bytes)

    def strings(self) -> dict[int, str]:
        """Return the labels of a label mapping."""
        if self.header.kind != f.MAPPING:
            raise self.error("is not a label mapping")
        parts = self.content().split(b"\0")
        if len(parts) <= self.header.records:
            raise self.error(f"has less than {self.header.records} labels")
        return {i: text.decode("utf-8", "replace") for i, text in enumerate(parts[: self.header.records])}

    def statistics(self) -> dict[str, float]:
        """Return the named numbers of a section of statistics."""
        if self.header.kind != f.STATISTICS or self.header.element_size != f.STATISTIC.size:
            raise self.error("does not hold statistics")
        content = self.content()
        result = f.STATISTIC.iter_unpack(content[: len(content) // f.STATISTIC.size * f.STATISTIC.size])
        return {name.split(b"\0")[0].decode("utf-8", "replace"): value for name, value in result}

    def rows(self, first: int, count: int) -> np.ndarray:
        """Records first .. first + count - 1, (count, elements per record)."""
        dtype = self.header.element_type()
        if dtype is None:
            raise self.error("does not hold numbers")
        width = self.header.per_record or 1
        step = width * dtype.itemsize
        return self.file.window(self.begin + first * step, count * step, dtype).reshape(count, width)


class BinaryFile:
    """A binary file: `root` and all sections by their name (lower case)."""

    def __init__(self, path: str):
        self.path = path
        self.bytes = FileBytes(path)
        if self.bytes.bytes(0, len(OF_CBF)) == OF_CBF:
            message = f"{path} is a file in CNTK binary format, and not of BinaryWriter."
            raise DataError(message, path=path, hint="readerType=CNTKBinaryReader reads it")
        self.sections: dict[str, StoredSection] = {}
        self._seen: set[int] = set()
        self.root = self._load(0, f.CLOSED, 0)
        if self.root.header.kind != f.FILE:
            raise DataError(f"{path} is not a CNTK binary file: its first section is of another type.", path=path)

    @property
    def records(self) -> int:
        """Records that the file says it has."""
        return self.root.header.records

    def _load(self, offset: int, magic: int, depth: int) -> StoredSection:
        if depth > _DEPTH or offset in self._seen:
            raise DataError(f"The sections of {self.path} contain each other.", path=self.path)
        self._seen.add(offset)
        data = self.bytes.bytes(offset, 2 * f.HEADER)
        if len(data) < f.HEADER:
            reason = "is empty" if not self.bytes.size else "is cut short"
            missing = f": the section at byte {offset} is not complete" if offset else ""
            raise DataError(f"The binary file {self.path} {reason}{missing}.", path=self.path)
        try:
            header = f.Header.unpack(data)
            if header.magic != magic:
                raise ValueError(f"its magic number is 0x{header.magic:04X}")
        except ValueError as error:
            where = f"The section at byte {offset} of {self.path} is damaged"
            raise DataError(
                f"{where if offset else f'{self.path} is not a CNTK binary file'}: {error}.",
                path=self.path,
                hint="write the file again; a cache of UCIFastReader can simply be removed",
            ) from None
        section = StoredSection(header, offset, self.bytes)
        if offset + header.header_size + header.data_bytes > self.bytes.size:
            raise section.error("is cut short: the file ends before its data do")
        if offset:
            if header.name.lower() in self.sections:
                raise section.error("occurs twice")
            self.sections[header.name.lower()] = section
        section.inside = [self._load(child, f.SECTION, depth + 1) for child in header.children]
        return section

    def close(self) -> None:
        """Close the file."""
        self.bytes.close()
