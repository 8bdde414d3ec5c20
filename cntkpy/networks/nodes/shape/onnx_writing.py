"""Rules for operations on the axes of a sample: slices, stacks, other dimensions, reductions."""

from __future__ import annotations

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.onnx_support.graph import NotExpressible
from cntkpy.networks.nodes.onnx_support.use import Rule, Use
from cntkpy.networks.nodes.shape.axes import slice_range
from cntkpy.networks.nodes.shape.kinds import row_range

REDUCTIONS = {"Sum": "Sum", "LogSum": "LogSumExp", "Mean": "Mean", "Min": "Min", "Max": "Max", "Prod": "Prod"}
"""Reductions, by the names of ONNX operators without `Reduce`."""


def row_slice(use: Use) -> str:
    """Return some rows."""
    begin, end = row_range(use.node, use.operands[0].dims[-1])
    return use.emit.slice(use.names[0], -1, begin, end)


def axis_slice(use: Use) -> str:
    """Return some elements of one axis."""
    axis, x = int(use.options["axis"]), use.operands[0]
    if not x.dims:
        return use.shaped(x.name, x.dims)
    begin, end = slice_range(use.node, x.dims[-axis])
    return use.emit.slice(x.name, -axis, begin, end)


def row_stack(use: Use) -> str:
    """Operands joined along the first axis, the last in memory; other axes are broadcast before."""
    emit, tail = use.emit, use.dims[:-1]
    source = next((operand for operand in use.operands if operand.lead), None)
    leading = emit.leading(source.name, source.lead) if source else emit.integers(())
    parts: list[str] = []
    for operand, name in zip(use.operands, use.aligned(len(use.dims)), strict=True):
        dims = (*(1,) * (len(use.dims) - len(operand.dims)), *operand.dims)
        fits = operand.lead == use.lead and dims[:-1] == tail
        parts.append(name if fits else emit.expand(name, leading, (*tail, dims[-1])))
    return emit.op("Concat", *parts, axis=-1)


def row_repeat(use: Use) -> str:
    """Return the whole sample several times."""
    count, size = int(use.options["count"]), shapes.size(use.operands[0].dims)
    tiled = use.emit.op("Tile", use.flat(), use.emit.integers([*(1,) * use.lead, count]))
    return use.shaped(tiled, (size * count,))


def reshape(use: Use) -> str:
    """Return the same elements in another shape."""
    return use.shaped(use.names[0], use.operands[0].dims)


def transpose_dimensions(use: Use) -> str:
    """Return two axes exchanged."""
    first, second = int(use.options["axis1"]), int(use.options["axis2"])
    x = use.operands[0]
    rank = max(len(x.dims), first, second)
    order = list(range(x.lead + rank))
    order[-first], order[-second] = order[-second], order[-first]
    return use.emit.op("Transpose", use.ranked(x, rank), perm=order)


def reduce_elements(use: Use) -> str:
    """Return a reduction along one axis, or of the whole sample."""
    axis, kind = int(use.options["axis"]), REDUCTIONS[str(use.options["reductionOp"])]
    if axis:
        return use.emit.reduce(kind, use.names[0], [-axis])
    return use.shaped(use.emit.reduce(kind, use.flat(), [-1]), (1,))


def reduce_minibatch(use: Use) -> str:
    """Return a reduction over all samples."""
    kind, x = REDUCTIONS[str(use.options["reductionOp"])], use.operands[0]
    if use.emit.lengths:
        raise NotExpressible("it would count padding; export without --lengths")
    return use.emit.reduce(kind, x.name, range(x.lead), keep=False)


def top(use: Use) -> str:
    """Return the largest elements of an axis, or their numbers."""
    axis, count = int(use.options["axis"]), use.emit.integers([int(use.options["k"])])
    values, numbers = use.emit.several("TopK", [use.names[0], count], 2, axis=-axis, largest=1, sorted=1)
    return use.emit.cast(numbers) if use.options["numbers"] else values


RULES: dict[str, Rule] = {
    "RowSlice": row_slice,
    "RowStack": row_stack,
    "RowRepeat": row_repeat,
    "Reshape": reshape,
    "Slice": axis_slice,
    "NewReshape": reshape,
    "TransposeDimensions": transpose_dimensions,
    "ReduceElements": reduce_elements,
    "ReduceMinibatch": reduce_minibatch,
    "TopK": top,
}
