"""Kaldi alignments and posteriors as classes of frames."""

from __future__ import annotations

import functools
import operator
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.kaldi.labels import read_classes

ALIGNMENTS = {"a": [3, 3, 4], "b.c": [], "d": [0, 65534], "e": [7]}


def basic(number: int) -> bytes:
    return b"\4" + struct.pack("<i", number)


def integers(classes: list[int]) -> bytes:
    return b"\0B" + basic(len(classes)) + b"".join(map(basic, classes))


def posteriors(frames: list[list[tuple[int, float]]]) -> bytes:
    body = [basic(len(f)) + b"".join(basic(i) + b"\4" + struct.pack("<f", w) for i, w in f) for f in frames]
    return b"\0B" + basic(len(frames)) + b"".join(body)


def certain(classes: list[int]) -> bytes:
    return posteriors([[(c, 1.0)] for c in classes])


def integers_in_text(classes: list[int]) -> bytes:
    return " ".join(map(str, classes)).encode() + b"\n"


def posteriors_in_text(classes: list[int]) -> bytes:
    return " ".join(f"[ {c} 1 ]" for c in classes).encode() + b"\n"


def write(path: Path, form, entries: dict[str, list[int]] = ALIGNMENTS) -> Path:
    script, at = [], 0
    with path.open("wb") as file:
        for key, value in entries.items():
            at += file.write(key.encode() + b" ")
            script.append(f"{key} {path}:{at}\n")
            at += file.write(form(value))
    path.with_suffix(".scp").write_text("".join(script))
    return path


@pytest.mark.parametrize("form", [integers, certain, integers_in_text, posteriors_in_text])
def test_all_forms_give_the_same_classes(tmp_path: Path, form) -> None:
    path = write(tmp_path / "l.ark", form)
    for specifier in (f"ark:{path}", f"scp:{path.with_suffix('.scp')}"):
        found = read_classes(specifier)
        assert found.keys == list(ALIGNMENTS)
        assert found.lengths.tolist() == [3, 0, 2, 1]
        assert found.classes.tolist() == [3, 3, 4, 0, 65534, 7]
        some = read_classes(specifier, wanted={"d", "e"}.__contains__)
        assert some.keys == ["d", "e"] and some.classes.tolist() == [0, 65534, 7]


def test_labels_have_no_ranges(tmp_path: Path) -> None:
    script = write(tmp_path / "l.ark", integers).with_suffix(".scp")
    script.write_text(script.read_text().replace("\n", "[0:1]\n", 1))
    with pytest.raises(DataError, match="line 1: labels have no ranges"):
        read_classes(f"scp:{script}")


def test_the_example_of_the_format_has_a_frame_of_two_labels(tmp_path: Path) -> None:
    path = tmp_path / "p.ark"
    path.write_bytes(b"u " + posteriors([[(3, 1.0)], [(4, 0.5), (5, 0.5)]]))
    with pytest.raises(DataError, match=r"p\.ark, byte 24: utterance u, frame 1: expected one label of weight 1"):
        read_classes(f"ark:{path}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"u [ 3 1 ] [ 4 0.5 ]\n", "frame 1: expected one label of weight 1"),
        (b"u [ 3 1 ] [ ]\n", "frame 1: expected one label of weight 1"),
        (b"u 3 x\n", "frame 1: a label is a number"),
        (b"u 3 -1\n", "frame 1: a label is a number"),
        (b"u 3 99999999999\n", "frame 1: the label is too large"),
        (b"u 3 65535\n", "the label 65535 of u, frame 1, is larger than 65534"),
        (b"u [ 3 1 ] 4\n", "expected '\\[' before the labels"),
        (b"u 1\nu 1\n", "byte 4: duplicate entry: the utterance u"),
        (b"u " + integers([1, -4]), "frame 1: a label is a number"),
        (b"u " + certain([1, 2]) + b"v " + integers([1, 2]), "key 'v': the entry is not made of posteriors"),
        (b"u " + integers([1, 2]) + b"v " + certain([1, 2]), "there is no key|not made of vectors of integers"),
        (b"u \0BFM \4\0\0\0\0\4\0\0\0\0", "does not begin alignments or posteriors"),
    ],
)
def test_damage(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "l.ark"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_classes(f"ark:{path}")


@pytest.mark.thorough
@pytest.mark.parametrize("form", [integers, certain])
def test_cut_short_anywhere(tmp_path: Path, form) -> None:
    entries = {"a": [3, 3, 4], "b": [1, 2, 3]}
    path = write(tmp_path / "l.ark", form, entries)
    content = path.read_bytes()
    whole = {0, len(b"a " + form(entries["a"])), len(content)}
    for size in range(len(content)):
        path.write_bytes(content[:size])
        if size in whole:
            read_classes(f"ark:{path}")
        else:
            with pytest.raises(DataError, match=r"l\.ark, byte \d+"):
                read_classes(f"ark:{path}")


@settings(max_examples=40)
@given(st.data())
def test_damaged_labels_are_errors_or_other_labels(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    forms = [integers, certain, integers_in_text, posteriors_in_text]
    form = data.draw(st.sampled_from(forms))
    content = bytearray(b"".join(b"u%d " % i + form([1, 2, 3, i]) for i in range(3)))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "l.ark"
    path.write_bytes(content)
    try:
        found = read_classes(f"ark:{path}")
    except DataError:
        return
    assert len(found.classes) == found.lengths.sum() <= len(content)


def test_the_oracle_reads_and_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kio = pytest.importorskip("kaldi_native_io", reason="kaldi_native_io, the oracle, is not installed")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    classes = {f"u{i}": rng.integers(0, 99, rng.integers(1, 20)).tolist() for i in range(9)}
    for options in ("", ",t"):
        with kio.Int32VectorWriter(f"ark{options}:i{options}.ark") as writer:
            for key, value in classes.items():
                writer.write(key, value)
        with kio.PosteriorWriter(f"ark{options}:p{options}.ark") as writer:
            for key, value in classes.items():
                writer.write(key, [[(c, 1.0)] for c in value])
        for name in "ip":
            found = read_classes(f"ark:{name}{options}.ark")
            assert found.keys == list(classes)
            assert found.classes.tolist() == functools.reduce(operator.iadd, classes.values(), [])


@pytest.mark.parametrize("line", [b"u  [ 3 3 4 ]\n", b"u [ 3 3 4 2 ]\n", b"u [ 3 2 ]\n"])
def test_a_list_in_brackets_is_no_soft_label(tmp_path: Path, line: bytes) -> None:
    """kaldiio writes alignments in text so."""
    (tmp_path / "a.ark").write_bytes(b"t [ 1 1 ]\n" + line)
    with pytest.raises(DataError, match="utterance u: the labels are one list in brackets") as caught:
        read_classes(f"ark:{tmp_path}/a.ark")
    assert "kaldiio" in str(caught.value.hint) and "soft" not in str(caught.value.hint)
    (tmp_path / "a.ark").write_bytes(b"u [ 3 0.5 4 0.5 ]\n")
    with pytest.raises(DataError) as caught:
        read_classes(f"ark:{tmp_path}/a.ark")
    assert "soft labels are features" in str(caught.value.hint)


@pytest.mark.parametrize("line", [b"u 3.5 4\n", b"u 3 4.0\n", b"u 1e1\n", b"u [ 3.0 1 ]\n"])
def test_classes_are_whole_numbers(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "a.ark").write_bytes(line)
    with pytest.raises(DataError, match="a label is a number from 0 on"):
        read_classes(f"ark:{tmp_path}/a.ark")
