"""The operators of a graph become nodes, one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.graph.node import Node
from cntkpy.networks.onnx.reading import attention, constants, joined
from cntkpy.networks.onnx.reading.building import Building, Use
from cntkpy.networks.onnx.reading.elementwise import Rule
from cntkpy.networks.onnx.reading.parse import DEFAULT_DOMAINS, Operator
from cntkpy.networks.onnx.reading.values import Data, Joined, Longer, Scores, Unusable, Value

DAMAGE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)
"""What attributes of other types and operands of other shapes lead to."""


def _results(rule: Rule, use: Use) -> list[Value]:
    """The results of an operator.

    Raises:
        Unusable: it cannot become nodes.
    """
    try:
        with np.errstate(all="ignore"):
            return rule(use)
    except UserError as problem:
        raise Unusable(problem.diagnostic.message) from None
    except DAMAGE as problem:
        raise Unusable(f"its attributes or operands do not fit ({type(problem).__name__}: {problem})") from None


class Graph:
    """The values of a graph while its operators become nodes.

    Attributes:
        values: by name.
        refused: operators that cannot become nodes, and why.
    """

    def __init__(
        self, building: Building, rules: Mapping[str, Rule], values: Mapping[str, Value] | None = None
    ) -> None:
        self.building, self._rules = building, rules
        self.values: dict[str, Value] = dict(values or {})
        self.refused: list[tuple[Operator, str]] = []

    def run(self, operators: Sequence[Operator]) -> None:
        """Make nodes of operators, in their order."""
        for operator in operators:
            if all(name in self.values for name in operator.inputs if name):
                try:
                    self._operator(operator)
                except Unusable as problem:
                    self.refused.append((operator, str(problem)))

    def _operator(self, operator: Operator) -> None:
        if operator.domain not in DEFAULT_DOMAINS:
            raise Unusable("operators of other domains are not supported")
        self.building.owner = next((name for name in operator.outputs if name), operator.name)
        use = Use(operator, [self.values[name] if name else None for name in operator.inputs], self.building, self)
        rules = constants.RULES if constants.is_known(use) else self._rules
        if rules is self._rules and any(isinstance(one, Scores) for one in use.inputs):
            rules = attention.RULES if operator.kind in attention.RULES else {operator.kind: attention.refuse}
        if operator.kind not in rules:
            known = operator.kind in self._rules or operator.kind in constants.RULES
            raise Unusable("it has no data among its inputs" if known else "this operator is not supported")
        if operator.kind != "Slice" and any(isinstance(one, Longer) for one in use.inputs):
            raise Unusable("it looks at values that were put before or behind a sequence")
        joined.check(use)
        before = len(self.building.network.nodes)
        results = _results(rules[operator.kind], use)
        made = [*self.building.network.nodes.values()][before:]
        for name, value in zip(operator.outputs, results, strict=False):
            if name:
                self.values[name] = value
                if isinstance(value, Data) and value.node in made:
                    self._named(value.node, name, made)
        if missing := [name for name in operator.outputs[len(results) :] if name]:
            raise Unusable(f"its output '{missing[0]}' is not supported")

    def _named(self, node: Node, name: str, made: Sequence[Node]) -> None:
        """Give a node the name of a value, which another node that was made on the way may have."""
        network = self.building.network
        wanted = self.building.printable(name)
        if node.name.lower() == wanted.lower():
            return
        if wanted in network.nodes:
            if network.nodes[wanted] not in made:
                return
            network.rename(wanted, self.building.free(f"{wanted}.part"))
        network.rename(node.name, wanted)

    def body(self) -> Graph:
        """For a graph inside of this one, which sees its values."""
        return Graph(self.building, self._rules, self.values)

    def finish(self, outputs: Sequence[str]) -> None:
        """Put the outputs of the model into the group of that name, under their own names."""
        building = self.building
        for name in outputs:
            value = self.values.get(name)
            if value is None:
                continue
            if not isinstance(value, Data):
                raise Unusable(f"its output '{name}' does not depend on its inputs")
            if any(isinstance(one, Joined) for one in value.axes):
                raise Unusable(f"its output '{name}' joins axes of the minibatch: {list(value.axes)}")
            node, network = value.node, building.network
            if node.kind.layout == "always" or node in network.groups["output"]:
                node = building.node("Pass", node, name=name)
            elif node.name != name and name not in network.nodes:
                network.rename(node.name, building.free(name))
            network.add_to_group("output", node)
