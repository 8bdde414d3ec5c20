"""Features as a deserializer: frames with their neighbours, out of HTK files, found by a script file."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.files import exists
from cntkpy.readers.errors import DataError
from cntkpy.readers.kernels.budget import fits_budget

from .archive import OPEN_FILES, FeatureFile, OpenFiles
from .format import expand
from .script import UNKNOWN, Script

log = logging.getLogger("cntkpy.readers")


_WORTH_A_THREAD = 1 << 20
_FAR = 1 << 62
_COPY_WORK = 300
"""Of the fallback that copies some frames of an utterance, see `fits_budget`."""
HELD = 256 << 20
"""Bytes of frames that are held in memory; of more, what is needed is read from the files each time."""


@dataclass
class _Group:
    """Open files that one call reads: their numbers (None: all of the stream), their table, A and B if compressed."""

    numbers: np.ndarray | None
    files: list[FeatureFile]  # they have to stay open as long as the table is used
    table: np.ndarray
    scales: np.ndarray | None

    def file(self, number: int) -> FeatureFile:
        """Return the file of a number."""
        return self.files[number if self.numbers is None else int(np.searchsorted(self.numbers, number))]


def _listed(script: Script, number: int) -> FeatureFile:
    """Return a file of a script. An error in it says where the file is listed."""
    path = script.files[number]
    try:
        return FeatureFile(path)
    except DataError as error:
        error_with_place = error.with_note(f"listed in {script.place(int(np.argmax(script.file == number)))}")
        if any(blank in path for blank in " \t") and not exists(path):
            error_with_place = error_with_place.with_note(
                "a line is name=archive[first,last], or one path: blanks are part of the names"
            )
        raise error_with_place from None


def _window_of(native: int, dim: int, left: int, right: int, path: str) -> tuple[int, int]:
    """Return the neighbours before and after a frame.

    Args:
        native: Values of a frame.
        dim: Values that the section says.
        left: Neighbours before a frame that the section says; 0 with `right` 0: `dim` decides.
        right: Those after it.
        path: A file, for messages.
    """
    if left or right:
        whole = native * (1 + left + right)
        if dim not in (native, whole):
            raise DataError(
                f"dim is {dim}, but a frame of {path} has {native} values.",
                path=path,
                hint=f"with contextWindow, dim is the size of one frame, or {whole}: that of the window",
            )
        return left, right
    width = dim // native
    if dim % native or width % 2 == 0:
        raise DataError(
            f"dim is {dim}, which is not an odd multiple of the {native} values that a frame of {path} has.",
            path=path,
            hint="dim is the size of a frame, or that of an odd number of frames: the context window",
        )
    return width // 2, width // 2


class FeatureSource:
    """The utterances of a script file, their frames, and how wide a frame is once its neighbours stand next to it.

    dim, left, right: values of a frame without neighbours and the window; or, with left = right = 0, values with them.
    energy: number of equal parts of a frame after each of which a zero is added.
    """

    def __init__(self, script: Script, dim: int, left: int = 0, right: int = 0, *, energy: int = 0):
        self.script, self.energy = script, energy
        model = _listed(script, int(script.file[0]))
        self.stored, self.period = model.header.dim, model.header.period
        if energy and self.stored % energy:
            raise DataError(
                f"The {self.stored} values of a frame of {model.path} do not consist of {energy} equal parts.",
                hint="see addEnergy",
                path=model.path,
            )
        self.native = self.stored + energy
        self.left, self.right = _window_of(self.native, dim, left, right, model.path)
        self._find_lengths()
        first, last = np.full(len(script.files), _FAR, np.int64), np.zeros(len(script.files), np.int64)
        np.minimum.at(first, script.file, script.first)
        np.maximum.at(last, script.file, script.last)
        self.held = int((last - first + 1).sum()) * model.header.frame_bytes <= HELD
        self.files = OpenFiles(script.files, model, first.tolist(), last.tolist(), held=self.held)
        self._groups: list[_Group] | None = None
        if len(script.files) <= OPEN_FILES:
            self._check(last)
            self._groups = self._open(np.arange(len(script.files)))

    @property
    def dim(self) -> int:
        """Values of a frame with its neighbours."""
        return self.native * (1 + self.left + self.right)

    @property
    def keys(self) -> list[str]:
        """The names of the utterances."""
        return self.script.keys

    @property
    def paths(self) -> list[str]:
        """The feature files."""
        return self.script.files

    @property
    def list_path(self) -> str:
        """The file that lists the utterances."""
        return self.script.paths[0]

    def place(self, utterance: int) -> str:
        """Return the place in the list of an utterance, for messages."""
        return self.script.place(utterance)

    def _find_lengths(self) -> None:
        """Open the files whose utterances have no frame numbers."""
        s = self.script
        for number in map(int, np.unique(s.file[s.last == UNKNOWN])):
            which = np.flatnonzero((s.file == number) & (s.last == UNKNOWN)) if len(s.files) < len(s) else [number]
            frames = _listed(s, number).header.frames
            if frames == 0:
                raise DataError(f"{s.place(int(which[0]))}: {s.files[number]} has no frames.", path=s.files[number])
            s.last[which] = frames - 1
        self.lengths = s.last - s.first + 1

    def _check(self, last: np.ndarray) -> None:
        """An error that says which line of the script asks for a frame that its file does not have."""
        s = self.script
        for number in range(len(s.files)):
            frames = _listed(s, number).header.frames
            if last[number] >= frames:
                bad = int(np.flatnonzero((s.file == number) & (s.last == last[number]))[0])
                raise DataError(
                    f"{s.place(bad)}: frame {s.last[bad]} of {s.files[number]} does not exist; the file has {frames} "
                    "frames.",
                    path=s.files[number],
                )

    def keep(self, which: np.ndarray) -> None:
        """Continue with these utterances only."""
        self.script = self.script.select(which)
        self.lengths = self.lengths[which]

    def _open(self, numbers: np.ndarray) -> list[_Group]:
        """Open these files."""
        files = [self.files[number] for number in numbers.tolist()]
        compressed = np.array([file.scales is not None for file in files])
        groups: list[_Group] = []
        for kind in np.unique(compressed).tolist():
            some = numbers[compressed == kind]
            chosen = [file for file in files if (file.scales is not None) == kind]
            table = np.empty((len(self.script.files), 4), np.int64)
            table[some] = [file.row for file in chosen]
            scales = None
            if kind:
                scales = np.empty((len(table), 2, self.stored), np.float32)
                scales[some] = [file.scales for file in chosen]
            groups.append(_Group(None if len(some) == len(table) else some, chosen, table, scales))
        return groups

    def _opened(self, numbers: np.ndarray) -> Iterator[tuple[_Group, Any]]:
        """Yield the groups of files of these numbers (one per utterance), and which utterances each has."""
        if self._groups is not None:
            groups = self._groups
        else:
            some = np.unique(numbers)
            groups = (
                g for index in range(0, len(some), OPEN_FILES) for g in self._open(some[index : index + OPEN_FILES])
            )
        for group in groups:
            if group.numbers is None:
                yield group, slice(None)
            elif len(mine := np.flatnonzero(np.isin(numbers, group.numbers))):
                yield group, mine

    def _copy(self, group: _Group, some: tuple[np.ndarray, ...], words: np.ndarray) -> None:
        """Copy frames as they are to `words`; of many, half on another thread. some: which, begin, end, place."""
        from . import feature_kernels as k

        s, count = self.script, len(some[0])

        def copy(first: int, last: int) -> None:
            which, begin, end, place = (array[first:last] for array in some)
            done = 0
            while done < len(which):
                remainder = which[done:], begin[done:], end[done:], words, place[done:]
                bad = k.copy_frames(group.table, s.file, s.first, s.last, self.stored, *remainder)
                if bad < 0:
                    return
                done += bad
                self._copy_with_retries(
                    group, int(which[done]), int(begin[done]), int(end[done]), words, int(place[done])
                )
                done += 1

        half = count // 2 if words.nbytes >= _WORTH_A_THREAD else 0
        second = self._helper.submit(copy, 0, half) if half else None
        copy(half, count)
        if second is not None:
            second.result()

    def _copy_with_retries(self, group: _Group, u: int, begin: int, end: int, words: np.ndarray, place: int) -> None:
        """Copy frames of utterance `u` that could not be read in one go; `FileBytes` tries again, or tells why not."""
        from . import feature_kernels as k

        s = self.script
        file = group.file(int(s.file[u]))
        low, high = int(s.first[u]), int(s.last[u])
        first, last = (min(max(low + int(position), low), high) for position in (begin, end - 1))
        try:
            frames = file.stored(first, last + 1)
        except DataError as error:
            raise DataError(f"{s.place(u)}: {error.message}", path=file.path, hint=error.hint) from None
        table = np.array([[frames.ctypes.data - first * frames.strides[0], -1, 0, file.row[-1]]], np.int64)
        zero, from_, to, begins, ends, places = np.array([[0], [low], [high], [begin], [end], [place]], np.int64)
        if k.copy_frames(table, zero, from_, to, self.stored, zero, begins, ends, words, places) >= 0:
            raise DataError(f"The frames of {s.place(u)} cannot be read.", path=file.path)

    @cached_property
    def _helper(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "cntkpy-frames")

    def copy(self, which: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Frames begin..end-1 of utterances, float32[n, native], and where each begins; outside are edge frames."""
        s = self.script
        place = np.zeros(len(which) + 1, np.int64)
        np.cumsum(end - begin, out=place[1:])
        place, rows = place[:-1], int(place[-1])
        out = np.empty((rows, self.stored), np.float32)
        in_python = fits_budget(_COPY_WORK * len(which) + rows * self.stored // 8)
        for group, mine in self._opened(s.file[which]):
            if in_python:
                _copy_in_python(self.script, group, which[mine], begin[mine], end[mine], out, place[mine])
                continue
            some = which[mine], begin[mine], end[mine], place[mine]
            words = np.empty(out.size, np.uint16) if group.scales is not None else out.reshape(-1).view(np.uint32)
            self._copy(group, some, words)
            if group.scales is not None:
                from .feature_kernels import expand as expand_rows

                expand_rows(words.view(np.int16).reshape(out.shape), group.scales, s.file, *some, out)
        if self.energy:
            parts = out.reshape(len(out), self.energy, -1)
            out = np.concatenate([parts, np.zeros((*parts.shape[:2], 1), np.float32)], axis=2).reshape(len(out), -1)
        return out, place


def _copy_in_python(
    s: Script, group: _Group, which: np.ndarray, begin: np.ndarray, end: np.ndarray, out: np.ndarray, place: np.ndarray
) -> None:
    """The fallback of `_copy` and of what follows it."""
    several = zip(which.tolist(), begin.tolist(), end.tolist(), place.tolist(), strict=True)
    for u, a, b, row in several:
        file = group.file(int(s.file[u]))
        low, high = int(s.first[u]), int(s.last[u])
        wanted = np.array([min(max(low + index, low), high) for index in range(a, b)])
        first, last = int(wanted[0]), int(wanted[-1])
        try:
            frames = file.raw(first, last + 1)
        except DataError as error:
            raise DataError(f"{s.place(u)}: {error.message}", path=file.path, hint=error.hint) from None
        if file.scales is not None:
            frames = expand(frames, *file.scales)
        out[row : row + b - a] = frames[wanted - first]
