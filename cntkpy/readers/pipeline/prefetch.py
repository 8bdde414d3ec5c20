"""Minibatches made by several threads at once, in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from typing import Generic, TypeVar

P = TypeVar("P")
T = TypeVar("T")


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
        # A thread that works at once keeps the core of the one that started it, which then continues late.
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
