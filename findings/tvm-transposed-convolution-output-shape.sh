#!/usr/bin/env bash
# TVM's reader of ONNX computes a ConvTranspose without its attribute `output_shape`, by which a model says how large the
# result is, if it has no `auto_pad`: the result has other sizes, and there is no error or warning. With `auto_pad` the sizes agree.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet apache-tvm==0.27.0.post1 onnx==1.23.2 onnxruntime==1.32.0
cat > "$folder/try.py" <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

print(*(f"{name} {version(name)}" for name in ("apache-tvm", "onnx", "onnxruntime")))
x = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
kernel = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)


def model_of(**attributes):
    node = helper.make_node("ConvTranspose", ["x", "kernel"], ["y"], strides=[2, 2], **attributes)
    graph = helper.make_graph(
        [node],
        "upsampling",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, None, None])],
        [numpy_helper.from_array(kernel, "kernel")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def by_tvm(model):
    module = relax.transform.LegalizeOps()(relax.transform.DecomposeOpsForInference()(from_onnx(model)))
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(x)).numpy()


def by_onnxruntime(model):
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]


shapes = []
for attributes in ({}, {"output_shape": [6, 6]}, {"output_shape": [6, 6], "auto_pad": "SAME_UPPER"}, {"output_shape": [8, 8]}):
    model = model_of(**attributes)
    expected, result = by_onnxruntime(model), by_tvm(model)
    equal = expected.shape == result.shape and np.allclose(expected, result)
    print(f"{attributes}: onnxruntime {expected.shape[2:]}, TVM {result.shape[2:]}, equal: {equal}")
    shapes.append((expected.shape[2:], result.shape[2:]))
as_known = shapes == [((7, 7), (7, 7)), ((6, 6), (7, 7)), ((6, 6), (6, 6)), ((8, 8), (7, 7))]
sys.exit(0 if as_known else "this has changed: see the comment at the top")
PY
"$folder/venv/bin/python" "$folder/try.py" 2> "$folder/log" || { tail -5 "$folder/log"; exit 1; }
