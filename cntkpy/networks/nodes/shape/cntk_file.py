"""Rules for CNTK's model files: axes and shapes."""

from __future__ import annotations

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.network import Node
from cntkpy.networks.graph.shapes import Shape
from cntkpy.networks.nodes.file_support.bodies import Body, BodyReader, static_axis, without_body
from cntkpy.networks.nodes.file_support.dictionary import INFERRED, AxisValue, Table
from cntkpy.networks.nodes.file_support.records import Axis, BadFile
from cntkpy.networks.nodes.file_support.rules import Rule, same, shaped
from cntkpy.networks.nodes.file_support.tables import (
    END,
    NO_OP,
    PASS,
    Attributes,
    Operation,
    axes_of,
    axis_of,
    numbers_of,
)
from cntkpy.networks.nodes.file_support.target import Target
from cntkpy.networks.nodes.sequences.cntk_file import reduced_steps


def _transpose_body(body: Body) -> Attributes:
    r = body.reader
    first, second = (r.i32(), r.i32()) if body.version >= 3 else (1, 2)
    if body.version >= 25 and first == second == 0:
        permutation = r.sizes()
        if sorted(permutation) != list(range(len(permutation))):
            raise body.bad(f"{permutation} is not an order of the axes")
        return {"permutation": permutation}
    return {"axes": (static_axis(body, first), static_axis(body, second))}


def _reshape_body(body: Body) -> Attributes:
    r = body.reader
    begin, end = r.i32(), r.i32()
    if begin < 0 or end < 0:
        raise body.bad(f"the axes {begin} to {end} are not those of the sample")
    return {
        "begin": Axis("static", max(begin, 1) - 1),
        "end": Axis("static", end - 1) if end else Axis("end"),
        "newShape": r.shape(),
    }


def _legacy_reshape_body(body: Body) -> Attributes:
    return {"rows": body.reader.u64(), "image": body.reader.shape(old=True)}


def _slice_body(body: Body) -> Attributes:
    r = body.reader
    count = r.i32() if body.version >= 22 else 1
    if count < 1 or count * 20 > r.left:
        raise body.bad(f"it slices {count} axes")
    parts: list[tuple[Axis, int, int, int]] = []
    for _ in range(count):
        begin, length = r.i64(), r.i64()
        axis = static_axis(body, r.i32()) if body.version >= 3 else Axis("static", 0)
        parts.append((axis, begin, begin + length, r.i32() if body.version >= 27 else 1))
    return {"slices": tuple(parts)}


def _row_stack_body(body: Body) -> Attributes:
    return {"axis": static_axis(body, body.reader.i32() if body.version >= 3 else 1)}


def _reduce_body(body: Body) -> Attributes:
    r = body.reader
    count = r.i32() if body.version >= 27 else 1
    if count < 1 or count * 4 > r.left:
        raise body.bad(f"it reduces {count} axes")
    special = {0: Axis("all static"), -1: Axis("all"), -2: Axis("sequence"), -3: Axis("batch")}
    numbers = [r.i32() for _ in range(count)]
    axes = tuple(special[n] if n in special else static_axis(body, n) for n in numbers)
    reduction = r.text()
    keep = r.boolean() if body.version >= 24 else axes[0].kind == "static"
    return {"axes": axes, "reduction": reduction, "keepDimensions": keep}


def _transpose_attributes(table: Table) -> Attributes:
    if table.get("axisVec", list, []):
        axes = axes_of(table, "axis1")
        permutation = tuple(a.number + len(axes) if a.number < 0 else a.number for a in axes)
        if sorted(permutation) != list(range(len(permutation))):
            raise BadFile(f"{permutation} is not an order of the axes", table.at)
        return {"permutation": permutation}
    return {"axes": (*axes_of(table, "axis1", ""), *axes_of(table, "axis2", ""))}


def _slice_attributes(table: Table) -> Attributes:
    axes = axes_of(table, "axis")
    if table.get("axisVec", list, []):
        begins, ends = numbers_of(table, "beginIndexVec"), numbers_of(table, "endIndexVec")
        strides = numbers_of(table, "sliceStridesVec")
    else:
        begins, ends = (table.get("beginIndex", int, 0),), (table.get("endIndex", int, 0),)
        strides = numbers_of(table, "sliceStrides")
    strides = strides or (1,) * len(axes)
    if not len(axes) == len(begins) == len(ends) == len(strides):
        raise BadFile("the lists of axes, begins and ends of a slice have different lengths", table.at)
    return {"slices": tuple(zip(axes, begins, ends, strides, strict=True))}


def _reshape_attributes(table: Table) -> Attributes:
    shape = table.get("newShape", tuple, ())
    begin = axis_of(table.get("beginAxis", AxisValue, AxisValue(0, "", False)), table.at)
    end = axis_of(table.get("endAxis", AxisValue, AxisValue(END, "", False)), table.at)
    return {"begin": begin, "end": end, "newShape": tuple(0 if d == INFERRED else d for d in shape)}


def _reduce_attributes(table: Table) -> Attributes:
    return {
        "axes": axes_of(table, "axis"),
        "reduction": table.need("reductionOpName", str, "a function ReduceElements"),
        "keepDimensions": table.get("reductionKeepDimensions", bool, True),
    }


def _squeeze_attributes(table: Table) -> Attributes:
    has_axes = bool(table.get("axisVec", list, [])) or "axis" in table
    return {"axes": axes_of(table, "axis") if has_axes else ()}


def _transpose(t: Target) -> Node:
    (x,) = t.inputs(1)
    if "axes" in t.attributes:
        first, second = (_static(t, axis, x) for axis in t.attributes["axes"])
        return _alias(t) if first == second else _swapped(t, x, first, second)
    wanted = list(t.attributes["permutation"])
    current = list(range(len(wanted)))
    swaps: list[tuple[int, int]] = []
    for place, axis in enumerate(wanted):
        current_place = current.index(axis)
        if current_place != place:
            current[place], current[current_place] = current[current_place], current[place]
            swaps.append((place, current_place))
    for number, (first, second) in enumerate(swaps, 1):
        x = _swapped(t, x, first, second, "" if number == len(swaps) else f".swap{number}")
    return x if swaps else _alias(t)


def _slice(t: Target) -> Node:
    (x,) = t.inputs(1)
    parts = t.attributes["slices"]
    for number, (axis, begin, end, stride) in enumerate(parts, 1):
        if stride != 1:
            raise t.refuse(f"a stride of {stride}")
        last = number == len(parts)
        x = _sliced(t, x, _static(t, axis, x), begin, end, "" if last else f".axis{number}")
    return x


def _sliced(t: Target, x: Node, axis: int, begin: int, end: int, suffix: str) -> Node:
    if axis == 0:
        return t.add("RowSlice", [x], suffix, start=begin, count=end - begin)
    kind = t.kind("Slice", "beginIndex", "endIndex", "axis")
    if kind is not None:
        return t.add(kind, [x], suffix, beginIndex=begin, endIndex=end, axis=axis + 1)
    turned = _swapped(t, x, 0, axis, suffix + ".turned")
    rows = t.add("RowSlice", [turned], suffix + ".rows", start=begin, count=end - begin)
    return _swapped(t, rows, 0, axis, suffix)


def _row_stack(t: Target) -> Node:
    operands = t.inputs(1, len(t.record.inputs))
    axis = _static(t, t.attributes["axis"], operands[0])
    if axis == 0:
        return t.add("RowStack", operands)
    turned = [_swapped(t, x, 0, axis, f".turned{number}") for number, x in enumerate(operands, 1)]
    return _swapped(t, t.add("RowStack", turned, ".rows"), 0, axis)


def _reduce(t: Target) -> Node:
    (x,) = t.inputs(1)
    axes, reduction = t.attributes["axes"], t.attributes["reduction"]
    if t.input_record(0).operation == "UnpackSequence":
        return reduced_steps(t, x)
    kinds = {axis.kind for axis in axes}
    if kinds in ({"all"}, {"batch"}) and reduction in _ONE_BY_ONE:
        samples = x if kinds == {"batch"} else t.add("ReduceElements", [x], ".samples", reductionOp=reduction, axis=0)
        return t.add("ReduceMinibatch", [samples], reductionOp=reduction)
    whole = kinds == {"all static"}
    if kinds == {"static"} and x.shape is not None:
        reduced = {_static(t, axis, x) for axis in axes}
        whole = all(size == 1 or place in reduced for place, size in enumerate(x.shape))
    if whole and reduction == "Sum":
        return t.add("SumColumnElements" if x.has_layout else "SumElements", [x])
    listed = ", ".join(map(str, axes))
    why = f"{reduction} over {'axis ' if kinds == {'static'} else ''}{listed}"
    if not whole and kinds != {"static"}:
        raise t.refuse(why)
    kind = t.needed("ReduceElements", "reductionOp", "axis", why=why)
    choices = kind.option("reductionOp")
    if choices is None or reduction not in choices.choices:
        raise t.refuse(why)
    if whole:
        return t.add(kind, [x], reductionOp=reduction, axis=0)
    places = sorted({_static(t, axis, x) for axis in axes})
    if len(places) > 1 and reduction not in _ONE_BY_ONE:
        raise t.refuse(why)
    keep = t.attributes["keepDimensions"]
    for number, place in enumerate(places, 1):
        suffix = "" if keep and number == len(places) else f".axis{number}"
        x = t.add(kind, [x], suffix, reductionOp=reduction, axis=place + 1)
    return x if keep else _without(t, x, set(places))


_ONE_BY_ONE = ("Sum", "LogSum", "Max", "Min", "Mean", "Prod")
"""Reductions over several axes that may be taken over one axis after the other."""


def _reshape(t: Target) -> Node:
    (x,) = t.inputs(1)
    begin, end, new = t.attributes["begin"], t.attributes["end"], t.attributes["newShape"]
    kind = t.kind("NewReshape", "dims", "beginAxis", "endAxis")
    if kind is not None and begin.kind == "static" and begin.number >= 0 and _is_end(end):
        last = 0 if end.kind == "end" else end.number + 1
        return t.add(kind, [x], dims=new, beginAxis=begin.number + 1, endAxis=last)
    if begin == Axis("static", 0) and end.kind == "end" and new and 0 not in new:
        return shaped(t, x, new)
    shape = t.shape(x)
    first = _static(t, begin, x) if begin.kind != "end" else len(shape)
    last = len(shape) if end.kind == "end" else _static(t, end, x)
    if not 0 <= first <= last <= len(shape):
        raise BadFile(f"the axes {first} to {last} of Reshape '{t.record.name}' do not exist", t.record.at)
    return shaped(t, x, (*shape[:first], *_inferred(t, new, shapes.size(shape[first:last])), *shape[last:]))


def _legacy_reshape(t: Target) -> Node:
    (x,) = t.inputs(1)
    rows, image = t.attributes["rows"], t.attributes["image"]
    dims = tuple(d for d in image if d)
    if not dims:
        return t.add("Reshape", [x], numRows=rows)
    if len(dims) != 3:
        raise t.refuse(f"the shape {shapes.text(image)}")
    return shaped(t, x, dims)


def _squeeze(t: Target) -> Node:
    (x,) = t.inputs(1)
    shape = t.shape(x)
    axes = {_static(t, axis, x) for axis in t.attributes["axes"]} or {i for i, d in enumerate(shape) if d == 1}
    if any(not 0 <= axis < len(shape) or shape[axis] != 1 for axis in axes):
        raise BadFile(f"Squeeze '{t.record.name}' leaves out an axis that is not 1", t.record.at)
    return _without(t, x, axes)


def _static(t: Target, axis: Axis, x: Node) -> int:
    """Return the position of an axis of x."""
    if axis.kind != "static":
        raise t.refuse(f"the axis is {axis}")
    return axis.number if axis.number >= 0 else axis.number + len(t.shape(x))


def _swapped(t: Target, x: Node, first: int, second: int, suffix: str = "") -> Node:
    """x with two axes exchanged."""
    first, second = sorted((first, second))
    if first < 0:
        raise t.refuse("an axis before the first")
    if (first, second) == (0, 1):
        return t.add("Transpose", [x], suffix)
    kind = t.needed("TransposeDimensions", "axis1", "axis2", why=f"exchanging the axes {first + 1} and {second + 1}")
    return t.add(kind, [x], suffix, axis1=first + 1, axis2=second + 1)


def _is_end(axis: Axis) -> bool:
    """Return whether an axis can be given without knowing how many there are."""
    return axis.kind == "end" or (axis.kind == "static" and axis.number >= 0)


def _inferred(t: Target, shape: Shape, elements: int) -> Shape:
    """Return a shape whose one dimension 0 is what is left of the elements."""
    missing = shape.count(0)
    known = shapes.size(d for d in shape if d)
    if missing > 1 or (missing and elements % known):
        raise BadFile(f"Reshape '{t.record.name}': {shapes.text(shape)} is not {elements} elements", t.record.at)
    return tuple(d or elements // known for d in shape)


def _without(t: Target, x: Node, axes: set[int]) -> Node:
    """x without axes that have one element."""
    return shaped(t, x, tuple(d for axis, d in enumerate(t.shape(x)) if axis not in axes) or (1,))


def _alias(t: Target) -> Node:
    """Return a node of its own, if there is a kind for it; else the operand itself takes the name's place."""
    (x,) = t.inputs(1)
    kind = t.kind("Pass")
    return x if kind is None else t.add(kind, [x])


BODIES: dict[str, BodyReader] = {
    **without_body("Pass"),
    "TransposeDimensions": _transpose_body,
    "Reshape": _reshape_body,
    "LegacyReshape": _legacy_reshape_body,
    "Slice": _slice_body,
    "RowStack": _row_stack_body,
    "RowRepeat": lambda body: {"count": body.reader.u64()},
    "ReduceElements": _reduce_body,
}
"""By operation of the first format: reads the attributes of a node."""


NUMBERS: dict[int, Operation] = {
    PASS: Operation("Pass"),
    NO_OP: Operation("Pass"),
    12: Operation("TransposeDimensions", _transpose_attributes),
    14: Operation("Slice", _slice_attributes),
    16: Operation("Reshape", _reshape_attributes),
    39: Operation("ReduceElements", _reduce_attributes),
    43: Operation("RowStack", lambda t: {"axis": axes_of(t, "axis", "")[0]}),
    88: Operation("Squeeze", _squeeze_attributes),
}
"""By number in the later format."""


RULES: dict[str, Rule] = {
    "TransposeDimensions": _transpose,
    "Slice": _slice,
    "RowStack": _row_stack,
    "RowRepeat": same,
    "ReduceElements": _reduce,
    "Reshape": _reshape,
    "LegacyReshape": _legacy_reshape,
    "Squeeze": _squeeze,
    "Pass": _alias,
}
"""By operation: makes nodes of a record."""
