"""The axis of the minibatch: the numbers of its samples, an axis of samples made of it, and the other way round.

Specified in docs/specification/brainscript-library.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cntkpy.networks.arrays.lazy import Array, jnp
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.call import Call
from cntkpy.networks.nodes.declare import BOOLEAN, INTEGER, NodeKind, Option, RecordForm, TimeRule, inputs
from cntkpy.networks.nodes.sequences.unpacked import one_step

if TYPE_CHECKING:
    from cntkpy.networks.graph.node import Node


def _number_shape(node: Node) -> Shape | None:
    """`[1]`."""
    rules.carrying_data(node.input(0))
    return (1,)


def _number(call: Call, x: Array) -> Array:
    mask = call.context.grid(call.node.input(0).axis).mask
    number = jnp.cumsum(mask.reshape(-1)) - 1
    return number.reshape(*mask.shape, 1).astype(call.context.dtype)


def _rows_shape(node: Node) -> Shape | None:
    """Return the shape of x with an axis of `count` after the last one."""
    x, count = node.input(0), int(node.options["count"])
    rules.carrying_data(x)
    if count < 1:
        raise ShapeProblem("the number of samples is not known", "count=10 is for minibatches of 10 samples")
    return None if x.shape is None or 0 in x.shape else (*x.shape, count)


def _rows(call: Call, x: Array) -> Array:
    """Values (count, ...) of x (T, S, ...)."""
    mask = call.context.grid(call.node.input(0).axis).mask.reshape(-1)
    count = int(call.options["count"])
    call.problem(jnp.sum(mask) != count)
    cells = x.reshape(-1, *x.shape[2:])
    there = jnp.argsort(~mask, stable=True)[:count]
    rows = jnp.take(cells, there, axis=0)
    return rows if len(rows) == count else jnp.pad(rows, [(0, count - len(rows))] + [(0, 0)] * (rows.ndim - 1))


def _samples_shape(node: Node) -> Shape | None:
    """Return the shape of x without its last axis."""
    x = node.input(0)
    if x.shape is None or 0 in x.shape:
        return None
    if not x.shape:
        raise ShapeProblem(f"'{x.name}' is a number, which has no axis that could become that of the minibatch")
    return x.shape[:-1]


def _samples(call: Call, x: Array) -> Array:
    """Values (1, S, ...) of x (rows, ...), or of x (1, S, rows, ...) that is the same in every slot."""
    there = jnp.any(call.context.grid(call.node.axis).mask, axis=0)
    if call.node.axis == ONE:
        call.context.add_grid(ONE, one_step(there))
    rows = jnp.moveaxis(x[0], 1, 0) if call.node.input(0).has_layout else x
    count = rows.shape[0]
    call.problem(jnp.sum(there) != count)
    slot = jnp.arange(there.shape[0])
    number = jnp.minimum(slot, count - 1)
    return (rows[number, slot] if call.node.input(0).has_layout else rows[number])[None]


KINDS = [
    NodeKind(
        "SampleNumber",
        (inputs("x"),),
        "The number of each sample in its minibatch, from 0 on.",
        "",
        _number_shape,
        _number,
        columns=True,
        differentiable=False,
        width="long",
        time=TimeRule(reduces_time=True),
        example="h = SampleNumber(x)",
    ),
    NodeKind(
        "UnpackBatch",
        (inputs("x"),),
        "The samples of a minibatch along a new last axis of one value.",
        "",
        _rows_shape,
        _rows,
        layout="none",
        options=(Option("count", INTEGER, 0, "the size of the new axis: the samples of every minibatch"),),
        time=TimeRule(reduces_time=True),
        record=RecordForm(optional=("count",)),
        example="h = UnpackBatch(x, count=5)",
        not_exported="it mixes the samples of a minibatch, of one size",
    ),
    NodeKind(
        "ToBatch",
        (inputs("x"),),
        "One sample for each sequence: those along the last axis of a value that all share.",
        "",
        _samples_shape,
        _samples,
        options=(Option("oneStep", BOOLEAN, False, "the network has sequences of several steps; these have one"),),
        time=TimeRule(across=True, reduces_time=True),
        record=RecordForm(optional=("oneStep",)),
        example="h = ToBatch(W)",
        not_exported="its minibatch has one size",
    ),
]
