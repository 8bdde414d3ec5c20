"""Every example of docs/errors.md runs, and prints what the page says (`python -m tools.docs` writes the outputs)."""

from pathlib import Path

import pytest

from tools.docs.messages import Example, examples, shown

PAGE = Path(__file__).resolve().parents[3] / "docs" / "errors.md"

EXAMPLES = list(examples(PAGE.read_text(encoding="utf-8")))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_example(example: Example, tmp_path: Path, cntkpy) -> None:
    assert example.commands
    for command, output in example.commands:
        got = cntkpy(*command.split()[1:], files=example.files)
        assert shown(got.out + got.err, got.code, tmp_path) == output
