"""`BS.Network.Load`: the nodes of a model file as values."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import UserError, nearest
from cntkpy.networks import nodes
from cntkpy.networks.builders.brainscript.language.evaluate import Class, Evaluator, Step
from cntkpy.networks.builders.brainscript.language.parameters import of_type, place_of
from cntkpy.networks.builders.brainscript.language.values import Origin, Record
from cntkpy.networks.builders.brainscript.network import NetworkValue
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.brainscript.operations import Operation, operations_of
from cntkpy.networks.graph.network import Network, Node

log = logging.getLogger("cntkpy.networks")

Load = Callable[[str, str], Network]
"""Gives the network of a model file (its path, and the precision to convert to)."""


class ModelLoader:
    """Makes networks of model files.

    Args:
        load: reads a file.
    """

    def __init__(self, load: Load) -> None:
        self.load = load

    def classes(self) -> dict[str, Class]:
        """Return the classes that `new` makes with it."""
        return {"ComputationNetworkFromFile": Class(self.make)}

    def make(self, evaluator: Evaluator, record: Record, origin: Origin) -> Step:
        """Return the network of the file that a record names."""
        path = yield of_type(evaluator, str, record, "pathName", origin)
        precision = yield of_type(evaluator, str, record, "precision", origin)
        trace_level = yield of_type(evaluator, float, record, "traceLevel", origin, 0.0)
        if trace_level > 0 and evaluator.prints:
            log.info("Load: Loading model file: %s", path)
        try:
            network = self.load(path, precision)
        except UserError as problem:
            diagnostic = problem.diagnostic
            place, scope = place_of(evaluator, record, "pathName", origin)
            hint = _near(Path(path)) if diagnostic.kind == "NoModel" else diagnostic.hint
            raise evaluator.messages.error(
                diagnostic.kind, diagnostic.message, place, scope, hint, diagnostic.notes
            ) from None
        return network_value(network, origin)


def _near(path: Path) -> str:
    """Return the hint for a model that is not there."""
    try:
        meant = nearest(path.name, [entry.name for entry in path.parent.iterdir()])
    except OSError:
        return f"there is no folder '{path.parent}'; the current directory is {Path.cwd()}"
    return f"did you mean '{path.with_name(meant)}'?" if meant else f"the current directory is {Path.cwd()}"


def network_value(network: Network, origin: Origin) -> NetworkValue:
    """Return a network as a value; `origin` says where it comes from."""
    made = {node: stored_value(node, origin) for node in network.nodes.values()}
    for group, members in network.groups.items():
        for node in members:
            made[node].tags += (group,)
    result = NetworkValue()
    axes = {node.name.lower(): value for node, value in made.items() if node.kind.time.makes_axis}
    for node, value in made.items():
        value.inputs = tuple(made[source] for source in node.connected)
        axis = axes.get(str(value.options.get("dynamicAxis", "")).lower())
        if axis is not None:
            value.options["dynamicAxis"] = axis
        result.nodes[node.name.lower()] = value
    for group, members in network.groups.items():
        result.groups[group] = [made[node] for node in members]
    return result


def stored_value(node: Node, origin: Origin) -> NodeValue:
    """Return the value of a node of a network; its inputs are set by the caller."""
    value = NodeValue(
        operation_of(node.kind.name, node.kind.printed), origin, dict(node.options), shape=node.shape, stored=node
    )
    value.learning_rate_multiplier = node.learning_rate_multiplier
    value.name = node.name
    return value


@cache
def operation_of(kind: str, printed: str | None) -> Operation:
    """Return the operation whose nodes are of a kind, by the name of the kind and what CNTK calls it."""
    declared = nodes.find(kind)
    known = [declared] if declared is not None and declared.name == kind else []  # none of a kind of programs
    return next(operations_of(known), None) or Operation(printed or kind, kind)
