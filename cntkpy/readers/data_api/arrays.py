"""Minibatches as plain dictionaries of arrays: NumPy and scipy, PyTorch, JAX, TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from cntkpy.readers.common.sparse import is_dense
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.streams import StreamInformation

from .frameworks import to_jax, to_tensorflow, to_torch
from .rows import rows_of

FRAMEWORKS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda data: data,
    "torch": to_torch,
    "jax": to_jax,
    "tensorflow": to_tensorflow,
}
LENGTHS = "_lengths"
"""Suffix of the names of sequence lengths."""


class PlainSource(Protocol):
    """Protocol of a `MinibatchSource`."""

    @property
    def has_single_samples(self) -> bool:
        """True if every sequence is known to have one sample of each stream."""
        ...

    def stream_infos(self) -> Sequence[StreamInformation]:
        """Return the streams in order."""
        ...

    def next_plain(self, size: int, workers: int = 1, rank: int = 0) -> Minibatch | None:
        """Return the next minibatch; None at the end of the data."""
        ...


def arrays_of(
    source: PlainSource, minibatch_size: int, framework: str, num_data_partitions: int, partition_index: int
) -> Iterator[dict[str, Any]]:
    """Yield the minibatches from the current position on; see `MinibatchSource.arrays`.

    Raises:
        ArgumentError: there is no such framework, or the source gives pieces of sequences.
    """
    if framework not in FRAMEWORKS:
        raise ArgumentError(f"'{framework}' is not a framework", f"write one of {', '.join(FRAMEWORKS)}")
    made, infos, single = FRAMEWORKS[framework], source.stream_infos(), source.has_single_samples
    while (plain := source.next_plain(minibatch_size, num_data_partitions, partition_index)) is not None:
        if plain.truncated:
            raise ArgumentError("pieces of sequences cannot be arrays of samples", "leave truncation_length out")
        if not len(plain.keys):
            continue
        arrays: dict[str, Any] = {}
        for stream in infos:
            rows, lengths = rows_of(plain, stream.name)
            if is_dense(rows):
                rows = rows.reshape(len(rows), *stream.sample_shape)
            arrays[stream.name] = made(rows)
            if not single:
                arrays[stream.name + LENGTHS] = made(lengths)
        yield arrays
