"""Reading CTF next to what one core can do with the same bytes: finding newlines, copying, parsing as JSON by simdjson.

    python benchmarks/text_limits.py [--size MB] [--index MB] [--repeat N]

Processor time, in turns, medians. Ours: from opening the file to minibatches of 256 in single precision, names and
dimensions checked. simdjson gets the same numbers as one array in memory; "to float32" copies them to a NumPy array;
both are left out where it is not installed (`pip install pysimdjson`, see peers.py). The index: finding all sequences
of a file of short ones, with other ids each, next to `wc -l`; then of the file after the system has let go of it, next
to a loop that only reads it, in turns; and the time to load a kept index.
"""

import argparse
import functools
import operator
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import peers
import text
import uci

from cntkpy.readers.formats.text.index import IndexOptions, build_index

COLUMNS = ("cntkpy", "newlines", "copy", "simdjson", "to float32")


def processor_seconds(calls: dict[str, Callable[[], object]], repeat: int) -> dict[str, list[float]]:
    """Seconds of processor time of each call, in turns."""
    return {name: [one.processor for one in found] for name, found in peers.in_turns(calls, repeat).items()}


def row(name: str, content: str, path: Path, inputs: str, tags: tuple[str, ...], repeat: int) -> str:
    """A line of the table."""
    path.write_text(content)
    raw = content.encode()
    bare = functools.reduce(lambda left, tag: left.replace(tag, ""), tags, content)
    calls: dict[str, Callable[[], object]] = {
        "cntkpy": lambda: text.read(path, inputs),
        "newlines": lambda: raw.count(b"\n"),
        "copy": lambda: bytearray(raw),
        **by_simdjson(f"[{','.join(bare.split())}]".encode()),
    }
    seconds = processor_seconds(calls, repeat)
    speeds = [f"{len(raw) / 1e6 / statistics.median(seconds[key]):,.0f}" if key in seconds else "" for key in COLUMNS]
    ratios = [
        f"{statistics.median(map(operator.truediv, seconds[key], seconds['cntkpy'])):.{digits}f}"
        if key in seconds
        else ""
        for key, digits in (("newlines", 3), ("simdjson", 2), ("to float32", 2))
    ]
    return f"| {name} | {' | '.join([*speeds, *ratios])} |"


def by_simdjson(document: bytes) -> dict[str, Callable[[], object]]:
    """What simdjson does with a document, if it is installed."""
    if not peers.available("simdjson"):
        return {}
    import simdjson  # pyright: ignore[reportMissingImports]

    parser = simdjson.Parser()

    def as_array() -> np.ndarray:
        return np.frombuffer(parser.parse(document).as_buffer(of_type="d"), np.float64).astype(np.float32)

    return {"simdjson": lambda: parser.parse(document), "to float32": as_array}


def numbered(content: str, times: int) -> Iterator[str]:
    """The lines repeated `times` times; the ids of each copy follow those of the copy before."""
    lines = [line.split(" ", 1) for line in content.splitlines()]
    count = int(lines[-1][0]) + 1
    for i in range(times):
        yield "".join(f"{int(key) + i * count} {rest}\n" for key, rest in lines)


def index_row(folder: Path, size: int, repeat: int) -> str:
    """The line of the index: megabytes per second of processor time of ours and of `wc -l`, and the ratio."""
    path = folder / "sequences.ctf"
    with path.open("w") as file:
        content = uci.lines(text.short_sequence, np.random.default_rng(1), 10)
        file.writelines(numbered(content, max(1, size // 10)))
    megabytes = path.stat().st_size / 1e6
    calls: dict[str, Callable[[], object]] = {
        "cntkpy": lambda: text.index(path),
        "wc": lambda: subprocess.run(["wc", "-l", str(path)], capture_output=True, check=True),
    }
    seconds = processor_seconds(calls, repeat)
    ratio = statistics.median(map(operator.truediv, seconds["wc"], seconds["cntkpy"]))
    speeds = [f"{megabytes / statistics.median(found):,.0f}" for found in seconds.values()]
    return f"| {megabytes:,.0f} MB | {' | '.join(speeds)} | {ratio:.2f} |"


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
        "kept": lambda: build_index(str(path), IndexOptions(cache=True)),
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
    print(f"| CTF | {' | '.join(COLUMNS)} | cntkpy / newlines | / simdjson | / to float32 |\n|---{'|---:' * 8}|")
    with tempfile.TemporaryDirectory() as folder:
        for name, make, inputs, tags in text.DATA:
            if tags:
                content = uci.lines(make, np.random.default_rng(1), arguments.size)
                print(row(name, content, Path(folder) / "data.ctf", inputs, tags, arguments.repeat), flush=True)
        print("\n| the index of | cntkpy | `wc -l` | / `wc -l` |\n|---|---:|---:|---:|")
        print(f"{index_row(Path(folder), arguments.index, arguments.repeat)}\n")
        print(cold_row(Path(folder) / "sequences.ctf", arguments.repeat))


if __name__ == "__main__":
    main()
