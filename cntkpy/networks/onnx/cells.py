"""Hand-written LSTM and GRU cells: loops that the operators of these names compute."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import numpy as np

from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.onnx_support.graph import Emitter, NotExpressible
from cntkpy.networks.nodes.onnx_support.use import Operand
from cntkpy.networks.onnx.affine import Affine, Scope, affine

Constants = Mapping[Node, np.ndarray]


class Cell(NamedTuple):
    """A loop that an operator computes.

    Attributes:
        kind: LSTM or GRU.
        result: the node whose steps are the result.
        states: the delays of the result and, of LSTM, of the memory.
        inputs: the nodes whose steps are the input, one after the other.
        weights: for each gate in the order of ONNX, of the inputs.
        recurrence: the same of the state.
        biases: of the input's part and the state's part of the gates, `(2, gates, hidden)`.
        peepholes: of the memory, `(3, hidden)` in the order input, output, forget; None: there are none.
        after: of GRU, whether the reset gate is applied after the product.
        constants: the nodes whose values are in all these.
    """

    kind: str
    result: Node
    states: tuple[Node, ...]
    inputs: tuple[Node, ...]
    weights: np.ndarray
    recurrence: np.ndarray
    biases: np.ndarray
    peepholes: np.ndarray | None
    after: bool
    constants: frozenset[Node]


def recognised(loop: list[Node], plan: Plan, constants: Constants) -> Cell | None:
    """Return the cell that a loop is; None: it is none, or others use more of it than its result."""
    delays = [node for node in loop if node.kind.time.delay]
    members = set(loop)
    used = {node for node in loop if node in plan.outputs or any(user not in members for user in plan.users[node])}
    if any(
        int(delay.options["timeStep"]) != 1 or (delay.inputs[1:] and delay.input(1) not in constants)
        for delay in delays
    ):
        return None
    match = {1: _gru, 2: _lstm}.get(len(delays))
    try:
        cell = match(delays, members, constants) if match is not None else None
    except NotExpressible:
        return None
    return cell if cell is not None and used == {cell.result} else None


# ---- patterns


def _factors(node: Node, kind: str, *tests: Callable[[Node], bool]) -> tuple[Node, Node] | None:
    """Return the two operands of a node of a kind that does not care for their order, in the order of the tests."""
    if node.operation != kind or len(node.connected) != 2:
        return None
    left, right = node.connected
    for pair in ((left, right), (right, left)):
        if all(test(operand) for test, operand in zip(tests, pair, strict=True)):
            return pair
    return None


def _is(*kinds: str) -> Callable[[Node], bool]:
    return lambda node: node.operation in kinds


def _same(wanted: Node) -> Callable[[Node], bool]:
    return lambda node: node is wanted


def _anything(node: Node) -> bool:
    return True


def _lstm(delays: list[Node], loop: Collection[Node], constants: Constants) -> Cell | None:
    """c = f * c' + i * g and h = o * tanh c."""
    for state, memory in (delays, delays[::-1]):
        gate_nodes = _gates(state.input(0), memory)
        if gate_nodes is None:
            continue
        h, c = state.input(0), memory.input(0)
        scope = Scope(loop, {*delays, h, c}, constants)
        gates = [affine(gate.input(0), scope) for gate in gate_nodes]
        seen = (memory, c, memory)  # by the gates input, output, forget
        holes = [gate.matrices.pop(state, None) for gate, state in zip(gates, seen, strict=False)]
        if all(hole is None or _is_diagonal(hole) for hole in holes):
            return _cell("LSTM", (state, memory), gates, _diagonals(holes), loop)
    return None


def _gates(h: Node, memory: Node) -> list[Node] | None:
    """Return the nodes that are the gates input, output and forget, and the candidate of the memory."""
    shown = _factors(h, "ElementTimes", _is("Sigmoid"), _is("Tanh"))
    c = memory.input(0)
    if shown is None or shown[1].input(0) is not c or c.operation != "Plus":
        return None
    for left, right in (c.connected, c.connected[::-1]):
        kept = _factors(left, "ElementTimes", _is("Sigmoid"), _same(memory))
        taken = _factors(right, "ElementTimes", _is("Sigmoid"), _is("Tanh"))
        if kept is not None and taken is not None:
            return [taken[0], shown[0], kept[0], taken[1]]
    return None


def _is_diagonal(matrix: np.ndarray) -> bool:
    return not np.any(matrix - np.diag(np.diag(matrix)))


def _diagonals(holes: list[np.ndarray | None]) -> np.ndarray | None:
    size = next((len(hole) for hole in holes if hole is not None), None)
    return None if size is None else np.stack([np.zeros(size) if hole is None else np.diag(hole) for hole in holes])


def _gru(delays: list[Node], loop: Collection[Node], constants: Constants) -> Cell | None:
    """h = (1 - z) * n + z * h', where n = tanh (W x + R (r * h')), or tanh (W x + r * (R h' + b))."""
    (state,) = delays
    mixed = _mixed(state.input(0), state, constants)
    if mixed is None:
        return None
    update, scope = mixed[0], Scope(loop, {state, state.input(0)}, constants)
    candidate = affine(mixed[1].input(0), scope)
    pairs = {node: _factors(node, "ElementTimes", _is("Sigmoid"), _anything) for node in candidate.matrices}
    products = [(node, pair) for node, pair in pairs.items() if pair is not None]
    if len(products) != 1 or state in candidate.matrices:
        return None
    product, (reset, passed) = products[0]
    matrix, after = candidate.matrices.pop(product), passed is not state
    passed_part = affine(passed, scope) if after else Affine({state: matrix}, np.zeros(len(matrix)))
    if after and not (np.array_equal(matrix, np.eye(len(matrix))) and set(passed_part.matrices) == {state}):
        return None
    whole = Affine(
        {**candidate.matrices, **passed_part.matrices}, candidate.bias, candidate.constants | passed_part.constants
    )
    gates = [*(affine(gate.input(0), scope) for gate in (update, reset)), whole]
    cell = _cell("GRU", (state,), gates, None, loop)
    if cell is None:
        return None
    cell.biases[1, 2] = passed_part.bias
    return cell._replace(after=after)


def _mixed(h: Node, state: Node, constants: Constants) -> tuple[Node, Node] | None:
    """z and n of (1 - z) * n + z * h', or of n + z * (h' - n)."""
    if h.operation != "Plus":
        return None
    for left, right in (h.connected, h.connected[::-1]):
        moved = _factors(right, "ElementTimes", _is("Sigmoid"), _is("Minus"))
        if left.operation == "Tanh" and moved is not None and list(moved[1].connected) == [state, left]:
            return moved[0], left
        fresh = _factors(left, "ElementTimes", _is("Minus"), _is("Tanh"))
        kept = _factors(right, "ElementTimes", _is("Sigmoid"), _same(state))
        if fresh is not None and kept is not None and fresh[0].input(1) is kept[0]:
            ones = constants.get(fresh[0].input(0))
            if ones is not None and bool((ones == 1).all()):
                return kept[0], fresh[1]
    return None


def _cell(
    kind: str, states: tuple[Node, ...], gates: list[Affine], peepholes: np.ndarray | None, loop: Collection[Node]
) -> Cell | None:
    state = states[0]
    size = shapes.size(state.shape or ())
    inputs = tuple(dict.fromkeys(node for gate in gates for node in gate.matrices if node is not state))
    if not inputs or any(node in loop or not node.has_layout or node.axis != state.axis for node in inputs):
        return None
    if any(node.operation == "SparseInputValue" for node in inputs):
        return None  # a product with its few elements is taken before the loop
    if any(len(gate.bias) != size for gate in gates):
        return None

    def part(gate: Affine, node: Node) -> np.ndarray:
        return gate.matrices.get(node, np.zeros((size, shapes.size(node.shape or ()))))

    weights = np.stack([np.concatenate([part(gate, node) for node in inputs], axis=1) for gate in gates])
    recurrence = np.stack([part(gate, state) for gate in gates])
    biases = np.stack([np.stack([gate.bias for gate in gates]), np.zeros((len(gates), size))])
    constants = frozenset[Node]().union(*(gate.constants for gate in gates))
    return Cell(kind, state.input(0), states, inputs, weights, recurrence, biases, peepholes, False, constants)


# ---- the operator


def write(cell: Cell, value: Callable[[Node], Operand], constants: Constants, emit: Emitter) -> Operand:
    """Add the operator of a cell; its result."""
    result = cell.result
    emit.owner = result.name
    start = len(emit.graph.operators)
    parts = [
        operand.name if len(operand.dims) == 1 else emit.reshape(operand.name, 2, (shapes.size(operand.dims),))
        for operand in map(value, cell.inputs)
    ]
    x = parts[0] if len(parts) == 1 else emit.op("Concat", *parts, axis=-1)
    gates, size = cell.recurrence.shape[:2]
    arrays = {
        "W": cell.weights.reshape(1, gates * size, -1),
        "R": cell.recurrence.reshape(1, gates * size, size),
        "B": cell.biases.reshape(1, -1),
    }
    if cell.peepholes is not None:
        arrays["P"] = cell.peepholes.reshape(1, -1)
    names = {key: emit.constant(array.astype(emit.dtype), f"{result.name}/{key}") for key, array in arrays.items()}
    if any(node.trainable for node in cell.constants):
        emit.names.trained.update(names.values())
    backwards = cell.states[0].kind.time.delay > 0
    lengths = emit.lengths.get(result.axis or "") if backwards else None
    ends = "" if lengths is None else emit.op("Cast", lengths, to=np.dtype(np.int32))
    batch = emit.op("Concat", emit.integers([1]), emit.op("Shape", x, start=1, end=2), axis=0)
    starts = [_start(state, constants, batch, size, emit) for state in cell.states]
    operands = [x, names["W"], names["R"], names["B"], ends, *starts, *([names["P"]] if "P" in names else [])]
    while not operands[-1]:
        operands.pop()
    attributes = {"linear_before_reset": int(cell.after)} if cell.kind == "GRU" else {}
    direction = "reverse" if backwards else "forward"
    output = emit.op(cell.kind, *operands, hidden_size=size, direction=direction, **attributes)
    dims = tuple(reversed(result.shape or ()))
    output = emit.reshape(emit.squeeze(output, 1), 2, dims) if dims != (size,) else emit.squeeze(output, 1)
    emit.rename(output, result.name, start)
    return Operand(result.name, 2, dims)


def _start(delay: Node, constants: Constants, batch: str, size: int, emit: Emitter) -> str:
    """Return a state before the first step, `(1, batch, hidden)`; empty: zeros."""
    initial = constants[delay.input(1)] if len(delay.inputs) > 1 else np.asarray(delay.options["defaultHiddenActivity"])
    if not initial.any():
        return ""
    flat = np.broadcast_to(initial.reshape(-1).astype(np.float32), (size,))
    return emit.expand(emit.constant(np.asarray(flat, emit.dtype)), batch, (size,))
