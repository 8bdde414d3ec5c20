"""Sessions of two workers: block momentum trains, and a killed session goes on bit for bit."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trainers.parallel.launchers import LOST_AFTER

PROGRAM = Path(__file__).parent / "two_workers.py"


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    words = [sys.executable, "-m", "cntkpy", "run", "--workers", "2", str(PROGRAM), str(folder), *more]
    # The other worker need not wait the usual minute for signs of life of one that was killed.
    environment = os.environ | {LOST_AFTER: "10"}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.thorough
@pytest.mark.parametrize("which", ["block", "data"])
def test_a_killed_session_of_two_workers_goes_on_bit_for_bit(which: str, tmp_path) -> None:
    whole = run(tmp_path / "whole", which)
    assert whole.returncode == 0, whole.stderr
    losses = [float(one) for one in re.findall(r"loss = ([\d.]+)", whole.stdout)]
    assert len(losses) == 4
    assert losses[3] < 0.75 * losses[0]
    killed = run(tmp_path / "killed", which, "29")
    assert killed.returncode != 0
    assert not (tmp_path / "killed" / "end.npz").exists()
    assert (tmp_path / "killed" / "net.ckp").is_file()
    again = run(tmp_path / "killed", which)
    assert again.returncode == 0, again.stderr
    assert 1 <= again.stdout.count("Finished Epoch") < 4
    with np.load(tmp_path / "whole" / "end.npz") as one, np.load(tmp_path / "killed" / "end.npz") as two:
        for name in one:
            np.testing.assert_array_equal(one[name], two[name])
