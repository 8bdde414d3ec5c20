"""Feature files on disk: read in pieces or held in memory, written whole or utterance by utterance."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from cntkpy.cntk_config.base.writing import atomic_write, not_written
from cntkpy.readers.common.file_bytes import FileBytes
from cntkpy.readers.errors import DataError

from .format import GUID, HEADER, Header, compress, expand, make_header, parse_header, scales

log = logging.getLogger("cntkpy.readers")
OPEN_FILES = 256
"""Files that are kept open."""


class FeatureFile:
    """An HTK feature file. Its frames are read when they are asked for, or once, when they are held in memory.

    Nothing is mapped: a disk that fails, or a file that becomes shorter, would end the process.

    Raises:
        DataError: it cannot be opened, or is no feature file.
    """

    def __init__(self, path: str):
        self.path = path
        try:
            self.bytes = FileBytes(path)
        except DataError as error:
            raise DataError(
                error.message.replace("The data file", "The feature file", 1),
                path=path,
                hint="check the path in the script file; prefixPathInSCP and ... say where files are",
            ) from None
        self.header: Header = parse_header(self.bytes.bytes(0, HEADER + GUID), self.bytes.size, path)
        h = self.header
        scales = self.bytes.bytes(HEADER, 8 * h.dim) if h.compressed else b""
        order = ">" if h.big else "<"
        self.element = np.dtype(order + ("i2" if h.compressed else "f4"))
        both = np.frombuffer(scales, order + "f4").astype(np.float32)
        self.scales = both.reshape(2, h.dim) if h.compressed else None
        """A and B of a compressed file, float32[2, dim]."""
        self._held: np.ndarray | None = None
        self._first = 0

    def stored(self, first: int, end: int) -> np.ndarray:
        """Frames first..end-1 as they stand in the file, (end - first, dim)."""
        h = self.header
        size = h.dim * self.element.itemsize
        return self.bytes.window(h.data + first * size, (end - first) * size, self.element).reshape(-1, h.dim)

    def raw(self, first: int, end: int) -> np.ndarray:
        """As `stored`; of frames that are held, those in memory."""
        return self.stored(first, end) if self._held is None else self._held[first - self._first : end - self._first]

    def frames(self, first: int = 0, end: int | None = None) -> np.ndarray:
        """Frames first..end-1 as (n, dim)."""
        part = self.stored(first, self.header.frames if end is None else end)
        return expand(part, *self.scales) if self.scales is not None else part

    def hold(self, first: int, last: int) -> None:
        """Read these frames into memory; the file is needed no longer."""
        self._held, self._first = self.stored(first, last + 1), first
        self.bytes.close()

    @property
    def row(self) -> tuple[int, int, int, bool]:
        """Its line in the table of files of `feature_kernels`."""
        swap = self.element.newbyteorder("=") != self.element
        if self._held is None:
            return 0, self.bytes.fileno(), self.header.data, swap
        return self._held.ctypes.data - self._first * self._held.strides[0], -1, self.header.data, swap


class OpenFiles:
    """The feature files of a stream, by number, which have to be alike.

    Args:
        paths: their names.
        model: the one that the others have to be like.
        first, last: the first frame that is used of each file, and the last.
        held: whether these frames are held in memory; else the files used last are kept open.
    """

    def __init__(
        self, paths: Sequence[str], model: FeatureFile, first: Sequence[int], last: Sequence[int], *, held: bool
    ):
        self.paths, self.held = paths, held
        self._model, self._first, self._last = (model.path, model.header), first, last
        self._open: OrderedDict[int, FeatureFile] = OrderedDict()
        self._lock = threading.Lock()

    def __getitem__(self, number: int) -> FeatureFile:
        with self._lock:
            if (have := self._open.get(number)) is not None:
                self._open.move_to_end(number)
                return have
        file = FeatureFile(self.paths[number])
        self._check(file, self._last[number])
        if self.held:
            file.hold(self._first[number], self._last[number])
        with self._lock:
            self._open[number] = file
            while len(self._open) > OPEN_FILES and not self.held:
                self._open.popitem(last=False)
        return file

    def _check(self, file: FeatureFile, last: int) -> None:
        path, first = self._model
        for field, ours, theirs in (
            ("kind", file.header.kind, first.kind),
            ("number of values per frame", file.header.dim, first.dim),
            ("sample period", file.header.period, first.period),
        ):
            if ours != theirs:
                raise DataError(
                    f"The feature files of a stream must be alike: the {field} of {file.path} is {ours}, that of "
                    f"{path} is {theirs}.",
                    path=file.path,
                )
        if last >= file.header.frames:
            raise DataError(
                f"Frame {last} of {file.path} does not exist; the file has {file.header.frames} frames.", path=file.path
            )


def read_features(path: str, first: int = 0, end: int | None = None) -> np.ndarray:
    """Return the frames of a feature file, float32 (n, dim)."""
    return np.array(FeatureFile(path).frames(first, end), np.float32)


def write_features(
    path: str,
    frames: np.ndarray,
    *,
    period: int = 100000,
    kind: str = "USER",
    big: bool = True,
    compressed: bool = False,
) -> None:
    """Write one feature file; it appears whole or not at all."""
    frames = np.asarray(frames, np.float32)
    header = make_header(*frames.shape, period=period, kind=kind, big=big, compressed=compressed)
    with _new_file(path) as file:
        file.write(header.pack())
        order = ">" if big else "<"
        if header.compressed:
            a, b = scales(frames)
            file.write(a.astype(order + "f4").tobytes() + b.astype(order + "f4").tobytes())
            file.write(compress(frames, a, b).astype(order + "i2").tobytes())
        else:
            file.write(frames.astype(order + "f4").tobytes())


def write_archive(
    path: str,
    utterances: Iterable[tuple[str, np.ndarray]],
    script: str | None = None,
    *,
    inside: str | None = None,
    period: int = 100000,
    kind: str = "USER",
    big: bool = True,
) -> int:
    """Write utterances (name, frames) one after the other into one file, and the script file that lists them.

    inside: how the script names the archive, by default `.../` and the name of the file. Returns the number of frames.
    """
    inside = inside or ".../" + Path(path).name
    total, dim = 0, None
    lines: list[str] = []
    with _new_file(path) as file:
        file.write(bytes(HEADER))
        for name, frames in utterances:
            frames = np.asarray(frames, ">f4" if big else "<f4")
            dim = frames.shape[1] if dim is None else dim
            if frames.shape[1] != dim or not len(frames):
                raise DataError(f"Utterance {name} has the shape {frames.shape}; all of {path} have frames of {dim}.")
            file.write(frames.tobytes())
            lines.append(f"{name}={inside}[{total},{total + len(frames) - 1}]\n")
            total += len(frames)
        header = make_header(total, dim or 1, period=period, kind=kind, big=big)
        file.seek(0)
        file.write(header.pack())
    if script is not None:
        with _new_file(script) as file:
            file.write("".join(lines).encode("utf-8", "surrogateescape"))
    return total


@contextmanager
def _new_file(path: str) -> Generator[IO[Any]]:
    try:
        with atomic_write(path) as file:
            yield file
    except OSError as error:
        raise DataError(not_written(error, path), path=path) from None
