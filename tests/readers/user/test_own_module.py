"""`readerType=mymodule`: the type is the name of a module in the current folder, as it is that of a library in CNTK."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config import parse
from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.readers import create_reader
from cntkpy.readers.registry import find_reader
from cntkpy.readers.writer import create_writer

CLASS = """
import numpy as np
from cntkpy.readers import RowsReader, StreamInformation, create_reader


class Numbers(RowsReader):
    def __init__(self, count: int):
        self.count = count

    def stream_infos(self):
        return [StreamInformation("x", 0, "dense", np.float32, (1,))]

    def num_rows(self):
        return self.count

    def get_rows(self, rows):
        return {"x": np.asarray(rows, np.float32)[:, None]}
"""
FUNCTIONS = (
    CLASS.replace("(self, count: int)", "(self, count=2)")
    + """

class Others(Numbers):
    pass


def create_reader(section, precision):
    from cntkpy.readers.user.reader import ReaderFactory

    return ReaderFactory(Others)(section, precision)


class Sink:
    def sections(self):
        return {}

    def save(self, data):
        return True

    def save_mapping(self, section, labels):
        pass

    def close(self):
        pass

    def abandon(self):
        pass


def create_writer(section, precision):
    return Sink()
"""
)
CHUNKS = """
from cntkpy.readers import UserDeserializer


class Chunks(UserDeserializer):
    pass
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("own_"):
            del sys.modules[name]


def test_the_class_of_the_module(here: Path) -> None:
    (here / "own_numbers.py").write_text(CLASS)
    reader = create_reader("readerType=own_numbers;count=5;randomize=none")
    reader.start_minibatch_loop(10, epoch=0)
    minibatch = reader.get_minibatch()
    assert minibatch is not None
    assert np.array_equal(minibatch.streams["x"].reshape(-1), [0, 1, 2, 3, 4])


def test_functions_of_a_package_win(here: Path) -> None:
    (here / "own_package").mkdir()
    (here / "own_package/__init__.py").write_text(FUNCTIONS)
    assert create_reader("readerType=own_package").samples_per_sweep == 2
    assert type(create_writer("writerType=own_package")).__name__ == "Sink"


def test_looking_at_it_imports_nothing(here: Path) -> None:
    (here / "own_broken.py").write_text("1 / 0")
    load = find_reader(parse("readerType=own_broken"))
    with pytest.raises(ConfigError) as caught:
        load()
    text = caught.value.diagnostic.render()
    assert "'own_broken' cannot be imported: ZeroDivisionError" in text and "own_broken.py" in text


@pytest.mark.parametrize(
    ("files", "message", "hint"),
    [
        ({}, "unknown reader 'own_module'", "name its Python module: module="),
        ({"own_module/data.txt": ""}, "unknown reader 'own_module'", "name its Python module"),
        ({"own_module.py": CHUNKS}, "have a reader; it has none, and no function create_reader", "module=own_module"),
        (
            {"own_module.py": FUNCTIONS.replace("create_reader(s", "make(s")},
            "it has several, Numbers, Others",
            "write readerType=Numbers ; module=own_module",
        ),
    ],
)
def test_what_is_no_module_of_a_reader(here: Path, files: dict[str, str], message: str, hint: str) -> None:
    for name, text in files.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(text)
    with pytest.raises(ConfigError) as caught:
        create_reader("readerType=own_module")
    text = caught.value.diagnostic.render()
    assert message in text and hint in text


def test_a_reader_that_is_built_in_wins(here: Path) -> None:
    (here / "UCIFastReader.py").write_text("1 / 0")
    with pytest.raises(ConfigError, match="file"):
        create_reader("readerType=UCIFastReader;features=[dim=1]")
