"""CSV files as Parquet and Arrow files with the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.readers.formats.tables.csv.table import CsvTable
from cntkpy.readers.formats.tables.library import arrow, parquet

GROUP = 32 << 20
"""Bytes of a row group that is written, about."""


class Copied(NamedTuple):
    """Summary of the output: rows, and the types of columns by name."""

    rows: int
    kinds: dict[str, str]


def copy_columns(path: str, output: str, form: str, dropped: Sequence[str] = ()) -> Copied:
    """Write the columns of a CSV file, each under its name and with the type that fits all of its cells.

    Args:
        path: the CSV file, or a URL.
        output: the file that is written.
        form: "parquet" or "arrow".
        dropped: columns that are left out.

    Raises:
        DataError: the file cannot be read. OSError: the other one cannot be written.
    """
    table = CsvTable(path)
    for name in dropped:
        table.field(name)
    names = [name for name in table.names if name not in dropped]
    if not names:
        raise UserError("NoStreams", f"--drop leaves out all columns of {table.path}")
    schema = arrow().schema([table.schema.field(name) for name in names])
    rows = 0
    with ExitStack() as closing:
        file = closing.enter_context(atomic_write(output))
        make: Any = parquet().ParquetWriter if form == "parquet" else arrow().ipc.new_file
        writer = closing.enter_context(make(file, schema))
        held: list[Any] = []
        for group in range(table.groups):
            arrays = table.read(group, names)
            held.append(
                arrow().table({name: arrow().chunked_array(arrays[name], schema.field(name).type) for name in names})
            )
            rows += held[-1].num_rows
            if sum(value.nbytes for value in held) >= GROUP or group == table.groups - 1:
                combine_chunks = arrow().concat_tables(held).combine_chunks()
                writer.write_table(combine_chunks, max(1, combine_chunks.num_rows))
                held = []
    return Copied(rows, {field.name: str(field.type) for field in schema})
