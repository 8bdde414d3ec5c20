"""Rules for operations on the steps of sequences. All sequences of a minibatch have the same number of steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cntkpy.networks.graph.axes import kept_steps, kept_window
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.onnx_support.graph import INT64_MAX, Emitter, NotExpressible
from cntkpy.networks.nodes.onnx_support.lengths import kept, within
from cntkpy.networks.nodes.onnx_support.use import Rule, Use

ROUNDING = 1e-9
"""As in RepeatSteps: a factor is taken for a whole number if it is one up to this."""


def _range(emit: Emitter, begin: str, end: str) -> str:
    """Return the integers from one number, without axes, to another."""
    return emit.op("Range", begin, end, emit.integer(1))


def _size(emit: Emitter, value: str, axis: int) -> str:
    """Return the size of an axis as a number without axes."""
    return emit.squeeze(emit.op("Shape", value, start=axis, end=axis + 1), 0)


class Steps(NamedTuple):
    """Steps of a sequence.

    Attributes:
        first: the number of the first one, from the beginning.
        stop: that of the one after the last, from the beginning; None: there is no such bound.
        last: how many at most, counted from the end; None: any number.
        left: how many are left out at the end.
    """

    first: int = 0
    stop: int | None = None
    last: int | None = None
    left: int = 0


def _least(*numbers: int | None) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


def steps_of(condition: Node) -> Steps | None:
    """Return the steps that a condition keeps, whatever the data are; None: that is not known."""
    part = kept_window(condition)
    if part is not None:
        return Steps(part.start, part.stop) if part.direction < 0 else Steps(last=part.stop, left=part.start)
    if condition.operation != "ElementTimes":
        return None
    left, right = (steps_of(source) for source in condition.connected)
    if left is None or right is None:
        return None
    stop, last = _least(left.stop, right.stop), _least(left.last, right.last)
    return Steps(max(left.first, right.first), stop, last, max(left.left, right.left))


def _is_zero(node: Node) -> bool:
    """Return whether a node is a constant of zeros."""
    return node.is_parameter and not node.trainable and node.value is not None and not node.value.any()


def _looks_at_numbers_only(condition: Node) -> bool:
    """Return whether a condition depends on step numbers only: it keeps the same ones in sequences of equal length."""
    seen, wanted = set[Node](), [condition]
    while wanted:
        node = wanted.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.kind.layout == "always" or node.kind.random:
            return False
        if node.operation == "ElementTimes" and any(map(_is_zero, node.connected)):
            continue
        if node.operation == "ReconcileDynamicAxis":
            wanted.append(node.input(0))
        elif node.operation == "PackedIndex":  # of its first operand only the steps count
            wanted.append(node.input(1))
        elif node.operation != "RepeatSteps":
            wanted += node.connected
    return True


def where(use: Use) -> str:
    """Return the numbers of the steps that a condition keeps."""
    emit, condition = use.emit, use.node.input(0)
    name = use.names[0]
    if use.options["single"] or kept_steps(condition) == 1:
        kept = emit.op("Not", emit.op("Equal", emit.reshape(name, 2, ()), emit.real(0)))
        place = emit.op("ArgMax", emit.op("Cast", kept, to=np.dtype(np.int32)), axis=0, keepdims=1)
        return emit.cast(emit.unsqueeze(place, -1))
    steps = steps_of(condition)
    lengths = emit.lengths.get(condition.axis or "")
    if steps is None and lengths is None and _looks_at_numbers_only(condition):
        first = emit.squeeze(emit.slice(emit.reshape(name, 2, ()), 1, 0, 1), 1)
        return _numbered(use, emit.cast(emit.squeeze(emit.op("NonZero", first), 0)))
    if steps is None:
        raise NotExpressible("it keeps some steps of each sequence, how many is known with the data only")
    count = _size(emit, name, 0)
    if lengths is not None:
        emit.lengths[use.node.axis or ""] = _kept_lengths(emit, lengths, steps)
        if steps.last is not None:
            return _from_the_end(use, lengths, steps)
    begin, end = emit.integer(steps.first), count
    if steps.last is not None:
        begin = emit.op("Max", begin, emit.op("Sub", count, emit.integer(steps.last)))
    if steps.left:
        end = emit.op("Sub", end, emit.integer(steps.left))
    if steps.stop is not None:
        end = emit.op("Min", end, emit.integer(steps.stop))
    return _numbered(use, emit.cast(_range(emit, begin, end)))


def _kept_lengths(emit: Emitter, lengths: str, steps: Steps) -> str:
    """Return the number of steps that are kept of each sequence."""
    end = emit.op("Sub", lengths, emit.integer(steps.left)) if steps.left else lengths
    end = emit.op("Min", end, emit.integer(steps.stop)) if steps.stop is not None else end
    count = emit.op("Max", emit.op("Sub", end, emit.integer(steps.first)), emit.integer(0))
    most = None if steps.last is None else emit.integer(steps.last - steps.left)
    return count if most is None else emit.op("Min", count, most)


def _from_the_end(use: Use, lengths: str, steps: Steps) -> str:
    """Return the numbers of the last steps of sequences of different lengths."""
    emit, last = use.emit, steps.last or 0
    if steps.first or steps.stop is not None:
        raise NotExpressible("it keeps steps counted from both ends of sequences of different lengths")
    places = emit.unsqueeze(emit.integers(range(last - steps.left)), 1)
    begin = emit.op("Max", emit.op("Sub", lengths, emit.integer(last)), emit.integer(0))
    numbers = emit.op("Add", begin, places)
    return emit.cast(emit.unsqueeze(numbers, 2))


def _sliced(index: Node, source: Node) -> tuple[int, int] | None:
    """Return the bounds of a Slice along time, if that is what a GatherPacked of these operands does."""
    if index.operation != "PackedIndex" or index.input(1).operation != "Where" or index.input(0).axis != source.axis:
        return None
    condition = index.input(1).input(0)
    steps = steps_of(condition) if condition.axis == source.axis else None
    if steps is None or (steps.first and steps.last is not None) or (steps.left and steps.stop is not None):
        return None
    begin = steps.first if steps.last is None else -steps.last
    return begin, steps.stop if steps.stop is not None else -steps.left or INT64_MAX


def _numbered(use: Use, numbers: str) -> str:
    """Return a number for each step, the same in all sequences."""
    emit = use.emit
    batch = emit.op("Shape", use.names[0], start=1, end=2)
    sizes = emit.op("Concat", emit.op("Shape", numbers), batch, emit.integers([1]), axis=0)
    return emit.op("Expand", emit.unsqueeze(numbers, 1, 2), sizes)


def repeat_steps(use: Use) -> str:
    """Return the numbers of the steps, each several times."""
    emit, factor, real = use.emit, float(use.options["factor"]), np.dtype(np.float64)
    steps = emit.op("Cast", _size(emit, use.names[0], 0), to=real)
    product = emit.op("Mul", steps, emit.constant(np.asarray(factor * (1 - ROUNDING))))
    count = emit.whole(emit.op("Ceil", product))
    lengths = emit.lengths.get(use.node.input(0).axis or "")
    if lengths is not None:
        scaled = emit.op("Mul", emit.op("Cast", lengths, to=real), emit.constant(np.asarray(factor * (1 - ROUNDING))))
        emit.lengths[use.node.axis or ""] = emit.whole(emit.op("Ceil", scaled))
    places = emit.op("Cast", _range(emit, emit.integer(0), count), to=real)
    numbers = emit.op("Floor", emit.op("Mul", places, emit.constant(np.asarray((1 + ROUNDING) / factor))))
    return _numbered(use, emit.cast(numbers))


def packed_index(use: Use) -> str:
    """Return the numbers of cells: step times batch size, and the place in the batch."""
    emit, source = use.emit, use.names[0]
    step = emit.whole(use.flat(1))
    steps, batch = _size(emit, source, 0), _size(emit, source, 1)
    last = emit.op("Sub", steps, emit.integer(1))
    step = emit.op("Max", emit.op("Min", step, last), emit.integer(0))
    slots = emit.unsqueeze(_range(emit, emit.integer(0), batch), -1)
    return emit.cast(emit.op("Add", emit.op("Mul", step, batch), slots))


def gather_packed(use: Use) -> str:
    """Return the cells of these numbers; of a matrix its columns."""
    emit, source = use.emit, use.operands[1]
    part = _sliced(use.node.input(0), use.node.input(1)) if source.lead == 2 else None
    if part is not None and part[0] < 0 and (use.node.input(1).axis or "") in emit.lengths:
        part = None
    if part is not None:
        return use.shaped(emit.slice(source.name, 0, *part), source.dims)
    cells = emit.whole(emit.squeeze(use.flat(0), -1))
    if source.lead:
        columns = emit.op("Reshape", source.name, emit.integers([-1, *source.dims]))
        return use.shaped(emit.op("Gather", columns, cells, axis=0), source.dims)
    count, rank = max(source.dims[:1]), len(source.dims)
    columns = source.name if rank > 1 else emit.unsqueeze(source.name, -1)
    cells = emit.op("Max", emit.op("Min", cells, emit.integer(count - 1)), emit.integer(0))
    return use.shaped(emit.op("Gather", columns, cells, axis=0), source.dims[1:] or (1,))


def scatter_packed(use: Use) -> str:
    """Zeros, and each step added to the cell of its number."""
    emit, (like, _, source) = use.emit, use.operands
    cells = emit.op("Reshape", emit.whole(use.flat(1)), emit.integers([-1, 1]))
    values = source.name if source.lead else emit.expand(source.name, emit.leading(use.names[1], 2), source.dims)
    values = kept(emit, use.node.input(1), values, len(source.dims), emit.real(0))
    values = emit.op("Reshape", values, emit.integers([-1, *source.dims]))
    leading = emit.leading(like.name, 2)
    count = emit.reduce("Prod", leading, [0])
    sizes = emit.op("Concat", count, emit.integers(source.dims), axis=0)
    zeros = emit.op("ConstantOfShape", sizes, value=np.zeros(1, emit.dtype))
    scattered = emit.op("ScatterND", zeros, cells, values, reduction="add")
    return emit.op("Reshape", scattered, emit.op("Concat", leading, emit.integers(use.dims), axis=0))


def reconciled(use: Use) -> str:
    """Data on another time axis of as many steps; those without leading axes and those of one step are repeated."""
    data, like = use.operands
    one_step = use.options.get("broadcast") and data.lead == 2
    if data.lead == like.lead and not one_step:
        return data.name
    return use.emit.expand(data.name, use.emit.leading(like.name, like.lead), data.dims)


def sample_number(use: Use) -> str:
    """Return the number of each sample, time first."""
    emit, leading = use.emit, use.emit.leading(use.names[0], use.lead)
    inside = within(emit, use.node.input(0), use.names[0], 0)
    single = np.ones(1, np.int64)
    ones = emit.op("ConstantOfShape", leading, value=single) if inside is None else emit.whole(inside)
    counted = emit.op("CumSum", emit.op("Reshape", ones, emit.integers([-1])), emit.integer(0))
    numbers = emit.cast(emit.op("Sub", counted, emit.integer(1)))
    return emit.op("Reshape", numbers, emit.op("Concat", leading, emit.integers(use.dims), axis=0))


RULES: dict[str, Rule] = {
    "Where": where,
    "RepeatSteps": repeat_steps,
    "PackedIndex": packed_index,
    "GatherPacked": gather_packed,
    "ScatterPacked": scatter_packed,
    "ReconcileDynamicAxis": reconciled,
    "SampleNumber": sample_number,
}
