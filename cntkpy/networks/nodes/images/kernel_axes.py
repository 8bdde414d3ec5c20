"""The gradient of kernels as one product, with one axis of the kernel in each operand.

The images are copied once for each column of the kernel, the slopes once for each row, with zeros where a row sees
nothing: a kernel of 5x5 elements takes 10 copies in place of 25. XLA's convolution takes 1.1 to 4 times as long. An
infinite element of the images can give NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.nodes.images.windows import Sizes, Window, moved, padded, rounds

FEWEST_CHANNELS, FEWEST_ELEMENTS = 32, 2**19
"""Channels and maps, and elements of the larger of images and slopes, from which XLA's convolution is slower: a cache
of 2 MiB does not hold them."""

FEWEST_OF_LARGE, MOST_OF_LARGE, LARGE, FEWEST_WINDOWS_OF_LARGE = 8, 16, 9, 2**12
"""The same for large kernels, with few channels and maps: these, and elements of each axis of the kernel."""

ELEMENTS_AT_ONCE = 2**17
"""Most elements of the copied images of one round: they stay in a cache."""


def is_faster(x: Array, g: Array, taps: Sizes, window: Window) -> bool:
    """Return whether CPUs take less time than with XLA's convolution.

    Args:
        x: images (N, ..., C).
        g: slopes (N, ..., M).
        taps: elements of the kernel along each axis.
        window: geometry.
    """
    if {*window.stride, *window.spread} != {1} or x.dtype != jnp.float32:
        return False
    if len(taps) != 2 or min(taps) == 1:
        return False
    channels, windows = sorted((x.shape[-1], g.shape[-1])), math.prod(g.shape[:-1])
    if channels[0] >= FEWEST_CHANNELS:
        return windows * channels[1] >= FEWEST_ELEMENTS
    few = channels[0] >= FEWEST_OF_LARGE and channels[1] <= MOST_OF_LARGE
    return few and min(taps) >= LARGE and windows >= FEWEST_WINDOWS_OF_LARGE


def to_kernel(x: Array, g: Array, taps: Sizes, window: Window) -> Array:
    """Return the gradient (..., C, M) of the kernels of images (N, ..., C), from slopes (N, ..., M)."""
    (height, width), channels, maps = taps, x.shape[-1], g.shape[-1]
    step = window.kernel_spread[0]
    reach = (height - 1) * step

    def add(total: Array, some: tuple[Array, Array]) -> tuple[Array, None]:
        x, slopes = some
        images = _side_by_side(moved(x, (1, width), window))
        whole, count = padded(slopes, Window((1, 1), ((reach, reach), (0, 0)), (1, 1), (1, 1))), images.shape[1]
        rows = _side_by_side(whole[:, reach - row : reach - row + count] for row in range(0, reach + 1, step))
        rows, images = (copies.reshape(-1, copies.shape[-1]) for copies in (rows, images))
        return total + jnp.matmul(rows.T, images, precision="highest"), None

    some = rounds(x, max(1, ELEMENTS_AT_ONCE // max(1, width * math.prod(x.shape[1:]))))
    zeros = jnp.zeros((height * maps, width * channels), x.dtype)
    total, _ = jax.lax.scan(add, zeros, (some, g.reshape(*some.shape[:2], *g.shape[1:])))
    # The barrier keeps the order of axes out of the loop: XLA would turn each product.
    total = jax.lax.optimization_barrier(total).reshape(height, maps, width, channels)
    return jnp.transpose(total, (0, 2, 3, 1))


def _side_by_side(parts: Iterable[Array]) -> Array:
    """Return arrays (..., C) of one shape as one (..., parts x C).

    They are stacked along an axis of their own: XLA joins along the last axis at a third of the speed.
    """
    whole = jax.lax.optimization_barrier(jnp.stack(list(parts), axis=-2))
    return whole.reshape(*whole.shape[:-2], -1)
