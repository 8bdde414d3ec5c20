#!/usr/bin/env bash
# OpenVINO leaves out the peepholes (input P) of ONNX's LSTM: it computes the layer as if there were none, without an
# error or a warning. Weights of an LSTM with peepholes give results that are plausible and wrong.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.32.0 numpy
cat > "$folder/try.py" <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import helper, numpy_helper

STEPS, BATCH, SIZE, HIDDEN = 4, 2, 3, 5
random = np.random.default_rng(0)
arrays = {
    "W": random.normal(size=(1, 4 * HIDDEN, SIZE)),
    "R": random.normal(size=(1, 4 * HIDDEN, HIDDEN)),
    "B": random.normal(size=(1, 8 * HIDDEN)),
    "P": random.normal(size=(1, 3 * HIDDEN)),
}
x = random.normal(size=(STEPS, BATCH, SIZE)).astype(np.float32)


def model(peepholes, path):
    names = ["x", "W", "R", "B", "", "", "", "P" if peepholes else ""]
    node = helper.make_node("LSTM", names, ["y"], hidden_size=HIDDEN)
    info = helper.make_tensor_value_info
    inputs, outputs = [info("x", 1, [STEPS, BATCH, SIZE])], [info("y", 1, [STEPS, 1, BATCH, HIDDEN])]
    tensors = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items() if n in names]
    graph = helper.make_graph([node], "g", inputs, outputs, tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    onnx.save(made, path)
    return path


def by_onnxruntime(path):
    return onnxruntime.InferenceSession(path).run(None, {"x": x})[0]


def by_openvino(path):
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled([x])[0]


print("openvino", openvino.__version__, "onnxruntime", onnxruntime.__version__)
plain, looking = (model(one, f"{sys.argv[1]}/{one}.onnx") for one in (False, True))
right = abs(by_openvino(plain) - by_onnxruntime(plain)).max()
wrong = abs(by_openvino(looking) - by_onnxruntime(looking)).max()
ignored = abs(by_openvino(looking) - by_onnxruntime(plain)).max()
print(f"without peepholes: {right:.3g} from onnxruntime")
print(f"with peepholes: {wrong:.3g} from onnxruntime, {ignored:.3g} from the model without them")
as_found = right < 1e-5 and wrong > 0.01 and ignored < 1e-5
print("as found" if as_found else "the behaviour has changed")
sys.exit(not as_found)
PY
"$folder/venv/bin/python" "$folder/try.py" "$folder"
