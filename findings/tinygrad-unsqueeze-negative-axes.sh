#!/usr/bin/env bash
# Negative axes of ONNX's Unsqueeze count from the end of the result. tinygrad's reader of ONNX puts in one axis after the
# other and counts each from the end of what it has so far: two axes come to another place, without an error. With one
# axis, or with axes from 0 on, it is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tinygrad==0.14.0 onnx==1.23.2 onnxruntime==1.32.0 numpy
cat > "$folder/try.py" <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)


def shapes(axes, expected):
    graph = helper.make_graph(
        [helper.make_node("Unsqueeze", ["x", "axes"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, expected)],
        [numpy_helper.from_array(np.array(axes), "axes")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "model.onnx")
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0].shape, OnnxRunner("model.onnx")({"x": Tensor(x)})["y"].shape


print("tinygrad", version("tinygrad"), "onnxruntime", version("onnxruntime"))
cases = {(1, 3): (4, 1, 3, 1, 2), (-4, -2): (4, 1, 3, 1, 2), (-2,): (4, 3, 1, 2)}
seen = {axes: shapes(axes, expected) for axes, expected in cases.items()}
for axes, (wanted, result) in seen.items():
    print(f"(4, 3, 2) with axes {axes}: onnxruntime {wanted}, tinygrad {result}")
as_known = {axes: wanted == result for axes, (wanted, result) in seen.items()} == {(1, 3): True, (-4, -2): False, (-2,): True}
sys.exit(0 if as_known else "this has changed: see the comment at the top")
PY
cd "$folder"
DEV=PYTHON venv/bin/python try.py
