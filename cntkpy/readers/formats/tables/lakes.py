"""Formats of tables whose folders have more data files than rows that count: Delta Lake, Iceberg, Hudi and others.

Their logs say which files, and which rows of them, belong to the table. To read all files would bring deleted and
replaced rows back, so such a folder is refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from cntkpy.cntk_config.base.files import read_input
from cntkpy.readers.errors import DataError

_INSIDE = ("data", "part")
"""Names of folders in which formats keep data files; `name=value` are others."""
_STATE = "state.json"
"""The file of a data set of `datasets` that lists its data files."""
_DELTA = (
    'python -c "import deltalake, pyarrow.parquet as p; '
    "p.write_table(deltalake.DeltaTable('{folder}').to_pyarrow_table(), 'table.parquet')\""
)
_WRITE = "write the rows that count to a Parquet file by {tool}, or name files: an array of files is read as it is"
_FORMATS = (
    ("_delta_log/*", "Delta Lake", f"write the rows that count, and read table.parquet: {_DELTA}"),
    ("metadata/*.metadata.json", "Iceberg", _WRITE.format(tool="pyiceberg or duckdb's iceberg_scan")),
    (".hoodie", "Hudi", _WRITE.format(tool="Spark")),
    (".hoodie_partition_metadata", "Hudi", _WRITE.format(tool="Spark")),
    ("_versions/*.manifest", "Lance", _WRITE.format(tool="lance.dataset(...).to_table()")),
    ("_spark_metadata/*", "Spark's streams", _WRITE.format(tool="Spark")),
    ("snapshot/snapshot-*", "Paimon", _WRITE.format(tool="Spark or Flink")),
    ("ducklake-*-delete.parquet", "DuckLake", _WRITE.format(tool="duckdb's ducklake")),
)
"""Marker of a format's folder, the format's name, and the function that reads its rows."""


def check_no_lake(folder: str, files: Sequence[str]) -> None:
    """Refuse a folder, or a pattern, whose files belong to a table with a log of its own.

    Args:
        folder: what the section has: a folder, or a pattern.
        files: the data files that it means.

    Raises:
        DataError: it names the format and says how its rows are read.
    """
    for place in _folders(folder, files):
        for pattern, name, hint in _FORMATS:
            if next(Path(place).glob(pattern), None) is not None:
                raise DataError(
                    f"{place} is a table of {name}: its folder may have files and rows that were deleted or replaced.",
                    path=place,
                    hint=hint.format(folder=place),
                )


def files_that_count(files: Sequence[str]) -> list[str]:
    """Return data files without those that lie in a folder of `datasets`, but are none of the data set.

    `Dataset.map` writes its results as `cache-*.arrow` next to the files of `save_to_disk`, which `state.json` lists.

    Args:
        files: the data files that a folder or a pattern means.
    """
    listed = {parent: _listed(parent) for parent in dict.fromkeys(Path(file).parent for file in files)}
    return [file for file in files if (names := listed[Path(file).parent]) is None or Path(file).name in names]


def _listed(folder: Path) -> set[str] | None:
    """Return the names of the data files of a data set; None where the folder is none."""
    try:
        state = json.loads(read_input(str(folder / _STATE)))
        return {str(file["filename"]) for file in state["_data_files"]} or None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _folders(folder: str, files: Sequence[str]) -> list[str]:
    """Return the folders around data files that may have a log: those below the folder, and those it is a part of."""
    columns: dict[str, None] = {}
    root = Path(folder) if Path(folder).is_dir() else None
    if root is not None:
        columns.update(dict.fromkeys(_around(root)))
    for parent in dict.fromkeys(Path(file).parent for file in files):
        columns.update(dict.fromkeys(_around(parent)))
        inner = parent
        while root is not None and inner != root and root in inner.parents:
            columns[str(inner)] = None
            inner = inner.parent
    return list(columns)


def _around(folder: Path) -> list[str]:
    """Return a folder, and those around it as long as it is a partition, or a folder for data."""
    result = [str(folder)]
    while "=" in folder.name or folder.name in _INSIDE:
        folder = folder.parent
        result.append(str(folder))
    return result
