"""Files that code hosts and package indices read: citation, security policy, issue forms; and the pages they name."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cntkpy import __version__

ROOT = Path(__file__).resolve().parent.parent
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))


def read(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text("utf-8"))


def test_citation() -> None:
    """What version 1.2.0 of the Citation File Format requires."""
    found = read(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(found)
    assert found["cff-version"] == "1.2.0" and found["type"] == "software"
    assert str(found["version"]) == __version__
    assert found["authors"] and all("name" in one or "family-names" in one for one in found["authors"])


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms(path: Path) -> None:
    """What GitHub requires of a form."""
    form = read(path)
    assert {"name", "description", "body"} <= set(form)
    ids = [one["id"] for one in form["body"] if one["type"] != "markdown"]
    assert ids and len(set(ids)) == len(ids)
    for one in form["body"]:
        assert one["type"] in ("markdown", "textarea", "input", "dropdown", "checkboxes")
        assert one["attributes"]["label"]


def test_a_bug_report_asks_for_the_versions() -> None:
    assert "cntkpy --version --verbose" in (ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text("utf-8")
    assert "cntkpy --version --verbose" in (ROOT / "SECURITY.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["SECURITY.md", "docs/stability.md"])
def test_links(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert links and all(((ROOT / name).parent / link).exists() for link in links)
