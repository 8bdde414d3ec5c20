"""The examples of docs/uci.md."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cntkpy.readers import create_reader

PAGE = Path(__file__).parents[4] / "docs" / "uci.md"


def test_the_examples_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(program, {})
    made = create_reader('readerType=BinaryReader ; file="x.bin"')
    made.start_minibatch_loop(3, 0)
    minibatch = made.get_minibatch()
    assert minibatch is not None
    assert minibatch.matrix("features").T.tolist() == [[1, 2], [3, 4], [5, 6]]
    first, cached = re.findall(r"^reader = \[\n(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "labels.map").write_text("cat\ndog\n")
    (tmp_path / "train.txt").write_text("cat 0.5 1.25\ndog 2 -1e-3\n")
    reader = create_reader(first.replace("$DataDir$/", ""), "double")
    reader.start_minibatch_loop(2, 0)
    minibatch = reader.get_minibatch()
    assert minibatch is not None
    assert sorted(minibatch.matrix("features").T.tolist()) == [[0.5, 1.25], [2, -0.001]]
    for _ in range(2):
        (tmp_path / "train.txt").write_text("dog " + "7 " * 784 + "\n")
        reader = create_reader(cached)
        reader.start_minibatch_loop(2, 0)
        minibatch = reader.get_minibatch()
        assert minibatch is not None
        assert np.all(minibatch.matrix("features") == 7)
    assert (tmp_path / "train.bin").exists()
