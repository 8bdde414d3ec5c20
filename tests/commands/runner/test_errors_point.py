"""Errors after the start have a place and a command (C2); the console has the last word (C3); code of users (C4)."""

from pathlib import Path

import jax
import pytest

from cntkpy.cntk_config import parse
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.commands.runner import run
from cntkpy.commands.runner.blame import changed_file, out_of_memory, placed
from cntkpy.readers.errors import DataError

CONFIG = """\
command = train:test
modelPath = run/m
reader = [ readerType = CNTKTextFormatReader ; file = data.ctf
    input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ] ]
test = [ action = test ]
"""
FILES = {"m.cntk": CONFIG, "data.ctf": "|features 1 0 |labels 1 0\n|features 0 1 |labels 0 1\n"}


def test_a_model_that_is_not_there(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", "command=test", "modelPath=nope", files=FILES)
    assert got.code == 2  # it is found before the command begins
    assert got.message == "there is no model nope"
    assert "  --> <argument 3>:1:11\n" in got.err


def test_data_that_do_not_fit(cntkpy) -> None:
    data = FILES["data.ctf"] + "|features 1 2 3 |labels 1 0\n"
    got = cntkpy("configFile=m.cntk", "command=train", files=FILES | {"data.ctf": data})
    assert got.code == 1, got.err
    assert "--> " in got.err
    assert "m.cntk:3:" in got.err
    assert "note: in command train" in got.err


def test_a_file_points_to_the_folder_that_is_named() -> None:
    """The parameter `ext` is in the message, too, but says less than the folder."""
    text = "w=[action=write;reader=[x=[dim=1]];writer=[writerType=HTKMLFWriter;z=[dim=2;path=out/a;ext=like]]]"
    error = UserError("CannotWrite", "out/a/u.like cannot be written: Permission denied")
    span = placed(error, parse(text).section("w"), "w", None).span
    assert span is not None
    assert span.column == 1 + text.index("out/a")


@pytest.mark.parametrize("word", ["test=[minibatchSize=0]", "train/SGD/trainCriterionNodeName=nope"])
def test_values_of_later_commands(word: str, cntkpy, tmp_path: Path) -> None:
    got = cntkpy("configFile=m.cntk", word, files=FILES)
    assert got.code == 2
    assert "--> <argument 2>:1:" in got.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError("Unable to allocate 3 TiB"), "this machine has not enough memory: Unable to allocate 3 TiB"),
        (
            jax.errors.JaxRuntimeError(
                "RESOURCE_EXHAUSTED: Failed to get configs for: 5 out of 22 instructions.\nOut of memory while trying "
                "to allocate 16.00MiB with allocator GPU_0_bfc on device 0. [tf-allocator-allocation-error='']"
            ),
            "the device has not enough memory: Out of memory while trying to allocate 16.00MiB with allocator "
            "GPU_0_bfc on device 0.",
        ),
    ],
)
def test_too_little_memory(error: Exception, message: str, cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(run, "run_action", fail)
    got = cntkpy("configFile=m.cntk", "command=train", files=FILES)
    assert got.code == 1
    assert got.message == message
    assert "m.cntk:5:" in got.err
    assert "help: a smaller minibatchSize needs less" in got.err
    assert "Traceback" not in got.err


def test_too_little_memory_before_a_command(cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(run, "_run", fail)
    got = cntkpy("configFile=m.cntk", files=FILES)
    assert got.code == 1
    assert got.message == "this machine has not enough memory"
    assert "Traceback" not in got.err


def test_other_errors_of_devices_are_defects() -> None:
    assert out_of_memory(jax.errors.JaxRuntimeError("INTERNAL: no")) is None


@pytest.mark.parametrize("words", [("check", "m.cntk"), ("configFile=m.cntk",)])
def test_a_folder_that_cannot_be_written(words: tuple[str, ...], cntkpy) -> None:
    got = cntkpy(*words, "modelPath=data.ctf/m", files=FILES)
    assert got.code == 2
    assert "data.ctf is a file, not a folder" in got.out + got.err or "not a folder" in got.out + got.err
    assert "1:11" in got.out + got.err


def test_the_console_has_the_last_word(cntkpy, tmp_path: Path) -> None:
    got = cntkpy("configFile=m.cntk", "command=test", "modelPath=nope", "stderr=logs/run", files=FILES)
    assert got.code == 2
    (log,) = (tmp_path / "logs").iterdir() if (tmp_path / "logs").exists() else [tmp_path / "logs"]
    assert "there is no model nope" in got.err
    assert got.err.splitlines()[-1] == f"The log is in logs/{log.name}"
    assert "there is no model nope" in log.read_text()


def test_the_banner_stands_once_on_standard_output(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", "command=train", "stderr=-", files=FILES)
    assert (got.out + got.err).count("cntkpy  configFile=m.cntk") == 1  # (C13)


READER = """
class Broken:
    def __init__(self, section, precision):
        self.limit = 1 // 0

class Empty:
    def __init__(self, section, precision):
        pass

class Wrong:
    streams, samples_per_sweep = (), 2
    def __init__(self, section, precision): pass
    def start_minibatch_loop(self, *given, **named): pass
    def get_minibatch(self): return {"features": [1]}
    def state(self): return {}
    def restore(self, state): pass
    def get_label_mapping(self, name): return {}
    def close(self): pass
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Broken", ["ZeroDivisionError: ", "own_readers.py:4, in __init__", "code of a plug-in or of your own"]),
        ("Empty", ["Empty is not a MinibatchReader: it lacks streams, samples_per_sweep, start_minibatch_loop"]),
        ("Wrong", ["Wrong.get_minibatch() returned dict, not a Minibatch or None"]),
    ],
)
def test_code_of_users(name: str, words: list[str], cntkpy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    reader = f"reader=[readerType={name};module=own_readers]"
    got = cntkpy("configFile=m.cntk", "command=train", reader, files=FILES | {"own_readers.py": READER})
    assert all(word in got.err for word in words), got.err
    assert "defect of cntkpy" not in got.err
    assert "commands/runner" not in got.err


def test_a_plus_sign_in_a_name(cntkpy) -> None:
    """The whole name counts where there is such a file (C11)."""
    got = cntkpy("check", "configFile=c++/m.cntk", files={"c++/m.cntk": CONFIG, "data.ctf": FILES["data.ctf"]})
    assert got.out == "no problems in 1 configuration\n"
    got = cntkpy("configFile=m+n/x.cntk", files=FILES)
    assert "a plus sign joins files" in got.err


def test_a_file_that_was_changed_after_the_command_began(tmp_path: Path) -> None:
    """The message blames the file, which may have been right when the reader looked at it."""
    file = tmp_path / "data.ctf"
    file.write_text("|x 1\n")
    changed = file.stat().st_ctime_ns
    error = DataError(f"{file} was cut short while it was read.", path=str(file))
    assert changed_file(error, changed - 1) == f"{file} was changed while this command ran"
    assert changed_file(error, changed) is None
    assert changed_file(UserError("CannotWrite", "no space"), 0) is None
    file.unlink()
    assert changed_file(error, 0) is None


@pytest.mark.parametrize("word", ["stderr=data.ctf", "doneFile=./data.ctf", "stderr=m.cntk"])
def test_a_log_over_a_file_that_the_run_reads(word: str, cntkpy, tmp_path: Path) -> None:
    got = cntkpy("configFile=m.cntk", word, files=FILES)
    assert got.code == 2
    assert "would be written over, and the run reads it" in got.message
    assert "--> <argument 2>:1:" in got.err
    assert {name: (tmp_path / name).read_text() for name in FILES} == FILES


def test_an_output_over_a_file_that_its_command_reads(cntkpy, tmp_path: Path) -> None:
    config = CONFIG.replace("train:test", "w").replace(
        "test = [ action = test ]",
        "w = [ action = writeWordAndClass ; inputFile = data.ctf ; outputVocabFile = data.ctf ]",
    )
    got = cntkpy("check", "m.cntk", files=FILES | {"m.cntk": config})
    assert "'data.ctf' would be written over" in got.out
