"""Stacks of minibatches on their way to a device that has memory of its own.

A computation is begun and not waited for, and so is a copy to the device. While the device computes stack n,
stack n + 1 is read and copied to it:

    host      run n | read n+1 | wait for n-1 | place n+1 | run n+1 | read n+2 | wait for n | ...
    copies                                      copy n+1 ............          copy n+2 ...
    device    compute n ........................................ | compute n+1 .............

A stack so takes as long as the slowest of reading, copying and computing, and not as their sum. Two stacks are in the
memory of the device at most: n + 1 is placed after n - 1 was computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.trainers.step.stack import Stack

SLOW_SECONDS = 1.0
"""Seconds of reading a stack from which on the next is not read early: progress lines would wait for it."""


class PlacedStack(NamedTuple):
    """A stack as the compiled step takes it.

    Attributes:
        stack: the minibatches.
        batch: their data, in the memory of the device or on their way to it.
    """

    stack: Stack
    batch: Any


class StacksAhead(Iterator[Stack]):
    """The stacks of an epoch, of which the next can be read and placed before it is asked for.

    An error in doing so is raised when that stack is asked for, as if nothing were done early.

    Args:
        stacks: the stacks.
        place: begins to copy a stack to the device.
        early: whether anything is done early; without, `read` and `place` do nothing.

    Attributes:
        waited: seconds that stacks were waited for since this was set to 0.
    """

    def __init__(self, stacks: Iterator[Stack], place: Callable[[Stack], PlacedStack], early: bool):
        self._stacks, self._place, self._early = stacks, place, early
        self._next: Stack | None = None
        self._next_placed: PlacedStack | None = None
        self._failure: BaseException | None = None
        self._seconds = self.waited = 0.0

    def __next__(self) -> Stack:
        """Return the next stack; `take_placed` gives it as the step takes it."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        stack, self._next = self._next, None
        return self._read() if stack is None else stack

    def take_placed(self, stack: Stack) -> PlacedStack:
        """Return the stack that was given out last, placed early or now; nothing of it is kept here."""
        placed, self._next_placed = self._next_placed, None
        return self._place(stack) if placed is None else placed

    def read(self) -> None:
        """Read the next stack into the memory of the machine."""
        if self._early and self._seconds <= SLOW_SECONDS:
            try:
                self._next = self._read()
            except StopIteration:
                pass
            except (Exception, Stopped) as error:
                self._failure = error

    def place(self) -> None:
        """Begin to copy what `read` has read."""
        if self._next is not None:
            try:
                self._next_placed = self._place(self._next)
            except Exception as error:
                self._failure = error

    def _read(self) -> Stack:
        began = time.perf_counter()
        stack = next(self._stacks)
        self._seconds = time.perf_counter() - began
        self.waited += self._seconds
        return stack
