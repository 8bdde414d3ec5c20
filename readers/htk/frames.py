"""What features and labels have in common: utterances by name, in chunks, given whole or frame by frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from ..chunk import Chunk, StreamData
from ..corpus import Corpus
from ..sequences import SequenceTable
from ..streams import StreamInformation

CHUNK_FRAMES = 90000
"""A chunk takes another utterance as long as it holds no more frames than this."""
MOST_IN_CHUNK = 65535
_SPREAD = 0x9E3779B97F4A7C15


def cut_into_chunks(lengths: np.ndarray, frames: int = CHUNK_FRAMES) -> np.ndarray:
    """Utterances before each chunk, int64[C+1]."""
    ends = np.cumsum(lengths, dtype=np.int64)
    first, begin = [0], 0
    while begin < len(lengths):
        before = int(ends[begin - 1]) if begin else 0
        end = int(np.searchsorted(ends, before + frames, side="right")) + 1
        begin = min(end, len(lengths), begin + MOST_IN_CHUNK)
        first.append(begin)
    return np.array(first, np.int64)


class _Names(Sequence[int | str]):
    """Names of keys, looked up when they are asked for: of most minibatches nobody does."""

    def __init__(self, corpus: Corpus | None, numbers: np.ndarray):
        self._corpus, self._numbers = corpus, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> int | str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int | str]: ...
    def __getitem__(self, index: int | slice) -> int | str | Sequence[int | str]:
        if isinstance(index, slice):
            return _Names(self._corpus, self._numbers[index])
        number = int(self._numbers[index])
        return number if self._corpus is None else self._corpus.name(number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


class FrameCorpus(Corpus):
    """Names of frames: each is called after its utterance."""

    def __init__(self, corpus: Corpus):
        super().__init__(corpus.numeric, corpus.hashed)
        self.utterances = corpus

    def name(self, number: int) -> int | str:
        """The utterance; of a hashed one only the number of the frame is known."""
        return f"<Unknown, frame {number}>" if self.hashed else self.utterances.name(number >> 32)


class FrameTable(SequenceTable):
    """A table whose names are looked up late."""

    def names(self, sequences: np.ndarray) -> Sequence[int | str]:  # type: ignore[override]
        """Keys of sequences as they stand in the data."""
        return _Names(self.corpus, self.key(sequences))


class Utterances:
    """A deserializer of utterances. In frame mode every frame is a sequence.

    numbers: uint64[U], the keys; lengths: int64[U] in frames; first: int64[C+1], utterances before each chunk.
    """

    defines_mb_size = False

    def __init__(
        self, stream: StreamInformation, numbers: np.ndarray, lengths: np.ndarray, first: np.ndarray, corpus: Corpus,
        frame_mode: bool, frame_bytes: int,
    ):  # fmt: skip
        self.streams = [stream]
        self.numbers, self.lengths, self.first, self.corpus, self.frame_mode = (
            numbers,
            lengths,
            first,
            corpus,
            frame_mode,
        )
        self.starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if frame_mode:
            frame = np.arange(self.starts[-1]) - np.repeat(self.starts[:-1], lengths)
            base = numbers * np.uint64(_SPREAD) if corpus.hashed else numbers << np.uint64(32)
            keys = np.repeat(base, lengths) + frame.astype(np.uint64)
            self.table = FrameTable(self.starts[first], np.ones(1, np.int32), keys, FrameCorpus(corpus))
        else:
            self.table = FrameTable(first, lengths.astype(np.int32), numbers, corpus)
        self.chunk_bytes = np.diff(self.starts[first]) * frame_bytes

    def load_chunk(self, chunk: int) -> Chunk:
        """All sequences of a chunk."""
        which = np.arange(self.first[chunk], self.first[chunk + 1])
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
        which = np.searchsorted(self.starts, sequences, side="right") - 1
        return self._chunk(self.single(which, sequences - self.starts[which]), which)

    def _chunk(self, data: StreamData, which: np.ndarray) -> Chunk:
        invalid = self.invalid(which)
        nbytes = data.values.nbytes + data.starts.nbytes
        return Chunk({self.streams[0].name: data}, nbytes, invalid if invalid is not None and invalid.any() else None)

    def bounds(self, which: np.ndarray) -> np.ndarray:
        """First frame of each of these utterances laid side by side, and the end: int64[n+1]."""
        return np.concatenate([[0], np.cumsum(self.lengths[which], dtype=np.int64)])

    def whole(self, which: np.ndarray) -> StreamData:
        """These utterances."""
        raise NotImplementedError

    def single(self, which: np.ndarray, frames: np.ndarray) -> StreamData:
        """Single frames of these utterances."""
        raise NotImplementedError

    def rows(self, which: np.ndarray, frames: np.ndarray) -> Any:
        """Single frames as a matrix, dense or CSR, without a copy in between."""
        raise NotImplementedError

    def invalid(self, which: np.ndarray) -> np.ndarray | None:
        """Whether each of these utterances is to be left out, bool[n]; None if none is."""
        return None


_PRIMARY: WeakKeyDictionary[Corpus, ReferenceType[Utterances]] = WeakKeyDictionary()


def set_primary(corpus: Corpus, features: Utterances) -> None:
    """These features came first among the deserializers of a reader: they decide how long utterances are."""
    _PRIMARY[corpus] = ref(features)


def primary_of(corpus: Corpus) -> Utterances | None:
    """The first features of the reader whose keys these are."""
    known = _PRIMARY.get(corpus)
    return known() if known is not None else None


def lengths_in_primary(corpus: Corpus, numbers: np.ndarray) -> np.ndarray | None:
    """How long the utterances are in the first features of the reader, -1 where there is none; None without such."""
    primary = primary_of(corpus)
    if primary is None:
        return None
    order = np.argsort(primary.numbers, kind="stable")
    known = primary.numbers[order]
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.where(known[at] == numbers, primary.lengths[order[at]], -1)
