"""Reading speed of text formats, from file to minibatches of 256, next to numpy.fromstring.

    python benchmarks/text.py [--size MB] [--repeat N] [--memory MB]

All columns of a row are measured in the same run, in turns, and are medians. "Two threads" is
multiThreadedDeserialization on a machine of two cores; the peer reads the same numbers without names, on one thread.
"""

from __future__ import annotations

import argparse
import functools
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import peers
import uci


def dense_integers(rng: np.random.Generator, number: int) -> str:
    """Pixels and a one-hot label: 784 + 10 whole numbers, four fifths of the pixels zero."""
    pixels = rng.integers(0, 256, 784) * (rng.random(784) > 0.8)
    label = np.eye(10, dtype=int)[number % 10]
    return f"|labels {' '.join(map(str, label))} |features {' '.join(map(str, pixels))}\n"


def dense_floats(rng: np.random.Generator, number: int) -> str:
    """363 numbers with six decimals."""
    return "|x " + " ".join(f"{v:.6f}" for v in rng.standard_normal(363)) + "\n"


def sparse_values(rng: np.random.Generator, number: int) -> str:
    """100 of 1,000,000 features and a label."""
    columns = np.sort(rng.integers(0, 1_000_000, 100))
    values = " ".join(f"{c}:{v:.3f}" for c, v in zip(columns, rng.random(100), strict=True))
    return f"{number} |x {values} |y {number % 2}\n"


def short_sequence(rng: np.random.Generator, number: int) -> str:
    """A sequence of one to five steps, one word and one tag each."""
    steps = range(1 + number % 5)
    return "".join(f"{number} |w {rng.integers(0, 1000)}:1 |t {rng.integers(0, 10)}:1\n" for _ in steps)


DENSE = "[dim={};format=dense]"
SPARSE = "[dim={};format=sparse]"
DATA: list[tuple[str, Callable[[np.random.Generator, int], str], str, tuple[str, ...]]] = [
    (
        "dense integers, 784+10 a line",
        dense_integers,
        f"labels={DENSE.format(10)};features={DENSE.format(784)}",
        ("|labels", "|features"),
    ),
    ("dense floats, 363 a line", dense_floats, f"x={DENSE.format(363)}", ("|x",)),
    ("sparse, 100 of 1,000,000", sparse_values, f"x={SPARSE.format(1_000_000)};y={DENSE.format(1)}", ()),
    ("short sparse sequences", short_sequence, f"w={SPARSE.format(1000)};t={SPARSE.format(10)}", ()),
]


def index(path: Path) -> None:
    """Find the sequences."""
    from cntkpy.readers.formats.text.index import build_index

    build_index(str(path))


def read(path: Path, inputs: str, *, randomize: bool = False, prefetch: bool = False, threads: bool = False) -> None:
    """One sweep in minibatches of 256, from opening the file on."""
    from cntkpy.readers import create_reader

    switches = {"randomize": randomize, "prefetch": prefetch, "multiThreadedDeserialization": threads}
    options = ";".join(f"{name}={str(value).lower()}" for name, value in switches.items()) + ";traceLevel=0"
    peers.sweep(create_reader(f'file="{path}";input=[{inputs}];{options}'))


PEAK = """
import sys
import time
from pathlib import Path
from cntkpy.readers import create_reader
begin, cpu = time.perf_counter(), time.process_time()
reader = create_reader(f'file="{sys.argv[1]}";input=[x=[dim=100;format=dense]];traceLevel=0;{sys.argv[2]}')
reader.start_minibatch_loop(256, 0)
count, quarter, size = 0, 0, reader.samples_per_sweep
while (m := reader.get_minibatch()) is not None:
    count += m.num_samples
    if count * 4 // size > quarter:
        quarter += 1
        print(int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) // 1024)
print(f"{time.perf_counter() - begin:.1f} {time.process_time() - cpu:.1f}")
"""


def memory(path: Path, megabytes: int) -> None:
    """Seconds, and peak memory after each quarter, of reading a large file from opening it on."""
    numbers = np.random.default_rng(1).integers(0, 10, (2000, 100)).tolist()
    lines = "".join(f"|x {' '.join(map(str, row))}\n" for row in numbers)
    with path.open("w") as file:
        for _ in range(megabytes * 1_000_000 // len(lines)):
            file.write(lines)
    root = Path(__file__).resolve().parents[1]
    print(f"\nA file of {megabytes} MB, lines of 200 bytes\n")
    print("| order | seconds | CPU seconds | MB/s | peak memory after each quarter, MB |\n|---|---:|---:|---:|---|")
    for name, options in {
        "default (random)": "",
        "default, two threads": "multiThreadedDeserialization=true",
        "of the file": "randomize=false",
    }.items():
        command = [sys.executable, "-c", PEAK, str(path), options]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
        *peaks, seconds, cpu = done.stdout.split()
        print(f"| {name} | {seconds} | {cpu} | {megabytes / float(seconds):.0f} | {', '.join(peaks)} |", flush=True)


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=40, help="megabytes of each file")
    parser.add_argument("--memory", type=int, default=0, help="read a file of so many megabytes as well")
    parser.add_argument("--repeat", type=int, default=9, help="measurements, of which the median is taken")
    arguments = parser.parse_args(argv)
    rng = np.random.default_rng(1)
    print("## Text formats\nMB of file per second, minibatches of 256, float; of UCI also from the binary cache.")
    print("Ratios in brackets: of processor time.\n")
    print("| data | file order | shuffled | two threads | / one | numpy.fromstring | / numpy |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make, inputs, tags in DATA:
            text = uci.lines(make, rng, arguments.size)
            path = Path(folder) / "data.ctf"
            path.write_text(text)
            calls: dict[str, Callable[[], object]] = {
                "order": lambda path=path, inputs=inputs: read(path, inputs),
                "shuffled": lambda path=path, inputs=inputs: read(path, inputs, randomize=True),
                "two threads": lambda path=path, inputs=inputs: read(path, inputs, prefetch=True, threads=True),
            }
            if tags:
                bare = functools.reduce(lambda left, tag: left.replace(tag, ""), tags, text)
                calls["numpy"] = lambda bare=bare: np.fromstring(bare, sep=" ", dtype=np.float32)
            seconds = peers.in_turns(calls, arguments.repeat)
            speeds = {key: f"{len(text) / 1e6 / peers.median(found):,.0f}" for key, found in seconds.items()}
            cells = [speeds[key] for key in ("order", "shuffled", "two threads")]
            cells.append(f"{peers.median(seconds['order']) / peers.median(seconds['two threads']):.1f}")
            if tags:
                cells += [speeds["numpy"], peers.ratio(seconds["numpy"], seconds["order"])]
            print(f"| CTF, {name} | {' | '.join(cells + [''] * (6 - len(cells)))} |", flush=True)
        print("\n".join(uci.rows(arguments.size, arguments.repeat)))
        if arguments.memory:
            memory(Path(folder) / "large.ctf", arguments.memory)


if __name__ == "__main__":
    main()
