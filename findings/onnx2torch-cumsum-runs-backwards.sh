#!/usr/bin/env bash
# onnx2torch takes a CumSum without the attribute `reverse` for one that runs from the end. ONNX says that it is 0 where it
# is not written. There is no error and no warning; a model that writes `reverse = 0` comes out right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx2torch==1.5.15 torch==2.14.1 torchvision==0.29.1 onnx==1.23.2 onnxruntime==1.32.0
cat > "$folder/try.py" <<'PY'
import sys
import warnings
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper

warnings.filterwarnings("ignore")
from onnx2torch import convert

print(*(f"{name} {version(name)}" for name in ("onnx2torch", "torch", "onnx", "onnxruntime")))
x = np.array([1, 2, 3, 4, 5], np.float32)
results = []
for attributes in ({}, {"reverse": 0}, {"reverse": 1}):
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "sums",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5])],
        [numpy_helper.from_array(np.array(0, np.int64), "axis")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    reference = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    converted = convert(model).eval()(torch.from_numpy(x)).numpy()
    results.append(np.array_equal(reference, converted))
    print(f"{attributes}: onnxruntime {reference}, onnx2torch {converted}")
    assert np.array_equal(reference, np.cumsum(x[::-1])[::-1] if attributes.get("reverse") else np.cumsum(x))

sys.exit(0 if results == [False, True, True] else "this has changed: see the comment at the top")
PY
"$folder/venv/bin/python" "$folder/try.py"
