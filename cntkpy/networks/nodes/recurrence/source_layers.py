"""Stacks of recurrent layers as layers."""

from __future__ import annotations

import math

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.images.source_writing import per_sample
from cntkpy.networks.nodes.recurrence.source_writing import Run, run_layer
from cntkpy.networks.nodes.recurrence.stack import cell_of, layers_of
from cntkpy.networks.nodes.source_support.finder import Finder, GraphView, LayerRule
from cntkpy.networks.nodes.source_support.layers import Layer, Tensor, Unit
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import NotExpressible, Value

_MODULES = {"lstm": "nn.LSTM", "gru": "nn.GRU", "rnntanh": "nn.RNN", "rnnrelu": "nn.RNN"}


def _stack(find: Finder, node: Node) -> Unit | None:
    """Return the layer of an OptimizedRNNStack, whose parameter has the order of cuDNN, which is that of PyTorch."""
    graph = find.graph
    weights, x = graph.operands(node)
    if not find.own(weights):
        raise NotExpressible("its weights are shared with other nodes, or computed")
    inputs, hidden = (x.shape or (0,))[0], int(node.options["hiddenDims"])
    gates, ways = cell_of(node.options).gates, 1 + bool(node.options["bidirectional"])
    kind = str(node.options["recurrentOp"]).lower()
    depth = int(node.options["numLayers"])
    arguments = [("*input_size", str(inputs)), ("*hidden_size", str(hidden))]
    if depth > 1:
        arguments.append(("num_layers", str(depth)))
    if kind == "rnnrelu":
        arguments.append(("nonlinearity", '"relu"'))
    arguments.append(("batch_first", "True"))
    if ways == 2:
        arguments.append(("bidirectional", "True"))
    tensors: dict[str, Tensor] = {}
    for place, layer in enumerate(layers_of(node, inputs)[0]):
        suffix = f"l{place // ways}" + ("_reverse" if layer.backwards else "")
        begin, size = layer.weights, gates * hidden
        parts = (
            ("weight_ih", begin, (size, layer.inputs)),
            ("weight_hh", begin + size * layer.inputs, (size, hidden)),
            ("bias_ih", layer.biases, (size,)),
            ("bias_hh", layer.biases + size, (size,)),
        )
        for name, first, dims in parts:
            tensors[f"{name}_{suffix}"] = _piece(graph, weights, first, dims)
    module = _MODULES[kind]
    layer_ = Layer(module[3:].lower(), module, arguments, tensors, recurrent=True)

    run = Run("rnn_relu" if kind == "rnnrelu" else layer_.hint, hidden * ways, depth, ways == 2)

    def code(use: Use) -> list[Value]:
        if int(node.options["axis"]) == 2:  # the steps are an axis of the sample
            steps = (x.shape or (1, 1))[1]
            value = use.reshaped(use.values[0], (steps, inputs))

            def call(text: str) -> str:
                return use.say("recurrent_layer_of_sample", text, run)

            return [use.finished(per_sample(use, value, (steps, hidden * ways), call))]
        return [run_layer(use, use.reshaped(use.values[0], (inputs,)), run)]

    return Unit([node], [x], code, layer_)


def _piece(graph: GraphView, node: Node, first: int, dims: tuple[int, ...]) -> Tensor:
    def arrange(array: np.ndarray) -> np.ndarray:
        return array.reshape(-1)[first : first + math.prod(dims)].reshape(dims)

    return Tensor(arrange(graph.value(node)), node, arrange)


LAYERS: dict[str, LayerRule] = {"OptimizedRNNStack": _stack}
