"""A writer without a file or without sections of nodes ends a run before its training, not after it (W15)."""

from __future__ import annotations

import pytest

CONFIG = """command = t
modelPath = m/model
t = [ action = train:write ; outputNodeNames = HLast
 SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerSample = 0.1 ]
 SimpleNetworkBuilder = [ layerSizes = 2:1 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
 reader = [ file = d.ctf ; input = [ features = [dim=2;format=dense] ; labels = [dim=1;format=dense] ] ]
 writer = [ %s ] ]
"""
DATA = {"d.ctf": "|features 1 2 |labels 3\n|features 4 5 |labels 6\n"}
BINARY = "wrecords = 2 ; HLast = [ sectionType = Data ; dim = 1 ]"


@pytest.mark.parametrize(
    ("writer", "message"),
    [
        ("wfile = o.bin", "the BinaryWriter has no section of a node to write"),
        ("deserializers = ([type=CNTKTextFormatDeserializer;file=d.ctf])", "deserializers belong to a reader"),
        (f"wfile = o.bin ; {BINARY.partition(';')[2]}", "the number of records is missing"),
        (BINARY, "has no file to go to"),
        (f"wfile = o.bin ; {BINARY.replace('HLast', 'H2')}", "no section for the node 'HLast'"),
        ("writerType = HTKMLFWriter", "the HTKMLFWriter has no section of a node"),
        ("writerType = HTKMLFWriter ; h = [dim=1;scpFile=o.scp]", "no section for the node 'HLast'"),
        ("writerType = Kaldi2Writer", "the Kaldi2Writer has no section of a node"),
        ("writerType = LMSequenceWriter", "the LMSequenceWriter has no section of a node"),
        ("writerType = LUSequenceWriter", "the LUSequenceWriter has no section of a node"),
    ],
)
def test_writers_that_cannot_write(cntkpy, tmp_path, writer: str, message: str) -> None:
    files = DATA | {"main.cntk": CONFIG % writer}
    got = cntkpy("check", "main.cntk", files=files)
    assert got.code == 2 and message in got.out, got.out
    got = cntkpy("configFile=main.cntk")
    assert got.code == 2 and message in got.err, got.err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "writer",
    [
        f"wfile = o.bin ; {BINARY}",
        "writerType = HTKMLFWriter ; h = [nodeName=HLast;dim=1;scpFile=o.scp]",
        "writerType = Kaldi2Writer ; HLast = [dim=1;scpFile=o.scp]",
        "writerType = LMSequenceWriter ; HLast = [file=o;token=words]",
        "writerType = Mine ; module = mine",
    ],
)
def test_writers_that_can(cntkpy, writer: str) -> None:
    files = DATA | {"main.cntk": CONFIG % writer}
    assert cntkpy("check", "--select", "CK015", "--quiet", "main.cntk", files=files).out == ""


@pytest.mark.parametrize(
    ("form", "reader", "other"),
    [("binary", "CNTKBinaryReader", "BinaryReader"), ("cbf", "BinaryReader", "CNTKBinaryReader")],
)
def test_the_two_binary_formats(cntkpy, form: str, reader: str, other: str) -> None:
    """What `convert` writes into a file called .bin is read by another reader than its name suggests."""
    streams = ("--stream", "features:2", "--stream", "labels:1")
    assert cntkpy("convert", "d.ctf", "d.bin", "--to", form, *streams, files=DATA).code == 0
    got = cntkpy("preview", "main.cntk", files={"main.cntk": f"reader = [ readerType = {reader} ; file = d.bin ]"})
    assert got.code == 1
    assert f"readerType={other}" in got.err
    assert ("--to cbf" in got.err) == (form == "binary")
