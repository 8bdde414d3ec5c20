"""Rules of all operations of CNTK's model files, from the families of nodes.

The bodies of the first format: docs/specification/actions-and-training.md A.4, docs/specification/model-files.md 2.2.
The numbers of the later format: docs/specification/model-files.md 6.
"""

from __future__ import annotations

from cntkpy.networks import nodes
from cntkpy.networks.graph.network import Node
from cntkpy.networks.nodes.file_support.bodies import BodyReader, no_attributes
from cntkpy.networks.nodes.file_support.rules import Rule, same
from cntkpy.networks.nodes.file_support.tables import BLOCK, CAST, COMBINE, Operation
from cntkpy.networks.nodes.file_support.target import Target

DELAYS = frozenset(kind.name for kind in nodes.kinds() if kind.time.delay)

ALIASES = {
    "ErrorPrediction": "ClassificationError",
    "ColumnElementTimes": "ElementTimes",
    "RowElementTimes": "ElementTimes",
    "Scale": "ElementTimes",
    "Delay": "PastValue",
    "RowSlice": "Slice",
    "Transpose": "TransposeDimensions",
    "ReconcileMBLayout": "ReconcileDynamicAxis",
    "RNN": "OptimizedRNNStack",
    "PerDimMeanVarNormalizationNode": "PerDimMeanVarNormalization",
    "PerDimMeanVarDeNormalizationNode": "PerDimMeanVarDeNormalization",
    "DeprecatedReshape": "LegacyReshape",
}
"""Older names of operations in the first format."""

BODIES: dict[str, BodyReader] = nodes.tables("cntk_file", "BODIES")
"""By operation of the first format: reads the attributes of a node."""

NUMBERS: dict[int, Operation] = {
    **nodes.tables("cntk_file", "NUMBERS"),
    COMBINE: Operation("Combine"),
    BLOCK: Operation("Block"),
    68: Operation("OneHot"),
    71: Operation("ToSequenceLike"),
    73: Operation("Assign"),
    74: Operation("Gather"),
    76: Operation("RandomDistribution"),
    79: Operation("UnpackBatch"),
    80: Operation("ToBatch"),
    83: Operation("Pad"),
    87: Operation("TopK"),
    CAST: Operation("Cast"),
    92: Operation("EyeLikeOp"),
    93: Operation("CustomProxyOp"),
    97: Operation("ConvolutionSequenceShape"),
}
"""Operations of the later format by number; those without a rule are refused by their name."""

RULES: dict[str, Rule] = nodes.tables("cntk_file", "RULES")
"""By operation: makes nodes of a record."""


def rule(operation: str) -> Rule:
    """Return the rule of an operation. One whose nodes hold nothing but their inputs has the same name here."""
    return RULES.get(operation) or (same if BODIES.get(operation) is no_attributes else _refuse)


def _refuse(t: Target) -> Node:
    kind = nodes.find(t.record.operation)
    raise t.refuse(hint=kind.unsupported or "" if kind else "")
