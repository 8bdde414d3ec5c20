"""Runs of a configuration of a page, in a folder that has the sample configurations, as a clone has."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from cntkpy.commands.cli import main
from cntkpy.commands.runs.find import find_runs
from cntkpy.commands.runs.record import Run

SAMPLES = Path(__file__).resolve().parents[2] / "sample_configs"


@contextlib.contextmanager
def ran(files: dict[str, str], commands: Sequence[str]) -> Iterator[list[Run]]:
    """Runs in a folder of its own that has the sample configurations, one for each command."""
    here, environment = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(SAMPLES, folder / "sample_configs", ignore=shutil.ignore_patterns("output"))
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        os.chdir(folder)
        try:
            for number, command in enumerate(commands):
                more = [f"stderr=logs/{number}.log", "logFormat=json", f"modelPath=models/{number}"]
                with contextlib.redirect_stderr(io.StringIO()):
                    status = main([*command.split(), *more])
                assert status == 0, (folder / f"logs/{number}.log").read_text()
            yield find_runs(["logs"])
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(environment)
