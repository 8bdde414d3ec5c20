"""The look-ahead of readers: values are made by background threads before they are asked for."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar, cast

from cntkpy.cntk_config.base.stopping import Stopped

T = TypeVar("T")
R = TypeVar("R")

GROUP_VALUES, GROUP_BYTES, GROUP_SECONDS = 64, 4 << 20, 0.002
"""A group is complete with this many values, bytes, or seconds: to wake a thread costs as much as a small minibatch."""

SLOW_VALUE_SECONDS = 0.05
"""A value that took longer had to wait for data. So may one of the next `GROUP_VALUES`: each of these is a group."""

GROUP_WAIT_SECONDS = 0.01
"""The consumer waits no longer for a group to become complete if there are values in it."""

STOP_POLL_SECONDS, ABANDON_SECONDS = 0.05, 0.3
"""The time between two calls of `stop`, and from its first answer to abandoning a thread that does not answer."""

READY_VALUES = 2
"""Planned values that are ahead besides those that the threads make."""

MOST_GROUPS = 8
"""Groups that are ahead at most: a consumer that fills stacks of up to 32 MB and copies them to a GPU takes nothing
meanwhile."""


class Prefetch(Iterator[T]):
    """Values made ahead by background threads, in order and without end.

    What making a value raises is raised after the values before it; then the same value is made again.
    A signal interrupts neither a slow disk nor the code of a user, and nothing may be raised in its handler. So the
    consumer calls `stop` while it waits, and abandons a thread that does not answer.

    Args:
        make: Makes the next value; with `plan`, makes it of a plan.
        plan: Plans the next value, which should take little time; called by the consumer when it asks for a value. Then
            several threads may make values, and `threads + READY_VALUES` are ahead.
        threads: Their number; 0 makes every value where it is asked for. It may be changed while nothing is being made.
        nbytes: Memory of a value. Values are then handed over in groups. Two groups are ahead; more, up to
            `MOST_GROUPS`, where the consumer has to wait although threads had stopped for lack of room.
        is_last: Whether nothing is to be made ahead after a value.
        stop: Whether the consumer should stop waiting.

    Raises:
        Stopped: In every method that waits: `stop` says so, and nothing has come for `ABANDON_SECONDS`.
    """

    def __init__(
        self,
        make: Callable[..., T],
        plan: Callable[[], Any] | None = None,
        *,
        threads: int = 1,
        nbytes: Callable[[T], int] | None = None,
        is_last: Callable[[T], bool] = lambda value: False,
        stop: Callable[[], bool] = lambda: False,
    ):
        self.threads = threads
        self.abandoned = False
        """True after a thread did not answer; it is left alone, and no call waits for it."""
        self.interrupted = False
        """True after Ctrl-C while a value was made or planned here: it may be lost, so it has to be made again."""
        self._plan, self._stop = plan, stop
        self._queue = _Queue(make, plan is None, nbytes, is_last)
        self._taken: deque[T] = deque()
        self._open()

    def _open(self) -> None:
        self._shared = _Shared(weakref.ref(self._queue))
        self._workers: list[threading.Thread] = []
        self._end = weakref.finalize(self, _close, self._shared)

    def __next__(self) -> T:
        """Return the next value."""
        if not self._taken:
            try:
                if not self.threads:
                    return self._queue.make() if self._plan is None else self._queue.make(self._plan())
                self._start()
                self._fill()
            except BaseException as error:
                self.interrupted = not isinstance(error, Exception)
                raise
            queue = self._queue
            with self._shared.changed:
                queue.widen()
            self._wait_until(lambda: queue.complete, lambda: bool(queue.ready))
            with self._shared.changed:
                self._taken = queue.take()
                self._shared.changed.notify_all()
        return self._taken.popleft()

    def _fill(self) -> None:
        """Plan the next values, and let threads make them."""
        queue, changed = self._queue, self._shared.changed
        with changed:
            queue.resume()
            missing = 0 if self._plan is None else self.threads + READY_VALUES - len(queue.jobs) - len(queue.ready)
            changed.notify_all()
        for _ in range(missing):
            assert self._plan is not None
            try:
                job = _Job[T](partial(queue.make, self._plan()))
            except Exception as error:
                job = _Job[T](None, error=error)
            with changed:
                if not queue.add(job):
                    return
                changed.notify_all()

    def call(self, function: Callable[[], R]) -> R:
        """Call a function in a thread, between two values, and return its result."""
        if threading.current_thread() in self._workers:
            return function()
        job, shared = _Job(function, awaited=True), self._shared
        self._start()
        with shared.changed:
            shared.calls.append(job)
            shared.changed.notify_all()
        self._wait_until(lambda: job.done)
        if job.error is not None:
            raise job.error
        return cast("R", job.result)

    def restart(self, make: Callable[..., T]) -> None:
        """Drop the prepared values, and prepare the next ones with `make`."""
        self._queue.make = make
        self.reset()

    def reset(self) -> None:
        """Drop the prepared values, and wait until no thread prepares one."""
        with self._shared.changed:
            self._queue.clear()
        self._taken.clear()
        self.interrupted = False
        if self._workers and not self.abandoned:
            self._wait_until(lambda: not self._shared.running)

    def close(self) -> None:
        """End the threads, unless one was abandoned."""
        if not self.abandoned:
            self.reset()
            self._end()
            for worker in self._workers:
                worker.join()
            self._open()

    def _start(self) -> None:
        if self.abandoned:
            raise Stopped
        while len(self._workers) < self.threads:
            worker = threading.Thread(target=_serve, args=(self._shared,), name="cntkpy-reader", daemon=True)
            self._workers.append(worker)
            worker.start()

    def _wait_until(self, ready: Callable[[], bool], partly_ready: Callable[[], bool] = lambda: False) -> None:
        changed, asked, pause = self._shared.changed, None, GROUP_WAIT_SECONDS
        while True:
            with changed:
                if changed.wait_for(ready, pause) or partly_ready():
                    return
            pause = STOP_POLL_SECONDS
            if not self._stop():
                continue
            asked = asked or time.monotonic()
            if time.monotonic() - asked > ABANDON_SECONDS:
                self.abandoned = True
                raise Stopped


class _Job(Generic[T]):
    """A function for a thread to call, and its result. awaited: the end of the call has to be reported."""

    __slots__ = ("awaited", "done", "error", "function", "result", "seconds")

    def __init__(self, function: Callable[[], T] | None, *, error: BaseException | None = None, awaited: bool = False):
        self.function, self.error, self.awaited = function, error, awaited
        self.result: T | None = None
        self.seconds = 0.0
        self.done = error is not None

    def run(self) -> None:
        """Call the function."""
        assert self.function is not None
        began = time.perf_counter()
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error
        self.seconds = time.perf_counter() - began


class _Queue(Generic[T]):
    """Values and jobs of values, in order. All methods are called with the lock held.

    Args:
        make: Makes a value.
        unplanned: Whether jobs are begun by the threads, while there is room.
        nbytes: Memory of a value, where values are handed over in groups.
        is_last: Whether to pause after a value.
    """

    def __init__(
        self,
        make: Callable[..., T],
        unplanned: bool,
        nbytes: Callable[[T], int] | None,
        is_last: Callable[[T], bool],
    ):
        self.make, self.unplanned, self._nbytes, self._is_last = make, unplanned, nbytes, is_last
        self._generation = 0
        self._groups, self._was_full = 2, False
        self.jobs: deque[_Job[T]] = deque()
        """Jobs of the values after those that are ready."""
        self.clear()

    def clear(self) -> None:
        """Drop everything, and pause until a value is asked for."""
        for job in self.jobs:
            job.awaited = True
        self.jobs, self._waiting = deque[_Job[T]](), deque[_Job[T]]()
        self._generation += 1
        self.ready, self._ready_bytes = deque[T](), 0
        self._paused = True  # also after a last value, or an error
        self._group_began = 0.0
        self._single_values = 0  # values to come that are a group each

    @property
    def complete(self) -> bool:
        """True if the values that are ready should be handed over, or an error be raised."""
        ready = self.ready
        if self._paused or not ready:
            return self._paused
        if self._nbytes is None or self._single_values > 0:
            return True
        full = len(ready) >= GROUP_VALUES or self._ready_bytes >= GROUP_BYTES
        return full or time.perf_counter() - self._group_began > GROUP_SECONDS

    def add(self, job: _Job[T]) -> bool:
        """Append the job of a planned value; return whether another one may be planned."""
        self.jobs.append(job)
        if job.error is None:
            self._waiting.append(job)
        else:
            self.collect()
        return job.error is None

    @property
    def has_room(self) -> bool:
        """True if a thread may make one more value."""
        if self._paused:
            return False
        count, groups = len(self.ready), self._groups
        return count < 2 or (count < groups * GROUP_VALUES and self._ready_bytes < groups * GROUP_BYTES)

    def widen(self) -> None:
        """Make room for more groups, if threads had none and the consumer would have to wait all the same."""
        if self._was_full and not self.complete:
            self._groups, self._was_full = min(2 * self._groups, MOST_GROUPS), False

    def next_job(self) -> _Job[T] | None:
        """Return the job of a planned value for a thread, if there is room for the value."""
        return self._waiting.popleft() if self._waiting and self.has_room else None

    def make_unplanned(self, shared: _Shared) -> bool:
        """Make the next value, without the lock and, as there may be many small ones, without a job."""
        if not self.has_room:
            self._was_full |= not self._paused
            return False
        generation, error, value = self._generation, None, None
        shared.running += 1
        shared.changed.release()
        began = time.perf_counter()
        try:
            value = self.make()
        except BaseException as failure:
            error = failure
        seconds = time.perf_counter() - began
        shared.changed.acquire()
        shared.running -= 1
        if generation != self._generation:  # dropped meanwhile
            shared.changed.notify_all()
            return True
        if error is None:
            self._put(cast("T", value), seconds)
        else:
            self.add(_Job[T](None, error=error))
        if self.complete:
            shared.changed.notify_all()
        return True

    def _put(self, value: T, seconds: float) -> None:
        if not self.ready:
            self._group_began = time.perf_counter()
        if self._nbytes is not None:
            self._ready_bytes += self._nbytes(value)
        if seconds > SLOW_VALUE_SECONDS:
            self._single_values = GROUP_VALUES
        elif self._single_values:
            self._single_values -= 1
        self.ready.append(value)
        self._paused = self._is_last(value)

    def collect(self) -> None:
        """Take the values of jobs that are done."""
        while self.jobs and (job := self.jobs[0]).done and not self._paused:
            if job.error is not None:
                self._paused = True
                return
            self.jobs.popleft()
            self._put(cast("T", job.result), job.seconds)

    def resume(self) -> None:
        """End a pause, unless an error or a last value is yet to be taken."""
        if self._paused and not self.ready and not (self.jobs and self.jobs[0].done):
            self._paused = False
        self.collect()

    def take(self) -> deque[T]:
        """Return the next value, or the values of a group. Raise an error that is next, after which its job is new."""
        if not self.ready:
            job = self.jobs.popleft()
            self._paused = False
            error, job.error, job.done = job.error, None, False
            if job.function is not None:
                self.jobs.appendleft(job)
                self._waiting.appendleft(job)
            assert error is not None
            raise error
        if self._nbytes is None:
            return deque([self.ready.popleft()])
        taken, self.ready, self._ready_bytes = self.ready, deque[T](), 0
        return taken


@dataclass(eq=False)
class _Shared:
    """State of the consumer and its threads, used with `changed` held. The queue is weak: unused readers are freed."""

    queue: Callable[[], _Queue[Any] | None]
    changed: threading.Condition = field(default_factory=threading.Condition)
    calls: deque[_Job[Any]] = field(default_factory=deque[_Job[Any]])
    running: int = 0
    closed: bool = False


def _close(shared: _Shared) -> None:
    with shared.changed:
        shared.closed = True
        shared.changed.notify_all()


def _serve(shared: _Shared) -> None:
    """Run the jobs of calls and of values until `shared` is closed."""
    with shared.changed:
        while shared.calls or not shared.closed:
            if not _run_next(shared):
                shared.changed.wait()


def _run_next(shared: _Shared) -> bool:
    """Run the next job, without the lock; return False if there is none."""
    changed, queue = shared.changed, shared.queue()
    if shared.calls:
        job = shared.calls.popleft()
    elif queue is None or shared.closed:
        return False
    elif queue.unplanned:
        return queue.make_unplanned(shared)
    elif (job := queue.next_job()) is None:
        return False
    shared.running += 1
    changed.release()
    job.run()
    changed.acquire()
    shared.running -= 1
    job.done = True
    if queue is not None:
        queue.collect()
    if job.awaited or (queue is not None and queue.complete):
        changed.notify_all()
    return True
