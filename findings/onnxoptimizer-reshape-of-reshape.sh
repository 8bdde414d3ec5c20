#!/usr/bin/env bash
# onnxoptimizer, with its default passes, drops a Reshape in front of another one (eliminate_consecutive_idempotent_ops).
# A 0 in the second one's shape copies a size of what it reads, so its result is another then: of another shape, or an
# error when the model runs. Exporters write 0 for the batch. The checker accepts the model before and after, with full
# inference of shapes. onnxsim, which is built on onnxoptimizer, keeps both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.2 onnxoptimizer==0.4.2 onnxruntime==1.32.0 onnxsim==0.8.1 numpy
cat > "$folder/try.py" <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxoptimizer
import onnxruntime
import onnxsim
from onnx import TensorProto, helper, numpy_helper

x = np.arange(12, dtype=np.float32).reshape(2, 6)
graph = helper.make_graph(
    [helper.make_node("Reshape", ["x", "first"], ["h"]), helper.make_node("Reshape", ["h", "second"], ["y"])],
    "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", "columns"])],
    [numpy_helper.from_array(np.array([-1, 4]), "first"), numpy_helper.from_array(np.array([0, -1]), "second")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def shape(model):
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0].shape


for name in ("onnx", "onnxoptimizer", "onnxruntime", "onnxsim"):
    print(name, version(name))
simplified, _ = onnxsim.simplify(model)
shapes = shape(model), shape(onnxoptimizer.optimize(model)), shape(simplified)
print("(2, 6), reshaped to [-1, 4] and then to [0, -1], has the shape", shapes[0])
print("by onnxoptimizer's model", shapes[1])
print("by onnxsim's model", shapes[2])
sys.exit(0 if shapes == ((3, 4), (2, 6), (3, 4)) else "this has changed: see the comment at the top")
PY
"$folder/venv/bin/python" "$folder/try.py"
