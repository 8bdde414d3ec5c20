"""Which command installs an extra, in environments of pip, pipx and uv (F16)."""

import importlib.metadata
import importlib.util
import shlex
import sys
from pathlib import Path

import pytest

from cntk_config.base.extras import how_to_install, requirements

EVERY = [
    "lark>=1.2",
    "matplotlib>=3.8; extra == 'plot'",
    "jax>=0.7; extra == 'train'",
    'safetensors>=0.4 ; extra == "train"',
    "other>=1; (sys_platform == 'linux' and python_version < '3.14') and extra == 'train'",
]


@pytest.fixture(autouse=True)
def metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: EVERY if name == "cntkpy" else None)


def test_requirements() -> None:
    assert requirements("plot") == ["matplotlib>=3.8"]
    assert requirements("train") == ["jax>=0.7", "safetensors>=0.4"]
    assert requirements("trai") == []


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("pipx_metadata.json", ["pipx", "inject", "cntkpy"]),
        ("uv-receipt.toml", ["uv", "pip", "install", "--python", sys.executable]),
        ("pyvenv.cfg", [sys.executable, "-m", "pip", "install"]),
    ],
)
def test_environments(mark: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (prefix := tmp_path / "cntkpy").mkdir()
    (prefix / mark).touch()
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    said = how_to_install("train")
    assert said.startswith("add the extra train: ")
    assert shlex.split(said.removeprefix("add the extra train: ")) == [*words, "jax>=0.7", "safetensors>=0.4"]


def test_an_environment_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert f"uv pip install --python {shlex.quote(sys.executable)} 'matplotlib>=3.8'" in how_to_install("plot")


def test_without_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", gone)
    assert how_to_install("plot").endswith(" 'cntkpy[plot]'")
