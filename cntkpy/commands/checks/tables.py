"""The schema of Parquet and Arrow files against the declared streams; no data are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cntkpy.cntk_config import ConfigError
from cntkpy.cntk_config.base.diagnostics import Diagnostic, UserError
from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.base.names import is_url
from cntkpy.commands.catalogue.section_map import Use
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.tables.parameters import TableParameters, TableStreamParameters


def table_problems(use: Use) -> Iterator[Diagnostic]:
    """Report every stream of a table that its columns cannot be.

    Args:
        use: a section; of others than tables there are no problems.
    """
    declared = next((parameters for parameters in use.declared if issubclass(parameters, TableParameters)), None)
    if declared is None:
        return
    p = declared(use.section)
    try:
        streams, pictures, paths, condition = p.streams(), p.pictures(), p.file, p.condition()
        key = str(p.key_column) if p.key_column is not None else None
        value = p.given("file")
    except ConfigError:  # found where values are looked at
        return
    if value is None or not all(
        exists(str(path)) or is_url(str(path)) or "*" in str(path) for path in paths
    ):  # a missing file is found elsewhere
        return
    from cntkpy.readers.formats.tables.deserializer import check_schema
    from cntkpy.readers.formats.tables.pictures import check_pictures

    try:
        tables = p.tables()
    except UserError as error:
        yield Diagnostic(
            "CannotRead", f"{value.path}: {error.message.rstrip('.')}", value.span, error.hint, severity="error"
        )
        return
    for table in tables:
        for stream in streams:
            try:
                check_schema(table, [stream])
            except DataError as error:
                place = _place(p, stream.name, dim="dim" in str(error.hint)) or value.span
                yield Diagnostic("DataMismatch", error.message.rstrip("."), place, error.hint)
        for name, picture in pictures:
            try:
                check_pictures(table, picture.column(name))
            except DataError as error:
                place = _place(p, name, dim=False) or value.span
                yield Diagnostic("DataMismatch", error.message.rstrip("."), place, error.hint)
        for name, asked in (("keyColumn", (key, None)), ("filter", (None, condition))):
            try:
                check_schema(table, [], *asked)
            except DataError as error:
                setting = p.given(name)
                place = setting.span if setting is not None else value.span
                yield Diagnostic("DataMismatch", error.message.rstrip("."), place, error.hint)


def _place(p: TableParameters, name: str, dim: bool) -> Any:
    """Return the place of a stream's columns or of its dimension."""
    section = p.input.section(name)
    stream = TableStreamParameters(section)
    value = next(filter(None, map(stream.given, ["dim"] if dim else ["columns", "alias", "dim"])), None)
    return value.span if value is not None else section.span
