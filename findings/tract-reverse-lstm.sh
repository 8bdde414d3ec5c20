#!/usr/bin/env bash
# tract ignores `direction = "reverse"` of ONNX's LSTM, GRU and RNN: it computes the forward direction, without an error
# or a warning. `bidirectional` is right, so the same network is right or wrong with the way in which it was exported.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tract==0.23.9 onnx==1.23.2 onnxruntime==1.32.0 numpy
cat > "$folder/try.py" <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
import tract
from onnx import helper, numpy_helper

STEPS, BATCH, SIZE, HIDDEN = 4, 2, 3, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
random = np.random.default_rng(0)
x = random.normal(size=(STEPS, BATCH, SIZE)).astype(np.float32)


def weights(kind, ways):
    sizes = {"W": (ways, GATES[kind] * HIDDEN, SIZE), "R": (ways, GATES[kind] * HIDDEN, HIDDEN)}
    return {name: random.normal(size=size).astype(np.float32) for name, size in sizes.items()}


def model(kind, direction, arrays, path):
    node = helper.make_node(kind, ["x", "W", "R"], ["y"], hidden_size=HIDDEN, direction=direction)
    info = helper.make_tensor_value_info
    inputs = [info("x", 1, [STEPS, BATCH, SIZE])]
    outputs = [info("y", 1, [STEPS, len(arrays["W"]), BATCH, HIDDEN])]
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph([node], "g", inputs, outputs, tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    onnx.save(made, path)
    return path


def by_onnxruntime(path):
    return onnxruntime.InferenceSession(path).run(None, {"x": x})[0]


def by_tract(path):
    return tract.onnx().load(path).into_model().into_runnable().run([x])[0].to_numpy()


print("tract", tract.version(), "onnxruntime", onnxruntime.__version__)
as_found = True
for kind in GATES:
    arrays = weights(kind, 1)
    forward = model(kind, "forward", arrays, f"{sys.argv[1]}/forward.onnx")
    reverse = model(kind, "reverse", arrays, f"{sys.argv[1]}/reverse.onnx")
    wrong = abs(by_tract(reverse) - by_onnxruntime(reverse)).max()
    ignored = abs(by_tract(reverse) - by_onnxruntime(forward)).max()
    both = model(kind, "bidirectional", weights(kind, 2), f"{sys.argv[1]}/both.onnx")
    right = abs(by_tract(both) - by_onnxruntime(both)).max()
    print(f"{kind}, reverse: {wrong:.3g} from onnxruntime, {ignored:.3g} from its forward direction; bidirectional: {right:.3g}")
    as_found = as_found and wrong > 0.1 and ignored < 1e-5 and right < 1e-5
print("as found" if as_found else "the behaviour has changed")
sys.exit(not as_found)
PY
"$folder/venv/bin/python" "$folder/try.py" "$folder"
