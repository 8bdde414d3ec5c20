"""Strided convolutions of many channels as a product for each row of a kernel.

XLA's code for CPUs takes 1.1 to 1.4 times as long. Rows of windows that see only padding are left out.
"""

from __future__ import annotations

import functools
import math
import operator

from cntkpy.networks.arrays.lazy import Array, jax, jnp, row_major
from cntkpy.networks.nodes.images.windows import Window, padded, rounds

FEWEST_CHANNELS = 256
"""Channels and maps from which the products save more time than the copies of windows take."""

FEWEST_WINDOWS = 256
"""Windows of all samples from which they save more time than the kernel takes to be turned."""

ELEMENTS_AT_ONCE = 2**20
"""Most elements of the images of one round: the copies of their windows take some times the memory."""


def is_faster(x: Array, kernel: Array, window: Window) -> bool:
    """Return whether CPUs take less time for images (N, ..., C) and kernels (..., C, M) than with XLA's convolution."""
    if len(window.stride) != 2 or {*window.spread, *window.kernel_spread} != {1} or x.dtype != jnp.float32:
        return False
    overlap = all(1 < step < size for step, size in zip(window.stride, kernel.shape[:-2], strict=True))
    windows = len(x) * math.prod(_results(x, kernel, window))
    return overlap and min(kernel.shape[-2:]) >= FEWEST_CHANNELS and windows >= FEWEST_WINDOWS


def convolve(x: Array, kernel: Array, window: Window) -> Array:
    """Return the convolution (N, ..., M) of images (N, ..., C) with kernels (..., C, M)."""
    kernel = row_major(kernel)  # networks hold maps first: each row would be turned within its product
    some = rounds(x, ELEMENTS_AT_ONCE)
    parts = jax.lax.map(functools.partial(_in_one_round, kernel=kernel, window=window), some)
    return parts.reshape(len(x), *parts.shape[2:])


def _in_one_round(x: Array, kernel: Array, window: Window) -> Array:
    (height, width), above = kernel.shape[:2], window.padding[0][0]
    rows, columns = _results(x, kernel, window)
    sideways = padded(x, window._replace(padding=((0, 0), window.padding[1])))
    parts: list[Array] = []
    for tap in range(height):
        first = max(0, -((tap - above) // window.stride[0]))
        last = min(rows - 1, (x.shape[1] - 1 + above - tap) // window.stride[0])
        if first > last:
            continue
        begin = first * window.stride[0] + tap - above
        image = sideways[:, begin : begin + (last - first) * window.stride[0] + 1 : window.stride[0]]
        ends = (column + (columns - 1) * window.stride[1] + 1 for column in range(width))
        seen = [image[:, :, column : end : window.stride[1]] for column, end in enumerate(ends)]
        # The barriers keep the copies out of the products, and the products out of the sum.
        windows = jax.lax.optimization_barrier(jnp.concatenate(seen, axis=-1))
        weights = kernel[tap].reshape(-1, kernel.shape[-1])
        product = jax.lax.optimization_barrier(jnp.matmul(windows, weights, precision="highest"))
        parts.append(jnp.pad(product, ((0, 0), (first, rows - 1 - last), (0, 0), (0, 0))))
    zeros = jnp.zeros((len(x), rows, columns, kernel.shape[-1]), x.dtype)
    return functools.reduce(operator.add, parts) if parts else zeros


def _results(x: Array, kernel: Array, window: Window) -> list[int]:
    """Return the windows along each axis."""
    axes = zip(x.shape[1:-1], window.padding, kernel.shape, window.stride, strict=False)
    return [(size + sum(pair) - taps) // step + 1 for size, pair, taps, step in axes]
