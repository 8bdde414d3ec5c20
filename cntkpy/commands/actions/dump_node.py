"""`action = dumpNode`: nodes of a model as text, with the values of their parameters."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.declare import BOOLEAN, PATH, TEXT, Declared, Parameter
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.networks_and_readers import find_nodes, load

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext
    from cntkpy.networks.graph.network import Node, ValidatedNetwork

log = logging.getLogger("cntkpy.commands")

ALL_NODES = "__AllNodes__"


ENTRY = Entry(
    "action",
    ("dumpNode", "dumpnode", "dumpNodes"),
    parameters="cntkpy.commands.actions.dump_node:DumpNodeParameters",
    factory="cntkpy.commands.actions.dump_node:dump_node",
    traits=frozenset({"without JAX"}),
    example="dump = [ action = dumpNode ; modelPath = m ; nodeName = W ; outputFile = W.txt ]",
)


class DumpNodeParameters(Declared):
    """`action=dumpNode`: writes nodes and parameters of a model as text."""

    model_path = Parameter("modelPath", PATH, help="The model file.")
    node_name = Parameter("nodeName", TEXT, default=ALL_NODES, help="The node; all nodes if it is not given.")
    node_regex = Parameter("nodeNameRegex", TEXT, default="", help="All nodes whose whole name matches; wins.")
    output_file = Parameter("outputFile", PATH, default=None, help="Where to write; modelPath.nodeName.txt.")
    print_values = Parameter("printValues", BOOLEAN, default="true", help="Write values of parameters.")
    print_metadata = Parameter("printMetadata", BOOLEAN, default="true", help="Write operations, inputs, shapes.")


def dump_node(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = DumpNodeParameters(section)
    if not (p.print_values or p.print_metadata):
        raise p.error("printValues", "printValues and printMetadata are both false: there is nothing to write")
    path = str(p.model_path)
    network = load(path, context)
    output = str(p.output_file) if p.output_file else f"{path}.{p.node_name}.txt"
    from cntkpy.networks.graph.dump import dump_nodes

    chosen = _choose(network, p)
    dump_nodes(output, network, chosen, values=p.print_values, metadata=p.print_metadata)
    log.info("%d nodes written to %s", len(chosen), output)


def names_one_node(p: DumpNodeParameters) -> bool:
    """Return whether `nodeName` names a node: all nodes have a word of their own, and a pattern wins."""
    return not p.node_regex and p.node_name != ALL_NODES


def _choose(network: ValidatedNetwork, p: DumpNodeParameters) -> list[Node]:
    if p.node_regex:
        try:
            pattern = re.compile(p.node_regex)
        except re.error as error:
            raise p.error("nodeNameRegex", f"not a regular expression: {error}") from None
        nodes = [node for node in network.nodes.values() if pattern.fullmatch(node.name)]
        log.info("%d nodes match '%s': %s", len(nodes), p.node_regex, " ".join(node.name for node in nodes))
        if not nodes:
            raise p.error("nodeNameRegex", "no name of a node matches", "`cntkpy show MODEL` lists them", "UnknownNode")
        return nodes
    if not names_one_node(p):
        return list(network.nodes.values())
    return find_nodes(network, [p.node_name])
