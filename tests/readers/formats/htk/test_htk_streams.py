"""HTKMLFReader with several inputs and outputs, real targets, lists of files; parallel utterances; write mode."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers import Reader, create_reader
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.htk.archive import write_archive
from cntkpy.readers.formats.htk.features import FeatureSource
from cntkpy.readers.formats.htk.script import read_script
from tests.readers.conftest import epoch

from .htk_data import DIM, Speech


@pytest.fixture
def speech(tmp_path: Path) -> Speech:
    made = Speech(tmp_path)
    named = [(f"g/u{u}.t", -f) for u, f in enumerate(made.frames)]
    write_archive(f"{tmp_path}/t.ark", named, f"{tmp_path}/t.scp")
    half = len(made.lengths) // 2
    for name, which in (("a", range(half)), ("b", range(half, len(made.lengths)))):
        made.write(f"{name}.mlf", "#!MLF!#\n" + "".join(made.entry(u) for u in which))
    made.write("mlfs", f"{tmp_path}/a.mlf\n{tmp_path}/b.mlf\n")
    return made


def read(text: str, **options: Any) -> Reader:
    given = ";".join(f"{k}={v}" for k, v in options.items())
    return create_reader(f"readerType=HTKMLFReader;useMersenneTwisterRand=true;{given};{text}", "float")


def test_a_path_with_a_colon(speech: Speech) -> None:
    """It is one path if there is such a file; else colons divide several."""
    folder = speech.folder
    for name in ("f.scp", "l.mlf"):
        speech.write(f"{name}@12:30", (folder / name).read_bytes().replace(b".../", f"{folder}/".encode()))
    features = f'x=[dim=3;scpFile="{folder}/f.scp@12:30"]'
    labels = f'labelDim=4;labelMappingFile="{folder}/states"'
    many = [
        epoch(read(f'{features};y=[{labels};mlfFile="{folder}/{files}"]', randomize="none"), 100, 0)
        for files in ("l.mlf@12:30", f"a.mlf:{folder}/b.mlf")
    ]
    for one, two in zip(*many, strict=True):
        assert np.array_equal(one.matrix("x"), two.matrix("x"))
        assert (one.streams["y"] != two.streams["y"]).nnz == 0


def check(minibatches: list[Any], names: tuple[str, str, str, str]) -> int:
    """The streams x, t = -x, y and z (both the label of x) belong together; how many frames there are."""
    total = 0
    for m in minibatches:
        x, t, y, z = (m.matrix(name) for name in names)
        assert np.array_equal(t, -x)
        for one_hot in (y, z):
            assert np.array_equal(np.asarray(one_hot.argmax(axis=0)).ravel(), x[2])
        total += x.shape[1]
    return total


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"frameMode": "false", "nbruttsineachrecurrentiter": 2},
        {"frameMode": "false", "truncated": "true"},
        {"readMethod": "rollingWindow", "randomize": 8},
        {"minibatchMode": "full", "unigram": "none.arpa", "readAhead": "true", "verbosity": 2},
    ],
)
def test_several_inputs_and_outputs(speech: Speech, options: dict[str, Any]):
    folder = speech.folder
    text = (
        f'x=[{speech.features()}];t=[dim=3;type=Real;scpFile="{folder}/t.scp"];y=[{speech.targets()}];'
        f'z=[mlfFileList="{folder}/mlfs";labelMappingFile="{folder}/states";labelDim=4;labelType=Category]'
    )
    total = check(epoch(read(text, **options), 6), ("x", "t", "y", "z"))
    assert total == sum(speech.lengths) - (sum(speech.lengths) % 6 if "minibatchMode" in options else 0)


def test_sections_for_inputs_and_outputs(speech: Speech):
    folder = speech.folder
    mlf = f'file="{folder}/l.mlf";labelMappingFile="{folder}/states"'
    text = (
        f'input=[x=[dim=3;type=Real;file="{folder}/f.scp"]];'
        f'output=[t=[dim=3;type=Real;file="{folder}/t.scp"];y=[dim=4;type=Category;{mlf}];z=[labelDim=4;{mlf}]]'
    )
    assert check(epoch(read(text), 6), ("x", "t", "y", "z")) == sum(speech.lengths)


def test_parallel_utterances_of_each_epoch(speech: Speech):
    reader = read(
        f"x=[{speech.features()}];y=[{speech.targets()}]", frameMode="false", nbruttsineachrecurrentiter="1:3"
    )
    for sweep, slots in ((0, 1), (1, 3), (2, 3)):
        found = epoch(reader, 1, sweep)
        assert max(m.layout.S for m in found) == slots
        assert sum(m.num_samples for m in found) == sum(speech.lengths)


def test_write_mode_repeats_vectors_of_utterances(speech: Speech):
    folder = speech.folder
    named = [(f"g/u{u}.v", np.full((1, 2), u, np.float32)) for u in range(len(speech.lengths))]
    write_archive(f"{folder}/v.ark", named, f"{folder}/v.scp")
    reader = read(f'x=[{speech.features(contextWindow=3)}];z=[dim=2;scpFile="{folder}/v.scp"]', action="write")
    for epoch_number in range(2):
        found = epoch(reader, 2048, epoch_number)
        assert [m.num_samples for m in found] == list(speech.lengths)
        for u, m in enumerate(found):
            assert np.array_equal(m.matrix("x")[3:6].T, speech.frames[u]) and (m.matrix("z") == u).all()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (slice(0, 7), "lists 8 utterances, but that of 't' lists 7"),
        (slice(0, 0), "lists no utterances"),
    ],
)
def test_lists_of_other_lengths(speech: Speech, lines: slice, message: str):
    text = (speech.folder / "t.scp").read_text().splitlines(keepends=True)
    speech.write("t.scp", "".join(text[lines]))
    with pytest.raises(UserError) as caught:
        read(f'x=[{speech.features()}];t=[dim=3;scpFile="{speech.folder}/t.scp"]')
    assert message in str(caught.value) or message in caught.value.diagnostic.render()


def test_a_stream_with_too_few_frames_in_a_composite_reader(speech: Speech):
    text = (speech.folder / "t.scp").read_text().replace(",4]", ",2]")
    speech.write("t.scp", text)
    more = f':[type=HTKFeatureDeserializer;input=[t=[dim=3;scpFile="{speech.folder}/t.scp"]]]'
    with pytest.raises(UserError, match=r"key 'g/u0' has '3' frame\(s\), .* expects at least '5' frames"):
        speech.composite(frameMode=True, more=more)


def test_frames_of_utterances_missing_elsewhere_are_left_out(speech: Speech):
    text = (speech.folder / "t.scp").read_text().splitlines(keepends=True)
    speech.write("t.scp", "".join(text[3:]) + "other=.../t.ark[0,3]\n")
    more = f':[type=HTKFeatureDeserializer;input=[t=[dim=3;scpFile="{speech.folder}/t.scp"]]]'
    found = epoch(speech.composite(frameMode=True, more=more), 10)
    assert check(found, ("x", "t", "y", "y")) == sum(speech.lengths[3:])


@pytest.mark.parametrize("frame_mode", [True, False])
def test_utterances_whose_labels_leave_gaps(speech: Speech, frame_mode: bool):
    n = speech.lengths[0]
    entry = f'"*/g/u0.lab"\n0 2 sil\n3 {n} a\n.\n'
    text = (speech.folder / "l.mlf").read_text().replace(speech.entry(0), entry.replace(f" {n} ", f" {n}00000 "))
    speech.write("l.mlf", text.replace("0 2 sil\n3 ", "0 200000 sil\n300000 "))
    found = epoch(speech.composite(frameMode=frame_mode, maxErrors=n), 9)
    assert sorted(float(v) for m in found for v in m.matrix("x")[0]) == list(range(n, sum(speech.lengths)))
    with pytest.raises(UserError, match="exceeded the specified maximum"):
        epoch(speech.composite(frameMode=frame_mode), 100)


def test_a_file_that_becomes_shorter_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("cntkpy.readers.formats.htk.features.HELD", 0)
    path = str(tmp_path / "f.ark")
    write_archive(path, [(f"u{u}", np.zeros((4000, 3), np.float32)) for u in range(4)], str(tmp_path / "f.scp"))
    source = FeatureSource(read_script([str(tmp_path / "f.scp")]), 3)
    assert not source.held
    which = np.array([3])
    source.copy(which, np.array([0]), np.array([4000]))
    os.truncate(path, 8192)
    with pytest.raises(DataError, match="was cut short while it was read"):
        source.copy(which, np.array([0]), np.array([4000]))


def test_a_missing_file_is_told_with_the_line_that_lists_it(tmp_path: Path) -> None:
    speech = Speech(tmp_path)
    lines = (tmp_path / "f.scp").read_text().splitlines()
    speech.write("f.scp", "\n".join([*lines[:3], "g/u3.mfc=nowhere.ark[0,9]", *lines[4:]]))
    with pytest.raises(DataError, match=r"nowhere.ark cannot be opened") as script:
        speech.old()
    assert script.value.notes == (f"listed in {tmp_path}/f.scp, line 4",)
    for line in ("u0.wav u0.mfc", "u0.mfc = u0.mfc"):  # that of HCopy; blanks around =
        (tmp_path / "two.scp").write_text(f"{line}\n")
        with pytest.raises(DataError) as script:
            FeatureSource(read_script([f"{tmp_path}/two.scp"]), 3)
        assert "blanks are part of the names" in script.value.notes[1]
    speech = Speech(tmp_path)
    several = speech.write("l.list", f"{tmp_path}/l.mlf\nnowhere.mlf\n")
    with pytest.raises(DataError, match=r"nowhere.mlf cannot be read") as labels:
        create_reader(
            f"readerType=HTKMLFReader;x=[{speech.features()}];y=[mlfFileList={several};labelDim=4;"
            f"labelMappingFile={tmp_path}/states]"
        )
    assert labels.value.notes == (f"listed in {several}",)


# ------------------------------------------------------------------------------------------------- frames of 5 ms


def of_period(folder: Path, period: int, unit: int) -> Speech:
    """Features whose headers say a period, and labels whose times count frames of another; both in units of 100 ns."""
    data = Speech(folder)
    write_archive(str(folder / "f.ark"), [(f"g/u{u}.mfc", f) for u, f in enumerate(data.frames)], period=period)
    data.write("l.mlf", "#!MLF!#\n" + "".join(data.entry(u, unit) for u in range(len(data.lengths))))
    return data


def classes(reader: Reader) -> list[Any]:
    reader.start_minibatch_loop(1000, 0)
    batches = list(iter(reader.get_minibatch, None))
    return [
        (m.streams["x"].reshape(-1, DIM)[:, 2].tolist(), m.streams["y"].toarray().argmax(1).tolist()) for m in batches
    ]


@pytest.mark.parametrize(("period", "unit"), [(50000, 50000), (50000, 100000), (125000, 125000), (0, 100000)])
def test_times_are_counted_in_frames_of_the_header_or_of_10_ms(
    tmp_path: Path, period: int, unit: int, caplog: pytest.LogCaptureFixture
):
    """HTS has frames of 5 ms and says so; others wrote times of 10 ms for CNTK, whatever their headers say."""
    caplog.set_level(logging.INFO)
    data = of_period(tmp_path, period, unit)
    for reader in (data.old(frameMode=True), data.composite(frameMode=True)):
        found = classes(reader)
        assert sum(len(x) for x, _ in found) == sum(data.lengths)
        assert all(x == y for x, y in found)
    said = f"times are counted in frames of {unit / 10000:g} ms, the sample period of the feature files"
    assert caplog.text.count(said) == (2 if unit != 100000 else 0)


def test_times_that_fit_neither_period_are_named(tmp_path: Path):
    data = of_period(tmp_path, 50000, 80000)
    for read in (data.old, data.composite):
        with pytest.raises(DataError) as caught:
            read()
        assert "g/u0" in caught.value.message and "5 frames, and labels for 4" in caught.value.message
        assert "names" not in caught.value.message + str(caught.value.hint)
        assert "times count frames of 10 ms, or of the sample period that the feature file has" in str(
            caught.value.hint
        )
    data.write("l.mlf", "#!MLF!#\n" + "".join(data.entry(u, 20000) for u in range(len(data.lengths))))
    with pytest.raises(DataError) as caught:
        data.composite()
    assert "they would fit frames of" in str(caught.value.hint)


def test_labels_of_no_utterance_are_still_joined_by_names(tmp_path: Path):
    data = Speech(tmp_path)
    data.write("l.mlf", '#!MLF!#\n"other.lab"\n0 5 a\n.\n')
    with pytest.raises(DataError, match="has labels for none of the utterances of the features") as caught:
        data.composite()
    assert "joined by their names" in str(caught.value.hint)
