"""Loading that is begun before it is needed: by threads of its own, or by the threads that come to need it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Load(Future[T], Generic[T]):
    """What a call gives, once somebody has made it. wanted: somebody needs it, it must not be cancelled."""

    def __init__(self, call: Callable[[], T]):
        super().__init__()
        self._call = call
        self.wanted = False

    def run(self) -> None:
        """Make the call, unless it was cancelled."""
        if self.set_running_or_notify_cancel():
            try:
                self.set_result(self._call())
            except BaseException as error:
                self.set_exception(error)


class Loads:
    """Calls in the order in which they were begun.

    threads: that many threads make them. 0: those do that ask for results: they make calls, also of others, until their
    own has its result, and wait for one another only when nothing is left to begin.
    """

    def __init__(self, threads: int):
        self._pool = ThreadPoolExecutor(threads, "cntkpy-chunks") if threads else None
        self._begun: deque[Load] = deque()

    def begin(self, call: Callable[[], T]) -> Load[T]:
        """Let a call be made some time."""
        load = Load(call)
        self._begun.append(load)
        if self._pool is not None:
            self._pool.submit(self._run_next)
        return load

    def result(self, load: Load[T]) -> T:
        """The result; what the call raised is raised here."""
        while self._pool is None and not load.done() and self._run_next():
            pass
        return load.result()

    def _run_next(self) -> bool:
        try:
            load = self._begun.popleft()
        except IndexError:
            return False
        load.run()
        return True

    def close(self) -> None:
        """Make no more calls."""
        self._begun.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
