"""Writers by name: the other end of a reader.

A writer is made by `f(section, precision) -> Writer`. Packages offer them as entry points `cntkpy.writers`;
`module="my.module"` in the section names a module that has an attribute of the type's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cntkpy.cntk_config.parameters import ConfigParameters, parse
from cntkpy.readers.common.user_code import check_interface

from .contracts import Writer
from .entries import WRITER
from .parameters import WriterParameters
from .registry import find_factory


def create_writer(section: ConfigParameters | str, precision: str = "float") -> Writer:
    """Return the writer that a section (or the text of one) describes; `writerType` decides, BinaryWriter without
    it.
    """
    if isinstance(section, str):
        section = parse(section)
    make: Any = find_writer(section)()
    writer: Writer = make(section, precision)
    check_interface(writer, Writer, section)
    return writer


def find_writer(section: ConfigParameters) -> Callable[[], Any]:
    """Return a loader of the factory of a section's writer; nothing is imported yet."""
    return find_factory(WRITER, WriterParameters.writer_type.read(section), section)
