"""Images of other sizes: along each axis a product with a matrix of constants."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cntkpy.networks.nodes.onnx_support.building import Rule, Use
from cntkpy.networks.nodes.onnx_support.values import Array, Data, Unusable, Value
from cntkpy.networks.nodes.shape.onnx_axes import permuted

Weights = Callable[[float], "list[tuple[int, float]]"]
"""Of a place between elements: the numbers of elements around it, and the share of each."""

LONGEST, LARGEST = 1 << 14, 1 << 24
"""Elements of an axis, and of a matrix, at most."""


def _nearest(rounding: str) -> Weights:
    def weights(place: float) -> list[tuple[int, float]]:
        low = math.floor(place)
        half = place - low == 0.5
        up = {
            "round_prefer_floor": place - low > 0.5,
            "round_prefer_ceil": place - low > 0.5 or half,
            "floor": False,
            "ceil": place > low,
        }[rounding]
        return [(low + up, 1.0)]

    return weights


def _linear(place: float) -> list[tuple[int, float]]:
    low = math.floor(place)
    return [(low, 1 - (place - low)), (low + 1, place - low)]


def _cubic(a: float) -> Weights:
    """Keys' kernel of four elements (R. Keys, Cubic convolution interpolation for digital image processing, 1981)."""

    def weights(place: float) -> list[tuple[int, float]]:
        low = math.floor(place)
        r = place - low
        near = [(a + 2) * d**3 - (a + 3) * d**2 + 1 for d in (r, 1 - r)]
        far = [a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a for d in (1 + r, 2 - r)]
        return [(low - 1, far[0]), (low, near[0]), (low + 1, near[1]), (low + 2, far[1])]

    return weights


def _place(how: str, index: int, size: int, wanted: int, scale: float) -> float:
    """Return the place of element `index` of the result, in elements of the operand.

    Raises:
        Unusable: the way of finding it is not known.
    """
    middle = (index + 0.5) / scale - 0.5
    if how == "half_pixel_symmetric":
        return size / 2 * (1 - wanted / (scale * size)) + middle
    places = {
        "half_pixel": middle,
        "pytorch_half_pixel": middle if wanted > 1 else 0.0,
        "align_corners": index * (size - 1) / (scale * size - 1) if scale * size > 1 else 0.0,
        "asymmetric": index / scale,
    }
    if how not in places:
        raise Unusable(f"coordinate_transformation_mode = {how} is not supported")
    return places[how]


def _matrix(use: Use, size: int, wanted: int, scale: float) -> np.ndarray:
    """Return the matrix `(size, wanted)` of one axis."""
    if wanted > LONGEST or size * wanted > LARGEST:
        raise Unusable(f"an axis of {size} elements becomes one of {wanted}")
    use.build.take(size, wanted)
    mode, how = use.get("mode", "nearest"), use.get("coordinate_transformation_mode", "half_pixel")
    rounding = use.get("nearest_mode", "round_prefer_floor")
    if use.operator.kind == "Upsample" or use.opset < 11:
        how, rounding = "asymmetric", "floor"
    ways = {"nearest": _nearest(rounding), "linear": _linear, "cubic": _cubic(use.get("cubic_coeff_a", -0.75))}
    if mode not in ways:
        raise Unusable(f"mode = {mode} is not supported")
    matrix = np.zeros((size, wanted), use.build.network.dtype)
    for index in range(wanted):
        parts = ways[mode](_place(how, index, size, wanted, scale))
        if use.get("exclude_outside", 0):
            parts = [(source, share) for source, share in parts if 0 <= source < size]
            total = sum(share for _, share in parts)
            parts = [(source, share / total) for source, share in parts]
        for source, share in parts:
            matrix[min(max(source, 0), size - 1), index] += share
    return matrix


def _sizes(use: Use, x: Data) -> list[tuple[int, int, float]]:
    """Which axes get another size: number, size, factor."""
    axes = use.sizes("axes") or list(range(len(x.axes)))
    first = 2 if use.operator.kind == "Resize" and use.opset >= 11 else 1
    scales = use.get("scales")
    if scales is None and use.has(first) and use.array(first).value.size:
        scales = use.array(first).value.reshape(-1).tolist()
    wanted = None if scales is not None else use.integers("sizes", 3)
    if scales is None and wanted is None:
        raise Unusable("neither scales nor sizes are given")
    if len(scales if scales is not None else wanted or []) != len(axes):
        raise Unusable("its scales or sizes are not one for each axis")
    shares: list[tuple[int, int, float]] = []
    for number, axis in enumerate(axes):
        size = x.axes[use.axis(axis, len(x.axes))]
        if isinstance(size, str):
            if (1 if scales is None else scales[number]) != 1:
                raise Unusable(f"it changes the axis '{size}' of the minibatch")
            continue
        if scales is not None:
            factor = float(scales[number])
            new = math.floor(size * factor)
        else:
            new = (wanted or [])[number]
            factor = new / size
        if new != size or factor != 1:
            shares.append((axis % len(x.axes), new, factor))
    return shares


def resize(use: Use) -> list[Value]:
    """Resize and Upsample."""
    use.refuse("antialias", 0)
    use.refuse("keep_aspect_ratio_policy", "stretch")
    x = use.data()
    for axis, wanted, factor in _sizes(use, x):
        size = x.axes[axis]
        assert isinstance(size, int)
        if wanted < 1:
            raise Unusable(f"no elements of axis {axis} are left")
        matrix = use.build.parameter(Array(_matrix(use, size, wanted, factor)))
        order = list(range(len(x.axes)))
        order[axis], order[-1] = order[-1], order[axis]
        turned = permuted(use, x, order)
        node = use.build.node("Times", matrix, turned.node)
        x = permuted(use, use.build.data(node, (*turned.axes[:-1], wanted)), order)
    return [x]


RULES: dict[str, Rule] = {"Resize": resize, "Upsample": resize}
