"""The binary cache of UCIFastReader: the same data in the same order, and rebuilt when it does not fit any more."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.readers import create_reader
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.binary.file import BinaryFile
from cntkpy.readers.formats.binary.stamp import PLACE, STAMP
from cntkpy.readers.formats.uci.cache import Stale

TEXT = "".join(f"{'abc'[i % 3]} {i + 1} {i * 0.25}\n" for i in range(50))
FIELDS = "dim=2;start=1;sectionType=Data"
LABELS = (
    "dim=1;start=0;labelDim=3;labelType=Category;sectionType=Labels;category=[dim=3;sectionType=CategoryLabels];"
    "mapping=[wrecords=3;elementSize=2;sectionType=LabelMapping]"
)


class Case:
    def __init__(self, folder: Path):
        self.folder = folder
        self.text, self.cache, self.map = folder / "data.txt", folder / "cache.bin", folder / "labels.map"
        self.text.write_text(TEXT)
        self.map.write_text("b\na\nc\n")

    def reader(self, fields: str = FIELDS, labels: str = LABELS, precision: str = "float", **options: Any) -> Any:
        given = {
            "randomize": "none",
            "writerType": "BinaryReader",
            "wfile": f'"{self.cache}"',
            "wrecords": 50,
            **options,
        }
        more = " ; ".join(f"{k}={v}" for k, v in given.items() if v is not None)
        return create_reader(
            f'readerType=UCIFastReader ; file="{self.text}" ; features=[{fields}] ; {more} ;'
            f'labels=[{labels};labelMappingFile="{self.map}"]',
            precision,
        )

    def read(self, number: int = 0, **options: Any) -> tuple[list[Any], list[Any]]:
        r = self.reader(**options)
        r.start_minibatch_loop(7, number)
        found = list(iter(r.get_minibatch, None))
        r.close()
        x = [row for m in found for row in m.matrix("features").T.tolist()]
        return x, [row for m in found for row in m.matrix("labels").T.tolist()]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


@pytest.mark.parametrize("precision", ["float", "double"])
@pytest.mark.parametrize("random", ["none", "auto"])
def test_the_cache_gives_what_the_text_gives(case: Case, random: str, precision: str) -> None:
    given = {"randomize": random, "precision": precision}
    wanted = [case.read(k, writerType=None, **given) for k in range(3)]
    assert not case.cache.exists()
    assert case.read(0, **given) == wanted[0]
    assert case.cache.exists()
    before = case.cache.read_bytes()
    for k in range(3):
        assert case.read(k, **given) == wanted[k]
    assert case.cache.read_bytes() == before


def test_what_is_in_the_cache(case: Case) -> None:
    case.read(randomize="auto")
    file = BinaryFile(str(case.cache))
    assert file.records == 50
    assert file.sections["features"].rows(0, 2).tolist() == [[1, 0], [2, 0.25]]
    assert file.sections["labels"].rows(0, 4).ravel().tolist() == [1, 0, 2, 1]
    assert file.sections["category"].rows(0, 2).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert file.sections["mapping"].strings() == {0: "b", 1: "a", 2: "c"}
    plain = create_reader(f'readerType=BinaryReader ; file="{case.cache}"')
    plain.start_minibatch_loop(50, 0)
    m = plain.get_minibatch()
    assert m is not None
    assert m.matrix("features")[0].tolist() == list(range(1, 51))
    assert m.matrix("labels").argmax(0).tolist()[:4] == [1, 0, 2, 1]


def test_the_text_is_not_needed_any_more(case: Case) -> None:
    wanted = case.read()
    case.text.unlink()
    assert case.read() == wanted
    case.map.unlink()
    r = case.reader()
    assert r.get_label_mapping("labels") == {0: "b", 1: "a", 2: "c"}


def test_wrong_sizes_do_not_matter(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    wanted = case.read(writerType=None)
    for records in (None, 3, 1000):
        labels = LABELS.replace("wrecords=3", "wrecords=9").replace("elementSize=2", "elementSize=1")
        assert case.read(wrecords=records, labels=labels) == wanted
        assert BinaryFile(str(case.cache)).records == 50
        case.cache.unlink()
    assert not caplog.records


def change_text(case: Case) -> dict[str, Any]:
    case.text.write_text(TEXT.replace("a 1 ", "b 9 "))
    return {}


def touch_text(case: Case) -> dict[str, Any]:
    os.utime(case.text, ns=(1, 1))
    return {}


def change_map(case: Case) -> dict[str, Any]:
    case.map.write_text("a\nb\nc\n")
    return {}


def change_columns(case: Case) -> dict[str, Any]:
    return {"fields": "dim=1;start=2;sectionType=Data"}


def change_start(case: Case) -> dict[str, Any]:
    case.text.write_text("".join(line + " 7\n" for line in TEXT.splitlines()))
    return {"fields": "dim=2;start=2;sectionType=Data"}


def change_precision(case: Case) -> dict[str, Any]:
    return {"precision": "double"}


def change_classes(case: Case) -> dict[str, Any]:
    return {"labels": LABELS.replace("labelDim=3", "labelDim=5").replace("dim=3;", "dim=5;")}


def damage(case: Case) -> dict[str, Any]:
    data = case.cache.read_bytes()
    case.cache.write_bytes(data[: len(data) // 2])
    return {}


def empty(case: Case) -> dict[str, Any]:
    case.cache.write_bytes(b"")
    return {}


@pytest.mark.parametrize(
    "change",
    [
        change_text,
        touch_text,
        change_map,
        change_columns,
        change_start,
        change_precision,
        change_classes,
        damage,
        empty,
    ],
)
def test_a_stale_cache_is_made_anew(case: Case, caplog: pytest.LogCaptureFixture, change: Any) -> None:
    case.read()
    options = change(case)
    assert not caplog.records
    found = case.read(**options)
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "Rebuilding the cache" in caplog.text
    caplog.clear()
    assert case.read(**options) == found == case.read(writerType=None, **options)
    assert not caplog.records


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"writerType": "HTKMLFWriter"}, "cannot be read again"),
        ({"wfile": None}, "no file to go to"),
        ({"fields": "dim=2;start=1"}, "lacks sectionType=Data"),
        ({"labels": "dim=1;labelDim=3"}, "lacks sectionType=Labels"),
        (
            {"labels": LABELS.replace("sectionType=CategoryLabels", "sectionType=CategoryLabel")},
            "not a type of section",
        ),
        ({"labels": LABELS.replace("[dim=3;", "[dim=2;")}, "more labels"),
        ({"wfile": '"/proc/x.bin"'}, "cannot be written"),
    ],
)
def test_without_a_usable_cache_the_text_is_read(
    case: Case, caplog: pytest.LogCaptureFixture, options: dict[str, Any], message: str
) -> None:
    wanted = case.read(writerType=None)
    assert case.read(**options) == wanted
    assert message in caplog.text
    assert not case.cache.exists()


@pytest.mark.parametrize("victim", ["text", "map"])
def test_a_file_that_is_no_cache_is_left_alone(case: Case, caplog: pytest.LogCaptureFixture, victim: str) -> None:
    path, wanted = getattr(case, victim), case.read(writerType=None)
    content = path.read_bytes()
    assert case.read(wfile=f'"{path}"') == wanted
    assert path.read_bytes() == content
    assert f"{path} is there and is no binary file" in caplog.text


def test_several_files(case: Case) -> None:
    features = FIELDS + f';wfile="{case.folder}/f.bin"'
    labels = LABELS + f';wfile="{case.folder}/l.bin"'
    wanted = case.read(writerType=None)
    for _ in range(2):
        assert case.read(fields=features, labels=labels, wfile=None) == wanted
    assert sorted(p.name for p in case.folder.glob("*.bin")) == ["f.bin", "l.bin"]
    (case.folder / "f.bin").unlink()
    assert case.read(fields=features, labels=labels, wfile=None) == wanted
    assert (case.folder / "f.bin").exists()


def test_files_of_different_runs(case: Case) -> None:
    """Without the text nothing else tells that records do not belong together (G4)."""
    options = {"fields": FIELDS + f';wfile="{case.folder}/f.bin"', "labels": LABELS + f';wfile="{case.folder}/l.bin"'}
    case.read(**options, wfile=None)
    old = (case.folder / "l.bin").read_bytes()
    case.text.write_text(TEXT.replace("a 1 ", "b 9 "))
    wanted = case.read(**options, wfile=None)
    new = (case.folder / "l.bin").read_bytes()
    (case.folder / "l.bin").write_bytes(old)
    assert case.read(**options, wfile=None) == wanted  # with the text, all files are rebuilt
    assert (case.folder / "l.bin").read_bytes() == new
    (case.folder / "l.bin").write_bytes(old)
    case.text.unlink()
    with pytest.raises(DataError, match=r"data\.txt, .* is not there: .*l\.bin and .*f\.bin were not written together"):
        case.read(**options, wfile=None)
    (case.folder / "l.bin").write_bytes(new)
    assert case.read(**options, wfile=None) == wanted


def test_regression_and_no_labels(case: Case) -> None:
    case.text.write_text("".join(f"{i} {i * 0.5} {-i}\n" for i in range(50)))
    labels = "dim=1;start=0;labelDim=1;labelType=Regression;sectionType=Labels"
    wanted = case.read(writerType=None, labels=labels)
    for _ in range(2):
        assert case.read(labels=labels) == wanted
    assert BinaryFile(str(case.cache)).sections["labels"].rows(3, 1).tolist() == [[3]]


def test_only_the_first_worker_writes(case: Case) -> None:
    r = case.reader()
    r.start_minibatch_loop(10, 0, None, 1, 2)
    assert not case.cache.exists()
    assert r.get_minibatch().num_samples == 5
    first = case.reader()
    first.start_minibatch_loop(10, 0, None, 0, 2)
    assert case.cache.exists()


def test_bad_data_leave_no_cache(case: Case) -> None:
    case.text.write_text(TEXT + "a x y\n")
    with pytest.raises(Exception, match="'x' is not a number"):
        case.read()
    assert sorted(p.name for p in case.folder.iterdir()) == ["data.txt", "labels.map"]


def test_a_large_cache_takes_little_memory(tmp_path: Path) -> None:
    """Chunks that have been read are let go of: never more than a few windows are mapped."""
    from cntkpy.readers.formats.binary.reader import BinaryRecords, open_files, streams_of
    from cntkpy.readers.pipeline import store
    from cntkpy.readers.pipeline.records import RecordOrder
    from cntkpy.readers.pipeline.source import Source, SourceOptions
    from tests.readers.formats.binary.test_binary import write

    count = 20_000
    values = np.arange(count * 8, dtype=np.float32).reshape(count, 8)
    write(tmp_path / "x.bin", f"wrecords={count} ; x=[dim=8;sectionType=Data]", {"x": values})
    _, sections, _ = open_files([str(tmp_path / "x.bin")])
    records = BinaryRecords(np.float32, streams_of(sections, np.dtype(np.float32)), count, 1000)
    source = Source(records, RecordOrder(records.table), SourceOptions(frame_mode=True, prefetch=False))
    source.store = store.ChunkStore(records, memory=100_000, threads=0)
    source.set_state(EpochRequest(100))
    most, seen = 0, []
    while (m := next(source, None)) is not None:
        most = max(most, len(source.store._chunks))
        seen.append(m.streams["x"].reshape(-1, 8))
    assert np.array_equal(np.concatenate(seen), values)
    assert most <= 3


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.thorough)])
def test_no_byte_of_the_cache_can_change_unnoticed(case: Case, step: int) -> None:
    case.read()
    cache = case.reader()._cache
    records, mapping = cache.read()
    wanted = records.load_chunk(0).streams["features"].values.tolist()
    content = case.cache.read_bytes()
    used = {
        at
        for one in BinaryFile(str(case.cache)).sections.values()
        for at in range(one.offset, one.begin + one.header.data_bytes)
    } | set(range(320))
    refused = 0
    with case.cache.open("r+b") as file:
        for at in range(0, len(content), step):
            if at not in used and at % 997:  # between the sections is nothing
                continue
            file.seek(at)
            file.write(bytes([content[at] ^ (1 << at % 8)]))
            file.flush()
            try:
                found, names = cache.read()
            except (Stale, DataError):
                refused += 1
            else:
                assert at not in used
                assert (found.load_chunk(0).streams["features"].values.tolist(), names) == (wanted, mapping)
            file.seek(at)
            file.write(content[at : at + 1])
    assert refused == sum(at % step == 0 for at in used)


@pytest.mark.thorough
def test_a_text_that_was_changed_and_given_its_old_time(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    case.text.write_text(TEXT * 3000)
    case.read()
    times = case.text.stat().st_atime_ns, case.text.stat().st_mtime_ns
    with case.text.open("r+b") as file:
        file.seek(300_000)
        old = file.read(1)
        file.seek(300_000)
        file.write(b"1" if old != b"1" else b"2")
    os.utime(case.text, ns=times)
    case.reader()
    assert "has changed since" in caplog.text


def test_a_cache_of_another_program_without_its_text(case: Case) -> None:
    wanted = case.read()
    stamped = case.cache.read_bytes()
    case.text.unlink()
    assert case.read() == wanted
    data = bytearray(stamped)
    for one in [BinaryFile(str(case.cache)).root, *BinaryFile(str(case.cache)).sections.values()]:
        data[one.offset + PLACE : one.offset + PLACE + STAMP.size] = bytes(STAMP.size)
    case.cache.write_bytes(data)
    assert case.read() == wanted


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system does not list open files")
def test_a_cache_that_is_not_used_is_not_left_open(case: Case) -> None:
    """Windows replaces no file that is open; the exception may be kept, and with it what it knows."""
    case.read()
    case.text.write_text(TEXT.replace("a 1 ", "b 9 "))
    reader = case.reader()
    with pytest.raises(Stale) as kept:
        reader._cache.read()
    descriptors = [one.readlink() for one in Path("/proc/self/fd").iterdir() if one.exists()]
    assert case.cache not in descriptors and kept.value
    reader.close()
