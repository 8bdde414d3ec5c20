"""Rules for CNTK's model files: normalisation."""

from __future__ import annotations

from cntkpy.networks.graph.network import Node
from cntkpy.networks.nodes.file_support.bodies import VALUE, Body, BodyReader, layout_of, without_body
from cntkpy.networks.nodes.file_support.dictionary import Table
from cntkpy.networks.nodes.file_support.records import BadFile
from cntkpy.networks.nodes.file_support.rules import Rule
from cntkpy.networks.nodes.file_support.tables import Attributes, Operation
from cntkpy.networks.nodes.file_support.target import Target


def _statistic_body(body: Body) -> Attributes:
    computed = body.reader.boolean()
    values = body.reader.matrix(body.size)
    return {"computed": computed, VALUE: values if computed else None}


def _batch_normalization_body(body: Body) -> Attributes:
    r = body.reader
    attributes: Attributes = {}
    if body.version >= 6:
        attributes["spatial"] = r.boolean()
        attributes["normalizationTimeConstant"], attributes["blendTimeConstant"] = r.f64(), r.f64()
        attributes["imageLayout"] = layout_of(body, r.i32())
        if body.version == 19:
            r.boolean()  # whether the sixth input is zero
            attributes["samples"] = 0
        else:
            attributes["samples"] = r.u64() * (1 if body.version >= 13 else OLD_BATCH)
        attributes["epsilon"] = r.f64()
        attributes["ownEngine"] = r.boolean()
        return attributes
    written, _ = r.i32(), r.i32()
    r.boolean()
    attributes["spatial"] = r.boolean()
    constant = r.f64()
    if written >= 0x10004:
        attributes["normalizationTimeConstant"] = constant
    if written >= 0x10002:
        attributes["imageLayout"] = layout_of(body, r.i32())
        attributes["samples"] = r.u64() * OLD_BATCH
    if written >= 0x10003:
        attributes["epsilon"] = r.f64()
        attributes["ownEngine"] = r.boolean()
    return attributes


OLD_BATCH = 16
"""Before version 13 a minibatch counts as this many samples in the state of BatchNormalization."""


def _batch_normalization_attributes(table: Table) -> Attributes:
    return {
        "spatial": table.get("spatial", bool, False),
        "normalizationTimeConstant": table.get("normalizationTimeConstant", float, 0.0),
        "blendTimeConstant": table.get("blendTimeConstant", float, 0.0),
        "epsilon": table.get("epsilon", float, 1e-5),
        "ownEngine": not table.get("useCuDNNEngine", bool, False),
        "imageLayout": "CHW",
    }


def _statistic(t: Target) -> Node:
    node = t.add(t.record.operation, t.inputs(1))
    node.computed = t.attributes["computed"]
    node.value = t.record.value
    return node


def _batch_normalization(t: Target) -> Node:
    operands = t.inputs(5, 6)
    options = t.attributes
    samples = options.pop("samples", 0)
    if "ownEngine" in options:
        options["engine"] = "cntk" if options.pop("ownEngine") else "cudnn"
    if len(operands) == 6:
        record = t.input_record(5)
        if record.value is None or record.value.size != 1 or record.operation != "LearnableParameter":
            raise BadFile(f"the sample count of '{t.record.name}' is not a number", record.at)
        count = float(record.value.reshape(()))
        samples = int(count) if 0 <= count < 2**63 else 0
        t.use_up(5)
    node = t.add("BatchNormalization", operands[:5], **options)
    node.samples = min(samples, 2**63)
    return node


BODIES: dict[str, BodyReader] = {
    **without_body("PerDimMeanVarDeNormalization", "PerDimMeanVarNormalization"),
    "Mean": _statistic_body,
    "InvStdDev": _statistic_body,
    "BatchNormalization": _batch_normalization_body,
}
"""By operation of the first format: reads the attributes of a node."""


NUMBERS: dict[int, Operation] = {40: Operation("BatchNormalization", _batch_normalization_attributes)}
"""By number in the later format."""


RULES: dict[str, Rule] = {"Mean": _statistic, "InvStdDev": _statistic, "BatchNormalization": _batch_normalization}
"""By operation: makes nodes of a record."""
