"""ONNX files as plain data. Sizes are compared with the bytes that are there before anything is allocated."""

from __future__ import annotations

import math
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import file_or_url, open_input, read_input
from cntkpy.cntk_config.base.names import Url
from cntkpy.networks.nodes.onnx_support.model import DEFAULT_DOMAINS, Input, Model, Operator, Unreadable
from cntkpy.networks.onnx.package import onnx

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

MOST_BYTES = 1 << 31
"""Of a model file: protocol buffers hold less."""


MOST_OUTSIDE = 1 << 36
"""Of a file with initialisers beside the model."""


OLDEST, NEWEST = 7, 27
"""Versions of operators that are read."""


DEEPEST = 8
"""Graphs inside of graphs."""


REAL = ("float32", "float64", "float16")


INTEGER = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")


KINDS = (*REAL, *INTEGER, "bool")
"""Types of elements that are read."""


MOST_SHARED = 4
"""Number of times that the bytes of a file beside the model may be read for different initialisers."""


def read_model(path: str | Path) -> Model:
    """Read an ONNX file.

    Raises:
        UserError: it is damaged, too new or too old; the package `onnx` is not installed.
    """
    path = file_or_url(path)
    package = onnx()
    try:
        content = read_input(path, MOST_BYTES)
    except FileNotFoundError:
        raise UserError("NoModel", f"there is no model {path}", hint="check modelPath") from None
    except OSError as problem:
        raise UserError("CannotRead", f"cannot read the model {path}: {problem.strerror or problem}") from None
    try:
        proto = package.ModelProto.FromString(content)
    except Exception as problem:  # protobuf's DecodeError, of whichever implementation it uses
        raise _bad(path, f"it is damaged: {problem}") from None
    try:
        reading = _Reading(path.parent if isinstance(path, Path) else None)
        model = reading.model(proto)
        model.size = len(content) + reading.outside
        return model
    except _Wrong as problem:
        raise _bad(path, str(problem)) from None


class _Wrong(Exception):
    """Error of a model."""


def text(value: str | bytes) -> str:
    """Return a text of a message, which is bytes where these are no UTF-8."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _bad(path: Path | Url, why: str) -> UserError:
    return UserError("BadModel", f"the ONNX model {path} cannot be used: {why}")


class _Reading:
    """Messages of protocol buffers become plain data.

    Args:
        folder: of the model, where its files of initialisers are.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._package = onnx()
        self._outside_bytes: dict[Path, int] = {}

    @property
    def outside(self) -> int:
        """Bytes of initialisers that were read beside the model."""
        return sum(self._outside_bytes.values())

    def model(self, model: ModelProto) -> Model:
        """Return the graph of a model."""
        versions = [int(opset.version) for opset in model.opset_import if opset.domain in DEFAULT_DOMAINS]
        domains = [text(opset.domain) for opset in model.opset_import if opset.domain not in DEFAULT_DOMAINS]
        if not versions and not domains:
            raise _Wrong("it does not say which version of ONNX's operators it uses")
        versions = versions or [0]
        if versions[0] and not OLDEST <= versions[0] <= NEWEST:
            raise _Wrong(f"it uses version {versions[0]} of the operators; {OLDEST} to {NEWEST} can be read")
        graph = self.graph(model.graph, 0, ())
        graph.opset = versions[0]
        graph.metadata = {text(entry.key): text(entry.value) for entry in model.metadata_props}
        return graph

    def graph(self, graph: GraphProto, depth: int, outer: tuple[set[str], ...]) -> Model:
        """Return a graph, whose operators may use the values `outer`."""
        if depth > DEEPEST:
            raise _Wrong(f"graphs are inside of each other {depth} times")
        if graph.sparse_initializer:
            raise _Wrong("sparse initialisers are not supported")
        initialisers: dict[str, np.ndarray | Unreadable] = {}
        for tensor in graph.initializer:
            if (name := text(tensor.name)) in initialisers:
                raise _Wrong(f"there are two initialisers '{name}'")
            initialisers[name] = self.array_or_why(tensor)
        inputs = [self._input(port) for port in graph.input if text(port.name) not in initialisers]
        known = set(initialisers)
        scopes = (*outer, known)
        for operand in inputs:
            if _is_known(operand.name, scopes):
                raise _Wrong(f"two values are called '{operand.name}'")
            known.add(operand.name)
        operators = [self._operator(node, depth, scopes) for node in graph.node]
        outputs = [text(port.name) for port in graph.output]
        if unknown := [name for name in outputs if not _is_known(name, scopes)]:
            raise _Wrong(f"nothing computes its output '{unknown[0]}'")
        return Model(inputs, outputs, operators, initialisers)

    def _operator(self, node: NodeProto, depth: int, scopes: tuple[set[str], ...]) -> Operator:
        inputs, outputs = [text(name) for name in node.input], [text(name) for name in node.output]
        kind, name = text(node.op_type), text(node.name)
        shown = f"{kind} '{name or ''.join(outputs[:1])}'"
        if unknown := [name for name in inputs if name and not _is_known(name, scopes)]:
            raise _Wrong(f"{shown} takes '{unknown[0]}', which nothing before it computes")
        if twice := [name for name in outputs if name and _is_known(name, scopes)]:
            raise _Wrong(f"{shown} computes '{twice[0]}', which is there already")
        operator = Operator(kind, text(node.domain), name, inputs, outputs)
        operator.attributes = {
            text(attribute.name): self._attribute(attribute, depth, scopes) for attribute in node.attribute
        }
        scopes[-1].update(name for name in outputs if name)
        return operator

    def _input(self, port: ValueInfoProto) -> Input:
        tensor, name = port.type.tensor_type, text(port.name)
        if not port.type.HasField("tensor_type"):
            raise _Wrong(f"its input '{name}' is not a tensor")
        kind = self._kind(tensor.elem_type, name)
        sizes = None
        if tensor.HasField("shape"):
            sizes = tuple(
                int(dim.dim_value)
                if dim.HasField("dim_value") and dim.dim_value > 0
                else text(dim.dim_param) or f"?{index}"
                for index, dim in enumerate(tensor.shape.dim)
            )
        return Input(name, sizes, kind)

    def _kind(self, number: int, name: str) -> np.dtype[np.generic]:
        try:
            dtype = np.dtype(self._package.helper.tensor_dtype_to_np_dtype(number))
        except (KeyError, TypeError):
            raise _Wrong(f"'{name}' has elements of type {number}, which is none of ONNX") from None
        if dtype.name not in KINDS:
            raise _Wrong(f"'{name}' has elements of type {dtype.name}, which is not supported")
        return dtype

    def _attribute(self, attribute: AttributeProto, depth: int, scopes: tuple[set[str], ...]) -> Any:
        if attribute.ref_attr_name:
            raise _Wrong(f"the attribute '{text(attribute.name)}' belongs to a function")
        kinds = self._package.AttributeProto
        if attribute.type == kinds.TENSOR:
            return self.array_or_why(attribute.t)
        if attribute.type == kinds.GRAPH:
            return self.graph(attribute.g, depth + 1, scopes)
        if attribute.type == kinds.STRING:
            return text(attribute.s)
        if attribute.type == kinds.STRINGS:
            return [text(each) for each in attribute.strings]
        simple = {kinds.FLOAT: "f", kinds.INT: "i", kinds.FLOATS: "floats", kinds.INTS: "ints"}.get(attribute.type)
        if simple is None:
            return Unreadable(f"its attribute '{text(attribute.name)}' is of a type that is not supported")
        value = getattr(attribute, simple)
        return list(cast("Iterable[Any]", value)) if simple.endswith("s") else value

    # ---- arrays

    def array_or_why(self, tensor: TensorProto) -> np.ndarray | Unreadable:
        """Return the values of a tensor, or why they are not read: texts, for example, which only some outputs need.

        Raises:
            _Wrong: they are not as many as its dimensions say.
        """
        helper, number = self._package.helper, int(tensor.data_type)
        try:
            name = (
                ""
                if number == self._package.TensorProto.STRING
                else np.dtype(helper.tensor_dtype_to_np_dtype(number)).name
            )
        except (KeyError, TypeError):
            raise _Wrong(f"'{text(tensor.name)}' has elements of type {number}, which is none of ONNX") from None
        if name in KINDS:
            return self.array(tensor)
        return Unreadable(f"'{text(tensor.name)}' has elements of type {name or 'string'}, which is not supported")

    def array(self, tensor: TensorProto) -> np.ndarray:
        """Return the values of a tensor.

        Raises:
            _Wrong: they are not as many as its dimensions say.
        """
        dtype, dims = self._kind(tensor.data_type, text(tensor.name)), tuple(int(dim) for dim in tensor.dims)
        if any(dim < 0 for dim in dims):
            raise _Wrong(f"'{text(tensor.name)}' has a negative dimension")
        count = math.prod(dims)
        if tensor.data_location == self._package.TensorProto.EXTERNAL:
            content = self._outside(tensor, count * dtype.itemsize)
        elif tensor.HasField("raw_data"):
            content = tensor.raw_data
        else:
            return self._typed(tensor, dtype, dims)
        if len(content) != count * dtype.itemsize:
            wanted = f"{count * dtype.itemsize} bytes for the dimensions {list(dims)}"
            raise _Wrong(f"'{text(tensor.name)}' has {len(content)} bytes, not {wanted}")
        return np.frombuffer(content, dtype.newbyteorder("<")).reshape(dims).astype(dtype)

    def _typed(self, tensor: TensorProto, dtype: np.dtype[np.generic], dims: tuple[int, ...]) -> np.ndarray:
        kinds = {"float32": "float_data", "float64": "double_data", "int64": "int64_data"}
        kinds |= dict.fromkeys(("uint32", "uint64"), "uint64_data")
        values = getattr(tensor, kinds.get(dtype.name, "int32_data"))
        if len(values) != math.prod(dims):
            raise _Wrong(f"'{text(tensor.name)}' has {len(values)} values, not {math.prod(dims)}")
        if dtype.name == "float16":
            return np.array(values, np.uint16).view(np.float16).reshape(dims)
        try:
            return np.array(values, dtype).reshape(dims)
        except OverflowError:
            raise _Wrong(f"'{text(tensor.name)}' has values that are not of the type {dtype.name}") from None

    def _outside(self, tensor: TensorProto, size: int) -> bytes:
        """Return the bytes of a tensor in a file beside the model.

        Raises:
            _Wrong: the file is not inside of the model's folder, or too short.
        """
        entries = {text(entry.key): text(entry.value) for entry in tensor.external_data}
        location = entries.get("location", "")
        if self._folder is None:
            raise _Wrong(f"the values of '{text(tensor.name)}' are beside it, which is not read from a URL")
        if not location.isprintable():
            raise _Wrong(f"the values of '{text(tensor.name)}' are in {location[:80]!r}, which is no name of a file")
        folder = self._folder.resolve()
        path = (folder / location).resolve()
        if not location or Path(location).is_absolute() or folder not in path.parents:
            raise _Wrong(f"the values of '{text(tensor.name)}' are in '{location}', which is not inside of its folder")
        offset, length = (_number(entries.get(key), default) for key, default in (("offset", 0), ("length", size)))
        try:
            status = path.stat()
            there = status.st_size
            if not stat.S_ISREG(status.st_mode):
                raise _Wrong(f"the values of '{text(tensor.name)}' are in '{location}', which is no file")
            if length != size or offset + size > there or there > MOST_OUTSIDE:
                raise _Wrong(f"'{location}' has no {size} bytes for '{text(tensor.name)}' at byte {offset}")
            self._outside_bytes[path] = self._outside_bytes.get(path, 0) + size
            if self._outside_bytes[path] > MOST_SHARED * there:
                raise _Wrong(f"its initialisers are more than {MOST_SHARED} times as large as '{location}'")
            with open_input(path) as file:
                file.seek(offset)
                return file.read(size)
        except OSError as problem:
            raise _Wrong(f"the values of '{text(tensor.name)}' cannot be read: {problem.strerror or problem}") from None


def _is_known(name: str, scopes: Sequence[set[str]]) -> bool:
    return any(name in scope for scope in scopes)


def _number(digits: str | None, default: int) -> int:
    if digits is None:
        return default
    if not digits.isascii() or not digits.isdigit() or len(digits) > 15:
        raise _Wrong(f"'{digits[:20]}' is no number of bytes")
    return int(digits)
