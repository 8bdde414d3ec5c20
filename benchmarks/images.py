"""Pictures per second: JPEG of 256 x 256 -> Crop -> Scale to 224 -> Transpose, minibatches of 64.

    python benchmarks/images.py [--pictures N] [--repeat N]

Prints a table in Markdown. Beside the reader, in the same process and in turns: a plain loop that makes the same calls
of OpenCV in a thread pool, and PyTorch's DataLoader with the same calls in worker processes. Each reads a sweep in
shuffled order; medians of sweeps. All keep their workers from sweep to sweep.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

SIDE, TO, SIZE, RATIO = 256, 224, 64, 0.9
POOL, LOADER = "OpenCV in a thread pool", "torch DataLoader"


def make_data(folder: Path, count: int) -> list[str]:
    """Pictures of blurred noise and shapes, about 20 kB each, and their map file; returns the paths."""
    import cv2

    rng = np.random.default_rng(1)
    paths = []
    for i in range(count):
        picture = cv2.GaussianBlur(rng.integers(0, 256, (SIDE, SIDE, 3)).astype(np.uint8), (7, 7), 2)
        for _ in range(8):
            center, radius = rng.integers(0, SIDE, 2).tolist(), int(rng.integers(5, 60))
            cv2.circle(picture, center, radius, rng.integers(0, 256, 3).tolist(), -1)
        paths.append(str(folder / f"{i}.jpg"))
        cv2.imwrite(paths[-1], picture)
    (folder / "map.txt").write_text("".join(f"{path}\t{i % 10}\n" for i, path in enumerate(paths)))
    return paths


def sample(path: str, into: np.ndarray) -> None:
    """One picture by hand: the same calls that the reader makes."""
    import cv2

    picture = cv2.imread(path, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    assert picture is not None
    height, width = picture.shape[:2]
    side = int(min(width, height) * RATIO + 0.5)
    x, y = (width - side) // 2, (height - side) // 2
    scaled = cv2.resize(picture[y : y + side, x : x + side], (TO, TO), interpolation=cv2.INTER_LINEAR)
    np.copyto(into, scaled.transpose(2, 0, 1), casting="unsafe")


def plain(paths: list[str]) -> Callable[[], Iterator[np.ndarray]]:
    """A thread pool over the pictures of a minibatch."""
    pool = ThreadPoolExecutor(os.cpu_count())

    def sweep() -> Iterator[np.ndarray]:
        order = random.sample(paths, len(paths))
        for at in range(0, len(order), SIZE):
            chosen = order[at : at + SIZE]
            batch = np.empty((len(chosen), 3, TO, TO), np.float32)
            list(pool.map(sample, chosen, batch))
            yield batch

    return sweep


def loader(paths: list[str]) -> Callable[[], Iterator[np.ndarray]]:
    """PyTorch's DataLoader, a process per core."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Pictures(Dataset[Any]):
        def __len__(self) -> int:
            return len(paths)

        def __getitem__(self, i: int) -> Any:
            into = np.empty((3, TO, TO), np.float32)
            sample(paths[i], into)
            return torch.from_numpy(into), i % 10

    workers = DataLoader(Pictures(), SIZE, shuffle=True, num_workers=os.cpu_count() or 1, persistent_workers=True)

    def sweep() -> Iterator[np.ndarray]:
        for batch, _ in workers:
            yield batch.numpy()

    return sweep


def ours(folder: Path) -> Callable[[], Iterator[np.ndarray]]:
    """The reader."""
    from readers import create_reader

    reader = create_reader(
        f'deserializers=([type=ImageDeserializer;file="{folder}/map.txt";input=[x=[transforms=('
        f"[type=Crop;sideRatio={RATIO}]:[type=Scale;width={TO};height={TO};channels=3]:[type=Transpose])];"
        "y=[labelDim=10]]])"
    )
    epochs = iter(range(1 << 30))

    def sweep() -> Iterator[np.ndarray]:
        reader.start_minibatch_loop(SIZE, next(epochs))
        while (minibatch := reader.get_minibatch()) is not None:
            yield minibatch.streams["x"]

    return sweep


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=2048, help="pictures of a sweep")
    parser.add_argument("--repeat", type=int, default=7, help="sweeps, of which the median is taken")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = make_data(folder, arguments.pictures)
        sweeps = {POOL: plain(paths), "cntkpy": ours(folder)}
        if importlib.util.find_spec("torch"):
            sweeps[LOADER] = loader(paths)
        seconds: dict[str, list[float]] = {key: [] for key in sweeps}
        for _ in range(arguments.repeat + 1):
            for key, sweep in sweeps.items():
                begin, pictures = time.perf_counter(), 0
                for batch in sweep():
                    pictures += batch.size // (3 * TO * TO)
                seconds[key].append(time.perf_counter() - begin)
                assert pictures == len(paths)
        print("## Images")
        print(
            f"{len(paths)} JPEG files of {SIDE} x {SIDE}, {os.cpu_count()} cores: Crop, Scale to {TO} x {TO}, "
            f"Transpose to float32, minibatches of {SIZE}, shuffled\n"
        )
        print("| | pictures/s | / thread pool | / DataLoader |\n|---|---:|---:|---:|")
        median = {key: statistics.median(values[1:]) for key, values in seconds.items()}
        for key, value in median.items():
            ratios = [f"{median[base] / value:.2f}" if base in median else "-" for base in (POOL, LOADER)]
            print(f"| {key} | {len(paths) / value:,.0f} | {' | '.join(ratios)} |")


if __name__ == "__main__":
    main()
