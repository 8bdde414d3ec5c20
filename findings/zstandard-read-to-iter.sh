#!/usr/bin/env bash
# ZstdDecompressor.read_to_iter stops after the first frame of a file, without an error; stream_reader and copy_stream
# of the same object, and the zstd program, go on. Parallel and seekable compressors (pzstd, t2sz) write many frames.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv v
v/bin/pip install -q --disable-pip-version-check zstandard==0.25.0
cat > try.py <<'PY'
import io
import sys

import zstandard

parts = [b"first " * 1000, b"second " * 1000, b"third " * 1000]
data = b"".join(zstandard.ZstdCompressor().compress(part) for part in parts)
whole = sum(map(len, parts))
by_iter = sum(map(len, zstandard.ZstdDecompressor().read_to_iter(io.BytesIO(data))))
by_reader = len(zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read())
_, by_copy = zstandard.ZstdDecompressor().copy_stream(io.BytesIO(data), io.BytesIO())
print("zstandard", zstandard.__version__)
print(f"three frames of {whole:,} bytes: read_to_iter {by_iter:,}, stream_reader {by_reader:,}, copy_stream {by_copy:,}")
sys.exit((by_iter, by_reader, by_copy) != (len(parts[0]), whole, whole))
PY
v/bin/python try.py
