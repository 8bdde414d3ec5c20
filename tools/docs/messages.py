"""The examples of docs/errors.md: their files, their commands, and what these print."""

import contextlib
import io
import logging
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass
class Example:
    """The files of one section of the page, and its commands with what they print."""

    title: str
    files: dict[str, str] = field(default_factory=dict)
    commands: list[tuple[str, str]] = field(default_factory=list)


def examples(text: str) -> Iterator[Example]:
    """The examples of a page, one per section."""
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


def with_outputs(text: str) -> str:
    """The page with the outputs of this version."""
    position = 0
    for example in examples(text):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            for file, body in example.files.items():
                (folder / file).write_text(body, encoding="utf-8")
            for command, output in example.commands:
                before = f"$ {command}\n{output}```"
                begin = text.index(before, position)
                text = text[:begin] + f"$ {command}\n{_output(command, folder)}```" + text[begin + len(before) :]
                position = begin + 1
    return text


def _output(command: str, folder: Path) -> str:
    from cntkpy.commands.cli import main

    out, err = io.StringIO(), io.StringIO()
    here, environment = Path.cwd(), dict(os.environ)
    handlers = list(logging.getLogger().handlers)
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(command.split()[1:])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(environment)
        logging.getLogger().handlers[:] = handlers
    return shown(out.getvalue() + err.getvalue(), code, folder)
