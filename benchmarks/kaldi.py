"""Matrices of Kaldi tables of every kind, next to the package `kaldi_native_io` (rows of benchmarks/speech.py)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DIM = 40
KINDS = {"CM": "kSpeechFeature", "CM2": "kTwoByteAuto", "CM3": "kOneByteAuto"}


def make_archives(count: int) -> list[str]:
    """Archives of utterances of 200 to 1000 frames in the current folder, by kaldi_native_io; their kinds."""
    import kaldi_native_io as kio

    rng = np.random.default_rng(0)
    rows = {f"u{i}": rng.standard_normal((rng.integers(200, 1000), DIM), np.float32) for i in range(count)}
    some = dict(list(rows.items())[: max(1, count // 10)])
    with kio.FloatMatrixWriter("ark,scp:FM.ark,FM.scp") as writer, kio.DoubleMatrixWriter("ark:DM.ark") as double:
        for key, one in rows.items():
            writer.write(key, one)
            double.write(key, one.astype(np.float64))
    with kio.FloatMatrixWriter("ark,t:text.ark") as writer:
        for key, one in some.items():
            writer.write(key, one)
    for kind, method in KINDS.items():
        with kio.CompressedMatrixWriter(f"ark:{kind}.ark") as writer:
            for key, one in rows.items():
                writer.write(key, one, getattr(kio.CompressionMethod, method))
    return ["ark:FM.ark", "scp:FM.scp", "ark:DM.ark", *(f"ark:{kind}.ark" for kind in KINDS), "ark:text.ark"]


def ours(specifier: str) -> float:
    """Read all matrices with cntkpy."""
    from cntkpy.readers.formats.kaldi.matrices import read_matrices

    return sum(float(rows[-1, -1]) for _, rows in read_matrices(specifier))


def theirs(specifier: str) -> float:
    """Read all matrices with kaldi_native_io; each is copied, for what it gives lives as long as the next one."""
    import kaldi_native_io as kio

    with kio.SequentialFloatMatrixReader(specifier) as reader:
        return sum(float(np.array(rows)[-1, -1]) for _, rows in reader)


def in_turns(repeat: int, *functions: Callable[[], Any]) -> list[list[tuple[float, float]]]:
    """Seconds, of the processor and of the clock, of functions called in turns; the first turn is not counted."""
    seconds: list[list[tuple[float, float]]] = [[] for _ in functions]
    for turn in range(repeat + 1):
        for one, found in zip(functions, seconds, strict=True):
            begin = time.process_time(), time.perf_counter()
            one()
            if turn:
                found.append((time.process_time() - begin[0], time.perf_counter() - begin[1]))
    return seconds


def ratio(ours: list[tuple[float, float]], theirs: list[tuple[float, float]], which: int) -> float:
    """Median of how often our time goes into theirs. which: 0 of the processor, 1 of the clock."""
    return statistics.median(b[which] / a[which] for a, b in zip(ours, theirs, strict=True))


def rows(count: int, repeat: int) -> list[str]:
    """Rows of a table: MB of file per second of processor time, with the peer's and the median ratio of each round.

    Raises:
        ValueError: if the two read different values.
    """
    found = []
    for specifier in make_archives(count):
        if ours(specifier) != theirs(specifier):
            raise ValueError(f"{specifier}: the two read different values")
        a, b = in_turns(repeat, lambda one=specifier: ours(one), lambda one=specifier: theirs(one))
        megabytes = Path(specifier[4:]).with_suffix(".ark").stat().st_size / 1e6
        speeds = [megabytes / statistics.median(cpu for cpu, _ in times) for times in (a, b)]
        found.append(f"| Kaldi, {specifier} | MB/s | {speeds[0]:,.0f} | {speeds[1]:,.0f} | {ratio(a, b, 0):.2f} |")
    return found
