"""Convolutions of an operand with zeros between its elements, without multiplying the zeros.

The gradient of a strided convolution with respect to its image is one, and so is a transposed convolution. XLA's code
for CPUs multiplies the zeros: up to a hundred times the time of these forms (W16).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.nodes.images.windows import Padding, Sizes, Window, convolve_by_xla

FEWEST_CHANNELS = 16
"""Channels of the result below which XLA's own code is as fast."""
PRODUCTS_PER_ELEMENT = 150
"""Multiplications that take as long as adding one element of a product to its place in the result."""


class Axis(NamedTuple):
    """One axis of a convolution with stride 1.

    Attributes:
        size: elements of the operand.
        kernel: elements of the kernel.
        before: padding in front, counted in elements of the spread operand.
        spread: distance of the operand's elements.
        kernel_spread: distance of the kernel's elements.
        result: elements of the result.
    """

    size: int
    kernel: int
    before: int
    spread: int
    kernel_spread: int
    result: int

    @property
    def windows(self) -> int:
        """Elements of the result that have one phase."""
        return -(-self.result // self.spread)

    def phase(self, start: int) -> Phase | None:
        """Return the phase of elements `start`, `start + spread`, ... of the result; None if they see only zeros."""
        common = math.gcd(self.spread, self.kernel_spread)
        period = self.spread // common
        taps = [tap for tap in range(period) if (start + tap * self.kernel_spread - self.before) % self.spread == 0]
        if not taps or taps[0] >= self.kernel:
            return None
        (tap,) = taps
        first = (start + tap * self.kernel_spread - self.before) // self.spread
        count = -(-(self.kernel - tap) // period)
        reach = (count - 1) * (self.kernel_spread // common)
        return Phase(
            slice(tap, None, period), self.kernel_spread // common, (-first, first + self.windows + reach - self.size)
        )


class Phase(NamedTuple):
    """A dense convolution along one axis.

    Attributes:
        taps: the elements of the kernel.
        kernel_spread: their distance in the operand.
        padding: before and after the operand; negative values drop elements.
    """

    taps: slice
    kernel_spread: int
    padding: tuple[int, int]


def convolve_spread(x: Array, kernel: Array, axes: Sequence[Axis]) -> Array | None:
    """Convolve without the zeros, by the cheaper of two forms.

    Args:
        x: (N, ..., C).
        kernel: (..., C, M), not flipped.
        axes: the axes between.

    Returns:
        (N, ..., M); None where XLA's own code is as fast.
    """
    maps, taps = kernel.shape[-1], math.prod(axis.kernel for axis in axes)
    if maps < FEWEST_CHANNELS or all(axis.spread == 1 for axis in axes):
        return None
    dense = math.prod(axis.windows for axis in axes) * x.shape[-1]
    products = math.prod(axis.size for axis in axes) * (x.shape[-1] + PRODUCTS_PER_ELEMENT)
    if taps > 1 and products < dense and all(axis.kernel_spread == 1 for axis in axes):
        return _by_products(x, kernel, axes)
    return _by_phases(x, kernel, axes)


def _by_phases(x: Array, kernel: Array, axes: Sequence[Axis]) -> Array:
    """Convolve once for each phase of the result."""
    ones = (1,) * len(axes)

    def dense(x: Array, part: Array, padding: Padding, kernel_spread: Sizes) -> Array:
        return convolve_by_xla(x, part, Window(ones, padding, ones, kernel_spread))

    return phase_by_phase(x, kernel, axes, dense)


def phase_by_phase(x: Array, kernel: Array, axes: Sequence[Axis], dense: Callable[..., Array]) -> Array:
    """Return the result of a convolution for each phase, with the elements of the kernel that meet no zeros.

    Args:
        x: (N, ..., C).
        kernel: (..., C / groups, M), not flipped.
        axes: the axes between.
        dense: the convolution with stride 1 `(x, part of the kernel, padding, distance of its elements)`.
    """
    parts: list[Array] = []
    for starts in itertools.product(*(range(axis.spread) for axis in axes)):
        phases = [axis.phase(start) for axis, start in zip(axes, starts, strict=True)]
        known = [phase for phase in phases if phase is not None]
        if len(known) < len(phases):
            parts.append(jnp.zeros((len(x), *(axis.windows for axis in axes), kernel.shape[-1]), x.dtype))
            continue
        part = kernel[tuple(phase.taps for phase in known)]
        parts.append(
            dense(x, part, tuple(phase.padding for phase in known), tuple(phase.kernel_spread for phase in known))
        )
    return interleaved(parts, axes)


def _by_products(x: Array, kernel: Array, axes: Sequence[Axis]) -> Array:
    """Multiply every element of x with the whole kernel, and add the products at their places."""
    maps, sizes = kernel.shape[-1], [axis.size for axis in axes]
    matrix = jnp.moveaxis(kernel, -2, 0).reshape(x.shape[-1], -1)
    products = jnp.matmul(x.reshape(-1, x.shape[-1]), matrix, precision="highest")
    products = products.reshape(len(x), *sizes, *kernel.shape[: len(axes)], maps)
    everything = (slice(None),) * (1 + len(axes))
    zero, parts = jnp.zeros((), x.dtype), list[Array]()
    for starts in itertools.product(*(range(axis.spread) for axis in axes)):
        part = jnp.zeros((len(x), *(axis.windows for axis in axes), maps), x.dtype)
        taps = (
            range((axis.before - start) % axis.spread, axis.kernel, axis.spread)
            for axis, start in zip(axes, starts, strict=True)
        )
        for tap in itertools.product(*taps):
            around = [(0, 0, 0)]
            for axis, start, number in zip(axes, starts, tap, strict=True):
                offset = (axis.before - number - start) // axis.spread
                around.append((offset, axis.windows - axis.size - offset, 0))
            part = part + jax.lax.pad(products[(*everything, *tap)], zero, [*around, (0, 0, 0)])
        parts.append(part)
    return interleaved(parts, axes)


def interleaved(parts: list[Array], axes: Sequence[Axis]) -> Array:
    """Return the result whose phases are given, those of the last axis next to each other."""
    for number in reversed(range(len(axes))):
        step = axes[number].spread
        stacked = [jnp.stack(parts[begin : begin + step], 2 + number) for begin in range(0, len(parts), step)]
        parts = [part.reshape(*part.shape[: 1 + number], -1, *part.shape[3 + number :]) for part in stacked]
    (whole,) = parts
    return whole[(slice(None), *(slice(axis.result) for axis in axes))]
