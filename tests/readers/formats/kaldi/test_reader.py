"""Kaldi2Reader and the Kaldi deserializers: the same minibatches as HTKMLFReader, and what is Kaldi's own."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers import create_reader
from cntkpy.readers.formats.kaldi.specifier import parse_write_specifier
from cntkpy.readers.formats.kaldi.write import open_writer

from .speech import CLASSES, DIM, Corpus, minibatches

MODES: list[dict[str, Any]] = [
    {},
    {"frameMode": True, "randomize": 20},
    {"frameMode": True, "minibatchMode": "full"},
    {"frameMode": True, "randomize": "none"},
    {"readMethod": "rollingWindow"},
    {"readMethod": "rollingWindow", "randomize": "none"},
    {"frameMode": False},
    {"frameMode": False, "nbruttsineachrecurrentiter": 3},
    {"frameMode": False, "nbruttsineachrecurrentiter": "2:3", "randomize": 15},
    {"frameMode": False, "maxUtteranceLength": 8},
    {"frameMode": False, "truncated": True, "nbruttsineachrecurrentiter": 2},
    {"frameMode": False, "Truncated": True, "useMersenneTwisterRand": True},
]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.sampled
def test_minibatches_are_those_of_htk_bit_for_bit(tmp_path: Path, mode: dict[str, Any]) -> None:
    data = Corpus(tmp_path)
    for window in ({}, {"contextWindow": "2:1"}, {"contextWindow": 3}):
        want = minibatches(data.htk(window, **mode), 10)
        assert want and minibatches(data.kaldi(window, **mode), 10) == want
    assert minibatches(data.kaldi(**mode), 7, samples=20) == minibatches(data.htk(**mode), 7, samples=20)


@pytest.mark.parametrize("mode", [{}, {"frameMode": True}, {"truncated": True, "truncationLength": 4}], ids=str)
def test_deserializers_give_the_minibatches_of_the_htk_ones(tmp_path: Path, mode: dict[str, Any]) -> None:
    data = Corpus(tmp_path)
    for features in ("", ";contextWindow=1:2", ";maxSequenceSize=8", ";definesMBSize=true"):
        want = minibatches(data.composite("HTK", features, **mode), 12)
        assert want and minibatches(data.composite("Kaldi", features, **mode), 12) == want


def test_a_state_of_the_reader_goes_on(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    for mode in ({}, {"frameMode": False, "nbruttsineachrecurrentiter": 2}, {"frameMode": False, "truncated": True}):
        reader = data.kaldi(**mode)
        reader.start_minibatch_loop(8, 0)
        reader.get_minibatch()
        state = reader.get_state()
        rest = []
        while (m := reader.get_minibatch()) is not None:
            rest.append(m.streams["x"].tobytes())
        other = data.kaldi(**mode)
        other.start_minibatch_loop(8, 0)
        other.set_state(state)
        again = []
        while (m := other.get_minibatch()) is not None:
            again.append(m.streams["x"].tobytes())
        assert rest and again == rest


def whole(reader: Any, stream: str = "x") -> dict[str, np.ndarray]:
    """Utterances by name, from a reader in frameMode=false with one slot."""
    found = {}
    reader.start_minibatch_loop(1, 0)
    while (m := reader.get_minibatch()) is not None:
        data = m.streams[stream]
        rows = data if isinstance(data, np.ndarray) else data.toarray()
        found[m.keys[0]] = rows.reshape(-1, rows.shape[-1])
    reader.close()
    return found


def test_labels_in_all_forms_give_the_same(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    want = minibatches(data.kaldi(frameMode=False), 10)
    text = "".join(f"{k} {' '.join(map(str, c))}\n" for k, c in zip(data.keys, data.classes, strict=True))
    data.write("ali.txt", text)
    text = "".join(f"{k} {' '.join(f'[ {i} 1 ]' for i in c)}\n" for k, c in zip(data.keys, data.classes, strict=True))
    data.write("post.txt", text)
    for specifier in ("ark:{}/ali.txt", "ark,t:{}/post.txt", "ark:{}/ali.ark"):
        labels = {"mlfFile": '"' + specifier.format(tmp_path) + '"', "labelMappingFile": '""'}
        assert minibatches(data.kaldi(labels=labels, frameMode=False), 10) == want


def test_the_state_list_names_the_numbers(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    data.write("turned", "3\n2\n1\n0\n")
    plain, turned = (
        data.kaldi(frameMode=False),
        data.kaldi(labels={"labelMappingFile": f'"{tmp_path}/turned"'}, frameMode=False),
    )
    was, now = whole(plain, "y"), whole(turned, "y")
    assert all(np.array_equal(was[key][:, ::-1], now[key]) for key in data.keys)
    data.write("few", "0\n1\n2\n")
    with pytest.raises(
        UserError, match=r"ali\.ark, byte \d+: the state 3 of sp0\.9-u\d is not in the state list .*few"
    ):
        data.kaldi(labels={"labelMappingFile": f'"{tmp_path}/few"'})


def test_targets_of_zeros_and_ones(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    data.write("targets", "0 00\n1 01\n2 10\n3 11\n")
    labels = {"labelToTargetMappingFile": f'"{tmp_path}/targets"', "targetDim": 2}
    found = whole(data.kaldi(labels=labels, frameMode=False), "y")
    for key, classes in zip(data.keys, data.classes, strict=True):
        np.testing.assert_array_equal(found[key], np.stack([classes // 2, classes % 2], 1))


def test_targets_that_wait(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    found = whole(data.kaldi(frameMode=False, targets_delay=2), "y")
    for key, classes in zip(data.keys, data.classes, strict=True):
        want = np.concatenate([np.repeat(classes[:1], 2), classes])[: len(classes)]
        np.testing.assert_array_equal(found[key].argmax(1), want)


def test_lists_with_a_mark_at_their_start(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    found = whole(data.kaldi(frameMode=False))
    for name in ("rx", "lab", "counts", "states"):
        data.write(name, "\ufeff" + (tmp_path / name).read_text())
    assert list(whole(data.kaldi(frameMode=False))) == list(found)


def test_the_list_selects_and_orders(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    order = [3, 0, 6]
    data.write("counts", "".join(f"{data.keys[i]} {data.lengths[i]}\r\n\n" for i in order))
    found = whole(data.kaldi(frameMode=False, randomize="none"))
    assert list(found) == [data.keys[i] for i in order]
    for i in order:
        np.testing.assert_array_equal(found[data.keys[i]], data.frames[i])


def test_several_feature_streams_real_targets_and_weights(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    with open_writer(parse_write_specifier(f"ark:{tmp_path}/w.ark")) as writer:
        for key, frames in zip(data.keys, data.frames, strict=True):
            writer.write_matrix(key, frames[:, :1] * 2)
    more = f';weights=[dim=1;scpFile="{tmp_path}/counts";rx="ark:{tmp_path}/w.ark"]'
    found = whole(data.kaldi(more=more, frameMode=False), "weights")
    for key, frames in zip(data.keys, data.frames, strict=True):
        np.testing.assert_array_equal(found[key], frames[:, :1] * 2)


def test_doubles_keep_their_digits(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    rng = np.random.default_rng(0)
    exact = {key: rng.standard_normal((n, DIM)) for key, n in zip(data.keys, data.lengths, strict=True)}
    with open_writer(parse_write_specifier(f"ark:{tmp_path}/d.ark")) as writer:
        for key, frames in exact.items():
            writer.write_matrix(key, frames)
    found = whole(data.kaldi({"rx": f'"ark:{tmp_path}/d.ark"'}, precision="double", frameMode=False))
    assert all(np.array_equal(found[key], exact[key]) for key in data.keys)
    single = whole(data.kaldi({"rx": f'"ark:{tmp_path}/d.ark"'}, frameMode=False))
    assert all(np.array_equal(single[key], exact[key].astype(np.float32)) for key in data.keys)


NNET = """<Nnet>
<Splice> 9 3
[ -1 0 1 ]
<!EndOfComponent>
<AddShift> 9 9 <LearnRateCoef> 0 [ 1 1 1 2 2 2 3 3 3 ]
<Rescale> 9 9 [ 2 2 2 2 2 2 2 2 2 ]
</Nnet>
"""


def test_a_transform_is_a_context_window_and_a_normalisation(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    data.write("nnet", NNET)
    transformed = {"featureTransform": f'"{tmp_path}/nnet"', "dim": 9}
    for mode in ({}, {"frameMode": False}, {"frameMode": False, "truncated": True}):
        plain, other = data.kaldi({"contextWindow": 3}, **mode), data.kaldi(transformed, **mode)
        plain.start_minibatch_loop(7, 0)
        other.start_minibatch_loop(7, 0)
        while (m := plain.get_minibatch()) is not None:
            n = other.get_minibatch()
            want = (m.streams["x"] + np.repeat([1, 2, 3], 3).astype(np.float32)) * 2
            mask = m.layouts["x"].mask
            np.testing.assert_array_equal(n.streams["x"][mask], want[mask])
    wide = {"featureTransform": f'"{tmp_path}/nnet"', "dim": 9, "contextWindow": "1:0"}
    both = minibatches(data.kaldi(wide), 5), minibatches(data.kaldi(wide, randomize="none"), 5)
    assert both[0][0]["x"][1][-1] == 18 and len(both[0]) == len(both[1])


def test_write_mode_is_the_list_utterance_by_utterance(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    text = data.kaldi_section(action="write", frameMode=False).replace(";y=", ";ignored=").replace("mlfFile", "mlf")
    reader = create_reader(text, "float")
    assert list(whole(reader)) == data.keys
    with pytest.raises(UserError, match="writer mode does not support labels as inputs"):
        data.kaldi(action="write")


def test_utterances_that_do_not_fit_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = Corpus(tmp_path, (5, 9, 1, 4, 12))
    ali = [f"{k} {' '.join(map(str, c))}" for k, c in zip(data.keys, data.classes, strict=True)]
    data.write("ali.txt", "\n".join([*ali[1:3], ali[3] + " 1", *ali[4:]]) + "\n")
    caplog.set_level(logging.WARNING)
    found = whole(data.kaldi(labels={"mlfFile": f'"ark:{tmp_path}/ali.txt"'}, frameMode=False))
    assert sorted(found) == [data.keys[1], data.keys[4]]
    assert "of fewer than 2 frames: sp0.9-u2" in caplog.text
    assert "2 of 5 utterances are left out: 1 without labels in 'y', 1 with labels for another number" in caplog.text
    assert "(sp0.9-u3 has 4 frames, and labels for 5): sp0.9-u0, sp0.9-u3" in caplog.text
    data.write("ali.txt", ali[1] + "\n")
    with pytest.raises(UserError, match=r"3 of 5 utterances of .*counts are unusable"):
        data.kaldi(labels={"mlfFile": f'"ark:{tmp_path}/ali.txt"'}, frameMode=False)


ERRORS = [
    ({"dim": 4}, {}, "dim is 4, but a frame of sp0.9-u0 in .*feats.scp has 3 values"),
    ({"rx": "gone"}, {}, "The file with the specifier, gone, cannot be opened"),
    ({"rx": '"scp:gone.scp"'}, {}, "The script file gone.scp cannot be opened"),
    ({"rx": '"scp:copy-feats scp:a ark:- |"'}, {}, "commands in specifiers are not executed"),
    ({"scpFile": '"FOLDER/feats.scp"'}, {}, "malformed path 'sp0.9-u0 .*feats.ark:9': a line is `key frames`"),
    ({"scpFile": '"FOLDER/other"'}, {}, "Missing features for: sp0.9-u9. It is listed in .*other, line 2"),
    (
        {"scpFile": '"FOLDER/wrong"'},
        {},
        r"The matrix of sp0.9-u0 \(.*feats.scp, line 1\) has 5 rows, but scpFile .* says 6",
    ),
    ({"contextWindow": 2}, {}, "not symmetrical"),
    ({"type": "category"}, {}, "features are of type real"),
    ({"type": "readerDeriv"}, {}, "sequence training with lattices is not supported"),
    ({}, {"labelDim": 3}, "Class 3 in the labels of .* exceeds the label dimension of 'y'"),
    ({}, {"labelType": "real"}, "labels of type 'real' are not supported"),
    ({}, {"mlfFile": '"ark:gunzip -c a.*.gz |"'}, "commands in specifiers are not executed"),
]


@pytest.mark.parametrize(("features", "labels", "message"), ERRORS, ids=[m for _, _, m in ERRORS])
def test_errors_of_streams(tmp_path: Path, features: dict[str, Any], labels: dict[str, Any], message: str) -> None:
    data = Corpus(tmp_path)
    data.write("other", "sp0.9-u0 5\nsp0.9-u9 5\n")
    data.write("wrong", "sp0.9-u0 6\nsp0.9-u1 9\n")
    here = {key: str(value).replace("FOLDER", str(tmp_path)) for key, value in features.items()}
    with pytest.raises(UserError, match=message):
        minibatches(data.kaldi(here, labels), 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seqTrainCriterion": "smbr"}, "sequence training with lattices is not supported"),
        ({"denlats": "[rx=a]"}, "sequence training with lattices is not supported"),
        ({"CSCTruncated": True, "frameMode": False}, "belongs to a modified CNTK"),
        ({"legacyMode": True}, "no longer supported"),
        ({"targets_delay": -1}, "-1 is not a number of frames"),
        ({"readMethod": "none"}, "none"),
        ({"truncated": True}, "mutually exclusive"),
        ({"nbruttsineachrecurrentiter": 2}, "frames have no parallel"),
    ],
)
def test_errors_of_the_reader(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Corpus(tmp_path).kaldi(**options)


def test_streams_of_different_numbers_of_utterances(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    data.write("few", "sp0.9-u0 5\n")
    with pytest.raises(UserError, match="lists 1 utterances, but that of 'x' lists 8"):
        data.kaldi(more=f';z=[dim=3;scpFile="{tmp_path}/few";rx="{tmp_path}/rx"]')


def test_the_first_kaldi_reader_reads_htk(tmp_path: Path) -> None:
    data = Corpus(tmp_path)
    x, y = (
        f'[dim={DIM};scpFile="{tmp_path}/htk.scp"]',
        f'[mlfFile="{tmp_path}/labels.mlf";labelMappingFile="{tmp_path}/states";labelDim={CLASSES}]',
    )
    reader = create_reader(f"readerType=KaldiReader;x={x};y={y}", "float")
    assert minibatches(reader, 10) == minibatches(data.htk(), 10)


def test_vectors_for_whole_utterances(tmp_path: Path) -> None:
    """An i-vector archive beside the features."""
    data = Corpus(tmp_path)
    data.write("iv.txt", "".join(f"{key}  [ {i} {i + 1} ]\n" for i, key in enumerate(data.keys)))
    text = f'[type=KaldiFeatureDeserializer;input=[x=[dim=3;rx="scp:{tmp_path}/feats.scp"]]]'
    text += f':[type=KaldiFeatureDeserializer;input=[v=[dim=2;rx="ark:{tmp_path}/iv.txt";expandToUtterance=true]]]'
    reader = create_reader(f"randomize=false;deserializers=({text})", "float")
    reader.start_minibatch_loop(1, 0)
    for i, n in enumerate(data.lengths):
        m = reader.get_minibatch()
        np.testing.assert_array_equal(m.streams["v"].reshape(-1, 2), np.tile([i, i + 1], (n, 1)))


@pytest.mark.parametrize("name", ["rx", "lab"])
def test_a_missing_table_is_told_with_the_file_that_names_it(tmp_path: Path, name: str) -> None:
    corpus = Corpus(tmp_path)
    corpus.write(name, "scp:nowhere.scp\n")
    with pytest.raises(UserError, match=r"nowhere.scp cannot be opened") as found:
        corpus.kaldi()
    assert found.value.notes == (f"named in {tmp_path}/{name}",)
