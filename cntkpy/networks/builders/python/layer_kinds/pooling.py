"""The largest element or the mean of windows."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence

from cntkpy.networks.builders.python.functions.defaults import DEFAULT, chosen
from cntkpy.networks.builders.python.functions.function import known_shape
from cntkpy.networks.builders.python.functions.leaves import Shape, dims
from cntkpy.networks.builders.python.layer_kinds.base import Layer, makes_blocks
from cntkpy.networks.builders.python.layer_kinds.library import (
    WINDOW_HINT,
    LibraryLayer,
    flags_of,
    least_sizes,
    sizes_of,
)


@makes_blocks
def MaxPooling(filter_shape: Shape, strides: Shape = 1, pad: bool | Sequence[bool] = DEFAULT, name: str = "") -> Layer:
    """Return the largest element of each window."""
    return _pooling("MaxPooling", filter_shape, strides, pad, name)


@makes_blocks
def AveragePooling(
    filter_shape: Shape, strides: Shape = 1, pad: bool | Sequence[bool] = DEFAULT, name: str = ""
) -> Layer:
    """Return the mean of each window."""
    return _pooling("AveragePooling", filter_shape, strides, pad, name)


def _pooling(kind: str, filter_shape: Shape, strides: Shape, pad: bool | Sequence[bool], name: str) -> Layer:
    sizes, padding = dims(filter_shape), chosen(kind, "pad", pad, False)
    layer = LibraryLayer(
        f"{kind}Layer", list(sizes), label=kind, name=name, stride=sizes_of(strides), pad=flags_of(padding)
    )
    layer.options = {"sharedPadding": True}
    layer.least_rank, layer.rank_hint = len(sizes), WINDOW_HINT
    layer.least_sizes = least_sizes(sizes[::-1], padding)
    return layer


@makes_blocks
def MaxUnpooling(
    filter_shape: Shape, strides: Shape = 1, pad: bool | Sequence[bool] = DEFAULT, name: str = ""
) -> Layer:
    """Applied to x and an image: the elements of x where the largest one of each window of the image was.

    The windows are those of the `MaxPooling` of the image.
    """
    padding = flags_of(chosen("MaxUnpooling", "pad", pad, False))
    layer = LibraryLayer(
        "MaxUnpoolingLayer",
        list(dims(filter_shape)),
        label="MaxUnpooling",
        name=name,
        stride=sizes_of(strides),
        pad=padding,
    )
    layer.options = {"sharedPadding": True, "wholePicture": True}
    return layer


@makes_blocks
def GlobalMaxPooling(name: str = "") -> Layer:
    """Return the largest element of each channel."""
    return Layer(lambda x: MaxPooling(known_shape(x)[1:], pad=False)(x), name)


@makes_blocks
def GlobalAveragePooling(name: str = "") -> Layer:
    """Return the mean of each channel."""
    return Layer(lambda x: AveragePooling(known_shape(x)[1:], pad=False)(x), name)
