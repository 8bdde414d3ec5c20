"""UCIFastReader: text beside numpy.fromstring, the binary cache beside the text, and the memory of a large cache.

    python benchmarks/uci.py [--size MB] [--repeat N] [--large MB]

Prints a table in Markdown. All columns of a row are measured in the same run, in turns, and are medians.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


def pixels(rng: np.random.Generator, size: int) -> str:
    """A label and 784 whole numbers a line, four fifths of them zero."""
    lines = []
    while size > 0:
        values = rng.integers(0, 256, 784) * (rng.random(784) > 0.8)
        lines.append(f"{len(lines) % 10} {' '.join(map(str, values))}\n")
        size -= len(lines[-1])
    return "".join(lines)


def decimals(rng: np.random.Generator, size: int) -> str:
    """A label and 363 numbers with six decimals a line."""
    lines = []
    while size > 0:
        lines.append(f"{len(lines) % 10} " + " ".join(f"{v:.6f}" for v in rng.standard_normal(363)) + "\n")
        size -= len(lines[-1])
    return "".join(lines)


def read(folder: Path, dim: int, randomize: str, *, cache: bool) -> None:
    """One sweep in minibatches of 256, from opening the file on."""
    from readers import create_reader

    wanted = f'writerType=BinaryReader ; wfile="{folder}/data.bin"' if cache else ""
    reader = create_reader(
        f'readerType=UCIFastReader ; randomize={randomize} ; file="{folder}/data.txt" ; {wanted} ;'
        f"features=[dim={dim};start=1;sectionType=Data] ;"
        f'labels=[start=0;labelDim=10;labelType=Category;labelMappingFile="{folder}/map";sectionType=Labels]'
    )
    reader.start_minibatch_loop(256, 0)
    while reader.get_minibatch() is not None:
        pass
    reader.close()


def first_pass(folder: Path, dim: int) -> None:
    """The pass that writes the cache."""
    (folder / "data.bin").unlink(missing_ok=True)
    read(folder, dim, "none", cache=True)


def timed(calls: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Median seconds of each call, the calls taking turns; the first round is not counted."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(repeat + 1):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            if turn:
                times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(found) for name, found in times.items()}


LARGE = """
import re, sys, time
sys.path.insert(0, {root!r})
from readers import create_reader
reader = create_reader('readerType=BinaryReader ; file="{path}"')
begin = time.perf_counter()
reader.start_minibatch_loop(256, 0)
count = 0
while (minibatch := reader.get_minibatch()) is not None:
    count += minibatch.num_samples
seconds = time.perf_counter() - begin
print(count, seconds, int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]) // 1024)
"""


def large(folder: Path, megabytes: int) -> str:
    """Read a large binary file in a process of its own."""
    from cntk_config.parameters import parse
    from readers.writer import create_writer

    records, path = megabytes * 1_000_000 // 4000, folder / "large.bin"
    writer = create_writer(parse(f'wfile="{path}" ; wrecords={records} ; x=[dim=1000;sectionType=Data]'))
    block = np.random.default_rng(1).random((1000, 1000), np.float32)
    for first in range(0, records, 1000):
        writer.save({"x": block[: records - first]})
    writer.close()
    program = LARGE.format(root=str(ROOT), path=path)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    count, seconds, peak = done.stdout.split()
    assert int(count) == records
    speed = megabytes / float(seconds)
    return f"A binary file of {megabytes} MB: {speed:.0f} MB/s, peak memory of the process {peak} MB."


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=40, help="megabytes of each text file")
    parser.add_argument("--repeat", type=int, default=5, help="measurements, of which the median is taken")
    parser.add_argument("--large", type=int, default=1000, help="megabytes of the binary file")
    arguments = parser.parse_args(argv)
    rng = np.random.default_rng(1)
    print("MB of text per second, minibatches of 256, float\n")
    print(
        "| data | text | text, shuffled | numpy.fromstring | text / numpy | first with cache | later | later / first |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        (folder / "map").write_text("".join(f"{i}\n" for i in range(10)))
        for title, make, dim in (("whole numbers, 784 a line", pixels, 784), ("decimals, 363 a line", decimals, 363)):
            text = make(rng, arguments.size * 1_000_000)
            (folder / "data.txt").write_text(text)
            calls: dict[str, Callable[[], object]] = {
                "text": lambda dim=dim: read(folder, dim, "none", cache=False),
                "shuffled": lambda dim=dim: read(folder, dim, "auto", cache=False),
                "numpy": lambda text=text: np.fromstring(text, sep=" ", dtype=np.float32),
                "first": lambda dim=dim: first_pass(folder, dim),
                "later": lambda dim=dim: read(folder, dim, "none", cache=True),
            }
            seconds = timed(calls, arguments.repeat)
            speed = {key: f"{len(text) / 1e6 / value:.0f}" for key, value in seconds.items()}
            ratio = f"{seconds['numpy'] / seconds['text']:.1f}"
            gain = f"{seconds['first'] / seconds['later']:.1f}"
            shown = [speed["text"], speed["shuffled"], speed["numpy"], ratio, speed["first"], speed["later"], gain]
            print(f"| {title} | {' | '.join(shown)} |")
        print(f"\n{large(folder, arguments.large)}")


if __name__ == "__main__":
    main()
