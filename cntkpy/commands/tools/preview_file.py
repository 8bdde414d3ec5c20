"""`cntkpy preview FILE` of a file of data: what is in it, and a reader section for it."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError, printable
from cntkpy.cntk_config.base.files import is_file, read_input, read_start
from cntkpy.cntk_config.parameters import ConfigParameters, parse
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.tables.parameters import CsvParameters

MAGIC = {
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"nib_ktnc": "CBF",
    b"\xe9\xac": "BinaryWriter",
    b"\x89PNG": "picture",
    b"\xff\xd8\xff": "picture",
    b"GIF8": "picture",
    b"II*\0": "picture",
    b"MM\0*": "picture",
}
"""Magic bytes of data files."""
PICTURES = (".bmp", ".webp", ".jp2", ".ppm")
"""Endings of pictures that are not known by how they begin."""
TAR = re.compile(r"\.(?:tar(?:\.\w+)?|tgz)", re.IGNORECASE)
TEXT_FORMAT = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:\d++\s*+)?\|[!-{}~]++[ \t]")
"""Pattern of the beginning of CNTK text format."""
CONFIGURATIONS = (".cntk", ".cfg", ".config", ".bs", ".ndl", ".mel")
LONGEST, MOST_MEMBERS, MOST_PICTURE_BYTES = 60, 10_000, 1 << 28
"""Characters of a value that are shown; members of an archive and bytes of a picture that are looked at."""


def form_of(path: str) -> str | None:
    """Return the format of a file of data; None for configurations and what is not known."""
    if "=" in path or not is_file(path) or Path(path).suffix.lower() in CONFIGURATIONS:
        return None
    try:
        start = read_start(path, 512)
    except OSError:
        return None  # the error is reported where it is read
    name = path.lower()
    known = next((form for magic, form in MAGIC.items() if start.startswith(magic)), None)
    if known is not None:
        return known
    if start[257:262] == b"ustar" or TAR.search(Path(path).name):
        return "tar"
    if name.endswith(PICTURES):
        return "picture"
    if name.endswith(CsvParameters.endings):
        return "CSV"
    return "CNTK text format" if TEXT_FORMAT.match(_first_text(path)) else None


def _first_text(path: str) -> bytes:
    """Return the beginning of the plain text of a file; nothing where it cannot be unpacked."""
    from cntkpy.readers.common.packed import open_data

    try:
        with open_data(path) as file:
            return file.read(4096)
    except (OSError, UserError):
        return b""


def section_of(path: str, form: str) -> ConfigParameters | None:
    """Return a reader section that reads all streams of a file; None where more has to be known of it."""
    if form == "CBF":
        return parse(f"readerType = CNTKBinaryReader ; file = {_quoted(path)}")
    if form == "BinaryWriter":
        return parse(f"readerType = BinaryReader ; file = {_quoted(path)}")
    if form == "CNTK text format":
        from cntkpy.readers.convert.sources import find_streams

        inner = " ; ".join(f"{s.name} = [ dim = {s.dim} ; format = {s.form} ]" for s in find_streams(path))
        return parse(f"readerType = CNTKTextFormatReader ; file = {_quoted(path)} ; input = [ {inner} ]")
    return None


def _quoted(path: str) -> str:
    return f'"{path}"'


def print_file(path: str, form: str, samples: int, as_json: bool) -> None:
    """Print what a file holds of which a reader has to be told more.

    Args:
        path: its name.
        form: its format, see `form_of`.
        samples: rows, or samples of an archive, that are shown.
        as_json: print JSON.

    Raises:
        UserError: it cannot be read, or a package is missing.
    """
    look = {"tar": _archive, "picture": _picture}.get(form, _table)
    values: dict[str, Any] = {"file": path, "format": form} | look(path, form, samples)
    if as_json:
        print(json.dumps(values, indent=2))
        return
    count = f", {values['rows']:,} rows" if values.get("rows") is not None else ""
    print(printable(f"{path}: {form}{count}"))
    for column in values["columns"]:
        print(printable(f"  {column['name']}: {column['type']}"))
    for row in values["first"]:
        print()
        for name, value in row.items():
            print(printable(f"  {name}: {value}"))
    print(f"\nA reader of it:\n  {printable(values['reader'])}")


def _table(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe a table: its columns, and its first rows."""
    from cntkpy.readers.common.beginnings import first_records

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
    chosen = ":".join(numbers) or "NAME"
    inner = f"features = [ columns = {chosen} ; dim = {max(1, len(numbers))} ]"
    kind = {"Parquet": "ParquetDeserializer", "Arrow": "ArrowDeserializer"}.get(form, "CsvDeserializer")
    return {
        "rows": rows,
        "columns": [{"name": field.name, "type": str(field.type)} for field in fields],
        "first": [{name: _text(values[row]) for name, values in cells.items()} for row in range(shown)],
        "reader": f"reader = [ deserializers = ([ type = {kind} ; file = {_quoted(path)} ; input = [ {inner} ] ]) ]",
    }


def open_table(path: str, form: str) -> Any:
    """Return a table of the format CSV, Parquet or Arrow, opened."""
    if form == "CSV":
        from cntkpy.readers.formats.tables.csv.table import CsvTable

        return CsvTable(path)
    from cntkpy.readers.formats.tables.files import ArrowTable, ParquetTable

    return ParquetTable(path) if form == "Parquet" else ArrowTable(path)


def _text(value: Any) -> str:
    """Return a value in at most `LONGEST` characters."""
    text = f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _archive(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe an archive of samples: the endings of its members, and the first samples."""
    from cntkpy.readers.common.packed import open_or_say
    from cntkpy.readers.formats.tar.headers import members

    data = open_or_say(path, f"The archive {path} cannot be opened")
    endings: Counter[str] = Counter()
    first: dict[str, dict[str, str]] = {}
    for member in islice(members(data), MOST_MEMBERS):
        folder, slash, base = member.name.rpartition("/")
        stem, _, ending = base.partition(".")
        endings[ending.lower()] += 1
        if (key := folder + slash + stem) in first or len(first) < samples:
            first.setdefault(key, {"sample": key})[ending] = f"{member.size} bytes"
    inner = " ; ".join(
        f"{ending or 'NAME'} = [ member = {ending} ; {_of_member(ending)} ]" for ending in list(endings)[:3]
    )
    section = f"type = TarDeserializer ; file = {_quoted(path)} ; input = [ {inner} ]"
    return {
        "rows": None,
        "columns": [{"name": f".{name}", "type": f"{count:,} members"} for name, count in endings.items()],
        "first": list(first.values()),
        "reader": f"reader = [ deserializers = ([ {section} ]) ]",
    }


def _of_member(ending: str) -> str:
    """Return what a stream of members with an ending may say."""
    picture = f".{ending}" in (*PICTURES, ".jpg", ".jpeg", ".png")
    return "transforms = ([ type = Scale ; width = 32 ; height = 32 ; channels = 3 ])" if picture else "dim = 1"


def refuse_unknown(path: str) -> None:
    """Refuse a binary file whose format is not known.

    Raises:
        UserError: it is one.
    """
    if "=" in path or not is_file(path):
        return
    try:
        binary = 0 in read_start(path, 4096)
    except OSError:
        return  # the error is reported where it is read
    if binary:
        message = f"'{path}' is a binary file of no format that preview recognises"
        forms = ", ".join(dict.fromkeys([*MAGIC.values(), "tar", "CSV", "CNTK text format"]))
        hint = (
            f"it recognises {forms}; of others it shows what a reader section reads: cntkpy preview CONFIG train/reader"
        )
        raise UserError("UnknownFormat", message, hint=hint)


def _picture(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe a picture: its size."""
    from cntkpy.readers.formats.image.decode import PictureError, decode

    try:
        pixels = decode(read_input(path, MOST_PICTURE_BYTES))
    except OSError as error:
        raise UserError("CannotRead", f"'{path}' cannot be read: {error.strerror or error}") from None
    except PictureError as error:
        raise DataError(f"{path}: {error.message}", path=path, hint=error.hint) from None
    height, width, channels = (*pixels.shape, 1)[:3]
    return {
        "rows": None,
        "columns": [{"name": "size", "type": f"{width} x {height} pixels, {channels} channels"}],
        "first": [],
        "reader": "ImageDeserializer reads a list of pictures, a line FILE<tab>CLASS for each: docs/images.md",
    }
