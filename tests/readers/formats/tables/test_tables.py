"""Parquet and Arrow files: columns to streams, orders, compositions, errors with their place, conversions."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cntkpy.testing
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import how_to_install
from cntkpy.commands.cli import main
from cntkpy.commands.tools.convert import convert
from cntkpy.readers import (
    ArrowDeserializer,
    DataError,
    MinibatchSource,
    ParquetDeserializer,
    StreamDef,
    StreamDefs,
    create_reader,
)
from cntkpy.readers.convert.named_columns import NamedColumns
from cntkpy.readers.formats.tables import library
from cntkpy.readers.formats.tables.deserializer import TableDeserializer
from cntkpy.readers.formats.tables.files import ParquetTable
from cntkpy.readers.formats.tables.stream import TableStream
from cntkpy.readers.pipeline import randomize

from .table_files import KINDS, opened, write_table

ROWS = 230


def write(table: pa.Table, kind: str, name: str = "t", rows: int = 50) -> str:
    """A file with row groups of that many rows."""
    return write_table(table, f"{name}.{kind}", rows)


def samples(path: str, *streams: str) -> dict[str, list[Any]]:
    """Every sequence of some streams, dense, in the order of the file; a stream is NAME:DIM[:sparse[:COLUMN]]."""
    words = [one.split(":") for one in streams]
    inside = [
        f"{name}=[dim={dim};format={(*more, 'dense')[0]};alias={more[1] if len(more) > 1 else name}]"
        for name, dim, *more in words
    ]
    reader = create_reader(
        f"randomize=false;deserializers=([type={KINDS[path.split('.')[-1]]};file={path};input=[{';'.join(inside)}]])"
    )
    reader.start_minibatch_loop(16, 0)
    found: dict[str, list[Any]] = {name: [] for name, *_ in words}
    while (minibatch := reader.get_minibatch()) is not None:
        for name, _, *_ in words:
            rows, layout = minibatch.streams[name], minibatch.layouts[name]
            dense = rows if isinstance(rows, np.ndarray) else rows.toarray().reshape(layout.T, layout.S, -1)
            for _, slot, begin, end in layout.sequences.tolist():
                found[name].append(dense[begin:end, slot].tolist())
    reader.close()
    return found


LENGTHS = [1 + i % 3 for i in range(ROWS)]


def every_column() -> pa.Table:
    texts = ["cat", "dog", "emu"]
    return pa.table(
        {
            "a": np.arange(ROWS, dtype=np.int16),
            "b": np.arange(ROWS) / 4,
            "flag": np.arange(ROWS) % 2 == 0,
            "half": pa.array(np.arange(ROWS).astype(np.float16)),
            "vector": pa.array([[i, 1, 2] for i in range(ROWS)], pa.list_(pa.float32(), 3)),
            "loose": pa.array([[i, 1, 2] for i in range(ROWS)], pa.large_list(pa.float64())),
            "series": pa.array([[float(i)] * n for i, n in enumerate(LENGTHS)], pa.list_(pa.float32())),
            "frames": pa.array([[[i, t] for t in range(n)] for i, n in enumerate(LENGTHS)],
                               pa.list_(pa.list_(pa.float32(), 2))),
            "ragged": pa.array([[[i, t] for t in range(n)] for i, n in enumerate(LENGTHS)],
                               pa.list_(pa.list_(pa.int32()))),
            "number": pa.array([i % 7 for i in range(ROWS)], pa.uint8()),
            "text": [texts[i % 3] for i in range(ROWS)],
            "coded": pa.array([texts[i % 3] for i in range(ROWS)]).dictionary_encode(),
            "words": [[f"w{i % 5}"] * n for i, n in enumerate(LENGTHS)],
            "classes": [[i % 4] * n for i, n in enumerate(LENGTHS)],
            "bag": pa.array([[(i % 4, 1.5), (5, 2.0)] if i % 2 else [] for i in range(ROWS)],
                            pa.map_(pa.int32(), pa.float32())),
            "bags": pa.array([[[(t, float(i))] for t in range(n)] for i, n in enumerate(LENGTHS)],
                             pa.list_(pa.map_(pa.int64(), pa.float64()))),
        }
    )  # fmt: skip


def one_hot(number: int, dim: int) -> list[float]:
    return [float(k == number) for k in range(dim)]


def test_every_type_of_column(kind: str) -> None:
    path = write(every_column(), kind)
    found = samples(
        path, "a:1", "b:1", "flag:1", "half:1", "vector:3", "loose:3", "series:1", "frames:2", "ragged:2",
        "number:7:sparse", "text:3:sparse", "coded:3:sparse", "words:5:sparse", "classes:4:sparse", "bag:6:sparse",
        "bags:3:sparse",
    )  # fmt: skip
    for i, n in enumerate(LENGTHS):
        bag = one_hot(-1, 6)
        if i % 2:
            bag[i % 4], bag[5] = 1.5, 2.0
        expected = {
            "a": [[i]], "b": [[i / 4]], "flag": [[float(i % 2 == 0)]], "half": [[i]], "vector": [[i, 1, 2]],
            "loose": [[i, 1, 2]], "series": [[i]] * n, "frames": [[i, t] for t in range(n)],
            "ragged": [[i, t] for t in range(n)], "number": [one_hot(i % 7, 7)], "text": [one_hot(i % 3, 3)],
            "coded": [one_hot(i % 3, 3)], "words": [one_hot(i % 5, 5)] * n, "classes": [one_hot(i % 4, 4)] * n,
            "bag": [bag], "bags": [[float(i) * (k == t) for k in range(3)] for t in range(n)],
        }  # fmt: skip
        assert {name: found[name][i] for name in expected} == expected


def test_columns_side_by_side_and_several_files(kind: str) -> None:
    table = every_column()
    paths = [write(table.slice(0, 60), kind, "one"), write(table.slice(60), kind, "two")]
    streams = StreamDefs(x=StreamDef(field=["b", "a", "number"], shape=3))
    make = ParquetDeserializer if kind == "parquet" else ArrowDeserializer
    source = MinibatchSource(make(paths, streams), max_sweeps=1, randomize=False)
    rows = np.concatenate([np.concatenate(m[source["x"]].as_sequences()) for m in source.minibatches(33)])
    assert rows.tolist() == [[i / 4, i, i % 7] for i in range(ROWS)]


def test_arrays_that_are_cut_at_other_rows() -> None:
    """The columns of a row group of Parquet may come as several arrays."""
    path = write(pa.table({"a": [1.0, 2, 3], "b": [4.0, 5, 6]}), "parquet")
    data = TableDeserializer([opened(path)], [TableStream("x", 2, False, ("a", "b"))])
    pieces = {"a": [pa.array([1.0]), pa.array([2.0, 3])], "b": [pa.array([4.0, 5]), pa.array([6.0])]}
    data._tables[0].read = lambda group, columns, threads=False: pieces  # type: ignore[method-assign]
    assert data.load_chunk(0).streams["x"].values.tolist() == [1, 4, 2, 5, 3, 6]


def test_names_of_classes(kind: str) -> None:
    path = write(pa.table({"y": ["b", "10", "9", "b"], "n": ["10", "9", "9", "2"]}), kind, rows=2)
    Path("names.txt").write_text("b\n9\n10\n")
    section = (
        "randomize=false;deserializers=([type={};file={};input=[s=[dim=3;format=sparse;alias=y];"
        "l=[dim=4;format=sparse;alias=y;labelMappingFile=names.txt];n=[dim=3;format=sparse]]])"
    )
    reader = create_reader(section.format(KINDS[kind], path))
    assert reader.get_label_mapping("s") == {0: "10", 1: "9", 2: "b"}
    assert reader.get_label_mapping("l") == {0: "b", 1: "9", 2: "10"}
    assert reader.get_label_mapping("n") == {0: "2", 1: "9", 2: "10"}  # whole numbers: by value
    reader.start_minibatch_loop(4, 0)
    minibatch = reader.get_minibatch()
    assert minibatch is not None
    assert minibatch.streams["l"].toarray().argmax(1).tolist() == [0, 2, 1, 0]


def test_orders_are_repeatable_shared_and_resumed(kind: str) -> None:
    path = write(every_column(), kind)
    inputs = "f=[dim=2;alias=frames];c=[dim=3;format=sparse;alias=coded]"
    for more in ("randomize=true", "randomize=false", "randomize=true;randomizationWindow=60"):
        section = f"{more};deserializers=([type={KINDS[kind]};file={path};input=[{inputs}]])"
        cntkpy.testing.check_reader(lambda section=section: create_reader(section), minibatch_size=60)


def keys_of(section: str, size: int = 40) -> list[Any]:
    reader = create_reader(section)
    reader.start_minibatch_loop(size, 0)
    found = [key for minibatch in iter(reader.get_minibatch, None) for key in minibatch.keys]
    reader.close()
    return found


def test_composition_with_text_format(kind: str) -> None:
    """Rows are joined to lines by number, or by the keys of a column."""
    path = write(pa.table({"x": np.arange(100.0), "id": np.arange(100)[::-1] * 2}), kind, rows=30)
    Path("y.ctf").write_text("".join(f"{2 * i} |y {2 * i}\n" for i in range(100)))
    Path("z.ctf").write_text("".join(f"|y {i}\n" for i in range(100)))
    text = "[type=CNTKTextFormatDeserializer;file={};input=[y=[dim=1;format=dense]]]"
    table = f"[type={KINDS[kind]};file={path};input=[x=[dim=1]]{{}}]"
    for parts, keys, relation in (
        ([table.format(";keyColumn=id"), text.format("y.ctf")], range(0, 200, 2), lambda x: 2 * (99 - x)),
        ([text.format("y.ctf"), table.format(";keyColumn=id")], range(0, 200, 2), lambda x: 2 * (99 - x)),
        ([table.format(""), text.format("z.ctf")], range(100), lambda x: x),
        ([text.format("z.ctf"), table.format("")], range(100), lambda x: x),
    ):
        for order in ("true", "false"):
            reader = create_reader(f"randomize={order};deserializers=({':'.join(parts)})")
            reader.start_minibatch_loop(17, 0)
            seen: list[int] = []
            for minibatch in iter(reader.get_minibatch, None):
                x, y = minibatch.streams["x"].ravel(), minibatch.streams["y"].ravel()
                assert y.tolist() == [relation(one) for one in x.tolist()]
                seen += [int(key) for key in minibatch.keys]
            assert sorted(seen) == list(keys)
            reader.close()


def test_keys_that_are_texts(kind: str) -> None:
    path = write(pa.table({"x": np.arange(4.0), "id": ["u3", "u1", "u2", "u9"]}), kind, rows=2)
    Path("y.ctf").write_text("u1 |y 1\nu2 |y 2\nu3 |y 0\nu9 |y 3\n")
    section = (
        f"randomize=false;useNumericSequenceKeys=false;deserializers=([type={KINDS[kind]};file={path};keyColumn=id;"
        "input=[x=[dim=1]]]:[type=CNTKTextFormatDeserializer;file=y.ctf;input=[y=[dim=1;format=dense]]])"
    )
    assert keys_of(section) == ["u3", "u1", "u2", "u9"]
    with pytest.raises(DataError, match="have no keys, but here keys are texts"):
        create_reader(section.replace("keyColumn=id;", ""))


def test_a_key_twice_is_told(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    path = write(pa.table({"x": np.arange(4.0), "id": [3, 1, 2, 1]}), kind, rows=2)
    section = f"randomize=false;deserializers=([type={KINDS[kind]};file={path};keyColumn=id;input=[x=[dim=1]]])"
    assert keys_of(section) == [3, 1, 2, 1]
    assert f"{path}, column 'id': the key 1 comes twice; both rows are read." in caplog.text


def test_data_larger_than_memory_are_shuffled_among_some_chunks(
    kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(pa.table({"x": np.arange(1000.0)}), kind, rows=50)
    loaded: list[int] = []
    load = TableDeserializer.load_chunk
    monkeypatch.setattr(TableDeserializer, "load_chunk", lambda self, chunk: loaded.append(chunk) or load(self, chunk))
    section = f"deserializers=([type={KINDS[kind]};file={path};input=[x=[dim=1]]])"
    whole = keys_of(section)
    assert sorted(loaded) == list(range(20))
    monkeypatch.setattr(randomize.chunks_in_memory, "__defaults__", (50 * 12 * 5,))
    loaded.clear()
    with caplog.at_level("INFO", "cntkpy.readers"):
        found = keys_of(section)
    assert "those of 4 chunks are shuffled among each other" in caplog.text
    assert sorted(found) == sorted(whole) and found != whole
    assert sorted(loaded) == list(range(20))  # each once
    source = MinibatchSource({"type": KINDS[kind], "file": path, "input": {"x": {"dim": 1}}}, max_sweeps=1)
    assert source._source.timeline._chunks.window == 4  # type: ignore[attr-defined]


# --------------------------------------------------------------------------------------------------------- errors


def failure(table: pa.Table, kind: str, stream: str, rows: int = 2, **more: Any) -> str:
    """The message and the hint of reading a stream, NAME:DIM[:sparse]."""
    with pytest.raises(DataError) as caught:
        samples(write(table, kind, rows=rows), stream)
    assert caught.value.path == f"t.{kind}"
    return f"{caught.value.message} {caught.value.hint}"


WRONG: list[tuple[str, Any, str, str]] = [
    ("null", pa.array([1.0, 2, 3, None]), "x:1", "row group 1, row 1, column 'x': a value is missing"),
    ("null in a vector", pa.array([[1.0, 2], [3, None], [1, 1]], pa.list_(pa.float32(), 2)), "x:2",
     "row group 0, row 1, column 'x': a value is missing"),
    ("no vector", pa.array([[1.0, 2], [3, 4], None], pa.list_(pa.float32(), 2)), "x:2", "row group 1, row 0, column"),
    ("null in a list", pa.array([[1.0], [3, 2], [1, None]]), "x:1", "row group 1, row 0, column 'x': a value is mis"),
    ("no list", pa.array([[1.0], None]), "x:1", "row group 0, row 1, column 'x': a value is missing"),
    ("empty list", pa.array([[1.0], [2.0], [1.0], []]), "x:1", "row group 1, row 1, column 'x': the list is empty"),
    ("short sample", pa.array([[1.0, 2], [3.0, 4], [1.0]]), "x:2",
     "row group 1, row 0, column 'x': a sample has 1 values, but dim is 2"),
    ("short frame", pa.array([[[1.0, 2]], [[3.0, 4], [1.0]]]), "x:2",
     "row group 0, row 1, column 'x': a sample has 1 values"),
    ("large class", pa.array([0, 1, 2, 3]), "x:3:sparse",
     "row group 1, row 1, column 'x': class 3 is out of range, the dimension is 3"),
    ("negative class", pa.array([[0], [1, -1]]), "x:3:sparse", "row group 0, row 1, column 'x': class -1 is out of"),
    ("many classes", pa.array(["a", "b", "c"]), "x:2:sparse", "column 'x' has more than 2 classes"),
    ("null text", pa.array(["a", None]), "x:2:sparse", "row group 0, row 1, column 'x': a value is missing"),
    ("null word", pa.array([["a"], ["b", None]]), "x:2:sparse", "row group 0, row 1, column 'x': a value is missing"),
    ("large index", pa.array([[(0, 1.0)], [(1, 1.0), (9, 1.0)]], pa.map_(pa.int32(), pa.float32())), "x:3:sparse",
     "row group 0, row 1, column 'x': class 9 is out of range"),
    ("null item", pa.array([[(0, 1.0)], [(1, None)]], pa.map_(pa.int32(), pa.float32())), "x:3:sparse",
     "row group 0, row 1, column 'x': a value is missing"),
    ("another name", pa.array([1.0]), "y:1", "has no column 'y'. its columns are x"),
    ("another size", pa.array([[1.0, 2]], pa.list_(pa.float32(), 2)), "x:3", "have 2 values, but dim is 3. write dim"),
    ("a number", pa.array([1.0]), "x:3", "a row has one value, but dim is 3"),
    ("text", pa.array(["a"]), "x:1", "it is string, not numbers. write format = sparse"),
    ("real class", pa.array([1.0]), "x:3:sparse", "it is double, not classes. write format = dense"),
    ("a date", pa.array([1], pa.date32()), "x:1", "it is date32[day], not numbers"),
    ("map of texts", pa.array([[("a", 1.0)]], pa.map_(pa.string(), pa.float32())), "x:3:sparse", "write map<int32, fl"),
    ("empty", pa.array([], pa.float32()), "x:1", "has no rows"),
]  # fmt: skip


@pytest.mark.malformed
@pytest.mark.parametrize(("column", "stream", "words"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
def test_errors_name_row_group_row_and_column(kind: str, column: Any, stream: str, words: str) -> None:
    found = failure(pa.table({"x": column}), kind, stream)
    if int(pa.__version__.split(".")[0]) < 22 and "Expected all lists to be of size" in found:
        pytest.skip("this pyarrow does not read missing vectors of Parquet files")
    assert words in found


@pytest.mark.malformed
def test_a_class_that_is_not_listed(kind: str) -> None:
    Path("names.txt").write_text("cat\ndog\n")
    path = write(pa.table({"y": ["cat", "dog", "dog", "dogs"]}), kind, rows=2)
    data = TableDeserializer([opened(path)], [TableStream("y", 2, True, ("y",), listed="names.txt")])
    assert data.load_chunk(0).streams["y"].values.tolist() == [1, 1]
    with pytest.raises(DataError, match="row group 1, row 1, column 'y': the class 'dogs' is not listed") as caught:
        data.load_chunk(1)
    assert caught.value.hint == "did you mean 'dog'?"


@pytest.mark.malformed
def test_keys_that_are_none(kind: str) -> None:
    for values, words in (
        ([0, -3], "-3 is not a key"),
        ([0, None], "the key is missing"),
        (["a", None], "the key is missing"),
    ):
        path = write(pa.table({"x": [1.0, 2.0], "k": values}), kind)
        section = f"deserializers=([type={KINDS[kind]};file={path};input=[x=[dim=1]];keyColumn=k])"
        with pytest.raises(DataError, match=words):
            create_reader(section)
    path = write(pa.table({"x": [1.0, 2.0]}), kind)
    with pytest.raises(DataError, match="column 'x' cannot have keys: it is double"):
        create_reader(f"deserializers=([type={KINDS[kind]};file={path};input=[x=[dim=1]];keyColumn=x])")


@pytest.mark.malformed
def test_other_files_are_refused(kind: str) -> None:
    path = f"t.{kind}"
    for content in (
        b"",
        b"PAR1",
        b"0 |x 1\n" * 40,
        b"ARROW1\0\0" + bytes(30) + b"ARROW1",
        b"PAR1" + bytes(30) + b"PAR1",
    ):
        Path(path).write_bytes(content)
        with pytest.raises(DataError, match=f"^{path} cannot be read as") as caught:
            samples(path, "x:1")
        assert "\n" not in caught.value.message
    with pytest.raises(DataError, match="cannot be read"):
        samples(f"none.{kind}", "x:1")


@pytest.mark.malformed
def test_a_row_group_that_claims_more_rows_than_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constant columns take few bytes, so that the rows are counted before memory is taken for them."""
    path = write(pa.table({"x": np.zeros(300_000, np.float32)}), "parquet", rows=300_000)
    assert len(samples(path, "x:1")["x"]) == 300_000
    monkeypatch.setattr(ParquetTable, "_count", lambda *_: 10)
    with pytest.raises(DataError, match="it has 10 rows, but its header says 300000"):
        samples(path, "x:1")


@pytest.mark.thorough
@pytest.mark.malformed
def test_mutated_files_are_read_or_refused(kind: str) -> None:
    """Bytes changed at random: numbers, or one error; never anything else."""
    path = Path(write(every_column().slice(0, 20), kind, rows=7))
    content, draw, refused = path.read_bytes(), random.Random(1), 0
    streams = ("b:1", "frames:2", "coded:3:sparse", "words:5:sparse", "bags:3:sparse")
    for _ in range(120):
        mutated = bytearray(content)
        for _ in range(draw.choice((1, 1, 4))):
            mutated[draw.randrange(len(mutated))] = draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))
        if draw.random() < 0.1:
            del mutated[draw.randrange(len(mutated)) :]
        path.write_bytes(mutated)
        try:
            samples(str(path), *streams)
        except DataError as error:
            refused += 1
            assert str(path) in error.message
    assert refused


# ---------------------------------------------------------------------------------------------- check, preview, convert

CONFIG = """
command=train
precision=float
train=[ action=train ; modelPath=m
 SimpleNetworkBuilder=[layerSizes=3:3 ; trainingCriterion=CrossEntropyWithSoftmax ; evalCriterion=ClassificationError]
 SGD=[epochSize=0 ; maxEpochs=1 ; learningRatesPerMB=0.1]
 reader=[ deserializers=([type={kind} ; file={file} ; input=[ features=[dim={dim} ; alias=vector] ;
  labels=[dim=3 ; format={format} ; alias={labels}] ]]) ]]
"""


def findings(capsys: pytest.CaptureFixture[str], kind: str, path: str, **given: str) -> str:
    """What `check --data` prints."""
    values = {"dim": "3", "format": "sparse", "labels": "coded"} | given
    Path("c.cntk").write_text(CONFIG.format(kind=KINDS[kind], file=path, **values))
    main(["check", "--data", "c.cntk"])
    return capsys.readouterr().out


def test_check_looks_at_the_schema(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(every_column(), kind)
    assert "error" not in findings(capsys, kind, path)
    assert "its samples have 3 values, but dim is 4 - write dim = 3" in findings(capsys, kind, path, dim="4")
    assert "c.cntk:8:" in (found := findings(capsys, kind, path, labels="code"))
    assert "has no column 'code' - did you mean 'coded'?" in found
    assert "write format = sparse" in findings(capsys, kind, path, format="dense")
    assert "no such file" in findings(capsys, kind, "none")
    Path("text").write_text("|x 1")
    assert "text cannot be read as" in findings(capsys, kind, "text")


def test_preview(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(every_column(), kind)
    findings(capsys, kind, path)
    assert main(["preview", "c.cntk", "train", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["samples"] == ROWS
    assert found["streams"][1]["classes"][0]["class"] in ("cat", "dog", "emu")


CTF = "0 |x 1 2 |y 3:1\n0 |x 3 4 |y 0:7.5\n1 |x 5 6 |y 2:1\n7 |x 8 9 |y \n"


def test_conversion_to_a_table_and_back(kind: str) -> None:
    Path("a.ctf").write_text(CTF)
    assert convert(["a.ctf"], f"a.{kind}", quiet=True) == 0
    assert convert([f"a.{kind}"], "b.ctf", quiet=True) == 0
    assert Path("b.ctf").read_text() == CTF
    schema = opened(f"a.{kind}").schema
    assert schema.field("x").type.value_type == pa.list_(pa.float32(), 2)
    assert schema.field("y").type.value_type == pa.map_(pa.int32(), pa.float32())
    assert schema.field("key").type == pa.uint64()


def test_conversion_of_single_samples_and_classes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cntkpy.readers.convert.arrow_tables.GROUP", 500)
    monkeypatch.setattr("cntkpy.readers.convert.sources.BATCH", 10)
    lines = [f"{i} |x {i / 2} |y {i % 4}:1\n" for i in range(100)]
    Path("a.ctf").write_text("".join(lines))
    assert convert(["a.ctf"], f"a.{kind}", ("y:4:class", "x:1"), quiet=True, precision="double") == 0
    table = opened(f"a.{kind}")
    assert (str(table.schema.field("x").type), str(table.schema.field("y").type)) == ("double", "int32")
    assert table.groups > 1
    assert convert([f"a.{kind}"], "b.ctf", quiet=True) == 0
    assert sorted(Path("b.ctf").read_text().split()) == sorted("".join(lines).replace(".0 ", " ").split())


def test_conversion_of_a_table_of_columns(kind: str) -> None:
    table = pa.table({"a": [1.5, 2.5, 3.5], "species": ["owl", "cat", "owl"], "b": [1, 2, 3]})
    path = write(table, kind)
    assert convert([path], "a.ctf", quiet=True, columns=NamedColumns("species")) == 0
    expected = "0 |features 1.5 1 |labels 1:1\n1 |features 2.5 2 |labels 0:1\n2 |features 3.5 3 |labels 1:1\n"
    assert Path("a.ctf").read_text() == expected
    assert Path("a.labels.txt").read_text() == "cat\nowl\n"
    assert convert([path], "b.ctf", quiet=True) == 0
    assert Path("b.ctf").read_text().splitlines()[0] == "0 |a 1.5 |species 1:1 |b 1"


def test_what_cannot_be_converted(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(every_column(), kind)
    assert convert([path], "a.ctf", quiet=True) != 0
    assert "how many values has a sample?" in capsys.readouterr().err
    assert convert([path], "a.ctf", quiet=True, columns=NamedColumns("coded")) != 0
    assert "these columns are not numbers: vector, loose" in capsys.readouterr().err
    assert convert([path], "a.ctf", ("nothing:1",), quiet=True) != 0
    assert "has no column 'nothing'" in capsys.readouterr().err
    assert convert([path, path], "a.ctf", quiet=True) != 0
    assert not Path("a.ctf").exists()


def test_without_pyarrow_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (library.arrow, library.parquet, library.broken):
        module.cache_clear()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="read by pyarrow, which is not installed") as caught:
        samples("t.parquet", "x:1")
    assert caught.value.hint == how_to_install("tables")


def test_sections_that_contradict_themselves() -> None:
    wrong: list[tuple[str, str]] = [
        ("x=[dim=2;columns=(a:b);alias=c]", "alias and columns"),
        ("x=[dim=3;columns=(a:b)]", "there are 2 columns, but dim is 3"),
        ("x=[dim=2;columns=(a:b);format=sparse]", "several columns make a dense sample"),
        ("x=[dim=0]", "0 is not a dimension"),
        ("x=[dim=1;definesMBSize=true];y=[dim=1;definesMBSize=true]", "only one stream"),
    ]
    for inputs, words in wrong:
        with pytest.raises(UserError, match=words):
            create_reader(f"deserializers=([type=ParquetDeserializer;file=x;input=[{inputs}]])")


def test_library_is_not_imported_without_need() -> None:
    modules = "cntkpy.commands.checks.check, cntkpy.readers.formats.tables.parameters"
    code = f"import sys, {modules}; print('pyarrow' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[4]
    )
    assert done.stdout.strip() == "False"
