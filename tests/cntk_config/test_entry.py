"""Entries: what users name, declared where it lives, and found without a table."""

import sys
from pathlib import Path

import pytest

from cntkpy.cntk_config.declare import Declared
from cntkpy.cntk_config.entry import Entry, collect, find_entry

ENTRY = Entry("section", ("SGD", "sgdSection"), parameters="cntkpy.cntk_config.declare:Declared", factory="math:sqrt")


def test_an_entry_imports_what_it_names() -> None:
    assert ENTRY.name == "SGD"
    assert ENTRY.declared() is Declared
    assert ENTRY.meaning == " ".join((Declared.__doc__ or "").split())
    assert ENTRY.load()(9) == 3
    assert Entry("node", ("Plus",), help="The sum.").meaning == "The sum."
    assert Entry("node", ("Plus",)).declared() is None


def test_names_are_found_with_and_without_letter_case() -> None:
    assert find_entry("SGDSECTION", [ENTRY]) is ENTRY
    assert find_entry("SGDSECTION", [ENTRY], ignore_case=False) is None
    assert find_entry("sgdSection", [ENTRY], ignore_case=False) is ENTRY
    assert find_entry("other", [ENTRY]) is None


def test_collect_finds_entries_in_files_and_in_sub_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "from cntkpy.cntk_config.entry import Entry\n"
    for name, text in {
        "zoo/__init__.py": "",
        "zoo/a.py": line + 'ENTRY = Entry("reader", ("A",))\n',
        "zoo/b.py": line + 'from zoo.a import ENTRY as OTHER\nENTRIES = (Entry("reader", ("B",)), OTHER)\n',
        "zoo/inner/__init__.py": line + 'ENTRY = Entry("reader", ("C",))\n',
        "zoo/inner/heavy.py": "raise RuntimeError\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert [one.name for one in collect("zoo")] == ["A", "B", "C"]
        assert [one.name for one in collect("zoo", folders=True)] == ["C"]
    finally:
        collect.cache_clear()
        for name in [name for name in sys.modules if name.split(".")[0] == "zoo"]:
            del sys.modules[name]
