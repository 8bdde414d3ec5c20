"""HTKMLFReader and the HTK deserializers: alike where they should be, every frame once, resumed exactly, errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.cntk_config import ConfigError
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers import Minibatch, Reader
from cntkpy.readers.utterances import join
from cntkpy.readers.utterances.frames import cut_into_chunks
from tests.readers.conftest import epoch, rest

from .htk_data import Speech


@pytest.fixture
def speech(tmp_path: Path) -> Speech:
    return Speech(tmp_path)


def same(ours: list[Minibatch], theirs: list[Minibatch]) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert np.array_equal(a.streams["x"], b.streams["x"])
        assert (a.streams["y"] != b.streams["y"]).nnz == 0
        assert np.array_equal(a.layout.sequences, b.layout.sequences) and list(a.keys) == list(b.keys)


def frames(minibatches: list[Minibatch]) -> list[int]:
    """Numbers of the frames in order, gaps left out; features and labels have to agree."""
    out: list[int] = []
    for m in minibatches:
        x, y = m.matrix("x").T, m.matrix("y").T
        assert np.array_equal(x[:, 2], np.asarray(y.argmax(axis=1)).ravel())
        out += x[:, 0].astype(int).tolist()
    return out


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"randomize": "none"},
        {"readMethod": "none"},
        {"readMethod": "rollingWindow"},
        {"randomize": 20},
        {"useMersenneTwisterRand": False},
        {"frameMode": False},
        {"frameMode": False, "nbruttsineachrecurrentiter": 3},
        {"frameMode": False, "truncated": True, "nbruttsineachrecurrentiter": 2},
    ],
)
@pytest.mark.parametrize("size", [5, 16, 100])
@pytest.mark.sampled
def test_every_frame_once_per_sweep(speech: Speech, options: dict[str, Any], size: int):
    reader = speech.old(**options)
    for sweep in range(3):
        assert sorted(frames(epoch(reader, size, sweep))) == list(range(sum(speech.lengths)))


@pytest.mark.parametrize("options", [{}, {"randomize": False}, {"randomizationWindow": 20}, {"prefetch": False}])
@pytest.mark.parametrize("size", [5, 16, 100])
def test_every_frame_once_per_sweep_of_deserializers(speech: Speech, options: dict[str, Any], size: int):
    reader = speech.composite(frameMode=True, **options)
    for sweep in range(3):
        found = epoch(reader, size, sweep)
        assert sorted(frames(found)) == list(range(sum(speech.lengths)))
        assert [m.end_of_sweep for m in found] == [False] * (len(found) - 1) + [True]
        assert [list(m.keys) for m in found] == [[f"g/u{int(u)}" for u in m.matrix("x")[1]] for m in found]


@pytest.mark.parametrize("kind", ["HTKMLFReader", "HTKDeserializers"])
@pytest.mark.parametrize("frame_mode", [True, False])
@pytest.mark.parametrize("method", ["none", "None"])
def test_no_read_method_is_the_order_of_the_file(speech: Speech, kind: str, frame_mode: bool, method: str):
    reader = speech.old(readerType=kind, readMethod=method, frameMode=frame_mode)
    keys: list[str] = []
    for sweep in range(2):
        keys = [key for m in epoch(reader, 1, sweep) for key in m.keys]
        assert list(dict.fromkeys(keys)) == [f"g/u{u}" for u in range(len(speech.lengths))]
    shuffled = speech.old(readerType=kind, frameMode=frame_mode)
    assert [key for m in epoch(shuffled, 1, 1) for key in m.keys] != keys


@pytest.mark.parametrize(("kind", "sizes"), [("HTKMLFReader", [7, 7, 2]), ("HTKDeserializers", [7, 7, 7])])
def test_the_end_of_an_epoch_in_the_order_of_the_file(speech: Speech, kind: str, sizes: list[int]):
    """HTKDeserializers cuts at the end of a sweep only, as composite readers do."""
    reader = speech.old(readerType=kind, readMethod="none")
    assert [m.num_samples for m in epoch(reader, 7, 0, 16)] == sizes


OLD: list[dict[str, Any]] = [
    {},
    {"frameMode": False},
    {"frameMode": False, "truncated": True, "nbruttsineachrecurrentiter": 2},
    {"readMethod": "rollingWindow"},
    {"randomize": "none"},
    {"minibatchMode": "full"},
]
NEW: list[dict[str, Any]] = [{"frameMode": True}, {"frameMode": True, "randomize": False}, {"frameMode": False}]


@pytest.mark.parametrize(("form", "options"), [("old", o) for o in OLD] + [("composite", o) for o in NEW])
def test_resume_inside_an_epoch(speech: Speech, form: str, options: dict[str, Any]):
    make = getattr(speech, form)
    reader = make(**options)
    whole = epoch(reader, 7, 1)
    for stop in (0, 1, len(whole) // 2, len(whole) - 1):
        reader.start_minibatch_loop(7, 1)
        for _ in range(stop):
            reader.get_minibatch()
        state = json.loads(json.dumps(reader.get_state()))
        other = make(**options)
        other.start_minibatch_loop(7, 1)
        other.set_state(state)
        same(rest(other), whole[stop:])


@pytest.mark.parametrize("frame_mode", [True, False])
def test_old_and_new_form_are_alike(speech: Speech, frame_mode: bool):
    old = speech.old(frameMode=frame_mode)
    alias = speech.old(frameMode=frame_mode, readerType="HTKDeserializers")
    new = speech.composite(frameMode=frame_mode)
    for sweep in range(2):
        found = epoch(new, 13 if frame_mode else 1, sweep)
        same(epoch(alias, 13 if frame_mode else 1, sweep), found)
        same(epoch(old, 13 if frame_mode else 1, sweep), found)


def test_epochs_cut_minibatches(speech: Speech):
    reader = speech.old()
    sizes = [[m.num_samples for m in epoch(reader, 8, k, 20)] for k in range(4)]
    assert sizes == [[8, 8, 4], [8, 8, 4], [8, 6, 6], [8, 8, 4]]


def test_full_minibatches_are_the_same_number_in_every_epoch(speech: Speech):
    """A14: only the partial minibatch at the end of an epoch is passed over, whatever the epochs before were."""
    reader = speech.old(minibatchMode="full")
    total = sum(speech.lengths)
    for size in (8, 7):
        for number in range(4):
            found = epoch(reader, size, number)
            assert [m.num_samples for m in found] == [size] * (total // size)
            assert [m.end_of_epoch for m in found] == [False] * (total // size - 1) + [True]
            assert reader.data_end


@pytest.mark.parametrize("word", ["Fulll", "none"])
def test_only_the_words_that_there_are(speech: Speech, word: str):
    """A9."""
    with pytest.raises(ConfigError, match=f"'{word}' is not one of partial, full"):
        speech.old(minibatchMode=word)


def test_context_windows_repeat_the_edges(speech: Speech):
    for spelled in ({"contextWindow": "5"}, {"contextWindow": "2:2"}, {"dim": 15}):
        reader = speech.composite(features=spelled, randomize=False)
        for m in epoch(reader, 1):
            x = m.streams["x"][:, 0]
            n, first = len(x), x[0, 6]
            wanted = first + np.clip(np.arange(n)[:, None] + np.arange(-2, 3), 0, n - 1)
            assert np.array_equal(x[:, ::3], wanted)
    left = epoch(speech.composite(features={"contextWindow": "1:0"}, randomize=False, frameMode=True), 1000)[0]
    x = left.streams["x"][0]
    assert x[:6, 0].tolist() == [0, 0, 1, 2, 3, 5] and x[:6, 3].tolist() == [0, 1, 2, 3, 4, 5]


def test_single_frames_and_whole_chunks_are_alike(speech: Speech):
    part = speech.composite(features={"contextWindow": 7}, frameMode=True).source.deserializer.frame_parts[0]  # type: ignore[attr-defined]
    whole = part.load_chunk(0).streams["x"]
    rng = np.random.default_rng(0)
    for which in (np.arange(9, 30), rng.integers(0, 54, 12), rng.permutation(54), np.array([3])):
        some = part.load_sequences(which).streams["x"]
        for i, w in enumerate(which):
            a = some.values[some.starts[i] : some.starts[i] + 21]
            assert np.array_equal(a, whole.values[whole.starts[w] : whole.starts[w] + 21])


@pytest.mark.parametrize("frame_mode", [True, False])
def test_one_vector_per_utterance(speech: Speech, frame_mode: bool):
    from cntkpy.readers.formats.htk.archive import write_archive

    named = [(f"g/u{u}.iv", np.full((1, 2), u, np.float32)) for u in range(len(speech.lengths))]
    write_archive(str(speech.folder / "v.ark"), named, str(speech.folder / "v.scp"))
    section = f'scpFile="{speech.folder}/v.scp";dim=2;expandToUtterance=true'
    more = f":[type=HTKFeatureDeserializer;input=[z=[{section}]]]"
    for reader in (speech.composite(frameMode=frame_mode, more=more), old_with(speech, f"z=[{section}]", frame_mode)):
        for m in epoch(reader, 20):
            assert np.array_equal(m.matrix("z")[0], m.matrix("x")[1])


def old_with(speech: Speech, more: str, frame_mode: bool) -> Reader:
    from cntkpy.readers import create_reader

    text = f"readerType=HTKMLFReader;frameMode={str(frame_mode).lower()};{more}"
    return create_reader(f"{text};x=[{speech.features()}];y=[{speech.targets()}]")


def test_input_and_output_sections(speech: Speech):
    from cntkpy.readers import create_reader

    x = speech.features().replace("scpFile", "file")
    y = speech.targets().replace("mlfFile", "file")
    reader = create_reader(f"readerType=HTKMLFReader;input=[x=[{x};type=Real]];output=[y=[{y};type=Category]]")
    same(epoch(reader, 9), epoch(speech.old(useMersenneTwisterRand=False), 9))


def test_what_the_range_of_a_shuffle_is(speech: Speech, monkeypatch: pytest.MonkeyPatch):
    """blockRandomize moves frames through the chunks that the range reaches; rollingWindow by half of it (A15)."""
    total = np.arange(sum(speech.lengths))
    rolling = np.array(frames(epoch(speech.old(readMethod="rollingWindow", randomize=10), 54)))
    assert 0 < np.abs(rolling - total).max() <= 5
    assert np.abs(np.array(frames(epoch(speech.old(randomize=10), 54))) - total).max() > 20  # it is a single chunk
    monkeypatch.setattr(join, "cut_into_chunks", lambda lengths: cut_into_chunks(lengths, 0))
    chunk = np.repeat(np.arange(len(speech.lengths)), speech.lengths)
    order = np.array(frames(epoch(speech.old(randomize=2), 54)))
    assert len(set(chunk[order[:3]])) == 1  # chunks of an utterance, of which none reaches into the next
    assert not np.array_equal(order, total)


def test_dim_may_be_that_of_the_window(speech: Speech):
    """And frames take no notice of parallel utterances (D8)."""
    usual = speech.old(features={"contextWindow": 3})
    same(epoch(speech.old(features={"dim": 9, "contextWindow": 3}), 9), epoch(usual, 9))
    same(epoch(speech.old(features={"dim": 9}, nbruttsineachrecurrentiter=4), 9), epoch(usual, 9))


def test_targets_are_written_without_blanks(speech: Speech):
    """The message shows the right form (C5)."""
    speech.write("targets", "sil 1 0\na 0 1\nb 1 1\nc 0 0\n")
    with pytest.raises(UserError, match=r"targets, line 1: '1 0' is not a row .* without blanks: sil 10\."):
        speech.old(labels={"labelToTargetMappingFile": f'"{speech.folder}/targets"', "targetDim": 2})


@pytest.mark.parametrize("numbers", ["1\n0\n1\n0\n", "0 10\n1 01\n2 11\n3 00\n", "sil 10\na 1\n"])
def test_targets_that_are_no_rows_of_zeros_and_ones(speech: Speech, numbers: str):
    """The names of the states belong into the file; the error shows a line (G9)."""
    speech.write("targets", numbers)
    with pytest.raises(UserError, match=r"targets, line [12]: ") as caught:
        speech.old(labels={"labelToTargetMappingFile": f'"{speech.folder}/targets"', "targetDim": 2})
    assert str(caught.value.hint).endswith(("zeros and ones: sil 10", "zeros and ones: a 10"))


def test_states_that_are_no_utf8(speech: Speech):
    """Names of states are bytes, as in CNTK."""
    for name in ("states", "l.mlf"):
        path = speech.folder / name
        path.write_bytes(path.read_bytes().replace(b"sil", b"s\xeel"))
    targets = {"labelToTargetMappingFile": f'"{speech.folder}/targets"', "targetDim": 2}
    speech.write("targets", b"s\xeel 10\na 01\nb 11\nc 00\n")
    assert epoch(speech.old(labels=targets), 20)
    speech.write("targets", b"sil 10\n")
    with pytest.raises(UserError, match="'sil' found where the state list has 's\udceel'"):
        speech.old(labels=targets)


def test_energy_targets_and_classes(speech: Speech):
    m = epoch(speech.old(features={"addEnergy": 3, "dim": 6}, readMethod="rollingWindow"), 4)[0]
    assert not m.streams["x"][0, :, 1::2].any()
    for frame in m.streams["x"][0, :, ::2]:
        assert frame.tolist() in [one.tolist() for frames in speech.frames for one in frames]
    plain = epoch(speech.old(features={"addEnergy": 3}, randomize="none"), 4)[0]
    assert np.array_equal(plain.streams["x"], epoch(speech.old(randomize="none"), 4)[0].streams["x"])
    speech.write("targets", "sil 10\na 01\nb 11\nc 00\n")
    reader = speech.old(labels={"labelToTargetMappingFile": f'"{speech.folder}/targets"', "targetDim": 2})
    for m in epoch(reader, 20):
        table = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], np.float32)
        assert np.array_equal(m.streams["y"][0], table[m.streams["x"][0, :, 2].astype(int)])


def test_workers_share_the_frames(speech: Speech, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(join, "cut_into_chunks", lambda lengths: cut_into_chunks(lengths, 10))
    parts = [frames(epoch(speech.old(), 6, worker_rank=k, number_of_workers=2)) for k in range(2)]
    assert all(parts) and sorted(parts[0] + parts[1]) == list(range(sum(speech.lengths)))


def test_phone_boundaries(speech: Speech):
    for m in epoch(speech.composite(labels={"phoneBoundaries": True}), 1):
        x, y = m.streams["x"][:, 0, 2], m.streams["y"].toarray().max(axis=1)
        assert np.array_equal(y, 1 + (np.diff(x, prepend=-1) != 0))


def test_writing_reads_utterance_by_utterance(speech: Speech):
    from cntkpy.readers import create_reader

    reader = create_reader(f"readerType=HTKMLFReader;action=write;x=[{speech.features()}]")
    assert [m.num_samples for m in epoch(reader, 2048)] == list(speech.lengths)


def test_utterances_that_do_not_fit_are_left_out(speech: Speech, caplog: pytest.LogCaptureFixture):
    speech.write("l.mlf", "#!MLF!#\n" + "".join(speech.entry(u) for u in range(2, 8)))
    for reader in (speech.old(), speech.composite(frameMode=True)):
        assert sorted(frames(epoch(reader, 10))) == list(range(14, 54))
    assert "2 of 8 utterances are left out: 2 without labels in 'y': g/u0, g/u1" in caplog.text
    whole = speech.entry(2).replace("g/u2", "g/u5")
    speech.write("l.mlf", "#!MLF!#\n" + whole + "".join(speech.entry(u) for u in (0, 1, 2, 3, 4, 6, 7)))
    speech.old()
    assert "1 with labels for another number of frames in 'y' (g/u5 has 3 frames, and labels for 4)" in caplog.text
    speech.composite()
    assert "are left out: g/u5 (the first has 3 frames, and labels for 4)" in caplog.text


def test_some_utterance_is_left(speech: Speech, caplog: pytest.LogCaptureFixture):
    """Half may be left out for their lengths, and half for their labels, but not both."""
    text = (speech.folder / "f.scp").read_text()
    speech.write("shorter.scp", re.sub(r"\[(\d+),", lambda found: f"[{int(found[1]) + 1},", text, count=4))
    speech.write("l.mlf", "#!MLF!#\n" + "".join(speech.entry(u) for u in range(4)))
    from cntkpy.readers import create_reader

    with pytest.raises(UserError, match=r"4 of 8 utterances of .* are unusable: 4 without labels in 'y'") as caught:
        create_reader(
            f"readerType=HTKMLFReader;a=[{speech.features()}];y=[{speech.targets()}];"
            f"b=[{speech.features(scpFile=speech.folder / 'shorter.scp')}]"
        )
    assert "4 of 8 utterances are left out: of different length" in caplog.text
    shown = caught.value.diagnostic.render()
    assert "by the name of the utterance, such as 'g/u4'; 'u4=g/...' in the list calls it 'u4'" in shown


FRAME, UTT = {"frameMode": True}, {"frameMode": False}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "even window": ({"features": {"contextWindow": 4}}, "not symmetrical"),
    "three numbers": ({"features": {"contextWindow": "1:2:3"}}, "not a context window"),
    "dim zero": ({"features": {"dim": 0}}, "not a number of values"),
    "dim not a multiple": ({"features": {"dim": 4}}, "not an odd multiple of the 3 values"),
    "dim an even multiple": ({"features": {"dim": 6}}, "not an odd multiple"),
    "neither dim of a frame nor of a window": (
        {"features": {"dim": 6, "contextWindow": 3}},
        "or 9: that of the window",
    ),
    "type of features": ({"features": {"type": "Category"}}, "of type real"),
    "scp missing": ({"features": {"scpFile": '"nowhere.scp"'}}, "nowhere.scp"),
    "archive missing": ({"features": {"prefixPathInSCP": '"nowhere"'}}, "nowhere/"),
    "energy": ({"features": {"addEnergy": 2, "dim": 5}, "readMethod": "rollingWindow"}, "2 equal parts"),
    "first stream expanded": ({"features": {"expandToUtterance": True}}, "how long utterances are"),
    "mlf missing": ({"labels": {"mlfFile": '"nowhere.mlf"'}}, "nowhere.mlf"),
    "states missing": ({"labels": {"labelMappingFile": '"nowhere"'}}, "nowhere"),
    "no classes": ({"labels": {"labelDim": 0}}, "not a number of classes"),
    "too many classes": ({"labels": {"labelDim": 70000}}, "not a number of classes"),
    "too few classes": ({"labels": {"labelDim": 3}}, "exceeds the label dimension of 'y'"),
    "type of labels": ({"labels": {"labelType": "Regression"}}, "'Regression' are not supported"),
    "targets without length": ({"labels": {"labelToTargetMappingFile": '"t"'}}, "length of the targets"),
    "randomize": ({"randomize": "maybe"}, "maybe"),
    "method": ({"readMethod": "random"}, "random"),
    "frames truncated": ({"frameMode": True, "truncated": True}, "mutually exclusive"),
    "no utterances": ({"nbruttsineachrecurrentiter": 0, "frameMode": False}, "at least one"),
    "legacy": ({"legacyMode": True}, "no longer supported"),
    "labels in write": ({"action": "write"}, "labels are not read"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_configurations(speech: Speech, name: str):
    options, message = BAD[name]
    with pytest.raises(UserError) as caught:
        speech.old(**options)
    assert message in str(caught.value) or message in caught.value.diagnostic.render()


FILES: dict[str, tuple[str, str | bytes, str]] = {
    "empty scp": ("f.scp", "\n\n", "lists no utterances"),
    "beyond the file": ("f.scp", "u=.../f.ark[50,54]\n", "frame 54 of"),
    "one frame": ("f.scp", "g/u0=.../f.ark[0,0]\n", "f.scp, line 1: utterances of less than 2 frames"),
    "archive cut": ("f.ark", b"\0\0\0\5" + b"\0\1\x86\xa0\0\x0c\0\x09" + b"\0" * 7, "shorter than its header says"),
    "archive of text": ("f.ark", "this is no archive at all", "f.ark"),
    "no labels": ("l.mlf", "#!MLF!#\n", "8 of 8 utterances"),
    "gap": ("l.mlf", '#!MLF!#\n"g/u0"\n0 2 a\n3 5 b\n.\n', "l.mlf, line 2) leave a gap"),
    "states": ("states", "sil\na\n", "is not in the state list"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files(speech: Speech, name: str):
    file, content, message = FILES[name]
    speech.write(file, content)
    with pytest.raises(UserError) as caught:
        speech.old()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("deserializers=([type=HTKMLFDeserializer;input=[y=[{y}]]])", "cannot be the first deserializer"),
        (
            "deserializers=([type=LatticeDeserializer;input=[y=[{y}]]])",
            "lattices (sequence training) are not supported",
        ),
        ("deserializers=([type=HTKMLFBinaryDeserializer;input=[y=[{y}]]])", "binary label files are not supported"),
        ("deserializers=([type=HTKFeatureDeserializer;input=[x=[{x}];y=[{y}]]])", "one stream, not 2"),
        ("readerType=HTKMLFReader;x=[{x}]", "a single stream"),
        ("readerType=HTKMLFReader;y=[{y}]", "no section of features"),
        ("readerType=HTKMLFReader;y=[{y}];x=[scpFil=t;dim=1]", "'scpFil' of 'x' is not a known parameter"),
        ("readerType=HTKMLFReader;x=[{x}];y=[mlfFle=t;dim=1]", "'mlfFle' of 'y' is not a known parameter"),
        ("readerType=HTKMLFReader;x=[{x}];l=[denLatTocFile=t]", "lattices (sequence training) are not supported"),
        ("readerType=HTKMLFReader;x=[{x}];y=[labelDim=4;mlfFileList=nolist]", "nolist"),
    ],
)
def test_what_is_not_supported(speech: Speech, text: str, message: str):
    from cntkpy.readers import create_reader

    with pytest.raises(UserError) as caught:
        create_reader(text.format(x=speech.features(), y=speech.targets()))
    assert message in str(caught.value)


@pytest.mark.parametrize("given", ["", "useNumericSequenceKeys=false;", "hashSequenceKeys=true;"])
def test_text_is_joined_by_name_of_utterance(speech: Speech, given: str):
    """Beside HTK deserializers keys are texts, even those of a text file that comes first."""
    from cntkpy.readers import create_reader

    lines = [f"g/u{u}\t|t {u}\n" + "\t|t 0\n" * (n - 1) for u, n in enumerate(speech.lengths)]
    text = speech.write("t.ctf", "".join(lines[:6]))
    ctf = f'[type=CNTKTextFormatDeserializer;file="{text}";input=[t=[dim=1;format=dense]]]'
    htk = f"[type=HTKFeatureDeserializer;input=[x=[{speech.features()}]]]"
    reader = create_reader(f"{given}deserializers=({ctf}:{htk})")
    found = epoch(reader, 1)
    assert len(found) == 6
    for m in found:
        assert m.matrix("t")[0, 0] == m.matrix("x")[1, 0]
        assert m.streams["t"].shape[0] == m.streams["x"].shape[0]


def beside_text(speech: Speech, ids: list[int], scp: str, options: str, *, text_first: bool = True) -> Reader:
    """Utterances beside a text file with the stream t: a sample `id` for each of these ids."""
    from cntkpy.readers import create_reader

    text = speech.write("t.ctf", "".join(f"{one} |t {one}\n" for one in ids))
    ctf = f'[type=CNTKTextFormatDeserializer;file="{text}";input=[t=[dim=1;format=dense]]]'
    htk = f'[type=HTKFeatureDeserializer;input=[x=[dim=3;scpFile="{speech.write("numbered.scp", scp)}"]]]'
    both = f"{ctf}:{htk}" if text_first else f"{htk}:{ctf}"
    return create_reader(f"{options}deserializers=({both})")


BACKWARDS = "".join(f"{u}.mfc=.../f.ark[{a},{b}]\n" for u, a, b in [(2, 14, 17), (1, 5, 13), (0, 0, 4)])


def test_utterances_whose_names_are_numbers(speech: Speech):
    """They are joined by these numbers, not by their order in the script."""
    from cntkpy.readers import create_reader

    for options in ("", "useNumericSequenceKeys=true;"):
        found = epoch(beside_text(speech, [0, 1, 2], BACKWARDS, options), 1)
        assert [m.matrix("t")[0, 0] for m in found] == [m.matrix("x")[1, 0] for m in found]
    with pytest.raises(UserError, match="Invalid numeric sequence id 'g/u0'"):
        text = (speech.folder / "f.scp").read_text()
        beside_text(speech, [0, 1, 2], text, "useNumericSequenceKeys=true;")
    speech.write("lines.ctf", "|t 1\n|t 2\n")
    htk = f"[type=HTKFeatureDeserializer;input=[x=[{speech.features()}]]]"
    ctf = f'[type=CNTKTextFormatDeserializer;file="{speech.folder}/lines.ctf";input=[t=[dim=1;format=dense]]]'
    with pytest.raises(UserError, match=r"lines\.ctf have no keys, .* or they are names of utterances"):
        create_reader(f"deserializers=({htk}:{ctf})")


@pytest.mark.parametrize("text_first", [True, False])
def test_frames_are_not_joined_with_sequences(speech: Speech, text_first: bool):
    """The frames 0, 1, 2 of the first utterance are not the sequences 0, 1, 2 of the text file."""
    with pytest.raises(
        UserError, match=r"frameMode=true makes frames .* cannot be joined with the sequences of .*t\.ctf"
    ):
        beside_text(speech, [0, 1, 2], BACKWARDS, "frameMode=true;", text_first=text_first)
    single = "".join(f"{u}.mfc=.../f.ark[{at},{at}]\n" for u, at in [(2, 14), (1, 5), (0, 0)])
    found = epoch(beside_text(speech, [0, 1, 2], single, "frameMode=true;", text_first=text_first), 2)
    joined = [(t, x) for m in found for t, x in zip(m.matrix("t")[0], m.matrix("x")[1], strict=True)]
    assert sorted(joined) == [(0, 0), (1, 1), (2, 2)]
