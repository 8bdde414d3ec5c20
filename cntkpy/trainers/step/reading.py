"""A reader around another one; the reader that counts parallel sequences; the reader that can be left waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.readers.contracts import MinibatchReader, ReadsAhead, RemembersEpochs
from cntkpy.readers.epochs import EpochReader, EpochRequest, set_state, state_of
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.pipeline.prefetch import Prefetch
from cntkpy.trainers.step.feed import Stage, State

if TYPE_CHECKING:
    from cntkpy.readers.streams import StreamInformation

Read = tuple[Minibatch | None, dict[str, Any]]
"""A minibatch, None at the end of an epoch, and the reader's position after it."""


def start_epoch(reader: MinibatchReader, request: EpochRequest) -> None:
    """Go to the start of an epoch, with any reader: one that people write takes CNTK's arguments."""
    if isinstance(reader, EpochReader):
        reader.start(request)
        return
    r = request
    reader.start_minibatch_loop(r.minibatch_size, r.epoch, r.samples, r.worker, r.workers)


class WrappedReader(EpochReader):
    """Everything that a reader does, done by another one.

    Args:
        reader: The other one.
    """

    def __init__(self, reader: MinibatchReader):
        self.inner = reader
        """The reader inside."""

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """Return the streams of the minibatches."""
        return self.inner.streams

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole data set; 0 if that is not known."""
        return self.inner.samples_per_sweep

    def start(self, request: EpochRequest) -> None:
        """Go to the start of an epoch."""
        start_epoch(self.inner, request)

    def get_minibatch(self) -> Minibatch | None:
        """Return the next minibatch, None after the last of the epoch."""
        return self.inner.get_minibatch()

    def get_state(self) -> State:
        """Return the position after the last minibatch given out, JSON-able."""
        return state_of(self.inner)

    def set_state(self, state: State) -> None:
        """Restore a state of `get_state`, also in the middle of an epoch."""
        set_state(self.inner, state)

    def epoch_state(self, epoch: int) -> State:
        """Return the position at the start of an epoch, where the reader remembers it; else the position of now."""
        inside = innermost(self)
        return inside.epoch_state(epoch) if isinstance(inside, RemembersEpochs) else self.get_state()

    def restore_epoch(self, state: State) -> None:
        """Go to where `epoch_state` was taken, where the reader needs that to find the epoch."""
        inside = innermost(self)
        if isinstance(inside, RemembersEpochs):
            inside.restore_epoch(state)

    def get_label_mapping(self, name: str) -> dict[int, str]:
        """Names of the classes of a stream; {} where there are none."""
        return self.inner.get_label_mapping(name)

    def close(self) -> None:
        """Stop reading and free the data."""
        self.inner.close()


def innermost(reader: MinibatchReader) -> MinibatchReader:
    """Return the reader that reads, inside of those that wrap it."""
    while isinstance(reader, WrappedReader):
        reader = reader.inner
    return reader


def following(
    reader: MinibatchReader, *, states: bool = False, ahead: bool = True
) -> Iterator[tuple[Minibatch, State]]:
    """Yield the minibatches that are left of an epoch, each with the reader's position after it.

    Args:
        reader: Reads them.
        states: Whether the positions are wanted; otherwise they are empty.
        ahead: Whether a reader in a thread of its own reads further than what is given out.
    """

    def read() -> Read:
        return reader.get_minibatch(), state_of(reader) if states else {}

    thread = _thread_of(reader)
    if thread is not None and ahead:
        thread.restart(read)
        values: Iterator[Read] = thread
    else:
        values = iter(read, None)
    for minibatch, state in values:
        if minibatch is None:
            return
        yield minibatch, state


class EpochSource(Stage[Minibatch]):
    """The minibatches of an epoch, with the reader's position; the epoch begins when they are first asked for.

    Args:
        reader: Reads them.
        request: The epoch.
        stop: Whether reading should stop: a stack may take long to fill.
    """

    def __init__(self, reader: MinibatchReader, request: EpochRequest, stop: Callable[[], bool]) -> None:
        self._reader, self._request, self._stop = reader, request, stop
        self._start: State | None = None
        self._state: State | None = None
        self._values: Iterator[tuple[Minibatch, State]] | None = None

    def __next__(self) -> Minibatch:
        self.get_state()
        assert self._values is not None
        minibatch, state = next(self._values)
        if self._stop():
            raise Stopped
        self._state = state
        return minibatch

    def get_state(self) -> State | None:
        """Return the reader's position after the last minibatch that was given, or at the start."""
        if self._values is None:
            start_epoch(self._reader, self._request)
            if self._start is not None:
                set_state(self._reader, self._start)
            self._state = state_of(self._reader)
            self._values = following(self._reader, states=True)
        return self._state

    def set_state(self, state: State) -> None:
        """Begin at a position inside of the epoch; called before the first minibatch."""
        self._start = state


def _nbytes(read: Read) -> int:
    return 0 if read[0] is None else read[0].nbytes


def _nothing() -> Read:
    return None, {}


def _is_end(read: Read) -> bool:
    return read[0] is None


def _thread_of(reader: MinibatchReader) -> Prefetch[Read] | None:
    """Return the thread of the reader inside that has one."""
    while isinstance(reader, WrappedReader) and not isinstance(reader, InterruptibleReader):
        reader = reader.inner
    return reader.thread if isinstance(reader, InterruptibleReader) else None


def _check_type(minibatch: object, reader: MinibatchReader) -> None:
    """See that a plug-in gives minibatches.

    Raises:
        UserError: it gives something else.
    """
    if not isinstance(minibatch, Minibatch):
        name, kind = type(innermost(reader)).__name__, type(minibatch).__name__
        message = f"{name}.get_minibatch() returned {kind}, not a Minibatch or None"
        raise UserError("UserCode", message, hint="docs/data-interfaces.md has the interface of readers")


class CountedReader(WrappedReader):
    """A reader that knows how many parallel sequences its last minibatch had.

    That number converts rates per minibatch where sequences are truncated.
    """

    def __init__(self, reader: MinibatchReader):
        super().__init__(reader)
        self.last_slots = 0
        """Slots of the last minibatch given out; 0 before the first."""

    def get_minibatch(self) -> Minibatch | None:
        """Return the next minibatch, None after the last of the epoch."""
        minibatch = self.inner.get_minibatch()
        if minibatch is not None:
            _check_type(minibatch, self.inner)
            self.last_slots = next(iter(minibatch.layouts.values())).S
        return minibatch

    def get_state(self) -> State:
        """Return the position after the last minibatch given out and its number of slots, JSON-able."""
        return {**super().get_state(), "last_slots": self.last_slots}

    def set_state(self, state: State) -> None:
        """Restore a state of `get_state`, also in the middle of an epoch."""
        self.last_slots = state.get("last_slots", 0)
        super().set_state({name: value for name, value in state.items() if name != "last_slots"})


class InterruptibleReader(WrappedReader):
    """A reader that is made and called in a thread of its own, so that a signal need not wait for it.

    Args:
        make: Makes the reader.
        stop: Whether the run should stop, and may do so here.

    Raises:
        Stopped: In any call, see `Prefetch`.
    """

    def __init__(self, make: Callable[[], MinibatchReader], stop: Callable[[], bool]):
        self.thread: Prefetch[Read] = Prefetch(_nothing, nbytes=_nbytes, is_last=_is_end, stop=stop)
        """The thread, and what it reads ahead."""
        super().__init__(self.thread.call(make))
        inside = innermost(self.inner)
        if isinstance(inside, ReadsAhead):
            inside.leave_reading_ahead()

    def start(self, request: EpochRequest) -> None:
        """Go to the start of an epoch."""
        self.thread.reset()
        self.thread.call(lambda: start_epoch(self.inner, request))

    def get_minibatch(self) -> Minibatch | None:
        """Return the next minibatch, None after the last of the epoch."""
        return self.thread.call(self.inner.get_minibatch)

    def get_state(self) -> State:
        """Return the position after the last minibatch that was read, JSON-able."""
        return self.thread.call(super().get_state)

    def set_state(self, state: State) -> None:
        """Restore a state of `get_state`, also in the middle of an epoch."""
        self.thread.reset()
        self.thread.call(partial(super().set_state, state))

    def close(self) -> None:
        """Stop reading and free the data; a reader that was abandoned is not waited for."""
        if not self.thread.abandoned:
            self.thread.call(self.inner.close)
            self.thread.restart(_nothing)
            self.thread.close()
