"""Every tutorial names exactly the extras that it needs: it runs where nothing else can be imported (U2)."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import only_extras
import pytest

from .test_consoles import PAGES, commands, reason
from .test_tutorials import ROOT, STATUS, TUTORIALS, derive, prepare, steps

INSTALL = re.compile(r"pip install '\.\[([\w,]+)\]'")
COMMANDS = {
    r"cntkpy plot (?!--network)": "plot",
    r"cntkpy lsp": "lsp",
    r"cntkpy export .*\.onnx": "onnx",
    r"cntkpy (?:convert|preview|new config) .*\.(?:csv|tsv|parquet|arrow)": "tables",
}
"""How commands look, and the extra that each of them needs."""


def extras_of(page: Path) -> list[str]:
    """The extras of the first line of a page that installs."""
    install = INSTALL.search(page.read_text(encoding="utf-8"))
    assert install, f"{page.name} does not say what is to be installed: pip install '.[train]'"
    return install[1].split(",")


def first_failure(page: Path, folder: Path, extras: Sequence[str]) -> str | None:
    """Follow a page in processes that have these extras alone; the first command that fails."""
    work = folder / "work"
    work.mkdir(parents=True)
    prepare(work)
    environment = only_extras.environment(folder / "start", extras)
    for kind, name, text in steps(page.read_text(encoding="utf-8")):
        if kind == "file":
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text, encoding="utf-8")
            derive(work, name, text)
            continue
        program, *words = shlex.split(name)
        if program == "cat":
            continue
        start = ["-m", "cntkpy"] if program == "cntkpy" else []
        command = [sys.executable, *start, *words]
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != STATUS.get(name, 0):
            return f"{name}\n{done.stdout}{done.stderr}"
    return None


@pytest.mark.thorough
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_extras_are_enough(page: Path, tmp_path: Path) -> None:
    assert first_failure(page, tmp_path, extras_of(page)) is None


@pytest.mark.thorough
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_every_extra_is_needed(page: Path, tmp_path: Path) -> None:
    extras = extras_of(page)
    for left_out in extras:
        remaining = [extra for extra in extras if extra != left_out]
        assert first_failure(page, tmp_path / left_out, remaining) is not None, left_out


def test_what_an_environment_has(tmp_path: Path) -> None:
    """Extras bring what they require; other packages of this environment cannot be imported."""
    kept = only_extras.distributions(["tables"])
    assert {"cntkpy", "lark", "numpy", "numba", "llvmlite", "pyarrow"} <= kept and "jax" not in kept
    variables = only_extras.environment(tmp_path, ["data"])
    code = "import numpy, numba, cntkpy\nfor name in ('jax', 'pyarrow', 'pytest'):\n    try: __import__(name)\n"
    code += "    except ModuleNotFoundError: print(name)"
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["jax", "pyarrow", "pytest"]


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_the_extras_of_their_commands(page: str) -> None:
    """In a line that installs, or as an extra."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for command in commands(page):
        if reason(command):
            continue
        for pattern, extra in COMMANDS.items():
            if re.match(pattern, command.text):
                named = re.search(rf"extra\]?[^`\n]*\n?[^`\n]*`{extra}`|\[[\w,]*\b{extra}\b[\w,]*\]'", text)
                assert named, (
                    f"{page}:{command.line}: '{command.text}' needs the extra {extra}, which the page does not name"
                )
