"""A reader that is added as a folder of `readers/formats` is known everywhere, and no other file is touched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import cntkpy.readers.formats
from cntkpy.cntk_config import parse
from cntkpy.cntk_config.entry import collect
from cntkpy.commands.catalogue.section_map import reader_use
from cntkpy.commands.catalogue.topics import find_topics
from cntkpy.commands.tools.list_names import names
from cntkpy.readers import create_reader, entries

ENTRY = """
from cntkpy.cntk_config.entry import Entry

ENTRIES = (
    Entry(
        "reader", ("PrimesReader",), factory="cntkpy.readers.formats.primes.reader:create",
        parameters="cntkpy.readers.formats.primes.reader:PrimesParameters",
        example="reader = [ readerType = PrimesReader ]",
    ),
)
"""
READER = '''
from cntkpy.cntk_config.declare import SIZE, Declared, Parameter


class PrimesParameters(Declared):
    """PrimesReader: prime numbers."""

    count = Parameter("count", SIZE, default="3", help="How many.")


def create(section, precision):
    return ["primes", PrimesParameters(section).count]
'''


@pytest.fixture
def primes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "primes"
    folder.mkdir()
    (folder / "__init__.py").write_text(ENTRY)
    (folder / "reader.py").write_text(READER)
    monkeypatch.setattr(cntkpy.readers.formats, "__path__", [*cntkpy.readers.formats.__path__, str(tmp_path)])
    _forget()
    yield
    _forget()


def _forget() -> None:
    collect.cache_clear()
    entries.entries.cache_clear()


@pytest.mark.usefixtures("primes")
def test_a_reader_is_added_by_a_folder() -> None:
    section = parse("readerType=primesReader ; count=5 ; cuont=6")
    assert create_reader(section) == ["primes", 5]
    assert ("PrimesReader", "built in") in list(names("readers"))
    (topic,) = find_topics("PrimesReader")
    assert (topic.meaning, topic.example) == ("PrimesReader: prime numbers.", "reader = [ readerType = PrimesReader ]")
    use = reader_use(section, "reader")
    assert not use.open
    assert "count" in use.names()
    assert "cuont" not in use.names()


def test_nothing_is_left_of_it() -> None:
    assert "PrimesReader" not in entries.names(entries.READER)


def test_names_are_unique() -> None:
    for kind in entries.KINDS:
        every = [name.lower() for one in entries.entries(kind) for name in (*one.names, *one.aliases)]
        assert len(set(every)) == len(every)


def test_paths_exist() -> None:
    """Every entry's declaration and factory can be imported."""
    for one in entries.built_in():
        if one.parameters:
            assert one.declared() is not None
        if one.factory:
            assert callable(one.load())
