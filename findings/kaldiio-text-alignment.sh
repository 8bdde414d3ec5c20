#!/usr/bin/env bash
# kaldiio writes a vector of integers in text (an alignment) as `u  [ 3 3 4 ]`. Kaldi writes `u 3 3 4`, and its own
# reader, here in kaldi_native_io, refuses the brackets, which are for vectors of reals. kaldiio reads both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv v
v/bin/pip install -q --disable-pip-version-check kaldiio==2.18.1 kaldi_native_io==1.23.0 numpy==2.4.6
cat > try.py <<'PY'
import sys
from importlib.metadata import version

import kaldi_native_io
import kaldiio
import numpy as np

classes = np.array([3, 3, 4], np.int32)
kaldiio.save_ark("kaldiio.ark", {"u": classes}, text=True)
with kaldi_native_io.Int32VectorWriter("ark,t:kaldi.ark") as writer:
    writer.write("u", classes.tolist())
texts = {name: open(f"{name}.ark", "rb").read() for name in ("kaldiio", "kaldi")}
print("kaldiio", version("kaldiio"), texts["kaldiio"], "- kaldi_native_io", version("kaldi_native_io"), texts["kaldi"])
print("kaldiio reads its own:", dict(kaldiio.load_ark("kaldiio.ark")))
try:
    reader = kaldi_native_io.SequentialInt32VectorReader("ark:kaldiio.ark")
    answer = "read"
except RuntimeError:
    answer = "refused"
print("Kaldi's reader of the file of kaldiio:", answer)
sys.exit((texts["kaldiio"], texts["kaldi"].split(), answer) != (b"u  [ 3 3 4 ]\n", [b"u", b"3", b"3", b"4"], "refused"))
PY
v/bin/python try.py 2> errors
grep -m 1 "could not interpret line" errors
