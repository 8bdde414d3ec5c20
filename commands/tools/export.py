"""`cntkpy export MODEL OUT`: a model for other programs."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cntk_config.base.diagnostics import UserError

if TYPE_CHECKING:
    from networks.graph.network import ValidatedNetwork
    from networks.onnx.export import Settings

ONNX = ".onnx"


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
    from networks.onnx import files
    from networks.onnx.package import can_compare
    from networks.onnx.save import compared, prepared

    ready = prepared(asked.out, network, asked.settings, {"cntkpy.source": Path(asked.model).name})
    for note in ready.exported.notes:
        print(f"note: {note}", file=sys.stderr)
    for one in compared(ready) if (can_compare() if asked.check is None else asked.check) else ():
        print(f"{one.output}: largest difference {one.largest:.2g}")
    files.write(asked.out, ready.model)
    print(ready.describe())
    return 0
