"""Which files a section means, and the columns that the names of their folders are: `split=train/part-0.parquet`."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from cntkpy.cntk_config.base.files import exists, is_folder, is_url
from cntkpy.readers.errors import DataError

from .lakes import check_no_lake, files_that_count

NULL = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name of a folder whose column has no value."""
_LARGEST = 18
"""Digits of a number that fits into int64 in any case."""


class PartitionValue(NamedTuple):
    """The value of a column that is a folder, the same for all rows of a file. whole: the column has whole numbers."""

    value: str | int | None
    whole: bool


Partition = Mapping[str, PartitionValue]


def files_of(paths: Sequence[str], endings: tuple[str, ...]) -> list[str]:
    """Return the files that paths mean: files and URLs themselves, all tables below a folder, all that fit a pattern
    with *.

    Files of folders and patterns are sorted by name; names that begin with `_` or `.` do not count, unless a path has
    them itself.

    Args:
        paths: as the section has them.
        endings: of the names of files in folders, with the dot.

    Raises:
        DataError: a folder or a pattern has no files, or is a table of Delta Lake or the like.
    """
    names: list[str] = []
    for path in paths:
        if is_url(path) or not (is_folder(path) or ("*" in path and not exists(path))):
            names.append(path)
            continue
        some = _below(path, endings) if is_folder(path) else _fitting(path)
        check_no_lake(path, some)
        if not some:
            reason = f"has no files *{', *'.join(endings)}" if is_folder(path) else "fits no file"
            raise DataError(f"{path} {reason}.", path=path, hint=f"the current directory is {Path.cwd()}")
        names += files_that_count(some)
    return names


def partitions_of(paths: Sequence[str]) -> list[Partition]:
    """Return the columns that the folders of each file are; whole numbers where all files have them, else texts.

    Raises:
        DataError: a file has no folder for a column that others have.
    """
    several = [_columns(path) for path in paths]
    names = list(dict.fromkeys(name for value in several for name in value))
    for path, value in zip(paths, several, strict=True):
        if missing := next((name for name in names if name not in value), None):
            message = f"{path} is in no folder '{missing}=...', but other files are."
            raise DataError(message, path=path, hint="give every file its folder, or read the files by another section")
    whole = {name for name in names if all(_is_whole(value[name]) for value in several)}
    return [{name: _value(value, name in whole) for name, value in value.items()} for value in several]


def _value(value: str | None, whole: bool) -> PartitionValue:
    return PartitionValue(int(value) if value is not None and whole else value, whole)


def _below(folder: str, endings: tuple[str, ...]) -> list[str]:
    every = (str(path) for path in Path(folder).rglob("*") if path.name.lower().endswith(endings))
    return sorted(path for path in every if _counts(path, folder))


def _fitting(pattern: str) -> list[str]:
    return sorted(path for path in glob.iglob(pattern, recursive=True) if _counts(path, pattern))  # noqa: PTH207 spelling


def _counts(path: str, value: str) -> bool:
    parts = set(Path(path).parts) - set(Path(value).parts)
    return _is_file(path) and not any(part.startswith(("_", ".")) for part in parts)


def _is_file(path: str) -> bool:
    return exists(path) and not is_folder(path)


def _columns(path: str) -> dict[str, str | None]:
    name = path.partition("?")[0] if is_url(path) else path
    folders = name.replace("\\", "/").split("/")[:-1]
    pairs = (folder.split("=", 1) for folder in folders if "=" in folder.lstrip("="))
    return {name: None if value == NULL else unquote(value) for name, value in pairs}


def _is_whole(value: str | None) -> bool:
    return value is None or (value.lstrip("-").isdecimal() and value.count("-") <= 1 and len(value) <= _LARGEST)
