"""Programs that are made in threads of their own, beside what the main thread computes.

XLA compiles with two cores for most of the time, so this is of use on a machine with more. A thread inside XLA can
neither be stopped nor be there when the interpreter ends: a process that ends waits for it, or ends without a clean-up.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from cntk_config.base.stopping import Stopped

__all__ = ["awaited", "begin", "is_worth", "leave"]

Made = TypeVar("Made")

CORES = 4
"""With fewer, several programs at once take as long as one after the other: two cores 6.7 s instead of 6.3."""

EACH = 2
"""Cores for every program that is made."""

ASK = 0.2
"""Seconds between questions whether the run should stop."""

_lock = threading.Lock()
_running: set[Future[object]] = set()
_ending = threading.Event()


def _cores() -> int:
    """Those that this process may use."""
    count = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    given = os.environ.get("NPROC", "")
    return min(count, int(given)) if given.isdecimal() else count


def is_worth() -> bool:
    """Whether there are cores for more than one program at once."""
    return _cores() >= CORES


@functools.cache
def _room() -> threading.Semaphore:
    atexit.register(_wait_for_all)  # behind the import of JAX, so that it is called before JAX cleans up
    return threading.Semaphore(max(1, _cores() // EACH))


def begin(make: Callable[[], Made]) -> Future[Made]:
    """Call `make` in a thread of its own, as soon as there is room."""
    future: Future[Made] = Future()
    threading.Thread(target=_make, args=(future, make), name="cntkpy-compiler", daemon=True).start()
    return future


def _make(future: Future[Made], make: Callable[[], Made]) -> None:
    with _room():
        with _lock:
            if _ending.is_set() or not future.set_running_or_notify_cancel():
                return
            _running.add(future)  # pyright: ignore[reportArgumentType]
        try:
            future.set_result(make())
        except BaseException as error:  # it is raised where the result is wanted
            future.set_exception(error)
        finally:
            with _lock:
                _running.discard(future)  # pyright: ignore[reportArgumentType]


def awaited(future: Future[Made], stop: Callable[[], bool]) -> Made | None:
    """What was made; None: nobody has begun, and nobody will, so that the caller has to.

    Raises:
        Stopped: `stop` says so, while it is being made.
    """
    if future.cancel():
        return None
    while not wait([future], ASK).done:
        if stop():
            raise Stopped
    return future.result()


def leave(status: int) -> None:
    """End the process at once if something is still being made, which nobody needs any more; else do nothing."""
    with _lock:
        if not _running:
            _ending.set()
            return
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def _wait_for_all() -> None:
    with _lock:
        _ending.set()
        running = list(_running)
    wait(running)
