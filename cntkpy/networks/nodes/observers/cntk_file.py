"""Rules for CNTK's model files: observers."""

from __future__ import annotations

from cntkpy.networks.graph.network import Node
from cntkpy.networks.nodes.file_support.bodies import Attributes, Body, BodyReader, text_body, without_body
from cntkpy.networks.nodes.file_support.rules import Rule, same
from cntkpy.networks.nodes.file_support.target import Target
from cntkpy.networks.nodes.observers.kinds import PROPERTIES


def _trace_body(body: Body) -> Attributes:
    r = body.reader
    attributes: Attributes = {
        "say": r.text(),
        "logFirst": r.u64(),
        "logFrequency": r.u64(),
        "logGradientToo": r.boolean(),
    }
    r.boolean()
    r.text()
    r.boolean()
    r.boolean()
    for _ in range(8):
        r.bytes_text()
    attributes["onlyUpToRow"], attributes["onlyUpToT"] = r.u64(), r.u64()
    return attributes


def _environment(t: Target) -> Node:
    name = t.attributes["propertyName"]
    if name not in PROPERTIES:
        raise t.refuse(f"the property '{name}'")
    return t.add("EnvironmentInput", t.inputs(0), propertyName=name)


BODIES: dict[str, BodyReader] = {
    **without_body("EpochAccumulator"),
    "Trace": _trace_body,
    "EnvironmentInput": text_body("propertyName"),
}
"""By operation of the first format: reads the attributes of a node."""


RULES: dict[str, Rule] = {"Trace": same, "EnvironmentInput": _environment}
"""By operation: makes nodes of a record."""
