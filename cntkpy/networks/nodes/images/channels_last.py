"""Convolution with channels last, whose gradients are convolutions with channels last, too.

XLA runs convolutions on a CPU through a fast kernel only in this one order of axes. It brings others to it by itself,
but not inside loops, and the trainers' steps are loops: there the gradients that JAX derives run 10 times slower.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from cntkpy.networks.arrays.lazy import Gradients, Residuals, custom_gradient, jax, jnp
from cntkpy.networks.nodes.images.spread import Axis, convolve_spread

Array = Any
Sizes = tuple[int, ...]


class Window(NamedTuple):
    """Geometry of a sliding kernel, per axis.

    Attributes:
        stride: step.
        padding: (before, after); negative values drop elements.
        spread, kernel_spread: zeros are put between the elements of the operand or the kernel, `spread - 1` each.
    """

    stride: Sizes
    padding: tuple[tuple[int, int], ...]
    spread: Sizes
    kernel_spread: Sizes


def channels_last(window: Window) -> Any:
    """The function `(x (N, ..., C), kernel (..., C, M)) -> (N, ..., M)`."""

    def primal(x: Array, kernel: Array) -> Array:
        if set(window.stride) == {1} and any(step > 1 for step in window.spread):
            result = convolve_spread(x, kernel, _axes(window, x.shape[1:-1], kernel.shape))
            if result is not None:
                return result
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

    def forward(x: Array, kernel: Array) -> tuple[Array, Residuals]:
        return primal(x, kernel), (x, kernel)

    def backward(residuals: Residuals, g: Array) -> Gradients:
        x, kernel = residuals
        axes = tuple(range(x.ndim - 2))
        inside: list[tuple[int, int]] = []
        outside: list[tuple[int, int]] = []
        for axis in axes:
            full = _spread(x.shape[1 + axis], window.spread[axis])
            size = _spread(kernel.shape[axis], window.kernel_spread[axis])
            steps = _spread(g.shape[1 + axis], window.stride[axis])
            leading = window.padding[axis][0]
            inside.append((size - 1 - leading, full - steps + leading))
            outside.append((leading, steps + size - full - 1 - leading))
        turned = jnp.swapaxes(jnp.flip(kernel, axes), -1, -2)
        to_x = channels_last(Window(window.spread, tuple(inside), window.stride, window.kernel_spread))
        to_kernel = channels_last(Window(window.kernel_spread, tuple(outside), window.spread, window.stride))
        gradient = to_kernel(jnp.swapaxes(x, 0, -1), jnp.moveaxis(g, 0, -2))
        return to_x(g, turned), jnp.moveaxis(gradient, 0, -2)

    return custom_gradient(primal, forward, backward)


def _axes(window: Window, sizes: Sizes, kernel: Sizes) -> list[Axis]:
    """Return the axes of a convolution whose operand is spread."""
    axes: list[Axis] = []
    for number, size in enumerate(sizes):
        (leading, after), reach = window.padding[number], _spread(kernel[number], window.kernel_spread[number])
        result = _spread(size, window.spread[number]) + leading + after - reach + 1
        axes.append(Axis(size, kernel[number], leading, window.spread[number], window.kernel_spread[number], result))
    return axes


def _spread(size: int, by: int) -> int:
    return (size - 1) * by + 1
