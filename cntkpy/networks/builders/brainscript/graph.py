"""A network value -> the nodes of the graph, their inputs, groups and start values."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, Span, UserError, suggestion
from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.cntk_config.base.source import Text
from cntkpy.networks import nodes
from cntkpy.networks.builders.brainscript.language.evaluate import Evaluator
from cntkpy.networks.builders.brainscript.language.source import Place
from cntkpy.networks.builders.brainscript.network import NetworkValue
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.axes import DEFAULT, ONE
from cntkpy.networks.graph.initialize import Initializer
from cntkpy.networks.graph.network import Network, ValidatedNetwork
from cntkpy.networks.graph.node import Node, NodeKind

MAX_CALLS = 50
"""Number of calls that are followed back."""


@dataclass
class Built:
    """A network with what is known of its origin.

    Attributes:
        network: the network, validated.
        values: the BrainScript value of each node.
        warnings: what was noticed.
        library: the texts that are not the user's.
    """

    network: ValidatedNetwork
    values: dict[Node, NodeValue]
    warnings: list[Diagnostic]
    library: list[Text]

    def trail(self, node: Node) -> list[Place]:
        """Return the place in the user's text where a node was made, then the calls that led there, innermost first."""
        origin = self.values[node].origin
        places = [origin.place, *islice(origin.scope.calls(), MAX_CALLS)]
        return list(dict.fromkeys(place for place in places if place.text not in self.library))


def graph_of(value: NetworkValue, evaluator: Evaluator, precision: str, values: bool = True) -> Built:
    """Return the graph of a network value, validated; `values`: whether parameters get values."""
    network = Network(precision, values)
    made: dict[NodeValue, Node] = {}
    for node_value in value.nodes.values():
        try:
            made[node_value] = add_value(network, node_value, evaluator)
        except UserError as problem:
            raise located(problem, node_value, evaluator) from None
    for node_value, node in made.items():
        assert isinstance(node_value.inputs, tuple)
        node.inputs = [made[source] for source in node_value.inputs]
        if node.options.get("dynamicAxis"):
            node.options["dynamicAxis"] = axis_name(node_value, made, evaluator)
    for group, members in value.groups.items():
        for node_value in members:
            network.add_to_group(group, made[node_value])
    origins = {node: value for value, node in made.items()}
    try:
        validated = network.validate()
    except UserError as problem:
        origin = next((origin for node, origin in origins.items() if node.span is problem.span), None)
        raise (problem if origin is None else located(problem, origin, evaluator)) from None
    return Built(validated, origins, evaluator.messages.warnings, evaluator.messages.library)


def axis_name(value: NodeValue, made: Mapping[NodeValue, Node], evaluator: Evaluator) -> str:
    """Return the name of the time axis that an input names: a DynamicAxis of the network, `#` or `*`."""
    axis = value.options["dynamicAxis"]
    if isinstance(axis, str) and value.stored is not None:
        return axis
    if isinstance(axis, str):
        axes = {node.name.lower(): node for node in made.values() if node.kind.time.makes_axis}
        if axis in (DEFAULT, ONE) or axis.lower() in axes:
            return axis
        hint = suggestion(axis, [node.name for node in axes.values()]) or "define it in the network: t = DynamicAxis ()"
        message = f"'{value.name}': the network has no DynamicAxis '{axis}'"
    elif axis in made and made[axis].kind.time.makes_axis:
        return made[axis].name
    else:
        reason = (
            "is not a member of the network" if axis not in made else f"is not a DynamicAxis but {made[axis].operation}"
        )
        message = f"'{value.name}': its dynamicAxis, '{axis.full_name}', {reason}"
        hint = "define it in the network, t = DynamicAxis (), and name it: dynamicAxis=t"
    raise evaluator.messages.error("NoAxis", message, value.origin.place, value.origin.scope, hint)


def located(problem: UserError, value: NodeValue, evaluator: Evaluator) -> ConfigError:
    """Return an error of the node library, at the place of the node with the calls that made it."""
    diagnostic = problem.diagnostic
    place, scope = value.origin.place, value.origin.scope
    return evaluator.messages.error(
        diagnostic.kind, diagnostic.message, place, scope, diagnostic.hint, diagnostic.notes
    )


def add_value(network: Network, value: NodeValue, evaluator: Evaluator) -> Node:
    """Add the node of a value under its own name, without its inputs."""
    return add_node(
        network, value, value.name, evaluator.messages.user_place(value.origin.place, value.origin.scope).span
    )


def add_node(network: Network, value: NodeValue, name: str, span: Span | None) -> Node:
    """Add the node of a value, without its inputs.

    Args:
        network: where to add it.
        value: what it is.
        name: its name there.
        span: where it was made, for messages.
    """
    if value.stored is not None:
        return _add_stored(network, value, value.stored, name, span)
    kind, options = nodes.operation(value.operation.kind_name), dict(value.options)
    if value.start is not None:
        node = network.add(name, kind, shape=value.shape, span=span)
        start = value.start
        node.init = Initializer(
            start.kind,
            start.scale,
            start.value,
            start.path or None,
            start.seed,
            start.kernel,
            span=span,
            literal=start.literal,
            filter_rank=start.filter_rank,
            output_rank=start.output_rank,
        )
        node.learning_rate_multiplier = value.learning_rate_multiplier
        node.options = {}
        return node
    if value.operation.later:
        if options["timeStep"] < 1:
            raise UserError("BadValue", f"{value.operation.name} '{name}': timeStep must be at least 1", span)
        dims = options.pop("rows")
        return network.add(name, kind, options={"dims": dims, **options}, span=span)
    if value.operation.shape == "input":
        options["dims"] = value.shape
    if value.operation.name == "BatchNormalization":
        options["engine"] = "cntk" if options["engine"] else "cudnn"
    if value.operation.name == "Convolution":
        options["mapCount"] = shapes.size(options["mapCount"])
    _check_choices(value, kind, name, options, span)
    return nodes.create(network, kind, name, options=options, span=span)


def _check_choices(
    value: NodeValue, kind: NodeKind, name: str, options: Mapping[str, object], span: Span | None
) -> None:
    """Refuse a word that an option does not know."""
    words = {attribute.option: attribute.name for attribute in value.operation.attributes}
    for option in (*kind.options, *(argument for signature in kind.signatures for argument in signature)):
        setting = options.get(option.name)
        if (
            option.choices
            and isinstance(setting, str)
            and setting.lower() not in (word.lower() for word in option.choices)
        ):
            message = f"{value.operation.name} '{name}': {words.get(option.name, option.name)} cannot be '{setting}'"
            hint = (
                suggestion(setting, option.choices) or f"possible: {', '.join(word for word in option.choices if word)}"
            )
            raise UserError("BadChoice", message, span, hint)


def _add_stored(network: Network, value: NodeValue, stored: Node, name: str, span: Span | None) -> Node:
    """Add a node of a model file, or a copy of one, without its inputs.

    Shapes that follow from inputs are forgotten: the inputs may be others now.
    """
    leaf = not value.inputs or stored.kind.precompute
    node = network.add(name, stored.kind, options=dict(value.options), shape=stored.shape if leaf else None, span=span)
    node.value = None if stored.value is None else np.array(stored.value)
    node.init = copy.copy(stored.init)
    node.learning_rate_multiplier = value.learning_rate_multiplier
    node.computed, node.samples = stored.computed, stored.samples
    return node
