"""A network written as an ONNX file, in one call."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from networks.graph.network import Network
from networks.onnx import files, ours
from networks.onnx.export import Settings, export
from networks.onnx.model import to_model


def package_version() -> str:
    """The version of this package, as it is installed; empty if it is not."""
    try:
        return importlib.metadata.version("cntkpy")
    except importlib.metadata.PackageNotFoundError:
        return ""


def save_onnx(path: str | Path, network: Network, settings: Settings) -> None:
    """Write a network as an ONNX model.

    Args:
        path: the file; it is replaced in one step.
        network: the network.
        settings: what is written.

    Raises:
        UserError: nodes have no equivalent; the package `onnx` is not installed; the file cannot be written.
    """
    exported = export(network, ours.constants, settings, Path(path).stem)
    files.write(path, to_model(exported, package_version()))
