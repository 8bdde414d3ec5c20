"""Convolutions of many shapes and their two gradients beside PyTorch, one thread each.

Each cell is the processor time of ours divided by PyTorch's, the least of three series of calls. Both run on one
processor: the clock of a process lacks what threads on other processors have just done, so that the least of single
calls would be a fraction of their time. PyTorch comes from BENCHMARK_SITE (see peers.py). The table has the cells with
the largest ratios; `--all` prints every shape.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()

import numpy as np

from benchmarks import peers
from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.nodes.images.geometry import Geometry
from cntkpy.networks.nodes.images.sliding import convolve

SECONDS = 0.2
"""Processor time of the calls of one measurement."""
SERIES = 3
"""Series of calls of one measurement."""


class Shape(NamedTuple):
    """One convolution.

    Attributes:
        axes: 1 to 3.
        kernel, stride, dilation: of each axis.
        channels, maps: of the image and of the result.
        size: elements of each axis.
        samples: images at once.
        groups: of channels.
    """

    axes: int
    kernel: int
    stride: int
    channels: int
    maps: int
    size: int
    samples: int
    dilation: int = 1
    groups: int = 1

    def __str__(self) -> str:
        how = "x".join([str(self.kernel)] * self.axes) + f", stride {self.stride}"
        how += f", dilation {self.dilation}" * (self.dilation > 1) + f", {self.groups} groups" * (self.groups > 1)
        return f"{how}: {self.channels} to {self.maps} maps of {self.size}, {self.samples} samples"


SHAPES = [
    *(Shape(2, *row) for row in ((1, 1, 64, 256, 28, 8), (1, 1, 256, 64, 28, 8), (1, 2, 256, 512, 28, 4))),
    *(Shape(2, *row) for row in ((2, 1, 32, 32, 32, 16), (2, 2, 64, 64, 32, 16), (3, 1, 1, 16, 28, 64))),
    *(Shape(2, *row) for row in ((3, 1, 3, 16, 32, 16), (3, 1, 3, 64, 32, 16), (3, 1, 16, 16, 32, 32))),
    *(Shape(2, *row) for row in ((3, 1, 64, 64, 32, 16), (3, 1, 128, 128, 16, 16), (3, 1, 512, 512, 7, 8))),
    *(Shape(2, *row) for row in ((3, 1, 512, 8, 14, 8), (3, 1, 8, 512, 14, 8), (3, 2, 64, 128, 32, 16))),
    *(Shape(2, *row) for row in ((3, 2, 128, 256, 16, 16), (3, 3, 64, 64, 30, 16), (4, 2, 32, 64, 32, 16))),
    *(Shape(2, *row) for row in ((4, 4, 64, 64, 32, 16), (5, 1, 1, 16, 28, 64), (5, 1, 1, 32, 28, 64))),
    *(Shape(2, *row) for row in ((5, 1, 32, 32, 28, 32), (5, 1, 64, 64, 16, 16), (5, 2, 64, 128, 28, 8))),
    *(Shape(2, *row) for row in ((5, 4, 16, 32, 64, 8), (7, 1, 32, 32, 28, 8), (7, 2, 3, 64, 64, 8))),
    *(Shape(2, *row) for row in ((9, 1, 16, 16, 28, 8), (9, 2, 256, 256, 20, 8), (11, 1, 8, 8, 32, 8))),
    Shape(2, 11, 4, 3, 64, 112, 4),
    *(Shape(2, *row) for row in ((3, 1, 64, 64, 32, 8, 2), (3, 1, 32, 32, 32, 8, 4), (3, 2, 32, 64, 32, 8, 2))),
    *(Shape(2, *row) for row in ((3, 1, 64, 64, 28, 8, 1, 4), (3, 1, 128, 128, 28, 8, 1, 32))),
    *(Shape(2, *row) for row in ((3, 2, 64, 64, 28, 8, 1, 4), (3, 1, 64, 64, 28, 16, 1, 64))),
    *(Shape(2, *row) for row in ((3, 2, 64, 64, 28, 16, 1, 64), (5, 1, 128, 128, 14, 16, 1, 128))),
    *(Shape(1, *row) for row in ((3, 1, 64, 64, 200, 16), (5, 2, 64, 128, 200, 16), (9, 1, 128, 128, 100, 16))),
    *(Shape(1, *row) for row in ((3, 1, 64, 64, 200, 16, 4), (11, 4, 16, 64, 400, 16))),
    *(Shape(3, *row) for row in ((3, 1, 16, 32, 16, 4), (3, 2, 16, 32, 16, 4), (2, 2, 32, 32, 16, 4))),
    Shape(3, 5, 1, 4, 16, 16, 4),
]
PARTS = ("values", "to the image", "to the kernel")


def ours(shape: Shape) -> list[Callable[[], object]]:
    """Return the calls of `PARTS`, compiled."""
    random, axes, pad = np.random.default_rng(0), shape.axes, padding(shape)
    result = (shape.size + 2 * pad - (shape.kernel - 1) * shape.dilation - 1) // shape.stride + 1
    geometry = Geometry(
        *((size,) * axes for size in (shape.size, shape.kernel, shape.stride)),
        padding=((pad, pad),) * axes,
        dilation=(shape.dilation,) * axes,
        outputs=(result,) * axes,
    )

    def forward(image: Any, kernel: Any) -> Any:
        return convolve(image, kernel, geometry, shape.groups)

    def drawn(*sizes: int) -> Any:
        return jnp.asarray(random.normal(size=sizes), np.float32)

    image = drawn(shape.samples, *(shape.size,) * axes, shape.channels)
    kernel = drawn(shape.maps, shape.channels // shape.groups, *(shape.kernel,) * axes)
    slope = drawn(shape.samples, *(result,) * axes, shape.maps)
    to_image = jax.jit(lambda image, kernel, slope: jax.vjp(lambda x: forward(x, kernel), image)[1](slope))
    to_kernel = jax.jit(lambda image, kernel, slope: jax.vjp(lambda w: forward(image, w), kernel)[1](slope))
    values = jax.jit(forward)
    return [
        lambda: values(image, kernel).block_until_ready(),
        lambda: to_image(image, kernel, slope)[0].block_until_ready(),
        lambda: to_kernel(image, kernel, slope)[0].block_until_ready(),
    ]


def theirs(shape: Shape) -> list[Callable[[], object]]:
    """Return the same calls of PyTorch."""
    import torch

    torch.set_num_threads(1)
    axes, pad = shape.axes, padding(shape)
    image = torch.randn(shape.samples, shape.channels, *(shape.size,) * axes)
    kernel = torch.randn(shape.maps, shape.channels // shape.groups, *(shape.kernel,) * axes)
    how = [[number] * axes for number in (shape.stride, pad, shape.dilation)]

    def values() -> Any:
        with torch.no_grad():
            return torch.convolution(image, kernel, None, *how, False, [0] * axes, shape.groups)

    slope = torch.randn_like(values())

    def gradient(*wanted: bool) -> Callable[[], object]:
        backward = torch.ops.aten.convolution_backward
        return lambda: backward(slope, image, kernel, None, *how, False, [0] * axes, shape.groups, [*wanted, False])

    return [values, gradient(True, False), gradient(False, True)]


def padding(shape: Shape) -> int:
    """Return the elements of padding on each side."""
    return (shape.kernel - 1) * shape.dilation // 2


def least(call: Callable[[], object]) -> float:
    """Return the least milliseconds of processor time of a call, each time the mean of a series."""
    call()
    calls = max(1, round(SECONDS / SERIES / seconds(call, 1)))
    return min(seconds(call, calls) for _ in range(SERIES)) / calls * 1e3


def seconds(call: Callable[[], object], calls: int) -> float:
    """Return the processor time of a series of calls."""
    began = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - began


def main(worst: int, every: bool) -> str:
    """Return the table as Markdown; without PyTorch it has our times alone."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    compared = peers.available("torch")
    rows: list[tuple[float, str]] = []
    for shape in SHAPES:
        times = [least(call) for call in ours(shape)]
        peer = [least(call) for call in theirs(shape)] if compared else []
        for number, part in enumerate(PARTS):
            ratio = times[number] / peer[number] if compared else times[number]
            cells = f"{peer[number]:.2f} | {ratio:.2f}" if compared else " | "
            rows.append((ratio, f"| {shape}, {part} | {times[number]:.2f} | {cells} |"))
    ratios = [ratio for ratio, _ in rows]
    summary = f"| median of {len(rows)} cells | | | |"
    if compared:
        above = sum(ratio > 1.2 for ratio in ratios)
        summary = f"| median of {len(rows)} cells; {above} are above 1.2 | | | {statistics.median(ratios):.2f} |"
    chosen = rows if every else sorted(rows, reverse=True)[:worst]
    return "\n".join(
        [
            "## Convolutions",
            f"{len(SHAPES)} shapes, each with both gradients; single precision, one thread; milliseconds of processor "
            "time. The largest ratios.",
            "",
            "| convolution | ms | PyTorch | / PyTorch |",
            "|---|---:|---:|---:|",
            *(line for _, line in chosen),
            summary,
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worst", type=int, default=10, help="rows")
    parser.add_argument("--all", action="store_true", help="every shape, in order")
    words = parser.parse_args()
    print(main(words.worst, words.all))
