"""`cntkpy preview FILE`: what a file of data holds, and a reader section for it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError, printable
from cntkpy.cntk_config.parameters import ConfigParameters, parse
from cntkpy.commands.tools.previews import forms
from cntkpy.commands.tools.previews.texts import quoted

WIDTH = 80
"""Columns of a terminal."""
Describe = Callable[[str, str, int], dict[str, Any]]


def section_of(path: str, form: str) -> ConfigParameters | None:
    """Return a reader section that reads all streams of a file; None where more has to be known of it."""
    if form in forms.UNPACKED and forms.is_packed(path):
        return None  # refused where it is described
    if form == "CBF":
        return parse(f"readerType = CNTKBinaryReader ; file = {quoted(path)}")
    if form == "BinaryWriter":
        return parse(f"readerType = BinaryReader ; file = {quoted(path)}")
    if form == "CNTK text format":
        from cntkpy.readers.convert.sources import find_streams

        inner = " ; ".join(f"{s.name} = [ dim = {s.dim} ; format = {s.form} ]" for s in find_streams(path))
        return parse(f"readerType = CNTKTextFormatReader ; file = {quoted(path)} ; input = [ {inner} ]")
    return None


def print_file(path: str, form: str, samples: int, as_json: bool) -> None:
    """Print the contents of a file whose reader needs further parameters.

    Args:
        path: its name.
        form: its format, see `forms.form_of`.
        samples: rows, or samples of an archive, that are shown.
        as_json: print JSON.

    Raises:
        UserError: it cannot be read, no reader takes its format, or a package is missing.
    """
    if form in forms.NOT_READ:
        message = f"'{path}' is {form}, which cntkpy does not read"
        raise UserError("UnknownFormat", message, hint=forms.NOT_READ[form])
    if form in forms.UNPACKED and forms.is_packed(path):
        message = f"'{path}' is compressed, and {form} is read as it is"
        raise UserError("UnknownFormat", message, hint="unpack it, for instance: gzip -dk, zstd -d, xz -dk, bzip2 -dk")
    values: dict[str, Any] = {"file": path, "format": form} | _describe(form)(path, form, samples)
    if values["reader"].startswith(("deserializers =", "readerType =")):
        values["reader"] = f"reader = [ {values['reader']} ]"
    unit = values.pop("unit", "rows")
    if as_json:
        values.pop("next", None)
        print(json.dumps(values, indent=2))
        return
    count = f", {values['rows']:,} {unit}" if values.get("rows") is not None else ""
    for line in _lines(values, f"{path}: {form}{count}"):
        print(printable(line))


def _describe(form: str) -> Describe:
    """Return the function that describes files of a format."""
    if form in ("Parquet", "Arrow", "CSV"):
        from .tables import describe_table

        return describe_table
    if form in ("tar", "picture"):
        from .archives import describe_archive, describe_picture

        return describe_archive if form == "tar" else describe_picture
    if form in ("npy", "npz", "tensors", "model"):
        from .arrays import describe_npy, describe_npz, describe_tensors
        from .models import describe_model

        return {"npy": describe_npy, "npz": describe_npz, "tensors": describe_tensors, "model": describe_model}[form]
    if form in ("HTK features", "script", "MLF", "Kaldi"):
        from .speech import describe_features, describe_kaldi, describe_labels, describe_script

        known = {"HTK features": describe_features, "script": describe_script, "MLF": describe_labels}
        return known.get(form, describe_kaldi)
    from .texts import describe_columns, describe_map, describe_text

    return {forms.COLUMNS: describe_columns, forms.MAP: describe_map}.get(form, describe_text)


def _lines(values: dict[str, Any], head: str) -> Iterator[str]:
    """Return the description in lines of at most `WIDTH` columns."""
    yield cut(head)
    for column in values["columns"]:
        yield cut(f"  {column['name']}: {column['type']}")
    for row in values["first"]:
        yield ""
        for name, value in row.items():
            yield cut(f"  {name}: {value}")
    yield ""
    yield "A reader of it:"
    reader: str = values["reader"]
    yield from reader_lines(reader)
    if "next" in values:
        yield ""
        yield "A configuration that trains on it:"
        yield f"  {values['next']}"


def reader_lines(text: str) -> list[str]:
    """Return a reader section in lines of at most `WIDTH` columns, broken where the language allows it."""
    breakable = text.replace(" ; ", " ;\n").replace(":", ":\0") if " = " in text else text
    lines: list[str] = []
    line = "  "
    for word in _words(breakable):
        if len(line) + len(word.rstrip("\n")) > WIDTH and line.strip():
            lines.append(line.rstrip())
            line = "    "
        line += word.replace("\n", " ")
    return [*lines, line.rstrip()]


def _words(text: str) -> Iterator[str]:
    """Return pieces of a text behind which a line may end."""
    if "\n" not in text:
        yield from (
            f"{word} " for line in textwrap.wrap(text, WIDTH - 4, break_long_words=False) for word in line.split()
        )
        return
    inside = False
    piece = ""
    for sign in text:
        inside ^= sign == '"'
        if sign == "\0":
            if not inside:
                yield piece
                piece = ""
            continue
        piece += sign
        if sign == "\n":
            yield piece
            piece = ""
    yield piece


def cut(text: str) -> str:
    """Return a line of at most `WIDTH` columns."""
    shown = printable(text.replace("\n", " "))
    return shown if len(shown) <= WIDTH else f"{shown[: WIDTH - 3]}..."
