"""Each worker of a machine has a share of its cores for itself."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cntkpy.cntk_config.base.systems import cores as systems
from cntkpy.commands.runner import cores

PROGRAM = """\
import os
words = [os.environ["CNTKPY_RANK"], *map(str, sorted(os.sched_getaffinity(0)))]
os.write(1, (" ".join(words) + chr(10)).encode())  # at once, for another worker writes, too
"""


@given(st.sets(st.integers(0, 200), min_size=1, max_size=64), st.integers(1, 70))
def test_shares_are_disjoint_and_nearly_equal(own: set[int], workers: int) -> None:
    found = cores.shares(own, workers)
    assert len(found) == workers
    if len(own) < workers:
        assert found == [own] * workers
    else:
        assert sorted(core for share in found for core in share) == sorted(own)
        assert max(map(len, found)) - min(map(len, found)) <= 1


def test_neighbours_stay_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processors of two physical cores, each of which pretends to be two."""
    places = {0: (0, 0), 1: (1, 0), 2: (0, 1), 3: (1, 1), 4: (0, 0), 5: (1, 0), 6: (0, 1), 7: (1, 1)}
    for core, (package, physical) in places.items():
        folder = tmp_path / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{package}\n")
        (folder / "core_id").write_text(f"{physical}\n")
    monkeypatch.setattr(systems, "TOPOLOGY", tmp_path)
    assert cores.shares(places, 2) == [{0, 4, 2, 6}, {1, 5, 3, 7}]
    assert cores.shares(places, 4) == [{0, 4}, {2, 6}, {1, 5}, {3, 7}]
    monkeypatch.setattr(systems, "TOPOLOGY", tmp_path / "nothing")
    assert cores.shares(places, 4) == [set(pair) for pair in list(pairwise(range(8)))[::2]]


@pytest.mark.skipif(sys.platform != "linux", reason="cores cannot be chosen here")
def test_workers_have_cores_of_their_own(tmp_path: Path) -> None:
    own = sorted(os.sched_getaffinity(0))
    workers = min(2, len(own))
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "cntkpy", "run", "--workers", str(workers), "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    told = sorted([int(word) for word in line.split()] for line in done.stdout.splitlines())
    assert [rank for rank, *_ in told] == list(range(workers))
    assert sorted(core for _, *share in told for core in share) == own


@pytest.mark.skipif(sys.platform != "linux", reason="cores cannot be chosen here")
def test_more_threads_than_the_share_have_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[set[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 3})
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, given: chosen.append(set(given)))
    monkeypatch.delenv(cores.ALL_CORES, raising=False)
    cores.use_for(3)
    assert not chosen  # not a worker
    monkeypatch.setenv(cores.ALL_CORES, "0,1,2,3")
    cores.use_for(2)
    assert not chosen
    cores.use_for(3)
    assert chosen == [{0, 1, 2, 3}]
