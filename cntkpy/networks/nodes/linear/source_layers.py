"""Products that are layers."""

from __future__ import annotations

import math

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.source_support.finder import Finder, LayerRule
from cntkpy.networks.nodes.source_support.layers import Layer, Tensor, Unit
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import Value


def _linear(find: Finder, node: Node) -> Unit | None:
    weights, x = find.graph.operands(node)
    if not find.own(weights) or not node.has_layout or int(node.options.get("outputRank", 1)) != 1:
        return None
    if find.graph.is_leaf(x) or find.graph.number(weights) is not None:
        return None
    inner, out = shapes.size((weights.shape or ())[1:]), (weights.shape or (0,))[0]
    tensor = find.parameter(weights, inner, out, order=(1, 0))
    return _product(find, node, x, weights, tensor, inner, out)


def _transposed_linear(find: Finder, node: Node) -> Unit | None:
    weights, x = find.graph.operands(node)
    if not find.own(weights) or not node.has_layout or find.graph.is_leaf(x):
        return None
    inner, out = shapes.matrix(weights.shape or ())
    tensor = find.parameter(weights, out, inner)
    return _product(find, node, x, weights, tensor, inner, out)


def _product(find: Finder, node: Node, x: Node, weights: Node, tensor: Tensor, inner: int, out: int) -> Unit | None:
    remainder = shapes.size(x.shape or ()) // inner
    tail = tuple(reversed(x.shape or ()))[: len(x.shape or ())]
    if remainder > 1:
        kept = 1
        for count in range(len(tail)):
            if shapes.size(tail[count:]) == inner:
                kept = count
                break
        else:
            return None
        leading = tail[:kept]
    else:
        leading = ()
    if find.is_embedding(node):
        return _embedding(find, node, x, weights, tensor)
    both = find.bias_of(node, out, (out,))
    result = both[0] if both is not None else node
    arguments = [("*in_features", str(inner)), ("*out_features", str(out))]
    tensors = {"weight": tensor}
    if both is None:
        arguments.append(("bias", "False"))
    else:
        tensors["bias"] = find.parameter(both[1], out)

    def code(use: Use) -> list[Value]:
        value = use.values[0]
        if value.dims[-1:] != (inner,):
            value = use.reshaped(value, (*leading, inner))
        outcome = use.value(use.call(value.text), (*value.dims[:-1], out))
        return [use.finished(outcome)]

    return Unit([result], [x], code, Layer("linear", "nn.Linear", arguments, tensors), covered=[node])


def _embedding(find: Finder, node: Node, x: Node, weights: Node, tensor: Tensor) -> Unit:
    words, size = (x.shape or (0,))[0], (weights.shape or (0,))[0]
    tensors = {"weight": find.parameter(weights, words, size)}
    layer = Layer("embedding", "nn.Embedding", [("*words", str(words)), ("*features", str(size))], tensors)

    def code(use: Use) -> list[Value]:
        return [use.value(use.call(use.values[0].text), (size,))]

    return Unit([node], [x], code, layer)


def _lookup(find: Finder, node: Node) -> Unit | None:
    table, x = find.graph.operands(node)
    if not find.own(table) or find.graph.is_leaf(x):
        return None
    rows, words = shapes.matrix(table.shape or ())
    blocks = shapes.size(x.shape or ()) // words
    if blocks == 1 and find.is_embedding(node):
        return _embedding(find, node, x, table, find.parameter(table, words, rows))
    layer = Layer(
        "embedding",
        "nn.Linear",
        [("*in_features", str(words)), ("*out_features", str(rows)), ("bias", "False")],
        {"weight": find.parameter(table, words, rows, order=(1, 0))},
    )

    def code(use: Use) -> list[Value]:
        flat = use.reshaped(use.values[0], (math.prod(use.values[0].dims),))
        if blocks == 1:
            return [use.value(use.call(flat.text), (rows,))]
        each = use.reshaped(flat, (blocks, words))
        return [use.reshaped(use.value(use.call(each.text), (blocks, rows)), (blocks * rows,))]

    return Unit([node], [x], code, layer)


LAYERS: dict[str, LayerRule] = {"Times": _linear, "TransposeTimes": _transposed_linear, "LookupTable": _lookup}
