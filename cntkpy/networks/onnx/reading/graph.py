"""The operators of a graph become nodes, one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.attention import onnx_scores, onnx_sums
from cntkpy.networks.nodes.onnx_support import joined
from cntkpy.networks.nodes.onnx_support.building import Building, Rule, Use
from cntkpy.networks.nodes.onnx_support.model import DEFAULT_DOMAINS, Model, Operator, Unreadable
from cntkpy.networks.nodes.onnx_support.values import (
    Array,
    Data,
    Joined,
    Longer,
    Scores,
    Step,
    Sums,
    Unusable,
    Value,
    varying,
)
from cntkpy.networks.nodes.recurrence import onnx_loops
from cntkpy.networks.onnx.reading import constants

DAMAGE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError, StopIteration, TypeError,
    ValueError,
)  # fmt: skip
"""Errors that attributes of other types and operands of other shapes lead to."""


_OF_KINDS = (
    (Scores, onnx_scores.RULES, onnx_scores.refuse),
    (Sums, onnx_sums.RULES, onnx_sums.refuse),
    (Step, onnx_loops.OF_STEPS, onnx_loops.refuse),
)
"""Values that no node has yet: the rules of operators that may follow, and what refuses the others."""

UNSUPPORTED, OTHER_DOMAIN = "this operator is not supported", "operators of other domains are not supported"


def _results(rule: Rule, use: Use) -> list[Value]:
    """Return the results of an operator.

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
        unreadable: names of initialisers whose type is not supported, and what it is.
        refused: operators that cannot become nodes, and why.
    """

    def __init__(
        self, building: Building, rules: Mapping[str, Rule], values: Mapping[str, Value] | None = None
    ) -> None:
        self.building, self._rules = building, rules
        self.values: dict[str, Value] = dict(values or {})
        self.unreadable: dict[str, str] = {}
        self.refused: list[tuple[Operator, str]] = []

    def run(self, operators: Sequence[Operator]) -> None:
        """Make nodes of operators, in their order; of those that take what is missing, refuse the unsupported ones."""
        for operator in operators:
            missing = [name for name in operator.inputs if name and name not in self.values]
            unreadable = [self.unreadable[name] for name in missing if name in self.unreadable]
            try:
                if not missing:
                    self._operator(operator)
                elif unreadable:
                    raise Unusable(f"an operand of it is not supported: {unreadable[0]}")
                else:
                    self._refuse_unsupported(operator)
            except Unusable as problem:
                self.refused.append((operator, str(problem)))

    def _refuse_unsupported(self, operator: Operator) -> None:
        """Refuse an operator without rules, and such ones inside of it."""
        for body in operator.bodies:
            for inner in body.operators:
                try:
                    self._refuse_unsupported(inner)
                except Unusable as problem:
                    self.refused.append((inner, str(problem)))
        if operator.key not in self._rules and operator.key not in constants.RULES:
            raise Unusable(UNSUPPORTED if operator.domain in DEFAULT_DOMAINS else OTHER_DOMAIN)

    def _operator(self, operator: Operator) -> None:
        self.building.take_operator()
        self.building.owner = next((name for name in operator.outputs if name), operator.name)
        count = len(self.building.network.nodes)
        results: Sequence[Value | Unreadable] = self.results(
            operator, [self.values[name] if name else None for name in operator.inputs]
        )
        made = [*self.building.network.nodes.values()][count:] if len(self.building.network.nodes) > count else []
        for name, value in zip(operator.outputs, results, strict=False):
            if name and isinstance(value, Unreadable):
                self.unreadable[name] = value.why
            elif name:
                self.values[name] = value
                if isinstance(value, Data) and value.node in made:
                    self._named(value.node, name, made)
        if missing := [name for name in operator.outputs[len(results) :] if name]:
            raise Unusable(f"its output '{missing[0]}' is not supported")

    def results(self, operator: Operator, inputs: Sequence[Value | None]) -> list[Value]:
        """Return the results of an operator for values.

        Raises:
            Unusable: it is not supported, or its operands are of the wrong kind.
        """
        self._refuse_unsupported(operator)
        use = Use(operator, inputs, self.building, self)
        rules = constants.RULES if constants.is_known(use) else self._rules
        if rules is self._rules:
            for kind, of_kind, refuse in _OF_KINDS:
                if any(isinstance(operand, kind) for operand in use.inputs):
                    rules = {operator.key: of_kind.get(operator.key, refuse)}
                    break
        if operator.key not in rules:
            why = "it has no data among its inputs" if constants.is_known(use) else "it is supported for constants only"
            raise Unusable(why)
        if operator.kind != "Slice" and any(isinstance(operand, Longer) for operand in use.inputs):
            raise Unusable("it looks at values that were put before or behind a sequence")
        joined.check(use)
        return _results(rules[operator.key], use)

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
        body = Graph(self.building, self._rules, self.values)
        body.unreadable = dict(self.unreadable)
        return body

    def add_initialisers(self, model: Model) -> None:
        """Make the initialisers of a model known."""
        for name, value in model.initialisers.items():
            if isinstance(value, Unreadable):
                self.unreadable[name] = value.why
            else:
                self.values[name] = Array(value, name if value.dtype.kind == "f" else "")

    def usable(
        self, outputs: Sequence[str], operators: Sequence[Operator], known: bool
    ) -> tuple[list[str], dict[str, str]]:
        """Return the outputs of the model that are values of the network, and why the others are none.

        Args:
            outputs: their names.
            operators: of the model.
            known: whether an output may be a constant.
        """
        names: list[str] = []
        wrong: dict[str, str] = {}
        for name in outputs:
            value = self.values.get(name)
            if value is None:
                wrong[name] = self._reason(name, operators)
            elif (
                known
                and isinstance(value, Array)
                and not varying(value.value)
                and not any(isinstance(axis, str) for axis in value.axes)
            ):
                names.append(name)
            elif not isinstance(value, Data):
                wrong[name] = "does not depend on its inputs"
            elif any(isinstance(axis, Joined) for axis in value.axes):
                wrong[name] = f"joins axes of the minibatch: {list(value.axes)}"
            elif not known and value.node.kind.layout != "always" and not value.node.has_layout:
                wrong[name] = "is one value for all samples of a minibatch"
            else:
                names.append(name)
        return names, wrong

    def _reason(self, output: str, operators: Sequence[Operator]) -> str:
        """Return the refused operators on which an output depends."""
        makers = {name: operator for operator in operators for name in operator.outputs}
        wanted, seen, reasons = [output], set[str](), list[str]()
        refused = {id(operator): why for operator, why in self.refused}
        while wanted:
            operator = makers.get(wanted.pop())
            if operator is None or id(operator) in refused:
                if operator is not None:
                    reasons.append(f"{operator.shown()}: {refused[id(operator)]}")
                continue
            wanted += [name for name in operator.inputs if name not in seen and name not in self.values]
            seen.update(operator.inputs)
        if reasons:
            return "needs " + "; ".join(dict.fromkeys(reasons[::-1]))
        return f"is not supported: {self.unreadable.get(output, 'nothing computes it')}"

    def finish(self, outputs: Sequence[str]) -> None:
        """Put outputs of the model into the group of that name, under their own names."""
        building = self.building
        for name in outputs:
            value, network = self.values[name], building.network
            if isinstance(value, Array):
                value = Data(building.node("Pass", building.parameter(value), name=name), value.value.shape)
            assert isinstance(value, Data)
            node = value.node
            if not value.dims:  # a number for each sample: the shape ()
                node = building.node("NewReshape", node, dims=(), name=name)
            if node.kind.layout == "always" or node in network.groups["output"]:
                node = building.node("Pass", node, name=name)
            elif node.name != name and name not in network.nodes:
                network.rename(node.name, building.free(name))
            network.add_to_group("output", node)
