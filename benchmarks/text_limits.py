"""Reading CTF next to what one core can do with the same bytes: finding newlines, copying, parsing as JSON by simdjson.

    pip install pysimdjson
    python benchmarks/text_limits.py [--size MB] [--repeat N]

Processor time, in turns, medians. Ours: from opening the file to minibatches of 256 in single precision, names and
dimensions checked. simdjson gets the same numbers as one array in memory; "to float32" copies them to a NumPy array.
The index: finding all sequences of a file of short ones, with other ids each, next to `wc -l`; then of the file after
the system has let go of it, next to a loop that only reads it, in turns; and the time to load a kept index.
"""

import argparse
import functools
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import simdjson
import text

from readers.formats.text.index import build_index


def processor_seconds(calls: dict[str, Callable[[], object]], repeat: int) -> dict[str, list[float]]:
    """Seconds of processor time of each call, in turns; the first turn, which compiles, is left out."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat + 1):
        for name, call in calls.items():
            begun = time.process_time()
            call()
            found[name].append(time.process_time() - begun)
    return {name: seconds[1:] for name, seconds in found.items()}


def row(name: str, content: str, path: Path, inputs: str, tags: tuple[str, ...], repeat: int) -> str:
    """A line of the table."""
    path.write_text(content)
    raw = content.encode()
    bare = functools.reduce(lambda left, tag: left.replace(tag, ""), tags, content)
    document, parser = f"[{','.join(bare.split())}]".encode(), simdjson.Parser()

    def as_array() -> np.ndarray:
        return np.frombuffer(parser.parse(document).as_buffer(of_type="d"), np.float64).astype(np.float32)

    calls: dict[str, Callable[[], object]] = {
        "cntkpy": lambda: text.read(path, inputs),
        "newlines": lambda: raw.count(b"\n"),
        "copy": lambda: bytearray(raw),
        "simdjson": lambda: parser.parse(document),
        "to float32": as_array,
    }
    seconds = processor_seconds(calls, repeat)
    speeds = [f"{len(raw) / 1e6 / statistics.median(found):,.0f}" for found in seconds.values()]
    ratios = [
        f"{statistics.median(peer / ours for peer, ours in zip(seconds[key], seconds['cntkpy'], strict=True)):.2f}"
        for key in ("simdjson", "to float32")
    ]
    return f"| {name} | {' | '.join([*speeds, *ratios])} |"


def numbered(content: str, times: int) -> Iterator[str]:
    """The lines repeated `times` times; the ids of each copy follow those of the copy before."""
    lines = [line.split(" ", 1) for line in content.splitlines()]
    count = int(lines[-1][0]) + 1
    for i in range(times):
        yield "".join(f"{int(key) + i * count} {rest}\n" for key, rest in lines)


def index_row(folder: Path, size: int, repeat: int) -> str:
    """The line of the index: megabytes per second of ours, by the clock and of processor time, and of `wc -l`."""
    path = folder / "sequences.ctf"
    with path.open("w") as file:
        file.writelines(numbered(text.short_sequences(np.random.default_rng(1), 10_000_000), max(1, size // 10)))
    megabytes = path.stat().st_size / 1e6
    found: dict[str, list[float]] = {"index": [], "wc": [], "processor": []}
    for _ in range(repeat):
        begun, used = time.perf_counter(), time.process_time()
        text.index(path)
        between, used_then = time.perf_counter(), time.process_time()
        subprocess.run(["wc", "-l", str(path)], capture_output=True, check=True)
        found["index"].append(between - begun)
        found["processor"].append(used_then - used)
        found["wc"].append(time.perf_counter() - between)
    ratio = statistics.median(peer / ours for peer, ours in zip(found["wc"], found["index"], strict=True))
    clock, peer, processor = (
        f"{megabytes / statistics.median(found[key]):,.0f}" for key in ("index", "wc", "processor")
    )
    return (
        f"The index of {megabytes:,.0f} MB: {clock} MB/s, {processor} MB/s of processor time; `wc -l` {peer} MB/s, "
        f"{ratio:.2f} of it."
    )


def read_all(path: Path) -> None:
    """Read a file and do nothing with it."""
    buffer = bytearray(1 << 20)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def cold_row(path: Path, repeat: int) -> str:
    """The line of the index of a file that is not in the page cache, and of the kept index (Linux)."""
    megabytes = path.stat().st_size / 1e6
    found: dict[str, list[float]] = {"index": [], "read": [], "kept": []}
    calls = {
        "index": lambda: text.index(path),
        "read": lambda: read_all(path),
        "kept": lambda: build_index(str(path), cache=True),
    }
    calls["kept"]()
    for _ in range(repeat):
        for name, call in calls.items():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            begun = time.perf_counter()
            call()
            found[name].append(time.perf_counter() - begun)
    ratio = statistics.median(peer / ours for peer, ours in zip(found["read"], found["index"], strict=True))
    clock, peer = (f"{megabytes / statistics.median(found[key]):,.0f}" for key in ("index", "read"))
    return (
        f"Not in the page cache: {clock} MB/s; a loop that only reads {peer} MB/s, {ratio:.2f} of it. The kept index: "
        f"{statistics.median(found['kept']):.2f} s."
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=40, help="megabytes of each file")
    parser.add_argument("--index", type=int, default=1000, help="megabytes of the file whose sequences are found")
    parser.add_argument("--repeat", type=int, default=9, help="measurements, of which the median is taken")
    arguments = parser.parse_args()
    print("## Text and what one core can do\nMB of text per second of processor time.\n")
    print("| CTF | cntkpy | newlines | copy | simdjson | to float32 | cntkpy / simdjson | / to float32 |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name, make, inputs, tags in text.DATA:
            if tags:
                content = make(np.random.default_rng(1), arguments.size * 1_000_000)
                print(row(name, content, Path(folder) / "data.ctf", inputs, tags, arguments.repeat), flush=True)
        print(f"\n{index_row(Path(folder), arguments.index, arguments.repeat)}")
        print(cold_row(Path(folder) / "sequences.ctf", arguments.repeat))


if __name__ == "__main__":
    main()
