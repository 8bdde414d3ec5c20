"""`check --watch`: check again whenever a file changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

from cntkpy.commands.checks.folders import SUFFIXES

POLL_SECONDS = 0.3
MAX_FILES = 5000
"""Files that are watched."""
WATCHED = (*SUFFIXES, ".bs", ".ndl", ".mel", ".toml")
State = dict[str, tuple[int, int]]


def watch(check: Callable[[], int], folders: Iterable[Path]) -> NoReturn:
    """Check now, and again after each change of a file; a signal ends it.

    Args:
        check: Checks and prints.
        folders: Files below them are watched, those in hidden folders excepted.
    """
    watched = list(folders)
    while True:
        state = state_of(watched)
        check()
        print(f"{time.strftime('%H:%M:%S')} watching {len(state)} files; Ctrl-C ends", flush=True)
        while state_of(watched) == state:
            time.sleep(POLL_SECONDS)


def state_of(folders: Iterable[Path]) -> State:
    """Return times and sizes of the files below folders.

    Args:
        folders: The folders.
    """
    state: State = {}
    for folder in folders:
        for place, inside, names in os.walk(folder):
            inside[:] = sorted(name for name in inside if not name.startswith("."))
            for name in names:
                if not name.endswith(WATCHED) or len(state) >= MAX_FILES:
                    continue
                path = f"{place}{os.sep}{name}"
                try:
                    status = Path(path).stat()
                except OSError:
                    continue  # it is being written
                state[path] = status.st_mtime_ns, status.st_size
    return state
