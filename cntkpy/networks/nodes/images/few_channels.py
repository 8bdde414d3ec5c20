"""Convolutions of few or oddly many channels, brought to shapes for which XLA has fast code for CPUs.

Two kinds of shapes are slow. With up to 16 channels and maps XLA takes up to four times as long per multiplication
as with 17: here two, four or eight neighbours of a row become channels of one element, in a view of the same memory,
and make as many results at once. The kernel has zeros where a result does not see a neighbour, so an infinite element
can give NaN beside it. An odd number of channels is copied element by element: here it gets a channel of zeros.
"""

from __future__ import annotations

from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.nodes.images.windows import Window, convolve_by_xla, padded

FAST_CHANNELS = 17
"""Channels or maps from which XLA's code is fast."""

MOST_NEIGHBOURS = 8
"""Most neighbours together: a kernel has a column of zeros for each but one."""

FEWEST_PRODUCTS = 200
"""Elements of all kernels from which this takes less time than a sum of weighted images."""

MAPS_AT_ONCE, FEW_LEFT, MANY_CHANNELS = 64, 32, 8
"""XLA copies the channels for each of so many maps. An odd number of them is slow where few maps are left for the last
copy, or where the channels are many."""


def beats_sums(x: Array, kernel: Array, window: Window) -> bool:
    """Return whether it takes CPUs less time than a sum of weighted images for images (N, ..., C)."""
    return kernel.size >= FEWEST_PRODUCTS and neighbours(x, kernel, window) > 1


def neighbours(x: Array, kernel: Array, window: Window) -> int:
    """Return how many elements of a row CPUs take together for images (N, ..., C) and kernels (..., C, M); 1: none."""
    steps = {*window.stride, *window.spread, *window.kernel_spread}
    if len(window.stride) != 2 or kernel.shape[1] == 1 or steps != {1} or x.dtype != jnp.float32:
        return 1
    count, results = 1, _results(x, kernel, window)
    while count * max(kernel.shape[-2:]) < FAST_CHANNELS:
        count *= 2
    slides = results >= kernel.shape[1]  # gradients of kernels have larger kernels than results
    return count if slides and count < results and count <= MOST_NEIGHBOURS else 1


def convolve_together(x: Array, kernel: Array, window: Window, count: int) -> Array:
    """Return the convolution (N, ..., M) with so many elements of a row as channels of one."""
    (height, width, channels, maps), (_, (leading, _)) = kernel.shape, window.padding
    results = _results(x, kernel, window)
    blocks, reach = -(-results // count), -(-(width + count - 1) // count)
    columns, ahead = (blocks + reach - 1) * count, 0
    if leading % count == 0 and x.shape[2] % count == 0:
        ahead = leading // count
    else:
        sideways = ((0, 0), (leading, columns - leading - x.shape[2]))
        x = padded(x, window._replace(padding=sideways))
    x = x.reshape(*x.shape[:2], -1, count * channels)
    places = (((0, 0), (number, reach * count - width - number), (0, 0), (0, 0)) for number in range(count))
    wide = jnp.stack([jnp.pad(kernel, place) for place in places], axis=-2)
    wide = wide.reshape(height, reach, count * channels, count * maps)
    after = blocks + reach - 1 - ahead - x.shape[2]
    result = convolve_by_xla(x, wide, window._replace(padding=(window.padding[0], (ahead, after))))
    return result.reshape(*result.shape[:2], -1, maps)[:, :, :results]


def has_slow_channels(kernel: Array) -> bool:
    """Return whether kernels (..., C, M) have an odd number of channels with which XLA's convolution is slow."""
    channels, maps = kernel.shape[-2:]
    left = maps % MAPS_AT_ONCE
    odd = channels % 2 == 1 < channels and max(channels, maps) >= FAST_CHANNELS
    return odd and kernel.dtype == jnp.float32 and left > 0 and (left <= FEW_LEFT or channels > MANY_CHANNELS)


def with_another_channel(x: Array, kernel: Array) -> tuple[Array, Array]:
    """Return images (N, ..., C) and kernels (..., C, M) with a channel of zeros at the end."""
    none = ((0, 0),) * (x.ndim - 2)
    images, kernels = jnp.pad(x, ((0, 0), *none, (0, 1))), jnp.pad(kernel, (*none, (0, 1), (0, 0)))
    return jax.lax.optimization_barrier((images, kernels))


def _results(x: Array, kernel: Array, window: Window) -> int:
    """Return the windows of a row."""
    return x.shape[2] + sum(window.padding[1]) - kernel.shape[1] + 1
