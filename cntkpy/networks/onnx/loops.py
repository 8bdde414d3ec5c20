"""Loops of a network as Scan operators.

The body computes one step. For each delay it has states: the values of the last steps, the latest one first. What does
not change from step to step it takes from the graph around it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.network import Node
from cntkpy.networks.nodes.onnx_support.graph import Emitter, NotExpressible, Port
from cntkpy.networks.nodes.onnx_support.lengths import steps_of_batch
from cntkpy.networks.nodes.onnx_support.use import Operand, Use
from cntkpy.networks.nodes.recurrence.onnx_writing import initial_state

Rule = Callable[[Node, Emitter, list[Operand], int], str]
BATCH = "batch"


class Refused(Exception):
    """Nodes of a loop have no equivalent.

    Args:
        reasons: why, by node.
    """

    def __init__(self, reasons: dict[Node, str]) -> None:
        super().__init__()
        self.reasons = reasons


class _State(NamedTuple):
    """The states of a delay: the values that its operand had in the last steps, the latest first."""

    delay: Node
    start: str
    before: list[str]


def scan(
    loop: list[Node], plan: Plan, value: Callable[[Node], Operand], emit: Emitter, rule: Rule
) -> dict[Node, Operand]:
    """Add the Scan of a loop.

    Args:
        loop: its nodes in the order of one step, delays first.
        plan: what is exported.
        value: of a node before the loop.
        emit: for the graph around it.
        rule: adds the operators of a node.

    Returns:
        The values of those of its nodes that others use.

    Raises:
        Refused: nodes have no equivalent.
    """
    name = min(node.name for node in loop)
    emit.owner = name
    members = set(loop)
    body = emit.body(name)
    read = dict.fromkeys(
        source
        for node in loop
        for index, source in enumerate(node.connected)
        if source not in members and index not in node.kind.time.whole
    )
    sequences = [node for node in read if node.has_layout and not node.axis == ONE != loop[0].axis]
    if not sequences:
        raise Refused({loop[0]: "it is part of a loop that no data enter"})
    inside: dict[Node, Operand] = {}
    for operand in read:
        inside[operand] = _outer(emit, value(operand))
    for operand in sequences:
        inside[operand] = Operand(emit.names.take(f"{name}/{operand.name}"), 1, value(operand).dims)
    wanted = [node for node in loop if node in plan.outputs or any(user not in members for user in plan.users[node])]
    batch = emit.op("Shape", value(sequences[0]).name, start=1, end=2)
    states = [_state(node, inside, emit, batch) for node in loop if node.kind.time.delay]

    reasons: dict[Node, str] = {}
    for state in states:
        inside[state.delay] = Operand(state.before[-1], 1, _dims(state.delay))
    for node in loop:
        if node in inside:
            continue
        body.owner = f"{name}/{node.name}"
        operands = [
            value(operand) if index in node.kind.time.whole else inside.get(operand)
            for index, operand in enumerate(node.connected)
        ]
        if any(operand is None for operand in operands):
            continue
        try:
            result = rule(node, body, [operand for operand in operands if operand is not None], 1)
        except NotExpressible as problem:
            reasons[node] = str(problem)
            continue
        inside[node] = Operand(result, 1, _dims(node))
    if reasons:
        raise Refused(reasons)
    scanned = [value(sequence).name for sequence in sequences]
    return _finished(states, wanted, sequences, scanned, inside, (emit, body), name)


def _finished(
    states: list[_State],
    wanted: list[Node],
    sequences: list[Node],
    scanned: list[str],
    inside: dict[Node, Operand],
    emitters: tuple[Emitter, Emitter],
    name: str,
) -> dict[Node, Operand]:
    emit, body = emitters
    ports = body.graph
    backwards = int(states[0].delay.kind.time.delay > 0)
    lengths = emit.lengths.get(states[0].delay.axis or "") if backwards else None
    step = body.names.take(f"{name}/step") if lengths else ""
    for state in states:
        dims = _dims(state.delay)
        ports.inputs += [Port(name, (BATCH, *dims)) for name in state.before]
        body.owner = f"{name}/{state.delay.name}"
        latest = _like(body, inside[state.delay.input(0)], dims, state.before[-1])
        if lengths:  # steps behind the end of a sequence come first and leave the state as it was
            there = body.op("Less", step, lengths)
            there = body.unsqueeze(there, *range(1, 1 + len(dims))) if dims else there
            latest = body.op("Where", there, latest, state.start)
        for after in (latest, *state.before[:-1]):
            ports.outputs.append(Port(body.op("Identity", after), (BATCH, *dims)))
    ports.inputs += [Port(inside[sequence].name, (BATCH, *_dims(sequence))) for sequence in sequences]
    if lengths:
        ports.inputs.append(Port(step, (), "integer"))
        emit.owner = name
        scanned = [*scanned, steps_of_batch(emit, scanned[0])]
    for node in wanted:
        body.owner = f"{name}/{node.name}"
        ports.outputs.append(Port(body.op("Identity", inside[node].name), (BATCH, *_dims(node))))
    emit.owner = name
    starts = [state.start for state in states for _ in state.before]
    results = emit.several(
        "Scan",
        [*starts, *scanned],
        len(starts) + len(wanted),
        body=body.graph,
        num_scan_inputs=len(scanned),
        scan_input_directions=[backwards] * len(scanned),
        scan_output_directions=[backwards] * len(wanted),
    )
    since = len(emit.graph.operators) - 1
    for result, node in zip(results[len(starts) :], wanted, strict=True):
        emit.rename(result, node.name, since)
    return {node: Operand(node.name, 2, _dims(node)) for node in wanted}


def _dims(node: Node) -> tuple[int, ...]:
    return tuple(reversed(node.shape or ()))


def _outer(emit: Emitter, value: Operand) -> Operand:
    """Return a value of the graph around, as the body has it: without time."""
    return Operand(emit.squeeze(value.name, 0), 1, value.dims) if value.lead == 2 else value


def _state(delay: Node, inside: dict[Node, Operand], emit: Emitter, batch: str) -> _State:
    """Return the states of a delay, and what they are before the first step."""
    operands = [inside[delay.input(1)]] if len(delay.inputs) > 1 else []
    use = Use(delay, [Operand("", 1, _dims(delay)), *operands], emit, 1, {})
    start = emit.expand(initial_state(use).name, batch, _dims(delay))
    count = int(delay.options["timeStep"])
    return _State(delay, start, [emit.names.take(f"{emit.owner}/{delay.name}/{k + 1}") for k in range(count)])


def _like(body: Emitter, value: Operand, dims: tuple[int, ...], state: str) -> str:
    """Return a value with the axes of a state."""
    if value.dims == dims:
        return value.name
    ranked = body.reshape(value.name, 1, (*(1,) * (len(dims) - len(value.dims)), *value.dims))
    return body.op("Expand", ranked, body.op("Shape", state))
