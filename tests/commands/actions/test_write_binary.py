"""`action=write` with a BinaryWriter: what a network computes, read back by a BinaryReader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cntkpy.readers import create_reader

CONFIG = """
command = train:write:text
modelPath = m.dnn
deviceId = -1
reader = [ file = a.ctf ; input = [ features = [dim=2;format=dense] ; labels = [dim=2;format=dense] ] ]
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 2:3:2 ; trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction ; layerTypes = Sigmoid ; applyMeanVarNorm = false ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerSample = 0.1 ] ]
write = [ action = write ; minibatchSize = 2 ; outputNodeNames = PosteriorProb:HLast
    writer = [ writerType = BinaryWriter ; wrecords = 5 ; wfile = one.bin
        PosteriorProb = [ sectionType = Data ; dim = 2 ; values = [ sectionType = Stats ; compute = count:mean ] ]
        HLast = [ sectionType = Data ; dim = 2 ; wfile = two.bin ; wrecords = 5 ] ] ]
text = [ action = write ; outputPath = t ; outputNodeNames = PosteriorProb:HLast ]
"""
DATA = "".join(
    f"|features {a} {b} |labels {c} {1 - c}\n" for a, b, c in ((1, 2, 0), (3, 4, 1), (5, 6, 0), (7, 8, 0), (0, 0, 1))
)


def without_session(data: bytes) -> bytes:
    """The id of a writing session is in bytes 20 and 21."""
    return data[:20] + data[22:]


@pytest.mark.thorough
def test_outputs_come_back(cntkpy, tmp_path: Path) -> None:
    got = cntkpy("configFile=m.cntk", files={"m.cntk": CONFIG, "a.ctf": DATA})
    assert got.code == 0, got.err
    assert "Total Samples Evaluated = 5" in got.err
    reader = create_reader(f'readerType=BinaryReader ; file="{tmp_path}/one.bin,{tmp_path}/two.bin" ; wref=same')
    reader.start_minibatch_loop(10, 0)
    minibatch = reader.get_minibatch()
    assert minibatch is not None
    for name in ("PosteriorProb", "HLast"):
        assert np.allclose(minibatch.matrix(name).T, np.loadtxt(tmp_path / f"t.{name}"), atol=1e-6)
    reader.close()
    right = {name: (tmp_path / name).read_bytes() for name in ("one.bin", "two.bin")}
    got = cntkpy("configFile=m.cntk", "command=write", "write=[writer=[wrecords=9000]]")
    assert got.code == 0, got.err
    assert "one.bin has 5 records; wrecords had room for 9000." in got.err
    for name, data in right.items():
        assert without_session((tmp_path / name).read_bytes()) == without_session(data)
    for words, message in {
        "wrecords=4": "Section 'PosteriorProb' of one.bin has room for 4 records",
        "PosteriorProb=[dim=3]": "cannot be written to section 'PosteriorProb' with dim=3",
    }.items():
        before = (tmp_path / "one.bin").read_bytes()
        got = cntkpy("configFile=m.cntk", "command=write", f"write=[writer=[{words}]]")
        assert got.code == 1
        assert message in got.message
        assert (tmp_path / "one.bin").read_bytes() == before
    got = cntkpy("configFile=m.cntk", "command=write", "write=[outputNodeNames=PosteriorProb:H1]")
    assert got.code == 2 and "H1" in got.err + got.out, got  # before anything is written
