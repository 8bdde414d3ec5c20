"""Reading ahead: a thread makes values before they are asked for, and hands them over in groups."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from cntkpy.cntk_config.base.stopping import Stopped

T = TypeVar("T")
R = TypeVar("R")

GROUP_ITEMS, GROUP_BYTES, GROUP_SECONDS = 64, 4 << 20, 0.002
"""A group is complete with this many values, bytes, or seconds: to wake a thread costs as much as a small minibatch."""

SLOW_SECONDS, ITEMS_AFTER_SLOW = 0.05, 64
"""A value that took longer had to wait for data. So may one of the next values: each of these is a group."""

HAND_OVER_SECONDS = 0.01
"""The consumer waits no longer for a group to become complete if there are values in it."""

POLL_SECONDS, ABANDON_SECONDS = 0.05, 0.3
"""The time between two calls of `stop`, and from its first answer to abandoning a thread that does not answer."""


class Stream(Generic[T]):
    """The values that one function makes, in order; an iterator that does not end.

    Args:
        make: gives the next value. What it raises is raised after the values before; then it is called again.
        is_last: whether nothing is to be made ahead after a value.
        nbytes: memory of a value.
    """

    def __init__(
        self, ahead: ReadAhead, make: Callable[[], T], is_last: Callable[[T], bool], nbytes: Callable[[T], int]
    ):
        self.make, self.is_last, self.nbytes = make, is_last, nbytes
        self.ready: deque[T] = deque()
        self.ready_bytes = 0
        self.paused = False  # after a last value, or an error
        self.error: BaseException | None = None
        self._ahead = ahead
        self._taken: deque[T] = deque()
        self._group_began = 0.0
        self._single_items = 0  # values to come that are a group each

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if not self._taken:
            self._ahead.wait_for_values(self)
        if not self._taken:
            error, self.error, self.paused = self.error, None, False
            assert error is not None
            raise error
        return self._taken.popleft()

    def take(self) -> None:
        """Take what is ready, which makes room."""
        self._taken, self.ready, self.ready_bytes = self.ready, self._taken, 0

    @property
    def complete(self) -> bool:
        """Whether the values that are ready should be handed over."""
        ready = self.ready
        if self.paused or len(ready) >= GROUP_ITEMS or self.ready_bytes >= GROUP_BYTES:
            return True
        return bool(ready) and (self._single_items > 0 or time.perf_counter() - self._group_began > GROUP_SECONDS)

    @property
    def has_room(self) -> bool:
        """Whether one more value should be made."""
        if self.paused:
            return False
        return len(self.ready) < 2 or (len(self.ready) < 2 * GROUP_ITEMS and self.ready_bytes < 2 * GROUP_BYTES)

    def add(self, value: T, seconds: float) -> None:
        """A value was made, which took so many seconds."""
        if not self.ready:
            self._group_began = time.perf_counter()
        self._single_items = ITEMS_AFTER_SLOW if seconds > SLOW_SECONDS else max(self._single_items - 1, 0)
        self.ready.append(value)
        self.ready_bytes += self.nbytes(value)
        self.paused = self.is_last(value)

    def fail(self, error: BaseException) -> None:
        """Making a value raised an error."""
        self.error, self.paused = error, True


@dataclass(eq=False)
class _Call:
    """A function to be called in the thread, and what became of it."""

    function: Callable[[], Any]
    done: bool = False
    result: Any = None
    error: BaseException | None = None


@dataclass(eq=False)
class _Shared:
    """What both threads look at while they hold `changed`. `stream` is weak, so that an unused reader can be freed."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    calls: deque[_Call] = field(default_factory=deque[_Call])
    stream: Callable[[], Stream[Any] | None] = lambda: None
    closed: bool = False


class ReadAhead:
    """A thread that makes the values of a `Stream` ahead, and calls functions between two of them.

    A signal interrupts neither a slow disk nor the code of a user, and nothing may be raised in its handler. So the
    consumer asks `stop` while it waits, and abandons a thread that does not answer.

    Args:
        stop: whether the consumer should stop waiting.

    Raises:
        Stopped: in every method that waits: `stop` says so, and nothing has come for `ABANDON_SECONDS`.
    """

    def __init__(self, stop: Callable[[], bool] = lambda: False):
        self._stop = stop
        self.abandoned = False
        """Whether the thread did not answer; it is left alone, and no call waits for it."""
        self._shared = shared = _Shared()
        self._thread = threading.Thread(target=_serve, args=(shared,), name="cntkpy-reader", daemon=True)
        self._end = weakref.finalize(self, _close, shared)

    def call(self, function: Callable[[], R]) -> R:
        """Call a function in the thread, and wait for its result."""
        if threading.current_thread() is self._thread:
            return function()
        call, shared = _Call(function), self._shared
        self._start()
        with shared.changed:
            shared.calls.append(call)
            shared.changed.notify_all()
        self._wait_until(lambda: call.done)
        if call.error is not None:
            raise call.error
        return call.result

    def begin(
        self, make: Callable[[], T], is_last: Callable[[T], bool], nbytes: Callable[[T], int] = lambda value: 0
    ) -> Stream[T]:
        """Begin to make the values of a stream, in place of the one before, whose values are dropped."""
        stream, shared = Stream(self, make, is_last, nbytes), self._shared
        self._start()
        with shared.changed:
            shared.stream = weakref.ref(stream)
            shared.changed.notify_all()
        return stream

    def reset(self) -> None:
        """Drop what was made ahead, and wait until nothing is being made."""
        with self._shared.changed:
            stream, self._shared.stream = self._shared.stream(), lambda: None
        if stream is not None and not self.abandoned:
            self.call(lambda: None)

    def close(self) -> None:
        """End the thread, unless it was abandoned."""
        if not self.abandoned:
            self.reset()
            self._end()

    def wait_for_values(self, stream: Stream[Any]) -> None:
        """Take a group when it is complete, or when it has values and none has been added for a while."""
        if stream is not self._shared.stream():
            raise RuntimeError("another stream was begun, or this one was reset")
        with self._shared.changed:
            if stream.paused and not stream.ready and stream.error is None:  # after the last value
                stream.paused = False
            self._shared.changed.notify_all()
        self._wait_until(lambda: stream.complete, lambda: bool(stream.ready))
        with self._shared.changed:
            stream.take()
            self._shared.changed.notify_all()

    def _start(self) -> None:
        if self.abandoned:
            raise Stopped
        if self._thread.ident is None:
            self._thread.start()

    def _wait_until(self, ready: Callable[[], bool], partly_ready: Callable[[], bool] = lambda: False) -> None:
        changed, asked, pause = self._shared.changed, None, HAND_OVER_SECONDS
        while True:
            with changed:
                if changed.wait_for(ready, pause) or partly_ready():
                    return
            pause = POLL_SECONDS
            if not self._stop():
                continue
            asked = asked or time.monotonic()
            if time.monotonic() - asked > ABANDON_SECONDS:
                self.abandoned = True
                raise Stopped


def _close(shared: _Shared) -> None:
    with shared.changed:
        shared.closed, shared.stream = True, lambda: None
        shared.changed.notify_all()


def _serve(shared: _Shared) -> None:
    """Call the functions, and make values while there is room for them, until `shared` is closed."""
    changed = shared.changed
    changed.acquire()
    while True:
        if shared.calls:
            call = shared.calls.popleft()
            changed.release()
            try:
                call.result = call.function()
            except BaseException as error:
                call.error = error
            changed.acquire()
            call.done = True
            changed.notify_all()
            del call  # with what it holds
        elif shared.closed:
            changed.release()
            return
        elif (stream := shared.stream()) is not None and stream.has_room:
            changed.release()
            _make_value(shared, stream)
            del stream
        else:
            del stream
            changed.wait()


def _make_value(shared: _Shared, stream: Stream[Any]) -> None:
    """Make a value; return with the lock held."""
    began, value, failure = time.perf_counter(), None, None
    try:
        value = stream.make()
    except BaseException as error:
        failure = error
    seconds = time.perf_counter() - began
    shared.changed.acquire()
    if failure is not None:
        stream.fail(failure)
    else:
        stream.add(value, seconds)
    if stream.complete:
        shared.changed.notify_all()


class GroupedProducer(Generic[T]):
    """Values of groups, one by one: made ahead by a thread, or where they are asked for.

    Args:
        make_group: gives at least one value; none of them is None.
        is_last: whether nothing is to be made ahead after a value.
        nbytes: memory of a value.
        ahead: whether a thread makes them ahead. It may be changed while nothing is being made.
    """

    def __init__(
        self,
        make_group: Callable[[], Iterable[T]],
        is_last: Callable[[T], bool],
        nbytes: Callable[[T], int],
        ahead: bool,
    ):
        self._make_group, self._is_last, self._nbytes, self.ahead = make_group, is_last, nbytes, ahead
        self._group: Iterator[T] = iter(())
        self._read_ahead: ReadAhead | None = None
        self._stream: Stream[T] | None = None
        self.interrupted = False
        """Whether Ctrl-C came while values were made here: some may be lost, so they have to be made again."""

    def next(self) -> T:
        """The next value; what `make_group` raises is raised here, after the values before it."""
        if self.ahead:
            if self._read_ahead is None:
                self._read_ahead = ReadAhead()
            if self._stream is None:
                self._stream = self._read_ahead.begin(self._next, self._is_last, self._nbytes)
            return next(self._stream)
        try:
            return self._next()
        except BaseException as error:
            self.interrupted = not isinstance(error, Exception)
            raise

    def _next(self) -> T:
        value = next(self._group, None)
        if value is None:
            self._group = iter(self._make_group())
            value = next(self._group)
        return value

    def reset(self) -> None:
        """Drop what was made ahead, and wait until nothing is being made."""
        if self._read_ahead is not None:
            self._read_ahead.reset()
        self._stream, self._group, self.interrupted = None, iter(()), False

    def close(self) -> None:
        """End the thread."""
        self.reset()
        if self._read_ahead is not None:
            self._read_ahead.close()
            self._read_ahead = None
