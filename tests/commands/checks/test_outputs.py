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


def test_a_log_file_that_is_a_folder_has_its_place(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    got = cntkpy("configFile=m.cntk", files={"m.cntk": TEXT + "stderr = out\n", "file": ""})
    assert (got.code, got.message) == (2, "cannot write the log file out: it is a folder, not a regular file")
    assert "--> m.cntk:4:10" in got.err
    got = cntkpy("configFile=m.cntk", "stderr=file/log")
    assert got.message.endswith("/file is a file, not a folder")
