"""How long a run takes to begin and to end, once its caches are warm: as a multiple of importing JAX."""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = {"digits": "train", "slot_tagging": "train", "speech_lstm": "train", "language_model": "vocabulary:train"}
BOUNDS = {"digits": 1.5, "slot_tagging": 1.5, "speech_lstm": 1.5, "language_model": 2.5}
"""Of the processor time of an epoch; on a busy machine the ratios are 0.9, 1.1, 1.2 and 1.7."""
OURS = {"cntkpy"}
THEIRS = {"jax", "jaxlib", "ml_dtypes", "numpy", "opt_einsum"}
JAX = [sys.executable, "-c", "import jax, jax.numpy as n; n.zeros(1)+1"]


def test_python_does_not_look_through_all_objects_at_the_end() -> None:
    program = """
import atexit, gc, sys
atexit.register(lambda: print("frozen", gc.get_freeze_count()))
import cntkpy.__main__
sys.argv[1:] = ["--version"]
status = cntkpy.__main__.main()
print("threshold", gc.get_threshold()[0])
sys.exit(status)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    said = dict(line.split() for line in done.stdout.splitlines()[1:])
    assert int(said["threshold"]) == 400_000
    assert int(said["frozen"]) > 10_000


def test_a_check_imports_no_module_for_annotations_or_for_projects() -> None:
    program = """
import sys
import cntkpy.__main__
sys.argv[1:] = ["check", "sample_configs/digits.cntk"]
status = cntkpy.__main__.main()
print(*sys.modules)
sys.exit(status)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    unused = {"projects.project", "projects.toml_text", "context.run_context", "tracking.tracker", "checks.contracts"}
    assert not {f"cntkpy.commands.{name}" for name in unused} & set(done.stdout.split())


class Runs:
    """A sample with a cache folder of its own."""

    def __init__(self, sample: str, folder: Path) -> None:
        self._words = [f"configFile=sample_configs/{sample}.cntk", f"command={SAMPLES[sample]}"]
        self._words += [f"RunDir={folder / 'run'}", "train=[SGD=[maxEpochs=1]]"]
        self._folder = folder / "run"
        self._environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self._environment |= {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}

    def seconds(self, command: list[str]) -> float:
        """Processor time of a process."""
        process = subprocess.Popen(
            command, cwd=ROOT, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return used.ru_utime + used.ru_stime

    def again(self) -> float:
        """Processor time of another run."""
        shutil.rmtree(self._folder, ignore_errors=True)
        return self.seconds([sys.executable, "-m", "cntkpy", *self._words])

    def imported(self) -> Counter[str]:
        """Microseconds that modules take to be imported in another run, by package."""
        shutil.rmtree(self._folder, ignore_errors=True)
        command = [sys.executable, "-X", "importtime", "-m", "cntkpy", *self._words]
        done = subprocess.run(command, cwd=ROOT, env=self._environment, capture_output=True, text=True, check=True)
        found: Counter[str] = Counter()
        for line in re.finditer(r"^import time: +(\d+) \| +\d+ \| +(\w+)", done.stderr, re.MULTILINE):
            found[line[2]] += int(line[1])
        return found


@pytest.mark.thorough
@pytest.mark.optimised
@pytest.mark.skipif(not hasattr(os, "wait4"), reason="the processor time of a process is known on POSIX systems only")
@pytest.mark.parametrize("sample", SAMPLES)
def test_second_runs(sample: str, tmp_path: Path) -> None:
    runs = Runs(sample, tmp_path)
    runs.seconds(JAX)
    runs.again()
    ratios = [runs.again() / runs.seconds(JAX) for _ in range(3)]
    assert statistics.median(ratios) <= BOUNDS[sample]
    imported = runs.imported()
    assert not {"numba", "llvmlite"} & set(imported), "little data are read without them"
    ours, theirs = (sum(imported[name] for name in several) for several in (OURS, THEIRS))
    assert ours <= 0.7 * theirs
