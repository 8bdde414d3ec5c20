#!/usr/bin/env bash
# ONNX's own reference implementation computes an LSTM without its attributes `clip`, `input_forget` and `activations`
# and without its input `sequence_lens`: as if they were not there, without an error or a warning. onnxruntime computes
# what the specification says. Who takes the reference as the right value, to test an exporter or a runtime, takes a
# wrong one for every padded minibatch.
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
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

STEPS, BATCH, SIZE, HIDDEN = 5, 2, 3, 4
random = np.random.default_rng(0)
feeds = {
    "X": random.normal(size=(STEPS, BATCH, SIZE)).astype(np.float32),
    "W": random.normal(size=(1, 4 * HIDDEN, SIZE)).astype(np.float32),
    "R": random.normal(size=(1, 4 * HIDDEN, HIDDEN)).astype(np.float32),
    "B": random.normal(size=(1, 8 * HIDDEN)).astype(np.float32),
}
LENGTHS = {"lengths": np.array([5, 2], np.int32)}


def outputs(inputs, **attributes):
    node = helper.make_node("LSTM", list(inputs), ["Y", "Y_h"], hidden_size=HIDDEN, **attributes)
    types = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int32): TensorProto.INT32}
    signature = [helper.make_tensor_value_info(k, types[v.dtype], v.shape) for k, v in inputs.items()]
    shapes = {"Y": [STEPS, 1, BATCH, HIDDEN], "Y_h": [1, BATCH, HIDDEN]}
    results = [helper.make_tensor_value_info(k, TensorProto.FLOAT, shape) for k, shape in shapes.items()]
    graph = helper.make_graph([node], "g", signature, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return ReferenceEvaluator(model).run(None, inputs), session.run(None, inputs)


print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
plain, runtime = outputs(feeds)
as_known = all(np.allclose(a, b, atol=1e-5) for a, b in zip(plain, runtime))
print("forward: largest difference of Y_h", f"{np.abs(plain[1] - runtime[1]).max():.1e}")
cases = {
    "sequence_lens=[5, 2]": (feeds | LENGTHS, {}),
    "clip=0.5": (feeds, {"clip": 0.5}),
    "input_forget=1": (feeds, {"input_forget": 1}),
    "activations=[HardSigmoid, Tanh, Tanh]": (feeds, {"activations": ["HardSigmoid", "Tanh", "Tanh"]}),
}
for name, (inputs, attributes) in cases.items():
    reference, runtime = outputs(inputs, **attributes)
    ignored = all(np.array_equal(a, b) for a, b in zip(reference, plain))
    different = np.abs(reference[1] - runtime[1]).max()
    print(f"{name}: the reference is the plain LSTM: {ignored}; largest difference of Y_h to onnxruntime {different:.2f}")
    as_known = as_known and ignored and different > 0.01
    if "lengths" in inputs:
        print("  padded steps of the second sequence:", "zeros" if not runtime[0][2:, 0, 1].any() else "numbers", "in onnxruntime,",
              "zeros" if not reference[0][2:, 0, 1].any() else "numbers", "in the reference")
sys.exit(0 if as_known else "this has changed: see the comment at the top")
PY
"$folder/venv/bin/python" "$folder/try.py"
