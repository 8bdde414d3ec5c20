"""Things computed ahead on a background thread, in order."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from typing import Generic, TypeVar

P = TypeVar("P")
T = TypeVar("T")

SLICE_SECONDS = 0.002
"""How long the thread works before it hands over what it has: a hand-over costs as much as a small minibatch."""

SLICE_ITEMS = 64
"""At most that many results are handed over at once."""


SLOW_SECONDS, AFTER_SLOW = 0.05, 64
"""What took so long had to wait for data. So may one of the next results: they are not kept back for others."""


class Haste:
    """Whether results should be handed over one by one: one of the last took long."""

    def __init__(self) -> None:
        self._left = 0

    def __bool__(self) -> bool:
        return self._left > 0

    def took(self, seconds: float) -> None:
        """A result took so long."""
        self._left = AFTER_SLOW if seconds > SLOW_SECONDS else max(self._left - 1, 0)


class Prefetcher(Generic[T]):
    """Calls `produce` ahead of time, at most `depth` slices in advance; depth 0 calls it when asked.

    A slice is what the thread produces in a few milliseconds: one large result or several small ones. A slice ends with
    a result that `is_last` (nothing but such results are expected after it), and where `waits` says that the next one
    has to wait for data.
    """

    def __init__(
        self,
        produce: Callable[[], T],
        depth: int = 1,
        is_last: Callable[[T], bool] = lambda _: False,
        waits: Callable[[], bool] = lambda: False,
    ):
        self._produce, self._depth, self._is_last, self._waits = produce, depth, is_last, waits
        self._pool = ThreadPoolExecutor(1, "cntkpy-minibatches") if depth else None
        self._ready: deque[T] = deque()
        self._ahead: deque[Future[list[T]]] = deque()
        self._failed: Exception | None = None
        self._haste = Haste()

    def next(self) -> T:
        """The next result; what `produce` raised is raised here, after the results before it."""
        if self._pool is None:
            return self._produce()
        if not self._ready:
            while len(self._ahead) < self._depth + 1:
                self._ahead.append(self._pool.submit(self._slice))
            self._ahead[0].exception()  # waits; nothing is lost if Ctrl-C ends that
            self._ready.extend(self._ahead.popleft().result())
        return self._ready.popleft()

    def _slice(self) -> list[T]:
        if self._failed is not None:
            raise self._failed
        results: list[T] = []
        began = time.perf_counter()
        end = began + SLICE_SECONDS
        while len(results) < SLICE_ITEMS:
            try:
                results.append(self._produce())
            except Exception as error:
                if not results:
                    raise
                self._failed = error
                return results
            now = time.perf_counter()
            self._haste.took(now - began)
            if now > end or self._haste or self._is_last(results[-1]) or self._waits():
                break
            began = now
        return results

    def reset(self) -> None:
        """Drop what was computed ahead, and wait until nothing is being computed."""
        for future in self._ahead:
            future.cancel()
        for future in self._ahead:
            if not future.cancelled():
                future.exception()
        self._ahead.clear()
        self._ready.clear()
        self._failed = None

    def close(self) -> None:
        """Stop the thread."""
        self.reset()
        if self._pool is not None:
            self._pool.shutdown(wait=True)


class ParallelPrefetcher(Generic[P, T]):
    """Results of `make(plan())`, made ahead of time on several threads, given out in the order of the plans.

    Only one thread plans at a time. Two results more are ahead than there are threads.
    """

    def __init__(self, plan: Callable[[], P], make: Callable[[P], T], threads: int):
        self._plan, self._make, self._threads = plan, make, threads
        self._pool = ThreadPoolExecutor(threads, "cntkpy-minibatches")
        self._planning = threading.Lock()
        self._ahead: deque[Future[T]] = deque()
        self._unplanned: deque[Future[T]] = deque()
        self._failed: BaseException | None = None

    def next(self) -> T:
        """The next result; what `plan` or `make` raised is raised here, after the results before it, ever again."""
        if self._failed is not None:
            raise self._failed
        # A thread that works at once keeps the core of the one that started it, which then goes on late.
        with nullcontext() if self._ahead else self._planning:
            while len(self._ahead) <= self._threads + 1:
                future: Future[T] = Future()
                self._ahead.append(future)
                self._unplanned.append(future)
                self._pool.submit(self._work)
        self._failed = self._ahead[0].exception()  # waits; nothing is lost if Ctrl-C ends that
        return self._ahead.popleft().result()

    def _work(self) -> None:
        with self._planning:
            future = self._unplanned.popleft()
            if not future.set_running_or_notify_cancel():
                return
            try:
                planned = self._plan()
            except Exception as error:
                future.set_exception(error)
                return
        try:
            future.set_result(self._make(planned))
        except Exception as error:
            future.set_exception(error)

    def reset(self) -> None:
        """Drop what was made ahead, and wait until nothing is being made."""
        for future in self._ahead:
            future.cancel()
        wait(self._ahead)
        self._ahead.clear()
        self._failed = None

    def close(self) -> None:
        """Stop the threads."""
        self.reset()
        self._pool.shutdown(wait=True)
