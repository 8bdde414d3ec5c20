"""Protocols between the parts of reading, with explicit capabilities.

Whether an object has an optional capability is asked by `isinstance` of one of the protocols here, never by looking for
attributes. `cntkpy.testing` checks an object against its contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np

    from cntkpy.readers.common.chunk import Chunk, Part
    from cntkpy.readers.common.draws import Draws
    from cntkpy.readers.common.planned import Limits, LoadHints, Planned, State
    from cntkpy.readers.common.sequences import SequenceTable

    from .epochs import EpochRequest
    from .minibatch import Minibatch
    from .streams import StreamInformation


AUTO_BLOCK = -1
"""Size of a block of records that are shuffled among each other: all records of an epoch."""


class MinibatchReader(Protocol):
    """A reader, as commands and trainers use it."""

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """The streams of the minibatches."""
        ...

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole data set; 0 if that is not known."""
        ...

    def start_minibatch_loop(
        self,
        minibatch_size: int,
        epoch: int,
        requested_epoch_samples: int | None = None,
        worker_rank: int = 0,
        number_of_workers: int = 1,
    ) -> None:
        """Go to the start of an epoch, counted from 0; without a number of samples it is one sweep of the data.

        Several workers get their shares of the same minibatches, unless the reader is `SharesData` and says otherwise.
        """
        ...

    def get_minibatch(self) -> Minibatch | None:
        """Return the next minibatch, None after the last of the epoch."""
        ...

    def get_state(self) -> State:
        """Return the position after the last minibatch given out."""
        ...

    def set_state(self, state: State) -> None:
        """Restore a state of `get_state`, also in the middle of an epoch."""
        ...

    def get_label_mapping(self, name: str) -> dict[int, str]:
        """Names of the classes of a stream; {} where there are none."""
        ...

    def close(self) -> None:
        """Stop reading and free the data."""
        ...


class EpochSource(Protocol):
    """Source of a `cntkpy.readers.reader.Reader`: minibatches of an epoch, and a position that can be saved."""

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """The streams of the minibatches."""
        ...

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole data set."""
        ...

    def __next__(self) -> Minibatch:
        """Return the next minibatch; the end of the epoch is that of the iteration."""
        ...

    def get_state(self) -> State:
        """Return the position after the last minibatch that was given out."""
        ...

    def set_state(self, state: State | EpochRequest) -> None:
        """Go to the start of an epoch, or resume exactly where `get_state` was called."""
        ...

    def close(self) -> None:
        """Stop reading ahead and let go of the data."""
        ...


@runtime_checkable
class SharesData(Protocol):
    """Capability of a reader or a source: it says whether workers get shares of its data, and which."""

    def gives_shares(self, workers: int) -> bool:
        """Return whether it can give that many workers a share each."""
        ...

    def shares_keep_minibatches(self) -> bool:
        """Return whether the shares of all workers make up the minibatches that one worker would have."""
        ...


@runtime_checkable
class ReadsAhead(Protocol):
    """Capability of a reader or a source: a thread of its own makes minibatches before they are asked for."""

    def leave_reading_ahead(self) -> None:
        """Make minibatches where they are asked for, from now on: the caller reads ahead."""
        ...


@runtime_checkable
class RemembersEpochs(Protocol):
    """Capability of a reader: it cannot find an epoch by its number, and remembers where epochs begin."""

    def epoch_state(self, epoch: int) -> State:
        """Return the position at the start of an epoch, the next one or one that was begun before; JSON-able."""
        ...

    def restore_epoch(self, state: State) -> None:
        """Go to where `epoch_state` was taken. The position of a reader of another kind is ignored."""
        ...


class Transform(Protocol):
    """One step from a decoded picture to a sample. Called from many threads at once."""

    @property
    def seed(self) -> int:
        """Start of its random numbers."""
        ...

    def apply(self, picture: np.ndarray, draws: Draws) -> np.ndarray:
        """Return the transformed picture; the given one is not changed.

        Args:
            picture: (height, width, 3) in the order blue, green, red, or (height, width); uint8 until a transform
                computes.
            draws: random numbers of this picture, this sweep and this place in the chain.
        """
        ...


@runtime_checkable
class ChunkSource(Protocol):
    """A deserializer as users write one: `UserDeserializer`, in CNTK's terms."""

    def stream_infos(self) -> list[Any]:
        """Return the streams, at least one."""
        ...

    def num_chunks(self) -> int:
        """Number of chunks, at least one."""
        ...

    def get_chunk(self, chunk_id: int) -> dict[str, Any]:
        """Return the data of a chunk, by names of streams."""
        ...


class Order(Protocol):
    """Chooses the sequences of minibatches: `randomize.Timeline` or `local_timeline.LocalTimeline`."""

    limits: Limits
    """Sizes of the next minibatches."""

    @property
    def workers(self) -> int:
        """Number of workers that read."""
        ...

    @property
    def rank(self) -> int:
        """The number of this one."""
        ...

    @property
    def ended(self) -> bool:
        """True if the epoch is over."""
        ...

    def __next__(self) -> Planned:
        """Return the next minibatch, or several; the end of the epoch is that of the iteration."""
        ...

    def get_state(self) -> State:
        """Return the position after what was returned last."""
        ...

    def set_state(self, state: State | EpochRequest) -> None:
        """Go to the start of an epoch, or to where `get_state` was called."""
        ...


@runtime_checkable
class WaitsForData(Protocol):
    """Capability of an order: it knows whether it needs data that are not loaded yet."""

    @property
    def waits(self) -> bool:
        """True if the next minibatch has to wait for data."""
        ...


@runtime_checkable
class FreesData(Protocol):
    """Capability of an order: it has the data after a minibatch freed when that is given out."""

    def delivered(self, state: State) -> None:
        """Free the chunks that no minibatch after this state of the order needs."""
        ...


@runtime_checkable
class ReadsFiles(Protocol):
    """Capability of a source or a deserializer: it says which files it reads."""

    @property
    def files(self) -> Sequence[str]:
        """Paths of the files with the data."""
        ...


@runtime_checkable
class NamesClasses(Protocol):
    """Capability of a source or a deserializer: it knows the names of the classes of streams."""

    class_names: dict[str, Callable[[], dict[int, str]]]
    """By the name of a stream, what gives the names of its classes by their numbers."""


@runtime_checkable
class KnowsAbsence(Protocol):
    """Capability of a deserializer: it knows why a stream has no samples."""

    def absence(self, stream: str) -> tuple[str, str, str] | None:
        """Message, hint and file, if the data lack the stream as far as they have been looked at; else None."""
        ...


@runtime_checkable
class Wraps(Protocol):
    """Capability of a source: it has its data from a deserializer."""

    @property
    def deserializer(self) -> Any:
        """The deserializer."""
        ...


@runtime_checkable
class Joins(Protocol):
    """Capability of a source or a deserializer: it joins the streams of several."""

    @property
    def parts(self) -> Sequence[Any]:
        """Parts that are joined."""
        ...


@runtime_checkable
class DefinesLength(Protocol):
    """Capability of a deserializer: it can say that its samples are the lengths of sequences."""

    @property
    def defines_mb_size(self) -> bool:
        """True if they are."""
        ...


@runtime_checkable
class KnowsSize(Protocol):
    """Capability of a reader: it knows how many samples a sweep has."""

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole data set."""
        ...


@runtime_checkable
class Closes(Protocol):
    """Capability of a user's source: it has something to be closed."""

    def close(self) -> None:
        """Close it."""
        ...


class Data(Protocol):
    """The deserializer as far as the pipeline asks it itself."""

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """The streams of every sequence."""
        ...

    @property
    def table(self) -> SequenceTable:
        """Chunks, lengths and keys."""
        ...


@runtime_checkable
class Chunked(Protocol):
    """Capability of a deserializer: it knows how much memory its chunks take before it loads them."""

    @property
    def chunk_bytes(self) -> np.ndarray:
        """Return an estimate of the bytes of each loaded chunk, int64[C]."""
        ...


DEFAULT_MEMORY = 256 << 20
"""Loaded data of a reader that stay in memory, in bytes."""


@runtime_checkable
class LoadsWholeChunks(Chunked, Protocol):
    """Capability of a deserializer: a single sequence takes as long to load as its whole chunk."""

    @property
    def whole_chunks(self) -> bool:
        """True if that is so with these data."""
        ...


class Store(Protocol):
    """Store of loaded sequences: `store.ChunkStore` or `local_timeline.WindowStore`."""

    def begin(self, sequences: np.ndarray, hints: LoadHints | None = None) -> Callable[[], list[Part]]:
        """Begin to load these sequences; the function returns their parts, in minibatch order."""
        ...

    def close(self) -> None:
        """Free all chunks."""
        ...


class Deserializer(Protocol):
    """A source of sequences. Loading may be called from several threads at once."""

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """The streams of every sequence."""
        ...

    @property
    def table(self) -> SequenceTable:
        """Chunks, lengths and keys."""
        ...

    @property
    def chunk_bytes(self) -> np.ndarray:
        """int64[C]: about how much memory each loaded chunk takes."""
        ...

    def load_chunk(self, chunk: int) -> Chunk:
        """Return all sequences of a chunk in order."""
        ...

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Just these sequences (numbers in the table), in the given order."""
        ...


@runtime_checkable
class FrameData(Protocol):
    """Capability of a deserializer in frame mode: it gives samples without chunks."""

    def frame_batches(self, sequences: np.ndarray, bounds: Sequence[int]) -> list[dict[str, Any]]:
        """Frames bounds[k] .. bounds[k+1]-1 of these for every k: per stream (1, n, dim), or CSR (n, dim)."""
        ...


class Writer(Protocol):
    """Takes data minibatch by minibatch."""

    def sections(self) -> dict[str, str]:
        """Names of the sections that can be written and their types; empty if the writer takes any."""
        ...

    def save(self, data: Mapping[str, Any]) -> bool:
        """Write the next records, by name an array (records, dim). Returns whether it wants more."""
        ...

    def save_mapping(self, section: str, labels: Mapping[int, str]) -> None:
        """Write the names of classes."""
        ...

    def close(self) -> None:
        """Everything has been written: finish the files."""
        ...

    def abandon(self) -> None:
        """Writing went wrong: leave no half files behind."""
        ...


@runtime_checkable
class NeedsPriors(Protocol):
    """Capability of a writer: it divides the values of some nodes by the frequencies of the classes."""

    @property
    def needs_priors(self) -> Sequence[str]:
        """These nodes."""
        ...

    def set_prior(self, node: str, prior: np.ndarray) -> None:
        """Set the prior probabilities of the classes of a node."""
        ...


@runtime_checkable
class SparesFiles(Protocol):
    """Capability of a writer: it writes over no file that is read."""

    def spare(self, paths: Iterable[str]) -> None:
        """These files are read."""
        ...


@runtime_checkable
class TakesKeys(Protocol):
    """Capability of a writer: it names what it writes after the sequences of the reader."""

    @property
    def takes_keys(self) -> bool:
        """True if it does so with its section."""
        ...

    def set_key(self, key: int | str) -> None:
        """Set the reader's key of the sequence that `save` gets next."""
        ...


@runtime_checkable
class Declares(Protocol):
    """Capability of what makes a reader: it says which parameters the section has."""

    declared: Any
    """The class that declares them, or `"module:Class"`."""
