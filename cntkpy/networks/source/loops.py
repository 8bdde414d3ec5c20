"""One step of a loop: the values that it reads and the states that it hands on."""

from __future__ import annotations

from typing import NamedTuple

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.source_support.layers import Unit
from cntkpy.networks.nodes.source_support.names import Names, given_name
from cntkpy.networks.nodes.source_support.values import Value, dims_of, lead_of, number
from cntkpy.networks.source.planner import is_sequence
from cntkpy.networks.source.writer import Writer


class State(NamedTuple):
    """The state that a delay in a loop reads.

    Attributes:
        delay: the node.
        name: of the value, or of a list of values where the delay is several steps long.
        start: the text of the value before the first step.
        steps: of the delay.
    """

    delay: Node
    name: str
    start: str
    steps: int

    @property
    def before(self) -> str:
        """The text of the value that a step reads."""
        return self.name if self.steps == 1 else f"{self.name}[0]"


class Step(NamedTuple):
    """One step of a loop, whose statements are the lines of the writer's function.

    Attributes:
        writer: of the class of the loop.
        unit: the loop.
        operands: names of arguments; True: a step reads one step of it.
        states: in the order of the delays.
        sources: the nodes whose values are the next states.
        results: the nodes whose values the step gives: the sources, then the outputs.
    """

    writer: Writer
    unit: Unit
    operands: dict[str, bool]
    states: list[State]
    sources: list[Node]
    results: list[Node]

    @property
    def first(self) -> str:
        """The name of an argument that is a sequence."""
        return next(name for name, of_step in self.operands.items() if of_step)

    @property
    def backwards(self) -> bool:
        """True if the loop runs from the last step to the first."""
        return self.states[0].delay.kind.time.delay > 0

    def local(self) -> dict[Node, str]:
        """Return names for the results of a step, outside of it."""
        arguments = (*self.operands, *self.writer.body.masks.values(), *(state.name for state in self.states))
        names = Names({*arguments, "t", "inside"}, self.writer.body.dialect.reserved)
        return {node: names.take(given_name(node) or "new") for node in self.results}


def write_step(writer: Writer, unit: Unit) -> Step:
    """Write the statements of a step of a loop."""
    delays = [node for node in unit.loop if node.kind.time.delay]
    writer.along_time = False
    operands = _operands(writer, unit)
    first = next(name for name, of_step in operands.items() if of_step)
    states = [_state(writer, delay, first) for delay in delays]
    sources = [writer.graph.canonical(delay.input(0)) for delay in delays]
    results = list(dict.fromkeys([*sources, *unit.outputs]))
    writer.write(writer.planner.units([[node] for node in unit.loop if not node.kind.time.delay]), results)
    return Step(writer, unit, operands, states, sources, results)


def _operands(writer: Writer, unit: Unit) -> dict[str, bool]:
    """Return the arguments of the class of a loop."""
    whole = {node.input(index) for node in unit.loop for index in node.kind.time.whole}
    result: dict[str, bool] = {}
    for operand in unit.operands:
        of_step = operand not in whole and is_sequence(operand, unit.loop[0])
        lead = 1 if of_step else 2 if operand in whole else lead_of(operand, False)
        result[writer.argument(operand, lead, kept=not of_step)] = of_step
    return result


def _state(writer: Writer, delay: Node, first: str) -> State:
    """Return the state that a delay reads."""
    start, source = _start(writer, delay, first), given_name(delay.input(0))
    name = writer.body.names.take(given_name(delay) or (f"{source}_before" if source else "h"))
    writer.body.hold(name, delay)
    writer.values[delay] = Value(name, 1, dims_of(delay), axis=delay.axis)
    return State(delay, name, start, int(delay.options["timeStep"]))


def _start(writer: Writer, delay: Node, first: str) -> str:
    """Return the text of a state before the first step."""
    sizes = ", ".join(f"«size={size}»" for size in dims_of(delay))
    words = writer.body.dialect.words
    if len(delay.inputs) == 1:
        start = float(delay.options["defaultHiddenActivity"])
        return str(words["full_start" if start else "zero_start"]).format(first, sizes, number(start))
    initial = writer.graph.canonical(delay.input(1))
    constant = writer.graph.number(initial)
    if constant is not None:
        return str(words["full_start"]).format(first, sizes, number(constant))
    value = writer.value(initial)
    return value.text if value.lead else str(words["same_start"]).format(value.atom, first, sizes)


def call_loop(writer: Writer, unit: Unit, call: str, along_time: bool) -> list[Value]:
    """Return the values of a call that gives the results of a loop."""
    leads = [lead_of(node, along_time) for node in unit.outputs]
    if len(unit.outputs) == 1:
        return [Value(call, leads[0], dims_of(unit.node), axis=unit.node.axis)]
    names = [writer.body.name_for(node) for node in unit.outputs]
    writer.body.line(f"{', '.join(names)} = {call}")
    return [
        Value(name, lead, dims_of(node), axis=node.axis)
        for name, lead, node in zip(names, leads, unit.outputs, strict=True)
    ]
