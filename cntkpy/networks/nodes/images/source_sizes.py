"""Sizes of windows in source."""

from __future__ import annotations

from cntkpy.networks.nodes.images.geometry import Geometry
from cntkpy.networks.nodes.source_support.values import Dims


def tuple_text(sizes: Dims) -> str:
    """Return sizes as an argument: one number where they are equal."""
    return str(sizes[0]) if len(set(sizes)) == 1 else str(tuple(sizes))


def symmetric(geometry: Geometry) -> Dims | None:
    """Return the padding of both sides that gives these windows; None: both sides need another one."""
    for axis, (leading, _) in enumerate(geometry.padding):
        reached = geometry.inputs[axis] + 2 * leading - geometry.reach[axis]
        if leading < 0 or reached // geometry.stride[axis] + 1 != geometry.outputs[axis]:
            return None
    return tuple(leading for leading, _ in geometry.padding)


def options(geometry: Geometry, groups: int = 1) -> list[tuple[str, str]]:
    """Return the options of a convolution that are not the default."""
    both = symmetric(geometry)
    result: list[tuple[str, str]] = []
    if any(step != 1 for step in geometry.stride):
        result.append(("stride", tuple_text(geometry.stride)))
    if both is not None and any(both):
        result.append(("padding", tuple_text(both)))
    if any(distance != 1 for distance in geometry.dilation):
        result.append(("dilation", tuple_text(geometry.dilation)))
    if groups > 1:
        result.append(("groups", str(groups)))
    return result


def needs_stride(geometry: Geometry) -> bool:
    """Return whether a pooling whose windows are as far apart as they are large gives other values."""
    both = symmetric(geometry)
    padding = tuple(map(sum, geometry.padding)) if both is None else tuple(2 * size for size in both)
    sizes = zip(geometry.inputs, padding, geometry.kernel, geometry.outputs, strict=True)
    fits = all((size + added) // kernel == count == 1 for size, added, kernel, count in sizes)
    return geometry.stride != geometry.kernel and not fits
