#!/usr/bin/env bash
# A pandas category of whole numbers is int64 in the file that to_parquet writes, and a dictionary in the one that
# to_feather writes, though both are written by pyarrow from one table: Parquet keeps only dictionaries of texts.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pandas==3.1.1 pyarrow==26.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

print("pandas", pd.__version__, "pyarrow", pa.__version__)
frame = pd.DataFrame({"label": pd.Categorical([7, 5, 7]), "name": pd.Categorical(["b", "a", "b"])})
frame.to_parquet("t.parquet")
frame.to_feather("t.feather")
found = {}
for path, schema in (("t.parquet", pq.read_schema("t.parquet")), ("t.feather", pa.feather.read_table("t.feather").schema)):
    found[path] = [field.type for field in schema]
    print(path, *found[path], sep=" | ")
label = [kinds[0] for kinds in found.values()]
name = [kinds[1] for kinds in found.values()]
sys.exit(not (pa.types.is_int64(label[0]) and pa.types.is_dictionary(label[1]) and all(map(pa.types.is_dictionary, name))))
PYTHON
