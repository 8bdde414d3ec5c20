"""Criteria as a function of what the module gives and of the data: for the training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cntkpy.networks import nodes
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.source_support.helpers import with_needs
from cntkpy.networks.nodes.source_support.values import Value, lead_of
from cntkpy.networks.source import layout
from cntkpy.networks.source.classes import Classes, plain
from cntkpy.networks.source.export import refusal
from cntkpy.networks.source.graph import Evaluate, Graph
from cntkpy.networks.source.planner import Planner
from cntkpy.networks.source.torch_form import TORCH, TorchForm, kind_of
from cntkpy.networks.source.writer import Writer


class Function(NamedTuple):
    """A function of the written file.

    Attributes:
        text: of the function, and of helpers in front of it.
        arguments: the nodes that are its arguments, in order.
        masks: the time axes whose masks follow them.
        along_time: whether the arguments are (batch, steps, ...); else they are (samples, ...) without padding.
        parameters: names of the parameters that the criteria have for themselves; then there is no text.
    """

    text: str
    arguments: list[Node]
    masks: list[str]
    along_time: bool
    parameters: list[str]


def criteria_function(
    network: ValidatedNetwork, names: Sequence[str], cut: Sequence[str], evaluate: Evaluate
) -> Function:
    """Write nodes as a function of others.

    Args:
        network: the network.
        names: of the nodes that the function gives.
        cut: names of nodes that are arguments, beside the inputs.
        evaluate: computes nodes that depend on parameters alone.

    Raises:
        UserError: nodes have no code.
    """
    copy = ValidatedNetwork(network.copied())
    for name in cut:
        node = copy.find(name)
        node.kind, node.inputs, node.options = nodes.operation("InputValue"), [], {"dynamicAxis": ""}
    graph = Graph(copy, names, evaluate)
    planner, helpers = Planner(graph, TORCH, 0.0), set[str]()
    units = planner.units(graph.components)
    writer = Writer(planner, TorchForm(), Classes(), helpers)
    for node in graph.inputs:
        writer.argument(node, lead_of(node, graph.along_time))
    outputs = [graph.canonical(node) for node in graph.outputs]
    writer.write(units, outputs)
    if any(planner.refused.values()):
        raise refusal(planner)
    parameters = [tensor.source.name for tensor in writer.tensors.values() if tensor.source is not None]
    results = [_summed(writer, node) for node in outputs]
    writer.body.line(f"return {', '.join(results)}")
    masks = list(writer.body.asked.values())
    typed = ", ".join(f"{name}: Tensor" for name in [*writer.arguments, *masks])
    head = f"def criteria({typed}) -> {kind_of(len(outputs))}:"
    doc = '    """Return sums over the samples of the minibatch."""'
    body = "\n".join([head, doc, *(f"    {line}" for line in writer.body.lines)])
    text = "\n\n\n".join([*(TORCH.helpers[name] for name in with_needs(TORCH.helpers, helpers)), plain(body)])
    return Function(layout.laid_out(text), graph.inputs, list(writer.body.asked), graph.along_time, parameters)


def _summed(writer: Writer, node: Node) -> str:
    """Return the text of the sum of a node over the samples of the minibatch."""
    value: Value = writer.value(node)
    if value.lead == 2:
        return f"{value.atom}[{writer.body.mask(node.axis)}].sum()"
    return f"{value.atom}.sum()" if value.lead or value.dims else value.text
