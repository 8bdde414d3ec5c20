#!/usr/bin/env bash
# `import datasets` changes what pyarrow says of a file: the column of an Array2D is list<list<float>> before the import
# and an extension type after it, in the same process. Code that looks at the type of a column works or fails by that.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q datasets==5.2.0 pyarrow==26.0.1
cd "$folder"
export HF_HOME="$folder/home" HF_DATASETS_DISABLE_PROGRESS_BARS=1
"$folder/venv/bin/python" -c '
import datasets as ds
features = ds.Features({"a": ds.Array2D((2, 3), "float32")})
ds.Dataset.from_dict({"a": [[[1, 2, 3], [4, 5, 6]]]}, features=features).to_parquet("t.parquet")
'
"$folder/venv/bin/python" - <<'PYTHON'
import sys
import pyarrow as pa
import pyarrow.parquet as pq

before = pq.read_schema("t.parquet").field("a").type
import datasets  # noqa: E402

after = pq.read_schema("t.parquet").field("a").type
print("datasets", datasets.__version__, "pyarrow", pa.__version__)
print("before the import:", before)
print("after the import: ", after)
sys.exit(not (pa.types.is_list(before) and isinstance(after, pa.ExtensionType)))
PYTHON
