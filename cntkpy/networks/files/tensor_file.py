"""Reading and writing of safetensors files piece by piece, so that no array is in memory twice."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.files import open_input
from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.cntk_config.base.writing import atomic_write

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

METADATA = "__metadata__"
"""Reserved key of the texts, which no array can have as its name."""
_READ_BYTES = 1 << 20
"""Bytes that are copied at a time, few enough for the caches of a core."""
_SHORTEST = 1 << 10
"""Elements that are read or written at a place, at least."""
_TYPES = {"F32": "<f4", "F64": "<f8", "BOOL": "|b1", "I32": "<i4", "I64": "<i8", "U32": "<u4", "U64": "<u8"}
"""NumPy's words for element types."""
_CODES = {word: code for code, word in _TYPES.items()}
_REALS = {"F32": "<f", "F64": "<d"}
"""The words of `struct` for the element types of parameters."""


class Damaged(Exception):
    """The file is not whole, or not of this kind; the text says how."""


def write_tensors(
    path: str | Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str], *, through_link: bool = True
) -> None:
    """Write a file in one step.

    Args:
        path: the file; parent folders are made.
        arrays: by name; any memory order, C order in the file.
        metadata: texts by name.
        through_link: see `atomic_write`.

    Raises:
        OSError: the disk does not take it.
    """
    header: dict[str, Any] = {METADATA: dict(metadata)}
    offset = 0
    for name, array in arrays.items():
        code = _CODES[array.dtype.newbyteorder("<").str]
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with atomic_write(path, through_link=through_link) as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for array in arrays.values():
            begin = file.tell()
            for view, starts in _parts(array):
                rows = np.ascontiguousarray(view, array.dtype.newbyteorder("<")).reshape(len(starts), -1)
                for start, row in zip(starts, rows, strict=True):
                    file.seek(begin + start * array.itemsize)
                    file.write(row.data)
            file.seek(begin + array.nbytes)


def _parts(array: np.ndarray) -> Iterator[tuple[np.ndarray, range]]:
    """Views of an array, one after the other, and the elements in C order at which their equal pieces begin.

    Most are consecutive. Those of an array with long rows that lies in another order have some columns of all rows:
    else every row would be gathered from all over the memory.
    """
    if array.nbytes <= _READ_BYTES or array.ndim == 0:
        yield array, range(1)
    elif array.nbytes > _READ_BYTES // 4 * len(array) and not array.flags.c_contiguous:
        yield from _columns(array)
    else:
        rows = max(1, _READ_BYTES * len(array) // array.nbytes)
        length = array.size // len(array)
        for begin in range(0, len(array), rows):
            yield array[begin : begin + rows], range(begin * length, begin * length + 1)


def _columns(array: np.ndarray) -> Iterator[tuple[np.ndarray, range]]:
    width = array.shape[-1]
    columns = max(_SHORTEST, _READ_BYTES * width // array.nbytes)
    for begin in range(0, width, columns):
        yield array[..., begin : begin + columns], range(begin, array.size, width)


class TensorFile:
    """An open file; a context manager.

    Attributes:
        metadata: texts by name.
        entries: by name of the array, its entry in the header.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a file.

        Raises:
            OSError: it cannot be opened.
            Damaged: it ends early, or is not a file of this kind.
        """
        self._file = open_input(path)  # closed by __exit__
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        start = self._file.read(8)
        if len(start) < 8:
            raise Damaged("it ends early")
        (length,) = struct.unpack("<Q", start)
        if length > size - 8:
            raise Damaged("it ends early, or is not a model file")
        self._begin = 8 + length
        try:
            header = json.loads(self._file.read(length).decode("utf-8"))
            self.metadata: dict[str, str] = header.pop(METADATA, {})
            self.entries: dict[str, dict[str, Any]] = header
            needed = max((entry["data_offsets"][1] for entry in header.values()), default=0)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise Damaged("its header cannot be read, or it is not a model file") from None
        if needed != size - self._begin:
            raise Damaged(f"it should hold {needed} bytes of parameters, but holds {size - self._begin}")

    def __enter__(self) -> TensorFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, name: str, dtype: DTypeLike | None = None, transposed: bool = False) -> np.ndarray:
        """Return an array of its own.

        Args:
            name: of the array.
            dtype: element type to convert to, if another.
            transposed: with the axes in the reverse order, in C order of its own.

        Raises:
            ValueError: the entry does not fit its data.
            KeyError: the entry is not complete, or of an unknown type.
        """
        entry = self.entries[name]
        stored, shape = np.dtype(_TYPES[entry["dtype"]]), tuple(int(n) for n in entry["shape"])
        begin, end = entry["data_offsets"]
        if end - begin != stored.itemsize * int(np.prod(shape, dtype=np.int64)) or begin < 0:
            raise ValueError(f"the size of '{name}' does not fit its shape")
        array = np.empty(shape[::-1] if transposed else shape, dtype or stored)
        target = array.transpose() if transposed else array
        for view, starts in _parts(target):
            rows = np.empty((len(starts), view.size // len(starts)), stored)
            for start, row in zip(starts, rows, strict=True):
                self._file.seek(self._begin + begin + start * stored.itemsize)
                row[:] = np.frombuffer(self._file.read(row.nbytes), stored).reshape(row.shape)
            view[...] = rows.reshape(view.shape)
        return array

    def same(self, name: str) -> float | None:
        """Return the number that all elements of an array are; None if they differ, or are no real numbers."""
        entry = self.entries[name]
        begin, end = entry["data_offsets"]
        word = _REALS.get(entry["dtype"], "")
        size = struct.calcsize(word)
        if not size or begin < 0 or end - begin < size:
            return None
        self._file.seek(self._begin + begin)
        data = self._file.read(end - begin)
        return struct.unpack(word, data[:size])[0] if data == data[:size] * (len(data) // size) else None
