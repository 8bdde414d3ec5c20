"""Folders of tables with a log of their own are refused; files of a folder have columns of one kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cntkpy.commands.cli import main
from cntkpy.readers import DataError, MinibatchSource, ParquetDeserializer, StreamDef, StreamDefs
from cntkpy.readers.formats.tables.partitions import files_of


def write(path: str, values: list[Any], name: str = "y") -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({name: values}), path)
    return path


def values_of(file: str | list[str]) -> list[float]:
    source = MinibatchSource(
        ParquetDeserializer(file, StreamDefs(x=StreamDef(field="y", shape=1))), randomize=False, max_sweeps=1
    )
    batch = source.next_minibatch(100)
    return [float(one[0, 0]) for one in batch[source["x"]].as_sequences()]


def delta(folder: str, inside: str = "") -> list[str]:
    """A table of Delta Lake, whose first file was replaced by the second one."""
    files = [write(f"{folder}/{inside}a.parquet", [1.0, 1.0]), write(f"{folder}/{inside}b.parquet", [2.0])]
    log = Path(folder, "_delta_log")
    log.mkdir()
    (log / f"{1:020}.json").write_text(json.dumps({"remove": {"path": f"{inside}a.parquet"}}))
    return files


@pytest.mark.malformed
@pytest.mark.parametrize("inside", ["", "split=train/", "split=train/year=2024/"])
def test_a_table_of_delta_lake_is_refused(inside: str) -> None:
    files = delta("lake/t", inside)
    around = ["lake", "lake/t", "lake/t/", f"lake/t/{inside}", f"lake/t/{inside}*.parquet", "lake/**/*.parquet"]
    for path in around:
        with pytest.raises(DataError, match=r"lake/t is a table of Delta Lake: .* deleted or replaced") as caught:
            values_of(path)
        assert "deltalake.DeltaTable('lake/t').to_pyarrow_table()" in str(caught.value.hint)
    assert values_of([files[1]]) == [2.0]  # what its log says is live


@pytest.mark.parametrize(
    ("name", "mark", "data"),
    [
        ("Iceberg", "metadata/00000-1.metadata.json", "data"),
        ("Iceberg", "metadata/v1.metadata.json", "data/split=train"),
        ("Hudi", ".hoodie/hoodie.properties", "2024/01"),
        ("Hudi", "2024/01/.hoodie_partition_metadata", "2024/01"),
        ("Spark's streams", "_spark_metadata/0", "."),
        ("Paimon", "snapshot/snapshot-1", "bucket-0"),
        ("DuckLake", "ducklake-1-delete.parquet", "."),
    ],
)
@pytest.mark.malformed
def test_other_tables_with_a_log_are_refused(name: str, mark: str, data: str) -> None:
    write(f"t/{data}/a.parquet", [1.0])
    assert values_of("t") == [1.0]
    Path("t", mark).parent.mkdir(parents=True, exist_ok=True)
    Path("t", mark).write_text("{}")
    with pytest.raises(DataError, match=f"is a table of {name}"):
        values_of("t")


@pytest.mark.malformed
def test_lance_is_named_though_it_has_no_parquet_file() -> None:
    Path("x.lance/_versions").mkdir(parents=True)
    Path("x.lance/_versions/1.manifest").write_bytes(b"")
    with pytest.raises(DataError, match=r"x\.lance is a table of Lance"):
        values_of("x.lance")


def test_folders_of_other_writers_are_read() -> None:
    """Spark's _SUCCESS and checksums, fastparquet's _metadata, and folders that only look alike."""
    path = write("t/metadata=1/part-0.parquet", [1.0])
    for other in ("_SUCCESS", "._SUCCESS.crc", "_metadata", "metadata=1/.part-0.parquet.crc", "metadata.json"):
        Path("t", other).write_bytes(b"")
    write("t/_temporary/0/part-1.parquet", [2.0])
    assert files_of(["t"], (".parquet",)) == [path]
    assert values_of("t") == [1.0]


def test_results_that_datasets_keeps_are_not_read_again() -> None:
    """`Dataset.map` writes cache-*.arrow next to the files of save_to_disk, which state.json lists."""
    files = [write(f"d/data-0000{i}-of-00002.arrow", [float(i)]) for i in range(2)]
    cache = write("d/cache-1.arrow", [9.0])
    assert files_of(["d"], (".arrow",)) == [cache, *files]
    state = {"_data_files": [{"filename": Path(file).name} for file in files], "_fingerprint": "1"}
    Path("d/state.json").write_text(json.dumps(state))
    assert files_of(["d"], (".arrow",)) == files
    assert files_of(["d/*.arrow"], (".arrow",)) == files
    assert files_of([cache], (".arrow",)) == [cache]
    for other in ("{", "[]", '{"_data_files": 1}', '{"_data_files": []}', "[" * 100_000):
        Path("d/state.json").write_text(other)
        assert files_of(["d"], (".arrow",)) == [cache, *files]


@pytest.mark.malformed
def test_check_and_run_refuse_a_table_of_delta_lake(capsys: pytest.CaptureFixture[str]) -> None:
    delta("t")
    Path("a.cntk").write_text(
        "command=t\nt=[action=train;SGD=[maxEpochs=1;learningRatesPerSample=0.1];SimpleNetworkBuilder=[layerSizes=1:1]\n"
        "reader=[deserializers=([type=ParquetDeserializer;file=t;input=[features=[dim=1;alias=y];labels=[dim=1;alias=y]]])]]"
    )
    main(["check", "--data", "a.cntk"])
    assert "t is a table of Delta Lake" in capsys.readouterr().out


TYPES: list[tuple[str, list[Any], list[Any]]] = [
    ("text and numbers", ["a", "b"], [1, 0]),
    ("numbers and text", [1, 0], ["a", "b"]),
    ("numbers and lists", [1, 0], [[1], [0, 1]]),
    ("lists and numbers", [[1], [0, 1]], [1, 0]),
]


@pytest.mark.malformed
@pytest.mark.parametrize(("first", "second"), [one[1:] for one in TYPES], ids=[one[0] for one in TYPES])
@pytest.mark.parametrize("sparse", [True, False])
def test_files_of_a_folder_have_columns_of_one_kind(first: list[Any], second: list[Any], sparse: bool) -> None:
    write("t/a.parquet", first)
    write("t/b.parquet", second)
    stream = StreamDef(field="y", shape=2 if sparse else 1, is_sparse=sparse)
    with pytest.raises(DataError) as caught:
        MinibatchSource(ParquetDeserializer("t", StreamDefs(x=stream)))
    if sparse or "a" not in [*first, *second]:
        assert "t/b.parquet: column 'y' is " in str(caught.value)
        assert "in t/a.parquet" in str(caught.value)


@pytest.mark.malformed
def test_keys_of_a_folder_are_of_one_kind() -> None:
    Path("t").mkdir()
    pq.write_table(pa.table({"y": [1.0], "k": [1]}), "t/a.parquet")
    pq.write_table(pa.table({"y": [1.0], "k": ["2"]}), "t/b.parquet")
    with pytest.raises(DataError, match=r"t/b.parquet: column 'k' is string, but int64 in t/a.parquet"):
        MinibatchSource(ParquetDeserializer("t", StreamDefs(x=StreamDef(field="y", shape=1)), key_column="k"))


@pytest.mark.malformed
def test_a_column_that_a_file_lacks_is_named() -> None:
    write("t/a.parquet", [1.0])
    write("t/b.parquet", [2.0], "z")
    with pytest.raises(DataError, match=r"t/b.parquet has no column 'y'"):
        values_of("t")


def test_a_folder_without_a_value_is_a_missing_value() -> None:
    write("t/s=__HIVE_DEFAULT_PARTITION__/a.parquet", [1.0])
    write("t/s=x/a.parquet", [2.0])
    stream = StreamDefs(x=StreamDef(field="y", shape=1))
    source = MinibatchSource(ParquetDeserializer("t", stream, filter="s is null"), randomize=False, max_sweeps=1)
    assert [one.tolist() for one in source.next_minibatch(9)[source["x"]].as_sequences()] == [[[1.0]]]
