#!/usr/bin/env bash
# duckdb writes HUGEINT, which sum() of whole numbers gives, to Parquet as double, without a warning: two different keys
# above 2^53 are one number in the file. A DECIMAL(38, 0) of the same values keeps them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q duckdb==2.0.1 pyarrow==26.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

print("duckdb", duckdb.__version__, "pyarrow", pa.__version__)
duckdb.sql("create table t as select g, sum(x) as key from (values (1, 9007199254740992), (2, 9007199254740993)) v(g, x) group by g")
print("in duckdb:", duckdb.sql("select key, typeof(key) from t order by g").fetchall())
duckdb.sql("copy (select key, key::DECIMAL(38, 0) as kept from t order by g) to 't.parquet'")
table = pq.read_table("t.parquet")
print("in the file:", table.schema.field("key").type, table["key"].to_pylist())
print("as DECIMAL:", table.schema.field("kept").type, table["kept"].to_pylist())
keys = table["key"].to_pylist()
sys.exit(not (pa.types.is_float64(table.schema.field("key").type) and keys[0] == keys[1]))
PYTHON
