"""Rules for CNTK's model files: functions of each element."""

from __future__ import annotations

from cntkpy.networks.graph.network import Node
from cntkpy.networks.nodes.file_support.bodies import BodyReader, random_state, without_body
from cntkpy.networks.nodes.file_support.rules import Rule, called
from cntkpy.networks.nodes.file_support.tables import Operation
from cntkpy.networks.nodes.file_support.target import Target


def _element_function(t: Target) -> Node:
    return t.add(t.needed("ElementFunction"), t.inputs(1), function=t.record.operation.lower())


def _elu(t: Target) -> Node:
    """max(x, 0) + alpha (e^min(x, 0) - 1)."""
    (x,) = t.inputs(1)
    positive = t.add("RectifiedLinear", [x], ".positive")
    power = t.add("Exp", [t.add("Minus", [x, positive], ".negative")], ".power")
    excess = t.add("Minus", [power, t.number(1, ".one")], ".rest")
    alpha = t.attributes["alpha"]
    if alpha != 1:
        excess = t.add("ElementTimes", [t.number(alpha, ".alpha"), excess], ".scaled")
    return t.add("Plus", [positive, excess])


def _pow(t: Target) -> Node:
    """Products for a whole constant exponent, else a power."""
    x, exponents = t.inputs(2)
    exponent = t.constant(1)
    if exponent is None or exponent not in range(1, _LARGEST_POWER + 1):
        return t.add("ElementPower", [x, exponents])
    t.use_up(1)
    power = x
    for number in range(2, int(exponent) + 1):
        power = t.add("ElementTimes", [power, x], "" if number == exponent else f".power{number}")
    return t.add("Pass", [x]) if exponent == 1 else power


_LARGEST_POWER = 16
"""The largest exponent that becomes products."""


def _dropout(t: Target) -> Node:
    rate = t.attributes.get("dropoutRate")
    if rate is not None:
        note = f"Dropout '{t.record.name}' had the rate {rate:g}: give dropoutRate in the SGD section to train on"
        t.builder.records.notes.append(note)
    return t.add("Dropout", t.inputs(1))


_WITHOUT_BODY = (
    "Abs", "Acos", "Asin", "Clip", "Cosh", "Cosine", "DiagTimes", "ElementTimes", "Equal", "Exp", "Floor", "Greater",
    "GreaterEqual", "Hardmax", "If", "Less", "LessEqual", "Log", "LogPlus", "LogSoftmax", "Minus", "Negate",
    "NotEqual", "Plus", "Reciprocal", "RectifiedLinear", "Sigmoid", "Sin", "Sinh", "Softmax", "Sqrt", "StableSigmoid",
    "StopGradient", "StraightThrough", "Tanh",
)  # fmt: skip
"""Operations of the first format that hold nothing but their inputs."""


BODIES: dict[str, BodyReader] = {**without_body(*_WITHOUT_BODY), "Dropout": random_state}
"""By operation of the first format: reads the attributes of a node."""


_NAMES = {
    0: "Negate", 1: "Sigmoid", 2: "Tanh", 3: "RectifiedLinear", 4: "Exp", 5: "Log", 6: "Sqrt", 7: "Floor", 8: "Abs",
    9: "Reciprocal", 10: "Softmax", 11: "Hardmax", 19: "Plus", 20: "Minus", 21: "ElementTimes", 22: "Equal",
    23: "NotEqual", 24: "Less", 25: "LessEqual", 26: "Greater", 27: "GreaterEqual", 42: "If", 51: "LogSoftmax",
    52: "LogPlus", 54: "Sin", 55: "Cosine", 64: "StopGradient", 69: "Pow", 75: "StableSigmoid", 77: "Sinh",
    78: "Cosh", 81: "Asin", 82: "Acos", 85: "Atanh", 86: "Asinh", 94: "StraightThrough", 95: "Tan", 96: "Atan",
}  # fmt: skip
"""Operations of the later format that differ from those of the first in nothing, by number."""


NUMBERS: dict[int, Operation] = {
    **{number: Operation(name) for number, name in _NAMES.items()},
    15: Operation("Dropout", lambda t: {"dropoutRate": t.get("dropoutRate", float, 0.0)}),
    41: Operation("Clip", order=(1, 2, 0)),
    65: Operation("ELU", lambda t: {"alpha": t.get("alpha", float, 1.0)}),
}
"""By number in the later format."""


RULES: dict[str, Rule] = {
    "StableSigmoid": called("Sigmoid"),
    **dict.fromkeys(("Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Atanh"), _element_function),
    "ELU": _elu,
    "Pow": _pow,
    "Dropout": _dropout,
}
"""By operation: makes nodes of a record."""
