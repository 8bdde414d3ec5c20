"""Before the first command runs, all commands are looked at (B1, A17, A5): errors end the run, warnings are printed."""

from pathlib import Path

import pytest

from cntkpy.cntk_config import ConfigParameters
from cntkpy.commands.context.root import RootParameters
from cntkpy.commands.runner.run import run

CONFIG = """
command = train:test
modelPath = run/m
reader = [ readerType = CNTKTextFormatReader ; file = data.ctf
    input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ] ]
test = [ action = test ; reader = [ readerType = CNTKTextFormatReader ; file = data.ctf
    input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ] ]
"""
DATA = "|features 1 0 |labels 1 0\n|features 0 1 |labels 0 1\n"
SPEECH = "test=[reader=[readerType=HTKMLFReader;"
FILES = {"m.cntk": CONFIG, "data.ctf": DATA}


@pytest.mark.parametrize(
    ("word", "message"),
    {
        "unknown action": ("test=[action=tset]", "unknown action: tset"),
        "missing file": ("test=[reader=[file=none.ctf]]", "'none.ctf': no such file"),
        "missing file of an array": (
            f"{SPEECH}features=[scpFile=data.ctf:none.scp;dim=2];labels=[mlfFile=data.ctf;labelDim=2]]]",
            "'none.scp': no such file",
        ),
        "missing names": (
            f"{SPEECH}features=[scpFile=data.ctf;dim=2];labels=[mlfFile=data.ctf;labelDim=2;labelMappingFile=none]]]",
            "labelMappingFile: 'none': no such file",
        ),
        "unknown reader": ("test=[reader=[readerType=Nonsense]]", "Nonsense"),
        "wrong type": ("test=[minibatchSize=many]", "'many' is not an integer"),
    }.values(),
)
def test_a_mistake_of_the_last_command_ends_the_run_at_once(word: str, message: str, cntkpy, tmp_path: Path) -> None:
    got = cntkpy("configFile=m.cntk", word, files=FILES)
    assert (got.code, message in got.message) == (2, True), got.err
    assert "--> <argument 2>:1:" in got.err
    assert "train command" not in got.err
    assert not (tmp_path / "run").exists()


def test_all_errors_are_listed(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", "train=[SGD=[maxEpochs=x]]", "test=[action=tset]", files=FILES)
    assert got.code == 2
    assert "'x' is not an integer" in got.err
    assert "unknown action: tset" in got.err
    assert "2 errors in all" in got.err


def test_check_says_the_same(cntkpy) -> None:
    words = ("configFile=m.cntk", "train=[SGD=[maxEpochs=x ; maxEpoch=3]]", "test=[action=tset]")
    run, check = cntkpy(*words, files=FILES), cntkpy("check", *words)
    for line in check.out.splitlines()[:-1]:
        message = line.split(": ", 2)[2].split(" - ")[0].split(" [CK")[0]
        assert message in run.err


def test_a_file_that_a_command_before_writes(cntkpy) -> None:
    write = "write = [ action = write ; outputPath = made/out ]\ncommand = train:write:test\n"
    config = CONFIG + write + "test = [ reader = [ file = made/out.z ] ]\n"
    got = cntkpy("configFile=m.cntk", files=FILES | {"m.cntk": config})
    assert "write command" in got.err, got.err


def test_a_finished_training_opens_nothing(cntkpy, tmp_path: Path) -> None:
    assert cntkpy("configFile=m.cntk", "command=train", files=FILES).code == 0
    (tmp_path / "data.ctf").unlink()
    got = cntkpy("configFile=m.cntk", "command=train")
    assert got.code == 0, got.err
    assert "No further training is necessary" in got.err


def test_names_that_nothing_reads_are_warnings(cntkpy) -> None:
    more = "train=[SGD=[maxEpoch=1;foo=2]]"
    got = cntkpy("configFile=m.cntk+n.cntk", "command=train", files=FILES | {"n.cntk": more})
    assert got.code == 0
    warnings = [line for line in got.err.splitlines() if line.startswith("WARNING")]
    assert warnings == [
        "WARNING: n.cntk:1:13: warning: SGD: 'maxEpoch' is not a known parameter - did you mean 'maxEpochs'? [CK010]",
        "WARNING: n.cntk:1:24: warning: SGD: nothing reads 'foo' [CK011]",
    ]
    assert got.err.index(warnings[0]) < got.err.index("train command")


def test_ten_warnings_and_a_count(cntkpy) -> None:
    names = "".join(f"unheardOf{number}=1;" for number in range(25))
    files = FILES | {"n.cntk": f"train=[SGD=[{names}]]"}
    got = cntkpy("configFile=m.cntk+n.cntk", "command=train", files=files)
    assert got.code == 0
    assert got.err.count("nothing reads 'unheardOf") == 10
    assert "15 more" in got.err


@pytest.mark.parametrize("words", [("strict=true",), ("--strict",)])
def test_strict(words: tuple[str, ...], cntkpy, tmp_path: Path) -> None:
    files = FILES | {"n.cntk": "train=[SGD=[maxEpoch=1]]"}
    got = cntkpy("run", "configFile=m.cntk+n.cntk", *words, files=files)
    assert got.code == 2, got.err
    assert "'maxEpoch' is not a known parameter" in got.message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("word", ["train=[SGD=[learningRatesPerMB=0.1,0.2]]", "reader=[file=data,more.txt]"])
def test_half_a_value_behind_a_comma(word: str, cntkpy) -> None:
    """A bare word that looks like a number or a file's name is never meant as a parameter (A5, F7)."""
    got = cntkpy("configFile=m.cntk", word, "command=train", files=FILES | {"data": DATA})
    assert (got.code, got.err.count("a comma")) == (2, 1), got.err
    got = cntkpy("check", "m.cntk", word)
    assert (got.code, got.out.count("a comma")) == (2, 1), got.out


def test_a_misspelled_section(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", "trainn=[SGD=[maxEpochs=7]]", files=FILES)
    assert "'trainn'" in got.err
    assert "did you mean 'train'?" in got.err


def test_a_configuration_in_place_of_a_model(cntkpy, tmp_path: Path) -> None:
    """Nobody is told to delete a file that cntkpy has not written (C1)."""
    got = cntkpy("configFile=m.cntk", "command=test", "modelPath=m.cntk", files=FILES)
    assert got.code == 1
    assert got.message == "m.cntk is not a model file (it looks like a configuration)"
    assert "delete" not in got.err


def test_a_negative_learning_rate(cntkpy) -> None:
    """It ended with status 0 and without a model (A18)."""
    for words in (("check", "m.cntk"), ("configFile=m.cntk",)):
        got = cntkpy(*words, "train/SGD/learningRatesPerMB=0.1:-1", files=FILES)
        assert got.code == 2
        assert "<argument 2>:1:34: error: m.cntk:train:SGD:learningRatesPerMB[1]" in got.out or "1:34" in got.err
        assert "a learning rate is not negative" in got.out + got.err


@pytest.mark.parametrize(("word", "status"), [("traceLevel=0", 0), ("test=[action=tset]", 2)])
def test_the_top_level_is_read_once(word: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[object] = []
    read = RootParameters.__init__

    def note(self: RootParameters, config: ConfigParameters) -> None:
        readings.append(config)
        read(self, config)

    monkeypatch.setattr(RootParameters, "__init__", note)
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    assert run(["configFile=m.cntk", word]) == status
    assert len(readings) == 1
