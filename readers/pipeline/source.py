"""The pipeline: deserializer -> randomizer -> packer -> minibatch, read ahead, with a position that can be saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from readers.minibatch import Minibatch
from readers.streams import StreamInformation

from .frame_batches import FrameData, Frames
from .invalid import InvalidSequences
from .pack import FramePacker, Part, SequencePacker
from .prefetch import ParallelPrefetcher, Prefetcher
from .selection import Selection
from .sequences import SequenceTable
from .store import ChunkStore
from .truncated import TruncatedPacker
from .whole import Group, WholeSequences

STATE_VERSION = 1
_Position = tuple[dict[str, Any], Any]
"""The state of the timeline and of the assembler."""
_Made = tuple[Minibatch | None, _Position]


class Order(Protocol):
    """Hands out sequences by number: `randomize.Timeline` or `local_timeline.LocalTimeline`."""

    workers: int
    rank: int

    @property
    def ended(self) -> bool:
        """Whether the epoch is over."""
        ...

    def start_epoch(self, epoch: int, size: int | None, workers: int = 1, rank: int = 0) -> None:
        """Go to the start of an epoch; size None means one sweep."""
        ...

    def next(self, global_limit: int, local_limit: int) -> Selection | None:
        """The sequences of the next minibatch."""
        ...

    def state(self) -> dict[str, Any]:
        """The position, JSON-able."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go where `state` was taken."""
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


class Store(Protocol):
    """Where loaded sequences come from: `store.ChunkStore` or `local_timeline.WindowStore`."""

    def begin(
        self,
        sequences: np.ndarray,
        keep: np.ndarray | None = None,
        ahead: np.ndarray | None = None,
        following: Callable[[int], np.ndarray] | None = None,
    ) -> Callable[[], list[Part]]:
        """Begin to load these sequences; the function gives their parts, in minibatch order.

        The rest: see `selection.Selection`.
        """
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class _Assembler(Protocol):
    """Turns selections into minibatches; `state` is what is held back between them, JSON-able."""

    def state(self) -> Any: ...

    def restore(self, state: Any, source: Source) -> None: ...

    def clear(self) -> None: ...


class _InStep(_Assembler, Protocol):
    """Makes one minibatch of what the timeline gives."""

    def next(self, source: Source) -> Minibatch | None: ...


@runtime_checkable
class _Ahead(_Assembler, Protocol):
    """Asks the timeline for more than it gives out: tells where the timeline stood after each minibatch."""

    def next_several(self, source: Source) -> Iterable[tuple[Minibatch | None, dict[str, Any]]]: ...


def _holding_nothing(made: tuple[Minibatch | None, dict[str, Any]]) -> _Made:
    minibatch, state = made
    return minibatch, (state, None)


def _given(made: list[_Made]) -> Iterator[_Made]:
    """Gives out and does not keep: the memory is used again for the next one."""
    while made:
        yield made.pop()


class Source:
    """Reads minibatches epoch by epoch. Between two calls its state is a small JSON-able dictionary.

    store: where loaded sequences come from; by default a ChunkStore with keep_in_memory and memory (bytes).
    local_timeline: every worker counts its own samples; else all walk through one minibatch and each takes its part.
    prefetch: make minibatches ahead, on background threads; threads: load that many chunks, and make that many
    minibatches at once if they are of whole sequences.
    assembler: makes minibatches in its own way.
    max_errors: invalid sequences to put up with.
    """

    def __init__(
        self,
        deserializer: Data,
        timeline: Order,
        *,
        store: Store | None = None,
        frame_mode: bool = False,
        truncation_length: int = 0,
        local_timeline: bool = False,
        keep_in_memory: bool = False,
        memory: int | None = None,
        prefetch: bool = True,
        threads: int = 1,
        max_errors: int = 0,
        assembler: _InStep | _Ahead | None = None,
    ):
        self.deserializer, self.timeline = deserializer, timeline
        self._local_timeline = local_timeline
        self.invalid = InvalidSequences(max_errors)
        if assembler is not None:
            self._use(assembler)
        elif truncation_length:
            self._use(TruncatedPacker(deserializer.streams, truncation_length))
        elif frame_mode and isinstance(deserializer, FrameData):
            self._use(Frames(deserializer))
        else:
            packer = (FramePacker if frame_mode else SequencePacker)(deserializer.streams)
            chunk_bytes = getattr(deserializer, "chunk_bytes", None)
            loaded = 0.0 if chunk_bytes is None else float(chunk_bytes.sum()) / deserializer.table.num_samples
            self._use(WholeSequences(packer, loaded))
        self._prefetcher: Prefetcher[Iterator[_Made]] | ParallelPrefetcher[Group, Group]
        whole = self._assembler
        if prefetch and threads > 1 and store is None and isinstance(whole, WholeSequences):
            loading = {"threads": 0, "callers": threads}
            ahead = ParallelPrefetcher(partial(whole.plan, self), partial(whole.make, self), threads)
            self._prefetcher = ahead
            self._more = lambda: map(_holding_nothing, whole.take(self, ahead.next))
        else:
            loading = {"threads": threads if threads > 1 else int(prefetch)}
            self._prefetcher = Prefetcher(lambda: self._produce(), int(prefetch))
            self._more = self._prefetcher.next
        if store is None:
            options = loading if memory is None else loading | {"memory": memory}
            store = ChunkStore(cast("Any", deserializer), keep_everything=keep_in_memory, **options)
        self.store: Store = store
        self._ready: Iterator[_Made] = iter(())
        self.minibatch_size = 0
        self.limits = (1, 1)
        self._delivered: _Position | None = None
        self._interrupted = False  # by Ctrl-C

    def _use(self, assembler: _InStep | _Ahead) -> None:
        """Let it make the minibatches: `_produce` gives the next one, and those that are made together with it."""
        self._assembler = assembler
        self._produce: Callable[[], Iterator[_Made]]
        if isinstance(assembler, _Ahead):  # asked here, for to ask a protocol takes 10 us
            self._produce = lambda: map(_holding_nothing, assembler.next_several(self))
        else:
            self._produce = lambda: _given([(assembler.next(self), self._position())])

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """What the minibatches hold."""
        return self.deserializer.streams

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole data set (sum of nominal sequence lengths)."""
        return self.deserializer.table.num_samples

    def start(self, minibatch_size: int, epoch: int, epoch_size: int | None, workers: int = 1, rank: int = 0) -> None:
        """Go to the start of an epoch (from 0); epoch_size None means one sweep."""
        self._forget()
        self._set_limits(minibatch_size, workers, rank)
        self.timeline.start_epoch(epoch, epoch_size, workers, rank)
        self._delivered = self._position()

    def _forget(self) -> None:
        """Drop what was made ahead."""
        self._prefetcher.reset()
        self._ready = iter(())
        self._assembler.clear()
        self._interrupted = False

    def _set_limits(self, minibatch_size: int, workers: int, rank: int) -> None:
        self.minibatch_size = minibatch_size
        if self._local_timeline:
            local = max(1, minibatch_size // workers + (rank < minibatch_size % workers))
            self.limits = (2**62, local)
        else:
            self.limits = (minibatch_size, minibatch_size)

    def next(self) -> Minibatch | None:
        """The next minibatch, None at the end of the epoch."""
        if self._interrupted:  # some of what was made ahead may be lost: make it again
            self.restore(self.state())
        try:
            made = next(self._ready, None)
            if made is None:
                self._ready = self._more()
                made = next(self._ready)
        except BaseException as error:
            self._interrupted = not isinstance(error, Exception)
            raise
        minibatch, self._delivered = made
        return minibatch

    def keys(self, sequences: np.ndarray) -> list[int | str]:
        """Keys of sequences as they stand in the data."""
        return self.deserializer.table.names(sequences)

    def _position(self) -> _Position:
        """Where the timeline stands, and what is held back."""
        return self.timeline.state(), self._assembler.state()

    def state(self) -> dict[str, Any]:
        """Where reading stands after the last minibatch that was given out."""
        position, held = self._delivered or self._position()
        return {"version": STATE_VERSION, **position, "minibatchSize": self.minibatch_size, "held": held}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state` was taken. Only the position is needed; the rest stays as started."""
        self._forget()
        self.timeline.restore(state)
        size = int(state.get("minibatchSize", self.minibatch_size))
        self._set_limits(size, self.timeline.workers, self.timeline.rank)
        if state.get("held") is not None:
            self._assembler.restore(state["held"], self)
        self._delivered = self._position()

    def change(self, minibatch_size: int, workers: int, rank: int) -> None:
        """Go on with another minibatch size or another share of the data. What was held back is dropped."""
        self.restore(self.state() | {"minibatchSize": minibatch_size, "workers": workers, "rank": rank, "held": None})

    def close(self) -> None:
        """Stop the threads and let go of the data."""
        self._prefetcher.close()
        self.store.close()
