"""Minibatches are made several at a time, and given out one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class OneByOne(Generic[T]):
    """Gives one by one what `make` makes several at a time, one at least; nothing of that is None."""

    def __init__(self, make: Callable[[], Iterable[T]]):
        self._make = make
        self._ready: Iterator[T] = iter(())
        self.interrupted = False
        """Whether Ctrl-C came while something was made: some of it may be lost, so all has to be made again."""

    def next(self) -> T:
        """The next one; what `make` raises is raised here."""
        try:
            one = next(self._ready, None)
            if one is None:
                self._ready = iter(self._make())
                one = next(self._ready)
        except BaseException as error:
            self.interrupted = not isinstance(error, Exception)
            raise
        return one

    def clear(self) -> None:
        """Forget what was made."""
        self._ready, self.interrupted = iter(()), False
