"""MinibatchSourceFromData: arrays in memory as a minibatch source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.narrowing import is_list, is_tuple
from cntkpy.readers.common.arguments import check_share, check_size, state_field, whole_number
from cntkpy.readers.common.sparse import is_csr, is_dense
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.user.streams import StreamInformation

from .base import FULL_DATA_SWEEP, INFINITELY_REPEAT
from .user_source import UserMinibatchSource
from .value import MinibatchData, Value


class MinibatchSourceFromData(UserMinibatchSource):
    """Minibatches cut from arrays, in order, without copying them.

    Args:
        data_streams: for every stream its data, or a pair of data and anything (CNTK's type, not needed here).
            Data are an ndarray (n, *sample), a scipy CSR matrix (n, dim), a `Value`, or a list of n arrays (length,
            *sample) or CSR matrices (length, dim), which are sequences. Each row of an array is an item: a sample, or
            for an input of sequences a sequence.
        max_samples: where they end; FULL_DATA_SWEEP: after all of them; by default they are repeated forever.
    """

    def __init__(self, data_streams: Mapping[str, Any], max_samples: int = INFINITELY_REPEAT):
        if not isinstance(data_streams, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"data are a dictionary {{name: data}}, not {type(data_streams).__name__}")
        if not data_streams:
            raise ArgumentError("at least one stream must be specified, in the form name=data or name=(data, type)")
        self._data: dict[str, Any] = {}
        self._infos: list[StreamInformation] = []
        for name, data_stream in data_streams.items():
            data = _data_of(data_stream)
            sequences = is_list(data)
            first: Any = data[0] if sequences and data else data
            sparse = is_csr(first)
            if not sparse and not is_dense(first):
                if sequences and not data:
                    raise ArgumentError("data is empty")
                raise TypeError(_WRONG_DATA)
            if first.dtype.kind not in "fiub" or not first.shape:
                raise TypeError(f"{_WRONG_DATA}, of numbers; '{name}' has {first.dtype}")
            if _count(data) == 0:
                raise ArgumentError("data is empty")
            if is_list(data):
                _check_sequences(name, data)
            self._data[name] = data
            kind = "sparse" if sparse else "dense"
            self._infos.append(StreamInformation(name, len(self._infos), kind, first.dtype, first.shape[1:]))
        counts = set(map(_count, self._data.values()))
        if len(counts) > 1:
            raise TypeError("all data items must have the same first dimension")
        self._count = counts.pop()
        lists = [np.array([s.shape[0] for s in d]) for d in self._data.values() if is_list(d)]
        self._lengths = np.max(lists, axis=0) if lists else np.ones(self._count, np.int64)
        if len(lists) < len(self._data):
            self._lengths = np.maximum(self._lengths, 1)
        self._ends = np.cumsum(self._lengths)
        most = whole_number(max_samples, "max_samples")
        self._max = int(self._ends[-1]) if most == FULL_DATA_SWEEP else most
        self._cursor = self._total = 0
        super().__init__()

    def stream_infos(self) -> Sequence[StreamInformation]:
        """Return the streams in order."""
        return self._infos

    @property
    def samples_left(self) -> int | None:
        """Samples up to max_samples."""
        return None if self._max == INFINITELY_REPEAT else max(0, self._max - self._total)

    def next_minibatch(
        self, num_samples: int, number_of_workers: int = 1, worker_rank: int = 0, device: Any = None
    ) -> dict[Any, MinibatchData]:
        """As many items as fit, at least one; never across the end of the data."""
        num_samples = check_size(num_samples)
        check_share(worker_rank, number_of_workers)
        if self._total >= self._max:
            return {}
        begin = self._cursor
        done = int(self._ends[begin] - self._lengths[begin])
        room = min(num_samples, self._max - self._total)
        end = max(begin + 1, int(np.searchsorted(self._ends, done + room, side="right")))
        samples = int(self._ends[end - 1]) - done
        self._total += samples
        self._cursor = 0 if end == self._count else end
        sweep_end = end == self._count or self._total >= self._max
        arrays: dict[Any, MinibatchData] = {}
        for stream in self._infos:
            data = self._data[stream.name][begin + worker_rank : end : number_of_workers]
            count = len(range(begin + worker_rank, end, number_of_workers))
            taken = sum(s.shape[0] for s in data) if is_list(data) else count
            value = None
            if count:
                value = Value(data) if is_list(data) else Value.of_rows(data, stream.sample_shape)
            arrays[stream] = MinibatchData(value, count, taken, sweep_end)
        return arrays

    def get_checkpoint_state(self) -> dict[str, Any]:
        """Place in the data, and samples given out so far."""
        return {"cursor": self._cursor, "total_num_samples": self._total}

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore a state of `get_checkpoint_state`."""
        cursor, total = state_field(checkpoint, "cursor"), state_field(checkpoint, "total_num_samples")
        if cursor >= self._count:
            raise ArgumentError(f"Checkpoint with cursor {cursor}, but there are {self._count} items of data")
        self._cursor, self._total = cursor, total


_WRONG_DATA = "data must be a numpy.array or scipy.sparse.csr_matrix, or a list of those"


def _data_of(value: Any) -> Any:
    """Return an array, a CSR matrix, or a list of these."""
    data = value[0] if is_tuple(value) else value
    if not isinstance(data, Value):
        return data
    return data.asarray() if data.is_rows else data.as_sequences()


def _count(data: Any) -> int:
    return len(data) if is_list(data) else data.shape[0]


def _check_sequences(name: str, data: list[Any]) -> None:
    """Sequences are of one kind, of one sample shape, and none is empty."""
    for i, value in enumerate(data):
        if type(value) is not type(data[0]) or value.shape[1:] != data[0].shape[1:] or not value.shape[0]:
            raise TypeError(
                f"sequence {i} of '{name}' is {type(value).__name__} {getattr(value, 'shape', '')}, the first one "
                f"{type(data[0]).__name__} {data[0].shape}: sequences have at least one sample, of one shape"
            )
