"""An import of Numba that a signal ends in its middle: the kernels of the process work afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy

class Interrupts:
    "Raises once, when a module is imported, as the handler of a signal does."

    def __init__(self, *names):
        self.names = list(names)

    def find_spec(self, name, path=None, target=None):
        if self.names and name == self.names[0]:
            del self.names[0]
            raise KeyboardInterrupt

interrupts = Interrupts("numba.core.errors", "numba.core.typing.templates", "numba.np.ufunc", "llvmlite.binding")
sys.meta_path.insert(0, interrupts)
count = 0
while interrupts.names:
    try:
        from cntkpy.readers.kernels.words import read_at
    except KeyboardInterrupt:
        count += 1
from cntkpy.readers.kernels.words import read_at
from cntkpy.readers.kernels.random_kernels import mt_seed
print(count, len(mt_seed(1)))
"""


@pytest.mark.thorough
def test_kernels_work_after_an_interrupted_import_of_numba() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    assert (found.returncode, found.stdout.split()) == (0, ["4", "313"]), found.stderr
