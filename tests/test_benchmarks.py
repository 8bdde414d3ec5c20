"""The benchmarks run, each in its smallest form: nothing else tells when what they measure has changed."""

import os
import subprocess
import sys
from pathlib import Path

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


def test_the_page_has_the_computed_tables() -> None:
    done = subprocess.run([sys.executable, FOLDER / "scaling.py"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in (ROOT / "docs" / "parallel.md").read_text(encoding="utf-8")
