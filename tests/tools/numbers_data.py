"""Sequences whose samples are their own numbers, for tests of the parts of the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cntkpy.readers.common.chunk import Chunk, Part, dense_stream
from cntkpy.readers.common.sequences import SequenceTable, starts_of
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.pipeline.assembly import Inputs
from cntkpy.readers.pipeline.invalid import InvalidSequences
from cntkpy.readers.streams import StreamInformation


class Numbers:
    """`chunks` chunks of `each` sequences: number n has 1 + n % longest samples n, `dim` values each.

    broken: sequences that cannot be loaded; loaded: what was asked for, call by call.
    """

    def __init__(self, chunks: int, each: int, longest: int = 1, dim: int = 1, broken: Sequence[int] = ()):
        count = chunks * each
        self.lengths = 1 + np.arange(count) % longest
        self.streams = [StreamInformation("x", (dim,), False, np.dtype(np.float32))]
        self.table = SequenceTable(np.arange(0, count + 1, each), self.lengths.astype(np.int32))
        self.chunk_bytes = np.add.reduceat(self.lengths, self.table.first[:-1]) * dim * 4
        self.each, self.dim, self.broken = each, dim, list(broken)
        self.loaded: list[list[int]] = []

    def load_chunk(self, chunk: int) -> Chunk:
        return self.load_sequences(np.arange(self.each * chunk, self.each * (chunk + 1)))

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        self.loaded.append(sequences.tolist())
        if bad := [one for one in self.broken if one in sequences]:
            raise OSError(f"sequence {bad[0]} cannot be read")
        lengths = self.lengths[sequences]
        rows = np.repeat(sequences, lengths)[:, None].repeat(self.dim, axis=1).astype(np.float32)
        return Chunk({"x": dense_stream(rows, starts_of(lengths))})


def numbers_in(parts: Sequence[Part], count: int) -> list[int]:
    """The numbers of the sequences of a minibatch, by their first samples."""
    found = np.full(count, -1)
    for part in parts:
        data = part.chunk.streams["x"]
        found[part.where] = data.values[data.starts[data.sequences[part.which]]]
    return found.tolist()


def inputs_of(data: Numbers, timeline: Any, store: Any, size: int) -> Inputs:
    """What an assembler is given for minibatches of this many samples, at the start of the first epoch."""
    invalid = InvalidSequences(0, data.table.names, data.table.num_sequences)
    inputs = Inputs(timeline, data, store, invalid, size, size)
    timeline.set_state(EpochRequest(size))
    return inputs
