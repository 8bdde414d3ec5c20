"""Operators of axes: other shapes, orders, slices, joined values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.onnx_support.building import Rule, Use
from cntkpy.networks.nodes.onnx_support.joined import atoms_within, reshaped
from cntkpy.networks.nodes.onnx_support.values import Array, Axes, Data, Longer, Unusable, Value
from cntkpy.networks.nodes.recurrence import onnx_delays as delays


def flatten(use: Use) -> list[Value]:
    """Return all axes of a sample joined."""
    x, axis = use.data(), use.integer("axis", 1)
    axis = axis + len(x.axes) if axis < 0 else axis
    if axis != len(x.words) or x.axes[:axis] != x.words:
        raise Unusable(f"axis = {axis} would join axes of the minibatch")
    return [use.build.data(x.node, (*x.words, math.prod(x.dims)))]


def reshape(use: Use) -> list[Value]:
    """Return the same elements in another shape."""
    x, wanted = use.data(), use.integers("shape", 1) or []
    if not use.get("allowzero", 0):
        wanted = [_kept(use, x, index) if size == 0 else size for index, size in enumerate(wanted)]
    try:
        return [_in_front(use, x, wanted)]
    except Unusable as problem:
        try:
            return [reshaped(use, x, wanted)]
        except Unusable:
            raise problem from None


def _in_front(use: Use, x: Data, wanted: list[int]) -> Data:
    """Return the axes of the minibatch come first as before."""
    lead = len(x.words)
    if x.axes[:lead] != x.words:
        raise Unusable(f"the axes of the minibatch are not the first ones of {list(x.axes)}")
    front, sample = list(wanted[:lead]), list(wanted[lead:])
    for index, (size, word) in enumerate(zip(front, x.words, strict=False)):
        if size == -1 and -1 not in (front + sample)[index + 1 :]:
            if math.prod(sample) != math.prod(x.dims):
                raise Unusable(f"the shape {wanted} would mix the samples of a minibatch")
        elif use.build.word_of(size) != word and size != use.build.fixed.get(word):
            raise Unusable(f"the shape {wanted} does not keep the axis '{word}' of the minibatch")
    if len(front) < lead:
        raise Unusable(f"the shape {wanted} would join the axes of the minibatch")
    known = math.prod(size for size in sample if size != -1)
    if -1 in sample:
        sample[sample.index(-1)] = math.prod(x.dims) // max(known, 1)
    if math.prod(sample) != math.prod(x.dims) or any(size < 1 for size in sample):
        raise Unusable(f"a sample of {list(x.dims)} cannot have the shape {sample}")
    return use.build.data(x.node, (*x.words, *sample))


def _kept(use: Use, x: Data, index: int) -> int:
    if index >= len(x.axes):
        raise Unusable(f"there is no axis {index} to keep")
    axis = x.axes[index]
    return axis if isinstance(axis, int) else use.build.number_of(axis)


def squeeze(use: Use) -> list[Value]:
    """Axes of one element taken out."""
    x, axes = use.data(), use.integers("axes", 1)
    if axes is None:
        axes = [index for index, size in enumerate(x.axes) if size == 1]
    gone = {use.axis(axis, len(x.axes)) for axis in axes}
    if any(x.axes[index] != 1 for index in gone):
        raise Unusable(f"the axes {axes} of {list(x.axes)} do not have one element each")
    return [use.build.data(x.node, tuple(size for index, size in enumerate(x.axes) if index not in gone))]


def unsqueeze(use: Use) -> list[Value]:
    """Axes of one element put in."""
    x, axes = use.data(), use.integers("axes", 1) or []
    rank = len(x.axes) + len(axes)
    places = {use.axis(axis, rank) for axis in axes}
    if len(places) < len(axes):
        raise Unusable(f"axes = {axes} names an axis twice")
    remaining = iter(x.axes)
    return [use.build.data(x.node, tuple(1 if index in places else next(remaining) for index in range(rank)))]


def transpose(use: Use) -> list[Value]:
    """Axes in another order. Those of the minibatch may be anywhere."""
    x = use.data()
    perm = use.get("perm") or list(range(len(x.axes)))[::-1]
    return [permuted(use, x, perm)]


def permuted(use: Use, x: Data, perm: Sequence[int]) -> Data:
    """Return a value with its axes in another order."""
    if sorted(perm) != list(range(len(x.axes))):
        raise Unusable(f"perm = {list(perm)} is no order of {len(x.axes)} axes")
    owners = [index for index, axis in enumerate(x.axes) for atom in atoms_within(axis) if isinstance(atom, int)]
    order = [place for index in perm for place, owner in enumerate(owners) if owner == index]
    node, rank = x.node, len(order)
    now = list(range(rank))
    for target in range(rank):
        source = now.index(order[target])
        if source != target:
            node = use.build.node("TransposeDimensions", node, axis1=rank - source, axis2=rank - target)
            now[source], now[target] = now[target], now[source]
    return Data(node, tuple(x.axes[index] for index in perm))


def stacked(use: Use, parts: list[Node], axis: int) -> Node:
    """Nodes joined along an axis of the sample, counted from 1."""
    build = use.build
    if axis == 1:
        return build.node("RowStack", *parts)
    turned = [build.node("TransposeDimensions", part, axis1=1, axis2=axis) for part in parts]
    return build.node("TransposeDimensions", build.node("RowStack", *turned), axis1=1, axis2=axis)


def concat(use: Use) -> list[Value]:
    """Values joined along an axis of the sample."""
    values = [value for index in range(len(use.inputs)) if isinstance(value := use.value(index), (Array, Data))]
    like = next(value for value in values if isinstance(value, Data))
    axis = use.integer("axis", 1)
    place = use.axis(axis, len(like.axes))
    if isinstance(like.axes[place], str):
        return [delays.lengthened(use, values, place)]
    number = like.sample_axis(axis)
    nodes: list[Node] = []
    total = 0
    for value in values:
        value_axes: Axes = value.axes if isinstance(value, Data) else value.value.shape
        if len(value_axes) != len(like.axes) or not isinstance(value_axes[place], int):
            raise Unusable("its operands have different axes")
        if isinstance(value, Data) and value.words != like.words:
            raise Unusable("its operands have different axes of the minibatch")
        size = value_axes[place]
        total += size if isinstance(size, int) else 0
        nodes.append(value.node if isinstance(value, Data) else _constant_part(use, value, like))
    axes = (*like.axes[:place], total, *like.axes[place + 1 :])
    return [use.build.data(stacked(use, nodes, number), axes)]


def _constant_part(use: Use, array: Array, like: Data) -> Node:
    """Return a constant, the same for all samples."""
    dims = [size for size, axis in zip(array.value.shape, like.axes, strict=True) if isinstance(axis, int)]
    if math.prod(dims) != array.value.size:
        raise Unusable("a constant among its operands differs from sample to sample")
    return use.build.parameter(array, dims)


def part(use: Use, x: Data, axis: int, begin: int, end: int) -> Data:
    """Return some elements of an axis of the sample."""
    number, place = x.sample_axis(axis), axis % len(x.axes)
    size = x.axes[place]
    assert isinstance(size, int)
    begin, end, _ = slice(begin, end).indices(size)
    if begin >= end:
        raise Unusable(f"no elements of axis {axis} are left")
    if (begin, end) == (0, size):
        return x
    node = use.build.node("Slice", x.node, beginIndex=begin, endIndex=end, axis=number)
    return Data(node, (*x.axes[:place], end - begin, *x.axes[place + 1 :]))


def cut(use: Use) -> list[Value]:
    """Slice."""
    x = use.value(0)
    starts, ends = use.integers("starts", 1) or [], use.integers("ends", 2) or []
    axes = use.integers("axes", 3) or list(range(len(starts)))
    if isinstance(x, (Data, Longer)) and any(not -_rank(x) <= axis < _rank(x) for axis in axes):
        raise Unusable(f"there are no axes {axes}")
    steps = use.integers("steps", 4) or [1] * len(starts)
    for begin, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step != 1:
            if not isinstance(x, Data):
                raise Unusable("only steps of 1 are supported there")
            size = x.axes[axis]
            if isinstance(size, str):
                raise Unusable(f"of the axis '{size}' only steps of 1 can be taken")
            enumerable(size)
            if not step:
                raise Unusable("its step is 0")
            end = None if step < 0 and end < -size else end
            x = picked(use, x, axis, list(range(size))[begin:end:step])
        elif isinstance(x, Longer):
            x = delays.delayed(use, x, axis, begin, end)
        elif isinstance(x, Data) and isinstance(x.axes[axis], str) and _is_all(use, x.axes[axis], begin, end):
            continue
        elif isinstance(x, Data) and isinstance(x.axes[axis], str):
            x = delays.steps_between(use, x, axis % len(x.axes), begin, end)
        elif isinstance(x, Data):
            x = part(use, x, axis, begin, end)
    return [x]


UNLIMITED = (1 << 31) - 1
"""The end of a slice that takes everything, at least."""


def _is_all(use: Use, word: int | str, begin: int, end: int) -> bool:
    """Return whether a slice takes a whole axis of the minibatch."""
    return begin == 0 and end >= min(UNLIMITED, use.build.fixed.get(str(word), UNLIMITED))


def _rank(x: Data | Longer) -> int:
    return len((x.data if isinstance(x, Longer) else x).axes)


def split(use: Use) -> list[Value]:
    """Parts of an axis of the sample."""
    x, axis = use.data(), use.integer("axis", 0)
    x.sample_axis(axis)
    total = x.axes[axis % len(x.axes)]
    assert isinstance(total, int)
    sizes = part_sizes(use, total, len(use.operator.outputs))
    parts: list[Value] = []
    begin = 0
    for size in sizes:
        parts.append(part(use, x, axis, begin, min(begin + size, total)))
        begin += size
    return parts


def gather(use: Use) -> list[Value]:
    """Return some elements of an axis of the sample, by their numbers."""
    if isinstance(use.value(0), Array):
        return [_rows(use)]
    x, index, axis = use.data(), use.array(1), use.integer("axis", 0)
    place = use.axis(axis, len(x.axes))
    size = x.axes[place]
    if isinstance(size, str):
        if index.value.ndim or int(index.value) not in (0, -1):
            raise Unusable(f"of the axis '{size}' only the first or last step can be taken")
        result = delays.steps_between(use, x, place, int(index.value), int(index.value) + 1 or None)
        return [use.build.data(result.node, (*x.axes[:place], *x.axes[place + 1 :]))]
    if index.value.ndim > 1:
        raise Unusable("its second operand must be a number or a list")
    result = picked(use, x, place, [use.axis(int(number), size) for number in index.value.reshape(-1)])
    axes = result.axes if index.value.ndim else (*x.axes[:place], *x.axes[place + 1 :])
    return [use.build.data(result.node, axes)]


def picked(use: Use, x: Data, axis: int, numbers: list[int]) -> Data:
    """Elements of an axis of the sample by their numbers, those that follow each other as one part."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    if not runs or len(runs) > MOST_PICKED:
        raise Unusable(f"it takes elements from {len(runs)} places; possible are 1 to {MOST_PICKED}")
    parts = [part(use, x, axis, run[0], run[-1] + 1) for run in runs]
    node = parts[0].node if len(parts) == 1 else stacked(use, [part.node for part in parts], x.sample_axis(axis))
    place = axis % len(x.axes)
    return use.build.data(node, (*x.axes[:place], len(numbers), *x.axes[place + 1 :]))


def _rows(use: Use) -> Data:
    """Return the rows of a table whose numbers an input has, which is a one-hot vector here."""
    table, x = use.array(0), use.data(1)
    if table.value.ndim != 2 or use.integer("axis", 0) or x.dims != (len(table.value),) or x.node.inputs:
        raise Unusable("numbers of rows must be an input, and the table a matrix")
    node = use.build.node("Times", use.build.parameter(table), x.node)
    return use.build.data(node, (*x.words, table.value.shape[1]))


MOST_PICKED = 64
"""Parts that values are joined of."""


def pad(use: Use) -> list[Value]:
    """Return a constant around a sample, or its own elements."""
    mode = use.get("mode", "constant")
    x, pads, value = use.data(), use.integers("pads", 1) or [], use.real("value", 2, 0.0)
    if use.has(3):
        raise Unusable("only all axes together can be padded")
    if len(pads) != 2 * len(x.axes):
        raise Unusable(f"{len(pads)} paddings for {len(x.axes)} axes")
    for axis in range(len(x.axes)):
        leading, after = pads[axis], pads[axis + len(x.axes)]
        if (leading or after) and mode != "constant":
            x.sample_axis(axis)
            x = picked(use, x, axis, _around(mode, int(x.axes[axis]), leading, after))
        elif leading or after:
            x = padded(use, x, axis, leading, after, value or 0.0)
    return [x]


LONGEST = 1 << 20
"""Elements of an axis that are looked at one by one, at most."""


def enumerable(size: int) -> None:
    """Refuse an axis that is too long to look at its elements one by one; its size need not be that of any data.

    Raises:
        Unusable: it is too long.
    """
    if size > LONGEST:
        raise Unusable(f"an axis of {size:,} elements is too long for it; at most {LONGEST:,} are possible")


def _around(mode: str, size: int, leading: int, after: int) -> list[int]:
    """Return the numbers of the elements of an axis, with those that stand before and behind it."""
    if mode not in ("reflect", "edge", "wrap"):
        raise Unusable(f"mode = {mode} is not supported")
    enumerable(size + abs(leading) + abs(after))
    numbers = np.arange(size)[max(0, -leading) : size - max(0, -after)]
    how: Any = mode
    return np.pad(numbers, (max(0, leading), max(0, after)), mode=how).tolist()


def padded(use: Use, x: Data, axis: int, leading: int, after: int, value: float) -> Data:
    """Return a value with more elements on an axis of the sample, or fewer where a number is negative."""
    number, size = x.sample_axis(axis), x.axes[axis]
    assert isinstance(size, int)
    if leading < 0 or after < 0:
        x = part(use, x, axis, max(-leading, 0), size - max(-after, 0))
    sizes = [index for index, size in enumerate(x.axes) if isinstance(size, int)]
    nodes: list[Node] = []
    for count in (leading, 0, after):
        if count > 0:
            dims = tuple(count if index == axis else int(x.axes[index]) for index in sizes)
            use.build.take(*dims)
            nodes.append(use.build.parameter(Array(np.full(dims, value, use.build.network.dtype)), dims))
        elif not count and len(nodes) == (leading > 0):
            nodes.append(x.node)
    node = nodes[0] if len(nodes) == 1 else stacked(use, nodes, number)
    total = size + leading + after
    return Data(node, (*x.axes[:axis], total, *x.axes[axis + 1 :]))


def tile(use: Use) -> list[Value]:
    """Return a value several times along axes of the sample."""
    x = use.data()
    repeats = use.integers("repeats", 1) or []
    if len(repeats) != len(x.axes):
        raise Unusable(f"{len(repeats)} repeats for {len(x.axes)} axes")
    for axis, count in enumerate(repeats):
        if count == 1:
            continue
        if not 1 <= count <= MOST_PICKED:
            raise Unusable(f"{count} times is not supported; at most {MOST_PICKED}")
        size = x.axes[axis]
        node = stacked(use, [x.node] * count, x.sample_axis(axis))
        x = Data(node, (*x.axes[:axis], int(size) * count, *x.axes[axis + 1 :]))
    return [x]


def repeated(use: Use) -> list[Value]:
    """Expand to sizes that a value has already, along axes of one element, or along time, in whose place one is."""
    x, build = use.data(), use.build
    wanted = [build.word_of(int(number)) or int(number) for number in use.array(1).value.tolist()]
    if len(wanted) > len(x.axes):
        raise Unusable("it adds axes")
    axes = list(x.axes)
    for index, size in enumerate(wanted, len(axes) - len(wanted)):
        if axes[index] == 1 and isinstance(size, int):
            axes[index] = size
        elif axes[index] == 1 and size in build.on_axis and len(x.words) == 1 and size not in x.words:
            axes[index] = size
            build.times.append(size)
            node = build.node("ReconcileDynamicAxis", x.node, build.on_axis[size], broadcast=True)
            x = build.data(node, tuple(axes))
        elif size not in (1, axes[index]) and size != build.fixed.get(str(axes[index])):
            raise Unusable(f"{axes[index]} elements cannot become {size}")
    dims = [axis for axis in axes if isinstance(axis, int)]
    if tuple(axes) == x.axes:
        return [x]
    build.take(*dims)
    zeros = build.parameter(Array(np.zeros(dims, build.network.dtype)), dims)
    return [build.data(build.node("Plus", x.node, zeros), tuple(axes))]


def part_sizes(use: Use, total: int, count: int) -> list[int]:
    """Return the sizes of the parts of an axis that Split makes.

    Raises:
        Unusable: they are not as many elements as there are.
    """
    each = -(-total // count)
    sizes = use.integers("split", 1) or [min(each, total - each * index) for index in range(count)]
    if len(sizes) != count or sum(sizes) != total or min(sizes) < 1:
        raise Unusable(f"parts of {sizes} elements of an axis of {total}")
    return sizes


RULES: dict[str, Rule] = {
    "Flatten": flatten,
    "Reshape": reshape,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
    "Concat": concat,
    "Slice": cut,
    "Split": split,
    "Gather": gather,
    "Pad": pad,
    "Expand": repeated,
    "Tile": tile,
}
