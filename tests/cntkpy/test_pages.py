"""The code of the pages about training from Python runs, block after block."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["training-from-python.md", "large-files-from-python.md"])
def test_the_code_of_a_page_runs(page: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S)
    assert len(blocks) >= 4
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    assert "Finished Epoch[1" in capsys.readouterr().out
