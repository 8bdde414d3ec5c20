"""Rules for CNTK's model files: leaves."""

from __future__ import annotations

import math

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.network import Node
from cntkpy.networks.nodes.file_support.bodies import SHAPE, VALUE, Attributes, Body, BodyReader
from cntkpy.networks.nodes.file_support.records import BATCH_AXIS, DEFAULT_AXIS, BadFile
from cntkpy.networks.nodes.file_support.rules import Rule
from cntkpy.networks.nodes.file_support.tables import Operation
from cntkpy.networks.nodes.file_support.target import Target


def _parameter_body(body: Body) -> Attributes:
    r = body.reader
    if body.version >= 3:
        rate = r.f32()
        shape = r.shape()
    else:
        rate = 1.0 if r.boolean() else 0.0
        rows, columns = r.u64(), r.u64()
        shape = (rows,) if rows else r.shape(old=True)
        if columns > 1:
            shape = (*shape, columns)
    if not 0 <= rate < math.inf:
        raise body.bad(f"the learning rate multiplier is {rate}")
    values = r.matrix(body.size)
    if 0 in shape or shapes.size(shape) != values.size:
        raise body.bad(f"{values.size} values do not fit the shape {shapes.text(shape)}")
    return {"learningRateMultiplier": rate, SHAPE: shape, VALUE: values}


def _input_body(body: Body) -> Attributes:
    r = body.reader
    rows, _ = r.u64(), r.u64()
    shape = r.shape(old=True)
    if rows and rows != shapes.size(shape):
        shape = (rows,)
    if 0 in shape:
        raise body.bad(f"the input has the shape {shapes.text(shape)}")
    axis = ""
    if body.version >= 8:
        count = r.u32()
        if count > 1:
            raise body.bad(f"the input has {count} dynamic axes")
        axis = r.text() if count else ""
    if body.version >= 10:
        r.f32()
    return {"dynamicAxis": axis, SHAPE: shape}


def _parameter(t: Target) -> Node:
    record = t.record
    if record.shape is None or record.value is None or record.value.size != shapes.size(record.shape):
        raise BadFile(f"the parameter '{record.name}' has no value of its shape", record.at)
    node = t.add("LearnableParameter", t.inputs(0), shape=record.shape)
    node.learning_rate_multiplier = record.attributes["learningRateMultiplier"]
    node.value = record.value.reshape(tuple(reversed(record.shape)))
    return node


def _input(t: Target) -> Node:
    records = t.builder.records.records.values()
    axes = {r.attributes["dynamicAxis"] for r in records if r.operation in ("InputValue", "SparseInputValue")}
    axis = t.record.attributes["dynamicAxis"] if len(axes) > 1 else ""
    node = t.add(t.record.operation, t.inputs(0), shape=t.record.shape, dynamicAxis=_AXES.get(axis, axis))
    node.dynamic_axes = t.record.attributes.get("dynamicAxes")
    return node


_AXES = {BATCH_AXIS: ONE, DEFAULT_AXIS: ""}
"""Names of the axes of inputs of the later format."""


def _constant_op(t: Target) -> Node:
    (x,) = t.inputs(1)
    shape = t.shape(x)
    if shapes.size(shape) > 1 << 20:
        raise t.refuse("a constant of more than a million elements")
    if not x.has_layout:
        return t.constants(shape, t.attributes["fillValue"])
    value = t.constants(shape, t.attributes["fillValue"], ".value")
    return t.add("ReconcileDynamicAxis", [value, x])  # it has the steps of x: ones_like may begin a recurrence


BODIES: dict[str, BodyReader] = {
    "LearnableParameter": _parameter_body,
    "InputValue": _input_body,
    "SparseInputValue": _input_body,
}
"""By operation of the first format: reads the attributes of a node."""


NUMBERS: dict[int, Operation] = {89: Operation("ConstantOp", lambda t: {"fillValue": t.get("fillValue", float, 0.0)})}
"""By number in the later format."""


RULES: dict[str, Rule] = {
    "LearnableParameter": _parameter,
    "InputValue": _input,
    "SparseInputValue": _input,
    "ConstantOp": _constant_op,
}
"""By operation: makes nodes of a record."""
