"""Slices, joins, other dimensions and reductions along axes as tensor code."""

from __future__ import annotations

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.shape.axes import slice_range
from cntkpy.networks.nodes.shape.kinds import row_range
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import NotExpressible, Value

Range = tuple[int, int]


def _part(use: Use, value: Value, axis: int, part: Range) -> Value:
    """Some elements of an axis of CNTK."""
    begin, end = part
    size = value.dims[-axis]
    dims = (*value.dims[: len(value.dims) - axis], end - begin, *value.dims[len(value.dims) - axis + 1 :])
    if part == (0, size):
        return value._replace(dims=dims)
    span = f"{begin or ''}:{end if end < size else ''}"
    behind = "".join(", :" for _ in range(axis - 1))
    return use.value(f"{value.atom}[..., {span}{behind}]", dims)


def _with_axis(use: Use, axis: int) -> Value:
    """The first operand with an axis of CNTK, which counts from the last one here."""
    shape, value = use.node.input(0).shape or (1,), use.values[0]
    whole = tuple(reversed(shape))
    return value if axis <= len(value.dims) and whole[-len(value.dims) :] == value.dims else use.full()


def _slice(use: Use) -> Value:
    axis = int(use.options["axis"])
    value = _with_axis(use, axis)
    return use.finished(_part(use, value, axis, slice_range(use.node, value.dims[-axis])))


def _row_slice(use: Use) -> Value:
    value = _with_axis(use, 1)
    return use.finished(_part(use, value, 1, row_range(use.node, value.dims[-1])))


def _row_stack(use: Use) -> Value:
    """Operands joined on the last axis; other axes and leading ones are made equal first."""
    values = use.aligned()
    if len(values) == 1:
        return values[0]
    rank = max(len(value.dims) for value in values)
    padded = [(1,) * (rank - len(value.dims)) + value.dims for value in values]
    leading = tuple(max(dims[axis] for dims in padded) for axis in range(rank - 1))
    like = next((value for value in values if value.lead == use.lead), None)
    texts: list[str] = []
    for value, dims in zip(values, padded, strict=True):
        if value.number is not None or value.lead < use.lead or dims[:-1] != leading:
            if like is None:
                raise NotExpressible("its operands are all the same for every sample")
            name = use.body.bound(like).text
            lead = f"*{name}.shape[:{use.lead}], " if use.lead else ""
            sizes = ", ".join(map(str, (*leading, dims[-1])))
            source = value.text if value.number is None else f"torch.tensor({value.number})"
            texts.append(f"{Value(source, 0, (), value.level).atom}.expand({lead}{sizes})")
        else:
            texts.append(value.text)
    dims = (*leading, sum(each[-1] for each in padded))
    return use.finished(use.value(f"torch.cat([{', '.join(texts)}], dim=-1)", dims))


def _row_repeat(use: Use) -> Value:
    count = int(use.options["count"])
    flat = use.flat()
    repeated = use.value(f"{flat.atom}.tile({count})", (flat.dims[0] * count,))
    return use.reshaped(repeated, use.dims)


def _reshape(use: Use) -> Value:
    return use.finished(use.values[0])


def _transpose(use: Use) -> Value:
    first, second = int(use.options["axis1"]), int(use.options["axis2"])
    shape = shapes.padded(use.node.input(0).shape or (), max(first, second))
    value = use.reshaped(use.values[0], tuple(reversed(shape)))
    return use.finished(
        use.value(f"{value.atom}.transpose({-first}, {-second})", tuple(reversed(use.node.shape or ())))
    )


_METHODS = {
    "Sum": "{}.sum({}, keepdim=True)",
    "Mean": "{}.mean({}, keepdim=True)",
    "Prod": "{}.prod({}, keepdim=True)",
    "LogSum": "{}.logsumexp({}, keepdim=True)",
    "Max": "{}.amax({}, keepdim=True)",
    "Min": "{}.amin({}, keepdim=True)",
}


def reduction(use: Use, value: Value, how: str, axis: int) -> str:
    """Return a reduction along a dimension, counted from the end."""
    if how in ("Max", "Min"):  # every one of equal elements has the whole gradient
        return f"{use.helper('largest' if how == 'Max' else 'smallest')}({value.text}, {axis})"
    return _METHODS[how].format(value.atom, axis)


def _reduce(use: Use) -> Value:
    axis, how = int(use.options["axis"]), str(use.options["reductionOp"])
    if axis == 0:
        flat = use.flat()
        return use.value(reduction(use, flat, how, -1), (1,))
    value = _with_axis(use, axis)
    dims = (*value.dims[: len(value.dims) - axis], 1, *value.dims[len(value.dims) - axis + 1 :])
    return use.finished(use.value(reduction(use, value, how, -axis), dims))


def _reduce_minibatch(use: Use) -> Value:
    source = use.node.input(0)
    if not source.has_layout:
        return use.values[0]
    how = str(use.options["reductionOp"])
    value = use.real(use.values[0], source)
    if how in ("Max", "Min"):
        return use.value(
            f"{use.helper('largest' if how == 'Max' else 'smallest')}({value.text}, 0)[0]", value.dims, lead=0
        )
    text = _METHODS[how].replace(", keepdim=True", "").format(value.atom, 0)
    return use.value(text, value.dims, lead=0)


def _top(use: Use) -> Value:
    axis, value = int(use.options["axis"]), use.full()
    name = "indices" if use.options["numbers"] else "values"
    text = f"{value.atom}.topk({int(use.options['k'])}, dim={-axis}).{name}"
    if use.options["numbers"]:
        text += f".to({use.body.bound(use.values[0]).text}.dtype)"
    return use.finished(use.value(text, tuple(reversed(use.node.shape or ()))))


def _same(use: Use) -> Value:
    return use.values[0]


RULES: dict[str, Rule] = {
    "Slice": _slice,
    "RowSlice": _row_slice,
    "RowStack": _row_stack,
    "RowRepeat": _row_repeat,
    "Reshape": _reshape,
    "NewReshape": _reshape,
    "TransposeDimensions": _transpose,
    "ReduceElements": _reduce,
    "ReduceMinibatch": _reduce_minibatch,
    "TopK": _top,
    "Pass": _same,
}

__all__ = ["RULES", "reduction"]
