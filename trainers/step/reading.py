"""A reader around another one; the reader that counts parallel sequences; the reader that can be left waiting."""

from __future__ import annotations

import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cntk_config.base.diagnostics import UserError
from cntk_config.base.stopping import Stopped
from readers.contracts import MinibatchReader, RemembersEpochs
from readers.minibatch import Minibatch

if TYPE_CHECKING:
    from readers.streams import StreamInformation

ASK, PATIENCE = 0.2, 2.0
"""Seconds between questions whether the run should stop, and until a reader that does not answer is left."""


class WrappedReader:
    """Everything that a reader does, done by another one.

    Args:
        reader: The other one.
    """

    def __init__(self, reader: MinibatchReader):
        self.inner = reader
        """The reader inside."""

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """The streams of the minibatches."""
        return self.inner.streams

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole data set; 0 if that is not known."""
        return self.inner.samples_per_sweep

    def start_minibatch_loop(
        self,
        minibatch_size: int,
        epoch: int,
        requested_epoch_samples: int | None = None,
        worker_rank: int = 0,
        number_of_workers: int = 1,
    ) -> None:
        """Go to the start of an epoch; see `MinibatchReader.start_minibatch_loop`."""
        self.inner.start_minibatch_loop(minibatch_size, epoch, requested_epoch_samples, worker_rank, number_of_workers)

    def get_minibatch(self) -> Minibatch | None:
        """The next minibatch, None after the last of the epoch."""
        return self.inner.get_minibatch()

    def state(self) -> dict[str, Any]:
        """Position after the last minibatch given out, JSON-able."""
        return self.inner.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken, in the middle of an epoch too."""
        self.inner.restore(state)

    def epoch_state(self, epoch: int) -> dict[str, Any]:
        """The position at the start of an epoch, where the reader remembers it; else the position of now."""
        inside = innermost(self)
        return inside.epoch_state(epoch) if isinstance(inside, RemembersEpochs) else self.state()

    def restore_epoch(self, state: dict[str, Any]) -> None:
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
    """The reader that reads, inside of those that wrap it."""
    while isinstance(reader, WrappedReader):
        reader = reader.inner
    return reader


def _check_type(minibatch: object, reader: object) -> None:
    """See that a plug-in gives minibatches.

    Raises:
        UserError: it gives something else.
    """
    if not isinstance(minibatch, Minibatch):
        while isinstance(reader, WrappedReader):
            reader = reader.inner
        name, given = type(reader).__name__, type(minibatch).__name__
        message = f"{name}.get_minibatch() returned {given}, not a Minibatch or None"
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
        """The next minibatch, None after the last of the epoch."""
        minibatch = self.inner.get_minibatch()
        if minibatch is not None:
            _check_type(minibatch, self.inner)
            self.last_slots = next(iter(minibatch.layouts.values())).S
        return minibatch

    def state(self) -> dict[str, Any]:
        """Position after the last minibatch given out and its number of slots, JSON-able."""
        return {**self.inner.state(), "last_slots": self.last_slots}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken, in the middle of an epoch too."""
        self.last_slots = state.get("last_slots", 0)
        self.inner.restore({name: value for name, value in state.items() if name != "last_slots"})


_Calls = queue.SimpleQueue[Callable[[], Any] | None]
_Answers = queue.SimpleQueue[tuple[Any, BaseException | None]]


class InterruptibleReader(WrappedReader):
    """A reader that is left alone if it does not answer while the run should stop.

    A signal interrupts neither the code of a user nor a slow disk, and nothing may be raised in its handler. So the
    reader is made and called in a thread of its own, one call at a time, and who waits for it asks `stop` meanwhile.

    Args:
        make: Makes the reader.
        stop: Whether the run should stop, and may do so here.

    Raises:
        Stopped: In any call: the run should stop, and the reader has not answered for `PATIENCE` seconds.
    """

    def __init__(self, make: Callable[[], MinibatchReader], stop: Callable[[], bool]):
        self._stop = stop
        self._left = False
        self._calls: _Calls = queue.SimpleQueue()
        self._answers: _Answers = queue.SimpleQueue()
        threading.Thread(target=_answer, args=(self._calls, self._answers), name="cntkpy-reader", daemon=True).start()
        self._end = weakref.finalize(self, self._calls.put, None)
        super().__init__(self._ask(make))

    def start_minibatch_loop(
        self,
        minibatch_size: int,
        epoch: int,
        requested_epoch_samples: int | None = None,
        worker_rank: int = 0,
        number_of_workers: int = 1,
    ) -> None:
        """Go to the start of an epoch; see `MinibatchReader.start_minibatch_loop`."""
        given = minibatch_size, epoch, requested_epoch_samples, worker_rank, number_of_workers
        self._ask(lambda: self.inner.start_minibatch_loop(*given))

    def get_minibatch(self) -> Minibatch | None:
        """The next minibatch, None after the last of the epoch."""
        return self._ask(self.inner.get_minibatch)

    def state(self) -> dict[str, Any]:
        """Position after the last minibatch given out, JSON-able."""
        return self._ask(self.inner.state)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken, in the middle of an epoch too."""
        self._ask(lambda: self.inner.restore(state))

    def close(self) -> None:
        """Stop reading and free the data; a reader that was left is not waited for."""
        if not self._left:
            self._ask(self.inner.close)
            self._end()

    def _ask(self, call: Callable[[], Any]) -> Any:
        if self._left:
            raise Stopped
        self._calls.put(call)
        asked: float | None = None
        while True:
            try:
                answer, error = self._answers.get(timeout=ASK)
                break
            except queue.Empty:
                pass
            if not self._stop():
                continue
            asked = asked or time.monotonic()
            if time.monotonic() - asked > PATIENCE:
                self._left = True
                raise Stopped
        if error is not None:
            raise error
        return answer


def _answer(calls: _Calls, answers: _Answers) -> None:
    """Call what arrives until None does."""
    while (call := calls.get()) is not None:
        try:
            answer, error = call(), None
        except BaseException as raised:
            answer, error = None, raised
        call = None  # what it holds may go before the next one comes
        answers.put((answer, error))
        answer = error = None
