"""Files that a run is going to write: folders in their place, and folders that nobody makes."""

from pathlib import Path

import pytest

TEXT = """command = dump
modelPath = m
dump = [ action = dumpNode ; outputFile = run/nodes.txt ]
"""


@pytest.mark.parametrize(
    ("words", "finding"),
    [
        (["stderr=out"], "error: m.cntk:stderr: 'out' cannot be written: there is a folder of that name"),
        (["stderr=file/log"], "error: m.cntk:stderr: 'file/log' cannot be written: "),
        (["stderr=out", "timestamping=true"], ""),  # the log is out_dump.log
        (["stderr=-"], ""),
        (["stderr=/dev/null"], ""),
        (["dump/outputFile=out"], "error: m.cntk:dump:outputFile: 'out' cannot be written: there is a folder of"),
        (["doneFile=out"], "error: m.cntk:doneFile: 'out' cannot be written: there is a folder of that name"),
        (["doneFile=none/done"], "warning: m.cntk:doneFile: 'none/done' cannot be written: nothing makes the folder"),
        (["doneFile=run/done"], ""),  # the action makes the folder
        (["doneFile=log/done", "stderr=log/x"], ""),
    ],
)
def test_what_cannot_be_written(cntkpy, tmp_path: Path, words: list[str], finding: str) -> None:
    (tmp_path / "out").mkdir()
    got = cntkpy("check", "--select", "CK07", "m.cntk", *words, files={"m.cntk": TEXT, "file": ""})
    assert (finding in got.out) if finding else "no problems" in got.out, got.out


def test_an_output_over_the_model_that_is_read(cntkpy) -> None:
    got = cntkpy(
        "check", "--select", "CK07", "m.cntk", "dump/outputFile=./m", files={"m.cntk": TEXT, "m": "", "file": ""}
    )
    assert "m.cntk:dump:outputFile: './m' would be written over, and the run reads it" in got.out


def test_a_log_file_that_is_a_folder_has_its_place(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    got = cntkpy("configFile=m.cntk", files={"m.cntk": TEXT + "stderr = out\n", "file": ""})
    assert (got.code, got.message) == (2, "cannot write the log file out: it is a folder, not a regular file")
    assert "--> m.cntk:4:10" in got.err
    got = cntkpy("configFile=m.cntk", "stderr=file/log")
    assert got.message.endswith("/file is a file, not a folder")


def test_a_finished_training_needs_no_folder(cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model may be in a folder of others, where nothing may be written."""
    for module in ("checks.files", "actions.training"):
        monkeypatch.setattr(f"cntkpy.commands.{module}.why_no_folder", lambda _: "nothing may be written there")
    text = """command = train
modelPath = m
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 1:1 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 1 ; learningRatesPerMB = 0.1 ]
    reader = [ readerType = CNTKTextFormatReader ; file = data
        input = [ features = [ dim = 1 ; format = dense ] ; labels = [ dim = 1 ; format = dense ] ] ] ]
"""
    files = {"m.cntk": text, "data": "|features 1 |labels 1\n"}
    assert (
        cntkpy("configFile=m.cntk", files=files).message
        == "m.cntk:train:modelPath: 'm' cannot be written: nothing may be written there"
    )
    got = cntkpy("configFile=m.cntk", files={"m": ""})
    assert got.code == 0, got.err
    assert "No further training is necessary." in got.err
    for word in ("makeMode=false", "modelPath=."):
        assert cntkpy("configFile=m.cntk", word).code == 2
