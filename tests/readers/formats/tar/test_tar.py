"""Tar shards: members as streams, the same minibatches as of files side by side, and what is refused."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import re
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import zstandard

from cntkpy.commands.cli import main
from cntkpy.readers import DataError, MinibatchSource, StreamDef, StreamDefs, TarDeserializer, create_reader
from cntkpy.readers.formats.tar.shards import open_shards
from cntkpy.readers.transforms import scale

RANDOM = np.random.default_rng(5)
PICTURES = [cv2.imencode(".png", RANDOM.integers(0, 255, (4, 5, 3), np.uint8))[1].tobytes() for _ in range(20)]
X = "x=[member=jpg:png;transforms=([type=Scale;width=3;height=2;channels=3]:[type=Transpose])]"
Y = "y=[member=cls;dim=4;format=sparse]"
Z = "z=[member=npy;dim=3]"
J = "j=[member=json;field=a;dim=2]"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def npy(values: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def members(numbers: Iterable[int], name: str = "{:06}") -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for k in numbers:
        key = name.format(k)
        found += [
            (f"{key}.png", PICTURES[k]),
            (f"{key}.cls", b"%d\n" % (k % 4)),
            (f"{key}.npy", npy(np.arange(3) + k)),
            (f"{key}.json", json.dumps({"a": [k, 0.5], "b": "text"}).encode()),
        ]
    return found


def archive(of: Iterable[tuple[str, bytes]], kind: int = tarfile.GNU_FORMAT) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=kind) as made:
        for name, content in of:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return whole.getvalue()


def minibatches(section: str, *, size: int = 4) -> list[Any]:
    reader = create_reader(section)
    reader.start_minibatch_loop(size, 0)
    try:
        return [
            (m.keys, {n: (v if isinstance(v, np.ndarray) else v.toarray()).tolist() for n, v in m.streams.items()})
            for m in iter(reader.get_minibatch, None)
        ]
    finally:
        reader.close()


def tar(inputs: str, files: str = '"a.tar"', more: str = "randomize=false") -> str:
    return f"{more};deserializers=([type=TarDeserializer;file={files};input=[{inputs}]])"


@pytest.mark.parametrize("order", ["randomize=false", "randomize=true", "chunkSizeInBytes=700;randomizationWindow=6"])
def test_members_are_streams(order: str) -> None:
    Path("a.tar").write_bytes(archive(members(range(11))))
    Path("b.tar").write_bytes(archive(members(range(11, 20))))
    Path("map.txt").write_text("".join(f"{k}\t{k}.png\t{k % 4}\n" for k in range(20)))
    for k, content in enumerate(PICTURES):
        Path(f"{k}.png").write_bytes(content)
    Path("a.ctf").write_text("".join(f"{k} |z {k} {k + 1} {k + 2} |j {k} 0.5\n" for k in range(20)))
    found = minibatches(tar(f"{X};{Y};{Z};{J}", '"a.tar":"b.tar"', order))
    assert sum(len(keys) for keys, _ in found) == 20
    expected = minibatches(
        "randomize=false;deserializers=([type=ImageDeserializer;file=map.txt;input=["
        "x=[transforms=([type=Scale;width=3;height=2;channels=3]:[type=Transpose])];y=[labelDim=4]]]:"
        "[type=CNTKTextFormatDeserializer;file=a.ctf;input=[z=[dim=3;format=dense];j=[dim=2;format=dense]]])",
        size=20,
    )
    keys, streams = expected[0]
    rows = {key: {n: (v[0][i] if n != "y" else v[i]) for n, v in streams.items()} for i, key in enumerate(keys)}
    for keys, streams in found:
        for i, key in enumerate(keys):
            assert {n: (v[0][i] if n != "y" else v[i]) for n, v in streams.items()} == rows[key]
    if order == "randomize=false":
        assert [key for keys, _ in found for key in keys] == list(range(20))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_compressed_shards(pack: Callable[[bytes], bytes]) -> None:
    content = archive(members(range(9)))
    Path("a.tar").write_bytes(content)
    Path("b.tar").write_bytes(pack(content))
    for order in ("randomize=false", "randomize=true"):
        assert minibatches(tar(f"{X};{Y}", more=order)) == minibatches(tar(f"{X};{Y}", '"b.tar"', order))


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_and_folders(kind: int) -> None:
    folder = "f" * 90 + "/" + ("u" * 20 if kind == tarfile.USTAR_FORMAT else "g" * 90 + "/ä")
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=kind) as made:
        top = tarfile.TarInfo("./top")
        top.type = tarfile.DIRTYPE
        made.addfile(top)
        for name in (f"./{folder}/s.v1.cls", f"./{folder}/s.v1.txt", "./README", "./.hidden.cls", "./top/t.v1.cls"):
            info = tarfile.TarInfo(name)
            info.size = 1
            made.addfile(info, io.BytesIO(b"2"))
    Path("a.tar").write_bytes(whole.getvalue())
    found = minibatches(tar("y=[member=v1.cls;dim=4;format=sparse]"))
    assert found == [([f"{folder}/s", "top/t"], {"y": [[0, 0, 1, 0]] * 2})]


def test_numbers_of_every_kind() -> None:
    Path("labels").write_text("cat\nguide dog\n")
    Path("a.tar").write_bytes(
        archive(
            [
                ("a.txt", b"1, 2\n"), ("a.npy", npy(np.asfortranarray(np.arange(6, dtype=">i2").reshape(3, 2)))),
                ("a.json", b"[3, 4]"), ("a.names", b"guide dog\ncat\n"), ("a.cls", b"1"),
                ("b.txt", b"\xef\xbb\xbf3 -4e1"), ("b.npy", npy(np.array([True, False]))),
                ("b.json", b"[[5, 6], [7, 8.5]]"), ("b.names", b"cat"), ("b.cls", b"0 "),
            ]
        )
    )  # fmt: skip
    found = minibatches(
        tar(
            "t=[member=txt;dim=2];n=[member=npy;dim=2];j=[member=json;dim=2];c=[member=cls;dim=2;format=sparse];"
            "l=[member=names;dim=2;format=sparse;labelMappingFile=labels]"
        ),
        size=100,
    )
    _, streams = found[0]
    assert np.asarray(streams["t"])[0].tolist() == [[1, 2], [3, -40]]
    assert np.asarray(streams["n"])[:, 0].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert np.asarray(streams["n"])[0, 1].tolist() == [1, 0]
    assert np.asarray(streams["j"])[:2, 1].tolist() == [[5, 6], [7, 8.5]]
    assert np.asarray(streams["l"]).reshape(-1, 2, 2)[:, 0].tolist() == [[0, 1], [1, 0]]
    assert np.asarray(streams["c"]).tolist() == [[0, 1], [1, 0]]


def test_joined_by_the_names_of_samples() -> None:
    Path("a.tar").write_bytes(archive(members(range(6))))
    Path("a.ctf").write_text("".join(f"{k} |v {k}\n" for k in (5, 4, 3, 2, 1, 0)))
    ctf = "[type=CNTKTextFormatDeserializer;file=a.ctf;input=[v=[dim=1;format=dense]]]"
    shards = f"[type=TarDeserializer;file=a.tar;input=[{X};{Z}]]"
    for first, second in ((ctf, shards), (shards, ctf)):
        for keys, streams in minibatches(f"randomize=false;deserializers=({first}:{second})"):
            assert [row[0] for row in streams["v"][0]] == [row[0] for row in streams["z"][0]] == keys
    Path("a.tar").write_bytes(archive(members(range(6), "s{}")))
    with pytest.raises(DataError, match=r"a.tar: Invalid numeric sequence id 's0'; keys are the names of samples"):
        minibatches(f"deserializers=({ctf}:{shards})")
    Path("a.ctf").write_text("".join(f"s{k} |v {k}\n" for k in range(6)))
    found = minibatches(f"randomize=false;deserializers=({shards}:{ctf})")
    assert found[0][0] == ["s0", "s1", "s2", "s3"]


def test_a_sample_may_occur_in_two_shards(caplog: pytest.LogCaptureFixture) -> None:
    Path("a.tar").write_bytes(archive(members(range(3))))
    assert [keys for keys, _ in minibatches(tar(f"{X};{Y}", '"a.tar":"a.tar"'), size=6)] == [[0, 1, 2, 0, 1, 2]]
    assert "a.tar: two samples are called '" in caplog.text


def test_chunks_are_of_one_archive() -> None:
    for name, count in (("a.tar", 5), ("b.tar", 3), ("c.tar", 1)):
        Path(name).write_bytes(archive([(f"{k}.txt", b"1" * 10) for k in range(count)]))
    shards = open_shards(["a.tar", "b.tar", "c.tar"], [("txt",)], 25)
    assert shards.first.tolist() == [0, 2, 4, 5, 7, 8, 9]
    assert shards.chunk_bytes.tolist() == [20, 20, 10, 20, 10, 10]
    shards.close()


def of_type(kind: bytes) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as made:
        info = tarfile.TarInfo("0.cls")
        info.type, info.linkname = kind, "passwd"
        made.addfile(info)
    return whole.getvalue()


def sparse(pax: bool) -> bytes:
    if not pax:
        return of_type(tarfile.GNUTYPE_SPARSE)
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as made:
        info = tarfile.TarInfo("0.cls")
        info.pax_headers = {"GNU.sparse.major": "1"}
        made.addfile(info)
    return whole.getvalue()


GOOD = archive([("0.cls", b"1"), ("1.cls", b"2")])


@pytest.mark.malformed
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (of_type(tarfile.SYMTYPE), "at byte 0: its member '0.cls' is a symbolic link"),
        (of_type(tarfile.LNKTYPE), "is a hard link"),
        (of_type(tarfile.CHRTYPE), "is a device"),
        (of_type(tarfile.FIFOTYPE), "is a pipe"),
        (sparse(False), "is a sparse file"),
        (sparse(True), "the member that follows is a sparse file"),
        (of_type(b"V"), r"is of the unknown type b'V'"),
        (b"", "at byte 0: it has no header of a tar archive"),
        (b"x" * 2000, "at byte 0: it has no sound header there"),
        (GOOD[:1024], "at byte 1024: it ends without the two blocks of zeros"),
        (GOOD[:512], "at byte 512: its member '0.cls' has 1 bytes, and the archive ends before"),
        (GOOD[:1030] + b"?" + GOOD[1031:], "at byte 1024: it has no sound header there"),
        pytest.param(gzip.compress(GOOD)[:-30], "damaged at byte", id="cut short"),
        (archive([("0.jpg", b"1")]), "has no sample with a member .cls"),
        (archive([("0.cls", b"1"), ("0.b.cls", b"1"), ("0.CLS", b"1")]), "the sample '0' has two members for one"),
    ],
)  # fmt: skip
def test_archives_that_are_refused(content: bytes, message: str) -> None:
    Path("a.tar").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        minibatches(tar("y=[member=cls;dim=4;format=sparse]"))
    assert "a.tar" in caught.value.message


@pytest.mark.malformed
def test_a_missing_member() -> None:
    Path("a.tar").write_bytes(archive([*members(range(2)), ("000002.cls", b"1"), ("000003.cls", b"1")]))
    with pytest.raises(DataError, match=r"a.tar, byte \d+: the sample '000002' has no member .jpg or .png\."):
        minibatches(tar(f"{X};{Y}"))
    Path("a.tar").write_bytes(archive([("0.jpeg", b"1"), ("0.cls", b"1")]))
    with pytest.raises(DataError, match=r"no member .jpg or .png\.") as caught:
        minibatches(tar(f"{X};{Y}"))
    assert str(caught.value.hint).startswith("it has members .jpeg: write member = ENDING")


@pytest.mark.malformed
@pytest.mark.parametrize(
    ("content", "stream", "message"),
    [
        (b"x", "member=cls;dim=4;format=sparse", "'x' is not a number"),
        (b"4", "member=cls;dim=4;format=sparse", r"4\.0 is not a class below dim, which is 4"),
        (b"0.5", "member=cls;dim=4;format=sparse", r"0\.5 is not a class"),
        (b"nan", "member=cls;dim=4;format=sparse", "nan is not a class"),
        (b"", "member=cls;dim=4;format=sparse", "it has no class"),
        (b"1 2 3", "member=txt;dim=2", "it has 3 numbers, but dim is 2"),
        (b"\xff", "member=txt;dim=2", r"its byte 0 is not text \(UTF-8\)"),
        (b"dog", "member=txt;dim=2;format=sparse;labelMappingFile=labels", "'dog' is not in labelMappingFile"),
        (b"x", "member=npy;dim=2", "it is not an array of NumPy"),
        (npy(np.arange(2))[:-1], "member=npy;dim=2", "its header says 2 values of 8 bytes, but 15 bytes follow"),
        (npy(np.array(["a"])), "member=npy;dim=2", "it is an array of <U1, not of numbers"),
        (npy(np.zeros(2)).replace(b"(2,)", b"(9999999999999999999,)"), "member=npy;dim=2", "its header|not an array"),
        (b"[1, ", "member=json;dim=2", r"it is not JSON \("),
        (b"[" * 100_000, "member=json;dim=2", r"it is not JSON \(its arrays are nested too deeply\)"),
        (b'{"b": 1}', "member=json;dim=1;field=a", "it is not an object with the name 'a'"),
        (b'{"b": 1}', "member=json;dim=1", "it is an object"),
        (b'[1, "2"]', "member=json;dim=2", "it is not a number, an array of numbers"),
        (b"[[1, 2], [3]]", "member=json;dim=2", "it has something else than numbers"),
        (b"[1, null]", "member=json;dim=2", "it is not a number|something else"),
        (b"1" + b"0" * 400, "member=json;dim=1", "it has something else than numbers|not JSON"),
    ],
)  # fmt: skip
def test_members_that_are_malformed(content: bytes, stream: str, message: str) -> None:
    Path("labels").write_text("cat\n")
    ending = stream.partition("=")[2].partition(";")[0]
    Path("a.tar").write_bytes(archive([(f"dir/7.{ending}", content)]))
    with pytest.raises(DataError) as caught:
        minibatches(tar(f"s=[{stream}]"))
    assert re.match(rf"a.tar, member 'dir/7.{ending}' \(byte 512\): ({message})", caught.value.message)


@pytest.mark.malformed
def test_pictures_that_are_malformed(caplog: pytest.LogCaptureFixture) -> None:
    some = members(range(4))
    some[4] = ("000001.png", b"no picture")
    Path("a.tar").write_bytes(archive(some))
    with pytest.raises(DataError, match=r"Cannot open file '000001.png' \(a.tar, byte \d+\): OpenCV cannot decode it"):
        minibatches(tar(f"{X};{Y}"))
    found = minibatches(tar(f"{X};{Y}", more="randomize=false;maxErrors=1"))
    assert [key for keys, _ in found for key in keys] == [0, 2, 3]
    assert "It is left out." in caplog.text


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("x=[member=jpg]", "a stream has either transforms, for pictures, or dim, for numbers"),
        ("x=[member=cls;dim=0]", "0 is not a dimension"),
        ("x=[member=cls;dim=2;labelMappingFile=l]", "names are classes"),
        ("x=[member=a:b;dim=2];y=[member=b;dim=2]", r"members .b are read by 'y' and by a stream with other endings"),
        ("x=[member=a;dim=2;definesMBSize=true];y=[member=b;dim=2;definesMBSize=true]", "only one stream can define"),
        ("", "no input stream is given"),
    ],
)
def test_sections_that_are_refused(inputs: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        minibatches(tar(inputs))


def test_two_streams_of_one_member() -> None:
    Path("a.tar").write_bytes(archive(members(range(2))))
    both = "j=[member=json;field=a;dim=2];k=[member=json;field=a;dim=2;definesMBSize=true]"
    (_, streams), *_ = minibatches(tar(both))
    assert streams["j"] == streams["k"]


def test_from_python() -> None:
    Path("a.tar").write_bytes(archive(members(range(6))))
    streams = StreamDefs(
        x=StreamDef(field=["jpg", "png"], transforms=[scale(3, 2, 3)]),
        y=StreamDef(field="cls", shape=4, is_sparse=True),
        npy=StreamDef(shape=3),
    )
    source = MinibatchSource(TarDeserializer(["a.tar"], streams), max_sweeps=1, randomize=False)
    source.next_minibatch(2)
    copy = pickle.loads(pickle.dumps(source))
    for one in (source, copy):
        found = one.next_minibatch(100)
        assert found[one["npy"]].asarray().reshape(-1, 3)[:, 0].tolist() == [2, 3, 4, 5]
        assert found[one["x"]].asarray().shape == (4, 1, 3, 2, 3)


def test_check_and_preview(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.tar").write_bytes(archive(members(range(4))))
    top = "command=t\nprecision=float\nt=[action=test;modelPath=m;minibatchSize=2;reader=["
    Path("c.cntk").write_text(f"{top}{tar(f'{X};{Y};{Z}')}]]\n")
    main(["check", "--data", "c.cntk"])
    assert "a.tar" not in capsys.readouterr().out
    main(["preview", "c.cntk", "t"])
    printed = capsys.readouterr().out
    assert "x: dense, 3x2x3" in printed and "one class per sample: 0: 1, 1: 1, 2: 1, 3: 1" in printed
    Path("c.cntk").write_text(f"{top}{tar(f'{X};{Y};z=[member=npy;dim=5]')}]]\n")
    main(["check", "--data", "c.cntk"])
    found = capsys.readouterr().out
    assert re.search(
        r"c.cntk:3:\d+: error: a.tar, member '000000.npy' \(byte \d+\): it has 3 numbers, but dim is 5", found
    )
    Path("a.tar").write_bytes(archive([("0.png", b"?"), ("0.cls", b"1")]))
    Path("c.cntk").write_text(f"{top}{tar(f'{X};{Y}')}]]\n")
    main(["check", "--data", "c.cntk"])
    assert "a.tar, member '0.png' (byte 512): OpenCV cannot decode it" in capsys.readouterr().out
    Path("a.tar").write_bytes(b"?" * 600)
    main(["check", "--data", "c.cntk"])
    assert "The archive a.tar cannot be read at byte 0: it has no sound header there" in capsys.readouterr().out
