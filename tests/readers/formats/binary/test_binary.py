"""Binary files: the bytes of every kind of section, reading them in every mode, and what is wrong with bad ones."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.cntk_config import ConfigError
from cntkpy.cntk_config.parameters import parse
from cntkpy.readers import DataError, create_reader
from cntkpy.readers.formats.binary import format as f
from cntkpy.readers.formats.binary.file import BinaryFile
from cntkpy.readers.formats.binary.writer import BinaryWriter, plan_files
from cntkpy.readers.writer import create_writer

FEATURES = np.array([[0.5, -1], [2, 3.25], [10, 0]])
IDS = np.array([[1], [0], [1]], np.uint32)
ONES = np.array([[0, 1], [1, 0], [0, 1]], float)
EXAMPLE = (
    "wrecords=3 ; features=[dim=2;sectionType=Data] ; labels=[dim=1;labelDim=2;labelType=Category;sectionType=Labels;"
    "category=[dim=2;sectionType=CategoryLabels] ; mapping=[wrecords=2;elementSize=6;sectionType=LabelMapping]]"
)


def write(
    path: Path,
    config: str,
    data: dict[str, Any],
    mapping: dict[str, dict[int, str]] | None = None,
    dtype: type = np.float32,
) -> bytes:
    plan = plan_files(parse(f'wfile="{path}" ; {config}'), np.dtype(dtype))
    for _, root in plan.files:
        root.header.session = 0x1234
    writer = BinaryWriter(plan)
    writer.save(data)
    for name, labels in (mapping or {}).items():
        writer.save_mapping(name, labels)
    writer.close()
    return path.read_bytes()


def example(path: Path, dtype: type = np.float32) -> bytes:
    data = {"features": FEATURES, "labels": IDS, "category": ONES}
    return write(path, EXAMPLE, data, {"mapping": {0: "no", 1: "yes"}}, dtype)


def layout(pieces: dict[int, str | bytes], length: int) -> bytes:
    """The bytes of a file: hexadecimal numbers or text at some places, zeros elsewhere."""
    out = bytearray(length)
    for at, piece in pieces.items():
        data = piece if isinstance(piece, bytes) else bytes.fromhex(piece)
        out[at : at + len(data)] = data
    return bytes(out)


def test_the_example_of_the_specification_byte_for_byte(tmp_path: Path) -> None:
    expected = {
        0x00: "e9ac 0001 4001 0200 0100 0000 0000 0000 0000 0000 3412",
        0x20: "03",
        0x80: b"Binary Data File",
        0x100: "4001000000000000 4c01040000000000 0000010000000000 0000020000000000",
        0x10000: "ce4a 0001 4001 0000 0200 0100 0400 0000 0200",
        0x10020: "06",
        0x10080: b"features:Data Section",
        0x10100: "5801000000000000 5801000000000000",
        0x10140: "0000003f 000080bf 00000040 00005040 00002041 00000000",
        0x20000: "ce4a 0001 4001 0200 0300 0300 0400 0000 0100",
        0x20020: "0300000000000000 0100 0200",
        0x20080: b"labels:Labels",
        0x20100: "4c01000000000000 4c01020000000000 0000030000000000 0000040000000000",
        0x20140: "01000000 00000000 01000000",
        0x30000: "ce4a 0001 4001 0000 0600 0100 0400 0000 0200",
        0x30020: "06",
        0x30080: b"category:Category Labels",
        0x30100: "5801000000000000 5801000000000000",
        0x30140: "00000000 0000803f 0000803f 00000000 00000000 0000803f",
        0x40000: "ce4a 0001 4001 0000 0400 0200 0600 0000 0100 0600",
        0x40020: "02",
        0x40080: b"mapping:Label Map",
        0x40100: "4c01000000000000 4c01000000000000",
        0x40140: b"no\0yes\0\0\0\0\0\0",
    }
    assert example(tmp_path / "x.bin") == layout(expected, 0x4014C)


def test_statistics_and_regression_byte_for_byte(tmp_path: Path) -> None:
    config = (
        "wrecords=2 ; a=[dim=2;sectionType=data;s=[sectionType=stats;compute=mean:StdDev:count:nonsense]] ;"
        "b=[dim=1;labelDim=1;labelType=Regression;sectionType=labels]"
    )
    made = write(tmp_path / "x.bin", config, {"a": [[1.0, 2], [3, 6]], "B": [[0.5], [-1]]}, dtype=np.float64)
    expected = {
        0x00: "e9ac 0001 4001 0200 0100 0000 0000 0000 0000 0000 3412",
        0x20: "02",
        0x80: b"Binary Data File",
        0x100: "4001000000000000 5001030000000000 0000010000000000 0000030000000000",
        0x10000: "ce4a 0001 4001 0100 0200 0100 0800 0000 0200",
        0x10020: "04",
        0x10080: b"a:Data Section",
        0x10100: "6001000000000000 c001010000000000 0000020000000000",
        0x10140: struct.pack("<4d", 1, 2, 3, 6),
        0x20000: "ce4a 0001 4001 0000 0500 0400 2000 0000 0100 0200",
        0x20020: "04",
        0x20080: b"s:Data Statistics",
        0x20100: "c001000000000000 c001000000000000",
        0x20140: b"mean".ljust(24, b"\0") + struct.pack("<d", 3),
        0x20160: b"StdDev".ljust(24, b"\0") + struct.pack("<d", math.sqrt(14 / 3)),
        0x20180: b"count".ljust(24, b"\0") + struct.pack("<d", 4),
        0x201A0: b"nonsense".ljust(24, b"\0"),
        0x30000: "ce4a 0001 4001 0000 0300 0100 0800 0000 0100",
        0x30020: "0200000000000000 0200 0100",
        0x30080: b"b:Labels",
        0x30100: "5001000000000000 5001000000000000",
        0x30140: struct.pack("<2d", 0.5, -1),
    }
    assert made == layout(expected, 0x30150)
    assert f.SUFFIXES[f.FILE] == ""


def test_all_statistics(tmp_path: Path) -> None:
    names = "sum:count:mean:variance:stddev:max:min:range:rootmeansquare"
    config = f"wrecords=1000 ; a=[dim=3;sectionType=Data;s=[sectionType=Stats;compute={names}]]"
    values = np.random.default_rng(1).normal(5, 2, (1000, 3))
    write(tmp_path / "x.bin", config, {"a": values}, dtype=np.float64)
    found = BinaryFile(str(tmp_path / "x.bin")).sections["s"].statistics()
    write(tmp_path / "y.bin", "wrecords=1000 ; a=[dim=3;sectionType=Data]", {"a": values})
    with pytest.raises(DataError, match=r"'a' of .* does not hold statistics"):
        BinaryFile(str(tmp_path / "y.bin")).sections["a"].statistics()
    wanted = [
        values.sum(),
        3000,
        values.mean(),
        values.var(ddof=1),
        values.std(ddof=1),
        values.max(),
        values.min(),
        np.ptp(values),
        math.sqrt((values**2).mean()),
    ]
    assert found == pytest.approx(dict(zip(names.split(":"), wanted, strict=True)), rel=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("room", [4, 200, 30_000, 200_000])
def test_more_room_than_records(
    kind: type, room: int, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is that of a writer whose wrecords is right (G5)."""
    monkeypatch.setattr("cntkpy.readers.formats.binary.write.WRITE_BYTES", 7)
    config = EXAMPLE.replace("features=[", "features=[numbers=[sectionType=Stats;compute=sum:max];", 1)
    assert config != EXAMPLE
    data = {"features": FEATURES, "labels": IDS, "category": ONES}
    labels = {"mapping": {0: "no", 1: "yes"}}
    right = write(tmp_path / "x.bin", config, data, labels, kind)
    assert not caplog.records
    assert write(tmp_path / "y.bin", config.replace("wrecords=3", f"wrecords={room}", 1), data, labels, kind) == right
    assert f"y.bin has 3 records; wrecords had room for {room}." in caplog.text
    assert epoch(reader(tmp_path / "y.bin", "float" if kind is np.float32 else "double"), 9)
    with pytest.raises(DataError, match=r"Section 'labels' of .* got 2 of 3 records; nothing was written"):
        write(tmp_path / "z.bin", config, {**data, "labels": IDS[:2]}, labels, kind)
    assert not (tmp_path / "z.bin").exists()


def reader(path: Path | str, precision: str = "float", **options: Any) -> Any:
    more = "".join(f" ; {k}={v}" for k, v in options.items())
    return create_reader(f'readerType=BinaryReader ; file="{path}"{more}', precision)


def epoch(r: Any, size: int, number: int = 0, samples: int | None = None) -> list[Any]:
    r.start_minibatch_loop(size, number, samples)
    return list(iter(r.get_minibatch, None))


def test_reading_the_example(tmp_path: Path) -> None:
    example(tmp_path / "x.bin")
    r = reader(tmp_path / "x.bin", traceLevel=1)
    assert [(s.name, s.dim, s.sparse) for s in r.streams] == [
        ("features", 2, False),
        ("labels", 2, False),
        ("category", 2, False),
    ]
    first, last = epoch(r, 2)
    assert first.matrix("features").T.tolist() == FEATURES[:2].tolist()
    assert last.matrix("labels").T.tolist() == last.matrix("category").T.tolist() == ONES[2:].tolist()
    assert (first.end_of_epoch, last.end_of_epoch, last.end_of_sweep) == (False, True, True)
    assert (first.layout.T, first.layout.S) == (1, 2)
    assert r.get_label_mapping("mapping") == r.get_label_mapping("labels") == {0: "no", 1: "yes"}
    with pytest.raises(DataError, match="no section 'x'"):
        r.get_label_mapping("x")
    assert r.get_label_mapping("features") == {}
    r.close()


def numbers(path: Path, count: int = 10) -> Path:
    write(path, f"wrecords={count} ; x=[sectionType=Data]", {"x": np.arange(count).reshape(-1, 1)})
    return path


def of(minibatches: list[Any]) -> list[list[int]]:
    return [m.streams["x"].ravel().astype(int).tolist() for m in minibatches]


@pytest.mark.parametrize("window", [0, 1, 3, 100])
def test_epochs(tmp_path: Path, window: int) -> None:
    r = reader(numbers(tmp_path / "x.bin"), windowSize=window)
    assert of(epoch(r, 4)) == of(epoch(r, 4, 7)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert of(epoch(r, 4, 1, 7)) == [[7, 8, 9], [0, 1, 2, 3]]
    r.start_minibatch_loop(3, 0)
    r.get_minibatch()
    state = r.get_state()
    other = reader(tmp_path / "x.bin")
    other.set_state(state)
    assert of(list(iter(other.get_minibatch, None))) == [[3, 4, 5], [6, 7, 8], [9]]


def test_full_minibatches(tmp_path: Path) -> None:
    r = reader(numbers(tmp_path / "x.bin"), minibatchMode="Full")
    assert of(epoch(r, 4)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert of(epoch(r, 4, 1, 7)) == []
    assert of(epoch(r, 3, 0, 7)) == [[0, 1, 2], [3, 4, 5]]


def test_workers_share_a_minibatch(tmp_path: Path) -> None:
    numbers(tmp_path / "x.bin")
    found = []
    for rank in range(3):
        r = reader(tmp_path / "x.bin")
        r.start_minibatch_loop(4, 0, None, rank, 3)
        found.append(of(list(iter(r.get_minibatch, None))))
    assert found == [[[0], [4], []], [[1], [5], [8]], [[2, 3], [6, 7], [9]]]


def test_several_files(tmp_path: Path) -> None:
    config = (
        f'wrecords=3 ; features=[dim=2;sectionType=Data;wfile="{tmp_path}/f.bin"] ;'
        f'labels=[dim=1;labelDim=2;labelType=Category;sectionType=Labels;wfile="{tmp_path}/l.bin";'
        "category=[dim=2;sectionType=CategoryLabels]]"
    )
    plan = plan_files(parse(config), np.dtype(np.float32))
    assert [path for path, _ in plan.files] == [f"{tmp_path}/f.bin", f"{tmp_path}/l.bin"]
    writer = BinaryWriter(plan)
    assert writer.sections() == {"features": "data", "labels": "labels", "category": "categorylabels"}
    assert writer.save({"features": FEATURES[:2], "labels": IDS[:2], "category": ONES[:2]})
    assert not writer.save({"features": FEATURES[2:], "labels": IDS[2:], "category": ONES[2:]})
    assert not list(tmp_path.glob("*.bin"))
    writer.close()
    (only,) = epoch(reader(f"{{{tmp_path}/f.bin,{tmp_path}/l.bin}}", wref="f"), 10)
    forms = ("{0}/f.bin:{0}/l.bin", "({0}/f.bin:{0}/l.bin)", "({0}/f.bin,{0}/l.bin)", "(;{0}/f.bin;{0}/l.bin)")
    for form in (*forms, "{0}/f.bin,{0}/l.bin"):  # an array in any form (D10, G3)
        (again,) = epoch(reader(form.format(tmp_path), wref="f"), 10)
        assert list(again.layouts) == list(only.layouts)
    assert only.matrix("features").T.tolist() == FEATURES.tolist()
    assert only.matrix("labels").T.tolist() == ONES.tolist()
    (tmp_path / "l.bin").write_bytes(
        b"\xe9\xac" + (tmp_path / "l.bin").read_bytes()[2:20] + b"xx" + (tmp_path / "l.bin").read_bytes()[22:]
    )
    for wref in ({}, {"wref": "f"}):
        with pytest.raises(DataError, match="not written together: their session ids are") as caught:
            reader(f"{tmp_path}/f.bin,{tmp_path}/l.bin", **wref)
        assert "allowDifferentSessions=true" in str(caught.value.hint)
        allowed = reader(f"{tmp_path}/f.bin,{tmp_path}/l.bin", allowDifferentSessions="true", **wref)
        assert allowed.samples_per_sweep == 3
    numbers(tmp_path / "x.bin")
    with pytest.raises(DataError, match="10 records"):
        reader(f"{tmp_path}/f.bin,{tmp_path}/x.bin")
    with pytest.raises(DataError, match="as well"):
        reader(f"{tmp_path}/f.bin,{tmp_path}/f.bin")


def test_double_precision_needs_its_own_file(tmp_path: Path) -> None:
    example(tmp_path / "x.bin", np.float64)
    assert epoch(reader(tmp_path / "x.bin", "double"), 3)[0].matrix("labels").T.tolist() == ONES.tolist()
    with pytest.raises(DataError, match="elements of 8 bytes") as caught:
        reader(tmp_path / "x.bin")
    assert caught.value.diagnostic.hint == "read it with precision=double"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("wrecords=3", "wfile"),
        ('wfile="{}" ; a=[sectionType=Data]', "number of records is missing"),
        ('wfile="{}" ; wrecords=0 ; a=[sectionType=Data]', "number of records is missing"),
        ('wfile="{}" ; wrecords=3 ; a=[sectionType=Datum]', "not a type of section"),
        ('wfile="{}" ; wrecords=3 ; a=[sectionType=Null]', "not a type of section"),
        ('wfile="{}" ; wrecords=3 ; a=[sectionType=Data;dim=0]', "1 to 65535"),
        ('wfile="{}" ; wrecords=3 ; a=[sectionType=Data;dim=70000]', "1 to 65535"),
        ('wfile="{}" ; wrecords=3 ; a=[sectionType=Data;elementSize=3]', "4 or 8 bytes"),
        ('wfile="{}" ; wrecords=3 ; a=[sectionType=Labels]', "type of labels"),
        ('wfile="{}" ; wrecords=3 ; a=[sectionType=Labels;labelType=Category]', "number of classes"),
        (
            'wfile="{}" ; wrecords=3 ; a=[sectionType=Labels;labelType=x;labelDim=2]',
            "is not one of category, regression",
        ),
        ('wfile="{}" ; wrecords=3 ; a=[sectionType=Labels;labelType=Category;labelDim=2;dim=2]', "has dim=1"),
        ('wfile="{}" ; wrecords=3 ; a=[sectionType=Stats]', "no statistics"),
        ('wfile="{}" ; wrecords=3 ; a=[sectionType=Stats;compute=sum]', "the statistics 'a' stand in no section"),
        (
            'wfile="{}" ; wrecords=3 ; a=[sectionType=Data;s=[sectionType=Stats;compute=sum;wfile=s.bin]]',
            "'s' stand in no",
        ),
        ('wfile="{}" ; wrecords=3 ; a=[sectionType=LabelMapping]', "average size"),
        ('wfile="{}" ; wrecords=3 ; a=[sectionType=Data;b=[sectionType=Data;A=[sectionType=Data]]]', "two sections"),
        (
            'wfile="{}" ; wrecords=3 ; ' + " ; ".join(f"{n}=[sectionType=Data]" for n in "abcdef"),
            "room for 5 sections",
        ),
        ('wrecords=3 ; a=[sectionType=Data] ; b=[sectionType=Data;wfile="{}"]', "no file to go to"),
    ],
)
def test_bad_writer_sections(tmp_path: Path, config: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        create_writer(parse(config.replace("{}", str(tmp_path / "x.bin"))))
    assert caught.value.diagnostic.span is not None or "wfile" in message or "missing" in message
    assert not list(tmp_path.iterdir())


def test_a_writer_that_gets_the_wrong_data(tmp_path: Path) -> None:
    def make() -> BinaryWriter:
        return BinaryWriter(plan_files(parse(f'wfile="{tmp_path}/x.bin" ; {EXAMPLE}'), np.dtype(np.float32)))

    writer = make()
    with pytest.raises(DataError, match="room for 3 records"):
        writer.save({"features": np.zeros((4, 2))})
    with pytest.raises(DataError, match="dim=2"):
        writer.save({"features": np.zeros((1, 3))})
    with pytest.raises(DataError, match="for 2 labels"):
        writer.save_mapping("mapping", {0: "a"})
    with pytest.raises(DataError, match="take 14 bytes"):
        writer.save_mapping("mapping", {0: "a" * 10, 1: "bc"})
    with pytest.raises(DataError, match="no section of type LabelMapping"):
        writer.save_mapping("features", {0: "a"})
    with pytest.raises(DataError, match="no section 'label'"):
        writer.save({"label": IDS})
    writer.save({"features": FEATURES, "labels": IDS})
    with pytest.raises(DataError, match=r"'category' of .* got 0 of 3 records"):
        writer.close()
    assert not list(tmp_path.iterdir())
    make().abandon()
    assert not list(tmp_path.iterdir())
    with pytest.raises(DataError, match="cannot be written"):
        write(Path("/proc/x.bin"), "wrecords=1 ; x=[sectionType=Data]", {})


def test_an_unfinished_file_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    data = example(tmp_path / "x.bin")
    (tmp_path / "x.bin").write_bytes(b"\xd1\xba" + data[2:])
    with pytest.raises(DataError, match="never finished"):
        reader(tmp_path / "x.bin")


def test_names_of_files_keep_their_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = example(tmp_path / "x.bin")
    monkeypatch.chdir(tmp_path)
    Path("x.bin").write_bytes(b"AB" + data[2:])
    with pytest.raises(DataError, match=r"^x\.bin is not a CNTK binary file: its magic number"):
        reader(Path("x.bin"))
    Path("x.bin").write_bytes(data[:0x10001])
    with pytest.raises(
        DataError, match=r"^The binary file x\.bin is cut short: the section at byte 65536 is not complete"
    ):
        reader(Path("x.bin"))


SECTIONS = (0, 0x10000, 0x20000, 0x30000, 0x40000)


@pytest.mark.parametrize("at", sorted({0, 1, 0x4014B, *(s + d for s in SECTIONS for d in (0, 1, 319, 320, 321))}))
def test_truncated_files(tmp_path: Path, at: int) -> None:
    data = example(tmp_path / "x.bin")
    (tmp_path / "x.bin").write_bytes(data[:at])
    with pytest.raises(DataError, match=r"empty|cut short|not complete") as caught:
        reader(tmp_path / "x.bin")
    assert caught.value.path == str(tmp_path / "x.bin")


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (0, "4142", "not a CNTK binary file"),
        (0, "ce4a", "magic number is 0x4ACE"),
        (2, "ff00", "version"),
        (4, "3f01", "size of its header"),
        (4, "8002", "size of its header"),
        (6, "0600", "damaged|contain each other|6 sections"),
        (6, "ffff", "65535 sections"),
        (8, "0200", "another type"),
        (8, "0e00", "type or flags"),
        (0x20, "04", "records"),
        (0x20, "00", "no records"),
        (0x110, "0000000000000000", "no place"),
        (0x110, "0000020000000000", "contain each other"),
        (0x110, "ffffffffffffff7f", "cut short"),
        (0x110, "0100010000000000", "damaged"),
        (0x10000, "e9ac", "magic number"),
        (0x1000C, "0100", "elements of 1 bytes"),
        (0x1000A, "0a00", "type or flags"),
        (0x1000E, "0400", "type or flags"),
        (0x10010, "0400", "no whole number"),
        (0x10012, "0a00", "type or flags"),
        (0x10020, "ffffffffffffff0f", "too small"),
        (0x10100, "00", "too small"),
        (0x10080, b"LABELS:x", "occurs twice"),
        (0x20028, "0300", "neither numbers nor categories"),
        (0x30008, "0200", "no section of type CategoryLabels"),
    ],
)
def test_damaged_files(tmp_path: Path, at: int, value: str | bytes, message: str) -> None:
    data = bytearray(example(tmp_path / "x.bin"))
    patch = value if isinstance(value, bytes) else bytes.fromhex(value)
    data[at : at + len(patch)] = patch
    (tmp_path / "x.bin").write_bytes(data)
    with pytest.raises(DataError, match=message):
        reader(tmp_path / "x.bin")


def test_other_bad_readers(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be opened"):
        reader(tmp_path / "none.bin")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="no file is given"):
        reader("{ , }")
    write(tmp_path / "m.bin", "wrecords=2 ; m=[sectionType=LabelMapping;elementSize=4]", {}, {"m": {0: "a", 1: "b"}})
    with pytest.raises(DataError, match="no section with records"):
        reader(tmp_path / "m.bin")


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    path = numbers(tmp_path / "x.bin", 100_000)
    r = reader(path, windowSize=1000, prefetch="false")
    r.start_minibatch_loop(10, 0)
    r.get_minibatch()
    with path.open("r+b") as file:
        file.truncate(70_000)
    with pytest.raises(DataError, match="cut short"):
        while r.get_minibatch() is not None:
            pass
