"""Reading speed of compressed CTF files next to `zstd -dc FILE | reader`.

    python benchmarks/compressed.py [--size MB] [--repeat N]

The peer unpacks the file with the program zstd and reads the plain one at the same time, as a pipe would: two
processes. Ours has a thread that unpacks. All columns of a row are measured in the same run, in turns, and are medians.
The program zstd has to be installed.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import peers
from text import DATA, read
from uci import lines


def piped(packed: Path, plain: Path, inputs: str) -> None:
    """Unpack with zstd, and read the plain file meanwhile."""
    with subprocess.Popen(["zstd", "-dcq", str(packed)], stdout=subprocess.DEVNULL) as unpacking:
        read(plain, inputs)
        if unpacking.wait():
            raise SystemExit("zstd failed")


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100, help="megabytes of each file, unpacked")
    parser.add_argument("--repeat", type=int, default=5, help="measurements, of which the median is taken")
    arguments = parser.parse_args(argv)
    rng = np.random.default_rng(1)
    print("## Compressed text\nMB of plain text per second in file order, minibatches of 256, float, one thread.")
    print("Ratios in brackets: of processor time, that of zstd included.\n")
    print("| data | zstd -dc, reader | .zst | / zstd -dc, reader | .zst in frames of 1 MB | .gz |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        plain, one, frames, gzip = (Path(name) / f"data.{end}" for end in ("ctf", "zst", "frames.zst", "gz"))
        for title, make, inputs, _ in DATA:
            text = lines(make, rng, arguments.size)
            plain.write_text(text)
            subprocess.run(["zstd", "-qf", str(plain), "-o", str(one)], check=True)
            pieces = [text[at : at + 1_000_000].encode() for at in range(0, len(text), 1_000_000)]
            frames.write_bytes(
                b"".join(
                    subprocess.run(["zstd", "-qc"], input=piece, capture_output=True, check=True).stdout
                    for piece in pieces
                )
            )
            gzip.write_bytes(subprocess.run(["gzip", "-1c", str(plain)], capture_output=True, check=True).stdout)
            calls: dict[str, Callable[[], object]] = {
                "peer": lambda inputs=inputs: piped(one, plain, inputs),
                "zst": lambda inputs=inputs: read(one, inputs),
                "frames": lambda inputs=inputs: read(frames, inputs),
                "gz": lambda inputs=inputs: read(gzip, inputs),
            }
            seconds = peers.in_turns(calls, arguments.repeat)
            speed = {key: f"{len(text) / 1e6 / peers.median(found):,.0f}" for key, found in seconds.items()}
            cells = [
                speed["peer"],
                speed["zst"],
                peers.ratio(seconds["peer"], seconds["zst"]),
                speed["frames"],
                speed["gz"],
            ]
            print(f"| CTF, {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
