"""MinibatchSource: deserializers, randomized, joined and packed, read minibatch by minibatch from Python."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any, TypeVar

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.cntk_config.base.narrowing import is_dict, is_several
from cntkpy.readers.common.arguments import check_share, check_size, whole_number
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.common.threads import threads_for
from cntkpy.readers.contracts import DefinesLength, Deserializer, Joins
from cntkpy.readers.errors import ArgumentError, DataError
from cntkpy.readers.formats.composite.reader import join
from cntkpy.readers.formats.image.source import source_of
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.pipeline.local_timeline import EpochEnd, LocalTimeline
from cntkpy.readers.pipeline.randomize import BlockRandomizer, NoRandomizer, chunks_in_memory
from cntkpy.readers.pipeline.source import Source
from cntkpy.readers.pipeline.window_store import WindowStore
from cntkpy.readers.registry import Setting, find_deserializer
from cntkpy.readers.user.deserializer import UserData, UserDeserializer
from cntkpy.readers.user.indexed import IndexedUserData
from cntkpy.readers.user.record import Record
from cntkpy.readers.user.streams import StreamInformation, numbered

from .base import (
    DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS,
    FULL_DATA_SWEEP,
    INFINITELY_REPEAT,
    MinibatchMap,
    MinibatchSourceBase,
    check_map,
    mapped,
)
from .factories import Config, to_section
from .value import MinibatchData
from .words import python_words

IMAGES = {"ImageDeserializer", "Base64ImageDeserializer"}
UTTERANCES = {
    "HTKFeatureDeserializer",
    "HTKMLFDeserializer",
    "KaldiFeatureDeserializer",
    "KaldiLabelDeserializer",
}
log = logging.getLogger("cntkpy.readers")
T = TypeVar("T")

TOO_BIG = "Too big epoch size can cause bit overflow"


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
        parts = _flatten(deserializers)
        kinds = {part["type"] for part in parts if is_dict(part)}
        max_samples, max_sweeps = whole_number(max_samples, "max_samples"), whole_number(max_sweeps, "max_sweeps")
        chunks = whole_number(randomization_window_in_chunks, "randomization_window_in_chunks")
        samples = whole_number(randomization_window_in_samples, "randomization_window_in_samples")
        seed = whole_number(randomization_seed, "randomization_seed")
        truncation_length = whole_number(truncation_length, "truncation_length")
        max_errors = whole_number(max_errors, "max_errors")
        trace_level = whole_number(trace_level, "trace_level")
        if max_samples != INFINITELY_REPEAT and max_sweeps != INFINITELY_REPEAT:
            raise DataError("max_samples and max_sweeps are mutually exclusive: give one of them.")
        if chunks and samples:
            raise DataError("The randomization windows in chunks and in samples are mutually exclusive: set one to 0.")
        if frame_mode and truncation_length:
            raise DataError("frame_mode and truncation_length are mutually exclusive: give one of them.")
        if max_samples == FULL_DATA_SWEEP:
            max_samples, max_sweeps = INFINITELY_REPEAT, 1
        if max_samples != INFINITELY_REPEAT and max_samples > 2**63 - 1:
            raise ArgumentError(TOO_BIG)
        window, in_chunks = chunks or samples, bool(chunks)
        for name, flag in (
            ("randomize", randomize),
            ("frame_mode", frame_mode),
            ("multithreaded_deserializer", multithreaded_deserializer),
        ):
            if flag not in (None, False, True):
                raise ArgumentError(f"{name} is True or False, not {flag!r}")
        randomize = bool(randomize) and window > 0
        if multithreaded_deserializer is None:
            multithreaded_deserializer = any(kind in IMAGES for kind in kinds)
        self.config = _config(
            parts,
            randomize,
            window,
            in_chunks,
            seed,
            trace_level,
            bool(multithreaded_deserializer),
            frame_mode,
            truncation_length,
        )
        self._max_samples = None if max_samples == INFINITELY_REPEAT else max_samples
        self._max_sweeps = None if max_sweeps == INFINITELY_REPEAT else max_sweeps
        options: dict[str, Any] = {
            "frame_mode": frame_mode,
            "truncation_length": truncation_length,
            "local_timeline": True,
            "max_errors": max_errors,
        }
        self._is_own = all(isinstance(part, UserDeserializer) for part in parts)
        """True if only classes of the program are read."""
        self._sweep: int | None = None  # samples of a sweep, where they are known beforehand
        if len(parts) == 1 and isinstance(parts[0], UserDeserializer):
            data = UserData(parts[0])
            store = WindowStore(data)
            order = LocalTimeline(
                store,
                randomize=randomize,
                window=window,
                in_samples=not in_chunks,
                seed=seed,
                end=EpochEnd(self._max_samples, self._max_sweeps),
            )
            self._source = Source(data, order, store=store, **options)
        else:
            threads = threads_for(multithreaded_deserializer)
            setting = Setting(
                frame_mode=frame_mode,
                trace_level=str(int(trace_level)),
                corpus=Corpus(not kinds & UTTERANCES),
                threads=threads,
            )
            joined = self._reading(lambda: _joined(parts, {"maxErrors": max_errors}, setting))
            window = _window(window, chunks if randomize else 0, joined)
            timeline = (
                BlockRandomizer(joined.table, window, in_chunks=in_chunks, seed=seed, cross_sweeps=True)
                if randomize
                else NoRandomizer(joined.table, cross_sweeps=True, cuts_at_epoch_end=True)
            )
            self._sweep = joined.table.num_samples
            limit = self._limit()
            if limit is not None:
                if limit > 2**63 - 1:
                    raise ArgumentError(TOO_BIG)
                timeline.epoch_end = limit
            self._source = self._reading(lambda: source_of(joined, timeline, threads=threads, **options))
        self._infos = numbered(self._source.streams)
        self.streams = Record(**{s.name: s for s in self._infos})
        self._given: tuple[int, int, int] | None = None
        self._shares_chunks = randomize
        self._told: set[int] = set()
        """Numbers of partitions that there are too few chunks for."""

    def _limit(self) -> int | None:
        """Return where the data end, in samples of the timeline; None if they do not, or nobody knows."""
        if self._max_sweeps is not None:
            return None if self._sweep is None else self._max_sweeps * self._sweep
        return self._max_samples

    def stream_infos(self) -> Sequence[StreamInformation]:
        """The streams in order."""
        return self._infos

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(_short, self._infos))})"

    def is_infinite(self) -> bool:
        """Return whether neither max_samples nor max_sweeps is set."""
        return self._max_samples is None and self._max_sweeps is None

    def next_minibatch(
        self,
        minibatch_size_in_samples: int,
        input_map: Mapping[Any, StreamInformation] | None = None,
        device: Any = None,
        num_data_partitions: int | None = None,
        partition_index: int | None = None,
    ) -> MinibatchMap:
        """The data of the next minibatch by stream, or by the keys of input_map; empty at the end of the data.

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
        """The next minibatch as plain data; None at the end of the data. See `next_minibatch`."""
        plain = size.__class__ is workers.__class__ is rank.__class__ is int
        if self._given != (size, workers, rank) or not plain:
            size = check_size(size)
            check_share(rank, workers, "partition")
            if self._given != (size, workers, rank):
                state = self._source.get_state()
                changes = {"minibatchSize": size, "workers": workers, "rank": rank, "held": None}
                self._source.set_state(state | changes)
                self._given = (size, workers, rank)
                if rank == 0 and self._shares_chunks:
                    self._tell_idle(workers)
        try:
            return next(self._source, None)
        except UserError as error:  # frames of the pipeline do not help
            raise self._reworded(error).with_traceback(None) from error.__cause__

    def _reading(self, call: Callable[[], T]) -> T:
        """Return what a part of the reader gives; its errors are as `_reworded` returns them."""
        try:
            return call()
        except UserError as error:
            raise self._reworded(error).with_traceback(None) from error.__cause__

    def _reworded(self, error: UserError) -> UserError:
        """Return an error in the words of a program's arguments; that of a class of the program stays as it is."""
        return error if self._is_own else error.reworded(python_words)

    def _tell_idle(self, partitions: int) -> None:
        """Warn once where some partitions get no chunk."""
        order = self._source.timeline
        chunks = order.order.chunks if isinstance(order, LocalTimeline) else self._source.deserializer.table.num_chunks
        if chunks < partitions and partitions not in self._told:
            self._told.add(partitions)
            log.warning(
                "WARNING: %d of %d partitions get no data, and minibatches are that much smaller: shuffled data are "
                "shared by chunks, there %s %d. Let the deserializer make more, with a smaller chunkSizeInBytes, or "
                "read with randomize=False.",
                partitions - chunks,
                partitions,
                "is" if chunks == 1 else "are",
                chunks,
            )

    def record_batches(
        self, minibatch_size: int = 256, *, num_data_partitions: int = 1, partition_index: int = 0
    ) -> Iterator[Any]:
        """The minibatches from the current position on as `pyarrow.RecordBatch`, a row for each sequence.

        The column `key` has the keys. Dense samples are numbers or lists of fixed size, sparse ones maps of index and
        value; where sequences may be longer than one sample, columns have lists of these.

        Args:
            minibatch_size: samples of all partitions together.
            num_data_partitions, partition_index: how many workers share the data, and which of them this is.

        Raises:
            ArgumentError: the source gives pieces of sequences (truncation_length).
        """
        from .record_batches import record_batch

        single = self.has_single_samples
        while (plain := self.next_plain(minibatch_size, num_data_partitions, partition_index)) is not None:
            if len(plain.keys):
                yield record_batch(plain, self._infos, single)

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
        """The minibatches from the current position on as dictionaries, an array for each stream.

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
        """A `torch.utils.data.IterableDataset` of minibatches, as `arrays` gives them.

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
        """A `tf.data.Dataset` of minibatches, as `arrays` gives them.

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
        """A copy, in this process or another one, opens the data again and continues where this source is."""
        state = None if self._given is None else self.get_checkpoint_state()
        return _remade, (type(self), self._arguments, state)

    @property
    def samples_left(self) -> int | None:
        """Samples of all partitions up to the end of the data; None if there is no end, or it is not known."""
        limit = self._limit()
        if limit is None:
            return None
        state = self._source.get_state()
        return max(0, limit - state.get("minibatchSourcePosition", state.get("baseSampleCount", 0)))

    def get_checkpoint_state(self) -> dict[str, Any]:
        """The position after the last minibatch that was given out, JSON-able."""
        state = self._source.get_state()
        return {name: value for name, value in state.items() if name not in ("epochEnd", "endSamples", "endSweeps")}

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Resume exactly where the state was taken."""
        if not isinstance(checkpoint, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"a checkpoint state is a dictionary, not {type(checkpoint).__name__}",
                "give what get_checkpoint_state() returned",
            )
        self._source.set_state(dict(checkpoint))
        timeline = self._source.timeline
        self._given = (self._source.minibatch_size, timeline.workers, timeline.rank)

    def close(self) -> None:
        """Stop reading ahead and let go of the data."""
        self._source.close()


def _remade(kind: type[MinibatchSource], arguments: dict[str, Any], state: dict[str, Any] | None) -> MinibatchSource:
    """A source of these arguments that continues at a position."""
    source = kind(**arguments)
    if state is not None:
        source.restore_from_checkpoint(state)
    return source


def _defines_length(data: Any) -> bool:
    """Return whether a deserializer, or one that it joins, says that its samples are the lengths of sequences."""
    if isinstance(data, DefinesLength) and data.defines_mb_size:
        return True
    return isinstance(data, Joins) and any(map(_defines_length, data.parts))


def _flatten(deserializers: Any) -> list[Any]:
    result = deserializers if is_several(deserializers) else [deserializers]
    parts = [deserializer for part in result for deserializer in (part if is_several(part) else [part])]
    if not parts:
        raise ArgumentError("at least one deserializer is needed")
    for part in parts:
        if isinstance(part, type):
            raise ArgumentError(f"{part.__name__} is a class, not a deserializer", f"write {part.__name__}(...)")
        if not isinstance(part, dict | UserDeserializer):
            raise ArgumentError(
                f"{type(part).__name__} is not a deserializer: use CTFDeserializer(...) or a UserDeserializer"
            )
        if is_dict(part) and not isinstance(part.get("type"), str):
            raise ArgumentError("a deserializer given as a dictionary must have a 'type'", "CTFDeserializer makes one")
    return parts


def _window(window: int, chunks: int, data: Deserializer) -> int:
    """The window of a shuffled order: smaller than the default where that does not stay in memory.

    Args:
        window: the window that was asked for.
        chunks: the same, if it is counted in chunks; 0 else.
        data: what is read.
    """
    default = chunks == DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS
    return min(window, chunks_in_memory(data) or window) if default else window


def _joined(parts: Sequence[Any], defaults: Config, setting: Setting) -> Deserializer:
    """One deserializer out of those of users, and of dictionaries that describe others."""
    made: list[Any] = []
    try:
        for i, part in enumerate(parts):
            if isinstance(part, UserDeserializer):
                made.append(IndexedUserData(UserData(part)))
                continue
            section = to_section(defaults | part)
            made.append(find_deserializer(section)()(section, replace(setting, primary=i == 0)))
        if sum(isinstance(value, DefinesLength) and bool(value.defines_mb_size) for value in made) > 1:
            raise ArgumentError("more than one deserializer has a stream with defines_mb_size")
        return join(made)
    except ConfigError as error:
        raise ArgumentError(error.message, error.hint, error.notes, kind=error.kind) from error


def _config(
    parts: list[Any],
    randomize: bool,
    window: int,
    in_chunks: bool,
    seed: int,
    trace_level: int,
    threads: bool,
    frame_mode: bool,
    truncation_length: int,
) -> Config:
    """The source as CNTK's dictionary."""
    config: Config = {
        "frameMode": frame_mode,
        "multiThreadedDeserialization": threads,
        "traceLevel": int(trace_level),
        "randomize": randomize,
        "deserializers": parts,
    }
    if randomize:
        config |= {
            "randomizationWindow": window,
            "sampleBasedRandomizationWindow": not in_chunks,
            "randomizationSeed": seed,
        }
    if truncation_length:
        config |= {"truncated": True, "truncationLength": truncation_length}
    return config
