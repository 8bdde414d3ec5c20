"""The benchmarks run, each in a small form: nothing else tells when what they measure has changed. Ratios beside peers
stay within bounds."""

import importlib
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks"
SMALLEST = {
    "compressed": "--size 8 --repeat 1",
    "gpu": "--device cpu --small --parts dnn-float dnn-bfloat16 reading copies tests samples",
    "images": "--pictures 256 --repeat 1",
    "jobs": "--minutes 0.01 --epochs 2 --goal 0.5",
    "language": "--words 50000",
    "local_response": "--rounds 1",
    "onnx_models": "--rounds 1",
    "speech": "--frames 100000 --utterances 20 --repeat 1",
    "startup": "",
    "text": "--size 4 --repeat 1",
    "training": "--epochs 5 --rounds 3",
}
"""What is not here takes minutes, has limits for a quiet machine, or needs PyTorch, simdjson or an accelerator."""


class Bound(NamedTuple):
    """Bounds of the ratios of a column, two to four times as wide as what the page has.

    Attributes:
        column: its head.
        rows: how the first cells of the rows begin; those of other rows are not judged.
        least, most: the bounds.
    """

    column: str
    rows: str = ""
    least: float = 0.0
    most: float = math.inf


BOUNDS = {
    "compressed": (Bound("/ zstd -dc, reader", least=0.15),),
    "images": (Bound("/ thread pool", "cntkpy", least=0.25),),
    "language": (Bound("/ plain Python", least=0.06), Bound("/ plain Python", "LUSequenceReader, 20", least=0.3)),
    "local_response": (Bound("/ none", most=2.0), Bound("/ none", "average pooling", most=1.8)),
    "onnx_models": (Bound("/ onnxruntime", most=10.0),),
    "speech": (Bound("/ peer", "HTK", least=0.2), Bound("/ peer", "Kaldi, ark:CM.ark", least=1.0)),
    "text": (Bound("/ numpy", "CTF, dense", least=1.2),),
    "training": (Bound("/ JAX, processor time", most=1.6),),
}
"""Few samples and the first use of kernels weigh more here than on the page, and other processes run meanwhile."""
ATTEMPTS = 3
"""A ratio is out of its bounds if it is so in each of them."""


def test_no_benchmark_has_the_name_of_a_package() -> None:
    """The folder of a file that is run goes before everything else on Python's path."""
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} | sys.stdlib_module_names
    assert len(packages) > len(sys.stdlib_module_names)
    assert not {path.stem for path in FOLDER.glob("*.py")} & packages


def cells(line: str) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def judged(table: list[str], bound: Bound) -> dict[str, float]:
    """The ratios that a bound is for, by the first cells of their rows."""
    column = cells(table[0]).index(bound.column)
    rows = [cells(line) for line in table[2:]]
    return {row[0]: float(row[column]) for row in rows if row[0].startswith(bound.rows) and row[column]}


def outside(table: list[str], bounds: tuple[Bound, ...]) -> list[str]:
    """What is out of bounds."""
    found: list[str] = []
    for bound in bounds:
        ratios = judged(table, bound)
        assert ratios, f"no row is judged by {bound}"
        found += [
            f"{row}: {bound.column} is {ratio}, not {bound.least} to {bound.most}"
            for row, ratio in ratios.items()
            if not bound.least <= ratio <= bound.most
        ]
    return found


def measured(name: str, folder: Path) -> list[str]:
    """The lines of the table of a benchmark."""
    words = [sys.executable, str(FOLDER / f"{name}.py"), *SMALLEST[name].split()]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("|")]


@pytest.mark.thorough
@pytest.mark.parametrize("name", SMALLEST)
def test_a_benchmark_runs(name: str, tmp_path: Path) -> None:
    if name == "speech" and sys.version_info >= (3, 14):
        pytest.skip("kaldi_native_io has no wheel for this Python")
    if name == "compressed" and not (shutil.which("zstd") and shutil.which("gzip")):
        pytest.skip("the programs zstd and gzip are not installed")
    wrong: list[str] = []
    for _ in range(ATTEMPTS):
        table = measured(name, tmp_path)
        head, line, row = table[:3]
        assert line.startswith("|---"), head
        assert len(cells(row)) == len(cells(head))
        if not (wrong := outside(table, BOUNDS.get(name, ()))):
            return
    pytest.fail("\n".join(wrong))


def test_a_ratio_is_judged() -> None:
    table = ["| reader | MB/s | / peer |", "|---|---:|---:|", "| a | 3 | 0.50 |", "| b | 1 | 2.00 |", "| c | 1 | |"]
    assert outside(table, (Bound("/ peer", least=0.5, most=2.0),)) == []
    assert outside(table, (Bound("/ peer", "b", most=1.9),)) == ["b: / peer is 2.0, not 0.0 to 1.9"]
    assert outside(table, (Bound("/ peer", least=0.6),)) == ["a: / peer is 0.5, not 0.6 to inf"]
    with pytest.raises(AssertionError, match="no row is judged"):
        outside(table, (Bound("/ peer", "c"),))


def test_the_data_of_whole_jobs_are_the_same_in_both_forms(tmp_path: Path) -> None:
    from benchmarks import jobs_data

    pixels, classes = jobs_data.digits(None, "test", 3)
    jobs_data.write_digits(pixels, classes, tmp_path / "digits.test")
    with np.load(tmp_path / "digits.test.npz") as file:
        assert np.array_equal(file["x"], pixels)
    lines = (tmp_path / "digits.test.ctf").read_text().splitlines()
    read, labels = jobs_data.digits_of(lines)
    assert np.array_equal(read, pixels)
    assert labels.tolist() == classes.tolist()

    sentences = jobs_data.sentences(None, "train", 4)
    jobs_data.write_sentences(sentences, tmp_path / jobs_data.FILES["slots"]["train"].removesuffix(".ctf"))
    again = jobs_data.sentences(tmp_path, "train", 3)
    assert len(again) == 3
    for (words, tags), (same, equal) in zip(sentences, again, strict=False):
        assert np.array_equal(words, same)
        assert np.array_equal(tags, equal)
    with np.load(tmp_path / "atis.train.npz") as file:
        assert file["lengths"].tolist() == [len(words) for words, _ in sentences]
        assert np.array_equal(file["y"], np.concatenate([tags for _, tags in sentences]))


def test_an_hour_of_work_has_lower_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    from benchmarks import jobs

    job = jobs.JOBS["slots"]
    assert jobs.Size(1).rates(job) == "0.003*2:0.0015*1"
    assert jobs.Size(1).widths(job) == {"Vector": 150, "Cells": 300}
    assert jobs.Size(60).rates(job) == "0.0002*30:0.0001*15"
    assert jobs.Size(60).widths(job) == jobs.Size(4).widths(job) == {"Vector": 300, "Cells": 600}
    assert jobs.Size(0.5).data == 0.5


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
