"""Strided convolutions of many channels as a product for each row of a kernel.

XLA's code for CPUs takes 1.1 to 1.6 times as long for a stride, more in loops. Rows of windows that see only padding
are left out.
"""

from __future__ import annotations

import functools
import math
import operator

from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.nodes.images.windows import Window, padded, rounds

FEWEST_CHANNELS = 256
"""Channels and maps from which the products save more time than the copies of windows take."""

ELEMENTS_AT_ONCE = 2**20
"""Most elements of the images of one round: the copies of their windows take some times the memory."""


def is_faster(x: Array, kernel: Array, window: Window) -> bool:
    """Return whether CPUs take less time for images (N, ..., C) and kernels (..., C, M) than with XLA's convolution."""
    if len(window.stride) != 2 or {*window.spread, *window.kernel_spread} != {1} or x.dtype != jnp.float32:
        return False
    overlap = all(1 < step < size for step, size in zip(window.stride, kernel.shape[:-2], strict=True))
    return overlap and min(kernel.shape[-2:]) >= FEWEST_CHANNELS


def convolve(x: Array, kernel: Array, window: Window) -> Array:
    """Return the convolution (N, ..., M) of images (N, ..., C) with kernels (..., C, M)."""
    some = rounds(x, max(1, ELEMENTS_AT_ONCE // math.prod(x.shape[1:])))
    parts = jax.lax.map(functools.partial(_in_one_round, kernel=kernel, window=window), some)
    return parts.reshape(len(x), *parts.shape[2:])


def _in_one_round(x: Array, kernel: Array, window: Window) -> Array:
    (height, width), (above, below) = kernel.shape[:2], window.padding[0]
    rows = (x.shape[1] + above + below - height) // window.stride[0] + 1
    sideways = padded(x, window._replace(padding=((0, 0), window.padding[1])))
    columns = (sideways.shape[2] - width) // window.stride[1] + 1
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
