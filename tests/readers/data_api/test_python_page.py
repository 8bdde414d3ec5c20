"""The code on the two pages about data from Python is run as it stands; so are the listings of CNTK's manuals there."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["python-data-api.md", "python-data-sources.md"])
def test_the_code_of_the_page_runs(page: str, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for block in blocks(page):
            exec(compile(block, page, "exec"), names)
    assert names["source"]
    if page == "python-data-api.md":
        assert "minibatches, about" in capsys.readouterr().out
