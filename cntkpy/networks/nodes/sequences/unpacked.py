"""Axes of sequences and of the minibatch that become axes of samples; their sizes are options of the nodes.

Specified in docs/specification/brainscript-library.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cntkpy.networks.arrays.batch import Grid
from cntkpy.networks.arrays.lazy import Array, jnp
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.call import Call, masked
from cntkpy.networks.nodes.declare import BOOLEAN, INTEGER, REAL, NodeKind, Option, RecordForm, TimeRule, inputs

if TYPE_CHECKING:
    from cntkpy.networks.graph.node import Node


def _unpacked_shape(node: Node) -> Shape | None:
    """Return the shape of x with an axis of `steps` after the last one; of the mask that axis alone."""
    x, steps = node.input(0), int(node.options["steps"])
    rules.carrying_data(x)
    if x.axis == ONE:
        raise ShapeProblem(f"'{x.name}' has one sample for each sequence, so there is no time axis to unpack")
    if steps < 1:
        raise ShapeProblem("the number of steps is not known", "steps=10 unpacks sequences of at most 10 steps")
    if node.options["mask"]:
        return (steps,)
    return None if x.shape is None or 0 in x.shape else (*x.shape, steps)


def one_step(there: Array) -> Grid:
    """Return the places of sequences of one step, in the slots (slots,) that have one."""
    number = jnp.where(there, 0, -1).astype(jnp.int32)[None]
    return Grid(there[None], number, number)


def _unpacked(call: Call, x: Array) -> Array:
    """Values (1, slots, steps, ...) of x (T, slots, ...)."""
    mask = call.context.grid(call.node.input(0).axis).mask
    steps = int(call.options["steps"])
    call.problem(jnp.sum(mask, axis=0) > steps)
    call.context.add_grid(call.node.axis, one_step(jnp.any(mask, axis=0)))
    if call.options["mask"]:
        values, padding = mask.astype(call.context.dtype), 0.0
    else:
        padding = float(call.options["padding"])
        values = masked(x, mask, padding)
    values = values[:steps]
    missing = steps - values.shape[0]
    if missing > 0:
        values = jnp.pad(values, [(0, missing)] + [(0, 0)] * (values.ndim - 1), constant_values=padding)
    return jnp.moveaxis(values, 0, 1)[None]


KINDS = [
    NodeKind(
        "UnpackSequence",
        (inputs("x"),),
        "One sample for each sequence, with the steps of the sequence along a new last axis, and padding behind its "
        "end.",
        "",
        _unpacked_shape,
        _unpacked,
        options=(
            Option("steps", INTEGER, 0, "the size of the new axis; no sequence may have more steps"),
            Option("padding", REAL, 0.0, "what the elements behind the end of a sequence are"),
            Option("mask", BOOLEAN, False, "instead of the values, 1 for each step of the sequence and 0 behind it"),
        ),
        time=TimeRule(keeps_steps=True, own_slots=True, across=True, reduces_time=True),
        record=RecordForm(optional=("steps", "padding", "mask")),
        example="h = UnpackSequence(x, steps=10)",
        not_exported="its size is that of one minibatch; export what comes before it",
    )
]
