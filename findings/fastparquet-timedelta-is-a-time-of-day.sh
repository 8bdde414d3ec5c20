#!/usr/bin/env bash
# fastparquet writes a timedelta64 as Parquet's TIME, a time of day, without a warning. pyarrow then reads three days as a
# time of day of 72 hours, which becomes 00:00 in Python. pandas itself writes a duration.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q fastparquet==2026.9.0 pandas==3.1.1 pyarrow==26.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys
import fastparquet
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

print("fastparquet", fastparquet.__version__, "pandas", pd.__version__, "pyarrow", pa.__version__)
frame = pd.DataFrame({"d": pd.to_timedelta(["3D", "1h"])})
fastparquet.write("t.parquet", frame)
column = pq.read_table("t.parquet")["d"]
hours = [value // 3_600_000_000 for value in column.cast(pa.int64()).to_pylist()]
print("pyarrow:", column.type, "hours:", hours)
print("as Python:", column.to_pylist())
frame.to_parquet("p.parquet")
print("pandas itself writes:", pq.read_schema("p.parquet").field("d").type)
sys.exit(not (pa.types.is_time(column.type) and hours == [72, 1]))
PYTHON
