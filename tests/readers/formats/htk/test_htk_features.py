"""Frames with their neighbours out of files of every kind: held or read, few or many, against NumPy."""

from __future__ import annotations

import ctypes
import itertools
import os
from pathlib import Path

import numpy as np
import pytest

from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.htk import archive, features
from cntkpy.readers.formats.htk.archive import FeatureFile, read_features, write_archive, write_features
from cntkpy.readers.formats.htk.features import FeatureSource
from cntkpy.readers.formats.htk.script import read_script
from cntkpy.readers.utterances.features import UtteranceFeatures
from cntkpy.readers.utterances.frames import cut_into_chunks

DIM, LEFT, RIGHT = 5, 2, 3
FORMS = {
    "big": {"big": True},
    "little": {"big": False},
    "compressed": {"big": True, "compressed": True},
    "compressed little": {"big": False, "compressed": True},
}


def script(folder: Path, forms: list[str], count: int) -> Path:
    """Utterances of 2 to 9 frames in files of their own, forms in turn."""
    rng = np.random.default_rng(3)
    lines = []
    for u in range(count):
        path = folder / f"u{u}.mfc"
        values = rng.standard_normal((int(rng.integers(2, 10)), DIM)).astype(np.float32)
        write_features(str(path), values, **FORMS[forms[u % len(forms)]])  # type: ignore[arg-type]
        lines.append(f"{path}\n")
    (folder / "s.scp").write_text("".join(lines))
    return folder / "s.scp"


def plain(path: Path, energy: int = 0) -> list[np.ndarray]:
    """Every utterance as (frames, window), made by NumPy."""
    found = []
    for file in read_script([str(path)]).files:
        frames = read_features(file)
        if energy:
            parts = frames.reshape(len(frames), energy, -1)
            frames = np.insert(parts, parts.shape[2], 0, axis=2).reshape(len(frames), -1)
        padded = np.pad(frames, ((LEFT, RIGHT), (0, 0)), "edge")
        windows = np.lib.stride_tricks.sliding_window_view(padded, LEFT + RIGHT + 1, axis=0)
        found.append(windows.swapaxes(1, 2).reshape(len(frames), -1))
    return found


@pytest.mark.parametrize("held", [True, False], ids=["held", "read"])
@pytest.mark.parametrize("limit", [256, 3], ids=["all files open", "three files open"])
@pytest.mark.parametrize("forms", [[form] for form in FORMS] + [list(FORMS)], ids=[*FORMS, "mixed"])
def test_frames_are_those_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forms: list[str], limit: int, held: bool
):
    monkeypatch.setattr(features, "HELD", 1 << 20 if held else 0)
    monkeypatch.setattr(features, "OPEN_FILES", limit)
    monkeypatch.setattr(archive, "OPEN_FILES", limit)
    path = script(tmp_path, forms, 9)
    expected = plain(path)
    source = FeatureSource(read_script([str(path)]), DIM, LEFT, RIGHT)
    assert source.held == held
    data = UtteranceFeatures("x", source, cut_into_chunks(source.lengths), Corpus(False), frame_mode=True)
    total, all_frames = int(source.lengths.sum()), np.concatenate(expected)
    rng = np.random.default_rng(1)
    for which in (np.arange(total), rng.permutation(total), np.array([total - 1, 0, 0])):
        bounds = [0, 1, len(which) // 2, len(which)]
        batches = [batch["x"] for batch in data.frame_batches(which, bounds)]
        assert [batch.shape[:2] for batch in batches] == [(1, b - a) for a, b in itertools.pairwise(bounds)]
        assert np.array_equal(np.concatenate(batches, axis=1)[0], all_frames[which])
    whole = data.by_utterance().load_chunk(0).streams["x"]
    rows = np.lib.stride_tricks.sliding_window_view(whole.values, data.streams[0].dim)[whole.starts]
    assert np.array_equal(rows, all_frames)


def test_many_frames_are_copied_on_two_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(features, "_WORTH_A_THREAD", 0)
    path = script(tmp_path, list(FORMS), 9)
    source = FeatureSource(read_script([str(path)]), DIM + 1, LEFT, RIGHT, energy=1)
    data = UtteranceFeatures(
        "x", source, cut_into_chunks(source.lengths), Corpus(False), frame_mode=True, dtype=np.float64
    )
    which = np.random.default_rng(1).permutation(int(source.lengths.sum()))
    (batch,) = data.frame_batches(which, [0, len(which)])
    assert batch["x"].dtype == np.float64
    assert np.array_equal(batch["x"][0], np.concatenate(plain(path, energy=1))[which])


def test_a_file_that_shrinks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(features, "HELD", 0)
    path = script(tmp_path, ["big"], 3)
    source = FeatureSource(read_script([str(path)]), DIM, LEFT, RIGHT)
    (tmp_path / "u1.mfc").write_bytes((tmp_path / "u1.mfc").read_bytes()[:20])
    with pytest.raises(DataError, match=r"s\.scp, line 2: The data file .*u1\.mfc was cut short while it was read"):
        source.copy(np.arange(3), np.zeros(3, np.int64), source.lengths)


@pytest.mark.parametrize(
    ("kind", "period", "dim", "message"),
    [("MFCC_E", 100000, DIM, "kind"), ("USER", 50000, DIM, "period"), ("USER", 100000, 3, "values per frame")],
)
def test_files_of_a_stream_are_alike(tmp_path: Path, kind: str, period: int, dim: int, message: str):
    path = script(tmp_path, ["big"], 3)
    write_features(str(tmp_path / "u1.mfc"), np.zeros((9, dim), np.float32), kind=kind, period=period)
    with pytest.raises(DataError, match=message):
        FeatureSource(read_script([str(path)]), DIM, LEFT, RIGHT)


def test_a_frame_that_does_not_exist_is_told_with_its_line(tmp_path: Path):
    write_archive(str(tmp_path / "a"), [("u", np.zeros((5, 2), np.float32))])
    (tmp_path / "s.scp").write_text("u=.../a[0,4]\nv=.../a[3,5]\n")
    with pytest.raises(DataError, match=r"s\.scp, line 2: frame 5 of .* has 5 frames"):
        FeatureSource(read_script([str(tmp_path / "s.scp")]), 2)


def test_a_file_is_read_until_it_is_held(tmp_path: Path):
    write_features(str(tmp_path / "a"), np.arange(6, dtype=np.float32).reshape(3, 2))
    file = FeatureFile(str(tmp_path / "a"))
    address, handle, offset, _ = file.row
    assert address == 0 and handle >= 0 and offset == 12
    file.hold(1, 2)
    address, handle, _, _ = file.row
    assert handle == -1
    assert ctypes.string_at(address + 8, 16) == np.array([2, 3, 4, 5], ">f4").tobytes()


def test_files_that_are_held_need_no_disk(tmp_path: Path):
    path = script(tmp_path, list(FORMS), 9)
    source = FeatureSource(read_script([str(path)]), DIM, LEFT, RIGHT)
    for file in tmp_path.glob("*.mfc"):
        os.truncate(file, 0)
    found, _ = source.copy(np.arange(9), np.zeros(9, np.int64), source.lengths)
    assert len(found) == source.lengths.sum()
