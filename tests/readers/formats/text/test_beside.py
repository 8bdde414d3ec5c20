"""The kernel that a process of its own compiles."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from readers.common import jit
from readers.common.little import BUDGET
from readers.common.threads import cores
from readers.formats.text import beside
from readers.formats.text.beside import KernelBeside

LINE = b"|x 1 2\n"


@pytest.fixture
def large(tmp_path: Path) -> str:
    """A file that is not read without kernels."""
    path = tmp_path / "data.ctf"
    path.write_bytes(LINE * (BUDGET // len(LINE)))
    return str(path)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of other processes, which only end; no kernel is kept."""
    commands: list[list[str]] = []
    popen = subprocess.Popen

    def start(command: list[str], **options: int) -> subprocess.Popen[bytes]:
        commands.append(command)
        return popen([sys.executable, "-c", "raise SystemExit(1)"], **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(jit, "place_for_compiled_code", lambda: str(tmp_path))
    monkeypatch.setattr(beside, "cores", lambda: 2)
    return commands


def test_only_the_first_run_over_a_large_file_needs_another_process(
    large: str, started: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    little = tmp_path / "little.ctf"
    little.write_bytes(LINE)
    kernel = np.dtype(np.float64)
    for path in (str(little), str(tmp_path / "missing.ctf")):
        KernelBeside(path, kernel).wait()
    with monkeypatch.context() as one_core:
        one_core.setattr(beside, "cores", lambda: 1)
        KernelBeside(large, kernel).wait()
    assert not started
    KernelBeside(large, kernel).wait()
    assert [command[-1] for command in started] == ["float64"]
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/read_kernels.read_and_parse-17.py311.nbi").touch()
    KernelBeside(large, kernel).wait()
    assert len(started) == 1


def test_a_file_is_read_where_the_other_process_fails(large: str, started: list[list[str]]):
    from readers import create_reader

    reader = create_reader(f'file="{large}";input=[x=[dim=2;format=dense]];randomize=false;traceLevel=0')
    assert len(started) == 1
    reader.start_minibatch_loop(3, 0, requested_epoch_samples=3)
    minibatch = reader.get_minibatch()
    assert minibatch is not None
    np.testing.assert_array_equal(minibatch.streams["x"].reshape(-1, 2), [[1, 2]] * 3)
    reader.close()


@pytest.mark.thorough
@pytest.mark.skipif(cores() < 2, reason="one core: no other process")
@pytest.mark.parametrize("precision", ["float", "double"])
def test_the_other_process_compiles_the_kernel(large: str, tmp_path: Path, precision: str):
    program = f"""
        from readers import create_reader
        from readers.formats.text.read_kernels import read_and_parse
        reader = create_reader('file="{large}";input=[x=[dim=2;format=dense]];traceLevel=0;precision={precision}')
        reader.start_minibatch_loop(256, 0)
        reader.get_minibatch()
        print(len(read_and_parse.stats.cache_hits), len(read_and_parse.stats.cache_misses))
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")},
    )  # fmt: skip
    assert done.stdout == "1 0\n", done.stderr
