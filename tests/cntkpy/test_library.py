"""A library on top of CNTK 2 (`library/kitx`): layers, operators, losses, learners made of CNTK's (W9)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "library" / "use.py"


@pytest.mark.thorough
def test_a_library_on_top_of_cntk_is_imported_and_computes() -> None:
    """The program compares what the library computes with NumPy."""
    command = [sys.executable, "-m", "cntkpy.compat", str(PROGRAM)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "done"
