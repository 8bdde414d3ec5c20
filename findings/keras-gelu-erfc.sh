#!/usr/bin/env bash
# Keras 3 (TensorFlow backend) exports a layer with the activation "gelu" as ONNX without an error, but the file has an
# operator `Erfc`, which ONNX does not have: tf2onnx only logs "Unsupported ops". onnx's checker and onnxruntime refuse
# the file. Erfc(x) is 1 - erf(x). The approximation by tanh is exported right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 tensorflow-cpu==2.21.0 tf2onnx==1.17.0 onnx==1.23.2 onnxruntime==1.32.0
cat > "$folder/try.py" <<'PY'
import os
import sys

os.environ["KERAS_BACKEND"], os.environ["TF_CPP_MIN_LOG_LEVEL"] = "tensorflow", "3"

from importlib.metadata import version

import keras
import numpy as np
import onnx
import onnxruntime

print(*(f"{name} {version(name)}" for name in ("keras", "tensorflow-cpu", "tf2onnx", "onnx", "onnxruntime")))


def operators(activation):
    """The operators of an exported layer, and why onnxruntime does not load it."""
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation)])
    model(np.zeros((1, 4), np.float32))
    path = f"{sys.argv[1]}/model.onnx"
    model.export(path, format="onnx", verbose=False)
    kinds = [node.op_type for node in onnx.load(path).graph.node]
    try:
        onnxruntime.InferenceSession(path)
    except Exception as problem:
        return kinds, str(problem).splitlines()[0][:160]
    return kinds, ""


exact, problem = operators("gelu")
print("gelu:", exact, "|", problem)
by_tanh, other = operators(lambda x: keras.activations.gelu(x, approximate=True))
print("gelu by tanh:", by_tanh, "|", other or "loaded by onnxruntime")
as_found = "Erfc" in exact and "Erfc" in problem and not other
print("as found" if as_found else "the behaviour has changed")
sys.exit(not as_found)
PY
"$folder/venv/bin/python" "$folder/try.py" "$folder" 2> "$folder/log" || { tail -5 "$folder/log"; exit 1; }
grep -m 2 "not supported\|Unsupported ops" "$folder/log" || true
