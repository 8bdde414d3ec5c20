"""Matrices of Kaldi archives of every kind, read one after the other, beside the package `kaldi_native_io`.

    pip install kaldi_native_io
    python benchmarks/kaldi.py [--utterances N] [--repeat N]
    python benchmarks/kaldi.py --minibatches

Prints a table in Markdown. Both are measured in the same run, in turns; medians, of processor time and of the ratios of
each turn. With --minibatches, frames per second
of a sweep of Kaldi2Reader in frame mode, beside HTKMLFReader on the same frames.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
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
    from readers.formats.kaldi.matrices import read_matrices

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


def matrices(count: int, repeat: int) -> None:
    """The table of archives."""
    print("| table | MB | cntkpy, ms | kaldi_native_io, ms | ratio | ratio by the clock |\n|---|---|---|---|---|---|")
    for specifier in make_archives(count):
        if ours(specifier) != theirs(specifier):
            raise SystemExit(f"{specifier}: the two read different values")
        a, b = in_turns(repeat, lambda one=specifier: ours(one), lambda one=specifier: theirs(one))
        size = Path(specifier[4:]).with_suffix(".ark").stat().st_size / 1e6
        times = [1e3 * statistics.median(cpu for cpu, _ in found) for found in (a, b)]
        ratios = f"{ratio(a, b, 0):.2f} | {ratio(a, b, 1):.2f}"
        print(f"| {specifier} | {size:.0f} | {times[0]:.0f} | {times[1]:.0f} | {ratios} |")


def minibatches(count: int, repeat: int) -> None:
    """Sweeps in frame mode, in random order, with a context window."""
    from readers import create_reader
    from readers.formats.htk.archive import write_archive
    from readers.formats.kaldi.specifier import parse_write_specifier
    from readers.formats.kaldi.write import open_writer

    rng = np.random.default_rng(0)
    rows = {f"u{i}": rng.standard_normal((rng.integers(200, 1000), DIM), np.float32) for i in range(count)}
    write_archive("h.ark", ((f"{key}.fea", one) for key, one in rows.items()), "h.scp")
    with open_writer(parse_write_specifier("ark,scp:k.ark,k.scp")) as file:
        for key, one in rows.items():
            file.write_matrix(key, one)
    with open_writer(parse_write_specifier("ark:labels.ark")) as file:
        for key, one in rows.items():
            file.write_integers(key, np.zeros(len(one), np.int32))
    Path("counts").write_text("".join(f"{key} {len(one)}\n" for key, one in rows.items()))
    entries = (f'"*/{key}.lab"\n0 {len(one) * 100000} s 0\n.\n' for key, one in rows.items())
    Path("l.mlf").write_text(f"#!MLF!#\n{''.join(entries)}")
    window = f"dim={DIM};contextWindow=11"
    texts = (
        f"readerType=HTKMLFReader;x=[{window};scpFile=h.scp];y=[mlfFile=l.mlf;labelDim=2]",
        f'readerType=Kaldi2Reader;x=[{window};scpFile=counts;rx="scp:k.scp"];y=[mlfFile="ark:labels.ark";labelDim=2]',
    )

    def sweep(text: str) -> None:
        reader = create_reader(text)
        reader.start_minibatch_loop(256, 0)
        while reader.get_minibatch() is not None:
            pass
        reader.close()

    htk, kaldi = in_turns(repeat, *(lambda text=text: sweep(text) for text in texts))
    frames = sum(map(len, rows.values()))
    htk, kaldi = (statistics.median(wall for _, wall in found) for found in (htk, kaldi))
    print(f"HTKMLFReader {frames / htk:,.0f} frames/s, Kaldi2Reader {frames / kaldi:,.0f}, ratio {htk / kaldi:.2f}")


def main() -> None:
    """Parse the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--utterances", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--minibatches", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        (minibatches if given.minibatches else matrices)(given.utterances, given.repeat)


if __name__ == "__main__":
    main()
