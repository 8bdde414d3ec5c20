#!/usr/bin/env bash
# zstandard.open reads a file that was cut in its middle as if it ended there: no error, the first half of the data.
# gzip, bz2, lzma and backports.zstd of Python raise EOFError; `zstd -t` says "premature end".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv v
v/bin/pip install -q --disable-pip-version-check zstandard==0.25.0 backports.zstd==1.8.0
cat > try.py <<'PY'
import importlib.metadata as metadata
import sys

import zstandard
from backports import zstd

text = "".join(f"{i} {i * i}\n" for i in range(200_000)).encode()
whole = zstandard.ZstdCompressor(write_checksum=True).compress(text)
with open("cut.zst", "wb") as file:
    file.write(whole[: len(whole) // 2])
print("zstandard", metadata.version("zstandard"))
with zstandard.open("cut.zst", "rb") as file:
    found = len(file.read())
print(f"zstandard.open: {found:,} of {len(text):,} bytes, no error")
with zstandard.open("cut.zst", "rt") as file:
    print(f"zstandard.open, lines: {sum(1 for _ in file):,} of 200,000, no error")
try:
    zstd.open("cut.zst").read()
    other = "no error"
except EOFError as error:
    other = f"EOFError: {error}"
print(f"backports.zstd.open: {other}")
sys.exit(not (0 < found < len(text) and other.startswith("EOFError")))
PY
v/bin/python try.py
