"""Signals that are passed on, and what the machine says of itself."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from cntkpy.cntk_config.base.systems import cores, memory, processes
from cntkpy.cntk_config.base.systems.memory import release_freed  # tests have another in its place, see conftest.py


class Child:
    """A process that was started: what is done to it."""

    def __init__(self, ended: bool = False) -> None:
        self.ended, self.done = ended, list[Any]()

    def poll(self) -> int | None:
        return 0 if self.ended else None

    def send_signal(self, number: int) -> None:
        self.done.append(number)

    def terminate(self) -> None:
        self.done.append("terminate")


def system(platform: str, terminal: bool) -> SimpleNamespace:
    return SimpleNamespace(platform=platform, stdin=SimpleNamespace(isatty=lambda: terminal))


@pytest.mark.parametrize(
    ("platform", "terminal", "number", "done"),
    [
        ("linux", False, signal.SIGINT, [signal.SIGINT]),
        ("linux", True, signal.SIGINT, []),  # the terminal sends it to all
        ("win32", False, signal.SIGINT, []),  # so does the console of Windows, which has no other way
        ("linux", True, signal.SIGTERM, ["terminate"]),
        ("win32", True, signal.SIGTERM, ["terminate"]),
    ],
)
def test_a_signal_is_passed_on(
    platform: str, terminal: bool, number: int, done: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "sys", system(platform, terminal))
    child, ended = Child(), Child(ended=True)
    for one in (child, ended):
        processes.pass_on(one, number)  # type: ignore[arg-type]
    assert child.done == done and not ended.done


def test_without_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service has none."""
    monkeypatch.setattr(processes, "sys", SimpleNamespace(platform="linux", stdin=None))
    child = Child()
    processes.pass_on(child, signal.SIGINT)  # type: ignore[arg-type]
    assert child.done == [signal.SIGINT]


def test_names_of_ends() -> None:
    assert processes.name_of_end(-signal.SIGTERM) == "SIGTERM"
    assert processes.name_of_end(-250) == "signal 250"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says when a process was started")
def test_the_start_of_a_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        started = processes.start_of(child.pid)
        assert started is not None and started.isdigit()
    finally:
        child.communicate()
    assert processes.start_of(child.pid) is None


def test_what_the_machine_has() -> None:
    assert 1 <= cores.count() <= (os.cpu_count() or 1)
    assert len(set(cores.of_process())) == cores.count()
    found = [memory.of_process(), memory.peak_of_process(), memory.of_machine()]
    known = [one for one in found if one is not None]
    assert all(one > 1 << 20 for one in known) and max(known, default=0) == (found[2] or max(known, default=0))


@pytest.mark.skipif(memory._trim() is None, reason="the C library has no malloc_trim")
def test_freed_memory_goes_back_to_the_system() -> None:
    blocks = [bytes(2000) for _ in range(50_000)]
    kept = blocks[::100]
    del blocks
    before = memory.of_process()
    release_freed()
    after = memory.of_process()
    assert before is not None
    assert after is not None
    assert after < before - (50 << 20)
    assert len(kept) == 500
