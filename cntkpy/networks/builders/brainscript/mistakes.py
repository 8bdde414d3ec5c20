"""All mistakes of a program: after the first one, what does not depend on it is evaluated as well."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.cntk_config.base.source import Text
from cntkpy.networks.builders.brainscript.graph import Built, add_value, axis_name, graph_of, located
from cntkpy.networks.builders.brainscript.language.evaluate import ENDLESS, Evaluator, Failures, Step
from cntkpy.networks.builders.brainscript.language.source import ProgramError
from cntkpy.networks.builders.brainscript.language.syntax import Call, Expression, Name
from cntkpy.networks.builders.brainscript.language.values import Scope
from cntkpy.networks.builders.brainscript.network import entered, root_steps
from cntkpy.networks.builders.brainscript.node_values import Later, NodeValue
from cntkpy.networks.builders.brainscript.nodes import attach_inputs
from cntkpy.networks.builders.brainscript.outline import parts_of
from cntkpy.networks.builders.brainscript.program import Program, evaluate_network, parse_network
from cntkpy.networks.builders.recovery import MAX_ERRORS, assigned_names, attempts, blanked, statement_at
from cntkpy.networks.graph.network import Network, Node

MAX_ENDLESS = 2
"""Evaluations without an end after which no further member is evaluated."""
MAX_EXPRESSIONS = 10_000
"""Expressions that are evaluated by themselves."""
SKIPPED = re.compile(r"#[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z)|\"[^\"\n]*\"|'[^'\n]*'", re.DOTALL)
"""Comments and quoted texts."""
_CYCLE = re.compile(r"\(([^()]*)\)$")
_UNKNOWN = re.compile(r"unknown identifier '([^']+)'")


class Mistakes:
    """Collect the mistakes of a program.

    Attributes:
        errors: The mistakes, one for each place.
    """

    def __init__(self) -> None:
        self.errors: list[UserError] = []
        self._lost: set[str] = set()
        self._known: list[tuple[str, Any]] = []
        """Kinds of the errors, with their places or the names of a cycle."""
        self._looked = 0
        self._endless = 0
        """Evaluations that were nested too deeply, or too long; each takes its time."""

    def note(self, error: UserError) -> None:
        """Keep an error, unless a statement that cannot be read defines the name that is missing."""
        match = _UNKNOWN.match(error.message)
        if match is not None and match[1].lower() in self._lost:
            return
        cycle = _CYCLE.search(error.message) if error.kind == "CircularReference" else None
        key = error.kind, frozenset(cycle[1].split(" -> ")) if cycle is not None else error.span
        if key not in self._known:
            self._known.append(key)
            self.errors.append(error)

    def program(self, text: Text) -> Program | None:
        """Return the program of a text without the statements that cannot be read; None if none can be.

        Args:
            text: The text, with its included files.
        """
        for _ in range(attempts(text.string)):
            try:
                return parse_network(text)
            except ProgramError as error:
                self.note(error)
                stretch = statement_at(text.string, error.place.start, SKIPPED) if error.place is not None else None
                if stretch is None:
                    return None
                self._lost |= assigned_names(text.string[slice(*stretch)])
                text = text.with_string(blanked(text.string, *stretch))
        return None

    def network(
        self, program: Program, evaluator: Evaluator, names: Mapping[str, float | str], precision: str
    ) -> Built | None:
        """Return the network of a program; None if it has a mistake.

        Args:
            program: The program.
            evaluator: Evaluates it.
            names: Names of the configuration.
            precision: A key of `cntkpy.networks.graph.precision.PRECISIONS`.
        """
        failures = evaluator.failures = Failures()
        nodes: dict[NodeValue, None] | None = None
        try:
            network = evaluate_network(program, evaluator, names)
            nodes = dict.fromkeys(network.nodes.values())
            return graph_of(network, evaluator, precision, values=False)
        except UserError as error:
            self.note(error)
            if nodes is None:
                nodes = self._values(evaluator, failures)
            self._look_at_graph(nodes, evaluator, precision)
        return None

    def _values(self, evaluator: Evaluator, failures: Failures) -> dict[NodeValue, None]:
        """Return the nodes of networks that can be evaluated."""
        roots: list[NodeValue] = []
        if len(failures.networks) == 1:
            ((record, origin),) = failures.networks
            for step in root_steps(evaluator, record, origin):
                if self._endless < MAX_ENDLESS and len(self.errors) < MAX_ERRORS:
                    roots += self._tried(evaluator, step) or []
        self._look_at_expressions(evaluator, failures)
        reached: dict[NodeValue, None] = {}
        while roots:
            node = roots.pop()
            if node not in reached:
                reached[node] = None
                if isinstance(node.inputs, Later):
                    self._tried(evaluator, attach_inputs(node))
                    node.inputs = node.inputs or (node,)  # what has failed depends on itself
                roots += node.inputs if isinstance(node.inputs, tuple) else ()
        network = self._tried(evaluator, entered(evaluator, list(reached)))
        return reached if network is not None else {}

    def _tried(self, evaluator: Evaluator, step: Step) -> Any:
        """Return the value of a step; None if it has a mistake."""
        try:
            return evaluator.run(step)
        except UserError as error:
            self._endless += error.kind in ENDLESS[:2]
            self.note(error)
            return None

    def _look_at_expressions(self, evaluator: Evaluator, failures: Failures) -> None:
        """Evaluate the parts of expressions that have failed."""
        seen: set[tuple[int, int]] = set()
        position = 0
        while failures.waiting or position < len(failures.expressions):
            if failures.waiting:
                element = failures.waiting.pop()
                self._tried(evaluator, evaluator.forced(element, element.expression.place))
                continue
            expression, scope = failures.expressions[position]
            position += 1
            if (id(expression), id(scope)) in seen or expression.place.text in evaluator.messages.library:
                continue
            seen.add((id(expression), id(scope)))
            wrong: set[int] = set()
            for part, inside in _innermost_first(expression):
                self._looked += 1
                if self._looked > MAX_EXPRESSIONS or len(self.errors) >= MAX_ERRORS:
                    return
                if any(id(operand) in wrong for operand in inside) or not self._is_right(evaluator, part, scope):
                    wrong.add(id(part))
                if failures.error is not None and failures.error.kind in ENDLESS[:2]:
                    return

    def _is_right(self, evaluator: Evaluator, expression: Expression, scope: Scope) -> bool:
        function = expression.function if isinstance(expression, Call) else None
        if isinstance(function, Name) and function.name == "Fail":
            return True  # it is an error where the value is needed only
        try:
            evaluator.evaluate(expression, scope)
        except ConfigError as error:
            self.note(error)
            return False
        return True

    def _look_at_graph(self, values: Iterable[NodeValue], evaluator: Evaluator, precision: str) -> None:
        """Infer the shapes of nodes whose inputs are all known."""
        network, made, failed = Network(precision, values=False), dict[NodeValue, Node](), set[Node]()
        for value in values:
            try:
                made[value] = add_value(network, value, evaluator)
            except UserError as error:
                self.note(located(error, value, evaluator))
        for value, node in made.items():
            inputs = value.inputs if isinstance(value.inputs, tuple) else ()
            node.inputs = [made[source] for source in inputs if source in made]
            if len(node.inputs) < len(inputs) or value in inputs:
                failed.add(node)
            if node.options.get("dynamicAxis"):
                try:
                    node.options["dynamicAxis"] = axis_name(value, made, evaluator)
                except ConfigError as error:
                    self.note(error)
                    failed.add(node)
        origins = {node: value for value, node in made.items()}
        for node, error in network.mistakes(failed):
            self.note(located(error, origins[node], evaluator))


def _innermost_first(expression: Expression) -> Iterator[tuple[Expression, list[Expression]]]:
    """Yield the parts of an expression that are evaluated with it, each with its own parts; not the expression."""
    waiting, order = [expression], list[tuple[Expression, list[Expression]]]()
    while waiting:
        part = waiting.pop()
        inside = parts_of(part)
        order.append((part, inside))
        waiting += inside
    yield from reversed(order[1:])
