"""Geometry of a sliding kernel, and what its elements see."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from cntkpy.networks.arrays.lazy import Array, jax, jnp

Sizes = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]

ELEMENTS_AT_ONCE = 2**18
"""Most elements of the images of one round: what is computed of them, up to four times as much, stays in a cache."""


class Window(NamedTuple):
    """Geometry of a sliding kernel, per axis.

    Attributes:
        stride: step.
        padding: (before, after); negative values drop elements.
        spread, kernel_spread: zeros are put between the elements of the operand or the kernel, `spread - 1` each.
    """

    stride: Sizes
    padding: Padding
    spread: Sizes
    kernel_spread: Sizes


def rounds(x: Array, elements: int | None = None) -> Array:
    """Return images (N, ...) as rounds of equally many (rounds, samples, ...).

    Args:
        x: images.
        elements: most elements of a round of more than one sample; by default as many as stay in a cache.
    """
    most = (ELEMENTS_AT_ONCE if elements is None else elements) // max(1, math.prod(x.shape[1:]))
    return x.reshape(-1, most_divisor(len(x), most), *x.shape[1:])


def sum_of_rounds(
    terms: Callable[[Array, Array], list[Array]],
    x: Array,
    g: Array,
    sizes: Iterable[Sizes],
    elements: int | None = None,
) -> list[Array]:
    """Return the sums over rounds of samples of what images and slopes give.

    Args:
        terms: makes the terms of images (samples, ...) and slopes (samples, ...) of a round.
        x: images (N, ...).
        g: slopes (N, ...).
        sizes: the shapes of the sums.
        elements: see `rounds`.
    """

    def add(totals: list[Array], some: tuple[Array, Array]) -> tuple[list[Array], None]:
        return list(map(operator.add, totals, terms(*some))), None

    images = rounds(x, elements)
    zeros = [jnp.zeros(size, x.dtype) for size in sizes]
    return jax.lax.scan(add, zeros, (images, g.reshape(*images.shape[:2], *g.shape[1:])))[0]


def convolve_by_xla(x: Array, kernel: Array, window: Window) -> Array:
    """Return XLA's convolution (N, ..., M) of images (N, ..., C) and kernels (..., C, M)."""
    spatial = "DEFGHI"[: x.ndim - 2]
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        window.stride,
        window.padding,
        window.spread,
        window.kernel_spread,
        (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"),
        precision=jax.lax.Precision.HIGHEST,
    )


def most_divisor(count: int, most: int) -> int:
    """Return the largest divisor of a count up to a limit."""
    return max(divisor for divisor in range(1, max(1, min(most, count)) + 1) if count % divisor == 0)


def moved(x: Array, taps: Sizes, window: Window) -> Iterator[Array]:
    """Iterate over what each element of a kernel sees of x (N, ..., C)."""
    whole = padded(x, window)
    axes = zip(whole.shape[1:-1], taps, window.kernel_spread, window.stride, strict=True)
    places = [
        [slice(tap * step, tap * step + size - spread(count, step) + 1, stride) for tap in range(count)]
        for size, count, step, stride in axes
    ]
    return (whole[(slice(None), *cell)] for cell in itertools.product(*places))


def padded(x: Array, window: Window) -> Array:
    """Return images (N, ..., C) with the padding of a window."""
    around = [(0, 0, 0), *((leading, trailing, 0) for leading, trailing in window.padding), (0, 0, 0)]
    whole = jax.lax.pad(x, jnp.zeros((), x.dtype), around)
    if any(map(any, window.padding)):
        # In the loop of a training XLA would pad again for each element of the kernel, in four times the time.
        whole = jax.lax.optimization_barrier(whole)
    return whole


def spread(size: int, by: int) -> int:
    """Return the elements of an axis with `by - 1` zeros between `size` elements."""
    return (size - 1) * by + 1
