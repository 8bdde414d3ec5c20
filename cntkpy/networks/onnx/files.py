"""ONNX files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import file_or_url
from cntkpy.cntk_config.base.names import Url
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.networks.onnx.package import onnx

if TYPE_CHECKING:
    from onnx import ModelProto

MOST_BYTES = (1 << 31) - (1 << 20)
"""Of one file: protocol buffers hold less than 2 GiB."""

LEAST_OUTSIDE = 1024
"""Bytes of an initialiser that goes to a second file, at least."""


def as_bytes(model: ModelProto) -> bytes:
    """Return a model as it is in a file; the same bytes for the same model."""
    return model.SerializeToString(deterministic=True)


def size_of(model: ModelProto) -> int:
    """Return an estimate of the bytes of a model file."""
    return sum(len(tensor.raw_data) for tensor in model.graph.initializer)


def write(path: str | Path, model: ModelProto, most: int = MOST_BYTES) -> None:
    """Write a model; large initialisers of one that does not fit into a file go to a second one, `NAME.data`.

    Args:
        path: the file; parent folders are made.
        model: an `onnx.ModelProto`; of one that does not fit, the initialisers are taken out.
        most: bytes that fit.

    Raises:
        UserError: it cannot be written.
    """
    path = file_or_url(path)
    try:
        if size_of(model) > most:
            if isinstance(path, Url):
                message = f"{path} cannot be written: the model is so large that its values are in a second file"
                raise UserError("CannotWrite", message, hint="write the name of a file here, and copy both")
            _write(path.with_name(path.name + ".data"), _outside(model, path.name + ".data"))
        _write(path, as_bytes(model))
    except OSError as problem:
        raise UserError("CannotWrite", f"cannot write {path}: {problem.strerror or problem}") from problem


def _write(path: Path | Url, content: bytes) -> None:
    with atomic_write(path) as file:
        file.write(content)


def _outside(model: ModelProto, name: str) -> bytes:
    """Return the values of the large initialisers, which from now on say where in a file of that name theirs are."""
    package, parts, offset = onnx(), list[bytes](), 0
    for tensor in model.graph.initializer:
        raw = tensor.raw_data
        if len(raw) < LEAST_OUTSIDE:
            continue
        tensor.ClearField("raw_data")
        tensor.data_location = package.TensorProto.EXTERNAL
        for key, value in (("location", name), ("offset", str(offset)), ("length", str(len(raw)))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value
        parts.append(raw)
        offset += len(raw)
    return b"".join(parts)
