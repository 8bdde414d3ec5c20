"""Base of every minibatch source: streams by name, iteration, a position that can be saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cntkpy.cntk_config.base.narrowing import is_mapping
from cntkpy.readers import streams
from cntkpy.readers.errors import ArgumentError, DataError
from cntkpy.readers.user.record import Record
from cntkpy.readers.user.streams import StreamInformation

from .value import MinibatchData

INFINITELY_REPEAT = 2**64 - 1
"""Limit of a source: continue sweep after sweep forever."""
FULL_DATA_SWEEP = 2**64 - 2
"""Limit of a source in samples: one pass over the data."""
DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS = 128

MinibatchMap = dict[Any, MinibatchData]


class MinibatchSourceBase:
    """The interface of minibatch sources."""

    streams: Record
    """StreamInformation by name."""

    def stream_infos(self) -> Sequence[StreamInformation]:
        """Return the streams in order."""
        raise NotImplementedError

    def stream_info(self, name: str) -> StreamInformation:
        """Return the stream of a name."""
        stream_info = [s for s in self.stream_infos() if s.name == name]
        if not stream_info:
            known = ", ".join(s.name for s in self.stream_infos())
            raise DataError(f"No stream found matching given name '{name}'", hint=f"there are: {known}")
        return stream_info[0]

    def __getitem__(self, name: str) -> StreamInformation:
        return self.stream_info(name)

    def is_infinite(self) -> bool:
        """Return whether it continues forever."""
        return False

    def get_checkpoint_state(self) -> dict[str, Any]:
        """Return the position after the last minibatch given out, to be stored as JSON."""
        raise NotImplementedError

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore a state of `get_checkpoint_state`."""
        raise NotImplementedError

    @property
    def current_position(self) -> dict[str, Any]:
        """The position; setting it is `restore_from_checkpoint`."""
        return self.get_checkpoint_state()

    @current_position.setter
    def current_position(self, state: Mapping[str, Any]) -> None:
        self.restore_from_checkpoint(state)

    def _next(self, size: int, workers: int, rank: int) -> MinibatchMap:
        raise NotImplementedError

    @property
    def samples_left(self) -> int | None:
        """Return an estimate of the samples that are left; None if it is unknown."""
        return None

    def minibatches(
        self,
        minibatch_size: int = 256,
        input_map: Mapping[Any, StreamInformation] | None = None,
        *,
        num_data_partitions: int = 1,
        partition_index: int = 0,
    ) -> Minibatches:
        """Return the minibatches from the current position on, for a `for` loop."""
        check_map(input_map)
        return Minibatches(self, minibatch_size, input_map, num_data_partitions, partition_index)

    def __iter__(self) -> Iterator[MinibatchMap]:
        return iter(self.minibatches())


class Minibatches:
    """Minibatches of a source, one after the other.

    `len()` says about how many are left (exactly, for sequences of one sample), if the source ends at all; `samples` is
    how many samples of the longest stream were given out.
    """

    def __init__(
        self,
        source: MinibatchSourceBase,
        size: int,
        input_map: Mapping[Any, StreamInformation] | None,
        workers: int,
        rank: int,
    ):
        self.source, self.size, self.input_map, self.workers, self.rank = source, size, input_map, workers, rank
        self.samples = 0

    def __iter__(self) -> Iterator[MinibatchMap]:
        return self

    def __next__(self) -> MinibatchMap:
        minibatch = self.source._next(self.size, self.workers, self.rank)  # pyright: ignore[reportPrivateUsage]
        if not minibatch:
            raise StopIteration
        self.samples += max(data.num_samples for data in minibatch.values())
        return mapped(minibatch, self.input_map)

    def __length_hint__(self) -> int:
        left = self.source.samples_left
        return 0 if left is None else -(-left // self.size)

    def __len__(self) -> int:
        if self.source.samples_left is None:
            raise TypeError("the number of minibatches is not known: the source has no end, or does not know it")
        return self.__length_hint__()


def check_map(input_map: Any) -> None:
    """An input map has streams for values."""
    if input_map is None:
        return
    if not is_mapping(input_map):
        raise ArgumentError(
            f"input_map must be a dictionary {{key: stream}}, not {type(input_map).__name__}",
            'write input_map={"x": source.streams.x}',
        )
    for key, stream in input_map.items():
        if not isinstance(stream, streams.StreamInformation):
            raise ArgumentError(
                f"input_map has no stream for {key!r} but {stream!r}", 'write input_map={"x": source.streams.x}'
            )


def mapped(found: MinibatchMap, input_map: Mapping[Any, StreamInformation] | None) -> MinibatchMap:
    """Minibatch data under the keys of an input map; without one, under their streams."""
    if input_map is None or not found:
        return found
    by_name = {s.name: data for s, data in found.items()}
    out: MinibatchMap = {}
    for key, stream in input_map.items():
        if stream.name not in by_name:
            raise DataError(
                f"Minibatch source cannot find a stream with name '{stream.name}'",
                hint=f"there are: {', '.join(by_name)}",
            )
        out[key] = by_name[stream.name]
    return out
