"""Loops of delay nodes that are LSTMs, GRUs or plain units."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.onnx_support.graph import NotExpressible as NotExported
from cntkpy.networks.nodes.recurrence.source_writing import Run, run_layer
from cntkpy.networks.nodes.source_support.layers import Joined, Layer, State, Tensor, Unit
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import NotExpressible, Value, dims_of
from cntkpy.networks.onnx import cells
from cntkpy.networks.onnx.affine import Scope, affine
from cntkpy.networks.source.graph import Graph

if TYPE_CHECKING:
    from cntkpy.networks.onnx.cells import Cell

_GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
"""For each gate in the order of PyTorch, its place in the order of ONNX."""


# ---- loops


def recognised(graph: Graph, loop: list[Node]) -> Unit | None:
    """Return the layer that a loop of delay nodes is; None: it is none of PyTorch's."""
    constants = {
        node: graph.value(node)
        for component in graph.components
        for node in component
        if graph.is_leaf(node) or node in graph.constants
    }
    plan = _Known(graph)
    cell = cells.recognised(loop, plan, constants)  # pyright: ignore[reportArgumentType]
    if cell is not None and cell.peepholes is None and (cell.kind == "LSTM" or cell.after):

        def arrays(constants: Constants) -> dict[str, np.ndarray]:
            same = cells.recognised(loop, plan, constants)  # pyright: ignore[reportArgumentType]
            return {} if same is None else _arrays_of(same)

        return _layer(graph, cell, constants, loop, _joined_parameters(graph, constants, arrays))
    return _running_sum(graph, loop) or _plain(graph, loop, constants)


def _running_sum(graph: Graph, loop: list[Node]) -> Unit | None:
    """Return the unit of a loop h = x + h', which begins with 0; None: it is none."""
    delays = [node for node in loop if node.operation == "PastValue"]
    sums = [node for node in loop if node.operation == "Plus"]
    if len(loop) != 2 or len(delays) != 1 or len(sums) != 1 or int(delays[0].options["timeStep"]) != 1:
        return None
    delay, total = delays[0], sums[0]
    initial = float(delay.options["defaultHiddenActivity"])
    if len(delay.inputs) > 1:
        initial = graph.number(graph.canonical(delay.input(1)))
    x = next((source for source in graph.operands(total) if source is not delay), None)
    if initial != 0 or x is None or not x.has_layout or x.axis != total.axis or dims_of(x) != dims_of(total):
        return None
    if any(user is not total for user in graph.users[delay]) or delay in map(graph.canonical, graph.outputs):
        return None
    return Unit([total], [x], lambda use: [use.value(f"{use[0]}.cumsum(1)", use.values[0].dims)], covered=loop)


Constants = dict[Node, np.ndarray]


def _joined_parameters(
    graph: Graph, constants: Constants, arrays: Callable[[Constants], dict[str, np.ndarray]]
) -> dict[str, Joined]:
    """Return the parts of the tensors of a recurrent layer, by their names; sums of parameters are left out.

    The layer is made once more with numbers of elements in the place of their values, and once with random numbers,
    which tells copies from sums.
    """
    sources = [node for node in constants if node.is_parameter and graph.number(node) is None]
    sizes = [constants[node].size for node in sources]
    starts = np.cumsum([1, *sizes])
    drawn = np.concatenate([np.zeros(1), np.random.default_rng(7).normal(size=int(starts[-1]) - 1)])

    def made(values: np.ndarray) -> dict[str, np.ndarray]:
        replaced = {
            node: values[first : first + size].reshape(constants[node].shape)
            for node, first, size in zip(sources, starts, sizes, strict=False)
        }
        return arrays({**constants, **replaced})

    places, values = made(np.arange(starts[-1], dtype=np.float64)), made(drawn)
    result: dict[str, Joined] = {}
    for name, place in places.items():
        index = np.rint(place).astype(np.int64)
        copies = (index == place).all() and ((index >= 0) & (index < starts[-1])).all()
        if copies and name in values and np.array_equal(drawn[index], values[name]):
            result[name] = _joined_of(sources, sizes, index - 1)
    return result


class _Known:
    """The part of a plan that the recognition of cells reads: outputs and users, without copies of nodes."""

    def __init__(self, graph: Graph) -> None:
        self.outputs = [graph.canonical(node) for node in graph.outputs]
        self.users = graph.users


def _joined_of(sources: list[Node], sizes: list[int], index: np.ndarray) -> Joined:
    """Return an index without the parameters that it does not mention."""
    used, kept, begin = list[Node](), np.full_like(index, -1), 0
    first = 0
    for node, size in zip(sources, sizes, strict=True):
        inside = (index >= begin) & (index < begin + size)
        if inside.any():
            kept[inside] = index[inside] - begin + first
            used.append(node)
            first += size
        begin += size
    return Joined(tuple(used), kept)


def _arrays_of(cell: Cell) -> dict[str, np.ndarray]:
    """Return the tensors of a cell in the order of PyTorch."""
    size = cell.recurrence.shape[1]
    order = list(_GATES[cell.kind])
    return {
        "weight_ih_l0": cell.weights[order].reshape(len(order) * size, -1),
        "weight_hh_l0": cell.recurrence[order].reshape(len(order) * size, size),
        "bias_ih_l0": cell.biases[0][order].reshape(-1),
        "bias_hh_l0": cell.biases[1][order].reshape(-1),
    }


def _tensors(
    arrays: dict[str, np.ndarray], joined: dict[str, Joined], dtype: np.dtype[np.generic]
) -> dict[str, Tensor]:
    return {name: Tensor(np.ascontiguousarray(array, dtype), joined=joined.get(name)) for name, array in arrays.items()}


def _layer(graph: Graph, cell: Cell, constants: Constants, loop: list[Node], joined: dict[str, Joined]) -> Unit:
    size = cell.recurrence.shape[1]
    arrays = _arrays_of(cell)
    columns = arrays["weight_ih_l0"].shape[1]
    arguments = [("*input_size", str(columns)), ("*hidden_size", str(size)), ("batch_first", "True")]
    made = _tensors(arrays, joined, next(iter(constants.values())).dtype)
    layer = Layer(cell.kind.lower(), f"nn.{cell.kind}", arguments, made, note="its weights are joined", recurrent=True)
    return _unit(graph, cell.result, list(cell.inputs), list(cell.states), layer, size, loop, constants)


def joined_directions(graph: Graph, node: Node, layers: dict[Node, Unit]) -> Unit | None:
    """Return the layer of both directions that two layers are, whose results are joined; None: they are not that.

    Args:
        graph: the graph.
        node: what joins the results.
        layers: the recurrent layers by their results.
    """
    operands = graph.operands(node)
    if node.operation != "RowStack" or len(operands) != 2 or not all(item in layers for item in operands):
        return None
    outputs = {graph.canonical(output) for output in graph.outputs}
    ahead, back = (layers[item] for item in operands)
    for item, unit in zip(operands, (ahead, back), strict=True):
        if item in outputs or [user for user in graph.users[item] if user not in unit.covered] != [node]:
            return None
    first, second = ahead.layer, back.layer
    if first is None or second is None or ahead.operands != back.operands or first.signature != second.signature:
        return None
    if (
        ahead.state is None
        or back.state is None
        or [value for _, value in first.arguments] != [value for _, value in second.arguments]
    ):
        return None
    if (ahead.state.backwards, back.state.backwards) != (False, True) or ahead.state.initial != back.state.initial:
        return None
    if any(value for value in ahead.state.initial):
        return None
    size = ahead.state.size
    tensors = {**first.tensors, **{f"{name}_reverse": tensor for name, tensor in second.tensors.items()}}
    arguments = [*first.arguments, ("bidirectional", "True")]
    cell = cell_of(first)
    layer = Layer(first.hint, first.module, arguments, tensors, first.note, recurrent=True)

    def code(use: Use) -> list[Value]:
        return [use.finished(run_layer(use, _joined(use), Run(cell, 2 * size, both=True)))]

    return Unit([node], ahead.operands, code, layer, covered=[*ahead.covered, *back.covered])


def cell_of(layer: Layer) -> str:
    """Return the word for the cell of a layer."""
    return "rnn_relu" if ("nonlinearity", '"relu"') in layer.arguments else layer.hint


def _joined(use: Use) -> Value:
    """Return the operands as one vector."""
    parts = [use.reshaped(value, (math.prod(value.dims),)) for value in use.values]
    if len(parts) == 1:
        return parts[0]
    text = use.say("join", ", ".join(part.text for part in parts))
    return use.value(text, (sum(part.dims[0] for part in parts),))


def _unit(
    graph: Graph,
    result: Node,
    inputs: list[Node],
    states: list[Node],
    layer: Layer,
    size: int,
    loop: list[Node],
    constants: dict[Node, np.ndarray],
) -> Unit:
    backwards = states[0].kind.time.delay > 0
    initial = [_start(delay, constants) for delay in states]

    flat = [array.reshape(-1) for array in initial]
    same = tuple(float(array[0]) if np.all(array == array[0]) else math.nan for array in flat)
    cell = cell_of(layer)

    def code(use: Use) -> list[Value]:
        if any(math.isnan(first) for first in same):
            raise NotExpressible("its state begins with several values")
        run = Run(cell, size, backwards=backwards, starts=same if any(same) else ())
        return [use.finished(run_layer(use, _joined(use), run))]

    return Unit([result], inputs, code, layer, covered=loop, state=State(backwards, size, same))


def _start(delay: Node, constants: dict[Node, np.ndarray]) -> np.ndarray:
    if len(delay.inputs) > 1:
        return np.asarray(constants[delay.input(1)], np.float64)
    return np.asarray(float(delay.options["defaultHiddenActivity"]))


def _plain(graph: Graph, loop: list[Node], constants: dict[Node, np.ndarray]) -> Unit | None:
    """h = tanh (W x + R h' + b), or with the positive part."""
    delays = [node for node in loop if node.kind.time.delay]
    if len(delays) != 1 or int(delays[0].options["timeStep"]) != 1:
        return None
    state = delays[0]
    if state.inputs[1:] and state.input(1) not in constants:
        return None
    h = graph.canonical(state.input(0))
    if h.operation not in ("Tanh", "RectifiedLinear"):
        return None
    used = {node for node in loop if any(user not in loop for user in graph.users.get(node, []))}
    used |= {node for node in loop if node in map(graph.canonical, graph.outputs)}
    if used != {h}:
        return None
    try:
        total = affine(h.input(0), Scope(set(loop), {state, h}, constants))
    except NotExported:
        return None
    recurrence = total.matrices.pop(state, None)
    inputs = list(total.matrices)
    if recurrence is None or not inputs or any(node in loop or not node.has_layout for node in inputs):
        return None
    if any(node.axis != state.axis or node.operation == "SparseInputValue" for node in inputs):
        return None
    size = len(recurrence)

    def arrays(constants: Constants) -> dict[str, np.ndarray]:
        same = affine(h.input(0), Scope(set(loop), {state, h}, constants))
        recurrence = same.matrices.pop(state)
        return {
            "weight_ih_l0": np.concatenate([same.matrices[node] for node in inputs], axis=1),
            "weight_hh_l0": recurrence,
            "bias_ih_l0": same.bias,
            "bias_hh_l0": np.zeros(size),
        }

    columns = sum(total.matrices[node].shape[1] for node in inputs)
    arguments = [("*input_size", str(columns)), ("*hidden_size", str(size))]
    if h.operation == "RectifiedLinear":
        arguments.append(("nonlinearity", '"relu"'))
    arguments.append(("batch_first", "True"))
    dtype = next(iter(constants.values())).dtype
    tensors = _tensors(arrays(constants), _joined_parameters(graph, constants, arrays), dtype)
    layer = Layer("rnn", "nn.RNN", arguments, tensors, note="its weights are joined", recurrent=True)
    return _unit(graph, h, inputs, [state], layer, size, loop, constants)
