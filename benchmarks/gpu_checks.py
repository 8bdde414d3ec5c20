"""A part of gpu.py: the tests of what computes on the device, and all sample configurations as they are, on it.

Several at a time: the seconds are no measurement.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from on_device import options

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_configs"
TESTED = ["networks/nodes", "trainers/rules", "trainers/step", "trainers/fronts/config"]
"""Folders of tests that compute on the default device."""
AT_A_TIME, WORKERS = max(1, min(12, (os.cpu_count() or 1) * 3 // 4)), 3
"""Samples and folders of tests, and processes of each folder."""


def tests(folder: str, is_small: bool) -> str:
    """Run a folder of tests: a line of the table with what pytest says last and the tests that failed."""
    began = time.perf_counter()
    words = ["-q", "-p", "no:cacheprovider", "-n", str(WORKERS), str(ROOT / "tests" / folder)]
    words += ["-k", "ahead or lent or strategy"] if is_small else []
    done = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    failed = [line.removeprefix("FAILED ").partition(" - ")[0] for line in lines if line.startswith("FAILED ")]
    last = lines[-1].strip("= ") if lines else done.stderr.strip().rpartition("\n")[2]
    return f"| tests/{folder} | {last} | {' '.join(failed)} | | {time.perf_counter() - began:.0f} |"


def sample(path: Path, device: str, is_small: bool, output: Path) -> str:
    """Run a sample: a line of the table with its result of the last epoch and the device that its log names."""
    began, folder = time.perf_counter(), output / path.stem
    words = [f"configFile={path}", f"SampleDir={SAMPLES}", f"RunDir={folder}", f"deviceId={device}"]
    words += ["train=[SGD=[maxEpochs=1]]"] if is_small else []
    done = subprocess.run(
        [sys.executable, "-m", "cntkpy", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    results = re.findall(r"^Finished Epoch\[.*?\]: \[Training\] (.*?); totalSamplesSeen", said, re.MULTILINE)
    named = re.findall(r"Using (.*?)\.$", said, re.MULTILINE)
    ended = "ok" if done.returncode == 0 else said.strip().rpartition("\n")[2]
    cells = [ended, named[-1] if named else "", results[-1] if results else "", f"{time.perf_counter() - began:.0f}"]
    return f"| {path.name} | {' | '.join(cells)} |"


def lines(device: str, is_small: bool) -> Iterator[str]:
    """Lines of the table; what takes longest is begun first."""
    paths = [SAMPLES / "digits.cntk"] if is_small else sorted(SAMPLES.glob("*.cntk"), key=_long_first)
    folders = ["trainers/step"] if is_small else TESTED
    with tempfile.TemporaryDirectory() as output, ThreadPoolExecutor(AT_A_TIME) as pool:
        started = [pool.submit(sample, path, device, is_small, Path(output)) for path in paths]
        started += [pool.submit(tests, folder, is_small) for folder in folders]
        for done in as_completed(started):
            yield done.result()


def _long_first(path: Path) -> tuple[bool, str]:
    return path.stem not in ("spelling", "brainscript_resnet", "language_model"), path.name


if __name__ == "__main__":
    given = options(__doc__)
    print("| what | ended | device, or tests that failed | training, last epoch | seconds |")
    print("|---|---|---|---|---:|", flush=True)
    for line in lines(given.device, given.small):
        print(line, flush=True)
