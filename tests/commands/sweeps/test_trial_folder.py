"""The folder of a trial: outputs that move into it, logs of several runs, the criterion in the events."""

import json
import os
from pathlib import Path

import pytest
import small_classification as small

from cntkpy.cntk_config import ConfigError, load
from cntkpy.commands.sweeps.choices import read_words
from cntkpy.commands.sweeps.criterion import Progress, choose_criterion
from cntkpy.commands.sweeps.outputs import moving_words, outside, scripts
from cntkpy.commands.sweeps.trial_folder import Follower, TrialFolder, seconds_of

MORE = """
test = [ action = test ; modelPath = $RunDir$/m.2 ]
answers = [ action = write ; outputPath = $RunDir$/out/answers ; outputNodeNames = z ]
unlisted = [ action = write ; outputPath = $RunDir$/other ]
edit = [ action = edit ; editPath = a.mel ]
RunDir = run
doneFile = run/done
also = run/m
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in small.files(MORE).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "a.mel").write_text("m = LoadModel(run/m)\n")
    return tmp_path


WORDS = ["configFile=m.cntk", "command=train:test:answers"]


def test_outputs_move_and_what_names_them(here: Path) -> None:
    folder = here / "s" / "0"
    words = moving_words(load(WORDS), folder)
    assert sorted(words) == sorted(
        [
            f'modelPath="{folder}/m"',
            f'test=[modelPath="{folder}/m.2"]',
            f'answers=[outputPath="{folder}/out/answers"]',
            f'doneFile="{folder}/done"',
            f'also="{folder}/m"',
        ]
    )
    root = load([*WORDS, *words])
    assert outside(root, folder) == [] and outside(load(WORDS), folder) == ["run/done", "run/m", "run/out/answers"]
    assert root.section("test")("modelPath") == f"{folder}/m.2"
    assert root.section("unlisted")("outputPath") == "run/other"


def test_an_output_in_another_folder_keeps_its_place(here: Path) -> None:
    words = moving_words(load([*WORDS, f"modelPath={here}/elsewhere/x/m"]), here / "s")
    assert f'modelPath="{here}/s/elsewhere/x/m"' in words and f'doneFile="{here}/s/run/done"' in words


def test_outputs_in_other_brackets(here: Path) -> None:
    """Braces hold a section; of round brackets only a reader could say whether they hold a list."""
    more = "answers={action=write;outputPath=run/x;outputNodeNames=z}"
    root = load(["configFile=m.cntk", "command=train:answers", more])
    words = moving_words(root, here / "s")
    assert f'answers=[outputPath="{here}/s/x"]' in words
    moved = load(["configFile=m.cntk", "command=train:answers", more, *words])
    assert outside(moved, here / "s") == [] and moved.section("answers")("outputNodeNames") == "z"


def test_an_output_that_cannot_move_is_an_error(cntkpy, here: Path) -> None:
    files = small.files("answers = ( action = write ; outputPath = run/x ; outputNodeNames = z )\n")
    words = ("sweep", "m.cntk", "command=train:answers", "train/SGD/maxEpochs=1,2")
    got = cntkpy(*words, files=files)
    assert got.code == 2 and "'run/x' would be written by every trial" in got.err and "help: write its path" in got.err
    assert got.err.count("run/x") == 1 and not (here / "sweeps").exists()


@pytest.mark.parametrize("name", ['a"b', "a$b", "a\nb"])
def test_a_folder_that_cannot_be_quoted(here: Path, name: str) -> None:
    with pytest.raises(Exception, match="a character in its name that a configuration cannot quote"):
        moving_words(load(WORDS), here / name)


def test_scripts_are_named(here: Path) -> None:
    assert scripts(load(WORDS)) == [] and scripts(load([*WORDS, "command=train:edit"])) == ["edit"]


def test_words_and_the_resolved_configuration(here: Path) -> None:
    Path("sub").mkdir()
    folder = TrialFolder(here / "s" / "3")
    lock = folder.claim()
    assert lock is not None and folder.claim() is None
    os.close(lock)
    space = read_words([*WORDS, "train/SGD/maxEpochs=1,2"])
    words = folder.words(space, {"train/SGD/maxEpochs": "2"})
    assert words[:3] == [*WORDS, "train/SGD/maxEpochs=2"] and f'stderr="{folder.log}"' in words
    assert Path.cwd() == here
    again = load([f"configFile={folder.path / 'config.resolved.cntk'}"])
    assert again("modelPath") == str(folder.path / "m")
    assert again.section("train").section("SGD")("maxEpochs") == "2"
    removing = read_words([*WORDS, "train/SGD/momentumPerMB=default,0.5"])
    folder.words(removing, {"train/SGD/momentumPerMB": "default"})
    again = load([f"configFile={folder.path / 'config.resolved.cntk'}"])  # D15: it was `momentumPerMB = ""`
    assert not again.section("train").section("SGD").exists("momentumPerMB")
    again = load(["currentDirectory=sub", *folder.words(space, {"train/SGD/maxEpochs": "1"})[1:], "modelPath=x"])


def events(*numbers: int) -> str:
    return "".join(
        json.dumps({"event": "epoch finished", "command": "train", "epoch": n, "seconds": 0.5, "nodes": {"ce": 1 / n}})
        + "\n"
        for n in numbers
    )


def test_logs_of_several_runs_are_one(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    folder.begin()
    folder.log.write_text("first\n")
    folder.events.write_text(events(1, 2) + '{"event": "epo')
    assert not folder.is_completed()
    folder.begin()
    assert not folder.log.exists() and seconds_of(folder.earlier_events()) == 1.0
    folder.log.write_text("second\n")
    folder.events.write_text(events(3))
    folder.begin()
    folder.log.write_text("third\nCOMPLETED.\n")
    folder.events.write_text(events(4))
    assert folder.is_completed()
    assert [event["epoch"] for event in folder.all_events()] == [1, 2, 3, 4]
    for _ in range(2):  # a process that was killed in between does it once more
        folder.end(True)
        assert folder.log.read_text() == "first\nsecond\nthird\nCOMPLETED.\n"
        assert [json.loads(line)["epoch"] for line in folder.events.read_text().splitlines() if line[-1] == "}"] == [
            1, 2, 3, 4,
        ]  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.jsonl"]


def test_what_was_kept_aside_is_kept_once(tmp_path: Path) -> None:
    """The process is killed after the old log was kept aside, before it was removed; or after it was put back."""
    folder = TrialFolder(tmp_path)
    folder.log.write_text("first\n")
    (tmp_path / "log.before").write_text("first\n")
    folder.begin()
    assert (tmp_path / "log.before").read_text() == "first\n" and not folder.log.exists()
    folder.log.write_text("first\nsecond\n")
    folder.end(True)
    assert folder.log.read_text() == "first\nsecond\n"


def test_events_are_followed_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    follower = Follower(path)
    assert list(follower.new()) == []
    text = events(1, 2)
    path.write_text(text[:-20])
    assert [event["epoch"] for event in follower.new()] == [1]
    path.write_text(text + "no object\n[1]\n")
    assert [event["epoch"] for event in follower.new()] == [2]
    assert list(follower.new()) == []


def test_the_error_of_a_run(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    assert folder.error(3) == "the run ended with exit status 3"
    (tmp_path / "output").write_text("Traceback\nImportError: no\n")
    assert folder.error(1) == "ImportError: no"
    folder.log.write_text("x\nEXCEPTION occurred: bad\n  help: good\n")
    assert folder.error(1) == "bad\n  help: good"


# ---- the criterion


def test_the_criterion_of_a_configuration(here: Path) -> None:
    root = load([*WORDS, "train=[cvReader=[readerType=CNTKTextFormatReader]]"])
    assert str(choose_criterion(root, "")) == "criterion of train, validation data"
    assert str(choose_criterion(load(WORDS), "err")) == "err of train, training data"
    assert str(choose_criterion(root, "test")) == "criterion of test"
    assert str(choose_criterion(root, "TEST:err")) == "err of test"
    with pytest.raises(ConfigError, match="no command 'tset' is listed"):
        choose_criterion(root, "tset:err")
    with pytest.raises(ConfigError, match="no command of the configuration trains"):
        choose_criterion(load([*WORDS, "command=test"]), "")


def test_what_events_say(here: Path) -> None:
    def said(validates: bool, text: str, *events: dict) -> tuple[list, float | None, int]:
        more = ["train=[cvReader=[readerType=CNTKTextFormatReader]]"] if validates else []
        progress = Progress(choose_criterion(load([*WORDS, *more]), text))
        return [one for event in events if (one := progress.observe(event))], progress.value, progress.epochs

    trained = {"event": "epoch finished", "command": "train", "epoch": 1, "nodes": {"ce": 0.5, "err": 0.25}}
    validated = {"event": "validation", "command": "Train", "epoch": 1, "nodes": {"ce": 0.75, "err": 0.5}}
    final = {"event": "final results", "command": "test", "nodes": {"ce": 2, "err": 1}}
    every = (trained, {**final, "command": "train"}, validated, final)
    assert said(False, "", *every) == ([(1, 0.5)], 0.5, 1)
    assert said(True, "", *every) == ([(1, 0.75)], 0.75, 1)
    assert said(True, "ERR", *every) == ([(1, 0.5)], 0.5, 1)
    assert said(True, "test:err", *every) == ([], 1.0, 1)
    assert said(True, "none", *every) == ([], None, 1)
    assert said(False, "", {**trained, "nodes": {"ce": None}}) == ([], None, 1)  # a number that is not finite
