"""`cntkpy export MODEL OUT`: a model for other programs."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.commands.same_file import keep_inputs

if TYPE_CHECKING:
    import numpy as np

    from cntkpy.networks.graph.network import ValidatedNetwork
    from cntkpy.networks.onnx.export import Settings

ONNX = ".onnx"

CONFIGURATIONS = (".cntk", ".config", ".cfg", ".ini", ".txt")
"""Endings of files that are configurations, unless they are models."""


@dataclass(frozen=True)
class Asked:
    """Options of the command line.

    Args:
        model: the model file.
        out: the file to write; its ending says the format.
        settings: of an ONNX model.
        means: texts `INPUT=FILE`, mean pictures that an ONNX model subtracts from its inputs.
        check: whether an ONNX model is compared with this package; None: where onnxruntime is installed.
    """

    model: str
    out: str
    settings: "Settings"
    means: tuple[str, ...] = ()
    check: bool | None = None


def export_file(asked: Asked) -> int:
    """Write the file, say what is in it; return the exit status."""
    from cntkpy.networks.files.model_file import load_model
    from cntkpy.networks.files.recognise import is_model
    from cntkpy.networks.files.weights import FORMATS, write_weights

    kind = Path(asked.out).suffix.lower()
    if kind not in (ONNX, *FORMATS):
        known = ", ".join((ONNX, *FORMATS))
        message = f"the format of '{asked.out}' is not known"
        hint = f"its name ends in one of {known}; --to pytorch writes a folder with source"
        raise ConfigError("InvalidArgument", message, hint=hint)
    if not is_model(asked.model) and Path(asked.model).suffix.lower() in CONFIGURATIONS and Path(asked.model).is_file():
        message = f"{asked.model} is a configuration; {asked.out} is made of a model file"
        hint = "name the model that it trains; --to pytorch writes the network of a configuration as source"
        raise ConfigError("InvalidArgument", message, hint=hint)
    keep_inputs(asked.out, [asked.model])
    network = load_model(asked.model)
    if kind != ONNX:
        print(f"{asked.out}: {write_weights(asked.out, network)} arrays")
        return 0
    return _export_onnx(asked, network)


def _mean(network: "ValidatedNetwork", text: str) -> "tuple[str, np.ndarray]":
    """Return the mean picture of `INPUT=FILE`, in the order of memory of the input.

    Raises:
        UserError: the input is no image, or one of another size; the file cannot be read.
    """
    from cntkpy.readers.formats.image.storage import read_mean

    name, sign, path = text.partition("=")
    if not sign:
        raise UserError("InvalidArgument", f"'{text}' is no mean", hint="write --mean features=mean.xml")
    node = network.find(name)
    picture = read_mean(path)
    picture = picture[..., None] if picture.ndim == 2 else picture
    dims = tuple(reversed(node.shape or ()))
    for order in ((2, 0, 1), (0, 1, 2)):  # one channel after the other, one pixel after the other
        if picture.transpose(order).shape == dims:
            return name, picture.transpose(order)
    height, width, channels = picture.shape
    message = f"the mean picture {path} is {width} x {height} x {channels}, and '{node.name}' is no image of that size"
    raise UserError("InvalidArgument", message, hint=f"the input has the dimensions {list(node.shape or ())}")


def _export_onnx(asked: Asked, network: "ValidatedNetwork") -> int:
    from cntkpy.networks.onnx import files
    from cntkpy.networks.onnx.package import can_compare
    from cntkpy.networks.onnx.save import compared, prepared

    settings = replace(asked.settings, means=dict(_mean(network, mean) for mean in asked.means))
    ready = prepared(asked.out, network, settings, {"cntkpy.source": Path(asked.model).name})
    for note in ready.exported.notes:
        print(f"note: {note}", file=sys.stderr)
    for difference in compared(ready) if (can_compare() if asked.check is None else asked.check) else ():
        print(f"{difference.output}: largest difference {difference.largest:.2g}")
    files.write(asked.out, ready.model)
    print(ready.describe())
    return 0
