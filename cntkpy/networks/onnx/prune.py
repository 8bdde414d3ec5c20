"""Operators that nothing needs are taken out of a graph."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cntkpy.networks.nodes.onnx_support.graph import Graph, Operator, rename


def prune(graph: Graph, constants: dict[str, np.ndarray], derived: dict[str, str]) -> None:
    """Take out operators, inputs and initialisers that the outputs do not depend on.

    Args:
        graph: the graph of a model.
        constants: its initialisers; one that holds a parameter in another form gets the name of the parameter, if the
            parameter itself is not needed.
        derived: the names of such initialisers, and of their parameters.
    """
    needed = {port.name for port in graph.outputs}
    kept: list[Operator] = []
    for operator in reversed(graph.operators):
        if not needed.isdisjoint(operator.outputs):
            kept.append(operator)
            needed.update(_read(operator))
    graph.operators = kept[::-1]
    graph.inputs = [port for port in graph.inputs if port.name in needed]
    for name in [name for name in constants if name not in needed]:
        del constants[name]
    forms = [name for name in derived if name in constants]
    for name in forms:
        parameter = derived[name]
        if parameter not in needed and sum(derived[form] == parameter for form in forms) == 1:
            constants[parameter] = constants.pop(name)
            rename(graph.operators, name, parameter)


def _read(operator: Operator) -> Iterator[str]:
    """Yield the values that an operator reads, those that its bodies read included."""
    yield from operator.inputs
    for attribute in operator.attributes.values():
        if isinstance(attribute, Graph):
            for port in attribute.outputs:
                yield port.name
            for inner in attribute.operators:
                yield from _read(inner)
