"""Rules for CNTK's model files: sequences."""

from __future__ import annotations

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.network import Node
from cntkpy.networks.graph.shapes import Shape
from cntkpy.networks.nodes.file_support.bodies import BodyReader, text_body, without_body
from cntkpy.networks.nodes.file_support.dictionary import AxisValue, Table
from cntkpy.networks.nodes.file_support.records import BadFile
from cntkpy.networks.nodes.file_support.rules import Rule, same, shaped
from cntkpy.networks.nodes.file_support.tables import BATCH, SWAPPED, Attributes, Operation
from cntkpy.networks.nodes.file_support.target import Target


def _where_attributes(table: Table) -> Attributes:
    """Return the steps of a condition; without a sequence axis there is one step for each sequence."""
    axes = table.get("newDynamicAxes", list, [])  # an axis that is not known is not the batch
    if not all(isinstance(value, AxisValue) for value in axes):
        raise BadFile("'newDynamicAxes' is not a list of axes", table.at)
    return {"single": bool(axes) and all(value.name == BATCH for value in axes)}


_STEPS = ("Sum", "Prod", "Max", "Min", "LogSum")


def _unpacked(t: Target) -> Node:
    """Return the sequence itself, if everything that takes its steps as an axis reduces that axis."""
    (x,) = t.inputs(1)
    records = t.builder.records
    users = [record for record in records.records.values() if t.record.name in record.inputs]
    if any(t.record.name in names for names in records.groups.values()) or not users:
        raise t.refuse("its value", _UNPACKED)
    for user in users:
        axes = user.attributes.get("axes", ())
        last = len(axes) == 1 and axes[0].kind == "static" and axes[0].number in (-1, len(t.shape(x)))
        if user.operation != "ReduceElements" or not last:
            raise t.refuse(f"taken by {user.operation} '{user.name}'", _UNPACKED)
        if user.attributes["reduction"] not in _STEPS:
            raise t.refuse(f"{user.attributes['reduction']} over the steps and the padding", _UNPACKED)
        if user.attributes["reduction"] == "Sum" and t.attributes["padding"]:
            raise t.refuse(f"the sum of a padding of {t.attributes['padding']:g}", _UNPACKED)
    return x


_UNPACKED = "only sequence.reduce_sum, reduce_max and other reductions over the steps are possible"


def reduced_steps(t: Target, x: Node) -> Node:
    """Return a recurrence over the steps, and its value in the last one."""
    reduction, shape = t.attributes["reduction"], t.shape(x)
    zeros = t.add("ReconcileDynamicAxis", [t.number(0, ".zero"), x], ".zeros", broadcast=True)
    previous = _previous(t, "PastValue", None, ".before", 1 if reduction == "Prod" else 0, shape)
    if reduction in ("Sum", "Prod"):
        total = t.add({"Sum": "Plus", "Prod": "ElementTimes"}[reduction], [previous, x], ".total")
    else:
        first = _previous(t, "PastValue", zeros, ".first", 1, (1,))
        if reduction == "LogSum":
            both = t.add("LogPlus", [previous, x], ".both")
        else:
            better = t.add({"Max": "Greater", "Min": "Less"}[reduction], [previous, x], ".better")
            both = t.add("If", [better, previous, x], ".both")
        total = t.add("If", [first, x, both], ".total")
    previous.inputs.insert(0, total)
    steps = t.add("Where", [_previous(t, "FutureValue", zeros, ".last", 1, (1,))], ".steps")
    index = t.add("PackedIndex", [total, steps], ".index")
    keep = t.attributes["keepDimensions"]
    end = t.add("GatherPacked", [index, total], ".end" if keep else "")
    return shaped(t, end, (*shape, 1)) if keep else end


def _previous(t: Target, operation: str, x: Node | None, suffix: str, initial: float, shape: Shape) -> Node:
    """Return a delay by one step; that of a loop gets its input later."""
    node = t.add(operation, [] if x is None else [x], suffix, timeStep=1, defaultHiddenActivity=initial)
    node.options.pop("delayTime", None)
    node.shape, node.options["rows"] = shape, shapes.size(shape)
    return node


_WITHOUT_BODY = (
    "DynamicAxis", "GatherPacked", "PackedIndex", "ReconcileDynamicAxis", "ScatterPacked",
)  # fmt: skip
"""Operations of the first format that hold nothing but their inputs."""


BODIES: dict[str, BodyReader] = {
    **without_body(*_WITHOUT_BODY),
    "Where": text_body("dynamicAxisName", 11),
    "ToSequence": text_body("dynamicAxisName"),
    "UnpackSequence": lambda body: {"padding": body.reader.f64(), "noMask": body.reader.boolean()},
}
"""By operation of the first format: reads the attributes of a node."""


NUMBERS: dict[int, Operation] = {
    28: Operation("PackedIndex"),
    70: Operation("ToSequence"),
    13: Operation("Where", _where_attributes),
    29: Operation("GatherPacked", order=SWAPPED),
    30: Operation("ScatterPacked", order=(2, 1, 0)),
    50: Operation("ReconcileDynamicAxis", lambda _: {"broadcast": True}),
    72: Operation("UnpackSequence", lambda t: {"padding": t.get("sequenceUnpackPaddingValue", float, 0.0)}),
}
"""By number in the later format."""


RULES: dict[str, Rule] = {"UnpackSequence": _unpacked, "Where": same}
"""By operation: makes nodes of a record."""
