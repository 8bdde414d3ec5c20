"""The tutorials and the first page (docs/README.md): their files are written, their commands run, one after the other.

A page shows what a command prints. `...` stands for any text, also for lines.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_consoles import old_model

ROOT = Path(__file__).resolve().parents[3]
FIRST = ROOT / "docs/README.md"
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
BLOCK = re.compile(r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
ANY = re.compile(r"\n?^\.\.\.$\n?|\.\.\.", re.MULTILINE)
"""Lines, or a part of one."""
STATUS = {
    "cntkpy check old.cntk": 2,
    "cntkpy check old.cntk DataDir=sample_configs/data": 1,
    "cntkpy diff old.cntk new.cntk DataDir=sample_configs/data": 1,
    "python -m cntkpy.compat old.py": 1,
    "cntkpy run mistake.cntk": 2,
}
"""Exit statuses other than 0."""


def steps(text: str) -> Iterator[tuple[str, str, str]]:
    """What a page does: ("file", name, its text) and ("command", the command, what it prints)."""
    for language, title, body in BLOCK.findall(text):
        if language != "console":
            yield "file", title, body
            continue
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield "command", command, output


def matches(shown: str, got: str) -> bool:
    """Whether a text is what a page shows, where `...` is any text."""
    first, *rest = ANY.split(shown.strip())
    got = got.strip()
    if not rest:
        return got == first
    if not got.startswith(first) or not got.endswith(rest[-1]):
        return False
    at = len(first)
    for piece in rest:
        at = got.find(piece, at) + len(piece)
        if at < len(piece):
            return False
    return True


def test_what_matches() -> None:
    assert matches("a\n...\nb = ...; c\n", "a\nx\ny\nb = 1; c")
    assert matches("...", "anything\nat all") and matches("a", "a\n")
    assert not matches("a", "ab") and not matches("a\n...\nb", "a\nx") and not matches("b...a", "a b")
    assert not matches("a...x...b", "a b")
    assert matches("end.\n...\nb", "end.\nb") and matches("...\na", "x\na") and not matches("end.\n...\nb", "end.b!")


def prepare(folder: Path) -> None:
    """The samples, and what pages say that the reader has."""
    shutil.copytree(ROOT / "sample_configs", folder / "sample_configs", ignore=shutil.ignore_patterns("output"))
    old_model(folder)


def derive(folder: Path, name: str, text: str) -> None:
    """The files that pages describe in words: another file with a change."""
    if name == "old.cntk":
        changed = text.replace("minibatchsSize", "minibatchSize").replace(":0.02:0.01", "")
        (folder / "new.cntk").write_text(changed)
    if name == "digits.cntk":
        assert text.count("action = train") == 1
        (folder / "mistake.cntk").write_text(text.replace("action = train", "action = trian"))


def walk(page: Path, folder: Path, cntkpy) -> int:
    """Follow a page; returns the number of commands."""
    prepare(folder)
    count = 0
    for kind, name, text in steps(page.read_text(encoding="utf-8")):
        if kind == "file":
            assert name, f"a block of code without a name: {text[:60]}"
            (folder / name).write_text(text, encoding="utf-8")
            derive(folder, name, text)
            continue
        program, *words = shlex.split(name)
        if program == "cntkpy":
            got = cntkpy(*words)
            code, printed = got.code, got.out + got.err
        elif program == "cat":
            code, printed = 0, (folder / words[0]).read_text(encoding="utf-8")
        else:
            assert program == "python"
            done = subprocess.run([sys.executable, "-W", "ignore", *words], cwd=folder, capture_output=True, text=True)
            code, printed = done.returncode, done.stdout + done.stderr
        assert code == STATUS.get(name, 0), f"{page.name}: {name}\n{printed}"
        assert matches(text, printed), f"{page.name}: {name}\n{printed}"
        count += 1
    return count


@pytest.mark.thorough
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial(page: Path, cntkpy, tmp_path: Path) -> None:
    assert walk(page, tmp_path, cntkpy) >= 2


def test_the_first_page(cntkpy, tmp_path: Path) -> None:
    """The mistake that it shows; its configuration has no other one."""
    assert walk(FIRST, tmp_path, cntkpy) == 1
    assert cntkpy("check", "--strict", "digits.cntk").code == 0


def test_the_lists_are_true() -> None:
    assert len(TUTORIALS) == 8
    everything = {name for page in (FIRST, *TUTORIALS) for _, name, _ in steps(page.read_text(encoding="utf-8"))}
    assert set(STATUS) <= everything
