"""`cntkpy preview FILE` of every format that is read, on 80 columns; formats that are not read are named (U10)."""

from __future__ import annotations

import base64
import bz2
import gzip
import http.server
import io
import json
import lzma
import pickle
import sqlite3
import struct
import tarfile
import threading
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config import parse
from cntkpy.readers import create_reader

CSV = "a,b c,kind\n1,2,x\n3,4,y\n"
FRAMES = {name: np.arange(3.0 * count).reshape(count, 3) for name, count in (("a", 3), ("b", 5))}


def tables(here: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.table({"a": [1.5, None], "n": [7, 8], "word": ["x", "\x1b[31m" + "z" * 100], "list": [[1, 2], []]})
    pyarrow.parquet.write_table(table, here / "t.parquet")
    pyarrow.feather.write_feather(table, str(here / "t.feather"))
    with pa.ipc.new_stream(here / "stream.arrow", table.schema) as writer:
        writer.write_table(table)
    (here / "t.csv").write_text(CSV)
    (here / "t.tsv").write_text(CSV.replace(",", "\t"))


def packed(here: Path) -> None:
    zstd = pytest.importorskip("zstandard")
    for name, text in (("p.csv", CSV), ("p.ctf", "|x 1 2 |y 0:1\n"), ("p.txt", "1 2 3\n4 5 6\n"), ("p.mlf", MLF)):
        for ending, pack in (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)):
            (here / f"{name}.{ending}").write_bytes(pack(text.encode()))
        (here / f"{name}.zst").write_bytes(zstd.compress(text.encode()))


def arrays(here: Path) -> None:
    np.save(here / "a.npy", np.arange(12.0).reshape(3, 4))
    np.save(here / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.savez(here / "a.npz", x=np.arange(12.0).reshape(3, 4), y=np.arange(3))
    np.savez_compressed(here / "wide.npz", x=np.ones((3, 5000)))
    header = json.dumps({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
    (here / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(24))


MLF = '#!MLF!#\n"*/a.lab"\n0 300000 s 1\n.\n"*/b.lab"\n0 500000 s 0\n.\n'


def speech(here: Path) -> None:
    from cntkpy.readers.formats.htk.archive import write_archive
    from cntkpy.readers.formats.htk.format import make_header
    from cntkpy.readers.formats.kaldi.write import write_entry

    write_archive(here / "h.ark", FRAMES.items(), here / "h.scp")
    utterance = make_header(4, 3).pack() + np.arange(12).astype(">f4").tobytes()
    for name in ("one.mfc", "one.bin"):
        (here / name).write_bytes(utterance)
    (here / "l.mlf").write_text(MLF)
    write_entry(str(here / "k.ark"), "u1", np.arange(6, dtype=np.float32).reshape(2, 3))
    (here / "text.ark").write_text("u1  [\n  1 2\n  3 4 ]\n")
    (here / "k.scp").write_text(f"u1 {here / 'text.ark'}:3\n")
    (here / "ali.ark").write_text("u1 0 1\nu2 3\n")


def pictures(here: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    for name in ("p.png", "p.jpg", "p.bmp"):
        cv2.imwrite(str(here / name), np.zeros((4, 6, 3), np.uint8))
    (here / "map.txt").write_text("p.png\t0\np.jpg\t3\n")
    coded = base64.b64encode((here / "p.png").read_bytes()).decode()
    (here / "coded.tsv").write_text(f"k1\t1\t{coded}\nk2\t0\t{coded}\n")


def archives(here: Path) -> None:
    for name, mode in (("d.tar", "w"), ("d.tar.gz", "w:gz")):
        with tarfile.open(here / name, mode) as archive:
            for member, data in (("01.x", b"1 2"), ("01.y", b"3"), ("02.x", b"4 5"), ("02.y", b"6")):
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


def texts(here: Path) -> None:
    (here / "d.ctf").write_text("|x 1 2 |y 0:1\n|x 3 4 |y 7:1\n")
    (here / "columns.txt").write_text("1 2 3\n4 5.5 -6e-3\n")
    (here / "words.txt").write_text("hello world\n" + "z" * 100 + "\n")


def models(here: Path) -> None:
    import cntk_v1_writer as w

    f = w.Writer(30, "double")
    f.parameter("W", np.ones((3, 2)))
    f.input("x", 2)
    f.node("Times", "z", w.u64(1) + w.i32(-1), "W x")
    f.groups = {"FeatureNodes": ["x"], "OutputNodes": ["z"]}
    (here / "m.dnn").write_bytes(f.content)


# What is made, the file, words of its preview, and whether the section that is shown reads it as it is.
FILES = [
    (tables, "t.parquet", ["Parquet, 2 rows", "a: double", "list: list<", "a: 1.5", "x1b[31mzzz", "(a:n)"], False),
    (tables, "t.feather", ["Arrow, 2 rows", "word: string"], False),
    (tables, "stream.arrow", ["Arrow, 2 rows", "word: string"], False),
    (tables, "t.csv", ["CSV, 2 rows", "b c: int64", 'columns = (a:"b c") ; dim = 2'], True),
    (tables, "t.tsv", ["CSV, 2 rows", "b c: int64"], True),
    *((packed, f"p.csv.{ending}", ["CSV, 2 rows", "kind: string"], True) for ending in ("gz", "bz2", "xz", "zst")),
    *((packed, f"p.ctf.{ending}", ["x: dense, 2", "y: sparse, 1"], False) for ending in ("gz", "bz2", "xz", "zst")),
    *((packed, f"p.txt.{ending}", ["3 numbers in a line"], False) for ending in ("gz", "bz2", "xz", "zst")),
    *((packed, f"p.mlf.{ending}", ["MLF, 2 entries"], False) for ending in ("gz", "bz2", "xz", "zst")),
    (arrays, "a.npy", ["array: float64 3 x 4", "row: 0 1 2 3"], False),
    (arrays, "objects.npy", ["Python objects, which are never read"], False),
    (arrays, "a.npz", ["x: float64 3 x 4", "y: int64 3", "x: 4 5 6 7", "cntkpy convert a.npz"], False),
    (arrays, "wide.npz", ["x: float64 3 x 5000", "1 1 1 1 1 1 1 1 ..."], False),
    (arrays, "w.safetensors", ["w: F32 2 x 3"], False),
    (speech, "h.ark", ["HTK features, 8 frames", "USER, 3 values every 10 ms", "frame 1: 3 4 5"], False),
    (speech, "one.mfc", ["HTK features, 4 frames", "frame 0: 0 1 2"], False),
    (speech, "one.bin", ["HTK features, 4 frames"], False),
    (speech, "h.scp", ["script, 2 utterances", "USER, 3 values", "dim = 3"], True),
    (speech, "l.mlf", ["MLF, 2 entries", 'entry: "*/a.lab"', "line 1: 0 300000 s 1"], False),
    (speech, "k.ark", ["Kaldi, 2 frames", "features: 3 values", "key: u1", "frame 0: 0 1 2"], True),
    (speech, "text.ark", ["Kaldi, 2 frames", "features: 2 values"], True),
    (speech, "k.scp", ["script, 2 frames", "features: 2 values"], True),
    (speech, "ali.ark", ["Kaldi, 2 utterances", "key: u1", "classes: 0 1", "labelDim = 4"], False),
    (pictures, "p.png", ["6 x 4 pixels, 3 channels"], False),
    (pictures, "p.jpg", ["6 x 4 pixels"], False),
    (pictures, "p.bmp", ["6 x 4 pixels"], False),
    (pictures, "map.txt", ["list of pictures, 2 pictures", "file: p.png", "labelDim = 4"], True),
    (pictures, "coded.tsv", ["list of pictures, 2 pictures", "labelDim = 2", "Base64ImageDeserializer"], True),
    (archives, "d.tar", [".x: 2 members", "sample: 01", "x: 3 bytes"], False),
    (archives, "d.tar.gz", [".x: 2 members"], False),
    (texts, "d.ctf", ["x: dense, 2", "y: sparse, 8", "x: 1 2"], False),
    (texts, "columns.txt", ["columns of numbers, 2 lines", "3 numbers in a line", "dim = 3"], True),
    (texts, "words.txt", ["text, 2 lines", "line: hello world", "zzz..."], False),
    (models, "m.dnn", ["model, 3 nodes", "feature: x (2)", "cntkpy show m.dnn"], False),
]


@pytest.mark.parametrize(("make", "name", "said", "reads"), FILES, ids=[case[1] for case in FILES])
@pytest.mark.sampled
def test_a_file(cntkpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make, name: str, said, reads: bool) -> None:
    make(tmp_path)
    got = cntkpy("preview", name, "--samples", "2")
    assert got.code == 0, got.err
    assert not got.err
    assert max(map(len, got.out.splitlines())) <= 80
    assert got.out.replace("\n", "").isprintable()
    joined = " ".join(got.out.split())
    for words in said:
        assert words in joined, got.out
    data = json.loads(cntkpy("preview", name, "--samples", "1", "--format", "json").out)
    assert data["first"] if name not in ("objects.npy", "w.safetensors", "m.dnn", "p.png", "p.jpg", "p.bmp") else True
    if reads:  # with the words that are shown, as they are
        monkeypatch.chdir(tmp_path)
        section = parse(got.out.rpartition("A reader of it:")[2].partition("A configuration")[0]).section("reader")
        reader = create_reader(section)
        reader.start_minibatch_loop(9, 0)
        assert reader.get_minibatch() is not None


def test_binary_formats_of_cntk(cntkpy, tmp_path: Path) -> None:
    texts(tmp_path)
    for form, reader in (("cbf", "CNTKBinaryReader"), ("binary", "BinaryReader")):
        streams = ("--stream", "x:2", "--stream", "y:8:class")
        assert cntkpy("convert", "d.ctf", "d.bin", "--to", form, *streams).code == 0
        got = cntkpy("preview", "d.bin")
        assert f"d.bin: {reader}, 2 samples" in got.out and max(map(len, got.out.splitlines())) <= 80


def spreadsheet(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")


def database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (a, b)")
    connection.close()


def zipped(path: Path, member: str = "a.txt") -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, "x")


NOT_READ = [
    ("d.sqlite", database, "'d.sqlite' is SQLite, which cntkpy does not read", "sqlite3 -header -csv"),
    ("d.xlsx", spreadsheet, "'d.xlsx' is a spreadsheet", "read_excel"),
    ("d.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "'d.xls' is a spreadsheet", "read_excel"),
    ("d.h5", b"\x89HDF\r\n\x1a\n" + bytes(90), "'d.h5' is HDF5", "h5py"),
    ("d.duckdb", bytes(8) + b"DUCK" + bytes(90), "'d.duckdb' is DuckDB", "COPY t TO"),
    ("d.pkl", pickle.dumps({"a": 1}), "'d.pkl' is pickle", "run code"),
    ("d.wav", b"RIFF\0\0\0\0WAVEfmt ", "'d.wav' is sound", "features"),
    ("d.flac", b"fLaC" + bytes(90), "'d.flac' is sound", "features"),
    ("d.json", b'{"a": 1}\n', "'d.json' is JSON", "to_parquet"),
    ("d.tfrecord", bytes(90), "'d.tfrecord' is TFRecord", "Parquet"),
    ("d.mat", b"MATLAB 5.0 MAT-file" + bytes(90), "'d.mat' is MATLAB", "loadmat"),
    ("d.orc", b"ORC" + bytes(90), "'d.orc' is ORC", "pyarrow.orc"),
    ("d.avro", b"Obj\x01" + bytes(90), "'d.avro' is Avro", "Parquet"),
    ("d.feather", b"FEA1" + bytes(90), "'d.feather' is Feather, version 1", "write_feather"),
    ("d.zip", zipped, "'d.zip' is a zip archive", "unpack"),
    ("d.pt", partial(zipped, member="x/data.pkl"), "'d.pt' is PyTorch", "weights_only=True"),
    ("d.lz4", b"\x04\x22M\x18" + bytes(90), "'d.lz4' is lz4", "lz4 -d"),
    ("d.pdf", b"%PDF-1.7\n\0", "'d.pdf' is PDF", "tables"),
    ("d.parquet.gz", gzip.compress(b"PAR1" + bytes(90)), "is compressed, and Parquet is read as it is", "gzip -dk"),
    ("d.bin", bytes(range(256)) * 8, "is a binary file of no format that preview recognises", "npz"),
    ("d.csv.gz", gzip.compress(b"a,b\n1,2\n")[:20], "is damaged at byte 20", "gzip -t"),
    ("d.npy", b"\x93NUMPY\x01\0" + bytes(90), "cannot be read as npy", ""),
    ("d.npz", b"PK\3\4" + bytes(90), "is a zip archive", ""),
    ("d.safetensors", struct.pack("<Q", 1 << 40) + b"{" + bytes(90), "its header is longer than the file", ""),
]


@pytest.mark.parametrize(("name", "data", "said", "hint"), NOT_READ, ids=[case[0] for case in NOT_READ])
def test_what_is_not_read_is_named(cntkpy, tmp_path: Path, name: str, data, said: str, hint: str) -> None:
    if isinstance(data, bytes):
        (tmp_path / name).write_bytes(data)
    else:
        data(tmp_path / name)
    got = cntkpy("preview", name)
    assert got.code == 1 and not got.out
    assert said in got.err and hint in got.err and "Traceback" not in got.err
    assert got.err.replace("\n", "").isprintable()


def test_what_has_nothing_to_show(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.bin").write_bytes(b"")
    assert "'empty.bin' is empty" in cntkpy("preview", "empty.bin").err
    got = cntkpy("preview", "folder")
    assert got.code == 1 and "'folder' is a folder" in got.err and "file = folder" in got.err
    got = cntkpy("preview", "t.csv", "train", files={"t.csv": CSV})
    assert got.code == 2 and "is a file of data (CSV), which has no section 'train'" in got.err


def test_urls(cntkpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    served = tmp_path / "served"
    served.mkdir()
    for make in (tables, speech, arrays):
        make(served)
    (served / "noise.bin").write_bytes(bytes(range(256)) * 8)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        place = f"http://127.0.0.1:{server.server_port}"
        for name, said in (("t.csv", "CSV, 2 rows"), ("t.parquet", "Parquet, 2 rows"), ("k.ark", "features: 3 values")):
            got = cntkpy("preview", f"{place}/{name}")
            assert got.code == 0 and said in got.out, got.err
        assert "x: float64 3 x 4" in cntkpy("preview", f"{place}/a.npz").out
        assert "no format that preview recognises" in cntkpy("preview", f"{place}/noise.bin").err
        assert "cannot be opened" in cntkpy("preview", f"{place}/none.csv").err
    finally:
        server.shutdown()
        server.server_close()
