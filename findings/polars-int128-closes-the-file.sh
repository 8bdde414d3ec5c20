#!/usr/bin/env bash
# One column of the type Int128, which polars writes without a warning, and pyarrow opens neither the Parquet file nor the
# IPC file any more: it cannot read the other columns either, since it fails on the schema.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q polars==2.1.0 pyarrow==26.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

print("polars", pl.__version__, "pyarrow", pa.__version__)
frame = pl.DataFrame({"key": pl.Series([1, 2], dtype=pl.Int128), "y": [1.0, 2.0]})
frame.write_parquet("t.parquet")
frame.write_ipc("t.arrow")
refused = 0
for name, read in (("t.parquet", pq.read_table), ("t.arrow", pyarrow.feather.read_table)):
    try:
        print(name, read(name, columns=["y"]).num_rows, "rows")
    except pa.ArrowNotImplementedError as error:
        refused += 1
        print(name, "column y is refused:", error)
print("polars reads y itself:", pl.read_parquet("t.parquet", columns=["y"])["y"].to_list())
sys.exit(refused != 2)
PYTHON
