"""Layers of OptimizedRNNStack in double precision, in which runtimes have no LSTM, GRU and RNN: one Scan for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cntkpy.networks.nodes.onnx_support.graph import Emitter, Port
from cntkpy.networks.nodes.onnx_support.lengths import steps_of_batch

BATCH = "batch"


class Weights(NamedTuple):
    """The parameters of one direction, all gates in the order of the stack.

    Attributes:
        from_input: `(gates, hidden, inputs)`.
        from_state: `(gates, hidden, hidden)`.
        biases: of input and state, `(2, gates, hidden)`.
    """

    from_input: np.ndarray
    from_state: np.ndarray
    biases: np.ndarray


Gates = list[str]
Step = Callable[[Emitter, Gates, Gates, list[str]], list[str]]
"""`(emit, parts of the input, parts of the state, states before) -> states`; the first is the result."""


def _lstm(emit: Emitter, x: Gates, h: Gates, states: list[str]) -> list[str]:
    take, keep, candidate, show = (emit.op("Add", a, b) for a, b in zip(x, h, strict=True))
    kept = emit.op("Mul", emit.op("Sigmoid", keep), states[1])
    cell = emit.op("Add", kept, emit.op("Mul", emit.op("Sigmoid", take), emit.op("Tanh", candidate)))
    return [emit.op("Mul", emit.op("Sigmoid", show), emit.op("Tanh", cell)), cell]


def _gru(emit: Emitter, x: Gates, h: Gates, states: list[str]) -> list[str]:
    reset, update = (emit.op("Sigmoid", emit.op("Add", a, b)) for a, b in zip(x[:2], h[:2], strict=True))
    candidate = emit.op("Tanh", emit.op("Add", x[2], emit.op("Mul", reset, h[2])))
    new = emit.op("Mul", emit.op("Sub", emit.real(1), update), candidate)
    return [emit.op("Add", new, emit.op("Mul", update, states[0]))]


def _plain(kind: str) -> Step:
    return lambda emit, x, h, states: [emit.op(kind, emit.op("Add", x[0], h[0]))]


STEPS: dict[str, tuple[int, Step]] = {
    "lstm": (2, _lstm),
    "gru": (1, _gru),
    "rnntanh": (1, _plain("Tanh")),
    "rnnrelu": (1, _plain("Relu")),
}
"""By `recurrentOp` in lower case: how many states there are, and what a step computes."""


def layer(emit: Emitter, unit: str, x: str, weights: Weights, backwards: bool, lengths: str | None) -> str:
    """Return one direction of a layer: `(T, N, inputs)` becomes `(T, N, hidden)`."""
    count, step = STEPS[unit]
    gates, hidden, inputs = weights.from_input.shape
    matrix = emit.constant(weights.from_input.reshape(-1, inputs).T)
    known = emit.op("Add", emit.op("MatMul", x, matrix), emit.constant(weights.biases[0].reshape(-1)))
    start = emit.expand(emit.real(0), emit.op("Shape", x, start=1, end=2), [hidden])
    recurrent = emit.constant(weights.from_state.reshape(-1, hidden).T)
    bias = emit.constant(weights.biases[1].reshape(-1))

    body = emit.body(f"{emit.owner}/body")
    body.owner = body.graph.name
    states = [body.names.take(f"{body.owner}/state") for _ in range(count)]
    now = body.names.take(f"{body.owner}/input")
    number = body.names.take(f"{body.owner}/step")
    sums = body.op("Add", body.op("MatMul", states[0], recurrent), bias)
    parts = [
        [body.slice(value, -1, gate * hidden, (gate + 1) * hidden) for gate in range(gates)] for value in (now, sums)
    ]
    after = step(body, parts[0], parts[1], states)
    if lengths is not None and backwards:
        there = body.unsqueeze(body.op("Less", number, lengths), 1)
        after = [body.op("Where", there, state, start) for state in after]
    ports = body.graph
    ports.inputs += [Port(state, (BATCH, hidden)) for state in states] + [Port(now, (BATCH, gates * hidden))]
    ports.outputs += [Port(body.op("Identity", state), (BATCH, hidden)) for state in (*after, after[0])]
    scanned = [known]
    if lengths is not None and backwards:
        ports.inputs.append(Port(number, (), "integer"))
        scanned.append(steps_of_batch(emit, known))
    results = emit.several(
        "Scan",
        [*[start] * count, *scanned],
        count + 1,
        body=body.graph,
        num_scan_inputs=len(scanned),
        scan_input_directions=[int(backwards)] * len(scanned),
        scan_output_directions=[int(backwards)],
    )
    return results[-1]
