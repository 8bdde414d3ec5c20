"""A stack of recurrent layers with all weights in one parameter, in the order in which cuDNN keeps them.

For each layer, and for each direction of a bidirectional one: for each gate the weights of the input, then for each
gate those of the state. After the weights of all layers come, again for each layer and direction, the biases: for each
gate that of the input, then for each gate that of the state. Each matrix is stored row by row. The gates of an LSTM are
input, forget, candidate, output; those of a GRU reset, update, candidate.

Specified in docs/specification/brainscript-library.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.arrays.products import dot
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.declare import BOOLEAN, INTEGER, TEXT, Argument, NodeKind, Option, RecordForm, TimeRule

if TYPE_CHECKING:
    from cntkpy.networks.graph.node import Node
    from cntkpy.networks.nodes.call import Call

State = tuple[Array, ...]


class Layer(NamedTuple):
    """One direction of one layer.

    Attributes:
        inputs: elements of what comes in.
        backwards: from the last step to the first.
        weights, biases: where they begin in the parameter.
    """

    inputs: int
    backwards: bool
    weights: int
    biases: int


class Cell(NamedTuple):
    """One kind of unit.

    Attributes:
        gates: how many matrices it has of each sort.
        states: how many arrays it hands on; the first is its result.
        step: `(from the input, from the state, the state before) -> state`; the first two are per gate.
    """

    gates: int
    states: int
    step: Callable[[list[Array], list[Array], State], State]


def _lstm(x: list[Array], h: list[Array], state: State) -> State:
    take, keep, candidate, show = (a + b for a, b in zip(x, h, strict=True))
    cell = jax.nn.sigmoid(keep) * state[1] + jax.nn.sigmoid(take) * jnp.tanh(candidate)
    return jax.nn.sigmoid(show) * jnp.tanh(cell), cell


def _gru(x: list[Array], h: list[Array], state: State) -> State:
    reset, update = jax.nn.sigmoid(x[0] + h[0]), jax.nn.sigmoid(x[1] + h[1])
    candidate = jnp.tanh(x[2] + reset * h[2])
    return ((1 - update) * candidate + update * state[0],)


def _plain(function: Callable[[Array], Array]) -> Callable[[list[Array], list[Array], State], State]:
    return lambda x, h, state: (function(x[0] + h[0]),)


CELLS = {
    "lstm": Cell(4, 2, _lstm),
    "gru": Cell(3, 1, _gru),
    "rnnTanh": Cell(1, 1, _plain(lambda x: jnp.tanh(x))),
    "rnnReLU": Cell(1, 1, _plain(lambda x: jnp.maximum(x, 0))),
}


def cell_of(options: dict[str, object]) -> Cell:
    """Return the units that the options of an OptimizedRNNStack name."""
    return next(cell for name, cell in CELLS.items() if name.lower() == str(options["recurrentOp"]).lower())


def _prepare(options: dict[str, int | str]) -> None:
    if str(options["recurrentOp"]).lower() not in (name.lower() for name in CELLS):
        raise ShapeProblem(f"'{options['recurrentOp']}' is no recurrentOp", "possible: " + ", ".join(CELLS))
    if int(options["hiddenDims"]) < 1 or int(options["numLayers"]) < 1:
        raise ShapeProblem("hiddenDims and numLayers must be at least 1")
    if int(options["axis"]) not in (-1, 2):
        raise ShapeProblem("axis must be -1 (time) or 2 (the second axis of a sample)")


def layers_of(node: Node, inputs: int) -> tuple[list[Layer], int]:
    """Return all directions of all layers of an OptimizedRNNStack, and how many elements its parameter has.

    inputs: elements of a step of its operand.
    """
    options = node.options
    gates, hidden = cell_of(options).gates, int(options["hiddenDims"])
    ways = (False, True) if options["bidirectional"] else (False,)
    sizes = [(inputs if index == 0 else hidden * len(ways)) for index in range(int(options["numLayers"]))]
    weights = 0
    biases = sum(gates * hidden * (size + hidden) for size in sizes) * len(ways)
    layers: list[Layer] = []
    for size in sizes:
        for backwards in ways:
            layers.append(Layer(size, backwards, weights, biases))
            weights += gates * hidden * (size + hidden)
            biases += 2 * gates * hidden
    return layers, biases


def _weights_shape(shape: Shape | None, hidden: int, total: int) -> Shape:
    """Return the shape of the weights: the only axis that is not given has what is left; else a row for each unit."""
    known = math.prod(size for size in shape or () if size)
    if shape and shape.count(0) == 1 and total % known == 0:
        return tuple(size or total // known for size in shape)
    return (hidden, total // hidden)


def _shape(node: Node) -> Shape | None:
    """As x with hiddenDims elements on the first axis, twice as many if it is bidirectional."""
    weights, x = node.input(0), node.input(1)
    rules.constants(weights)
    if x.shape is None or 0 in x.shape:
        return None
    along_axis = int(node.options["axis"]) == 2
    if not along_axis:
        rules.carrying_data(x)
    if len(shapes.trimmed(x.shape)) > (2 if along_axis else 1):
        raise ShapeProblem("each step must be a vector")
    hidden = int(node.options["hiddenDims"])
    total = layers_of(node, x.shape[0])[1]
    rules.infer(weights, _weights_shape(weights.shape, hidden, total))
    if weights.shape is not None and 0 not in weights.shape and shapes.size(weights.shape) != total:
        message = f"the weights must have {total} elements, of shape [{hidden} x {total // hidden}]"
        raise ShapeProblem(message, "give the parameter the dimensions (0 : 0)")
    return (hidden * (1 + bool(node.options["bidirectional"])), *x.shape[1:])


def _parts(flat: Array, begin: int, gates: int, hidden: int, width: int) -> tuple[list[Array], int]:
    """Return a matrix for each gate, transposed, and where the next begin."""
    size = hidden * width
    matrices = [flat[begin + gate * size : begin + (gate + 1) * size].reshape(hidden, width).T for gate in range(gates)]
    return matrices, begin + gates * size


def _halves(flat: Array, begin: int, gates: int, hidden: int) -> Iterator[list[Array]]:
    """Yield the biases of the input, and those of the state."""
    for half in range(2):
        start = begin + half * gates * hidden
        yield [flat[start + gate * hidden : start + (gate + 1) * hidden] for gate in range(gates)]


class Direction(NamedTuple):
    """The arrays of one direction of one layer.

    Attributes:
        backwards: from the last step to the first.
        from_input: for each gate a matrix (inputs, hidden) that rows are multiplied by.
        from_state: for each gate one (hidden, hidden).
        input_bias, state_bias: for each gate a vector (hidden,).
    """

    backwards: bool
    from_input: list[Array]
    from_state: list[Array]
    input_bias: list[Array]
    state_bias: list[Array]


def directions(node: Node, flat: Any) -> list[Direction]:
    """Return the arrays that the parameter of a stack holds, for all directions of all layers in their order.

    Args:
        node: the stack; the shape of its operand is known.
        flat: the parameter as a vector.
    """
    gates, hidden = cell_of(node.options).gates, int(node.options["hiddenDims"])
    x = node.input(1)
    assert x.shape is not None
    directions: list[Direction] = []
    for layer in layers_of(node, x.shape[0])[0]:
        from_input, end = _parts(flat, layer.weights, gates, hidden, layer.inputs)
        from_state, _ = _parts(flat, end, gates, hidden, hidden)
        input_bias, state_bias = _halves(flat, layer.biases, gates, hidden)
        directions.append(Direction(layer.backwards, from_input, from_state, input_bias, state_bias))
    return directions


def _run(cell: Cell, layer: Layer, flat: Array, hidden: int, x: Array, fresh: Array) -> Array:
    """Return one direction of one layer over `(T, S, n)`; `fresh` `(T, S)`: where a sequence begins for it."""
    from_input, end = _parts(flat, layer.weights, cell.gates, hidden, layer.inputs)
    from_state, _ = _parts(flat, end, cell.gates, hidden, hidden)
    input_bias, state_bias = _halves(flat, layer.biases, cell.gates, hidden)
    shape = (*x.shape[:2], hidden)
    rows = x.reshape(-1, layer.inputs)
    known = [(dot(rows, matrix) + bias).reshape(shape) for matrix, bias in zip(from_input, input_bias, strict=True)]

    def step(state: State, now: tuple[list[Array], Array]) -> tuple[State, Array]:
        x_now, begins = now
        state = tuple(jnp.where(begins[:, None], jnp.zeros_like(value), value) for value in state)
        h = [dot(state[0], matrix) + bias for matrix, bias in zip(from_state, state_bias, strict=True)]
        after = cell.step(x_now, h, state)
        return after, after[0]

    start = tuple(jnp.zeros((x.shape[1], hidden), x.dtype) for _ in range(cell.states))
    return jax.lax.scan(step, start, (known, fresh), reverse=layer.backwards)[1]


def _starts(call: Call, x: Array, backwards: bool) -> Array:
    """Return the steps where a sequence begins (for a backward layer: ends); gaps start over, too."""
    context = call.context
    distance = context.to_end if backwards else context.to_start
    if distance is None or int(call.options["axis"]) == 2:
        edge = x.shape[0] - 1 if backwards else 0
        every = int(call.options["axis"]) != 2 and distance is None
        steps = jnp.arange(x.shape[0])[:, None]
        return jnp.broadcast_to((steps == edge) | every, x.shape[:2])
    return distance <= 0


def _forward(call: Call, weights: Array, x: Array) -> Array:
    node, options = call.node, call.options
    cell, hidden = cell_of(options), int(options["hiddenDims"])
    along_axis, shape = int(options["axis"]) == 2, x.shape
    width = node.input(1).shape[0]
    if along_axis:  # (..., steps, n): the cells of the minibatch are independent of each other
        x = x.reshape(-1, math.prod(node.input(1).shape[1:]), width).swapaxes(0, 1)
    else:
        x = call.masked(x.reshape(*shape[:2], width))
    flat = weights.reshape(-1)
    every, _ = layers_of(node, width)
    ways = 1 + bool(options["bidirectional"])
    for first in range(0, len(every), ways):
        outputs = [
            _run(cell, direction, flat, hidden, x, _starts(call, x, direction.backwards))
            for direction in every[first : first + ways]
        ]
        x = jnp.concatenate(outputs, axis=-1)
    if along_axis:
        x = x.swapaxes(0, 1)
    lead = shape[:2] if node.has_layout else ()
    return x.reshape(*lead, *reversed(node.shape))


KINDS = [
    NodeKind(
        "OptimizedRNNStack",
        ((Argument("weights"), Argument("x")),),
        "A stack of layers of LSTMs, GRUs or plain recurrent units with all weights in one parameter, in the order of "
        "cuDNN. It runs on every device.",
        "LSTM: c = f c' + i tanh(g), h = o tanh(c); GRU: h = (1 - u) tanh(x + r h') + u h'",
        _shape,
        _forward,
        options=(
            Option("hiddenDims", INTEGER, 1, "elements of the state of each layer and direction"),
            Option("numLayers", INTEGER, 1, "how many layers"),
            Option("bidirectional", BOOLEAN, False, "each layer also runs from the last step to the first"),
            Option("recurrentOp", TEXT, "lstm", "the units", tuple(CELLS)),
            Option("axis", INTEGER, -1, "what the steps are: -1 time, 2 the second axis of a sample"),
        ),
        prepare=_prepare,
        width="short",
        time=TimeRule(reduces_time=True),
        record=RecordForm(optional=("axis",)),
        example="h = OptimizedRNNStack(Parameter(5, 0), x, hiddenDims=5)",
    )
]
