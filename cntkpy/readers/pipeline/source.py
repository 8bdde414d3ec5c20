"""The pipeline: deserializer -> randomizer -> packer -> minibatch, read ahead, with a position that can be saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.readers.common.planned import State
from cntkpy.readers.contracts import Chunked, Data, FrameData, FreesData, Order, Store
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.streams import StreamInformation

from .assembly import Inputs, Made, Packer, Position
from .frame_batches import Frames
from .invalid import InvalidSequences
from .pack import FramePacker, SequencePacker
from .prefetch import Prefetch
from .randomize import Timeline
from .store import ChunkStore
from .truncated import TruncatedPacker
from .whole import GroupLoader, WholeSequences

STATE_VERSION = 1


@dataclass(frozen=True)
class SourceOptions:
    """Options of a source.

    Attributes:
        frame_mode: Whether every sequence is one sample.
        truncation_length: Steps of the pieces that sequences are cut into; 0: sequences are whole.
        slots: Sequences that lie side by side, per epoch; None: the minibatch size decides.
        local_timeline: Whether every worker counts its own samples; else all walk through one minibatch and each takes
            its part.
        keep_in_memory: Whether all that was loaded is kept.
        prefetch: Whether minibatches are made ahead, on background threads.
        threads: Chunks that are loaded at once, and minibatches of whole sequences that are made at once.
        max_errors: Invalid sequences that are tolerated.
    """

    frame_mode: bool = False
    truncation_length: int = 0
    slots: PerEpoch[int] | None = None
    local_timeline: bool = False
    keep_in_memory: bool = False
    prefetch: bool = True
    threads: int = 1
    max_errors: int = 0


DEFAULT_OPTIONS = SourceOptions()


class Source:
    """Reads minibatches epoch by epoch. Between two calls its state is a small JSON-able dictionary.

    Args:
        deserializer: The data.
        timeline: The order.
        options: See `SourceOptions`.
        store: Where loaded sequences come from; by default a `ChunkStore`.
        make_packer: Makes the stage that packs, if there is no usual one.
    """

    def __init__(
        self,
        deserializer: Data,
        timeline: Order,
        options: SourceOptions = DEFAULT_OPTIONS,
        *,
        store: Store | None = None,
        make_packer: Callable[[Inputs], Packer] | None = None,
    ):
        o, prefetch, threads = options, options.prefetch, options.threads
        self.deserializer, self.timeline = deserializer, timeline
        self._frees = timeline if isinstance(timeline, FreesData) else None
        invalid = InvalidSequences(
            o.max_errors, lambda sequences: deserializer.table.names(sequences), deserializer.table.num_sequences
        )
        if make_packer is None and o.truncation_length:
            make_packer = partial(TruncatedPacker, truncation_length=o.truncation_length)
        elif make_packer is None and o.frame_mode and isinstance(deserializer, FrameData):
            make_packer = partial(Frames, data=deserializer)
        many = prefetch and threads > 1 and store is None and make_packer is None
        if store is None:
            at_once = threads if threads > 1 else int(prefetch)
            loading = {"threads": 0, "callers": threads} if many else {"threads": at_once}
            store = ChunkStore(cast("Any", deserializer), keep_everything=o.keep_in_memory, **loading)
        self._inputs = inputs = Inputs(timeline, deserializer, store, invalid, counts_own=o.local_timeline)
        self._slots = o.slots
        self._set_slots(0)
        if make_packer is None:
            make_packer = partial(_whole_sequences, frame_mode=o.frame_mode, threads=threads if many else 0)
        self._packer = packer = make_packer(inputs)
        self._made: Prefetch[Made] = Prefetch(
            packer.__next__, threads=int(prefetch and not many), nbytes=_nbytes, is_last=_is_end
        )
        self._delivered: Position | None = None

    def leave_reading_ahead(self) -> None:
        """Make minibatches where they are asked for: the caller reads ahead."""
        self._made.threads = 0

    @property
    def minibatch_size(self) -> int:
        """Samples of a minibatch, of all workers together."""
        return self._inputs.minibatch_size

    @property
    def store(self) -> Store:
        """Store of loaded sequences. Another one can take its place while nothing is being read."""
        return self._inputs.store

    @store.setter
    def store(self, store: Store) -> None:
        self._inputs.store = store

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """Streams of the minibatches."""
        return self.deserializer.streams

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole data set (sum of nominal sequence lengths)."""
        return self.deserializer.table.num_samples

    def gives_shares(self, workers: int) -> bool:
        """Return whether there are chunks of data for that many workers, where chunks are what they share."""
        return not isinstance(self.timeline, Timeline) or self.deserializer.table.num_chunks >= workers

    def shares_keep_minibatches(self) -> bool:
        """Return whether the workers' minibatches make up those of one worker.

        Not so where slots are divided before sequences are dealt out to them: HTKMLFReader with utterances, truncation.
        """
        return isinstance(self._packer, WholeSequences)

    def _forget(self) -> None:
        """Drop the minibatches that were prepared."""
        self._made.reset()
        self._packer.set_state(None)

    def _set_sizes(self, minibatch_size: int, workers: int, rank: int) -> None:
        self._inputs.minibatch_size = self._inputs.worker_size = minibatch_size
        if self._inputs.counts_own:
            self._inputs.worker_size = max(1, minibatch_size // workers + (rank < minibatch_size % workers))

    def _set_slots(self, epoch: int) -> None:
        if self._slots is not None:
            self._inputs.slots = self._slots[epoch]

    def __next__(self) -> Minibatch:
        """Return the next minibatch; the end of the epoch is that of the iteration."""
        if self._made.interrupted:
            self.set_state(self.get_state())
        minibatch, state, held = next(self._made)
        self._delivered = state, held
        if self._frees is not None:
            self._frees.delivered(state)
        if minibatch is None:
            raise StopIteration
        return minibatch

    def keys(self, sequences: np.ndarray) -> list[int | str]:
        """Keys of sequences as they stand in the data."""
        return self.deserializer.table.names(sequences)

    def _position(self) -> Position:
        """Return the position of the order, and what is held back."""
        return self.timeline.get_state(), self._packer.get_state()

    def get_state(self) -> State:
        """Return the position after the last minibatch that was given out."""
        position, held = self._delivered or self._position()
        return {"version": STATE_VERSION, **position, "minibatchSize": self.minibatch_size, "held": held}

    def set_state(self, state: State | EpochRequest) -> None:
        """Go to the start of an epoch, or resume exactly where `get_state` was called.

        Only the position of a state is needed; the rest stays as started.
        """
        self._forget()
        self.timeline.set_state(state)
        if isinstance(state, EpochRequest):
            size, held = state.minibatch_size, None
            self._set_slots(state.epoch)
        else:
            size, held = int(state.get("minibatchSize", self.minibatch_size)), state.get("held")
        self._set_sizes(size, self.timeline.workers, self.timeline.rank)
        if held is not None:
            self._packer.set_state(held)
        self._delivered = self._position()

    def close(self) -> None:
        """Stop the threads and let go of the data."""
        self._made.close()
        if isinstance(self._packer, WholeSequences):
            self._packer.groups.close()
        self._inputs.store.close()


def _is_end(made: Made) -> bool:
    """Return whether an epoch is over."""
    return made[0] is None


def _nbytes(made: Made) -> int:
    """Memory of a minibatch."""
    return 0 if made[0] is None else made[0].nbytes


def _whole_sequences(inputs: Inputs, frame_mode: bool, threads: int) -> WholeSequences:
    data = inputs.deserializer
    packer = (FramePacker if frame_mode else SequencePacker)(data.streams)
    loaded = float(data.chunk_bytes.sum()) / data.table.num_samples if isinstance(data, Chunked) else 0.0
    return WholeSequences(inputs, GroupLoader(inputs, loaded), packer, threads)
