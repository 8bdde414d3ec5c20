"""The benchmarks run, each in a small form: nothing else tells when what they measure has changed. Ratios beside peers
stay within bounds."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from benchmarks import peers

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks"
SMALL = {
    "attention": "--rounds 1 --steps 1000 2000",
    "compressed": "--size 8 --repeat 3",
    "convolutions": "--all",
    "encoder_decoder": "sentences --rounds 3 --seconds 0.2",
    "gpu": "--device cpu --small --parts dnn-float",
    "images": "--pictures 256 --repeat 3",
    "jobs": "--minutes 0.05 --epochs 2 --goal 0",
    "language": "--words 200000",
    "local_response": "--rounds 2",
    "onnx_models": "--rounds 3",
    "parallel": "--samples 16384 --rounds 1 --processes 2",
    "sequences": "golden words sentences --rounds 5 --seconds 0.2",
    "speech": "--frames 400000 --utterances 300 --repeat 3",
    "startup": "",
    "steps": "--rounds 3 --seconds 0.2",
    "tables": "--megabytes 128 --seconds 10 --repeat 9 --turns 2",
    "text": "--size 8 --repeat 3",
    "text_limits": "--size 8 --index 100 --repeat 3",
    "training": "--epochs 20 --rounds 3",
    "waiting": "--repeat 1",
}
"""Of each benchmark a form that takes some seconds; that of GPUs runs on the CPU."""


class Compared(NamedTuple):
    """A column of ratios to a peer.

    Attributes:
        column: its head.
        today: by how the first cells of rows begin, the ratios of the small form on one core in November 2026.
        higher: whether a higher ratio is better.
        needs: the package of the peer, where `.[dev]` lacks it.
        factor: by how much a ratio may be worse than `today`.
    """

    column: str
    today: dict[str, float]
    higher: bool = False
    needs: str = ""
    factor: float = 1.5


OTHER = 2.0
"""The factor for peers that are other machine code than ours: ratios to them differ by up to 1.5 from one processor to
another. With the usual one, half the speed is out of bounds, and the noise of other work is not."""
ATTEMPTS = 3
"""A ratio is out of its bounds if it is so in each of them."""

CPU = Path("/proc/cpuinfo")
ATTENTION = 1.6 if CPU.exists() and "avx512f" in CPU.read_text(encoding="utf-8") else 0.7
"""PyTorch's attention uses vectors of 512 bits where the processor has them: 0.7 was measured on an AMD EPYC without
them, 1.4 to 1.7 on an Intel Xeon with them."""

COMPARED: dict[str, tuple[Compared, ...]] = {
    "attention": (
        Compared("/ JAX, in blocks", {"1,000": 1.15, "2,000": 1.1}),
        Compared("/ PyTorch", {"1,000": ATTENTION, "2,000": ATTENTION}, needs="torch", factor=OTHER),
    ),
    "compressed": (Compared("/ zstd -dc, reader", {"CTF": 1.05}, higher=True),),
    "convolutions": (
        Compared(
            "/ PyTorch",
            {
                "1x1, stride 1: 256 to 64 maps of 28, 8 samples, to the kernel": 1.0,
                "3x3, stride 1, 64 groups: 64 to 64 maps of 28, 16 samples, to the image": 1.1,
                "3x3x3, stride 2: 16 to 32 maps of 16, 4 samples, values": 1.25,
                "3x3, stride 1, 32 groups: 128 to 128 maps of 28, 8 samples, values": 2.1,
                "3x3, stride 1: 512 to 8 maps of 14, 8 samples, to the kernel": 0.7,
                "3x3, stride 2: 64 to 128 maps of 32, 16 samples, to the image": 0.9,
                "median": 1.1,
            },
            needs="torch",
            factor=OTHER,
        ),
    ),
    "encoder_decoder": (
        Compared("/ JAX", {"50-100-50, 10": 0.95}),
        Compared("/ PyTorch", {"50-100-50, 10": 0.37}, needs="torch", factor=OTHER),
    ),
    "gpu": (Compared("/ JAX", {"DNN": 0.9}, higher=True),),
    "images": (
        Compared("/ thread pool", {"cntkpy": 1.0}, higher=True, factor=OTHER),
        Compared("/ DataLoader", {"cntkpy": 2.1}, higher=True, needs="torch", factor=OTHER),
    ),
    "jobs": (
        Compared("/ PyTorch, processor", {"digits": 3.0, "slots": 2.3}, needs="torch", factor=OTHER),
        Compared("/ PyTorch, peak", {"digits": 1.42, "slots": 1.34}, needs="torch", factor=1.2),
    ),
    "language": (
        Compared(
            "/ parsing only",
            {
                "SequenceReader, class labels, 1 ": 0.5,
                "SequenceReader, class labels, 20": 1.6,
                "LUSequenceReader, 1 ": 1.5,
                "LUSequenceReader, 20 sentences": 5.0,
            },
            higher=True,
            factor=OTHER,
        ),
    ),
    "local_response": (Compared("/ none", {"no window": 1.06, "average": 1.1, "convolution": 1.17}),),
    "onnx_models": (
        Compared(
            "write / onnxruntime",
            {"MLP": 1.4, "convolutional": 1.25, "LSTM 2 x 128": 1.15, "LSTM 128 of nodes": 1.25},
        ),
        Compared(
            "eval / onnxruntime",
            {"MLP": 3.5, "convolutional": 1.45, "LSTM 2 x 128": 1.5, "LSTM 128 of nodes": 1.8},
            factor=OTHER,
        ),
    ),
    "parallel": (
        Compared("/ one process of one thread", {"2": 1.55}, higher=True),
        Compared("/ 2 independent runs", {"2": 0.8}, higher=True),
    ),
    "sequences": (
        Compared("/ JAX", {"3-3-4": 0.6, "17-32-3": 0.95, "50-100-5, 10": 0.9}),
        Compared("/ PyTorch", {"3-3-4": 0.07, "17-32-3": 0.2, "50-100-5, 10": 0.32}, needs="torch", factor=OTHER),
    ),
    "speech": (
        Compared(
            "/ peer",
            {
                "HTK": 0.9,
                "Kaldi, ark:FM": 0.9,
                "Kaldi, scp:FM": 0.8,
                "Kaldi, ark:DM": 1.1,
                "Kaldi, ark:CM.": 6.0,
                "Kaldi, ark:CM2": 0.95,
                "Kaldi, ark:CM3": 1.1,
                "Kaldi, ark:text": 3.2,
            },
            higher=True,
            factor=OTHER,
        ),
    ),
    "startup": (
        Compared(
            "/ `import jax`",
            {
                "`cntkpy check good": 0.31,
                "`cntkpy show": 0.25,
                "`cntkpy --version": 0.21,
                "parse and resolve": 1.4,
                "`cntkpy check`, 20,000": 2.4,
                "100,003 expression steps": 0.3,
                "ResNet-110": 1.75,
            },
        ),
    ),
    "steps": (
        Compared(
            "/ JAX", {"MLP": 0.8, "DNN": 1.0, "convolutional": 0.87, "LSTM 2": 0.66, "LSTM 48": 0.87, "sparse": 1.05}
        ),
        Compared(
            "/ PyTorch",
            {"MLP": 0.44, "DNN": 0.48, "convolutional": 1.05, "LSTM 2": 0.6, "LSTM 48": 0.7, "sparse": 0.31},
            needs="torch",
            factor=OTHER,
        ),
    ),
    "tables": (
        Compared("/ pyarrow", {"file order": 4.1, "shuffled": 2.3}, higher=True, factor=OTHER),
        Compared("/ fastest peer", {"file order": 4.1, "shuffled": 2.3}, higher=True, needs="torch", factor=OTHER),
    ),
    "text": (
        Compared(
            "/ numpy",
            {"CTF, dense integers": 9.3, "CTF, dense floats": 4.6, "UCI, whole": 7.3, "UCI, decimals": 4.2},
            higher=True,
            factor=OTHER,
        ),
    ),
    "text_limits": (
        Compared("cntkpy / newlines", {"dense integers": 0.1, "dense floats": 0.175}, higher=True, factor=OTHER),
        Compared(
            "/ simdjson", {"dense integers": 0.95, "dense floats": 0.62}, higher=True, needs="simdjson", factor=OTHER
        ),
        Compared(
            "/ to float32", {"dense integers": 1.25, "dense floats": 0.7}, higher=True, needs="simdjson", factor=OTHER
        ),
        Compared("/ `wc -l`", {"105 MB": 0.41}, higher=True, factor=OTHER),
    ),
    "training": (
        Compared("/ JAX, processor time", {"`cntkpy`": 1.1, "`train_minibatch`": 1.2, "`TrainingSession`": 0.9}),
        Compared(
            "/ PyTorch, packed",
            {"`train_minibatch`, empty": 2.3, "`train_minibatch`, full": 0.8},
            needs="torch",
            factor=OTHER,
        ),
    ),
    "waiting": (
        Compared(
            "to the first minibatch, new",
            {"`digits_uci`": 2.2, "`simple2d_simple`": 2.1, "`digits_conv`": 2.35, "`atis_lstm`": 4.1},
        ),
        Compared(
            "first, again", {"`digits_uci`": 1.05, "`simple2d_simple`": 1.1, "`digits_conv`": 1.1, "`atis_lstm`": 1.3}
        ),
        Compared(
            "whole, new", {"`digits_uci`": 2.8, "`simple2d_simple`": 3.0, "`digits_conv`": 3.1, "`atis_lstm`": 5.4}
        ),
        Compared(
            "whole, again", {"`digits_uci`": 1.2, "`simple2d_simple`": 1.4, "`digits_conv`": 1.3, "`atis_lstm`": 1.7}
        ),
        Compared("peak memory / parameters", {"1,000,000 x 128": 2.7}),
    ),
}
"""Ratios of processor time where a table has both. Each table of docs/benchmarks.md has one."""


def test_no_benchmark_has_the_name_of_a_package() -> None:
    """The folder of a file that is run goes before everything else on Python's path."""
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} | sys.stdlib_module_names
    assert len(packages) > len(sys.stdlib_module_names)
    assert not {path.stem for path in FOLDER.glob("*.py")} & packages


def cells(line: str) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(printed: str) -> list[list[list[str]]]:
    """The cells of the lines of each table, without the line under its head."""
    found: list[list[list[str]]] = []
    before = ""
    for line in printed.splitlines():
        if line.startswith("|"):
            if not before.startswith("|"):
                found.append([])
            found[-1].append(cells(line))
        before = line
    return [[table[0], *table[2:]] for table in found]


def ratio(cell: str) -> float:
    """The number of a cell; of two, the one in brackets, of processor time."""
    return float(cell.rpartition("(")[2].rstrip(")"))


def outside(printed: list[list[list[str]]], compared: Compared) -> list[str]:
    """What is out of bounds."""
    found: list[str] = []
    table = next(table for table in printed if compared.column in table[0])
    column = table[0].index(compared.column)
    for begin, today in compared.today.items():
        rows = [row for row in table[1:] if row[0].startswith(begin) and row[column]]
        assert rows, f"no row of {compared.column} begins with {begin}"
        for row in rows:
            now = ratio(row[column])
            if now < today / compared.factor if compared.higher else now > today * compared.factor:
                found.append(f"{row[0]}: {compared.column} is {row[column]}, was {today}")
    return found


def measured(name: str, words: str, folder: Path) -> list[list[list[str]]]:
    """The tables of a benchmark."""
    command = [sys.executable, str(FOLDER / f"{name}.py"), *words.split()]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = tables(done.stdout)
    for head, *rows in found:
        assert rows
        assert {len(row) for row in rows} == {len(head)}
    return found


def is_within_bounds(name: str, folder: Path) -> None:
    """Measure until all ratios are within their bounds; fail if they are not in any attempt."""
    judged = [one for one in COMPARED[name] if not one.needs or peers.available(one.needs)]
    wrong: list[str] = []
    for _ in range(ATTEMPTS):
        printed = measured(name, SMALL[name], folder)
        if not (wrong := [line for one in judged for line in outside(printed, one)]):
            return
    pytest.fail("\n".join(wrong))


@pytest.fixture
def one_core() -> Iterator[None]:
    """What a test starts has one core, where no thread waits for another one; each worker of pytest has its own."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    os.sched_setaffinity(0, {sorted(cores)[number % len(cores)]})
    yield
    os.sched_setaffinity(0, cores)


@pytest.mark.ratio
@pytest.mark.usefixtures("one_core")
@pytest.mark.parametrize("name", sorted(SMALL.keys() - {"parallel"}))
def test_ratios_on_one_core(name: str, tmp_path: Path) -> None:
    if name == "speech" and sys.version_info >= (3, 14):
        pytest.skip("kaldi_native_io has no wheel for this Python")
    if name == "compressed" and not (shutil.which("zstd") and shutil.which("gzip")):
        pytest.skip("the programs zstd and gzip are not installed")
    is_within_bounds(name, tmp_path)


@pytest.mark.ratio
@pytest.mark.skipif(peers.cores() < 2, reason="two workers need two cores")
def test_ratios_on_two_cores(tmp_path: Path) -> None:
    is_within_bounds("parallel", tmp_path)


@pytest.mark.thorough
def test_all_parts_of_the_benchmark_of_gpus_run(tmp_path: Path) -> None:
    parts = "dnn-float dnn-bfloat16 reading copies attention checks"
    assert len(measured("gpu", f"--device cpu --small --parts {parts}", tmp_path)) > 1


def test_every_table_of_the_page_has_a_bound() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    sections = page.split("\n## ")[1:]
    named = [re.search(r"python benchmarks/(\w+)\.py", section) for section in sections]
    assert {one[1] if one else "" for one in named} == COMPARED.keys() == SMALL.keys()


def test_a_ratio_is_judged() -> None:
    printed = tables(
        "text\n| a | / peer |\n|---|---:|\n| x | 1.0 (0.5) |\n| y | |\n\n| b | / other |\n|---|---|\n| z | 3 |"
    )
    assert outside(printed, Compared("/ peer", {"x": 0.34})) == []
    assert outside(printed, Compared("/ peer", {"x": 0.33})) == ["x: / peer is 1.0 (0.5), was 0.33"]
    assert outside(printed, Compared("/ peer", {"x": 0.74}, higher=True)) == []
    assert outside(printed, Compared("/ peer", {"x": 0.76}, higher=True)) == ["x: / peer is 1.0 (0.5), was 0.76"]
    assert outside(printed, Compared("/ other", {"z": 1.9})) == ["z: / other is 3, was 1.9"]
    with pytest.raises(AssertionError, match="no row of / peer begins with y"):
        outside(printed, Compared("/ peer", {"y": 1.0}))


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
