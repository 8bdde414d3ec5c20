"""Initializers of random parameters.

Of a parameter of shape (..., outputs, *filter), fan_in is the number of elements that one output depends on, fan_out
the number of those that depend on one input. The last `filter_rank` axes are those of a filter; of the others the last
`output_rank` ones count outputs, or the first ones where it is negative. Layers say both by themselves.
"""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cntkpy.networks.builders.python.functions.checks import check_number, check_whole
from cntkpy.networks.builders.python.functions.leaves import Initializer
from cntkpy.networks.graph.initialize import UNIFORM


def uniform(scale: float = 1.0, seed: int | None = None) -> Initializer:
    """Equally distributed from -scale to scale."""
    return Initializer("uniform", check_number("the scale of an initializer", scale, 0.0) / UNIFORM, seed)


def _initializer(name: str, kind: str, meaning: str) -> Callable[..., Initializer]:
    def make(
        scale: float = 1.0, output_rank: int | None = None, filter_rank: int | None = None, seed: int | None = None
    ) -> Initializer:
        return Initializer(kind, scale, seed, output_rank, filter_rank)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = meaning
    return make


glorot_uniform = _initializer("glorot_uniform", "glorotUniform", "Equal up to scale * sqrt(6 / (fan_in + fan_out)).")
glorot_normal = _initializer(
    "glorot_normal", "glorotNormal", "Normal with a deviation of scale * sqrt(2 / (fan_in + fan_out))."
)
he_uniform = _initializer("he_uniform", "heUniform", "Equal up to scale * sqrt(6 / fan_in).")
he_normal = _initializer("he_normal", "heNormal", "Normal with a deviation of scale * sqrt(2 / fan_in).")
normal = _initializer("normal", "normal", "Normal with a deviation of scale.")
xavier = _initializer("xavier", "xavier", "Equal up to scale * sqrt(3 / fan_in).")


def truncated_normal(stdev: float, seed: int | None = None) -> Initializer:
    """Normal with a deviation of `stdev`; numbers beyond two deviations are drawn again."""
    return Initializer("truncatedNormal", check_number("the deviation of truncated_normal", stdev, 0.0), seed)


def bilinear(kernel_width: int, kernel_height: int) -> Initializer:
    """Filters (channels, channels, height, width) that interpolate each channel linearly where they are spread.

    They are the start of a `convolution_transpose` that enlarges pictures.

    Args:
        kernel_width: the width of filters.
        kernel_height: the same as their height.
    """
    kernel = check_whole("kernel_width", kernel_width, 1), check_whole("kernel_height", kernel_height, 1)
    return Initializer("bilinear", kernel=kernel)


def initializer_with_rank(initializer: Any, output_rank: int | None = None, filter_rank: int | None = None) -> Any:
    """Return an initializer with these ranks, where it has none of its own; a number or an array as it is."""
    return initializer.with_ranks(output_rank, filter_rank) if isinstance(initializer, Initializer) else initializer


__all__ = [
    "bilinear", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "initializer_with_rank", "normal",
    "truncated_normal", "uniform", "xavier",
]  # fmt: skip
