"""docs/licences.md: every package that cntkpy names has a licence there."""

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cntkpy.cntk_config.base.extras import PACKAGES
from tools.licences import BASE, closure, licence_of

ROOT = Path(__file__).resolve().parents[2]


def test_every_package_has_a_licence() -> None:
    text = (ROOT / "docs" / "licences.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| ([\w.-]+) \| (.+?) \|", text, re.MULTILINE))
    assert "unknown" not in rows.values()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [*project["dependencies"], *(one for extra in PACKAGES for one in project["optional-dependencies"][extra])]
    packages = {re.split(r"[^\w.-]", one)[0].lower() for one in named} - {"cntkpy"}
    assert packages <= set(rows)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"license_expression": "MIT AND Zlib", "license": "x"}, "MIT AND Zlib"),
        ({"classifier": ["Typing :: Typed", "License :: OSI Approved :: BSD License"], "license": "x"}, "BSD License"),
        ({"license": "Apache-2.0\nmore"}, "Apache-2.0"),
        ({"license": "a long text " * 20}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_licence_of(fields: dict[str, Any], expected: str) -> None:
    found: Any = SimpleNamespace(metadata=SimpleNamespace(json=fields))
    assert licence_of(found) == expected


def test_what_an_extra_brings() -> None:
    """Of an installed package: the requirements of its requirements, too."""
    assert {"click", "rich", "markdown-it-py", "mdurl"} <= {*closure(BASE)}
