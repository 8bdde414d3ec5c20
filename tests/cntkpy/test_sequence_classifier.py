"""A program for CNTK's Python interface runs with other imports only; two workers train the same model as one."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).parent / "sequence_classifier.py"
LINE = (
    r"Finished Epoch\[{} of 10\]: \[Training\] loss = \d\.\d{{6}} \* 20, metric = (\d+\.\d\d)% \* 20 "
    r"\d+\.\d{{3}}s \( *\d+\.\d samples/s\);"
)


def program():
    spec = importlib.util.spec_from_file_location("sequence_classifier", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.thorough
def test_the_program_and_its_two_workers(tmp_path, capsys) -> None:
    program().main(tmp_path / "one.npz")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    found = [re.fullmatch(LINE.format(number), line) for number, line in enumerate(lines, 1)]
    assert all(found), lines
    assert float(found[2][1]) <= 5

    words = [sys.executable, "-m", "cntkpy", "run", "--workers", "2", str(PROGRAM), str(tmp_path / "two.npz")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Finished Epoch") == 4
    with np.load(tmp_path / "one.npz") as one, np.load(tmp_path / "two.npz") as two:
        for name in one:
            np.testing.assert_allclose(one[name], two[name], rtol=1e-4, atol=1e-5)
