"""The values that may follow `name =`: words of a set, yes and no, names of the configuration, files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cntkpy.cntk_config.declare import BOOLEAN
from cntkpy.commands.catalogue.dispatch import action_names
from cntkpy.commands.catalogue.section_map import Use
from cntkpy.readers.entries import READER, WRITER, entries

_BEHIND = re.compile(r"(?:^|[\s;\[{(])([A-Za-z_][A-Za-z0-9_]*+)\s*+=\s*+([^=;#\[\]{}]*)$")
_ELEMENTS = re.compile(r"(?<![^\s:,(])[^\s:,(]*$")


def value_at(line: str) -> tuple[str, str] | None:
    """Return the parameter whose value is being written at the end of a line, and what is written of its last
    element.
    """
    match = _BEHIND.search(line)
    if match is None:
        return None
    begun = _ELEMENTS.search(match[2])
    return match[1], begun[0] if begun is not None else ""


def values(use: Use | None, root: Use | None, name: str, begun: str, folder: Path) -> Iterator[str]:
    """Return the values of a parameter.

    Args:
        use: the section that it is in.
        root: the whole configuration.
        name: the parameter.
        begun: what is written of the value.
        folder: where paths begin.
    """
    parameter = use.parameter(name) if use is not None else None
    if name.lower() == "command" and root is not None:
        yield from (part.command for part in root.parts)
    elif name.lower() == "action":
        yield from action_names()
    elif name.lower() in ("readertype", "writertype"):
        kind = READER if name.lower() == "readertype" else WRITER
        yield from dict.fromkeys(entry.name for entry in entries(kind) if not entry.unsupported)
    elif parameter is None:
        return
    elif parameter.type.choices:
        yield from parameter.type.choices
    elif parameter.type.name.endswith(BOOLEAN.name):
        yield from ("true", "false")
    elif parameter.type.name.startswith(("path", "array of path")):
        yield from _files(folder, begun.strip('"'))
    elif isinstance(parameter.default, str) and parameter.default and not parameter.type.is_section:
        yield parameter.default


def _files(folder: Path, begun: str) -> Iterator[str]:
    """Files and folders whose path begins so; of what is before the last slash nothing is repeated."""
    try:
        inside = sorted((folder / begun.rpartition("/")[0]).iterdir())
    except (OSError, ValueError):
        return
    head = begun[: begun.rfind("/") + 1]
    for path in inside:
        if not path.name.startswith("."):
            yield head + path.name + ("/" if path.is_dir() else "")
