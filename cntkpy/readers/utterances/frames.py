"""Shared code of features and labels: utterances by name, in chunks, given whole or frame by frame."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast, overload
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from cntkpy.readers.common.chunk import Chunk, StreamData
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.common.sequences import SequenceTable, no_sequence, starts_of
from cntkpy.readers.kernels.budget import fits_budget
from cntkpy.readers.streams import StreamInformation

CHUNK_FRAMES = 90000
"""A chunk takes another utterance as long as it holds no more frames than this."""
MOST_IN_CHUNK = 65535
_SPREAD = 0x9E3779B97F4A7C15
_NEAR = 64


def cut_into_chunks(lengths: np.ndarray, frames: int = CHUNK_FRAMES) -> np.ndarray:
    """Utterances before each chunk, int64[C+1]."""
    ends = np.cumsum(lengths, dtype=np.int64)
    first, begin = [0], 0
    while begin < len(lengths):
        previous_end = int(ends[begin - 1]) if begin else 0
        end = int(np.searchsorted(ends, previous_end + frames, side="right")) + 1
        begin = min(end, len(lengths), begin + MOST_IN_CHUNK)
        first.append(begin)
    return np.array(first, np.int64)


class _Names(Sequence[int | str]):
    """Names of sequences, looked up when they are asked for: of most minibatches nobody does."""

    def __init__(self, table: SequenceTable, sequences: np.ndarray):
        self._table, self._sequences = table, sequences

    def __len__(self) -> int:
        return len(self._sequences)

    @overload
    def __getitem__(self, index: int) -> int | str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int | str]: ...
    def __getitem__(self, index: int | slice) -> int | str | Sequence[int | str]:
        if isinstance(index, slice):
            return _Names(self._table, self._sequences[index])
        number = int(self._table.key(self._sequences[index : index + 1 or None])[0])
        return number if self._table.corpus is None else self._table.corpus.name(number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(cast("Sequence[object]", other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


class FrameCorpus(Corpus):
    """Names of frames: each is called after its utterance."""

    def __init__(self, corpus: Corpus):
        super().__init__(corpus.numeric, corpus.hashed)
        self.utterances = corpus

    def name(self, number: int) -> int | str:
        """Return the utterance; of a hashed one only the number of the frame is known."""
        return f"<Unknown, frame {number}>" if self.hashed else self.utterances.name(number >> 32)


class UtteranceTable(SequenceTable):
    """A table whose names are looked up late."""

    def names(self, sequences: np.ndarray) -> Sequence[int | str]:  # type: ignore[override]
        """Keys of sequences as they stand in the data."""
        return _Names(self, sequences)


class FrameTable(UtteranceTable):
    """The frames of utterances, each a sequence of its own.

    first: int64[C+1], utterances before each chunk; lengths: int64[U]; numbers: uint64[U], keys of utterances.
    """

    def __init__(self, first: np.ndarray, lengths: np.ndarray, numbers: np.ndarray, corpus: Corpus):
        self.starts = starts_of(lengths)
        super().__init__(self.starts[first], np.ones(1, np.int32), None, FrameCorpus(corpus))
        self._base = numbers * np.uint64(_SPREAD) if corpus.hashed else numbers << np.uint64(32)

    def key(self, sequences: np.ndarray) -> np.ndarray:
        """Keys of frames: made of the utterance and the number of the frame, they need no memory."""
        which, frames = self.place(sequences)
        return self._base[which] + frames.astype(np.uint64)

    def place(self, sequences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the utterance of each of these frames, and its number there."""
        which, frames = np.empty(len(sequences), np.int64), np.empty(len(sequences), np.int64)
        bad = functions_for(len(sequences)).locate(self.starts, self._near, _NEAR, sequences, which, frames)
        if bad >= 0:
            raise no_sequence(int(sequences[bad]), self.num_sequences)
        return which, frames

    @cached_property
    def _near(self) -> np.ndarray:
        """The utterance of every this many frames, from where it is not far to that of any."""
        return np.searchsorted(self.starts, np.arange(0, int(self.starts[-1]), _NEAR), side="right") - 1


def functions_for(work: int) -> Any:
    """`kernels`, or the fallbacks if the work fits the budget."""
    if fits_budget(work):
        from . import fallback as functions
    else:
        from . import kernels as functions
    return functions


class Utterances:
    """A deserializer of utterances. In frame mode every frame is a sequence.

    numbers: uint64[U], the keys; lengths: int64[U] in frames; first: int64[C+1], utterances before each chunk.
    """

    defines_mb_size = False

    def __init__(
        self,
        stream: StreamInformation,
        numbers: np.ndarray,
        lengths: np.ndarray,
        first: np.ndarray,
        corpus: Corpus,
        frame_mode: bool,
        frame_bytes: int,
    ):
        self.streams, self.numbers, self.lengths, self.first, self.corpus = [stream], numbers, lengths, first, corpus
        self.frame_mode = frame_mode
        self.utterances = UtteranceTable(first, lengths.astype(np.int32), numbers, corpus)
        self.frames = FrameTable(first, lengths, numbers, corpus)
        self.table: SequenceTable = self.frames if frame_mode else self.utterances
        self.chunk_bytes = np.diff(self.frames.first) * frame_bytes

    def by_utterance(self) -> Utterances:
        """Return the same with utterances for sequences."""
        clone = copy.copy(self)
        clone.frame_mode, clone.table = False, self.utterances
        return clone

    @property
    def has_invalid(self) -> bool:
        """True if there are utterances to be left out."""
        invalid = self.invalid(np.arange(len(self.lengths)))
        return invalid is not None and bool(invalid.any())

    def load_chunk(self, chunk: int) -> Chunk:
        """Return all sequences of a chunk."""
        which = self.utterances.of_chunk(chunk)
        data = self.whole(which)
        if not self.frame_mode:
            return self._chunk(data, which)
        single = np.arange(int(data.sequences[-1]) + 1)
        data = StreamData(data.dim, data.values, data.starts, single, data.counts, data.indices)
        return self._chunk(data, np.repeat(which, self.lengths[which]))

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Just these."""
        if not self.frame_mode:
            return self._chunk(self.whole(sequences), sequences)
        which, frames = self.frames.place(sequences)
        return self._chunk(self.single(which, frames), which)

    def _chunk(self, data: StreamData, which: np.ndarray) -> Chunk:
        invalid = self.invalid(which)
        nbytes = data.values.nbytes + data.starts.nbytes
        return Chunk({self.streams[0].name: data}, nbytes, invalid if invalid is not None and invalid.any() else None)

    def bounds(self, which: np.ndarray) -> np.ndarray:
        """First frame of each of these utterances laid side by side, and the end: int64[n+1]."""
        return starts_of(self.lengths[which])

    def whole(self, which: np.ndarray) -> StreamData:
        """Return these utterances."""
        raise NotImplementedError

    def single(self, which: np.ndarray, frames: np.ndarray) -> StreamData:
        """Single frames of these utterances."""
        raise NotImplementedError

    def pieces(self, which: np.ndarray, frames: np.ndarray, bounds: Sequence[int]) -> list[Any]:
        """Single frames bounds[k] .. bounds[k+1]-1 of these for every k, (1, n, dim) or CSR, without a copy between."""
        raise NotImplementedError

    def frame_batches(self, sequences: np.ndarray, bounds: Sequence[int]) -> list[dict[str, Any]]:
        """Return the same of frames by their number, with the name of the stream."""
        name = self.streams[0].name
        return [{name: piece} for piece in self.pieces(*self.frames.place(sequences), bounds)]

    def invalid(self, which: np.ndarray) -> np.ndarray | None:
        """Return whether each of these utterances is to be left out, bool[n]; None if none is."""
        return None


_PRIMARY: WeakKeyDictionary[Corpus, ReferenceType[Utterances]] = WeakKeyDictionary()


def set_primary(corpus: Corpus, features: Utterances) -> None:
    """These features came first among the deserializers of a reader: they decide how long utterances are."""
    _PRIMARY[corpus] = ref(features)


def primary_of(corpus: Corpus) -> Utterances | None:
    """Return the first features of the reader whose keys these are."""
    known = _PRIMARY.get(corpus)
    return known() if known is not None else None


def lengths_in_primary(corpus: Corpus, numbers: np.ndarray) -> np.ndarray | None:
    """Return the lengths of utterances in the first features of the reader, -1 where there is none; None without
    such."""
    primary = primary_of(corpus)
    if primary is None:
        return None
    order = np.argsort(primary.numbers, kind="stable")
    known = primary.numbers[order]
    position = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.where(known[position] == numbers, primary.lengths[order[position]], -1)
