"""Sessions of two workers: block momentum trains, and a killed session continues bit for bit."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cntkpy.trainers.parallel.launchers import LOST_AFTER

PROGRAM = Path(__file__).parent / "two_workers.py"


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    words = [sys.executable, "-m", "cntkpy", "run", "--workers", "2", str(PROGRAM), str(folder), *more]
    # The other worker need not wait the usual minute for signs of life of one that was killed.
    environment = os.environ | {LOST_AFTER: "10"}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The parameters after a run that nothing stopped, by the way of training together."""
    ends: dict[str, dict[str, np.ndarray]] = {}

    def of(which: str) -> dict[str, np.ndarray]:
        if which not in ends:
            folder = tmp_path_factory.mktemp(which)
            done = run(folder, which)
            assert done.returncode == 0, done.stderr
            losses = [float(one) for one in re.findall(r"loss = ([\d.]+)", done.stdout)]
            assert len(losses) == 4
            assert losses[3] < 0.75 * losses[0]
            with np.load(folder / "end.npz") as arrays:
                ends[which] = dict(arrays)
        return ends[which]

    return of


@pytest.mark.thorough
@pytest.mark.parametrize("minibatch, worker", [(4, 1), (7, 0), (29, 1), (46, 0)])
@pytest.mark.parametrize("which", ["block", "data"])
def test_a_killed_session_of_two_workers_goes_on_bit_for_bit(
    which: str, minibatch: int, worker: int, whole, tmp_path
) -> None:
    """Killed before the first checkpoint, after it, in the middle, and before the end."""
    expected = whole(which)
    killed = run(tmp_path, which, str(minibatch), str(worker))
    assert killed.returncode != 0
    assert not (tmp_path / "end.npz").exists()
    assert (tmp_path / "net.ckp").is_file() == (minibatch > 4)
    again = run(tmp_path, which)
    assert again.returncode == 0, again.stderr
    assert 1 <= again.stdout.count("Finished Epoch") <= (4 if minibatch < 13 else 3)
    with np.load(tmp_path / "end.npz") as found:
        assert set(found) == set(expected)
        for name in expected:
            np.testing.assert_array_equal(expected[name], found[name])
