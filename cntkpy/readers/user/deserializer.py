"""Deserializers that users write in Python: chunks of arrays, turned into sequences of the pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntkpy.cntk_config.base.narrowing import is_dict, is_several
from cntkpy.readers.common.arguments import whole_number
from cntkpy.readers.common.chunk import Chunk, StreamData
from cntkpy.readers.common.sequences import SequenceTable, starts_of
from cntkpy.readers.common.sparse import is_csr, is_dense, is_sparse
from cntkpy.readers.common.user_code import calling
from cntkpy.readers.errors import ArgumentError, DataError
from cntkpy.readers.pipeline.window_store import SHIFT
from cntkpy.readers.user.record import Record
from cntkpy.readers.user.streams import StreamInformation, declared_streams


class UserDeserializer:
    """Derive from it to read data of any kind; give an object of it to a `MinibatchSource`.

    Its streams and the number of its chunks are asked for once; `get_chunk` is called on a background thread, by one
    thread at a time (see `thread_safe`), perhaps several times for the same chunk, so it should depend on the number of
    the chunk alone.
    """

    thread_safe = False
    """True if several threads may call `get_chunk` at once; set it to True in a class that allows it."""

    @property
    def streams(self) -> Record:
        """The streams by name."""
        return Record(**{s.name: s for s in self.stream_infos()})

    def stream_infos(self) -> list[StreamInformation]:
        """Return the streams, at least one."""
        raise NotImplementedError(f"{type(self).__name__} has to implement stream_infos()")

    def num_chunks(self) -> int:
        """Number of chunks, at least one."""
        raise NotImplementedError(f"{type(self).__name__} has to implement num_chunks()")

    def get_chunk(self, chunk_id: int) -> dict[str, Any]:
        """Return the data of a chunk: for every stream, by its name, one of

        - an ndarray (n, *sample) of float32: n sequences of one sample;
        - a scipy CSR matrix (n, dim): the same, sparse;
        - a list of ndarrays (length, *sample) or of CSR matrices (length, dim): a sequence each.
        """
        raise NotImplementedError(f"{type(self).__name__} has to implement get_chunk(chunk_id)")


class UserStreams:
    """The streams that a user's object declares, and the check of what it gives for them.

    Args:
        of: the object, with `stream_infos()`.
        dtype: element type that the pipeline wants (float32 as a rule).
        what: what the object is, for errors.
    """

    def __init__(self, of: Any, dtype: Any = np.float32, kind: str = "Deserializer"):
        self.dtype, name = np.dtype(dtype), type(of).__name__
        declared = declared_streams(of)
        self.streams: list[StreamInformation] = [_with_type(s, self.dtype, name) for s in declared]
        if not self.streams:
            raise ArgumentError(f"{name}: {kind} must provide at least one stream")

    def arrays(self, result: Any, call: str) -> tuple[dict[str, StreamData], bool]:
        """Return the result of a call as arrays of the pipeline, and whether its kind means one sample per sequence.

        Raises:
            DataError: it is not a dictionary of what the streams declare; names the call.
        """
        if not is_dict(result):
            raise DataError(
                f"{call} gave {type(result).__name__}, not a dictionary of streams", hint="return {name: data, ...}"
            )
        known = [s.name for s in self.streams]
        for key in result:
            if key not in known:
                name = key.name if isinstance(key, StreamInformation) else key
                shown = f"'{key}'" if isinstance(key, str) else f"{type(key).__name__} {name}"
                raise DataError(
                    f"Stream with name {shown} does not exist ({call})",
                    hint=f"the keys of the dictionary are names of streams: {', '.join(known)}",
                )
        streams: dict[str, StreamData] = {}
        single = True
        for s in self.streams:
            where = f"{call}, stream '{s.name}'"
            if s.name not in result:
                raise DataError(
                    f"{where}: it is missing in the dictionary", hint=f"there are: {', '.join(result) or 'none'}"
                )
            streams[s.name], one_each = self._stream(result[s.name], s, where)
            single = single and one_each
        counts = {s: len(data.sequences) - 1 for s, data in streams.items()}
        first = self.streams[0].name
        for s, count in counts.items():
            if count != counts[first]:
                raise DataError(
                    f"{call}: stream '{first}' has {counts[first]} sequences, "
                    f"stream '{s}' has {count}; all streams must have the same number"
                )
        return streams, single

    def _stream(self, data: Any, s: StreamInformation, where: str) -> tuple[StreamData, bool]:
        """Sequences of one stream, and whether each is a single sample by its kind."""
        if is_csr(data):
            return self._sparse([data], s, where, np.arange(int(data.shape[0]) + 1)), True
        if is_dense(data):
            rank = len(s.sample_shape)
            if data.ndim != rank + 1:
                raise DataError(f"{where}: an array of shape {data.shape} is not (n, {_shape(s)})")
            return self._dense([data], s, where, np.arange(len(data) + 1)), True
        if not is_several(data):
            raise DataError(
                f"{where}: {type(data).__name__} is neither an array, a CSR matrix, nor a list of these",
                hint="make it one by .tocsr()" if is_sparse(data) else None,
            )
        if data and all(is_csr(value) for value in data):
            return self._sparse(list(data), s, where, _bounds([value.shape[0] for value in data], where)), False
        arrays = [_array(value, i, s, where) for i, value in enumerate(data)]
        return self._dense(arrays, s, where, _bounds([len(array) for array in arrays], where)), False

    def _dense(self, arrays: list[np.ndarray], s: StreamInformation, where: str, bounds: np.ndarray) -> StreamData:
        if s.sparse:
            raise DataError(f"{where}: dense data in a sparse stream; give scipy CSR matrices")
        for array in arrays:
            _check_type(array, where)
            if array.shape[1:] != s.sample_shape:
                raise DataError(f"{where}: samples of shape {array.shape[1:]} instead of {s.sample_shape}")
        rows = arrays[0] if len(arrays) == 1 else np.concatenate(arrays) if arrays else np.empty((0, s.dim))
        values = np.ascontiguousarray(rows, self.dtype).reshape(-1)
        return StreamData(s.dim, values, np.arange(len(rows)) * s.dim, bounds)

    def _sparse(self, matrices: list[Any], s: StreamInformation, where: str, bounds: np.ndarray) -> StreamData:
        if not s.sparse:
            raise DataError(f"{where}: sparse data in a dense stream; declare the stream 'sparse'")
        for matrix in matrices:
            _check_type(matrix, where)
            if matrix.shape[1] != s.dim:
                raise DataError(f"{where}: {matrix.shape[1]} columns instead of {s.dim}")
            bounds_of_rows = np.asarray(matrix.indptr, np.int64)  # scipy looks at the first and the last one only
            if (
                len(bounds_of_rows) != matrix.shape[0] + 1
                or bounds_of_rows[0] < 0
                or (np.diff(bounds_of_rows) < 0).any()
                or bounds_of_rows[-1] > min(len(matrix.data), len(matrix.indices))
                or len(matrix.data) != len(matrix.indices)
            ):
                raise DataError(
                    f"{where}: the arrays data, indices and indptr of a CSR matrix do not fit together",
                    hint="its method check_format() says what is wrong",
                )
            if len(matrix.indices) and (matrix.indices.min() < 0 or matrix.indices.max() >= s.dim):
                raise DataError(f"{where}: a column index is out of range, the dimension is {s.dim}")
        values = np.concatenate([matrix.data for matrix in matrices]).astype(self.dtype, copy=False)
        indices = np.concatenate([matrix.indices for matrix in matrices]).astype(np.int32, copy=False)
        starts_before = starts_of([len(matrix.data) for matrix in matrices])
        starts = np.concatenate(
            [matrix.indptr[:-1] + start for matrix, start in zip(matrices, starts_before, strict=False)]
        )
        counts = np.concatenate([np.diff(matrix.indptr) for matrix in matrices])
        return StreamData(s.dim, values, starts.astype(np.int64), bounds, counts.astype(np.int32), indices)


class UserData:
    """A user's deserializer as the pipeline sees it; dtype is what the pipeline wants (float32 as a rule)."""

    def __init__(self, deserializer: UserDeserializer, dtype: Any = np.float32):
        self.deserializer, name = deserializer, type(deserializer).__name__
        self.thread_safe = bool(deserializer.thread_safe)
        self._content = UserStreams(deserializer, dtype)
        self.streams = self._content.streams
        call = f"{name}.num_chunks()"
        with calling(call):
            chunks = deserializer.num_chunks()
        self.chunks = whole_number(chunks, call, -(2**63))
        if self.chunks < 1:
            raise ArgumentError(f"{name}: Deserializer must provide at least one chunk")
        self._defining = [s.name for s in self.streams if s.m_defines_mb_size]
        if len(self._defining) > 1:
            raise ArgumentError(
                f"{name}: Only one stream can define the minibatch size, not {' and '.join(self._defining)}"
            )
        self.table = _Table()

    def load_window_chunk(self, chunk: int) -> tuple[Chunk, np.ndarray]:
        """Return the sequences of a chunk and their lengths, int64[n]."""
        call = f"{type(self.deserializer).__name__}.get_chunk({chunk})"
        with calling(call):
            data = self.deserializer.get_chunk(chunk)
        streams, single = self._content.arrays(data, call)
        every = np.arange(len(streams[self.streams[0].name].sequences) - 1)
        if single:
            lengths = np.ones(len(every), np.int64)
        else:
            chosen = self._defining or list(streams)
            lengths = np.max([streams[s].lengths(every) for s in chosen], axis=0).astype(np.int64)
        return Chunk(streams), lengths


class _Table(SequenceTable):
    """Keys of sequences whose number is not known before they are loaded: as they are numbered."""

    def __init__(self) -> None:
        super().__init__(np.array([0, 1 << SHIFT]), np.ones(1, np.int32))


def _with_type(s: StreamInformation, dtype: np.dtype, of: str) -> StreamInformation:
    if s.dtype != np.float32:
        raise ArgumentError(f"{of}: Stream '{s.name}' has elements of {s.dtype}; only float32 is supported")
    if dtype == np.float32:
        return s
    return StreamInformation(s.name, s.m_id, s.storage_format, dtype, s.sample_shape, s.m_defines_mb_size)


def _array(data: Any, number: int, s: StreamInformation, where: str) -> np.ndarray:
    """Return one sequence of a list as an array (length, *sample)."""
    rank = len(s.sample_shape)
    try:
        element = np.asarray(data)
    except ValueError:  # lists of different lengths
        element = np.empty((), object)
    if element.ndim not in (rank, rank + 1) or element.dtype == object:
        kind = f"an array of shape {element.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise DataError(
            f"{where}: sequence {number} of the list is {kind}",
            hint=f"a sequence is an array (length, {_shape(s)})" if not s.sparse else "give scipy CSR matrices",
        )
    return element[None] if element.ndim == rank else element


def _bounds(lengths: list[int], where: str) -> np.ndarray:
    if 0 in lengths:
        raise DataError(f"{where}: sequence {lengths.index(0)} of the list has no samples")
    return starts_of(lengths)


def _check_type(data: Any, where: str) -> None:
    if data.dtype not in (np.float32, np.float64):
        raise DataError(f"{where}: elements are {data.dtype}, only float32 is supported", hint="use .astype('float32')")


def _shape(s: StreamInformation) -> str:
    return ", ".join(map(str, s.sample_shape))
