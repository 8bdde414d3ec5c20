"""Describe tables: Parquet, Arrow, CSV."""

from __future__ import annotations

import re
import shlex
from typing import Any

from .texts import description, quoted

LONGEST = 60
"""Characters of a value that are shown."""


def open_table(path: str, form: str) -> Any:
    """Return a table of the format CSV, Parquet or Arrow, opened."""
    if form == "CSV":
        from cntkpy.readers.formats.tables.csv.table import CsvTable

        return CsvTable(path)
    from cntkpy.readers.formats.tables.files import ArrowTable, ParquetTable

    return ParquetTable(path) if form == "Parquet" else ArrowTable(path)


def describe_table(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe a table: its columns, and its first rows."""
    from cntkpy.cntk_config.base.extras import need
    from cntkpy.readers.common.beginnings import first_records

    need("tables", f"preview of {form}")
    with first_records(max(1, samples)) as limits:
        table = open_table(path, form)
        names: list[str] = list(table.schema.names)
        columns: dict[str, list[Any]] = table.read(0, names) if table.groups else {}
        cells: dict[str, list[Any]] = {
            name: [value for cell in columns.get(name, []) for value in cell.to_pylist()] for name in names
        }
        rows = None if path in limits.cut else sum(table.rows())
    if form == "Parquet":
        rows = int(table.metadata.num_rows)
    shown = min(samples, max((len(values) for values in cells.values()), default=0))
    fields: list[Any] = list(table.schema)
    numbers: list[str] = [field.name for field in fields if re.match(r"u?int|float|double|half", str(field.type))]
    chosen = ":".join(name if re.fullmatch(r"[A-Za-z_]\w*", name) else quoted(name) for name in numbers) or "NAME"
    inner = f"features = [ columns = ({chosen}) ; dim = {max(1, len(numbers))} ]"
    kind = {"Parquet": "ParquetDeserializer", "Arrow": "ArrowDeserializer"}.get(form, "CsvDeserializer")
    section = f"type = {kind} ; file = {quoted(path)} ; input = [ {inner} ]"
    first = [{name: _text(values[row]) for name, values in cells.items()} for row in range(shown)]
    listed = [(field.name, str(field.type)) for field in fields]
    following = {"next": f"cntkpy new config {shlex.quote(path)} --target COLUMN"}
    return description(f"deserializers = ([ {section} ])", listed, first, rows) | following


def _text(value: Any) -> str:
    """Return a value in at most `LONGEST` characters."""
    text = f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
