"""The bytes of feature files: headers, compression, archives, script files; nothing that is read makes it crash."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.htk.archive import FeatureFile, read_features, write_archive, write_features
from cntkpy.readers.formats.htk.format import kind_code, parse_header
from cntkpy.readers.formats.htk.script import read_script

pytestmark = pytest.mark.malformed

FRAMES = np.array([[0.5, -1], [2, 3.25], [10, 0]], np.float32)
BIG = "00000003 000186a0 0008 0009  3f000000 bf800000  40000000 40500000  41200000 00000000"
LITTLE = "03000000 a0860100 0800 0900  0000003f 000080bf  00000040 00005040  00002041 00000000"


def test_bytes_of_a_big_endian_file(tmp_path: Path):
    write_features(str(tmp_path / "a"), FRAMES)
    assert (tmp_path / "a").read_bytes() == bytes.fromhex(BIG)


def test_bytes_of_a_little_endian_file(tmp_path: Path):
    write_features(str(tmp_path / "a"), FRAMES, big=False)
    assert (tmp_path / "a").read_bytes() == bytes.fromhex(LITTLE)
    assert np.array_equal(read_features(str(tmp_path / "a")), FRAMES)


def test_bytes_of_a_compressed_file(tmp_path: Path):
    write_features(str(tmp_path / "a"), FRAMES, compressed=True, kind="MFCC_E")
    found = (tmp_path / "a").read_bytes()
    # 3 + 4 frames, 10 ms, 4 bytes a frame, MFCC (6) + _E (0100) + _C (02000)
    assert found[:12] == bytes.fromhex("00000007 000186a0 0004 0446")
    a = 65534 / np.array([9.5, 4.25])
    assert np.allclose(np.frombuffer(found, ">f4", 4, 12), [*a, 10.5 * a[0] / 2, 2.25 * a[1] / 2], rtol=1e-6)
    low, high = -32767, 32767
    middle = [round(2 * a[0] - 10.5 * a[0] / 2), round(0 * a[1] - 2.25 * a[1] / 2)]
    assert np.frombuffer(found, ">i2", 6, 28).tolist() == [low, low, middle[0], high, high, middle[1]]
    assert np.allclose(read_features(str(tmp_path / "a")), FRAMES, atol=1e-4)


HEADERS_WRITTEN = [
    ("USER", True, False, "00000003 000186a0 0008 0009"),
    ("USER", False, False, "03000000 a0860100 0800 0900"),
    ("MFCC", True, False, "00000003 000186a0 0008 0006"),
    ("FBANK_Z", True, False, "00000003 000186a0 0008 0807"),
    ("PLP_0", True, False, "00000003 000186a0 0008 200b"),
    ("MFCC_E_D_A", True, False, "00000003 000186a0 0008 0346"),
    ("MFCC_E_D_N", False, False, "03000000 a0860100 0800 c601"),
    ("MFCC_E_D_A_T", True, False, "00000003 000186a0 0008 8346"),
    ("USER", True, True, "00000007 000186a0 0004 0409"),
    ("MFCC_E_D", True, True, "00000007 000186a0 0004 0546"),
    ("MFCC_0", False, True, "07000000 a0860100 0400 0624"),
]


@pytest.mark.parametrize(("kind", "big", "compressed", "expected"), HEADERS_WRITTEN)
def test_bytes_of_headers(tmp_path: Path, kind: str, big: bool, compressed: bool, expected: str):
    write_features(str(tmp_path / "a"), FRAMES, kind=kind, big=big, compressed=compressed)
    found = (tmp_path / "a").read_bytes()
    assert found[:12] == bytes.fromhex(expected)
    assert len(found) == 12 + (16 + 12 if compressed else 24)
    header = FeatureFile(str(tmp_path / "a")).header
    assert (header.frames, header.dim, header.kind, header.compressed) == (3, 2, kind, compressed)


def test_checksums_are_not_written(tmp_path: Path):
    with pytest.raises(DataError, match="checksum"):
        write_features(str(tmp_path / "a"), FRAMES, kind="MFCC_E_K")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (6, "MFCC"),
        (7, "FBANK"),
        (9, "USER"),
        (11, "PLP"),
        (0o106, "MFCC_E"),
        (0o1506, "MFCC_E_D_A"),
        (0o206, "MFCC_N"),
        (0o4007, "FBANK_Z"),
        (0o20006, "MFCC_0"),
        (0o100006, "MFCC_T"),
        (0o10011, "USER"),
        (0o130713, "PLP_E_D_N_T_0"),
    ],
)
@pytest.mark.parametrize("order", "><")
def test_kinds(tmp_path: Path, code: int, kind: str, order: str):
    data = struct.pack(order + "iiHH", 2, 100000, 8, code) + np.arange(4).astype(order + "f4").tobytes()
    data += b"\xab\xcd" * bool(code & 0o10000)  # a checksum
    (tmp_path / "a").write_bytes(data)
    file = FeatureFile(str(tmp_path / "a"))
    assert (file.header.kind, file.header.dim, file.header.big) == (kind, 2, order == ">")
    assert file.frames().tolist() == [[0, 1], [2, 3]]


def test_period_zero_and_a_guid(tmp_path: Path):
    (tmp_path / "a").write_bytes(struct.pack(">iiHH", 1, 0, 4, 9) + struct.pack(">f", 7))
    assert FeatureFile(str(tmp_path / "a")).frames().tolist() == [[7]]
    (tmp_path / "b").write_bytes(struct.pack(">iiHH", 1, 100000, 4, 12) + bytes(range(16)) + struct.pack(">f", 7))
    file = FeatureFile(str(tmp_path / "b"))
    assert file.header.kind == "USER;" + bytes(range(16)).hex() and file.frames().tolist() == [[7]]


def test_frames_are_not_copied(tmp_path: Path):
    write_features(str(tmp_path / "a"), FRAMES)
    file = FeatureFile(str(tmp_path / "a"))
    assert not file.frames(1, 3).flags.owndata and file.frames(1, 3).tolist() == FRAMES[1:].tolist()


VALUES = st.floats(-1e6, 1e6, width=32)
HEADERS = {
    "empty": (b"", "not an HTK feature file"),
    "short": (b"\0" * 11, "not an HTK feature file"),
    "waveform": (struct.pack(">iiHH", 0, 100000, 4, 0), "WAVEFORM"),
    "vector quantized": (struct.pack(">iiHH", 0, 100000, 4, 0o40006), "vector-quantized"),
    "size zero": (struct.pack(">iiHH", 0, 100000, 0, 9), "0 bytes"),
    "size six": (struct.pack(">iiHH", 0, 100000, 6, 9), "6 bytes"),
    "cut short": (bytes.fromhex(BIG)[:-1], "shorter than its header says"),
    "negative": (struct.pack(">iiHH", -5, 100000, 4, 9), "-5 frames"),
    "compressed, too few": (struct.pack(">iiHH", 3, 100000, 4, 0o2011), "-1 frames"),
    "huge": (struct.pack(">iiHH", 2**31 - 1, 100000, 65532, 9), "shorter than its header says"),
    "text": (b"#!MLF!#\n0 1 sil\n", "kind|shorter|bytes"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_bad_headers(tmp_path: Path, name: str):
    data, message = HEADERS[name]
    (tmp_path / "bad").write_bytes(data)
    with pytest.raises(DataError, match=message) as caught:
        FeatureFile(str(tmp_path / "bad"))
    assert str(tmp_path / "bad") in str(caught.value)


@pytest.mark.parametrize("count", [3000, pytest.param(18000, marks=pytest.mark.thorough)])
def test_mutated_headers(count: int):
    """Headers, half of them near a good one: a header that fits the file, or a DataError."""
    rng = np.random.default_rng(1)
    good = bytes.fromhex(BIG)
    accepted = 0
    for turn in range(count):
        head = bytearray(good[:28])
        for place in rng.integers(0, 12 if turn % 2 else 28, rng.integers(1, 6)):
            head[place] = rng.integers(0, 256)
        length = int(rng.choice([len(good), 12, 13, 28, 200, 2**31]))
        try:
            header = parse_header(bytes(head), length, "f")
        except DataError:
            continue
        accepted += 1
        assert header.data + header.frames * header.frame_bytes <= length and header.dim > 0 <= header.frames
    assert accepted > count // 90


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.thorough)])
def test_mutated_files(tmp_path: Path, count: int):
    """Whole files: what is read is as large as the file says, and no larger than the file."""
    rng = np.random.default_rng(2)
    path = tmp_path / "f"
    for turn in range(count):
        data = bytearray(bytes.fromhex(BIG))
        for place in rng.integers(0, 14, rng.integers(1, 4)):
            data[place] = rng.integers(0, 256)
        path.write_bytes(data[: rng.integers(0, len(data) + 1)] if turn % 3 == 0 else data)
        with contextlib.suppress(DataError):
            assert read_features(str(path)).nbytes <= 2 * len(data)


def test_unknown_kinds_are_not_written():
    assert kind_code("mfcc_e_d_a") == 0o1506
    with pytest.raises(DataError, match="not a kind"):
        kind_code("MFCC_Q")


@settings(max_examples=60)
@given(
    frames=hnp.arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 5)), elements=VALUES),
    big=st.booleans(),
    kind=st.sampled_from(["USER", "MFCC_E_D", "PLP_0", "FBANK_Z_T"]),
)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, frames: np.ndarray, big: bool, kind: str):
    path = str(tmp_path_factory.getbasetemp() / "round")
    write_features(path, frames, big=big, kind=kind)
    assert np.array_equal(read_features(path), frames)
    write_features(path, frames, big=big, kind=kind, compressed=True)
    span = np.ptp(frames, axis=0).astype(np.float64) + np.abs(frames).max(axis=0) * 1e-2 + 1e-6
    assert (np.abs(read_features(path) - frames) <= span / 1000 + np.abs(frames) * 1e-4 + 1e-3).all()


def test_archive_and_script(tmp_path: Path):
    parts = [("a/u1.mfc", FRAMES), ("a/u2.mfc", FRAMES[:1] + 1)]
    assert write_archive(str(tmp_path / "f.ark"), parts, str(tmp_path / "f.scp")) == 4
    assert (tmp_path / "f.scp").read_text() == "a/u1.mfc=.../f.ark[0,2]\na/u2.mfc=.../f.ark[3,3]\n"
    script = read_script([str(tmp_path / "f.scp")])
    assert script.keys == ["a/u1", "a/u2"] and script.files == [f"{tmp_path}/f.ark"]
    assert read_features(script.files[0], 3).tolist() == [[1.5, 0]]


@pytest.mark.parametrize(
    ("line", "prefix", "expected"),
    [
        ("u.x.mfc=f.ark[0,9]", "", ("u.x", "f.ark", 0, 9)),
        ("a.b/u=f.ark[3,4]\r", "", ("a.b/u", "f.ark", 3, 4)),
        ("d/u.mfc", "", ("d/u", "d/u.mfc", 0, -1)),
        ("f.ark[2,5]", "", ("f", "f.ark", 2, 5)),
        ("u=p.mfc", "", ("u", "p.mfc", 0, -1)),
        ("u=f.ark[0,1]", "x\\y//", ("u", "x/y/f.ark", 0, 1)),
        ("u=.../f.ark[0,1]", "x", ("u", "x/.../f.ark", 0, 1)),
        ("u=.../f.ark[0,1]", "", ("u", "{}/f.ark", 0, 1)),
    ],
)
def test_script_lines(tmp_path: Path, line: str, prefix: str, expected: tuple[str, str, int, int]):
    (tmp_path / "s").write_bytes(line.encode() + b"\n\n")
    s = read_script([str(tmp_path / "s")], prefix)
    found = (s.keys[0], s.files[0], int(s.first[0]), int(s.last[0]))
    assert found == (expected[0], expected[1].format(tmp_path), *expected[2:])


@pytest.mark.parametrize(
    "line", ["u=f[1]", "u=f[1,2", "u=f[1,2]x", "u=f[2,1]", "u=f[-1,2]", "u=f[a,b]", "=f[0,1]", "u="]
)
def test_bad_script_lines(tmp_path: Path, line: str):
    (tmp_path / "s").write_text(f"ok=f[0,1]\n{line}\n")
    with pytest.raises(DataError, match=r"s, line 2: "):
        read_script([str(tmp_path / "s")])


def test_kind_12_without_an_identifier_is_read(tmp_path: Path):
    """It is ANON in HTK: frames follow the header at once. CNTK's files of this kind have 16 bytes between them."""
    for order in ("big", "little"):
        head = struct.pack(">iiHH" if order == "big" else "<iiHH", 3, 100000, 8, 12)
        values = FRAMES.astype(">f4" if order == "big" else "<f4").tobytes()
        (tmp_path / "anon").write_bytes(head + values)
        (tmp_path / "stream").write_bytes(head + bytes(range(16)) + values)
        assert np.array_equal(read_features(str(tmp_path / "anon")), FRAMES)
        assert np.array_equal(read_features(str(tmp_path / "stream")), FRAMES)
        assert FeatureFile(str(tmp_path / "anon")).header.kind == "USER"
        assert FeatureFile(str(tmp_path / "stream")).header.kind == f"USER;{bytes(range(16)).hex()}"
        (tmp_path / "cut").write_bytes(head + values[:-4])
        with pytest.raises(DataError, match="is shorter than its header says"):
            FeatureFile(str(tmp_path / "cut"))
