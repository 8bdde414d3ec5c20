"""The code on docs/data-interfaces.md and docs/writers-and-actions.md runs, and serves a configuration."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "data-interfaces.md"
PAGES = (PAGE, DOCS / "writers-and-actions.md")
CONFIG = """\
command = add:wrong
add   = [ action = sum_numbers ; reader = [ readerType = create_numbers_reader ; module = page_module ; count = 5 ] ]
wrong = [ action = sum_numbers ; reader = [ readerType = create_numbers_reader ; module = page_module ; count = x ] ]
"""


def blocks() -> list[str]:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, cntkpy) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("page_module.py").write_text("\n".join(blocks()))
    import page_module  # pyright: ignore[reportMissingImports]

    from cntkpy.cntk_config.entry import Entry
    from cntkpy.commands.catalogue import dispatch

    action = Entry("action", ("sum_numbers",), factory="page_module:sum_numbers")
    monkeypatch.setattr(dispatch, "plugin_actions", lambda: [action])
    got = cntkpy("configFile=m.cntk", files={"m.cntk": CONFIG})
    assert got.out.split()[-1] == "10"
    assert got.code == 2
    assert "m.cntk:3" in got.err
    assert "'x' is not" in got.err
    three = [page_module.create_numbers_reader(page_module.parse("count = 10"), "double") for _ in range(3)]
    found = []
    for rank, reader in enumerate(three):
        reader.start_minibatch_loop(4, 0, None, rank, 3)
        found += [key for m in iter(reader.get_minibatch, None) for key in m.keys]
    assert sorted(found) == list(range(10))


def test_the_entry_points_of_the_page_are_those_of_the_sample() -> None:
    (toml,) = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    project = (PAGE.parents[1] / "sample_configs" / "plugin" / "pyproject.toml").read_text(encoding="utf-8")
    assert toml.strip() in project
