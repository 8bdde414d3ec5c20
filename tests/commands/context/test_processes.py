"""Processes that cntkpy starts find the package where the first one found it."""

import os
import sys
from pathlib import Path

import pytest

from cntkpy.commands.context import processes

ROOT = Path(__file__).resolve().parents[3]


def test_processes_of_a_clone_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    monkeypatch.setenv("PYTHONPATH", "other")
    assert processes.environment()["PYTHONPATH"] == f"{ROOT}{os.pathsep}other"
    monkeypatch.setattr(sys, "path", ["/elsewhere", *sys.path[1:]])
    assert processes.environment()["PYTHONPATH"] == "other"
