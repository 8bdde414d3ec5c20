"""Labels as a deserializer: for every frame a vector with a single one, or the target of its class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from cntkpy.readers.common.chunk import StreamData
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.errors import DataError
from cntkpy.readers.pipeline.pack import make_csr
from cntkpy.readers.streams import StreamInformation

from .frames import Utterances, functions_for
from .lists import picked, read_lines

_SPREAD_WORK = 600
"""Of the fallback that spreads the labels of an utterance, see `fits_budget`."""


@dataclass(eq=False)
class Labels:
    """Labels of utterances: ranges of frames, each of one class.

    Utterance u has the ranges first[u]..first[u+1]-1; range r ends before frame ends[r] (int32) and is of
    classes[r] (uint16). contiguous: bool[U], whether the ranges leave no gaps.
    """

    keys: list[str]
    first: np.ndarray
    ends: np.ndarray
    classes: np.ndarray
    contiguous: np.ndarray
    places: list[tuple[str, int]]
    unit: str = "line"
    """Unit of the place numbers."""
    timed: bool = False
    """True if the files may have times in place of frame numbers."""

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def lengths(self) -> np.ndarray:
        """Frames of every utterance, int64[U]."""
        return self.ends[self.first[1:] - 1].astype(np.int64)

    def place(self, utterance: int) -> str:
        """Return the place of an utterance, for messages."""
        path, number = self.places[utterance]
        return f"{path}, {self.unit} {number}"

    def other_length(self, utterance: int, frames: int) -> str:
        """Return a hint for an utterance whose numbers of frames and labels differ."""
        hint, labelled = "every frame has one label", self.ends[self.first[utterance + 1] - 1]
        if self.timed:
            hint += "; times count frames of 10 ms, or of the sample period that the feature file has"
            if labelled and frames and abs(labelled - frames) > 1:
                hint += f": they would fit frames of {10 * labelled / frames:.4g} ms"
        return hint


def read_states(path: str) -> LabelMap:
    """Return a state list: a name per line, its class is the number of its line, from 0; blank lines do not count."""
    states, seen = LabelMap(), {}
    for span, line in read_lines(path, "the state list"):
        name = line.encode("utf-8", "surrogateescape")
        if name in seen:
            raise DataError(
                f"The state '{line}' occurs twice in the state list {path} (line {seen[name]} and line {span}).",
                path=path,
                line=span,
            )
        seen[name] = span
        states.add(name)
    if not len(states):
        raise DataError(f"The state list {path} is empty.", path=path, hint="it names one state per line")
    return states


@dataclass(frozen=True, eq=False)
class ClassVectors:
    """Vectors that stand for classes.

    Attributes:
        dim: Number of classes.
        targets: (classes, dim), vectors to be given instead of ones with a single one.
        boundaries: Whether the first frame of a range has a 2 in place of the 1.
        states: Names of the classes.
    """

    dim: int
    targets: np.ndarray | None = None
    boundaries: bool = False
    states: LabelMap | None = None


class UtteranceLabels(Utterances):
    """One stream of labels.

    Args:
        name: Of the stream.
        labels: The labels of utterances.
        chosen: int64[U], the utterances of `labels` in order.
        vectors: What classes are given as.
        first: Utterances before each chunk, int64[C+1].
        corpus: The keys.
        dtype: Of the vectors.
        frame_mode: Whether every frame is a sequence.
    """

    def __init__(
        self,
        name: str,
        labels: Labels,
        chosen: np.ndarray,
        vectors: ClassVectors,
        first: np.ndarray,
        corpus: Corpus,
        *,
        dtype: np.dtype | type = np.float32,
        frame_mode: bool = False,
    ):
        self.labels, self.chosen, self.boundaries = labels, chosen, vectors.boundaries
        dtype, targets, states = np.dtype(dtype), vectors.targets, vectors.states
        self.class_names = {name: states.mapping} if states is not None else {}
        self.targets = None if targets is None else np.ascontiguousarray(targets, dtype)
        dim = vectors.dim if targets is None else targets.shape[1]
        stream = StreamInformation(name, (dim,), targets is None, dtype)
        numbers = corpus.numbers(picked(labels.keys, chosen))
        super().__init__(stream, numbers, labels.lengths[chosen], first, corpus, frame_mode, 16 + dtype.itemsize)

    @property
    def files(self) -> list[str]:
        """The label files."""
        return list(dict.fromkeys(path for path, _ in self.labels.places))

    def whole(self, which: np.ndarray) -> StreamData:
        """Return these utterances."""
        bounds = self.bounds(which)
        ids = np.zeros(int(bounds[-1]), np.int32)
        marks = np.ones(len(ids) if self.boundaries else 0, np.uint8)
        labels = self.labels
        spread = functions_for(_SPREAD_WORK * len(which)).spread
        spread(labels.ends, labels.classes, labels.first, self.chosen[which], bounds, ids, marks)
        return self._data(ids, bounds, marks)

    def single(self, which: np.ndarray, frames: np.ndarray) -> StreamData:
        """Single frames."""
        return self._data(self._classes(which, frames), np.arange(len(which) + 1), np.empty(0, np.uint8))

    def pieces(self, which: np.ndarray, frames: np.ndarray, bounds: Sequence[int]) -> list[Any]:
        """Single frames: CSR with a one in every row, or targets."""
        ids, info = self._classes(which, frames), self.streams[0]
        if self.targets is not None:
            return [self.targets[None, ids[a:b]] for a, b in pairwise(bounds)]
        ones, rows = np.ones(len(ids), info.dtype), np.arange(len(ids) + 1, dtype=np.int32)
        return [make_csr(ones[a:b], ids[a:b], rows[: b - a + 1].copy(), info.dim) for a, b in pairwise(bounds)]

    @cached_property
    def _all_classes(self) -> np.ndarray:
        """The class of every frame, uint16: 2 bytes a frame, where the features have a hundred."""
        labels, starts = self.labels, self.frames.starts
        out = np.zeros(int(starts[-1]), np.uint16)
        spread = functions_for(_SPREAD_WORK * len(self.chosen)).spread
        spread(labels.ends, labels.classes, labels.first, self.chosen, starts, out, np.empty(0, np.uint8))
        return out

    def _classes(self, which: np.ndarray, frames: np.ndarray) -> np.ndarray:
        return self._all_classes[self.frames.starts[which] + frames].astype(np.int32)

    def _data(self, ids: np.ndarray, bounds: np.ndarray, marks: np.ndarray) -> StreamData:
        info, n = self.streams[0], len(ids)
        if self.targets is not None:
            return StreamData(info.dim, self.targets.reshape(-1), ids.astype(np.int64) * info.dim, bounds)
        values = marks.astype(info.dtype) if self.boundaries else np.ones(n, info.dtype)
        return StreamData(info.dim, values, np.arange(n), bounds, np.ones(n, np.int32), ids)

    def invalid(self, which: np.ndarray) -> np.ndarray | None:
        """Utterances whose ranges leave gaps."""
        return ~self.labels.contiguous[self.chosen[which]]


def check_classes(labels: Labels, dim: int, name: str) -> None:
    """An error about the first class that labels of this dimension have no room for."""
    if len(labels.classes) and int(labels.classes.max()) >= dim:
        index = int(np.argmax(labels.classes >= dim))
        utterance = int(np.searchsorted(labels.first, index, side="right")) - 1
        raise DataError(
            f"Class {labels.classes[index]} in the labels of {labels.keys[utterance]} ({labels.place(utterance)}) "
            f"exceeds the label dimension of '{name}', which is {dim}.",
            path=labels.places[utterance][0],
            hint="labelDim is the number of classes, which are counted from 0",
        )


def read_targets(path: str, states: LabelMap, dim: int) -> np.ndarray:
    """Return a label-to-target mapping: lines `state 0101...` in the order of the state list; float32 (states, dim)."""
    lines, names = read_lines(path, "the label-to-target mapping"), list(states.ids)
    rows: list[list[float]] = []
    for i, (span, line) in enumerate(lines):
        name, _, bits = line.partition(" ")
        bits = bits.strip()
        if i >= len(names) or name.encode("utf-8", "surrogateescape") != names[i]:
            message = f"'{name}' found where the state list has " + (
                f"'{names[i].decode('utf-8', 'surrogateescape')}'" if i < len(names) else "no state"
            )
        elif set(bits) - {"0", "1"}:
            message = (
                f"'{bits}' is not a row of zeros and ones; write them without blanks: {name} {'1' + '0' * (dim - 1)}"
            )
        elif len(bits) != dim:
            message = f"{len(bits)} zeros and ones, but targetDim is {dim}"
        else:
            rows.append([float(bit) for bit in bits])
            continue
        state = names[min(i, len(names) - 1)].decode("utf-8", "surrogateescape") if names else "state"
        raise DataError(
            f"{path}, line {span}: {message}.",
            path=path,
            line=span,
            hint="a line is the name of a state, in the order of labelMappingFile, a blank, targetDim zeros and ones: "
            f"{state} {'1' + '0' * (dim - 1)}",
        )
    if len(rows) != len(names):
        raise DataError(f"{path} has {len(rows)} lines, the state list {len(names)}.", path=path)
    return np.array(rows, np.float32)
