"""The gradient of kernels as one product, with one axis of the kernel in each operand.

The images are copied once for each column of the kernel, the slopes once for each row, with zeros where a row sees
nothing: a kernel of 5x5 elements takes 10 copies in place of 25. Rows a stride apart make one product: those between
them see other rows of the images. XLA's convolution takes 1.1 to 4 times as long. An
infinite element of the images can give NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.nodes.images.windows import Sizes, Window, moved, padded, spread, sum_of_rounds

FEWEST_CHANNELS, FEWEST_ELEMENTS, FEWEST_ELEMENTS_APART = 32, 2**19, 3 * 2**18
"""Channels and maps, and elements, those of each window counted once, of the larger of images and slopes, from which
XLA's convolution is slower: a cache of 2 MiB does not hold them. The last is for strides, which take more copies."""

SMALL, FEWEST_OF_SMALL = 4, 3 * 2**16
"""Elements of a kernel up to which so many are enough: XLA's products have too few rows."""

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
    if len(taps) != 2 or min(taps) == 1 or set(window.spread) != {1} or x.dtype != jnp.float32:
        return False
    channels, windows = sorted((x.shape[-1], g.shape[-1])), math.prod(g.shape[:-1])
    apart, dilated = set(window.stride) != {1}, set(window.kernel_spread) != {1}
    if channels[0] >= FEWEST_CHANNELS and not (apart and dilated):
        small = FEWEST_OF_SMALL if math.prod(taps) <= SMALL else FEWEST_ELEMENTS
        return windows * channels[1] >= (FEWEST_ELEMENTS_APART if apart else small)
    few = channels[0] >= FEWEST_OF_LARGE and channels[1] <= MOST_OF_LARGE and not (apart or dilated)
    return few and min(taps) >= LARGE and windows >= FEWEST_WINDOWS_OF_LARGE


def to_kernel(x: Array, g: Array, taps: Sizes, window: Window) -> Array:
    """Return the gradient (..., C, M) of the kernels of images (N, ..., C), from slopes (N, ..., M)."""
    (height, width), channels, maps = taps, x.shape[-1], g.shape[-1]
    step, (stride, _) = window.kernel_spread[0], window.stride
    phases = [range(first, height, stride) for first in range(min(stride, height))]

    def terms(x: Array, slopes: Array) -> list[Array]:
        # XLA's products read a left operand with its rows in a row in half the time: the slopes are turned once.
        whole, turned = padded(x, window), jax.lax.optimization_barrier(jnp.moveaxis(slopes, -1, 0))
        return [part(whole, turned, rows) for rows in phases]

    def part(whole: Array, turned: Array, rows: range) -> Array:
        """Return the gradient of some rows of the kernel, (rows x M, columns x C)."""
        reach = (len(rows) - 1) * step
        count = turned.shape[2] + reach
        seen = whole[:, rows[0] : rows[0] + spread(count, stride) : stride]
        images = _side_by_side(moved(seen, (1, width), _along_rows(window)))
        around = padded(turned, Window((1, 1), ((0, 0), (reach, reach)), (1, 1), (1, 1)))
        copies = jnp.stack([around[:, :, reach - row : reach - row + count] for row in range(0, reach + 1, step)])
        left = jax.lax.optimization_barrier(copies).reshape(len(rows) * maps, -1)
        return jnp.matmul(left, images.reshape(-1, images.shape[-1]), precision="highest")

    sizes = [(len(rows) * maps, width * channels) for rows in phases]
    totals = sum_of_rounds(terms, x, g, sizes, ELEMENTS_AT_ONCE // width)
    # The barrier keeps the order of axes out of the loop: XLA would turn each product.
    totals = [total.reshape(-1, maps, width, channels) for total in jax.lax.optimization_barrier(totals)]
    result = jnp.stack([totals[row % stride][row // stride] for row in range(height)])
    return jnp.transpose(result, (0, 2, 3, 1))


def _along_rows(window: Window) -> Window:
    """Return the window whose rows are those that it sees, one after the other, without padding."""
    return Window((1, window.stride[1]), ((0, 0), (0, 0)), (1, 1), (1, window.kernel_spread[1]))


def _side_by_side(parts: Iterable[Array]) -> Array:
    """Return arrays (..., C) of one shape as one (..., parts x C).

    They are stacked along an axis of their own: XLA joins along the last axis at a third of the speed.
    """
    whole = jax.lax.optimization_barrier(jnp.stack(list(parts), axis=-2))
    return whole.reshape(*whole.shape[:-2], -1)
