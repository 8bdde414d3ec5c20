"""Values made ahead by background threads, in the order in which they were planned."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

P = TypeVar("P")
T = TypeVar("T")

READY_VALUES = 2
"""Values that are ahead besides those that the threads make."""


class Prefetch(Iterator[T], Generic[P, T]):
    """The values `make(plan())`, without end. The consumer plans, threads make.

    What `plan` or `make` raised is raised behind the values before it, and at every call after that until `reset`.

    Args:
        plan: Returns the plan of the next value; it should take little time.
        make: Makes a value; called on several threads at once.
        threads: Their number. `threads + READY_VALUES` values are ahead.
    """

    def __init__(self, plan: Callable[[], P], make: Callable[[P], T], threads: int):
        self._plan, self._make, self._depth = plan, make, threads + READY_VALUES
        self._pool = ThreadPoolExecutor(threads, "cntkpy-prefetch")
        self._ahead: deque[Future[T]] = deque()
        self._failure: BaseException | None = None

    def __next__(self) -> T:
        """Return the next value."""
        if self._failure is not None:
            raise self._failure
        while len(self._ahead) < self._depth:
            try:
                future = self._pool.submit(self._make, self._plan())
            except Exception as error:
                future = Future[T]()
                future.set_exception(error)
            self._ahead.append(future)
        self._failure = self._ahead[0].exception()  # waits; nothing is lost if Ctrl-C ends that
        return self._ahead.popleft().result()

    def reset(self) -> None:
        """Drop what was made ahead, and wait until nothing is being made."""
        for future in self._ahead:
            future.cancel()
        wait(self._ahead)
        self._ahead.clear()
        self._failure = None

    def close(self) -> None:
        """Stop the threads."""
        self.reset()
        self._pool.shutdown(wait=True)
