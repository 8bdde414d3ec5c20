"""Every example of docs/errors.md runs, and prints what the page says.

`python tests/commands/checks/test_errors_page.py` writes the outputs of this version into the page.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "errors.md"
BLOCK = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Example:
    """The files of one section of the page, and its commands with what they print."""

    title: str
    files: dict[str, str] = field(default_factory=dict)
    commands: list[tuple[str, str]] = field(default_factory=list)


def examples(text: str) -> Iterator[Example]:
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        example = Example(part.split("\n", 1)[0])
        for kind, name, body in BLOCK.findall(part):
            if kind == "console":
                command, _, output = body.partition("\n")
                example.commands.append((command.removeprefix("$ "), output))
            else:
                example.files[name] = body
        yield example


def shown(text: str, code: int, folder: Path) -> str:
    """What the page shows of an output: of a run only what follows the marker; the exit status."""
    if "EXCEPTION occurred" in text:
        text = text[text.index("EXCEPTION occurred") :]
    text = text.replace(str(folder), "/home/you/work")
    return f"{text.strip()}\n[exit status {code}]\n"


EXAMPLES = list(examples(PAGE.read_text(encoding="utf-8")))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_example(example: Example, tmp_path: Path, cntkpy) -> None:
    assert example.commands
    for command, output in example.commands:
        got = cntkpy(*command.split()[1:], files=example.files)
        assert shown(got.out + got.err, got.code, tmp_path) == output


def output_of(command: str, folder: Path) -> str:
    words = [sys.executable, "-m", "cntkpy", *command.split()[1:]]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    return shown(done.stdout + done.stderr, done.returncode, folder)


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    position = 0
    for example in examples(text):
        with tempfile.TemporaryDirectory() as folder:
            for name, body in example.files.items():
                Path(folder, name).write_text(body, encoding="utf-8")
            for command, output in example.commands:
                new = output_of(command, Path(folder))
                old = f"$ {command}\n{output}```"
                begin = text.index(old, position)
                text = text[:begin] + f"$ {command}\n{new}```" + text[begin + len(old) :]
                position = begin + 1
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
