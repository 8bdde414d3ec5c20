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
from cntkpy.readers.errors import ArgumentError

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
