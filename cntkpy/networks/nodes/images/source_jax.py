"""Calls of functions of images in JAX."""

from __future__ import annotations

from cntkpy.networks.nodes.images.geometry import Geometry
from cntkpy.networks.nodes.images.source_sizes import needs_stride, options, symmetric, tuple_text
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import Dims, Value


def joined(use: Use, images: str, dims: Dims) -> str:
    """Return images (batch, ...) with other axes of as many elements."""
    return f"{images}.reshape(-1, {', '.join(map(str, dims))})"


def padding(geometry: Geometry) -> str:
    """Return the padding of each axis: one number where all are equal."""
    both = symmetric(geometry)
    return str(geometry.padding) if both is None else tuple_text(both)


def all_options(geometry: Geometry, groups: int = 1) -> list[tuple[str, str]]:
    """Return the options of a convolution that are not the default; both ends of an axis may differ."""
    result = options(geometry, groups)
    if symmetric(geometry) is None:
        result.append(("padding", padding(geometry)))
    return result


def convolution(use: Use, images: str, weights: str, geometry: Geometry, groups: int) -> str:
    """Return a call of a convolution."""
    arguments = [images, weights, *(f"{key}={text}" for key, text in all_options(geometry, groups))]
    return f"{use.helper('convolve')}({', '.join(arguments)})"


def transposed_convolution(use: Use, images: str, weights: str, geometry: Geometry) -> str:
    """Return a call of a transposed convolution, and the padding of its result."""
    arguments = [images, weights]
    if any(step != 1 for step in geometry.stride):
        arguments.append(f"stride={tuple_text(geometry.stride)}")
    if any(any(pair) for pair in geometry.padding):
        arguments.append(f"padding={geometry.padding}")
    if any(distance != 1 for distance in geometry.dilation):
        arguments.append(f"dilation={tuple_text(geometry.dilation)}")
    return f"{use.helper('convolve_transposed')}({', '.join(arguments)})"


def windows(use: Use, images: str, geometry: Geometry) -> str:
    """Return all windows: (batch, places..., elements of a window...)."""
    if any(any(pair) for pair in geometry.padding):
        images = f"jnp.pad({images}, ((0, 0), *{geometry.padding}))"
    arguments = [images, str(geometry.kernel), str(geometry.stride)]
    if any(distance != 1 for distance in geometry.dilation):
        arguments.append(str(geometry.dilation))
    return f"{use.helper('windows')}({', '.join(arguments)})"


def pooling(use: Use, which: str, images: str, geometry: Geometry, included: bool) -> str:
    """Return a call of a pooling."""
    name = "max_pool" if which == "max" else "mean_pool"
    counted = which != "max" and included
    more = ", count_padding=True" if counted and padding(geometry) != "0" else ""
    return f"{use.helper(name)}({images}, {_window(geometry)}{more})"


def _window(geometry: Geometry) -> str:
    """The arguments of a pooling."""
    text = str(geometry.kernel)
    if needs_stride(geometry):
        text += f", {tuple_text(geometry.stride)}"
    return text + ("" if padding(geometry) == "0" else f", padding={padding(geometry)}")


def unpooling(use: Use, x: Value, images: str, geometry: Geometry) -> str:
    """Return values at the places of the first maxima of windows of images."""
    return f"{use.helper('unpool')}({x.text}, {images}, {_window(geometry)})"
