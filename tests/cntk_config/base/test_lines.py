"""R10: a line of JSON or of a log ends with a line feed only."""

import json
from pathlib import Path

import pytest

from cntkpy.cntk_config.base.lines import json_line, split_lines
from cntkpy.cntk_config.export import Export
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.commands.runs import plain
from cntkpy.commands.runs.find import read_run
from cntkpy.commands.sweeps.rows import Row, Rows

ODD = "a\u2028b\u2029c\x85d\x1ce\x0bf\x0cg"
"""Characters at which `str.splitlines` cuts, besides line feeds and carriage returns."""


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\nb", "a\r\n\nb\r\n", f"{ODD}\nx"])
def test_lines(text: str) -> None:
    lines = text.replace("\r\n", "\n").split("\n")
    assert split_lines(text) == (lines if lines[-1] else lines[:-1])
    assert "".join(split_lines(text, keep_ends=True)) == text


def test_a_line_of_json_is_one_line_for_everybody() -> None:
    assert json.loads(json_line({"x": ODD})) == {"x": ODD}
    assert len(json_line({"x": ODD, "\u00e4": 1}).splitlines()) == 1
    assert "\u00e4" in json_line("\u00e4")


@pytest.mark.parametrize("write", [json_line, lambda value: json.dumps(value, ensure_ascii=False)])
def test_readers_of_events(write, tmp_path: Path) -> None:
    event = {"event": "run started", "words": ["configFile=a", f"x={ODD}"], "settings": []}
    assert list(plain.objects(write(event) + "\r\n" + write({"event": "b"}))) == [event, {"event": "b"}]
    (tmp_path / "log.jsonl").write_text(write(event) + "\n", newline="")
    assert f"x={ODD}" in read_run(tmp_path / "log.jsonl").words


def test_a_row_of_a_sweep(tmp_path: Path) -> None:
    rows = Rows(tmp_path)
    row = Row(0, "finished", {"text": ODD}, 1.0, 1, 0.5, "")
    rows.append(row)
    assert rows.read() == {0: row}
    assert len(rows.path.read_text().splitlines()) == 1


def test_a_flat_line_is_one_line_for_everybody() -> None:
    config = ConfigParameters()
    config.insert("x", ODD)
    assert len(Export(config).flat().splitlines()) == 1
