"""Dropout as a layer."""

from __future__ import annotations

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.source_support.finder import Finder, LayerRule
from cntkpy.networks.nodes.source_support.layers import Layer, Unit
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import Value


def _dropout(find: Finder, node: Node) -> Unit | None:
    rate = node.options.get("rate")
    rate = find.dropout if rate is None else float(rate)
    layer = Layer("dropout", "nn.Dropout", [("*p", f"{rate:g}")])

    def code(use: Use) -> list[Value]:
        return [use.value(use.call(use.values[0].text), use.values[0].dims)]

    return Unit([node], find.graph.operands(node), code, layer)


LAYERS: dict[str, LayerRule] = {"Dropout": _dropout}
