"""Every test of tables runs in an empty folder; what takes `kind` runs once for each kind of file."""

from __future__ import annotations

from pathlib import Path

import pytest

from .table_files import KINDS


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param
