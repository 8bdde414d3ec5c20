"""Convolution with channels last, whose gradients are convolutions with channels last, too.

XLA runs convolutions on a CPU through a fast kernel only in this one order of axes. It brings others to it by itself,
but not inside loops, and the trainers' steps are loops: there the gradients that JAX derives run 10 times slower.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable

from cntkpy.networks.arrays.lazy import (
    Array,
    Gradients,
    Residuals,
    custom_gradient,
    default_device,
    gradient_by_operands,
    jax,
    jnp,
    row_major,
)
from cntkpy.networks.nodes.images import few_channels, kernel_axes, kernel_rows, winograd
from cntkpy.networks.nodes.images.spread import Axis, convolve_spread, phase_by_phase
from cntkpy.networks.nodes.images.windows import (
    Padding,
    Sizes,
    Window,
    convolve_by_xla,
    most_divisor,
    moved,
    padded,
    spread,
    sum_of_rounds,
)

Convolve = Callable[[Array, Array], Array]
"""A convolution of images and kernels."""

MOST_AXES = 2
"""Axes between N and C up to which XLA has fast code for CPUs."""

MOST_TERMS = 64
"""Most terms of a sum of weighted images: elements of a kernel times channels of a group."""

FEW_MAPS = 16
"""Up to so many maps XLA's convolution of few channels is slow: for 17 it takes a fifth of the time for 16."""

FEW_CHANNELS = 4
"""Most channels of a group for which a sum of weighted images is faster than a convolution for each group."""

CHANNELS_OF_PRODUCTS = 64
"""Fewest channels, and half of the maps, for which products with windows that overlap are faster."""

ROWS_AT_ONCE, PRODUCTS_AT_ONCE = 2, 16
"""Rows, and rows of samples, whose products are added in one expression; each adds to the time of compilation."""


def channels_last(window: Window) -> Convolve:
    """Return the function `(x (N, ..., C), kernel (..., C, M)) -> (N, ..., M)`."""
    on_cpu, dense = default_device().platform == "cpu", set(window.spread) == {1}
    if on_cpu and dense and len(window.stride) > MOST_AXES:
        return functools.partial(_by_planes, window=window)

    def primal(x: Array, kernel: Array) -> Array:
        if on_cpu and not dense and set(window.stride) == {1}:
            result = convolve_spread(x, kernel, _axes(window, x.shape[1:-1], kernel.shape))
            if result is not None:
                return result
        return _on_cpu(x, kernel, window) if on_cpu else convolve_by_xla(x, kernel, window)

    def backward(residuals: Residuals, g: Array) -> Gradients:
        x, kernel = residuals
        axes, taps = tuple(range(x.ndim - 2)), kernel.shape[:-2]
        inside, outside = _paddings(window, x.shape[1:-1], taps, g.shape[1:-1])
        turned = jnp.swapaxes(jnp.flip(kernel, axes), -1, -2)
        back = Window(window.spread, inside, window.stride, window.kernel_spread)
        to_x = channels_last(back)
        if on_cpu and dense and (product := _gradient_of_products(x, g, kernel, window)) is not None:
            return to_x(g, turned), product
        if on_cpu and not dense and set(window.stride) == {1}:
            # A transposed convolution: its slopes are the images of one with a stride, whose slopes are x.
            product = _gradient_of_products(g, x, turned, back)
            if product is not None:
                return to_x(g, turned), jnp.swapaxes(jnp.flip(product, axes), -1, -2)
        if on_cpu and dense and set(window.stride) == {1} and x.shape[-1] >= 2 * g.shape[-1]:
            # XLA's code is slow for few columns: the slopes slide over the images, and the result is turned.
            to_kernel = channels_last(Window(window.kernel_spread, inside, window.spread, window.stride))
            gradient = to_kernel(jnp.swapaxes(g, 0, -1), jnp.moveaxis(x, 0, -2))
            return to_x(g, turned), jnp.moveaxis(jnp.flip(gradient, tuple(axis + 1 for axis in axes)), 0, -1)
        to_kernel = channels_last(Window(window.kernel_spread, outside, window.spread, window.stride))
        gradient = to_kernel(jnp.swapaxes(x, 0, -1), jnp.moveaxis(g, 0, -2))
        return to_x(g, turned), jnp.moveaxis(gradient, 0, -2)

    return gradient_by_operands(primal, backward)


def _on_cpu(x: Array, kernel: Array, window: Window) -> Array:
    """Return the convolution in the form that takes CPUs the least time for these shapes."""
    if winograd.is_faster(x, kernel, window):
        return winograd.convolve(x, kernel, window)
    if kernel_rows.is_faster(x, kernel, window):
        return kernel_rows.convolve(x, kernel, window)
    if (count := few_channels.neighbours(x, kernel, window)) > 1:
        return few_channels.convolve_together(x, kernel, window, count)
    if few_channels.has_slow_channels(kernel):
        x, kernel = few_channels.with_another_channel(x, kernel)
    return convolve_by_xla(x, kernel, window)


def each_channel(window: Window) -> Convolve:
    """Return the function `(x (N, ..., C), kernel (..., C)) -> (N, ..., C)`: every channel has a kernel of its own."""

    def primal(x: Array, kernel: Array) -> Array:
        return _weighted(x, kernel[..., None, :], window, x.shape[-1])

    if default_device().platform != "cpu":
        return primal

    def backward(residuals: Residuals, g: Array) -> Gradients:
        x, kernel = residuals
        to_kernel = _weights_of_channels(x, g, kernel.shape[:-1], window)
        inside, _ = _paddings(window, x.shape[1:-1], kernel.shape[:-1], g.shape[1:-1])
        turned = jnp.flip(kernel, tuple(range(x.ndim - 2)))[..., None, :]
        spread = Window(window.spread, inside, window.stride, window.kernel_spread)

        def dense(slopes: Array, part: Array, padding: Padding, kernel_spread: Sizes) -> Array:
            weighted = _weighted(
                slopes, part, Window(window.spread, padding, window.spread, kernel_spread), x.shape[-1]
            )
            return jax.lax.optimization_barrier(weighted)

        return phase_by_phase(g, turned, _axes(spread, g.shape[1:-1], turned.shape), dense), to_kernel

    return gradient_by_operands(primal, backward)


def few_terms(window: Window, groups: int) -> Convolve:
    """Return the function `(x (N, ..., C), kernel (..., C / groups, M)) -> (N, ..., M)` for few channels and maps.

    It is a sum of weighted images: XLA's convolutions take two to eighteen times as long. A barrier keeps the sum out
    of what follows: XLA would compute it again for each window of a pooling.
    """

    def primal(x: Array, kernel: Array) -> Array:
        return jax.lax.optimization_barrier(_weighted(x, kernel, window, groups))

    def backward(residuals: Residuals, g: Array) -> Gradients:
        x, kernel = residuals
        _, back = jax.vjp(functools.partial(by_groups, window=window, groups=groups), x, kernel)
        to_x, to_kernel = back(g)
        *taps, channels, maps = kernel.shape
        turned = jnp.flip(kernel, tuple(range(len(taps)))).reshape(*taps, channels, groups, maps // groups)
        turned = jnp.swapaxes(turned, -1, -3).reshape(*taps, maps // groups, groups * channels)
        if groups > 1 and set(window.stride) == {1} and has_few_terms(turned, groups):
            inside, _ = _paddings(window, x.shape[1:-1], tuple(taps), g.shape[1:-1])
            to_x = few_terms(window._replace(padding=inside), groups)(g, turned)
        return to_x, to_kernel

    def forward(x: Array, kernel: Array) -> tuple[Array, Residuals]:
        if groups == 1:  # with its gradients, a training of two convolutions takes 1.9 times as long with the sum
            return by_groups(x, kernel, window, groups), (x, kernel)
        return primal(x, kernel), (x, kernel)

    return custom_gradient(forward, backward, primal)


def has_few_terms(kernel: Array, groups: int) -> bool:
    """Return whether CPUs add weighted images for kernels (..., C / groups, M)."""
    if default_device().platform != "cpu" or math.prod(kernel.shape[:-1]) > MOST_TERMS:
        return False
    return kernel.shape[-1] <= FEW_MAPS or (groups > 1 and kernel.shape[-2] <= FEW_CHANNELS)


def by_groups(x: Array, kernel: Array, window: Window, groups: int) -> Array:
    """Convolve each group of channels of x (N, ..., C) with its kernels of (..., C / groups, M), and join the maps."""
    parts = zip(jnp.split(x, groups, axis=-1), jnp.split(kernel, groups, axis=-1), strict=True)
    return jnp.concatenate([channels_last(window)(*part) for part in parts], axis=-1)


def _weighted(x: Array, kernel: Array, window: Window, groups: int) -> Array:
    """Add images weighted by the elements of a kernel (..., C / groups, M): (N, ..., M)."""
    *taps, channels, maps = kernel.shape
    total = jnp.zeros((), x.dtype)
    for image, weights in zip(
        moved(x, tuple(taps), window), row_major(kernel).reshape(-1, channels, maps), strict=True
    ):
        parts = image.reshape(*image.shape[:-1], groups, channels)
        for channel in range(channels):
            total = total + jnp.repeat(parts[..., channel], maps // groups, axis=-1) * weights[channel]
    return total


def _weights_of_channels(x: Array, g: Array, taps: Sizes, window: Window) -> Array:
    """Return the gradient (..., C) of the kernels of channels.

    A loop takes a few rows of a few samples each time: all elements of the kernel read them from a cache. The products
    are added element by element first: XLA's sums over all axes but the last take three times as long.
    """
    if len(taps) == 1:
        one_row = Window(
            (1, *window.stride), ((0, 0), *window.padding), (1, *window.spread), (1, *window.kernel_spread)
        )
        return _weights_of_channels(x[:, None], g[:, None], (1, *taps), one_row)[0]
    rows = most_divisor(g.shape[1], ROWS_AT_ONCE)
    samples = most_divisor(len(x), PRODUCTS_AT_ONCE // rows)
    x, inside = padded(x, window), window._replace(padding=((0, 0),) * len(taps))
    step = rows * window.stride[0]
    reach = step - window.stride[0] + spread(taps[0], window.kernel_spread[0])
    corner = (0,) * len(taps)

    def add(totals: list[Array], place: tuple[Array, Array]) -> tuple[list[Array], None]:
        sample, row = place
        images = jax.lax.dynamic_slice(x, (sample, row * step, *corner), (samples, reach, *x.shape[2:]))
        slopes = jax.lax.dynamic_slice(g, (sample, row * rows, *corner), (samples, rows, *g.shape[2:]))
        slopes = slopes.reshape(samples * rows, -1)
        for number, seen in enumerate(moved(images, taps, inside)):
            products = zip(seen.reshape(samples * rows, -1), slopes, strict=True)
            totals[number] = functools.reduce(operator.add, itertools.starmap(operator.mul, products), totals[number])
        return totals, None

    places = jnp.meshgrid(jnp.arange(0, len(x), samples), jnp.arange(g.shape[1] // rows), indexing="ij")
    zeros = [jnp.zeros(math.prod(g.shape[2:]), x.dtype)] * math.prod(taps)
    totals, _ = jax.lax.scan(add, zeros, tuple(axis.ravel() for axis in places))
    return jnp.sum(jnp.stack(totals).reshape(*taps, -1, x.shape[-1]), -2)


def _by_planes(x: Array, kernel: Array, window: Window) -> Array:
    """Convolve along the first axis by stacking what its taps see as channels, and along the others as planes.

    XLA's code for CPUs takes up to thirty times as long for three axes at once.
    """
    plane = len(window.stride) - 1  # its axes
    along_first = Window(
        (window.stride[0], *(1,) * plane),
        (window.padding[0], *((0, 0),) * plane),
        (1,) * (1 + plane),
        (window.kernel_spread[0], *(1,) * plane),
    )
    seen = jnp.concatenate(list(moved(x, (kernel.shape[0], *(1,) * plane), along_first)), axis=-1)
    planes = seen.reshape(len(seen) * seen.shape[1], *seen.shape[2:])
    matrix = jnp.moveaxis(kernel, 0, -3)
    matrix = matrix.reshape(*kernel.shape[1:-2], -1, kernel.shape[-1])
    planar = Window(window.stride[1:], window.padding[1:], window.spread[1:], window.kernel_spread[1:])
    result = channels_last(planar)(planes, matrix)
    return result.reshape(*seen.shape[:2], *result.shape[1:])


def _gradient_of_products(x: Array, g: Array, kernel: Array, window: Window) -> Array | None:
    """Return the gradient of a kernel (..., C, M) by products; None where CPUs take less time with a convolution."""
    taps = kernel.shape[:-2]
    if _are_apart(window, taps):
        return _gradient_by_product(x, g, taps, window).reshape(kernel.shape)
    if _share_few(window, kernel.shape):
        return _gradient_in_rounds(x, g, taps, window).reshape(kernel.shape)
    if winograd.is_faster(x, kernel, window, to_kernel=True):
        return winograd.to_kernel(x, g, window)
    if kernel_axes.is_faster(x, g, taps, window):
        return kernel_axes.to_kernel(x, g, taps, window)
    return None


def _are_apart(window: Window, taps: Sizes) -> bool:
    """Return whether windows have no element in common and lie inside of the operand."""
    apart = all(count == 1 or count == step for count, step in zip(taps, window.stride, strict=True))
    return apart and set(window.kernel_spread) == {1} and not any(map(any, window.padding))


def _share_few(window: Window, kernel: Sizes) -> bool:
    """Return whether windows of 3x3 elements lie two elements apart, with channels enough for products."""
    near = kernel[:-2] == (3, 3) and window.stride == (2, 2) and window.kernel_spread == (1, 1)
    return near and kernel[-2] >= CHANNELS_OF_PRODUCTS and kernel[-1] >= 2 * CHANNELS_OF_PRODUCTS


def _gradient_in_rounds(x: Array, g: Array, taps: Sizes, window: Window) -> Array:
    """Return what `_gradient_by_product` returns, as a sum over rounds of samples."""

    def terms(x: Array, g: Array) -> list[Array]:
        return [_gradient_by_product(x, g, taps, window)]

    return sum_of_rounds(terms, x, g, [(math.prod(taps) * x.shape[-1], g.shape[-1])])[0]


def _gradient_by_product(x: Array, g: Array, taps: Sizes, window: Window) -> Array:
    """Return the gradient (elements of the kernel x C, M) as a product with what the windows see."""
    seen = list(moved(x, taps, window))
    # Without the barrier a loop would copy the windows element by element.
    x = seen[0] if len(seen) == 1 else jax.lax.optimization_barrier(jnp.concatenate(seen, axis=-1))
    x, g = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
    if x.shape[-1] <= g.shape[-1]:
        return jnp.matmul(x.T, g, precision="highest")
    # XLA would turn the product round again, which takes 1.2 to 1.7 times as long.
    return jax.lax.optimization_barrier(jnp.matmul(g.T, x, precision="highest")).T


def _paddings(window: Window, sizes: Sizes, taps: Sizes, windows: Sizes) -> tuple[Padding, Padding]:
    """Return the padding of the convolutions that give the gradients towards the operand and towards the kernel."""
    inside: list[tuple[int, int]] = []
    outside: list[tuple[int, int]] = []
    for axis, (leading, _) in enumerate(window.padding):
        full = spread(sizes[axis], window.spread[axis])
        size = spread(taps[axis], window.kernel_spread[axis])
        steps = spread(windows[axis], window.stride[axis])
        inside.append((size - 1 - leading, full - steps + leading))
        outside.append((leading, steps + size - full - 1 - leading))
    return tuple(inside), tuple(outside)


def _axes(window: Window, sizes: Sizes, kernel: Sizes) -> list[Axis]:
    """Return the axes of a convolution whose operand is spread."""
    axes: list[Axis] = []
    for number, size in enumerate(sizes):
        (leading, after), reach = window.padding[number], spread(kernel[number], window.kernel_spread[number])
        result = spread(size, window.spread[number]) + leading + after - reach + 1
        axes.append(Axis(size, kernel[number], leading, window.spread[number], window.kernel_spread[number], result))
    return axes
