"""Matrices of Kaldi tables of every kind, next to the package `kaldi_native_io` (rows of benchmarks/speech.py)."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import peers

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


def rows(count: int, repeat: int) -> list[str]:
    """Rows of a table: MB of file per second of processor time, with the peer's and the median ratio of each round.

    Raises:
        ValueError: if the two read different values.
    """
    found = []
    for specifier in make_archives(count):
        if ours(specifier) != theirs(specifier):
            raise ValueError(f"{specifier}: the two read different values")
        calls: dict[str, Callable[[], object]] = {
            "ours": lambda one=specifier: ours(one),
            "theirs": lambda one=specifier: theirs(one),
        }
        a, b = ([turn.processor for turn in turns] for turns in peers.in_turns(calls, repeat).values())
        megabytes = Path(specifier[4:]).with_suffix(".ark").stat().st_size / 1e6
        speeds = [megabytes / statistics.median(times) for times in (a, b)]
        ratio = statistics.median(map(operator.truediv, b, a))
        found.append(f"| Kaldi, {specifier} | MB/s | {speeds[0]:,.0f} | {speeds[1]:,.0f} | {ratio:.2f} |")
    return found
