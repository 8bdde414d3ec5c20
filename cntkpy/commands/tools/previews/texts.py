"""Describe texts: columns of numbers, lists of pictures, lists of words and sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError

MOST_BYTES = 64 << 20
"""Bytes of a text whose lines are counted."""
_LONGEST_LINE = 1 << 20


def quoted(path: str) -> str:
    """Return a path as a value of a configuration."""
    return f'"{path}"'


def description(
    reader: str,
    columns: Iterable[tuple[str, str]] = (),
    first: Iterable[dict[str, str]] = (),
    rows: int | None = None,
    unit: str = "rows",
) -> dict[str, Any]:
    """Return what `preview` says of a file.

    Args:
        reader: a section that reads it, or why there is none.
        columns: names and types.
        first: the first rows.
        rows: how many there are; None: they are not counted.
        unit: what a row is called.
    """
    listed = [{"name": name, "type": kind} for name, kind in columns]
    return {"rows": rows, "unit": unit, "columns": listed, "first": list(first), "reader": reader}


def first_lines(path: str, most: int) -> tuple[int | None, list[str]]:
    """Return the number of lines of a text, and the first lines that are not blank.

    Args:
        path: the file; it may be compressed.
        most: lines that are returned.

    Returns:
        The number of lines that are not blank, None where the text is longer than `MOST_BYTES`; the lines.

    Raises:
        UserError: it cannot be read.
    """
    from cntkpy.readers.common.packed import open_data

    lines: list[str] = []
    count = size = 0
    try:
        with open_data(path) as file:
            while line := file.readline(_LONGEST_LINE):
                size += len(line)
                if size > MOST_BYTES:
                    return None, lines
                if line.strip():
                    count += 1
                    if len(lines) < most:
                        lines.append(line.decode("utf-8", "replace").rstrip("\r\n").removeprefix("\ufeff"))
    except OSError as error:
        raise UserError("CannotRead", f"'{path}' cannot be read: {error.strerror or error}") from None
    return count, lines


def describe_columns(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe columns of numbers between blanks."""
    count, lines = first_lines(path, max(100, samples))
    widths = Counter(len(line.split()) for line in lines)
    width = widths.most_common(1)[0][0] if widths else 0
    column = f"{width} numbers in a line"
    if len(widths) > 1:
        column += f", but others have {', '.join(str(size) for size in sorted(widths) if size != width)}"
    inner = f"features = [ start = 0 ; dim = {width} ; sectionType = Data ]"
    reader = f"readerType = UCIFastReader ; file = {quoted(path)} ; {inner}"
    first = [{"line": line} for line in lines[:samples]]
    return description(reader, [("columns", column)], first, count, "lines")


def describe_map(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe a list of pictures with their classes: names of files, or pictures in base64."""
    count, lines = first_lines(path, 10_000)
    fields = [line.split("\t") if "\t" in line else line.rsplit(None, 1) for line in lines]
    base64 = all(len(cells) > 1 and re.match(r"/9j/|iVBOR|R0lGOD|Qk", cells[-1]) for cells in fields)
    place = (-2 if base64 else 1) if fields and len(fields[0]) > 1 else 0
    classes = [cells[place] for cells in fields if len(cells) > abs(place) - (place < 0)]
    dim = 1 + max((int(text) for text in classes if text.strip().isdecimal()), default=0)
    kind = "Base64ImageDeserializer" if base64 else "ImageDeserializer"
    inner = (
        "features = [ transforms = ([ type = Scale ; width = 32 ; height = 32 ; channels = 3 ]) ] ; "
        f"labels = [ labelDim = {dim} ]"
    )
    names = ["picture in base64" if base64 else "file", "class"]
    shown = [dict(zip(names, (cells[-1 if base64 else 0], cells[place]), strict=True)) for cells in fields[:samples]]
    reader = f"deserializers = ([ type = {kind} ; file = {quoted(path)} ; input = [ {inner} ] ])"
    listed = f"{len(set(classes)):,} in the first {len(lines):,} lines"
    return description(reader, [("classes", listed)], shown, count, "pictures")


def describe_text(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe another text: its first lines."""
    count, lines = first_lines(path, samples)
    reader = (
        "LMSequenceReader reads sentences, LUSequenceReader columns of words and tags: docs/language-readers.md; "
        "a table ends in .csv or .tsv: docs/tables.md"
    )
    return description(reader, first=[{"line": line} for line in lines], rows=count, unit="lines")
