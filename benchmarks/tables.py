"""Rows per second of a Parquet table: lists of 128 floats and a label, minibatches of 256.

    python benchmarks/tables.py [--megabytes N] [--seconds S] [--repeat N]

Prints a table in Markdown. The peers are measured in turns with the reader, each in a process of its own that may use
one core or two: pyarrow in a DataLoader of PyTorch, by row groups and with one copy (one core: in the process; two: in
two workers), and Grain's ParquetIterDataset (two cores: with a thread that reads ahead). Shuffled, PyTorch shuffles the
rows of as many row groups as the reader does (`WINDOW`), Grain those of a window of `GRAIN_WINDOW` rows. Medians of
sweeps after a first one, each of at most S seconds. The last column compares with the faster of the two.

The peers are found in the folders that BENCHMARK_SITE names, which are looked at after all others:
`pip install --target FOLDER torch grain`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

DIM, CLASSES, SIZE, GROUP, WINDOW, GRAIN_WINDOW = 128, 10, 256, 1 << 16, 6, 1 << 14
OURS, TORCH, GRAIN = "cntkpy", "pyarrow, torch DataLoader", "Grain"
PEERS = (TORCH, GRAIN)
Sweep = Callable[[], Iterator[int]]


def make_data(path: Path, megabytes: int) -> int:
    """A file of normally distributed numbers; returns the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, rows = np.random.default_rng(1), megabytes * (1 << 20) // (4 * DIM)
    kind = pa.schema([("x", pa.list_(pa.float32(), DIM)), ("label", pa.int64())])
    with pq.ParquetWriter(path, kind) as writer:
        for begin in range(0, rows, GROUP):
            count = min(GROUP, rows - begin)
            values = pa.array(rng.standard_normal(count * DIM, np.float32))
            labels = pa.array(rng.integers(0, CLASSES, count))
            x = pa.FixedSizeListArray.from_arrays(values, DIM)
            writer.write_table(pa.table([x, labels], schema=kind), row_group_size=GROUP)
    return rows


def ours(path: str, shuffled: bool, cores: int) -> Sweep:
    """The reader: features dense, the label as one-hot. On one core no thread reads ahead."""
    from readers import create_reader

    reader = create_reader(
        f"randomize={str(shuffled).lower()};multiThreadedDeserialization={str(cores > 1).lower()};"
        f"prefetch={str(cores > 1).lower()};deserializers=(["
        f'type=ParquetDeserializer;file="{path}";input=[x=[dim={DIM}];label=[dim={CLASSES};format=sparse]]])'
    )
    epochs = iter(range(1 << 30))

    def sweep() -> Iterator[int]:
        reader.start_minibatch_loop(SIZE, next(epochs))
        while (minibatch := reader.get_minibatch()) is not None:
            yield minibatch.streams["x"].shape[1]

    return sweep


def torch(path: str, shuffled: bool, cores: int) -> Sweep:
    """pyarrow in an IterableDataset."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from torch import from_numpy  # pyright: ignore[reportMissingImports]
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info  # pyright: ignore[reportMissingImports]

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)

    class Rows(IterableDataset[Any]):
        """Minibatches of the row groups of a worker."""

        def __iter__(self) -> Iterator[Any]:
            info, file = get_worker_info(), pq.ParquetFile(path, memory_map=True)
            groups = np.arange(file.num_row_groups)
            rng = np.random.default_rng(time.time_ns() if info is None else info.seed - info.id)
            if shuffled:
                rng.shuffle(groups)
            if info is not None:
                groups = groups[info.id :: info.num_workers]
            step = WINDOW if shuffled else 1
            for at in range(0, len(groups), step):
                some = file.read_row_groups(groups[at : at + step].tolist(), use_threads=False).combine_chunks()
                x = some["x"].chunk(0).flatten().to_numpy().reshape(-1, DIM)
                labels = some["label"].chunk(0).to_numpy()
                order = rng.permutation(len(x)) if shuffled else None
                for begin in range(0, len(x), SIZE):
                    if order is None:
                        rows = slice(begin, begin + SIZE)
                        yield from_numpy(x[rows].copy()), from_numpy(labels[rows].copy())
                    else:
                        rows = order[begin : begin + SIZE]
                        yield from_numpy(x[rows]), from_numpy(labels[rows])

    workers: dict[str, Any] = {"num_workers": 2, "persistent_workers": True} if cores > 1 else {}
    loader = DataLoader(Rows(), batch_size=None, **workers)
    return lambda: (len(x) for x, _ in loader)


def grain(path: str, shuffled: bool, cores: int) -> Sweep:
    """Grain's own reader of Parquet."""
    import grain as g  # pyright: ignore[reportMissingImports]

    def sweep() -> Iterator[int]:
        data = g.experimental.ParquetIterDataset(path)
        if shuffled:
            data = g.experimental.WindowShuffleIterDataset(data, window_size=GRAIN_WINDOW, seed=1)
        data = data.batch(SIZE)
        if cores > 1:
            data = g.experimental.ThreadPrefetchIterDataset(data, prefetch_buffer_size=16)
        return (len(batch["x"]) for batch in data)

    return sweep


MAKERS: dict[str, Callable[[str, bool, int], Sweep]] = {OURS: ours, TORCH: torch, GRAIN: grain}


def measure(name: str, path: str, shuffled: bool, cores: int, seconds: float, repeat: int) -> float:
    """Rows per second in this process, on so many cores."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    sys.path += [folder for folder in os.environ.get("BENCHMARK_SITE", "").split(os.pathsep) if folder]
    sweep, found = MAKERS[name](path, shuffled, cores), []
    for _ in range(repeat + 1):
        begin, rows = time.perf_counter(), 0
        for count in sweep():
            rows += count
            if time.perf_counter() - begin > seconds:
                break
        found.append(rows / (time.perf_counter() - begin))
    return statistics.median(found[1:])


def in_turns(path: str, shuffled: bool, cores: int, arguments: argparse.Namespace) -> dict[str, float]:
    """Medians of rows per second of each, of processes that take turns."""
    found: dict[str, list[float]] = {name: [] for name in MAKERS}
    for _ in range(arguments.turns):
        for name in MAKERS:
            asked = json.dumps([name, path, shuffled, cores, arguments.seconds, arguments.repeat])
            done = subprocess.run(
                [sys.executable, __file__, "--one", asked], capture_output=True, text=True, check=False
            )
            if done.returncode:
                sys.stderr.write(f"{name} is left out: {done.stderr.strip().splitlines()[-1]}\n")
                continue
            found[name].append(float(done.stdout))
    return {name: statistics.median(values) for name, values in found.items() if values}


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the file")
    parser.add_argument("--seconds", type=float, default=20, help="longest sweep")
    parser.add_argument("--repeat", type=int, default=3, help="sweeps of a process after the first one")
    parser.add_argument("--turns", type=int, default=3, help="processes of each")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.one:
        print(measure(*json.loads(arguments.one)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.parquet")
        rows = make_data(path, arguments.megabytes)
        print("## Tables")
        print(
            f"A Parquet file of {path.stat().st_size >> 20} MB, {rows:,} rows of {DIM} floats and a label in row "
            f"groups of {GROUP:,}, minibatches of {SIZE}, the file in the page cache; rows/s\n"
        )
        print(f"| order, cores | {OURS} | {' | '.join(PEERS)} | / faster peer |\n|---|---:|---:|---:|---:|")
        for shuffled in (False, True):
            for cores in (1, 2):
                found = in_turns(str(path), shuffled, cores, arguments)
                fastest = max((found[name] for name in PEERS if name in found), default=None)
                ratio = "-" if fastest is None else f"{found[OURS] / fastest:.2f}"
                shown = [f"{found[name]:,.0f}" if name in found else "-" for name in MAKERS]
                print(f"| {'shuffled' if shuffled else 'file order'}, {cores} | {' | '.join(shown)} | {ratio} |")


if __name__ == "__main__":
    main()
