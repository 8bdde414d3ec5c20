#!/usr/bin/env bash
# onnx.version_converter brings old models, those that CNTK 2 wrote among them, to new operator sets. Two operators get
# another meaning on the way, without an error or a warning, and the checker accepts the result:
# - Hardmax: up to operator set 12 there is one maximum over all axes from `axis` on, from 13 on one along `axis` alone.
#   Softmax and LogSoftmax, which changed in the same way, are rewritten; Hardmax is only renumbered.
# - Upsample becomes Resize without `coordinate_transformation_mode = "asymmetric"`: linear values are taken at half
#   pixels, and so are nearest ones, which shows where a scale is no whole number.
# onnxruntime computes each model before and after.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.2 onnxruntime==1.32.0 numpy
cat > "$folder/try.py" <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, version_converter

onnxruntime.set_default_logger_severity(4)
x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)


def model(kind, scales, **attributes):
    inputs, constants = ["x"], []
    if scales:
        inputs, constants = ["x", "scales"], [numpy_helper.from_array(np.array(scales, np.float32), "scales")]
    shape = [int(size * scale) for size, scale in zip(x.shape, scales or (1, 1, 1, 1))]
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)


def run(old_or_new):
    onnx.checker.check_model(old_or_new, full_check=True)
    session = onnxruntime.InferenceSession(old_or_new.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
cases = {
    "Softmax, axis=1": (model("Softmax", None, axis=1), False),
    "Hardmax, axis=1": (model("Hardmax", None, axis=1), True),
    "Hardmax, axis=3 (the last)": (model("Hardmax", None, axis=3), False),
    "Upsample, nearest, 2 x 2": (model("Upsample", [1, 1, 2, 2], mode="nearest"), False),
    "Upsample, nearest, 1.6 x 1.7": (model("Upsample", [1, 1, 1.6, 1.7], mode="nearest"), True),
    "Upsample, linear, 2 x 2": (model("Upsample", [1, 1, 2, 2], mode="linear"), True),
}
as_known = True
for name, (old, changes) in cases.items():
    old_values = run(old)
    new_values = run(version_converter.convert_version(old, 18))
    print(f"{name}: sums {old_values.sum():.3f} and {new_values.sum():.3f}, largest difference {np.abs(old_values - new_values).max():.2f}")
    as_known = as_known and changes == (np.abs(old_values - new_values).max() > 1e-5)
sys.exit(0 if as_known else "this has changed: see the comment at the top")
PY
"$folder/venv/bin/python" "$folder/try.py"
