"""The parameters of a network as arrays for other programs: `.npz` of NumPy, and safetensors.

Axes are those of memory, the reverse of CNTK's: a layer computes `x @ W + b`, images are `(channels, height, width)`,
and the kernels of a convolution `(maps, channels, height, width)`, as PyTorch has them. A vector has one axis, also
where the network has it as a matrix `[N x 1]`. The matrix of kernels of an old
2-D convolution gets these axes.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import file_or_url
from cntkpy.cntk_config.base.names import Url
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.networks.files.tensor_file import METADATA, write_tensors
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.images.convolution import geometry_2d, is_two_d
from cntkpy.networks.nodes.inputs.kinds import is_chw

FORMATS = (".npz", ".safetensors")
"""The endings of the names of files."""

FIRST_DATE = (1980, 1, 1, 0, 0, 0)
"""Of what a zip file has: the earliest one, so that the same parameters give the same file."""


def weights(network: ValidatedNetwork) -> dict[str, np.ndarray]:
    """Parameters, constants and computed statistics by name, in the order of the network."""
    values = {node.name: node.value for node in network.nodes.values() if node.value is not None}
    for node in network.nodes.values():
        kernels = _kernels(node)
        if kernels is not None and (value := values.get(kernels[0].name)) is not None:
            values[kernels[0].name] = value.reshape(kernels[1])
    for node in _vectors(network):
        values[node.name] = values[node.name].reshape(-1)
    return values


OF_VECTORS = ("BatchNormalization", "DiagTimes", "PerDimMeanVarNormalization", "PerDimMeanVarDeNormalization")
"""Operations beside the elementwise ones whose parameters are vectors."""


def _vectors(network: ValidatedNetwork) -> list[Node]:
    """Return nodes with the values of a vector, but further axes of one element, `[N x 1]`, that are no matrix of a
    product."""
    used: dict[Node, bool] = {}
    for user in network.nodes.values():
        fits = user.kind.elementwise or user.operation in OF_VECTORS
        for node in user.connected:
            used[node] = used.get(node, True) and fits
    values = [node for node in network.nodes.values() if node.value is not None and used.get(node)]
    return [
        node
        for node in values
        if node.value is not None and node.value.ndim > 1 and node.value.size == node.value.shape[-1]
    ]


def _kernels(node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """Return the parameter with the kernels of a 2-D convolution whose channels come last in CNTK's order, and their
    axes.
    """
    if node.operation != "Convolution" or not is_two_d(node.options) or not is_chw(node.options["imageLayout"]):
        return None
    parameter = node.input(0)
    geometry, channels = geometry_2d(node, node.input(1).shape or ())
    return (
        (parameter, (int(node.options["maps"]), channels, *reversed(geometry.kernel)))
        if parameter.is_parameter
        else None
    )


def write_weights(path: str | Path, network: ValidatedNetwork) -> int:
    """Write the parameters of a network.

    Args:
        path: the file; its ending says the format, one of `FORMATS`. Parent folders are made.
        network: the network.

    Returns:
        How many arrays there are.

    Raises:
        UserError: the file cannot be written.
    """
    path, result = file_or_url(path), weights(network)
    try:
        if Path(path).suffix.lower() == ".npz":
            _write_npz(path, result)
        else:
            if METADATA in result:
                message = f"no parameter can be called '{METADATA}' in a safetensors file"
                raise UserError("CannotWrite", message, hint="give it another name, or write an .npz")
            write_tensors(path, result, {"format": "np"})
    except OSError as problem:
        raise UserError("CannotWrite", f"cannot write {path}: {problem.strerror or problem}") from problem
    return len(result)


def _write_npz(path: Path | Url, arrays: dict[str, np.ndarray]) -> None:
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", FIRST_DATE)
            with archive.open(entry, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, np.ascontiguousarray(array), allow_pickle=False)
