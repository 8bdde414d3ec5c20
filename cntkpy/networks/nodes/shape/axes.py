"""Operations on the axes of a sample: slices, other dimensions, exchanged axes, reductions.

Specified in docs/specification/brainscript-library.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from cntkpy.networks.arrays.images import ChannelsLast, OneChannel, is_image, plain
from cntkpy.networks.arrays.lazy import Array, custom_gradient, jax, jnp
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.declare import (
    BOOLEAN,
    INTEGER,
    INTEGERS,
    TEXT,
    Argument,
    Option,
    TimeRule,
    inputs,
    one_signature,
    unchanged,
)

if TYPE_CHECKING:
    from cntkpy.networks.arrays.images import Turned
    from cntkpy.networks.graph.node import Node
    from cntkpy.networks.nodes.call import Call


REDUCTIONS = ("Sum", "LogSum", "Mean", "Min", "Max", "Prod")


# --------------------------------------------------------------------------------------------------------------- slices


def slice_range(node: Node, size: int) -> tuple[int, int]:
    """Return the elements of an axis of `size` that a Slice node takes: first, one past the last."""
    first, last = int(node.options["beginIndex"]), int(node.options["endIndex"])
    begin = first + size if first < 0 else first
    end = last + size if last <= 0 else last
    if not 0 <= begin < end <= size:
        raise ShapeProblem(
            f"the elements {begin} to {end} (exclusive) are outside the axis {node.options['axis']}, which has {size}"
        )
    return begin, end


def _slice_shape(node: Node) -> Shape | None:
    """Return the shape of x with fewer elements on one axis."""
    x, axis = node.input(0).shape, int(node.options["axis"])
    if x is None or 0 in x:
        return None
    x = x or (1,)  # a number has one element on its first axis
    if not 1 <= axis <= len(x):
        raise ShapeProblem(f"axis {axis} does not exist; the operand has the axes 1 to {len(x)}")
    try:
        begin, end = slice_range(node, x[axis - 1])
    except ShapeProblem as problem:
        count = int(node.options["endIndex"]) - int(node.options["beginIndex"])
        problem.provisional = (*x[: axis - 1], count, *x[axis:]) if count > 0 else None
        raise
    return (*x[: axis - 1], end - begin, *x[axis:])


def _slice(call: Call, x: Array) -> Array:
    axis = int(call.options["axis"])
    if not call.node.input(0).shape:
        return x[..., None]
    begin, end = slice_range(call.node, x.shape[-axis])
    return jax.lax.slice_in_dim(x, begin, end, axis=x.ndim - axis)


# ----------------------------------------------------------------------------------------------------- other dimensions


def _new_shape(node: Node) -> Shape | None:
    """Return the shape of x with `dims` in the place of the axes from beginAxis to endAxis (exclusive)."""
    x, options = node.input(0).shape, node.options
    if x is None or 0 in x:
        return None
    begin = int(options["beginAxis"]) or 1
    end = int(options["endAxis"]) or len(x) + 1
    if not 1 <= begin <= end <= len(x) + 1:
        raise ShapeProblem(
            f"the axes {begin} to {end} (exclusive) are not within the axes 1 to {len(x)} of the operand"
        )
    size, dims = shapes.size(x[begin - 1 : end - 1]), [int(dim) for dim in options["dims"]]
    if dims.count(0) > 1:
        raise ShapeProblem("only one of the new dimensions can be inferred; the others must not be 0")
    known = shapes.size(dim for dim in dims if dim)
    if 0 in dims:
        if size % known:
            raise ShapeProblem(f"{size} elements cannot be arranged as {shapes.text(dims)}")
        dims[dims.index(0)] = size // known
    elif known != size:
        raise ShapeProblem(f"{size} elements cannot be arranged as {shapes.text(dims)}, which has {known}")
    return (*x[: begin - 1], *dims, *x[end - 1 :])


def _reshape(call: Call, x: Array | Turned) -> Array | Turned:
    operand_shape, behind = call.node.input(0).shape, call.node.shape
    if is_image(x) and behind == (*operand_shape, 1):
        return OneChannel(x.array)
    if isinstance(x, OneChannel) and operand_shape == (*behind, 1):
        return ChannelsLast(x.array)
    x = plain(x)
    lead = x.shape[:2] if call.node.has_layout else ()
    return x.reshape(*lead, *reversed(call.node.shape))


def _transposed_shape(node: Node) -> Shape | None:
    """Return the shape of x with two axes exchanged."""
    x, first, second = node.input(0).shape, int(node.options["axis1"]), int(node.options["axis2"])
    if first < 1 or second < 1:
        raise ShapeProblem("axes are counted from 1")
    if x is None or 0 in x:
        return None
    if min(first, second) > len(x):
        raise ShapeProblem(f"neither axis {first} nor axis {second} exists; the operand has {len(x)}")
    dims = list(shapes.padded(x, max(first, second)))
    dims[first - 1], dims[second - 1] = dims[second - 1], dims[first - 1]
    return tuple(dims)


def _transpose(call: Call, x: Array) -> Array:
    first, second = int(call.options["axis1"]), int(call.options["axis2"])
    lead = x.shape[:2] if call.node.has_layout else ()
    dims = shapes.padded(call.node.input(0).shape, max(first, second))
    return jnp.swapaxes(x.reshape(*lead, *reversed(dims)), -first, -second)


# ----------------------------------------------------------------------------------------------------------- reductions


def _reduced_shape(node: Node) -> Shape | None:
    """`[1]`, or the shape of x with 1 on the reduced axis."""
    x, axis = node.input(0).shape, int(node.options["axis"])
    if str(node.options["reductionOp"]) not in REDUCTIONS:
        hint = "permitted: " + ", ".join(REDUCTIONS)
        raise ShapeProblem(f"'{node.options['reductionOp']}' is no reduction", hint)
    if x is None or 0 in x:
        return None
    if axis == 0:
        return (1,)
    if not 1 <= axis <= len(x):
        raise ShapeProblem(f"axis {axis} does not exist; the operand has the axes 1 to {len(x)}")
    return (*x[: axis - 1], 1, *x[axis:])


@functools.cache
def _extreme(largest: bool) -> Callable[[Array], Array]:
    """Largest or smallest element along the last axis; its gradient goes to every element equal to it."""

    def forward(x: Array) -> tuple[Array, Array]:
        out = (jnp.max if largest else jnp.min)(x, axis=-1, keepdims=True)
        # XLA may compute x once more for the comparison, and round it in another way
        rounding = jnp.where(jnp.isfinite(out), 2 * jnp.finfo(x.dtype).eps * jnp.abs(out), 0)
        return out, x >= out - rounding if largest else x <= out + rounding

    return custom_gradient(forward, lambda equal, g: (jnp.where(equal, g, jnp.zeros_like(g)),))


def _reduce(call: Call, x: Array) -> Array:
    axis, how = int(call.options["axis"]), str(call.options["reductionOp"])
    lead = x.shape[:2] if call.node.has_layout else ()
    rows = x.reshape(*lead, -1) if axis == 0 else jnp.moveaxis(x, -axis, -1)
    out = _along_last(how, rows)
    return out if axis == 0 else jnp.moveaxis(out, -1, -axis)


def _along_last(how: str, rows: Array) -> Array:
    """Return a reduction along the last axis, of which one element stays."""
    if how in ("Min", "Max"):
        return _extreme(how == "Max")(rows)
    functions = {"Sum": jnp.sum, "Mean": jnp.mean, "Prod": jnp.prod, "LogSum": jax.nn.logsumexp}
    return functions[how](rows, axis=-1, keepdims=True)


_NEUTRAL = {"Sum": 0.0, "Mean": 0.0, "Prod": 1.0, "LogSum": -math.inf, "Min": math.inf, "Max": -math.inf}
"""Neutral element of a reduction."""


def _over_minibatch_shape(node: Node) -> Shape | None:
    """Return the shape of the operand."""
    if str(node.options["reductionOp"]) not in REDUCTIONS:
        raise ShapeProblem(f"'{node.options['reductionOp']}' is no reduction", f"permitted: {', '.join(REDUCTIONS)}")
    return node.input(0).shape


def _over_minibatch(call: Call, x: Array) -> Array:
    if not call.node.input(0).has_layout:
        return x
    how = str(call.options["reductionOp"])
    cells = call.masked(x, _NEUTRAL[how])
    rows = jnp.moveaxis(cells.reshape(-1, *cells.shape[2:]), 0, -1)
    if how == "Mean":
        return jnp.sum(rows, axis=-1) / jnp.asarray(call.context.samples(), rows.dtype)
    return _along_last(how, rows)[..., 0]


def _top_shape(node: Node) -> Shape | None:
    """Return the shape of x with k elements on the axis."""
    x, axis, k = node.input(0).shape, int(node.options["axis"]), int(node.options["k"])
    if x is None or 0 in x:
        return None
    if not 1 <= axis <= len(x):
        raise ShapeProblem(f"axis {axis} does not exist; the operand has the axes 1 to {len(x)}")
    if not 1 <= k <= x[axis - 1]:
        raise ShapeProblem(f"{k} elements cannot be chosen from the {x[axis - 1]} of axis {axis}")
    return (*x[: axis - 1], k, *x[axis:])


def _top(call: Call, x: Array) -> Array:
    axis = int(call.options["axis"])
    rows = jnp.moveaxis(x, -axis, -1)
    values, numbers = jax.lax.top_k(rows, int(call.options["k"]))
    result = jax.lax.stop_gradient(numbers.astype(x.dtype)) if call.options["numbers"] else values
    return jnp.moveaxis(result, -1, -axis)


def _pass(call: Call, x: Array) -> Array:
    return x


KINDS = [
    one_signature(
        "Slice",
        (Argument("beginIndex", INTEGER), Argument("endIndex", INTEGER), Argument("x")),
        "Some elements of one axis, counted from 0, endIndex exclusive; negative numbers and an endIndex of 0 count "
        "from the end.",
        "x[begin : end]",
        _slice_shape,
        _slice,
        options=(Option("axis", INTEGER, 1, "the axis, counted from 1"),),
        example="h = Slice(1, 3, x)",
    ),
    one_signature(
        "NewReshape",
        (Argument("x"), Argument("dims", INTEGERS)),
        "The same elements with other dimensions in the place of some axes; one of them may be 0, to be inferred.",
        "elements in column-major order",
        _new_shape,
        _reshape,
        images=True,
        options=(
            Option("beginAxis", INTEGER, 0, "the first axis replaced, counted from 1; 0: the first"),
            Option("endAxis", INTEGER, 0, "the axis after the last one replaced; 0: after the last"),
        ),
        printed="Reshape",
        example="h = NewReshape(x, {2, 2})",
    ),
    one_signature(
        "TransposeDimensions",
        (Argument("x"), Argument("axis1", INTEGER), Argument("axis2", INTEGER)),
        "Two axes exchanged, counted from 1; one of them may be after the last.",
        "x'",
        _transposed_shape,
        _transpose,
        example="h = TransposeDimensions(picture, 1, 2)",
    ),
    one_signature(
        "ReduceElements",
        inputs("x"),
        "Sum, logarithm of the sum of exponentials, mean, smallest or largest element or product of a sample or along "
        "one axis.",
        "gradient of Min and Max: to every element equal to the result",
        _reduced_shape,
        _reduce,
        options=(
            Option("axis", INTEGER, 0, "the axis, counted from 1; 0: all elements of the sample"),
            Option("reductionOp", TEXT, "Sum", "what is computed", REDUCTIONS),
        ),
        example="h = ReduceElements(x, axis=1, reductionOp=Max)",
    ),
    one_signature(
        "ReduceMinibatch",
        inputs("x"),
        "Sum, logarithm of the sum of exponentials, mean, smallest or largest element or product over the minibatch, "
        "element by element. An operand without minibatch data is the result itself.",
        "gradient of Min and Max: to every element equal to the result",
        _over_minibatch_shape,
        _over_minibatch,
        aliases=("SumOverMinibatch",),
        options=(Option("reductionOp", TEXT, "Sum", "what is computed", REDUCTIONS),),
        layout="none",
        time=TimeRule(reduces_time=True),
        example="total = ReduceMinibatch(x, reductionOp=Max)",
    ),
    one_signature(
        "TopK",
        (Argument("x"), Argument("k", INTEGER)),
        "The k largest elements along one axis, the largest one first, or their numbers from 0 on.",
        "gradient: to the chosen elements; none of numbers",
        _top_shape,
        _top,
        width="long",
        options=(
            Option("axis", INTEGER, 1, "the axis, counted from 1"),
            Option("numbers", BOOLEAN, False, "the numbers of the elements instead of the elements"),
        ),
        example="h = TopK(x, 2)",
    ),
    one_signature(
        "Pass",
        inputs("x"),
        "The operand itself.",
        "x",
        rules.same,
        _pass,
        sparse=True,
        example="h = Pass(x)",
        onnx=unchanged,
    ),
]
