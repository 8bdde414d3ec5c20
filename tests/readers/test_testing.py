"""The checks of plug-ins pass for readers that keep the contract, and find those that do not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from cntkpy import testing
from readers import create_reader

TEXT = "".join(f"{i} |x {i}\n" for i in range(14))
PLUGIN = Path(__file__).parents[2] / "sample_configs" / "plugin"


def make(path: Path) -> Any:
    path.write_text(TEXT)
    return lambda: create_reader(f'file="{path}" ; input=[x=[dim=1;format=dense]]')


def test_a_reader_of_text_keeps_the_contract(tmp_path: Path) -> None:
    testing.check_reader(make(tmp_path / "a.ctf"))


def test_the_sample_plug_in_keeps_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PLUGIN))
    streams = "x=[field=size;dim=2] ; y=[field=kind;classes=daisy:rose:tulip]"
    section = f'readerType=JsonLinesReader ; module="cntkpy_jsonlines.reader" ; file="{PLUGIN / "flowers.jsonl"}"'
    testing.check_reader(lambda: create_reader(f"{section} ; {streams}"), minibatch_size=20)
    for name in [one for one in sys.modules if one.startswith("cntkpy_jsonlines")]:
        del sys.modules[name]


def test_a_reader_that_forgets_its_position_is_found(tmp_path: Path) -> None:
    whole = make(tmp_path / "a.ctf")

    def forgetful() -> Any:
        reader = whole()
        start = reader.start_minibatch_loop
        reader.restore = lambda state: start(4, 0)
        return reader

    with pytest.raises(AssertionError, match="does not go on where the state was taken"):
        testing.check_reader(forgetful)
