"""Describe files of arrays: npy, npz, safetensors."""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from typing import IO, Any

from cntkpy.cntk_config.base.diagnostics import UserError, shorten
from cntkpy.cntk_config.base.files import open_input
from cntkpy.cntk_config.base.lazy_modules import np

from .texts import description

MOST_HEADER_BYTES, MOST_VALUES = 100 << 20, 8
OBJECTS = ", Python objects, which are never read: save numbers or texts"
_ERRORS = (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError)


def describe_npy(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe an array: its shape and type, its first rows."""
    try:
        with open_input(path) as file:
            column, rows = _array(file, "array", samples)
    except _ERRORS as error:
        raise UserError("BadArchive", f"'{path}' cannot be read as {form}: {shorten(str(error), 200)}") from None
    if column[1].endswith(OBJECTS):
        return description("none", [column])
    reader = f"none; in an archive it is converted: numpy.savez('x.npz', x=numpy.load('{path}'))"
    return description(reader, [column], [{"row": row} for row in rows])


def describe_npz(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe an archive of arrays."""
    columns: list[tuple[str, str]] = []
    first: list[dict[str, str]] = [{} for _ in range(samples)]
    try:
        with open_input(path) as file, zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    column, rows = _array(member, name.removesuffix(".npy"), samples)
                columns.append(column)
                for row, text in enumerate(rows):
                    first[row][column[0]] = text
    except _ERRORS as error:
        raise UserError("BadArchive", f"'{path}' cannot be read as {form}: {shorten(str(error), 200)}") from None
    reader = f"none; `cntkpy convert {path} x.ctf` makes text format of it"
    return description(reader, columns, filter(None, first))


def _array(file: IO[bytes], name: str, samples: int) -> tuple[tuple[str, str], list[str]]:
    """Return an array of the format npy, described, and the texts of its first rows."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    kind = f"{dtype} {' x '.join(map(str, shape)) or 'a single value'}"
    if dtype.hasobject:
        return (name, kind + OBJECTS), []
    column = (name, kind)
    width = math.prod(shape[1:]) if shape else 1
    count = min(samples, shape[0] if shape else 1)
    if (fortran and len(shape) > 1) or not dtype.itemsize or count < 1:
        return column, []
    rows: list[str] = []
    for _ in range(count):
        size = min(width, MOST_VALUES) * dtype.itemsize
        data = file.read(size)
        if len(data) != size:
            raise ValueError(f"array '{name}' is shorter than its shape says")
        text = " ".join(_value(value) for value in np.frombuffer(data, dtype).tolist())
        rows.append(text + (" ..." if width > MOST_VALUES else ""))
        _skip(file, (width - min(width, MOST_VALUES)) * dtype.itemsize)
    return column, rows


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _skip(file: IO[bytes], size: int) -> None:
    """Pass over bytes, which a compressed member has to read."""
    while size > 0 and (data := file.read(min(size, 1 << 20))):
        size -= len(data)


def describe_tensors(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe a file of safetensors: types and shapes of its tensors."""
    from cntkpy.networks.files.recognise import is_model

    try:
        with open_input(path) as file:
            (size,) = struct.unpack("<Q", file.read(8))
            end = file.seek(0, io.SEEK_END)
            if size > min(MOST_HEADER_BYTES, end - 8):
                raise ValueError("its header is longer than the file")
            file.seek(8)
            header: dict[str, Any] = json.loads(file.read(size))
            columns = [
                (name, f"{tensor['dtype']} {' x '.join(map(str, tensor['shape'])) or 'a single value'}")
                for name, tensor in header.items()
                if name != "__metadata__"
            ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError("BadFile", f"'{path}' cannot be read as {form}: {shorten(str(error), 200)}") from None
    reader = f"none; it is a model: `cntkpy show {path}` shows its nodes"
    if not is_model(path):
        reader = f"none; numpy.savez('x.npz', **safetensors.numpy.load_file('{path}')) makes an archive of it"
    return description(reader, columns)
