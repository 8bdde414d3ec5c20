"""The code on docs/python-data-api.md is run as it stands; so are the listings of CNTK's two manuals in it."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "python-data-api.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.thorough
def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for block in blocks():
            exec(compile(block, str(PAGE), "exec"), names)
    assert "minibatches, about" in capsys.readouterr().out
