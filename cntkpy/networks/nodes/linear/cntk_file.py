"""Rules for CNTK's model files: products."""

from __future__ import annotations

from cntkpy.networks.graph.network import Node
from cntkpy.networks.nodes.file_support.bodies import Attributes, Body, BodyReader, without_body
from cntkpy.networks.nodes.file_support.rules import Rule
from cntkpy.networks.nodes.file_support.tables import Operation
from cntkpy.networks.nodes.file_support.target import Target


def _times_body(body: Body) -> Attributes:
    rank = body.reader.u64() if body.version >= 3 else 1
    if body.version >= 12:
        body.reader.i32()  # matters only while shapes are inferred
    return {"outputRank": rank}


def _quantized_times_body(body: Body) -> Attributes:
    return {**_times_body(body), "shifts": (body.reader.u64(), body.reader.u64())}


def _times(t: Target) -> Node:
    rank = t.attributes["outputRank"]
    operands = t.inputs(2)
    if rank == 1:
        return t.add(t.record.operation, operands)
    kind = t.needed(t.record.operation, "outputRank", why=f"an output of rank {rank}")
    return t.add(kind, operands, outputRank=rank)


_WITHOUT_BODY = (
    "CosDistance", "CosDistanceWithNegativeSamples", "Diagonal", "KhatriRaoProduct", "LookupTable", "MatrixL1Reg",
    "MatrixL2Reg", "SumColumnElements", "SumElements",
)  # fmt: skip
"""Operations of the first format that hold nothing but their inputs."""


BODIES: dict[str, BodyReader] = {
    **without_body(*_WITHOUT_BODY),
    "Times": _times_body,
    "TransposeTimes": _times_body,
    "QuantizedTimes": _quantized_times_body,
}
"""By operation of the first format: reads the attributes of a node."""


NUMBERS: dict[int, Operation] = {
    18: Operation("SumElements"),
    53: Operation("CosDistance"),
    67: Operation("CosDistanceWithNegativeSamples"),
    31: Operation("Times", lambda t: {"outputRank": t.get("outputRank", int, 1)}),
    32: Operation("TransposeTimes", lambda t: {"outputRank": t.get("outputRank", int, 1)}),
}
"""By number in the later format."""


RULES: dict[str, Rule] = {"Times": _times, "TransposeTimes": _times}
"""By operation: makes nodes of a record."""
