"""The layout of CNTK's binary files: kinds of sections, the header of 320 bytes, and where sections are placed.

A file is a tree of sections. Each is a header followed by its data; the root, at offset 0, has no data. All numbers are
little-endian. Sections other than the root begin at multiples of 65536; readers follow the stored offsets.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

HEADER = 320
ALIGNMENT = 65536
MAX_CHILDREN = 5
VERSION = 0x0100
CLOSED, UNFINISHED, SECTION = 0xACE9, 0xBAD1, 0x4ACE

FILE, DATA, LABELS, MAPPING, STATISTICS, CATEGORY = 1, 2, 3, 4, 5, 6
NAMES = {"data": DATA, "labels": LABELS, "labelmapping": MAPPING, "stats": STATISTICS, "categorylabels": CATEGORY}
"""Values of `sectionType`, in lower case."""
RECORDS = (DATA, LABELS, CATEGORY)
"""The kinds of sections that hold a value for each record."""
SUFFIXES = {
    FILE: "",
    DATA: "Data Section",
    LABELS: "Labels",
    MAPPING: "Label Map",
    STATISTICS: "Data Statistics",
    CATEGORY: "Category Labels",
}
NO_TYPE, FLOAT, STRINGS, INTEGER, STRUCT = range(5)
AUXILIARY, VARIABLE = 2, 4
NO_LABELS, CATEGORY_IDS, REGRESSION = 0, 1, 2
STATISTIC = struct.Struct("<24sd")

_FIXED = struct.Struct("<11H10xQHH84x128s2Q")


@dataclass
class Header:
    """The header of a section; see the fields of the page docs/uci.md."""

    kind: int
    name: str = ""
    magic: int = SECTION
    version: int = VERSION
    header_size: int = HEADER
    data_type: int = NO_TYPE
    element_size: int = 0
    custom: int = 0
    per_record: int = 0
    flags: int = 0
    session: int = 0
    elements: int = 0
    label_kind: int = 0
    label_dim: int = 0
    size: int = HEADER
    size_all: int = HEADER
    children: list[int] = field(default_factory=list[int])

    @property
    def records(self) -> int:
        """Records of the section."""
        return self.elements // self.per_record if self.per_record else self.elements

    @property
    def data_bytes(self) -> int:
        """Bytes of all elements."""
        return self.elements * self.element_size

    @property
    def is_auxiliary(self) -> bool:
        """True if the section does not hold records."""
        return bool(self.flags & AUXILIARY)

    def pack(self) -> bytes:
        """Return the bytes of the header."""
        text = "Binary Data File" if self.kind == FILE else f"{self.name}:{SUFFIXES[self.kind]}"
        fixed = _FIXED.pack(
            self.magic, self.version, self.header_size, len(self.children), self.kind, self.data_type,
            self.element_size, self.custom, self.per_record, self.flags, self.session, self.elements, self.label_kind,
            self.label_dim, text.encode()[:127], self.size, self.size_all,
        )  # fmt: skip
        return (fixed + struct.pack(f"<{len(self.children)}Q", *self.children)).ljust(HEADER, b"\0")

    @classmethod
    def unpack(cls, data: bytes) -> Header:
        """Return the header in these bytes, at least 320 of them; says in a ValueError what makes it invalid."""
        f = _FIXED.unpack_from(data)
        magic, version, size, count, kind = f[:5]
        if magic == UNFINISHED:
            raise ValueError("it was never finished: the program that wrote it was stopped")
        checks = (
            (magic in (CLOSED, SECTION), f"its magic number is 0x{magic:04X}"),
            (version >= VERSION, f"its version is 0x{version:04X}"),
            (HEADER <= size < 2 * HEADER, f"the size of its header is {size}"),
            (count < (size - 272) // 8, f"it has {count} sections inside"),
            (kind < 14 and f[5] < 10 and f[7] < 4 and f[9] < 10, "its type or flags are unknown"),
            (f[15] >= size + f[11] * f[6], f"its size {f[15]} is too small for {f[11]} elements of {f[6]} bytes"),
            (f[16] >= size + f[11] * f[6], f"its size with all sections inside, {f[16]}, is too small"),
            (f[8] == 0 or f[11] % f[8] == 0, f"{f[11]} elements are no whole number of records of {f[8]}"),
            (272 + 8 * count <= len(data), "its header is cut short"),
        )
        for good, message in checks:
            if not good:
                raise ValueError(message)
        children = list(struct.unpack_from(f"<{count}Q", data, 272))
        if 0 in children:
            raise ValueError("a section inside it has no place")
        name = f[14].split(b"\0")[0].decode("utf-8", "replace").partition(":")[0]
        return cls(kind, name, magic, version, size, *f[5:14], size=f[15], size_all=f[16], children=children)

    def element_type(self) -> np.dtype | None:
        """NumPy's type of the elements, None if they are not numbers."""
        value = {(FLOAT, 4): "<f4", (FLOAT, 8): "<f8", (INTEGER, 4): "<u4"}.get((self.data_type, self.element_size))
        return np.dtype(value) if value else None


def up(size: int) -> int:
    """Return the next multiple of 65536."""
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass
class Section:
    """A section to be written: its header, its sections inside, and for statistics what is computed."""

    header: Header
    inside: list[Section] = field(default_factory=list["Section"])
    compute: list[str] = field(default_factory=list[str])
    offset: int = 0

    def walk(self) -> list[Section]:
        """Return the section and all inside, in the order of the file."""
        return [self, *(section for child in self.inside for section in child.walk())]


def place(root: Section) -> int:
    """Give every section its offset and size; returns the size of the file."""
    end = HEADER

    def insert(section: Section, above: list[Section]) -> None:
        nonlocal end
        h = section.header
        section.offset = up(end)
        h.size = h.size_all = HEADER + h.data_bytes
        end = section.offset + h.size
        above[-1].header.children.append(section.offset)
        for item in above:
            item.header.size_all = up(item.header.size_all) + h.size
        for child in section.inside:
            insert(child, [*above, section])

    for section in root.inside:
        insert(section, [root])
    return end
