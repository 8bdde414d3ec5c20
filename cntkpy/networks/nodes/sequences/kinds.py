"""Steps of sequences selected and put back, and time axes that are joined.

In a network with several time axes each sequence of a minibatch has a slot of its own, the same on all axes: what
belongs together has the same slot. On some axes sequences share slots (`cntkpy.networks.arrays.packing`). A cell
number of an axis is `t * S + s`.

Specified in docs/specification/brainscript-library.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cntkpy.networks.arrays.batch import Grid, PackedGrid
from cntkpy.networks.arrays.lazy import Array, jnp
from cntkpy.networks.arrays.packing import apart, at_every_step, by_cell, first_cells, lengths_of, separated, together
from cntkpy.networks.graph import axes, shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.call import Call, masked
from cntkpy.networks.nodes.declare import (
    BOOLEAN,
    REAL,
    Forward,
    NodeKind,
    Option,
    RecordForm,
    ShapeRule,
    Signature,
    TimeRule,
    inputs,
)

if TYPE_CHECKING:
    from cntkpy.networks.graph.node import Node


def _axis_shape(node: Node) -> Shape | None:
    """`[1 x 1]`."""
    return (1, 1)


# ---------------------------------------------------------------------------------------------------- selected steps


def _where_shape(node: Node) -> Shape | None:
    """`[1]`; the condition is a number for each step."""
    condition = node.input(0)
    rules.carrying_data(condition)
    if condition.shape is not None and 0 not in condition.shape and shapes.size(condition.shape) != 1:
        raise ShapeProblem("the condition must be one number for each step")
    return (1,)


def _where(call: Call, condition: Array) -> Array:
    lie = call.context.grid(call.node.input(0).axis)
    if isinstance(lie, PackedGrid):
        condition = apart(condition.reshape(lie.mask.shape), lie)
    grid = separated(lie)
    steps, slots = grid.mask.shape
    kept = (condition.reshape(steps, slots) != 0) & grid.mask
    bound = 1 if call.options["single"] else axes.kept_steps(call.node.input(0))
    most = steps if bound is None else min(bound, steps)
    count = jnp.sum(kept, axis=0, dtype=jnp.int32)
    if most == 1:
        place = jnp.argmax(kept, axis=0)[None]
    else:
        rank = jnp.where(kept, jnp.cumsum(kept, axis=0) - 1, most)
        times = jnp.broadcast_to(jnp.arange(steps)[:, None], kept.shape)
        place = jnp.zeros((most, slots), times.dtype).at[rank, jnp.arange(slots)[None]].set(times, mode="drop")
    step = jnp.arange(most, dtype=jnp.int32)[:, None]
    inside = step < count
    new = Grid(inside, jnp.where(inside, step, -1), jnp.where(inside, count - 1 - step, -1))
    call.context.add_grid(call.node.axis, new)
    wrong = count != 1 if call.options["single"] else count == 0
    call.problem(jnp.any(grid.mask, axis=0) & wrong)
    return place.astype(call.context.dtype)[..., None]


MOST_REPEATED = 1_000_000
"""The largest factor of RepeatSteps, so that the steps of a sequence can be counted."""


def _repeated_shape(node: Node) -> Shape | None:
    """`[1]`."""
    rules.carrying_data(node.input(0))
    if not 0 < node.options["factor"] <= MOST_REPEATED:
        limits = f"larger than 0 and at most {MOST_REPEATED:,}"
        raise ShapeProblem(f"the factor must be {limits}, not {node.options['factor']:g}")
    return (1,)


def _repeated(call: Call, source: Array) -> Array:
    """Step j is that of number floor (j / factor)."""
    grid, factor = call.context.grid(call.node.input(0).axis), float(call.options["factor"])
    steps, slots = grid.mask.shape
    lengths: list[int] = [math.ceil(n * factor * (1 - 1e-9)) for n in range(steps + 1)]
    count = jnp.asarray(lengths, jnp.int32)[jnp.sum(grid.mask, axis=0, dtype=jnp.int32)]
    step = jnp.arange(lengths[-1], dtype=jnp.int32)[:, None]
    inside = step < count
    new = Grid(inside, jnp.where(inside, step, -1), jnp.where(inside, count - 1 - step, -1))
    call.context.add_grid(call.node.axis, new)
    numbers = jnp.asarray([int(j / factor * (1 + 1e-9)) for j in range(lengths[-1])], call.context.dtype)
    return jnp.broadcast_to(numbers[:, None, None], (len(numbers), slots, 1))


def _index_shape(node: Node) -> Shape | None:
    """`[1]`."""
    source, index = node.connected
    rules.carrying_data(source, index)
    if index.shape is not None and 0 not in index.shape and shapes.size(index.shape) != 1:
        raise ShapeProblem("an index must be one number for each step")
    return (1,)


def _packed_index(call: Call, source: Array, index: Array) -> Array:
    """Cell numbers on the axis of the first operand."""
    into, here = call.context.grid(call.node.input(0).axis), call.context.grid(call.node.input(1).axis)
    steps, slots = into.mask.shape
    step = index.reshape(here.mask.shape).astype(jnp.int32)
    inside = (step >= 0) & (step < by_cell(lengths_of(into), here))
    call.problem(jnp.any(here.mask & ~inside, axis=0))
    cell = jnp.clip(step, 0, steps - 1) * slots + by_cell(first_cells(into), here)
    return cell.astype(call.context.dtype)[..., None]


def _gathered_shape(node: Node) -> Shape | None:
    """Return the shape of the source; of one without time axis that of a column."""
    index, source = node.connected
    rules.carrying_data(index)
    if index.shape is not None and 0 not in index.shape and shapes.size(index.shape) != 1:
        raise ShapeProblem("an index must be one number for each step")
    if source.shape is None or 0 in source.shape:
        return None
    return source.shape if source.has_layout else source.shape[:-1] or (1,)


def _gather_packed(call: Call, index: Array, source: Array) -> Array:
    index_node, source_node = call.node.connected
    mask = call.context.grid(index_node.axis).mask
    cells = index[..., 0].reshape(index.shape[:2]).astype(jnp.int32)
    if source_node.has_layout:
        columns = source.reshape(-1, *source.shape[2:])
    else:
        columns = source if source.ndim > 1 else source[:, None]
        outside = (cells < 0) | (cells >= columns.shape[0])
        call.problem(outside & mask)
    values = jnp.take(columns, jnp.clip(cells, 0, columns.shape[0] - 1), axis=0)
    return masked(values, mask)


def _scattered_shape(node: Node) -> Shape | None:
    """Return the shape of the source; a source without minibatch data is the same at every step of the index."""
    index = node.input(1)
    rules.carrying_data(node.input(0), index)
    if index.shape is not None and 0 not in index.shape and shapes.size(index.shape) != 1:
        raise ShapeProblem("an index must be one number for each step")
    return node.input(2).shape


def _scatter_packed(call: Call, like: Array, index: Array, source: Array) -> Array:
    """Zeros, and each step of the source added to the cell that the index names."""
    like_node, index_node, source_node = call.node.connected
    steps, slots = call.context.grid(like_node.axis).mask.shape
    here = call.context.grid(index_node.axis)
    source = _on(call, source, source_node, index_node)
    cells = index[..., 0].reshape(-1).astype(jnp.int32)
    values = masked(source, here.mask)
    zeros = jnp.zeros((steps * slots, *values.shape[2:]), values.dtype)
    out = zeros.at[cells].add(values.reshape(-1, *values.shape[2:]), mode="drop")
    return out.reshape(steps, slots, *values.shape[2:])


# ------------------------------------------------------------------------------------------------------- joined axes


def _reconciled_shape(node: Node) -> Shape | None:
    """Return the shape of the first operand."""
    rules.carrying_data(node.input(1))
    return node.input(0).shape


def _reconciled(call: Call, data: Array, like: Array) -> Array:
    node, layout = call.node.connected
    if axes.repeated(call.node):
        if isinstance(lie := call.context.grid(layout.axis), PackedGrid):
            return at_every_step(data[0], lie)
        return jnp.broadcast_to(data[:1], (call.context.on(layout.axis).T, *data.shape[1:]))
    return _on(call, data, node, layout)


def _on(call: Call, array: Array, node: Node, like: Node) -> Array:
    """Return the array of a node, on the axis of another one.

    The sequences of both must have the same lengths. A node without minibatch data has its value at every step.
    """
    if node.axis == like.axis:
        return array
    if not node.has_layout:
        on = call.context.on(like.axis)
        return jnp.broadcast_to(array, (on.T, on.S, *array.shape))
    target, source = call.context.grid(node.axis), call.context.grid(like.axis)
    call.problem(lengths_of(target) != lengths_of(source))
    if isinstance(target, PackedGrid):
        array = apart(array, target)
    array = _with_steps(array, source.mask.shape[0])
    return together(array, source) if isinstance(source, PackedGrid) else array


def _with_steps(array: Array, wanted: int) -> Array:
    """Without the last time steps, or with gaps after them."""
    missing = wanted - len(array)
    return array[:wanted] if missing <= 0 else jnp.pad(array, [(0, missing)] + [(0, 0)] * (array.ndim - 1))


def _kind(
    name: str, operands: Signature, meaning: str, shape: ShapeRule | None, forward: Forward, **fields: Any
) -> NodeKind:
    return NodeKind(name, (operands,), meaning, "", shape, forward, **fields)


KINDS = [
    NodeKind(
        "DynamicAxis",
        ((),),
        "A time axis of its own, for inputs whose sequences have other lengths: Input (..., dynamicAxis=t).",
        shape=_axis_shape,
        layout="none",
        time=TimeRule(makes_axis=True),
        example=("sentence = DynamicAxis()\ntokens = Input(4, dynamicAxis=sentence)"),
    ),
    _kind(
        "Where",
        inputs("condition"),
        "The numbers (from 0) of the steps of each sequence at which the condition is not 0: a shorter sequence on a "
        "time axis of its own. A sequence of which nothing is kept is an error.",
        _where_shape,
        _where,
        width="long",
        options=(Option("single", BOOLEAN, False, "every sequence keeps one step: there is one step per sequence"),),
        time=TimeRule(keeps_steps=True, own_slots=True, packs=True, across=True, reduces_time=True),
        record=RecordForm(without=("single",)),
        example="first = Where(RowSlice(0, 1, x))",
    ),
    _kind(
        "RepeatSteps",
        inputs("data"),
        "The numbers (from 0) of the steps of each sequence, repeated until there are factor times as many, rounded "
        "up: a longer sequence on a time axis of its own.",
        _repeated_shape,
        _repeated,
        width="long",
        options=(Option("factor", REAL, 2.0, "how many steps there are for each one"),),
        time=TimeRule(keeps_steps=True, own_slots=True, across=True, reduces_time=True),
        record=RecordForm(optional=("factor",)),
        example="twice = RepeatSteps(x, factor=2)",
    ),
    _kind(
        "PackedIndex",
        inputs("source", "index"),
        "The cells of the minibatch in which these steps (from Where) of the source lie.",
        _index_shape,
        _packed_index,
        width="long",
        time=TimeRule(own_slots=True, packs=True, across=True, axis_from=1, reduces_time=True),
        example="at = PackedIndex(x, Where(RowSlice(0, 1, x)))",
    ),
    _kind(
        "GatherPacked",
        inputs("packedIndex", "source"),
        "The steps of the source whose cells PackedIndex gives; of a matrix without time axis, the columns of these "
        "numbers.",
        _gathered_shape,
        _gather_packed,
        time=TimeRule(packs=True, across=True, axis_from=0, reduces_time=True),
        example=("at = PackedIndex(x, Where(RowSlice(0, 1, x)))\nh = GatherPacked(at, x)"),
    ),
    _kind(
        "ScatterPacked",
        inputs("layoutOf", "packedIndex", "source"),
        "Zeros on the time axis of the first operand, and each step of the source added to the cell that PackedIndex "
        "gives. A source without time axis, as a constant, is the same at every step of packedIndex.",
        _scattered_shape,
        _scatter_packed,
        time=TimeRule(own_slots=True, packs=True, across=True, axis_from=0, reduces_time=True),
        example=("at = PackedIndex(x, Where(RowSlice(0, 1, x)))\nh = ScatterPacked(x, at, GatherPacked(at, x))"),
    ),
    _kind(
        "ReconcileDynamicAxis",
        inputs("data", "layoutSource"),
        "data, on the time axis of the second operand: their sequences must have the same lengths. Data without time "
        "axis, as a constant, are the same at every step.",
        _reconciled_shape,
        _reconciled,
        options=(Option("broadcast", BOOLEAN, False, "repeat data of one step per sequence at every step"),),
        time=TimeRule(packs=True, across=True, axis_from=1),
        record=RecordForm(without=("broadcast",)),
        example="h = ReconcileDynamicAxis(x, y)",
    ),
]
