"""Crop: a window of an image, as large as another image and, if wished, above the same part of a common picture.

The place is found by following both operands down to a node on which they depend. Each operation on the way says which
position of its operand lies under a position of its result: that of a convolution with stride 2 is twice as far right.

Specified in docs/specification/networks.md#b6-shape-manipulation.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from cntkpy.networks.arrays.lazy import Array
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.declare import INTEGER, Argument, NodeKind, Option, RecordForm
from cntkpy.networks.nodes.images.convolution import geometry_of as convolution_geometry
from cntkpy.networks.nodes.images.pooling import geometry_of as pooling_geometry
from cntkpy.networks.nodes.inputs.kinds import is_chw

if TYPE_CHECKING:
    from cntkpy.networks.graph.node import Node
    from cntkpy.networks.nodes.call import Call


class Under(NamedTuple):
    """Position x of a node lies above position `scale * x + shift` of another one, for both axes."""

    scale: tuple[float, float] = (1.0, 1.0)
    shift: tuple[float, float] = (0.0, 0.0)

    def then(self, below: Under) -> Under:
        """Return the same for a node further down."""
        scale = (self.scale[0] * below.scale[0], self.scale[1] * below.scale[1])
        shift = [below.scale[axis] * self.shift[axis] + below.shift[axis] for axis in range(2)]
        return Under(scale, (shift[0], shift[1]))

    def inverse(self) -> Under:
        """Return the same from below."""
        scale = (1 / self.scale[0], 1 / self.scale[1])
        return Under(scale, (-self.shift[0] * scale[0], -self.shift[1] * scale[1]))


def _steps(node: Node) -> list[tuple[Node, Under]]:
    """Return the images among the operands, and where the positions of the result lie in them."""
    if node.operation == "Crop":
        offsets = crop_offsets(node)
        return [(node.input(0), Under(shift=(offsets[0], offsets[1])))]
    windows = convolution_geometry(node) or pooling_geometry(node)
    if windows is not None:
        if not is_chw(node.options.get("imageLayout", "CHW")):
            return []
        image, geometry, upwards = windows
        middle = [(geometry.reach[axis] - 1) / 2 - geometry.padding[axis][0] for axis in range(2)]
        under = Under((geometry.stride[0], geometry.stride[1]), (middle[0], middle[1]))
        return [(image, under.inverse() if upwards else under)]
    size = (node.shape or ())[:2]
    return [(node, Under()) for node in node.connected if not node.is_parameter and (node.shape or ())[:2] == size]


def _below(node: Node) -> dict[Node, Under]:
    """Return every node below that has the positions of an image, nearest first."""
    reached, waiting = {node: Under()}, deque([node])
    while waiting:
        current = waiting.popleft()
        if current.kind.time.delay or current.shape is None or len(current.shape) < 2:
            continue
        for source, under in _steps(current):
            if source not in reached:
                reached[source] = reached[current].then(under)
                waiting.append(source)
    return reached


def crop_offsets(node: Node) -> tuple[int, int]:
    """Return the column and the row where the window of a Crop node begins."""
    offsets = node.options["offsetX"], node.options["offsetY"]
    if offsets[0] is not None and offsets[1] is not None:
        return int(offsets[0]), int(offsets[1])
    x, y = _below(node.input(0)), _below(node.input(1))
    if len(node.inputs) == 4:
        a, b = node.input(2), node.input(3)
        for below, operand, index in ((x, a, 1), (y, b, 2)):
            if operand not in below:
                message = f"the positions of operand {index}, '{node.input(index - 1).name}', do not come from "
                raise ShapeProblem(f"{message}'{operand.name}'", "give the offsets as numbers")
        first, second = x[a], y[b]
    else:
        common = next((candidate for candidate in x if candidate in y), None)
        if common is None:
            message = f"'{node.input(0).name}' and '{node.input(1).name}' do not depend on a common image"
            raise ShapeProblem(message, "give the offsets as numbers, or two nodes whose positions are equal")
        first, second = x[common], y[common]
    if first.scale != second.scale:
        raise ShapeProblem("the two images do not have the same resolution, so no window of one lies above the other")
    distances = [(second.shift[axis] - first.shift[axis]) / first.scale[axis] for axis in range(2)]
    # A window with an even number of elements has its middle between two of them: the first one counts.
    return math.floor(distances[0] + 1e-6), math.floor(distances[1] + 1e-6)


def _shape(node: Node) -> Shape | None:
    """Return the first two axes of y, the others of x."""
    x, y = node.input(0).shape, node.input(1).shape
    if x is None or y is None:
        return None
    if len(node.inputs) == 3:
        raise ShapeProblem("Crop takes two operands, or four: the last two are nodes whose positions are equal")
    rules.carrying_data(node.input(0))
    if len(x) < 2 or len(y) < 2:
        raise ShapeProblem("both operands of Crop must be images")
    for axis, (key, offset) in enumerate(zip(("offsetX", "offsetY"), crop_offsets(node), strict=True)):
        if offset < 0 or offset + y[axis] > x[axis]:
            raise ShapeProblem(f"{key} = {offset}: the window lies outside the first operand")
    return (*y[:2], *x[2:])


def _crop(call: Call, x: Array, y: Array, *equal: Array) -> Array:
    left, top = crop_offsets(call.node)
    width, height = call.node.shape[:2]
    return x[..., top : top + height, left : left + width]


_X, _Y = Argument("x"), Argument("y")

KINDS = [
    NodeKind(
        "Crop",
        (
            (_X, _Y),
            (_X, _Y, Argument("offsetX", INTEGER), Argument("offsetY", INTEGER)),
            (_X, _Y, Argument("equalX"), Argument("equalY")),
        ),
        "A window of x of the width and height of y. Without offsets it is the one above the same part of an image on "
        "which both depend; equalX below x and equalY below y are nodes to be taken for such an image.",
        "x[offsetX : offsetX + width(y), offsetY : offsetY + height(y)]",
        _shape,
        _crop,
        options=(
            Option("offsetX", INTEGER, None, "the first offset; by default it is found", aliases=("xOffset",)),
            Option("offsetY", INTEGER, None, "the second offset; by default it is found", aliases=("yOffset",)),
        ),
        record=RecordForm(names={"offsetX": "xOffset", "offsetY": "yOffset"}, optional=("offsetX", "offsetY")),
        example="h = Crop(picture, ImageInput(4, 4, 3, imageLayout=CHW), 2, 1)",
    ),
]
