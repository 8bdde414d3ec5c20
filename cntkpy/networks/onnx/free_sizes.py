"""Sizes that only data say, in ONNX models: words among the sizes of inputs and outputs.

The text `cntkpy.free` of a model has two sizes for each word. A function is written if its operators are the same with
both, and is read so, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.networks.nodes.onnx_support.graph import Port
from cntkpy.networks.nodes.onnx_support.model import Model
from cntkpy.networks.onnx import files, ours
from cntkpy.networks.onnx.export import Settings, export
from cntkpy.networks.onnx.model import to_model
from cntkpy.networks.onnx.save import package_version

FREE = "cntkpy.free"

LARGEST = 1 << 10
"""Largest size of a word that a model may say."""


def save_with_free_sizes(path: str | Path, networks: Sequence[ValidatedNetwork], settings: Settings) -> None:
    """Write a function of which only data say some sizes as an ONNX model.

    Args:
        path: the file; it is replaced in one step.
        networks: the function with two or more choices of these sizes.
        settings: what is written.

    Raises:
        UserError: its operators depend on these sizes, or have no equivalent; the file cannot be written.
    """
    exports = [export(network, ours.constants, settings, Path(path).stem) for network in networks]
    words: dict[str, tuple[int, int]] = {}
    first, second = (each.graph for each in exports[:2])
    inputs = [_merged(*pair, words) for pair in zip(first.inputs, second.inputs, strict=True)]
    outputs = [_merged(*pair, words) for pair in zip(first.outputs, second.outputs, strict=True)]
    for each in exports:
        each.graph.inputs, each.graph.outputs = inputs, outputs
    models = [to_model(each, package_version(), {FREE: json.dumps(words)}) for each in exports]
    if any(model.graph != models[0].graph for model in models):
        message = f"{path}: operators of this function depend on sizes that are known with data only"
        hint = "clone('share', {x: input_variable(shape)}) gives an input sizes; a model file keeps free ones"
        raise UserError("NotSupported", message, hint=hint)
    files.write(path, models[0])


def _merged(port: Port, twin: Port, words: dict[str, tuple[int, int]]) -> Port:
    """Return an input or output with words in the place of sizes that differ; keep their two sizes."""
    dims: list[int | str] = []
    for size, larger in zip(port.dims, twin.dims, strict=True):
        if isinstance(size, int) and isinstance(larger, int) and size != larger:
            word = f"free_{size}_{larger}"
            words[word] = size, larger
            dims.append(word)
        else:
            dims.append(size)
    return port._replace(dims=tuple(dims))


def free_sizes(model: Model) -> dict[str, tuple[int, int]]:
    """Return the words of a model that stand for sizes of samples, each with two sizes to build it with."""
    try:
        entries = cast("dict[str, Any]", json.loads(model.metadata.get(FREE, "{}")))
        pairs = {word: (int(first), int(second)) for word, (first, second) in entries.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return {word: pair for word, pair in pairs.items() if all(1 <= size <= LARGEST for size in pair)}


def with_sizes(model: Model, sizes: dict[str, int]) -> Model:
    """Return a model whose inputs have sizes in the place of words."""
    inputs = [
        port if port.sizes is None else replace(port, sizes=tuple(sizes.get(str(size), size) for size in port.sizes))
        for port in model.inputs
    ]
    return replace(model, inputs=inputs)


def same_nodes(network: ValidatedNetwork, twin: ValidatedNetwork) -> bool:
    """Return whether two networks differ by the sizes of their inputs and of what is computed only."""
    described = [
        [
            (
                node.name,
                node.operation,
                node.kind.layout == "always" or (node.options, node.is_parameter and node.shape),
            )
            for node in each.nodes.values()
        ]
        for each in (network, twin)
    ]
    return described[0] == described[1]
