"""Convolutions that are layers."""

from __future__ import annotations

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.images.source_sizes import tuple_text
from cntkpy.networks.nodes.images.source_writing import kernel_dims, options_of, per_sample, plain_convolution
from cntkpy.networks.nodes.source_support.finder import Finder, LayerRule
from cntkpy.networks.nodes.source_support.layers import Layer, Unit
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import Value


def _convolution(find: Finder, node: Node) -> Unit | None:
    weights, x = find.graph.operands(node)
    geometry = plain_convolution(node)
    if geometry is None or not find.own(weights) or not node.has_layout or not 1 <= len(geometry.kernel) <= 3:
        return None
    dims = kernel_dims(node)
    rank, groups = len(geometry.kernel), int(node.options.get("groups", 1) or 1)
    maps, channels = dims[0], dims[1] * groups
    both = find.bias_of(node, maps, (maps, *(1,) * rank))
    arguments = [("*in_channels", str(channels)), ("*out_channels", str(maps))]
    arguments.append(("*kernel_size", tuple_text(geometry.kernel)))
    arguments += options_of(find.dialect, geometry, groups)
    tensors = {"weight": find.parameter(weights, *dims)}
    if both is None:
        arguments.append(("bias", "False"))
    else:
        tensors["bias"] = find.parameter(both[1], maps)
    result = both[0] if both is not None else node
    sizes = tuple(reversed(x.shape or ()))
    out = tuple(reversed(node.shape or ()))

    def code(use: Use) -> list[Value]:
        image = use.reshaped(use.values[0], sizes)

        def call(text: str) -> str:
            return use.call(use.say("padded_for_layer", text, geometry))

        return [use.finished(per_sample(use, image, out, call))]

    return Unit([result], [x], code, Layer("conv", f"nn.Conv{rank}d", arguments, tensors), covered=[node])


LAYERS: dict[str, LayerRule] = {"Convolution": _convolution}
