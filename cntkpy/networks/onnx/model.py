"""An exported graph as an ONNX model, by the package `onnx`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cntkpy.networks.nodes.onnx_support.graph import Graph, Operator, Port
from cntkpy.networks.onnx.export import Exported
from cntkpy.networks.onnx.package import onnx

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

    from cntkpy.networks.graph.node import Node

IR_VERSION = 8
"""Of the file format: what runtimes of 2022 read."""


def to_model(exported: Exported, version: str, metadata: Mapping[str, str]) -> ModelProto:
    """Return an `onnx.ModelProto`.

    Args:
        exported: the graph.
        version: of this package.
        metadata: further texts, by name.

    Raises:
        UserError: the package `onnx` is not installed.
    """
    helper = onnx().helper
    convert = _Conversion(exported.dtype)
    graph = convert.graph(exported.graph)
    graph.initializer.extend(
        onnx().numpy_helper.from_array(_little_endian(exported.constants[name]), name)
        for name in sorted(exported.constants)
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", exported.opset)],
        ir_version=IR_VERSION,
        producer_name="cntkpy",
        producer_version=version,
        model_version=1,
    )
    helper.set_model_props(model, _metadata(exported) | dict(metadata))
    return model


def _metadata(exported: Exported) -> dict[str, str]:
    def described(nodes: Iterable[Node]) -> str:
        return json.dumps([{"node": node.name, "dims": list(node.shape or ())} for node in nodes])

    sequences = [node.name for node in exported.inputs if node.dynamic_axes == 2]
    trained = [*(node.name for node in exported.network.parameters(exported.outputs)), *exported.joined]
    return {
        "cntkpy.precision": exported.network.precision,
        "cntkpy.layout": ",".join(exported.axes),
        "cntkpy.inputs": described(exported.inputs),
        "cntkpy.outputs": described(exported.outputs),
        "cntkpy.sequences": json.dumps(sequences),
        "cntkpy.trained": json.dumps(trained),
        "cntkpy.parameters": str(sum(array.size for array in exported.constants.values())),
    }


def _little_endian(array: np.ndarray) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


class _Conversion:
    """Graphs as ONNX has them."""

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self._helper = onnx().helper
        self._kinds = {"real": self._type(dtype), "integer": self._type(np.dtype(np.int64))}

    def _type(self, dtype: np.dtype[np.generic]) -> int:
        return self._helper.np_dtype_to_tensor_dtype(dtype)

    def graph(self, graph: Graph) -> GraphProto:
        """Return a graph without initialisers."""
        inputs, outputs = ([self._port(port) for port in ports] for ports in (graph.inputs, graph.outputs))
        operators = [self._operator(operator) for operator in graph.operators]
        return self._helper.make_graph(operators, graph.name, inputs, outputs)

    def _port(self, port: Port) -> ValueInfoProto:
        return self._helper.make_tensor_value_info(port.name, self._kinds[port.kind], port.dims)

    def _operator(self, operator: Operator) -> NodeProto:
        attributes = {name: self._attribute(value) for name, value in sorted(operator.attributes.items())}
        name = next(output for output in operator.outputs if output)
        return self._helper.make_node(operator.kind, operator.inputs, operator.outputs, name=name, **attributes)

    def _attribute(self, value: object) -> Any:
        if isinstance(value, np.dtype):
            return self._type(cast("np.dtype[np.generic]", value))
        if isinstance(value, Graph):
            return self.graph(value)
        if isinstance(value, np.ndarray):
            return onnx().numpy_helper.from_array(value)
        return value
