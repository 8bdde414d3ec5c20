"""Keys that are different texts, but the same number: `007` and `7`."""

from __future__ import annotations

import base64
import io
import tarfile
from pathlib import Path

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cntkpy.readers import (
    Base64ImageDeserializer,
    CsvDeserializer,
    DataError,
    ImageDeserializer,
    MinibatchSource,
    ParquetDeserializer,
    StreamDef,
    StreamDefs,
    TarDeserializer,
)
from cntkpy.readers.common.corpus import Corpus, padded_keys, same_number


@pytest.mark.parametrize(
    ("keys", "same"),
    [
        (["007", "7"], ("007", "7")),
        (["7", "007", "8"], ("007", "7")),
        (["007", "0007"], ("007", "0007")),
        (["007", "8", "007"], None),
        (["0", "00"], ("00", "0")),
        (["000", "001", "010"], None),
        (["7", "7"], None),
        ([], None),
    ],
)
def test_different_texts_of_one_number(keys: list[str], same: tuple[str, str] | None) -> None:
    numbers = np.array([int(key) for key in keys], np.uint64)
    assert same_number(padded_keys(keys), numbers) == same
    if same is None:
        assert Corpus().numbers(keys).tolist() == numbers.tolist()
    else:
        with pytest.raises(DataError, match=f"'{same[0]}' and '{same[1]}' are the same number") as caught:
            Corpus().numbers(keys)
        assert "useNumericSequenceKeys=false" in str(caught.value.hint)
    assert len(set(Corpus(numeric=False).numbers(keys).tolist())) == len(set(keys))


def picture() -> bytes:
    return cv2.imencode(".png", np.zeros((2, 2, 3), np.uint8))[1].tobytes()


def write_tar(path: Path, names: list[str]) -> str:
    with tarfile.open(path, "w") as file:
        for number, name in enumerate(names):
            data = b"%d" % number
            header = tarfile.TarInfo(f"{name}.cls")
            header.size = len(data)
            file.addfile(header, io.BytesIO(data))
    return str(path)


def table_of(names: list[str], folder: Path, rows: int = 10) -> str:
    path = str(folder / "t.parquet")
    pq.write_table(pa.table({"key": names, "y": np.arange(len(names), dtype=float)}), path, row_group_size=rows)
    return path


def labels() -> StreamDefs:
    return StreamDefs(y=StreamDef(field="cls", shape=3, is_sparse=True))


@pytest.mark.malformed
def test_samples_of_a_tar_stay_apart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A second deserializer is joined by the text of the key, so each sample gets its own row."""
    shard = write_tar(tmp_path / "a.tar", ["007", "7"])
    table = table_of(["7", "007"], tmp_path)
    rows = ParquetDeserializer(table, StreamDefs(x=StreamDef(field="y", shape=1)), key_column="key")
    source = MinibatchSource([TarDeserializer(shard, labels()), rows], randomize=False, max_sweeps=1)
    batch = source.next_minibatch(10)
    assert [one.indices.tolist() for one in batch[source["y"]].as_sequences()] == [[0], [1]]
    assert [one.tolist() for one in batch[source["x"]].as_sequences()] == [[[1.0]], [[0.0]]]
    assert "'007' and '7' are the same number, so keys are taken as texts" in caplog.text


@pytest.mark.malformed
@pytest.mark.parametrize("rows", [1, 10])
def test_keys_of_a_table_stay_apart(tmp_path: Path, rows: int, caplog: pytest.LogCaptureFixture) -> None:
    path = table_of(["7", "8", "007"], tmp_path, rows)
    first = ParquetDeserializer(path, StreamDefs(x=StreamDef(field="y", shape=1)), key_column="key")
    (tmp_path / "t.csv").write_text("key,y\n007,2\n7,0\n8,1\n")
    second = CsvDeserializer(str(tmp_path / "t.csv"), StreamDefs(z=StreamDef(field="y", shape=1)), key_column="key")
    source = MinibatchSource([first, second], randomize=False, max_sweeps=1)
    batch = source.next_minibatch(10)
    assert batch[source["x"]].as_sequences() == batch[source["z"]].as_sequences() == [[[0.0]], [[1.0]], [[2.0]]]
    assert "the sequence keys '007' and '7' are the same number, so keys are taken as texts" in caplog.text


@pytest.mark.malformed
@pytest.mark.parametrize("rows", [1, 10])
def test_keys_of_a_second_table_are_refused(tmp_path: Path, rows: int) -> None:
    """The first one has numbers as keys."""
    path = table_of(["7", "8", "007"], tmp_path, rows)
    (tmp_path / "t.csv").write_text("y\n0\n1\n")
    first = CsvDeserializer(str(tmp_path / "t.csv"), StreamDefs(z=StreamDef(field="y", shape=1)))
    second = ParquetDeserializer(path, StreamDefs(x=StreamDef(field="y", shape=1)), key_column="key")
    with pytest.raises(DataError, match="the sequence keys '007' and '7' are the same number"):
        MinibatchSource([first, second])


def test_a_table_may_have_texts_as_keys(tmp_path: Path) -> None:
    path = table_of(["b", "a"], tmp_path)
    rows = ParquetDeserializer(path, StreamDefs(x=StreamDef(field="y", shape=1)), key_column="key")
    source = MinibatchSource(rows, randomize=False, max_sweeps=1)
    assert [one.tolist() for one in source.next_minibatch(9)[source["x"]].as_sequences()] == [[[0.0]], [[1.0]]]


@pytest.mark.malformed
@pytest.mark.parametrize("kind", ["map", "base64"])
def test_lists_of_pictures_take_keys_as_texts(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.png").write_bytes(picture())
    list_file = tmp_path / "map.txt"
    value = str(tmp_path / "a.png") if kind == "map" else base64.b64encode(picture()).decode()
    order = ("{key}\t{value}\t{label}\n") if kind == "map" else "{key}\t{label}\t{value}\n"
    keys = enumerate(("007", "7"))
    list_file.write_text("".join(order.format(key=key, value=value, label=label) for label, key in keys))
    make = ImageDeserializer if kind == "map" else Base64ImageDeserializer
    defs = StreamDefs(x=StreamDef(field="image"), y=StreamDef(field="label", shape=2, is_sparse=True))
    rows = ParquetDeserializer(
        table_of(["7", "007"], tmp_path), StreamDefs(z=StreamDef(field="y", shape=1)), key_column="key"
    )
    source = MinibatchSource([make(str(list_file), defs), rows], randomize=False, max_sweeps=1)
    batch = source.next_minibatch(10)
    assert [one.indices.tolist() for one in batch[source["y"]].as_sequences()] == [[0], [1]]
    assert [one.tolist() for one in batch[source["z"]].as_sequences()] == [[[1.0]], [[0.0]]]
    assert "'007' and '7' are the same number, so keys are taken as texts" in caplog.text


@pytest.mark.malformed
@pytest.mark.parametrize("kind", ["map", "base64"])
@pytest.mark.parametrize("pair", [("7a", "7"), ("7\xe9", "07"), ("0x", "0")])
def test_keys_that_begin_with_one_number(
    tmp_path: Path, kind: str, pair: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """D12: a list of pictures takes the digits that a key begins with; two keys with the same ones are two pictures."""
    picture_file = tmp_path / "a.png"
    picture_file.write_bytes(picture())
    value = str(picture_file) if kind == "map" else base64.b64encode(picture()).decode()
    order = "{key}\t{value}\t{label}\n" if kind == "map" else "{key}\t{label}\t{value}\n"
    list_file = tmp_path / "map.txt"
    list_file.write_text("".join(order.format(key=key, value=value, label=at) for at, key in enumerate(pair)), "utf-8")
    make = ImageDeserializer if kind == "map" else Base64ImageDeserializer
    defs = StreamDefs(x=StreamDef(field="image"), y=StreamDef(field="label", shape=2, is_sparse=True))
    source = MinibatchSource(make(str(list_file), defs), randomize=False, max_sweeps=1)
    batch = source.next_minibatch(10)
    assert [one.indices.tolist() for one in batch[source["y"]].as_sequences()] == [[0], [1]]
    assert f"'{pair[0]}' and '{pair[1]}' are the same number, so keys are taken as texts" in caplog.text
