"""The commands of docs/runs.md and docs/sweeps.md run, in their order, in a copy of the samples and nothing else."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[list[str]]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("cntkpy ")]


def serve(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Ask a page for its content once, and end it as its reader does."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert b"<h1>digits: " in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.communicate()


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["runs.md", "sweeps.md"])
def test_the_commands_of_a_page(page: str, tmp_path: Path) -> None:
    if page == "sweeps.md":
        pytest.importorskip("optuna", reason="the extra sweep is not installed")
    shutil.copytree(ROOT / "sample_configs", tmp_path / "sample_configs", ignore=shutil.ignore_patterns("output"))
    environment = os.environ | {"BROWSER": "true"}
    environment.pop("COLUMNS", None)
    printed: list[str] = []
    listed = commands(page)
    assert len(listed) >= 6
    for words in listed:
        command = [sys.executable, "-m", "cntkpy", *words[1:]]
        if "--serve" in words:
            if "--port" in words:  # which another program may have
                command[command.index("--port") + 1] = "0"
            serve(command, tmp_path, environment)
            continue
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=300)
        assert done.returncode == 0, (words, done.stderr)
        printed.append(done.stdout)
    if page == "runs.md":
        assert len(list((tmp_path / "sample_configs/output/runs").iterdir())) == 2
        assert "0.2*8:0.04" in printed[2]
        assert "<h1>digits: " in (tmp_path / "report.html").read_text()
    else:
        assert "4 trials in sweeps/digits" in printed[0]
        assert "Importance of the values" in (tmp_path / "sweep.html").read_text()
        assert sorted(path.name for path in (tmp_path / "sweeps/digits").glob("[0-9]")) == ["0", "1", "2", "3"]
