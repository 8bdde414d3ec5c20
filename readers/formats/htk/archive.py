"""Feature files on disk: mapped into memory for reading, written whole or utterance by utterance."""

from __future__ import annotations

import logging
import mmap
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from cntk_config.base.files import atomic_write, open_input
from readers.errors import DataError

from .format import GUID, HEADER, Header, compress, expand, make_header, parse_header, scales

log = logging.getLogger("cntkpy.readers")
OPEN_FILES = 256
"""Files that are kept open."""


class FeatureFile:
    """An open HTK feature file, mapped into memory: frames are read from disk when they are looked at.

    mapped: False for a file that is read piece by piece instead, so that it takes no memory whatever its size.
    """

    def __init__(self, path: str, *, mapped: bool = True):
        self.path = path
        try:
            with ExitStack() as stack:
                file = stack.enter_context(open_input(path, buffering=0))
                length = os.fstat(file.fileno()).st_size
                self.header: Header = parse_header(file.read(HEADER + GUID), length, path)
                h = self.header
                file.seek(HEADER)
                scales = file.read(8 * h.dim) if h.compressed else b""
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if mapped else None
                self._file = None if mapped else file
                if not mapped:
                    weakref.finalize(self, stack.pop_all().close)  # it stays open as long as this object lives
        except OSError as error:
            raise DataError(
                f"The feature file {path} cannot be opened: {error.strerror or error}", path=path,
                hint="check the path in the script file; prefixPathInSCP and ... say where files are",
            ) from None  # fmt: skip
        order = ">" if h.big else "<"
        self.element = np.dtype(order + ("i2" if h.compressed else "f4"))
        both = np.frombuffer(scales, order + "f4").astype(np.float32)
        self.scales = both.reshape(2, h.dim) if h.compressed else None
        """A and B of a compressed file, float32[2, dim]."""

    @property
    def stored(self) -> np.ndarray:
        """The frames as they stand in the file, (frames, dim), without a copy."""
        h = self.header
        assert self._map is not None
        return np.frombuffer(self._map, self.element, h.frames * h.dim, h.data).reshape(h.frames, h.dim)

    def frames(self, first: int = 0, end: int | None = None) -> np.ndarray:
        """Frames first..end-1 as (n, dim): a view of the file if it is not compressed."""
        part = self.stored[first:end]
        return expand(part, *self.scales) if self.scales is not None else part

    def check_size(self) -> None:
        """See that a mapped file is as long as it was: touching pages that are gone would end the process."""
        if self._map is not None and self._map.size() < len(self._map):
            raise DataError(f"The feature file {self.path} was cut short while it was read.", path=self.path)

    @property
    def row(self) -> tuple[int, int, int, bool]:
        """Its line in the table of files of `feature_kernels`."""
        swap = self.element.newbyteorder("=") != self.element
        if self._file is not None:
            return 0, self._file.fileno(), self.header.data, swap
        return (self.stored.ctypes.data if self.header.frames else 0), -1, self.header.data, swap


class OpenFiles:
    """The feature files of a stream, by number, which have to be alike; the ones used last are kept open.

    last: the last frame that is used of each file.
    """

    def __init__(self, paths: Sequence[str], model: FeatureFile, last: Sequence[int], *, mapped: bool = True):
        self.paths, self.mapped = paths, mapped
        self._model, self._last = (model.path, model.header), last
        self._open: OrderedDict[int, FeatureFile] = OrderedDict()
        self._lock = threading.Lock()

    def __getitem__(self, number: int) -> FeatureFile:
        with self._lock:
            if (have := self._open.get(number)) is not None:
                self._open.move_to_end(number)
                return have
        file = FeatureFile(self.paths[number], mapped=self.mapped)
        self._check(file, self._last[number])
        with self._lock:
            self._open[number] = file
            while len(self._open) > OPEN_FILES:
                self._open.popitem(last=False)
        return file

    def _check(self, file: FeatureFile, last: int) -> None:
        path, first = self._model
        for what, ours, theirs in (
            ("kind", file.header.kind, first.kind),
            ("number of values per frame", file.header.dim, first.dim),
            ("sample period", file.header.period, first.period),
        ):
            if ours != theirs:
                raise DataError(
                    f"The feature files of a stream must be alike: the {what} of {file.path} is {ours}, that of "
                    f"{path} is {theirs}.",
                    path=file.path,
                )
        if last >= file.header.frames:
            raise DataError(
                f"Frame {last} of {file.path} does not exist; the file has {file.header.frames} frames.", path=file.path
            )


def read_features(path: str, first: int = 0, end: int | None = None) -> np.ndarray:
    """The frames of a feature file, float32 (n, dim)."""
    return np.array(FeatureFile(path).frames(first, end), np.float32)


def write_features(
    path: str, frames: np.ndarray, *, period: int = 100000, kind: str = "USER", big: bool = True,
    compressed: bool = False,
) -> None:  # fmt: skip
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
    path: str, utterances: Iterable[tuple[str, np.ndarray]], script: str | None = None, *, inside: str | None = None,
    period: int = 100000, kind: str = "USER", big: bool = True,
) -> int:  # fmt: skip
    """Write utterances (name, frames) one behind the other into one file, and the script file that lists them.

    inside: how the script names the archive, by default `.../` and the name of the file. Returns the number of frames.
    """
    inside = inside or ".../" + Path(path).name
    total, dim, lines = 0, None, []
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
            file.write("".join(lines).encode())
    return total


@contextmanager
def _new_file(path: str) -> Iterator[IO[Any]]:
    try:
        with atomic_write(path) as file:
            yield file
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}", path=path) from None
