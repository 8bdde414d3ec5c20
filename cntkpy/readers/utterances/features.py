"""Features as a deserializer: frames with their neighbours, out of whatever holds them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from cntkpy.cntk_config.declare import Declared
from cntkpy.readers.common.beginnings import unless_cut
from cntkpy.readers.common.chunk import StreamData
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.errors import DataError
from cntkpy.readers.streams import StreamInformation

from .frames import Utterances, lengths_in_primary

log = logging.getLogger("cntkpy.readers")


class FrameSource(Protocol):
    """The frames of utterances in files. left, right: neighbours of a frame; native: values of one, dim: of all.

    period: of a frame, in units of 100 ns; 0: the files do not say it.
    """

    lengths: np.ndarray
    period: int
    left: int
    right: int
    native: int

    @property
    def held(self) -> bool:
        """True if copying single frames is cheap."""
        ...

    @property
    def dim(self) -> int:
        """Values of a frame with its neighbours."""
        ...

    @property
    def keys(self) -> list[str]:
        """The names of the utterances."""
        ...

    @property
    def paths(self) -> list[str]:
        """The files of the frames."""
        ...

    @property
    def list_path(self) -> str:
        """The file that lists the utterances."""
        ...

    def place(self, utterance: int) -> str:
        """Return the place in the list of an utterance, for messages."""
        ...

    def keep(self, which: np.ndarray) -> None:
        """Continue with these utterances only."""
        ...

    def copy(self, which: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Frames begin..end-1 of utterances, (n, native), and where each begins; outside are edge frames."""
        ...


class UtteranceFeatures(Utterances):
    """One stream of features. repeated: int64[U], utterances have a single frame each, which is repeated this often."""

    def __init__(
        self,
        name: str,
        source: FrameSource,
        first: np.ndarray,
        corpus: Corpus,
        *,
        dtype: np.dtype | type = np.float32,
        frame_mode: bool = False,
        repeated: np.ndarray | None = None,
    ):
        self.source, self.repeated = source, repeated is not None
        dtype = np.dtype(dtype)
        lengths = source.lengths if repeated is None else repeated
        stream = StreamInformation(name, (source.dim,), False, dtype)
        numbers = corpus.numbers(source.keys)
        super().__init__(stream, numbers, lengths, first, corpus, frame_mode, source.native * dtype.itemsize + 8)

    @property
    def files(self) -> list[str]:
        """The feature files."""
        return list(self.source.paths)

    def _data(self, frames: np.ndarray, rows: np.ndarray, bounds: np.ndarray) -> StreamData:
        """Samples whose windows begin at these rows."""
        info = self.streams[0]
        values = frames.reshape(-1).astype(info.dtype, copy=False)
        return StreamData(info.dim, values, rows * self.source.native, bounds)

    def whole(self, which: np.ndarray) -> StreamData:
        """Return these utterances: every frame once, with the edges repeated, so that windows overlap."""
        s, lengths, bounds = self.source, self.lengths[which], self.bounds(which)
        if self.repeated:
            frames, place = s.copy(which, np.zeros(len(which), np.int64), np.ones(len(which), np.int64))
            return self._data(frames, np.repeat(place, lengths), bounds)
        frames, place = s.copy(which, np.full(len(which), -s.left), lengths + s.right)
        rows = np.repeat(place - bounds[:-1], lengths) + np.arange(int(bounds[-1]))
        return self._data(frames, rows, bounds)

    def pieces(self, which: np.ndarray, frames: np.ndarray, bounds: Sequence[int]) -> list[np.ndarray]:
        """Single frames with their neighbours."""
        s = self.source
        if s.held:
            frames = np.zeros_like(frames) if self.repeated else frames
            out, _ = s.copy(which, frames - s.left, frames + (s.right + 1))
        else:
            loaded, place = self._around(which, frames)
            out = loaded
            if len(loaded) < len(which) * (1 + s.left + s.right):
                out = np.lib.stride_tricks.sliding_window_view(loaded.reshape(-1), s.dim)[place * s.native]
        out = out.reshape(1, len(which), s.dim).astype(self.streams[0].dtype, copy=False)
        return [out[:, a:b] for a, b in pairwise(bounds)]

    def single(self, which: np.ndarray, frames: np.ndarray) -> StreamData:
        """Single frames."""
        return self._data(*self._around(which, frames), np.arange(len(which) + 1))

    def _around(self, which: np.ndarray, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Frames and where each window begins in them: window by window, or, if that is less, parts of utterances."""
        s = self.source
        if self.repeated:
            frames = np.zeros_like(frames)
        utterances, inverse = np.unique(which, return_inverse=True)
        low = np.full(len(utterances), 2**31, np.int64)
        high = np.zeros(len(utterances), np.int64)
        np.minimum.at(low, inverse, frames)
        np.maximum.at(high, inverse, frames)
        window = 1 + s.left + s.right
        if int((high - low).sum()) + window * len(utterances) < window * len(which):
            loaded, place = s.copy(utterances, low - s.left, high + (s.right + 1))
            return loaded, place[inverse] + frames - low[inverse]
        return s.copy(which, frames - s.left, frames + (s.right + 1))


def without_duplicates(source: FrameSource) -> int:
    """Drop every copy of an utterance listed more than once; how many were dropped."""
    counts = Counter(source.keys)
    double = [i for i, key in enumerate(source.keys) if counts[key] > 1]
    if double:
        source.keep(np.setdiff1d(np.arange(len(source.keys)), double))
    return len(double)


def leave_out_longer(source: FrameSource, longest: int) -> None:
    """Keep the utterances of at most this many frames."""
    fitting = np.flatnonzero(source.lengths <= longest)
    dropped = len(source.lengths) - len(fitting)
    if dropped:
        text = "%s: %d utterances of more than %d frames are left out."
        log.warning(text, source.list_path, dropped, longest, extra=ABOUT_DATA)
        source.keep(fitting)


def repeated_lengths(p: Declared, source: FrameSource, corpus: Corpus) -> np.ndarray:
    """Return the repeats of the only frame of each utterance; drops utterances unknown to the first deserializer."""
    longer = np.flatnonzero(source.lengths != 1)
    if len(longer):
        place = source.place(int(longer[0]))
        raise p.error("expandToUtterance", f"utterances must have a single frame, but see {place}")
    if source.left or source.right:
        raise p.error("expandToUtterance", "cannot have a context window")
    lengths = lengths_in_primary(corpus, corpus.numbers(source.keys))
    if lengths is None:
        raise p.error("expandToUtterance", "needs features as the first deserializer")
    kept = np.flatnonzero(lengths >= 0)
    if not len(kept):
        message = f"{source.list_path} has none of the utterances of the first deserializer."
        raise unless_cut(DataError(message, path=source.list_path))
    source.keep(kept)
    return lengths[kept]
