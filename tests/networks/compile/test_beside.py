"""Programs that are compiled beside: who needs one gets it, with its errors; how a process ends."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

from cntk_config.base.diagnostics import UserError
from cntk_config.base.stopping import Stopped
from networks.arrays.lazy import jax, jnp
from networks.compile import beside, executables
from networks.compile.executables import FOLDER, Program


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of caches, on a machine with four cores."""
    monkeypatch.setattr(executables, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(beside, "_cores", lambda: 4)
    return tmp_path / FOLDER


class Traced:
    """A function with the names of the threads that trace it."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def __call__(self, state: Any, given: Any) -> Any:
        self.threads.append(threading.current_thread().name)
        if given["x"].shape[0] == 7:
            raise UserError("BadShape", "no seven")
        return {"w": state["w"] * 2, "n": state["n"] + 1}, jnp.sum(given["x"])

    def program(self, identity: str = "this", **more: Any) -> Program:
        """As a new process would make it."""

        def function(state: Any, given: Any) -> Any:
            return self(state, given)

        return Program(function, identity, donate=1, **more)


def state() -> dict[str, Any]:
    """What is donated."""
    return {"w": jax.device_put(np.ones(3, np.float32), may_alias=False), "n": jnp.asarray(0)}


def given(size: int) -> dict[str, Any]:
    """Small data, as NumPy's arrays."""
    return {"x": np.arange(size, dtype=np.float32)}


def values(results: Any) -> list[bytes]:
    """All arrays bit for bit."""
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(results)]


def test_two_shapes_are_compiled_beside_and_used(folder: Path) -> None:
    expected = [values(Traced().program("alone")(state(), given(size))) for size in (2, 3)]
    traced = Traced()
    program, before = traced.program(), state()
    for size in (2, 3, 2):
        program.expect(before, given(size))
    assert [values(program(state(), given(size))) for size in (2, 3)] == expected
    assert traced.threads == ["cntkpy-compiler"] * 2
    assert program.shapes == 2
    assert not before["w"].is_deleted()  # only the call takes it over
    program(before, given(2))
    assert before["w"].is_deleted()
    assert len(list(folder.iterdir())) == 4
    assert jax.config.values["jax_persistent_cache_min_compile_time_secs"] < 1  # as before


def test_a_failure_is_raised_where_the_program_is_needed(folder: Path) -> None:
    program = Traced().program()
    program.expect(state(), given(7))
    program.expect(state(), given(2))
    program(state(), given(2))
    for _ in range(2):
        with pytest.raises(UserError, match="no seven"):
            program(state(), given(7))


def test_nothing_is_compiled_beside_where_no_core_is_free(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "_cores", lambda: 2)
    traced = Traced()
    program = traced.program()
    program.expect(state(), given(2))
    program(state(), given(2))
    assert traced.threads == [threading.current_thread().name]


def test_what_is_compiled_for_has_the_code_of_the_arguments(folder: Path) -> None:
    program = Traced().program()
    arguments = state(), {"x": given(5)["x"], "weak": jnp.asarray(1.0), "count": 3, "rate": np.float32(2)}
    leaves, tree = jax.tree.flatten(arguments)
    like = [executables._like(leaf) for leaf in leaves]
    texts = {program._jit(2, tree, (), "p")[0].lower(*some).as_text() for some in (leaves, like)}
    assert len(texts) == 1


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Room for one at a time, and something in it that ends when it is let go."""
    room, going_on, begun = threading.Semaphore(1), threading.Event(), threading.Event()
    monkeypatch.setattr(beside, "_room", lambda: room)
    first = beside.begin(lambda: begun.set() or going_on.wait(60))
    assert begun.wait(60)
    yield first
    going_on.set()
    first.result(60)


def test_what_nobody_has_begun_is_left_to_the_caller(held: Any) -> None:
    made: list[int] = []
    second = beside.begin(lambda: made.append(1))
    assert beside.awaited(second, lambda: False) is None
    assert second.cancelled() and not made


def test_waiting_ends_when_the_run_shall_stop(held: Any) -> None:
    begun = time.monotonic()
    with pytest.raises(Stopped):
        beside.awaited(held, lambda: True)
    assert time.monotonic() - begun < 10


def ended(lines: str, folder: Path) -> tuple[int, str]:
    """The status and the output of a process while something is being made."""
    program = f"""
import sys, threading, time
from pathlib import Path
from networks.compile import beside
begun = threading.Event()
{lines}
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_a_process_is_left_at_once(tmp_path: Path) -> None:
    lines = "beside.begin(lambda: begun.set() or time.sleep(1000)); begun.wait(); print('said'); beside.leave(3)"
    assert ended(lines, tmp_path) == (3, "said\n")


def test_a_program_of_a_user_waits(tmp_path: Path) -> None:
    lines = """
beside.begin(lambda: begun.set() or time.sleep(0.3) or Path("made").touch())
begun.wait()
raise SystemExit(4)
"""
    assert ended(lines, tmp_path) == (4, "")
    assert (tmp_path / "made").exists()


def test_nothing_is_left_where_nothing_is_being_made(tmp_path: Path) -> None:
    assert ended("beside.leave(3); print('here')", tmp_path) == (0, "here\n")


@pytest.mark.parametrize(("processors", "worth"), [("2", False), ("", True), ("all", True)])
def test_threads_that_a_user_allows_count(processors: str, worth: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cores: Callable[..., set[int]] = lambda process: set(range(8))  # noqa: E731
    monkeypatch.setattr(beside.os, "sched_getaffinity", cores, raising=False)
    monkeypatch.setattr(beside.os, "cpu_count", lambda: 8)
    monkeypatch.setenv("NPROC", processors)
    assert beside.is_worth() is worth
