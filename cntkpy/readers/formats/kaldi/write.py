"""Kaldi archives and script files, written entry by entry."""

from __future__ import annotations

import struct
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from cntkpy.cntk_config.base.writing import atomic_write, not_written
from cntkpy.readers.errors import DataError

from .specifier import WriteSpecifier


def _basic(number: int) -> bytes:
    return b"\4" + struct.pack("<i", number)


def matrix_bytes(rows: np.ndarray, as_text: bool = False) -> bytes:
    """Return a matrix as it follows its key and a blank: FM of float32, DM of float64, or text."""
    rows = np.asarray(rows)
    if as_text:
        lines = "".join("\n  " + " ".join(map(_shortest, row)) + " " for row in rows)
        return f" [{lines}]\n".encode()
    double = rows.dtype == np.float64
    head = b"\0B" + (b"DM " if double else b"FM ") + _basic(rows.shape[0]) + _basic(rows.shape[1])
    return head + rows.astype("<f8" if double else "<f4").tobytes()


def _shortest(value: Any) -> str:
    """Return a number in as few digits as read back the same."""
    return str(value).removesuffix(".0")


def integers_bytes(classes: np.ndarray, as_text: bool = False) -> bytes:
    """Return a vector of integers (an alignment) after its key and a blank."""
    if as_text:
        return " ".join(map(str, classes.tolist())).encode() + b"\n"
    body = np.empty((len(classes), 5), np.uint8)
    body[:, 0] = 4
    body[:, 1:] = np.asarray(classes, "<i4").view(np.uint8).reshape(-1, 4)
    return b"\0B" + _basic(len(classes)) + body.tobytes()


def check_key(key: str) -> str:
    """Return a key that archives can hold.

    Raises:
        DataError: it is empty or has white space in it.
    """
    if not key or any(c <= " " for c in key):
        raise DataError(f"'{key}' cannot be a key of a Kaldi archive.", hint="keys have no white space")
    return key


class ArchiveWriter:
    """An archive that is being written, and the script file that tells where its entries are."""

    def __init__(self, archive: IO[bytes], script: IO[bytes] | None, inside: str, as_text: bool = False):
        self._archive, self._script, self._inside, self.as_text = archive, script, inside, as_text
        self._offset = 0
        self._keys: set[str] = set()

    def write_matrix(self, key: str, rows: np.ndarray) -> None:
        """Add a matrix (frames, values)."""
        self._write(key, matrix_bytes(rows, self.as_text))

    def write_integers(self, key: str, classes: np.ndarray) -> None:
        """Add a vector of integers."""
        self._write(key, integers_bytes(classes, self.as_text))

    def _write(self, key: str, value: bytes) -> None:
        if check_key(key) in self._keys:
            raise DataError(f"The key '{key}' would stand twice in {self._inside}.", path=self._inside)
        self._keys.add(key)
        head = key.encode("utf-8", "surrogateescape") + b" "
        self._archive.write(head)
        self._archive.write(value)
        self._offset += len(head)
        if self._script is not None:
            self._script.write(head + f"{self._inside}:{self._offset}\n".encode("utf-8", "surrogateescape"))
        self._offset += len(value)


@contextmanager
def open_writer(spec: WriteSpecifier) -> Generator[ArchiveWriter]:
    """An archive, `-` for standard output, with its script file; files appear whole at the end, or not at all.

    Raises:
        DataError: a file cannot be written, or the specifier names a file for each key.
    """
    if spec.archive is None:
        raise DataError(
            f"'{spec.text}' names a file for each key, which cannot be written here.", hint="write ark:FILE"
        )
    if spec.archive == "-":
        yield ArchiveWriter(sys.stdout.buffer, None, "standard output", spec.as_text)
        sys.stdout.buffer.flush()
        return
    try:
        with ExitStack() as stack:  # the script file appears last
            script = stack.enter_context(atomic_write(spec.script)) if spec.script else None
            archive = stack.enter_context(atomic_write(spec.archive))
            yield ArchiveWriter(archive, script, spec.archive, spec.as_text)
    except OSError as error:
        raise DataError(not_written(error, spec.archive), path=error.filename or spec.archive) from None


def write_object(path: str, rows: np.ndarray, *, as_text: bool = False) -> None:
    """Write a file that is a matrix without a key.

    Raises:
        DataError: it cannot be written.
    """
    try:
        with atomic_write(Path(path)) as file:
            file.write(matrix_bytes(rows, as_text))
    except OSError as error:
        raise DataError(not_written(error, path), path=path) from None


def write_entry(path: str, key: str, rows: np.ndarray) -> None:
    """Write a file with a single entry.

    Raises:
        DataError: it cannot be written.
    """
    try:
        with atomic_write(Path(path)) as file:
            ArchiveWriter(file, None, path).write_matrix(key, rows)
    except OSError as error:
        raise DataError(not_written(error, path), path=path) from None
