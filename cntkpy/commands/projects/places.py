"""The places of projects: files that may have one, in a folder, above it and below it."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.cntk_config.base.files import read_input

if TYPE_CHECKING:
    from cntkpy.commands.projects.project import Project

NAME, PYPROJECT, TABLE = "cntkpy.toml", "pyproject.toml", ("tool", "cntkpy")
MAX_FOLDERS = 10_000
"""Folders in which projects are looked for."""
_TABLE = re.compile(
    rb"""^[ \t]*(?:\[+[ \t]*)?["']?%b["']?[ \t]*(?:[]=]|\.[ \t]*["']?%b)""" % tuple(key.encode() for key in TABLE),
    re.MULTILINE,
)
"""A line that some line of every file with the table is like; keys written with escapes are not looked for."""


def find_project(start: Path) -> Project | None:
    """Return the project of a file or folder: that of the nearest folder upwards which has one.

    Args:
        start: A file or folder, which need not exist.

    Raises:
        ConfigError: The project file cannot be read.
    """
    absolute = Path(os.path.abspath(start))  # noqa: PTH100
    for folder in (absolute, *absolute.parents):
        if not folder.is_dir():
            continue
        if (path := folder / NAME).is_file():
            return _load(path, ())
        pyproject = folder / PYPROJECT
        if pyproject.is_file() and _has_table(pyproject):
            return _load(pyproject, TABLE)
        if (folder / ".git").exists():
            return None  # a folder above the repository belongs to others
    return None


def _load(path: Path, prefix: tuple[str, ...]) -> Project:
    from cntkpy.commands.projects.project import load_project

    return load_project(path, prefix)


def folders_of_projects(folder: Path) -> Iterator[Path]:
    """Yield the folders below a folder that have a project, but none inside of another one.

    Args:
        folder: The folder, which is not one of them.
    """
    for parent, folders, names in itertools.islice(os.walk(folder), MAX_FOLDERS):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        path = Path(parent)
        is_project = NAME in names or (PYPROJECT in names and _has_table(path / PYPROJECT))
        if is_project and path != folder:
            yield path
            folders.clear()


def _has_table(path: Path) -> bool:
    """Return True if a `pyproject.toml` has the table of cntkpy. Most have not, and are not parsed."""
    try:
        if not _TABLE.search(read_input(path)):
            return False
        from cntkpy.commands.projects.toml_text import TomlText

        data = TomlText(path, str(path)).data
    except (ConfigError, OSError):
        return False  # the other programs say what is wrong
    tool = data.get(TABLE[0])
    return isinstance(tool, dict) and TABLE[1] in cast("dict[str, Any]", tool)
