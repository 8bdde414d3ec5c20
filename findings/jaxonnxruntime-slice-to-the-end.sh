#!/usr/bin/env bash
# ONNX writes "to the end" of a Slice as an end of 2^63 - 1; exporters of PyTorch do so for every x[1:]. jaxonnxruntime,
# which computes ONNX models by JAX, makes an array of 32 bits of it, in which it is -1: the last element is missing,
# without an error or a warning. With JAX_ENABLE_X64=1 all are there.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jaxonnxruntime==0.3.0 jax==0.10.2 onnx==1.23.2 onnxruntime==1.32.0 absl-py==2.3.1 chex==0.1.92 PyYAML==6.0.3 numpy
cat > "$folder/try.py" <<'PY'
import json
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
from jaxonnxruntime.backend import Backend
from onnx import TensorProto, helper, numpy_helper

x = np.arange(4, dtype=np.float32)
constants = {"start": 1, "end": 2**63 - 1, "axis": 0}
graph = helper.make_graph(
    [helper.make_node("Slice", ["x", *constants], ["y"])],
    "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
    [numpy_helper.from_array(np.array([number]), name) for name, number in constants.items()],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
results = Backend.run_model(model, {"x": x})
by_jax = results["y"] if isinstance(results, dict) else results[0]
versions = {name: version(name) for name in ("jaxonnxruntime", "jax", "onnxruntime")}
print(json.dumps([versions, session.run(None, {"x": x})[0].tolist(), np.asarray(by_jax).tolist()]))
PY
cd "$folder"
JAX_ENABLE_X64=0 venv/bin/python try.py 2>/dev/null | tail -1 > short
JAX_ENABLE_X64=1 venv/bin/python try.py 2>/dev/null | tail -1 > long
venv/bin/python - <<'PY'
import json
import sys

(versions, wanted, short), (_, _, long) = (json.load(open(name)) for name in ("short", "long"))
print(versions)
print("[0, 1, 2, 3], from 1 to the end: by onnxruntime", wanted)
print("by jaxonnxruntime", short)
print("by jaxonnxruntime with 64 bits", long)
as_known = wanted == long == [1, 2, 3] and short == [1, 2]
sys.exit(0 if as_known else "this has changed: see the comment at the top")
PY
