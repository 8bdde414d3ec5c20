"""Processes that cntkpy starts itself: Python never looks into the current folder for their modules.

The current folder is that of a configuration, which may have come with files called `commands.py` or `typing.py`.
"""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

HOME = Path(__file__).resolve().parents[3]
"""The folder that holds the package: the root of a clone."""
SAFE_PATH = "PYTHONSAFEPATH"


def cntkpy_command(words: list[str]) -> list[str]:
    """Return the command of another process of this program."""
    return [sys.executable, "-P", "-m", "cntkpy", *words]


def environment() -> dict[str, str]:
    """Return the environment of such a process: it finds the program where this one was found."""
    if not sys.path or not sys.path[0] or Path(sys.path[0]).resolve() != HOME:
        return dict(os.environ)
    previous_value = os.environ.get("PYTHONPATH")  # a clone that is not installed, run in its folder
    return os.environ | {"PYTHONPATH": f"{HOME}{os.pathsep}{previous_value}" if previous_value else str(HOME)}


@contextmanager
def safe_path() -> Generator[None]:
    """Processes that the standard library starts meanwhile do not look into the current folder, either."""
    previous_value = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if previous_value is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = previous_value
