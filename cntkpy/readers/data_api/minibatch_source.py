"""MinibatchSource: deserializers, randomized, joined and packed, read minibatch by minibatch from Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers.contracts import DefinesLength, Joins
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.pipeline.source import Source
from cntkpy.readers.user.deserializer import UserData
from cntkpy.readers.user.record import Record
from cntkpy.readers.user.streams import StreamInformation, numbered

from .base import (
    DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS,
    INFINITELY_REPEAT,
    MinibatchMap,
    MinibatchSourceBase,
    check_map,
    mapped,
)
from .partitions import Partitions, in_words_of_programs
from .source_arguments import SourceArguments, checked, source_from, sweep_of
from .value import MinibatchData


class TraceLevel(IntEnum):
    """Verbosity of the log."""

    Error = 0
    Warning = 1
    Info = 2


def _short(stream: StreamInformation) -> str:
    """`labels: 10 sparse float32`."""
    shape = " x ".join(map(str, stream.sample_shape)) or "scalar"
    return f"{stream.name}: {shape} {'sparse' if stream.sparse else 'dense'} {stream.dtype}"


class MinibatchSource(MinibatchSourceBase):
    """Minibatches out of one or several deserializers.

    Args:
        deserializers: what `CTFDeserializer` and its like give, or several of them, joined by sequence key; or one
            `UserDeserializer`.
        max_samples, max_sweeps: where the data end (one of them, or none).
        randomization_window_in_chunks, randomization_window_in_samples: how far data are shuffled; one of them is 0.
        randomization_seed: added to the number of the sweep.
        multithreaded_deserializer: read ahead on all cores.
        frame_mode: every sequence is one sample.
        truncation_length: cut sequences for truncated BPTT.
        max_errors: invalid sequences to leave out; also malformed places in text files, each by itself.
    """

    def __init__(
        self,
        deserializers: Any,
        max_samples: int = INFINITELY_REPEAT,
        max_sweeps: int = INFINITELY_REPEAT,
        randomization_window_in_chunks: int = DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS,
        randomization_window_in_samples: int = 0,
        randomization_seed: int = 0,
        trace_level: int = TraceLevel.Warning,
        multithreaded_deserializer: bool | None = None,
        frame_mode: bool = False,
        truncation_length: int = 0,
        randomize: bool = True,
        max_errors: int = 0,
    ):
        arguments = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._arguments: dict[str, Any] = arguments
        self._options = options = checked(arguments)
        self.config = options.config
        self._source = _open(options)
        self._partitions = Partitions(self._source, options)
        self._infos = numbered(self._source.streams)
        self.streams = Record(**{s.name: s for s in self._infos})

    def stream_infos(self) -> Sequence[StreamInformation]:
        """Return the streams in order."""
        return self._infos

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(_short, self._infos))})"

    def is_infinite(self) -> bool:
        """Return whether neither max_samples nor max_sweeps is set."""
        return self._options.max_samples is None and self._options.max_sweeps is None

    def next_minibatch(
        self,
        minibatch_size_in_samples: int,
        input_map: Mapping[Any, StreamInformation] | None = None,
        device: Any = None,
        num_data_partitions: int | None = None,
        partition_index: int | None = None,
    ) -> MinibatchMap:
        """Return the data of the next minibatch by stream, or by the keys of input_map; empty at the end of the data.

        Args:
            minibatch_size_in_samples: of all partitions together; it may change at any call, as may the partitions.
            input_map: {any key: StreamInformation}.
            num_data_partitions, partition_index: how many workers share the data, and which of them this is.
        """
        del device
        check_map(input_map)
        workers = 1 if num_data_partitions is None else num_data_partitions
        return mapped(self._next(minibatch_size_in_samples, workers, partition_index or 0), input_map)

    def _next(self, size: int, workers: int, rank: int) -> MinibatchMap:
        plain = self.next_plain(size, workers, rank)
        return {} if plain is None else {s: MinibatchData.of_stream(plain, s) for s in self._infos}

    def next_plain(self, size: int, workers: int = 1, rank: int = 0) -> Minibatch | None:
        """Return the next minibatch as plain data; None at the end of the data. See `next_minibatch`."""
        self._partitions.set_share(size, workers, rank)
        try:
            return next(self._source, None)
        except UserError as error:
            raise in_words_of_programs(error, self._options) from error.__cause__

    def record_batches(
        self, minibatch_size: int = 256, *, num_data_partitions: int = 1, partition_index: int = 0
    ) -> Iterator[Any]:
        """Return the minibatches from the current position on as `pyarrow.RecordBatch`, a row for each sequence.

        The column `key` has the keys. Dense samples are numbers or lists of fixed size, sparse ones maps of index and
        value; where sequences may be longer than one sample, columns have lists of these.

        Args:
            minibatch_size: samples of all partitions together.
            num_data_partitions, partition_index: how many workers share the data, and which of them this is.

        Raises:
            ArgumentError: the source gives pieces of sequences (truncation_length).
        """
        from .record_batches import record_batches

        return record_batches(self, minibatch_size, num_data_partitions, partition_index)

    @property
    def has_single_samples(self) -> bool:
        """True if every sequence is known to have one sample of each stream."""
        data = self._source.deserializer
        known = not isinstance(data, UserData) and not _defines_length(data)
        return known and data.table.lengths.tolist() == [1]

    def arrays(
        self,
        minibatch_size: int = 256,
        framework: str = "numpy",
        *,
        num_data_partitions: int = 1,
        partition_index: int = 0,
    ) -> Iterator[dict[str, Any]]:
        """Return the minibatches from the current position on as dictionaries, an array for each stream.

        Dense streams are arrays (samples, *shape of a sample), sparse ones matrices (samples, dim): CSR of scipy,
        sparse CSR tensors of PyTorch, `BCSR` of JAX, `SparseTensor` of TensorFlow. The samples of all sequences lie
        one after the other. Where sequences may have several, `NAME_lengths` has their lengths, int64.

        Args:
            minibatch_size: samples of all partitions together.
            framework: numpy, torch, jax or tensorflow; dense data go there without a copy where it allows that.
            num_data_partitions, partition_index: how many workers share the data, and which of them this is.

        Raises:
            ArgumentError: there is no such framework, or the source gives pieces of sequences (truncation_length).
        """
        from .arrays import arrays_of

        return arrays_of(self, minibatch_size, framework, num_data_partitions, partition_index)

    def torch_dataset(
        self, minibatch_size: int = 256, *, num_data_partitions: int = 1, partition_index: int = 0
    ) -> Any:
        """Return a `torch.utils.data.IterableDataset` of minibatches, as `arrays` gives them.

        It goes to `DataLoader(..., batch_size=None)`, whose workers share the data; each begins where this source is
        now. Without workers, this source is read.

        Args:
            minibatch_size: samples of all partitions and workers together.
            num_data_partitions, partition_index: processes that share the data, and which of them this is.

        Raises:
            UserError: PyTorch is not installed.
        """
        from .torch_data import Share, torch_dataset

        return torch_dataset(self, Share(minibatch_size, num_data_partitions, partition_index))

    def tensorflow_dataset(
        self, minibatch_size: int = 256, *, num_data_partitions: int = 1, partition_index: int = 0
    ) -> Any:
        """Return a `tf.data.Dataset` of minibatches, as `arrays` gives them.

        Each iteration begins where this source is then.

        Args:
            minibatch_size: samples of all partitions together.
            num_data_partitions, partition_index: processes that share the data, and which of them this is.

        Raises:
            UserError: TensorFlow is not installed.
        """
        from .tensorflow_data import tensorflow_dataset

        return tensorflow_dataset(self, minibatch_size, num_data_partitions, partition_index)

    def __reduce__(self) -> Any:
        """Return a copy, in this process or another one, opens the data again and continues where this source is."""
        state = self.get_checkpoint_state() if self._partitions.is_started else None
        return _remade, (type(self), self._arguments, state)

    @property
    def samples_left(self) -> int | None:
        """Samples of all partitions up to the end of the data; None if there is no end, or it is not known."""
        limit = self._options.limit(sweep_of(self._source))
        if limit is None:
            return None
        state = self._source.get_state()
        return max(0, limit - state.get("minibatchSourcePosition", state.get("baseSampleCount", 0)))

    def get_checkpoint_state(self) -> dict[str, Any]:
        """Return the position after the last minibatch that was given out, JSON-able."""
        state = self._source.get_state()
        return {name: value for name, value in state.items() if name not in ("epochEnd", "endSamples", "endSweeps")}

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Resume exactly where the state was taken."""
        self._partitions.restore(checkpoint)

    def close(self) -> None:
        """Stop reading ahead and let go of the data."""
        self._source.close()


def _open(options: SourceArguments) -> Source:
    try:
        return source_from(options)
    except UserError as error:
        raise in_words_of_programs(error, options) from error.__cause__


def _remade(kind: type[MinibatchSource], arguments: dict[str, Any], state: dict[str, Any] | None) -> MinibatchSource:
    """Return a source of these arguments that continues at a position."""
    source = kind(**arguments)
    if state is not None:
        source.restore_from_checkpoint(state)
    return source


def _defines_length(data: Any) -> bool:
    """Return whether a deserializer, or one that it joins, says that its samples are the lengths of sequences."""
    if isinstance(data, DefinesLength) and data.defines_mb_size:
        return True
    return isinstance(data, Joins) and any(map(_defines_length, data.parts))
