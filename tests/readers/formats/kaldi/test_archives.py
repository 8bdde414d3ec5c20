# ruff: noqa: E501  tables of cases
"""Kaldi archives: every kind of matrix, offsets, ranges, damage. `kaldi_native_io` is asked where it is installed."""

from __future__ import annotations

import gzip
import itertools
import os
import re
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.commands.tools.convert import convert
from cntkpy.readers import create_reader
from cntkpy.readers.common.file_bytes import FileBytes
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.htk.archive import write_features
from cntkpy.readers.formats.kaldi import matrices
from cntkpy.readers.formats.kaldi import object_kernels as k
from cntkpy.readers.formats.kaldi.archive import open_table
from cntkpy.readers.formats.kaldi.matrices import Matrices, read_matrices


def mark(token: str) -> bytes:
    return b"\0B" + token.encode() + b" "


def basic(number: int) -> bytes:
    return b"\4" + struct.pack("<i", number)


def full(rows: np.ndarray) -> bytes:
    """FM or DM, by the type of the values."""
    token, kind = ("DM", "<f8") if rows.dtype == np.float64 else ("FM", "<f4")
    return mark(token) + basic(rows.shape[0]) + basic(rows.shape[1]) + rows.astype(kind).tobytes()


def compressed(token: str, low: float, span: float, codes: np.ndarray, quartiles: np.ndarray | None = None) -> bytes:
    """CM: codes uint8[rows, cols] and quartiles uint16[cols, 4]; CM2: uint16 codes, CM3: uint8."""
    head = mark(token) + struct.pack("<ffii", low, span, *codes.shape)
    if quartiles is not None:
        return head + quartiles.astype("<u2").tobytes() + codes.T.astype(np.uint8).tobytes()
    return head + codes.astype("<u2" if token == "CM2" else "u1").tobytes()


def as_text(rows: np.ndarray) -> bytes:
    lines = "".join("\n  " + " ".join(repr(float(v)) for v in row) + " " for row in rows)
    return f" [{lines}]\n".encode() if len(rows) else b" [ ]\n"


def expanded(low: float, span: float, codes: np.ndarray, quartiles: np.ndarray) -> np.ndarray:
    """What a CM stands for, from the description of the format, in double precision."""
    out = np.empty(codes.shape)
    for c in range(codes.shape[1]):
        p = low + span * quartiles[c].astype(float) / 65535
        for r in range(codes.shape[0]):
            v = int(codes[r, c])
            if v <= 64:
                out[r, c] = p[0] + (p[1] - p[0]) * v / 64
            elif v <= 192:
                out[r, c] = p[1] + (p[2] - p[1]) * (v - 64) / 128
            else:
                out[r, c] = p[2] + (p[3] - p[2]) * (v - 192) / 63
    return out


def codes(rng: np.random.Generator, rows: int, cols: int, top: int = 256) -> np.ndarray:
    return rng.integers(0, top, (rows, cols))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """One entry of each kind with 3 columns, and what they hold."""
    rng = np.random.default_rng(1)
    q = np.sort(rng.integers(0, 65536, (3, 4)), axis=1)
    body = {
        "full": full(rng.standard_normal((7, 3)).astype(np.float32)),
        "double.with.dots": full(rng.standard_normal((5, 3))),
        "quartiles": compressed("CM", -3.0, 7.5, codes(rng, 70, 3), q),
        "shorts": compressed("CM2", -1.5, 4.0, codes(rng, 6, 3, 65536)),
        "octets": compressed("CM3", 2.0, 0.5, codes(rng, 9, 3)),
        "text": as_text(rng.standard_normal((4, 3)))[1:],
        "vector": mark("FV") + basic(3) + np.arange(3, dtype="<f4").tobytes(),
    }
    path, script, at = tmp_path / "all.ark", [], 0
    with path.open("wb") as file:
        for key, value in body.items():
            at += file.write(key.encode() + b" ")
            script.append(f"{key} {path}:{at}\n")
            at += file.write(value)
    (tmp_path / "all.scp").write_text("".join(script))
    return path


@pytest.mark.thorough
def test_every_kind_of_matrix_by_archive_and_by_script(archive: Path) -> None:
    rng = np.random.default_rng(1)
    q = np.sort(rng.integers(0, 65536, (3, 4)), axis=1)
    want = {"full": rng.standard_normal((7, 3)), "double.with.dots": rng.standard_normal((5, 3))}
    want["quartiles"] = expanded(-3.0, 7.5, codes(rng, 70, 3), q)
    want["shorts"] = -1.5 + 4.0 * codes(rng, 6, 3, 65536) / 65535
    want["octets"] = 2.0 + 0.5 * codes(rng, 9, 3) / 255
    want["text"] = rng.standard_normal((4, 3))
    want["vector"] = np.arange(3.0)[None]
    for specifier in (f"ark:{archive}", f"scp:{archive.with_suffix('.scp')}", f" ark,s,cs:{archive} "):
        found = dict(read_matrices(specifier))
        assert list(found) == list(want)
        for key, rows in want.items():
            assert found[key].dtype == np.float32
            np.testing.assert_allclose(found[key], rows, rtol=0, atol=1e-6, err_msg=key)
    exact = dict(read_matrices(f"ark:{archive}", np.float64))
    np.testing.assert_array_equal(exact["double.with.dots"], want["double.with.dots"])
    np.testing.assert_array_equal(exact["text"], want["text"])


def test_the_example_of_the_format(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes.fromhex("753120004 2464d20 0401000000 0402000000 0000803f 00000040".replace(" ", "")))
    ((key, rows),) = read_matrices(f"ark:{path}")
    assert key == "u1" and rows.tolist() == [[1, 2]]


def test_parts_of_matrices_and_rows_beyond_the_edge(archive: Path) -> None:
    table = open_table(f"ark:{archive}", k.MATRICES)
    some = np.arange(len(table))
    data = Matrices(table, some)
    whole = dict(read_matrices(f"ark:{archive}"))
    begin, end = np.full(len(some), -2), data.rows + 3
    rows, place = data.copy(some, begin, end)
    for i, key in enumerate(table.keys):
        n = len(whole[key])
        want = whole[key][np.clip(np.arange(-2, n + 3), 0, n - 1)]
        np.testing.assert_array_equal(rows[place[i] : place[i] + n + 5], want, err_msg=key)
    rows, place = data.copy(some, data.rows // 2, data.rows // 2 + 1)
    for i, key in enumerate(table.keys):
        np.testing.assert_array_equal(rows[place[i]], whole[key][len(whole[key]) // 2])
    outside, _ = data.copy(some[:2], np.array([-5, 100]), np.array([-3, 103]))
    np.testing.assert_array_equal(outside[:2], whole["full"][[0, 0]])
    np.testing.assert_array_equal(outside[2:], whole["double.with.dots"][[-1, -1, -1]])


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [
        ("[1:3]", slice(1, 4), slice(None)),
        ("[0:9,1:2]", slice(0, 7), slice(1, 3)),
        ("[:,0:0]", slice(None), slice(0, 1)),
        ("[2:2,:]", slice(2, 3), slice(None)),
        ("[]", slice(None), slice(None)),
    ],
)
def test_ranges_in_script_lines(archive: Path, text: str, rows: slice, columns: slice) -> None:
    lines = dict(line.split(" ") for line in archive.with_suffix(".scp").read_text().splitlines())
    whole = dict(read_matrices(f"ark:{archive}"))
    for key in ("full", "octets"):
        script = archive.with_name("part.scp")
        script.write_text(f"part {lines[key]}{text}\r\n")
        ((name, found),) = read_matrices(f"scp:{script}")
        end = 10 if rows == slice(0, 7) and key == "octets" else rows.stop
        assert name == "part"
        np.testing.assert_array_equal(found, whole[key][slice(rows.start, end), columns])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", range(6)),
        ("[1:3]", (1, 2, 3)),
        ("[2:8]", (2, 3, 4, 5)),
        ("[0:9]", None),
        ("[:,0:2]", None),
        ("[0:0,0:0]", None),
    ],
)
def test_the_range_of_a_vector_is_one_of_its_values(tmp_path: Path, text: str, found: Sequence[int] | None) -> None:
    head = b"\0BFV \4" + struct.pack("<i", 6)
    (tmp_path / "v.ark").write_bytes(b"u " + head + np.arange(6, dtype="<f4").tobytes())
    (tmp_path / "v.scp").write_text(f"u {tmp_path}/v.ark:2{text}\n")
    if found is None:
        with pytest.raises(DataError, match=r"line 1: the range .* does not exist"):
            list(read_matrices(f"scp:{tmp_path}/v.scp"))
        return
    ((_, rows),) = read_matrices(f"scp:{tmp_path}/v.scp")
    assert rows.tolist() == [list(found)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1:10]", "the range 1:10 does not exist; the matrix of part in .* has 7 rows"),
        ("[7:8]", "the range 7:8 does not exist"),
        ("[:,1:3]", "has 3 columns"),
        ("[3:1]", "ends before it begins"),
        ("[1]", "'[1]' is not a range".replace("[", r"\[").replace("]", r"\]")),
    ],
)
def test_ranges_that_do_not_exist(archive: Path, text: str, message: str) -> None:
    line = archive.with_suffix(".scp").read_text().split("\n")[0].split(" ")[1]
    script = archive.with_name("part.scp")
    script.write_text(f"part {line}{text}\n")
    with pytest.raises(DataError, match=message):
        list(read_matrices(f"scp:{script}"))


def test_a_packed_archive(archive: Path) -> None:
    packed = archive.with_suffix(".ark.gz")
    packed.write_bytes(gzip.compress(archive.read_bytes()))
    want = [rows.tolist() for _, rows in read_matrices(f"ark:{archive}")]
    for specifier in (
        f"ark:gunzip -c {packed} |",
        f"ark:zcat {packed}|",
        f"ark:gzip -dc '{packed}' |",
        f"ark:{packed}",
        f"ark:pigz -dc {packed} |",
    ):
        assert [rows.tolist() for _, rows in read_matrices(specifier)] == want
    packed.write_bytes(gzip.compress(archive.read_bytes())[:-9])
    with pytest.raises(DataError, match=r"damaged at byte .*: it ends early"):
        list(read_matrices(f"ark:zcat {packed} |"))


@pytest.mark.thorough
def test_an_archive_cut_short_anywhere_is_an_error(archive: Path) -> None:
    content = archive.read_bytes()
    table = open_table(f"ark:{archive}", k.MATRICES)
    ends = {0, *table.entries[:, k.END].tolist(), len(content)}
    ends |= {end + 1 for end in ends if content[end : end + 1] == b"\n"}
    cut = archive.with_name("cut.ark")
    for size in range(len(content)):
        cut.write_bytes(content[:size])
        if size in ends:
            list(read_matrices(f"ark:{cut}"))
            continue
        with pytest.raises(DataError, match=rf"cut\.ark, byte {size}, key '.+': the file ends inside the entry"):
            list(read_matrices(f"ark:{cut}"))


@settings(max_examples=40)
@given(st.data())
def test_damaged_archives_are_errors_or_other_numbers(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    rng = np.random.default_rng(3)
    q = np.sort(rng.integers(0, 65536, (2, 4)), axis=1)
    content = bytearray()
    content += b"a " + full(rng.standard_normal((3, 2)).astype(np.float32))
    content += b"b " + compressed("CM", 0, 1, codes(rng, 3, 2), q) + b"c " + compressed("CM2", 0, 1, codes(rng, 3, 2))
    content += b"d" + as_text(rng.standard_normal((2, 2))) + b"e " + full(rng.standard_normal((2, 2)))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "a.ark"
    path.write_bytes(content)
    try:
        for _, rows in read_matrices(f"ark:{path}"):
            assert rows.size <= len(content)
    except DataError as error:
        assert re.search(r"byte \d+|has \d+ columns", str(error))


def test_sizes_that_overflow_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.ark"
    for rows, cols in ((2**31 - 1, 2**31 - 1), (-1, 2), (2, -1), (2**30, 4), (2**31 - 1, 1)):
        path.write_bytes(b"k " + mark("DM") + basic(rows) + basic(cols) + bytes(64))
        with pytest.raises(DataError, match=r"a\.ark, byte \d+, key 'k': (the file ends|a size is negative)"):
            list(read_matrices(f"ark:{path}"))
        path.write_bytes(b"k " + mark("CM") + struct.pack("<ffii", 0, 1, rows, cols) + bytes(64))
        with pytest.raises(DataError, match=r"a\.ark, byte \d+, key 'k': (the file ends|a size is negative)"):
            list(read_matrices(f"ark:{path}"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"u  [\n 1 2\n 3 ]\n", "byte 13, key 'u': a row has another number of values"),
        (b"u  [\n 1 x ]\n", "byte 8, key 'u': b'x' is not a number"),
        (b"u 1 2\n", "begins with '\\['"),
        (b"u [ 1 2 ] 3\n", "follows the end"),
        (b"u \0BXX abcdefgh", "does not begin a matrix"),
        (b"u \0B\4\0\0\0\0\4\0\0\0\0", "does not begin a matrix"),
        (b"\0BFM ", "there is no key"),
        (b"u", "ends inside"),
    ],
)
def test_damage_in_words(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.ark"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(read_matrices(f"ark:{path}"))


def test_numbers_in_text(tmp_path: Path) -> None:
    path = tmp_path / "t.ark"
    path.write_bytes(b"u  [ 1.5 -2e-3 inf ; nan 12345678901234567890.5 .5\n]\r\nv [ ]\n\nw [ 1 2 3 ]")
    found = dict(read_matrices(f"ark:{path}", np.float64))
    np.testing.assert_array_equal(found["u"], [[1.5, -2e-3, np.inf], [np.nan, 12345678901234567890.5, 0.5]])
    assert found["v"].shape == (0, 3) and found["w"].tolist() == [[1, 2, 3]]


def test_an_empty_compressed_matrix_has_four_bytes_more(tmp_path: Path) -> None:
    path = tmp_path / "a.ark"
    path.write_bytes(b"u " + mark("CM") + b"PQRS" + bytes(16) + b"v " + compressed("CM3", 1, 1, np.zeros((1, 2))))
    found = dict(read_matrices(f"ark:{path}"))
    assert found["u"].shape == (0, 2) and found["v"].tolist() == [[1, 1]]


def test_matrices_of_a_table_have_the_same_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.ark"
    path.write_bytes(b"u " + full(np.zeros((2, 3), np.float32)) + b"v " + full(np.zeros((2, 4), np.float32)))
    with pytest.raises(
        DataError, match=r"The matrix of v \(.*a\.ark, byte 41\) has 4 columns, but the first .* says 3"
    ):
        list(read_matrices(f"ark:{path}"))


def test_permissive_tables_leave_out_what_cannot_be_read(archive: Path, caplog: pytest.LogCaptureFixture) -> None:
    script = archive.with_suffix(".scp")
    script.write_text(script.read_text() + f"gone {archive}.gone:5\nbad {archive}:3\nfar {archive}:99999999\n")
    with pytest.raises(DataError, match="bad"):
        list(read_matrices(f"scp:{script}"))
    assert len(list(read_matrices(f"scp,p:{script}"))) == 7
    assert caplog.text.count("counts as absent") == 3


def test_duplicate_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.ark"
    path.write_bytes((b"u " + full(np.zeros((2, 3), np.float32))) * 2)
    table = open_table(f"ark:{path}", k.MATRICES)
    with pytest.raises(DataError, match="byte 41: duplicate entry: the utterance u"):
        table.find(["u"])
    assert table.find(["v"]).tolist() == [-1]


def test_more_files_than_are_kept_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cntkpy.readers.formats.kaldi.archive.OPEN_FILES", 4)
    lines = []
    for i in range(11):
        (tmp_path / f"{i}.mat").write_bytes(full(np.full((i + 1, 2), i, np.float32)))
        lines.append(f"u{i} {tmp_path}/{i}.mat\n")
    (tmp_path / "s.scp").write_text("".join(lines))
    for i, (key, rows) in enumerate(read_matrices(f"scp:{tmp_path}/s.scp")):
        assert key == f"u{i}" and rows.tolist() == [[i, i]] * (i + 1)


def test_the_oracle_agrees_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kio = pytest.importorskip("kaldi_native_io", reason="kaldi_native_io, the oracle, is not installed")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    mats = {f"u.{i}": rng.standard_normal((rng.integers(1, 9), 13)).astype(np.float32) for i in range(400)}
    mats |= {"long": rng.standard_normal((200, 13)).astype(np.float32)}
    methods = [(m, getattr(kio.CompressionMethod, m)) for m in dir(kio.CompressionMethod) if m.startswith("k")]
    for name, method in methods:
        with kio.CompressedMatrixWriter(f"ark,scp:{name}.ark,{name}.scp") as writer:
            for key, rows in mats.items():
                writer.write(key, rows, method)
    mats["empty"] = np.zeros((0, 0), np.float32)
    for name, options in (("f", ""), ("t", ",t")):
        with kio.FloatMatrixWriter(f"ark{options}:{name}.ark") as writer:
            for key, rows in mats.items():
                writer.write(key, rows)
    for name in [n for n, _ in methods] + ["f", "t"]:
        found = dict(read_matrices(f"ark:{name}.ark"))
        with kio.SequentialFloatMatrixReader(f"ark:{name}.ark") as reader:
            want = {key: np.array(rows) for key, rows in reader}
        assert list(found) == list(want)
        for key, rows in want.items():
            assert len(found[key]) == len(rows)
            if len(rows):
                np.testing.assert_array_equal(found[key], rows, err_msg=f"{name} {key}")


def test_an_archive_that_becomes_shorter_is_an_error(tmp_path):
    path = tmp_path / "a.ark"
    path.write_bytes(b"".join(b"u%d " % u + full(np.zeros((4000, 3), np.float32)) for u in range(4)))
    found = Matrices(open_table(f"ark:{path}", k.MATRICES), np.arange(4))
    some, begin, end = np.array([3]), np.array([0]), np.array([4000])
    found.copy(some, begin, end)
    os.truncate(path, 8192)
    with pytest.raises(DataError, match=r"The data file .*a\.ark was cut short while it was read"):
        found.copy(some, begin, end)


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.thorough)])
def test_rows_are_the_same_whichever_way_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Held in memory, read by kernels, read with_retries; of one file, of many; whole, in part, with the edges repeated."""
    rng = np.random.default_rng(0)
    plain = [rng.standard_normal((int(n), 3)).astype(np.float32) for n in rng.integers(1, 40, 30)]
    codes = [rng.integers(0, 256, one.shape).astype(np.uint8) for one in plain]
    quartiles = np.sort(rng.integers(0, 65536, (3, 4)), axis=1)
    forms = {
        "FM": list(map(full, plain)),
        "DM": [full(one.astype(np.float64)) for one in plain],
        "CM": [compressed("CM", -1.0, 3.0, one, quartiles) for one in codes],
        "CM2": [compressed("CM2", -1.0, 3.0, one.astype(np.uint16) * 200) for one in codes],
        "CM3": [compressed("CM3", -1.0, 3.0, one) for one in codes],
    }
    forms["mixed"] = [forms[name][i] for i, name in enumerate(list(forms) * 6)]
    for name, objects in list(forms.items())[::-every]:  # the mixed ones first
        lines = []
        for u, one in enumerate(objects):
            (tmp_path / f"{name}{u}").write_bytes(one)
            lines.append(f"u{u} {tmp_path}/{name}{u}:0\n")
        (tmp_path / f"{name}.scp").write_text("".join(lines))
        (tmp_path / f"{name}.ark").write_bytes(b"".join(b"u%d " % u + one for u, one in enumerate(objects)))
        which = rng.integers(0, 30, 200)
        begin = rng.integers(-5, 40, 200)
        end = begin + rng.integers(1, 45, 200)
        for dtype in (np.float32, np.float64):
            wanted = [rows for _, rows in read_matrices(f"ark:{tmp_path}/{name}.ark", dtype)]
            expected = np.concatenate(
                [
                    wanted[u][np.clip(np.arange(a, b), 0, len(wanted[u]) - 1)]
                    for u, a, b in zip(which, begin, end, strict=True)
                ]
            )
            for table, held, handle in itertools.product(("ark", "scp"), (0, 900, 1 << 20), (True, False)):
                with monkeypatch.context() as patch:
                    patch.setattr(matrices, "HELD", held)
                    patch.setattr(matrices, "OPEN_FILES", 7)
                    if not handle:
                        patch.setattr(FileBytes, "descriptor", -1)
                    found = Matrices(open_table(f"{table}:{tmp_path}/{name}.{table}", k.MATRICES), np.arange(30), dtype)
                    for _ in range(2):
                        np.testing.assert_array_equal(found.copy(which, begin, end)[0], expected)


@pytest.mark.parametrize("handle", [True, False], ids=["kernel", "with_retries"])
def test_a_few_rows_of_a_long_compressed_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handle: bool) -> None:
    """Its columns are far apart; a range of rows and columns is used of the second one."""
    rng = np.random.default_rng(2)
    many, q = 20_000, np.sort(rng.integers(0, 65536, (5, 4)), axis=1)
    value = compressed("CM", -3.0, 7.5, codes(rng, many, 5), q)
    (tmp_path / "a").write_bytes(value)
    (tmp_path / "all.scp").write_text(f"all {tmp_path}/a:0\n")
    (tmp_path / "part.scp").write_text(f"part {tmp_path}/a:0[100:9999,1:3]\n")
    ((_, whole),) = read_matrices(f"scp:{tmp_path}/all.scp")
    begin = np.array([-3, 0, 5000, 15_899, 9_890, 9_899])
    end = begin + np.array([5, 1, 2000, 1, 20, 1])
    monkeypatch.setattr(matrices, "HELD", 0)
    if not handle:
        monkeypatch.setattr(FileBytes, "descriptor", -1)
    for name, rows in (("all", whole), ("part", whole[100:10_000, 1:4])):
        found = Matrices(open_table(f"scp:{tmp_path}/{name}.scp", k.MATRICES), np.arange(1))
        copied, _ = found.copy(np.zeros(6, np.int64), begin, end)
        wanted = [rows[np.clip(np.arange(a, b), 0, len(rows) - 1)] for a, b in zip(begin, end, strict=True)]
        np.testing.assert_array_equal(copied, np.concatenate(wanted))


def test_an_archive_whose_entries_are_larger_than_what_is_read_at_once(tmp_path: Path) -> None:
    """The window grows for long keys and texts, and goes back to headers."""
    rng = np.random.default_rng(0)
    rows = {
        f"{'k' * n}{n}": rng.standard_normal((n % 50 + 1, 7)).astype(np.float32) for n in (1, 600, 3, 5000, 2, 40, 41)
    }
    content = b"".join(
        key.encode() + (as_text(one) if i % 2 else b" " + full(one)) for i, (key, one) in enumerate(rows.items())
    )
    (tmp_path / "a.ark").write_bytes(content)
    found = dict(read_matrices(f"ark:{tmp_path}/a.ark"))
    assert list(found) == list(rows)
    for key, one in rows.items():
        np.testing.assert_array_equal(found[key], one)
    for cut in (3, 300, 620, 5000, len(content) - 5):
        (tmp_path / "a.ark").write_bytes(content[:cut])
        with pytest.raises(DataError, match=r"a\.ark, byte \d+"):
            list(read_matrices(f"ark:{tmp_path}/a.ark"))


VALUES = {"a": [1.0, 0.0, 1.0], "b": [0.5], "c": [0.25, 2.0, 3.0, 4.0, 5.0]}
"""One value for each frame, as of voice activity, weights, pitch."""


def vectors(folder: Path, form: str) -> str:
    parts: list[bytes] = []
    script = ""
    for key, values in VALUES.items():
        numbers = np.array(values, "<f8" if form == "DV" else "<f4")
        if form == "text":
            body = b" [ " + " ".join(map(str, values)).encode() + b" ]\n"
        else:
            body = b"\0B" + form.encode() + b" " + basic(len(values)) + numbers.tobytes()
        head = key.encode() + b" "
        script += f"{key} {folder}/v.ark:{sum(map(len, parts)) + len(head)}\n"
        parts.append(head + body)
    (folder / "v.ark").write_bytes(b"".join(parts))
    (folder / "v.scp").write_text(script)
    return f"{folder}/v"


@pytest.mark.parametrize("form", ["FV", "DV", "text"])
def test_vectors_of_one_value_per_frame(tmp_path: Path, form: str) -> None:
    """With dim=1 each value is a frame; with another dim a vector is one."""
    path = vectors(tmp_path, form)
    (tmp_path / "counts").write_text("a 3\nb 1\nc 5\n")

    def read(rx: str, dim: int = 1, more: str = "") -> list[list[float]]:
        text = f"deserializers=([type=KaldiFeatureDeserializer;input=[x=[rx={rx};dim={dim}{more}]]])"
        reader = create_reader(f"{text};randomize=false", "double")
        reader.start_minibatch_loop(100, 0)
        (m,) = iter(reader.get_minibatch, None)
        layout = m.layouts["x"].sequences
        return [m.streams["x"][b:e, s, 0].tolist() for _, s, b, e in layout.tolist()]

    for rx in (f'"ark:{path}.ark"', f'"scp:{path}.scp"'):
        for more in ("", f';scpFile="{tmp_path}/counts"'):
            assert sorted(read(rx, 1, more)) == sorted(VALUES.values())
        with pytest.raises(UserError) as caught:
            read(rx, 3)
        if form != "text":
            assert "vector is one frame; with dim=1, each of its values is" in str(caught.value.diagnostic.hint)
    (tmp_path / "part.scp").write_text(f"c {(tmp_path / 'v.scp').read_text().split()[-1]}[1:3]\n")
    assert read(f'"scp:{tmp_path}/part.scp"') == [[2.0, 3.0, 4.0]]
    assert convert([f"{path}.ark"], str(tmp_path / "o.ctf"), quiet=True) == (0 if form != "text" else 1)
    if form != "text":
        lines = (tmp_path / "o.ctf").read_text().splitlines()
        assert [float(line.split()[-1]) for line in lines] == [v for values in VALUES.values() for v in values]


def test_archives_of_htk_matrices_are_named(tmp_path: Path) -> None:
    write_features(str(tmp_path / "u.mfc"), np.ones((4, 2), np.float32))
    (tmp_path / "h.ark").write_bytes(b"u " + (tmp_path / "u.mfc").read_bytes())
    with pytest.raises(DataError, match="byte 2, key 'u': the entry is an HTK matrix, not one of Kaldi") as caught:
        list(read_matrices(f"ark:{tmp_path}/h.ark"))
    assert "copy-feats --htk-in=true" in str(caught.value.hint)
    (tmp_path / "h.scp").write_text(f"u {tmp_path}/u.mfc\n")
    with pytest.raises(DataError, match=r"key 'u' .*: the entry is an HTK matrix"):
        list(read_matrices(f"scp:{tmp_path}/h.scp"))
