"""Model files: a safetensors file with the parameters, and the graph as JSON in its metadata.

Arrays are stored as the user knows them, `(rows, columns, ...)`, under their node's name; any safetensors reader opens
the file. The graph (operations, inputs, options, shapes, groups, what was pre-computed) is the metadata `cntkpy`.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from cntk_config.diagnostics import UserError
from cntk_config.files import atomic_write
from networks.initialize import dtype_of
from networks.legacy import is_legacy, load_legacy
from networks.network import GROUPS, Network, Node
from networks.nodes import operation

FORMAT = 1
_TYPES = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}


def save_model(path: str | Path, network: Network) -> None:
    """Write a network; the file is replaced in one step, or left as it was.

    Args:
        path: the model file; parent folders are made.
        network: complete (`validate` is called).

    Raises:
        UserError: a link is empty, a parameter has no value, or the file cannot be written.
    """
    network.validate()
    code = "F64" if network.precision == "double" else "F32"
    header: dict[str, Any] = {"__metadata__": {"cntkpy": json.dumps(_graph(network), ensure_ascii=False)}}
    stored: list[Node] = []
    offset = 0
    for node in network.nodes.values():
        if node.value is None:
            if node.is_parameter:
                raise UserError(
                    f"the model cannot be saved: parameter '{node.name}' has no value, its dimensions are not known",
                    span=node.span,
                )
            continue
        size = node.value.size * _TYPES[code].itemsize
        header[node.name] = {
            "dtype": code,
            "shape": list(node.value.shape[::-1]),
            "data_offsets": [offset, offset + size],
        }
        stored.append(node)
        offset += size
    text = json.dumps(header, ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    try:
        with atomic_write(path) as file:
            file.write(struct.pack("<Q", len(text)))
            file.write(text)
            for node in stored:
                assert node.value is not None
                file.write(np.ascontiguousarray(node.value.transpose(), _TYPES[code]).data)
    except OSError as problem:
        raise UserError(f"cannot write the model {path}: {problem.strerror or problem}") from problem


def load_model(path: str | Path, precision: str | None = None) -> Network:
    """Read a network.

    Args:
        path: a file written by `save_model`, or a binary model file of the original.
        precision: "float" or "double" to convert to; None: as stored.

    Raises:
        UserError: no such file, damaged, of a newer format, or not a model.
    """
    path = Path(path)
    if is_legacy(path):
        return load_legacy(path, precision)
    header, data = _read(path)
    try:
        graph = json.loads(header.pop("__metadata__", {})["cntkpy"])
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path} is a safetensors file, but not a model of cntkpy: it has no graph") from None
    if graph.get("format", 0) > FORMAT:
        raise UserError(
            f"{path} was written in model format {graph['format']}; this version reads up to {FORMAT}",
            hint="install a newer version of cntkpy",
        )
    try:
        return _network(graph, header, data, precision)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as problem:
        raise _damaged(path, f"its graph cannot be read ({type(problem).__name__}: {problem})") from None


def _damaged(path: Path, why: str) -> UserError:
    return UserError(
        f"the model {path} is damaged: {why}",
        hint="delete it, so that training goes on from the newest model before it, or restore it from a copy",
    )


def _read(path: Path) -> tuple[dict[str, Any], memoryview]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no model {path}", hint="check modelPath, or train the model first") from None
    except OSError as problem:
        raise UserError(f"cannot read the model {path}: {problem.strerror or problem}") from None
    if len(content) < 8:
        raise _damaged(path, "it ends early")
    (length,) = struct.unpack("<Q", content[:8])
    if length > len(content) - 8:
        raise _damaged(path, "it ends early, or is not a model file")
    try:
        header = json.loads(content[8 : 8 + length].decode("utf-8"))
        needed = max((v["data_offsets"][1] for k, v in header.items() if k != "__metadata__"), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise _damaged(path, "its header cannot be read, or it is not a model file") from None
    data = memoryview(content)[8 + length :]
    if needed != len(data):
        raise _damaged(path, f"it should hold {needed} bytes of parameters, but holds {len(data)}")
    return header, data


def _graph(network: Network) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "precision": network.precision,
        "nodes": [_node(node) for node in network.nodes.values()],
        "groups": {group: [node.name for node in network.groups[group]] for group in GROUPS},
    }


def _node(node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": node.name, "operation": node.operation}
    if node.inputs:
        entry["inputs"] = [i.name for i in node.connected]
    if node.options:
        entry["options"] = {name: _encoded(value) for name, value in node.options.items()}
    entry["shape"] = list(node.shape) if node.shape is not None else None
    if node.is_parameter:
        entry["learningRateMultiplier"] = node.learning_rate_multiplier
    if node.kind.precompute:
        entry["computed"] = node.computed
    if node.samples:
        entry["samples"] = node.samples
    return entry


def _encoded(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"real": str(value)}
    return list(value) if isinstance(value, tuple) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        return float(value["real"])
    return tuple(value) if isinstance(value, list) else value


def _network(graph: dict[str, Any], header: dict[str, Any], data: memoryview, precision: str | None) -> Network:
    network = Network(precision or graph["precision"])
    for entry in graph["nodes"]:
        options = {name: _decoded(value) for name, value in entry.get("options", {}).items()}
        shape = tuple(entry["shape"]) if entry["shape"] is not None else None
        node = network.add(entry["name"], operation(entry["operation"]), (), options, shape=shape)
        node.learning_rate_multiplier = float(entry.get("learningRateMultiplier", 0.0))
        node.computed = bool(entry.get("computed", False))
        node.samples = int(entry.get("samples", 0))
        if node.name in header:
            stored = header[node.name]
            begin, end = stored["data_offsets"]
            array = np.frombuffer(data[begin:end], _TYPES[stored["dtype"]]).reshape(stored["shape"])
            node.value = np.ascontiguousarray(array.transpose(), dtype_of(network.precision)).copy()
    for entry in graph["nodes"]:
        network.nodes[entry["name"]].inputs = [network.nodes[name] for name in entry.get("inputs", ())]
    for group, names in graph["groups"].items():
        for name in names:
            network.add_to_group(group, network.nodes[name])
    network.validate()
    return network
