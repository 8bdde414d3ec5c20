"""Kaldi archives in programs give what the same data give as HTK files."""

from pathlib import Path

import numpy as np
import pytest

from cntkpy.readers import (
    HTKFeatureDeserializer,
    HTKMLFDeserializer,
    KaldiFeatureDeserializer,
    KaldiLabelDeserializer,
    MinibatchSource,
    StreamDef,
    StreamDefs,
)
from cntkpy.readers.errors import ArgumentError, DataError

from .speech import CLASSES, DIM, Corpus


def minibatches(*deserializers):
    source = MinibatchSource(list(deserializers), max_sweeps=1)
    while found := source.next_minibatch(16):
        for name in ("x", "y"):
            for one in found[source[name]].as_sequences():
                yield np.asarray(one if name == "x" else one.todense())


@pytest.mark.parametrize("scp", ["{}/feats.scp", "scp:{}/feats.scp", "ark:{}/feats.ark"])
def test_the_same_as_htk(scp: str, tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    x, y = (
        StreamDef(scp=f"{tmp_path}/htk.scp", shape=DIM, context=(1, 0)),
        StreamDef(mlf=f"{tmp_path}/labels.mlf", shape=CLASSES),
    )
    htk = [HTKFeatureDeserializer(StreamDefs(x=x)), HTKMLFDeserializer(f"{tmp_path}/states", StreamDefs(y=y))]
    x = StreamDef(scp=scp.format(tmp_path), shape=DIM, context=(1, 0))
    y = StreamDef(mlf=f"ark:{tmp_path}/ali.ark", shape=CLASSES)
    kaldi = [KaldiFeatureDeserializer(StreamDefs(x=x)), KaldiLabelDeserializer(None, StreamDefs(y=y))]
    found, expected = list(minibatches(*kaldi)), list(minibatches(*htk))
    assert len(found) == 2 * len(corpus.keys)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_they_refuse() -> None:
    with pytest.raises(ArgumentError, match="KaldiFeatureDeserializer: no scp file for stream x"):
        KaldiFeatureDeserializer(StreamDefs(x=StreamDef(shape=3)))
    with pytest.raises(ArgumentError, match="stream y has 2 archives"):
        KaldiLabelDeserializer(None, StreamDefs(y=StreamDef(mlf=["a", "b"], shape=3)))


def test_values_of_frames_in_text(tmp_path: Path) -> None:
    """D10: a row of text may be a vector with a value for each frame; the message says how it is read so."""
    path = tmp_path / "v.ark"
    path.write_text("u1 [ 1 0 1 1 ]\nu2 [ 0 1 ]\n")
    with pytest.raises(DataError, match="has 2 columns, but the first matrix of the table says 4") as caught:
        source(path, 4).next_minibatch(16)
    assert caught.value.hint == "a vector is one frame; with shape=1, each of its values is"
    made = source(path, 1)
    values = [one.ravel().tolist() for one in made.next_minibatch(16)[made["x"]].as_sequences()]
    assert values == [[1, 0, 1, 1], [0, 1]]


def source(path: Path, shape: int) -> MinibatchSource:
    features = KaldiFeatureDeserializer(StreamDefs(x=StreamDef(scp=f"ark:{path}", shape=shape)))
    return MinibatchSource(features, randomize=False, max_sweeps=1)
