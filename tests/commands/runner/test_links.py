"""Links under the names of files that a run writes: what they lead to is not overwritten (A1)."""

import os
from pathlib import Path

import pytest

CONFIG = """\
command = train
modelPath = out/m
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 2 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ; keepCheckPointFiles = true ]
    reader = [ file = d.ctf ; cacheIndex = true
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ]
    ]
]
"""
DATA = "|features 1 0 |labels 1 0\n|features 0 1 |labels 0 1\n" * 4
FILES = {"m.cntk": CONFIG, "d.ctf": DATA, "victim": "precious\n"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path


def linked(folder: Path, name: str, hard: bool = False) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    (folder / "victim").write_text("precious\n")
    if hard:
        path.hardlink_to(folder / "victim")
    else:
        path.symlink_to(folder / "victim")


IN_PLACE = {
    "out/.m.lock": ((), "the lock out/.m.lock of the model out/m cannot be held"),
    "log": (("stderr=log",), "cannot write the log file log"),
    "log.jsonl": (("stderr=log", "logFormat=json"), "cannot write the log file log.jsonl"),
}


@pytest.mark.parametrize("hard", [False, True], ids=["link", "hard link"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_what_is_written_in_place_is_no_link(name: str, hard: bool, folder: Path, cntkpy) -> None:
    words, message = IN_PLACE[name]
    linked(folder, name, hard)
    got = cntkpy("configFile=m.cntk", *words, files=FILES)
    assert got.code in (1, 2)
    text = got.err + ((folder / "log").read_text() if name == "log.jsonl" else "")
    assert message in text and "link" in text and "remove" in text and "Traceback" not in text
    assert (folder / "victim").read_text() == "precious\n"
    assert [one.name for one in (folder / "out").iterdir()] in ([], [".m.lock"])


def test_a_dangling_link_creates_nothing(folder: Path, cntkpy) -> None:
    (folder / "out" / ".m.lock").symlink_to("../missing")
    assert cntkpy("configFile=m.cntk", files=FILES).code == 1
    assert not (folder / "missing").exists()


def test_a_link_to_a_pipe_does_not_hold_the_run(folder: Path, cntkpy) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes with names here")
    for name in ("out/.m.lock", "log"):
        os.mkfifo(folder / name)
    assert cntkpy("configFile=m.cntk", files=FILES).code == 1
    got = cntkpy("configFile=m.cntk", "stderr=log")
    assert got.code == 2 and "it is a pipe, not a regular file" in got.err


def test_links_under_names_that_a_run_chooses_are_replaced(folder: Path, cntkpy) -> None:
    """Checkpoints, models of epochs, the index of a text file: nobody has asked for these links."""
    names = ["out/m.ckp", "out/m.0.ckp", "out/m.1.ckp", "d.ctf._.0.0.0.v7.cache"]
    for name in names:
        linked(folder, name)
    assert cntkpy("configFile=m.cntk", "train=[SGD=[maxEpochs=2]]", files=FILES).code == 0
    assert (folder / "victim").read_text() == "precious\n"
    written = [name for name in names if not (folder / name).is_symlink()]
    assert len(written) >= 3, written


def test_a_link_of_mine_to_the_model_stays(folder: Path, cntkpy) -> None:
    (folder / "large").mkdir()
    (folder / "out" / "m").symlink_to("../large/m")
    assert cntkpy("configFile=m.cntk", files=FILES).code == 0
    assert (folder / "out" / "m").is_symlink() and (folder / "large" / "m").stat().st_size > 100


@pytest.mark.parametrize("words", [("doneFile=done",), ("stderr=done",)])
def test_a_link_is_found_before_the_run(words: tuple[str, ...], folder: Path, cntkpy) -> None:
    """Also the file that is written last, when everything was trained."""
    linked(folder, "done")
    for command in (("configFile=m.cntk",), ("check", "m.cntk")):
        got = cntkpy(*command, *words, files=FILES)
        assert got.code == 2 and "it is a link" in got.err + got.out, got.err
    assert not list((folder / "out").iterdir()) and (folder / "victim").read_text() == "precious\n"
    assert cntkpy("check", "m.cntk", "doneFile=/dev/null", "stderr=-").code == 0
