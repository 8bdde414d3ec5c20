"""Model files: a safetensors file with the parameters, and the graph as JSON in its metadata.

Arrays are stored as the user knows them, `(rows, columns, ...)`, under their node's name; any safetensors reader opens
the file. The graph (operations, inputs, options, shapes, groups, what was pre-computed) is the metadata `cntkpy`.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import file_or_url, read_start
from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.cntk_config.base.names import Url, is_url
from cntkpy.cntk_config.base.retry import cure
from cntkpy.cntk_config.base.writing import shown, why_not_written
from cntkpy.networks.files.cntk_binary.recognise import is_cntk, is_onnx
from cntkpy.networks.files.tensor_file import METADATA, Damaged, TensorFile, write_tensors
from cntkpy.networks.graph.initialize import Initializer
from cntkpy.networks.graph.network import GROUPS, Network, Node, ValidatedNetwork
from cntkpy.networks.graph.precision import dtype_of
from cntkpy.networks.graph.written import Written
from cntkpy.networks.nodes import operation
from cntkpy.networks.nodes.host.kinds import StoredHost

FORMAT = 1
MAX_CONSTANT = 100
"""Elements of a constant whose value a rule of shapes may look at."""


def save_model(path: str | Path, network: ValidatedNetwork, training: Mapping[str, Any] | None = None) -> None:
    """Write a network; the file is replaced in one step, or left as it was.

    Args:
        path: the model file; parent folders are made.
        network: the network.
        training: what is kept about its training, JSON-able; see `read_training`.

    Raises:
        UserError: a parameter has no value, or the file cannot be written.
    """
    if wrong := why_not_written(path):
        raise UserError(
            "CannotWrite", f"'{shown(path)}' cannot be a model file: {wrong}", hint="give the name of a file"
        )
    dtype = dtype_of(network.precision)
    stored: dict[str, np.ndarray] = {}
    for node in network.nodes.values():
        if node.value is not None and node.name == METADATA:
            message = f"the model cannot be saved: no parameter can be called '{node.name}' in a model file"
            raise UserError("CannotWrite", message, span=node.span, hint="give it another name")
        if node.value is not None:
            stored[node.name] = node.value.transpose().astype(dtype, copy=False)
        elif node.is_parameter:
            raise UserError(
                "NoValue",
                f"the model cannot be saved: parameter '{node.name}' has no value, its dimensions are not known",
                span=node.span,
            )
    try:
        metadata = {"cntkpy": json.dumps(_graph(network), ensure_ascii=False)}
        if training is not None:
            metadata["training"] = json.dumps(dict(training), ensure_ascii=False)
        write_tensors(path, stored, metadata)
    except OSError as problem:
        raise UserError(
            "CannotWrite", f"cannot write the model {shown(path)}: {problem.strerror or problem}"
        ) from problem


def load_model(path: str | Path, precision: str | None = None, values: bool = True) -> ValidatedNetwork:
    """Read a network.

    Args:
        path: a file written by `save_model`, a model of CNTK in any of its formats, or an ONNX model.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS` to convert to; None: as stored.
        values: whether parameters get values; names and shapes need none. Models of CNTK and of ONNX always have them.

    Raises:
        UserError: no such file, damaged, of a newer format, or not a model.
    """
    path = file_or_url(path)
    if is_cntk(path):
        from cntkpy.networks.files.cntk_binary.load import load_cntk  # only such a model needs it

        return load_cntk(path, precision)
    if is_onnx(path):
        from cntkpy.networks.onnx.reading.load import load_onnx

        return load_onnx(path, precision)
    try:
        file = TensorFile(path)
    except FileNotFoundError:
        raise UserError("NoModel", f"there is no model {path}", hint=why_no_model(path)) from None
    except OSError as problem:
        raise _not_read(path, problem) from None
    except Damaged as problem:
        raise (_no_model(path) or _damaged(path, str(problem))) from None
    with file:
        return _network_of(file, path, precision, values)


def _network_of(file: TensorFile, path: Path | Url, precision: str | None, values: bool) -> ValidatedNetwork:
    """Return the network of an open file."""
    try:
        graph = json.loads(file.metadata["cntkpy"])
        written = int(graph["format"])
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        raise UserError(
            "BadModel", f"{path} is a safetensors file, but not a model of cntkpy: it has no graph"
        ) from None
    if written > FORMAT:
        raise UserError(
            "BadModel",
            f"{path} was written in model format {written}; this version reads up to {FORMAT}",
            hint="install a newer version of cntkpy",
        )
    try:
        return _network(graph, precision, _filling(file, precision or str(graph["precision"]), values), values)
    except UserError as problem:
        raise UserError("BadModel", f"the model {path} cannot be used: {problem}", hint=problem.hint) from None
    except OSError as problem:
        raise _not_read(path, problem) from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as problem:
        raise _damaged(path, f"its graph cannot be read ({type(problem).__name__}: {problem})") from None


def _filling(file: TensorFile, precision: str, values: bool) -> Callable[[Node], None]:
    """Return a function that sets the value of a node, or, without values, the number that fills a constant."""

    def value(node: Node) -> None:
        if node.name in file.entries:
            node.value = file.read(node.name, dtype_of(precision), transposed=True)

    def number(node: Node) -> None:
        if node.name in file.entries and math.prod(node.shape or ()) <= MAX_CONSTANT:
            same = file.same(node.name)
            node.init = Initializer("fixedValue", value=same) if same is not None else None

    return value if values else number


def why_no_model(path: str | Path) -> str:
    """Return a hint for a missing model: a training that has not come to its end left those of its
    epochs."""
    if is_url(path):
        return "check the URL"
    path = Path(path)
    begin = f"{path.name}."
    try:
        ends = [path.name.removeprefix(begin) for path in path.parent.iterdir() if path.name.startswith(begin)]
    except OSError:
        ends = list[str]()
    epochs = [int(end) for end in ends if end.isascii() and end.isdigit() and len(end) < 10]
    if not any(epochs):
        return "check modelPath, or train the model first"
    last = max(epochs)
    return f"the training has not come to its end: '{path}.{last}' is the model after epoch {last}"


def read_training(path: str | Path) -> dict[str, Any] | None:
    """Return the training record in a model file; None if it has none."""
    try:
        with TensorFile(path) as file:
            value = json.loads(file.metadata["training"])
    except (OSError, Damaged, KeyError, TypeError, ValueError, RecursionError):
        return None  # a model of CNTK or of an earlier version; what is damaged is found when it is loaded
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _no_model(path: Path | Url) -> UserError | None:
    """Return the error for a text, which nobody has written as a model: a model has zeros in its first eight bytes."""
    try:
        begin = read_start(path, 4096)
    except OSError:
        return None
    if len(begin) < 8 or b"\0" in begin:
        return None
    reason = " (it looks like a configuration)" if b"=" in begin else ""
    return UserError("BadModel", f"{path} is not a model file{reason}", hint="correct modelPath")


def _not_read(path: Path | Url, problem: OSError) -> UserError:
    return UserError("CannotRead", f"cannot read the model {path}: {problem.strerror or problem}", hint=cure(problem))


def _damaged(path: Path | Url, why: str) -> UserError:
    return UserError(
        "BadModel",
        f"the model {path} is damaged: {why}",
        hint="delete it, so that training resumes from the newest model before it, or restore it from a copy",
    )


def _graph(network: Network) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "precision": "float" if network.precision == "bfloat16" else network.precision,
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
    if node.dynamic_axes is not None:
        entry["dynamicAxes"] = node.dynamic_axes
    if node.kind.precompute:
        entry["computed"] = node.computed
    if node.samples:
        entry["samples"] = node.samples
    if node.written is not None:
        entry["written"] = node.written.as_json()
    return entry


def _count(value: object) -> int | None:
    return value if type(value) is int and value in (0, 1, 2) else None


def _encoded(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return {"real": str(value)}
    if callable(stored := getattr(value, "stored", None)):
        return {"host": stored()}
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value


def _decoded(value: object) -> Any:
    if isinstance(value, dict) and "host" in value:
        return StoredHost(**cast("dict[str, Any]", value)["host"])
    if isinstance(value, dict):
        return float(cast("dict[str, str]", value)["real"])
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def as_reread(network: ValidatedNetwork, precision: str | None = None) -> ValidatedNetwork:
    """Return a network as it is when it has been saved and is loaded again, without a file; values may be missing.

    Args:
        network: the network, which stays as it is.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS` to convert to; None: its own.
    """

    def fill(node: Node) -> None:
        known = network.nodes[node.name]
        if known.value is not None:
            node.value = np.array(known.value, dtype_of(precision or network.precision))
        elif not network.values:
            node.init = copy.copy(known.init)

    return _network(_graph(network), precision or network.precision, fill, network.values)


def _network(
    graph: dict[str, Any], precision: str | None, fill: Callable[[Node], None], values: bool
) -> ValidatedNetwork:
    network = Network(precision or graph["precision"], values)
    for entry in graph["nodes"]:
        options = {name: _decoded(value) for name, value in entry.get("options", {}).items()}
        shape = tuple(entry["shape"]) if entry["shape"] is not None else None
        node = network.add(entry["name"], operation(entry["operation"]), (), options, shape=shape)
        node.learning_rate_multiplier = float(entry.get("learningRateMultiplier", 0.0))
        node.dynamic_axes = _count(entry.get("dynamicAxes"))
        node.computed = bool(entry.get("computed", False))
        node.samples = int(entry.get("samples", 0))
        node.written = Written.of_json(entry.get("written"))
        fill(node)
    for entry in graph["nodes"]:
        network.nodes[entry["name"]].inputs = [network.nodes[name] for name in entry.get("inputs", ())]
    for group, names in graph["groups"].items():
        for name in names:
            network.add_to_group(group, network.nodes[name])
    return network.validate()
