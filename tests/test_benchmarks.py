"""The benchmarks run, each in its smallest form: nothing else tells when what they measure has changed."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks"
SMALLEST = {
    "gpu": "--device cpu --small --parts dnn-float dnn-bfloat16 reading copies tests samples",
    "images": "--pictures 64 --repeat 1",
    "language": "--words 2000",
    "local_response": "--rounds 1",
    "onnx_models": "--rounds 1",
    "speech": "--frames 5000 --utterances 5 --repeat 1",
    "startup": "",
    "text": "--size 1 --repeat 1",
    "training": "--epochs 1 --rounds 1",
}
"""What is not here takes minutes, has limits for a quiet machine, or needs PyTorch or an accelerator."""


def test_no_benchmark_has_the_name_of_a_package() -> None:
    """The folder of a file that is run goes before everything else on Python's path."""
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} | sys.stdlib_module_names
    assert len(packages) > len(sys.stdlib_module_names)
    assert not {path.stem for path in FOLDER.glob("*.py")} & packages


@pytest.mark.thorough
@pytest.mark.parametrize("name", SMALLEST)
def test_a_benchmark_runs(name: str, tmp_path: Path) -> None:
    if name == "speech" and sys.version_info >= (3, 14):
        pytest.skip("kaldi_native_io has no wheel for this Python")
    words = [sys.executable, str(FOLDER / f"{name}.py"), *SMALLEST[name].split()]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *_, head, line, row = [line for line in done.stdout.splitlines() if line.startswith("|")][:3]
    assert line.startswith("|---"), head
    assert len(row.split("|")) == len(head.split("|"))


def _of_runs(place: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, dict[str, str]]:
    """`benchmarks/waiting.py`, and an environment for it, with bytecode."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    waiting = importlib.import_module("waiting")
    return waiting, waiting.with_bytecode(place)


@pytest.mark.thorough
def test_a_run_begins_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processor time to the first minibatch by that of importing JAX: 1.9 to 2.2 without caches, 0.9 with them."""
    waiting, environment = _of_runs(tmp_path, monkeypatch)
    new, again = waiting.waits(waiting.RUNS / "digits_uci.cntk", tmp_path, environment)
    assert 0.5 < again.first < 1.5
    assert again.first < new.first < 2.75
    assert again.first < again.whole
    assert new.first < new.whole


@pytest.mark.thorough
def test_a_run_takes_less_time_to_import_our_modules_than_jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of that time. Numba, whose import and kernels take 0.4 s, is not worth it for small data."""
    waiting, environment = _of_runs(tmp_path, monkeypatch)
    imports = importlib.import_module("imports")
    command, folder = waiting.cntkpy(waiting.RUNS / "digits_uci.cntk", waiting.RUNS / "data")
    with folder:
        words = [sys.executable, str(FOLDER / "imports.py"), *command[3:]]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    seconds = json.loads(done.stdout.splitlines()[-1])
    assert imports.of(imports.JAX, seconds) > 0.05
    assert 0.1 < imports.of(imports.OURS, seconds) / imports.of(imports.JAX, seconds) < 0.8
    assert "numba" not in seconds


def test_the_page_has_the_computed_tables() -> None:
    done = subprocess.run([sys.executable, FOLDER / "scaling.py"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in (ROOT / "docs" / "parallel.md").read_text(encoding="utf-8")
