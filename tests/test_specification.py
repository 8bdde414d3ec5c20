"""The pages of docs/specification: sections that the code cites exist, and so do the goldens that the pages cite."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from golden_cases import cases

ROOT = Path(__file__).resolve().parent.parent
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs/specification").glob("*.md")}
PACKAGES = ("cntkpy", "tests")
SECTION = re.compile(r"^#{2,4} ((?:[A-G]|\d+)(?:\.\d+)*)\b", re.MULTILINE)
CITED = re.compile(r"docs/specification/([a-z-]+\.md)(?:#([\w-]+)| ((?:[A-G]\b|\d+)(?:\.\d+)*))")


def anchor(heading: str) -> str:
    """The anchor that GitHub and MkDocs give to a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def anchors(page: str) -> set[str]:
    """The anchors of a page."""
    return {anchor(heading) for heading in re.findall(r"^#{2,4} (.*)", PAGES[page], re.MULTILINE)}


@pytest.mark.parametrize("package", PACKAGES)
def test_sections_that_the_code_cites_exist(package: str) -> None:
    wrong = []
    for path in sorted((ROOT / package).rglob("*.py")):
        for page, name, section in CITED.findall(path.read_text(encoding="utf-8")):
            known = page in PAGES and (name in anchors(page) if name else section in SECTION.findall(PAGES[page]))
            if not known:
                wrong.append(f"{path.relative_to(ROOT)}: {page} {name or section}")
    assert not wrong


def test_goldens_that_the_pages_cite_exist() -> None:
    names = [case.id for case in cases()]
    groups = {name.split("/")[-2] for name in names}
    wrong = []
    for page, text in PAGES.items():
        for brackets in re.findall(r"\[([a-z_]+/[\w*/, ]+)\](?!\()", text):
            for cited in brackets.split(", "):
                if cited.split("/")[0] in groups and not any(fnmatchcase(name, f"*{cited}") for name in names):
                    wrong.append(f"{page}: {cited}")
    assert not wrong
