"""Finds the layers of a graph: nodes that are a module of PyTorch together."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.node import Node
from cntkpy.networks.source import recurrent
from cntkpy.networks.source.graph import Graph
from cntkpy.networks.source.layers import Layer, Tensor, Unit
from cntkpy.networks.source.rules import images
from cntkpy.networks.source.rules.images import per_sample
from cntkpy.networks.source.use import Use
from cntkpy.networks.source.values import Dims, NotExpressible, Value, dims_of


def parameter(graph: Graph, node: Node, *dims: int, order: tuple[int, ...] | None = None) -> Tensor:
    """Return a parameter with other axes, then in another order."""

    def arrange(array: np.ndarray) -> np.ndarray:
        shaped = array.reshape(dims)
        return np.ascontiguousarray(shaped if order is None else shaped.transpose(order))

    return Tensor(arrange(graph.value(node)), node if node.is_parameter else None, arrange)


class Recogniser:
    """Finds the layers of a graph.

    Args:
        graph: the graph.
        dropout: the rate of Dropout nodes that have none of their own.
    """

    def __init__(self, graph: Graph, dropout: float) -> None:
        self.graph, self.dropout = graph, dropout
        self.covered: set[Node] = set()

    # ---- what nodes look like

    def own(self, node: Node) -> bool:
        """Return whether a node is a parameter with one user."""
        return self.graph.is_leaf(node) and len(self.graph.users.get(node, [])) == 1

    def inner(self, node: Node) -> bool:
        """Return whether a node has one user, and is no output."""
        users = self.graph.users.get(node, [])
        return len(users) == 1 and node not in map(self.graph.canonical, self.graph.outputs)

    def bias_of(self, node: Node, size: int, axis_dims: Dims) -> tuple[Node, Node] | None:
        """Return the sum that adds a bias to a node, and the bias; None: there is none."""
        if not self.inner(node):
            return None
        user = self.graph.users[node][0]
        if user.operation != "Plus" or user.axis != node.axis:
            return None
        operand = next((source for source in self.graph.operands(user) if source is not node), None)
        if operand is None or not self.own(operand) or self.graph.number(operand) is not None:
            return None
        if math.prod(dims_of(operand)) != size or dims_of(user) != dims_of(node):
            return None
        dims = dims_of(operand)
        return (user, operand) if (1,) * (len(axis_dims) - len(dims)) + dims == axis_dims else None

    # ---- layers

    def layer(self, node: Node) -> Unit | None:
        """Return the layer that begins with a node; None: it is plain code."""
        finder = {
            "Times": self._linear,
            "TransposeTimes": self._transposed_linear,
            "LookupTable": self._lookup,
            "Convolution": self._convolution,
            "BatchNormalization": self._batch_norm,
            "Dropout": self._dropout,
            "OptimizedRNNStack": self._stack,
        }.get(node.operation)
        return finder(node) if finder is not None else None

    def _linear(self, node: Node) -> Unit | None:
        weights, x = self.graph.operands(node)
        if not self.own(weights) or not node.has_layout or int(node.options.get("outputRank", 1)) != 1:
            return None
        if self.graph.is_leaf(x) or self.graph.number(weights) is not None:
            return None
        inner, out = shapes.size((weights.shape or ())[1:]), (weights.shape or (0,))[0]
        tensor = parameter(self.graph, weights, inner, out, order=(1, 0))
        return self._product(node, x, weights, tensor, inner, out)

    def _transposed_linear(self, node: Node) -> Unit | None:
        weights, x = self.graph.operands(node)
        if not self.own(weights) or not node.has_layout or self.graph.is_leaf(x):
            return None
        inner, out = shapes.matrix(weights.shape or ())
        tensor = parameter(self.graph, weights, out, inner)
        return self._product(node, x, weights, tensor, inner, out)

    def _product(self, node: Node, x: Node, weights: Node, tensor: Tensor, inner: int, out: int) -> Unit | None:
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
        if self.is_embedding(node):
            return self._embedding(node, x, weights, tensor)
        both = self.bias_of(node, out, (out,))
        result = both[0] if both is not None else node
        arguments = [("*in_features", str(inner)), ("*out_features", str(out))]
        tensors = {"weight": tensor}
        if both is None:
            arguments.append(("bias", "False"))
        else:
            tensors["bias"] = parameter(self.graph, both[1], out)
            self.covered.add(node)

        def code(use: Use) -> list[Value]:
            value = use.values[0]
            if value.dims[-1:] != (inner,):
                value = use.reshaped(value, (*leading, inner))
            outcome = use.value(f"{use.layer}({value.text})", (*value.dims[:-1], out))
            return [use.finished(outcome)]

        return Unit([result], [x], code, Layer("linear", "nn.Linear", arguments, tensors), covered=[node])

    def is_embedding(self, node: Node) -> bool:
        """Return whether a product picks rows of a table by the words of a sequence."""
        x = self.graph.operands(node)[1]
        if x.operation != "SparseInputValue" or not self.graph.along_time or len(x.shape or ()) != 1:
            return False
        return all(
            user.operation in ("Times", "LookupTable")
            and self.graph.operands(user)[1] is x
            and self.own(self.graph.operands(user)[0])
            and shapes.size((self.graph.operands(user)[0].shape or ())[1:]) == (x.shape or (0,))[0]
            for user in self.graph.users[x]
        )

    def _embedding(self, node: Node, x: Node, weights: Node, tensor: Tensor) -> Unit:
        words, size = (x.shape or (0,))[0], (weights.shape or (0,))[0]
        tensors = {"weight": parameter(self.graph, weights, words, size)}
        layer = Layer("embedding", "nn.Embedding", [("*words", str(words)), ("*features", str(size))], tensors)

        def code(use: Use) -> list[Value]:
            return [use.value(f"{use.layer}({use.values[0].text})", (size,))]

        return Unit([node], [x], code, layer)

    def _lookup(self, node: Node) -> Unit | None:
        table, x = self.graph.operands(node)
        if not self.own(table) or self.graph.is_leaf(x):
            return None
        rows, words = shapes.matrix(table.shape or ())
        blocks = shapes.size(x.shape or ()) // words
        if blocks == 1 and self.is_embedding(node):
            return self._embedding(node, x, table, parameter(self.graph, table, words, rows))
        layer = Layer(
            "embedding",
            "nn.Linear",
            [("*in_features", str(words)), ("*out_features", str(rows)), ("bias", "False")],
            {"weight": parameter(self.graph, table, words, rows, order=(1, 0))},
        )

        def code(use: Use) -> list[Value]:
            flat = use.reshaped(use.values[0], (math.prod(use.values[0].dims),))
            if blocks == 1:
                return [use.value(f"{use.layer}({flat.text})", (rows,))]
            each = use.reshaped(flat, (blocks, words))
            return [use.reshaped(use.value(f"{use.layer}({each.text})", (blocks, rows)), (blocks * rows,))]

        return Unit([node], [x], code, layer)

    def _convolution(self, node: Node) -> Unit | None:
        weights, x = self.graph.operands(node)
        geometry = images.plain_convolution(node)
        if geometry is None or not self.own(weights) or not node.has_layout or not 1 <= len(geometry.kernel) <= 3:
            return None
        dims = images.kernel_dims(node)
        rank, groups = len(geometry.kernel), int(node.options.get("groups", 1) or 1)
        maps, channels = dims[0], dims[1] * groups
        both = self.bias_of(node, maps, (maps, *(1,) * rank))
        arguments = [("*in_channels", str(channels)), ("*out_channels", str(maps))]
        arguments.append(("*kernel_size", images.tuple_text(geometry.kernel)))
        arguments += images.conv_options(geometry, groups)
        tensors = {"weight": parameter(self.graph, weights, *dims)}
        if both is None:
            arguments.append(("bias", "False"))
        else:
            tensors["bias"] = parameter(self.graph, both[1], maps)
            self.covered.add(node)
        result = both[0] if both is not None else node
        sizes = tuple(reversed(x.shape or ()))
        out = tuple(reversed(node.shape or ()))
        padded = images.symmetric(geometry) is None

        def code(use: Use) -> list[Value]:
            image = use.reshaped(use.values[0], sizes)

            def call(text: str) -> str:
                return f"{use.layer}({images.padded_text(text, geometry) if padded else text})"

            return [use.finished(per_sample(use, image, out, call))]

        return Unit([result], [x], code, Layer("conv", f"nn.Conv{rank}d", arguments, tensors), covered=[node])

    def _batch_norm(self, node: Node) -> Unit | None:
        x, *remaining = self.graph.operands(node)
        if not all(self.own(operand) for operand in remaining):
            return None
        dims, spatial = tuple(reversed(node.shape or ())), bool(node.options["spatial"])
        count = dims[0] if spatial else math.prod(dims)
        rank = len(dims) - 1 if spatial else 0
        epsilon = float(node.options["epsilon"])
        if str(node.options["engine"]).lower() == "cudnn":
            epsilon = max(epsilon, 1e-5)
        if rank > 3:
            return None
        module = f"nn.BatchNorm{max(1, rank)}d"
        arguments = [("*num_features", str(count))]
        if not math.isclose(epsilon, 1e-5):
            arguments.append(("eps", f"{epsilon:g}"))
        names = ("weight", "bias", "running_mean", "running_var")
        tensors = {name: parameter(self.graph, operand, count) for name, operand in zip(names, remaining, strict=True)}
        for name in names[2:]:
            tensors[name] = replace(tensors[name], buffer=True)
        tensors["num_batches_tracked"] = Tensor(np.zeros((), np.int64), buffer=True)
        constant = float(node.options["normalizationTimeConstant"])
        layer = Layer("norm", module, arguments, tensors, note=f"time constant {constant:g} samples")

        def code(use: Use) -> list[Value]:
            value = use.reshaped(use.values[0], dims if spatial else (count,))
            shape = (*dims,) if spatial else (count,)
            result = per_sample(use, value, shape, lambda text: f"{use.layer}({text})")
            return [use.finished(result)]

        return Unit([node], [x], code, layer)

    def _dropout(self, node: Node) -> Unit | None:
        rate = node.options.get("rate")
        rate = self.dropout if rate is None else float(rate)
        layer = Layer("dropout", "nn.Dropout", [("*p", f"{rate:g}")])

        def code(use: Use) -> list[Value]:
            return [use.value(f"{use.layer}({use.values[0].text})", use.values[0].dims)]

        return Unit([node], self.graph.operands(node), code, layer)

    def _stack(self, node: Node) -> Unit | None:
        if not self.own(self.graph.operands(node)[0]):
            raise NotExpressible("its weights are shared with other nodes, or computed")
        return recurrent.stack(self.graph, node)
