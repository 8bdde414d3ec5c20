"""Entries of readers: readers, deserializers, transforms and writers, as entries declared where they live.

Every folder of `cntkpy/readers/formats` declares what it has as `ENTRIES` of its `__init__.py`; a folder that is added
there is found without any other file being changed. So does the data interface.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from cntkpy.cntk_config import entry as catalogue
from cntkpy.cntk_config.base.objects import load_object
from cntkpy.cntk_config.declare import Declared
from cntkpy.cntk_config.entry import Entry, collect


class Kind(NamedTuple):
    """Readers, deserializers, transforms or writers: what all things of a kind have in common."""

    name: str
    """The `kind` of entries: `reader`."""
    selector: str
    """The parameter whose value is a name of this kind: `readerType`."""
    sections: tuple[str, ...]
    """The parameters whose value is a section with `selector`: `reader`, `cvReader`."""
    common: str
    """Path of the declaration of the parameters that every section of the kind has."""
    entry_points: str = ""
    """The group in which installed packages offer more: `cntkpy.readers`."""
    default: str = ""
    """The name that counts when `selector` is absent."""

    @property
    def declared(self) -> type[Declared]:
        """The declaration of the parameters that every section of the kind has."""
        return load_object(self.common)


READER = Kind(
    "reader",
    "readerType",
    ("reader", "cvReader"),
    "cntkpy.readers.parameters:ReaderParameters",
    "cntkpy.readers",
    default="CNTKTextFormatReader",
)
DESERIALIZER = Kind(
    "deserializer",
    "type",
    ("deserializers",),
    "cntkpy.readers.parameters:DeserializerParameters",
    "cntkpy.deserializers",
)
TRANSFORM = Kind(
    "transform", "type", ("transforms",), "cntkpy.readers.formats.image.parameters:TransformTypeParameters"
)
WRITER = Kind(
    "writer",
    "writerType",
    ("writer",),
    "cntkpy.readers.parameters:WriterParameters",
    "cntkpy.writers",
    default="BinaryWriter",
)
COMPOSITE = "CompositeDataReader"
VARYING_SLOTS = "varying slots"
"""Trait of a reader: it reports to the trainer the number of parallel sequences of its last minibatch."""
NAMED_SEQUENCES = "named sequences"
"""Trait of a deserializer: keys of sequences are names, not numbers."""
NEVER_FIRST, ONLY_FIRST = "never first", "only first"
"""Traits of deserializers: the first one decides on chunks and order."""
KINDS = (READER, DESERIALIZER, TRANSFORM, WRITER)


def built_in() -> tuple[Entry, ...]:
    """Return all entries of readers; those of formats folder by folder."""
    return (*collect("cntkpy.readers.formats"), *load_object("cntkpy.readers.data_api:ENTRIES"))


@functools.cache
def entries(kind: Kind) -> tuple[Entry, ...]:
    """Return the built-in entries of a kind; the default of the kind comes first."""
    entries_of_kind = (entry for entry in built_in() if entry.kind == kind.name)
    return tuple(sorted(entries_of_kind, key=lambda entry: entry.name != kind.default))


def sections_of(entry: Entry) -> tuple[Entry, ...]:
    """Return the sections with names of the user's choice inside the section of an entry."""
    return tuple(
        candidate for candidate in built_in() if candidate.kind == "section" and entry.name in candidate.within
    )


def names(kind: Kind) -> list[str]:
    """Names of everything built in of a kind."""
    return [name for entry in entries(kind) if not entry.unsupported for name in entry.names]


def find_entry(kind: Kind, name: str) -> Entry | None:
    """Return the built-in entry of a name, ignoring case; None if there is none."""
    return catalogue.find_entry(name, entries(kind))
