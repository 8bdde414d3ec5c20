"""Time axes that are made of an axis of samples.

Specified in docs/specification/brainscript-library.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cntkpy.networks.arrays.batch import Grid
from cntkpy.networks.arrays.lazy import Array, jnp
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.call import Call, masked
from cntkpy.networks.nodes.declare import Forward, NodeKind, ShapeRule, Signature, TimeRule, inputs

if TYPE_CHECKING:
    from cntkpy.networks.graph.node import Node


ONE_SAMPLE = "one = GatherPacked(PackedIndex(x, Where(RowSlice(0, 1, x), single=true)), x)\n"
"""Begins an example of what takes one sample for each sequence."""


def _steps_from_samples(x: Node) -> Shape | None:
    """Return the shape of a step: that of a sample without its last axis."""
    rules.carrying_data(x)
    if x.axis != ONE:
        message = f"'{x.name}' has a time axis already; one sample for each sequence is expected"
        raise ShapeProblem(
            message, "in Python, sequence.unpack makes an axis of samples of it", x.shape and x.shape[:-1]
        )
    if x.shape is None or 0 in x.shape:
        return None
    if not x.shape:
        raise ShapeProblem(f"samples of '{x.name}' are numbers, which have no axis that could become that of time")
    return x.shape[:-1]


def _sequence_shape(node: Node) -> Shape | None:
    """Return the shape of x without its last axis, which becomes that of time."""
    if len(node.inputs) > 1:
        lengths = node.input(1)
        rules.carrying_data(lengths)
        if lengths.axis != ONE or (lengths.shape is not None and shapes.size(lengths.shape) != 1):
            raise ShapeProblem(f"the lengths '{lengths.name}' must be one number for each sequence")
    return _steps_from_samples(node.input(0))


def _sequence(call: Call, x: Array, lengths: Array | None = None) -> Array:
    """Values (steps, slots, ...) of x (1, slots, steps, ...)."""
    here = call.context.grid(call.node.input(0).axis).mask[0]
    steps = x.shape[2]
    if lengths is None:
        count = jnp.where(here, steps, 0).astype(jnp.int32)
    else:
        counts = lengths.reshape(-1)
        call.problem(here & ~((counts >= 1) & (counts <= steps) & (counts == jnp.floor(counts))))
        count = jnp.where(here, jnp.clip(counts, 0, steps), 0).astype(jnp.int32)
    step = jnp.arange(steps, dtype=jnp.int32)[:, None]
    inside = step < count
    grid = Grid(inside, jnp.where(inside, step, -1), jnp.where(inside, count - 1 - step, -1))
    call.context.add_grid(call.node.axis, grid)
    return masked(jnp.moveaxis(x[0], 1, 0), inside)


def _sequence_like_shape(node: Node) -> Shape | None:
    """Return the shape of x without its last axis, which becomes that of time."""
    rules.carrying_data(node.input(1))
    return _steps_from_samples(node.input(0))


def _sequence_like(call: Call, x: Array, like: Array) -> Array:
    """Values on the time axis of `like`; what lies behind the end of a sequence is left out."""
    mask = call.context.grid(call.node.input(1).axis).mask
    steps, wanted = x.shape[2], mask.shape[0]
    call.problem(jnp.sum(mask, axis=0) > steps)
    values = jnp.moveaxis(x[0], 1, 0)[:wanted]
    if steps < wanted:
        values = jnp.pad(values, [(0, wanted - steps)] + [(0, 0)] * (values.ndim - 1))
    return masked(values, mask)


def _kind(
    name: str,
    signatures: tuple[Signature, ...],
    meaning: str,
    shape: ShapeRule | None,
    forward: Forward,
    time: TimeRule,
    example: str,
) -> NodeKind:
    return NodeKind(
        name,
        signatures,
        meaning,
        "",
        shape,
        forward,
        time=time,
        example=example,
        not_exported="it makes sequences of samples; export what follows it, with sequences as data",
    )


KINDS = [
    _kind(
        "ToSequence",
        (inputs("x"), inputs("x", "lengths")),
        "A sequence on a time axis of its own, whose steps are those along the last axis of x, which has one sample "
        "for each sequence: all of them, or as many as lengths says.",
        _sequence_shape,
        _sequence,
        TimeRule(keeps_steps=True, own_slots=True, across=True, reduces_time=True),
        ONE_SAMPLE + "steps = ToSequence(NewReshape(one, {2, 2}))",
    ),
    _kind(
        "ToSequenceLike",
        (inputs("x", "like"),),
        "A sequence on the time axis of the second operand, whose steps are the first ones along the last axis of x, "
        "which has one sample for each sequence.",
        _sequence_like_shape,
        _sequence_like,
        TimeRule(own_slots=True, across=True, axis_from=1, reduces_time=True),
        ONE_SAMPLE + "steps = ToSequenceLike(NewReshape(one, {2, 2}), x)",
    ),
]
