"""What a stranger has put where a file is to be written: nothing else changes, and an error says what is there (A1).

Every command that writes files meets every kind of thing in the place of each of them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from cntkpy.cntk_config.base import writing
from cntkpy.cntk_config.base.diagnostics import UserError

CONFIG = """\
command = train
deviceId = cpu
modelPath = old/m
input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ]
reader = [ file = d.ctf ; cacheIndex = true ; input = $input$ ]
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction ; layerTypes = Sigmoid ; applyMeanVarNorm = false ]
    SGD = [ maxEpochs = 2 ; minibatchSize = 4 ; learningRatesPerMB = 0.1 ; keepCheckPointFiles = true ]
]
write = [ action = write ; outputPath = o ; outputNodeNames = HLast ; reader = [ file = d.ctf ; input = $input$ ] ]
htk = [ action = write ; outputNodeNames = HLast ; reader = [ file = d.ctf ; input = $input$ ]
    writer = [ writerType = HTKMLFWriter ; HLast = [ dim = 2 ; scpFile = names.scp ] ] ]
kaldi = [ action = write ; outputNodeNames = HLast ; reader = [ file = d.ctf ; input = $input$ ]
    writer = [ writerType = Kaldi2Reader ; HLast = [ dim = 2 ; scpFile = keys.txt ; Kaldicmd = "ark:k.ark" ] ] ]
binary = [ action = write ; minibatchSize = 4 ; outputNodeNames = HLast ; reader = [ file = d.ctf ; input = $input$ ]
    writer = [ writerType = BinaryWriter ; wrecords = 8 ; wfile = one.bin
        HLast = [ sectionType = Data ; dim = 2 ] ] ]
unroll = [ action = testUnroll ; path2EvalResults = results ; reader = [ file = d.ctf ; input = $input$ ] ]
dump = [ action = dumpNode ; outputFile = dump.txt ]
edit = [ action = edit ; editPath = e.mel ]
plot = [ action = plot ; outputDotFile = p.dot ; outputFile = p.svg ]
words = [ action = writeWordAndClass ; inputFile = t.txt ; beginSequence = "</s>" ; endSequence = "</s>"
    outputVocabFile = v.txt ; outputWord2Cls = c.txt ; outputCls2Index = i.txt ; outputMappingFile = map.txt
    vocabSize = 5 ; cutoff = 0 ; nbrClass = 2 ]
map = [ action = createLabelMap ; section = uci ]
uci = [ reader = [ readerType = UCIFastReader ; file = data.txt ; randomize = none
    features = [ dim = 2 ; start = 1 ] ; labels = [ dim = 1 ; start = 0 ; labelMappingFile = labels.map ] ] ]
"""
FILES = {
    "m.cntk": CONFIG,
    "d.ctf": "|features 1 0 |labels 1 0\n|features 0 1 |labels 0 1\n" * 4,
    "e.mel": "m = LoadModel(old/m)\nSaveModel(m, new.dnn)\nDumpModel(m, dumped.txt)\n",
    "t.txt": "</s> a b c a </s>\n</s> b </s>\n</s> c c b </s>\n",
    "data.txt": "oak 1 2\nash 3 4\nfir 7 8\n",
    "w.csv": "a,b,kind\n1,2,x\n3,4,y\n",
    "lines.cntk": "a=1\nb   =   [ c=2 ]\n",
    "keys.txt": "".join(f"{k}\n" for k in range(8)),
    "names.scp": "".join(f"u{k}.mfc\n" for k in range(8)),
}
PRECIOUS = "precious\n"


class Row(NamedTuple):
    """A command.

    Attributes:
        words: it.
        places: what it writes.
        optional: it can do without these files.
        chosen: cntkpy chooses their names.
        keeps: it may leave what is there, and do nothing.
    """

    words: list[str]
    places: list[str]
    optional: bool = False
    chosen: bool = False
    keeps: bool = False


def run(*words: str) -> list[str]:
    return ["configFile=m.cntk", *words]


NEW = "modelPath=new/m"
CONVERT = ["convert", "-q", "d.ctf"]
ROWS = {
    "lock": Row(run(NEW), ["new/.m.lock"]),
    "model": Row(run(NEW, "makeMode=false"), ["new/m"]),
    "epochs": Row(run(NEW, "makeMode=false"), ["new/m.0", "new/m.1", "new/m.1.ckp", "new/m.ckp"], chosen=True),
    "index": Row(run(NEW), ["d.ctf._.0.0.0.v7.cache"], optional=True, chosen=True),
    "log": Row(run("stderr=log", "command=unroll"), ["log"]),
    "events": Row(run("stderr=log", "logFormat=json", "command=unroll"), ["log.jsonl"]),
    "done": Row(run("doneFile=done", "command=unroll"), ["done"]),
    "write": Row(run("command=write"), ["o.HLast"]),
    "htk": Row(run("command=htk"), ["u0.mfc", "u7.mfc"]),
    "kaldi": Row(run("command=kaldi"), ["k.ark"]),
    "binary": Row(run("command=binary"), ["one.bin"]),
    "unroll": Row(run("command=unroll"), ["results"]),
    "dump": Row(run("command=dump"), ["dump.txt"]),
    "edit": Row(run("command=edit"), ["new.dnn", "dumped.txt"]),
    "picture": Row(run("command=plot"), ["p.dot", "p.svg"]),
    "words": Row(run("command=words"), ["v.txt", "c.txt", "i.txt", "map.txt"]),
    "map": Row(run("command=map"), ["labels.map"], keeps=True),
    "ctf": Row([*CONVERT, "c.ctf"], ["c.ctf"]),
    "npz": Row([*CONVERT, "c.npz"], ["c.npz"]),
    "uci": Row([*CONVERT, "c.uci"], ["c.uci"]),
    "cbf": Row([*CONVERT, "c.cbf"], ["c.cbf"]),
    "bin": Row([*CONVERT, "c.bin"], ["c.bin"]),
    "scp": Row(
        [*CONVERT, "c.scp", "--stream", "labels:2:class", "--stream", "features:2"], ["c.scp", "c.ark", "c.mlf"]
    ),
    "ark": Row(
        [*CONVERT, "c.ark", "--stream", "labels:2:class", "--stream", "features:2"],
        ["c.ark", "c.labels.ark", "c.counts"],
    ),
    "classes": Row(["convert", "-q", "w.csv", "w.ctf", "--labels", "kind"], ["w.ctf", "w.labels.txt"]),
    "format": Row(["format", "lines.cntk"], ["lines.cntk"], keeps=True),
    "curves": Row(["plot", "old/log", "--out", "curves.svg"], ["curves.svg"]),
    "network": Row(["plot", "--network", "m.cntk", "train", "--out", "net.dot"], ["net.dot"]),
    "frames": Row(["preview", "m.cntk", "train", "--picture", "frames.svg"], ["frames.svg"]),
}


def link(place: Path, victim: Path) -> None:
    place.symlink_to(victim)


def dangling(place: Path, victim: Path) -> None:
    place.symlink_to(victim.with_name("missing"))


def hard_link(place: Path, victim: Path) -> None:
    place.hardlink_to(victim)


def pipe(place: Path, victim: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes with names here")
    os.mkfifo(place)


def folder_with_files(place: Path, victim: Path) -> None:
    place.mkdir()
    (place / "kept").write_text(PRECIOUS)


def link_to_a_device(place: Path, victim: Path) -> None:
    place.symlink_to("/dev/null")


OBSTACLES: list[Callable[[Path, Path], None]] = [link, dangling, hard_link, pipe, folder_with_files, link_to_a_device]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained model and a log."""
    from cntkpy.commands.cli import main

    path = tmp_path_factory.mktemp("base")
    for name, text in FILES.items():
        (path / name).write_text(text)
    with contextlib.chdir(path), contextlib.suppress(SystemExit):
        assert main(["configFile=m.cntk", "stderr=old/log", "reader=[cacheIndex=false]"]) == 0
    return path


@pytest.fixture
def folder(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of it; `dot` draws something; links belong to a stranger."""
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dot").write_text("#!/bin/sh\necho picture\n")
    (tmp_path / "bin" / "dot").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    trusted = writing._is_trusted
    monkeypatch.setattr(
        writing, "_is_trusted", lambda found, at: not stat.S_ISLNK(found.st_mode) and trusted(found, at)
    )
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "victim").write_text(PRECIOUS)
    yield tmp_path


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.sampled
def test_commands_write_where_they_should(row: str, folder: Path, cntkpy) -> None:
    """So that what follows speaks of the right files."""
    words, places, *_ = ROWS[row]
    before = (folder / "lines.cntk").read_text()
    got = cntkpy(*words)
    assert got.code == 0, got.err
    for place in places:
        if place != "new/.m.lock":
            assert (folder / place).stat().st_size, place
    assert ((folder / "lines.cntk").read_text() != before) == (row == "format")


QUICK = (link, pipe)
"""The obstacles that are tried by default; the others are `thorough`."""
CASES = [
    pytest.param(row, place, one, marks=[] if one in QUICK else pytest.mark.thorough)
    for row in ROWS
    for place in ROWS[row].places
    for one in OBSTACLES
]


@pytest.mark.parametrize("row, place, obstacle", CASES, ids=lambda one: getattr(one, "__name__", one))
@pytest.mark.sampled
def test_nothing_else_is_overwritten(
    row: str, place: str, obstacle: Callable[[Path, Path], None], folder: Path, cntkpy
) -> None:
    words, _, optional, chosen, keeps = ROWS[row]
    path, victim = folder / place, folder / "elsewhere" / "victim"
    if row == "format":
        victim.write_text(FILES[place])
    text = victim.read_text()
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    obstacle(path, victim)
    before = path.lstat()
    got = cntkpy(*words)
    assert victim.read_text() == text and victim.stat().st_mode == (folder / "d.ctf").stat().st_mode
    assert [one.name for one in victim.parent.iterdir()] == ["victim"]
    told = got.out + got.err + "".join(one.read_text() for one in folder.glob("log*") if one.is_file() and one != path)
    assert "Traceback" not in told, told
    after = path.lstat()
    if got.code == 0 and not ((optional or keeps) and after.st_ino == before.st_ino):
        assert chosen or obstacle is hard_link, "it was replaced"
        assert stat.S_ISREG(after.st_mode) and after.st_ino != before.st_ino and after.st_nlink == 1
    elif got.code:
        assert got.code in (1, 2)
        assert after.st_ino == before.st_ino
        line = next((one for one in told.splitlines() if place in one and re.search(WHY[obstacle], one)), None)
        assert line is not None, told
    if obstacle is folder_with_files:
        assert (path / "kept").read_text() == PRECIOUS
    assert not [one.name for one in folder.rglob("*.tmp")]


WHY: dict[Callable[[Path, Path], None], str] = {
    link: "link",
    dangling: "link|No such file",
    hard_link: "second name",
    pipe: "a pipe",
    folder_with_files: "folder",
    link_to_a_device: "link|a device",
}


def mean(name: str) -> None:
    from cntkpy.readers.formats.image.storage import write_mean

    write_mean(name, np.zeros((2, 2, 3)))


def save(name: str) -> None:
    import cntkpy.compat.cntk as C

    C.softmax(C.input_variable(2)).save(name)


def picture(name: str) -> None:
    import cntkpy.compat.cntk as C

    C.logging.graph.plot(C.softmax(C.input_variable(2)), name)


def printer(name: str) -> None:
    import cntkpy.compat.cntk as C

    C.logging.ProgressPrinter(freq=1, log_to_file=name)


def checkpoint(name: str) -> None:
    import cntkpy.compat.cntk as C

    f = C.softmax(C.input_variable(2) + C.parameter((2,), init=0))
    loss = C.reduce_sum(f)
    learner = C.sgd(f.parameters, C.learning_parameter_schedule(0.1))
    C.Trainer(f, (loss, loss), [learner]).save_checkpoint(name)


def edited(name: str) -> None:
    from mel_texts import edit_text

    edit_text(f'm = LoadModel("old/m")\nSaveModel(m, "{name}")\n')


CALLS: dict[Callable[[str], None], str] = {
    mean: "p.xml",
    save: "p.dnn",
    picture: "p.dot",
    printer: "p.log",
    checkpoint: "p.ckp",
    edited: "p.dnn",
}


@pytest.mark.parametrize("obstacle", [link, dangling, pipe, folder_with_files], ids=lambda one: one.__name__)
@pytest.mark.parametrize("call", CALLS, ids=lambda one: one.__name__)
def test_calls_in_python_neither(
    call: Callable[[str], None], obstacle: Callable[[Path, Path], None], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a program calls raises an error with the name of the file and with what is there."""
    monkeypatch.chdir(folder)
    path, victim = folder / CALLS[call], folder / "elsewhere" / "victim"
    obstacle(path, victim)
    before = path.lstat()
    with pytest.raises((UserError, OSError, ValueError), match=WHY[obstacle]) as caught:
        call(CALLS[call])
    assert CALLS[call] in str(caught.value)
    assert victim.read_text() == PRECIOUS and [one.name for one in victim.parent.iterdir()] == ["victim"]
    assert path.lstat().st_ino == before.st_ino


NAMES = {
    "a\0b": "NUL character",
    "a\ud800": "a character that no file name can have",
    "x" * 300: "too long",
    "x/" * 3000 + "x": "too long",
}


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:12])
@pytest.mark.parametrize("call", CALLS, ids=lambda one: one.__name__)
def test_names_that_no_file_can_have(
    call: Callable[[str], None], name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program gets an error that says what is wrong with the name (A5)."""
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    with pytest.raises((UserError, OSError, ValueError), match=NAMES[name]) as caught:
        call(name + Path(CALLS[call]).suffix)
    assert "\0" not in str(caught.value) and "embedded null" not in str(caught.value)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("call", CALLS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", ["a\x1b[31mb", "a\nb", "a\x07b"], ids=repr)
def test_control_characters_in_names(
    call: Callable[[str], None], name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file can have them in its name; a message shows them so that a terminal does nothing."""
    monkeypatch.chdir(folder)
    (folder / "file").touch()
    with pytest.raises((UserError, OSError, ValueError)) as caught:
        call(f"file/{name}{Path(CALLS[call]).suffix}")
    error = caught.value
    shown = error.diagnostic.render() if isinstance(error, UserError) else ""
    assert "\x1b" not in shown and "\x07" not in shown and "a\nb" not in shown
