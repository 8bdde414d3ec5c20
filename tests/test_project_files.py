"""Files that code hosts and package indices read: citation, security policy, issue forms; and the pages they name."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from cntkpy import __version__
from cntkpy.cntk_config.base.extras import PACKAGES

ROOT = Path(__file__).resolve().parent.parent
HOME = "https://github.com/cntkpy/cntkpy"
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


PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
FOR_DEVELOPERS = {"all", "dev", "docs"}
NAMED_EXTRA = re.compile(r"\bextra `([\w-]+)`|cntkpy\[([\w,-]+)\]")


def test_extra_all_has_every_extra_for_the_cpu() -> None:
    (requirement,) = EXTRAS["all"]
    names = set(requirement.removeprefix("cntkpy[").removesuffix("]").split(","))
    assert names == set(EXTRAS) - FOR_DEVELOPERS - {"cuda"} == set(PACKAGES)


def test_named_extras_exist() -> None:
    """Texts of the program and pages name extras that can be installed."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    places = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in [*pages, *(ROOT / "cntkpy").rglob("*.py")]
        for match in NAMED_EXTRA.finditer(path.read_text("utf-8"))
        for name in (match[1] or match[2]).split(",")
        if name not in EXTRAS
    }
    assert not places, "\n".join(sorted(places))


def test_package_names_its_authors() -> None:
    assert PYPROJECT["project"]["authors"] == [{"name": "cntkpy developers"}]
    assert "authors" not in PYPROJECT["project"].get("dynamic", ())


def test_version_is_released() -> None:
    """`.ci/release` finds one version in the package, the citation and the changelog, and refuses another tag."""
    notes = subprocess.run([ROOT / ".ci/release"], capture_output=True, text=True, check=True).stdout
    assert notes.startswith("### ") and "\n## " not in notes
    refused = subprocess.run([ROOT / ".ci/release", "v9.9.9"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (1, "") and f"write v{__version__}" in refused.stderr


def test_readme_has_absolute_links_to_files_of_the_repository() -> None:
    """The README is the description on package indices, where relative links lead nowhere; `.ci/package` compares."""
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    paths = [re.fullmatch(rf"{re.escape(HOME)}/(?:blob|tree)/main/([^#]+)(?:#.*)?", link) for link in links]
    assert links and all(paths), [link for link, path in zip(links, paths, strict=True) if path is None]
    assert not [path[1] for path in paths if path and not (ROOT / path[1]).exists()]


@pytest.mark.parametrize("name", ["cntk_config", "commands", "grammar", "readers"])
def test_links_at_the_root_lead_to_the_code(name: str) -> None:
    """A checkout without links has a file with the path in their place."""
    link = ROOT / name
    target = link.readlink().as_posix() if link.is_symlink() else link.read_text("utf-8")
    assert target == f"cntkpy/{name}" and (ROOT / target).is_dir()


def test_the_wheel_brings_the_page_of_findings_beside_the_package() -> None:
    """A file in the package by `force-include` hides the package of an editable install."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["shared-data"] == {"docs/findings": "share/cntkpy/findings"}
    assert "force-include" not in wheel
