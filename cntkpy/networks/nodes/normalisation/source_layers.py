"""Batch normalisation as a layer."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.images.source_writing import per_sample
from cntkpy.networks.nodes.source_support.finder import Finder, LayerRule
from cntkpy.networks.nodes.source_support.layers import Layer, Tensor, Unit
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import Value


def _batch_norm(find: Finder, node: Node) -> Unit | None:
    x, *remaining = find.graph.operands(node)
    if not all(find.own(operand) for operand in remaining):
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
    tensors = {name: find.parameter(operand, count) for name, operand in zip(names, remaining, strict=True)}
    for name in names[2:]:
        tensors[name] = replace(tensors[name], buffer=True)
    tensors["num_batches_tracked"] = Tensor(np.zeros((), np.int64), buffer=True)
    constant = float(node.options["normalizationTimeConstant"])
    layer = Layer("norm", module, arguments, tensors, note=f"time constant {constant:g} samples")
    if constant:  # of all samples so far there is no number: the statistics stay
        layer.of_call.append(("time_constant", f"{constant:g}" if 0 < constant < math.inf else "math.inf"))

    def code(use: Use) -> list[Value]:
        value = use.reshaped(use.values[0], dims if spatial else (count,))
        shape = (*dims,) if spatial else (count,)
        result = per_sample(use, value, shape, use.call)
        return [use.finished(result)]

    return Unit([node], [x], code, layer)


LAYERS: dict[str, LayerRule] = {"BatchNormalization": _batch_norm}
