"""Minibatches as record batches of Arrow: a row for each sequence, a column for each stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cntkpy.readers.errors import ArgumentError, DataError
from cntkpy.readers.formats.tables.arrays import (
    KEY,
    key_name,
    keys_as_array,
    marked,
    samples_as_array,
    sequences_as_array,
)
from cntkpy.readers.formats.tables.library import arrow
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.streams import StreamInformation

from .arrays import PlainSource
from .rows import rows_of


def record_batches(source: PlainSource, minibatch_size: int, partitions: int, partition: int) -> Iterator[Any]:
    """Yield the minibatches from the current position on; see `MinibatchSource.record_batches`."""
    single = source.has_single_samples
    while (plain := source.next_plain(minibatch_size, partitions, partition)) is not None:
        if len(plain.keys):
            yield record_batch(plain, source.stream_infos(), single)


def record_batch(minibatch: Minibatch, streams: Sequence[StreamInformation], single: bool) -> Any:
    """Return a minibatch of whole sequences as a `pyarrow.RecordBatch`.

    Args:
        minibatch: what a source gives.
        streams: its streams.
        single: every sequence has one sample, so that columns have samples instead of lists of samples.

    Raises:
        ArgumentError: the minibatch has pieces of sequences. DataError: `single` does not hold.
    """
    if minibatch.truncated:
        raise ArgumentError("pieces of sequences cannot be record batches", "leave truncation_length out")
    names = [stream.name for stream in streams]
    keys = keys_as_array(list(minibatch.keys))
    arrays, fields = [keys], [marked(key_name(names), keys, KEY)]
    for stream in streams:
        rows, lengths = rows_of(minibatch, stream.name)
        samples = samples_as_array(rows, stream.dim, stream.sparse, stream.dtype)
        if single and (lengths != 1).any():
            raise DataError(
                f"A sequence has {int(lengths[lengths != 1][0])} samples of '{stream.name}' instead of one."
            )
        array = samples if single else sequences_as_array(samples, lengths)
        arrays.append(array)
        fields.append(marked(stream.name, array, f"{'sparse' if stream.sparse else 'dense'} {stream.dim}"))
    return arrow().RecordBatch.from_arrays(arrays, schema=arrow().schema(fields))
