"""`cntkpy export MODEL OUT`: a model for other programs."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cntk_config.base.diagnostics import UserError
from commands import __version__

if TYPE_CHECKING:
    from networks.graph.network import ValidatedNetwork
    from networks.onnx.export import Settings

ONNX = ".onnx"
EXIT_DIFFERENT = 1


@dataclass(frozen=True)
class Asked:
    """What the command line asks for.

    Args:
        model: the model file.
        out: the file to write; its ending says the format.
        settings: of an ONNX model.
        check: whether an ONNX model is compared with this package; None: where onnxruntime is installed.
    """

    model: str
    out: str
    settings: "Settings"
    check: bool | None = None


def export_file(asked: Asked) -> int:
    """Write the file, say what is in it; return the exit status."""
    from networks.files.model_file import load_model
    from networks.files.weights import FORMATS, write_weights

    kind = Path(asked.out).suffix.lower()
    if kind not in (ONNX, *FORMATS):
        known = ", ".join((ONNX, *FORMATS))
        message = f"the format of '{asked.out}' is not known"
        raise UserError("InvalidArgument", message, hint=f"its name ends in one of {known}")
    network = load_model(asked.model)
    if kind != ONNX:
        print(f"{asked.out}: {write_weights(asked.out, network)} arrays")
        return 0
    return _export_onnx(asked, network)


def _export_onnx(asked: Asked, network: "ValidatedNetwork") -> int:
    from networks.onnx import files, ours
    from networks.onnx.check import check
    from networks.onnx.export import export
    from networks.onnx.model import to_model
    from networks.onnx.package import has_onnxruntime

    exported = export(network, ours.constants, asked.settings, Path(asked.out).stem)
    model = to_model(exported, __version__, Path(asked.model).name)
    for note in exported.notes:
        print(f"note: {note}", file=sys.stderr)
    checked = has_onnxruntime() if asked.check is None else asked.check
    large = files.size_of(model) > files.MOST_BYTES
    differences = check(exported, files.as_bytes(model)) if checked and not large else []
    for one in differences:
        print(f"{one.output}: largest difference {one.largest:.2g}" + ("" if one.allowed else ", too large"))
    if not all(one.allowed for one in differences):
        wrong = ", ".join(f"'{one.output}'" for one in differences if not one.allowed)
        print(f"error: onnxruntime computes other values of {wrong}; {asked.out} is not written", file=sys.stderr)
        return EXIT_DIFFERENT
    files.write(asked.out, model)
    names = ", ".join(f"{port.name} [{' x '.join(map(str, port.dims))}]" for port in exported.graph.inputs)
    print(f"{asked.out}: opset {exported.opset}, {len(exported.graph.operators)} operators, inputs {names}")
    return 0
