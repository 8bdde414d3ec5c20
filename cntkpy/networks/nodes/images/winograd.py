"""Convolutions with kernels of 3x3 elements in four ninths of the multiplications, after Winograd.

Two windows next to each other see four elements of an axis. Their results are sums of four products, each of a sum of
elements of the image and a sum of elements of the kernel, in place of six products. Along both axes, a tile of 4x4
elements of the image gives 2x2 results by 16 products in place of 36. All weights are 1, -1 and 1/2, and a sum over
channels has a ninth of the terms: the results are at least as precise as those of a direct convolution. An infinite
element makes all results of its tiles NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cntkpy.networks.arrays.lazy import Array, jax, jnp, row_major
from cntkpy.networks.nodes.images.spread import Axis, interleaved
from cntkpy.networks.nodes.images.windows import Window, moved, rounds, sum_of_rounds

TILE, RESULTS, TAPS = 4, 2, 3
"""Elements along one axis: of a tile, of its results, and of a kernel."""

FEWEST_CHANNELS, FEWEST_OF_SLOPES = 32, 128
"""Channels and maps from which this is faster than XLA's convolution: values, and the gradient of the kernel."""

FEWEST_TILES = 64
"""Tiles from which the sums of the kernel's elements take less time than the products that they save."""

Matrix = tuple[tuple[float, ...], ...]
OF_IMAGE: Matrix = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
OF_KERNEL: Matrix = ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1))
OF_SLOPES: Matrix = ((1, 0), (1, 1), (1, -1), (0, -1))


def is_faster(x: Array, kernel: Array, window: Window, to_kernel: bool = False) -> bool:
    """Return whether CPUs take less time for images (N, ..., C) and kernels (..., C, M) than with XLA's convolution.

    Args:
        x: images.
        kernel: kernels.
        window: geometry.
        to_kernel: for the gradient of the kernel.
    """
    steps = {*window.stride, *window.spread, *window.kernel_spread}
    if kernel.shape[:-2] != (TAPS, TAPS) or steps != {1} or x.dtype not in (jnp.float32, jnp.float64):
        return False
    tiles = len(x) * math.prod(-(-size // RESULTS) for size in _results(x, window))
    return min(kernel.shape[-2:]) >= (FEWEST_OF_SLOPES if to_kernel else FEWEST_CHANNELS) and tiles >= FEWEST_TILES


def convolve(x: Array, kernel: Array, window: Window) -> Array:
    """Return the convolution (N, ..., M) of images (N, ..., C) with kernels (3, 3, C, M)."""
    axes = [Axis(-(-result // RESULTS), 1, 0, RESULTS, 1, result) for result in _results(x, window)]
    kernel = jax.lax.optimization_barrier(row_major(kernel))  # a turned kernel lies in another order
    sums = _sums(OF_KERNEL, [kernel[row, column] for row in range(TAPS) for column in range(TAPS)])
    weights = [jax.lax.optimization_barrier(weights) for weights in sums]

    def some(x: Array) -> Array:
        products = [
            jax.lax.optimization_barrier(jnp.matmul(jax.lax.optimization_barrier(part), of_part, precision="highest"))
            for part, of_part in zip(_sums(OF_IMAGE, _tiles(x, window)), weights, strict=True)
        ]
        return interleaved(_sums(_turned(OF_SLOPES), products), axes)

    parts = jax.lax.map(some, rounds(x))
    return parts.reshape(len(x), *parts.shape[2:])


def to_kernel(x: Array, g: Array, window: Window) -> Array:
    """Return the gradient (3, 3, C, M) of the kernels of images (N, ..., C), from slopes (N, ..., M)."""
    beyond = tuple((0, size % RESULTS) for size in g.shape[1:-1])
    apart = Window((RESULTS, RESULTS), beyond, (1, 1), (1, 1))

    def terms(x: Array, slopes: Array) -> list[Array]:
        parts = _sums(OF_IMAGE, _tiles(x, window)), _sums(OF_SLOPES, list(moved(slopes, (RESULTS,) * 2, apart)))
        return list(map(_product, *parts))

    totals = sum_of_rounds(terms, x, g, [(x.shape[-1], g.shape[-1])] * TILE**2)
    gradient = _sums(_turned(OF_KERNEL), totals)
    return jnp.stack(gradient).reshape(TAPS, TAPS, *gradient[0].shape)


def _product(images: Array, slopes: Array) -> Array:
    images, slopes = (jax.lax.optimization_barrier(part).reshape(-1, part.shape[-1]) for part in (images, slopes))
    return jnp.matmul(images.T, slopes, precision="highest")


def _results(x: Array, window: Window) -> list[int]:
    """Return the windows along each axis."""
    return [size + sum(pair) - TAPS + 1 for size, pair in zip(x.shape[1:-1], window.padding, strict=True)]


def _tiles(x: Array, window: Window) -> list[Array]:
    """Return the 4x4 elements of tiles, which overlap, each (N, ..., C)."""
    results = zip(_results(x, window), window.padding, strict=True)
    padding = tuple((leading, trailing + size % RESULTS) for size, (leading, trailing) in results)
    return list(moved(x, (TILE, TILE), Window((RESULTS, RESULTS), padding, (1, 1), (1, 1))))


def _sums(matrix: Matrix, cells: Sequence[Array]) -> list[Array]:
    """Return the sums of the cells of a square, row by row, that a matrix gives along both of its axes."""
    side = len(matrix[0])
    rows = [_along(matrix, cells[begin : begin + side]) for begin in range(0, len(cells), side)]
    columns = [_along(matrix, column) for column in zip(*rows, strict=True)]
    return [column[row] for row in range(len(matrix)) for column in columns]


def _along(matrix: Matrix, cells: Sequence[Array]) -> list[Array]:
    """Return the weighted sums of cells, one for each row of a matrix."""
    weighted = (
        [cell if weight == 1 else cell * weight for weight, cell in zip(row, cells, strict=True) if weight]
        for row in matrix
    )
    return [sum(terms[1:], terms[0]) for terms in weighted]


def _turned(matrix: Matrix) -> Matrix:
    return tuple(zip(*matrix, strict=True))
