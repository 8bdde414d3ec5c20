"""Operations on the axes of a sample: slices, other dimensions, exchanged axes, reductions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from networks.arrays.lazy import custom_gradient, jax, jnp
from networks.graph import shapes
from networks.graph.shapes import Shape, ShapeProblem
from networks.nodes import rules
from networks.nodes.declare import INTEGER, INTEGERS, TEXT, Argument, NodeKind, Option, inputs

if TYPE_CHECKING:
    from networks.graph.node import Node

FAMILY = "Shape"
SOURCE = "docs/specification/brainscript-library.md"

Array = Any

REDUCTIONS = ("Sum", "LogSum", "Mean", "Min", "Max")


# --------------------------------------------------------------------------------------------------------------- slices


def _slice_range(node: Node, size: int) -> tuple[int, int]:
    """The elements of an axis of `size` that are taken: first, one past the last."""
    first, last = int(node.options["beginIndex"]), int(node.options["endIndex"])
    begin = first + size if first < 0 else first
    end = last + size if last <= 0 else last
    if not 0 <= begin < end <= size:
        raise ShapeProblem(
            f"the elements {begin} to {end} (exclusive) are outside the axis {node.options['axis']}, which has {size}"
        )
    return begin, end


def _slice_shape(node: Node) -> Shape | None:
    """The shape of x with fewer elements on one axis."""
    x, axis = node.input(0).shape, int(node.options["axis"])
    if x is None or 0 in x:
        return None
    if not 1 <= axis <= len(x):
        raise ShapeProblem(f"axis {axis} does not exist; the operand has the axes 1 to {len(x)}")
    try:
        begin, end = _slice_range(node, x[axis - 1])
    except ShapeProblem as problem:
        count = int(node.options["endIndex"]) - int(node.options["beginIndex"])
        problem.provisional = (*x[: axis - 1], count, *x[axis:]) if count > 0 else None
        raise
    return (*x[: axis - 1], end - begin, *x[axis:])


def _slice(call: Any, x: Array) -> Array:
    axis = int(call.options["axis"])
    begin, end = _slice_range(call.node, x.shape[-axis])
    return jax.lax.slice_in_dim(x, begin, end, axis=x.ndim - axis)


# ----------------------------------------------------------------------------------------------------- other dimensions


def _new_shape(node: Node) -> Shape | None:
    """The shape of x with `dims` in the place of the axes from beginAxis to endAxis (exclusive)."""
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


def _reshape(call: Any, x: Array) -> Array:
    lead = x.shape[:2] if call.node.has_layout else ()
    return x.reshape(*lead, *reversed(call.node.shape))


def _transposed_shape(node: Node) -> Shape | None:
    """The shape of x with two axes exchanged."""
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


def _transpose(call: Any, x: Array) -> Array:
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
def _extreme(largest: bool) -> Any:
    """Largest or smallest element along the last axis; its gradient goes to every element equal to it."""

    def primal(x: Array) -> Array:
        return (jnp.max if largest else jnp.min)(x, axis=-1, keepdims=True)

    def forward(x: Array) -> Any:
        out = primal(x)
        return out, x == out

    return custom_gradient(primal, forward, lambda equal, g: (jnp.where(equal, g, jnp.zeros_like(g)),))


def _reduce(call: Any, x: Array) -> Array:
    axis, how = int(call.options["axis"]), str(call.options["reductionOp"])
    lead = x.shape[:2] if call.node.has_layout else ()
    rows = x.reshape(*lead, -1) if axis == 0 else jnp.moveaxis(x, -axis, -1)
    if how == "Sum":
        out = jnp.sum(rows, axis=-1, keepdims=True)
    elif how == "Mean":
        out = jnp.mean(rows, axis=-1, keepdims=True)
    elif how == "LogSum":
        out = jax.nn.logsumexp(rows, axis=-1, keepdims=True)
    else:
        out = _extreme(how == "Max")(rows)
    return out if axis == 0 else jnp.moveaxis(out, -1, -axis)


def _pass(call: Any, x: Array) -> Array:
    return x


def _kind(name: str, signature: Any, meaning: str, formula: str, shape: Any, forward: Any, **more: Any) -> NodeKind:
    return NodeKind(name, (signature,), meaning, formula, shape, forward, family=FAMILY, source=SOURCE, **more)


KINDS = [
    _kind(
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
    _kind(
        "NewReshape",
        (Argument("x"), Argument("dims", INTEGERS)),
        "The same elements with other dimensions in the place of some axes; one of them may be 0, to be inferred.",
        "elements in column-major order",
        _new_shape,
        _reshape,
        options=(
            Option("beginAxis", INTEGER, 0, "the first axis replaced, counted from 1; 0: the first"),
            Option("endAxis", INTEGER, 0, "the axis behind the last one replaced; 0: behind the last"),
        ),
        printed="Reshape",
        example="h = NewReshape(x, {2, 2})",
    ),
    _kind(
        "TransposeDimensions",
        (Argument("x"), Argument("axis1", INTEGER), Argument("axis2", INTEGER)),
        "Two axes exchanged, counted from 1; one of them may be behind the last.",
        "x'",
        _transposed_shape,
        _transpose,
        example="h = TransposeDimensions(picture, 1, 2)",
    ),
    _kind(
        "ReduceElements",
        inputs("x"),
        "Sum, logarithm of the sum of exponentials, mean, smallest or largest element of a sample or along one axis.",
        "gradient of Min and Max: to every element equal to the result",
        _reduced_shape,
        _reduce,
        options=(
            Option("axis", INTEGER, 0, "the axis, counted from 1; 0: all elements of the sample"),
            Option("reductionOp", TEXT, "Sum", "what is computed", REDUCTIONS),
        ),
        example="h = ReduceElements(x, axis=1, reductionOp=Max)",
    ),
    _kind("Pass", inputs("x"), "The operand itself.", "x", rules.same, _pass, sparse=True, example="h = Pass(x)"),
]
