"""Which commands import a Python module that a configuration names: runs do, others with `--import-modules` only."""

import sys
from pathlib import Path

import pytest

MODULE = """\
from pathlib import Path
import numpy as np
from cntkpy.readers import MinibatchSourceFromData, UserReader, StreamInformation
from cntkpy.readers.contracts import ChunkSource
Path("ran").write_text(__name__)
class Own(UserReader):
    def __init__(self): raise ValueError("made")
def create_reader(section, precision): raise ValueError("made")
def make(): return MinibatchSourceFromData({"x": np.ones((4, 2), "f")})
"""
SECTIONS = {
    "reader": "readerType=Own; module=own_module",
    "the type is a module": "readerType=own_module",
    "source": "readerType=UserMinibatchSource; module=own_module; class=make",
    "deserializer": "deserializers=([type=Own; module=own_module; input=[x=[dim=2; format=dense]]])",
    "writer of a cache": "readerType=UCIFastReader; file=u; f=[dim=1; start=0]; writerType=Own; module=own_module",
}
SGD = "SGD=[maxEpochs=1; learningRatesPerMB=1]"
NETWORK = f"BrainScriptNetworkBuilder=[x=Input{{2}}; z=ReduceSum(x); criterionNodes=(z)]; {SGD}"
LOOKS = (
    ("check", "m.cntk"),
    ("check", "--data", "m.cntk"),
    ("show", "m.cntk"),
    ("show", "--defaults", "m.cntk"),
    ("show", "--network", "m.cntk"),
    ("explain", "m.cntk", "train/reader/readerType"),
    ("diff", "m.cntk", "m.cntk"),
    ("format", "--check", "m.cntk"),
    ("plot", "--network", "m.cntk", "-o", "n.dot"),
    ("list",),
    ("completion", "words", "configFile=m.cntk", "train"),
)
READS = (
    ("preview", "m.cntk"),
    ("convert", "configFile=m.cntk", "train/reader", "o.ctf"),
    ("convert", "--mean", "configFile=m.cntk", "train/reader", "o.xml"),
)


@pytest.fixture(autouse=True)
def not_imported_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "own_module", raising=False)


def files(section: str) -> dict[str, str]:
    text = f"command=train\nmodelPath=m\ntrain=[\naction=train\n{NETWORK}\nreader=[{SECTIONS[section]}]\n]\n"
    return {"m.cntk": text, "own_module.py": MODULE, "u": "1\n2\n"}


@pytest.mark.parametrize("section", SECTIONS)
def test_looking_imports_nothing(section: str, cntkpy, tmp_path: Path) -> None:
    for words in LOOKS:
        cntkpy(*words, files=files(section))
        assert not (tmp_path / "ran").exists(), words


@pytest.mark.parametrize("section", ["reader", "the type is a module", "source", "deserializer"])
@pytest.mark.parametrize("words", READS[:2], ids=lambda words: words[0])
def test_reading_imports_when_allowed(section: str, words: tuple[str, ...], cntkpy, tmp_path: Path) -> None:
    got = cntkpy(*words, files=files(section))
    assert got.code == 2 and not (tmp_path / "ran").exists()
    assert "m.cntk:6:" in got.err and "does not import the Python module 'own_module'" in got.err
    assert "add --import-modules" in got.err
    cntkpy(*words, "--import-modules")
    assert (tmp_path / "ran").exists()


def test_a_mean_imports_nothing(cntkpy, tmp_path: Path) -> None:
    for section in SECTIONS:
        cntkpy(*READS[2], files=files(section))
        assert not (tmp_path / "ran").exists()


def test_check_imports_when_allowed(cntkpy, tmp_path: Path) -> None:
    cntkpy("check", "--import-modules", "m.cntk", files=files("reader"))
    assert (tmp_path / "ran").exists()


def test_a_run_imports(cntkpy, tmp_path: Path) -> None:
    cntkpy("configFile=m.cntk", files=files("reader"))
    assert (tmp_path / "ran").exists()
