#!/usr/bin/env bash
# onnx-graphsurgeon's fold_constants replaces a Shape by its value where it knows the sizes, but without its attributes
# `start` and `end`: a Shape of the last axis becomes the shape of all axes, and there is no error. PyTorch's exporter
# writes `start` and `end` for every size that is read. Here a division by the size of the last axis divides by all.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx-graphsurgeon==0.6.1 onnx==1.23.2 onnxruntime==1.32.0
cat > "$folder/try.py" <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnx_graphsurgeon
import onnxruntime
from onnx import TensorProto, helper

print(*(f"{name} {version(name)}" for name in ("onnx-graphsurgeon", "onnx", "onnxruntime")))
nodes = [
    helper.make_node("Shape", ["x"], ["sizes"], start=2),
    helper.make_node("ReduceProd", ["sizes"], ["count"], keepdims=0),
    helper.make_node("Cast", ["count"], ["divisor"], to=TensorProto.FLOAT),
    helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
    helper.make_node("Div", ["total", "divisor"], ["y"]),
]
graph = helper.make_graph(
    nodes,
    "mean",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
folded = onnx_graphsurgeon.export_onnx(onnx_graphsurgeon.import_onnx(model).fold_constants().cleanup())
onnx.checker.check_model(folded, full_check=True)

x = np.ones((1, 3, 4), np.float32)
before, after = (
    float(onnxruntime.InferenceSession(each.SerializeToString()).run(None, {"x": x})[0]) for each in (model, folded)
)
print(f"12 ones divided by the last size, 4: {before} as written, {after} with constants folded")
sys.exit(0 if (before, after) == (3.0, 1.0) else "this has changed: see the comment at the top")
PY
"$folder/venv/bin/python" "$folder/try.py"
