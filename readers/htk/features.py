"""Features as a deserializer: frames with their neighbours, out of HTK files, found by a script file."""

from __future__ import annotations

import logging
from collections import Counter

import numpy as np

from ..chunk import StreamData
from ..corpus import Corpus
from ..errors import DataError
from ..streams import StreamInformation
from .archive import OPEN_FILES, OpenFiles
from .frames import Utterances
from .script import UNKNOWN, Script

log = logging.getLogger("cntkpy.readers")


class FeatureSource:
    """The utterances of a script file, their frames, and how wide a frame is once its neighbours stand beside it.

    dim, left, right: values of a frame without neighbours and the window; or, with left = right = 0, values with them.
    energy: number of equal parts of a frame after each of which a zero is added.
    """

    def __init__(self, script: Script, dim: int, left: int = 0, right: int = 0, *, energy: int = 0):
        self.script, self.energy = script, energy
        self.files = OpenFiles()
        model = self.files[script.files[script.file[0]]]
        self.stored = model.header.dim
        if energy and self.stored % energy:
            raise DataError(
                f"The {self.stored} values of a frame of {model.path} do not consist of {energy} equal parts.",
                hint="see addEnergy", path=model.path,
            )  # fmt: skip
        self.native = self.stored + energy
        self.left, self.right = self._window(dim, left, right, model.path)
        self._find_lengths()

    @property
    def dim(self) -> int:
        """Values of a frame with its neighbours."""
        return self.native * (1 + self.left + self.right)

    def _window(self, dim: int, left: int, right: int, path: str) -> tuple[int, int]:
        if left or right:
            if dim != self.native:
                raise DataError(
                    f"dim is {dim}, but a frame of {path} has {self.native} values.", path=path,
                    hint="with contextWindow, dim is the size of one frame",
                )  # fmt: skip
            return left, right
        width = dim // self.native
        if dim % self.native or width % 2 == 0:
            raise DataError(
                f"dim is {dim}, which is no odd multiple of the {self.native} values that a frame of {path} has.",
                path=path, hint="dim is the size of a frame, or that of an odd number of frames: the context window",
            )  # fmt: skip
        return width // 2, width // 2

    def _find_lengths(self) -> None:
        """Open the files whose utterances have no frame numbers, and all if they are few; check the frame numbers."""
        s = self.script
        for number in np.unique(s.file[s.last == UNKNOWN]).tolist():
            which = np.flatnonzero((s.file == number) & (s.last == UNKNOWN)) if len(s.files) < len(s) else [number]
            frames = self.files[s.files[number]].header.frames
            if frames == 0:
                raise DataError(f"{s.place(int(which[0]))}: {s.files[number]} has no frames.", path=s.files[number])
            s.last[which] = frames - 1
        if len(s.files) <= OPEN_FILES:
            for number, path in enumerate(s.files):
                self._check(path, np.flatnonzero(s.file == number))
        self.lengths = s.last - s.first + 1

    def _check(self, path: str, which: np.ndarray) -> None:
        frames = self.files[path].header.frames
        if len(which) and int(self.script.last[which].max()) >= frames:
            bad = int(which[np.argmax(self.script.last[which])])
            raise DataError(
                f"{self.script.place(bad)}: frame {self.script.last[bad]} of {path} does not exist; the file has "
                f"{frames} frames.", path=path,
            )  # fmt: skip

    def keep(self, which: np.ndarray) -> None:
        """Go on with these utterances only."""
        self.script = self.script.select(which)
        self.lengths = self.lengths[which]

    def copy(self, which: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Frames begin..end-1 of utterances, float32[n, native], and where each begins; outside are edge frames."""
        from . import feature_kernels as k

        s = self.script
        place = np.concatenate([[0], np.cumsum(end - begin)])
        out = np.empty((int(place[-1]), self.stored), np.float32)
        numbers = s.file[which]
        for number in np.unique(numbers).tolist():
            mine = slice(None) if len(s.files) == 1 else np.flatnonzero(numbers == number)
            chosen = which[mine]
            path = s.files[number]
            if len(s.files) > OPEN_FILES:
                self._check(path, chosen)
            file, low = self.files[path], s.first[chosen]
            bounds = begin[mine] + low, end[mine] + low, low, s.last[chosen]
            if file.scales is not None:
                k.copy_compressed(file.words, *file.scales, *bounds, file.swap, out, place[:-1][mine])
            else:
                words = out.reshape(-1).view(np.uint32)
                k.copy_frames(file.words.reshape(-1), self.stored, *bounds, file.swap, words, place[:-1][mine])
        if self.energy:
            parts = out.reshape(len(out), self.energy, -1)
            out = np.concatenate([parts, np.zeros((*parts.shape[:2], 1), np.float32)], axis=2).reshape(len(out), -1)
        return out, place[:-1]


class HTKFeatures(Utterances):
    """One stream of features. repeated: int64[U], utterances have a single frame each, which is repeated so often."""

    def __init__(
        self, name: str, source: FeatureSource, first: np.ndarray, corpus: Corpus, *,
        dtype: np.dtype | type = np.float32, frame_mode: bool = False, repeated: np.ndarray | None = None,
    ):  # fmt: skip
        self.source, self.repeated = source, repeated is not None
        dtype = np.dtype(dtype)
        lengths = source.lengths if repeated is None else repeated
        stream = StreamInformation(name, (source.dim,), False, dtype)
        numbers = corpus.numbers(source.script.keys)
        super().__init__(stream, numbers, lengths, first, corpus, frame_mode, source.native * dtype.itemsize + 8)

    def _data(self, frames: np.ndarray, rows: np.ndarray, bounds: np.ndarray) -> StreamData:
        """Samples whose windows begin at these rows."""
        info = self.streams[0]
        values = frames.reshape(-1).astype(info.dtype, copy=False)
        return StreamData(info.dim, values, rows * self.source.native, bounds)

    def whole(self, which: np.ndarray) -> StreamData:
        """These utterances: every frame once, with the edges repeated, so that windows overlap."""
        s, lengths, bounds = self.source, self.lengths[which], self.bounds(which)
        if self.repeated:
            frames, place = s.copy(which, np.zeros(len(which), np.int64), np.ones(len(which), np.int64))
            return self._data(frames, np.repeat(place, lengths), bounds)
        frames, place = s.copy(which, np.full(len(which), -s.left), lengths + s.right)
        rows = np.repeat(place - bounds[:-1], lengths) + np.arange(bounds[-1])
        return self._data(frames, rows, bounds)

    def rows(self, which: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """Single frames with their neighbours, (n, dim)."""
        s = self.source
        frames = np.zeros_like(frames) if self.repeated else frames
        loaded, _ = s.copy(which, frames - s.left, frames + s.right + 1)
        return loaded.reshape(len(which), s.dim).astype(self.streams[0].dtype, copy=False)

    def single(self, which: np.ndarray, frames: np.ndarray) -> StreamData:
        """Single frames: each with its own window, or, if that takes less, the part of its utterance around all."""
        s, bounds = self.source, np.arange(len(which) + 1)
        if self.repeated:
            frames = np.zeros_like(frames)
        utterances, inverse = np.unique(which, return_inverse=True)
        low = np.full(len(utterances), 2**31, np.int64)
        high = np.zeros(len(utterances), np.int64)
        np.minimum.at(low, inverse, frames)
        np.maximum.at(high, inverse, frames)
        window = 1 + s.left + s.right
        if int((high - low).sum()) + window * len(utterances) <= window * len(which):
            loaded, place = s.copy(utterances, low - s.left, high + s.right + 1)
            return self._data(loaded, place[inverse] + frames - low[inverse], bounds)
        loaded, place = s.copy(which, frames - s.left, frames + s.right + 1)
        return self._data(loaded, place, bounds)


def without_duplicates(source: FeatureSource) -> int:
    """Drop every copy of an utterance listed more than once; how many were dropped."""
    counts = Counter(source.script.keys)
    double = [i for i, key in enumerate(source.script.keys) if counts[key] > 1]
    if double:
        source.keep(np.setdiff1d(np.arange(len(source.script)), double))
    return len(double)
