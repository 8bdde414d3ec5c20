"""Rows per second of a Parquet table: lists of 128 floats and a label, minibatches of 256.

    python benchmarks/tables.py [--megabytes N] [--seconds S] [--repeat N]

Prints a table in Markdown. The peers are measured in turns with the reader, each in a process of its own that may use
one core or, where the machine has them, two: a loop over pyarrow, by row groups and with one copy (on one core only);
the same in a DataLoader of PyTorch (one core: in the process; two: in two workers); and Grain's ParquetIterDataset (two
cores: with a thread that reads ahead). Shuffled, the loop shuffles the rows of as many row groups as the reader does
(`WINDOW`), Grain those of a window of `GRAIN_WINDOW` rows. Medians of sweeps after a first one, each of at most S
seconds. Ratios are medians of those of each turn; the last column compares with the fastest of the peers. PyTorch and
Grain are left out where they are not installed, see peers.py.
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
import peers

DIM, CLASSES, SIZE, GROUP, WINDOW, GRAIN_WINDOW = 128, 10, 256, 1 << 16, 6, 1 << 14
OURS, PYARROW, TORCH, GRAIN = "cntkpy", "pyarrow", "pyarrow, torch DataLoader", "Grain"
NEEDS = {TORCH: "torch", GRAIN: "grain"}
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
    from cntkpy.readers import create_reader

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


def by_row_groups(path: str, groups: np.ndarray, rng: np.random.Generator | None) -> Iterator[Any]:
    """Minibatches of row groups, in their order or shuffled within windows of them: features and labels."""
    import pyarrow.parquet as pq

    file, step = pq.ParquetFile(path, memory_map=True), 1 if rng is None else WINDOW
    for at in range(0, len(groups), step):
        some = file.read_row_groups(groups[at : at + step].tolist(), use_threads=False).combine_chunks()
        x = some["x"].chunk(0).flatten().to_numpy().reshape(-1, DIM)
        labels = some["label"].chunk(0).to_numpy()
        order = None if rng is None else rng.permutation(len(x))
        for begin in range(0, len(x), SIZE):
            if order is None:
                rows = slice(begin, begin + SIZE)
                yield x[rows].copy(), labels[rows].copy()
            else:
                rows = order[begin : begin + SIZE]
                yield x[rows], labels[rows]


def pyarrow(path: str, shuffled: bool, cores: int) -> Sweep | None:
    """A loop over pyarrow, on one core."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if cores > 1:
        return None
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)

    def sweep() -> Iterator[int]:
        groups, rng = np.arange(pq.ParquetFile(path).num_row_groups), np.random.default_rng() if shuffled else None
        if rng is not None:
            rng.shuffle(groups)
        return (len(x) for x, _ in by_row_groups(path, groups, rng))

    return sweep


def torch(path: str, shuffled: bool, cores: int) -> Sweep:
    """The same in an IterableDataset."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from torch import from_numpy  # pyright: ignore[reportMissingImports]
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info  # pyright: ignore[reportMissingImports]

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)

    class Rows(IterableDataset[Any]):
        """Minibatches of the row groups of a worker."""

        def __iter__(self) -> Iterator[Any]:
            info, groups = get_worker_info(), np.arange(pq.ParquetFile(path).num_row_groups)
            rng = np.random.default_rng(time.time_ns() if info is None else info.seed - info.id) if shuffled else None
            if rng is not None:
                rng.shuffle(groups)
            if info is not None:
                groups = groups[info.id :: info.num_workers]
            for x, labels in by_row_groups(path, groups, rng):
                yield from_numpy(x), from_numpy(labels)

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


MAKERS: dict[str, Callable[[str, bool, int], Sweep | None]] = {OURS: ours, PYARROW: pyarrow, TORCH: torch, GRAIN: grain}


def measure(name: str, path: str, shuffled: bool, cores: int, seconds: float, repeat: int) -> list[float]:
    """Rows per second, and per second of processor time of this process, on so many cores; nothing if it cannot."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    if name in NEEDS and not peers.available(NEEDS[name]):
        return []
    sweep = MAKERS[name](path, shuffled, cores)
    if sweep is None:
        return []
    found: list[tuple[float, float]] = []
    for _ in range(repeat + 1):
        begin, used, rows = time.perf_counter(), time.process_time(), 0
        for count in sweep():
            rows += count
            if time.perf_counter() - begin > seconds:
                break
        found.append((rows / (time.perf_counter() - begin), rows / (time.process_time() - used)))
    return [statistics.median(speeds) for speeds in zip(*found[1:], strict=True)]


def in_turns(path: str, shuffled: bool, cores: int, arguments: argparse.Namespace) -> dict[str, list[list[float]]]:
    """What `measure` finds in processes that take turns."""
    found: dict[str, list[list[float]]] = {name: [] for name in MAKERS}
    for _ in range(arguments.turns):
        for name in MAKERS:
            asked = json.dumps([name, path, shuffled, cores, arguments.seconds, arguments.repeat])
            command = [sys.executable, __file__, "--one", asked]
            speeds = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            found[name] += [speeds] if speeds else []
    return {name: speeds for name, speeds in found.items() if speeds}


def ratio(ours: list[list[float]], theirs: list[list[float]], cores: int) -> str:
    """The medians of the ratios of each turn: by the clock and, on one core, where no work is in other processes, of
    processor time in brackets."""
    clock, processor = (statistics.median(a[k] / b[k] for a, b in zip(ours, theirs, strict=True)) for k in range(2))
    return f"{clock:.2f} ({processor:.2f})" if cores == 1 else f"{clock:.2f}"


def row(title: str, cores: int, found: dict[str, list[list[float]]]) -> str:
    """A line of the table."""
    speeds = {name: statistics.median(clock for clock, _ in turns) for name, turns in found.items()}
    cells = [f"{speeds[name]:,.0f}" if name in speeds else "" for name in MAKERS]
    fastest = max((name for name in found if name != OURS), key=speeds.__getitem__, default="")
    cells += [ratio(found[OURS], found[peer], cores) if peer in found else "" for peer in (PYARROW, fastest)]
    return f"| {title}, {cores} | {' | '.join(cells)} |"


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
        print(json.dumps(measure(*json.loads(arguments.one))))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.parquet")
        rows = make_data(path, arguments.megabytes)
        print("## Tables")
        print(
            f"A Parquet file of {path.stat().st_size >> 20} MB, {rows:,} rows of {DIM} floats and a label in row "
            f"groups of {GROUP:,}, minibatches of {SIZE}, the file in the page cache; rows/s; ratios "
            "in brackets: of processor time\n"
        )
        print(f"| order, cores | {' | '.join(MAKERS)} | / pyarrow | / fastest peer |\n|---{'|---:' * 6}|")
        for shuffled in (False, True):
            for cores in (1, 2)[: peers.cores()]:
                found = in_turns(str(path), shuffled, cores, arguments)
                print(row("shuffled" if shuffled else "file order", cores, found), flush=True)


if __name__ == "__main__":
    main()
