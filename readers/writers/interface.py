"""Writers by name, and what they do: the other end of a reader.

A writer is made by `f(section, precision) -> Writer`. Packages offer them as entry points `cntkpy.writers`;
`module="my.module"` in the section names a module that has an attribute of the type's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cntk_config.parameters import ConfigParameters, parse
from readers.parameters import WriterParameters
from readers.registry import find_factory

WRITERS = {
    "BinaryWriter": "readers.writers.binary:create_binary_writer",
    "HTKMLFWriter": "readers.formats.htk.writer:create_htk_writer",
    "LMSequenceWriter": "readers.formats.language.writer:create_lm_sequence_writer",
    "LUSequenceWriter": "readers.formats.language.writer:create_lu_sequence_writer",
}
ALIASES = {
    "binaryreader": "BinaryWriter",
    "htkmlfreader": "HTKMLFWriter",
    "lmsequencereader": "LMSequenceWriter",
    "lusequencereader": "LUSequenceWriter",
    "sequencewriter": "LMSequenceWriter",
}
"""In the original a writer has the name of the reader of its package; lower case here."""


class Writer(Protocol):
    """Takes data minibatch by minibatch."""

    def sections(self) -> dict[str, str]:
        """Names of the sections that can be written and their types; empty if the writer takes any."""
        ...

    def save(self, data: Mapping[str, Any]) -> bool:
        """Write the next records, by name an array (records, dim). Returns whether it wants more."""
        ...

    def save_mapping(self, section: str, labels: Mapping[int, str]) -> None:
        """Write the names of classes."""
        ...

    def close(self) -> None:
        """Everything has been written: finish the files."""
        ...

    def abandon(self) -> None:
        """Writing went wrong: leave no half files behind."""
        ...


def create_writer(section: ConfigParameters | str, precision: str = "float") -> Writer:
    """The writer that a section (or the text of one) describes; `writerType` decides, BinaryWriter without it."""
    if isinstance(section, str):
        section = parse(section)
    make: Any = find_writer(section)()
    return make(section, precision)


def find_writer(section: ConfigParameters) -> Callable[[], Any]:
    """What loads the factory of the writer that a section asks for; nothing is imported yet."""
    name = WriterParameters.writer_type.read(section)
    built_in = {**WRITERS, **{alias: WRITERS[known] for alias, known in ALIASES.items() if known in WRITERS}}
    return find_factory(name, section, built_in, "cntkpy.writers", "writer")
