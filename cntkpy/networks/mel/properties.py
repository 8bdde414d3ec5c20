"""`SetProperty` and its properties (docs/specification/networks.md E.5)."""

from __future__ import annotations

import logging
import math

from cntkpy.cntk_config.base.diagnostics import suggestion
from cntkpy.networks.builders.ndl.parse import Word
from cntkpy.networks.builders.ndl.scalars import BOOLEANS_TEXT, parse_real
from cntkpy.networks.builders.ndl.text import error
from cntkpy.networks.graph.network import GROUPS, Network, Node
from cntkpy.networks.graph.shapes import text
from cntkpy.networks.mel.request import in_full, warn_of_short

log = logging.getLogger("cntkpy.networks")

OTHER_NAMES = {"finalcriterion": "criterion", "criteria": "criterion", "eval": "evaluation"}
GRADIENT = ("needgradient", "needsgradient", "computegradient")
NAMES = (
    *GROUPS,
    "learningRateMultiplier",
    "needGradient",
    "needsGradient",
    "computeGradient",
    "freezeParameters",
    "recurrent",
    "MultiSeq",
)
INPUTS = ("feature", "label")
"""Groups of nodes that a reader fills."""


def set_property(network: Network, nodes: list[Node], name: Word, value: Word) -> None:
    """Set a property of nodes, of all or, after an error, of none."""
    full = in_full(name.text, (*NAMES, *OTHER_NAMES)) or name.text
    warn_of_short(name, full)
    key = full.lower()
    group = OTHER_NAMES.get(key, key)
    if group in GROUPS:
        member = _boolean(name, value)
        if member and group in INPUTS:
            _check_inputs(nodes, name)
        for node in nodes:
            if member:
                network.add_to_group(group, node)
                _warn_of_elements(group, node, name)
            elif node in network.groups[group]:
                network.groups[group].remove(node)
    elif key == "freezeparameters":
        _freeze(nodes, name, value)
    elif key == "multiseq":
        log.warning("%s: the property '%s' has no effect", name.place.short, name.text)
    elif key != "recurrent":
        set_rate(nodes, name, value, NAMES)


def _check_inputs(nodes: list[Node], name: Word) -> None:
    """Check that nodes are inputs, which alone can be features or labels."""
    for node in nodes:
        if not node.operation.endswith("InputValue"):
            message = f"{node.operation} '{node.name}' is not an input; it cannot be called {name.text}"
            raise error("BadValue", message, name.place, "the properties feature and label are for inputs")


def _warn_of_elements(group: str, node: Node, name: Word) -> None:
    if group == "criterion" and node.shape is not None and math.prod(node.shape) > 1:
        log.warning(
            "%s: %s '%s' has shape %s; it cannot be trained on, a criterion has one element",
            name.place.short,
            node.operation,
            node.name,
            text(node.shape),
        )


def set_rate(nodes: list[Node], name: Word, value: Word, names: tuple[str, ...]) -> None:
    """Set the learning rate multiplier of the parameters among nodes; `names` are the properties to be suggested."""
    key = (in_full(name.text, names) or name.text).lower()
    if key in GRADIENT:
        multiplier = 1.0 if _boolean(name, value) else 0.0
    elif key == "learningratemultiplier":
        multiplier = _multiplier(value)
    else:
        hint = suggestion(name.text, names) or f"the properties are: {', '.join(names)}"
        raise error("UnknownProperty", f"'{name.text}' is not a property that can be set here", name.place, hint)
    parameters = [node for node in nodes if node.is_parameter]
    for node in parameters:
        node.learning_rate_multiplier = multiplier
    if not parameters:
        log.warning("%s: none of the nodes is a parameter, '%s' has no effect", name.place.short, name.text)


def _freeze(nodes: list[Node], name: Word, value: Word) -> None:
    freeze = _boolean(name, value)
    for node in nodes:
        if not node.is_parameter and node.operation != "BatchNormalization":
            message = f"{node.operation} '{node.name}' has no parameters to freeze"
            hint = "freezeParameters is for parameters and BatchNormalization"
            raise error("BadValue", message, name.place, hint)
    if not freeze:
        return
    for node in nodes:
        if node.is_parameter:
            node.learning_rate_multiplier = 0.0
        else:
            node.options["normalizationTimeConstant"] = node.options["blendTimeConstant"] = math.inf


def _boolean(name: Word, value: Word) -> bool:
    result = BOOLEANS_TEXT.get(value.text)
    if result is None:
        message = f"boolean expected for the property '{name.text}', not '{value.text}'"
        raise error("BadBoolean", message, value.place, "write true or false")
    return result


def _multiplier(value: Word) -> float:
    number = parse_real(value.text)
    if number is None:
        raise error("BadNumber", f"number expected for learningRateMultiplier, not '{value.text}'", value.place)
    if not 0 <= number < math.inf:
        raise error("BadValue", f"learningRateMultiplier must not be negative or infinite: {value.text}", value.place)
    return number
