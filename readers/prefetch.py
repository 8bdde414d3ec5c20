"""One thing computed ahead on a background thread, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefetcher(Generic[T]):
    """Calls `produce` ahead of time, at most `depth` results in advance; depth 0 calls it when asked."""

    def __init__(self, produce: Callable[[], T], depth: int = 1):
        self._produce, self._depth = produce, depth
        self._pool = ThreadPoolExecutor(1, "cntkpy-minibatches") if depth else None
        self._ahead: deque[Future[T]] = deque()

    def next(self) -> T:
        """The next result; what `produce` raised is raised here."""
        if self._pool is None:
            return self._produce()
        while len(self._ahead) < self._depth + 1:
            self._ahead.append(self._pool.submit(self._produce))
        return self._ahead.popleft().result()

    def reset(self) -> None:
        """Drop what was computed ahead, and wait until nothing is being computed."""
        for future in self._ahead:
            future.cancel()
        for future in self._ahead:
            if not future.cancelled():
                future.exception()
        self._ahead.clear()

    def close(self) -> None:
        """Stop the thread."""
        self.reset()
        if self._pool is not None:
            self._pool.shutdown(wait=True)
