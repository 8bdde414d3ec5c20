"""A network written as an ONNX file, compared before with what onnxruntime computes."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.graph.network import Network
from cntkpy.networks.onnx import files, ours
from cntkpy.networks.onnx.check import Difference, check
from cntkpy.networks.onnx.export import Exported, Settings, export
from cntkpy.networks.onnx.model import to_model


class Ready(NamedTuple):
    """A model that can be written.

    Attributes:
        path: the file.
        exported: the graph.
        model: an `onnx.ModelProto`.
    """

    path: Path
    exported: Exported
    model: Any

    def describe(self) -> str:
        """Return its contents in a line."""
        ports = self.exported.graph.inputs
        inputs = ", ".join(f"{port.name} [{' x '.join(map(str, port.dims))}]" for port in ports)
        operators = len(self.exported.graph.operators)
        return f"{self.path}: opset {self.exported.opset}, {operators} operators, inputs {inputs}"


def package_version() -> str:
    """Return the version of this package, as it is installed; empty if it is not."""
    try:
        return importlib.metadata.version("cntkpy")
    except importlib.metadata.PackageNotFoundError:
        return ""


def prepared(path: str | Path, network: Network, settings: Settings, metadata: Mapping[str, str]) -> Ready:
    """Make a model of a network.

    Args:
        path: of the file that will be written.
        network: the network.
        settings: what is exported.
        metadata: further texts of the model, by name.

    Raises:
        UserError: nodes have no equivalent; the package `onnx` is not installed.
    """
    path = Path(path)
    exported = export(network, ours.constants, settings, path.stem)
    return Ready(path, exported, to_model(exported, package_version(), metadata))


def compared(ready: Ready) -> list[Difference]:
    """Return the differences from onnxruntime on random data; none of a model that is too large to be run from memory.

    Raises:
        UserError: they are too large; onnxruntime is not installed, or cannot run the model.
    """
    if files.size_of(ready.model) > files.MOST_BYTES:
        return []
    differences = check(ready.exported, files.as_bytes(ready.model))
    refuse(ready, differences)
    return differences


def refuse(ready: Ready, differences: list[Difference]) -> None:
    """Raise an error if values differ by more than they may."""
    wrong = ", ".join(
        f"'{difference.output}' by {difference.largest:.2g}" for difference in differences if not difference.allowed
    )
    if wrong:
        message = f"the values of onnxruntime differ, those of {wrong}; {ready.path} is not written"
        raise UserError("NotSupported", message, hint="--no-check writes it; please report the network")


def save_onnx(path: str | Path, network: Network, settings: Settings) -> None:
    """Write a network as an ONNX model, unchecked.

    Args:
        path: the file; it is replaced in one step.
        network: the network.
        settings: what is written.

    Raises:
        UserError: nodes have no equivalent; the package `onnx` is not installed; the file cannot be written.
    """
    files.write(path, prepared(path, network, settings, {}).model)
