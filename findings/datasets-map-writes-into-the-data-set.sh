#!/usr/bin/env bash
# Dataset.map of a data set that was loaded from disk writes its results into the folder of the data set, as
# cache-*.arrow next to data-*.arrow, in the same format. Whoever reads all .arrow files of the folder, as pyarrow.dataset
# does, has every row twice. Only state.json says which files are the data set.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q datasets==5.2.0 pyarrow==26.0.1
cd "$folder"
export HF_HOME="$folder/home" HF_DATASETS_DISABLE_PROGRESS_BARS=1
"$folder/venv/bin/python" - <<'PYTHON'
import json
import os
import sys

import datasets as ds
import pyarrow as pa

print("datasets", ds.__version__, "pyarrow", pa.__version__)
ds.Dataset.from_dict({"y": [1.0, 2.0]}).save_to_disk("d")
before = sorted(os.listdir("d"))
ds.load_from_disk("d").map(lambda row: {"y": row["y"] + 1})
after = sorted(os.listdir("d"))
rows = sum(pa.ipc.open_stream(f"d/{name}").read_all().num_rows for name in after if name.endswith(".arrow"))
listed = [one["filename"] for one in json.load(open("d/state.json"))["_data_files"]]
print("before:", *before)
print("after: ", *after)
print("rows of all .arrow files:", rows, "listed by state.json:", *listed)
sys.exit(not (len(after) == len(before) + 1 and rows == 4 and len(listed) == 1))
PYTHON
