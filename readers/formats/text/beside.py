"""The kernel that reads text, compiled by a process of its own while this one compiles the other kernels.

That happens once on a machine, for kernels are kept. The one for text takes as long as all others that its reader
needs, and in one process Numba compiles one after the other.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from readers.common.little import BUDGET
from readers.common.threads import cores

from .parse import NO_RUNS, PADDING, StreamNames, parse
from .stream_format import StreamFormat

_PROGRAM = "import sys; from readers.formats.text.beside import compile_kernel; compile_kernel(sys.argv[1])"
_LONGEST = 60
"""Seconds after which it is not waited for any longer."""


class KernelBeside:
    """The kernel for numbers of this type. It begins to be compiled if the file is large and no kernel is kept."""

    def __init__(self, path: str, dtype: np.dtype):
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            if 2 * Path(path).stat().st_size > BUDGET and cores() > 1:
                self._begin(dtype)

    def _begin(self, dtype: np.dtype) -> None:
        from readers.common.jit import keeps_kernels, place_for_compiled_code

        folder = place_for_compiled_code()
        if not folder or not keeps_kernels() or any(Path(folder).rglob("read_kernels.read_and_parse*.nbi")):
            return
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, dtype.name],  # -P: nothing is imported from the current folder
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def wait(self) -> None:
        """Return when the kernel is kept; where that failed, the first call compiles it."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_LONGEST)
            self._process = None


def compile_kernel(dtype: str) -> None:
    """Compile the kernel for numbers of this type, which then is kept."""
    gc.disable()
    text = np.frombuffer(b"|x 1\n" + b"\n" * PADDING, np.uint8).copy()
    formats = [StreamFormat("x", "x", 1, False)]
    begin, end, samples = np.zeros(1, np.int64), np.full(1, 5, np.int64), np.ones(1, np.int32)
    parse(text, begin, end, samples, formats, StreamNames(formats), np.dtype(dtype), 0, runs=NO_RUNS)
