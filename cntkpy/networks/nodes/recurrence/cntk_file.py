"""Rules for CNTK's model files: delays and recurrent stacks."""

from __future__ import annotations

import numpy as np

from cntkpy.networks import nodes
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.network import Node
from cntkpy.networks.graph.shapes import Shape
from cntkpy.networks.nodes.file_support.bodies import SHAPE, Body, BodyReader
from cntkpy.networks.nodes.file_support.dictionary import Table
from cntkpy.networks.nodes.file_support.records import BadFile
from cntkpy.networks.nodes.file_support.rules import Rule
from cntkpy.networks.nodes.file_support.tables import SWAPPED, Attributes, Operation
from cntkpy.networks.nodes.file_support.target import Target


def _delay_body(body: Body) -> Attributes:
    r = body.reader
    steps = r.i32()
    shape: Shape = r.shape() if body.version > 3 else (r.u64(), r.u64())[:1]
    initial = r.real(body.size) if body.version >= 2 else float(np.float32(0.1))
    if steps < 1:
        raise body.bad(f"the time step is {steps}")
    return {"timeStep": steps, "initial": initial, SHAPE: None if 0 in shape else shape}


def _rnn_stack_body(body: Body) -> Attributes:
    r = body.reader
    attributes: Attributes = {"bidirectional": bool(r.u64()), "numLayers": r.u64(), "hiddenDims": r.u64()}
    attributes["recurrentOp"] = r.text()
    attributes["axis"] = r.i32() if body.version >= 14 else -1
    return attributes


def _rnn_stack_attributes(table: Table) -> Attributes:
    return {
        "bidirectional": table.get("bidirectional", bool, False),
        "numLayers": table.get("numLayers", int, 0),
        "hiddenDims": table.get("hiddenSize", int, 0),
        "recurrentOp": table.get("recurrentOp", str, ""),
        "axis": -1,
    }


def _delay(t: Target) -> Node:
    count, steps = len(t.record.inputs), t.attributes["timeStep"]
    if not 1 <= count <= 2 or not 1 <= steps < 1 << 31:
        raise BadFile(f"{t.record.operation} '{t.record.name}' has {count} inputs and {steps} steps", t.record.at)
    initial, states = t.attributes.get("initial", 0.0), []
    if count == 2:
        constant = t.constant(1)
        if constant is None:
            why = "an initial state that is not a constant number"
            kind = t.needed(t.record.operation, inputs=2, why=why)
            states = [t.builder.made[t.record.inputs[1]]]
        else:
            kind, initial = t.needed(t.record.operation), _single(constant)
            t.use_up(1)
    else:
        kind = t.needed(t.record.operation)
    node = t.add(kind, states, timeStep=steps, defaultHiddenActivity=initial)
    node.options.pop("delayTime", None)
    source = t.builder.made.get(t.record.inputs[0])
    node.shape = t.record.shape if source is None else source.shape
    if node.shape is not None:
        node.options["rows"] = shapes.size(node.shape)
    t.builder.later.append((node, t.record.inputs[0]))
    return node


def _recurrent_stack(t: Target) -> Node:
    attributes = dict(t.attributes)
    names = nodes.operation("OptimizedRNNStack").option("recurrentOp")
    assert names is not None
    attributes["recurrentOp"] = next(
        (name for name in names.choices if name.lower() == attributes["recurrentOp"].lower()), None
    )
    if attributes["recurrentOp"] is None:
        raise t.refuse(f"units called '{t.attributes['recurrentOp']}'")
    weights = t.inputs(2)[0]
    most = shapes.size(t.shape(weights))
    if not all(0 < attributes[key] <= most for key in ("hiddenDims", "numLayers")) or attributes["axis"] not in (-1, 2):
        raise BadFile(f"OptimizedRNNStack '{t.record.name}' has sizes or an axis that it cannot have", t.record.at)
    return t.add("OptimizedRNNStack", t.inputs(2), **attributes)


def _single(number: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(number))


BODIES: dict[str, BodyReader] = {
    "PastValue": _delay_body,
    "FutureValue": _delay_body,
    "OptimizedRNNStack": _rnn_stack_body,
}
"""By operation of the first format: reads the attributes of a node."""


NUMBERS: dict[int, Operation] = {
    37: Operation("PastValue", lambda t: {"timeStep": t.get("offset", int, 1)}),
    38: Operation("FutureValue", lambda t: {"timeStep": t.get("offset", int, 1)}),
    49: Operation("OptimizedRNNStack", _rnn_stack_attributes, SWAPPED),
}
"""By number in the later format."""


RULES: dict[str, Rule] = {"PastValue": _delay, "FutureValue": _delay, "OptimizedRNNStack": _recurrent_stack}
"""By operation: makes nodes of a record."""
