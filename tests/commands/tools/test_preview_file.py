"""`cntkpy preview FILE`: data files are what people preview (U10)."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from cntkpy.cntk_config import parse
from cntkpy.readers import create_reader


def table(folder: Path):
    """A table with numbers, lists, texts, and a text that a terminal would obey."""
    pa = pytest.importorskip("pyarrow")
    return pa.table({"a": [1.5, 2.5], "n": [7, 8], "lists": [[1, 2], [3]], "word": ["x", "\x1b[31mred"]})


def test_parquet(cntkpy, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(table(tmp_path), tmp_path / "d.parquet")
    got = cntkpy("preview", "d.parquet", "--samples", "1", "--format", "json")
    found = json.loads(got.out)
    assert found["rows"] == 2
    assert [one["name"] for one in found["columns"]] == ["a", "n", "lists", "word"]
    assert found["first"] == [{"a": "1.5", "n": "7", "lists": "[1, 2]", "word": "x"}]
    text = cntkpy("preview", "d.parquet")
    assert text.code == 0 and "\x1b" not in text.out and "x1b[31mred" in text.out
    assert "columns = (a:n) ; dim = 2" in " ".join(text.out.split())


def test_arrow_and_csv(cntkpy, tmp_path: Path) -> None:
    feather = pytest.importorskip("pyarrow.feather")
    feather.write_feather(table(tmp_path), str(tmp_path / "d.feather"))
    assert "d.feather: Arrow, 2 rows" in cntkpy("preview", "d.feather").out
    got = cntkpy("preview", "d.csv", files={"d.csv": "a,b,c\n1,2,x\n3,4,y\n"})
    assert got.code == 0 and "d.csv: CSV, 2 rows\n  a: int64" in got.out


def test_the_reader_that_is_shown_reads_the_file(cntkpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    got = cntkpy("preview", "d.csv", files={"d.csv": "a,b,c\n1,2,x\n3,4,y\n"})
    monkeypatch.chdir(tmp_path)
    reader = create_reader(
        parse(got.out.rpartition("A reader of it:")[2].partition("A configuration")[0].strip()).section("reader")
    )
    reader.start_minibatch_loop(9, 0)
    minibatch = reader.get_minibatch()
    assert sorted(minibatch.streams["features"].reshape(2, 2).tolist()) == [[1, 2], [3, 4]]


@pytest.mark.parametrize(("text", "streams"), [("|x 1 2 |y 0:1\n|x 3 4 |y 7:1\n", ("dense, 2", "sparse, 8"))])
def test_text_format(cntkpy, text: str, streams: tuple[str, str]) -> None:
    out = cntkpy("preview", "d.txt", files={"d.txt": text}).out
    assert f"x: {streams[0]}" in out and f"y: {streams[1]}" in out


@pytest.mark.parametrize(("form", "reader"), [("cbf", "CNTKBinaryReader"), ("binary", "BinaryReader")])
def test_binary_formats(cntkpy, form: str, reader: str) -> None:
    streams = ("--stream", "x:2", "--stream", "y:1")
    assert cntkpy("convert", "d.ctf", "d.bin", "--to", form, *streams, files={"d.ctf": "|x 1 2 |y 3\n"}).code == 0
    assert f"d.bin: {reader}, 1 samples" in cntkpy("preview", "d.bin").out


def test_tar(cntkpy, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "d.tar", "w") as archive:
        for name, data in (("01.txt", b"1 2"), ("01.cls", b"3"), ("02.txt", b"4 5"), ("02.cls", b"6")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    found = json.loads(cntkpy("preview", "d.tar", "--samples", "1", "--format", "json").out)
    assert found["columns"] == [{"name": ".txt", "type": "2 members"}, {"name": ".cls", "type": "2 members"}]
    assert found["first"] == [{"sample": "01", "txt": "3 bytes", "cls": "1 bytes"}]


def test_a_picture(cntkpy, tmp_path: Path) -> None:
    np, cv2 = pytest.importorskip("numpy"), pytest.importorskip("cv2")
    cv2.imwrite(str(tmp_path / "d.png"), np.zeros((4, 6, 3), np.uint8))
    assert "size: 6 x 4 pixels, 3 channels" in cntkpy("preview", "d.png").out


@pytest.mark.parametrize("command", ["preview", "check", "show", "run"])
@pytest.mark.parametrize("data", [bytes(range(256)), b"PK\x03\x04\x1b[31m\0\x07\xff"])
def test_binary_never_reaches_the_terminal(cntkpy, tmp_path: Path, command: str, data: bytes) -> None:
    (tmp_path / "d.bin").write_bytes(data * 10)
    got = cntkpy(command, "d.bin")
    assert got.code != 0
    assert (got.out + got.err).replace("\n", "").replace("\t", "").isprintable()
    assert "binary file" in got.out + got.err or "is a zip archive" in got.err
    assert "\\x1b" not in got.out + got.err


def test_configurations_are_read_as_before(cntkpy) -> None:
    config = "t = [ reader = [ file = d.ctf ; input = [ x = [ dim = 2 ; format = dense ] ] ] ]\n"
    got = cntkpy("preview", "main.cntk", files={"main.cntk": config, "d.ctf": "|x 1 2\n"})
    assert got.code == 0 and "t/reader: CNTKTextFormatReader" in got.out
