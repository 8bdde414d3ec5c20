"""Nodes as text, with the values of parameters: `action=dumpNode` and the commands DumpModel and DumpNode of MEL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config.base.writing import output_file

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Network, Node


def dump_nodes(
    path: str | Path, network: Network, nodes: Iterable[Node], *, values: bool = True, metadata: bool = True
) -> None:
    """Write nodes to a text file, in the order of their names (ignoring case)."""
    digits = 17 if network.precision == "double" else 9
    nodes = sorted(nodes, key=lambda node: node.name.lower())
    with output_file(path) as file:
        for node in nodes:
            for text in dump(node, digits, values, metadata):
                file.write(text.encode())
        if metadata and len(nodes) == len(network.nodes):  # CNTK ends the dump of a whole network like this
            file.write(b" \n")


def dump(node: Node, digits: int, values: bool, metadata: bool) -> Iterator[str]:
    """Yield the text of one node: one blank before every token, as CNTK writes it."""
    if metadata:
        inputs = " , ".join("NULL" if source is None else source.name for source in node.inputs)
        yield f" \n{node.name}={node.kind.printed or node.operation}" + (f" ( {inputs} )" if node.inputs else "")
        yield _details(node)
    if values and node.value is not None and (node.is_parameter or node.kind.precompute):
        shape = node.shape or (1,)
        if metadata:
            yield " \n"
        for row in node.value.reshape(-1, shape[0]).T:
            yield "".join(f" {value:.{digits}g}" for value in row.tolist()) + " \n"
        if metadata:
            yield " " + "#" * 68


def _details(node: Node) -> str:
    shape = node.shape or (1,)
    if node.is_parameter:
        columns = 1
        for size in shape[1:]:
            columns *= size
        trained = "true" if node.trainable else "false"
        multiplier = f"learningRateMultiplier={node.learning_rate_multiplier:f}"
        return f" [{shape[0]},{columns}]   {multiplier}  NeedsGradient={trained}"
    dims = " x ".join(str(size) for size in shape)
    if node.kind.precompute:
        return f" [{dims}]   HasComputed={'true' if node.computed else 'false'}"
    if node.kind.layout == "always":
        return f" [ {dims} ]"
    return ""
