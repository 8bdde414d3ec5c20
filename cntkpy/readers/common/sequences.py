"""Metadata of a deserializer: chunks, sequences, their lengths and keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.errors import DataError

_SOME = 1 << 18
"""Sequences looked at at once."""
_APART = 1024
"""Sequences between two whose starts are kept."""


def starts_of(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the starts of consecutive parts of these lengths, and the end of the last part: int64[n + 1]."""
    starts = np.empty(len(lengths) + 1, np.int64)
    starts[0], starts[1:] = 0, lengths
    np.cumsum(starts[1:], out=starts[1:])  # of its own type: with a conversion it takes twice as long
    return starts


def _sums(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the sums of values[first[i] : first[i + 1]], none of which is empty: int64[len(first) - 1].

    `reduceat` copies what it is given to int64, so it is given a part at a time.
    """
    parts = np.unique(first[:-1] // _SOME, return_index=True)[1].tolist()
    return np.concatenate(
        [
            np.add.reduceat(values[first[a] : first[b]], first[a:b] - first[a], dtype=np.int64)
            for a, b in pairwise([*parts, len(first) - 1])
        ]
    )


class Starts:
    """The samples before each of some sequences, with a number for some of them only.

    lengths: an integer[N], N > 0, which is kept.
    """

    def __init__(self, lengths: np.ndarray) -> None:
        self._lengths = lengths
        self._some = starts_of(_sums(lengths, np.append(np.arange(0, len(lengths), _APART), len(lengths))))

    def __getitem__(self, sequence: int) -> int:
        """Of a sequence, or of all, sequence N."""
        begin = sequence // _APART * _APART
        return int(self._some[sequence // _APART]) + int(self._lengths[begin:sequence].sum(dtype=np.int64))

    def searchsorted(self, samples: int) -> int:
        """Return the first sequence with at least so many samples before it; samples: at most those of all."""
        previous = int(self._some.searchsorted(samples)) - 1
        if previous < 0:
            return 0
        begin = previous * _APART
        extra_ends = self._lengths[begin : begin + _APART].cumsum(dtype=np.int64)
        return begin + 1 + int(extra_ends.searchsorted(samples - int(self._some[previous])))


def no_sequence(number: int, count: int) -> DataError:
    """Return the error of a sequence that the data do not have; its number can only come from a saved state."""
    return DataError(
        f"Sequence {number} was asked for, but the data have {count}, numbered from 0.",
        hint="the state of the reader belongs to other data: did the files change since it was saved?",
    )


@dataclass(eq=False)
class SequenceTable:
    """All sequences of a deserializer, chunk after chunk.

    first: int64[C+1], sequences before each chunk; lengths: int32[N] or uint8[N] nominal lengths, or [1] if all are the
    same; keys: uint64[N], or None for 0, 1, 2, ...; corpus: knows the names of keys that are not numbers.
    """

    first: np.ndarray
    lengths: np.ndarray
    keys: np.ndarray | None = None
    corpus: Corpus | None = None

    @property
    def num_chunks(self) -> int:
        """Number of chunks."""
        return len(self.first) - 1

    @property
    def num_sequences(self) -> int:
        """Number of sequences."""
        return int(self.first[-1])

    @cached_property
    def chunk_starts(self) -> np.ndarray:
        """int64[C+1]: samples before each chunk."""
        if len(self.lengths) == 1:
            return self.first * int(self.lengths[0])
        if (self.first[1:] > self.first[:-1]).all():  # then no array as long as the lengths is needed
            return starts_of(_sums(self.lengths, self.first))
        return starts_of(self.lengths)[self.first]

    @property
    def num_samples(self) -> int:
        """Samples of one sweep (sum of nominal lengths)."""
        return int(self.chunk_starts[-1])

    def of_chunk(self, chunk: int) -> np.ndarray:
        """int64: the numbers of the sequences of a chunk."""
        return np.arange(int(self.first[chunk]), int(self.first[chunk + 1]))

    def key(self, sequences: np.ndarray) -> np.ndarray:
        """Keys of sequences given by their number."""
        return self.keys[sequences] if self.keys is not None else sequences.astype(np.uint64)

    def names(self, sequences: np.ndarray) -> list[int | str]:
        """Keys of sequences as they stand in the data."""
        keys = self.key(sequences).tolist()
        return keys if self.corpus is None else [self.corpus.name(key) for key in keys]
