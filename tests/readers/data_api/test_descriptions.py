"""Descriptions of deserializers for MinibatchSource: what they say, what they refuse, HTK files joined with text."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cntkpy.readers import (
    CTFDeserializer,
    HTKFeatureDeserializer,
    HTKMLFBinaryDeserializer,
    HTKMLFDeserializer,
    ImageDeserializer,
    LatticeDeserializer,
    MinibatchSource,
    StreamDef,
    StreamDefs,
    UserMinibatchSource,
    Value,
    sequence_to_cntk_text_format,
)
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.transforms import crop


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: CTFDeserializer("f", StreamDefs(x=StreamDef(field="x"))), "dimension of stream x"),
        (lambda: CTFDeserializer("f", StreamDefs(x=StreamDef(field="x", shape=(2, 3)))), "must be a whole number"),
        (lambda: CTFDeserializer("f", {"x": {"field": "x"}}), "streams must be StreamDefs"),
        (
            lambda: CTFDeserializer("f", StreamDefs(w=StreamDef(field="a", shape=1), W=StreamDef(field="b", shape=1))),
            "w and W differ in letter case only",
        ),
        (lambda: ImageDeserializer("f", StreamDefs(x=StreamDef(field="pixels"))), "allowed are 'image' and 'label'"),
        (lambda: ImageDeserializer("f", StreamDefs()), "'image' or 'label'"),
        (lambda: HTKFeatureDeserializer(StreamDefs()), "no feature streams found"),
        (lambda: HTKFeatureDeserializer(StreamDefs(x=StreamDef(shape=3))), "no scp file"),
        (lambda: HTKFeatureDeserializer(StreamDefs(x=StreamDef(field="x", scp="s", shape=3))), "has no field"),
        (lambda: HTKMLFDeserializer(None, StreamDefs(y=StreamDef(shape=3))), "no mlf file"),
        (lambda: HTKMLFDeserializer(None, StreamDefs(x=StreamDef(mlf="m"), y=StreamDef(mlf="n"))), "has one stream"),
        (lambda: HTKMLFBinaryDeserializer(StreamDefs()), "has one stream, not 0"),
        (
            lambda: MinibatchSource(HTKMLFBinaryDeserializer(StreamDefs(y=StreamDef(mlf="m", shape=2)))),
            "binary label files are not supported",
        ),
        (
            lambda: MinibatchSource(LatticeDeserializer("toc", StreamDefs(y=StreamDef()))),
            "attice",
        ),
    ],
)
def test_wrong_descriptions(make, part):
    with pytest.raises(ValueError, match=part):
        make()


def test_descriptions_of_speech():
    streams = StreamDefs(
        x=StreamDef(scp="a.scp", shape=33, context=(5, 6), broadcast=True, defines_mb_size=True),
        z=StreamDef(scp="b.scp", shape=2, max_sequence_length=9),
    )
    x, z = HTKFeatureDeserializer(streams)
    assert x == {
        "type": "HTKFeatureDeserializer",
        "input": {
            "x": {
                "scpFile": "a.scp",
                "dim": 33,
                "contextWindow": "5:6",
                "expandToUtterance": True,
                "definesMBSize": True,
                "maxSequenceSize": 65535,
            }
        },
    }
    assert (z["input"]["z"]["contextWindow"], z["input"]["z"]["maxSequenceSize"]) == ("0:0", 9)
    one = HTKMLFDeserializer("states", StreamDefs(y=StreamDef(mlf="m", shape=4)), phoneBoundaries=True)
    assert one["input"]["y"] == {
        "mlfFile": "m",
        "labelDim": 4,
        "phoneBoundaries": True,
        "labelMappingFile": "states",
    }
    two = HTKMLFDeserializer(None, StreamDefs(y=StreamDef(mlf=["m", "n"], shape=4)))
    assert two["input"]["y"] == {"mlfFileList": ["m", "n"], "labelDim": 4, "phoneBoundaries": False}


def test_utterances_join_text_by_name_and_long_ones_are_left_out(files, caplog):
    from cntkpy.readers.formats.htk.archive import write_archive

    folder = files.folder
    frames = {"a": np.ones((2, 1)), "b": np.full((5, 1), 2.0), "c": np.full((1, 1), 3.0)}
    write_archive(str(folder / "u.ark"), frames.items(), str(folder / "u.scp"))
    x = StreamDef(scp=str(folder / "u.scp"), shape=1, max_sequence_length=4)
    features = HTKFeatureDeserializer(StreamDefs(x=x))
    words = CTFDeserializer(
        str(files.write("c |w 7\na |w 8\nb |w 9\n", "w.ctf")), StreamDefs(w=StreamDef(field="w", shape=1))
    )
    s = MinibatchSource([features, words], randomize=False, max_sweeps=1, trace_level=0)
    m = s.next_minibatch(10)
    assert [one.ravel().tolist() for one in m[s["x"]].as_sequences()] == [[1, 1], [3]]
    assert m[s["w"]].asarray().ravel().tolist() == [8, 7]
    assert "1 utterances of more than 4 frames are left out" in caplog.text


def test_truth_values_contexts_and_ratios_are_checked(tmp_path) -> None:
    (tmp_path / "a.ctf").write_text("|x 1\n")
    one = CTFDeserializer(str(tmp_path / "a.ctf"), StreamDefs(x=StreamDef(field="x", shape=1)))
    wrong = {
        "randomize is True or False, not 'no'": lambda: MinibatchSource(one, randomize="no"),
        "frame_mode is True or False, not 'no'": lambda: MinibatchSource(one, frame_mode="no"),
        "trace_level must be a whole number": lambda: MinibatchSource(one, trace_level="x"),
        "is .frames before, frames after., not 5": lambda: HTKFeatureDeserializer(
            StreamDefs(x=StreamDef(scp="a.scp", shape=3, context=5))
        ),
        "side_ratio: a number or a pair of numbers": lambda: crop("center", side_ratio="a"),
        "the number of classes must be a whole number, not 3.5": lambda: Value.one_hot([[1]], 3.5),
        "the number of classes must be at least 1": lambda: Value.one_hot([[1]], -3),
    }
    for message, make in wrong.items():
        with pytest.raises(ArgumentError, match=message):
            make()


def test_a_value_for_an_input_has_its_axes() -> None:
    class Variable:
        shape = (2, 3)

    for batch in (np.ones((4, 2, 3)), np.ones((2, 3)), [np.ones((5, 2, 3)), np.ones((1, 2, 3))], np.ones((4, 1, 2, 3))):
        Value.create(Variable, batch)
    for shape in ((4, 3, 2), (4, 6)):
        with pytest.raises(ArgumentError, match=rf"of shape {re.escape(str(shape))} .* have the shape \(2, 3\)"):
            Value.create(Variable, np.ones(shape))


def test_names_that_are_not_there_are_told_with_those_that_are() -> None:
    with pytest.raises(AttributeError, match="no attribute 'feature'; there are: features, labels"):
        _ = StreamDefs(features=1, labels=2).feature
    with pytest.raises(ArgumentError, match=r"samples are a dictionary .input: samples., not list"):
        sequence_to_cntk_text_format(0, [1])  # pyright: ignore[reportArgumentType]

    class WithoutStreams(UserMinibatchSource):
        def __init__(self):
            pass

    with pytest.raises(ArgumentError, match="the streams of WithoutStreams are not known"):
        _ = WithoutStreams().streams
