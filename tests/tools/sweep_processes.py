"""Sweeps as processes: what was started, what their folders have."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

STARTED: list[subprocess.Popen] = []
"""They are killed after each test of a module that uses the fixture `nothing_is_left_running`."""


def rows(folder: Path) -> list[dict]:
    """The trials of a sweep that have ended."""
    path = folder / "trials.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def until(condition: Callable[[], bool]) -> None:
    """Wait for two minutes at most."""
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
