"""Readers that people write: derive from one of three classes, and shuffling, workers and checkpoints come with it.

`RowsReader` is for data whose samples stand alone, `SequencesReader` for sequences whose lengths are known,
`ChunksReader` for data that come in pieces of unknown content. What `readerType` names is the class itself:

    [project.entry-points."cntkpy.readers"]
    MyReader = "my_package:MyReader"

The arguments of its constructor are taken from the section: `section` is the section itself, any other one the
parameter of that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cntkpy.cntk_config.declare import Declared
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.chunk import Chunk
from cntkpy.readers.common.sequences import SequenceTable
from cntkpy.readers.common.user_code import calling
from cntkpy.readers.errors import ArgumentError, DataError
from cntkpy.readers.parameters import OrderParameters, check_precision
from cntkpy.readers.pipeline.local_timeline import LocalTimeline
from cntkpy.readers.pipeline.source import Source, SourceOptions
from cntkpy.readers.pipeline.window_store import WindowStore
from cntkpy.readers.reader import Reader
from cntkpy.readers.streams import DTYPES

from .deserializer import UserData, UserDeserializer, UserStreams
from .from_section import construct
from .streams import StreamInformation

CHUNK = 1024
"""Rows or sequences that are asked for at once, where nothing else decides."""
WINDOW = 128
"""Chunks that are shuffled together, where the section does not say how many."""


class UserReader:
    """Base of user-defined readers; derive from one of its three children.

    Attributes:
        declared: the parameters of the section, for `cntkpy check` and `help`.
        files: paths of the files with the data, for `cntkpy preview`.
    """

    declared: ClassVar[type[Declared]] = OrderParameters
    files: Sequence[str] = ()

    def stream_infos(self) -> list[StreamInformation]:
        """Return the streams, at least one."""
        raise NotImplementedError(f"{type(self).__name__} has to implement stream_infos()")

    def classes(self, stream: str) -> Sequence[str]:
        """Names of the classes of a stream, in order; empty where there are none."""
        return ()

    def source(self, dtype: np.dtype[Any], order: OrderParameters) -> Source:
        """The pipeline over these data. What kind of data they are decides."""
        raise NotImplementedError(f"{type(self).__name__} is derived from RowsReader, SequencesReader or ChunksReader")


OTHER_LENGTHS = (
    "lengths() says how many samples every stream of a sequence has; derive from ChunksReader if streams differ, as "
    "the letters of a word and its label do"
)
"""Advice where a stream of a sequence has another length."""


class RowsReader(UserReader):
    """Samples that stand alone, numbered from 0. `get_rows` is called on a background thread, one call at a time."""

    def num_rows(self) -> int:
        """Return the number of rows, at least one."""
        raise NotImplementedError(f"{type(self).__name__} has to implement num_rows()")

    def get_rows(self, rows: np.ndarray) -> dict[str, Any]:
        """Return the samples of these numbers, in this order: by stream an array (n, *sample) or a CSR matrix (n,
        dim).
        """
        raise NotImplementedError(f"{type(self).__name__} has to implement get_rows(rows)")

    def source(self, dtype: np.dtype[Any], order: OrderParameters) -> Source:
        """Every row is a sequence of one sample."""
        data = NumberedData(self, dtype, _count(self), None)
        return Source(data, order.timeline(data), SourceOptions(frame_mode=True, prefetch=order.prefetch))


class SequencesReader(UserReader):
    """Sequences numbered from 0, whose streams all have as many samples.

    `get_sequence` is called on a background thread, one call at a time. Streams of different lengths need a
    `ChunksReader`.
    """

    def lengths(self) -> Sequence[int]:
        """Return the number of samples each sequence has, at least one."""
        raise NotImplementedError(f"{type(self).__name__} has to implement lengths()")

    def get_sequence(self, number: int) -> dict[str, Any]:
        """Return one sequence: by stream an array (length, *sample) or a CSR matrix (length, dim)."""
        raise NotImplementedError(f"{type(self).__name__} has to implement get_sequence(number)")

    def source(self, dtype: np.dtype[Any], order: OrderParameters) -> Source:
        """Whole sequences."""
        call = f"{type(self).__name__}.lengths()"
        with calling(call):
            array = np.asarray(self.lengths())
        if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu" or array.min() < 1:
            raise ArgumentError(f"{call} has to give whole numbers, one a sequence, each at least 1")
        data = NumberedData(self, dtype, len(array), array)
        return Source(data, order.timeline(data), SourceOptions(prefetch=order.prefetch))


class ChunksReader(UserReader, UserDeserializer):
    """Data in chunks: see `UserDeserializer`, whose `num_chunks` and `get_chunk` it needs."""

    def source(self, dtype: np.dtype[Any], order: OrderParameters) -> Source:
        """Windows of chunks are shuffled; every worker reads chunks of its own."""
        data = UserData(self, dtype)
        store = WindowStore(data)
        window = WINDOW if order.window is None else order.window
        timeline = LocalTimeline(store, randomize=order.randomize and window > 0, window=window, seed=order.seed)
        return Source(data, timeline, SourceOptions(local_timeline=True, prefetch=order.prefetch), store=store)


class NumberedData:
    """Rows or sequences of a user's reader as the pipeline sees them: a `Deserializer`.

    Args:
        made: the user's object.
        dtype: element type of the values.
        count: how many sequences there are.
        lengths: how many samples each has; `None`: one each.
    """

    def __init__(self, made: RowsReader | SequencesReader, dtype: np.dtype[Any], count: int, lengths: Any):
        self._made, self._name = made, type(made).__name__
        self._content = UserStreams(made, dtype, "Reader")
        self.streams = self._content.streams
        self.files = list(made.files)
        self.class_names = {s.name: lambda name=s.name: dict(enumerate(made.classes(name))) for s in self.streams}
        first = np.append(np.arange(0, count, CHUNK), count)
        self.table = SequenceTable(first, np.ones(1, np.int32) if lengths is None else lengths.astype(np.int32))
        each = sum(12 * min(s.dim, 64) if s.sparse else s.dtype.itemsize * s.dim for s in self.streams)
        self.chunk_bytes = np.diff(self.table.chunk_starts) * each

    def load_chunk(self, chunk: int) -> Chunk:
        """Return all sequences of a chunk."""
        return self.load_sequences(self.table.of_chunk(chunk))

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Return these sequences.

        Raises:
            DataError: the user's method fails, or gives other numbers of samples than it said.
        """
        if isinstance(self._made, RowsReader):
            call = f"{self._name}.get_rows(...)"
            with calling(call):
                value: Any = self._made.get_rows(sequences)
            wanted = np.ones(len(sequences), np.int64)
        else:
            call = f"{self._name}.get_sequence(...)"
            with calling(call):
                each = [self._made.get_sequence(number) for number in sequences.tolist()]
            value = {s.name: [size[s.name] for size in each if s.name in size] for s in self.streams}
            wanted = self.table.lengths[sequences] if len(self.table.lengths) > 1 else self.table.lengths
        streams, _ = self._content.arrays(value, call)
        for name, data in streams.items():
            lengths = np.diff(data.sequences)
            if len(lengths) != len(sequences):
                raise DataError(f"{call}: stream '{name}' has {len(lengths)} of {len(sequences)} that were asked for")
            if (lengths != wanted).any():
                index = int(np.argmax(lengths != wanted))
                asked = np.broadcast_to(wanted, len(lengths))[index]
                raise DataError(
                    f"{call}: sequence {sequences[index]} of '{name}' has {lengths[index]} samples, not {asked}",
                    hint=None if isinstance(self._made, RowsReader) else OTHER_LENGTHS,
                )
        nbytes = sum(data.values.nbytes + data.starts.nbytes for data in streams.values())
        return Chunk(streams, nbytes)


@dataclass(frozen=True)
class ReaderFactory:
    """Makes readers from a class of the user's and the section that names it."""

    made: type[UserReader]

    @property
    def declared(self) -> type[Declared]:
        """The parameters of the section."""
        return self.made.declared

    def __call__(self, section: ConfigParameters, precision: str) -> Reader:
        """Return a reader.

        Raises:
            ConfigError: for what the section says.
            DataError: for what the class does.
        """
        dtype = np.dtype(DTYPES[check_precision(section, precision)])
        return Reader(construct(self.made, section).source(dtype, OrderParameters(section)))


def _count(made: RowsReader) -> int:
    call = f"{type(made).__name__}.num_rows()"
    with calling(call):
        count = made.num_rows()
    if not isinstance(count, int | np.integer) or count < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"{call} gave {count!r}; there has to be at least one row")
    return int(count)
