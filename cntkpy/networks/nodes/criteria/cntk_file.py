"""Rules for CNTK's model files: criteria."""

from __future__ import annotations

from cntkpy.networks.graph.network import Node
from cntkpy.networks.nodes.file_support.bodies import Attributes, Body, BodyReader, without_body
from cntkpy.networks.nodes.file_support.rules import Rule, same
from cntkpy.networks.nodes.file_support.tables import SWAPPED, Operation
from cntkpy.networks.nodes.file_support.target import Target


def _edit_distance_body(body: Body) -> Attributes:
    r = body.reader
    return {
        "subPen": r.f32(),
        "delPen": r.f32(),
        "insPen": r.f32(),
        "squashInputs": r.boolean(),
        "tokensToIgnore": r.sizes(),
    }


_NOT_SAID = "the format does not say how its options are written; build the criterion again after loading"


def _with_options(t: Target) -> Node:
    if not t.attributes:
        raise t.refuse("its options", _NOT_SAID)
    return same(t)


_WITHOUT_BODY = (
    "ClassBasedCrossEntropyWithSoftmax", "ClassificationError", "CrossEntropy", "CrossEntropyWithSoftmax",
    "DummyCriterion", "LabelsToGraph", "LambdaRank", "Logistic", "NDCG1Eval", "SquareError",
)  # fmt: skip
"""Operations of the first format that hold nothing but their inputs."""


BODIES: dict[str, BodyReader] = {
    **without_body(*_WITHOUT_BODY),
    "EditDistanceError": _edit_distance_body,
    "ForwardBackward": lambda body: {"delayConstraint": body.reader.i32(), "blankTokenId": body.reader.u64()},
}
"""By operation of the first format: reads the attributes of a node."""


NUMBERS: dict[int, Operation] = {
    34: Operation("SquareError"),
    61: Operation("EditDistanceError"),
    63: Operation("LabelsToGraph"),
    66: Operation("ForwardBackward"),
    35: Operation("CrossEntropyWithSoftmax", order=SWAPPED),
    36: Operation("ClassificationError", order=SWAPPED),
    48: Operation("Logistic", order=SWAPPED),
    59: Operation("LambdaRank", order=(1, 0, 2)),
    60: Operation("NDCG1Eval", order=(1, 0, 2)),
}
"""By number in the later format."""


RULES: dict[str, Rule] = {"ForwardBackward": _with_options, "EditDistanceError": _with_options}
"""By operation: makes nodes of a record."""
