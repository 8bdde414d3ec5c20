"""Slicing, stacking and re-shaping.

Specified in docs/specification/networks.md#b6-shape-manipulation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cntkpy.networks.arrays.lazy import Array, jnp
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.declare import INTEGER, TEXT, Argument, Option, RecordForm, one_signature
from cntkpy.networks.nodes.inputs.kinds import IMAGE_LAYOUTS, image_shape

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Node
    from cntkpy.networks.nodes.call import Call


def row_range(node: Node, rows: int) -> tuple[int, int]:
    """Return the rows, of so many, that a RowSlice node takes: first, one past the last."""
    start, count = int(node.options["start"]), int(node.options["count"])
    begin, end = start, start + count
    if begin < 0:
        begin += rows
    if end <= 0:
        end += rows
    if not 0 <= begin < end <= rows:
        raise ShapeProblem(f"rows {start} to {start + count} (exclusive) are outside the operand's {rows} rows")
    return begin, end


def _row_slice_shape(node: Node) -> Shape | None:
    """Return the shape of x with `count` rows."""
    x = node.input(0).shape
    if x is None or 0 in x:
        return None
    begin, end = row_range(node, x[0])
    return (end - begin, *x[1:])


def _row_slice(call: Call, x: Array) -> Array:
    begin, end = row_range(call.node, x.shape[-1])
    return x[..., begin:end]


def _row_stack_shape(node: Node) -> Shape | None:
    """Return the rows of all inputs; the other axes are broadcast."""
    operand_shapes = [i.shape for i in node.connected]
    known = [s for s in operand_shapes if s is not None and 0 not in s]
    if len(known) < len(operand_shapes):
        return None
    rank = max(len(s) for s in known)
    known = [shapes.padded(s, rank) for s in known]
    return (sum(s[0] for s in known), *shapes.broadcast([(1, *s[1:]) for s in known])[1:])


def _row_stack(call: Call, *arrays: Array) -> Array:
    shape = call.node.shape
    tail = tuple(reversed(shape[1:]))
    lead = (call.context.T, call.context.S) if call.node.has_layout else ()
    full = [jnp.broadcast_to(a, (*lead, *tail, a.shape[-1])) for a in arrays]
    return jnp.concatenate(full, axis=-1)


def _row_repeat_shape(node: Node) -> Shape | None:
    """Return the shape of x with `count` times the rows."""
    x = node.input(0).shape
    rules.carrying_data(node.input(0))
    count = int(node.options["count"])
    if count < 1:
        raise ShapeProblem("the number of repetitions must be at least 1")
    return None if x is None else (*x[:-1], x[-1] * count)


def _row_repeat(call: Call, x: Array) -> Array:
    flat = call.flat(x)
    return jnp.tile(flat, (1, 1, int(call.options["count"]))).reshape(*x.shape[:2], *reversed(call.node.shape))


def _reshape_shape(node: Node) -> Shape | None:
    """`[numRows]`, or the image given by the options, which has numRows elements."""
    x, options = node.input(0).shape, node.options
    if x is None or 0 in x:
        return None
    rows = int(options["numRows"])
    if rows != shapes.size(x):
        raise ShapeProblem(
            f"Reshape to {rows} rows would change the time axis, which is not supported",
            hint=f"numRows must be the number of rows of the operand, {shapes.size(x)}",
        )
    dims = [int(options[key]) for key in ("imageWidth", "imageHeight", "imageChannels")]
    known = [d for d in dims if d > 0]
    if not known:
        return (1, rows, 1)
    if len(known) < 2:
        raise ShapeProblem("give at least two of imageWidth, imageHeight and imageChannels, or none")
    dims = [d if d > 0 else rows // shapes.size(known) for d in dims]
    if shapes.size(dims) != rows:
        raise ShapeProblem(f"an image of {shapes.text(dims)} does not have {rows} elements")
    return image_shape(dims[0], dims[1], dims[2], options["imageLayout"])


def _reshape(call: Call, x: Array) -> Array:
    lead = x.shape[:2] if call.node.has_layout else ()
    return x.reshape(*lead, *reversed(call.node.shape))


KINDS = [
    one_signature(
        "RowSlice",
        (Argument("start", INTEGER), Argument("count", INTEGER), Argument("x")),
        "Some rows (elements of the first axis), counted from 0.",
        "x[start : start + count]",
        _row_slice_shape,
        _row_slice,
        printed="Slice",
        record=None,
        example="h = RowSlice(0, 2, x)",
    ),
    one_signature(
        "RowStack",
        (Argument("x", many=True),),
        "Operands stacked along the first axis; other axes equal or 1.",
        "(x1; x2; ...)",
        _row_stack_shape,
        _row_stack,
        elementwise=True,
        record=RecordForm(nodes_only=True),
        example="h = RowStack(x, y)",
    ),
    one_signature(
        "RowRepeat",
        (Argument("x"), Argument("count", INTEGER)),
        "The whole sample repeated one after another; the last axis grows.",
        "(x; x; ...)",
        _row_repeat_shape,
        _row_repeat,
        record=RecordForm(names={"count": "numRepeats"}),
        example="h = RowRepeat(x, 3)",
    ),
    one_signature(
        "Reshape",
        (Argument("x"), Argument("numRows", INTEGER)),
        "The same elements in another shape: an image if its dimensions are given, else [1 x numRows x 1].",
        "elements in column-major order",
        _reshape_shape,
        _reshape,
        options=(
            Option("imageWidth", INTEGER, 0, "width; one of the three may be left out"),
            Option("imageHeight", INTEGER, 0, "height"),
            Option("imageChannels", INTEGER, 0, "channels"),
            Option("imageLayout", TEXT, "HWC", "order of the axes", IMAGE_LAYOUTS),
        ),
        record=RecordForm("LegacyReshape"),
        example="h = Reshape(x, 4, imageWidth=2, imageHeight=2, imageChannels=1, imageLayout=CHW)",
    ),
]
