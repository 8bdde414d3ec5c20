"""Functions in files: models of this package, of ONNX, and programs for PyTorch and JAX."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions.calls import call
from cntkpy.networks.builders.python.functions.checks import check_path
from cntkpy.networks.builders.python.functions.free import are_free
from cntkpy.networks.builders.python.functions.free_files import sized_in_several_ways, sized_with_marks
from cntkpy.networks.builders.python.functions.graph import keep_written
from cntkpy.networks.builders.python.functions.leaves import filled
from cntkpy.networks.builders.python.functions.nodes import is_input
from cntkpy.networks.builders.python.functions.per_sample import per_sample, with_samples
from cntkpy.networks.files.model_file import as_reread, load_model, save_model
from cntkpy.networks.graph.network import Network


def save(function: Any, filename: str | Path, format: object) -> None:
    """Write a function to a file; see `Function.save`."""
    path = check_path("the name of a model file", filename)
    if are_free(function.roots):
        if "ONNX" in str(format):
            _save_free_onnx(path, function)
            return
        if str(format).lower() in ("pytorch", "jax"):
            message = f"{path}: such a file has one size of each axis, some of this function are known with data only"
            hint = "clone('share', {x: input_variable(shape)}) gives an input sizes; a model file keeps free ones"
            raise UserError("NotSupported", message, hint=hint)
        save_model(path, sized_with_marks(function.roots).network)
        return
    if "ONNX" in str(format):
        from cntkpy.networks.onnx.export import Settings
        from cntkpy.networks.onnx.save import save_onnx

        network = as_reread(type(function)(_written_roots(function)).network)
        _rename_outputs(network, [node.name for node in function.network.groups["output"]])
        outputs = tuple(node.name for node in network.groups["output"])
        save_onnx(path, network, Settings(outputs, double=network.precision == "double"))
        return
    if str(format).lower() in ("pytorch", "jax"):
        from cntkpy.networks.source.save import save_source

        network = as_reread(function.network)
        outputs = tuple(node.name for node in network.groups["output"])
        save_source(path, network, outputs, str(format).lower())
        return
    roots = [with_samples(output).root for output in function.outputs]
    saved = function if roots == list(function.roots) else type(function)(roots)
    keep_written(saved.model.nodes)  # operators are described after their networks were checked
    save_model(path, saved.network)


def _written_roots(function: Any) -> list[NodeValue]:
    """Return what an ONNX model computes for the outputs of a function."""
    return [call("Pass", root) if is_input(root) else per_sample(root) for root in function.roots]


def _save_free_onnx(path: str | Path, function: Any) -> None:
    """Write a function with free sizes as an ONNX model."""
    from cntkpy.networks.onnx.export import Settings
    from cntkpy.networks.onnx.free_sizes import save_with_free_sizes

    networks = [as_reread(model.network) for model in sized_in_several_ways(_written_roots(function))]
    outputs = tuple(node.name for node in networks[0].groups["output"])
    save_with_free_sizes(path, networks, Settings(outputs, double=networks[0].precision == "double"))


def restore(function: Any, filename: str | Path) -> None:
    """Take the values of parameters from a model file; see `Function.restore`."""
    known = load_model(filename).nodes
    arrays: dict[Any, NDArray[Any]] = {}
    for value, node in function.model.nodes.items():
        if not node.is_parameter:
            continue
        array = known[node.name].value if node.name in known else None
        if array is None:
            raise UserError("NoNode", f"the model {filename} has no parameter '{node.name}'")
        if node.value is not None and filled(array.shape) != filled(node.value.shape):
            shapes = f"has the shape {array.shape}, that of this function {node.value.shape}"
            raise UserError("BadShape", f"'{node.name}' of the model {filename} {shapes}")
        arrays[type(function)(value)] = np.asarray(array)
    for parameter, array in arrays.items():
        parameter.value = array


def _rename_outputs(network: Network, names: Sequence[str]) -> None:
    """Give the outputs of a network other names, where no other node has them."""
    for node, name in zip(list(network.groups["output"]), names, strict=True):
        if node.name != name and name not in network:
            network.rename(node.name, name)
