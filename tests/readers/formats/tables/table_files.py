"""Files of tables for the tests of this folder."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from cntkpy.readers import ArrowDeserializer, ParquetDeserializer
from cntkpy.readers.formats.tables.files import ArrowTable, ParquetTable, TableFile

KINDS = {"parquet": "ParquetDeserializer", "arrow": "ArrowDeserializer"}
MAKERS = {"parquet": ParquetDeserializer, "arrow": ArrowDeserializer}


def write_table(table: pa.Table, path: str, rows: int) -> str:
    """A file of the kind that its name says, with row groups of so many rows; its name."""
    if path.endswith("parquet"):
        pq.write_table(table, path, row_group_size=rows)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
    return path


def opened(path: str) -> TableFile:
    """A file of either kind, opened."""
    return ParquetTable(path) if path.endswith("parquet") else ArrowTable(path)
