"""A reader around another one; the reader that counts parallel sequences; the reader that can be left waiting."""

from __future__ import annotations

import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from cntk_config.base.diagnostics import UserError
from cntk_config.base.stopping import Stopped
from readers.common.sparse import nbytes_of
from readers.contracts import MinibatchReader, RemembersEpochs
from readers.epochs import EpochReader, EpochRequest
from readers.minibatch import Minibatch

if TYPE_CHECKING:
    from readers.streams import StreamInformation

SOON, ASK, PATIENCE = 0.01, 0.05, 0.3
"""Seconds until a reader counts as slow, between questions whether the run should stop, and until a reader that does
not answer is left."""

SOME, BRIEFLY, FEW_BYTES = 64, 0.002, 4 << 20
"""Minibatches that are asked for at once: so many, until so many seconds have passed, or so many bytes are there."""

One = TypeVar("One")


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
        """The streams of the minibatches."""
        return self.inner.streams

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole data set; 0 if that is not known."""
        return self.inner.samples_per_sweep

    def start(self, request: EpochRequest) -> None:
        """Go to the start of an epoch."""
        start_epoch(self.inner, request)

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


def following(
    reader: MinibatchReader, *, states: bool = False, at_once: int = SOME
) -> Iterator[tuple[Minibatch, dict[str, Any]]]:
    """The minibatches that are left of an epoch, each with the reader's position after it.

    A question to a reader in a thread of its own takes longer than a small minibatch, so it is asked for several. Those
    that are there do not wait for a slow one.

    Args:
        reader: Reads them.
        states: Whether the positions are wanted; otherwise they are empty.
        at_once: Minibatches that are read further than what is given out, at most.
    """
    thread = _thread_of(reader)
    while True:
        some = _Some(reader, states, at_once)
        if thread is None:
            some()
        else:
            thread.begin(some)
            while some.last is None:  # another question may meet the answer while something is taken
                thread.wait(some, lambda some=some: bool(some.found))
                yield from some.taken()
        yield from some.taken()
        if isinstance(some.last, BaseException):
            raise some.last
        if some.last:
            return


def _thread_of(reader: MinibatchReader) -> InterruptibleReader | None:
    """The reader inside that has a thread of its own, if there is one."""
    while isinstance(reader, WrappedReader) and not isinstance(reader, InterruptibleReader):
        reader = reader.inner
    return reader if isinstance(reader, InterruptibleReader) else None


class _Some:
    """Asks for the next minibatches.

    Attributes:
        found: What has not been taken yet.
        last: Whether they are the last of the epoch, or what the reader has raised behind them; None: it goes on.
    """

    def __init__(self, reader: MinibatchReader, states: bool, most: int):
        self._reader, self._states, self._most = reader, states, most
        self.found: deque[tuple[Minibatch, dict[str, Any]]] = deque()
        self.last: bool | BaseException | None = None

    def taken(self) -> Iterator[tuple[Minibatch, dict[str, Any]]]:
        """What is found so far, which is given out once."""
        while self.found:
            yield self.found.popleft()

    def __call__(self) -> None:
        try:
            self.last = self._read()
        except BaseException as error:
            self.last = error

    def _read(self) -> bool:
        began, size = time.monotonic(), 0
        for count in range(self._most):
            if count and (size >= FEW_BYTES or time.monotonic() - began >= BRIEFLY):
                break
            minibatch = self._reader.get_minibatch()
            if minibatch is None:
                return True
            self.found.append((minibatch, self._reader.state() if self._states else {}))
            size += sum(map(nbytes_of, minibatch.streams.values()))
        return False


def _check_type(minibatch: object, reader: MinibatchReader) -> None:
    """See that a plug-in gives minibatches.

    Raises:
        UserError: it gives something else.
    """
    if not isinstance(minibatch, Minibatch):
        name, given = type(innermost(reader)).__name__, type(minibatch).__name__
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
# A SimpleQueue would wait for ever where a signal is handled while the time to wait ends (CPython before 3.13).
_Answers = queue.Queue[tuple[Callable[[], Any], Any, BaseException | None]]


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
        self._answers: _Answers = queue.Queue()
        calls = self._calls, self._answers
        self._thread = threading.Thread(target=_answer, args=calls, name="cntkpy-reader", daemon=True)
        self._thread.start()
        self._end = weakref.finalize(self, self._calls.put, None)
        super().__init__(self._ask(make))

    def start(self, request: EpochRequest) -> None:
        """Go to the start of an epoch."""
        self._ask(lambda: start_epoch(self.inner, request))

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

    def begin(self, call: Callable[[], Any]) -> None:
        """Have a function called that calls this reader, in the reader's thread; see `wait`.

        Raises:
            Stopped: See above.
        """
        if self._left:
            raise Stopped
        self._calls.put(call)

    def wait(self, call: Callable[[], Any], enough: Callable[[], bool] = lambda: False) -> Any:
        """What a function gives with which something was begun; None if that takes long and there is `enough` of it.

        Raises:
            Stopped: See above.
        """
        asked: float | None = None
        pause = SOON
        while True:
            try:
                answered, answer, error = self._answers.get(timeout=pause)
            except queue.Empty:
                if enough():
                    return None
            else:
                if answered is not call:
                    continue  # nobody waits for it any more
                if error is not None:
                    raise error
                return answer
            pause = ASK
            if not self._stop():
                continue
            asked = asked or time.monotonic()
            if time.monotonic() - asked > PATIENCE:
                self._left = True
                raise Stopped

    def _ask(self, call: Callable[[], One]) -> One:
        if threading.current_thread() is self._thread:
            return call()
        self.begin(call)
        return self.wait(call)


def _answer(calls: _Calls, answers: _Answers) -> None:
    """Call what arrives until None does."""
    while (call := calls.get()) is not None:
        try:
            answer, error = call(), None
        except BaseException as raised:
            answer, error = None, raised
        answers.put((call, answer, error))
        call = answer = error = None  # what they hold may go before the next one comes
