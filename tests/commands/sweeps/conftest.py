"""Processes that a test has started end with it."""

from collections.abc import Iterator

import pytest
from sweep_processes import STARTED


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    yield
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            process.kill()
            process.wait(60)
