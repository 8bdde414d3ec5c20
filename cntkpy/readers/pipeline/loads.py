"""Loading that is begun before it is needed: by threads of its own, or by the threads that come to need it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Load(Generic[T]):
    """Result of a call, made once by the first thread that needs it. wanted: it is needed and must not be cancelled."""

    def __init__(self, call: Callable[[], T]):
        self._call: Callable[[], T] | None = call
        self._making = Lock()
        self._value: list[T] = []
        self.error: Exception | None = None
        self.wanted = False

    @property
    def done(self) -> bool:
        """True if nothing remains to be done: the call has been made, or is not wanted any more."""
        return self._call is None

    def cancel(self) -> None:
        """Do not make the call, unless somebody wants it."""
        if not self.wanted:
            self._call = None

    def make(self, wait: bool = True) -> bool:
        """Make the call if it is not made; while another thread does, wait for that or not. Returns whether it is done.

        What interrupts it (Ctrl-C) leaves it to be made again.
        """
        if not self._making.acquire(blocking=wait):
            return False
        try:
            if (call := self._call) is not None:  # it may be cancelled meanwhile
                try:
                    self._value.append(call())
                except Exception as error:
                    self.error = error
                self._call = None
        finally:
            self._making.release()
        return True

    def result(self) -> T:
        """Return the result; what the call raised is raised whenever it is asked for."""
        self.make()
        if self.error is not None:
            raise self.error
        return self._value[0]


class Loads:
    """Calls in the order in which they were begun.

    threads: that many threads make them. 0: those do that ask for results; while another thread makes the call that
    they need, they make the next ones.
    """

    def __init__(self, threads: int):
        self._pool = ThreadPoolExecutor(threads, "cntkpy-chunks") if threads else None
        self._begun: deque[Load[Any]] = deque()

    def begin(self, call: Callable[[], T]) -> Load[T]:
        """Let a call be made some time."""
        load = Load(call)
        if self._pool is None:
            # Those that are made are let go of. To copy a deque is safe while other threads take from it.
            self._begun = deque([begun for begun in list(self._begun) if not begun.done] + [load])
        else:
            self._pool.submit(load.make)
        return load

    def result(self, load: Load[T]) -> T:
        """Return the result; what the call raised is raised here."""
        while not load.make(wait=not self._begun):
            try:
                self._begun.popleft().make(wait=False)
            except IndexError:  # other threads took the last ones
                continue
        return load.result()

    def close(self) -> None:
        """Make no more calls."""
        self._begun.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
