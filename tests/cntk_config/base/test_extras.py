"""Which command installs an extra, in environments of pip, pipx and uv (F16)."""

import importlib.metadata
import importlib.util
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import (
    BUILT_ON,
    PACKAGES,
    extra_of,
    how_to_install,
    missing,
    need,
    need_to_import,
    requirements,
)

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


def test_extras_inside_of_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    nested = [
        "nothing-like-numpy>=1; extra == 'data'",
        "cntkpy[data]; extra == 'train'",
        "nothing-like-jax>=2; extra == 'train'",
        "cntkpy[train]; extra == 'sweep'",
        "pytest>=1; extra == 'sweep'",
    ]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: nested)
    assert requirements("train") == ["nothing-like-numpy>=1", "nothing-like-jax>=2"]
    assert requirements("sweep") == ["nothing-like-numpy>=1", "nothing-like-jax>=2"]  # pytest is installed


def test_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("scipy", "jax") else object())
    assert [missing(one) for one in ("data", "train", "plot", "tables")] == ["scipy", "scipy", None, "scipy"]
    with pytest.raises(UserError, match=r"^training needs scipy, which is not installed") as caught:
        need("train", "training")
    assert str(caught.value.hint).startswith("add the extra train: ")
    with pytest.raises(
        ModuleNotFoundError, match="m needs scipy, which is not installed; add the extra data: "
    ) as lost:
        need_to_import("data", "m")
    assert lost.value.name == "scipy"
    need("plot", "a picture")


def test_the_extra_of_a_module() -> None:
    assert extra_of("jax.numpy") == "train" and extra_of("jaxlib") == "train" and extra_of("numpy.linalg") == "data"
    assert extra_of("somewhere") is None and extra_of(None) is None


def test_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert {*PACKAGES} == {*extras} - {"all", "cuda", "docs", "dev"}
    for extra, below in BUILT_ON.items():
        assert {f"cntkpy[{one}]" for one in below} <= {*extras[extra]}
    assert {one.split(">")[0] for one in project["dependencies"]} == {"lark", "click", "rich"}
