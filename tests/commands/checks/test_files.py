"""Input files that are missing: which are needed, and what names several."""

from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config import parse
from cntkpy.readers.formats.binary.writer import BinaryWriter, plan_files

TRAIN = """\
command = train
modelPath = m
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 5 ; learningRatesPerSample = 0.02 ]
    reader = [ READER ]
]
"""
LABELS = (
    "labels=[dim=1;start=0;labelDim=2;labelType=Category;labelMappingFile=labels.map;sectionType=Labels;WHERE"
    "category=[dim=2;sectionType=CategoryLabels];mapping=[wrecords=2;elementSize=2;sectionType=LabelMapping]]"
)
CACHED = (
    f"readerType=UCIFastReader;file=data.txt;randomize=none;writerType=BinaryReader;wrecords=10;{LABELS};"
    "features=[dim=2;start=1;sectionType=Data;WHERE]"
)
FILES = {"data.txt": "".join(f"{i % 2} {i} {i * 0.25}\n" for i in range(10)), "labels.map": "0\n1\n"}


@pytest.mark.parametrize("several", [False, True])
def test_a_cache_without_its_source(several: bool, cntkpy, tmp_path: Path) -> None:
    """The binary file is used in place of the text, which may be gone, and so may the labels (G2)."""
    first, _, second = CACHED.partition(";features=")
    cached = f"{first.replace('WHERE', 'wfile=l.bin;')};features={second.replace('WHERE', 'wfile=f.bin')}"
    reader = cached if several else "wfile=c.bin;" + CACHED.replace("WHERE", "")
    with_text = cntkpy("configFile=m.cntk", files={"m.cntk": TRAIN.replace("READER", reader), **FILES})
    assert with_text.code == 0, with_text.err
    for name in FILES:
        (tmp_path / name).unlink()
        assert cntkpy("check", "m.cntk").out == "no problems in 1 configuration\n"
        again = cntkpy("configFile=m.cntk", "makeMode=false")
        assert again.code == 0, again.err
        epochs = [
            line.split("; epochTime")[0]
            for got in (with_text, again)
            for line in got.err.splitlines()
            if line.startswith("Finished Epoch")
        ]
        assert len(epochs) == 2
        assert epochs[0] == epochs[1]
    (tmp_path / ("l.bin" if several else "c.bin")).unlink()
    assert "'data.txt': no such file" in cntkpy("check", "m.cntk").out
    assert "'data.txt': no such file" in cntkpy("configFile=m.cntk", "makeMode=false").err


FORMS = ("f.bin:l.bin", "(f.bin:l.bin)", "(;f.bin;l.bin)", '("f.bin":"l.bin")', '"f.bin,l.bin"', "{\nf.bin\nl.bin\n}")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sampled
def test_an_array_of_binary_files(form: str, cntkpy, tmp_path: Path) -> None:
    """In any form of an array (G3)."""
    config = TRAIN.replace("READER", f"readerType=BinaryReader;file={form}")
    plan = plan_files(
        parse(
            f'wrecords=4;features=[wfile="{tmp_path}/f.bin";sectionType=Data;dim=2];'
            f'labels=[wfile="{tmp_path}/l.bin";sectionType=CategoryLabels;dim=2]'
        ),
        np.dtype(np.float32),
    )
    writer = BinaryWriter(plan)
    writer.save({"features": np.eye(4, 2), "labels": np.eye(2)[[0, 1, 1, 0]]})
    writer.close()
    assert cntkpy("check", "m.cntk", files={"m.cntk": config}).out == "no problems in 1 configuration\n"
    got = cntkpy("configFile=m.cntk")
    assert got.code == 0, got.err
    (tmp_path / "l.bin").unlink()
    assert "'l.bin': no such file" in cntkpy("check", "m.cntk").out


def test_a_name_with_a_colon(cntkpy) -> None:
    """It is one file if it is there."""
    config = TRAIN.replace(
        "READER", "readerType=HTKMLFReader;features=[dim=2;scpFile=a:b.scp];labels=[dim=2;mlfFile=l]"
    )
    found = cntkpy("check", "m.cntk", files={"m.cntk": config, "a:b.scp": "x=y[0,1]\n", "l": "#!MLF!#\n"})
    assert "no such file" not in found.out


@pytest.mark.parametrize("name", ["train.txt", "train-*.txt", "CNTKTextFormatReader.txt"])
def test_data_called_like_the_action_are_missing_inputs(name: str, cntkpy) -> None:
    streams = "input = [ a = [ dim = 1 ; format = dense ] ]"
    reader = f"reader = [ readerType = CNTKTextFormatReader ; file = {name} ; {streams} ]"
    criteria = "trainingCriterion = SquareError ; evalCriterion = SquareError"
    builder = f"SimpleNetworkBuilder = [ layerSizes = 1:1 ; {criteria} ]"
    text = f"command = t\nt = [ action = train ; modelPath = m\n{reader}\n{builder} ; SGD = [ maxEpochs = 1 ] ]\n"
    missing = f"no file matches '{name}'" if "*" in name else f"'{name}': no such file"
    result = cntkpy("check", "--data", "a.cntk", files={"a.cntk": text})
    assert f"a.cntk:3:55: error: a.cntk:t:reader:file: {missing}" in result.out
    assert f"a.cntk:3:55: hint: a.cntk:t:reader:file: {missing}" in cntkpy("check", "a.cntk").out


OF_TWO = """\
command = train:test
modelPath = m
input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; STREAM ] ]
reader = [ file = train.ctf ]
train = [ action = train ; SGD = [ maxEpochs = 1 ; learningRatesPerSample = 0.02 ]
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ] ]
test = [ action = test ; reader = [ file = NAME ] ]
"""


@pytest.mark.parametrize("name", ["y.ctf", "yes/test.ctf", "more.ctf"])
def test_a_missing_file_that_begins_as_a_model_or_a_stream(name: str, cntkpy) -> None:
    """A missing file is an error after a command that writes the model `m` and reads a stream `y`."""
    text = OF_TWO.replace("NAME", name).replace("STREAM", "format = dense ; alias = y")
    files = {"m.cntk": text, "train.ctf": "|features 1 0 |y 1 0\n"}
    checked = cntkpy("check", "--data", "m.cntk", files=files)
    assert f"m.cntk:7:44: error: m.cntk:test:reader:file: '{name}': " in checked.out
    run = cntkpy("configFile=m.cntk")
    assert run.code == 2
    assert f"test:reader:file: '{name}': " in run.err
    assert "Finished Epoch" not in run.err


@pytest.mark.parametrize("name", ["out/m.z", "out/m/z.ctf"])
def test_what_a_command_may_write(name: str, cntkpy) -> None:
    """Outputs of a command are files after a point, and those in a folder."""
    text = OF_TWO.replace("NAME", name).replace("STREAM", "format = dense").replace("modelPath = m", "modelPath=out/m")
    checked = cntkpy("check", "--data", "m.cntk", files={"m.cntk": text, "train.ctf": "|features 1 0 |labels 1 0\n"})
    assert "error" not in checked.out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "|features 1 0 |labels 0;1",
            "m.cntk:3:19: error: line 1 of 'train.ctf': the stream 'labels' has '0;1', which is ",
        ),
        (
            "|features x 0 |labels 0:1",
            "m.cntk:3:19: error: line 1 of 'train.ctf': the stream 'features' has 'x', which is ",
        ),
        (
            "|features 1 0 |labels 0 1",
            "m.cntk:2:83: error: line 1 of 'train.ctf': the values of the stream 'labels' are dense: ",
        ),
        (
            "|features 1 0 |labels 0 :1",
            "'0', which is not index:value - no blank stands between an index, its colon and its value: 0:1",
        ),
    ],
)
def test_values_that_are_of_no_format(line: str, told: str, cntkpy) -> None:
    """Only a number is dense, only `index:value` is sparse."""
    text = OF_TWO.replace("NAME", "train.ctf").replace("STREAM", "format = sparse").replace("modelPath = m\n", "")
    text = text.replace("train:test", "train ; modelPath = m")
    checked = cntkpy("check", "--data", "m.cntk", files={"m.cntk": text, "train.ctf": line + "\n"})
    assert told in checked.out
