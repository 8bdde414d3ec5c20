"""Pictures per second: JPEG of 256 x 256 -> Crop -> Scale to 224 -> Transpose, minibatches of 64.

    python benchmarks/images.py [--pictures N] [--repeat N]

Prints a table in Markdown. Beside the reader, in the same process and in turns: a plain loop that makes the same calls
of OpenCV in a thread pool, and PyTorch's DataLoader with the same calls in worker processes. Each reads a sweep in
shuffled order; medians of sweeps. All keep their workers from sweep to sweep.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import peers

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
    pool = ThreadPoolExecutor(peers.cores())

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

    workers = DataLoader(Pictures(), SIZE, shuffle=True, num_workers=peers.cores(), persistent_workers=True)

    def sweep() -> Iterator[np.ndarray]:
        for batch, _ in workers:
            yield batch.numpy()

    return sweep


def ours(folder: Path) -> Callable[[], Iterator[np.ndarray]]:
    """The reader."""
    from cntkpy.readers import create_reader

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
        if peers.available("torch"):
            sweeps[LOADER] = loader(paths)

        def read(sweep: Callable[[], Iterator[np.ndarray]]) -> None:
            assert sum(batch.size // (3 * TO * TO) for batch in sweep()) == len(paths)

        calls = {key: lambda sweep=sweep: read(sweep) for key, sweep in sweeps.items()}
        seconds = peers.in_turns(calls, arguments.repeat)
        print("## Images")
        print(
            f"{len(paths)} JPEG files of {SIDE} x {SIDE}, {peers.cores()} cores: Crop, Scale to {TO} x {TO}, "
            f"Transpose to float32, minibatches of {SIZE}, shuffled; ratios in brackets: of processor time\n"
        )
        print("| | pictures/s | / thread pool | / DataLoader |\n|---|---:|---:|---:|")
        for key, found in seconds.items():
            of_pool = peers.ratio(seconds[POOL], found)
            if key == LOADER:  # the processor time of its workers is not known
                of_pool = of_pool.partition(" ")[0]
            of_loader = peers.ratio(seconds.get(LOADER, []), found).partition(" ")[0]
            print(f"| {key} | {len(paths) / peers.median(found):,.0f} | {of_pool} | {of_loader} |")


if __name__ == "__main__":
    main()
