#!/usr/bin/env bash
# Python's lzma ends at stream padding: of an .xz file of two streams with eight zero bytes between them, which the .xz
# format allows and xz reads, lzma.open gives the first stream and no error. python-xz gives both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv v
v/bin/pip install -q --disable-pip-version-check python-xz==0.7.0
cat > try.py <<'PY'
import lzma
import platform
import sys
from importlib.metadata import version

import xz

with open("two.xz", "wb") as file:
    file.write(lzma.compress(b"first ") + bytes(8) + lzma.compress(b"second"))
with lzma.open("two.xz") as file:
    ours = file.read()
with xz.open("two.xz") as file:
    theirs = file.read()
print("Python", platform.python_version(), "- python-xz", version("python-xz"))
print("lzma.open:", ours, "- xz.open:", theirs)
sys.exit((ours, theirs) != (b"first ", b"first second"))
PY
v/bin/python try.py
