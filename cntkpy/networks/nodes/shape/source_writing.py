"""Slices, joins, other dimensions and reductions along axes as tensor code."""

from __future__ import annotations

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.shape.axes import slice_range
from cntkpy.networks.nodes.shape.kinds import row_range
from cntkpy.networks.nodes.source_support.dialect import Spellings, both
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import NotExpressible, Value

Range = tuple[int, int]


def _part(use: Use, value: Value, axis: int, part: Range) -> Value:
    """Return some elements of an axis of CNTK."""
    begin, end = part
    size = value.dims[-axis]
    dims = (*value.dims[: len(value.dims) - axis], end - begin, *value.dims[len(value.dims) - axis + 1 :])
    if part == (0, size):
        return value._replace(dims=dims)
    span = f"{begin or ''}:{end if end < size else ''}"
    behind = "".join(", :" for _ in range(axis - 1))
    return use.value(f"{value.atom}[..., {span}{behind}]", dims)


def _with_axis(use: Use, axis: int) -> Value:
    """Return the first operand with an axis of CNTK, which counts from the last one here."""
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
            source = value if value.number is None else use.say("tensor", str(value.number))
            texts.append(use.say("expand", source, lead + sizes))
        else:
            texts.append(value.text)
    dims = (*leading, sum(each[-1] for each in padded))
    return use.finished(use.value(use.say("join", ", ".join(texts)), dims))


def _row_repeat(use: Use) -> Value:
    count = int(use.options["count"])
    flat = use.flat()
    repeated = use.value(use.say("tile", flat, count), (flat.dims[0] * count,))
    return use.reshaped(repeated, use.dims)


def _reshape(use: Use) -> Value:
    return use.finished(use.values[0])


def _transpose(use: Use) -> Value:
    first, second = int(use.options["axis1"]), int(use.options["axis2"])
    shape = shapes.padded(use.node.input(0).shape or (), max(first, second))
    value = use.reshaped(use.values[0], tuple(reversed(shape)))
    return use.finished(use.value(use.say("transpose", value, -first, -second), tuple(reversed(use.node.shape or ()))))


KEPT = ", keepdim=True", ", keepdims=True"
"""The end of a reduction that keeps the axis, in PyTorch and in JAX."""


def reduction(use: Use, value: Value, how: str, axis: int) -> str:
    """Return a reduction along a dimension, counted from the end."""
    return use.say(how, value, axis)


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
    return use.value(use.say("over_samples", how, use.values[0]), use.values[0].dims, lead=0)


def _torch_over_samples(use: Use, how: str, value: Value) -> str:
    value = use.real(value, use.node.input(0))
    return f"{use.say(how, value, 0)}[0]" if how in ("Max", "Min") else use.say(how, value, "0").replace(KEPT[0], "")


def _jax_over_samples(use: Use, how: str, value: Value) -> str:
    """Padding is left out by a mask, so that shapes do not depend on the data."""
    axes = "0" if value.lead < 2 else "(0, 1)"
    where = "" if value.lead < 2 else f"{use.mask(0)}[{', '.join(['...', *['None'] * len(value.dims)])}]"
    if how in ("Max", "Min"):
        if where:
            beyond = "-jnp.inf" if how == "Max" else "jnp.inf"
            value = use.value(f"jnp.where({where}, {value.text}, {beyond})", value.dims)
        return f"{use.say(how, value, axes)}[{', '.join(['0'] * len(axes.split(',')))}]"
    text = use.say(how, value, axes)
    return text.replace(KEPT[1], f", where={where}" if where else "")


def _top(use: Use) -> Value:
    axis, value = int(use.options["axis"]), use.full()
    word = "places_of_top" if use.options["numbers"] else "top"
    text = use.say(word, value, int(use.options["k"]), -axis)
    if use.options["numbers"]:
        text = use.say("cast", text, f"{use.body.bound(use.values[0]).text}.dtype")
    return use.finished(use.value(text, tuple(reversed(use.node.shape or ()))))


def _same(use: Use) -> Value:
    return use.values[0]


def _jax_expand(use: Use, value: Value | str, sizes: str) -> str:
    text = value if isinstance(value, str) else value.text
    return f"jnp.broadcast_to({text}, ({sizes}{'' if ', ' in sizes else ','}))"


SPELLINGS: Spellings = {
    "Sum": ("{0.atom}.sum({1}, keepdim=True)", "{0.atom}.sum({1}, keepdims=True)"),
    "Mean": ("{0.atom}.mean({1}, keepdim=True)", "{0.atom}.mean({1}, keepdims=True)"),
    "Prod": ("{0.atom}.prod({1}, keepdim=True)", "{0.atom}.prod({1}, keepdims=True)"),
    "LogSum": ("{0.atom}.logsumexp({1}, keepdim=True)", "jax.nn.logsumexp({0}, {1}, keepdims=True)"),
    "Max": both("largest({0}, {1})"),  # every one of equal elements has the whole gradient
    "Min": both("smallest({0}, {1})"),
    "join": ("torch.cat([{0}], dim=-1)", "jnp.concatenate([{0}], axis=-1)"),
    "expand": ("{0.atom}.expand({1})", _jax_expand),
    "tile": ("{0.atom}.tile({1})", "jnp.tile({0}, {1})"),
    "transpose": ("{0.atom}.transpose({1}, {2})", "{0.atom}.swapaxes({1}, {2})"),
    "top": ("{0.atom}.topk({1}, dim={2}).values", "top({0}, {1}, {2})[0]"),
    "places_of_top": ("{0.atom}.topk({1}, dim={2}).indices", "top({0}, {1}, {2})[1]"),
    "over_samples": (_torch_over_samples, _jax_over_samples),
}

NUMBERS = dict.fromkeys(("RowStack",))
"""Operations whose constants of one element are numbers."""

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
